"""DiCE: several different plans at once, by chance, by evolution, or along a gradient.

Mothilal, Sharma & Tan, "Explaining machine learning classifiers through diverse counterfactual explanations" (2020).
"""

from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.recourse._search.postprocess import confirm, minimise, undominated
from edfa.recourse._search.ranking import apart, diverse, lengths
from edfa.recourse._search.sampling import Draws, drawn
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.recourse.searchers.nearest import Nearest
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["DiCE", "evolve"]

SIZE = 10  # of a population, for each plan that is wanted
STALLED = 5  # generations without a better best half
PARENT = 0.8  # of genes are from one of the two parents; the others are drawn anew
Method = Literal["random", "genetic", "gradient"]
METHODS: tuple[Method, ...] = ("random", "genetic", "gradient")


def evolve(problem: SearchProblem, nearest: Nearest, plans: int, generations: int) -> Candidates:
    """Populations that start from training people on the other side and from draws.

    DEVIATION from DiCE's program, not from its paper: parents are the fittest half, mutation draws from training people
    within the rules, equal individuals count once, and the first population is what it is, so that a search without an
    answer ends.
    """
    size = SIZE * plans
    population = _first(problem, nearest, size)
    fitness = _fitness(problem, np.arange(len(problem)), population)
    open_, waited = np.arange(len(problem)), np.zeros(len(problem), dtype=np.intp)
    for _ in range(generations):
        probabilities = problem.random.random((3, size, len(problem.free)))
        children = _children(problem, open_, population[open_], probabilities)
        both = np.concatenate([population[open_], children], axis=1)
        fit = np.concatenate([fitness[open_], _fitness(problem, open_, children)], axis=1)
        fit = fit + np.where(_twins(both), 10.0, 0.0)
        order = np.argsort(fit, axis=1, kind="stable")[:, :size]
        kept = np.take_along_axis(fit, order, axis=1)
        better = kept[:, : size // 2].mean(axis=1) < fitness[open_][:, : size // 2].mean(axis=1) - 1e-9
        population[open_], fitness[open_] = np.take_along_axis(both, order[:, :, None], axis=1), kept
        waited[open_] = np.where(better, 0, waited[open_] + 1)
        open_ = open_[waited[open_] < STALLED]
        if not len(open_):
            break
    return Candidates.of(np.repeat(np.arange(len(problem)), size), population.reshape(-1, len(problem.features)))


def _first(problem: SearchProblem, nearest: Nearest, size: int) -> Float32Array:
    """Half of it permitted values of the nearest on the other side, half of it draws, sorted by fitness."""
    found = np.full((len(problem), size, len(problem.features)), np.nan, dtype=np.float32)
    everyone, half = np.arange(len(problem)), size // 2
    for column in problem.free:
        chance, some = problem.random.random((2, size - half))
        found[:, half:, column] = np.where(
            some < 0.5, drawn(problem, int(column), everyone, chance), np.float32(np.nan)
        )
    for case, donors in nearest.sides(problem):
        near = nearest.donors_.nearest(problem, case, donors, half)
        for column in problem.free:
            value, own = nearest.donors_.rows[near, problem.features[column]], problem.facts[case, column][:, None]
            fine = problem.actions.permits(int(problem.features[column]), own, value)
            found[case, : near.shape[1], column] = np.where(fine, value, np.float32(np.nan))
    order = np.argsort(_fitness(problem, everyone, found), axis=1, kind="stable")
    return np.take_along_axis(found, order[:, :, None], axis=1)


def _children(
    problem: SearchProblem, case: IntArray, parents: Float32Array, probabilities: Float64Array
) -> Float32Array:
    """Each of two of the fitter half: gene by gene from the one or the other, or drawn anew."""
    size, half = parents.shape[1], max(1, parents.shape[1] // 2)
    pick = (
        (probabilities[2, :, :2] * half).astype(np.intp)
        if probabilities.shape[2] > 1
        else np.zeros((size, 2), dtype=np.intp)
    )
    children = parents[:, pick[:, 0]]
    for k, column in enumerate(problem.free):
        gene, value = probabilities[0, :, k], probabilities[1, :, k]
        other = np.where(gene < PARENT / 2, children[:, :, column], parents[:, pick[:, 1], column])
        anew = drawn(problem, int(column), case, value)
        children[:, :, column] = np.where(gene < PARENT, other, anew)
    return children


def _fitness(problem: SearchProblem, case: IntArray, population: Float32Array) -> Float64Array:
    """How far from recourse, how far from the person, how many changes; the lower the better."""
    flat, who = population.reshape(-1, population.shape[2]), np.repeat(case, population.shape[1])
    score = problem.score(who, problem.predict(problem.apply(who, flat)))
    size = lengths(problem.actions, problem.mask, problem.facts[who], flat)
    count = max(1, len(problem.free))
    short = np.maximum(0, max(0.5, problem.actions.constraints.min_probability) - score) * 4
    return np.asarray(short + 0.2 * size.heom + 0.2 * size.l0 / count).reshape(population.shape[:2])


def _twins(population: Float32Array) -> BoolArray:
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


class DiCE(Searcher):
    """A few diverse plans each.

    Parameters
    ----------
    train
        The training people: what may be drawn.
    method
        ``"random"``: one, two and more features get values drawn from training people. ``"genetic"``: such draws and
        training people evolve. ``"gradient"``: numbers move along a neural model's gradient, away from each other.
    plans
        How many plans each.
    draws, generations, steps
        Draws a round; the longest evolution; steps along the gradient.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], Background.of(table.train, model))
    >>> plans = find_recourse(people, DiCE(table.train, plans=3), seed=1)
    >>> int(plans.count.max())
    3
    """

    finished = True

    def __init__(
        self,
        train: Table | None = None,
        method: Method = "random",
        *,
        plans: int = 4,
        draws: int = 256,
        generations: int = 50,
        steps: int = 150,
    ) -> None:
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        if min(plans, draws, generations, steps) < 1:
            raise SettingError("plans, draws, generations and steps are at least 1")
        self.method = method
        self.plans = plans
        self.draws = draws
        self.generations = generations
        self.steps = steps
        if train is not None:
            self.fit(train)

    @property
    def uses_sweep(self) -> bool:  # type: ignore[override]
        """Whether the sweep of single changes is needed: as the start of a gradient descent."""
        return self.method == "gradient"

    def _learn(self, train: Table) -> None:
        self.nearest_ = Nearest(train)

    def search(self, problem: SearchProblem) -> Candidates:
        """Draw, evolve or descend; then only what is needed, and the most different of it."""
        if self.method == "random":
            found = self._random(problem)
        elif self.method == "genetic":
            found = evolve(problem, self.nearest_, self.plans, self.generations)
        else:
            found = self._gradient(problem)
        found = undominated(problem, minimise(self, problem, confirm(self, problem, found)))
        found = found.take((~np.isnan(found.to)).sum(axis=1) <= problem.actions.max_changes)
        return self._choose(problem, found)

    def _random(self, problem: SearchProblem) -> Candidates:
        """One more feature a round, for those who have too few plans."""
        drawn, open_ = Draws.of(problem, self.draws), np.arange(len(problem))
        parts, count = [Candidates.none(problem)], np.zeros(len(problem), dtype=np.intp)
        for size in range(1, min(len(problem.free), problem.actions.max_changes) + 1):
            found = confirm(self, problem, drawn.changes(open_, size))
            parts.append(found)
            count += np.bincount(found.case, minlength=len(problem))
            if size >= 2:
                open_ = np.flatnonzero(count < self.plans)
            if not len(open_):
                break
        return Candidates.join(*parts)

    def _gradient(self, problem: SearchProblem) -> Candidates:
        if not (problem.mask & problem.predictor.varies_).any():
            return Candidates.none(problem)
        if not problem.differentiable:
            name = type(problem.predictor).__name__
            raise DataError(
                f"the gradient method needs a neural model, and {name} has no gradient; use random or genetic"
            )
        from edfa.recourse._search.gradient import different

        return different(problem, self.nearest_.search(problem), self.plans, self.steps)

    def _choose(self, problem: SearchProblem, found: Candidates) -> Candidates:
        """The best, then those farthest from it and from each other."""
        size = lengths(problem.actions, problem.mask, problem.facts[found.case], found.to)
        found = found.take(np.lexsort((size.l2, size.l0, np.round(size.effort, 9), found.case)))
        places = apart(problem.actions, problem.mask, problem.facts[found.case], found.to)
        return found.take(diverse(found.case, places, self.plans))
