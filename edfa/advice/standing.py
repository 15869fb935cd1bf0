"""Whether an interview may end now, and how: one function for a single interview and for a file of
a million.

An advisor's certificates speak of people on the policy's own path: from the start set on, what the
policy asks, and nothing else. Its rules stop a person at the first state in which the signal of an
ending is low enough, so that it also matters whether they would have stopped the person at an
earlier state of that path: who went on is a hard case, to whom nothing is promised any more. For
everybody else there are certificates of their own state: see ``edfa.advice.promise``.

``find_standings`` is about a batch, ``find_standing`` about one person, with the reasons.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.assessment import Assess, Assessment
from edfa.advice.promise import Certified, CertifyLater, Progress, State, find_certificate
from edfa.certification.certificate import Certificate
from edfa.certification.endings import EndingName
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

Status = Literal[
    "act",
    "granted",
    "nothing",
    "ask",
    "unsure",
    "no_plan",
    "not_certified",
    "off_path",
    "pending",
]
DEVIATIONS = ("start", "order", "at_once", "passed", "declined", "prices", "limits")


@dataclass(frozen=True)
class Standing:
    """Whether an interview may end now.

    Parameters
    ----------
    status
        - ``"act"``: today's first plan is one that a certificate speaks of;
        - ``"granted"``: the decision is favourable, and will very probably stay so, or nothing is
          left to ask; without a promise about it, the decision as far as is known;
        - ``"nothing"``: the person is refused, and very probably has no plan whatever else is
          known;
        - ``"ask"``: what is still to be asked may change what is told;
        - ``"unsure"``: everything is asked, and the plan is too likely to fail;
        - ``"no_plan"``: refused, and no plan was found; without a promise about it, as far as is
          known;
        - ``"not_certified"``: nothing is promised to anybody;
        - ``"off_path"``: the person is not where the advisor's certificates look at people (asked
          in the policy's order up to the point where an ending is told, for the card's prices,
          under the operator's rules), and there is no certificate for their state and wishes; in a
          file, perhaps none that was tried;
        - ``"pending"``: a certificate for their state is being made; look again.
    ending
        The ending that is possible in the person's state; None: the advisor promises nothing about
        it.
    promised
        Whether a certificate speaks of being told the status right now.
    complete
        Whether nothing is left to ask.
    signal
        What the rule of that ending watches; None: there is no rule.
    tau
        Its threshold; None without a certificate.
    since
        The step of the path at which an ending was told before; None: at no step before.
    deviations
        How the person differs from those whom the advisor's own certificates speak of, of
        ``DEVIATIONS``: facts of the start set are not known (``"start"``), others were told out of
        order (``"order"``), or more at once than would have been asked (``"at_once"``), they went
        on past an ending (``"passed"``), something was declined, prices or limits on plans are
        their own.
    for_wishes
        Whether the certificate is one that was made for their state and wishes.
    """

    status: Status
    ending: EndingName | None = None
    promised: bool = False
    complete: bool = False
    signal: float | None = None
    tau: float | None = None
    since: int | None = None
    deviations: tuple[str, ...] = ()
    for_wishes: bool = False

    @property
    def may_act(self) -> bool:
        """Whether the certificate covers acting on today's first plan."""
        return self.status == "act"

    @property
    def ends(self) -> bool:
        """Whether nothing more needs to be asked."""
        return self.promised or self.complete


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

    def among(self, states: Float32Array) -> BoolArray:
        """Which states of the path are among others, (states,).

        Parameters
        ----------
        states
            Encoded facts, (others, features).
        """
        others = {np.nan_to_num(row, nan=np.inf).tobytes() for row in states}
        rows = [np.nan_to_num(row, nan=np.inf).tobytes() in others for row in self.X]
        return np.array(rows, dtype=bool)

    def passed(
        self, tau: Mapping[EndingName, Float64Array], k: int, asked: BoolArray, assess: Assess
    ) -> BoolArray:
        """Who was told an ending at an earlier state, (people,).

        Of many people the last of these states is looked at first: there the rules stop most often,
        and who was stopped is not looked at again. Of one person it is the first, since it is also
        told when that was.

        Parameters
        ----------
        tau
            The threshold of each ending, (people,).
        k
            As for plans that were made already.
        asked
            Who is looked at, (people,).
        assess
            Makes the assessments of earlier states.
        """
        stopped, alone = np.zeros(len(asked), dtype=bool), len(asked) == 1
        earlier = np.append(self.person[1:] == self.person[:-1], False)
        levels = np.column_stack([*tau.values()])
        distinct, which = np.unique(levels, axis=0, return_inverse=True)
        for code, each in enumerate(distinct.tolist()):
            own = asked & (which.reshape(-1) == code)
            left = np.flatnonzero(own[self.person] & earlier)
            while len(left):
                changes = self.person[left][1:] != self.person[left][:-1]
                chosen = left[np.append(True, changes) if alone else np.append(changes, True)]
                told = assess(self.X[chosen]).stops(dict(zip(tau, each, strict=True)), k)
                stopped[self.person[chosen[told]]] = True
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
    """Whether each interview of a batch may end now.

    Attributes
    ----------
    status, ending, promised, signal, tau
        As in ``Standing``, (people,) each; NaN: there is none.
    looked_at
        The rows of people in whose state an ending is possible under an advisor with a certificate
        for it, (looked at,).
    path
        The path of these; of one person in an interview, the states of it that they have been in.
    passed
        Who of them went on past an ending, (looked at,).
    at_once
        Who of them told more at once than would have been asked, (looked at,).
    for_wishes
        For whom of them a certificate of their own state was due, (looked at,).
    certificate
        That certificate, or None, (looked at,).
    """

    status: ObjectArray
    ending: ObjectArray
    promised: BoolArray
    signal: Float64Array
    tau: Float64Array
    looked_at: IntArray
    path: PolicyPath
    passed: BoolArray
    at_once: BoolArray
    for_wishes: BoolArray
    certificate: ObjectArray


