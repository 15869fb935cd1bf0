"""Names at the edge: what the command line, study files and saved advisors call a class."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from edfa.errors import SettingError, UnknownNameError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(MutableMapping[str, type[T]], Generic[T]):
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
        self.what = what
        self._entries: dict[str, Any] = dict(entries)

    def __getitem__(self, name: str) -> type[T]:
        if name not in self._entries:
            raise UnknownNameError(self.what, name, self._entries)
        if isinstance(entry := self._entries[name], str):
            module, _, attribute = entry.partition(":")
            self._entries[name] = entry = getattr(import_module(module), attribute)
        kind: type[T] = entry
        return kind

    def __setitem__(self, name: str, entry: "str | type[T]") -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def name_of(self, kind: type[Any]) -> str:
        """The name a class is registered under."""
        for name, entry in self._entries.items():
            if entry is kind or entry == f"{kind.__module__}:{kind.__name__}":
                return name
        raise SettingError(
            f"{kind.__name__} is not a registered {self.what}; register it under a name to save it"
        )
