"""Whether people may act now: one function for a single interview and for a file of a million.

An advisor's certificate speaks of people on the policy's own path: from the start set on, what the
policy asks, and nothing else. Its rule acts at the first plan whose signal is low enough, so that
it also matters whether it would have stopped a person at an earlier state of that path. For
everybody else there are certificates made on the spot: see ``edfa.advice.wishes``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edfa.advice.answers import DEVIATIONS, Standing, Status
from edfa.advice.assessment import Assess, Assessment
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.wishes import Progress, certify_for, find_wishes
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

__all__ = [
    "PolicyPath",
    "Standings",
    "certificate_id",
    "find_standing",
    "find_standings",
    "follow_policy",
]


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

    ``planned`` are the rows that ``path`` and the two masks (planned,) are about, if any:
    ``passed``, who went on past the point where the advisor's rule said "act", and ``for_wishes``,
    for whom a certificate of their own was due.
    """

    status: ObjectArray
    signal: Float64Array
    tau: Float64Array
    planned: IntArray
    path: PolicyPath | None = None
    passed: BoolArray = np.zeros(0, dtype=bool)
    for_wishes: BoolArray = np.zeros(0, dtype=bool)


def find_standings(
    assessment: Assessment,
    k: int,
    assess: Assess,
    *,
    group: ObjectArray | None = None,
    everywhere: bool = False,
    progress: Progress | None = None,
) -> Standings:
    """Whether each person may act now, in the words of ``Standing.status``.

    Whoever is on the policy's path, has no wishes and was not told to act before is under the
    advisor's certificate; everybody else is under one for their state of knowledge and their
    wishes. In a file there may be as many states as people. So there such certificates are made
    only if just that is known which the policy asks for, up to some point or all of it: the advice
    of a row does not depend on the others.

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
    everywhere
        Whether certificates are made for any state of knowledge, as in an interview.
    progress
        Called while certificates are made.
    """
    fitted, refused, signal = assessment.fitted, assessment.refused, assessment.signal(k)
    labels = fitted.group_of(assessment.X) if group is None else group
    status, tau = np.full(len(assessment), "granted", dtype=object), fitted.tau_for(labels)
    status[refused] = "no_plan"
    status[refused & ~np.isnan(signal)] = "not_certified"
    planned = np.flatnonzero(refused & ~np.isnan(signal) & ~np.isnan(tau))
    if not len(planned):
        return Standings(status, signal, tau, planned)
    path, own = follow_policy(assessment, planned, assess), tau[planned]
    usual = path.on_path & ~np.logical_or.reduce(
        [wish[planned] for wish in assessment.wishes.values()]
    )
    at_end, several = (
        assessment.next[planned] < 0,
        np.bincount(path.person, minlength=len(planned)) > 1,
    )
    looked = usual & (everywhere | ~at_end)
    passed = path.passed(own, k, looked, assess)
    due = (~usual | passed | ~looked) & (everywhere | path.on_path)
    theirs = _thresholds(assessment, planned, signal[planned], due, labels, progress)
    words = _words(signal[planned], theirs, at_end)
    own_words = _words(fitted.hold_back(signal[planned], at_end & several), own, at_end)
    if fitted.promises_everybody:
        own_words[at_end] = "act"
    passed |= path.passed(
        own, k, usual & ~looked & (words != own_words), assess
    )  # elsewhere it makes no difference
    for_wishes = ~usual | passed
    status[planned] = np.where(for_wishes, words, own_words)
    tau[planned] = np.where(for_wishes, theirs, own)
    return Standings(status, signal, tau, planned, path, passed, for_wishes)


def _thresholds(
    assessment: Assessment,
    rows: IntArray,
    signal: Float64Array,
    due: BoolArray,
    group: ObjectArray,
    progress: Progress | None,
) -> Float64Array:
    """The threshold of the certificate for each person's state and wishes, (rows,); NaN: there is
    none.

    Certificates are made for those who are ``due`` (rows,), and whose ``group`` (people,) is known
    if there are groups. No certificate lets anybody act whose signal is above the ceiling, so that
    for them it stands for the threshold.
    """
    fitted, thresholds = assessment.fitted, np.full(len(rows), np.nan)
    hopeless = (
        np.zeros(len(rows), dtype=bool) if fitted.ceiling is None else signal > fitted.ceiling
    )
    thresholds[hopeless] = np.nan if fitted.ceiling is None else fitted.ceiling
    if fitted.groups is not None:
        due = due & np.array([label is not None for label in group[rows]])
    asked = np.flatnonzero(due & ~hopeless)
    if fitted.calibration is None or not len(asked):
        return thresholds
    distinct, which = find_wishes(assessment, rows[asked], group)
    certificates = [certify_for(fitted, wishes, progress) for wishes in distinct]
    tau = np.array([np.nan if c.tau is None or not c.certified else c.tau for c in certificates])
    thresholds[asked] = tau[which]
    return thresholds


def _words(signal: Float64Array, tau: Float64Array, at_end: BoolArray) -> ObjectArray:
    """The status under a certified threshold, (people,); where it is NaN, nothing is promised."""
    words = np.where(signal <= tau, "act", np.where(at_end, "unsure", "ask"))
    return np.where(np.isnan(tau), "off_path", words).astype(object)


def find_standing(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray | None = None,
    progress: Progress | None = None,
) -> Standing:
    """The standing of the one person of ``assessment``, in whatever state of knowledge and with
    whatever wishes.
    """
    standings = find_standings(
        assessment, k, assess, group=group, everywhere=True, progress=progress
    )
    status: Status = standings.status[0]
    tau = None if np.isnan(standings.tau[0]) else float(standings.tau[0])
    if status in ("granted", "no_plan"):
        return Standing(status, tau=tau)
    signal, path = float(standings.signal[0]), standings.path
    if path is None or not standings.for_wishes[0]:
        return Standing(status, signal, tau)
    deviates = {"start": path.missing_start, "order": path.other_order, "passed": standings.passed}
    deviations = tuple(name for name in DEVIATIONS if (deviates | assessment.wishes)[name][0])
    since = None
    if standings.passed[0]:
        own = float(
            assessment.fitted.tau_for(
                assessment.fitted.group_of(assessment.X) if group is None else group
            )[0]
        )
        since = next(
            i for i, state in enumerate(path.earlier(0)) if assess(state[None]).stops(own, k)[0]
        )
    return Standing(status, signal, tau, since, deviations, for_wishes=True)


def certificate_id(fitted: FittedAdvisor) -> str:
    """The digest of the advisor's certificate, or of those of its groups; empty without any."""
    held = fitted.certificate if fitted.groups is None else fitted.certificates
    return "" if held is None else held.digest
