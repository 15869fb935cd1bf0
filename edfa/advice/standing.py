"""Whether people may act now: one function for a single interview and for a file of a million.

An advisor's certificate speaks of people on the policy's own path: from the start set on, what the
policy asks, and nothing else. Its rule acts at the first plan whose signal is low enough, so that
it also matters whether it would have stopped a person at an earlier state of that path. For
everybody else there are certificates of their own state: see ``edfa.advice.promise``.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.assessment import Assess, Assessment
from edfa.advice.promise import CertifyLater, Progress, State, find_certificate
from edfa.certification.certificate import Certificate
from edfa.data.rules import NO_OVERLAY
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

__all__ = [
    "DEVIATIONS",
    "Certifying",
    "PolicyPath",
    "Standing",
    "Standings",
    "Status",
    "find_standing",
    "find_standings",
    "find_states",
    "follow_policy",
]

Status = Literal[
    "act", "ask", "unsure", "granted", "no_plan", "not_certified", "off_path", "pending"
]
DEVIATIONS = ("start", "order", "passed", "declined", "prices", "limits")


@dataclass(frozen=True)
class Standing:
    """Whether a person may act now.

    ``"act"``: today's first plan is one that a certificate speaks of. ``"ask"``: there is a plan,
    and the certified rule asks on. ``"unsure"``: everything is asked, and the plan is too likely to
    fail. ``"granted"``: the decision is favourable. ``"no_plan"``: refused, and nothing to act on
    yet. ``"not_certified"``: nothing is promised to anybody. ``"off_path"``: the person is not
    where the advisor's certificate looks at people (asked in the policy's order up to the point
    where its rule says "act", for the card's prices, under the operator's rules), and there is no
    certificate for the state and the wishes they have; in a file, perhaps none that was tried.
    ``"pending"``: a certificate for the state that the person is in is being made; look again.

    ``deviations`` says how this person differs (one or more of ``DEVIATIONS``: facts of the start
    set are not known, others were told out of order, they went on past the point where the rule
    said "act", which was at step ``since`` of the path, something was declined, prices or limits on
    plans are their own). ``for_wishes`` says that the certificate was made for
    their state and wishes: see ``certify_for``.

    ``signal`` is what the rule watches (none without a plan), ``tau`` its threshold (none without a
    certificate).
    """

    status: Status
    signal: float | None = None
    tau: float | None = None
    since: int | None = None
    deviations: tuple[str, ...] = ()
    for_wishes: bool = False

    @property
    def may_act(self) -> bool:
        """Whether the certificate covers acting on today's first plan."""
        return self.status == "act"


@dataclass(frozen=True, eq=False)
class PolicyPath:
    """The states that people pass, sorted by person and step.

    ``person`` (states,) is the row of the person, ``X`` (states, features) what is known in the
    state, the start set first. ``missing_start`` and ``other_order`` (people,) say who is not on
    the path: facts of the start set are missing, or others were told than the policy asked for.
    """

    person: IntArray
    X: Float32Array
    missing_start: BoolArray
    other_order: BoolArray

    @property
    def on_path(self) -> BoolArray:
        """Who knows just what the policy has asked for so far, (people,)."""
        return ~(self.missing_start | self.other_order)

    def earlier(self, person: int) -> Float32Array:
        """The states of one person before the last, (states, features)."""
        return np.asarray(self.X[self.person == person][:-1])

    def passed(
        self, tau: float | Float64Array, k: int, asked: BoolArray, assess: Assess
    ) -> BoolArray:
        """Who of the people ``asked`` about (people,) was stopped by the rule at an earlier state,
        (people,).

        ``tau`` is the threshold of everybody, or of each person, (people,).
        Of many people the last of these states first: there the rule stops most often, and who was
        stopped is not asked about again. Of one person the first, since it is also told when they
        could have acted.
        """
        if isinstance(tau, np.ndarray):
            everybody = np.zeros(len(asked), dtype=bool)
            for each in np.unique(tau[asked]):
                everybody |= self.passed(float(each), k, asked & (tau == each), assess)
            return everybody
        stopped = np.zeros(len(asked), dtype=bool)
        is_last = np.append(self.person[1:] != self.person[:-1], True)
        left, alone = np.flatnonzero(asked[self.person] & ~is_last), len(asked) == 1
        while len(left):
            changes = self.person[left][1:] != self.person[left][:-1]
            chosen = left[np.append(True, changes) if alone else np.append(changes, True)]
            stopped[self.person[chosen[assess(self.X[chosen]).stops(tau, k)]]] = True
            left = left[~np.isin(left, chosen) & ~stopped[self.person[left]]]
        return stopped


