"""Phase 1: how recourse grows while features are acquired, and how good the counterfactuals are.

Costs are shares of the price of everything beyond the start set: 0 at the start, 1 when all is
known. The entry is ``measure_growth``.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from edfa.acquisition.trajectory import Trajectory
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.recourse.metrics import plausibility
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array, IntArray
from edfa_studies.measures import Payload
from edfa_studies.products import Materials

GRID = np.linspace(0, 1, 21)
SLACK = 1e-9  # sums of prices are not exact
# sets of known features whose plans are held against outlier models: each takes one of its own
JUDGED = 20


def measure_growth(materials: Materials) -> Payload:
    """Measure recourse while test people are asked, and the quality of their plans.

    Parameters
    ----------
    materials
        Those of a cell whose settings have the number of ``people``.

    Returns
    -------
    dict of lists of rows
        ``step`` and ``cost``: means over people of recourse options, semifactuals, accuracy, active
        share and features asked, at each step and at each of 21 costs; who has ended stays at the
        last step. ``end``: the same at everybody's last step, and the cost to the first recourse.
        ``quality``: means over all plans of all steps.
    """
    trajectory, blanket = materials.trajectory("test"), materials.blanket
    plans = materials.plans(trajectory)
    truth = materials.table.test.y[materials.people("test")]
    columns = _columns(trajectory, plans, blanket, truth)

    def means(rows: IntArray) -> dict[str, Any]:
        """The means of all measures over some rows, one a person."""
        averages = {name: float(column[rows].mean()) for name, column in columns.items()}
        return {"people": len(rows)} | averages

    def at_cost(cost: float) -> IntArray:
        """The row of each person's last step within a cost."""
        within = trajectory.who[columns["cost"] <= cost + SLACK]
        count = np.bincount(within, minlength=len(truth))
        return np.asarray(trajectory.first + np.maximum(count - 1, 0))

    first = columns["cost"][plans.legal]
    first = first[np.unique(trajectory.who[plans.legal], return_index=True)[1]]
    rest = {
        "base_rate": float(np.bincount(truth).max() / len(truth)),
        "first_cost": _mean(first),
        "first_share": len(first) / len(truth),
        "blanket_size": len(blanket),
        "n_features": len(trajectory.schema),
    }
    steps = range(int(trajectory.step.max()) + 1)
    return {
        "step": [{"step": k} | means(trajectory.at(k)) for k in steps],
        "cost": [means(at_cost(cost)) | {"cost": float(cost)} for cost in GRID],
        "end": [means(trajectory.last) | rest],
        "quality": [_quality(plans, materials, trajectory)],
    }


def normalised_cost(trajectory: Trajectory) -> Float64Array:
    """What was spent by each step, without the start set.

    Returns
    -------
    array of shape (steps,)
        Shares of the price of everything beyond the start set: 0 at the start, 1 when all is known.
    """
    schema, start = trajectory.schema, trajectory.background.start
    free, everything = float(schema.costs[start].sum()), float(schema.costs.sum())
    return np.asarray((trajectory.spent - free) / max(everything - free, SLACK))


def counterfactual(trajectory: Trajectory) -> BoolArray:
    """Which features are known and can turn the decision by themselves, (steps, features)."""
    return np.asarray(trajectory.known & (np.nan_to_num(np.asarray(trajectory.necessity)) > 0))


def _columns(
    trajectory: Trajectory, plans: Plans, blanket: Blanket, truth: Int64Array
) -> dict[str, AnyArray]:
    """The measures of every step.

    Parameters
    ----------
    trajectory, plans
        The people, asked, and their plans at each step.
    blanket
        That of the cell, which a policy need not keep to.
    truth
        The class codes of the people, (people,).

    Returns
    -------
    dict of arrays of shape (steps,)
        By name of the measure.
    """
    start, inside = trajectory.background.start, members(trajectory.schema.names, blanket)
    active = (counterfactual(trajectory) & inside).sum(axis=1)
    asked = trajectory.known & ~start
    return {
        "cost": normalised_cost(trajectory),
        "recourse": plans.count,
        "any_recourse": plans.legal,
        "semifactual": len(blanket) - active,
        "accuracy": trajectory.decision == truth[trajectory.who],
        "active": active / max(1, len(blanket)),
        "features": asked.sum(axis=1),
        "outside": (asked & ~inside).sum(axis=1),
    }


def _quality(plans: Plans, materials: Materials, trajectory: Trajectory) -> dict[str, Any]:
    """Means over every plan at every step; plausibility over some sets of known features; lift over
    first plans.
    """
    if not len(plans):
        return {"plans": 0}
    inside = members(plans.people.schema.names, materials.blanket)
    changed = ~np.isnan(plans.to)
    likeness = plausibility(_some_sets(plans), materials.table.train)
    return {
        "plans": len(plans),
        **{name: float(getattr(plans, name).mean()) for name in ("l0", "l2", "effort")},
        "plausible": _mean(likeness.inlier),
        "plausible_real": _mean(likeness.inlier_base),
        "plausible_shuffled": _mean(likeness.inlier_shuffled),
        "lift": _lift(plans, materials, trajectory),
        "on_blanket": float((changed & inside).sum() / max(1, changed.sum())),
    }


def _some_sets(plans: Plans) -> Plans:
    """The plans of people who know one of some sets of features, evenly spread over all sets in
    order of their size.

    Only the columns that plausibility looks at are right.
    """
    known = plans.people.known[plans.of]
    sets, which = np.unique(
        np.c_[known.sum(axis=1), np.packbits(known, axis=1)], axis=0, return_inverse=True
    )
    judged = np.linspace(0, len(sets) - 1, min(JUDGED, len(sets))).round().astype(int)
    chosen = np.isin(which.ravel(), judged)
    return replace(plans, of=plans.of[chosen], to=plans.to[chosen])


def _lift(plans: Plans, materials: Materials, trajectory: Trajectory) -> float | None:
    """By how much the first plan of each last step changes the probability of the class it leads
    to.

    The probability is that of a model that took no part and knows everything that is true of the
    person.
    """
    rows = trajectory.last[plans.legal[trajectory.last]]
    if not len(rows):
        return None
    first, judge = plans.first[rows], materials.judge()
    truth = materials.table.test.X[materials.people("test")][trajectory.who[rows]]
    changed = judge.predict_proba(plans.make_changes(first, truth)) - judge.predict_proba(truth)
    return _mean(changed[np.arange(len(rows)), plans.reached[first]])


def _mean(values: AnyArray) -> float | None:
    """The mean of the values that are numbers; None if there are none."""
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else None
