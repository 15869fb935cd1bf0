"""Names and settings at the edge: classes by name, and checks made before any work is spent."""

from collections import UserDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, make_dataclass
from importlib import import_module
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

from edfa.errors import SettingError, UnknownNameError

__all__ = [
    "LARGEST_SEED",
    "Registry",
    "check_count",
    "check_items",
    "check_seed",
    "keywords",
    "settings_class",
]

T = TypeVar("T")
LARGEST_SEED = 2**32 - 1  # what NumPy, scikit-learn, XGBoost and PyTorch all take


def check_seed(seed: Any) -> int:
    """``seed`` as an int, if it is a whole number from 0 to 4,294,967,295; else SettingError.

    Examples
    --------
    >>> check_seed(7)
    7
    >>> check_seed(-1)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: seed: a whole number from 0 to 4294967295, not -1
    """
    if (
        isinstance(seed, bool)
        or not isinstance(seed, Integral)
        or not 0 <= int(seed) <= LARGEST_SEED
    ):
        raise SettingError(f"seed: a whole number from 0 to {LARGEST_SEED}, not {str(seed)[:40]}")
    return int(seed)


def check_count(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Raise SettingError unless ``value`` is a whole number of at least ``least``, or None if it is
    ``optional``.

    Examples
    --------
    >>> check_count("n_completions", 2.5, 2)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: n_completions: a whole number of at least 2, not 2.5
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        more = ", or None" if optional else ""
        raise SettingError(
            f"{name}: a whole number of at least {least}{more}, not {repr(value)[:40]}"
        )


def check_items(name: str, values: Any, what: str, *, text: bool = False) -> list[Any]:
    """The items of a list, tuple or array that is not empty, all of them texts if ``text`` is set;
    else SettingError.

    One text is no list of its letters, and a set has no order. ``what`` says what the setting
    takes.

    Examples
    --------
    >>> check_items("classes", "good", "the outcomes in order")
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: classes: a list of the outcomes in order, not 'good'
    """
    listed = values.tolist() if hasattr(values, "tolist") else values  # of numpy and pandas
    items = (
        list(listed) if isinstance(listed, Sequence) and not isinstance(listed, str | bytes) else []
    )
    if not items or (text and not all(isinstance(item, str) for item in items)):
        raise SettingError(f"{name}: a list of {what}, not {repr(values)[:40]}")
    return items


def keywords(owner: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function's arguments, or of a class's constructor, by name."""
    takes: Any = cast("Any", owner).__init__ if isinstance(owner, type) else owner
    return {name: kind for name, kind in takes.__annotations__.items() if name != "return"}


def settings_class(
    *owners: Callable[..., Any], leave_out: Collection[str] = (), **more: Any
) -> type[Any]:
    """Make a dataclass of the settings that a TOML or JSON file can give to ``owners``.

    Parameters
    ----------
    owners
        Classes or functions; each keyword whose annotation a file can hold becomes a field.
    leave_out
        Names of keywords that a file does not give.
    more
        Further fields with their annotations.

    Returns
    -------
    type
        A dataclass whose fields are all optional, for ``edfa.reading.parse``.

    Examples
    --------
    >>> from dataclasses import fields
    >>> def fit(alpha: float, model: object, seed: int = 0) -> None: ...
    >>> [field.name for field in fields(settings_class(fit, leave_out={"seed"}, cap=int))]
    ['alpha', 'cap']
    """
    annotations = {
        name: kind
        for owner in owners
        for name, annotation in keywords(owner).items()
        if name not in leave_out and (kind := _in_file(annotation)) is not None
    }
    return make_dataclass(
        "Settings",
        [(name, kind, field(default=None)) for name, kind in {**annotations, **more}.items()],
    )


def _in_file(annotation: Any) -> Any:
    """Return the part of an annotation that a file can hold; None if there is none."""
    if (origin := get_origin(annotation)) in (Union, UnionType):
        kept = [kind for kind in map(_in_file, get_args(annotation)) if kind is not None]
        return Union[tuple(kept)] if any(kind is not NoneType for kind in kept) else None  # noqa: UP007
    scalars = (int, float, str, bool, NoneType)
    holds = (Literal, tuple, list, Sequence, Mapping)
    return annotation if annotation in scalars or origin in holds else None


class Registry(UserDict[str, Any], Generic[T]):
    """Classes by name. An entry may be the class or ``"module:Class"``, imported when it is first
    asked for.

    Examples
    --------
    >>> shapes = Registry("shape", {"ordered": "collections:OrderedDict"})
    >>> shapes["ordered"].__name__
    'OrderedDict'
    >>> shapes["orderd"]
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: no shape named 'orderd'; did you mean 'ordered'?
    """

    def __init__(self, what: str, entries: Mapping[str, "str | type[T]"]) -> None:
        super().__init__(entries)
        self.what = what

    def __getitem__(self, name: str) -> type[T]:
        if name not in self.data:
            raise UnknownNameError(self.what, name, self.data)
        if isinstance(entry := self.data[name], str):
            module, _, attribute = entry.partition(":")
            self.data[name] = entry = getattr(import_module(module), attribute)
        kind: type[T] = entry
        return kind

    def name_of(self, kind: type[Any]) -> str:
        """The name a class is registered under."""
        for name, entry in self.data.items():
            if entry is kind or entry == f"{kind.__module__}:{kind.__name__}":
                return name
        raise SettingError(
            f"{kind.__name__} is not a registered {self.what}; register it under a name to save it"
        )
