"""A user model's answers: asked in batches, counted, bounded, and remembered by row.

Every question to a user model goes through ``Answers``, so that the same row has the same answer
and each call is counted. A ``RowLimit`` stops a step that would ask about too many rows.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edfa.cache import Cache
from edfa.errors import ModelError
from edfa.predictors.user_model.given import Given
from edfa.typing import Float32Array, Float64Array

MAX_REMEMBERED = 100_000  # rows whose answers are remembered
COUNTING = threading.Lock()  # held while something is added to an ``Asked``
MAX_LOOKED_UP = 4_096  # rows in one question, up to which each is looked up; more are asked about


@dataclass
class Asked:
    """What was asked of a model so far.

    Parameters
    ----------
    calls
        Calls of the model.
    rows
        Rows in these calls.
    remembered
        Rows whose answer was known already.

    Examples
    --------
    >>> print(Asked(calls=2, rows=1500, remembered=30))
    2 calls, 1,500 rows, 30 answers remembered
    """

    calls: int = 0
    rows: int = 0
    remembered: int = 0

    def __str__(self) -> str:
        return f"{self.calls:,} calls, {self.rows:,} rows, {self.remembered:,} answers remembered"


@dataclass
class RowLimit:
    """A bound on how many rows a model may be asked about.

    Parameters
    ----------
    most
        The largest number of rows.
    asked
        How many it was asked about so far.
    """

    most: int
    asked: int = 0

    def take(self, rows: int) -> None:
        """Count rows that are about to be asked about; ModelError if they are too many."""
        if self.asked + rows > self.most:
            raise ModelError(
                f"this step would ask the model about more than {self.most:,} rows; raise "
                "max_rows, or lower n_completions or n_candidates"
            )
        self.asked += rows


@dataclass
class Answers:
    """A model's answers by row: the same row has the same answer, to the bit. Threads may share it.

    Parameters
    ----------
    ask
        Gives probabilities (n, classes) of complete encoded rows (n, features) of people who gave
        some numbers that encoding cannot express.
    batch_rows
        The most rows in one call.

    Attributes
    ----------
    asked
        What was asked so far.
    """

    ask: Callable[[Float32Array, tuple[Given, ...]], Float64Array]
    batch_rows: int
    asked: Asked = field(default_factory=Asked)
    _remembered: Cache[Float64Array] = field(
        default_factory=lambda: Cache("model work", MAX_REMEMBERED), repr=False
    )
    _pinned: dict[bytes, Float64Array] = field(default_factory=dict, repr=False)

    def __call__(
        self,
        rows: Float32Array,
        given: tuple[Given, ...] | None = None,
        limit: RowLimit | None = None,
    ) -> Float64Array:
        """The answers about some rows.

        Parameters
        ----------
        rows
            Complete encoded people, (n, features).
        given
            The numbers that all of these people gave beyond what encoding can express; None: they
            are people of a table, whose answers may be pinned.
        limit
            Bounds how many rows the model is asked about; None: there is no bound.

        Returns
        -------
        Probabilities (n, classes).

        Raises
        ------
        ModelError
            If the ``limit`` is passed, or the model fails.
        """
        rows, numbers = np.ascontiguousarray(rows), given or ()
        pinned = self._pinned if given is None else {}
        if len(rows) > MAX_LOOKED_UP or not len(rows):
            answers = self._ask(rows, numbers, limit)
            for i, row in enumerate(rows) if pinned else ():
                answers[i] = pinned.get(row.tobytes(), answers[i])
            return answers
        keys = [(numbers, row.tobytes()) for row in rows]
        known = self._remembered.find(keys)
        known |= {key: pinned[key[1]] for key in keys if key[1] in pinned}
        unknown = {key: i for i, key in enumerate(keys) if key not in known}
        if unknown:
            asked = self._ask(rows[list(unknown.values())], numbers, limit)
            fresh = dict(zip(unknown, asked, strict=True))
            self._remembered.keep(fresh)
            known |= fresh
        with COUNTING:
            self.asked.remembered += len(keys) - len(unknown)
        return np.array([known[key] for key in keys])

    def pin(self, rows: Float32Array, answers: Float64Array) -> None:
        """Set the answers about the people of a table themselves, whatever encoding cannot express.

        Others with the same encoded row, who are asked about in an interview or a file, do not get
        these answers.

        Parameters
        ----------
        rows
            The encoded people, (n, features).
        answers
            Their probabilities, (n, classes).
        """
        for row, answer in zip(np.ascontiguousarray(rows), answers, strict=True):
            self._pinned[row.tobytes()] = answer

    def count(self, calls: int, rows: int) -> None:
        """Count what was asked of the model, here or elsewhere."""
        with COUNTING:
            self.asked.calls += calls
            self.asked.rows += rows

    def _ask(
        self, rows: Float32Array, given: tuple[Given, ...], limit: RowLimit | None
    ) -> Float64Array:
        """Ask the model about rows (n, features) in calls of at most ``batch_rows``."""
        if limit is not None:
            limit.take(len(rows))
        parts = np.array_split(rows, max(1, -(-len(rows) // self.batch_rows)))
        answers = [self.ask(part, given) for part in parts]
        self.count(len(parts), len(rows))
        return np.concatenate(answers)
