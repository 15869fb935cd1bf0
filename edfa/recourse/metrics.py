"""How good plans are: what they reach and take, how plausible they are, whether they change more than a score.

An average over plans hides people who have none, so coverage stands beside every mean; and a share of inliers says
nothing without that of real people and that of shuffled ones.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import LocalOutlierFactor

from edfa.blanket.units import Blanket
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.explanation.necessity import sweep
from edfa.explanation.partition import members
from edfa.predictors.base import Predictor, by_mask
from edfa.recourse._search.invalidation import Noise
from edfa.recourse._search.postprocess import without_one
from edfa.recourse._search.ranking import apart
from edfa.recourse.action_set import ActionSet
from edfa.recourse.constraints import Constraints
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import SearchProblem
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Likeness", "Quality", "assess", "likeness", "plausible"]

LIMIT, NEIGHBOURS, HELD = 5000, 20, 1000


class Likeness(NamedTuple):
    """Of each plan: an inlier or not, and the shares of inliers among real and shuffled people who know the same."""

    inlier: Float64Array
    real: Float64Array
    shuffled: Float64Array


def likeness(plans: Plans, train: Table) -> Likeness:
    """Of all plans; a model of outliers for each set of known features."""
    found = Likeness(*(np.full(len(plans), np.nan) for _ in range(3)))
    rows = plans.rows()
    for mask, some in by_mask(rows):
        if mask.any():
            inside, real, shuffled = _fit(train.X[:, mask])
            found.inlier[some], found.real[some], found.shuffled[some] = inside(rows[some][:, mask]), real, shuffled
    return found


def plausible(plans: Plans, train: Table) -> Plans:
    """The plans, told whether each is an inlier, and how many real people are."""
    found = likeness(plans, train)
    return replace(plans, inlier=found.inlier, inlier_base=found.real)


def _fit(rows: Float32Array) -> tuple[Callable[[Float32Array], Float64Array], float, float]:
    random = np.random.default_rng(0)
    order = random.permutation(len(rows))
    held, kept = rows[order[: len(rows) // 5]][:HELD], rows[order[len(rows) // 5 :]]
    spread = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1)
    # Equal rows make a density infinite, so each counts once.
    distinct = random.permutation(np.unique(kept, axis=0))[:LIMIT]
    count = min(NEIGHBOURS, len(distinct) - 1)
    if count < 1 or not len(held):
        return lambda some: np.ones(len(some)), 1.0, 1.0
    factor = LocalOutlierFactor(count, novelty=True).fit(distinct / spread)

    def inside(some: Float32Array) -> Float64Array:
        return np.asarray(factor.predict(some / spread) == 1, dtype=float)

    mixed = np.stack([random.permutation(column) for column in held.T], axis=1)
    return inside, float(inside(held).mean()), float(inside(mixed).mean())


@dataclass(frozen=True)
class Quality:
    """Means over plans, but for ``coverage`` and ``plans``, which are over people in their states.

    ``validity``: the model's decision does turn. ``inlier``: training people are like the result, with the same share
    among real people and among people whose values were shuffled. ``invalidation``: fails when numbers are met only
    roughly. ``diversity``: the mean distance between two plans of one person; ``kinds``: how many of them change
    different features. ``redundancy``: changes that could be undone. ``violations``: plans that break a rule.
    ``lift``: by how much the plan changes the chance of the favourable class under a model that was trained on its own
    and sees everything. ``on_blanket``: changes on features of the blanket. None: not asked for.
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
    inlier_real: float
    inlier_shuffled: float
    invalidation: float
    diversity: float
    kinds: float
    redundancy: float
    violations: int
    lift: float | None = None
    on_blanket: float | None = None

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def _repr_html_(self) -> str:
        said = {k: "-" if v is None else f"{v:.3g}" for k, v in asdict(self).items()}
        return f"<table>{''.join(f'<tr><th>{escape(k)}</th><td>{v}</td></tr>' for k, v in said.items())}</table>"


