"""Work shared among threads: numpy, XGBoost and torch release the interpreter while they count."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from edfa.errors import SettingError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables of the environment that libraries which multiply matrices read when they are loaded."""

Part = TypeVar("Part")
Done = TypeVar("Done")


def count_jobs(n_jobs: int | None) -> int:
    """The number of jobs that ``n_jobs`` means, as scikit-learn reads it.

    Parameters
    ----------
    n_jobs
        None is 1, -1 is one a processor, -2 one fewer.

    Raises
    ------
    SettingError
        If it is 0.

    Examples
    --------
    >>> count_jobs(3), count_jobs(None), count_jobs(-1) >= 1
    (3, 1, True)
    """
    if n_jobs == 0:
        raise SettingError("n_jobs: a number of jobs, or -1 for one a processor, not 0")
    return int(effective_n_jobs(n_jobs))


def map_parallel(
    work: Callable[[Part], Done], parts: Sequence[Part], n_jobs: int = 1
) -> Iterator[Done]:
    """Do the same work on many parts, in threads.

    Parameters
    ----------
    work
        What to do with one part.
    parts
        The parts.
    n_jobs
        The number of threads; each has one thread for matrix products. With 1, the work is done in
        the caller's thread.

    Yields
    ------
    Done
        The result of each part, in the order of ``parts``.

    Examples
    --------
    >>> list(map_parallel(str.upper, ["a", "b", "c"], n_jobs=2))
    ['A', 'B', 'C']
    """
    if n_jobs == 1 or len(parts) < 2:
        yield from map(work, parts)
        return
    # Each job has a processor of its own: what multiplies matrices on all of them would only be in
    # the others' way.
    with threadpool_limits(1), ThreadPoolExecutor(min(n_jobs, len(parts))) as pool:
        yield from pool.map(work, parts)
