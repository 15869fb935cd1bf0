"""Survival over pairs of a completion and a model, against asking every pair by itself."""

import numpy as np
import pytest

import edfa
from edfa import Background, People, SurvivalSearch, find_recourse
from edfa.predictors.base import align
from edfa.predictors.committee import Committee
from edfa.recourse.survival import ASKED

MEMBERS = 6


@pytest.fixture(scope="module")
def german():
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=30, threshold=0.7).fit(table.train.X, table.train.y)
    view = align(model, range(8))
    committee = Committee.of(table.train.X, table.train.y, view, MEMBERS, seed=1)
    blanket = edfa.Blanket("class", dict.fromkeys(table.schema.names[:8], ()))
    return table, model, view, committee, blanket


def plans_of(german, rows, **settings):
    table, model, _, committee, blanket = german
    searcher = SurvivalSearch(committee=committee, **settings).fit(table.train)
    background = Background.of(table.train, model, blanket, aligned=True, support=searcher.support_)
    return searcher, find_recourse(People(rows, background), searcher, desired_class=1)


def test_with_everything_known_it_is_the_share_of_models_that_agree(german):
    table, _, view, committee, _ = german
    _, plans = plans_of(german, table.test.X[:60])
    followed = plans.make_changes(np.arange(len(plans)), table.test.X[plans.of])
    agree = sum((committee.decide(member, followed) == 1).astype(int) for member in range(MEMBERS))
    agree += view.decide(view.predict_proba(followed)) == 1
    np.testing.assert_allclose(plans.survival, agree / (MEMBERS + 1))
    assert 0 < np.mean(plans.survival < 1) < 1, "some plans are not accepted by all"


def test_of_a_partly_known_person_every_completion_is_asked_of_some_models(german):
    """By hand: each completion of the searcher, its turn of the members, every model with the same
    weight.
    """
    table, _, view, committee, _ = german
    rows = table.test.X[:25].copy()
    rows[:, 3:] = np.nan
    searcher, plans = plans_of(german, rows)
    filled = searcher.completions_.neighbours.complete(rows)
    apart = MEMBERS // ASKED
    for plan in range(len(plans)):
        own, pairs, own_refused, pairs_refused = [], [], [], []
        for position, completion in enumerate(filled[plans.of[plan]]):
            asis = completion[None]
            followed = np.where(np.isnan(plans.to[plan]), completion, plans.to[plan])[None].astype(
                np.float32
            )
            own.append(view.decide(view.predict_proba(followed))[0] == 1)
            turn = [member for member in range(MEMBERS) if (position - member) % apart == 0]
            assert len(turn) == ASKED
            pairs += [committee.decide(member, followed)[0] == 1 for member in turn]
            own_refused.append(view.decide(view.predict_proba(asis))[0] != 1)
            pairs_refused += [committee.decide(member, asis)[0] != 1 for member in turn]

        def share(mine, theirs):
            return (np.mean(mine) + MEMBERS * np.mean(theirs)) / (MEMBERS + 1)

        assert plans.survival[plan] == pytest.approx(share(own, pairs))
        helps = np.array(own) & own_refused, np.array(pairs) & pairs_refused
        assert plans.help[plan] == pytest.approx(share(*helps))
        person = People(rows[plans.of[plan]][None], plans.people.background)
        granted = searcher.chance(person, 1)[0]
        assert granted == pytest.approx(1 - share(own_refused, pairs_refused))
        assert plans.help[plan] <= min(plans.survival[plan], 1 - granted) + 1e-12
    assert len(plans) > 10
    assert (plans.help < plans.survival).any(), "some are granted without the plan"


