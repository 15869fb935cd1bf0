"""Why somebody was refused: exact Shapley values against granted people nearest to the line, on the
same known facts.

A lender must name the principal reasons of a refusal, from the decision itself. Each fact of a
person is compared with what it is for people who were granted, only just; its contribution is the
Shapley value of the difference. On an additive score that is the number of points by which the
person falls short of them in each factor, the method that the commentary on Regulation B (12 CFR
1002.9(b)(2), comment 5) names first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from edfa.errors import DataError, SettingError
from edfa.predictors.base import ROWS_PER_CALL, Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

LEAST_SHARE = 0.05  # of the shortfall, below which a fact is no principal reason
MAX_REASONS = 4  # reasons that are named
LEAST_MOVE = 1e-9  # in log odds, below which a score is the same
LEAST_PROBABILITY = 1e-12  # probability whose logarithm is still taken
MeanScores: TypeAlias = Callable[[BoolArray], Float64Array]
"""v(S) of each subset, (subsets,), from which facts are in it, (subsets, facts)."""


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

    Parameters
    ----------
    features
        The positions of these features.
    contribution
        In log odds; negative if it tells against the person.
    share
        That as a share of the whole distance to the people they are compared with; more than 1 if
        other facts make up for some of it.
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
    unfavourable
        (features,) facts that may be given as a reason: put to what they are for the people
        compared with, each alone does not lower the score, on average. What is good of a person is
        none, although it may tell against them beside other facts.
    """

    contributions: Float64Array
    errors: Float64Array
    margin: float
    baseline: float
    compared: IntArray
    groups: IntArray
    unfavourable: BoolArray

    @property
    def people(self) -> int:
        """How many people the person is compared with."""
        return len(self.compared)

    @property
    def ranked(self) -> tuple[Shortfall, ...]:
        """What tells against the person, the largest contribution first; ties in the order of the
        features. A reason has at least one fact that tells against them and is unfavourable.
        """
        known = np.flatnonzero(~np.isnan(self.contributions))
        # Below zero: everybody in the comparison passes, the person does not.
        whole = self.margin - self.baseline
        against = []
        for group in np.unique(self.groups[known]):
            members = known[self.groups[known] == group].tolist()
            total = float(self.contributions[members].sum())
            if total < 0 and any(map(self.speaks_against, members)):
                against.append(Shortfall(tuple(members), total, total / whole))
        return tuple(sorted(against, key=lambda part: (part.contribution, part.features)))

    def speaks_against(self, feature: int) -> bool:
        """Whether a fact may be named as a reason, by the position of its feature."""
        return bool(self.contributions[feature] < 0 and self.unfavourable[feature])

    def principal(self) -> tuple[Shortfall, ...]:
        """At most four of ``ranked``, each at least a twentieth of the whole distance."""
        return tuple(reason for reason in self.ranked[:MAX_REASONS] if reason.share >= LEAST_SHARE)


def principal_reasons(
    x: Float32Array,
    predictor: Predictor,
    rows: Float32Array,
    favourable: int,
    *,
    threshold: float | None = None,
    groups: Sequence[int] | None = None,
    best: BoolArray | None = None,
    effort: Effort = Effort(),  # noqa: B008
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
    best
        (features,) facts that are as good as can be, and so never a reason; None: none is known to
        be.
    effort
        The number of people in B, and of subsets or permutations.

    Returns
    -------
    PrincipalReasons
        The contributions, and whom the person was compared with.

    Raises
    ------
    SettingError
        If the threshold is no probability.
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

    def score(values: Float32Array) -> Float64Array:
        """Log odds less those at the line, (people,), from values (people, known features)."""
        probabilities = predictor.predict_known(known, np.ascontiguousarray(values))
        wanted = np.clip(probabilities[:, favourable], LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        if threshold is not None:
            line = np.log(threshold / (1 - threshold))
            return np.asarray(np.log(wanted / (1 - wanted)) - line)
        rest = np.delete(probabilities, favourable, axis=1).max(axis=1)
        return np.asarray(np.log(wanted) - np.log(np.clip(rest, LEAST_PROBABILITY, None)))

    own = x[known]
    margin = float(score(own[None])[0])
    if margin >= 0:
        raise DataError("this person is granted what they ask for; a refusal alone has reasons")
    margins = score(rows[:, known])
    granted = np.flatnonzero(margins > 0)
    if not len(granted):
        raise DataError(
            "no training person is granted on these facts alone; there is nobody to compare with"
        )
    near = granted[np.argsort(margins[granted], kind="stable")[: effort.compared]]
    mean_scores = _mean_scores_of(score, own, rows[near][:, known])
    unfavourable = np.zeros(len(x), dtype=bool)
    # Where either of two facts refuses, one of them alone does not raise it.
    unfavourable[known] = mean_scores(~np.eye(len(own), dtype=bool)) >= margin - LEAST_MOVE
    if best is not None:
        unfavourable &= ~best
    found = np.full((2, len(x)), np.nan)
    if len(own) <= effort.exact:
        found[:, known] = _exact(mean_scores, len(own)), np.zeros(len(own))
    else:
        found[:, known] = _sampled(mean_scores, len(own), effort.permutations)
    numbers = np.arange(len(x)) if groups is None else np.asarray(groups, dtype=np.intp)
    baseline = float(margins[near].mean())
    return PrincipalReasons(found[0], found[1], margin, baseline, near, numbers, unfavourable)


def _mean_scores_of(
    score: Callable[[Float32Array], Float64Array], own: Float32Array, others: Float32Array
) -> MeanScores:
    """v of each of some subsets: a function of which facts have the person's own value.

    ``own`` (facts,) are the person's facts, ``others`` (compared people, facts) theirs.
    """

    def mean_scores(inside: BoolArray) -> Float64Array:
        block, means = max(1, ROWS_PER_CALL // len(others)), []
        for first in range(0, len(inside), block):
            some = inside[first : first + block]
            rows = np.where(some[:, None], own, others).reshape(-1, len(own))
            means.append(score(rows).reshape(len(some), -1).mean(axis=1))
        return np.concatenate(means)

    return mean_scores


def _exact(mean_scores: MeanScores, n: int) -> Float64Array:
    """Shapley values of n facts from all subsets, (n,)."""
    subsets = np.arange(2**n)
    inside = (subsets[:, None] >> np.arange(n) & 1).astype(bool)
    means, sizes = mean_scores(inside), inside.sum(axis=1)
    weights = np.array([1 / (n * comb(n - 1, size)) for size in range(n)])
    values = np.empty(n)
    for fact in range(n):
        without = subsets[~inside[:, fact]]
        values[fact] = np.sum(
            weights[sizes[without]] * (means[without | 1 << fact] - means[without])
        )
    return values


def _sampled(
    mean_scores: MeanScores, n: int, permutations: int
) -> tuple[Float64Array, Float64Array]:
    """Shapley values of n facts from permutations, each with its reverse, (n,), and their standard
    errors.
    """
    random, pairs = np.random.default_rng(0), np.empty((permutations, 2, n))
    for pair in pairs:
        order = random.permutation(n)
        for gains, way in zip(pair, (order, order[::-1]), strict=True):
            # What each fact adds when the person's own facts come in this order.
            position = np.argsort(way)
            gains[way] = np.diff(mean_scores(position < np.arange(n + 1)[:, None]))
    means = pairs.mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(permutations)
