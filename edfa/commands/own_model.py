"""A model of the user's own on the command line: its file, and errors and warnings in words of the
shell.
"""

import re
import shlex
import warnings
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edfa.errors import ModelError

if TYPE_CHECKING:
    from edfa.predictors.wrapped import Wrapped

__all__ = ["in_shell_words", "kept_warnings", "wrap_file"]


def wrap_file(
    path: Path,
    partial: Any,
    classes: str | None = None,
    columns: str | None = None,
    like: Path | None = None,
) -> "Wrapped":
    """The model in a file, wrapped; ``classes`` and ``columns`` have commas between, ``like`` is a
    Parquet file.
    """
    from edfa.predictors.own_model.ask import ENCODED
    from edfa.predictors.own_model.files import open_model, read_like
    from edfa.predictors.wrapped import wrap

    rows = None if like is None else read_like(like)
    with in_shell_words():
        names = columns if columns == ENCODED else _listed(columns)
        return wrap(open_model(path), partial, classes=_listed(classes), columns=names, like=rows)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


@contextmanager
def in_shell_words() -> Iterator[None]:
    """A ModelError that advises an argument of ``edfa.wrap`` advises the option of ``edfa fit``
    instead.
    """
    try:
        yield
    except ModelError as error:
        raise ModelError(_in_shell_words(str(error))) from error


def _in_shell_words(message: str) -> str:
    """A message with options in place of arguments.

    >>> _in_shell_words("say which is which: wrap(model, classes=('bad', 'good'))")
    'say which is which: --classes bad,good'
    """
    message = message.replace("wrap(model, like=frame.head())", "--like FILE.parquet")
    message = message.replace("wrap(model, columns=[...])", "--columns a,b,c")
    message = message.replace("or columns='encoded' if", "or --columns encoded if")
    return re.sub(
        r"wrap\(model, classes=(\(.*\))\)$",
        lambda advice: "--classes " + shlex.quote(",".join(literal_eval(advice[1]))),
        message,
    )


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """What is warned of inside, one line each, is in the list afterwards, and on no stream."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", category=UserWarning, module=r"edfa\.")
        yield lines
    lines += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
