"""A predictor that sees the blanket and nothing else (Assumption 3), so that "it does not matter"
is true.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.errors import SettingError
from edfa.predictors.base import Predictor, Progress, as_mappings
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Aligned", "align"]


class Aligned(Predictor):
    """Another predictor that is shown only some columns of what is known.

    Parameters
    ----------
    predictor
        The other predictor; ``fit`` fits a clone of it to all columns.
    columns
        Positions of the columns that it is shown in predictions.

    Attributes
    ----------
    predictor_
        The fitted predictor. Its threshold, and the class that is about, at the time of the fit are
        this model's too.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = align(edfa.SubsetXGB().fit(table.train.X, table.train.y), columns=[0, 1])
    >>> changed = table.test.X.copy()
    >>> changed[:, 2:] = 0
    >>> bool((model.predict_proba(table.test.X) == model.predict_proba(changed)).all())
    True
    """

    def __init__(self, predictor: Predictor, columns: tuple[int, ...] = ()) -> None:
        self.predictor = predictor
        self.columns = columns

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        fitted: Predictor = clone(self.predictor).fit(
            matrix, self.classes_[codes], progress=progress
        )
        self._use(fitted)

    def _use(self, fitted: Predictor) -> None:
        """Answer by a fitted predictor from here on."""
        self.predictor_ = fitted
        self.classes_, self.prior_, self.n_features_in_ = (
            fitted.classes_,
            fitted.prior_,
            fitted.n_features_in_,
        )
        self.threshold, self.favourable = fitted.threshold, fitted.favourable
        if any(not 0 <= column < self.n_features_in_ for column in self.columns):
            raise SettingError(
                f"columns must be from 0 to {self.n_features_in_ - 1}, not {self.columns}"
            )
        self.varies_ = fitted.varies_ & np.isin(np.arange(self.n_features_in_), self.columns)

    def learnt_state(self) -> Mapping[str, Any]:
        """The predictor's class, settings and state, the columns it is shown, and the threshold
        that decides.
        """
        if not hasattr(self, "predictor_"):
            return {}
        params = self.predictor_.get_params(deep=False)
        plain = {name: value for name, value in params.items() if not isinstance(value, Predictor)}
        predictor = {
            "class": type(self.predictor_).__name__,
            "params": as_mappings(plain),
            "state": self.predictor_.learnt_state(),
        }
        own = {"columns": np.array(self.columns, dtype=np.int64), "threshold": self.threshold}
        own["favourable"] = self.favourable
        return {**super().learnt_state(), **own, "predictor_": predictor}

    @property
    def cache_key(self) -> Hashable:
        """The key of the predictor that is shown some columns, and those columns."""
        return self.predictor_.cache_key, self.columns, self.threshold, self.favourable

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        return self.predictor_._answer(mask, known)  # what varies here varies there

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        return self.predictor_.decide_tries(mask, known, column, value)

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """The predictor's cells of a feature, given those of the known features that it is
        shown.
        """
        return self.predictor_.cells(mask & self.varies_, feature)


def align(predictor: Predictor, columns: Iterable[int]) -> Aligned:
    """A view of a fitted predictor that is shown only these columns; the predictor itself is not
    fitted again.
    """
    predictor._check_fitted()
    view = Aligned(predictor, tuple(sorted(columns)))
    view._use(predictor)
    return view