def follow_policy(assessment: Assessment, rows: IntArray, assess: Assess) -> PolicyPath:
    """The paths of some people, by row, as far as what they have told goes; ``person`` counts among
    ``rows``.
    """
    X, start = assessment.X[rows], assessment.fitted.background.start  # noqa: N806
    known, alive = ~np.isnan(X), np.arange(len(rows))
    state = np.where(start, X, np.float32(np.nan))
    people, states = [alive], [state.copy()]
    while len(alive):
        chosen = assess(state[alive]).next
        goes = (chosen >= 0) & known[alive, chosen]
        alive, chosen = alive[goes], chosen[goes]
        state[alive, chosen] = X[alive, chosen]
        people.append(alive)
        states.append(state[alive])
    person, facts = np.concatenate(people), np.concatenate(states)
    order = np.argsort(person, kind="stable")
    other = ((known != ~np.isnan(state)) & ~start).any(axis=1)
    return PolicyPath(
        person[order], facts[order], np.asarray((start & ~known).any(axis=1)), np.asarray(other)
    )


class Standings(NamedTuple):
    """Everybody's status, signal and threshold, (people,) each.

    ``planned`` are the rows that ``path`` and the other arrays (planned,) are about, if any:
    ``passed``, who went on past the point where the advisor's rule said "act"; ``for_wishes``, for
    whom a certificate of their own state was due; and ``certificate``, that one, or None.
    """

    status: ObjectArray
    signal: Float64Array
    tau: Float64Array
    planned: IntArray
    path: PolicyPath | None = None
    passed: BoolArray = np.zeros(0, dtype=bool)
    for_wishes: BoolArray = np.zeros(0, dtype=bool)
    certificate: ObjectArray = np.zeros(0, dtype=object)


class Certifying(NamedTuple):
    """How certificates of people's own states are made.

    ``everywhere``: for any state of knowledge, as in an interview. ``later`` runs calibrations
    elsewhere (None: they are run at once), ``progress`` is called while they run here.
    """

    everywhere: bool = False
    later: CertifyLater | None = None
    progress: Progress | None = None


def find_standings(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray | None = None,
    certifying: Certifying | None = None,
) -> Standings:
    """Whether each person may act now, in the words of ``Standing.status``.

    Whoever is on the policy's path, has no wishes and was not told to act before is under the
    advisor's certificate; everybody else is under one for their own state. In a file there may be
    as many states as people. So there such certificates are made only if just that is known which
    the policy asks for, up to some point or all of it: the advice of a row does not depend on the
    others.

    Parameters
    ----------
    assessment
        The people.
    k
        As for plans that were made already.
    assess
        Makes the assessments of earlier states.
    group
        The label of each person's group, (people,); what is known of them says it unless it is
        given.
    certifying
        For which states certificates are made, and where.
    """
    fitted, refused, signal = assessment.fitted, assessment.refused, assessment.signal(k)
    certifying = certifying or Certifying()
    labels = fitted.group_of(assessment.X) if group is None else group
    status, tau = np.full(len(assessment), "granted", dtype=object), fitted.tau_for(labels)
    status[refused] = "no_plan"
    status[refused & ~np.isnan(signal)] = "not_certified"
    planned = np.flatnonzero(refused & ~np.isnan(signal) & ~np.isnan(tau))
    if not len(planned):
        return Standings(status, signal, tau, planned)
    path, own, watched = follow_policy(assessment, planned, assess), tau[planned], signal[planned]
    usual = path.on_path & ~np.logical_or.reduce(
        [wish[planned] for wish in assessment.wishes.values()]
    )
    at_end, several = (
        assessment.next[planned] < 0,
        np.bincount(path.person, minlength=len(planned)) > 1,
    )
    looked = usual & (certifying.everywhere | ~at_end)
    passed = path.passed(own, k, looked, assess)
    due = (~usual | passed | ~looked) & (certifying.everywhere | path.on_path)
    # No certificate lets anybody act whose signal is above the ceiling: for them it stands for the
    # threshold.
    ceiling = fitted.promise.ceiling
    thresholds = np.where(watched > ceiling, ceiling, np.nan)
    certificate = np.full(len(planned), None, dtype=object)
    asked = np.flatnonzero(due & (watched <= ceiling))
    made, pending = _find_certificates(assessment, planned[asked], labels, certifying)
    certificate[asked] = made
    thresholds[asked] = [np.nan if each is None else each.tau for each in made]
    words = _words(watched, thresholds, at_end)
    words[asked[pending]] = "pending"
    lacks = fitted.promise.lacks_final_survival(watched, at_end & several)
    own_words = _words(np.where(lacks, np.inf, watched), own, at_end)
    if fitted.promise.covers_everybody:
        own_words[at_end] = "act"
    passed |= path.passed(
        own, k, usual & ~looked & (words != own_words), assess
    )  # elsewhere it makes no difference
    for_wishes = ~usual | passed
    status[planned] = np.where(for_wishes, words, own_words)
    tau[planned] = np.where(for_wishes, thresholds, own)
    return Standings(status, signal, tau, planned, path, passed, for_wishes, certificate)


