"""Survival against enumeration, its standard error against repetition, and what it must never
read.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from discrete import KINDS, SIZES, by_hand, matching, partly, world
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Background, Nearest, People, Rules, SurvivalSearch, find_recourse
from edfa.certification import replay
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.predictors.conditional import Neighbours
from edfa.recourse import Plans, add_survival
from edfa.recourse.find import menu
from edfa.recourse.survival import Completions, PlannedChanges


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 500),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from([None, 0, 1, 2]),
)
def test_survival_is_the_share_of_all_that_may_be(seed, known, desired_class):
    """Where every combination is as likely, and all training people who agree are asked, it is
    exact.
    """
    classes = 2 if desired_class is None else 3
    mask = np.array(known)
    train, model = world(KINDS, SIZES, seed, classes)
    people = People(partly(train, mask), Background.of(train, model))
    plans = find_recourse(people, Nearest(train), desired_class=desired_class)
    estimated = add_survival(plans, train, desired_class=desired_class, k=matching(mask))
    expected = [
        by_hand(model, train, people.X[i], to, desired_class)
        for i, to in zip(plans.of, plans.to, strict=True)
    ]
    np.testing.assert_allclose(estimated.survival, expected, atol=1e-12)


def test_the_standard_error_is_that_of_repeating_it():
    """200 times other completions: the spread of the estimates is the error that one of them
    reports.
    """
    train, model = world(KINDS, SIZES, seed=3)
    nobody = np.full((1, 4), np.nan, dtype=np.float32)
    nobody[0, 0] = 1
    now = model.decide(model.predict_proba(nobody))
    plans = find_recourse(People(nobody, Background.of(train, model)), Nearest(train))
    people = People(nobody, plans.people.background, decided=now)
    changes = PlannedChanges(people, np.zeros(len(plans), dtype=np.intp), plans.to)
    estimates = []
    for seed in range(200):
        # Among all rows that agree on the first fact, others are nearest each time: ties go by a
        # random order.
        near = Neighbours.of(np.repeat(train.X, 8, axis=0), (0, 2), k=24, seed=seed)
        estimates.append(Completions(near).survival(changes))
    probability, error = (
        np.array([getattr(e, part) for e in estimates]) for part in ("probability", "error")
    )
    unsure = np.flatnonzero(np.abs(probability.mean(axis=0) - 0.5) < 0.4)
    assert len(unsure)
    for i in unsure:
        # The standard deviation of 200 draws is itself off by 5 %; completions are drawn without
        # replacement.
        assert probability[:, i].std() == pytest.approx(error[:, i].mean(), rel=0.2)


def test_with_everything_known_a_plan_stands_for_sure(german):
    table, model = german
    people = People(table.test.X[:40], Background.of(table.train, model))
    plans = add_survival(find_recourse(people, Nearest(table.train)), table.train)
    assert (plans.survival == 1).all()
    assert (plans.survival_error == 0).all()
    rows = table.test.X[:10].copy()
    rows[:, 9:] = np.nan
    unsure = add_survival(
        find_recourse(People(rows, Background.of(table.train, model)), Nearest(table.train)),
        table.train,
    )
    assert (unsure.survival_error > 0).all()


def test_a_decision_that_stays_is_counted_like_a_plan():
    train, model = world(KINDS, SIZES, seed=5)
    mask = np.array([True, False, True, False])
    rows = partly(train, mask)
    now = model.decide(model.predict_proba(rows))
    people = People(rows, Background.of(train, model), decided=now)
    steady = Completions.of(train, matching(mask)).decision_stability(people)
    for row, code, share in zip(rows, now, steady, strict=True):
        same = [
            model.decide(model.predict_proba(o[None]))[0] == code
            for o in train.X[(train.X[:, mask] == row[mask]).all(axis=1)]
        ]
        assert share == pytest.approx(np.mean(same))


def test_completions_are_training_people_and_nobody_else(german):
    table, _ = german
    known = table.test.X[:30].copy()
    known[:, 8:] = np.nan
    filled = Completions.of(table.train).neighbours.complete(known)
    rest = {row.tobytes() for row in table.train.X[:, 8:].copy()}
    assert {row.tobytes() for person in filled[:, :, 8:] for row in person.copy()} <= rest
    assert (filled[:, :, :8] == known[:, None, :8]).all()


def test_who_is_left_out_completes_nobody(german):
    table, _ = german
    kept = Completions.of(table.train, without=range(100)).neighbours.rows
    left = {row.tobytes() for row in table.train.X[100:]}
    assert len(kept) == len(table.train) - 100
    assert {row.tobytes() for row in kept} <= left


def test_what_a_searcher_shares_has_its_cache(table):
    """Also while that is empty, and an empty cache counts as false."""
    searcher = SurvivalSearch(table.train)
    assert searcher.support_.cache is searcher.completions_.cache is searcher.cache_
    assert len(searcher.cache_) == 0


def test_survival_reads_nothing_unknown(german):
    """Whatever bits stand for unknown, the estimate is the same."""
    table, model = german
    rows = table.test.X[:20].copy()
    rows[:, 10:] = np.nan
    people = People(rows, Background.of(table.train, model))
    bits = rows.view(np.uint32).copy()
    bits[np.isnan(rows)] = 0x7FC00000 | np.arange(1, np.isnan(rows).sum() + 1, dtype=np.uint32)
    survival, again = (
        find_recourse(replace(people, X=facts), SurvivalSearch(table.train)).survival
        for facts in (rows, bits.view(np.float32))
    )
    assert np.array_equal(survival, again)


def test_both_ways_to_ask_agree(german):
    table, model = german
    rows = table.test.X[:30].copy()
    rows[::2, 9:] = np.nan
    rows[1::2, :6] = np.nan
    plans = find_recourse(
        People(rows, Background.of(table.train, model)),
        SurvivalSearch(table.train),
        desired_class=1,
    )
    again = add_survival(
        replace(plans, survival=None, survival_error=None), table.train
    )  # it knows what was wanted
    assert np.array_equal(plans.survival, again.survival)
    assert np.array_equal(plans.survival_error, again.survival_error)


def test_survival_travels(german):
    table, model = german
    rows = table.test.X[:10].copy()
    rows[:, 9:] = np.nan
    plans = find_recourse(
        People(rows, Background.of(table.train, model)), SurvivalSearch(table.train)
    )
    again = Plans.from_json(plans.to_json())
    assert np.array_equal(again.survival, plans.survival)
    assert plans[0].survival == plans.survival[0]
    assert plans.frame()["survival"].iloc[0] == plans.survival[0]
    with pytest.raises(DataError, match="no predictor"):
        add_survival(again, table.train)


def test_the_signal_is_what_is_lost(german):
    table, model = german
    trajectory = edfa.acquire(
        table.test.X[:60],
        edfa.acquisition.Random(),
        model,
        budget=3,
        reference=table.train,
        explain=False,
    )
    plans = find_recourse(trajectory, SurvivalSearch(table.train))
    signal = replay(plans, signal="survival").signal
    first = plans.first[plans.legal]
    np.testing.assert_allclose(signal[plans.legal], 1 - plans.survival[first])
    assert (signal[~plans.legal] == 1).all()
    with pytest.raises(DataError, match="SurvivalSearch"):
        replay(find_recourse(trajectory, Nearest(table.train)), signal="survival")
    nothing = find_recourse(trajectory, SurvivalSearch(table.train), rules=Rules(only=()))
    assert len(nothing) == 0
    assert (replay(nothing, signal="survival").signal == 1).all()


def test_another_survival_is_another_advisor(german):
    """Who completes people, and how many, is part of what a certificate was made for."""
    table, model = german
    rows = table.test.X[:10].copy()
    rows[:, 9:] = np.nan
    plans = find_recourse(People(rows, Background.of(table.train, model)), Nearest(table.train))
    with pytest.raises(UnknownNameError, match="class"):
        add_survival(plans, table.train, desired_class=7)
    estimates = [
        add_survival(plans, table.train),
        add_survival(plans, table.train),
        add_survival(plans, table.train, k=16),
    ]
    first, same, other = (identify(p) for p in estimates)
    assert first == same != other
    assert first != identify(plans)


def test_bad_settings(table):
    with pytest.raises(
        SettingError, match="n_completions and n_candidates: at least 2 each, not 1 and 32"
    ):
        SurvivalSearch(table.train, n_completions=1)
    with pytest.raises(
        SettingError, match="n_completions and n_candidates: at least 2 each, not 32 and 1"
    ):
        SurvivalSearch(table.train, n_candidates=1)
    with pytest.raises(SettingError, match="max_effort: above 0, not 0"):
        Rules(max_effort=0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_a_menu_is_the_border_of_survival_and_effort(entries):
    of, survival, effort = (np.array([e[i] for e in entries], dtype=float) for i in range(3))
    kept = menu(of.astype(np.intp), survival / 8, (effort,))
    expected = set()
    for owner in set(of):
        rows = [i for i in range(len(of)) if of[i] == owner]
        for i in rows:
            beaten = any(
                survival[j] >= survival[i]
                and effort[j] <= effort[i]
                and (survival[j], effort[j]) != (survival[i], effort[i])
                for j in rows
            )
            if not beaten:
                expected.add((owner, survival[i], effort[i]))
    assert sorted((of[i], survival[i], effort[i]) for i in kept) == sorted(expected)
    assert all(of[a] < of[b] or survival[a] > survival[b] for a, b in pairwise(kept))


def test_what_is_not_asked_about_is_not_on_the_menu(german):
    """Plans after one that always survives are left out of the race, and would not have been handed
    out anyway.
    """
    table, model = german
    rows = table.test.X[:60].copy()
    rows[::2, 14:] = np.nan
    rows[1::2, :4] = np.nan
    people, lasting = People(rows, Background.of(table.train, model)), SurvivalSearch(table.train)
    plans = find_recourse(people, lasting)
    lefts = []

    class Full(SurvivalSearch):
        def survival(self, problem, candidates, keys):
            width = len(problem.mask)
            facts, to = (
                np.full((len(part), width), np.nan, dtype=np.float32)
                for part in (problem, candidates)
            )
            facts[:, problem.features], to[:, problem.features] = problem.facts, candidates.to
            lefts.append(np.isnan(super().survival(problem, candidates, keys).probability).mean())
            cases = People(facts, Background.of(table.train, model), decided=problem.group.decision)
            return self.completions_.survival(PlannedChanges(cases, candidates.case, to))

    again = find_recourse(people, Full(table.train))
    assert max(lefts) > 0.2
    assert np.array_equal(plans.to, again.to, equal_nan=True)
    assert np.array_equal(plans.survival, again.survival)


def test_many_people_are_asked_about_as_few_are(german):
    """Of many, completions that are the same to the model are asked about once, and plans in other
    heats.
    """
    table, model = german
    rows = table.test.X.copy()
    rows[::2, 14:], rows[1::2, 2:5] = np.nan, np.nan
    people, lasting = People(rows, Background.of(table.train, model)), SurvivalSearch(table.train)
    plans = find_recourse(people, lasting)
    single = [find_recourse(People(rows[[i]], people.background), lasting) for i in range(40)]
    for i, alone in enumerate(single):
        mine = plans.of == i
        assert np.array_equal(plans.to[mine], alone.to, equal_nan=True)
        assert np.array_equal(plans.survival[mine], alone.survival)
    now = np.searchsorted(model.classes_, plans.decision)
    decided = People(rows, people.background, decided=now)
    filled = lasting.completions_._fill(decided)
    assert 0.2 < filled.first.mean() < 0.9
    seen = model.decide(
        model.predict_known(model.varies_, filled.rows.reshape(-1, filled.rows.shape[2]))
    )
    same = seen.reshape(filled.first.shape) == now[:, None]
    assert np.array_equal(lasting.completions_.decision_stability(decided), same.mean(axis=1))


def test_enough_is_enough(german):
    """A search until a plan survives so often says rightly whether there is one, with fewer
    questions.
    """
    table, model = german
    rows = table.test.X[:80].copy()
    rows[:, 10:] = np.nan
    people, lasting = People(rows, Background.of(table.train, model)), SurvivalSearch(table.train)
    best = [find_recourse(people, lasting.content_with(enough)) for enough in (1.0, 0.1, 0.5, 0.9)]
    survival = [np.where(p.legal, p.survival[p.first], -1.0) for p in best]
    for enough, hasty in zip((0.1, 0.5, 0.9), survival[1:], strict=True):
        assert np.array_equal(hasty >= enough, survival[0] >= enough)
        assert (hasty >= enough).mean() > 0
        assert (hasty <= survival[0]).all()
    assert (survival[1] < survival[0]).any()
    again = find_recourse(
        people, lasting
    )  # which looks for the best as before, and is the same searcher
    assert np.array_equal(again.survival, best[0].survival)
    assert digest(lasting) == digest(SurvivalSearch(table.train))
