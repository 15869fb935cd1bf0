"""Promises to people with wishes of their own, made on the spot.

An advisor's certificate is about people on the policy's path. Whoever told something unasked, kept
something back, has prices or limits of their own, or went on when they could have acted, is in
another state of knowledge, or gets other plans. For them the calibration people are put in the same
state, with the same wishes: what is not known of the person is hidden, plans are searched under the
same limits, and the first plan is held against what the advisor's promise is about. The certificate
speaks of those who are told to act right there, so that nobody need be asked any further.

The calibration people are like everybody; that those who have such wishes are like them is taken
for granted, and said.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from edfa.acquisition.loop import run_policy
from edfa.advice.assessment import Assessment
from edfa.advice.evaluation import replay_promise
from edfa.advice.fitted import NO_RULES, FittedAdvisor
from edfa.advice.judges import draw_judges
from edfa.advice.promise import make_certifier, rehearse
from edfa.certification.certificate import Certificate
from edfa.certification.records import Records
from edfa.data.constraints import Constraints
from edfa.errors import DataError, SettingError
from edfa.people import People
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

__all__ = ["Progress", "Wishes", "certify_for", "find_prices", "find_wishes", "records_for"]

ENOUGH, ENOUGH_TRAINING = (
    250,
    80,
)  # people who could act, on whom a promise is tested, and its anchor chosen
MOST, MOST_TRAINING = 600, 200  # refused people among whom they are looked for at most
PART = 100  # people for whom plans are searched at a time
KEPT = 256  # certificates that an advisor keeps
Progress = Callable[[int, int], None]
"""Called with the number of people who could act that there are, and that are needed."""


@dataclass(frozen=True)
class Wishes:
    """In what state of knowledge somebody is, and what they wish.

    Parameters
    ----------
    known, missing
        Features known beyond the start set, asked for or not; and those of the start set that are
        not known.
    declined
        Features that must not be asked for.
    costs
        The person's own prices, by feature, where they differ from the card's.
    constraints
        The person's own limits on plans, locks included, on top of the operator's rules.
    group
        The group of people they belong to, if the advisor makes promises to groups.

    Examples
    --------
    >>> Wishes(declined=("housing",)).to_json() == Wishes(declined=("housing",), costs={}).to_json()
    True
    """

    known: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    constraints: Constraints = NO_RULES
    group: str | None = None

    def to_json(self) -> str:
        """As JSON, the same for the same wishes in whatever order they are named."""
        content: dict[str, Any] = {
            name: sorted(getattr(self, name)) for name in ("known", "missing", "declined")
        }
        content |= {"constraints": json.loads(self.constraints.to_json()), "group": self.group}
        return json.dumps(content | {"costs": dict(self.costs)}, sort_keys=True)

    def known_in(self, fitted: FittedAdvisor) -> BoolArray:
        """What is known in this state, (features,); facts that change nothing are left out."""
        whole = fitted.background.start | _mask(fitted, self.known)
        return np.asarray(whole & ~_mask(fitted, self.missing) & fitted.relevant)

    def prices_in(self, fitted: FittedAdvisor) -> Float64Array:
        """The prices, (features,): the card's, with the person's own in their places."""
        prices = fitted.card_costs.copy()
        for name, price in self.costs.items():
            prices[fitted.schema.index(name)] = price
        return prices


def find_wishes(
    assessment: Assessment, rows: IntArray, group: ObjectArray | None = None
) -> tuple[list[Wishes], IntArray]:
    """The distinct wishes of some people, by row, and the position of each person's among them,
    (rows,).

    ``group`` are labels of everybody (people,); what is known of them says it unless they are
    given.
    """
    fitted, people = assessment.fitted, assessment.people
    known, start = people.known[rows] & fitted.relevant, fitted.background.start
    declined = ~people.known[rows] & ~people.askable[rows] & ~fitted.never_ask
    prices, names = people.costs[rows], np.array(fitted.schema.names)
    limits = replace(assessment.constraints, never_ask=()).tighten(
        Constraints(locked=assessment.locked)
    )
    limits = NO_RULES if fitted.rules.tighten(limits) == fitted.rules else limits
    labels = (fitted.group_of(assessment.X) if group is None else group)[rows]
    states = np.c_[known, declined, prices, pd.factorize(labels)[0]]
    _, first, which = np.unique(states, axis=0, return_index=True, return_inverse=True)
    wishes = [
        Wishes(
            known=tuple(names[known[i] & ~start].tolist()),
            missing=tuple(names[start & ~known[i]].tolist()),
            declined=tuple(names[declined[i]].tolist()),
            costs={
                str(names[j]): float(prices[i, j])
                for j in np.flatnonzero(prices[i] != fitted.card_costs)
            },
            constraints=limits,
            group=labels[i],
        )
        for i in first
    ]
    return wishes, which.ravel()


def find_prices(fitted: FittedAdvisor, costs: Mapping[str, float]) -> Float64Array:
    """The card's prices, (1, features), with the person's own ``costs``, by feature name, in their
    places.
    """
    prices = fitted.card_costs[None].copy()
    for name, price in costs.items():
        position = fitted.schema.index(name)
        if not isinstance(price, int | float) or not 0 <= price < float("inf"):
            raise SettingError(f"costs.{name}: a price is a number, zero or more, not {price!r}")
        if price == 0 and not fitted.background.start[position]:
            raise SettingError(
                f"costs.{name}: what costs nothing is told at the start; give a price above zero"
            )
        prices[0, position] = price
    return prices


def certify_for(
    fitted: FittedAdvisor, wishes: Wishes, progress: Progress | None = None
) -> Certificate:
    """The certificate for people with these wishes who are told to act in this state; the same one
    for the same wishes.

    Levels, loss, reference and ceiling are those of the advisor's own certificate; where the tests
    start is chosen on training people with the same wishes. It is worked out once, for all
    interviews and files of this advisor.
    """
    if fitted.calibration is None or (fitted.certificate is None and fitted.certificates is None):
        raise DataError(
            "this advisor keeps no calibration people to make a certificate on; fit it again"
        )
    if (wishes.group is None) != (fitted.groups is None):
        raise SettingError(f"group: one of {fitted.groups or 'no groups'}, not {wishes.group!r}")
    memory = _memory(fitted)
    key = hashlib.sha256(
        wishes.to_json().encode()
    ).hexdigest()  # whose wishes they were, nobody can read there
    return memory.certificate(key, lambda: _certify(fitted, wishes, memory, progress))


def _certify(
    fitted: FittedAdvisor, wishes: Wishes, memory: "_Memory", progress: Progress | None
) -> Certificate:
    """``certify_for``, worked out."""
    own = (
        fitted.certificate
        if fitted.certificates is None
        else next(iter(fitted.certificates.values()))
    )
    rehearsal, training = memory.rehearsal(fitted)
    training, calibration = (
        _of_group(fitted, X, wishes.group) for X in (training, fitted.calibration)
    )
    if own is None or not len(calibration):
        raise DataError(f"there are no calibration people in the group {wishes.group!r}")
    practised = (
        records_for(rehearsal, training, wishes, ENOUGH_TRAINING, MOST_TRAINING)
        if len(training)
        else None
    )
    records = records_for(fitted, calibration, wishes, ENOUGH, MOST, progress)
    levels: dict[str, Any] = {"alpha": own.alpha, "delta": own.delta, "target": "act"}
    certifier = make_certifier(fitted, practised, len(records.people), levels)
    return replace(certifier.certificate_for(records, group=wishes.group), rules=own.rules)


def _of_group(fitted: FittedAdvisor, X: Float32Array | None, group: str | None) -> Float32Array:  # noqa: N803
    """The encoded people of a group; everybody if there are none."""
    people = np.zeros((0, len(fitted.schema)), dtype=np.float32) if X is None else X
    return people if group is None else people[fitted.group_of(people) == group]


def records_for(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    wishes: Wishes,
    enough: int,
    most: int,
    progress: Progress | None = None,
) -> Records:
    """One step of people with these wishes: their first plan where they are now, and what becomes
    of it.

    The complete encoded people X (people, features) are drawn at random, among those who are
    refused in this state, until there are ``enough`` who could act (who have a plan, with a signal
    up to the ceiling) or ``most`` people in all. Neither looks at what becomes of a plan, so that
    those who could act are a random sample of all such people. Without anybody refused, the records
    are of one person without a plan.
    """
    order, ceiling = np.random.default_rng(0).permutation(len(X)), fitted.ceiling
    hidden = np.where(wishes.known_in(fitted), X[order], np.float32(np.nan))
    refused = People(hidden, fitted.background).decision != fitted.favourable
    rows = order[refused][:most] if refused.any() else order[:1]
    judge = draw_judges(fitted, X[rows])
    parts: list[Records] = []
    ready = 0
    for first in range(0, len(rows), PART):
        some, by = X[rows[first : first + PART]], judge[first : first + PART]
        records = replay_promise(fitted, _first_plans(fitted, wishes, some), some, by)
        parts.append(replace(records, person=records.person + first))
        ready += int(
            (records.legal & (records.signal <= (np.inf if ceiling is None else ceiling))).sum()
        )
        if progress:
            progress(min(ready, enough), enough)
        if ready >= enough:
            break
    return Records.join(*parts)


def _first_plans(fitted: FittedAdvisor, wishes: Wishes, X: Float32Array) -> Plans:  # noqa: N803
    """The plans of complete encoded people X (people, features) in the state and under the limits
    of these wishes.

    Where plans are held against the end of the run, the people of the plans are there twice: now,
    and, without plans, when all has been asked that may be.
    """
    known, prices = wishes.known_in(fitted), wishes.prices_in(fitted)
    people = People(
        np.where(known, X, np.float32(np.nan)),
        fitted.background,
        spent=np.full(len(X), prices @ known),
        costs=prices,
    )
    limits = fitted.constraints.for_person(wishes.constraints)
    plans = find_recourse(
        people,
        fitted.searcher,
        constraints=None if limits == NO_RULES else limits,
        desired_class=fitted.favourable,
        n_jobs=1,
    )
    if fitted.reference != "trajectory_end":
        return plans
    asked: dict[str, Any] = {
        "known": known,
        "declined": _mask(fitted, wishes.declined),
        "costs": prices,
    }
    run = run_policy(X, fitted.policy, fitted.background, fitted.budget, fitted.limits, **asked)
    end = run.people().take(run.last)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(people, name), getattr(end, name)])
        for name in ("X", "person", "spent")
    }
    both = People(background=fitted.background, step=np.repeat([0, 1], len(X)), **columns)
    return replace(plans, people=both, decision=np.concatenate([plans.decision, end.decision]))


def _mask(fitted: FittedAdvisor, names: tuple[str, ...]) -> BoolArray:
    """Which features are named, (features,)."""
    mask = np.zeros(len(fitted.schema), dtype=bool)
    mask[[fitted.schema.index(name) for name in names]] = True
    return mask


class _Memory:
    """What an advisor has worked out for wishes; certificates that were not asked for lately leave
    first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._rehearsal: tuple[FittedAdvisor, Float32Array] | None = None

    def certificate(self, key: str, make: Callable[[], Certificate]) -> Certificate:
        """The certificate called ``key``, made now where it is not there yet; by one thread, for
        which others wait.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > KEPT:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.certificate is None:
                entry.certificate = make()
            return entry.certificate

    def rehearsal(self, fitted: FittedAdvisor) -> tuple[FittedAdvisor, Float32Array]:
        """The advisor as it meets some training people, who complete nobody meanwhile, and their
        encoded rows.
        """
        with self._lock:
            if self._rehearsal is None:
                rehearsal, rows = rehearse(fitted, seed=0)
                self._rehearsal = rehearsal, fitted.train.X[rows]
            return self._rehearsal


@dataclass(eq=False)
class _Entry:
    """A certificate, and who is making it."""

    lock: Any = field(default_factory=threading.Lock)
    certificate: Certificate | None = None


_memories: WeakKeyDictionary[FittedAdvisor, _Memory] = (
    WeakKeyDictionary()
)  # no part of what is saved, sent or compared
_lock = threading.Lock()


def _memory(fitted: FittedAdvisor) -> _Memory:
    with _lock:
        return _memories.setdefault(fitted, _Memory())
