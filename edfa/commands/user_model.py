"""A user model on the command line: its file, and errors and warnings in words of the shell."""

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
    from edfa.advice.config import ModelFile
    from edfa.predictors.user_model.model import UserModel


def wrap_file(model: "ModelFile") -> "UserModel":
    """Open a user model's file and wrap it.

    Parameters
    ----------
    model
        What an advisor file, or the options of ``edfa fit``, say of it.

    Raises
    ------
    ModelError
        If the model cannot be read or used; the message names options, not arguments of Python.
    """
    from edfa.predictors.user_model.files import open_model, read_like
    from edfa.predictors.user_model.model import wrap

    rows = None if model.like is None else read_like(Path(model.like))
    opened = open_model(Path(model.file))
    with in_shell_words():
        partial: Any = model.partial
        return wrap(opened, partial, classes=model.classes, columns=model.columns, like=rows)


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
    message = message.replace("wrap(model, like=frame.head())", _in_file('like = "rows.parquet"'))
    message = message.replace("wrap(model, columns=[...])", _in_file('columns = ["a", "b"]'))
    message = message.replace("or columns='encoded' if", 'or columns = "encoded" there if')
    return re.sub(
        r"wrap\(model, classes=(\(.*\))\)$",
        lambda advice: "--classes " + shlex.quote(",".join(literal_eval(advice[1]))),
        message,
    )


def _in_file(line: str) -> str:
    return f"[model] {line} in --config advisor.toml"


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of edfa that are raised in a block.

    Yields
    ------
    list of str
        After the block it has the text of each warning once, in one line; nothing is written to any
        stream.
    """
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", category=UserWarning, module=r"edfa\.")
        yield lines
    lines += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
