"""Along the gradient of a neural model: numbers move; categories and levels come from the plans one starts with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edfa.recourse._search.invalidation import Noise
from edfa.recourse._search.ranking import effort
from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import Float32Array, IntArray

__all__ = ["Slope", "different", "robust", "starts"]

STARTS = 3  # of each case, beside itself
STILL = 1e-3  # of the range: what moves less stays as it is


def starts(problem: SearchProblem, found: Candidates) -> tuple[IntArray, Float32Array]:
    """Each case as it is, then with the plans of least effort: case and change sets, those of a case together."""
    cost = effort(problem.actions, problem.mask, problem.facts[found.case], found.to)
    order = np.lexsort((cost, found.case))
    case = found.case[order]
    order = order[np.arange(len(case)) - np.searchsorted(case, case) < STARTS]
    itself = np.full_like(problem.facts, np.nan)
    return np.r_[np.arange(len(problem)), found.case[order]], np.concatenate([itself, found.to[order]])


@dataclass(frozen=True, eq=False)
class Slope:
    """How far cases are on the right side, as a function of their numbers. ``columns`` are those that may move."""

    problem: SearchProblem
    case: IntArray
    start: Tensor
    columns: IntArray
    spread: Tensor
    logits: Any

    @classmethod
    def of(cls, problem: SearchProblem, case: IntArray, to: Float32Array) -> "Slope":
        """From these change sets on."""
        model: Any = problem.predictor
        mask = problem.mask & model.varies_
        while hasattr(model, "predictor_"):
            model = model.predictor_
            mask = mask & model.varies_
        seen, logits = np.flatnonzero(mask[problem.features]), model.differentiable(mask)
        free = problem.features[problem.free]
        columns = problem.free[
            problem.actions.continuous[free] & np.array([len(problem.actions.values[f]) > 0 for f in free])
        ]
        spread = torch.from_numpy(problem.actions.value_range[problem.features[columns]])
        rows = torch.from_numpy(problem.apply(case, to)).double()
        return cls(problem, case, rows, columns, spread, lambda known: logits(known[:, seen]))

    def rows(self, moved: Tensor) -> Tensor:
        """Whole rows, with each number moved by so many of its ranges."""
        found = self.start.clone()
        found[:, self.columns] = found[:, self.columns] + moved * self.spread
        return found

    def margin(self, rows: Tensor) -> Tensor:
        """Above zero where the wanted class, or any but today's, is the likelier."""
        told = self.logits(rows)
        if self.problem.desired_class is None:
            mine = torch.from_numpy(self.problem.group.decision[self.case])[:, None]
            sign = -1
        else:
            mine = torch.full((len(rows), 1), self.problem.desired_class)
            sign = 1
        others = told.scatter(1, mine, -torch.inf).logsumexp(dim=1)
        return torch.as_tensor(sign * (told.gather(1, mine)[:, 0] - others))

    def bounds(self) -> tuple[Tensor, Tensor]:
        """How far each number may move, in its ranges: within the values and in the direction that are permitted."""
        actions, features = self.problem.actions, self.problem.features[self.columns]
        own = self.problem.facts[self.case][:, self.columns].astype(float)
        low = np.array([actions.values[f][0] for f in features]) + 0 * own
        high = np.array([actions.values[f][-1] for f in features]) + 0 * own
        low, high = (
            np.where(actions.direction[features] > 0, own, low),
            np.where(actions.direction[features] < 0, own, high),
        )
        here = self.start[:, self.columns]
        ends = [torch.minimum(torch.from_numpy(low), here), torch.maximum(torch.from_numpy(high), here)]
        return (ends[0] - here) / self.spread, (ends[1] - here) / self.spread

    def length(self, moved: Tensor) -> Tensor:
        """How far the numbers are from the case's own, in ranges."""
        own = torch.from_numpy(self.problem.facts[self.case][:, self.columns]).double()
        return ((self.start[:, self.columns] - own) / self.spread + moved).abs()

    def found(self, moved: Tensor, to: Float32Array, kept: Tensor) -> Candidates:
        """Change sets at the nearest values that may be proposed; what hardly moves stays."""
        rows, still = self.rows(moved).numpy(), (self.length(moved) < STILL).numpy()
        to = to.copy()
        for i, column in enumerate(self.columns):
            to[:, column] = self.problem.actions.snap(int(self.problem.features[column]), rows[:, column])
            to[still[:, i], column] = np.nan
        return Candidates.of(self.case, to).take(kept.numpy())


