"""What is worked out once for a model and a set of known features, and used by all people who know
the same.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from edfa.predictors.base import Predictor
from edfa.typing import BoolArray

__all__ = ["ModelCache"]

T = TypeVar("T")
LARGE = 48  # results that take megabytes


class ModelCache:
    """Results by model, set of known features and name; the least recently used ones leave first.
    Threads may share it.

    A cached model is held on to, with its prior, which every fit makes anew: a model that is fitted
    again is another one. A copy that is sent to another process is empty.

    Parameters
    ----------
    max_size
        The number of results held.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> model = edfa.SubsetXGB(n_estimators=5).fit(np.array([[0.0], [1.0]] * 9), [0, 1] * 9)
    >>> cache, mask = ModelCache(), np.array([True])
    >>> cache.get(model, mask, "grid", lambda: "made")
    'made'
    >>> cache.get(model, mask, "grid", lambda: "made again")
    'made'
    """

    def __init__(self, max_size: int = 1024) -> None:
        self.max_size = max_size
        self._results: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()
        self._large: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        predictor: Predictor,
        mask: BoolArray,
        name: Hashable,
        make: Callable[[], T],
        *,
        large: bool = False,
    ) -> T:
        """The result called ``name`` for this model and these known features, made now where it is
        not there yet.

        ``mask`` is (features,). Of ``large`` results fewer are held.
        """
        key = (
            id(predictor),
            id(predictor.prior_),
            predictor.threshold,
            predictor.favourable,
            mask.tobytes(),
            name,
        )
        results, limit = (
            (self._large, min(LARGE, self.max_size)) if large else (self._results, self.max_size)
        )
        with self._lock:
            if (entry := results.get(key)) is not None:
                results.move_to_end(key)
                cached: T = entry[1]
                return cached
        made = make()  # without the lock: it may take long, and making the same twice does no harm
        with self._lock:
            results[key] = (predictor, predictor.prior_), made
            if len(results) > limit:
                results.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._results) + len(self._large)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size,)
