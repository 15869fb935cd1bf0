"""Two published ways to plans that outlast the model, for people of whom everything is known: RobX and BetaRCE.

Written anew from their published descriptions, for comparison in benchmarks/promise.py. Both take a plan that works today (``base``, from any
searcher) and move it until they trust it. Neither knows questions, cards, directions or a promise about people.

    python benchmarks/peers/robust_recourse.py     checks both against closed forms; it says nothing if all is well

Distances are between encoded rows: a number counts by its difference in ``scale`` (one standard deviation of the
training people), a category counts 1 where it differs. Ordinal features are numbers here, and may
end between two levels; mark them in ``categorical`` to keep them on levels.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import betaincinv
from scipy.stats import norm as normal

from edfa.errors import DataError, SettingError
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

ROWS = 200_000  # shown to a model at once
Norm = Literal[1, 2]


class Model(Protocol):
    """The model that decides today: an edfa ``Predictor``."""

    def predict_proba(self, X: Float32Array) -> Float64Array: ...
    def decide(self, probabilities: Float64Array) -> IntArray: ...


class Models(Protocol):
    """Models drawn from the admissible changes: an edfa ``Committee``."""

    def __len__(self) -> int: ...
    def decide(self, member: int, rows: Float32Array) -> IntArray: ...


def robx(
    rows: Float32Array,
    base: Float32Array,
    model: Model,
    train: Float32Array,
    favourable: int,
    *,
    tau: float = 0.5,
    K: int = 1000,
    sigma: float = 0.1,
    c: int = 5,
    step: float = 0.05,
    norm: Norm = 1,
    categorical: BoolArray | None = None,
    seed: int = 0,
) -> Float32Array:
    """Move plans on a straight line towards stable training people until they are stable themselves.

    A base plan of stability ``tau`` or more stays. Any other goes, for each of the ``c`` nearest *conservative*
    training people (the model decides for ``favourable``, and their stability is at least ``tau``), on the line to
    that one until its own stability is at least ``tau``. Of these ends the one nearest to the person is kept.

    Parameters
    ----------
    rows
        Encoded people, everything known, (people, features).
    base
        Each one's base plan as a whole row, (people, features); a row with NaN: there is none.
    model
        The fitted model that decides.
    train
        Encoded training people, (training people, features). Their standard deviations are the scale of everything.
    favourable
        The code of the class that plans lead to.
    tau
        The stability that is asked for, on the scale of the model's probability. What is much differs between data
        sets, and more so where decisions have another threshold than 1/2: look at ``StabilityTest.stability`` of
        training people first.
    K, sigma
        How many neighbours stability looks at, and their standard deviation, in ``train``'s.
    c
        How many conservative training people are tried.
    step
        The share of the line that is gone at once.
    norm
        1 or 2: whether L1 or L2 says who is near.
    categorical
        The features that are categories, (features,); None: none.
    seed
        Decides the neighbours.

    Returns
    -------
    Float32Array
        The plans as whole rows, (people, features); NaN for whoever has no base plan, or when nobody in ``train`` is
        conservative.

    Notes
    -----
    Departures: categories are neither disturbed nor moved; those that differ jump at the end of the line, so a plan
    that needs one of them is the training person's whole row. A point is stable only if the model also decides for
    ``favourable`` there. All points share the same K disturbances, so that the end of every line is as stable as it
    was when it was chosen. ``tau``, ``K``, ``sigma``, ``c`` and ``step`` have defaults chosen here, which were not
    checked against the paper's experiments: report several values of ``tau``, which trades distance for robustness.

    References
    ----------
    Dutta, Long, Mishra, Tilli, Magazzeni: Robust Counterfactual Explanations for Tree-Based Ensembles. ICML 2022.
    """
    if K < 1 or c < 1 or sigma < 0 or not 0 < step <= 1:
        raise SettingError(
            "K and c are at least 1, sigma at least 0, and step above 0 and at most 1"
        )
    jumps, scale = _mask(categorical, rows), standard_deviations(train)
    test = StabilityTest(model, favourable, disturbances(train, jumps, K, sigma, seed), tau)
    plans, left = _keep(rows, base, test.passed)
    donors = train[model.decide(model.predict_proba(train)) == favourable]
    if not len(left) or not len(donors):
        return plans
    order = np.argsort(distances(base[left], donors, scale, jumps, norm), axis=1, kind="stable")
    person, donor = _conservative(order, donors, test, c)
    ends = _go(base[left[person]], donors[donor], jumps, step, test)
    far = _lengths(ends - rows[left[person]], scale, jumps, norm)
    best = np.lexsort((far, person))
    nearest = best[np.unique(person[best], return_index=True)[1]]
    plans[left[person[nearest]]] = ends[nearest]
    return plans


@dataclass(frozen=True, eq=False)
class StabilityTest:
    """RobX's test of a point: the model decides for ``favourable`` there, and its stability is at least ``tau``.

    ``noise`` (K, features) is what is added to a point to get its neighbours: see ``disturbances``.
    """

    model: Model
    favourable: int
    noise: Float32Array
    tau: float = 0.5

    def stability(self, points: Float32Array) -> Float64Array:
        """The mean of P(favourable) over a point's neighbours less its standard deviation, (points,)."""
        answers, size = [np.zeros(0)], max(1, ROWS // len(self.noise))
        for start in range(0, len(points), size):
            near = points[start : start + size, None] + self.noise
            chance = self.model.predict_proba(near.reshape(-1, near.shape[2]))[:, self.favourable]
            chance = chance.reshape(near.shape[:2])
            answers.append(chance.mean(axis=1) - chance.std(axis=1))
        return np.concatenate(answers)

    def passed(self, points: Float32Array) -> BoolArray:
        """Whether each point passes, (points,)."""
        passed: BoolArray = self.model.decide(self.model.predict_proba(points)) == self.favourable
        passed[passed] = self.stability(points[passed]) >= self.tau
        return passed


def disturbances(
    train: Float32Array, jumps: BoolArray, K: int = 1000, sigma: float = 0.1, seed: int = 0
) -> Float32Array:
    """What is added to a point to get its neighbours, (K, features): Gaussian for numbers, 0 where ``jumps``."""
    noise = np.random.default_rng(seed).normal(
        scale=sigma, size=(K, train.shape[1])
    ) * standard_deviations(train)
    return np.where(jumps, 0, noise).astype(np.float32)


def _conservative(
    order: IntArray, donors: Float32Array, test: StabilityTest, c: int
) -> tuple[IntArray, IntArray]:
    """Each person's ``c`` nearest conservative donors, as pairs of person and donor; ``order`` is (people, donors).

    Stability is dear: it is worked out for as few donors as will do, nearest first.
    """
    stability = np.full(len(donors), np.nan)
    width = min(2 * c, len(donors))
    while True:
        lacking = (stability[order[:, :width]] >= test.tau).sum(axis=1) < c
        asked = np.unique(order[lacking, :width])
        asked = asked[np.isnan(stability[asked])]
        stability[asked] = test.stability(donors[asked])
        fine = stability[order[:, :width]] >= test.tau
        if width == len(donors) or (fine.sum(axis=1) >= c).all():
            break
        width = min(2 * width, len(donors))
    person, place = np.nonzero(fine & (np.cumsum(fine, axis=1) <= c))
    return person, order[person, place]


def _go(
    start: Float32Array, end: Float32Array, jumps: BoolArray, step: float, test: StabilityTest
) -> Float32Array:
    """The first points that pass on the lines from ``start`` to ``end``, both (lines, features); else the ends."""
    points, moving = end.copy(), np.arange(len(start))
    towards = np.where(jumps, start, end)
    for share in np.arange(step, 1 - 1e-9, step):
        if not len(moving):
            break
        here = (start[moving] + share * (towards[moving] - start[moving])).astype(np.float32)
        passed = test.passed(here)
        points[moving[passed]], moving = here[passed], moving[~passed]
    return points


def beta_rce(
    rows: Float32Array,
    base: Float32Array,
    model: Model,
    models: Models,
    favourable: int,
    *,
    delta: float = 0.8,
    alpha: float = 0.9,
    prior: tuple[float, float] = (1.0, 1.0),
    gamma: float = 0.1,
    max_radius: float = 5.0,
    n_samples: int = 200,
    scale: Float32Array | None = None,
    categorical: BoolArray | None = None,
    bounds: tuple[Float32Array, Float32Array] | None = None,
    seed: int = 0,
) -> Float32Array:
    """Take the point nearest to a plan at which enough of some models learnt again agree.

    With ``agree`` of the k models deciding for ``favourable``, the probability that another admissible model does too
    is distributed as Beta(a + agree, b + k - agree), where ``prior`` is (a, b). A point is accepted if that probability
    is at least ``delta`` with probability ``alpha``: if the (1 - alpha) quantile is at least ``delta``. A base plan
    that is accepted stays; for any other, points are drawn on shells of growing radius around it.

    Parameters
    ----------
    rows
        Encoded people, everything known, (people, features). Only their shape is used: the search is around ``base``.
    base
        Each one's base plan as a whole row, (people, features); a row with NaN: there is none.
    model
        The fitted model that decides today; the point must work with it as well.
    models
        k models drawn from the admissible changes.
    favourable
        The code of the class that plans lead to.
    delta, alpha
        The robustness that is asked for, and with which confidence.
    prior
        Of the Beta distribution; (1, 1) is uniform.
    gamma, max_radius, n_samples
        How thick a shell is, where the search ends (both in ``scale``), and how many points a person a shell gets.
    scale
        The standard deviation of each feature, (features,); None: 1, for rows that are standardised.
    categorical
        The features that are categories, (features,); None: none.
    bounds
        The least and the greatest value of each feature, both (features,); points outside are moved to the edge.
        None: there are none.
    seed
        Decides the points.

    Returns
    -------
    Float32Array
        The plans as whole rows, (people, features); NaN where there is no base plan, or nothing was accepted.

    Notes
    -----
    Departures: categories stay as they are in the base plan. Growing Spheres' last step, which gives up changes that
    are not needed, is left out, so that every number differs from the base plan's where that was not accepted. The
    models are the caller's, the same for all people. ``delta``, ``alpha``, ``prior`` and the settings of the search
    have defaults chosen here, which were not checked against the paper's experiments; the default ``delta`` can be
    reached with 12 models if all agree.

    References
    ----------
    Stępka, Lango, Stefanowski: Counterfactual Explanations with Probabilistic Guarantees on their Robustness to Model
    Change. KDD 2025. Growing Spheres: Laugel et al., Inverse Classification for Comparison-based Interpretability in
    Machine Learning. IPMU 2018.
    """
    if gamma <= 0 or n_samples < 1:
        raise SettingError("gamma is above 0, and n_samples at least 1")
    allowed = len(models) - needed(len(models), delta, alpha, prior)
    moves = ~_mask(categorical, rows)
    unit = np.where(moves, 1.0 if scale is None else scale, 1.0)
    low, high = bounds or (-np.inf, np.inf)
    random = np.random.default_rng(seed)
    plans, left = _keep(
        rows, base, lambda points: _accepted(points, model, models, favourable, allowed)
    )
    for radius in np.arange(0, max_radius - 1e-9, gamma) if moves.any() else ():
        if not len(left):
            break
        points = np.repeat(base[left, None], n_samples, axis=1)
        points[..., moves] += (
            _shell(random, points[..., moves].shape, radius, radius + gamma) * unit[moves]
        )
        points = np.where(moves, np.clip(points, low, high), points).astype(np.float32)
        fine = _accepted(
            points.reshape(-1, len(moves)), model, models, favourable, allowed
        ).reshape(points.shape[:2])
        far = _lengths(points - base[left, None], unit, ~moves, 2)
        best, done = np.where(fine, far, np.inf).argmin(axis=1), fine.any(axis=1)
        plans[left[done]], left = points[done, best[done]], left[~done]
    return plans


def needed(k: int, delta: float, alpha: float, prior: tuple[float, float] = (1.0, 1.0)) -> int:
    """How many of ``k`` models must agree for a point to be accepted; an error if even all of them are too few."""
    if not (0 < delta < 1 and 0 < alpha < 1 and min(prior) > 0):
        raise SettingError("delta and alpha lie between 0 and 1, and both numbers of prior above 0")
    agree = np.arange(k + 1)
    quantile = betaincinv(prior[0] + agree, prior[1] + k - agree, 1 - alpha)
    if quantile[k] < delta:
        raise SettingError(
            f"delta={delta} is out of reach: {k} models that all agree give {quantile[k]:.3f}; take more"
        )
    return int(np.argmax(quantile >= delta))


def _accepted(
    points: Float32Array, model: Model, models: Models, favourable: int, allowed: int
) -> BoolArray:
    """Whether the model, and all but at most ``allowed`` of the models, decide for ``favourable``, (points,)."""
    accepted = np.zeros(len(points), dtype=bool)
    left = np.flatnonzero(model.decide(model.predict_proba(points)) == favourable)
    against = np.zeros(len(left), dtype=int)
    for member in range(len(models)):
        against += models.decide(member, points[left]) != favourable
        left, against = left[against <= allowed], against[against <= allowed]
    accepted[left] = True
    return accepted


def _shell(
    random: np.random.Generator, shape: tuple[int, int, int], inner: float, outer: float
) -> Float64Array:
    """Points drawn uniformly between two spheres around 0, (people, samples, dimensions)."""
    direction = random.normal(size=shape)
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    inside = (inner / outer) ** shape[2]
    return direction * outer * random.uniform(inside, 1, size=(*shape[:2], 1)) ** (1 / shape[2])


def distances(
    one: Float32Array,
    other: Float32Array,
    scale: Float64Array,
    categorical: BoolArray,
    norm: Norm = 1,
) -> Float64Array:
    """Distances (n, m) of rows (n, features) from rows (m, features)."""
    numbers = ~categorical
    metric = "cityblock" if norm == 1 else "sqeuclidean"
    far: Float64Array = cdist(
        one[:, numbers] / scale[numbers], other[:, numbers] / scale[numbers], metric
    )
    if categorical.any():
        far += cdist(one[:, categorical], other[:, categorical], "hamming") * categorical.sum()
    return far if norm == 1 else np.sqrt(far)


def _lengths(
    changes: Float32Array, scale: Float64Array, categorical: BoolArray, norm: Norm
) -> Float64Array:
    """As ``distances``, of what changes (..., features): (...)."""
    sizes = np.where(categorical, changes != 0, np.abs(changes) / scale)
    return np.asarray(np.linalg.norm(sizes, ord=norm, axis=-1))


def standard_deviations(train: Float32Array) -> Float64Array:
    """The standard deviation of each feature of ``train`` (people, features), 1 where it never varies, (features,)."""
    deviation = train.std(axis=0, dtype=float)
    return np.where(deviation > 0, deviation, 1.0)


def _mask(categorical: BoolArray | None, rows: Float32Array) -> BoolArray:
    return (
        np.zeros(rows.shape[1], dtype=bool)
        if categorical is None
        else np.asarray(categorical, dtype=bool)
    )


def _keep(
    rows: Float32Array, base: Float32Array, passed: Callable[[Float32Array], BoolArray]
) -> tuple[Float32Array, IntArray]:
    """Base plans that pass as they are, NaN for all others, (people, features); and whose base plan does not pass."""
    if rows.shape != base.shape or np.isnan(rows).any():
        raise DataError(
            f"rows {rows.shape} must be known in full, and base {base.shape} of the same shape"
        )
    plans = np.full(rows.shape, np.nan, dtype=np.float32)
    given = np.flatnonzero(~np.isnan(base).any(axis=1))
    fine = passed(base[given])
    plans[given[fine]] = base[given[fine]]
    return plans, given[~fine]


class _Step:
    """Grants from a border of the first feature on; several borders: several models."""

    def __init__(self, *borders: float) -> None:
        self.borders = borders

    def __len__(self) -> int:
        return len(self.borders)

    def predict_proba(self, X: Float32Array) -> Float64Array:
        granted = (X[:, 0] >= self.borders[0]).astype(float)
        return np.stack([1 - granted, granted], axis=1)

    def decide(self, first: object, rows: Float32Array | None = None) -> IntArray:
        if rows is None:
            return np.asarray(np.asarray(first).argmax(axis=1))
        return np.asarray(rows[:, 0] >= self.borders[int(str(first))], dtype=np.intp)


def check_robx() -> None:
    """With a step at 0 and one number, stability is p - sqrt(p(1 - p)), p = Phi(x / sigma)."""
    train = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32)
    train[:, 1] = 0
    words, model = np.array([False, True]), _Step(0.0)
    noise = disturbances(train, words, K=20_000)
    assert not noise[:, 1].any()
    sigma = 0.1 * train[:, 0].std()
    points = np.stack([np.linspace(-0.3, 0.4, 15), np.zeros(15)], axis=1).astype(np.float32)
    p = normal.cdf(points[:, 0] / sigma)
    assert np.allclose(
        StabilityTest(model, 1, noise).stability(points), p - np.sqrt(p * (1 - p)), atol=0.02
    )
    border = sigma * normal.ppf(
        (1 + 2 * 0.5 + np.sqrt(1 + 4 * 0.5 * (1 - 0.5))) / 4
    )  # where p - sqrt(p(1-p)) is 1/2
    rows = np.array([[-1, 0], [-1, 0], [-1, 0]], dtype=np.float32)
    base = np.array([[0.001, 0], [0.9, 0], [np.nan, 0]], dtype=np.float32)
    plans = robx(rows, base, model, train, 1, K=20_000, step=0.01, categorical=words)
    assert border - 0.01 < plans[0, 0] < border + 0.03, (plans, border)
    assert np.array_equal(plans[1:], base[1:] * [[1], [np.nan]], equal_nan=True)
    assert np.isnan(robx(rows, base, model, train[train[:, 0] < 0], 1)).all(axis=1).tolist() == [
        True,
        False,
        True,
    ]


