"""The one kind of memory that edfa keeps results in: named, bounded, shared by threads.

There are five, told apart by name, and ``tools/house.py`` counts them:

- "resources": files of the packages, and what is the same for a whole run (``edfa.reading``);
- "test work": what tests of independence share, such as strata and factors (``edfa.blanket``);
- "model work": what follows from a model and what it is asked (``edfa.predictors``);
- "certificates": those of people's own states (``edfa.advice.promise``);
- "interviews": interviews, and what is made of the facts told there (``edfa.advice.interview``).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock, RLock
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Results by key; the least recently used one is forgotten when there are more than ``most``.

    Keys must say everything that a result depends on: a fingerprint, bytes of an array, a name.
    The identity of an object (``id``) is no key, because another object may get it later.

    Parameters
    ----------
    name
        What is remembered, in a word or two.
    most
        The largest number of results.

    Examples
    --------
    >>> squares = Cache("squares", most=2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (1, 2, 3)]
    [1, 4, 9]
    >>> len(squares), 1 in squares
    (2, False)
    """

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most
        self._results: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, Any] = {}  # a lock for each result that is being made
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Get a result, and make it if it is not there.

        A thread that asks for what another is making waits for it; others do not.

        Parameters
        ----------
        key
            Everything that the result depends on.
        make
            Makes the result, which is then remembered.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
            making = self._making.setdefault(key, RLock())
        with making:
            if found := self.find([key]):
                return found[key]
            try:
                made = make()
                self.keep({key: made})
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return made

    def discard(self, key: Hashable) -> None:
        """Forget one result, if it is there."""
        with self._lock:
            self._results.pop(key, None)

    def find(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """The results that are there under some keys."""
        with self._lock:
            found = {key: self._results[key] for key in keys if key in self._results}
            for key in found:
                self._results.move_to_end(key)
        return found

    def keep(self, results: Mapping[Key, Value]) -> None:
        """Remember results by key; the oldest are forgotten where there are too many."""
        with self._lock:
            for key, result in results.items():
                self._results[key] = result
                self._results.move_to_end(key)
            self._trim()

    def _trim(self) -> None:
        while len(self._results) > self.most:
            self._results.popitem(last=False)

    def held(self) -> dict[Hashable, Value]:
        """All results that are there, the least recently used first."""
        with self._lock:
            return dict(self._results)

    def bound(self, most: int) -> None:
        """Hold at most so many results from now on."""
        with self._lock:
            self.most = most
            self._trim()

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._results.clear()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._results

    def __len__(self) -> int:
        return len(self._results)

    def __reduce__(self) -> tuple[type["Cache[Value]"], tuple[str, int]]:
        """A copy, or what is sent to another process, has forgotten everything."""
        return type(self), (self.name, self.most)
