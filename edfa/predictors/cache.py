"""What was worked out for a model and a set of known features, kept for the next people who know the same."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from edfa.predictors.base import Predictor
from edfa.typing import BoolArray

__all__ = ["ModelCache"]

T = TypeVar("T")


class ModelCache(Generic[T]):
    """At most ``limit`` things; the one that was not asked for the longest goes first. Threads may share it.

    It holds on to the models, so that no other can take their place in memory, and to their priors, which every fit
    makes anew: a model that is fitted again is another one. It is sent to other processes empty.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> model = edfa.SubsetXGB(n_estimators=5).fit(np.array([[0.0], [1.0]] * 9), [0, 1] * 9)
    >>> kept, mask = ModelCache[str](2), np.array([True])
    >>> kept.get(model, mask, lambda: "made")
    'made'
    >>> kept.get(model, mask, lambda: "made again")
    'made'
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._found: OrderedDict[Hashable, tuple[Any, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, predictor: Predictor, mask: BoolArray, make: Callable[[], T], *more: Hashable) -> T:
        """What was made for this model, these features and ``more``; or make it now."""
        key = (id(predictor), id(predictor.prior_), predictor.threshold, mask.tobytes(), *more)
        with self._lock:
            if (found := self._found.get(key)) is not None:
                self._found.move_to_end(key)
                return found[1]
        made = make()  # without the lock: it may take long, and twice the same does no harm
        with self._lock:
            self._found[key] = (predictor, predictor.prior_), made
            if len(self._found) > self.limit:
                self._found.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._found)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.limit,)
