"""Nothing of what a peer prints reaches the console."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing reaches the console, not even what compiled code prints."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    with Path(os.devnull).open("w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, _ in kept:
            os.dup2(nowhere.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)
