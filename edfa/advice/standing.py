"""Whether people may act now: one function for a single interview and for a file of a million.

A certificate speaks of people on the policy's own path: from the start set on, what the policy asks, and nothing else.
Its rule acts at the first plan whose signal is low enough, so that it also matters whether it would have stopped a
person at an earlier state of that path.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edfa.advice.answers import DEVIATIONS, Standing, Status
from edfa.advice.assessment import Assess, Assessment
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray, ObjectArray

__all__ = ["PolicyPath", "Standings", "find_standing", "find_standings", "follow_policy"]


@dataclass(frozen=True, eq=False)
class PolicyPath:
    """The states that people pass, sorted by person and step.

    ``person`` (states,) is the row of the person, ``X`` (states, features) what is known in the state, the start set
    first. ``missing_start`` and ``other_order`` (people,) say who is not on the path: facts of the start set are
    missing, or others were told than the policy asked for.
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

    def passed(self, tau: float, k: int, asked: BoolArray, assess: Assess) -> BoolArray:
        """Who of the people ``asked`` about (people,) was stopped by the rule at an earlier state, (people,).

        Of many people the last of these states first: there the rule stops most often, and who was stopped is not asked
        about again. Of one person the first, since it is also told when they could have acted.
        """
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
    """The paths of some people, by row, as far as what they have told goes; ``person`` counts among ``rows``."""
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
    return PolicyPath(person[order], facts[order], np.asarray((start & ~known).any(axis=1)), np.asarray(other))


class Standings(NamedTuple):
    """Everybody's status and signal, (people,) each; ``planned`` are the rows that ``path`` is about, if any."""

    status: ObjectArray
    signal: Float64Array
    planned: IntArray
    path: PolicyPath | None


def find_standings(assessment: Assessment, k: int, assess: Assess) -> Standings:
    """Whether each person may act now, in the words of ``Standing.status``.

    ``k`` as for plans that were made already; ``assess`` makes the assessments of earlier states.
    """
    refused, signal, tau = assessment.refused, assessment.signal(k), assessment.fitted.tau
    status = np.full(len(assessment), "granted", dtype=object)
    status[refused] = "no_plan"
    planned = np.flatnonzero(refused & ~np.isnan(signal))
    if tau is None or not len(planned):
        status[planned] = "not_certified"
        return Standings(status, signal, planned, None)
    path = follow_policy(assessment, planned, assess)
    wishes = np.logical_or.reduce([wish[planned] for wish in assessment.wishes.values()])
    on_path = path.on_path & ~wishes
    at_end, low = assessment.next[planned] < 0, signal[planned] <= tau
    passed = path.passed(tau, k, on_path & ~at_end, assess)
    words = np.where(passed, "passed", np.where(low, "act", np.where(at_end, "unsure", "ask")))
    status[planned] = np.where(on_path, words, "off_path")
    return Standings(status, signal, planned, path)


def find_standing(assessment: Assessment, k: int, assess: Assess) -> Standing:
    """The standing of the one person of ``assessment``."""
    tau, standings = assessment.fitted.tau, find_standings(assessment, k, assess)
    status: Status = standings.status[0]
    if status in ("granted", "no_plan"):
        return Standing(status, tau=tau)
    signal, path = float(standings.signal[0]), standings.path
    if path is None or tau is None:
        return Standing(status, signal)
    if status == "off_path":
        deviates = {"start": path.missing_start, "order": path.other_order} | assessment.wishes
        return Standing(status, signal, tau, deviations=tuple(name for name in DEVIATIONS if deviates[name][0]))
    since = None
    if status == "passed":
        since = next(i for i, state in enumerate(path.earlier(0)) if assess(state[None]).stops(tau, k)[0])
    return Standing(status, signal, tau, since)
