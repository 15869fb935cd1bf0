"""Answers are kept by row, calls are counted, and one step may ask only so much."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from own_people import hide, people, wrap_two_numbers

from edfa.errors import ModelError
from edfa.predictors.user_model import answers as module
from edfa.predictors.user_model.answers import Answers, Asked, RowLimit
from edfa.predictors.user_model.given import Given


class Counter:
    """A model whose last bit depends on how often it was asked."""

    def __init__(self):
        self.batches = []

    def __call__(self, rows, given=()):
        self.batches.append(len(rows))
        chance = 1 / (1 + np.exp(-rows.sum(axis=1, dtype=float))) + len(self.batches) * 1e-15
        return np.stack([1 - chance, chance], axis=1)


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def test_a_row_has_one_answer_to_the_bit_whenever_it_is_asked():
    ask = Answers(Counter(), 1000)
    first = ask(rows(20))
    again = ask(np.concatenate([rows(30, seed=1), rows(20)]))
    np.testing.assert_array_equal(again[30:], first)
    assert ask.asked == Asked(calls=2, rows=50, remembered=20)


def test_a_row_that_is_there_twice_is_asked_about_once():
    model = Counter()
    ask = Answers(model, 1000)
    np.testing.assert_array_equal(ask(np.tile(rows(1), (9, 1))), np.tile(ask(rows(1)), (9, 1)))
    assert sum(model.batches) == 1


def test_no_call_has_more_rows_than_a_batch():
    model = Counter()
    assert Answers(model, 7)(rows(30)).shape == (30, 2)
    assert max(model.batches) <= 7
    assert Answers(model, 7)(rows(0)).shape[0] == 0


def test_pinned_answers_win_in_small_and_large_questions():
    ask, some = Answers(Counter(), 100_000), rows(6000)
    pinned = np.array([[0.25, 0.75], [1.0, 0.0]])
    ask(some[:10])
    ask.pin(some[[3, 5000]], pinned)
    np.testing.assert_array_equal(ask(some[[3, 5000]]), pinned)
    many = ask(some)
    np.testing.assert_array_equal(many[[3, 5000]], pinned)
    assert not (many[[2, 4999]] == pinned).any()


def test_the_oldest_answers_are_dropped(monkeypatch):
    monkeypatch.setattr(module, "MAX_REMEMBERED", 10)
    ask = Answers(Counter(), 100)
    ask(rows(15))
    assert len(ask._remembered) == 10
    ask(rows(15)[:5])
    assert ask.asked.rows == 20


def test_a_limit_raises_before_the_call_that_goes_beyond():
    model = Counter()
    ask = Answers(model, 100)
    limit = RowLimit(25)
    ask(rows(20), limit=limit)
    ask(rows(20), limit=limit)  # remembered: nothing is asked
    with pytest.raises(ModelError, match="more than 25 rows; raise max_rows"):
        ask(rows(10, seed=1), limit=limit)
    ask(rows(5, seed=2), limit=limit)
    with pytest.raises(ModelError, match="more than 25 rows"):
        ask(rows(1, seed=3), limit=limit)
    assert model.batches == [20, 5]
    ask(rows(30, seed=4))  # without a limit


def test_a_model_obeys_the_limit_of_the_people_it_is_asked_about_and_answers_others():
    table = people()
    model = wrap_two_numbers("completed", n_completions=16, max_rows=8).fit_table(table.train)
    partly = hide(table.test.X[:5], 1)
    with pytest.raises(ModelError, match="40 rows"):
        model.for_people(count=5).predict_proba(partly)
    answers = model.predict_proba(partly)
    np.testing.assert_array_equal(answers, model.predict_proba(partly))


def test_who_gave_other_numbers_is_another_person_and_pinned_answers_are_of_a_table():
    asked = []

    def model(some, given):
        asked.append(given)
        return np.full((len(some), 2), 0.5)

    ask, given = Answers(model, 100), (Given(0, 1.0, 80.0),)
    ask.pin(rows(1), np.array([[0.1, 0.9]]))
    assert ask(rows(1))[0, 1] == 0.9
    assert ask(rows(1), ())[0, 1] == 0.5
    assert ask(rows(1), given)[0, 1] == 0.5
    assert asked == [(), given]


def test_a_failing_call_leaves_what_was_kept():
    def model(some, given):
        if len(some) == 3:
            raise ModelError("away")
        return np.full((len(some), 2), 0.5)

    ask = Answers(model, 100)
    kept = ask(rows(5))
    with pytest.raises(ModelError, match="away"):
        ask(rows(3, seed=1))
    np.testing.assert_array_equal(ask(rows(5)), kept)
    assert ask.asked == Asked(calls=1, rows=5, remembered=5)


def test_threads_share_answers_and_every_call_is_counted():
    lock, batches = threading.Lock(), []

    def model(some, given):
        with lock:
            batches.append(len(some))
        return np.stack([1 - some[:, 0], some[:, 0]], axis=1).astype(float)

    ask = Answers(model, 8)
    parts = [rows(50, seed=seed % 7) for seed in range(60)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, parts))
    for part, answer in zip(parts, answers, strict=True):
        np.testing.assert_array_equal(answer[:, 1], part[:, 0].astype(float))
    assert (ask.asked.calls, ask.asked.rows) == (len(batches), sum(batches))
    assert ask.asked.rows + ask.asked.remembered == 60 * 50
