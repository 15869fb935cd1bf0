"""What is worked out once for a model and a set of known features, and used by all people who know
the same.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from edfa.cache import Cache
from edfa.predictors.base import Predictor
from edfa.typing import BoolArray

__all__ = ["ModelCache"]

T = TypeVar("T")
MAX_LARGE = 48  # results that take megabytes


class ModelCache:
    """Results by model, set of known features and name; the least recently used ones leave first.
    Threads may share it.

    Models are told apart by their ``cache_key``: one that is fitted again is another one. A copy
    that is sent to another process is empty.

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
        self._results: dict[bool, Cache[Any]] = {
            large: Cache("model work", min(MAX_LARGE, max_size) if large else max_size)
            for large in (False, True)
        }

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
        result: T = self._results[large].get((predictor.cache_key, mask.tobytes(), name), make)
        return result

    def __len__(self) -> int:
        return sum(map(len, self._results.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size,)