def robust(problem: SearchProblem, near: Candidates, noise: Noise, rate: float, steps: int) -> Candidates:
    """PROBE's descent: until the closed form of the invalidation rate is low enough, on the shortest way.

    To first order, noise of covariance S turns the margin g into a normal variable, so that the rate is
    1 - Φ(g / sqrt(∇g' S ∇g)).
    """
    case, to = starts(problem, near)
    slope = Slope.of(problem, case, to)
    if not len(slope.columns):
        return Candidates.none(problem)
    low, high = slope.bounds()
    moved = torch.zeros(len(case), len(slope.columns), dtype=torch.float64, requires_grad=True)
    descent = torch.optim.Adam([moved], lr=0.02, amsgrad=True)
    best, length = moved.detach().clone(), torch.full((len(case),), torch.inf, dtype=torch.float64)
    weight = torch.full((len(case),), 0.5, dtype=torch.float64)
    for step in range(steps):
        margin = slope.margin(slope.rows(moved))
        # DEVIATION: the length of the gradient is taken as given in each step; its own gradient needs second
        # derivatives, which not every network has.
        (gradient,) = torch.autograd.grad(margin.sum(), moved, retain_graph=True)
        deviation = (gradient * noise.sigma).norm(dim=1) + 1e-9
        fails = 1 - torch.special.ndtr(margin / deviation)
        far = slope.length(moved).sum(dim=1)
        with torch.no_grad():
            good = (margin > 0) & (fails <= rate) & (far < length)
            best[good], length[good] = moved[good], far[good]
            if step % 25 == 24:  # whoever is not there yet is asked less for a short way, and never for a long one
                weight[length.isinf()] /= 2
        loss = 3 * (fails - rate).clamp(min=0) + torch.nn.functional.softplus(-margin) + weight * far
        descent.zero_grad()
        torch.autograd.backward(loss.sum())
        descent.step()
        with torch.no_grad():
            moved.copy_(moved.clamp(low, high))
    return slope.found(best, to, length.isfinite())


def different(problem: SearchProblem, near: Candidates, plans: int, steps: int) -> Candidates:
    """DiCE's descent: k plans each that are recourse, near, and apart from each other (a determinant)."""
    case, to = starts(problem, near)
    case, to, block = np.repeat(case, plans), np.repeat(to, plans, axis=0), (len(case), plans)
    slope = Slope.of(problem, case, to)
    if not len(slope.columns):
        return Candidates.none(problem)
    low, high = slope.bounds()
    # All start near the person, each a little elsewhere.
    begin = torch.from_numpy(problem.random.normal(scale=0.05, size=(plans, len(slope.columns)))).repeat(block[0], 1)
    moved = begin.clamp(low, high).requires_grad_(True)
    descent = torch.optim.Adam([moved], lr=0.05)
    best, found = moved.detach().clone(), torch.zeros(len(case), dtype=torch.bool)
    for _ in range(steps):
        margin, length = slope.margin(slope.rows(moved)), slope.length(moved)
        with torch.no_grad():
            good = margin > 0
            best[good], found[good] = moved[good], True
        places = moved.reshape(*block, -1)
        kernel = 1 / (1 + (places[:, :, None] - places[:, None]).abs().sum(dim=3))
        apart = torch.linalg.det(kernel + 1e-4 * torch.eye(plans))
        loss = (1 - margin).clamp(min=0).sum() / plans + 0.5 * length.sum() / plans - apart.sum()
        descent.zero_grad()
        torch.autograd.backward(loss)
        descent.step()
        with torch.no_grad():
            moved.copy_(moved.clamp(low, high))
    return slope.found(best, to, found)
