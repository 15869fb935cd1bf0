"""Judges: whom they may judge, and what is asked of a plan after the last question."""

from dataclasses import replace

import numpy as np
import pytest
from advisors import promising, surviving

import edfa
from edfa.advice.fitted import FINAL_SURVIVAL, NEVER_ACTS
from edfa.advice.promise import ask, draw_judges, judge_plans, learn_judges
from edfa.predictors.committee import fold_of


@pytest.fixture(scope="module")
def fitted():
    return surviving().fitted


def test_nobody_is_judged_by_a_model_that_has_learnt_from_them(fitted):
    """Who is among the calibration people gets a judge of their own fold, which left them out; all
    of these judge.
    """
    table = edfa.load("german")
    judge = draw_judges(fitted, table.calibration.X)
    np.testing.assert_array_equal(fold_of(judge), fold_of(np.arange(len(judge))))
    assert set(judge.tolist()) == set(range(len(fitted.judges)))
    shuffled = np.random.default_rng(0).permutation(len(judge))
    again = draw_judges(fitted, table.calibration.X[shuffled])
    np.testing.assert_array_equal(fold_of(again), fold_of(shuffled))


def test_others_are_judged_by_anybody(fitted):
    judge = draw_judges(fitted, edfa.load("german").test.X)
    share = np.bincount(judge, minlength=len(fitted.judges)) / len(judge)
    assert (share > 0).all()
    assert (fold_of(judge) != fold_of(np.arange(len(judge)))).any()


def test_judges_share_no_model_with_the_committee_that_chooses(fitted):
    choosing = {
        booster.save_raw() == judge.save_raw()
        for booster in fitted.searcher.committee.boosters
        for judge in fitted.judges.boosters
    }
    assert choosing == {False}
    again = learn_judges(fitted, edfa.load("german").calibration, surviving().seed)
    assert [
        a.save_raw() == b.save_raw()
        for a, b in zip(again.boosters, fitted.judges.boosters, strict=True)
    ] == [True] * len(again)


@pytest.mark.parametrize("reference", ["retrained", "all_features", "trajectory_end"])
def test_after_the_last_question_nearly_all_models_must_accept_a_plan(fitted, reference):
    X = edfa.load("german").test.X  # noqa: N806
    held = promising(fitted, reference=reference)
    plans = ask(held, X, n_jobs=1)[1]
    records = judge_plans(held, plans, X)["act"]
    last = np.append(records.person[1:] != records.person[:-1], True)
    survival = np.ones(len(last))
    survival[plans.legal] = plans.survival[plans.first[plans.legal]]
    weak = last & plans.legal & (survival < FINAL_SURVIVAL)
    assert weak.any(), "somebody is asked to the end and has a plan that not all models accept"
    expected = np.where(weak & (reference != "trajectory_end"), NEVER_ACTS, 1 - survival)
    np.testing.assert_allclose(records.signal[plans.legal], expected[plans.legal])


def test_who_is_asked_nothing_is_no_hard_case(fitted):
    """Runs of one step are not selected by earlier ones: the signal is that of the plan."""
    held = promising(replace(fitted, budget="inf"), reference="retrained")
    plans = ask(held, edfa.load("german").test.X, n_jobs=1)[1]
    ends = np.append(plans.people.person[1:] != plans.people.person[:-1], True)
    alone = edfa.find_recourse(
        edfa.People(plans.people.X[ends], held.background),
        held.searcher,
        rules=held.operator_rules,
        desired_class=1,
    )
    records = judge_plans(held, alone, edfa.load("german").test.X)["act"]
    assert records.signal[records.legal].max() <= 1
