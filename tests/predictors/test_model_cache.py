"""What is cached for a model is that model's, and threads and processes may share the cache."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edfa import SubsetXGB
from edfa.predictors.base import ModelCache

ROWS, CLASSES = np.arange(40, dtype=np.float32).reshape(20, 2), [0, 1] * 10
BOTH, FIRST = np.array([True, True]), np.array([True, False])


def model():
    return SubsetXGB(n_estimators=2).fit(ROWS, CLASSES)


def test_a_thing_is_made_once_for_the_same_question():
    cache, one, other = ModelCache(10), model(), model()
    questions = [(one, BOTH, "x"), (one, FIRST, "x"), (other, BOTH, "x"), (one, BOTH, ("x", 1))]
    made = [cache.get(*question, object) for question in questions]
    assert len({id(thing) for thing in made}) == 4
    assert [cache.get(*question, object) for question in questions] == made


def test_a_model_that_is_fitted_again_or_decides_otherwise_is_another():
    cache, one = ModelCache(10), model()
    first = cache.get(one, BOTH, "x", object)
    one.threshold = 0.3
    assert cache.get(one, BOTH, "x", object) is not first
    one.threshold = None
    assert cache.get(one, BOTH, "x", object) is first
    one.fit(ROWS, CLASSES)
    assert cache.get(one, BOTH, "x", object) is not first


def test_the_one_not_asked_for_the_longest_goes():
    cache, one = ModelCache(2), model()
    first, second = (cache.get(one, BOTH, name, object) for name in "ab")
    assert cache.get(one, BOTH, "a", object) is first
    cache.get(one, BOTH, "c", object)
    assert len(cache) == 2
    assert cache.get(one, BOTH, "a", object) is first
    assert cache.get(one, BOTH, "b", object) is not second


def test_many_threads_get_what_they_asked_for():
    cache, one = ModelCache(3), model()

    def ask(number):
        return cache.get(one, BOTH, number % 7, lambda: number % 7)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(2000))) == [number % 7 for number in range(2000)]
    assert len(cache) == 3


def test_another_process_starts_empty():
    cache = ModelCache(5)
    cache.get(model(), BOTH, "x", object)
    again = copy.deepcopy(cache)  # as it is sent, by __reduce__
    assert (len(again), again.max_size) == (0, 5)
