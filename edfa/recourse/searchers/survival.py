"""SurvivalSearch: among the plans that work today, those likeliest to still work when everything is
known.

The paper's nearest plans sit just past the border of what the model can see today, and most fall
back when it sees more. Here a plan may go farther, or change one thing more, when it survives
better for it.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.people import People
from edfa.predictors.committee import Committee
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, Keys, SearchProblem, rank_in_case
from edfa.recourse.searchers.nearest import DonorSearch, combine
from edfa.recourse.survival import Completions, PlannedChanges, Survival
from edfa.typing import Float64Array, IntArray


@dataclass(eq=False, repr=False)
class SurvivalSearch(DonorSearch):
    """Plans of up to three changes, the likeliest to help first, then the nearest.

    A plan helps where the person would be refused without it and is granted with it. What is handed
    out is a menu: each next plan helps less often and takes less effort. A plan need not be
    minimal; but where a smaller one helps as often, that is the one offered.

    Parameters
    ----------
    train
        The training people: donors of values, and of what is not known.
    n_completions
        The number of training people who complete each person.
    n_candidates
        The number of candidates a person that are tried on the completions: half of them the
        nearest, the others those that bring the model, as far as it sees, the farthest past the
        border.
    neighbours, farther, max_changes
        As for ``Nearest``.
    holds_further, min_support
        As for every ``Searcher``.
    committee
        Models learnt again from other people, which are asked besides the one that decides: a plan
        that they all accept will probably work when the model has been learnt again too. None: no
        others.
    all_features
        Whether survival is asked of the model that sees every feature, and not the blanket alone.
        The committee must see the same.
    enough
        Plans that help in this share of the cases in which help is needed are all as good; of
        those, the one of least effort is the first.
    second_look
        The number of other completions on which a plan's survival is estimated again once it is
        chosen, 0: none. The best of many plans on a few completions looks better than it is.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 12:] = np.nan
    >>> people = edfa.People(known, edfa.Background.of(table.train, model))
    >>> near, lasting = (edfa.find_recourse(people, s(table.train)) for s in (edfa.Nearest,
    ...     SurvivalSearch))
    >>> from edfa.recourse import add_survival
    >>> usual = add_survival(near, table.train).survival[near.first[near.legal]].mean()
    >>> bool(lasting.survival[lasting.first[lasting.legal]].mean() > usual)
    True
    """

    _: KW_ONLY
    n_completions: int = 32
    n_candidates: int = 32
    committee: Committee | None = None
    all_features: bool = False
    enough: float = 0.98
    second_look: int = 0

    minimal = False

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_completions < 2 or self.n_candidates < 2:
            raise SettingError(
                f"n_completions and n_candidates: at least 2 each, not {self.n_completions} and "
                f"{self.n_candidates}"
            )
        if not 0 < self.enough <= 1:
            raise SettingError(f"enough: a share above 0, at most 1, not {self.enough!r}")
        if self.second_look < 0:
            raise SettingError(
                f"second_look: a number of completions, or 0, not {self.second_look!r}"
            )

    def _learn(self, train: Table) -> None:
        super()._learn(train)
        self._complete_from(train, np.zeros(0, dtype=np.intp))

    def fit_without(self, train: Table, left_out: IntArray) -> Self:
        """Learn from training people, but take no completions from the rows ``left_out``."""
        self.fit(train)
        self._complete_from(train, np.unique(left_out))
        return self

    def _complete_from(self, train: Table, left_out: IntArray) -> None:
        self.left_out_ = left_out
        self.completions_ = Completions.of(
            train,
            self.n_completions,
            without=left_out,
            cache=self.cache_,
            committee=self.committee,
        )

    def completions(self, problem: SearchProblem) -> Completions:
        """What completes people: the training people that it has learnt from."""
        return self.completions_

    def chance(self, people: People, code: int) -> Float64Array:
        """The probability that a class is decided when everything is known, and when the model has
        been learnt again, (people,).

        Parameters
        ----------
        people
            Partly known people.
        code
            The code of the class.
        """
        if self.all_features:
            people = replace(people, background=people.background.unaligned, swept=None)
        return self.completions_.chance(people, code)

    def look_again(self, problem: SearchProblem, candidates: Candidates) -> Survival | None:
        """The survival of plans that are chosen, on completions that had no part in choosing
        them.
        """
        others = self.completions_.farther(self.second_look) if self.second_look else None
        if others is None or not np.isnan(problem.cases.X[:, problem.predictor.varies_]).any():
            return None
        return others.survival(self._planned(problem, candidates))

    def learnt_state(self) -> dict[str, Any]:
        """The learnt state, for fingerprints, with the rows left out of completions, if there are
        any.
        """
        state = super().learnt_state()
        return state | {"left_out": self.left_out_} if len(self.left_out_) else state

    def search(self, problem: SearchProblem) -> Candidates:
        """Every single change that works, and all sets of a donor's values that do; the most
        promising of them.
        """
        changes = SingleChanges.of(problem)
        if not len(changes):
            return Candidates.none(problem)
        parts = [changes.candidates(*np.nonzero(changes.is_recourse))]
        most = self._most_changes(problem)
        if most > 1:
            parts += [
                combine(changes, near, most, keep_supersets=True)
                for near in self.near_changes(changes, self.neighbours)
            ]
        some = problem.affordable(Candidates.join(*parts).distinct())
        return self._with_farther(changes, self._promising(problem, some))

    def survival(
        self, problem: SearchProblem, candidates: Candidates, keys: Keys | None
    ) -> Survival:
        """The survival of each plan; with ``keys``, NaN for those that cannot survive better than
        an easier one.
        """
        plans = self._planned(problem, candidates)
        if keys is None:
            return self.completions_.survival(plans)
        rank = rank_in_case(candidates.case, *keys)
        return self.completions_.race(plans, rank, self.enough, self.enough_survival)

    def _planned(self, problem: SearchProblem, candidates: Candidates) -> PlannedChanges:
        planned = super()._planned(problem, candidates)
        if not self.all_features:
            return planned
        people = replace(planned.people, background=problem.background.unaligned)
        return replace(planned, people=people)

    def _promising(self, problem: SearchProblem, candidates: Candidates) -> Candidates:
        """At most ``n_candidates`` of each case: half of them the nearest, the others the farthest
        past the border.
        """
        case, limit = candidates.case, self.n_candidates
        if len(case) <= limit or np.bincount(case).max() <= limit:
            return candidates
        size = problem.lengths(case, candidates.to)
        near = rank_in_case(case, *size.keys) < limit // 2
        past = np.round(problem.score(case, np.asarray(candidates.probabilities)), 6)
        far = rank_in_case(case, size.l2, -past, near) < limit - limit // 2
        return candidates.take(near | far)
