"""A model that answers from any subset: NaN means "not acquired", and no known value at all gives the prior."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from edfa.errors import DataError, EdfaError, EmptyTableError, TargetError
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = [
    "Predictor",
    "UnfittedError",
    "by_mask",
    "class_weights",
    "fit_temperature",
    "inner_split",
    "soften",
]

MIN_INNER = 50  # fewer rows than this are not split for early stopping


class UnfittedError(EdfaError, NotFittedError):  # type: ignore[misc]
    """A model was asked before it was fitted."""


class Predictor(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What every model shares: checks, the prior, decisions. Subclasses learn in ``_fit`` and answer in ``_answer``.

    ``threshold`` decides a two-class case: the second class from that probability on, instead of the likelier one.
    """

    threshold: float | None = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn from encoded rows and their classes."""
        matrix, classes = self._check_rows(X), self._check_classes(y)
        if len(classes) != len(matrix):
            raise DataError(f"one class a row is needed: {len(matrix)} rows, {len(classes)} classes")
        if empty := [int(i) for i in np.flatnonzero(np.isnan(matrix).all(axis=0))]:
            raise DataError(f"column {empty[0]} of X has no value in any row")
        self.classes_, codes = np.unique(classes, return_inverse=True)
        if len(self.classes_) < 2:
            raise TargetError(f"y has one class only, {self.classes_[0]!r}; two are needed")
        self.n_features_in_ = matrix.shape[1]
        self.prior_ = np.bincount(codes) / len(codes)
        self.varies_: BoolArray = np.nanmin(matrix, axis=0) < np.nanmax(matrix, axis=0)
        self._fit(matrix, codes.astype(np.int64))
        return self

    def predict_proba(self, X: Any) -> Float64Array:  # noqa: N803
        """The chance of each class, a row a person, from what is known of them."""
        self._check_fitted()
        matrix = self._check_rows(X, self.n_features_in_)
        chances = np.empty((len(matrix), len(self.classes_)))
        for mask, rows in by_mask(matrix):
            told = mask & self.varies_
            chances[rows] = (
                self._answer(told, matrix.take(rows, axis=0).take(np.flatnonzero(told), axis=1))
                if told.any()
                else self.prior_
            )
        return chances

    def predict_known(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Chances of people of whom the same features are known: ``known`` has just those columns, in order.

        What ``predict_proba`` says of the same people, without its checks: for callers that ask about many at once.
        """
        told = mask & self.varies_  # a column that never varied has taught nothing
        if not told.any():
            return np.tile(self.prior_, (len(known), 1))
        return self._answer(told, known if (told == mask).all() else known[:, told[mask]])

    def decide(self, chances: Float64Array) -> IntArray:
        """The position in ``classes_`` of the likelier class, or by ``threshold`` where one is set."""
        if self.threshold is None:
            return np.asarray(chances.argmax(axis=1))
        if chances.shape[1] != 2:
            raise DataError(f"a threshold decides between two classes, not {chances.shape[1]}")
        return np.asarray((chances[:, 1] >= self.threshold).astype(np.intp))

    def decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """What is decided about each person with one known column given one value, for every such try in turn.

        Just what ``predict_known`` and ``decide`` say of all these rows, from a model that knows a shorter way; none
        where there is no way but to ask about each.
        """
        told = mask & self.varies_
        seen = told[mask]
        if not told.any():
            return None
        tried = np.flatnonzero(seen[column])
        some = self._decide_tries(told, known[:, seen], (np.cumsum(seen) - 1)[column[tried]], value[tried])
        if some is None or len(tried) == len(column):
            return some
        found = np.repeat(self.decide(self.predict_known(mask, known))[:, None], len(column), axis=1)
        found[:, tried] = some
        return found

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """Where the model for ``mask`` can tell values of a feature apart; none when every value may count.

        Thresholds in order: x belongs to the cell ``searchsorted(thresholds, x, side="right")``, and two values of one
        cell are the same to the model.
        """
        return None

    def predict(self, X: Any) -> AnyArray:  # noqa: N803
        """The likelier class, or by ``threshold`` where one is set."""
        decided = self.decide(self.predict_proba(X))
        return np.asarray(self.classes_[decided])

    @abstractmethod
    def _fit(self, matrix: Float32Array, codes: Int64Array) -> None:
        """Learn from a checked matrix and class codes."""

    @abstractmethod
    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Chances of people of whom the same features are known; ``known`` has just those columns."""

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """The shorter way, where there is one; everything that is known varies."""
        return None

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise UnfittedError(f"this {type(self).__name__} has learnt nothing yet; call fit(X, y) first")

    def _check_classes(self, y: Any) -> AnyArray:
        if y is None:
            raise TargetError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if np.asarray(y).dtype.kind == "f" and not np.isfinite(np.asarray(y)).all():
            raise TargetError("y does not name classes: it is NaN or infinite somewhere")
        try:
            check_classification_targets(y)
            return np.asarray(column_or_1d(y, warn=True))
        except ValueError as error:
            raise TargetError(f"y does not name classes: {error}") from None

    def _check_rows(self, X: Any, columns: int | None = None) -> Float32Array:  # noqa: N803
        """A float32 matrix without infinities, of the right width. Some words are those scikit-learn's users know."""
        if hasattr(X, "toarray"):
            raise DataError("a sparse matrix cannot tell a zero from what is not known; pass X.toarray()")
        try:
            raw = np.asarray(X)
            if raw.dtype.kind == "c":
                raise DataError("Complex data not supported: X holds complex numbers")
            matrix = raw.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"X must be a matrix of numbers, as a Table's X is: {error}") from None
        if matrix.ndim != 2:
            raise DataError(f"X must be two-dimensional, not {matrix.shape}. Reshape your data: one person is (1, n)")
        if columns is None and not len(matrix):
            raise EmptyTableError("X has no rows to learn from")
        if not matrix.shape[1]:
            raise DataError(f"X has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
        if columns is not None and matrix.shape[1] != columns:
            name = type(self).__name__
            raise DataError(f"X has {matrix.shape[1]} features, but {name} is expecting {columns} features as input")
        if np.isinf(matrix).any():
            row, column = np.argwhere(np.isinf(matrix))[0]
            raise DataError(f"X is infinite (inf) in row {row}, column {column}")
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def by_mask(matrix: Float32Array) -> Iterator[tuple[BoolArray, IntArray]]:
    """Rows that know the same features, together: each set of known features with its rows, in order."""
    known = ~np.isnan(matrix)
    if len(known) == 1:
        yield known[0], np.zeros(1, dtype=np.intp)
        return
    words = np.zeros((len(known), -(-known.shape[1] // 64) * 8), dtype=np.uint8)
    words[:, : -(-known.shape[1] // 8)] = np.packbits(known, axis=1)
    order = np.lexsort(words.view(np.uint64).T)
    sorted_words = words.view(np.uint64)[order]
    ends = np.flatnonzero((sorted_words[1:] != sorted_words[:-1]).any(axis=1)) + 1
    for rows in np.split(order, ends) if len(order) else ():
        yield known[rows[0]], rows


def soften(chances: Float64Array, temperature: float) -> Float64Array:
    """Chances drawn towards each other by a temperature above one, apart by one below."""
    logs = np.log(np.clip(chances, 1e-12, None)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_temperature(chances: Float64Array, codes: Int64Array) -> float:
    """The temperature that makes held-out outcomes likeliest (Guo et al. 2017).

    >>> overconfident = np.array([[0.99, 0.01]] * 10)
    >>> 3 < fit_temperature(overconfident, np.array([0] * 8 + [1] * 2)) < 4
    True
    """
    rows = np.arange(len(codes))

    def surprise(log_temperature: float) -> float:
        told = soften(chances, float(np.exp(log_temperature)))[rows, codes]
        return float(-np.log(np.clip(told, 1e-12, None)).mean())

    return float(np.exp(minimize_scalar(surprise, bounds=(-2.0, 2.0), method="bounded").x))


def class_weights(codes: Int64Array, classes: int, balanced: bool) -> Float32Array | None:
    """A weight a row that makes all classes count the same, or none."""
    if not balanced:
        return None
    share = np.bincount(codes, minlength=classes) / len(codes)
    return np.asarray(1 / (classes * share))[codes].astype(np.float32)


def inner_split(codes: Int64Array, seed: int) -> tuple[IntArray, IntArray]:
    """A fifth of each class to stop by; with few rows none."""
    if len(codes) < MIN_INNER or np.bincount(codes).min() < 5:
        return np.arange(len(codes)), np.zeros(0, dtype=np.intp)
    random = np.random.default_rng(seed)
    check = [random.permutation(np.flatnonzero(codes == c)) for c in range(int(codes.max()) + 1)]
    held = np.sort(np.concatenate([rows[: max(1, len(rows) // 5)] for rows in check]))
    return np.setdiff1d(np.arange(len(codes)), held), held
