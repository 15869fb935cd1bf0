"""What is worked out from a model and a set of known features, cached for the next people who know the same."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from edfa.predictors.base import Predictor
from edfa.typing import BoolArray

__all__ = ["ModelCache"]

T = TypeVar("T")


class ModelCache:
    """At most ``max_size`` results, each of one model, one set of known features and one name.

    The result that was not asked for the longest time is dropped first. Threads may share a cache. A model that is
    fitted again, or decides by another threshold, counts as another model. The cache holds on to its models, so that
    none can be mistaken for a later one at the same address in memory. Pickled or copied, it starts empty.

    Parameters
    ----------
    max_size
        Number of results that are held.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> model = edfa.SubsetXGB(n_estimators=5).fit(np.array([[0.0], [1.0]] * 9), [0, 1] * 9)
    >>> cache, mask = ModelCache(2), np.array([True])
    >>> cache.get(model, mask, "words", lambda: "made")
    'made'
    >>> cache.get(model, mask, "words", lambda: "made again")
    'made'
    >>> cache.get(model, mask, ("number", 7), lambda: 7)
    7
    """

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._results: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, predictor: Predictor, mask: BoolArray, name: Hashable, make: Callable[[], T]) -> T:
        """The cached result, or that of ``make()``, which is then cached.

        Parameters
        ----------
        predictor
            A fitted model.
        mask
            (features,) which features are known.
        name
            What the result is: a word, or a tuple of a word and what else the result depends on. Results of different
            kinds, under different names, may share a cache.
        make
            Works the result out. It may run twice if two threads ask at once.
        """
        key = (id(predictor), id(predictor.prior_), predictor.threshold, mask.tobytes(), name)
        with self._lock:
            if (entry := self._results.get(key)) is not None:
                self._results.move_to_end(key)
                cached: T = entry[1]
                return cached
        result = make()  # without the lock: it may take long, and making the same twice does no harm
        with self._lock:
            # Every fit makes a new prior: with the model itself it tells one fit from another.
            self._results[key] = (predictor, predictor.prior_), result
            if len(self._results) > self.max_size:
                self._results.popitem(last=False)
        return result

    def __len__(self) -> int:
        return len(self._results)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size,)
