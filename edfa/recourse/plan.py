"""One plan: what to change, from what to what, and what it leads to; or why there is none."""

from dataclasses import dataclass
from typing import Any, Literal

from edfa.text import summaries

__all__ = ["Change", "NoPlan", "Plan", "Reason"]

Reason = Literal[
    "already_there",
    "rules",
    "too_few_people_there",
    "does_not_hold",
    "range_too_narrow",
    "only_locked_features_flip",
    "more_information_needed",
    "nothing_flips",
]


@dataclass(frozen=True)
class Change:
    """One changed fact, in people's words: its value ``before`` and ``after``.

    Any value from ``low`` to ``high`` does as well as ``after``. If one of the two is None, that
    end is open: with ``low`` None, ``high`` or less does. If both are, nothing is known of other
    values.
    """

    feature: str
    before: Any
    after: Any
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        if self.low is None and self.high is None:
            within = ""
        elif self.low is None or self.high is None:
            within = f" ({self.high} or less)" if self.low is None else f" ({self.low} or more)"
        else:
            within = "" if self.low == self.high else f" ({self.low} to {self.high})"
        return f"{self.feature}: {self.before} → {self.after}{within}"


@dataclass(frozen=True)
class Plan:
    """A set of changes for one person in one state of knowledge, after which the model decides
    otherwise.

    Parameters
    ----------
    id
        The same changes for the same person, seed and step have the same id.
    person, seed, step
        The numbers of the person's row in the batch.
    number
        The rank among the person's plans, from 0.
    changes
        What to change.
    reached
        The name of the class that is decided then.
    probability_before, probability_after
        The model's probability of that class, now and then.
    l0
        The number of changes.
    l2, heom
        The distance between before and after, each feature divided by its range among training
        people: ``l2`` counts label codes as numbers (the paper's), ``heom`` counts a changed
        category as one.
    effort
        In the card's units, times the person's weights.
    valid
        Whether the model, asked about the changed facts, decides as desired. False only from a
        searcher that breaks its promise.
    inlier, inlier_base
        Whether training people are like the result, and the share of real people of whom that is
        true; None unless ``edfa.recourse.add_plausibility`` was asked.
    invalidation
        The probability that the plan fails when its numbers are met only roughly; None unless it is
        from ``PROBE``.
    survival, survival_error
        The probability that decision and plan still hold when everything is known, and its standard
        error; None unless it is from ``SurvivalSearch`` or ``edfa.recourse.add_survival``.
    unknown
        The features that were not known.
    support, support_share
        The number of training people whose values lie where the plan leads, from its values to the
        farthest that hold, for all its changes together; and the share of them with the favourable
        outcome, None if there is nobody. Both are None in the paper's reading.
    months
        How long the plan takes; 0: no time.
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
    inlier: bool | None
    inlier_base: float | None
    invalidation: float | None
    survival: float | None
    survival_error: float | None
    unknown: tuple[str, ...]
    support: int | None = None
    support_share: float | None = None
    months: float = 0.0

    @property
    def chance(self) -> str:
        """The probability of the class that is reached, before and after, as text such as ``23% →
        68%``.
        """
        return f"{self.probability_before:.0%} → {self.probability_after:.0%}"

    def __str__(self) -> str:
        changes = [f"{c.feature}: {c.before} → {c.after}" for c in self.changes]
        return f"{', '.join(changes)} ({self.chance} {self.reached})"

    def _repr_html_(self) -> str:
        return summaries.plan_html(self)


@dataclass(frozen=True)
class NoPlan:
    """Why a person in one state of knowledge has no plan.

    ``person``, ``seed`` and ``step`` are the numbers of their row in the batch. ``reason`` is

    - ``"already_there"``: the decision is the desired one;
    - ``"rules"``: there would be a plan, but rules, the operator's or the person's, forbid it;
    - ``"too_few_people_there"``: there would be one, but too few training people are where it
      leads;
    - ``"does_not_hold"``: there would be one, but it fails a little further along, or works only
      because time passes meanwhile;
    - ``"range_too_narrow"``: a feature that may change would turn it, but at no value that may be
      proposed;
    - ``"only_locked_features_flip"``: only a feature that must not change would turn it;
    - ``"more_information_needed"``: nothing known turns it, but not everything is known: ``unlock``
      names the features to ask for, those first that a known spouse waits for;
    - ``"nothing_flips"``: nothing turns it.

    ``rules`` names the rules that stand in the way, as ``"max_changes = 1"``; ``loosening`` says
    the smallest loosening that would give a plan, and which. Both are empty if no rule does.
    """

    person: int
    seed: int
    step: int
    reason: Reason
    unlock: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    loosening: str = ""
