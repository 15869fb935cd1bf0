"""NICE: towards the nearest person on the other side, one value at a time, the most rewarding
first.

Brughmans, Leyman & Martens, "NICE: an algorithm for nearest instance counterfactual explanations"
(2024).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError, check_known
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem, rank_in_case
from edfa.recourse.searchers.nearest import MAX_DONORS, Donors, Side
from edfa.typing import Float32Array, Float64Array, IntArray

Reward = Literal["none", "sparsity", "proximity", "plausibility"]
REWARDS: tuple[Reward, ...] = ("none", "sparsity", "proximity", "plausibility")
# distances from training people below this count as this: so near, nobody is more plausible
NEAR = 0.05


@dataclass(eq=False, repr=False)
class NICE(Searcher):
    """One plan each: values of the nearest training person on the other side, or some of them.

    Parameters
    ----------
    train
        The training people.
    reward
        What the next value is chosen by: the gain in the probability wanted (``"sparsity"``), that
        gain for the distance (``"proximity"``), or with the likeness to training people
        (``"plausibility"``); ``"none"`` takes all values.
    justified
        Whether only people whose true class is the one decided may be followed, as the authors have
        it.
    neighbours
        How many of the nearest are looked at until one is found whose permitted values do.
    max_donors
        The largest number of training people that are looked among.
    literal
        Whether the plan stays as the algorithm leaves it, which need not be minimal.
    holds_further, min_support
        As for every ``Searcher``.

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

    reward: Reward = "sparsity"
    _: KW_ONLY
    justified: bool = True
    neighbours: int = 50
    max_donors: int = MAX_DONORS
    literal: bool = False

    def _check_settings(self) -> None:
        super()._check_settings()
        check_known("reward", self.reward, REWARDS)
        if self.neighbours < 1 or self.max_donors < 1:
            raise SettingError("neighbours and max_donors are at least 1")

    @property
    def minimal(self) -> bool:  # type: ignore[override]
        """Whether changes that are not needed are taken out."""
        return not self.literal

    def _learn(self, train: Table) -> None:
        self.donors_ = Donors(
            self.rows_, self.ordered_, self.support_, "cityblock", self.max_donors
        )
        self.donor_classes_ = train.y[self.donors_.row_number] if self.justified else None
        self.plausible_ = Donors(self.rows_, self.ordered_, self.support_)

    def search(self, problem: SearchProblem) -> Candidates:
        """All permitted values of the nearest donor with whom that is recourse; then the most
        rewarding first.
        """
        sides = self.donors_.sides(problem, self.donor_classes_)
        parts = [self._targets(problem, case, side) for case, side in sides]
        targets = Candidates.join(Candidates.none(problem), *parts)
        return targets if self.reward == "none" else self._best_first(problem, targets)

    def _targets(self, problem: SearchProblem, case: IntArray, side: Side) -> Candidates:
        """All permitted values of each case's nearest donor with whom that is recourse; at most one
        a case.
        """
        # DEVIATION: NICE follows the nearest and may change anything; here only what is permitted
        # is taken over, so the nearest may not do and the next one is tried.
        near = self.donors_.nearest(problem, case, side, self.neighbours)
        case, donor = np.repeat(case, near.shape[1]), near.ravel()
        to = problem.permitted(case, self.donors_.rows[donor][:, problem.features])
        works = self.keeps(problem, case, to, problem.predict_changes(case, to))
        targets = Candidates(case, to).take(works)
        return targets.take(rank_in_case(targets.case) == 0)

    def _best_first(self, problem: SearchProblem, targets: Candidates) -> Candidates:
        """Towards the targets, all cases one step at a time, the most rewarding first, until it is
        recourse.
        """
        to, left = np.full_like(targets.to, np.nan), ~np.isnan(targets.to)
        active = np.arange(len(targets))
        score = problem.score(targets.case, problem.group.probabilities[targets.case])
        while len(active):
            position, column = np.nonzero(left[active])
            row = active[position]
            case, hybrid = targets.case[row], to[row]
            hybrid[np.arange(len(row)), column] = targets.to[row, column]
            probabilities = problem.predict_changes(case, hybrid)
            new_score = problem.score(case, probabilities)
            reward = self._reward(problem, case, (to[row], hybrid), new_score - score[row], column)
            best = rank_in_case(position, column, -reward) == 0
            to[active], score[active] = hybrid[best], new_score[best]
            left[active, column[best]] = False
            arrived = self.keeps(problem, targets.case[active], to[active], probabilities[best])
            active = active[~arrived & left[active].any(axis=1)]
        return Candidates(targets.case, to)

    def _reward(
        self,
        problem: SearchProblem,
        case: IntArray,
        steps: tuple[Float32Array, Float32Array],
        gain: Float64Array,
        column: IntArray,
    ) -> Float64Array:
        """What each step is worth, (steps,).

        ``steps`` are the change sets before and after it (steps, known features), ``gain`` what it
        adds to the score, and ``column`` the known feature that it changes.
        """
        if self.reward == "sparsity":
            return gain
        if self.reward == "proximity":
            rows, feature = np.arange(len(case)), problem.features[column]
            moved = np.abs(steps[1][rows, column] - problem.facts[case, column])
            share = np.maximum(moved / self.donors_.value_range[feature], 1e-9)
            return gain / np.where(self.ordered_[feature], share, 1.0)
        # DEVIATION: NICE multiplies two signed gains, so that two losses look like a win; and it
        # asks an autoencoder.
        before, after = (
            np.maximum(self.plausible_.distance(problem, problem.apply(case, to)), NEAR)
            for to in steps
        )
        return gain * (before / after) ** np.sign(gain)
