"""The course that a certificate speaks of: from the start set on, what the policy asks, and nothing else.

Whoever is on it can be told to act under the certificate; the rule stops at the first plan whose signal is low enough,
so that it also matters whether it would have stopped before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.advice.assessment import Assessment, Fitted
from edfa.certification.replay import uncertainty
from edfa.typing import BoolArray, Float32Array, IntArray

__all__ = ["Chain", "Courses"]


class Chain:
    """One person's course, a state a step, as far as what they have told goes; it grows with what they tell."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted
        self._states: list[Assessment] = []

    def reach(self, looks: list[Assessment]) -> list[Assessment]:
        """The states up to now. ``looks`` are where the person has been, the last one is where they are."""
        facts = looks[-1].X
        if not self._states:
            self._states = [self._at(np.where(self.fitted.start, facts, np.float32(np.nan)), looks)]
        while (asked := int(self._states[-1].next[0])) >= 0 and not np.isnan(facts[0, asked]):
            then = self._states[-1].X.copy()
            then[0, asked] = facts[0, asked]
            self._states.append(self._at(then, looks))
        return self._states

    def _at(self, facts: Float32Array, looks: list[Assessment]) -> Assessment:
        """The state of these facts and no wishes; one that was looked at before where there is one."""
        for look in looks:
            if look.plain and np.array_equal(look.X, facts, equal_nan=True):
                return look
        return Assessment.of(self.fitted, facts)

    def off(self, look: Assessment, last: Assessment, **wishes: Any) -> tuple[str, ...]:
        """How a person differs from those the certificate speaks of: facts, order, and ``wishes`` they have."""
        known, start = look.known[0], self.fitted.start
        missing, other = (start & ~known).any(), (known != last.known[0])[~start].any()
        differs = {"start": missing, "order": other} | wishes
        return tuple(name for name, so in differs.items() if so)


@dataclass(frozen=True, eq=False)
class Courses:
    """The courses of many people without wishes, and who of them is on theirs (``on``).

    ``states`` are those before the last at which the rule might stop; ``who`` are their people, in order.
    """

    fitted: Fitted
    on: BoolArray
    states: Float32Array
    who: IntArray

    @classmethod
    def of(cls, fitted: Fitted, X: Float32Array) -> "Courses":  # noqa: N803
        """Of people by what is known."""
        run, known = fitted.course(X), ~np.isnan(X)
        on = (((run.when >= 0) & known) == known).all(axis=1) & known[:, fitted.start].all(axis=1)
        before = np.ones(len(run), dtype=bool)
        before[run.last] = False
        before &= on[run.who] & (run.decision != fitted.favourable)
        if fitted.signal == "uncertainty" and fitted.tau is not None:  # which is known without a plan
            before &= uncertainty(run.chances) <= fitted.tau
        rows = np.flatnonzero(before)
        return cls(fitted, on, run.X[rows], run.who[rows])

    def passed(self, tau: float, k: int, asked: BoolArray) -> BoolArray:
        """Who of the people ``asked`` about could have acted before.

        The last state first: there the rule stops most often, and who is known to have passed one is not asked again.
        """
        found = np.zeros(len(self.on), dtype=bool)
        left = np.flatnonzero(asked[self.who])
        while len(left):
            last = left[np.r_[self.who[left][1:] != self.who[left][:-1], True]]
            found[self.who[last[Assessment.of(self.fitted, self.states[last]).stops(tau, k)]]] = True
            left = left[~np.isin(left, last) & ~found[self.who[left]]]
        return found
