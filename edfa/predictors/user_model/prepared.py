"""A scikit-learn Pipeline asked with each distinct value of a column transformed once.

The steps before the last often treat columns one by one: encoders, scalers, imputers. Then each
column of their output moves with one column of their input alone, and the matrix that the last
step wants can be put together from values transformed before. Which moves with which is found by
watching ``transform``; nothing private is read. A Pipeline is prepared only if the matrices, and
the answers, have the same bits as its own.
"""

from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from edfa.predictors.user_model.frames import FrameMaker, Lookup
from edfa.typing import AnyArray, Float32Array, Float64Array, IntArray

__all__ = ["PreparedPipeline", "prepare"]

COMPARED = 512  # training people on whom answers are compared
# people with columns of different training people on whom matrices are compared, and answers
MIXED, ANSWERED = 2048, 64
WATCHED = 1000  # values of a column that are tried to see what moves with it
WIDEST = 1000  # columns of an output; wider ones are sparse, and better transformed as they are


class PreparedPipeline:
    """A fitted Pipeline that answers from encoded people; ``prepare`` makes one.

    Parameters
    ----------
    pipeline
        The fitted Pipeline.
    frames
        Makes the frames that it wants.
    base
        An encoded person (features,) around whom values are changed one by one.
    moved
        For each column of the frame, the columns of the output that move with it.
    """

    def __init__(
        self, pipeline: Any, frames: FrameMaker, base: Float32Array, moved: tuple[IntArray, ...]
    ) -> None:
        self.pipeline, self.frames, self.base, self.moved = pipeline, frames, base, moved
        self._like = pipeline[:-1].transform(frames.frame(base[None].repeat(2, axis=0)))
        values = to_dense(self._like)
        self._output = values[:1]
        self._order: Literal["C", "F"] = "C" if values.flags.c_contiguous else "F"
        self._lookups = [Lookup(partial(self._values, column)) for column in range(len(moved))]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pipeline, self.frames, self.base, self.moved)

    def predict_proba(self, X: Float32Array) -> Float64Array:  # noqa: N803
        """The model's probabilities for complete encoded rows, (rows, classes)."""
        try:
            matrix = self.transform(X)
        except Exception:  # the Pipeline itself answers, or says what is wrong
            return np.asarray(self.pipeline.predict_proba(self.frames.frame(X)), dtype=np.float64)
        return np.asarray(self.pipeline[-1].predict_proba(matrix), dtype=np.float64)

    def transform(self, X: Float32Array) -> Any:  # noqa: N803
        """What the steps before the last make of complete encoded rows, (rows, width)."""
        like = self._like
        matrix = self._output.repeat(len(X), axis=0).copy(self._order)
        parts = zip(self._lookups, self.frames.features, self.moved, strict=True)
        for lookup, feature, columns in parts:
            matrix[:, columns] = lookup(X[:, feature])
        if sparse.issparse(like):
            return type(like)(matrix)
        if isinstance(like, pd.DataFrame):
            return pd.DataFrame(matrix, columns=like.columns, copy=False)
        return matrix

    def _values(self, column: int, codes: Float32Array) -> AnyArray:
        """The moved columns of the output, (codes, moved), for values of one column of the frame;
        ValueError if one moves what its column did not move in training.
        """
        columns = self.moved[column]
        if not len(codes):
            return np.zeros((0, len(columns)), dtype=self._output.dtype)
        changed = change_column(self.pipeline, self.frames, self.base, column, codes)
        others = np.setdiff1d(np.flatnonzero(differs(changed, self._output)), columns)
        if len(others) or changed.dtype != self._output.dtype:
            raise ValueError("a value moves what its column did not move in training")
        return changed[:, columns]


def change_column(
    pipeline: Any, frames: FrameMaker, base: Float32Array, column: int, codes: Float32Array
) -> AnyArray:
    """What the steps before the last make of the ``base`` person (features,) with one column of the
    frame set to each of some codes, (codes, width).
    """
    rows = base[None].repeat(len(codes), axis=0)
    rows[:, frames.features[column]] = codes
    return to_dense(pipeline[:-1].transform(frames.frame(rows)))


