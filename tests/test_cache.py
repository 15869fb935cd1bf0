"""Every memory of results forgets beyond its bound, and whoever shares it gets the same."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import advisors
import numpy as np
import pytest

import edfa
from edfa.advice.interview import Interview
from edfa.blanket.independence import DataTester, g2
from edfa.blanket.sources import open_source
from edfa.cache import Cache
from edfa.predictors.conditional import Neighbours
from edfa.predictors.user_model.answers import Answers

ROWS = np.random.default_rng(0).random((400, 4)).astype(np.float32)


def test_it_forgets_what_was_used_least_recently():
    cache = Cache("names", most=2)
    for name in ("a", "b", "a", "c"):
        cache.get(name, name.upper)
    assert "a" in cache
    assert "b" not in cache
    assert len(cache) == 2


def test_what_is_remembered_is_not_made_again():
    cache, made = Cache("numbers", most=3), []
    for _ in range(2):
        assert cache.get("one", lambda: made.append(1) or 1) == 1
    assert made == [1]
    cache.forget()
    cache.get("one", lambda: made.append(1) or 1)
    assert made == [1, 1]


def test_threads_get_one_result():
    cache = Cache("objects", most=1)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: cache.get("key", object), range(50)))
    assert cache.get("key", object) in results
    assert len({id(result) for result in results[-10:]}) == 1


def test_who_asks_for_what_is_being_made_waits_and_others_do_not():
    cache, begun, go_on, made = Cache("slow", most=9), Event(), Event(), []

    def make():
        begun.set()
        assert go_on.wait(20)
        made.append(1)
        return "made"

    with ThreadPoolExecutor(4) as threads:
        same = [threads.submit(cache.get, "slow", make) for _ in range(3)]
        assert begun.wait(20)
        assert cache.get("another", lambda: "at once") == "at once"
        assert not any(each.done() for each in same)
        go_on.set()
        assert [each.result(20) for each in same] == ["made"] * 3
    assert made == [1]


def test_what_could_not_be_made_is_asked_for_again():
    cache = Cache("errors", most=9)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.get("key", lambda: 1 / 0)
    assert cache.get("key", lambda: 1) == 1
    assert not cache._making


def test_one_result_may_need_others():
    cache = Cache("factorials", most=9)

    def factorial(n):
        return cache.get(n, lambda: n * factorial(n - 1) if n else 1)

    assert factorial(6) == 720
    assert len(cache) == 7


def test_a_smaller_bound_forgets_now_and_what_is_kept_again_is_the_newest():
    cache = Cache("letters", most=9)
    cache.keep(dict.fromkeys("abcd", 1))
    cache.keep({"a": 2})
    cache.bound(2)
    assert cache.held() == {"d": 1, "a": 2}


def test_tests_of_independence_are_the_same_however_much_is_forgotten():
    train = edfa.load("german").train
    source = open_source(train, None, None, False)[0]
    testers = [DataTester(source), DataTester(source.take(np.arange(source.n)))]
    few = testers[1]
    few.source._strata.bound(2)
    few._correlation_tests._shared.bound(2)
    asked = [(0, 1, (2, 3)), (4, 5, (2, 3)), (0, 6, (1,)), (7, 8, (2, 3, 9)), (0, 1, (2, 4))]

    def ask(tester):
        with ThreadPoolExecutor(4) as threads:
            return [
                *threads.map(
                    lambda each: (tester.run(*each), g2(tester.source.contingency_table(*each, 5))),
                    asked * 8,
                )
            ]

    shared, forgotten = map(ask, testers)
    assert shared == forgotten
    assert len(testers[0]._correlation_tests._shared) > len(few._correlation_tests._shared) == 2
    assert len(testers[0].source._strata) > len(few.source._strata) == 2


def test_neighbours_are_the_same_however_many_spaces_are_held():
    near = Neighbours.of(ROWS, categorical=())
    few = Neighbours.of(ROWS, categorical=())
    few._spaces.bound(2)
    sets = [np.where(np.arange(4) < known, ROWS[:5], np.nan) for known in (1, 2, 3, 4)] * 6
    with ThreadPoolExecutor(4) as threads:
        for here, there in zip(
            threads.map(near.nearest, sets), threads.map(few.nearest, sets), strict=True
        ):
            np.testing.assert_array_equal(here, there)
    assert (len(near._spaces), len(few._spaces)) == (4, 2)


def test_a_user_models_answers_are_the_same_when_some_are_forgotten():
    answers = Answers(lambda rows, given: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1), 100)
    answers._remembered.bound(3)
    with ThreadPoolExecutor(4) as threads:
        for given in threads.map(answers, [ROWS[i : i + 4] for i in range(0, 40, 4)] * 3):
            assert given.shape == (4, 2)
    np.testing.assert_array_equal(answers(ROWS[:9])[:, 0], ROWS[:9, 0])
    assert len(answers._remembered) == 3


def test_interviews_are_the_same_when_assessments_are_forgotten():
    advisor, states = advisors.german(), Cache("interviews", 1)
    facts = [{"age": 30 + i, "credit_amount": 2400} for i in range(6)]

    def decide(told, states=None):
        interview = Interview(advisor.fitted, states=states).begin(told)
        return interview.decision, interview.question, interview.standing.status

    alone = [decide(told) for told in facts]
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(lambda told: decide(told, states), facts * 3)] == alone * 3
    assert len(states) == 1
