from concurrent.futures import ThreadPoolExecutor

from edfa.cache import Cache


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
