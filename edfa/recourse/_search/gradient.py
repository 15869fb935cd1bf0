"""Along the gradient of a neural model: numbers move; categories and levels come from the plans one
starts with.

``robust`` is PROBE's descent, ``different`` DiCE's. Both move the numbers of *starts*: every case
as it is, and with the changes of its easiest plans. Shifts are counted in training ranges of each
number.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edfa.extras import extra

with extra("neural", "the search along a gradient"):
    import torch
    from torch import Tensor

from edfa.predictors.neural import descend
from edfa.recourse.searcher import Candidates, SearchProblem, rank_in_case
from edfa.typing import Float32Array, IntArray

STARTS = 3  # plans of each case to start from, beside the case itself
LEAST_SHIFT = 1e-3  # of the range: what moves less stays as it is


def robust(
    problem: SearchProblem, near: Candidates, sigma: float, rate: float, steps: int
) -> Candidates:
    """PROBE's descent: until the closed form of the invalidation rate is at most ``rate``, on the
    shortest way.

    To first order, noise of covariance S turns the margin g into a normal variable, so that the
    rate is 1 - Φ(g / sqrt(∇g' S ∇g)).

    Parameters
    ----------
    problem
        The people, and a neural model.
    near
        Plans to start from.
    sigma
        The standard deviation of the noise on every number, in training ranges.
    rate
        The invalidation rate that is accepted.
    steps
        The number of steps down the gradient.

    Returns
    -------
    Candidates
        One for each start from which a robust plan was reached, not confirmed by the model.
    """
    case, to = starting_points(problem, near)
    margin = Margin.of(problem, case, to)
    if not len(margin.columns):
        return Candidates.none(problem)
    shift = torch.zeros(len(case), len(margin.columns), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([shift], lr=0.02, amsgrad=True)
    best, length = shift.detach().clone(), torch.full((len(case),), torch.inf, dtype=torch.float64)
    weight = torch.full((len(case),), 0.5, dtype=torch.float64)
    for step in range(steps):
        value = margin(margin.rows(shift))
        # DEVIATION: the length of the gradient is taken as given in each step; its own gradient
        # needs second derivatives, which not every network has.
        (gradient,) = torch.autograd.grad(value.sum(), shift, retain_graph=True)
        deviation = (gradient * sigma).norm(dim=1) + 1e-9
        fails = 1 - torch.special.ndtr(value / deviation)
        far = margin.distance(shift).sum(dim=1)
        with torch.no_grad():
            better = (value > 0) & (fails <= rate) & (far < length)
            best[better], length[better] = shift[better], far[better]
            if step % 25 == 24:  # where nothing is robust yet, a short way counts for less
                weight[length.isinf()] /= 2
        loss = 3 * (fails - rate).clamp(min=0) + torch.nn.functional.softplus(-value) + weight * far
        margin.descend(optimiser, loss.sum(), shift)
    return margin.candidates(best, to, length.isfinite())


def different(problem: SearchProblem, near: Candidates, plans: int, steps: int) -> Candidates:
    """DiCE's descent: k ``plans`` for each start that are recourse, near, and apart from each other
    (a determinant).

    Parameters
    ----------
    problem
        The people, and a neural model.
    near
        Plans to start from.
    plans
        The number of plans for each start.
    steps
        The number of steps down the gradient.

    Returns
    -------
    Candidates
        Those that reached recourse at some step, not confirmed by the model.
    """
    case, to = starting_points(problem, near)
    count = len(case)
    case, to = np.repeat(case, plans), np.repeat(to, plans, axis=0)
    margin = Margin.of(problem, case, to)
    if not len(margin.columns):
        return Candidates.none(problem)
    # All start near the person, each a little elsewhere.
    noise = problem.random.normal(scale=0.05, size=(plans, len(margin.columns)))
    begin = torch.from_numpy(noise).repeat(count, 1)
    shift = begin.clamp(*margin.bounds).requires_grad_(True)
    optimiser = torch.optim.Adam([shift], lr=0.05)
    best, reached = shift.detach().clone(), torch.zeros(len(case), dtype=torch.bool)
    for _ in range(steps):
        value, length = margin(margin.rows(shift)), margin.distance(shift)
        with torch.no_grad():
            good = value > 0
            best[good], reached[good] = shift[good], True
        by_start = shift.reshape(count, plans, -1)
        kernel = 1 / (1 + (by_start[:, :, None] - by_start[:, None]).abs().sum(dim=3))
        diversity = torch.linalg.det(kernel + 1e-4 * torch.eye(plans))
        loss = (1 - value).clamp(min=0).sum() / plans + 0.5 * length.sum() / plans - diversity.sum()
        margin.descend(optimiser, loss, shift)
    return margin.candidates(best, to, reached)


def starting_points(
    problem: SearchProblem, candidates: Candidates
) -> tuple[IntArray, Float32Array]:
    """Each case as it is, then with its plans of least effort, at most ``STARTS``.

    Returns
    -------
    tuple
        The case of each start, (starts,), and its change set, (starts, known features). Every case
        as it is comes first; then the plans of a case stand together.
    """
    case, to = candidates.case, candidates.to
    order = np.lexsort((problem.lengths(case, to).effort, case))
    order = order[rank_in_case(case[order]) < STARTS]
    unchanged = np.full_like(problem.facts, np.nan)
    return np.r_[np.arange(len(problem)), case[order]], np.concatenate([unchanged, to[order]])


@dataclass(frozen=True, eq=False)
class Margin:
    """How far rows are past the border of recourse, as a differentiable function of their numbers.

    Parameters
    ----------
    problem, case
        The problem, and the case of each row, (rows,).
    start
        The rows to start from, (rows, known features).
    columns
        The known features that are numbers and may move, (numbers,).
    value_range
        The training range of each of these, (numbers,).
    logits
        The model as a function from rows (rows, known features) to logits (rows, classes).
    """

    problem: SearchProblem
    case: IntArray
    start: Tensor
    columns: IntArray
    value_range: Tensor
    logits: Any

    @classmethod
    def of(cls, problem: SearchProblem, case: IntArray, to: Float32Array) -> "Margin":
        """The margin of cases (rows,) with these change sets (rows, known features) made."""
        model, mask = problem.predictor, problem.seen
        seen = np.flatnonzero(mask[problem.features])
        logits: Any = model.differentiable(mask)
        free = problem.features[problem.free]
        columns = problem.free[
            problem.actions.continuous[free]
            & np.array([len(problem.actions.values[f]) > 0 for f in free])
        ]
        value_range = torch.from_numpy(problem.actions.value_range[problem.features[columns]])
        rows = torch.from_numpy(problem.apply(case, to)).double()
        return cls(problem, case, rows, columns, value_range, lambda known: logits(known[:, seen]))

    def __call__(self, rows: Tensor) -> Tensor:
        """Above zero where the desired class, or any but today's, is the likelier, (rows,).

        ``rows`` are (rows, known features). The margin is a difference of log odds.
        """
        logits = self.logits(rows)
        if self.problem.desired_class is None:
            target, sign = torch.from_numpy(self.problem.group.decision[self.case])[:, None], -1
        else:
            target, sign = torch.full((len(rows), 1), self.problem.desired_class), 1
        others = logits.scatter(1, target, -torch.inf).logsumexp(dim=1)
        return torch.as_tensor(sign * (logits.gather(1, target)[:, 0] - others))

    def rows(self, shift: Tensor) -> Tensor:
        """The rows with their numbers shifted (rows, numbers), in training ranges, from the
        start.
        """
        rows = self.start.clone()
        rows[:, self.columns] = rows[:, self.columns] + shift * self.value_range
        return rows

    @cached_property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """The least and the largest permitted shift of each number, (rows, numbers) each."""
        actions, features = self.problem.actions, self.problem.features[self.columns]
        own = self.problem.facts[self.case][:, self.columns].astype(float)
        start = self.start[:, self.columns]
        bounds = []
        for end, closed, furthest in ((0, 1, torch.minimum), (-1, -1, torch.maximum)):
            value = np.array([actions.values[f][end] for f in features]) + 0 * own
            value = np.where(actions.direction[features] == closed, own, value)
            bounds.append((furthest(torch.from_numpy(value), start) - start) / self.value_range)
        return bounds[0], bounds[1]

    def descend(self, optimiser: torch.optim.Optimizer, loss: Tensor, shift: Tensor) -> None:
        """One step of the optimiser down the ``loss``, with every shift kept within its bounds."""
        descend(optimiser, loss)
        with torch.no_grad():
            shift.copy_(shift.clamp(*self.bounds))

    def distance(self, shift: Tensor) -> Tensor:
        """How far shifted numbers are from the case's own, in training ranges, (rows, numbers)."""
        own = torch.from_numpy(self.problem.facts[self.case][:, self.columns]).double()
        return ((self.start[:, self.columns] - own) / self.value_range + shift).abs()

    def candidates(self, shift: Tensor, to: Float32Array, kept: Tensor) -> Candidates:
        """The change sets that are marked in ``kept`` (rows,), with numbers at the nearest
        permitted value after the shift.

        Parameters
        ----------
        shift
            How far each number has moved, (rows, numbers), in training ranges.
        to
            The changes one started with, (rows, known features).
        kept
            Which rows are wanted, (rows,). A number that hardly moves stays unchanged.
        """
        rows, still = self.rows(shift).numpy(), (self.distance(shift) < LEAST_SHIFT).numpy()
        to = to.copy()
        for i, column in enumerate(self.columns):
            feature = int(self.problem.features[column])
            to[:, column] = self.problem.actions.snap(feature, rows[:, column])
            to[still[:, i], column] = np.nan
        return Candidates(self.case, to).take(kept.numpy())