def find_standings(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray,
    *,
    visited: Float32Array | None = None,
    later: CertifyLater | None = None,
    progress: Progress | None = None,
) -> Standings:
    """Whether each interview may end now, in the words of ``Standing.status``.

    Whoever is on the policy's path, has no wishes, and could be told no ending before is under the
    advisor's certificates; who went on past one is under none; everybody else is under those for
    their own state. In a file everything is told at once, and there may be as many states as
    people. So there such certificates are made only if just that is known which the policy asks
    for, up to some point or all of it: the advice of a row does not depend on the others.

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
    visited
        The states that the one person of an interview has been in, encoded, (states, features);
        then certificates are made for any state of knowledge. None: it is a file.
    later
        Runs calibrations elsewhere; None: they are run at once.
    progress
        Called while a calibration runs here.
    """
    fitted, size = assessment.fitted, len(assessment)
    signals, at_end = assessment.signals(k), assessment.next < 0
    taus: dict[EndingName, Float64Array] = {n: fitted.tau_for(group, n) for n in signals}
    ending, signal, tau = np.full(size, None, dtype=object), *np.full((2, size), np.nan)
    for name, watched in signals.items():
        possible = ~np.isnan(watched)
        ending[possible], signal[possible] = name, watched[possible]
        tau[possible] = taus[name][possible]
    asks = ~at_end & (len(fitted.promise.endings) > 1)  # a verdict is told at an ending
    unplanned = np.where(asks, "ask", np.where(assessment.refused, "no_plan", "granted"))
    status = np.where(ending == "act", "not_certified", unplanned).astype(object)
    # At the end of all questions a decision stands, and only acting on a plan is in doubt.
    rows = np.flatnonzero(~np.isnan(tau) & (~at_end | (ending == "act")))
    own, watched, last = tau[rows], signal[rows], at_end[rows]
    path = follow_policy(assessment, rows, assess)
    wishes = [wish[rows] for wish in assessment.wishes.values()]
    usual = path.on_path & ~np.logical_or.reduce(wishes)
    levels = {name: level[rows] for name, level in taus.items()}
    stopped = path.passed(levels, k, usual, assess)
    passed, at_once = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)
    several = np.bincount(path.person, minlength=len(rows)) > 1
    if visited is not None:
        been = path.among(visited[:-1])
        at_once[path.person[been]] = False
        been |= np.append(path.person[1:] != path.person[:-1], True)[: len(been)]
        path = replace(path, person=path.person[been], X=path.X[been])
        passed = path.passed(levels, k, stopped, assess)
        at_once |= stopped & ~passed
    known = assessment.known[rows] & fitted.relevant & ~fitted.background.start
    at_once &= known.any(axis=1) & (stopped | ~usual)
    due = (~usual | at_once) & ~passed & ((visited is not None) | path.on_path)
    # No certificate lets an ending be told above its ceiling: for these people it stands for the
    # threshold.
    ceiling = np.select(
        [ending[rows] == name for name in taus], [*map(fitted.promise.ceiling_of, taus)], np.nan
    )
    thresholds = np.where((watched > ceiling) & ~passed, ceiling, np.nan)
    certificate = np.full(len(rows), None, dtype=object)
    asked = np.flatnonzero(due & (watched <= ceiling))
    made, pending = _find_certificates(
        assessment, rows[asked], ending[rows[asked]], at_once[asked], group, later, progress
    )
    certificate[asked] = made
    thresholds[asked] = [np.nan if each is None else each.tau for each in made]
    words = _words(watched, thresholds, ending[rows], last)
    words[asked[pending]] = "pending"
    survival = assessment.plans(k).first_survival[rows]
    lacks = fitted.promise.lacks_final_survival(survival, last & several)
    own_words = _words(np.where(lacks, np.inf, watched), own, ending[rows], last)
    if fitted.promise.covers_everybody:
        own_words[last] = "act"
    for_wishes = ~usual | stopped
    status[rows] = np.where(for_wishes, words, own_words)
    tau[rows] = np.where(for_wishes, thresholds, own)
    # Nobody is off the path of a verdict: without a promise, questions go on.
    status[(status == "off_path") & (ending != "act")] = "ask"
    promised = np.zeros(size, dtype=bool)
    promised[rows] = status[rows] == ending[rows]
    return Standings(
        status,
        ending,
        promised,
        signal,
        tau,
        rows,
        path,
        passed,
        at_once,
        for_wishes,
        certificate,
    )


