"""DiCE's genetic method: change sets that are crossed, mutated and selected, everybody's population by itself."""

import numpy as np

from edfa.predictors.base import Floats
from edfa.recourse.base import Codes, Found, Task
from edfa.recourse.draw import drawn
from edfa.recourse.measure import lengths
from edfa.recourse.nearest import Nearest
from edfa.recourse.rules import Bools, Reals

__all__ = ["evolve"]

SIZE = 10  # of a population, for each plan that is wanted
STALLED = 5  # generations without a better best half
PARENT = 0.8  # of genes are from one of the two parents; the others are drawn anew


def evolve(task: Task, nearest: Nearest, plans: int, generations: int) -> Found:
    """Populations that start from training people on the other side and from draws.

    DEVIATION from DiCE's program, not from its paper: parents are the fittest half, mutation draws from training people
    within the rules, equal individuals count once, and the first population is what it is, so that a search without an
    answer ends.
    """
    size = SIZE * plans
    population = _first(task, nearest, size)
    fitness = _fitness(task, np.arange(len(task)), population)
    open_, waited = np.arange(len(task)), np.zeros(len(task), dtype=np.intp)
    for _ in range(generations):
        chances = task.random.random((3, size, len(task.free)))
        children = _children(task, open_, population[open_], chances)
        both = np.concatenate([population[open_], children], axis=1)
        fit = np.concatenate([fitness[open_], _fitness(task, open_, children)], axis=1)
        fit = fit + np.where(_twins(both), 10.0, 0.0)
        order = np.argsort(fit, axis=1, kind="stable")[:, :size]
        kept = np.take_along_axis(fit, order, axis=1)
        better = kept[:, : size // 2].mean(axis=1) < fitness[open_][:, : size // 2].mean(axis=1) - 1e-9
        population[open_], fitness[open_] = np.take_along_axis(both, order[:, :, None], axis=1), kept
        waited[open_] = np.where(better, 0, waited[open_] + 1)
        open_ = open_[waited[open_] < STALLED]
        if not len(open_):
            break
    return Found.of(np.repeat(np.arange(len(task)), size), population.reshape(-1, len(task.features)))


def _first(task: Task, nearest: Nearest, size: int) -> Floats:
    """Half of it permitted values of the nearest on the other side, half of it draws, sorted by fitness."""
    found = np.full((len(task), size, len(task.features)), np.nan, dtype=np.float32)
    everyone, half = np.arange(len(task)), size // 2
    for column in task.free:
        chance, some = task.random.random((2, size - half))
        found[:, half:, column] = np.where(some < 0.5, drawn(task, int(column), everyone, chance), np.float32(np.nan))
    for case, donors in nearest.sides(task):
        near = nearest.pool.nearest(task, case, donors, half)
        for column in task.free:
            value, own = nearest.pool.rows[near, task.features[column]], task.facts[case, column][:, None]
            fine = task.rules.permits(int(task.features[column]), own, value)
            found[case, : near.shape[1], column] = np.where(fine, value, np.float32(np.nan))
    order = np.argsort(_fitness(task, everyone, found), axis=1, kind="stable")
    return np.take_along_axis(found, order[:, :, None], axis=1)


def _children(task: Task, case: Codes, parents: Floats, chances: Reals) -> Floats:
    """Each of two of the fitter half: gene by gene from the one or the other, or drawn anew."""
    size, half = parents.shape[1], max(1, parents.shape[1] // 2)
    pick = (chances[2, :, :2] * half).astype(np.intp) if chances.shape[2] > 1 else np.zeros((size, 2), dtype=np.intp)
    children = parents[:, pick[:, 0]]
    for k, column in enumerate(task.free):
        gene, value = chances[0, :, k], chances[1, :, k]
        other = np.where(gene < PARENT / 2, children[:, :, column], parents[:, pick[:, 1], column])
        anew = drawn(task, int(column), case, value)
        children[:, :, column] = np.where(gene < PARENT, other, anew)
    return children


def _fitness(task: Task, case: Codes, population: Floats) -> Reals:
    """How far from recourse, how far from the person, how many changes; the lower the better."""
    flat, who = population.reshape(-1, population.shape[2]), np.repeat(case, population.shape[1])
    score = task.score(who, task.ask(task.changed(who, flat)))
    size = lengths(task.rules, task.mask, task.facts[who], flat)
    count = max(1, len(task.free))
    short = np.maximum(0, max(0.5, task.rules.constraints.min_probability) - score) * 4
    return np.asarray(short + 0.2 * size.heom + 0.2 * size.l0 / count).reshape(population.shape[:2])


def _twins(population: Floats) -> Bools:
    """Which individuals are in the population already."""
    filled = np.nan_to_num(population, nan=np.inf)
    order = np.lexsort([*filled.transpose(2, 0, 1)[::-1]], axis=1)
    in_order = np.take_along_axis(filled, order[:, :, None], axis=1)
    same = np.concatenate(
        [np.zeros((len(order), 1), dtype=bool), (in_order[:, 1:] == in_order[:, :-1]).all(axis=2)], axis=1
    )
    found = np.zeros_like(same)
    np.put_along_axis(found, order, same, axis=1)
    return found
