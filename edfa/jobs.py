"""Work that is shared among threads: numpy, XGBoost and torch leave the interpreter to the others while they count."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from edfa.errors import SettingError

__all__ = ["processors", "share"]

Part = TypeVar("Part")
Done = TypeVar("Done")


def processors(jobs: int | None) -> int:
    """So many jobs, or one for each processor that may be used.

    >>> processors(3), processors(None) >= 1
    (3, True)
    """
    if jobs is None:
        return int(cpu_count())
    if jobs < 1:
        raise SettingError(f"jobs: at least 1, not {jobs}")
    return jobs


def share(work: Callable[[Part], Done], parts: Sequence[Part], jobs: int = 1) -> Iterator[Done]:
    """What becomes of every part, in their order; so many are worked on at a time.

    >>> list(share(str.upper, ["a", "b", "c"], jobs=2))
    ['A', 'B', 'C']
    """
    if jobs == 1 or len(parts) < 2:
        yield from map(work, parts)
        return
    # Each job has a processor of its own: what multiplies matrices on all of them would only be in the others' way.
    with threadpool_limits(1), ThreadPoolExecutor(min(jobs, len(parts))) as pool:
        yield from pool.map(work, parts)
