"""NICE: towards the nearest person on the other side, one value at a time, the most rewarding first.

Brughmans, Leyman & Martens, "NICE: an algorithm for nearest instance counterfactual explanations" (2024).
"""

from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import SchemaError, UnknownNameError
from edfa.recourse._search.donors import LIMIT, Donors
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["NICE"]

Reward = Literal["none", "sparsity", "proximity", "plausibility"]
REWARDS: tuple[Reward, ...] = ("none", "sparsity", "proximity", "plausibility")
NEAR = 0.05  # a person so near to one of training is as likely as one who is nearer


class NICE(Searcher):
    """One plan each: values of the nearest training person on the other side, or some of them.

    Parameters
    ----------
    train
        The training people.
    reward
        What the next value is chosen by: the gain in the chance wanted (``"sparsity"``), that gain for the distance
        (``"proximity"``), or with the likeness to training people (``"plausibility"``); ``"none"`` takes all values.
    justified
        Whether only people whose true class is the one decided may be followed, as the authors have it.
    neighbours
        How many of the nearest are looked at until one is found whose permitted values do.
    donors
        How many training people are looked among.
    literal
        Whether the plan stays as the algorithm leaves it, which need not be minimal.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], table.schema, table.encoder, model)
    >>> find_recourse(people, NICE(table.train)).count.max()
    np.int64(1)
    """

    def __init__(
        self,
        train: Table,
        reward: Reward = "sparsity",
        *,
        justified: bool = True,
        neighbours: int = 50,
        donors: int = LIMIT,
        literal: bool = False,
    ) -> None:
        super().__init__(train)
        if reward not in REWARDS:
            raise UnknownNameError("reward", reward, REWARDS)
        if neighbours < 1 or donors < 1:
            raise SchemaError("neighbours and donors are at least 1")
        self.reward, self.neighbours, self.minimal = reward, neighbours, not literal
        self.ordered = np.array([f.kind != "categorical" for f in train.schema])
        self.pool = Donors(self.rows, self.ordered, "cityblock", donors)
        self.truth = train.y[self.pool.number] if justified else None
        self.likeness = Donors(self.rows, self.ordered)

    def search(self, task: SearchProblem) -> Candidates:
        """The nearest donor whose permitted values do; then the best first."""
        parts = [Candidates.of(np.zeros(0, dtype=np.intp), task.facts[:0])]
        for now in np.unique(task.group.decision):
            case = np.flatnonzero(task.group.decision == now)
            found = self._graft(task, case, self.pool.side(task, int(now), self.truth))
            parts.append(found if self.reward == "none" else self._best_first(task, found))
        return Candidates.join(*parts)

    def _graft(self, task: SearchProblem, case: IntArray, donors: IntArray) -> Candidates:
        """All permitted values of the nearest donor with whom that is recourse."""
        # DEVIATION: NICE follows the nearest and may change anything; here only what is permitted is taken over, so
        # the nearest may not do and the next one is tried.
        near = self.pool.nearest(task, case, donors, self.neighbours)
        to = np.full((*near.shape, len(task.features)), np.nan, dtype=np.float32)
        for column in task.free:
            value, own = self.pool.rows[near, task.features[column]], task.facts[case, column][:, None]
            fine = task.rules.permits(int(task.features[column]), own, value)
            to[:, :, column] = np.where(fine, value, np.float32(np.nan))
        flat, who = to.reshape(-1, to.shape[2]), np.repeat(case, near.shape[1])
        good = task.reaches(who, task.ask(task.changed(who, flat)))
        good &= task.rules.together(task.mask, task.facts[who], flat)
        table = good.reshape(near.shape)
        rows = np.flatnonzero(table.any(axis=1)) if table.size else case[:0]
        first = table[rows].argmax(axis=1) if len(rows) else rows
        return Candidates(case[rows], to[rows, first], self.pool.number[near[rows, first]])

    def _best_first(self, task: SearchProblem, found: Candidates) -> Candidates:
        """All people take one step at a time; whoever arrives, stops."""
        to, left = np.full_like(found.to, np.nan), ~np.isnan(found.to)
        open_, score = np.arange(len(found)), task.score(found.case, task.group.told[found.case])
        while len(open_):
            plan, column = np.nonzero(left[open_])
            who, step = open_[plan], np.arange(len(plan))
            hybrid = to[who]
            hybrid[step, column] = found.to[who, column]
            chances = task.ask(task.changed(found.case[who], hybrid))
            told = task.score(found.case[who], chances)
            reward = self._reward(task, found.case[who], (to[who], hybrid), told - score[who], column)
            order = np.lexsort((column, -reward, plan))
            best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]]
            to[open_], score[open_] = hybrid[best], told[best]
            left[open_, column[best]] = False
            there = self._arrived(task, found.case[open_], to[open_], chances[best])
            open_ = open_[~there & left[open_].any(axis=1)]
        return Candidates(found.case, to, found.donor)

    def _arrived(self, task: SearchProblem, case: IntArray, to: Float32Array, chances: Float64Array) -> BoolArray:
        return task.reaches(case, chances) & task.rules.together(task.mask, task.facts[case], to)

    def _reward(
        self,
        task: SearchProblem,
        case: IntArray,
        steps: tuple[Float32Array, Float32Array],
        gain: Float64Array,
        column: IntArray,
    ) -> Float64Array:
        """What a step is worth."""
        if self.reward == "sparsity":
            return gain
        rows = np.arange(len(case))
        if self.reward == "proximity":
            feature = task.features[column]
            moved = np.abs(steps[1][rows, column] - task.facts[case, column]) / np.array(self.pool.scale)[feature]
            return np.asarray(gain / np.where(self.ordered[feature], np.maximum(moved, 1e-9), 1.0))
        # DEVIATION: NICE multiplies two signed gains, so that two losses look like a win; and it asks an autoencoder.
        before, after = (np.maximum(self.likeness.gap(task, task.changed(case, part)), NEAR) for part in steps)
        return np.asarray(gain * (before / after) ** np.sign(gain))
