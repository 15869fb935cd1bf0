"""Answers kept by row, calls counted, and a limit on how much one step may ask of a model that is
not ours.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edfa.errors import ModelError
from edfa.predictors.own_model.given import given_now
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Asked", "KeptAnswers", "RowLimit", "limit_rows"]

KEPT = 100_000  # rows whose answers are remembered
LOOKED_UP = 4_096  # rows in one question, up to which each is looked up; more are asked about
_LIMIT: ContextVar["RowLimit | None"] = ContextVar("row_limit", default=None)


@dataclass
class Asked:
    """What was asked of a model so far: calls, rows, and rows whose answer was known already."""

    calls: int = 0
    rows: int = 0
    remembered: int = 0

    def __str__(self) -> str:
        return f"{self.calls:,} calls, {self.rows:,} rows, {self.remembered:,} answers remembered"


@dataclass
class RowLimit:
    """How many rows one step may ask a model about, and how many of them it has asked about."""

    most: int
    asked: int = 0

    def take(self, rows: int) -> None:
        """Count rows that are about to be asked about; ModelError if they are too many."""
        if self.asked + rows > self.most:
            raise ModelError(
                f"this step would ask the model about more than {self.most:,} rows; raise "
                "max_rows, or lower "
                "n_completions or n_candidates"
            )
        self.asked += rows


@contextmanager
def limit_rows(most: int | RowLimit | None) -> Iterator[None]:
    """Within, models of the user's own are asked about at most this number of rows; ModelError
    before one call more.

    With a ``RowLimit`` several such blocks share one limit. A limit within another one changes
    nothing: a step is what the outermost says it is. None: no limit.
    """
    if most is None or _LIMIT.get() is not None:
        yield
        return
    token = _LIMIT.set(RowLimit(most) if isinstance(most, int) else most)
    try:
        yield
    finally:
        _LIMIT.reset(token)


@dataclass
class KeptAnswers:
    """Asks a model in batches, and keeps its answers by row: the same row has the same answer, to
    the bit.

    Parameters
    ----------
    ask
        Gives probabilities (n, classes) of encoded complete rows (n, features).
    batch_rows
        The most rows in one call.
    """

    ask: Callable[[Float32Array], Float64Array]
    batch_rows: int
    asked: Asked = field(default_factory=Asked)
    _answers: OrderedDict[bytes, Float64Array] = field(default_factory=OrderedDict, repr=False)
    _pinned: dict[bytes, Float64Array] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, to send to another process."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def __call__(self, rows: Float32Array) -> Float64Array:
        """Probabilities (n, classes) of rows (n, features)."""
        rows, given = np.ascontiguousarray(rows), given_now()
        pinned = self._pinned if given is None else {}
        if len(rows) > LOOKED_UP or not len(rows):
            answers = self._ask(rows)
            _put_pinned(pinned, rows, answers)
            return answers
        start = (
            repr(given).encode() if given else b""
        )  # the same row, of somebody who said something else
        keys = [start + row.tobytes() for row in rows]
        with self._lock:
            kept = {key: pinned.get(key, self._answers.get(key)) for key in keys}
        unknown = {key: i for i, key in enumerate(keys) if kept[key] is None}
        if unknown:
            fresh = dict(zip(unknown, self._ask(rows[list(unknown.values())]), strict=True))
            kept |= fresh
            self._remember(fresh)
        with self._lock:
            self.asked.remembered += len(keys) - len(unknown)
        return np.array([kept[key] for key in keys])

    def pin(self, rows: Float32Array, answers: Float64Array) -> None:
        """Keep answers about the people of a table themselves, whatever of them encoding cannot
        express.

        Others with the same encoded row, who are asked about in an interview or a file, do not get
        these answers.
        """
        for row, answer in zip(np.ascontiguousarray(rows), answers, strict=True):
            self._pinned[row.tobytes()] = answer

    def count(self, calls: int, rows: int) -> None:
        """Count what was asked of the model, here or elsewhere."""
        with self._lock:
            self.asked.calls += calls
            self.asked.rows += rows

    def _ask(self, rows: Float32Array) -> Float64Array:
        if (limit := _LIMIT.get()) is not None:
            limit.take(len(rows))
        parts = np.array_split(rows, max(1, -(-len(rows) // self.batch_rows)))
        answers = [self.ask(part) for part in parts]
        self.count(len(parts), len(rows))
        return np.concatenate(answers)

    def _remember(self, fresh: dict[bytes, Float64Array]) -> None:
        with self._lock:
            self._answers.update(fresh)
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)


def _put_pinned(
    pinned: dict[bytes, Float64Array], rows: Float32Array, answers: Float64Array
) -> None:
    """Put the pinned answers where their rows are; found by a sum of bits first, then by all
    bits.
    """
    if not pinned:
        return
    keys = np.stack([np.frombuffer(key, dtype=np.float32) for key in pinned])
    for i in np.flatnonzero(np.isin(_sums(rows), _sums(keys))):
        if (kept := pinned.get(rows[i].tobytes())) is not None:
            answers[i] = kept


def _sums(rows: Float32Array) -> IntArray:
    """One whole number for each row (n, features), (n,): equal for equal rows, and seldom for
    others.
    """
    odd = np.random.default_rng(0).integers(2**62, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    return np.asarray(
        (np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64) * odd).sum(axis=1)
    )
