"""Names and settings at the edge: classes by name, and the settings that a file gives to them."""

from collections import UserDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, make_dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

from edfa.errors import SettingError, check_known

T = TypeVar("T")


def keywords(owner: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function's arguments, or of those of a class's constructor, by name."""
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
    """Classes by name, for names in files and on the command line.

    Parameters
    ----------
    what
        What a class is, such as ``"policy"``, for error messages.
    entries
        By name the class, or ``"module:Class"``, which is imported when it is first asked for.

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
        check_known(self.what, name, self.data)
        if isinstance(entry := self.data[name], str):
            module, _, attribute = entry.partition(":")
            self.data[name] = entry = getattr(import_module(module), attribute)
        kind: type[T] = entry
        return kind

    def name_of(self, kind: type[Any]) -> str:
        """The name that a class is registered under; SettingError if it is not."""
        for name, entry in self.data.items():
            if entry is kind or entry == f"{kind.__module__}:{kind.__name__}":
                return name
        raise SettingError(
            f"{kind.__name__} is not a registered {self.what}; register it under a name to save it"
        )
