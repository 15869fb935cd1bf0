"""DiCE: several different plans at once, by chance, by evolution, or along a gradient.

Mothilal, Sharma & Tan, "Explaining machine learning classifiers through diverse counterfactual
explanations" (2020). ``DiCE`` is the searcher; ``evolve`` is its genetic method, ``Draws`` and
``draw_values`` draw values from training people, within the action set: the same draws for
everybody who knows the same. A *population* is an array of change sets, (cases, individuals, known
features), NaN: unchanged.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError, SettingError, check_known
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem, distinct_rows, rank_in_case
from edfa.recourse.searchers.nearest import Nearest
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, IntArray

SIZE = 10  # individuals of a population, for each plan that is wanted
PATIENCE = 5  # generations without a better best half
INHERITED = 0.8  # share of genes that come from one of the two parents; the others are drawn anew
Method = Literal["random", "genetic", "gradient"]
METHODS: tuple[Method, ...] = ("random", "genetic", "gradient")


@dataclass(eq=False, repr=False)
class DiCE(Searcher):
    """A few diverse plans each.

    Parameters
    ----------
    train
        The training people: what may be drawn.
    method
        ``"random"``: one, two and more features get values drawn from training people.
        ``"genetic"``: such draws and training people evolve. ``"gradient"``: numbers move along a
        neural model's gradient, away from each other.
    plans
        How many plans each.
    draws, generations, steps
        Draws a round; the longest evolution; steps along the gradient.
    holds_further, min_support
        As for every ``Searcher``.

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

    method: Method = "random"
    _: KW_ONLY
    plans: int = 4
    draws: int = 256
    generations: int = 50
    steps: int = 150

    finished = True

    def _check_settings(self) -> None:
        super()._check_settings()
        check_known("method", self.method, METHODS)
        if min(self.plans, self.draws, self.generations, self.steps) < 1:
            raise SettingError("plans, draws, generations and steps are at least 1")

    @property
    def uses_sweep(self) -> bool:  # type: ignore[override]
        """Whether the sweep of single changes is needed: as the start of a gradient descent."""
        return self.method == "gradient"

    def _learn(self, train: Table) -> None:
        self.nearest_ = Nearest.part_of(self)

    def search(self, problem: SearchProblem) -> Candidates:
        """Draw, evolve or descend; then only what is needed, and the most different of it.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.

        Returns
        -------
        Candidates
            At most ``plans`` of each case, minimal and with the model's probabilities.

        Raises
        ------
        DataError
            If the method is ``"gradient"`` and the model has none.
        """
        if self.method == "random":
            candidates = self._random(problem)
        elif self.method == "genetic":
            candidates = evolve(problem, self.nearest_, self.plans, self.generations)
        else:
            candidates = self._gradient(problem)
        minimal = self.minimise(problem, self.confirm(problem, candidates))
        plans = problem.within_max_changes(problem.undominated(minimal))
        return self._choose(problem, plans)

    def _random(self, problem: SearchProblem) -> Candidates:
        """One more feature a round, for cases that have too few plans."""
        draws, active = Draws.of(problem, self.draws), np.arange(len(problem))
        parts, count = [Candidates.none(problem)], np.zeros(len(problem), dtype=np.intp)
        for size in range(1, min(len(problem.free), problem.actions.max_changes) + 1):
            plans = self.confirm(problem, draws.candidates(active, size))
            parts.append(plans)
            count += np.bincount(plans.case, minlength=len(problem))
            if size >= 2:
                active = np.flatnonzero(count < self.plans)
            if not len(active):
                break
        return Candidates.join(*parts)

    def _gradient(self, problem: SearchProblem) -> Candidates:
        """Along the gradient, from the plans of ``Nearest``."""
        if not problem.seen.any():
            return Candidates.none(problem)
        if not problem.differentiable:
            name = type(problem.predictor).__name__
            raise DataError(
                f"the gradient method needs a neural model, and {name} has no gradient; "
                "use random or genetic"
            )
        # torch is asked for only where a model has it
        from edfa.recourse._search.gradient import different

        return different(problem, self.nearest_.search(problem), self.plans, self.steps)

    def _choose(self, problem: SearchProblem, candidates: Candidates) -> Candidates:
        """The best plan of each case, then those farthest from it and from each other."""
        size = problem.lengths(candidates.case, candidates.to)
        ranked = candidates.take(np.lexsort((*size.keys, candidates.case)))
        coordinates = apart(problem.actions, problem.mask, problem.facts[ranked.case], ranked.to)
        return ranked.take(diverse(ranked.case, coordinates, self.plans))