def _find_certificates(
    assessment: Assessment, rows: IntArray, group: ObjectArray, certifying: Certifying
) -> tuple[ObjectArray, BoolArray]:
    """The certificates of the states of some people, by row; None where nothing is certified. And
    for whom one is still being made; (rows,) each.

    Where there are groups, none is made for whom the ``group`` (people,) is not known.
    """
    fitted = assessment.fitted
    certificates = np.full(len(rows), None, dtype=object)
    pending = np.zeros(len(rows), dtype=bool)
    asked = np.arange(len(rows))
    if fitted.promise.groups is not None:
        asked = np.array([i for i in asked if group[rows[i]] is not None], dtype=np.intp)
    if not len(asked) or not len(fitted.calibration):
        return certificates, pending
    states, which = find_states(assessment, rows[asked], group)
    for i, state in enumerate(states):
        made = find_certificate(fitted, state, certifying.later, certifying.progress)
        theirs = asked[which == i]
        pending[theirs] = made is None
        if made is not None and made.certified and made.tau is not None:
            certificates[theirs] = made
    return certificates, pending


def find_states(
    assessment: Assessment, rows: IntArray, group: ObjectArray | None = None
) -> tuple[list[State], IntArray]:
    """The distinct states of some people, by row, and the position of each person's among them,
    (rows,).

    ``group`` are labels of everybody (people,); what is known of them says it unless they are
    given.
    """
    fitted, people = assessment.fitted, assessment.people
    known, start = people.known[rows] & fitted.relevant, fitted.background.start
    declined = assessment.declined[rows]
    prices, names = people.costs[rows], np.array(fitted.schema.names)
    limits = replace(people.overlay, never_ask=(), prices={})
    limits = NO_OVERLAY if fitted.rules.tighten(limits) == fitted.rules else limits
    labels = (fitted.group_of(assessment.X) if group is None else group)[rows]
    columns = np.c_[known, declined, prices, pd.factorize(labels)[0]]
    _, first, which = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    states = [
        State(
            known=tuple(names[known[i] & ~start].tolist()),
            missing=tuple(names[start & ~known[i]].tolist()),
            declined=tuple(names[declined[i]].tolist()),
            overlay=replace(
                limits,
                prices={
                    str(names[j]): float(prices[i, j])
                    for j in np.flatnonzero(prices[i] != fitted.card_costs)
                },
            ),
            group=labels[i],
        )
        for i in first
    ]
    return states, which.ravel()


def _words(signal: Float64Array, tau: Float64Array, at_end: BoolArray) -> ObjectArray:
    """The status under a certified threshold, (people,); where it is NaN, nothing is promised."""
    words = np.where(signal <= tau, "act", np.where(at_end, "unsure", "ask"))
    return np.where(np.isnan(tau), "off_path", words).astype(object)


def find_standing(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray,
    certifying: Certifying,
) -> tuple[Standing, Certificate | None]:
    """The standing of the one person of ``assessment``, and the certificate under which they may
    act; None: they may not.

    The arguments are those of ``find_standings``.
    """
    fitted, certifying = assessment.fitted, certifying._replace(everywhere=True)
    standings = find_standings(assessment, k, assess, group, certifying)
    status: Status = standings.status[0]
    tau = None if np.isnan(standings.tau[0]) else float(standings.tau[0])
    if status in ("granted", "no_plan"):
        return Standing(status, tau=tau), None
    signal, path = float(standings.signal[0]), standings.path
    if path is None or not standings.for_wishes[0]:
        own = fitted.certificate_for(group[0]) if status == "act" else None
        return Standing(status, signal, tau), own
    deviates = {"start": path.missing_start, "order": path.other_order, "passed": standings.passed}
    deviations = tuple(name for name in DEVIATIONS if (deviates | assessment.wishes)[name][0])
    since = None
    if standings.passed[0]:
        least = float(fitted.tau_for(group)[0])
        since = next(
            i for i, state in enumerate(path.earlier(0)) if assess(state[None]).stops(least, k)[0]
        )
    made = standings.certificate[0] if status == "act" else None
    return Standing(status, signal, tau, since, deviations, for_wishes=True), made
