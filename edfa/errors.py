"""Every exception that edfa raises on purpose.

    EdfaError
    ├── SchemaError        (ValueError)   a card or a feature that contradicts itself
    ├── UnknownNameError   (LookupError)  an unknown name; the message has the nearest known one
    ├── DataError          (ValueError)   a table that cannot be used as it is
    │   ├── UnreadableError               a file that is missing, damaged, too large or not UTF-8
    │   ├── UnwritableError               a place that is missing, protected, full or in use
    │   │   └── BusyError                 a place that another run is writing to
    │   ├── EmptyTableError               no rows, or a part of the split without any
    │   ├── ColumnError                   a column that is missing, doubled or of the wrong kind
    │   └── TargetError                   an outcome with gaps, one class, or too few of one
    ├── BudgetError        (ValueError)   a budget that is no number, or too small for any question
    ├── FactError          (ValueError)   one person's answer that cannot be understood
    ├── SettingError       (ValueError)   a setting out of range, or two that contradict each other
    ├── ModelError         (ValueError)   a user model that fails, or answers no probabilities
    ├── MismatchError      (ValueError)   a certificate used with what it was not made for
    ├── PendingError                      an answer that is still being worked out
    ├── UnavailableError   (OSError)      a data set that is not on this machine
    └── MissingExtraError  (ImportError)  an optional dependency that is not installed

Every message is one line that names what is wrong and, if there is one, the nearest valid name.
Each exception is also the builtin a caller would expect, so ``except ValueError`` keeps working.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path


class EdfaError(Exception):
    """Base class: ``except EdfaError`` catches every exception of edfa and nothing else."""


class SchemaError(EdfaError, ValueError):
    """A schema or its card contradicts itself."""


class UnknownNameError(EdfaError, LookupError):
    """A name is not among the known ones."""

    def __init__(self, what: str, name: object, known: Iterable[object]) -> None:
        names = [str(k) for k in known]
        super().__init__(f"no {what} named {str(name)!r}{hint(name, names)}")


class DataError(EdfaError, ValueError):
    """A table cannot be used as it is."""


class UnreadableError(DataError):
    """A file is missing, cut off, damaged, too large, or not what its name says."""


class UnwritableError(DataError):
    """A file or folder cannot be written where it should be."""


class BusyError(UnwritableError):
    """Another run is writing to the same place."""

    def __init__(self, place: Path) -> None:
        super().__init__(
            f"another run is writing {place.name}; wait until it is done, or choose another place"
        )


class EmptyTableError(DataError):
    """A table, or a part of its split, has no rows."""


class ColumnError(DataError):
    """A column is missing, doubled, or has a value that its kind does not allow."""


class TargetError(DataError):
    """A model cannot be fitted to the outcome column."""


class BudgetError(EdfaError, ValueError):
    """A budget cannot be understood, or is too small for any question."""


class FactError(EdfaError, ValueError):
    """A value given for one feature of one person cannot be understood."""


class SettingError(EdfaError, ValueError):
    """A setting is outside its range, or contradicts another one."""


class ModelError(EdfaError, ValueError):
    """A user model cannot be used as it is, fails, or answers what are no probabilities."""


class MismatchError(EdfaError, ValueError):
    """A certificate is used with an advisor, signal or group other than the one it was made for."""


class PendingError(EdfaError):
    """An answer that is still being worked out; ask again later."""

    def __init__(self) -> None:
        super().__init__("it is still being worked out whether the person may act; ask again later")


class UnavailableError(EdfaError, OSError):
    """A data set is not on this machine and cannot be fetched."""


class MissingExtraError(EdfaError, ImportError):
    """An optional dependency is needed but not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'edfa[{extra}]'")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of an error message that suggests the nearest known name; empty if none is near.

    >>> did_you_mean("continous", ["continuous", "ordinal", "categorical"])
    "; did you mean 'continuous'?"
    """
    by_folded = {str(k).casefold(): str(k) for k in known}
    nearest = get_close_matches(str(name).casefold(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {by_folded[nearest[0]]!r}?" if nearest else ""


def check_known(what: str, name: object, known: Collection[object]) -> None:
    """Raise UnknownNameError unless a name, or a word that a setting may have, is a known one.

    >>> check_known("policy", "greedy", ("greedy", "random"))
    >>> check_known("policy", "gredy", ("greedy", "random"))
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: no policy named 'gredy'; did you mean 'greedy'?
    """
    if name not in known:
        raise UnknownNameError(what, name, known)


def hint(name: object, known: Iterable[object], shown: int = 12) -> str:
    """The end of an error message: the nearest known name, or else the first ``shown`` known names.

    >>> hint("x", ["up", "down"])
    '; known: up, down'
    """
    names = [str(k) for k in known]
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    listed = f"; known: {', '.join(names[:shown])}{more}" if names else ""
    return did_you_mean(name, names) or listed
