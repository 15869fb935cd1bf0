"""A scikit-learn Pipeline asked with each distinct value of a column transformed once.

The steps before the last often treat columns one by one: encoders, scalers, imputers. Then each
column of their output moves with one column of their input alone, and the matrix that the last
step wants can be put together from values transformed before. Which moves with which is found by
watching ``transform``; nothing private is read. ``prepare`` makes a ``PreparedPipeline`` only if
its matrices, and its answers, have the same bits as the Pipeline's own.
"""

from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from edfa.predictors.user_model.frames import FrameMaker, Lookup
from edfa.typing import AnyArray, Float32Array, Float64Array, IntArray

COMPARED_PEOPLE = 512  # training people on whom answers are compared
# people with columns of different training people on whom matrices are compared, and answers
MIXED_PEOPLE, MIXED_ANSWERS = 2048, 64
MAX_VALUES_TRIED = 1000  # values of a column that are tried to see what moves with it
# columns of an output; wider ones are sparse, and better transformed as they are
MAX_OUTPUT_COLUMNS = 1000


class PreparedPipeline:
    """A fitted Pipeline that answers from encoded people; ``prepare`` makes one.

    Parameters
    ----------
    pipeline
        The fitted Pipeline, of at least two steps.
    frames
        Makes the frames that it wants.
    X_train
        Complete encoded training people, (people, features). Values are changed one by one around
        the first of them, to see which columns of the output move with each column of the frame.

    Raises
    ------
    ValueError
        If a column of the output moves with two columns of the frame.
    """

    def __init__(self, pipeline: Any, frames: FrameMaker, X_train: Float32Array) -> None:  # noqa: N803
        self.pipeline, self.frames, self.base = pipeline, frames, X_train[0]
        self._like = self.treat(X_train[[0, 0]])
        values = to_dense(self._like)
        self._output = np.ascontiguousarray(values[:1])
        self._order: Literal["C", "F"] = "C" if values.flags.c_contiguous else "F"
        self.moved = [self._watch(column, X_train) for column in range(len(frames.columns))]
        if len(np.unique(np.concatenate(self.moved))) < sum(map(len, self.moved)):
            raise ValueError("a column of the output moves with two columns")
        self._lookups = [Lookup(partial(self._values, column)) for column in range(len(self.moved))]

    def predict_proba(self, X: Float32Array) -> Float64Array:  # noqa: N803
        """The model's probabilities (people, classes) of complete encoded people (people,
        features).
        """
        try:
            matrix = self.transform(X)
        except Exception:  # the Pipeline itself answers, or says what is wrong
            return np.asarray(self.pipeline.predict_proba(self.frames.frame(X)), dtype=np.float64)
        return np.asarray(self.pipeline[-1].predict_proba(matrix), dtype=np.float64)

    def treat(self, X: Float32Array) -> Any:  # noqa: N803
        """What the steps before the last themselves make of encoded people, (people, width)."""
        return self.pipeline[:-1].transform(self.frames.frame(X))

    def transform(self, X: Float32Array) -> Any:  # noqa: N803
        """The same matrix as ``treat``, put together from values that were transformed before.

        Parameters
        ----------
        X
            Complete encoded people, (people, features).

        Returns
        -------
        An array, a sparse matrix or a frame, as the Pipeline has it, (people, width).

        Raises
        ------
        ValueError
            If a value moves what its column did not move in training.
        """
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

    def _watch(self, column: int, X_train: Float32Array) -> IntArray:  # noqa: N803
        """Which columns of the output move with one column of the frame, (moved,)."""
        codes = np.unique(X_train[:, self.frames.features[column]])
        tried = np.linspace(0, len(codes) - 1, min(len(codes), MAX_VALUES_TRIED)).astype(np.intp)
        return self._change(column, codes[tried])[1]

    def _values(self, column: int, codes: Float32Array) -> AnyArray:
        """The moved columns of the output, (codes, moved), for values of one column of the frame;
        ValueError if one moves what its column did not move in training.
        """
        columns = self.moved[column]
        if not len(codes):
            return np.zeros((0, len(columns)), dtype=self._output.dtype)
        changed, moved = self._change(column, codes)
        if not np.isin(moved, columns).all():
            raise ValueError("a value moves what its column did not move in training")
        return changed[:, columns]

    def _change(self, column: int, codes: Float32Array) -> tuple[AnyArray, IntArray]:
        """The output (codes, width) for the first training person with one column of the frame set
        to each of some codes, and which columns of it are not the same bits as that person's own.
        """
        rows = self.base[None].repeat(len(codes), axis=0)
        rows[:, self.frames.features[column]] = codes
        changed = np.ascontiguousarray(to_dense(self.treat(rows)))
        if changed.dtype != self._output.dtype:
            raise ValueError("a value has an output of another data type")
        bits = np.dtype(f"u{changed.dtype.itemsize}")
        return changed, np.flatnonzero((changed.view(bits) != self._output.view(bits)).any(axis=0))


def to_dense(matrix: Any) -> AnyArray:
    """An output of ``transform`` as an array (rows, width); TypeError for one that cannot be put
    together again.
    """
    if sparse.issparse(matrix) and matrix.shape[1] <= MAX_OUTPUT_COLUMNS:
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
        prepared = PreparedPipeline(pipeline, frames, X_train)
        return prepared if _same(prepared, X_train) else None
    except Exception:  # whatever goes wrong: the Pipeline can still be asked as it is
        return None


def _same(prepared: PreparedPipeline, X_train: Float32Array) -> bool:  # noqa: N803
    """Whether answers and matrices are those of the Pipeline itself, bit for bit."""
    rng = np.random.default_rng(0)
    people = X_train[np.sort(rng.permutation(len(X_train))[:COMPARED_PEOPLE])]
    shape = (MIXED_PEOPLE, X_train.shape[1])
    mixed = np.take_along_axis(X_train, rng.integers(len(X_train), size=shape), axis=0)
    for rows in (people, mixed, people[:1]):
        ours, theirs = prepared.transform(rows), prepared.treat(rows)
        if type(ours) is not type(theirs) or not _same_bits(to_dense(ours), to_dense(theirs)):
            return False
    for rows in (people, mixed[:MIXED_ANSWERS], people[:1]):
        direct = prepared.pipeline.predict_proba(prepared.frames.frame(rows))
        if not _same_bits(np.asarray(direct, dtype=np.float64), prepared.predict_proba(rows)):
            return False
    return True


def _same_bits(ours: AnyArray, theirs: AnyArray) -> bool:
    """Whether two arrays have one data type, one shape and the same bytes."""
    same = ours.dtype == theirs.dtype and ours.shape == theirs.shape
    return bool(same and ours.tobytes() == theirs.tobytes())
