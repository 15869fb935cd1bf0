"""What a person is told about a model of the user's own is what that model says: lists, letters,
plans, odd numbers.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from advisors import walk, words
from own_people import WEIGHTS, people, two_numbers
from scipy.special import expit

import edfa
from edfa.advice.assessment import Assessment
from edfa.advice.batch import advise
from edfa.advice.calibration_people import encode_complete
from edfa.advice.principal import find_reasons
from edfa.cache import Cache
from edfa.errors import ModelError
from edfa.parallel import map_parallel
from edfa.predictors.user_model.model import UserModel


def jagged(frame):
    """A model that its distilled view gets wrong now and then: it looks at digits."""
    income, debt = (frame[name].to_numpy(float) for name in WEIGHTS)
    return expit(2 * np.sin(3 * income) + 2 * np.cos(2 * debt))


@cache
def advisor(model=jagged, searcher="survival"):
    wrapped = edfa.wrap(model, columns=list(WEIGHTS), n_hybrids=0)
    return edfa.Advisor(predictor=wrapped, searcher=searcher, seed=0).fit(people())


def states(ready, n=60):
    """Interviews in which one of two facts is known."""
    name, other = WEIGHTS
    for person in words(people())[:n]:
        yield ready.interview({name: person[name]})
        yield ready.interview({other: person[other]})


def granted_in_most(ready, known, feature, values):
    """For each of the values, whether the model grants most of a person's completions with one
    fact replaced by it; without edfa's own way to ask.
    """
    filled = ready.fitted.searcher.completions_.neighbours.complete(known)[0]
    each = np.tile(filled, (len(values), 1))
    each[:, feature] = np.repeat(values, len(filled))
    granted = jagged(ready.fitted.encoder.decode(each)) >= 0.5
    return granted.reshape(len(values), -1).mean(axis=1) > 0.5


def disagreements(ready):
    """Interviews that tell a refusal while what stands for the model would grant."""
    cases = [interview for interview in states(ready) if interview.assessment.probability[0] > 0.5]
    return [interview for interview in cases if not interview.decision.favourable]


def test_what_can_turn_the_decision_does_so_in_most_completions():
    ready, seen = advisor(), {True: 0, False: 0}
    support = ready.fitted.background.support
    for interview in states(ready, 12):
        known = interview.assessment.X
        feature = int(np.flatnonzero(~np.isnan(known[0]))[0])
        values = support.values[feature]  # noqa: PD011
        assert len(values) > 64  # so that medians of groups stand for them
        turns = granted_in_most(ready, known, feature, values) != interview.decision.favourable
        name = ready.fitted.schema.names[feature]
        share = interview.partition.counterfactual.get(name, 0.0)
        assert share == pytest.approx(np.mean(turns), abs=0.06)  # of 64 medians, not of all values
        seen[share > 0] += 1
    assert seen[True] > 5


def test_lists_and_letters_go_with_the_decision_that_is_told():
    ready = advisor()
    cases = disagreements(ready)
    assert len(cases) >= 3
    for interview in cases:
        reasons = find_reasons(interview.assessment, {})
        values = reasons.values  # noqa: PD011
        assert values.margin < 0
        assert np.nansum(values.contributions) == pytest.approx(values.margin - values.baseline)
        share, cases_asked = interview.decision.probability, interview.decision.cases
        log_odds = np.log((share * cases_asked + 0.25) / (cases_asked - share * cases_asked + 0.75))
        assert values.margin == pytest.approx(log_odds)


def test_a_tie_is_no_majority_and_shares_of_three_classes_add_up():
    class Half(UserModel):
        def ask(self, rows):
            return np.eye(3)[rows[:, 0].astype(int)]

    half = Half(None)
    half.classes_, half.prior_ = np.arange(3), np.array([0.2, 0.3, 0.5])
    half.varies_, half.n_features_in_ = np.array([True, True]), 2
    possible = np.array([[0, 1], [1, 1], [1, 1], [2, 1]], dtype=np.float32)
    for favourable, decided in ((1, 0), (0, 1), (2, 1)):
        majority = half.over_completions(possible, favourable)
        chances = majority.predict_known(
            np.array([False, True]), np.array([[3.0]], dtype=np.float32)
        )
        assert chances.sum() == pytest.approx(1)
        assert majority.decide(chances)[0] == decided  # 2 of 4 are not more than half
    most = half.over_completions(possible[1:], 1)
    assert (
        most.decide(
            most.predict_known(np.array([False, True]), np.array([[3.0]], dtype=np.float32))
        )[0]
        == 1
    )


@pytest.mark.parametrize("searcher", ["nearest", "nice", "survival"])
def test_the_chances_of_plans_are_the_models_own_whoever_found_them(searcher):
    ready, plans = advisor(searcher=searcher), 0
    neighbours = ready.fitted.background.neighbours
    for interview in states(ready, 30):
        for plan, to in zip(interview.plans(), interview.assessment.plans(3).to, strict=True):
            assert plan.survival >= 0.5, "nothing is handed out that would mostly be refused"
            assert plan.probability_after == plan.survival
            assert plan.probability_before == interview.decision.probability
            if searcher != "survival":  # which takes a second look, at others
                filled = neighbours.complete(interview.assessment.X)[0]
                changed = np.where(np.isnan(to), filled, to)
                assert plan.survival == np.mean(jagged(ready.fitted.encoder.decode(changed)) >= 0.5)
            plans += 1
    assert plans > 3


# Numbers beyond all that was seen


def turning_back(frame):
    """A model that grants more with more income, up to 4, and nothing beyond it."""
    return np.where(frame["income"].to_numpy(float) > 4, 0.05, two_numbers(frame))


RICH = {"income": 4.5, "debt": -1.0}


def test_the_last_word_is_about_the_person_as_they_were_given():
    ready = advisor(turning_back)
    highest = ready.fitted.encoder["income"].high
    assert highest < 4
    *_, last = walk(ready.interview({"income": 4.5}), RICH)
    assert [flag.taken for flag in last.log.flags] == [highest]
    assert last.decision.probability == 0.05
    assert last.flags == (
        (
            f"income: 4.5 is above {highest}, the highest seen; people like you are looked "
            f"for at {highest}"
        ),
    )
    again = ready.interview({"income": highest, "debt": -1.0})
    assert again.decision.favourable, "who really has what was seen is another person"
    assert ready.interview(RICH).decision.probability == 0.05
    assert ready.verify(last.receipt()).outcome == "holds"


def test_completions_that_look_like_the_edge_are_not_taken_for_the_person():
    """Before the income is told, somebody else's highest income may complete them: that is no
    4.5.
    """
    ready = advisor(turning_back)
    interview = edfa.advice.interview.Interview(ready.fitted, states=Cache("interviews", 8))
    interview.begin({"debt": -1.0}).answer(income=4.5)
    before, after = (assessment.people.predictor.given for assessment in interview._history)
    assert before == ()
    assert [number.value for number in after] == [4.5]


def test_workers_ask_about_the_numbers_that_a_person_gave():
    """``find_recourse`` and others share work among threads, which get everything by argument."""
    ready = advisor(turning_back)
    people = ready.interview(RICH).assessment.people
    alone = people.predictor.predict_proba(people.X)
    assert alone[0, ready.fitted.favourable] == 0.05
    for shared in map_parallel(people.predictor.predict_proba, [people.X] * 4, 2):
        np.testing.assert_array_equal(shared, alone)
    limited = people.predictor.for_people(people.predictor.given)
    limited._limit.most = 0
    rows = [people.X + np.float32(step) for step in (1, 2)]
    with pytest.raises(ModelError, match="more than 0 rows"):
        list(map_parallel(limited.predict_proba, rows, 2))


def test_a_file_says_what_interviews_say_of_odd_numbers():
    ready = advisor(turning_back)
    highest = float(ready.fitted.encoder["income"].high)
    rows = pd.DataFrame({"income": [4.5, highest, 4.5, 1.0], "debt": [-1.0, -1.0, np.nan, 0.5]})
    advice = advise(ready.fitted, rows)
    for row, chance, status in zip(
        rows.to_dict("records"), advice["probability"], advice["status"], strict=True
    ):
        interview = ready.interview({name: value for name, value in row.items() if value == value})
        assert interview.decision.probability == pytest.approx(chance)
        assert interview.standing.status == status
    assert advice["probability"][0] == 0.05
    assert advice["probability"][1] > 0.5


def test_what_is_remembered_of_a_table_is_not_said_of_others():
    ready = advisor(turning_back)
    highest = float(ready.fitted.encoder["income"].high)
    table = people()
    frame = table.test.frame.iloc[:1].assign(income=4.5, debt=-1.0)
    X = encode_complete(replace(table.test, frame=frame.reset_index(drop=True)), ready.fitted).X  # noqa: N806
    assert ready.fitted.model.predict_proba(X)[0, 1] == 0.05, "the table's own person"
    told = {**frame.iloc[0][list(ready.fitted.schema.names)].to_dict(), "income": highest}
    assert ready.interview(told).decision.favourable
    assert Assessment.of(ready.fitted, X).decision[0] == ready.fitted.favourable