def assess(
    plans: Plans,
    train: Table,
    *,
    constraints: Constraints | None = None,
    blanket: Blanket | None = None,
    judge: tuple[Predictor, Float32Array] | None = None,
    noise: Noise | None = None,
) -> Quality:
    """Measure plans.

    ``constraints`` are those the plans should obey, ``blanket`` the features that matter. ``judge`` is a model trained
    on its own on all features, with everything that is true of each of the people (a row each, no NaN).

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import Nearest, find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:20], Background.of(table.train, model))
    >>> found = assess(find_recourse(people, Nearest(table.train)), table.train)
    >>> found.validity, found.redundancy, found.violations
    (1.0, 0.0, 0)
    """
    actions = ActionSet.of(constraints, plans.people.background, train.X)
    like = likeness(plans, train)
    told = _ask(plans, actions, noise or Noise())
    return Quality(
        people=len(plans.people),
        coverage=_mean(plans.legal),
        plans=_mean(plans.count),
        validity=_mean(told.valid),
        l0=_mean(plans.l0),
        l2=_mean(plans.l2),
        heom=_mean(plans.heom),
        effort=_mean(plans.effort),
        inlier=_mean(like.inlier),
        inlier_real=_mean(like.real),
        inlier_shuffled=_mean(like.shuffled),
        invalidation=_mean(told.invalidation),
        diversity=_mean(_distances(plans, actions)),
        kinds=_kinds(plans),
        redundancy=float(told.redundant.sum() / max(1, plans.l0.sum())),
        violations=int((told.clean == 0).sum()),
        lift=None if judge is None else _lift(plans, *judge),
        on_blanket=None if blanket is None else _on(plans, blanket),
    )


class _Told(NamedTuple):
    """What the model and the rules say about every plan, asked anew."""

    valid: Float64Array
    clean: Float64Array
    invalidation: Float64Array
    redundant: Float64Array


def _ask(plans: Plans, actions: ActionSet, noise: Noise) -> _Told:
    found = _Told(*(np.zeros(len(plans)) for _ in range(4)))
    for which, case, problem, to in _tasks(plans, actions):
        found.valid[which] = problem.is_recourse(case, problem.predict(problem.apply(case, to)))
        few = (~np.isnan(to)).sum(axis=1) <= actions.max_changes
        found.clean[which] = actions.allows(problem.mask, problem.facts[case], to) & few
        found.invalidation[which] = noise.rate(problem, case, to)
        plan, smaller = without_one(to)
        undone = problem.is_recourse(case[plan], problem.predict(problem.apply(case[plan], smaller)))
        found.redundant[which] = np.bincount(plan, weights=undone, minlength=len(which))
    return found


def _tasks(plans: Plans, actions: ActionSet) -> Iterator[tuple[IntArray, IntArray, SearchProblem, Float32Array]]:
    """Plans of people who know the same: which, whose, their task, the change sets."""
    background, rows = plans.people.background, plans.people.X[plans.of]
    if background.model is None:
        raise DataError("plans that were read from a file have no predictor; replace theirs to measure them")
    for group in sweep(rows, background.predictor, actions.support, actions.continuous).groups:
        problem = SearchProblem(group, actions, background, None)
        yield group.people, group.case, problem, plans.to[group.people][:, group.mask]


def _distances(plans: Plans, actions: ActionSet) -> Float64Array:
    """Between any two plans of one person."""
    everything = np.ones(len(plans.people.schema), dtype=bool)
    places = apart(actions, everything, np.nan_to_num(plans.people.X[plans.of]), plans.to)
    found = [np.zeros(0)]
    for gap in range(1, int(plans.count.max(initial=0))):
        first = np.flatnonzero(plans.of[gap:] == plans.of[:-gap])
        found.append(np.sqrt(((places[first] - places[first + gap]) ** 2).sum(axis=1)))
    return np.concatenate(found)


def _mean(values: npt.ArrayLike) -> float:
    found = np.asarray(values, dtype=float)
    return float(found.mean()) if found.size else float("nan")


def _kinds(plans: Plans) -> float:
    """How many different sets of features a person's plans change, on average over people with a plan."""
    sets = np.unique(np.c_[plans.of, np.packbits(~np.isnan(plans.to), axis=1)], axis=0)
    return len(sets) / max(1, int(plans.legal.sum()))


def _lift(plans: Plans, judge: Predictor, everything: Float32Array) -> float:
    """The mean change of the chance of the favourable class, all else as it truly is."""
    if everything.shape != plans.people.X.shape or np.isnan(everything).any():
        raise DataError("the judge needs everything that is true of each of the people: a row each, without NaN")
    schema = plans.people.schema
    column = schema.classes.index(schema.favourable)
    before = judge.predict_proba(everything)[plans.of]
    after = judge.predict_proba(np.where(np.isnan(plans.to), everything[plans.of], plans.to))
    return _mean((after - before)[:, column])


def _on(plans: Plans, blanket: Blanket) -> float:
    inside = members(plans.people.schema.names, blanket)
    changed = ~np.isnan(plans.to)
    return float((changed & inside).sum() / max(1, int(changed.sum())))
