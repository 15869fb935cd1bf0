"""What every searcher shares: the problem it is given, the candidates it returns, and its contract.

From proposals to plans, ``find_recourse`` and the searchers take the same steps:
``Searcher.confirm`` proposals, ``Searcher.minimise`` what is left, drop those that are not
``SearchProblem.undominated`` or not ``affordable``, and name each change set once
(``Candidates.distinct``). Change sets are rows of ``Candidates.to``, (change sets, known features);
NaN: unchanged.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from edfa.data.rules import NO_RULES, Rules
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.explanation.necessity import Support, SweepGroup
from edfa.fingerprint import canonical
from edfa.people import Background, People
from edfa.predictors.base import ModelCache, Predictor, UnfittedError
from edfa.recourse.action_set import ActionSet
from edfa.recourse.plan_filter import PlanFilter, TrainingSupport
from edfa.recourse.survival import Completions, PlannedChanges, Survival
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array, Int8Array, IntArray

# changes up to which every subset is looked at; above, those without one of them
MAX_EXACT_CHANGES = 6
Keys = tuple[Float64Array | IntArray, ...]
"""What ranks plans, by the last key first, as ``np.lexsort`` does; each (plans,)."""


class Lengths(NamedTuple):
    """How far each plan goes, (plans,) each.

    ``l0`` is the number of changed features. ``l2`` and ``heom`` are roots of squares in units of
    the training range: ``l2`` on label codes (the paper's), ``heom`` with a changed category
    counted as one. ``effort`` is what it takes the person.
    """

    l0: IntArray
    l2: Float64Array
    heom: Float64Array
    effort: Float64Array

    @property
    def keys(self) -> Keys:
        """What ranks plans: the least effort first, then the fewest changes, then the nearest."""
        return self.l2, self.l0, np.round(self.effort, 9)


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """People who know the same features: their facts, what may be changed, and what counts as
    recourse.

    The columns of all rows here are the known features alone, in order. People with the same facts
    are one *case*.

    Parameters
    ----------
    group
        The people, and what single changes of their facts do.
    actions
        Which values may be proposed.
    background
        The features, the model and the training rows.
    desired_class
        A class code; None: any other decision is recourse.
    seed
        Of ``random``.
    plan_filter
        What else is asked of plans; None: nothing.
    """

    group: SweepGroup
    actions: ActionSet
    background: Background
    desired_class: int | None
    seed: int = 0
    plan_filter: PlanFilter | None = None

    @property
    def predictor(self) -> Predictor:
        """The model, shown what it may see."""
        return self.background.predictor

    @cached_property
    def cases(self) -> People:
        """The cases as a batch of people, with all features as columns."""
        rows = np.full((len(self), len(self.mask)), NAN)
        rows[:, self.features] = self.facts
        return People(rows, self.background, decided=self.group.decision)

    @property
    def mask(self) -> BoolArray:
        """Which features are known, (features,)."""
        return self.group.mask

    @property
    def facts(self) -> Float32Array:
        """The known facts, (cases, known features)."""
        return self.group.facts

    def __len__(self) -> int:
        return len(self.group.facts)

    @cached_property
    def features(self) -> IntArray:
        """The feature index of each column, (known features,)."""
        return np.flatnonzero(self.mask)

    @cached_property
    def free(self) -> IntArray:
        """The columns that may change, (free features,)."""
        return np.flatnonzero(self.actions.free[self.features])

    @property
    def seen(self) -> BoolArray:
        """Which known features make a difference to the model, (features,)."""
        return self.mask & self.predictor.varies_

    @cached_property
    def obeyed_directions(self) -> Int8Array | None:
        """The way in which each feature never lowers the probability of the desired class,
        (features,): 1, -1, or 0.

        None if the model promises nothing, or if any other decision is recourse.
        """
        model = self.predictor
        if not model.obeys_directions or self.desired_class is None:
            return None
        return np.array(model.directions(), dtype=np.int8) * np.int8(
            1 if self.desired_class == 1 else -1
        )

    @cached_property
    def runs(self) -> tuple[IntArray, IntArray]:
        """The first and the last candidate value of the run of recourse around each, (cases,
        candidate values) each.

        A run stays within one feature. What is no recourse itself has no run: its first is after
        its last.
        """
        grid, works = self.group.grid, self.single_recourse
        index = np.arange(len(grid))
        before = np.maximum.accumulate(np.where(works, -1, index), axis=1)
        after = np.minimum.accumulate(np.where(works, len(grid), index)[:, ::-1], axis=1)[:, ::-1]
        start, end = grid.starts[grid.owner], grid.starts[grid.owner + 1]
        return np.maximum(before + 1, start), np.minimum(after, end) - 1

    def candidate_of(self, column: IntArray, value: Float32Array) -> IntArray:
        """The candidate value of the sweep that stands for each value of the known feature
        ``column``, both (n,); -1 if none does.
        """
        grid, found = self.group.grid, np.full(len(value), -1, dtype=np.intp)
        for k in np.flatnonzero(np.isin(grid.columns, column)):
            rows = column == grid.columns[k]
            index = grid.candidate_values[k].index_of(value[rows])
            found[rows] = np.where(index < 0, -1, grid.starts[k] + index)
        return found

    @cached_property
    def differentiable(self) -> bool:
        """Whether gradients flow through the model to something that it sees."""
        seen = self.seen
        return bool(seen.any()) and self.predictor.differentiable(seen) is not None

    @cached_property
    def random(self) -> np.random.Generator:
        """A random stream that depends on the seed and the known features alone, not on who else is
        in the batch.
        """
        return np.random.default_rng([self.seed, *np.packbits(self.mask).tolist()])

    def predict(self, rows: Float32Array) -> Float64Array:
        """Probabilities of rows of known features, without any change.

        Parameters
        ----------
        rows
            (rows, known features).

        Returns
        -------
        numpy.ndarray
            (rows, classes).
        """
        if not len(rows):
            return np.zeros((0, self.group.probabilities.shape[1]))
        return self.predictor.predict_known(self.mask, rows)

    def predict_changes(self, case: IntArray, to: Float32Array) -> Float64Array:
        """Probabilities (rows, classes) after the changes ``to`` and all that follows from them.

        Parameters
        ----------
        case
            The case that each change set is for, (rows,).
        to
            The change sets, (rows, known features); NaN: unchanged.
        """
        return self.predict(self.apply(case, to))

    def is_recourse(self, case: IntArray, probabilities: Float64Array) -> BoolArray:
        """Whether probabilities are recourse: the decision differs from today's, is the desired
        one, and is as probable as the rules ask.

        Parameters
        ----------
        case
            The case that each row is about, (rows,).
        probabilities
            What the model says, (rows, classes).

        Returns
        -------
        numpy.ndarray
            (rows,) booleans.
        """
        return self._turned(case, self.predictor.decide(probabilities), probabilities)

    @cached_property
    def single_recourse(self) -> BoolArray:
        """Which candidate values of the sweep are recourse by themselves, (cases, candidate
        values).
        """
        group = self.group
        likely = self.actions.rules.min_probability > 0  # else nobody needs the probabilities
        probabilities = group.candidate_probabilities if likely else None
        return self._turned(np.arange(len(self))[:, None], group.candidate_decisions, probabilities)

    def _turned(
        self, case: IntArray, decided: IntArray, probabilities: Float64Array | None
    ) -> BoolArray:
        """As ``is_recourse``, in the shape of ``decided``, which ``case`` is broadcast to.

        ``probabilities`` has one axis more, the classes; None if the rules ask for no probability.
        """
        turned = np.asarray(decided != self.group.decision[case])
        if self.desired_class is not None:
            turned &= decided == self.desired_class
        least = self.actions.rules.min_probability
        if probabilities is not None and least:
            reached = np.take_along_axis(probabilities, decided[..., None], axis=-1)[..., 0]
            turned &= reached >= least
        return turned

    def score(self, case: IntArray, probabilities: Float64Array) -> Float64Array:
        """The probability of the desired class, or of any but today's, (rows,).

        ``probabilities`` are (rows, classes), ``case`` (rows,).
        """
        if self.desired_class is not None:
            return probabilities[:, self.desired_class]
        own = self.group.decision[case]
        return 1 - probabilities[np.arange(len(case)), own]

    def apply(self, case: IntArray, to: Float32Array) -> Float32Array:
        """The facts of ``case`` (rows,) with the changes ``to``, and what follows from them, made.

        ``to`` (NaN: unchanged) and the result are (rows, known features).
        """
        return self.actions.consequences.apply(self.features, self.facts[case], to)[0]

    def is_sensible(self, case: IntArray, to: Float32Array) -> BoolArray:
        """Which change sets ``to`` (rows, known features) of ``case`` (rows,) are possible as a
        whole (see ``ActionSet.fit_together``), hold further along and lead where people are,
        (rows,).
        """
        possible = self.actions.fit_together(self.mask, self.facts[case], to)
        if self.plan_filter is None:
            return possible
        return possible & self.plan_filter.accepts(self, case, to)

    def change(self, column: IntArray, value: Float32Array) -> Float32Array:
        """Change sets (rows, known features) that set some columns and leave all others unchanged.

        Parameters
        ----------
        column
            The columns that change: (rows,), or (rows, changes) for several changes of each row.
        value
            Their new values, in the same shape; NaN: unchanged.
        """
        to = np.full((len(value), len(self.features)), NAN)
        row = np.arange(len(value)).reshape(-1, *(1,) * (value.ndim - 1))
        to[row, column] = value
        return to

    def permitted(self, case: IntArray, values: Float32Array) -> Float32Array:
        """``values`` (rows, known features) as change sets for ``case`` (rows,): NaN where a value
        may not be proposed to the case.
        """
        return self.actions.permitted(self.features, self.facts[case], values)

    def lengths(self, case: IntArray, to: Float32Array) -> Lengths:
        """How far change sets go.

        Leaving a missing or special code counts as the full range.

        Parameters
        ----------
        case
            The case that each change set is for, (rows,).
        to
            The change sets, (rows, known features); NaN: unchanged.
        """
        actions, features, facts = self.actions, self.features, self.facts[case]
        changed, value_range = ~np.isnan(to), actions.value_range[features]
        ordered = actions.ordered[features]
        share = np.where(changed, np.abs(to - facts), 0) / value_range
        for column in np.flatnonzero(actions.has_special_values[features]):
            special = np.isin(facts[:, column], actions.special_values[features[column]])
            share[changed[:, column] & special, column] = 1
        mixed = np.where(ordered, share, changed)
        l2, heom = (np.sqrt((part * part).sum(axis=1)) for part in (share, mixed))
        units = np.where(ordered, share * value_range, changed)
        return Lengths(changed.sum(axis=1), l2, heom, units @ actions.effort[features])

    def undominated(self, candidates: "Candidates") -> "Candidates":
        """Without plans that change the same features in the same direction, and none of them
        less, than another does.
        """
        if len(candidates) < 2:
            return candidates
        order = np.argsort(candidates.features, kind="stable")
        group = candidates.features[order]
        moved = np.nan_to_num(candidates.to - self.facts[candidates.case])[order]
        ordered = self.actions.ordered[self.features]

        def at_most(one: Float32Array, other: Float32Array) -> BoolArray:
            """Whether each row of moves goes the way of the other's, and nowhere farther."""
            less = ordered & (one * other > 0) & (np.abs(one) <= np.abs(other))
            return np.asarray(((one == other) | less).all(axis=1))

        dominated = np.zeros(len(order), dtype=bool)
        for gap in range(1, int(np.bincount(group).max())):
            first = np.flatnonzero(group[gap:] == group[:-gap])
            pair = moved[first], moved[first + gap]
            dominated[first + gap] |= at_most(*pair)
            dominated[first] |= at_most(*pair[::-1])
        return candidates.take(np.sort(order[~dominated]))

    def within_max_changes(self, candidates: "Candidates") -> "Candidates":
        """The candidates with no more changes than the rules allow."""
        return candidates.take((~np.isnan(candidates.to)).sum(axis=1) <= self.actions.max_changes)

    def affordable(self, candidates: "Candidates") -> "Candidates":
        """The candidates within the effort that the rules allow."""
        limit = self.actions.rules.max_effort
        if limit is None:
            return candidates
        effort = self.lengths(candidates.case, candidates.to).effort
        return candidates.take(effort <= limit + 1e-9)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Change sets that a searcher proposes.

    Parameters
    ----------
    case
        The case that each is for, (candidates,).
    to
        The new values, (candidates, known features); NaN: unchanged.
    probabilities
        What the model says after the changes, (candidates, classes); None if the searcher has not
        asked.
    """

    case: IntArray
    to: Float32Array
    probabilities: Float64Array | None = None

    def __len__(self) -> int:
        return len(self.case)

    @classmethod
    def none(cls, problem: SearchProblem) -> "Candidates":
        """No candidates."""
        empty = problem.facts[:0]
        return cls(np.zeros(0, dtype=np.intp), empty, problem.predict(empty))

    def take(self, rows: IntArray | BoolArray) -> "Candidates":
        """Some of them, by index or mask."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Candidates(self.case[rows], self.to[rows], probabilities)

    @cached_property
    def features(self) -> IntArray:
        """A number for each, the same for those of one case that change the same features,
        (candidates,).
        """
        changed = np.packbits(~np.isnan(self.to), axis=1)
        return np.unique(np.c_[self.case, changed], axis=0, return_inverse=True)[1].ravel()

    def distinct(self) -> "Candidates":
        """Each change set of a case once, in the position where it first stands."""
        return self.take(distinct_rows(self.case, self.to))

    @classmethod
    def join(cls, *parts: "Candidates") -> "Candidates":
        """All parts in one; with probabilities only if all parts have them."""
        probabilities = [part.probabilities for part in parts if part.probabilities is not None]
        return cls(
            np.concatenate([part.case for part in parts]),
            np.concatenate([part.to for part in parts]),
            np.concatenate(probabilities) if len(probabilities) == len(parts) else None,
        )


def distinct_rows(case: IntArray, to: Float32Array) -> IntArray:
    """The rows of change sets that equal no earlier one of the same case, ascending.

    ``case`` is (rows,), ``to`` (rows, known features) with NaN for what is unchanged.

    >>> to = np.array([[1, np.nan], [1, np.nan], [1, np.nan]], dtype=np.float32)
    >>> distinct_rows(np.array([0, 0, 1]), to)
    array([0, 2])
    """
    changed = ~np.isnan(to)
    used = changed.any(axis=0)
    cells = np.where(changed[:, used], to[:, used], np.float32(np.inf))
    order = np.lexsort((*cells.T[::-1], case))
    cells, case = cells[order], case[order]
    new = np.ones(len(case), dtype=bool)
    new[1:] = (cells[1:] != cells[:-1]).any(axis=1) | (case[1:] != case[:-1])
    return np.sort(order[new])


def rank_in_case(case: IntArray, *keys: AnyArray) -> IntArray:
    """The rank of each row among those of its case, from 0, by the last key, then the one before
    it; equals in their order.

    >>> rank_in_case(np.array([0, 1, 0, 0]), np.array([2, 5, 3, 1]))
    array([1, 0, 2, 0])
    """
    order = np.lexsort((*keys, case))
    rank = np.empty(len(case), dtype=np.intp)
    rank[order] = np.arange(len(case)) - np.searchsorted(case[order], case[order])
    return rank


def proper_subsets(
    to: Float32Array, most: int = MAX_EXACT_CHANGES
) -> tuple[IntArray, Float32Array]:
    """Every non-empty proper subset of each row's changes.

    Parameters
    ----------
    to
        Change sets, (rows, features); NaN: unchanged.
    most
        The number of changes up to which every subset is given; of rows with more, those without
        one change.

    Returns
    -------
    tuple
        The row that each subset comes from, (subsets,), and the subsets, (subsets, features).

    Examples
    --------
    >>> row, smaller = proper_subsets(np.array([[1, np.nan, 2], [3, np.nan, np.nan]],
    ...     dtype=np.float32))
    >>> row, smaller
    (array([0, 0]), array([[ 1., nan, nan],
           [nan, nan,  2.]], dtype=float32))
    """
    rows, parts = [np.zeros(0, dtype=np.intp)], [to[:0]]
    changed = ~np.isnan(to)
    size = changed.sum(axis=1)
    for count in np.unique(size[size > 1]):
        some = np.flatnonzero(size == count)
        members = ~np.eye(count, dtype=bool)  # (subsets, changes of the row)
        if count <= most:
            members = (np.arange(1, 2**count - 1)[:, None] >> np.arange(count) & 1) == 1
        position = changed[some].cumsum(axis=1) - 1
        inside = members[:, position].swapaxes(0, 1) & changed[some, None]
        rows.append(np.repeat(some, len(members)))
        parts.append(np.where(inside, to[some, None], NAN).reshape(-1, to.shape[1]))
    return np.concatenate(rows), np.concatenate(parts)


@dataclass(eq=False, repr=False)
class Searcher(BaseEstimator, ABC):  # type: ignore[misc]
    """Looks for plans among training people; scikit-learn's contract.

    The constructor takes settings, each stored under its own name; a searcher that is a dataclass
    needs to name them only, and checks them in ``_check_settings``. ``fit(train)`` stores what is
    learnt from training people in attributes that end in an underscore: ``train_``, ``rows_``
    (training people, features), ``support_`` (their values), ``cache_`` (what is worked out once
    for a model and a set of known features), and whatever a subclass learns in ``_learn``.
    ``Nearest(train)`` is short for ``Nearest().fit(train)``.

    A subclass proposes change sets in ``search``. ``find_recourse`` takes those that the model
    confirms and the action set allows, and takes out changes that are not needed (unless
    ``minimal`` is false). A searcher whose candidates are confirmed and minimal already says so
    with ``finished``: then they stay as they are, and the probabilities that come with them
    must be the model's (``edfa.testing.check_searcher`` asks it again). One with a stricter notion
    of a good plan says so in ``keeps``. ``uses_sweep`` asks for the sweep of single changes. Where
    plans are ranked by survival, those that survive in a share ``enough`` of cases are all as good.

    Parameters
    ----------
    train
        Training people to learn from at once; None: not yet.
    holds_further
        Whether a plan must hold as far again as it goes. Not asked in the paper's reading.
    min_support
        How many training people must be where a plan leads (None: 30, or a hundredth of a small
        table; 0: no matter). Not asked in the paper's reading.
    """

    train: InitVar[Table | None] = None
    _: KW_ONLY
    holds_further: bool = True
    min_support: int | None = None

    enough = 1.0
    enough_survival = 1.0
    uses_sweep = False
    finished = False
    minimal = True

    def __post_init__(self, train: Table | None) -> None:
        self._check_settings()
        if train is not None:
            self.fit(train)

    def _check_settings(self) -> None:
        """Raise a ``SettingError`` for settings that cannot be."""
        if self.min_support is not None and self.min_support < 0:
            raise SettingError(
                f"min_support: a number of people, 0 or more, not {self.min_support}"
            )

    def content_with(self, share: float) -> Self:
        """A copy that, where it ranks by survival, looks for nothing better once a plan helps in
        that share of cases.
        """
        searcher = copy(self)
        searcher.enough_survival = share
        return searcher

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The settings: the training people who may be passed to the constructor are none."""
        names: list[str] = super()._get_param_names()
        return [name for name in names if name != "train"]

    def fit(self, train: Table) -> Self:
        """Learn from training people."""
        if not len(train):
            raise DataError("a searcher looks among training people; there are none")
        self.train_ = train
        self.rows_: Float32Array = train.X
        self.cache_ = ModelCache()
        self.ordered_ = ~train.schema.categorical
        categorical = np.flatnonzero(~self.ordered_).tolist()
        self.support_ = Support.of(self.rows_, categorical, cache=self.cache_)
        self.training_support_ = TrainingSupport(
            self.rows_,
            train.y == train.schema.classes.index(train.schema.favourable),
            categorical,
        )
        self._learn(train)
        return self

    def _learn(self, train: Table) -> None:
        """Learn what only this searcher needs."""

    def learnt_state(self) -> dict[str, Any]:
        """The learnt state, for fingerprints: the training people, from which all else follows with
        the settings.
        """
        self._check_fitted()
        return {"X": self.rows_, "y": self.train_.y, "schema": canonical(self.train_.schema)}

    def _check_fitted(self) -> None:
        if not hasattr(self, "train_"):
            raise UnfittedError(
                f"this {type(self).__name__} has seen no training people yet; call fit(train) first"
            )

    def action_set(
        self, rules: Rules | None, people: People, desired_class: int | None = None
    ) -> ActionSet:
        """What card and rules let these people change; cached, since the next person often
        has the same.

        ``desired_class`` is the code of the class that plans lead to; None: any other decision.
        """

        def make() -> ActionSet:
            return ActionSet.of(
                rules, people.background, self.rows_, self.support_, towards=desired_class
            )

        self._check_fitted()
        name = "action set", str(rules or NO_RULES), people.background.card, desired_class
        return self.cache_.get(people.predictor, people.background.visible, name, make)

    def plan_filter(self, actions: ActionSet) -> PlanFilter | None:
        """The requirements on plans besides turning the decision; None in the paper's reading, or
        if there are none.
        """
        if actions.rules.reading == "paper" or not (self.holds_further or self.min_support != 0):
            return None
        return PlanFilter(self.training_support_, self.holds_further, self.min_support)

    @abstractmethod
    def search(self, problem: SearchProblem) -> Candidates:
        """Candidates for every case of the problem; a case may have none.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.

        Returns
        -------
        Candidates
            Change sets in any order. ``find_recourse`` confirms them, unless the searcher is
            ``finished``.
        """

    def keeps(
        self, problem: SearchProblem, case: IntArray, to: Float32Array, probabilities: Float64Array
    ) -> BoolArray:
        """Which change sets are good enough: those that are recourse, possible as a whole, and
        sensible.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.
        case
            The case that each change set is for, (candidates,).
        to
            The change sets, (candidates, known features).
        probabilities
            What the model says after them, (candidates, classes).

        Returns
        -------
        numpy.ndarray
            (candidates,) booleans.
        """
        kept = problem.is_recourse(case, probabilities)
        rows = np.flatnonzero(kept)
        kept[rows] = problem.is_sensible(case[rows], to[rows])
        return kept

    def confirm(self, problem: SearchProblem, candidates: Candidates) -> Candidates:
        """The candidates that the action set allows and that are good enough.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.
        candidates
            Proposals. A value of one's own is no change.

        Returns
        -------
        Candidates
            Each change set of a case once, with the model's probabilities.
        """
        facts = problem.facts[candidates.case]
        to = np.where(candidates.to == facts, NAN, candidates.to)
        allowed = problem.actions.allows(problem.mask, facts, to)
        some = Candidates(candidates.case, to).take(allowed).distinct()
        probabilities = problem.predict_changes(some.case, some.to)
        kept = self.keeps(problem, some.case, some.to, probabilities)
        return replace(some, probabilities=probabilities).take(kept)

    def minimise(self, problem: SearchProblem, candidates: Candidates) -> Candidates:
        """Confirmed candidates cut down until no proper subset is good enough (checked in full up
        to six changes).
        """
        candidates = self._undo_one_by_one(problem, candidates).distinct()
        plan, smaller = proper_subsets(candidates.to)
        case = candidates.case[plan]
        probabilities = problem.predict_changes(case, smaller)
        fine = self.keeps(problem, case, smaller, probabilities)
        plan, smaller, probabilities = plan[fine], smaller[fine], probabilities[fine]
        size = problem.lengths(case[fine], smaller)
        best = rank_in_case(plan, size.effort, size.l0) == 0
        to, after = candidates.to.copy(), np.array(candidates.probabilities)
        to[plan[best]], after[plan[best]] = smaller[best], probabilities[best]
        return replace(candidates, to=to, probabilities=after).distinct()

    def _undo_one_by_one(self, problem: SearchProblem, candidates: Candidates) -> Candidates:
        """As long as a change of a plan can be undone, undo the one that costs the least of the
        score.
        """
        to, after = candidates.to.copy(), np.array(candidates.probabilities)
        active = np.arange(len(candidates))
        while len(active):
            plan, smaller = proper_subsets(to[active], most=0)
            case = candidates.case[active[plan]]
            probabilities = problem.predict_changes(case, smaller)
            fine = self.keeps(problem, case, smaller, probabilities)
            score = np.where(fine, problem.score(case, probabilities), -1.0)
            best = np.flatnonzero((rank_in_case(plan, -score) == 0) & fine)
            active = active[plan[best]]
            to[active], after[active] = smaller[best], probabilities[best]
        return replace(candidates, to=to, probabilities=after)

    def invalidation(self, problem: SearchProblem, candidates: Candidates) -> Float64Array | None:
        """The probability that each plan fails if its numbers are met only roughly, (candidates,);
        None: not asked.
        """
        return None

    def survival(
        self,
        problem: SearchProblem,
        candidates: Candidates,
        keys: Keys | None,
    ) -> Survival | None:
        """The probability that each plan holds when everything is known; None: not asked.

        ``keys`` (candidates,) rank the candidates, by the last key first, as ``np.lexsort`` does:
        then a plan that cannot survive better than an earlier one may be left NaN. Without keys
        every plan is asked about.
        """
        return None

    def completions(self, problem: SearchProblem) -> Completions:
        """What completes people where a user model is asked about them."""
        return Completions(problem.background.neighbours)

    def decided_shares(self, problem: SearchProblem) -> Float64Array | None:
        """The share of completions in which a user model decides for the desired
        class, (cases,).

        None for other models, where all that it uses is known, and where any other decision is
        recourse.
        """
        by_completions = problem.predictor.decides_by_completions(problem.mask)
        if problem.desired_class is None or not by_completions:
            return None
        return self.completions(problem).decided_share(problem.cases, problem.desired_class)

    def look_again(self, problem: SearchProblem, candidates: Candidates) -> Survival | None:
        """The survival of plans once they are chosen, estimated anew; None: that of the search
        stands.

        A searcher that does not ask about survival asks a user model here: it has seen
        what stands for it.
        """
        if problem.predictor.refits:
            return None
        return self.completions(problem).survival(self._planned(problem, candidates))

    def _planned(self, problem: SearchProblem, candidates: Candidates) -> PlannedChanges:
        """Candidates as changes of the people that are the problem's cases."""
        follows, to = problem.actions.consequences, candidates.to
        return PlannedChanges(
            problem.cases, candidates.case, to, problem.desired_class, follows, problem.features
        )
