"""One plan: what to change, from what to what, and what it leads to; or why there is none."""

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Change", "NoPlan", "Plan", "Reason"]

Reason = Literal[
    "already_there", "nothing_flips", "only_locked_features_flip", "range_too_narrow", "more_information_needed"
]


@dataclass(frozen=True)
class Change:
    """One fact, from what to what. Where ``low`` and ``high`` are given, any value between them does as well."""

    feature: str
    before: Any
    after: Any
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        within = "" if self.low is None or self.low == self.high else f" ({self.low} to {self.high})"
        return f"{self.feature}: {self.before} → {self.after}{within}"


@dataclass(frozen=True)
class Plan:
    """A set of changes that gives another decision; none of them can be left out.

    ``l2`` counts label codes as numbers (the paper's), ``heom`` a changed category as one; ``effort`` is in the card's
    units, times the person's weights. ``probability_before`` and ``after`` are of the class that is reached. ``inlier``
    says whether training people are like the result, ``inlier_base`` what share of real people are (see
    ``edfa.recourse.plausible``). ``invalidation`` is the chance that it fails when its numbers are met only
    roughly (from ``PROBE``). ``survival`` is the chance that it still holds when everything is known, with its standard
    error (from ``SurvivalSearch`` or ``survive``). ``donor`` is the training row whose values it takes. ``unknown``
    was not known.
    """

    id: str
    person: int
    seed: int
    step: int
    number: int
    changes: tuple[Change, ...]
    reached: str
    probability_before: float
    probability_after: float
    l0: int
    l2: float
    heom: float
    effort: float
    valid: bool
    donor: int | None
    inlier: bool | None
    inlier_base: float | None
    invalidation: float | None
    survival: float | None
    survival_error: float | None
    unknown: tuple[str, ...]

    @property
    def chance(self) -> str:
        """What the chance of the class that is reached was and will be."""
        return f"{self.probability_before:.0%} → {self.probability_after:.0%}"

    def __str__(self) -> str:
        said = [f"{c.feature}: {c.before} → {c.after}" for c in self.changes]
        return f"{', '.join(said)} ({self.chance} {self.reached})"


@dataclass(frozen=True)
class NoPlan:
    """Why a person in a state has no plan. ``unlock`` names what they may be asked next, likeliest first."""

    person: int
    seed: int
    step: int
    reason: Reason
    unlock: tuple[str, ...] = ()
