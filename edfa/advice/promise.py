"""One function certifies a state of the advisor from people: ``certify``.

The state may be the policy's own path, for everybody or for a group of people; or the state of one
person, who told something unasked, declined something, has prices or limits of their own, or went
on when they could have acted. What differs is how records are made of people in that state:

- ``roll_out``: everybody is asked in the policy's order to the end;
- ``observe``: everybody is put into the person's state, but for those whom the path to it would
  have stopped before. What is not known of the person is hidden, plans are searched under the same
  limits, and the first plan is judged. The certificates speak of those who are told an ending
  right there. The calibration people are like everybody; that those who are in such a state are
  like them is taken for granted, and said.

Each ending has a certificate of its own, at an equal share of delta, so that all hold together with
probability 1 - delta; it holds whatever the thresholds of the others (``count_for_all``).

Judges are models learnt again from other people, which say whether a plan would still work; they
choose nothing. Everything that has to be chosen (the reference, where the tests begin) is chosen in
a dry run on training people, so that the calibration people are looked at once.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from edfa.acquisition.loop import run_policy
from edfa.acquisition.trajectory import Trajectory
from edfa.advice.calibration_people import CalibrationPeople, row_keys
from edfa.advice.fitted import NEVER_ACTS, Ending, FittedAdvisor
from edfa.advice.signals import find_signals
from edfa.cache import Cache
from edfa.certification.certificate import Certificate, GroupCertificates, by_group
from edfa.certification.endings import (
    LOSS_OF,
    EndingName,
    count_for_all,
    replay_endings,
    stop_endings,
)
from edfa.certification.rcps import RecourseCertifier, choose_anchor
from edfa.certification.records import REFERENCES, Records, Reference, Runs
from edfa.certification.replay import Against, replay
from edfa.certification.risk_curve import Target, trace
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.people import People
from edfa.predictors.committee import Committee, fold_of
from edfa.recourse.find import find_recourse
from edfa.recourse.outlook import Outlook
from edfa.recourse.plans import Plans
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

MAX_COST_RATIO = 1.25  # times the cost of the cheapest promise that a stronger one may cost
DRY_RUN_PEOPLE = 1_000  # training people on whom a promise is tried out
LOOSEST = 1.2  # times alpha: the risk in the dry run up to which a threshold may be used
PEOPLE_AT_A_TIME = 200  # for whom plans are searched together
OBSERVED, OBSERVED_IN_TRAINING = 1_000, 400  # people who are put into a state, and in its dry run
NOTHING_ASKED = (
    "nothing is asked before people act: the promise is about plans that are made at once"
)
N_JUDGES = 12
TRAINING_SHARE = 0.15  # training people that a judge learns from, besides calibration people
# training people that a judge of the dry run learns from: sharing them with the advisor, it differs
# from it as much as a real judge only if they are fewer
DRY_SHARE = 0.4
JUDGES_SEED = 1_000_003  # added to the advisor's: no draw in common with the committee that chooses
Certified = Mapping[EndingName, Certificate]
"""The certificates of a state by the name of the ending."""
CERTIFICATES: Cache["Future[Certified]"] = Cache("certificates", most=256)
Progress = Callable[[int, int], None]
"""Called with the number of people, or states, that are done, and of all."""
CertifyLater = Callable[[Callable[[], None]], bool]
"""Runs a task on another thread, some time; False if there is no room for it now."""


@dataclass(frozen=True)
class State:
    """A state of an advisor that a certificate can be made for.

    Parameters
    ----------
    known
        Features known beyond the start set, asked for or not. None: the state is the policy's
        path, from the start set to its last question; then only ``group`` may be given, too.
    missing
        Features of the start set that are not known.
    declined
        Features that must not be asked for.
    overlay
        The person's prices, where they differ from the card's, and their limits on plans, on top of
        the operator's rules.
    group
        The group of people, if the advisor makes promises to groups; None: everybody.
    at_once
        Whether all of it was told at once, as in a file, so that no ending could be told on the
        way.

    Examples
    --------
    >>> State(()).key == State((), overlay=Overlay()).key != State(None).key
    True
    """

    known: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    overlay: Overlay = NO_OVERLAY
    group: str | None = None
    at_once: bool = False

    @property
    def key(self) -> str:
        """A hash, the same for the same state in whatever order its features are named; nobody can
        read there whose it is.
        """
        known = None if self.known is None else sorted(self.known)
        features = [known, sorted(self.missing), sorted(self.declined)]
        parts = [*features, self.overlay.to_dict(), self.group, self.at_once]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def known_in(self, fitted: FittedAdvisor) -> BoolArray:
        """What is known in a person's state, (features,); facts that change nothing are left
        out. UnknownNameError if a feature of the state is none of the card's.
        """
        whole = fitted.background.start | _mask(fitted, self.known or ())
        return np.asarray(whole & ~_mask(fitted, self.missing) & fitted.relevant)


def learn_judges(fitted: FittedAdvisor, calibration: Table, seed: int) -> Committee:
    """Models of the advisor's kind learnt again, mostly from calibration people, less from training
    ones.

    They have no part in choosing plans or questions. Who is judged was left out by the judge: see
    ``draw_judges``. A judge that shares many people with the advisor shares its accidents and is
    too kind; one that learnt from few people is too harsh. With this share they came out like
    models learnt from as many people as the advisor, none of them the same (``docs/decisions.md``).

    Parameters
    ----------
    fitted
        The advisor, whose training people and model are used.
    calibration
        The calibration part of its table, with outcomes.
    seed
        The advisor's seed.
    """
    return Committee.of(
        fitted.train.X,
        fitted.train.y,
        fitted.predictor,
        N_JUDGES,
        seed=seed + JUDGES_SEED,
        others=(calibration.X, calibration.y),
        varied=False,
        share=TRAINING_SHARE,
    )


def draw_judges(fitted: FittedAdvisor, X: Float32Array) -> IntArray:  # noqa: N803
    """Draw a judge for each person at random.

    Whoever is among the people that judges learnt from, as far as their facts are known, gets one
    that has left them out.

    Parameters
    ----------
    fitted
        The advisor, with its judges and calibration people.
    X
        Encoded rows, (people, features).

    Returns
    -------
    numpy.ndarray
        The position of each person's judge among the judges, (people,); 0 where there are none.
    """
    size = len(fitted.judges or ())
    judge = np.random.default_rng(len(X)).integers(max(size, 1), size=len(X))
    if not size:
        return judge
    learnt = _positions(X, fitted.calibration)
    folds = int(fold_of(np.arange(size)).max()) + 1
    same_fold = judge - fold_of(judge) + fold_of(learnt)
    return np.where(learnt >= 0, np.where(same_fold < size, same_fold, same_fold - folds), judge)


def _positions(X: Float32Array, learnt: Float32Array) -> IntArray:  # noqa: N803
    """The row of ``learnt`` (people, features) that each row of X (rows, features) is, (rows,); -1:
    none. Features that are not known of everybody in X (NaN) are not compared.

    Of several equal ones the first belongs to the first, and so on; the last one to all others.
    """
    columns = np.asarray(~np.isnan(X).any(axis=0))
    places: dict[bytes, list[int]] = {}
    for i, row in enumerate(row_keys(learnt, columns)):
        places.setdefault(row, []).append(i)
    positions = np.full(len(X), -1, dtype=np.intp)
    for i, row in enumerate(row_keys(X, columns)):
        if equal := places.get(row):
            positions[i] = equal.pop(0) if len(equal) > 1 else equal[0]
    return positions


@dataclass(frozen=True, eq=False)
class Rollout:
    """People who were asked to the end.

    Parameters
    ----------
    trajectory
        What was asked, one row per person and step.
    plans
        The plans at every step.
    endings
        What would become of everybody at every step under each ending, by its name.
    """

    trajectory: Trajectory
    plans: Plans
    endings: Mapping[EndingName, Records]

    @property
    def records(self) -> Records:
        """What would become of the first plan of every step."""
        return self.endings["act"]


def roll_out(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Rollout:
    """``ask`` everybody to the end, and judge the first plan of every step.

    The parameters are those of ``ask``.
    """
    trajectory, plans = ask(fitted, X, progress, n_jobs)
    return Rollout(trajectory, plans, judge_plans(fitted, plans, X))


def ask(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> tuple[Trajectory, Plans]:
    """Ask everybody in the policy's order, to the end, and find plans at every step.

    Parameters
    ----------
    fitted
        The advisor; the operator's rules hold for questions and plans.
    X
        Complete encoded rows, (people, features).
    progress
        Called with the numbers of states that have been searched for plans, and of all.
    n_jobs
        Threads that share the search.

    Returns
    -------
    tuple
        The trajectory, and the plans of its people.
    """
    trajectory = run_policy(
        X, fitted.policy, fitted.background, fitted.budget, fitted.operator_rules
    )
    plans = find_recourse(
        trajectory,
        fitted.searcher,
        rules=fitted.operator_rules,
        desired_class=fitted.favourable,
        n_jobs=n_jobs,
        progress=progress,
    )
    return trajectory, plans


def ask_and_judge(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    judge: IntArray,
) -> dict[EndingName, Records]:
    """Records of some people by themselves, with the judge of each (people,), to be joined with
    those of others.
    """
    return judge_plans(fitted, ask(fitted, X, n_jobs=1)[1], X, judge)


def judge_plans(
    fitted: FittedAdvisor,
    plans: Plans,
    X: Float32Array,  # noqa: N803
    judge: IntArray | None = None,
    now: BoolArray | None = None,
    signals: Mapping[EndingName, Float64Array] | None = None,
) -> dict[EndingName, Records]:
    """Hold what people could be told against what the advisor's promise is about; one record of
    each ending a person and step.

    Parameters
    ----------
    fitted
        The advisor.
    plans
        Plans of people whose numbers are rows of X, at every step to the end.
    X
        Complete encoded rows, (people, features).
    judge
        The judge of each person, (people,); drawn unless given.
    now
        At which rows people may be told anything, (rows,); None: at all of them.
    signals
        Those of ``find_signals``, if they have been worked out.

    Returns
    -------
    dict
        The records of each ending by its name. Their signal is what the stop rule watches; where
        nobody may be told to act it is ``NEVER_ACTS``.
    """
    promise = fitted.promise
    whole = None if promise.reference == "trajectory_end" else X
    judges = fitted.judges if promise.reference == "retrained" else None
    drawn = draw_judges(fitted, X) if judge is None and judges is not None else judge
    against = Against(promise.reference, whole, judges, 0 if drawn is None else drawn)
    settings: Any = {"favourable": fitted.favourable, "advisor": fitted.fingerprint}
    watched = dict(find_signals(fitted, plans) if signals is None else signals)
    lacks = promise.lacks_final_survival(plans.first_survival, _is_last_of_several(plans))
    watched["act"] = np.where(lacks & plans.legal, NEVER_ACTS, watched["act"])
    if now is not None:
        watched = {name: np.where(now, signal, np.nan) for name, signal in watched.items()}
    if promise.ending.loss == LOSS_OF["act"]:
        records = replay_endings(plans, watched, against=against, **settings)
        return {
            name: replace(part, signal_name=promise[name].signal) for name, part in records.items()
        }
    signal = np.nan_to_num(watched["act"], nan=NEVER_ACTS)
    part = replay(plans, signal=signal, against=against, loss=promise.ending.loss, **settings)
    return {"act": replace(part, signal_name=promise.ending.signal)}


def _is_last_of_several(plans: Plans) -> BoolArray:
    """Which rows are the last step of a run of several, (rows,)."""
    person = plans.people.person
    first = np.append(True, person[1:] != person[:-1])
    return np.asarray(~first & np.append(first[1:], True))


def observe(
    fitted: FittedAdvisor,
    state: State,
    X: Float32Array,  # noqa: N803
    most: int,
    progress: Progress | None = None,
) -> dict[EndingName, Records]:
    """Put people into a person's state: what they could be told there, and what becomes of it.

    People are drawn at random among those whom no ending would have stopped on the way to this
    state, as it has not stopped the person.

    Parameters
    ----------
    fitted
        The advisor.
    state
        The person's state.
    X
        Complete encoded rows of the people, (people, features).
    most
        How many are put into the state at most.
    progress
        Called with the number of people that are done, and of all.

    Returns
    -------
    dict
        Records of each ending by its name.
    """
    rows = np.random.default_rng(0).permutation(len(X))[:most]
    rows = rows[~is_stopped_before(fitted, state, X[rows])] if len(rows) else rows
    rows = rows if len(rows) else np.arange(1)
    judge = draw_judges(fitted, X[rows])
    parts: list[dict[EndingName, Records]] = []
    for part in gen_batches(len(rows), PEOPLE_AT_A_TIME):
        some = X[rows[part]]
        plans = _plans_in_state(fitted, state, some)
        now = np.asarray(plans.people.step) == 0
        records = judge_plans(fitted, plans, some, judge[part], now)
        parts.append({n: replace(r, person=r.person + part.start) for n, r in records.items()})
        if progress:
            progress(min(part.stop, len(rows)), len(rows))
    return {name: Records.join(*(part[name] for part in parts)) for name in parts[0]}


def is_stopped_before(
    fitted: FittedAdvisor,
    state: State,
    X: Float32Array,  # noqa: N803
) -> BoolArray:
    """Whom the advisor's own rules would have stopped at an earlier state of the policy's path, on
    the way to a person's state, (people,).

    Nobody, if all of the state was told at once, or something of the start set is missing in it:
    then no way from there leads to it.

    Parameters
    ----------
    fitted
        The advisor, with its certificates.
    state
        The person's state.
    X
        Complete encoded rows, (people, features).
    """
    stopped, known = np.zeros(len(X), dtype=bool), state.known_in(fitted)
    no_way = state.at_once or (fitted.background.start & ~known).any()
    if no_way or not fitted.promise.certificate_id:
        return stopped
    way = run_policy(
        X, fitted.policy, fitted.background, "inf", fitted.operator_rules, declined=~known
    )
    people, group = way.people(), fitted.group_of(X)
    before = (people.known & fitted.relevant != known).any(axis=1)
    for step in np.unique(people.step[before]):
        rows = np.flatnonzero(before & (people.step == step) & ~stopped[people.person])
        person = people.person[rows]
        for name, signal in find_signals(fitted, find_plans(fitted, people.take(rows))).items():
            stopped[person] |= signal <= fitted.tau_for(group[person], name)
    return stopped


def find_plans(fitted: FittedAdvisor, people: People, n_jobs: int | None = 1) -> Plans:
    """The plans of people under the operator's rules and their own overlay."""
    return find_recourse(
        people,
        fitted.searcher,
        rules=fitted.operator_rules,
        desired_class=fitted.favourable,
        n_jobs=n_jobs,
    )


