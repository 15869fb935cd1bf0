"""One function certifies a state of the advisor from people: ``certify``.

The state may be the policy's own path, for everybody or for a group of people; or the state of one
person, who told something unasked, declined something, has prices or limits of their own, or went
on when they could have acted. What differs is how records are made of people in that state:

- ``roll_out``: everybody is asked in the policy's order to the end;
- ``observe``: everybody is put into the person's state. What is not known of the person is hidden,
  plans are searched under the same limits, and the first plan is judged. The certificate speaks of
  those who are told to act right there. The calibration people are like everybody; that those who
  are in such a state are like them is taken for granted, and said.

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
from edfa.advice.fitted import NEVER_ACTS, FittedAdvisor
from edfa.cache import Cache
from edfa.certification.certificate import Certificate, GroupCertificates, by_group
from edfa.certification.rcps import RecourseCertifier, choose_anchor
from edfa.certification.records import REFERENCES, Records, Reference
from edfa.certification.replay import Against, replay
from edfa.certification.risk_curve import Target
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.people import People
from edfa.predictors.committee import Committee, fold_of
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import NAN, BoolArray, Float32Array, IntArray

MAX_COST_RATIO = 1.25  # times the cost of the cheapest promise that a stronger one may cost
DRY_RUN_PEOPLE = 1_000  # training people on whom a promise is tried out
# people who could act, for a state's tests and its dry run
CALIBRATION_ACTORS, TRAINING_ACTORS = 250, 80
MOST_REFUSED, MOST_REFUSED_TRAINING = 600, 200  # among whom they are looked for
PEOPLE_AT_A_TIME = 100  # for whom plans are searched together
NOTHING_ASKED = (
    "nothing is asked before people act: the promise is about plans that are made at once"
)
N_JUDGES = 12
TRAINING_SHARE = 0.15  # training people that a judge learns from, besides calibration people
JUDGES_SEED = 1_000_003  # added to the advisor's: no draw in common with the committee that chooses
CERTIFICATES: Cache["Future[Certificate]"] = Cache("certificates", most=256)
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

    @property
    def key(self) -> str:
        """A hash, the same for the same state in whatever order its features are named; nobody can
        read there whose it is.
        """
        known = None if self.known is None else sorted(self.known)
        features = [known, sorted(self.missing), sorted(self.declined)]
        text = json.dumps([*features, self.overlay.to_dict(), self.group], sort_keys=True)
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
    records
        What became of the first plan of every step.
    """

    trajectory: Trajectory
    plans: Plans
    records: Records


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


def ask_and_judge(fitted: FittedAdvisor, X: Float32Array, judge: IntArray) -> Records:  # noqa: N803
    """Records of some people by themselves, with the judge of each (people,), to be joined with
    those of others.
    """
    return judge_plans(fitted, ask(fitted, X, n_jobs=1)[1], X, judge)


def judge_plans(
    fitted: FittedAdvisor,
    plans: Plans,
    X: Float32Array,  # noqa: N803
    judge: IntArray | None = None,
) -> Records:
    """Hold plans against what the advisor's promise is about; one record a person and step.

    Parameters
    ----------
    fitted
        The advisor.
    plans
        Plans of people whose numbers are rows of X.
    X
        Complete encoded rows, (people, features).
    judge
        The judge of each person, (people,); drawn unless given.

    Returns
    -------
    Records
        Their signal is what the stop rule watches; where nobody may be told to act (no plan, too
        little survival or need), it is ``NEVER``.
    """
    promise, ending = fitted.promise, fitted.promise.ending
    signal: Any = ending.signal if len(plans) else np.ones(len(plans.people))
    whole = None if promise.reference == "trajectory_end" else X
    judges = fitted.judges if promise.reference == "retrained" else None
    drawn = draw_judges(fitted, X) if judge is None and judges is not None else judge
    against = Against(promise.reference, whole, judges, 0 if drawn is None else drawn)
    records = replay(
        plans,
        favourable=fitted.favourable,
        signal=signal,
        advisor=fitted.fingerprint,
        loss=ending.loss,
        against=against,
    )
    first = np.append(True, records.person[1:] != records.person[:-1])
    last_of_several = ~first & np.append(first[1:], True)
    held = promise.lacks_final_survival(records.signal, last_of_several) | ~records.legal
    held |= fitted.lacks_need(plans.people, np.where(held, np.nan, records.signal))
    watched = np.where(held, NEVER_ACTS, records.signal)
    return replace(records, signal=watched, signal_name=ending.signal)