def evolve(problem: SearchProblem, nearest: Nearest, plans: int, generations: int) -> Candidates:
    """Populations that start from training people on the other side and from draws; the last of
    them, unconfirmed.

    DEVIATION from DiCE's program, not from its paper: parents are the fittest half, mutation draws
    from training people within the action set, equal individuals count once, and the first
    population is what it is, so that a search without an answer ends.

    Parameters
    ----------
    problem
        The people, the model and what may be changed.
    nearest
        The searcher whose donors half of the first population comes from.
    plans
        The number of plans that are wanted of each case; a population has ``SIZE`` times as many.
    generations
        The largest number of generations.

    Returns
    -------
    Candidates
        Every individual of every case's last population.
    """
    size, everyone = SIZE * plans, np.arange(len(problem))
    population = _first_population(problem, nearest, size)
    population, fitness = _fittest(population, _fitness(problem, everyone, population), size)
    active, stalled = everyone, np.zeros(len(problem), dtype=np.intp)
    for _ in range(generations):
        uniform = problem.random.random((3, size, len(problem.free)))
        children = _children(problem, active, population[active], uniform)
        family = np.concatenate([population[active], children], axis=1)
        fit = np.concatenate([fitness[active], _fitness(problem, active, children)], axis=1)
        fittest, best = _fittest(family, fit + np.where(_duplicates(family), 10.0, 0.0), size)
        before, after = (part[:, : size // 2].mean(axis=1) for part in (fitness[active], best))
        population[active], fitness[active] = fittest, best
        stalled[active] = np.where(after < before - 1e-9, 0, stalled[active] + 1)
        active = active[stalled[active] < PATIENCE]
        if not len(active):
            break
    return Candidates(np.repeat(everyone, size), population.reshape(-1, len(problem.features)))


def _fittest(
    population: Float32Array, fitness: Float64Array, size: int
) -> tuple[Float32Array, Float64Array]:
    """The fittest individuals of each population, at most ``size``, the best first, and their
    fitness.

    ``population`` is (cases, individuals, known features), ``fitness`` (cases, individuals).
    """
    order = np.argsort(fitness, axis=1, kind="stable")[:, :size]
    chosen = np.take_along_axis(population, order[:, :, None], axis=1)
    return chosen, np.take_along_axis(fitness, order, axis=1)


def _first_population(problem: SearchProblem, nearest: Nearest, size: int) -> Float32Array:
    """Half of it permitted values of the nearest on the other side, half of it draws, (cases, size,
    known features).
    """
    population = np.full((len(problem), size, len(problem.features)), NAN)
    everyone, half = np.arange(len(problem)), size // 2
    for column in problem.free:
        uniform, coin = problem.random.random((2, size - half))
        values = draw_values(problem, int(column), everyone, uniform)
        population[:, half:, column] = np.where(coin < 0.5, values, NAN)
    for case, side in nearest.donors_.sides(problem):
        near = nearest.donors_.nearest(problem, case, side, half)
        values = nearest.donors_.rows[near.ravel()][:, problem.features]
        inherited = problem.permitted(np.repeat(case, near.shape[1]), values)
        population[case, : near.shape[1]] = inherited.reshape(*near.shape, -1)
    return population


def _children(
    problem: SearchProblem, case: IntArray, parents: Float32Array, uniform: Float64Array
) -> Float32Array:
    """A population whose individuals each have two parents of the fitter half.

    A gene comes from the one or the other or is drawn anew.

    Parameters
    ----------
    problem, case
        The problem, and the case of each population, (cases,).
    parents
        The populations before, (cases, individuals, known features), sorted by fitness.
    uniform
        Numbers from 0 to 1, (3, individuals, free features).
    """
    size, half = parents.shape[1], max(1, parents.shape[1] // 2)
    parent = np.zeros((size, 2), dtype=np.intp)
    if uniform.shape[2] > 1:
        parent = (uniform[2, :, :2] * half).astype(np.intp)
    children = parents[:, parent[:, 0]]
    for k, column in enumerate(problem.free):
        gene, value = uniform[0, :, k], uniform[1, :, k]
        mother, father = children[:, :, column], parents[:, parent[:, 1], column]
        inherited = np.where(gene < INHERITED / 2, mother, father)
        drawn = draw_values(problem, int(column), case, value)
        children[:, :, column] = np.where(gene < INHERITED, inherited, drawn)
    return children


def _fitness(problem: SearchProblem, case: IntArray, population: Float32Array) -> Float64Array:
    """How far from recourse, how far from the person, how many changes, (cases, individuals); the
    lower the better.

    ``population`` is (cases, individuals, known features), of the cases ``case`` (cases,).
    """
    flat = population.reshape(-1, population.shape[2])
    flat_case = np.repeat(case, population.shape[1])
    score = problem.score(flat_case, problem.predict_changes(flat_case, flat))
    size, count = problem.lengths(flat_case, flat), max(1, len(problem.free))
    missing = np.maximum(0, max(0.5, problem.actions.rules.min_probability) - score) * 4
    fitness = missing + 0.2 * size.heom + 0.2 * size.l0 / count
    return np.asarray(fitness).reshape(population.shape[:2])


def _duplicates(population: Float32Array) -> BoolArray:
    """Which individuals equal an earlier one of their population, (cases, individuals)."""
    cases, size, width = population.shape
    duplicates = np.ones(cases * size, dtype=bool)
    case = np.repeat(np.arange(cases), size)
    duplicates[distinct_rows(case, population.reshape(-1, width))] = False
    return duplicates.reshape(cases, size)


def diverse(of: IntArray, coordinates: Float64Array, k: int) -> IntArray:
    """At most k rows of each person: the first one, then always the one farthest from those taken.

    Parameters
    ----------
    of
        The person of each row, (rows,); a person's rows stand together, best first.
    coordinates
        Where each row lies, (rows, axes).
    k
        The largest number of rows of a person.

    Returns
    -------
    numpy.ndarray
        The chosen rows, ascending.

    Examples
    --------
    >>> diverse(np.array([0, 0, 0, 1]), np.array([[0.0], [0.1], [5.0], [0.0]]), 2)
    array([0, 2, 3])
    """
    starts = np.flatnonzero(rank_in_case(of) == 0)
    block = np.searchsorted(of[starts], of)
    taken, distance, latest = np.zeros(len(of), dtype=bool), np.full(len(of), np.inf), starts
    for _ in range(k):
        taken[latest] = True
        moved = coordinates - coordinates[latest[block]]
        # Rounded, so that equal distances are equal whatever the batch; then the better plan is
        # taken.
        distance = np.minimum(distance, np.round((moved**2).sum(axis=1), 9))
        latest = np.flatnonzero(rank_in_case(of, -distance, taken) == 0)
    return np.flatnonzero(taken)


def apart(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> Float64Array:
    """Coordinates of plans for ``diverse``: which features change, by how much or to which level.

    Parameters
    ----------
    actions
        What may be changed, for the ranges and levels of features.
    mask
        Which features are known, (features,).
    facts, to
        The people's facts and the change sets, (plans, known features) each; NaN in ``to``:
        unchanged.

    Returns
    -------
    numpy.ndarray
        (plans, axes).
    """
    changed, ordered = ~np.isnan(to), actions.ordered[mask]
    moved = np.where(changed, to - facts, 0) / actions.value_range[mask]
    levels = [
        (to[:, [c]] == actions.support.values[f]) / np.sqrt(2)
        for c, f in enumerate(np.flatnonzero(mask))
        if not actions.ordered[f] and changed[:, c].any()
    ]
    return np.concatenate([changed / np.sqrt(2), moved[:, ordered], *levels], axis=1)


@dataclass(frozen=True, eq=False)
class Draws:
    """Random change sets: each draw has an order of the free features and a number from 0 to 1 for
    each of them.

    Parameters
    ----------
    problem
        What the draws are for.
    order
        The features of each draw in the order in which they are changed, (draws, free features).
    uniform
        Which part of the distribution of a feature's values is taken, (draws, free features).
    """

    problem: SearchProblem
    order: IntArray
    uniform: Float64Array

    @classmethod
    def of(cls, problem: SearchProblem, count: int) -> "Draws":
        """As many draws as ``count``, from the problem's own random stream."""
        shape = (count, len(problem.free))
        order = np.argsort(problem.random.random(shape), axis=1)
        return cls(problem, order, problem.random.random(shape))

    def candidates(self, case: IntArray, size: int) -> Candidates:
        """A change set for every one of these cases and draws.

        Parameters
        ----------
        case
            The cases, (cases,).
        size
            How many features a change set changes: the first of each draw's order.

        Returns
        -------
        Candidates
            (cases * draws) change sets; those of a case stand together.
        """
        problem, count = self.problem, len(self.order)
        to = np.full((len(case), count, len(problem.features)), NAN)
        for k, column in enumerate(problem.free):
            draws = np.flatnonzero((self.order[:, :size] == k).any(axis=1))
            to[:, draws, column] = draw_values(problem, int(column), case, self.uniform[draws, k])
        return Candidates(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def draw_values(
    problem: SearchProblem, column: int, case: IntArray, uniform: Float64Array
) -> Float32Array:
    """Permitted values of a known feature, as frequent as among training people.

    Parameters
    ----------
    problem, column
        The problem, and the feature's position among the known ones.
    case
        The cases that values are drawn for, (cases,).
    uniform
        Numbers from 0 to 1, (draws,): which part of the distribution of permitted values each draw
        takes.

    Returns
    -------
    numpy.ndarray
        (cases, draws); NaN where there is no permitted value.
    """
    feature, own = int(problem.features[column]), problem.facts[case, column]
    values, direction = problem.actions.values[feature], problem.actions.direction[feature]
    if not len(values):
        return np.full((len(case), len(uniform)), NAN)
    support = problem.actions.support
    position = np.searchsorted(support.values[feature], values)
    cumulative = np.cumsum(support.shares[feature][position])
    below = np.r_[0.0, cumulative]
    low, high = np.zeros(len(case)), np.full(len(case), cumulative[-1])
    if direction > 0:
        low = below[np.searchsorted(values, own, side="right")]
    if direction < 0:
        high = below[np.searchsorted(values, own, side="left")]
    share = low[:, None] + uniform * (high - low)[:, None]
    position = np.searchsorted(cumulative, share, side="right")
    drawn = values[np.minimum(position, len(values) - 1)]
    permitted = problem.actions.permits(feature, own[:, None], drawn)
    return np.where(permitted, drawn, NAN)