def test_plans_of_a_committee_are_accepted_by_models_of_other_people(german):
    """The point of it: more of them work for models learnt from the calibration people alone."""
    table, model, _, _, _ = german
    people = table.test.X
    judges = [
        align(
            edfa.SubsetXGB(n_estimators=30, threshold=0.7, seed=seed).fit(part.X, part.y), range(8)
        )
        for seed, part in enumerate((table.calibration, table.calibration))
    ]
    shares = []
    for some in (german, (table, model, None, None, german[4])):
        _, plans = plans_of(some, people)
        first = plans.first[plans.legal]
        followed = plans.make_changes(first, people[plans.legal])
        shares.append(
            np.mean([judge.decide(judge.predict_proba(followed)) == 1 for judge in judges])
        )
    assert shares[0] > shares[1] + 0.03, shares


def test_plans_that_survive_often_enough_are_ranked_by_effort(german):
    table = german[0]
    firsts = []
    for enough in (1.0, 0.6):
        _, plans = plans_of(german, table.test.X, enough=enough)
        firsts.append(
            (
                plans.effort[plans.first[plans.legal]].mean(),
                plans.survival[plans.first[plans.legal]],
            )
        )
    assert firsts[1][0] < firsts[0][0], "what is good enough takes less"
    assert (firsts[1][1] >= 0.6 - 1e-9).mean() == (firsts[0][1] >= 0.6 - 1e-9).mean(), (
        "nobody loses a plan that is"
    )


def test_all_features_are_completed_and_asked_about(german):
    table, model, _, _, blanket = german
    committee = Committee.of(table.train.X, table.train.y, model, 3)
    searcher = SurvivalSearch(committee=committee, all_features=True).fit(table.train)
    background = Background.of(table.train, model, blanket, aligned=True, support=searcher.support_)
    plans = find_recourse(People(table.test.X[:40], background), searcher, desired_class=1)
    followed = plans.make_changes(np.arange(len(plans)), table.test.X[plans.of])
    agree = sum((committee.decide(member, followed) == 1).astype(int) for member in range(3))
    agree += model.decide(model.predict_proba(followed)) == 1
    np.testing.assert_allclose(plans.survival, agree / 4)
    assert (plans.survival < 1).any(), (
        "the model that sees everything does not accept every plan for the blanket's"
    )


def test_the_chance_by_all_features_is_that_of_people_who_were_not_swept(german):
    table, model, _, _, blanket = german
    searcher = SurvivalSearch(all_features=True).fit(table.train)
    background = Background.of(table.train, model, blanket, aligned=True, support=searcher.support_)
    people = People(table.test.X[:5], background)
    outside = ~background.visible
    assert outside.any(), "the sweep of the blanket's view lacks features of the other one"
    np.testing.assert_array_equal(
        searcher.chance(people.with_sweep(), 1), searcher.chance(people, 1)
    )


def test_one_person_is_told_what_many_are(german):
    table = german[0]
    rows = table.test.X[:30].copy()
    rows[:, 5:] = np.nan
    _, plans = plans_of(german, rows)
    refused = np.flatnonzero(plans.legal)
    assert len(refused) > 5
    for person in refused:
        alone = plans_of(german, rows[person : person + 1])[1]
        assert alone.survival[alone.first[0]] == plans.survival[plans.first[person]]
        np.testing.assert_array_equal(alone.to[alone.first[0]], plans.to[plans.first[person]])


@pytest.mark.parametrize("known", [3, 20])
def test_survival_is_the_same_whether_members_are_asked_together_or_apart(
    german, monkeypatch, known
):
    table = german[0]
    rows = table.test.X[:12].copy()
    rows[:, known:] = np.nan
    _, together = plans_of(german, rows)
    monkeypatch.setattr("edfa.predictors.committee.MAX_MERGED_ENTRIES", 0)
    monkeypatch.setattr("edfa.recourse.survival.MAX_ROWS_COMPARED", 0)
    _, apart = plans_of(german, rows)
    assert len(apart) > 5
    np.testing.assert_array_equal(together.to, apart.to)
    np.testing.assert_array_equal(together.survival, apart.survival)
    np.testing.assert_array_equal(together.survival_error, apart.survival_error)