def _find_certificates(
    assessment: Assessment,
    rows: IntArray,
    ending: ObjectArray,
    at_once: BoolArray,
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
    ending
        The ending that is possible in the state of each, (rows,).
    at_once
        Who told more at once than would have been asked, (rows,).
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
    states, which = find_states(assessment, rows[asked], group, at_once[asked])
    for i, state in enumerate(states):
        made: Certified | None = find_certificate(fitted, state, later, progress)
        theirs = asked[which == i]
        pending[theirs] = made is None
        for name, mine in (made or {}).items():
            if mine.certified and mine.tau is not None:
                certificates[theirs[ending[theirs] == name]] = mine
    return certificates, pending


def find_states(
    assessment: Assessment, rows: IntArray, group: ObjectArray, at_once: BoolArray | None = None
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
    at_once
        Who told more at once than would have been asked, (rows,); None: nobody.

    Returns
    -------
    tuple
        The states, and the position of each person's state among them, (rows,).
    """
    fitted, people = assessment.fitted, assessment.people
    known, start = people.known[rows] & fitted.relevant, fitted.background.start
    declined = assessment.declined[rows]
    prices, names = people.costs[rows], np.array(fitted.schema.names)
    once = np.zeros(len(rows), dtype=bool) if at_once is None else at_once
    columns = np.c_[known, declined, prices, pd.factorize(group[rows])[0], once]
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
            at_once=bool(once[i]),
        )
        for i in first
    ]
    return states, which.ravel()


def _words(
    signal: Float64Array, tau: Float64Array, ending: ObjectArray, at_end: BoolArray
) -> ObjectArray:
    """The status under a certified threshold: that of the ``ending`` which is possible, else
    ``"unsure"`` or ``"ask"``, or ``"off_path"`` where there is no threshold, (people,).

    Parameters
    ----------
    signal, tau
        What the rule watches, and its threshold, (people,); NaN: there is none.
    ending
        The name of the ending, (people,).
    at_end
        Who has been asked everything, (people,).
    """
    words = np.where(signal <= tau, ending, np.where(at_end, "unsure", "ask"))
    return np.where(np.isnan(tau), "off_path", words).astype(object)


def find_standing(
    assessment: Assessment,
    k: int,
    assess: Assess,
    group: ObjectArray,
    visited: Float32Array,
    later: CertifyLater | None,
    progress: Progress | None,
) -> tuple[Standing, Certificate | None]:
    """The standing of the one person of ``assessment``, and the certificate of the ending that they
    are told; None: nothing is promised.

    The arguments are those of ``find_standings``.
    """
    fitted = assessment.fitted
    standings = find_standings(
        assessment, k, assess, group, visited=visited, later=later, progress=progress
    )
    signal, tau = (
        None if np.isnan(value[0]) else float(value[0])
        for value in (standings.signal, standings.tau)
    )
    standing = Standing(
        standings.status[0],
        standings.ending[0],
        bool(standings.promised[0]),
        bool(assessment.next[0] < 0),
        signal,
        tau,
    )
    path = standings.path
    if not standings.for_wishes.any():
        if standing.ending is None or not standing.promised:
            return standing, None
        return standing, fitted.certificate_for(group[0], standing.ending)
    deviates = {
        "start": path.missing_start,
        "order": path.other_order,
        "passed": standings.passed,
    }
    found = {name for name, who in (deviates | assessment.wishes).items() if who[0]}
    if not found and standings.at_once[0]:
        found = {"at_once"}
    deviations = tuple(name for name in DEVIATIONS if name in found)
    since = None
    if standings.passed[0]:
        least = {e.name: float(fitted.tau_for(group, e.name)[0]) for e in fitted.promise.endings}
        since = next(
            i for i, state in enumerate(path.X[:-1]) if assess(state[None]).stops(least, k)[0]
        )
    made = standings.certificate[0] if standing.promised else None
    return replace(standing, since=since, deviations=deviations, for_wishes=True), made
