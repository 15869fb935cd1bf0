"""How much of a long test runs: all of it with ``./run test --all``, a part otherwise."""

ALL = False  # set by conftest.py before the tests are collected


def some(count):
    """A number of examples or draws: as given with --all, else a fifth of it, but at least ten."""
    return count if ALL else max(min(count, 10), count // 5)
