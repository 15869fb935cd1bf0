"""A dictionary that forgets its oldest entries, so that a long search stays within its memory."""

from typing import TypeVar

__all__ = ["BoundedCache"]

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dictionary of at most ``limit`` entries; adding one more removes the entry that was added first.

    >>> cache = BoundedCache(2)
    >>> cache["a"] = cache["b"] = cache["c"] = 1
    >>> list(cache)
    ['b', 'c']
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.limit and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