def observe(
    fitted: FittedAdvisor,
    state: State,
    X: Float32Array,  # noqa: N803
    enough: int,
    most: int,
    progress: Progress | None = None,
) -> Records:
    """Put people into a person's state: their first plan there, and what becomes of it.

    People are drawn at random, among those who are refused in this state, until there are
    ``enough`` who could act (who have a plan, with a signal up to the ceiling) or ``most`` people
    in all. Neither looks at what becomes of a plan, so that those who could act are a random sample
    of all such people.

    Parameters
    ----------
    fitted
        The advisor.
    state
        The person's state.
    X
        Complete encoded rows of the people, (people, features).
    enough, most
        How many who could act are looked for, and among how many people who are refused.
    progress
        Called with the number of people who could act so far, and with ``enough``.

    Returns
    -------
    Records
        One record for each person that was drawn. Where nobody is refused, they are of one person
        without a plan.
    """
    order, ceiling = np.random.default_rng(0).permutation(len(X)), fitted.promise.ceiling
    hidden = np.where(state.known_in(fitted), X[order], NAN)
    refused = People(hidden, fitted.background).decision != fitted.favourable
    rows = order[refused][:most] if refused.any() else order[:1]
    judge = draw_judges(fitted, X[rows])
    parts: list[Records] = []
    ready = 0
    for part in gen_batches(len(rows), PEOPLE_AT_A_TIME):
        some = X[rows[part]]
        records = judge_plans(fitted, _first_plans(fitted, state, some), some, judge[part])
        parts.append(replace(records, person=records.person + part.start))
        ready += int((records.legal & (records.signal <= ceiling)).sum())
        if progress:
            progress(min(ready, enough), enough)
        if ready >= enough:
            break
    return Records.join(*parts)


def _first_plans(fitted: FittedAdvisor, state: State, X: Float32Array) -> Plans:  # noqa: N803
    """The plans of complete encoded people X (people, features) in a person's state.

    Where plans are held against the end of the run, the people of the plans are there twice: now,
    and, without plans, when all has been asked that may be.
    """
    known, prices = state.known_in(fitted), state.overlay.prices_in(fitted.schema)
    people = People(
        np.where(known, X, NAN),
        fitted.background,
        spent=np.full(len(X), prices @ known),
        overlay=state.overlay,
    )
    plans = find_recourse(
        people,
        fitted.searcher,
        rules=fitted.operator_rules,
        desired_class=fitted.favourable,
        n_jobs=1,
    )
    if fitted.promise.reference != "trajectory_end":
        return plans
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
    both = run.people().take(np.append(run.at(0), run.last))
    decision = np.append(plans.decision, both.decision[len(X) :])
    return replace(plans, people=replace(both, step=np.repeat([0, 1], len(X))), decision=decision)


def _mask(fitted: FittedAdvisor, names: Sequence[str]) -> BoolArray:
    """Which features are named, (features,)."""
    mask = np.zeros(len(fitted.schema), dtype=bool)
    mask[[fitted.schema.index(name) for name in names]] = True
    return mask


def dry_run_advisor(fitted: FittedAdvisor, seed: int) -> tuple[FittedAdvisor, Float32Array]:
    """The advisor as it meets some training people, on whom a promise is tried out.

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
    return replace(fitted, searcher=searcher), train.X[some]


def dry_run(
    fitted: FittedAdvisor,
    seed: int,
    n_jobs: int | None,
    references: Sequence[Reference] = REFERENCES,
) -> Mapping[Reference, Records]:
    """Records of some training people on the policy's path, by what plans are held against.

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
    labels, records = fitted.group_of(X), {}
    for name in references:
        if name == "retrained" and fitted.judges is None:
            continue
        held = replace(dry, promise=replace(dry.promise, reference=name))
        part = judge_plans(held, plans, X)
        grouped = fitted.promise.groups is not None
        records[name] = replace(part, group=labels[part.person]) if grouped else part
    return records


