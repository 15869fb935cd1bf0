"""How far around its value a plan of one number still works, for a model that does not tell its
cells: by bisection.

The sweep has tried many values of the number. Between the last of them that works and the next that
fails, the training values are halved until the end is there. What lies between two values that work
was not tried.
"""

import numpy as np

from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import BoolArray, Float32Array, IntArray

__all__ = ["trial_ends"]


def trial_ends(problem: SearchProblem, candidates: Candidates) -> tuple[Float32Array, Float32Array]:
    """The least and the largest permitted value around that of a plan, (candidates,) each, as
    ``interval`` has them.

    Both are NaN but for plans of one number that was swept, of which the model does not tell its
    cells, and that moves no other feature.
    """
    low, high = np.full((2, len(candidates)), np.nan, dtype=np.float32)
    changed, grid = ~np.isnan(candidates.to), problem.group.grid
    single = changed.sum(axis=1) == 1
    moves = problem.actions.consequences.moves_others(problem.features)
    for k, (feature, column) in enumerate(zip(grid.features, grid.columns, strict=True)):
        rows = np.flatnonzero(single & changed[:, column])
        if (
            not len(rows)
            or grid.has_cells[k]
            or not problem.actions.continuous[feature]
            or moves[column]
        ):
            continue
        tried = slice(int(grid.starts[k]), int(grid.starts[k + 1]))
        works = problem.single_recourse[candidates.case[rows], tried]
        low[rows], high[rows] = _ends(
            problem, candidates.take(rows), int(column), grid.value[tried], works
        )
    return low, high


def _ends(
    problem: SearchProblem, plans: Candidates, column: int, tried: Float32Array, works: BoolArray
) -> tuple[Float32Array, Float32Array]:
    """The ends of plans (n,) that change one column alone; ``works`` (n, tried) says which tried
    values do.
    """
    permitted = problem.actions.values[int(problem.features[column])]
    value, own = plans.to[:, column], problem.facts[plans.case, column]
    ends = []
    for way in (-1, 1):
        beyond = (tried - value[:, None]) * way > 0
        far = np.where(beyond & ~works, tried, np.float32(np.inf * way))
        fails = far.min(axis=1) if way > 0 else far.max(axis=1)  # the nearest that fails
        within = np.where(
            beyond & works & ((fails[:, None] - tried) * way > 0), tried, value[:, None]
        )
        good = (
            within.max(axis=1) if way > 0 else within.min(axis=1)
        )  # the farthest that works before it
        end = _bisect(problem, plans.case, column, permitted, good, fails)
        open_end = np.isinf(fails) & ((value - own) * way > 0)
        ends.append(np.where(open_end, np.float32(np.nan), end))
    return ends[0], ends[1]


def _bisect(
    problem: SearchProblem,
    case: IntArray,
    column: int,
    permitted: Float32Array,
    good: Float32Array,
    fails: Float32Array,
) -> Float32Array:
    """The farthest permitted value (n,) from ``good``, which works, towards ``fails``, which fails
    or is infinite.
    """
    last = len(permitted) - 1
    best = np.clip(np.searchsorted(permitted, good), 0, last)
    best = np.where(permitted[best] == good, best, np.clip(best - 1, 0, last))
    wrong = np.searchsorted(permitted, fails, side="left")
    wrong = np.where(fails == -np.inf, -1, np.where(fails == np.inf, last + 1, wrong))
    while (left := np.flatnonzero(np.abs(wrong - best) > 1)).size:
        middle = (best[left] + wrong[left]) // 2
        to = np.full((len(left), len(problem.features)), np.nan, dtype=np.float32)
        to[:, column] = permitted[middle]
        probabilities = problem.predict(problem.apply(case[left], to))
        turned = problem.is_recourse(case[left], probabilities)
        best[left], wrong[left] = (
            np.where(turned, middle, best[left]),
            np.where(turned, wrong[left], middle),
        )
    return permitted[best]
