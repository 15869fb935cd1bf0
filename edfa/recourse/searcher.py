"""What searchers share: the task they are given, what they hand back, and the rows they look among."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError
from edfa.explanation.necessity import Group
from edfa.explanation.support import Support
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.recourse.action_set import ActionSet
from edfa.recourse.constraints import Constraints
from edfa.recourse.survival import Survival
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Candidates", "SearchProblem", "Searcher"]

ROWS = 200_000  # in one model call at most


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """People who know the same features: their facts, what may be changed, and what counts as recourse.

    The columns of all rows here are the known features alone, in order. People with the same facts are one *case*.
    """

    group: Group
    rules: ActionSet
    predictor: Predictor
    wanted: int | None
    seed: int = 0

    @property
    def mask(self) -> BoolArray:
        """Which features are known."""
        return self.group.mask

    @property
    def facts(self) -> Float32Array:
        """What is known, a row a case."""
        return self.group.facts

    def __len__(self) -> int:
        return len(self.group.facts)

    @cached_property
    def features(self) -> IntArray:
        """The feature that each column is."""
        return np.flatnonzero(self.mask)

    @cached_property
    def free(self) -> IntArray:
        """The columns that may change."""
        return np.flatnonzero(self.rules.free[self.features])

    @cached_property
    def differentiable(self) -> bool:
        """Whether gradients flow through the model to something that it sees."""
        inner: Any = self.predictor
        seen = self.mask & inner.varies_
        while hasattr(inner, "predictor_"):  # a view of another
            inner = inner.predictor_
            seen = seen & inner.varies_
        return hasattr(inner, "differentiable") and bool(seen.any())

    @cached_property
    def random(self) -> np.random.Generator:
        """A stream of its own, the same for the same known features, whoever else is asked about."""
        return np.random.default_rng([self.seed, *np.packbits(self.mask).tolist()])

    def ask(self, rows: Float32Array) -> Float64Array:
        """What the model says of rows of known features."""
        if not len(rows):
            return np.zeros((0, self.group.told.shape[1]))
        if len(rows) <= ROWS:
            return self.predictor.predict_known(self.mask, rows)
        parts = np.array_split(rows, -(-len(rows) // ROWS))
        return np.concatenate([self.predictor.predict_known(self.mask, part) for part in parts])

    def reaches(self, case: IntArray, chances: Float64Array) -> BoolArray:
        """Whether these chances (rows, or rows of tries) are recourse for these cases."""
        flat = chances.reshape(-1, chances.shape[-1])
        decided = self.predictor.decide(flat).reshape(chances.shape[:-1])
        turned = self._turned(case, decided)
        return turned & self._likely(decided, chances) if self._least else turned

    @cached_property
    def turning(self) -> BoolArray:
        """Which tries of the sweep are recourse for each case."""
        turned = self._turned(np.arange(len(self)), self.group.decisions)
        return turned & self._likely(self.group.decisions, self.group.chances) if self._least else turned

    @property
    def _least(self) -> float:
        """The chance that a plan must have; only where there is one is it needed what the model says of every try."""
        return self.rules.constraints.min_probability

    def _turned(self, case: IntArray, decided: IntArray) -> BoolArray:
        """Whether decisions are other than today's, and the wanted one."""
        own = self.group.decision[case].reshape(-1, *(1,) * (decided.ndim - 1))
        turned = np.asarray(decided != own)
        return turned if self.wanted is None else turned & (decided == self.wanted)

    def _likely(self, decided: IntArray, chances: Float64Array) -> BoolArray:
        """Whether what is decided is as probable as it must be."""
        return np.asarray(np.take_along_axis(chances, decided[..., None], axis=-1)[..., 0] >= self._least)

    def score(self, case: IntArray, chances: Float64Array) -> Float64Array:
        """How near chances are to recourse: that of the wanted class, or of any but today's."""
        if self.wanted is not None:
            return np.asarray(chances[..., self.wanted])
        own = self.group.decision[case].reshape(-1, *(1,) * (chances.ndim - 1))
        return np.asarray(
            1 - np.take_along_axis(chances, np.broadcast_to(own, (*chances.shape[:-1], 1)), axis=-1)[..., 0]
        )

    def changed(self, case: IntArray, to: Float32Array) -> Float32Array:
        """The cases' facts with the changes made."""
        return np.where(np.isnan(to), self.facts[case], to)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Change sets, a row each: whose (``case``), ``to`` what (NaN: unchanged), and from which training row (or -1).

    ``chances`` are what the model says afterwards; left out by searchers that have not asked.
    """

    case: IntArray
    to: Float32Array
    donor: IntArray
    chances: Float64Array | None = None

    def __len__(self) -> int:
        return len(self.case)

    @classmethod
    def none(cls, task: SearchProblem) -> "Candidates":
        """Nothing."""
        none = np.zeros(0, dtype=np.intp)
        return cls(none, np.zeros((0, len(task.features)), dtype=np.float32), none, task.ask(task.facts[:0]))

    @classmethod
    def of(cls, case: IntArray, to: Float32Array, chances: Float64Array | None = None) -> "Candidates":
        """Change sets that come from no one."""
        return cls(case, to, np.full(len(case), -1, dtype=np.intp), chances)

    def take(self, rows: IntArray | BoolArray) -> "Candidates":
        """Some of them."""
        chances = None if self.chances is None else self.chances[rows]
        return Candidates(self.case[rows], self.to[rows], self.donor[rows], chances)

    @classmethod
    def join(cls, *parts: "Candidates") -> "Candidates":
        """All of them; chances only where all parts have them."""
        told = [p.chances for p in parts if p.chances is not None]
        return cls(
            np.concatenate([p.case for p in parts]),
            np.concatenate([p.to for p in parts]),
            np.concatenate([p.donor for p in parts]),
            np.concatenate(told) if len(told) == len(parts) else None,
        )


class Searcher(ABC):
    """Looks for plans among training people. Subclasses propose change sets in ``search``.

    ``find_recourse`` keeps of them what the model confirms and the rules allow, and takes out what is not needed
    (unless ``minimal`` is false). A searcher whose proposals are of that kind already says so with ``finished``; one
    with a notion of its own of what a plan must hold says so in ``keeps``. ``sweeps`` asks for the sweep of single
    changes.
    """

    sweeps = False
    finished = False
    minimal = True

    def __init__(self, train: Table) -> None:
        if not len(train):
            raise DataError("a searcher looks among training people; there are none")
        self.train = train
        self._rules: tuple[People, Constraints | None, ActionSet] | None = None

    @cached_property
    def rows(self) -> Float32Array:
        """The training people."""
        return self.train.X

    @cached_property
    def support(self) -> Support:
        """The values that training people have; every level of a category is tried."""
        return Support.of(self.rows, [j for j, f in enumerate(self.train.schema) if f.kind == "categorical"])

    def rules(self, constraints: Constraints | None, people: People) -> ActionSet:
        """Card and constraints for these people; kept, since the next person is often asked about with the same."""
        last = self._rules
        if (
            last is None
            or last[1] != constraints
            or any(getattr(last[0], name) is not getattr(people, name) for name in ("schema", "encoder", "blanket"))
        ):
            last = self._rules = people, constraints, ActionSet.of(constraints, people, self.rows, self.support)
        return last[2]

    @abstractmethod
    def search(self, task: SearchProblem) -> Candidates:
        """Proposals for every case of the task; none for a case is an answer too."""

    def keeps(self, task: SearchProblem, case: IntArray, to: Float32Array, chances: Float64Array) -> BoolArray:
        """Which change sets are good enough: those that are recourse."""
        return task.reaches(case, chances)

    def invalidation(self, task: SearchProblem, found: Candidates) -> Float64Array | None:
        """How likely each plan is to fail when its numbers are met only roughly, from a searcher that looks at it."""
        return None

    def survival(
        self, task: SearchProblem, found: Candidates, keys: tuple[Float64Array | IntArray, ...]
    ) -> Survival | None:
        """How likely each plan is to hold when everything is known, from a searcher that looks at it.

        ``keys`` say how near each is, the last one first.
        """
        return None