def choose_reference(
    fitted: FittedAdvisor, records: Mapping[Reference, Records], n: int
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
    costs = {name: _expected_cost(fitted, part, n) for name, part in records.items()}
    least = min(costs.values())
    worth = [
        name
        for name in REFERENCES
        if name in costs and costs[name] <= MAX_COST_RATIO * least < np.inf
    ]
    return worth[0] if worth else REFERENCES[-1]


def _expected_cost(fitted: FittedAdvisor, records: Records, n: int) -> float:
    """The mean cost under the certificates that as many training people would give; infinite if
    they give none.

    A group without a certificate is asked everything.
    """
    few = records.take(records.code < n) if n < len(records.people) else records
    parts = certify_groups(fitted, few, records, n / len(few.people)).values()
    if not any(part.certified for part in parts):
        return np.inf
    last = np.append(few.code[1:] != few.code[:-1], True)
    full = float(few.spent[last].mean())
    costs = [full if part.cost is None or not part.certified else part.cost for part in parts]
    return float(np.average(costs, weights=[part.people for part in parts]))


def certify_people(
    fitted: FittedAdvisor, people: CalibrationPeople, records: Records, dry: Records
) -> FittedAdvisor:
    """The advisor with a certificate of the policy's path for everybody, or with one for each group
    from its own people alone.

    Parameters
    ----------
    fitted
        The advisor.
    people
        Who was asked.
    records
        What ``roll_out`` found about them.
    dry
        Records of a dry run on training people.
    """
    grouped = fitted.promise.groups is not None
    if grouped:
        records = replace(records, group=people.group[records.person])
    made = {}
    for label, part in certify_groups(fitted, records, dry).items():
        theirs = people.at_edge if label is None else people.at_edge[people.group == label]
        warnings = (*part.warnings, *people.warnings)
        made[label] = replace(part, moved=int(theirs.sum()), warnings=warnings)
    whole: Any = GroupCertificates(made) if grouped else made[None]
    return replace(fitted, promise=replace(fitted.promise, certificate=whole))


def certify_groups(
    fitted: FittedAdvisor, records: Records, dry: Records, share: float = 1.0
) -> dict[Any, Certificate]:
    """Certificates of the policy's path by group; without groups, the one of everybody under None.

    Parameters
    ----------
    fitted
        The advisor.
    records, dry
        What became of calibration people, and of training people in a dry run; with their groups,
        if the advisor has groups.
    share
        The number of calibration people for each person of ``records``.
    """
    parts: dict[Any, Records] = {None: records}
    tried: dict[Any, Records] = {None: dry}
    if fitted.promise.groups is not None:
        parts, tried = {**by_group(records)}, {**by_group(dry)}
    return {
        label: certify(fitted, State(group=label), part, tried.get(label), share)
        for label, part in parts.items()
    }


def certify(
    fitted: FittedAdvisor,
    state: State,
    records: Records,
    dry: Records | None,
    share: float = 1.0,
) -> Certificate:
    """The certificate of a state of the advisor.

    Parameters
    ----------
    fitted
        The advisor: its promise says what is certified.
    state
        The policy's path, for everybody or a group, or the state of a person.
    records
        What became of people in this state, from ``roll_out`` or ``observe``.
    dry
        The same of training people, on whom it is chosen where the tests begin; None: there are
        none.
    share
        The number of calibration people for each person of ``records``; other than 1 where records
        stand for a calibration that is still to come.
    """
    on_path, n = state.known is None, max(round(share * len(records.people)), 1)
    certifier = choose_certifier(fitted, dry, n, None if on_path else "act")
    certificate = replace(
        certifier.certificate_for(records, group=state.group),
        rules=fitted.rules.describe(),
        model=fitted.user_model,
    )
    if not on_path or not _asks_nothing(records):
        return certificate
    more = (NOTHING_ASKED,) if certificate.target == "act" else ()
    return replace(certificate, asked=False, warnings=(*certificate.warnings, *more))


def choose_certifier(
    fitted: FittedAdvisor, dry: Records | None, n: int, target: Target | None = None
) -> RecourseCertifier:
    """The certifier of an advisor's promise.

    Where its tests start is chosen on ``dry``, records of training people. Where nobody of them
    acts early, the promise is about all who act, if it can be broken at all: held against the end
    of the same questions, a plan that is made there cannot fail, and nothing is promised about it.
    Where nobody of them acts at all, the loosest rule there may be is the only one that is tested.

    Parameters
    ----------
    fitted
        The advisor.
    dry
        Records of a dry run; None: there are none.
    n
        The number of calibration people.
    target
        In place of the ending's.
    """
    promise = fitted.promise
    alpha, delta, anchor = promise.ending.alpha, promise.delta, promise.ceiling
    ceiling = None if np.isinf(anchor) else anchor
    chosen: Target = target or promise.ending.target
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
) -> Certificate | None:
    """The certificate of a person's state; made once, for all interviews and files of an advisor.

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
    Certificate or None
        None while it is made elsewhere.

    Raises
    ------
    DataError
        If the advisor has no certificate, or nobody to calibrate on in the person's group.
    SettingError
        If the state has a group and the advisor has none, or the other way round.
    """
    promise = fitted.promise
    key = (fitted.fingerprint, promise.reference, promise.certificate_id, state.key)
    mine: Future[Certificate] = Future()
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


def _certify_state(fitted: FittedAdvisor, state: State, progress: Progress | None) -> Certificate:
    """Certify a person's state from the advisor's calibration people."""
    if not fitted.promise.certificate_id:
        raise DataError("this advisor has no certificate yet; call certify(people) first")
    if (state.group is None) != (fitted.promise.groups is None):
        groups = fitted.promise.groups or "no groups"
        raise SettingError(f"group: one of {groups}, not {state.group!r}")
    dry, training = dry_run_advisor(fitted, seed=0)
    training, calibration = (
        X if state.group is None else X[fitted.group_of(X) == state.group]
        for X in (training, fitted.calibration)
    )
    if not len(calibration):
        raise DataError(f"there are no calibration people in the group {state.group!r}")
    tried = None
    if len(training):
        tried = observe(dry, state, training, TRAINING_ACTORS, MOST_REFUSED_TRAINING)
    records = observe(fitted, state, calibration, CALIBRATION_ACTORS, MOST_REFUSED, progress)
    return certify(fitted, state, records, tried)