def _plans_in_state(fitted: FittedAdvisor, state: State, X: Float32Array) -> Plans:  # noqa: N803
    """The plans of complete encoded people X (people, features) in a person's state, and when all
    has been asked that may be: everybody is there twice, one step after the other.
    """
    known, prices = state.known_in(fitted), state.overlay.prices_in(fitted.schema)
    run = run_policy(
        X,
        fitted.policy,
        fitted.background,
        fitted.budget,
        fitted.operator_rules,
        known=known,
        declined=_mask(fitted, state.declined),
        costs=prices,
    )
    rows = np.column_stack([run.at(0), run.last]).ravel()
    both = replace(run.people().take(rows), step=np.tile([0, 1], len(X)), overlay=state.overlay)
    return find_plans(fitted, both)


def _mask(fitted: FittedAdvisor, names: Sequence[str]) -> BoolArray:
    """Which features are named, (features,)."""
    mask = np.zeros(len(fitted.schema), dtype=bool)
    mask[[fitted.schema.index(name) for name in names]] = True
    return mask


def dry_run_advisor(fitted: FittedAdvisor, seed: int) -> tuple[FittedAdvisor, Float32Array]:
    """The advisor as it meets some training people, on whom a promise is tried out; its judges
    have met neither these nor any calibration people.

    Returns
    -------
    tuple
        The advisor with a searcher that completes nobody from these people, and their encoded
        rows, (people, features).
    """
    train, searcher = fitted.train, fitted.searcher
    size = min(DRY_RUN_PEOPLE, len(train) // 2)
    some = np.sort(np.random.default_rng(seed).permutation(len(train))[:size])
    if isinstance(searcher, SurvivalSearch):
        searcher = clone(searcher).fit_without(train, some)
    dry = replace(fitted, searcher=searcher)
    if fitted.judges is not None:
        rest = np.setdiff1d(np.arange(len(train)), some)
        judges = Committee.of(
            train.X[rest],
            train.y[rest],
            fitted.predictor,
            N_JUDGES,
            seed=seed + JUDGES_SEED,
            varied=False,
            share=DRY_SHARE,
        )
        dry = replace(dry, judges=judges)
    return with_outlook(dry), train.X[some]


def with_outlook(fitted: FittedAdvisor) -> FittedAdvisor:
    """The advisor with an outlook on how people stand in the end, if it promises anything to whom
    nothing helps.
    """
    if all(ending.name != "nothing" for ending in fitted.promise.endings):
        return fitted
    outlook = Outlook.of(
        fitted.completions.neighbours,
        fitted.searcher,
        fitted.background,
        fitted.asked,
        fitted.operator_rules,
        fitted.favourable,
    )
    return replace(fitted, outlook=outlook)


def dry_run(
    fitted: FittedAdvisor,
    seed: int,
    n_jobs: int | None,
    references: Sequence[Reference] = REFERENCES,
) -> Mapping[Reference, Mapping[EndingName, Records]]:
    """Records of some training people on the policy's path, by what plans are held against and by
    ending.

    Parameters
    ----------
    fitted
        The advisor.
    seed
        The advisor's seed, by which these people are drawn.
    n_jobs
        Threads that share the search for plans.
    references
        What plans are held against; ``"retrained"`` is left out for an advisor without judges.
    """
    dry, X = dry_run_advisor(fitted, seed)  # noqa: N806
    plans = ask(dry, X, n_jobs=n_jobs)[1]
    signals, group, records = find_signals(dry, plans), fitted.group_of(X), {}
    for name in references:
        if name == "retrained" and fitted.judges is None:
            continue
        held = replace(dry, promise=replace(dry.promise, reference=name))
        made = judge_plans(held, plans, X, signals=signals)
        records[name] = _with_groups(fitted, made, group)
    return records


def _with_groups(
    fitted: FittedAdvisor, records: Mapping[EndingName, Records], group: ObjectArray
) -> Mapping[EndingName, Records]:
    """Records with the group of each person (people,), if the advisor has groups."""
    if fitted.promise.groups is None:
        return records
    return {name: replace(part, group=group[part.person]) for name, part in records.items()}


def choose_reference(
    fitted: FittedAdvisor,
    records: Mapping[Reference, Mapping[EndingName, Records]],
    n: int,
) -> Reference:
    """The strongest reference that training people suggest can be promised at no more than 1.25
    times the least cost.

    Parameters
    ----------
    fitted
        The advisor.
    records
        Those of a dry run, by reference.
    n
        The number of calibration people.
    """
    costs = {name: _expected_cost(fitted, name, part, n) for name, part in records.items()}
    least = min(costs.values())
    worth = [
        name
        for name in REFERENCES
        if name in costs and costs[name] <= MAX_COST_RATIO * least < np.inf
    ]
    return worth[0] if worth else REFERENCES[-1]


def _expected_cost(
    fitted: FittedAdvisor, reference: Reference, records: Mapping[EndingName, Records], n: int
) -> float:
    """The mean cost of all people under the certificates that as many training people would give;
    infinite if nobody could be told to act.
    """
    held = replace(fitted, promise=replace(fitted.promise, reference=reference))
    size = len(records["act"].people)
    few = {name: part.take(part.code < n) for name, part in records.items()}
    made = certify_groups(held, few, records, n / min(n, size))
    if not any(part["act"].certified for part in made.values()):
        return np.inf
    costs = []
    for label, part in _by_group(held, few).items():
        ends = stop_endings(part, {name: _tau(each) for name, each in made[label].items()})
        costs.append(part["act"].spent[ends.row])
    return float(np.concatenate(costs).mean())


def _tau(certificate: Certificate) -> float:
    """The threshold of a certificate; NaN if nothing is certified."""
    return np.nan if certificate.tau is None or not certificate.certified else certificate.tau


def certify_people(
    fitted: FittedAdvisor,
    people: CalibrationPeople,
    records: Mapping[EndingName, Records],
    dry: Mapping[EndingName, Records],
) -> FittedAdvisor:
    """The advisor with certificates of the policy's path for everybody, or with some for each group
    from its own people alone.

    Parameters
    ----------
    fitted
        The advisor.
    people
        Who was asked.
    records
        What ``roll_out`` found about them, by ending.
    dry
        Records of a dry run on training people.
    """
    grouped = fitted.promise.groups is not None
    made: dict[str, dict[Any, Certificate]] = {e.name: {} for e in fitted.promise.endings}
    parted = certify_groups(fitted, _with_groups(fitted, records, people.group), dry)
    for label, parts in parted.items():
        theirs = people.at_edge if label is None else people.at_edge[people.group == label]
        for name, part in parts.items():
            warnings = (*part.warnings, *people.warnings)
            made[name][label] = replace(part, moved=int(theirs.sum()), warnings=warnings)
    whole: dict[str, Any] = {
        name: GroupCertificates(parts) if grouped else parts[None] for name, parts in made.items()
    }
    certified = replace(fitted, promise=fitted.promise.with_certificates(whole))
    ended_by = count_ended(certified, records, people.group)
    return replace(certified, promise=replace(certified.promise, ended_by=ended_by))


def count_ended(
    fitted: FittedAdvisor, records: Mapping[EndingName, Records], group: ObjectArray
) -> tuple[float, ...]:
    """Of people who are asked the first question of the path, the second and so on, the share whose
    interview ends with the answer.

    Parameters
    ----------
    fitted
        The advisor, with its certificates.
    records
        What ``roll_out`` found about these people, by ending.
    group
        The group of each, (people,).
    """
    ends = stop_endings(records, {name: fitted.tau_for(group, name) for name in records})
    act = records["act"]
    last, told = act.step[ends.row], ends.ending != None  # noqa: E711
    return tuple(
        float((told & (last == step)).sum() / max((last >= step).sum(), 1))
        for step in range(1, int(act.step.max()) + 1)
    )


def certify_groups(
    fitted: FittedAdvisor,
    records: Mapping[EndingName, Records],
    dry: Mapping[EndingName, Records],
    share: float = 1.0,
) -> dict[Any, Certified]:
    """Certificates of the policy's path by group; without groups, those of everybody under None.

    Parameters
    ----------
    fitted
        The advisor.
    records, dry
        What became of calibration people, and of training people in a dry run, by ending; with
        their groups, if the advisor has groups.
    share
        The number of calibration people for each person of ``records``.
    """
    tried = _by_group(fitted, dry)
    return {
        label: certify(fitted, State(group=label), part, tried.get(label), share)
        for label, part in _by_group(fitted, records).items()
    }


def _by_group(
    fitted: FittedAdvisor, records: Mapping[EndingName, Records]
) -> dict[Any, Mapping[EndingName, Records]]:
    """Records of every ending by group; without groups, all of them under None."""
    if fitted.promise.groups is None:
        return {None: records}
    parts = {name: by_group(part) for name, part in records.items()}
    return {label: {name: parts[name][label] for name in parts} for label in parts["act"]}


def certify(
    fitted: FittedAdvisor,
    state: State,
    records: Mapping[EndingName, Records],
    dry: Mapping[EndingName, Records] | None,
    share: float = 1.0,
) -> Certified:
    """The certificates of a state of the advisor, one for each ending.

    Parameters
    ----------
    fitted
        The advisor: its promise says what is certified.
    state
        The policy's path, for everybody or a group, or the state of a person.
    records
        What became of people in this state, from ``roll_out`` or ``observe``, by ending.
    dry
        The same of training people, on whom it is chosen where the tests begin and end; None:
        there are none.
    share
        The number of calibration people for each person of ``records``; other than 1 where records
        stand for a calibration that is still to come.
    """
    on_path, promise = state.known is None, fitted.promise
    n = max(round(share * len(records["act"].people)), 1)
    several = len(promise.endings) > 1
    loosest = {
        e.name: choose_loosest(e, promise.ceiling_of(e.name), None if dry is None else dry[e.name])
        for e in promise.endings
    }
    made: dict[EndingName, Certificate] = {}
    for ending in promise.endings:
        name = ending.name
        mine, tried = records[name], None if dry is None else dry[name]
        if several:
            mine = count_for_all(records, name, loosest)
            tried = None if dry is None else count_for_all(dry, name, loosest)
        limit = loosest[name] if several else promise.ceiling
        certifier = choose_certifier(fitted, ending, tried, n, limit, None if on_path else "act")
        made[name] = _describe(certifier.certificate_for(mine, group=state.group), fitted)
        if on_path and _asks_nothing(mine):
            more = (NOTHING_ASKED,) if made[name].target == "act" else ()
            warnings = (*made[name].warnings, *more)
            made[name] = replace(made[name], asked=False, warnings=warnings)
    return made


def _describe(certificate: Certificate, fitted: FittedAdvisor) -> Certificate:
    """The certificate with the operator's rules and the user's model, and with the probability
    that it or one of those that it holds together with is wrong.
    """
    return replace(
        certificate,
        rules=fitted.rules.describe(),
        model=fitted.user_model,
        family_delta=fitted.promise.delta if len(fitted.promise.endings) > 1 else None,
    )


def choose_loosest(ending: Ending, ceiling: float, dry: Records | None) -> float:
    """The largest threshold that an ending may have, chosen before the calibration people are
    looked at.

    Parameters
    ----------
    ending
        The ending.
    ceiling
        No threshold may be larger.
    dry
        Records of training people. The threshold is the largest at which their risk, with one loss
        and one success added, is at most 1.2 times alpha. None: it is the ceiling.
    """
    curve = None if dry is None else trace(Runs.from_records(dry), "act")
    if curve is None:
        return ceiling
    fine = (curve.lost + 1) / (curve.eligible + 2) <= LOOSEST * ending.alpha
    levels = curve.tau[fine & np.isfinite(curve.tau) & (curve.tau <= ceiling)]
    lowest = float(curve.tau[np.isfinite(curve.tau)].min(initial=ceiling))
    return float(levels.max(initial=min(lowest, ceiling)))


def choose_certifier(
    fitted: FittedAdvisor,
    ending: Ending,
    dry: Records | None,
    n: int,
    limit: float = np.inf,
    target: Target | None = None,
) -> RecourseCertifier:
    """The certifier of one ending of an advisor's promise.

    Where its tests start is chosen on ``dry``, records of training people. Where nobody of them
    is told so early, the promise is about all who are told so, if it can be broken at all: held
    against the end of the same questions, what is told there cannot fail, and nothing is promised
    about it. Where nobody of them is told so at all, the loosest rule there may be is the only one
    that is tested.

    Parameters
    ----------
    fitted
        The advisor.
    ending
        The ending.
    dry
        Records of a dry run; None: there are none.
    n
        The number of calibration people.
    limit
        The largest threshold there may be.
    target
        In place of the ending's.
    """
    promise = fitted.promise
    alpha, delta, anchor = ending.alpha, promise.delta / len(promise.endings), limit
    ceiling = None if np.isinf(limit) else limit
    chosen: Target = target or ending.target
    if dry is not None and _asks_nothing(dry) and chosen != "act":
        chosen = "early"
    if chosen not in ("early", "act"):
        return RecourseCertifier(alpha, delta, target=chosen, ceiling=ceiling)
    if dry is not None:
        options: list[Target] = [chosen, "act"] if dry.reference != "trajectory_end" else [chosen]
        for option in options:
            with suppress(DataError):  # nobody acts
                anchor = choose_anchor(dry, n, alpha, ceiling=ceiling, target=option)
                chosen = option
                break
    return RecourseCertifier(alpha, delta, target=chosen, anchor=anchor, ceiling=ceiling)


def _asks_nothing(records: Records) -> bool:
    """Whether every run ends where it begins."""
    return len(records) == len(records.people)


def find_certificate(
    fitted: FittedAdvisor,
    state: State,
    later: CertifyLater | None = None,
    progress: Progress | None = None,
) -> Certified | None:
    """The certificates of a person's state; made once, for all interviews and files of an advisor.

    Parameters
    ----------
    fitted
        The advisor, with a certificate of its own.
    state
        The person's state.
    later
        Runs the calibration elsewhere; None is returned until it is done. Without it the
        certificate is made now.
    progress
        Called with the number of people that are done, and of all, while it is made now.

    Returns
    -------
    dict or None
        Certificates by ending; None while they are made elsewhere.

    Raises
    ------
    DataError
        If the advisor has no certificate, or nobody to calibrate on in the person's group.
    SettingError
        If the state has a group and the advisor has none, or the other way round.
    """
    promise = fitted.promise
    key = (fitted.fingerprint, promise.reference, promise.certificate_id, state.key)
    mine: Future[Certified] = Future()
    future = CERTIFICATES.get(key, lambda: mine)

    def fill() -> None:
        try:
            mine.set_result(_certify_state(fitted, state, None if later else progress))
        except BaseException as error:
            mine.set_exception(error)  # for all who wait for it

    if future is mine:
        if later is None:
            fill()
        elif not later(fill):
            CERTIFICATES.discard(key)
            mine.cancel()
    if later is not None and (not future.done() or future.cancelled()):
        return None
    try:
        return future.result()
    except CancelledError:  # there was no room for it where it was to be made
        return find_certificate(fitted, state, later, progress)
    except BaseException:
        CERTIFICATES.discard(key)  # whoever asks next tries again
        raise


def _certify_state(fitted: FittedAdvisor, state: State, progress: Progress | None) -> Certified:
    """Certify a person's state from the advisor's calibration people."""
    if not fitted.promise.certificate_id:
        raise DataError("this advisor has no certificate yet; call certify(people) first")
    if (state.group is None) != (fitted.promise.groups is None):
        groups = fitted.promise.groups or "no groups"
        raise SettingError(f"group: one of {groups}, not {state.group!r}")
    retrained = fitted.promise.reference == "retrained"
    used = fitted if retrained else replace(fitted, judges=None)
    dry, training = dry_run_advisor(used, seed=0)
    training, calibration = (
        X if state.group is None else X[fitted.group_of(X) == state.group]
        for X in (training, fitted.calibration)
    )
    if not len(calibration):
        raise DataError(f"there are no calibration people in the group {state.group!r}")
    tried = observe(dry, state, training, OBSERVED_IN_TRAINING) if len(training) else None
    records = observe(fitted, state, calibration, OBSERVED, progress)
    return certify(fitted, state, records, tried)
