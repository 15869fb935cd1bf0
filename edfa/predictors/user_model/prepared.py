"""A scikit-learn Pipeline asked with each distinct value of a column transformed once.

The steps before the last often treat columns one by one: encoders, scalers, imputers. Then each
column of their output moves with one column of their input alone, and the matrix that the last step
wants can be put together from values transformed before. Which moves with which is found by
watching ``transform``; nothing private is read. The matrix has the bits, the order in memory and,
if sparse, the stored entries that ``transform`` gives, so the answers are the same.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from edfa.predictors.user_model import frames as memory
from edfa.predictors.user_model.frames import FrameMaker, find_codes, locate, merge_codes
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["PreparedPipeline", "prepare"]

ANSWERS, MIXED = (
    512,
    64,
)  # rows on which answers are compared: training people, and people with columns of others
MATRICES = 2048  # mixed rows on which the matrices alone are compared
WATCHED = 1000  # values of a column that are tried to see what moves with it
CHUNK = 1000  # rows transformed at once


@dataclass(frozen=True)
class _Output:
    """What ``transform`` gives: its width and type, and how to write it as whole numbers, one a
    cell.
    """

    width: int
    dtype: np.dtype[Any]
    sparse_type: Any = None  # of a sparse matrix: its class
    index_type: Any = None  # and the data type of its indices
    fortran: bool = False  # whether a dense matrix lies in memory column by column
    names: Any = None  # of a data frame: its columns

    @classmethod
    def of(cls, matrix: Any) -> "_Output":
        """The kind of a matrix of several rows; TypeError for one that cannot be put together
        again.
        """
        if sparse.issparse(matrix):
            if matrix.format != "csr" or matrix.dtype.kind not in "fiu":
                raise TypeError("only sparse matrices in CSR format can be put together")
            return cls(matrix.shape[1], matrix.dtype, type(matrix), matrix.indices.dtype)
        values = matrix.to_numpy() if isinstance(matrix, pd.DataFrame) else matrix
        if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiu":
            raise TypeError("only matrices of numbers can be put together")
        names = None
        if isinstance(matrix, pd.DataFrame):
            if any(dtype != values.dtype for dtype in matrix.dtypes):
                raise TypeError("only frames of one data type can be put together")
            names = matrix.columns
        fortran = bool(values.flags.f_contiguous and not values.flags.c_contiguous)
        return cls(values.shape[1], values.dtype, fortran=fortran, names=names)

    @property
    def bits(self) -> np.dtype[Any]:
        """Unsigned integers as wide as a cell."""
        return np.dtype(f"u{self.dtype.itemsize}")

    def cells(self, matrix: Any) -> tuple[AnyArray, BoolArray]:
        """The bits of a matrix, (rows, width), and which of its cells are stored: all of a dense
        one.
        """
        if sparse.issparse(matrix):
            rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
            bits, stored = (
                np.zeros(matrix.shape, dtype=self.bits),
                np.zeros(matrix.shape, dtype=bool),
            )
            bits[rows, matrix.indices] = matrix.data.view(self.bits)
            stored[rows, matrix.indices] = True
            return bits, stored
        values = np.ascontiguousarray(matrix, dtype=self.dtype)
        return values.view(self.bits), np.ones(values.shape, dtype=bool)


@dataclass(frozen=True)
class _Layout:
    """Which columns of the output move with which column of the model's frame.

    ``moved``: for each column of the frame, those of the output; ``base``: the encoded row,
    (features,), around which values were changed one by one; ``bits``, ``stored``: its output,
    (width,).
    """

    output: _Output
    moved: tuple[IntArray, ...]
    base: Float32Array
    bits: AnyArray
    stored: BoolArray


@dataclass(frozen=True)
class _Runs:
    """What every known code became: a run of ``cells`` and of their ``places`` in the output.

    ``codes``: of each column of the frame, sorted. ``starts``, ``lengths``: of each code's run,
    columns end to end. The first run, at 0, is what no column moves.
    """

    codes: tuple[Float32Array, ...]
    starts: IntArray
    lengths: IntArray
    cells: AnyArray
    places: AnyArray


class PreparedPipeline:
    """A fitted Pipeline that answers from encoded people; ``prepare`` makes one. Threads may share
    it.

    A value that was not seen before is transformed when it comes, and remembered. Should it move
    what it did not move in training, or fail, the whole Pipeline is asked instead.
    """

    def __init__(self, pipeline: Any, frames: FrameMaker, layout: _Layout) -> None:
        self.pipeline = pipeline
        self.frames = frames
        self.layout = layout
        self._steps, self._last = pipeline[:-1], pipeline[-1]
        self._lock = threading.Lock()
        self._order = np.argsort(
            [min(m, default=layout.output.width) for m in layout.moved], kind="stable"
        )
        self._fixed = np.setdiff1d(
            np.arange(layout.output.width), np.concatenate([*layout.moved, []])
        )
        self._owner, self._within = self._owners()
        self._empty = self._nothing()
        self._runs = self._empty

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pipeline, self.frames, self.layout)

    def predict_proba(self, X: Float32Array) -> Float64Array:  # noqa: N803
        """The model's probabilities for complete encoded rows, (rows, classes)."""
        try:
            matrix = self.transform(X)
        except Exception:  # the Pipeline itself answers, or says what is wrong
            return np.asarray(self.pipeline.predict_proba(self.frames.frame(X)), dtype=np.float64)
        return np.asarray(self._last.predict_proba(matrix), dtype=np.float64)

    def transform(self, X: Float32Array) -> Any:  # noqa: N803
        """What the steps before the last make of complete encoded rows, (rows, width)."""
        cells = self.frames.cells(X)
        runs = self._runs
        if (positions := locate(runs.codes, cells)) is None:
            runs = self._learn(cells)
            positions = locate(runs.codes, cells)
            assert positions is not None  # noqa: S101 - what was just learnt is there
        return (
            self._sparse(runs, positions)
            if self.layout.output.sparse_type
            else self._dense(runs, positions)
        )

    def _dense(self, runs: _Runs, positions: IntArray) -> Any:
        """The matrix, or frame, of the codes at ``positions``, (columns, rows)."""
        output = self.layout.output
        starts = np.zeros(
            (len(positions) + 1, positions.shape[1]), dtype=np.intp
        )  # the last: what nothing moves
        runs.starts.take(positions, out=starts[:-1])
        if output.fortran:
            values = runs.cells.take(starts[self._owner] + self._within[:, None]).T
        else:
            values = runs.cells.take(starts.T[:, self._owner] + self._within)
        matrix = values.view(output.dtype)
        return (
            matrix
            if output.names is None
            else pd.DataFrame(matrix, columns=output.names, copy=False)
        )

    def _sparse(self, runs: _Runs, positions: IntArray) -> Any:
        """The CSR matrix of the codes at ``positions``, (columns, rows), with the entries that
        ``transform`` stores.
        """
        output = self.layout.output
        rows = positions.shape[1]
        starts = np.zeros((rows, len(positions) + 1), dtype=np.intp)
        lengths = np.full(starts.shape, self._fixed_length, dtype=np.intp)
        starts[:, 1:] = runs.starts[positions[self._order].T]
        lengths[:, 1:] = runs.lengths[positions[self._order].T]
        ends = np.cumsum(lengths.ravel())
        entries = np.repeat(starts.ravel() - ends + lengths.ravel(), lengths.ravel()) + np.arange(
            ends[-1] if rows else 0
        )
        indptr = np.concatenate([[0], ends.reshape(lengths.shape)[:, -1]]).astype(output.index_type)
        data = runs.cells[entries].view(output.dtype)
        matrix = output.sparse_type(
            (data, runs.places[entries], indptr), shape=(rows, output.width)
        )
        matrix.sort_indices()
        return matrix

    @property
    def _fixed_length(self) -> int:
        return len(self._empty.cells)

    def _owners(self) -> tuple[IntArray, IntArray]:
        """For each column of the output: the column of the frame that moves it, and its place in
        that one's run.
        """
        owner, within = (
            np.full(self.layout.output.width, len(self.layout.moved)),
            np.zeros(self.layout.output.width, int),
        )
        within[self._fixed] = np.arange(len(self._fixed))
        for i, moved in enumerate(self.layout.moved):
            owner[moved], within[moved] = i, np.arange(len(moved))
        return owner, within

    def _nothing(self) -> _Runs:
        """Runs of no codes: only what no column moves."""
        layout = self.layout
        kept = self._fixed[layout.stored[self._fixed]]
        none = np.zeros(0, dtype=np.intp)
        codes = (np.zeros(0, dtype=np.float32),) * len(layout.moved)
        return _Runs(
            codes, none, none, layout.bits[kept], kept.astype(layout.output.index_type or np.intp)
        )

    def _learn(self, cells: Float32Array) -> _Runs:
        """The runs with every code of ``cells`` among them, kept unless they are too many."""
        with self._lock:
            grown = self._grow(self._runs, find_codes(cells, self._runs.codes))
            if _full(grown):
                grown = self._grow(self._empty, find_codes(cells))
            if not _full(grown):
                self._runs = grown
        return grown

    def _grow(self, runs: _Runs, new: Sequence[Float32Array]) -> _Runs:
        """``runs`` with new codes of each column transformed; ValueError if one moves what is not
        its column's.
        """
        layout = self.layout
        cells, places = [runs.cells], [runs.places]
        made: list[list[IntArray]] = [[np.zeros(0, dtype=np.intp)] for _ in new]
        for which, bits, stored in _change(
            self._steps, self.frames, layout.base, new, layout.output
        ):
            differs = (bits != layout.bits) | (stored != layout.stored)
            if (differs & (self._owner != which[:, None])).any():
                raise ValueError("a value moves what its column did not move in training")
            for i in np.unique(which).tolist():
                kept = stored[which == i][:, layout.moved[i]]
                cells.append(bits[which == i][:, layout.moved[i]][kept])
                places.append(
                    np.broadcast_to(layout.moved[i], kept.shape)[kept].astype(runs.places.dtype)
                )
                made[i].append(kept.sum(axis=1))
        length = np.concatenate([length for column in made for length in column])
        start = len(runs.cells) + np.cumsum(length) - length
        codes, order = _merge(runs.codes, new)
        starts, lengths = (
            np.concatenate([runs.starts, start])[order],
            np.concatenate([runs.lengths, length])[order],
        )
        return _Runs(codes, starts, lengths, np.concatenate(cells), np.concatenate(places))


