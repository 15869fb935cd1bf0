"""Whether people may act now: one function for a single interview and for a file of a million.

An advisor's certificate speaks of people on the policy's own path: from the start set on, what the
policy asks, and nothing else. Its rule acts at the first plan whose signal is low enough, so that
it also matters whether it would have stopped a person at an earlier state of that path. For
everybody else there are certificates of their own state: see ``edfa.advice.promise``.

``find_standings`` is about a batch, ``find_standing`` about one person, with the reasons.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.assessment import Assess, Assessment
from edfa.advice.promise import CertifyLater, Progress, State, find_certificate
from edfa.certification.certificate import Certificate
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

Status = Literal[
    "act", "ask", "unsure", "granted", "no_plan", "not_certified", "off_path", "pending"
]
DEVIATIONS = ("start", "order", "passed", "declined", "prices", "limits")


@dataclass(frozen=True)
class Standing:
    """Whether a person may act now.

    Parameters
    ----------
    status
        - ``"act"``: today's first plan is one that a certificate speaks of;
        - ``"ask"``: there is a plan, and the certified rule asks on;
        - ``"unsure"``: everything is asked, and the plan is too likely to fail;
        - ``"granted"``: the decision is favourable;
        - ``"no_plan"``: refused, and nothing to act on yet;
        - ``"not_certified"``: nothing is promised to anybody;
        - ``"off_path"``: the person is not where the advisor's certificate looks at people (asked
          in the policy's order up to the point where its rule says "act", for the card's prices,
          under the operator's rules), and there is no certificate for their state and wishes; in a
          file, perhaps none that was tried;
        - ``"pending"``: a certificate for their state is being made; look again.
    signal
        What the rule watches; None without a plan.
    tau
        The threshold of the rule; None without a certificate.
    since
        The step of the path at which the rule said "act" before; None: at no step before.
    deviations
        How the person differs from those whom the advisor's own certificate speaks of, of
        ``DEVIATIONS``: facts of the start set are not known (``"start"``), others were told out of
        order (``"order"``), they went on past the point where the rule said "act" (``"passed"``),
        something was declined, prices or limits on plans are their own.
    for_wishes
        Whether the certificate is one that was made for their state and wishes.
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
    """The states that people pass when they are asked in the policy's order.

    Parameters
    ----------
    person
        The person of each state, (states,); states are sorted by person and step.
    X
        The encoded facts that are known in it, (states, features); the first state of a person is
        the start set.
    missing_start
        Of whom facts of the start set are missing, (people,).
    other_order
        Who told other facts than the policy asked for, (people,).
    """

    person: IntArray
    X: Float32Array
    missing_start: BoolArray
    other_order: BoolArray

    @property
    def on_path(self) -> BoolArray:
        """Who knows just what the policy has asked for so far, (people,)."""
        return ~(self.missing_start | self.other_order)

    def passed(self, tau: Float64Array, k: int, asked: BoolArray, assess: Assess) -> BoolArray:
        """Who was stopped by the rule at an earlier state, (people,).

        Of many people the last of these states is looked at first: there the rule stops most often,
        and who was stopped is not looked at again. Of one person it is the first, since it is also
        told when they could have acted.

        Parameters
        ----------
        tau
            The threshold of each person, (people,).
        k
            As for plans that were made already.
        asked
            Who is looked at, (people,).
        assess
            Makes the assessments of earlier states.
        """
        stopped, alone = np.zeros(len(asked), dtype=bool), len(asked) == 1
        earlier = np.append(self.person[1:] == self.person[:-1], False)
        for each in {*tau[asked].tolist()}:
            left = np.flatnonzero((asked & (tau == each))[self.person] & earlier)
            while len(left):
                changes = self.person[left][1:] != self.person[left][:-1]
                chosen = left[np.append(True, changes) if alone else np.append(changes, True)]
                stopped[self.person[chosen[assess(self.X[chosen]).stops(each, k)]]] = True
                left = left[~np.isin(left, chosen) & ~stopped[self.person[left]]]
        return stopped


