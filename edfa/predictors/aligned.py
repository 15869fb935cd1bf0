"""A predictor that sees the blanket and nothing else (Assumption 3), so that "it does not matter" is true."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.errors import SchemaError
from edfa.predictors.base import Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Aligned", "align"]


class Aligned(Predictor):
    """Another predictor, shown only ``columns`` of what is known.

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

    def _fit(self, matrix: Float32Array, codes: Int64Array) -> None:
        self.predictor_: Predictor = clone(self.predictor).fit(matrix, self.classes_[codes])
        self._look()

    def _look(self) -> None:
        """Take over what the predictor has learnt."""
        told: Any = self.predictor_
        self.classes_, self.prior_, self.n_features_in_ = told.classes_, told.prior_, told.n_features_in_
        self.threshold = told.threshold
        if any(not 0 <= c < self.n_features_in_ for c in self.columns):
            raise SchemaError(f"columns must be from 0 to {self.n_features_in_ - 1}, not {self.columns}")
        self.varies_ = told.varies_ & np.isin(np.arange(self.n_features_in_), self.columns)

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        return self.predictor_._answer(mask, known)  # what varies here varies there

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        return self.predictor_.decide_tries(mask, known, column, value)

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """The predictor's own; what it is not shown is one cell."""
        return self.predictor_.cells(mask & self.varies_, feature)


def align(predictor: Predictor, columns: Iterable[int]) -> Aligned:
    """A fitted predictor, from here on shown only these columns."""
    predictor._check_fitted()
    shown = Aligned(predictor, tuple(sorted(columns)))
    shown.predictor_ = predictor
    shown._look()
    return shown
