"""How good plans are: what they reach and take, how plausible they are, whether they change more
than a score.

A mean over plans hides people who have none, so coverage stands beside every mean; and a share of
inliers says nothing without the shares among real people and among shuffled ones.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import LocalOutlierFactor

from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.explanation.necessity import Support, sweep
from edfa.predictors.base import Predictor, by_mask
from edfa.recourse._search.invalidation import Noise
from edfa.recourse.action_set import ActionSet
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import Searcher, SearchProblem, proper_subsets
from edfa.recourse.searchers.dice import apart
from edfa.text import html
from edfa.typing import Float32Array, Float64Array

# training people that the local outlier factor looks among, and how many it compares with
MAX_REFERENCE_PEOPLE, NEIGHBOURS = 5000, 20
MAX_HELD_OUT = 1000  # training people at most who are real people to it


class Plausibility(NamedTuple):
    """Whether training people are like the result of each plan (by the local outlier factor),
    (plans,) each.

    ``inlier`` is 1 for an inlier and 0 for an outlier; ``inlier_base`` the share of inliers among
    real people who know the same features, and ``inlier_shuffled`` among people whose values were
    shuffled, feature by feature. NaN if nothing is known of the person.
    """

    inlier: Float64Array
    inlier_base: Float64Array
    inlier_shuffled: Float64Array


def plausibility(plans: Plans, train: Table) -> Plausibility:
    """Measure how plausible plans are; one model of outliers for each set of known features."""
    result = Plausibility(*np.full((3, len(plans)), np.nan))
    rows = plans.rows()
    for mask, some in by_mask(rows):
        if mask.any():
            shares = _find_inliers(train.X[:, mask], rows[some][:, mask])
            for column, share in zip(result, shares, strict=True):
                column[some] = share
    return result


def add_plausibility(plans: Plans, train: Table) -> Plans:
    """The same plans with ``inlier`` and ``inlier_base`` (see ``Plausibility``) filled in."""
    result = plausibility(plans, train)
    return replace(plans, inlier=result.inlier, inlier_base=result.inlier_base)


def _find_inliers(
    rows: Float32Array, results: Float32Array
) -> tuple[Float64Array | float, float, float]:
    """Whether ``results`` (plans, known features) are inliers (1) or not (0), (plans,), and the
    shares of inliers among real and shuffled people.

    Four fifths of ``rows`` (training people, known features) are what others are compared with; the
    rest are the real people.
    """
    random = np.random.default_rng(0)
    order = random.permutation(len(rows))
    fifth = len(rows) // 5
    held_out, reference = rows[order[:fifth]][:MAX_HELD_OUT], rows[order[fifth:]]
    spread = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1)
    # Equal rows make a density infinite, so each counts once.
    distinct = random.permutation(np.unique(reference, axis=0))[:MAX_REFERENCE_PEOPLE]
    count = min(NEIGHBOURS, len(distinct) - 1)
    if count < 1 or not len(held_out):
        return 1.0, 1.0, 1.0
    factor = LocalOutlierFactor(count, novelty=True).fit(distinct / spread)
    shuffled = np.stack([random.permutation(column) for column in held_out.T], axis=1)
    inside, real, mixed = (
        np.asarray(factor.predict(some / spread) == 1, dtype=float)
        for some in (results, held_out, shuffled)
    )
    return inside, float(real.mean()), float(mixed.mean())


@dataclass(frozen=True)
class PlanQuality:
    """How good a batch of plans is: means over plans, unless said otherwise. NaN: there are no
    plans.

    Parameters
    ----------
    people
        The number of people, each in one state of knowledge.
    coverage, plans
        The share of people with a plan, and the mean number of plans a person.
    validity
        The share of plans that are recourse when the model is asked again.
    l0, l2, heom, effort
        The number of changes, the distances and the effort, as in ``Plan``.
    inlier, inlier_base, inlier_shuffled
        The share of inliers among the plans' results, real people and shuffled people (see
        ``Plausibility``).
    invalidation
        The probability that a plan fails when its numbers are met only roughly.
    diversity
        The mean distance between two plans of one person.
    kinds
        The mean number of different sets of features that the plans of one person change, over
        people with a plan.
    redundancy
        The share of changes that could be undone.
    violations
        The number of plans that break a rule or leave what the card allows.
    lift
        By how much plans change the probability of the favourable class under a model that was
        trained on its own and sees everything; None without such a ``judge``.
    """

    people: int
    coverage: float
    plans: float
    validity: float
    l0: float
    l2: float
    heom: float
    effort: float
    inlier: float
    inlier_base: float
    inlier_shuffled: float
    invalidation: float
    diversity: float
    kinds: float
    redundancy: float
    violations: int
    lift: float | None = None

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def _repr_html_(self) -> str:
        rows = (
            (name, "-" if value is None else f"{value:.3g}") for name, value in asdict(self).items()
        )
        return html.fragment(html.definition_table(rows))


def evaluate_plans(
    plans: Plans,
    train: Table,
    *,
    rules: Rules | None = None,
    judge: tuple[Predictor, Float32Array] | None = None,
) -> PlanQuality:
    """Measure how good plans are; the model and the rules are asked again, whatever the searcher
    claims.

    Parameters
    ----------
    plans
        Plans whose people have a model.
    train
        The training people, for plausibility and for the values that may be proposed.
    rules
        What the plans should obey.
    judge
        A model trained on its own on all features, and the complete facts of the people, (people,
        features) without NaN; for ``lift``.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import Nearest, find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:20], Background.of(table.train, model))
    >>> quality = evaluate_plans(find_recourse(people, Nearest(table.train)), table.train)
    >>> quality.validity, quality.redundancy, quality.violations
    (1.0, 0.0, 0)
    """
    aim = plans.provenance.desired_class
    support = Support.of(train.X)
    actions = ActionSet.of(rules, plans.people.background, train.X, support, towards=aim)
    likeness = plausibility(plans, train)
    checks = _check_plans(plans, actions)
    return PlanQuality(
        people=len(plans.people),
        coverage=_mean(plans.legal),
        plans=_mean(plans.count),
        validity=_mean(checks["valid"]),
        **{name: _mean(getattr(plans, name)) for name in ("l0", "l2", "heom", "effort")},
        **{name: _mean(values) for name, values in likeness._asdict().items()},
        invalidation=_mean(checks["invalidation"]),
        diversity=_mean(_distances(plans, actions)),
        kinds=_kinds(plans),
        redundancy=float(checks["redundant"].sum() / max(1, plans.l0.sum())),
        violations=int((checks["allowed"] == 0).sum()),
        lift=None if judge is None else _lift(plans, *judge),
    )


def _check_plans(plans: Plans, actions: ActionSet) -> dict[str, Float64Array]:
    """What the model and the rules say about every plan, (plans,) each.

    ``valid`` and ``allowed`` are 1 or 0; ``invalidation`` is the rate at which plans fail, and
    ``redundant`` the number of changes that could be undone, one at a time.
    """
    background, rows = plans.people.background, plans.people.X[plans.of]
    if background.model is None:
        raise DataError(
            "plans that were read from a file have no predictor; replace theirs to measure them"
        )
    searcher = plans.provenance.searcher
    wanted = searcher.plan_filter(actions) if isinstance(searcher, Searcher) else None
    names = "valid", "allowed", "invalidation", "redundant"
    checks = {name: np.zeros(len(plans)) for name in names}
    for group in sweep(rows, background.predictor, actions.support, actions.continuous).groups:
        problem = SearchProblem(group, actions, background, None, plan_filter=wanted)
        which, case, to = group.people, group.case, plans.to[group.people][:, group.mask]
        after = problem.predict_changes(case, to)
        checks["valid"][which] = problem.is_recourse(case, after)
        few = (~np.isnan(to)).sum(axis=1) <= actions.max_changes
        checks["allowed"][which] = actions.allows(problem.mask, problem.facts[case], to) & few
        checks["invalidation"][which] = Noise().rate(problem, case, to)
        plan, smaller = proper_subsets(to, most=0)
        after = problem.predict_changes(case[plan], smaller)
        undone = problem.is_recourse(case[plan], after) & problem.is_sensible(case[plan], smaller)
        checks["redundant"][which] = np.bincount(plan, weights=undone, minlength=len(which))
    return checks


def _distances(plans: Plans, actions: ActionSet) -> Float64Array:
    """The distance between any two plans of one person, (pairs,)."""
    everything = np.ones(len(plans.people.schema), dtype=bool)
    positions = apart(actions, everything, np.nan_to_num(plans.people.X[plans.of]), plans.to)
    distances = [np.zeros(0)]
    for gap in range(1, int(plans.count.max(initial=0))):
        first = np.flatnonzero(plans.of[gap:] == plans.of[:-gap])
        distances.append(np.sqrt(((positions[first] - positions[first + gap]) ** 2).sum(axis=1)))
    return np.concatenate(distances)


def _mean(values: npt.ArrayLike) -> float:
    """The mean, NaN if there are no values."""
    numbers = np.asarray(values, dtype=float)
    return float(numbers.mean()) if numbers.size else float("nan")


def _kinds(plans: Plans) -> float:
    """The mean number of different sets of features that a person's plans change, over people with
    a plan.
    """
    sets = np.unique(np.c_[plans.of, np.packbits(~np.isnan(plans.to), axis=1)], axis=0)
    return len(sets) / max(1, int(plans.legal.sum()))


def _lift(plans: Plans, judge: Predictor, everything: Float32Array) -> float:
    """The mean change of the probability of the favourable class, with all other facts as they
    truly are.
    """
    if everything.shape != plans.people.X.shape or np.isnan(everything).any():
        raise DataError(
            "the judge needs everything that is true of each of the people: a row each, without NaN"
        )
    schema = plans.people.schema
    column = schema.classes.index(schema.favourable)
    before = judge.predict_proba(everything)[plans.of]
    after = judge.predict_proba(np.where(np.isnan(plans.to), everything[plans.of], plans.to))
    return _mean((after - before)[:, column])