def follow_policy(assessment: Assessment, rows: IntArray, assess: Assess) -> PolicyPath:
    """The paths of some people as far as what they have told goes.

    Parameters
    ----------
    assessment
        A batch of people.
    rows
        Which of them; the path numbers people by their position here.
    assess
        Makes the assessments of the states on the path.
    """
    X, start = assessment.X[rows], assessment.fitted.background.start  # noqa: N806
    known, alive = ~np.isnan(X), np.arange(len(rows))
    state = np.where(start, X, NAN)
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
    """Whether each person of a batch may act now.

    Attributes
    ----------
    status, signal, tau
        As in ``Standing``, (people,) each; NaN: there is none.
    planned
        The rows of people with a plan under an advisor with a certificate, (planned,).
    path
        The path of these.
    passed
        Who of them went on past the point where the advisor's rule said "act", (planned,).
    for_wishes
        For whom of them a certificate of their own state was due, (planned,).
    certificate
        That certificate, or None, (planned,).
    """

    status: ObjectArray
    signal: Float64Array
    tau: Float64Array
    planned: IntArray
    path: PolicyPath
    passed: BoolArray
    for_wishes: BoolArray
    certificate: ObjectArray


def find_standings(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray,
    *,
    everywhere: bool = False,
    later: CertifyLater | None = None,
    progress: Progress | None = None,
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
        The label of each person's group, (people,); see ``FittedAdvisor.group_of``.
    everywhere
        Whether certificates are made for any state of knowledge, as in an interview.
    later
        Runs calibrations elsewhere; None: they are run at once.
    progress
        Called while a calibration runs here.
    """
    fitted, refused, signal = assessment.fitted, assessment.refused, assessment.signal(k)
    status, tau = np.full(len(assessment), "granted", dtype=object), fitted.tau_for(group)
    status[refused] = "no_plan"
    status[refused & ~np.isnan(signal)] = "not_certified"
    planned = np.flatnonzero(refused & ~np.isnan(signal) & ~np.isnan(tau))
    path, own, watched = follow_policy(assessment, planned, assess), tau[planned], signal[planned]
    usual = path.on_path & ~np.logical_or.reduce(
        [wish[planned] for wish in assessment.wishes.values()]
    )
    at_end = assessment.next[planned] < 0
    several = np.bincount(path.person, minlength=len(planned)) > 1
    looked = usual & (everywhere | ~at_end)
    passed = path.passed(own, k, looked, assess)
    due = (passed | ~looked) & (everywhere | path.on_path)
    # No certificate lets anybody act whose signal is above the ceiling: for them it stands for the
    # threshold.
    ceiling = fitted.promise.ceiling
    thresholds = np.where(watched > ceiling, ceiling, np.nan)
    certificate = np.full(len(planned), None, dtype=object)
    asked = np.flatnonzero(due & (watched <= ceiling))
    made, pending = _find_certificates(assessment, planned[asked], group, later, progress)
    certificate[asked] = made
    thresholds[asked] = [np.nan if each is None else each.tau for each in made]
    words = _words(watched, thresholds, at_end)
    words[asked[pending]] = "pending"
    lacks = fitted.promise.lacks_final_survival(watched, at_end & several)
    own_words = _words(np.where(lacks, np.inf, watched), own, at_end)
    if fitted.promise.covers_everybody:
        own_words[at_end] = "act"
    # Of all others it makes no difference.
    passed |= path.passed(own, k, usual & ~looked & (words != own_words), assess)
    for_wishes = ~usual | passed
    status[planned] = np.where(for_wishes, words, own_words)
    tau[planned] = np.where(for_wishes, thresholds, own)
    return Standings(status, signal, tau, planned, path, passed, for_wishes, certificate)


def _find_certificates(
    assessment: Assessment,
    rows: IntArray,
    group: ObjectArray,
    later: CertifyLater | None,
    progress: Progress | None,
) -> tuple[ObjectArray, BoolArray]:
    """The certificates of the states of some people.

    Parameters
    ----------
    assessment
        A batch of people.
    rows
        Which of them.
    group
        The label of everybody's group, (people,). Where there are groups, no certificate is made
        for whom it is None.
    later, progress
        As for ``find_standings``.

    Returns
    -------
    tuple
        The certificates, None where nothing is certified, and for whom one is still being made;
        (rows,) each.
    """
    fitted = assessment.fitted
    certificates = np.full(len(rows), None, dtype=object)
    pending = np.zeros(len(rows), dtype=bool)
    asked = np.arange(len(rows))
    if fitted.promise.groups is not None:
        asked = np.flatnonzero(pd.notna(group[rows]))
    if not len(asked) or not len(fitted.calibration):
        return certificates, pending
    states, which = find_states(assessment, rows[asked], group)
    for i, state in enumerate(states):
        made = find_certificate(fitted, state, later, progress)
        theirs = asked[which == i]
        pending[theirs] = made is None
        if made is not None and made.certified and made.tau is not None:
            certificates[theirs] = made
    return certificates, pending


def find_states(
    assessment: Assessment, rows: IntArray, group: ObjectArray
) -> tuple[list[State], IntArray]:
    """The distinct states of some people.

    Parameters
    ----------
    assessment
        A batch of people.
    rows
        Which of them.
    group
        The label of the group of everybody in the batch, (people,).

    Returns
    -------
    tuple
        The states, and the position of each person's state among them, (rows,).
    """
    fitted, people = assessment.fitted, assessment.people
    known, start = people.known[rows] & fitted.relevant, fitted.background.start
    declined = assessment.declined[rows]
    prices, names = people.costs[rows], np.array(fitted.schema.names)
    columns = np.c_[known, declined, prices, pd.factorize(group[rows])[0]]
    _, first, which = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    states = [
        State(
            known=tuple(names[known[i] & ~start].tolist()),
            missing=tuple(names[start & ~known[i]].tolist()),
            declined=tuple(names[declined[i]].tolist()),
            overlay=replace(
                assessment.limits,
                prices={
                    str(names[j]): float(prices[i, j])
                    for j in np.flatnonzero(prices[i] != fitted.background.costs)
                },
            ),
            group=group[rows[i]],
        )
        for i in first
    ]
    return states, which.ravel()


def _words(signal: Float64Array, tau: Float64Array, at_end: BoolArray) -> ObjectArray:
    """The status under a certified threshold: ``"act"``, ``"unsure"``, ``"ask"``, or ``"off_path"``
    where there is no threshold, (people,).

    Parameters
    ----------
    signal, tau
        What the rule watches, and its threshold, (people,); NaN: there is none.
    at_end
        Who has been asked everything, (people,).
    """
    words = np.where(signal <= tau, "act", np.where(at_end, "unsure", "ask"))
    return np.where(np.isnan(tau), "off_path", words).astype(object)


def find_standing(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray,
    later: CertifyLater | None,
    progress: Progress | None,
) -> tuple[Standing, Certificate | None]:
    """The standing of the one person of ``assessment``, and the certificate under which they may
    act; None: they may not.

    The arguments are those of ``find_standings``.
    """
    fitted = assessment.fitted
    standings = find_standings(
        assessment, k, assess, group, everywhere=True, later=later, progress=progress
    )
    status: Status = standings.status[0]
    signal, tau = (
        None if np.isnan(value[0]) else float(value[0])
        for value in (standings.signal, standings.tau)
    )
    path = standings.path
    if not standings.for_wishes.any():
        own = fitted.certificate_for(group[0]) if status == "act" else None
        return Standing(status, signal, tau), own
    deviates = {"start": path.missing_start, "order": path.other_order, "passed": standings.passed}
    deviations = tuple(name for name in DEVIATIONS if (deviates | assessment.wishes)[name][0])
    since = None
    if standings.passed[0]:
        least = float(fitted.tau_for(group)[0])
        since = next(
            i for i, state in enumerate(path.X[:-1]) if assess(state[None]).stops(least, k)[0]
        )
    made = standings.certificate[0] if status == "act" else None
    return Standing(status, signal, tau, since, deviations, for_wishes=True), made
