"""Survival: will a plan still work when everything is known, and when the model has been learnt
again?

A person's unknown features are filled in from the training people who are nearest on the known
ones: each is one *completion*. A plan survives in a completion if the model, with the plan made,
decides for the class that the plan should lead to; where any other decision is recourse, today's
decision must also be the completion's. Its survival is the share of completions in which it does.
With a committee, each of its members is asked too: survival is then the share of pairs of a
completion and a model. A plan *helps* in a pair in which the person is refused as they are and
granted with the plan: effort is worth something only there.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.people import People
from edfa.predictors.base import ModelCache, Predictor, by_mask
from edfa.predictors.committee import Committee
from edfa.predictors.conditional import Neighbours
from edfa.recourse.action_set import Consequences
from edfa.recourse.plans import Plans
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array, IntArray

ROWS_PER_CALL = 50_000  # in one model call: few enough to stay in a processor's cache
PEOPLE_PER_CALL = 2_000  # who are completed together
WIDE = 256  # features from which on fewer rows are in one call
# people for whom a call asks about more than may be needed: a call costs more than its rows
FEW_PEOPLE = 16
# ranks up to which plans share a call; of few people
HEATS, HEATS_OF_FEW = (1, 2, 4, 8, 16, sys.maxsize), (4, 16, sys.maxsize)
# rows of which equal ones are looked for: of more it costs more than asking twice
MAX_ROWS_COMPARED = 2048
ASKED = 3  # members of a committee, in turn, that are asked about each of several completions


class Survival(NamedTuple):
    """How likely each plan is to hold and to help, (plans,) each.

    Attributes
    ----------
    probability, error
        The probability that the plan survives, and the standard error of that estimate.
    help
        The probability that it survives and is needed.
    need
        The probability that the person's decision has to be turned: the largest help there can be.
        1 where any other decision is recourse: then a plan helps wherever it survives.
    """

    probability: Float64Array
    error: Float64Array
    help: Float64Array
    need: Float64Array

    def take(self, plans: IntArray) -> "Survival":
        """Of some plans, or in another order."""
        return Survival(*(part[plans] for part in self))

    def put(self, plans: IntArray, other: "Survival") -> None:
        """Replace the estimates of some plans, in place."""
        for mine, theirs in zip(self, other, strict=True):
            mine[plans] = theirs

    def worth(self, enough: float) -> Float64Array:
        """What plans are ranked by, (plans,): the help, of which ``enough`` is a share of the need
        beyond which more makes no difference.
        """
        return np.minimum(self.help, enough * self.need)


@dataclass(frozen=True, eq=False)
class PlannedChanges:
    """Change sets for people of a batch.

    Parameters
    ----------
    people
        The batch.
    of
        The row of ``people`` that each change set is for, (plans,).
    to
        The new values, (plans, features); NaN: unchanged.
    features
        The positions of the columns of ``to``; None: all features. Of a wide table few are known
        and can change.
    desired_class
        A class code; None: any other decision than today's is recourse, as long as today's stays.
    consequences
        What follows from the changes; None: nothing does.
    """

    people: People
    of: IntArray
    to: Float32Array
    desired_class: int | None = None
    consequences: Consequences | None = None
    features: IntArray | None = None

    def __len__(self) -> int:
        return len(self.of)

    def take(self, rows: IntArray) -> "PlannedChanges":
        """Some of the plans, for the same people."""
        return replace(self, of=self.of[rows], to=self.to[rows])

    def turned(self, plan: IntArray, decided: IntArray) -> BoolArray:
        """Whether the class code ``decided`` (n,) is recourse for the person of ``plan`` (n,)."""
        if self.desired_class is not None:
            return np.asarray(decided == self.desired_class)
        return np.asarray(decided != self.people.decision[self.of[plan]])


@dataclass(frozen=True, eq=False)
class Completions:
    """Fills in a person's unknown features from the k training people who are nearest on the known
    ones.

    Parameters
    ----------
    neighbours
        The training people to complete others from.
    cache
        Results that are worked out once for a model and a set of known features.
    committee
        Models that are asked besides the one that decides; None: no others. They must be shown the
        same features.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> known = table.test.X[:2].copy()
    >>> known[:, 5:] = np.nan
    >>> filled = Completions.of(table.train).neighbours.complete(known)
    >>> filled.shape, bool((filled[:, :, :5] == known[:, None, :5]).all())
    ((2, 32, 20), True)
    """

    neighbours: Neighbours
    cache: ModelCache = field(default_factory=ModelCache, repr=False)
    committee: Committee | None = None

    @classmethod
    def of(
        cls,
        train: Table,
        k: int = 32,
        *,
        without: Sequence[int] | IntArray = (),
        cache: ModelCache | None = None,
        committee: Committee | None = None,
    ) -> "Completions":
        """Completions from at most 10,000 training people.

        Parameters
        ----------
        train
            The training people.
        k
            The number of completions a person, at least 2.
        without
            Rows of ``train`` that are left out.
        cache
            A cache to share; None: a new one.
        committee
            Models that are asked besides the one that decides; None: no others.

        Raises
        ------
        SettingError
            If ``k`` is less than 2.
        """
        if k < 2:
            raise SettingError(f"k: at least 2 completions a person, not {k}")
        rows = np.setdiff1d(np.arange(len(train)), without)
        categorical = np.flatnonzero(train.schema.categorical)
        neighbours = Neighbours.of(train.X[rows], categorical, k=k)
        return cls(neighbours, ModelCache() if cache is None else cache, committee)

    def decision_stability(self, people: People) -> Float64Array:
        """The share of completions in which each person's decision stays what it is, (people,)."""
        return self.decided_share(people, people.decision)

    def chance(self, people: People, code: int) -> Float64Array:
        """The share of completions, and of pairs with members, in which the decision is for a
        class, (people,). Every model weighs the same.

        Parameters
        ----------
        people
            The people.
        code
            The code of the class.
        """
        chance = np.zeros(len(people))
        for rows in np.array_split(np.arange(len(people)), -(-len(people) // PEOPLE_PER_CALL) or 1):
            some = people.take(rows)
            chance[rows] = 1 - self._mean_need(self._needs(some, self._fill(some), code))
        return chance

    def decided_share(self, people: People, code: int | IntArray) -> Float64Array:
        """The share of completions in which the model decides for a class, (people,).

        Parameters
        ----------
        people
            The people.
        code
            The code of the class, of everybody or (people,).
        """
        decided = np.broadcast_to(code, len(people))
        return np.asarray(_same(people, self._fill(people), decided).mean(axis=1))

    def farther(self, k: int) -> "Completions | None":
        """Completions from other people, who come next, k of them; None where there are fewer than
        two.
        """
        neighbours = self.neighbours.farther(k)
        return None if neighbours.k < 2 else replace(self, neighbours=neighbours)

    def survival(self, plans: PlannedChanges) -> Survival:
        """The share of completions (and members) in which each plan survives.

        Parameters
        ----------
        plans
            The change sets, and the people they are for.

        Returns
        -------
        Survival
            (plans,) each. The standard error is 0 where the model sees all that it uses and there
            is no committee.
        """
        filled = self._fill(plans.people, plans.consequences)
        needs = self._needs(plans.people, filled, plans.desired_class)
        estimate = self._estimate(plans, filled, needs)
        if self.committee is not None:
            return estimate
        unsure = np.asarray(np.isnan(plans.people.X[:, plans.people.predictor.varies_]).any(axis=1))
        return estimate._replace(error=np.where(unsure[plans.of], estimate.error, 0.0))

    def race(
        self, plans: PlannedChanges, rank: IntArray, enough: float = 1.0, content: float = 1.0
    ) -> Survival:
        """Survival in rank order; stops early and leaves NaN for plans that cannot help more than
        an earlier one.

        Parameters
        ----------
        plans
            The change sets, and the people they are for.
        rank
            The rank of each plan among its person's, from 0, (plans,).
        enough
            Once a plan helps in this share of the cases in which the decision has to be turned,
            later ones are not asked about.
        content
            The same as a share of all cases.
        """
        people, of = plans.people, plans.of
        survival = Survival(*np.full((4, len(plans)), np.nan))
        if self.committee is None and not np.isnan(people.X[:, people.predictor.varies_]).any():
            # what works now works then
            survival.put(rank == 0, Survival(*np.array([1.0, 0.0, 1.0, 1.0])))
            return survival
        heats = HEATS_OF_FEW if len(people) <= FEW_PEOPLE else HEATS
        filled = self._fill(people, plans.consequences)
        needs = self._needs(people, filled, plans.desired_class)
        need, best = self._mean_need(needs), np.full(len(people), -1.0)
        turned = need if plans.desired_class is not None else np.ones(len(people))
        most = np.minimum(np.minimum(need, content), enough * turned)
        for start, end in pairwise((0, *heats)):
            left = np.flatnonzero((rank >= start) & (rank < end) & (best < most)[of])
            if not len(left):
                break
            estimate = self._estimate(plans.take(left), filled, needs)
            survival.put(left, estimate)
            np.maximum.at(best, of[left], estimate.help)
        return survival

    def _needs(self, people: People, filled: "_Filled", desired: int | None) -> "_Needs":
        """In which completions each model's decision about people as they are has to be turned.

        Where any other decision is recourse, it is those in which the decision is today's, by the
        model that decides alone.
        """
        if desired is None:
            return _Needs(_same(people, filled, people.decision), None)
        own = ~_same(people, filled, np.full(len(people), desired))
        if self.committee is None:
            return _Needs(own, None)
        person, completion = np.indices(own.shape).reshape(2, -1)
        rows = filled.rows.reshape(-1, filled.rows.shape[2])
        members = np.zeros((len(self.committee), *own.shape), dtype=bool)
        for member, mine, decided in _decided_in_turn(
            self.committee, rows, completion, own.shape[1]
        ):
            members[member, person[mine], completion[mine]] = decided != desired
        return _Needs(own, members)

    def _mean_need(self, needs: "_Needs") -> Float64Array:
        """The share of pairs of a completion and a model in which people's decisions have to be
        turned, (people,). Every model weighs the same.
        """
        own = needs.own.mean(axis=1)
        if needs.members is None or self.committee is None:
            return np.asarray(own)
        pairs = _count_pairs(len(self.committee), needs.own.shape[1])
        votes = needs.members.sum(axis=(0, 2)) / pairs
        return np.asarray((own + len(self.committee) * votes) / (len(self.committee) + 1))

    def _estimate(self, plans: PlannedChanges, filled: "_Filled", needs: "_Needs") -> Survival:
        """The share of completions, and of pairs with members, in which plans survive, and in which
        they help. Every model weighs the same.
        """
        shape = len(plans), needs.own.shape[1]
        # Where any other decision is recourse, a plan survives only where today's decision stays.
        may = needs.own if plans.desired_class is None else np.ones_like(needs.own)
        own, votes = np.zeros((2, *shape), dtype=bool), np.zeros((2, len(plans)))
        asked = may if self.committee is not None else may & filled.first
        # rows at a time, each a copy
        most = max(1, ROWS_PER_CALL * min(1.0, WIDE / max(1, filled.rows.shape[2])))
        for rows in np.array_split(np.arange(len(plans)), math.ceil(own[0].size / most) or 1):
            part = plans.take(rows)
            followed = _follow(part, filled, asked[part.of])
            own[0, rows] = _survives(part, filled, followed)
            if self.committee is not None:
                votes[:, rows] = _votes(self.committee, part, followed, needs)
        own[1] = own[0] & needs.own[plans.of]
        if needs.members is None:
            votes[1] = votes[0]
        size = 0 if self.committee is None else len(self.committee)
        probability, help_ = (own.mean(axis=2) + size * votes) / (size + 1)
        # Agresti and Coull's centre: an estimate of 0 or 1 from a few completions is not certain.
        count = max(shape[1], size)
        centre = (probability * count + 2) / (count + 4)
        error = np.sqrt(centre * (1 - centre) / (count + 4))
        need = self._mean_need(needs)[plans.of]
        return Survival(
            probability,
            error,
            help_,
            need if plans.desired_class is not None else np.ones_like(need),
        )

    def _fill(self, people: People, consequences: Consequences | None = None) -> "_Filled":
        """The completions of all people as the model sees them; ``consequences`` of the plans that
        they are for.
        """
        predictor = people.predictor
        seen = np.flatnonzero(predictor.varies_)
        own = people.X[:, None, seen]
        if not np.isnan(own).any():
            return _Filled(own, np.zeros((len(own), 1), dtype=np.intp))
        near = self.neighbours.nearest(people.X)
        rows = self.neighbours.rows[near[:, :, None], seen]
        np.copyto(rows, own, where=~np.isnan(own))
        first_equal = np.tile(np.arange(near.shape[1]), (len(near), 1))
        for mask, members in by_mask(people.X) if len(near) > FEW_PEOPLE else ():
            kinds = self._kinds(predictor, mask, consequences)
            first_equal[members] = _first_equal(kinds[near[members]])
        return _Filled(rows, first_equal)

    def _kinds(
        self, predictor: Predictor, mask: BoolArray, consequences: Consequences | None
    ) -> IntArray:
        """A number for each training person, equal if the model cannot tell two of them apart by
        the unknown features.

        ``mask`` (features,) marks the known features. What may follow from a plan is told apart by
        every value.
        """
        exact = np.zeros(len(mask), dtype=bool)
        if consequences is not None:
            exact = consequences.following | consequences.inputs

        def make() -> IntArray:
            cells: list[AnyArray] = [np.zeros(len(self.neighbours.rows))]
            for feature in np.flatnonzero(predictor.varies_ & ~mask).tolist():
                values: AnyArray = self.neighbours.rows[:, feature]
                cuts = predictor.cells(predictor.varies_, feature)
                if cuts is not None and not exact[feature]:
                    values = np.searchsorted(cuts, values, side="right")
                cells.append(values)
            return np.unique(np.stack(cells), axis=1, return_inverse=True)[1].reshape(-1)

        return self.cache.get(predictor, mask, ("kinds", self, exact.tobytes()), make)


class _Filled(NamedTuple):
    """Completions as the model sees them.

    ``rows`` is (people, k, features that the model sees). ``first_equal`` (people, k) is the index
    of the person's first completion that is the same to the model, as far as one has looked.
    """

    rows: Float32Array
    first_equal: IntArray

    @property
    def first(self) -> BoolArray:
        """Which completions need to be asked about, (people, k): the others equal an earlier
        one.
        """
        return np.asarray(self.first_equal == np.arange(self.first_equal.shape[1]))


class _Needs(NamedTuple):
    """Where decisions about people as they are have to be turned.

    ``own`` (people, k) is about the model that decides, ``members`` (members, people, k) about each
    member of the committee and the completions that it is asked about; None: members are not asked.
    """

    own: BoolArray
    members: BoolArray | None


def add_survival(
    plans: Plans, train: Table, *, desired_class: int | str | None = None, k: int = 32
) -> Plans:
    """The same plans, of any searcher, with ``survival`` and ``survival_error`` filled in.

    Parameters
    ----------
    plans
        Plans whose people have a model.
    train
        The training people to complete others from.
    desired_class
        The name or code of the class that plans should lead to; None: that of ``find_recourse``.
    k
        The number of completions a person, at least 2.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 10:] = np.nan
    >>> people = edfa.People(known, edfa.Background.of(table.train, model))
    >>> plans = add_survival(edfa.find_recourse(people, edfa.Nearest(table.train)), table.train)
    >>> bool(((plans.survival >= 0) & (plans.survival <= 1)).all())
    True
    """
    people = plans.people
    if people.background.model is None:
        raise DataError(
            "these plans were read from a file and have no predictor; only one can say if they last"
        )
    aim = people.background.class_code(desired_class)
    aim = plans.provenance.desired_class if aim is None else aim
    planned, position = np.unique(plans.of, return_inverse=True)
    rows = People(people.X[planned], people.background, decided=plans.decision[planned])
    changes = PlannedChanges(rows, position, plans.to, aim, plans.consequences)
    estimate = Completions.of(train, k).survival(changes)
    provenance = replace(plans.provenance, completions={"X": train.X, "k": k})
    return replace(
        plans, survival=estimate.probability, survival_error=estimate.error, provenance=provenance
    )


def _same(people: People, filled: _Filled, decided: IntArray) -> BoolArray:
    """In which completions the decision is ``decided`` (people,), (people, k)."""
    person, completion = np.nonzero(filled.first)
    same = np.zeros(filled.first_equal.shape, dtype=bool)
    now = _decide(people.predictor, filled.rows[person, completion])
    same[person, completion] = now == decided[person]
    return np.take_along_axis(same, filled.first_equal, axis=1)


def _survives(plans: PlannedChanges, filled: _Filled, followed: "_Followed") -> BoolArray:
    """In which completions the plans survive by the model's own decision, (plans, k)."""
    survives = np.zeros((len(plans), filled.rows.shape[1]), dtype=bool)
    # elsewhere the decision is that of an equal completion
    first = np.flatnonzero(filled.first[plans.of[followed.plan], followed.completion])
    plan, completion = followed.plan[first], followed.completion[first]
    decided = _decide(plans.people.predictor, followed.rows[first])
    survives[plan, completion] = plans.turned(plan, decided)
    return np.take_along_axis(survives, filled.first_equal[plans.of], axis=1)


def _votes(
    committee: Committee, plans: PlannedChanges, followed: "_Followed", needs: _Needs
) -> Float64Array:
    """The shares of pairs of a completion and a member in which plans survive, and in which they
    help, (2, plans).

    Of each of several completions a person some members are asked in turn; of a single one all are.
    """
    count, plan = needs.own.shape[1], followed.plan
    sums = np.zeros((2, len(plans)))
    person = plans.of[plan]
    for member, mine, decided in _decided_in_turn(
        committee, followed.rows, followed.completion, count
    ):
        turned = plans.turned(plan[mine], decided)
        sums[0] += np.bincount(plan[mine], weights=turned, minlength=len(plans))
        if needs.members is not None:
            turned &= needs.members[member, person[mine], followed.completion[mine]]
            sums[1] += np.bincount(plan[mine], weights=turned, minlength=len(plans))
    return np.asarray(sums / _count_pairs(len(committee), count))


def _decided_in_turn(
    committee: Committee, rows: Float32Array, completion: IntArray, count: int
) -> Iterator[tuple[int, IntArray, IntArray]]:
    """What members decide about completions, each about those whose turn it is.

    Parameters
    ----------
    committee
        The members.
    rows
        Completions as the model sees them, (n, features that it sees).
    completion
        Which of its person's completions each is, (n,).
    count
        The number of completions a person.

    Yields
    ------
    tuple
        A member, the positions of its rows, and the class codes that it decides for.
    """
    apart = _turns(len(committee), count)
    distinct, row = _distinct(rows)
    together = committee.asks_together(len(distinct))
    decided = committee.decide_together(distinct) if together else None
    for member in range(len(committee)):
        mine = np.flatnonzero(completion % apart == member % apart)
        if decided is None:
            yield member, mine, committee.decide_shown(member, rows[mine])
        else:
            yield member, mine, decided[member, row[mine]]


def _turns(members: int, count: int) -> int:
    """After how many of ``count`` completions it is a member's turn again."""
    return max(1, members // ASKED) if count > 1 else 1


def _count_pairs(members: int, count: int) -> int:
    """The number of pairs of a completion and a member that is asked about it."""
    apart = _turns(members, count)
    return int((np.arange(members) % apart == np.arange(count)[:, None] % apart).sum())


class _Followed(NamedTuple):
    """Completions with the changes of a plan made.

    ``plan`` and ``completion`` (n,) say whose they are, ``rows`` (n, features that the model sees)
    what they have then.
    """

    plan: IntArray
    completion: IntArray
    rows: Float32Array


def _follow(plans: PlannedChanges, filled: _Filled, asked: BoolArray) -> _Followed:
    """The completions that are ``asked`` about (plans, k) with the plan's changes made."""
    plan, completion = np.nonzero(asked)
    rows, varies = filled.rows[plans.of[plan], completion], plans.people.predictor.varies_
    features = np.arange(plans.to.shape[1]) if plans.features is None else plans.features
    to = np.full((len(plans), len(varies)), NAN)
    to[:, features] = plans.to
    new = to[:, varies][plan]
    if plans.consequences is None:
        np.copyto(rows, new, where=~np.isnan(new))
    else:
        rows = plans.consequences.apply(np.flatnonzero(varies), rows, new)[0]
    return _Followed(plan, completion, rows)


def _distinct(rows: Float32Array) -> tuple[Float32Array, IntArray]:
    """The distinct ones of a few rows (n, features), and which of these each row is, (n,); of many,
    all of them.

    >>> _distinct(np.array([[1, 2], [0, 5], [1, 2]], dtype=np.float32))[1]
    array([1, 0, 1])
    """
    if len(rows) > MAX_ROWS_COMPARED or not rows.size:
        return rows, np.arange(len(rows))
    whole_row = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    keys = np.ascontiguousarray(rows).view(whole_row).ravel()
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], row


def _first_equal(kind: IntArray) -> IntArray:
    """For every entry of a row, the index of the first entry of that row that is equal to it.

    >>> _first_equal(np.array([[7, 3, 7, 3, 1]]))
    array([[0, 1, 0, 1, 4]])
    """
    order = np.argsort(kind, axis=1, kind="stable")
    ordered = np.take_along_axis(kind, order, axis=1)
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(kind.shape[1]), 0), axis=1)
    first = np.empty_like(order)
    np.put_along_axis(first, order, np.take_along_axis(order, start, axis=1), axis=1)
    return first


def _decide(predictor: Predictor, rows: Float32Array) -> IntArray:
    """The decisions (n,) about complete rows (n, features that the model sees)."""
    if not len(rows):
        return np.zeros(0, dtype=np.intp)
    parts = np.array_split(rows, -(-len(rows) // ROWS_PER_CALL))
    seen = predictor.varies_
    return np.concatenate([predictor.decide(predictor.predict_known(seen, p)) for p in parts])
