"""How good plans are: what they reach and take, how plausible they are, whether they change more than a score.

An average over plans hides people who have none, so coverage stands beside every mean; and a share of inliers says
nothing without that of real people and that of shuffled ones.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.blanket.units import Blanket
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.explanation.necessity import sweep
from edfa.explanation.partition import members
from edfa.predictors.base import Floats, Predictor
from edfa.recourse.base import Codes, Task
from edfa.recourse.constraints import Constraints
from edfa.recourse.invalidation import Noise
from edfa.recourse.measure import apart
from edfa.recourse.plans import Plans
from edfa.recourse.plausibility import likeness
from edfa.recourse.rules import Reals, Rules
from edfa.recourse.sets import without_one

__all__ = ["Quality", "assess"]


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
    judge: tuple[Predictor, Floats] | None = None,
    noise: Noise | None = None,
) -> Quality:
    """Measure plans.

    ``constraints`` are those the plans should obey, ``blanket`` the features that matter. ``judge`` is a model trained
    on its own on all features, with everything that is true of each of the people (a row each, no NaN).

    Examples
    --------
    >>> import edfa
    >>> from edfa.recourse import Nearest, People, find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(trees=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:20], table.schema, table.encoder, model)
    >>> found = assess(find_recourse(people, Nearest(table.train)), table.train)
    >>> found.validity, found.redundancy, found.violations
    (1.0, 0.0, 0)
    """
    rules = Rules.of(constraints, plans.people, train.X)
    like = likeness(plans, train)
    told = _ask(plans, rules, noise or Noise())
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
        diversity=_mean(_distances(plans, rules)),
        kinds=_kinds(plans),
        redundancy=float(told.redundant.sum() / max(1, plans.l0.sum())),
        violations=int((told.clean == 0).sum()),
        lift=None if judge is None else _lift(plans, *judge),
        on_blanket=None if blanket is None else _on(plans, blanket),
    )


class _Told(NamedTuple):
    """What the model and the rules say about every plan, asked anew."""

    valid: Reals
    clean: Reals
    invalidation: Reals
    redundant: Reals


def _ask(plans: Plans, rules: Rules, noise: Noise) -> _Told:
    found = _Told(*(np.zeros(len(plans)) for _ in range(4)))
    for which, case, task, to in _tasks(plans, rules):
        found.valid[which] = task.reaches(case, task.ask(task.changed(case, to)))
        few = (~np.isnan(to)).sum(axis=1) <= rules.most
        found.clean[which] = rules.clean(task.mask, task.facts[case], to) & few
        found.invalidation[which] = noise.rate(task, case, to)
        plan, smaller = without_one(to)
        undone = task.reaches(case[plan], task.ask(task.changed(case[plan], smaller)))
        found.redundant[which] = np.bincount(plan, weights=undone, minlength=len(which))
    return found


def _tasks(plans: Plans, rules: Rules) -> Iterator[tuple[Codes, Codes, Task, Floats]]:
    """Plans of people who know the same: which, whose, their task, the change sets."""
    predictor, rows = plans.people.predictor, plans.people.X[plans.of]
    if predictor is None:
        raise DataError("plans that were read from a file have no predictor; replace theirs to measure them")
    for group in sweep(rows, predictor, rules.support, rules.measured).groups:
        task = Task(group, rules, predictor, None)
        yield group.people, group.case, task, plans.to[group.people][:, group.mask]


def _distances(plans: Plans, rules: Rules) -> Reals:
    """Between any two plans of one person."""
    everything = np.ones(len(plans.people.schema), dtype=bool)
    places = apart(rules, everything, np.nan_to_num(plans.people.X[plans.of]), plans.to)
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


def _lift(plans: Plans, judge: Predictor, everything: Floats) -> float:
    """The mean change of the chance of the favourable class, all else as it truly is."""
    if everything.shape != plans.people.X.shape or np.isnan(everything).any():
        raise DataError("the judge needs everything that is true of each of the people: a row each, without NaN")
    schema = plans.people.schema
    column = np.flatnonzero(np.asarray(judge.classes_) == schema.classes.index(schema.favourable))
    before = judge.predict_proba(everything)[plans.of]
    after = judge.predict_proba(np.where(np.isnan(plans.to), everything[plans.of], plans.to))
    return _mean((after - before)[:, column])


def _on(plans: Plans, blanket: Blanket) -> float:
    inside = members(plans.people.schema.names, blanket)
    changed = ~np.isnan(plans.to)
    return float((changed & inside).sum() / max(1, int(changed.sum())))
