"""Everything edfa raises on purpose.

    EdfaError
    ├── SchemaError            (ValueError)    a card or a feature that contradicts itself
    ├── UnknownNameError       (LookupError)   a name nobody knows; says the nearest one
    ├── DataError              (ValueError)    a table that cannot be used as it is
    │   ├── UnreadableError                    a file that is missing, cut off or in another encoding
    │   ├── EmptyTableError                    no rows, or a part of the split without any
    │   ├── ColumnError                        a column that is missing, doubled or holds the wrong things
    │   └── TargetError                        an outcome with gaps, one class, too many, or too few of one
    ├── BudgetError            (ValueError)    a budget that is no number, or too small for anything
    ├── FactError              (ValueError)    one person's answer that cannot be understood
    ├── SettingError           (ValueError)    a setting outside what it may be, or two that contradict each other
    ├── MismatchError          (ValueError)    a certificate used with something it was not made for
    ├── UnavailableError       (OSError)       a data set that is not on this machine
    └── MissingExtraError      (ImportError)   an optional dependency that is not installed

Every message is one line that names the thing and, where there is one, the nearest right one. Each leaf is also
the builtin a caller would have guessed, so ``except ValueError`` keeps working.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BudgetError",
    "ColumnError",
    "DataError",
    "EdfaError",
    "EmptyTableError",
    "FactError",
    "MismatchError",
    "MissingExtraError",
    "SchemaError",
    "SettingError",
    "TargetError",
    "UnavailableError",
    "UnknownNameError",
    "UnreadableError",
    "did_you_mean",
    "hint",
]


class EdfaError(Exception):
    """The root: ``except EdfaError`` catches all of them and nothing else."""


class SchemaError(EdfaError, ValueError):
    """A schema or its card contradicts itself."""


class UnknownNameError(EdfaError, LookupError):
    """A name that is not among the known ones."""

    def __init__(self, what: str, name: object, known: Iterable[object]) -> None:
        names = [str(k) for k in known]
        super().__init__(f"no {what} named {str(name)!r}{hint(name, names)}")


class DataError(EdfaError, ValueError):
    """A table cannot be used as it is."""


class UnreadableError(DataError):
    """A file is missing, cut off, or not what its name says."""


class EmptyTableError(DataError):
    """There are no rows where rows are needed."""


class ColumnError(DataError):
    """A column is missing, doubled, or holds something its kind does not allow."""


class TargetError(DataError):
    """The outcome column cannot be learnt from."""


class BudgetError(EdfaError, ValueError):
    """A budget cannot be understood, or buys nothing."""


class FactError(EdfaError, ValueError):
    """One fact about one person cannot be understood."""


class SettingError(EdfaError, ValueError):
    """A setting is outside what it may be, or contradicts another one."""


class MismatchError(EdfaError, ValueError):
    """A certificate is used with another advisor, signal or group than it was made for."""


class UnavailableError(EdfaError, OSError):
    """A data set is not on this machine and could not be fetched."""


class MissingExtraError(EdfaError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'edfa[{extra}]'")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a sentence that names the nearest known name, or nothing.

    >>> did_you_mean("continous", ["continuous", "ordinal", "categorical"])
    "; did you mean 'continuous'?"
    """
    folded = {str(k).casefold(): str(k) for k in known}
    near = get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def hint(name: object, known: Iterable[object], shown: int = 12) -> str:
    """The nearest known name, or else the list of them.

    >>> hint("x", ["up", "down"])
    '; known: up, down'
    """
    names = [str(k) for k in known]
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    listed = f"; known: {', '.join(names[:shown])}{more}" if names else ""
    return did_you_mean(name, names) or listed
