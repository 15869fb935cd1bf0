"""Answers are kept by row, calls are counted, and one step may ask only so much."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from own_people import hide, people, wrap_two_numbers

from edfa.errors import ModelError
from edfa.predictors.own_model import rows as module
from edfa.predictors.own_model.rows import Asked, KeptAnswers, limit_rows


class Counter:
    """A model whose last bit depends on how often it was asked."""

    def __init__(self):
        self.batches = []

    def __call__(self, rows):
        self.batches.append(len(rows))
        chance = 1 / (1 + np.exp(-rows.sum(axis=1, dtype=float))) + len(self.batches) * 1e-15
        return np.stack([1 - chance, chance], axis=1)


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def test_a_row_has_one_answer_to_the_bit_whenever_it_is_asked():
    ask = KeptAnswers(Counter(), 1000)
    first = ask(rows(20))
    again = ask(np.concatenate([rows(30, seed=1), rows(20)]))
    np.testing.assert_array_equal(again[30:], first)
    assert ask.asked == Asked(calls=2, rows=50, remembered=20)


def test_a_row_that_is_there_twice_is_asked_about_once():
    model = Counter()
    ask = KeptAnswers(model, 1000)
    np.testing.assert_array_equal(ask(np.tile(rows(1), (9, 1))), np.tile(ask(rows(1)), (9, 1)))
    assert sum(model.batches) == 1


def test_no_call_has_more_rows_than_a_batch():
    model = Counter()
    assert KeptAnswers(model, 7)(rows(30)).shape == (30, 2)
    assert max(model.batches) <= 7
    assert KeptAnswers(model, 7)(rows(0)).shape[0] == 0


def test_pinned_answers_win_in_small_and_large_questions():
    ask, some = KeptAnswers(Counter(), 100_000), rows(6000)
    pinned = np.array([[0.25, 0.75], [1.0, 0.0]])
    ask(some[:10])
    ask.pin(some[[3, 5000]], pinned)
    np.testing.assert_array_equal(ask(some[[3, 5000]]), pinned)
    many = ask(some)
    np.testing.assert_array_equal(many[[3, 5000]], pinned)
    assert not (many[[2, 4999]] == pinned).any()


def test_the_oldest_answers_are_dropped(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 10)
    ask = KeptAnswers(Counter(), 100)
    ask(rows(15))
    assert len(ask._answers) == 10
    ask(rows(15)[:5])
    assert ask.asked.rows == 20


def test_a_limit_raises_before_the_call_that_goes_beyond():
    model = Counter()
    ask = KeptAnswers(model, 100)
    with limit_rows(25):
        ask(rows(20))
        ask(rows(20))  # remembered: nothing is asked
        with pytest.raises(ModelError, match="more than 25 rows; raise max_rows"):
            ask(rows(10, seed=1))
        ask(rows(5, seed=2))
        with pytest.raises(ModelError, match="more than 25 rows"):
            ask(rows(1, seed=3))
    assert model.batches == [20, 5]
    ask(rows(30, seed=4))  # without a limit
    with limit_rows(None):
        ask(rows(30, seed=5))


def test_a_limit_within_another_is_that_of_the_outer_step():
    ask = KeptAnswers(Counter(), 100)
    with limit_rows(10), limit_rows(1000), pytest.raises(ModelError, match="more than 10 rows"):
        ask(rows(11))
    with pytest.raises(ZeroDivisionError), limit_rows(3):
        1 / 0  # noqa: B018
    ask(rows(11))  # the limit ended with its step


def test_a_wrapped_model_obeys_the_limit_and_answers_afterwards():
    table = people()
    model = wrap_two_numbers("completed", n_completions=16).fit_table(table.train)
    partly = hide(table.test.X[:5], 1)
    with limit_rows(40), pytest.raises(ModelError, match="40 rows"):
        model.predict_proba(partly)
    answers = model.predict_proba(partly)
    np.testing.assert_array_equal(answers, model.predict_proba(partly))


def test_a_failing_call_leaves_what_was_kept():
    def model(some):
        if len(some) == 3:
            raise ModelError("away")
        return np.full((len(some), 2), 0.5)

    ask = KeptAnswers(model, 100)
    kept = ask(rows(5))
    with pytest.raises(ModelError, match="away"):
        ask(rows(3, seed=1))
    np.testing.assert_array_equal(ask(rows(5)), kept)
    assert ask.asked == Asked(calls=1, rows=5, remembered=5)


def test_threads_share_answers_and_every_call_is_counted():
    lock, batches = threading.Lock(), []

    def model(some):
        with lock:
            batches.append(len(some))
        return np.stack([1 - some[:, 0], some[:, 0]], axis=1).astype(float)

    ask = KeptAnswers(model, 8)
    parts = [rows(50, seed=seed % 7) for seed in range(60)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, parts))
    for part, answer in zip(parts, answers, strict=True):
        np.testing.assert_array_equal(answer[:, 1], part[:, 0].astype(float))
    assert (ask.asked.calls, ask.asked.rows) == (len(batches), sum(batches))
    assert ask.asked.rows + ask.asked.remembered == 60 * 50


def test_a_limit_is_each_threads_own():
    ask = KeptAnswers(Counter(), 100)

    def step(seed):
        with limit_rows(20):
            return len(ask(rows(20, seed=seed)))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(step, range(8))) == [20] * 8
