"""Measures of plans against their definitions, on plans that are good and plans that are not."""

from dataclasses import replace

import numpy as np
import pytest
from searchers.test_probe import simulate

import edfa
from edfa.errors import DataError
from edfa.people import Background, People
from edfa.recourse import (
    NICE,
    Nearest,
    Plans,
    Rules,
    add_plausibility,
    evaluate_plans,
    find_recourse,
)


@pytest.fixture(scope="module")
def plans(german):
    table, model = german
    rows = table.test.X[:60].copy()
    rows[::2, 10:] = np.nan
    return find_recourse(People(rows, Background.of(table.train, model)), Nearest(table.train))


def test_what_nearest_promises(plans, german):
    quality = evaluate_plans(plans, german[0].train)
    assert (quality.validity, quality.redundancy, quality.violations) == (1.0, 0.0, 0)
    assert quality.coverage == plans.legal.mean()
    assert quality.plans == pytest.approx(len(plans) / 60)
    assert quality.l0 == pytest.approx(plans.l0.mean())
    assert quality.kinds == pytest.approx(
        np.mean(
            [
                len({tuple(r) for r in ~np.isnan(plans.to[plans.of == i])})
                for i in np.unique(plans.of)
            ]
        )
    )
    assert quality.invalidation == pytest.approx(
        simulate(plans, german[0], 0.05, draws=200).mean(), abs=0.01
    )


def test_what_is_wrong_shows(plans, german):
    table, model = german
    locked = Rules(locked=("credit_amount",), max_changes=2)
    broken = (~np.isnan(plans.to[:, table.schema.index("credit_amount")])) | (plans.l0 > 2)
    assert evaluate_plans(plans, table.train, rules=locked).violations == broken.sum() > 0
    literal = find_recourse(
        plans.people, NICE(table.train, "none", literal=True, holds_further=False, min_support=0)
    )
    undone = 0
    for i in range(len(literal)):
        for j in np.flatnonzero(~np.isnan(literal.to[i])):
            row = literal.rows()[i].copy()
            row[j] = literal.people.X[literal.of[i], j]
            undone += (
                literal.l0[i] > 1 and model.predict(row[None])[0] != literal.decision[literal.of[i]]
            )
    assert evaluate_plans(literal, table.train).redundancy == pytest.approx(
        undone / literal.l0.sum()
    )
    assert undone > 0
    spoilt = replace(plans, to=plans.to.copy())
    spoilt.to[0] = np.nan
    spoilt.to[0, 0] = plans.people.X[plans.of[0], 0]
    quality = evaluate_plans(spoilt, table.train)
    assert quality.validity == pytest.approx(1 - 1 / len(plans))
    assert quality.violations == 1


def test_lift_is_that_of_another_model_on_everything(plans, german):
    table, _ = german
    judge = edfa.SubsetXGB(seed=9, n_estimators=40).fit(table.calibration.X, table.calibration.y)
    everything = table.test.X[:60]
    quality = evaluate_plans(plans, table.train, judge=(judge, everything))
    changed = everything[plans.of].copy()
    changed[~np.isnan(plans.to)] = plans.to[~np.isnan(plans.to)]
    gain = judge.predict_proba(changed)[:, 1] - judge.predict_proba(everything[plans.of])[:, 1]
    assert quality.lift == pytest.approx(gain.mean())
    with pytest.raises(DataError, match="everything that is true"):
        evaluate_plans(plans, table.train, judge=(judge, plans.people.X))


def test_diversity_is_the_mean_distance_of_two_plans(german):
    table, model = german
    people = People(table.test.X[:30], Background.of(table.train, model))
    best, different = (
        evaluate_plans(p, table.train)
        for p in (top(people, table), find_recourse(people, Nearest(table.train), k=3))
    )
    assert different.diversity > best.diversity


def top(people, table):
    """The three best, alike or not."""
    plans = find_recourse(people, Nearest(table.train))
    keep = plans.number < 3
    names = "of to low high reached probability_before probability_after l0 l2 heom effort valid"
    columns = {name: getattr(plans, name)[keep] for name in names.split()}
    return Plans(people=people, decision=plans.decision, reasons=plans.reasons, **columns)


def test_real_people_are_inliers_more_often_than_shuffled_ones():
    table = edfa.load("adult", cap=6000)
    features = tuple(replace(f, monotone=None, per_year=0, takes="") for f in table.schema)
    table = edfa.Table.from_frame(
        table.frame, replace(table.schema, features=features, rules=Rules())
    )
    model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    plans = find_recourse(
        People(table.test.X[:60], Background.of(table.train, model)), Nearest(table.train)
    )
    quality = evaluate_plans(plans, table.train)
    assert 0.6 < quality.inlier_shuffled + 0.05 < quality.inlier_base <= 1
    plausible = add_plausibility(plans, table.train)
    assert plausible[0].inlier is not None
    assert plausible[0].inlier_base == pytest.approx(quality.inlier_base)
    assert np.mean(plausible.inlier) == pytest.approx(quality.inlier)
    far = replace(plans, to=np.where(np.isnan(plans.to), np.nan, np.float32(15)))
    assert evaluate_plans(far, table.train).inlier < 0.2


def test_no_plans_have_no_means(german):
    table, model = german
    nobody = find_recourse(
        People(table.test.X[:0], Background.of(table.train, model)), Nearest(table.train)
    )
    quality = evaluate_plans(nobody, table.train)
    assert np.isnan(quality.l0)
    assert quality.violations == 0
    assert "coverage" in quality.to_json()
    assert "<table>" in quality._repr_html_()