def differs(one: AnyArray, other: AnyArray) -> AnyArray:
    """Which columns of two matrices of numbers are not the same bits, (columns,)."""
    bits = np.dtype(f"u{one.dtype.itemsize}")
    left, right = (np.ascontiguousarray(matrix).view(bits) for matrix in (one, other))
    return np.asarray((left != right).any(axis=0))


def to_dense(matrix: Any) -> AnyArray:
    """An output of ``transform`` as an array (rows, width); TypeError for one that cannot be put
    together again.
    """
    if sparse.issparse(matrix) and matrix.shape[1] <= WIDEST:
        return np.asarray(matrix.toarray())
    values = matrix.to_numpy() if isinstance(matrix, pd.DataFrame) else matrix
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiu":
        raise TypeError("only matrices of numbers can be put together")
    return values


def prepare(pipeline: Any, frames: FrameMaker, X_train: Float32Array) -> PreparedPipeline | None:  # noqa: N803
    """A Pipeline made ready to be asked quickly; None if its columns are not treated one by one, or
    anything fails.

    Parameters
    ----------
    pipeline
        A fitted scikit-learn Pipeline of at least two steps that was fitted on raw frames.
    frames
        Makes the frames that it wants.
    X_train
        Complete encoded training people, (people, features).

    Returns
    -------
    PreparedPipeline or None
        None unless its answers about up to 512 training people and 64 people with columns of
        different ones, and the matrices of 2,048 such people, are those of the Pipeline itself to
        the bit.
    """
    try:
        if len(pipeline.steps) < 2:
            return None
        prepared = PreparedPipeline(pipeline, frames, X_train[0], _watch(pipeline, frames, X_train))
        return prepared if _same(prepared, X_train) else None
    except Exception:  # whatever goes wrong: the Pipeline can still be asked as it is
        return None


def _watch(pipeline: Any, frames: FrameMaker, X_train: Float32Array) -> tuple[IntArray, ...]:  # noqa: N803
    """Change each column of the first person in turn and see what moves: for each column of the
    frame the columns of the output; ValueError if something moves with two columns.
    """
    moved = []
    for column, feature in enumerate(frames.features):
        codes = np.unique(X_train[:, feature])
        tried = np.linspace(0, len(codes) - 1, min(len(codes), WATCHED)).astype(np.intp)
        some = np.append(X_train[0, feature], codes[tried])
        changed = change_column(pipeline, frames, X_train[0], column, some)
        moved.append(np.flatnonzero(differs(changed[1:], changed[:1])))
    if len(np.unique(np.concatenate(moved))) < sum(map(len, moved)):
        raise ValueError("a column of the output moves with two columns")
    return tuple(moved)


def _same(prepared: PreparedPipeline, X_train: Float32Array) -> bool:  # noqa: N803
    """Whether answers and matrices are those of the Pipeline itself, bit for bit."""
    rng = np.random.default_rng(0)
    people = X_train[np.sort(rng.permutation(len(X_train))[:COMPARED])]
    shape = (MIXED, X_train.shape[1])
    mixed = np.take_along_axis(X_train, rng.integers(len(X_train), size=shape), axis=0)
    for rows in (people, mixed, people[:1]):
        frame = prepared.frames.frame(rows)
        ours, theirs = prepared.transform(rows), prepared.pipeline[:-1].transform(frame)
        if type(ours) is not type(theirs) or not _same_bits(to_dense(ours), to_dense(theirs)):
            return False
        some = rows if rows is not mixed else mixed[:ANSWERED]
        direct = prepared.pipeline.predict_proba(frame[: len(some)])
        if not _same_bits(np.asarray(direct, dtype=np.float64), prepared.predict_proba(some)):
            return False
    return True


def _same_bits(ours: AnyArray, theirs: AnyArray) -> bool:
    """Whether two arrays have one data type, one shape and the same bytes."""
    same = ours.dtype == theirs.dtype and ours.shape == theirs.shape
    return bool(same and ours.tobytes() == theirs.tobytes())