def check_categories_jump() -> None:
    """Where a category decides, nothing between the two ends works, and the plan is the training person's row."""

    class Word(_Step):
        def predict_proba(self, X: Float32Array) -> Float64Array:
            return super().predict_proba(X[:, 1:] * (X[:, :1] >= -9))

    train = np.array([[3, 1], [2, 1], [0, 0], [-1, 0]], dtype=np.float32)
    rows, base = np.array([[-2, 0]], dtype=np.float32), np.array([[-10, 1]], dtype=np.float32)
    words = np.array([False, True])
    plan = robx(rows, base, Word(0.5), train, 1, K=50, categorical=words, step=0.1)
    assert (-9 < plan[0, 0] < -7.5) & (plan[0, 1] == 1), plan  # the number alone was in the way
    for c, end in (
        (1, 2),
        (2, 3),
    ):  # nearest to the plan; of the two nearest to the plan, nearest to the person
        plan = robx(
            np.array([[4, 0]], dtype=np.float32),
            rows,
            Word(0.5),
            train,
            1,
            K=50,
            categorical=words,
            c=c,
        )
        assert plan.tolist() == [[end, 1]], plan


def check_beta_rce() -> None:
    """Of twenty models with borders 0.05, 0.10, … the plan must pass as many as the Beta distribution asks."""
    assert needed(21, 0.9, 0.9) == 21  # (1 - alpha) ** (1 / (k + 1)) is 0.9006
    with contextlib.suppress(SettingError):
        raise AssertionError(f"20 models are too few for {needed(20, 0.9, 0.9)}")
    models = _Step(*np.arange(0.05, 1.01, 0.05).tolist())
    border = models.borders[needed(20, 0.7, 0.9) - 1]
    base = np.array([[0, 5, 1], [border + 0.01, 5, 1], [np.nan, 5, 1]], dtype=np.float32)
    words = np.array([False, False, True])
    people, today = np.zeros_like(base), _Step(0.0)
    for gamma in (0.02, 1.0):  # many shells, or the nearest point of one
        plans = beta_rce(
            people,
            base,
            today,
            models,
            1,
            delta=0.7,
            categorical=words,
            gamma=gamma,
            n_samples=2000,
        )
        assert border <= plans[0, 0] < np.hypot(*(plans[0, :2] - [0, 5])) < border + 0.05, (
            plans,
            border,
        )
        assert plans[0, 2] == 1
        assert np.array_equal(plans[1:], base[1:] * [[1], [np.nan]], equal_nan=True)
    assert np.isnan(
        beta_rce(people, base, today, models, 1, categorical=words, max_radius=0.2)[0]
    ).all()
    scaled = beta_rce(
        people, base, today, models, 1, delta=0.7, scale=np.full(3, 10), max_radius=0.1
    )
    assert scaled[0, 0] >= border  # a tenth of a deviation of 10


def check_shell() -> None:
    """Between spheres of radius 1 and 2 in three dimensions, (r ** 3 - 1) / 7 of the points are within r."""
    far = np.linalg.norm(_shell(np.random.default_rng(0), (1, 40_000, 3), 1.0, 2.0), axis=2)
    for radius in (1.0, 1.3, 1.7, 2.0):
        assert abs((far <= radius + 1e-9).mean() - (radius**3 - 1) / 7) < 0.01


if __name__ == "__main__":
    for check in (check_robx, check_categories_jump, check_beta_rce, check_shell):
        check()
