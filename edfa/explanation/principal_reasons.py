"""Why somebody was refused: exact Shapley values against granted people nearest to the line, on the
same known facts.

A lender must name the principal reasons of a refusal, from the decision itself. Each fact of a
person is compared with what it is for people who were granted, only just; its contribution is the
Shapley value of the difference. On an additive score that is the number of points by which the
person falls short of them in each factor, the method that the commentary on Regulation B (12 CFR
1002.9(b)(2), comment 5) names first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from edfa.errors import DataError, SettingError
from edfa.predictors.base import ROWS, Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Effort", "PrincipalReasons", "Shortfall", "principal_reasons"]

LEAST_SHARE = 0.05  # of the shortfall, below which a fact is no principal reason
MOST = 4  # reasons that are named
SMALLEST = 1e-12  # probability whose logarithm is still taken


class Effort(NamedTuple):
    """How much a model is asked for the reasons of one refusal.

    Parameters
    ----------
    compared
        The number of granted people, nearest to the line, that the person is compared with.
    exact
        The number of facts up to which every subset is tried.
    permutations
        Of more facts, how many permutations are drawn, each with its reverse.
    """

    compared: int = 64
    exact: int = 12
    permutations: int = 512


@dataclass(frozen=True)
class Shortfall:
    """What facts that share one reason contribute to a refusal.

    ``features`` are positions of features; ``contribution`` is in log odds, negative if it tells
    against the person; ``share`` is that as a share of the whole distance to the people they are
    compared with; more than 1 if other facts make up for some of it.
    """

    features: tuple[int, ...]
    contribution: float
    share: float


@dataclass(frozen=True, eq=False)
class PrincipalReasons:
    """The contributions of all known facts to one refusal.

    Parameters
    ----------
    contributions
        (features,) in log odds; negative: it tells against the person. NaN: not known, or the model
        is not shown it.
    errors
        (features,) standard errors; zero where every subset of facts was tried.
    margin
        The person's log odds less those at the line; negative, since they were refused.
    baseline
        The mean of that over the people they are compared with.
    compared
        (people,) the rows of these training people, the nearest to the line first.
    groups
        (features,) facts with the same number share one reason, whose contribution is their sum.
    """

    contributions: Float64Array
    errors: Float64Array
    margin: float
    baseline: float
    compared: IntArray
    groups: IntArray

    @property
    def people(self) -> int:
        """How many people the person is compared with."""
        return len(self.compared)

    @property
    def ranked(self) -> tuple[Shortfall, ...]:
        """What tells against the person, the largest contribution first; ties in the order of the
        features.
        """
        known = np.flatnonzero(~np.isnan(self.contributions))
        totals: dict[int, list[int]] = {}
        for position in known.tolist():
            totals.setdefault(int(self.groups[position]), []).append(position)
        sums = [(tuple(some), float(self.contributions[some].sum())) for some in totals.values()]
        against = sorted(
            ((some, total) for some, total in sums if total < 0),
            key=lambda part: (part[1], part[0]),
        )
        whole = (
            self.margin - self.baseline
        )  # below zero: everybody in the comparison passes, the person does not
        return tuple(Shortfall(some, total, total / whole) for some, total in against)

    def principal(self, most: int = MOST, least: float = LEAST_SHARE) -> tuple[Shortfall, ...]:
        """At most ``most`` of ``ranked``, each at least the share ``least`` of the whole
        distance.
        """
        return tuple(reason for reason in self.ranked[:most] if reason.share >= least)


def principal_reasons(
    x: Float32Array,
    predictor: Predictor,
    rows: Float32Array,
    favourable: int,
    *,
    threshold: float | None = None,
    groups: Sequence[int] | None = None,
    effort: Effort = Effort(),  # noqa: B008
    seed: int = 0,
) -> PrincipalReasons:
    """What each known fact contributed to the refusal of one person.

    With A the known facts that the model is shown and B granted training people nearest to the line
    on the same A,

        v(S) = mean over b in B of g(x on S, b on A without S)

    where g is the log odds of the favourable class, less those at the line; a fact's contribution
    is its Shapley value in v. They add up to g(x) less the mean of g over B. Of few facts every
    subset is tried; of more, permutations in pairs with their reverse are drawn, and the result has
    standard errors.

    Parameters
    ----------
    x
        (features,) encoded facts of a person; NaN: not known. What is not known is never a reason.
    predictor
        The fitted model, as it is shown to people.
    rows
        (training people, features) encoded, complete.
    favourable
        The position of the favourable class.
    threshold
        The probability of the favourable class that is needed; None: it must be the likeliest.
    groups
        (features,) facts with the same number share one reason. None: each has its own.
    effort
        The number of people in B, and of subsets or permutations.
    seed
        Of the permutations.

    Raises
    ------
    DataError
        If the person is granted, nothing is known of them, or no training person with these facts
        is granted.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> refused = table.test.X[model.predict(table.test.X) == 0][0].copy()
    >>> refused[9:] = np.nan
    >>> reasons = principal_reasons(refused, model, table.train.X, favourable=1)
    >>> bool(np.isclose(np.nansum(reasons.contributions), reasons.margin - reasons.baseline))
    True
    """
    if threshold is not None and not 0 < threshold < 1:
        raise SettingError(f"threshold: a probability between 0 and 1, not {threshold!r}")
    known = ~np.isnan(x) & predictor.varies_
    if not known.any():
        raise DataError(
            "nothing is known that the decision could have been made from; there is no "
            "reason to name"
        )
    score = _Score(predictor, known, favourable, threshold)
    own = x[known][None]
    margin = float(score(own)[0])
    if margin >= 0:
        raise DataError("this person is granted what they ask for; a refusal alone has reasons")
    margins = score(rows[:, known])
    granted = np.flatnonzero(margins > 0)
    if not len(granted):
        raise DataError(
            "no training person is granted on these facts alone; there is nobody to compare with"
        )
    near = granted[np.argsort(margins[granted], kind="stable")[: effort.compared]]
    others = rows[near][:, known]
    found = np.full((2, len(x)), np.nan)
    if known.sum() <= effort.exact:
        found[:, known] = _exact(score, own[0], others)
    else:
        found[:, known] = _sampled(score, own[0], others, effort.permutations, seed)
    numbers = np.arange(len(x)) if groups is None else np.asarray(groups, dtype=np.intp)
    contributions, errors = found
    baseline = float(margins[near].mean())
    return PrincipalReasons(contributions, errors, margin, baseline, near, numbers)


@dataclass(frozen=True, eq=False)
class _Score:
    """The log odds of the favourable class, less those at the line, of people who know the same."""

    predictor: Predictor
    known: BoolArray
    favourable: int
    threshold: float | None

    def __call__(self, values: Float32Array) -> Float64Array:
        """(people,) from values (people, known features)."""
        probabilities = self.predictor.predict_known(self.known, np.ascontiguousarray(values))
        wanted = np.clip(probabilities[:, self.favourable], SMALLEST, 1 - SMALLEST)
        if self.threshold is not None:
            return np.asarray(
                np.log(wanted / (1 - wanted)) - np.log(self.threshold / (1 - self.threshold))
            )
        rest = np.delete(probabilities, self.favourable, axis=1).max(axis=1)
        return np.asarray(np.log(wanted) - np.log(np.clip(rest, SMALLEST, None)))


def _mean_scores(
    score: _Score, own: Float32Array, others: Float32Array, kept: BoolArray
) -> Float64Array:
    """v(S) of each subset, (subsets,); ``kept`` (subsets, facts) marks the facts that have
    the person's own value.
    """
    block, means = max(1, ROWS // len(others)), []
    for first in range(0, len(kept), block):
        some = kept[first : first + block]
        rows = np.where(some[:, None], own, others).reshape(-1, len(own))
        means.append(score(rows).reshape(len(some), -1).mean(axis=1))
    return np.concatenate(means)


def _exact(
    score: _Score, own: Float32Array, others: Float32Array
) -> tuple[Float64Array, Float64Array]:
    """Shapley values from all subsets, (facts,), and their errors, which are zero."""
    n = len(own)
    subsets = np.arange(2**n)
    kept = (subsets[:, None] >> np.arange(n) & 1).astype(bool)
    means, sizes = _mean_scores(score, own, others, kept), kept.sum(axis=1)
    weights = np.array([1 / (n * comb(n - 1, size)) for size in range(n)])
    values = np.empty(n)
    for fact in range(n):
        without = subsets[~kept[:, fact]]
        values[fact] = np.sum(
            weights[sizes[without]] * (means[without | 1 << fact] - means[without])
        )
    return values, np.zeros(n)


def _sampled(
    score: _Score, own: Float32Array, others: Float32Array, permutations: int, seed: int
) -> tuple[Float64Array, Float64Array]:
    """Shapley values from permutations, each with its reverse, (facts,), and their standard
    errors.
    """
    draws = np.stack(
        [_gains(score, own, others, order) for order in _orders(len(own), permutations, seed)]
    )
    pairs = draws.reshape(-1, 2, len(own)).mean(axis=1)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))


def _orders(facts: int, permutations: int, seed: int) -> Iterator[IntArray]:
    random = np.random.default_rng(seed)
    for _ in range(permutations):
        order = random.permutation(facts)
        yield order
        yield order[::-1]


def _gains(score: _Score, own: Float32Array, others: Float32Array, order: IntArray) -> Float64Array:
    """What each fact adds when the person's own facts come in this order, (facts,)."""
    kept = np.zeros((len(own) + 1, len(own)), dtype=bool)
    for step, fact in enumerate(order.tolist()):
        kept[step + 1 :, fact] = True
    gains = np.empty(len(own))
    gains[order] = np.diff(_mean_scores(score, own, others, kept))
    return gains
