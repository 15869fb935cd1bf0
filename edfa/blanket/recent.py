"""A dictionary that forgets its oldest entries, so that a long search stays within its memory."""

from typing import TypeVar

__all__ = ["Recent"]

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """At most ``limit`` entries; the one set first goes first.

    >>> kept = Recent(2)
    >>> kept["a"] = kept["b"] = kept["c"] = 1
    >>> list(kept)
    ['b', 'c']
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.limit and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
