"""What is kept for a model is that model's, and threads and processes may share it."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edfa import SubsetXGB
from edfa.predictors.cache import ModelCache

ROWS, CLASSES = np.arange(40, dtype=np.float32).reshape(20, 2), [0, 1] * 10
BOTH, FIRST = np.array([True, True]), np.array([True, False])


def model():
    return SubsetXGB(n_estimators=2).fit(ROWS, CLASSES)


def test_a_thing_is_made_once_for_the_same_question():
    kept, one, other = ModelCache(10), model(), model()
    asked = [(one, BOTH), (one, FIRST), (other, BOTH), (one, BOTH, "more")]
    made = [kept.get(*question[:2], object, *question[2:]) for question in asked]
    assert len({id(thing) for thing in made}) == 4
    assert [kept.get(*question[:2], object, *question[2:]) for question in asked] == made


def test_a_model_that_is_fitted_again_or_decides_otherwise_is_another():
    kept, one = ModelCache(10), model()
    first = kept.get(one, BOTH, object)
    one.threshold = 0.3
    assert kept.get(one, BOTH, object) is not first
    one.threshold = None
    assert kept.get(one, BOTH, object) is first
    one.fit(ROWS, CLASSES)
    assert kept.get(one, BOTH, object) is not first


def test_the_one_not_asked_for_the_longest_goes():
    kept, one = ModelCache(2), model()
    first, second = (kept.get(one, BOTH, object, name) for name in "ab")
    assert kept.get(one, BOTH, object, "a") is first
    kept.get(one, BOTH, object, "c")
    assert len(kept) == 2
    assert kept.get(one, BOTH, object, "a") is first
    assert kept.get(one, BOTH, object, "b") is not second


def test_many_threads_get_what_they_asked_for():
    kept, one = ModelCache(3), model()

    def ask(number):
        return kept.get(one, BOTH, lambda: number % 7, number % 7)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(2000))) == [number % 7 for number in range(2000)]
    assert len(kept) == 3


def test_another_process_starts_empty():
    kept = ModelCache(5)
    kept.get(model(), BOTH, object)
    again = copy.deepcopy(kept)  # as it is sent, by __reduce__
    assert (len(again), again.limit) == (0, 5)