def _merge(
    known: Sequence[Float32Array], new: Sequence[Float32Array]
) -> tuple[tuple[Float32Array, ...], IntArray]:
    """The codes of each column with new ones, and the order that brings all known ones, then all
    new ones, there.
    """
    merged, orders = [], []
    old, fresh = 0, sum(map(len, known))
    for known_codes, new_codes in zip(known, new, strict=True):
        codes, order = merge_codes(known_codes, new_codes)
        merged.append(codes)
        orders.append(
            np.where(order < len(known_codes), order + old, order - len(known_codes) + fresh)
        )
        old, fresh = old + len(known_codes), fresh + len(new_codes)
    return tuple(merged), np.concatenate(orders)


def _full(runs: _Runs) -> bool:
    return max(map(len, runs.codes), default=0) > memory.MOST_CODES


def _change(
    steps: Any, frames: FrameMaker, base: Float32Array, new: Sequence[Float32Array], output: _Output
) -> Iterator[tuple[IntArray, AnyArray, BoolArray]]:
    """The base row with one column of the frame set to each of its new codes, column after column,
    transformed.

    Gives, some rows at a time: which column was set, (rows,), and the output as ``_Output.cells``.
    """
    column = np.repeat(np.arange(len(new)), [len(codes) for codes in new])
    codes = np.concatenate(new)
    for first in range(0, len(codes), CHUNK):
        which = column[first : first + CHUNK]
        rows = np.tile(base, (len(which), 1))
        rows[np.arange(len(which)), frames.features[which]] = codes[first : first + CHUNK]
        yield which, *output.cells(steps.transform(frames.frame(rows)))


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
        None unless, on up to 512 training people and 64 people with columns of different ones, its
        answers are those of ``pipeline.predict_proba`` to the bit, and so are the matrices of 2,048
        more such mixed people.
    """
    try:
        if len(pipeline.steps) < 2:
            return None
        layout = _watch(pipeline[:-1], frames, np.asarray(X_train, dtype=np.float32))
        if layout is None:
            return None
        prepared = PreparedPipeline(pipeline, frames, layout)
        return prepared if _same(prepared, np.asarray(X_train, dtype=np.float32)) else None
    except Exception:  # whatever goes wrong: the Pipeline can still be asked as it is
        return None


def _watch(steps: Any, frames: FrameMaker, X_train: Float32Array) -> _Layout | None:  # noqa: N803
    """Change each column of the first person in turn and see what moves; None if something moves
    with two columns.
    """
    output = _Output.of(steps.transform(frames.frame(X_train[:ANSWERS])))
    base = X_train[0]
    bits, stored = (part[0] for part in output.cells(steps.transform(frames.frame(X_train[:1]))))
    tried = [codes[_spread(len(codes))] for codes in find_codes(frames.cells(X_train))]
    moved = np.zeros((len(tried), output.width), dtype=bool)
    for which, changed, kept in _change(steps, frames, base, tried, output):
        differs = (changed != bits) | (kept != stored)
        for i in np.unique(which).tolist():
            moved[i] |= differs[which == i].any(axis=0)
    if (moved.sum(axis=0) > 1).any():
        return None
    return _Layout(output, tuple(map(np.flatnonzero, moved)), base, bits, stored)


def _spread(count: int) -> IntArray:
    """Positions among ``count`` values, both ends and at most ``WATCHED`` in all."""
    return np.unique(np.linspace(0, count - 1, min(count, WATCHED)).astype(np.intp))


def _same(prepared: PreparedPipeline, X_train: Float32Array) -> bool:  # noqa: N803
    """Whether answers and matrices are those of the Pipeline itself, bit for bit."""
    rng = np.random.default_rng(0)
    people = X_train[np.sort(rng.permutation(len(X_train))[:ANSWERS])]
    shape = (MATRICES + MIXED, X_train.shape[1])
    mixed = np.take_along_axis(X_train, rng.integers(len(X_train), size=shape), axis=0)
    steps, frames = prepared.pipeline[:-1], prepared.frames
    for rows in (people, mixed[:MIXED], mixed[MIXED:], people[:1]):
        if not _same_matrix(prepared.transform(rows), steps.transform(frames.frame(rows))):
            return False
    return all(
        _same_bits(
            np.asarray(prepared.pipeline.predict_proba(frames.frame(rows)), dtype=np.float64),
            prepared.predict_proba(rows),
        )
        for rows in (people, mixed[:MIXED], people[:1])
    )


def _same_matrix(ours: Any, theirs: Any) -> bool:
    """Whether two matrices are of one type and hold the same bits in the same places of memory."""
    if type(ours) is not type(theirs):
        return False
    if sparse.issparse(ours):
        parts = [
            (ours.data, theirs.data),
            (ours.indices, theirs.indices),
            (ours.indptr, theirs.indptr),
        ]
        return ours.shape == theirs.shape and all(_same_bits(a, b) for a, b in parts)
    if isinstance(ours, pd.DataFrame):
        same = ours.columns.equals(theirs.columns) and ours.index.equals(theirs.index)
        return (
            same
            and (ours.dtypes == theirs.dtypes).all()
            and _same_bits(ours.to_numpy(), theirs.to_numpy())
        )
    layout = ("C_CONTIGUOUS", "F_CONTIGUOUS")
    return _same_bits(ours, theirs) and all(
        ours.flags[flag] == theirs.flags[flag] for flag in layout
    )


def _same_bits(ours: AnyArray, theirs: AnyArray) -> bool:
    return (
        ours.dtype == theirs.dtype
        and ours.shape == theirs.shape
        and ours.tobytes() == theirs.tobytes()
    )
