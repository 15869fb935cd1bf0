"""NICE: towards the nearest person on the other side, one value at a time, the most rewarding first.

Brughmans, Leyman & Martens, "NICE: an algorithm for nearest instance counterfactual explanations" (2024).
"""

from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError, UnknownNameError
from edfa.recourse._search.donors import LIMIT, Donors, Side
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
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], Background.of(table.train, model))
    >>> find_recourse(people, NICE(table.train)).count.max()
    np.int64(1)
    """

    def __init__(
        self,
        train: Table | None = None,
        reward: Reward = "sparsity",
        *,
        justified: bool = True,
        neighbours: int = 50,
        donors: int = LIMIT,
        literal: bool = False,
    ) -> None:
        if reward not in REWARDS:
            raise UnknownNameError("reward", reward, REWARDS)
        if neighbours < 1 or donors < 1:
            raise SettingError("neighbours and donors are at least 1")
        self.reward = reward
        self.justified = justified
        self.neighbours = neighbours
        self.donors = donors
        self.literal = literal
        if train is not None:
            self.fit(train)

    @property
    def minimal(self) -> bool:  # type: ignore[override]
        """Whether changes that are not needed are taken out."""
        return not self.literal

    def _learn(self, train: Table) -> None:
        self.ordered_ = np.array([feature.kind != "categorical" for feature in train.schema])
        self.donors_ = Donors(self.rows_, self.ordered_, self.cache_, "cityblock", self.donors)
        self.truth_ = train.y[self.donors_.number] if self.justified else None
        self.likeness_ = Donors(self.rows_, self.ordered_, self.cache_)

    def search(self, problem: SearchProblem) -> Candidates:
        """The nearest donor whose permitted values do; then the best first."""
        parts = [Candidates.of(np.zeros(0, dtype=np.intp), problem.facts[:0])]
        for now in np.unique(problem.group.decision):
            case = np.flatnonzero(problem.group.decision == now)
            found = self._graft(problem, case, self.donors_.side(problem, int(now), self.truth_))
            parts.append(found if self.reward == "none" else self._best_first(problem, found))
        return Candidates.join(*parts)

    def _graft(self, problem: SearchProblem, case: IntArray, side: Side) -> Candidates:
        """All permitted values of the nearest donor with whom that is recourse."""
        # DEVIATION: NICE follows the nearest and may change anything; here only what is permitted is taken over, so
        # the nearest may not do and the next one is tried.
        near = self.donors_.nearest(problem, case, side, self.neighbours)
        to = np.full((*near.shape, len(problem.features)), np.nan, dtype=np.float32)
        for column in problem.free:
            value, own = self.donors_.rows[near, problem.features[column]], problem.facts[case, column][:, None]
            fine = problem.actions.permits(int(problem.features[column]), own, value)
            to[:, :, column] = np.where(fine, value, np.float32(np.nan))
        flat, who = to.reshape(-1, to.shape[2]), np.repeat(case, near.shape[1])
        good = problem.is_recourse(who, problem.predict(problem.apply(who, flat)))
        good &= problem.actions.seen_together(problem.mask, problem.facts[who], flat)
        table = good.reshape(near.shape)
        rows = np.flatnonzero(table.any(axis=1)) if table.size else case[:0]
        first = table[rows].argmax(axis=1) if len(rows) else rows
        return Candidates(case[rows], to[rows, first], self.donors_.number[near[rows, first]])

    def _best_first(self, problem: SearchProblem, found: Candidates) -> Candidates:
        """All people take one step at a time; whoever arrives, stops."""
        to, left = np.full_like(found.to, np.nan), ~np.isnan(found.to)
        open_, score = np.arange(len(found)), problem.score(found.case, problem.group.probabilities[found.case])
        while len(open_):
            plan, column = np.nonzero(left[open_])
            who, step = open_[plan], np.arange(len(plan))
            hybrid = to[who]
            hybrid[step, column] = found.to[who, column]
            probabilities = problem.predict(problem.apply(found.case[who], hybrid))
            told = problem.score(found.case[who], probabilities)
            reward = self._reward(problem, found.case[who], (to[who], hybrid), told - score[who], column)
            order = np.lexsort((column, -reward, plan))
            best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]]
            to[open_], score[open_] = hybrid[best], told[best]
            left[open_, column[best]] = False
            there = self._arrived(problem, found.case[open_], to[open_], probabilities[best])
            open_ = open_[~there & left[open_].any(axis=1)]
        return Candidates(found.case, to, found.donor)

    def _arrived(
        self, problem: SearchProblem, case: IntArray, to: Float32Array, probabilities: Float64Array
    ) -> BoolArray:
        return problem.is_recourse(case, probabilities) & problem.actions.seen_together(
            problem.mask, problem.facts[case], to
        )

    def _reward(
        self,
        problem: SearchProblem,
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
            feature = problem.features[column]
            moved = np.abs(steps[1][rows, column] - problem.facts[case, column]) / np.array(self.donors_.scale)[feature]
            return np.asarray(gain / np.where(self.ordered_[feature], np.maximum(moved, 1e-9), 1.0))
        # DEVIATION: NICE multiplies two signed gains, so that two losses look like a win; and it asks an autoencoder.
        before, after = (np.maximum(self.likeness_.gap(problem, problem.apply(case, part)), NEAR) for part in steps)
        return np.asarray(gain * (before / after) ** np.sign(gain))
