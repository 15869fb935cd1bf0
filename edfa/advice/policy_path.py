"""The policy's own path: from the start set on, what the policy asks, and nothing else.

A certificate speaks of people on this path. The certified rule acts at the first plan whose signal is low enough, so
it also matters whether it would have stopped a person at an earlier state.
"""

from dataclasses import dataclass

import numpy as np

from edfa.advice.assessment import Assess, Assessment
from edfa.typing import BoolArray, Float32Array, IntArray

__all__ = ["PolicyPath", "follow_policy"]


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

        The last of these states first: there the rule stops most often, and who was stopped is not asked about again.
        """
        stopped = np.zeros(len(asked), dtype=bool)
        is_last = np.append(self.person[1:] != self.person[:-1], True)
        left = np.flatnonzero(asked[self.person] & ~is_last)
        while len(left):
            latest = left[np.append(self.person[left][1:] != self.person[left][:-1], True)]
            stopped[self.person[latest[assess(self.X[latest]).stops(tau, k)]]] = True
            left = left[~np.isin(left, latest) & ~stopped[self.person[left]]]
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
