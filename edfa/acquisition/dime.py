"""DIME: a value network that learns how much each feature would lower the loss.

Gadgil, Covert, Lee (2024), Estimating conditional mutual information for dynamic feature selection.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edfa.acquisition.learned import Learned, Lessons, entropy, take
from edfa.errors import UnknownNameError
from edfa.people import People
from edfa.predictors.base import inner_split
from edfa.predictors.mlp import MaskedNet
from edfa.predictors.tokens import one_thread
from edfa.typing import Float64Array

__all__ = ["DIME"]

# DEVIATION: the paper lowers the share of random choices when the loss stands still; here in stages of known length.
STAGES = (0.3, 0.1, 0.03)


@dataclass(eq=False)
class DIME(Learned):
    """Discriminative mutual information: ask for what the value network says will tell most per cost.

    Parameters
    ----------
    steps
        Features asked of a row in training.
    pretrain, epochs
        Passes over the rows with random masks, then at most so many in each of three stages of learning together.
    stop, limit
        ``"budget"``: as long as there is money. ``"penalised"``: while the best value per cost is at least ``limit``.
        ``"confidence"``: until the likeliest class has a chance of ``limit``.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> policy = DIME(pretrain=1, epochs=1, steps=2).fit(table.train)
    >>> model = edfa.SubsetXGB("nan", n_estimators=10).fit(table.train.X, table.train.y)
    >>> len(edfa.acquire(table.test, policy, model, budget=5).order(0)) > 0
    True
    """

    seed: int = 0
    width: int = 128
    steps: int = 12
    pretrain: int = 30
    epochs: int = 6
    batch: int = 256
    rate: float = 1e-3
    stop: Literal["budget", "penalised", "confidence"] = "budget"
    limit: float = 0.0
    device: str = "auto"
    progress: Callable[[int, int], None] | None = None
    networks = ("predictor_", "value_")

    def __post_init__(self) -> None:
        self._check_settings(width=self.width, steps=self.steps, epochs=self.epochs, batch=self.batch, rate=self.rate)
        if self.stop not in ("budget", "penalised", "confidence"):
            raise UnknownNameError("stop", self.stop, ("budget", "penalised", "confidence"))

    def score(self, people: People) -> Float64Array:
        """The value network's answer, at most the entropy that is left."""
        places, mask = self._look(people)
        with one_thread(), torch.no_grad():
            logits = self.predictor_(places, self._columns(places), mask)
            values = self._values(places, mask, logits).double().numpy()
            sure = logits.softmax(dim=1).max(dim=1).values.numpy()
        scores = np.where(people.askable, values, np.nan)
        if self.stop == "confidence":
            scores[sure >= self.limit] = np.nan
        if self.stop == "penalised":
            worth = np.where(people.askable, values / np.maximum(people.costs, 1e-12), -np.inf)
            scores[worth.max(axis=1) < self.limit] = np.nan
        return scores

    def _build(self, device: torch.device) -> None:
        knots = [len(k) for k in self.knots_]
        self.predictor_ = MaskedNet(knots, len(self.prior_), self.width).to(device)
        self.value_ = MaskedNet(knots, len(knots), self.width).to(device)

    def _columns(self, places: Tensor) -> Tensor:
        return torch.arange(places.shape[1], device=places.device)

    def _values(self, places: Tensor, mask: Tensor, logits: Tensor) -> Tensor:
        """Between zero and the entropy: no feature can tell more."""
        return torch.sigmoid(self.value_(places, self._columns(places), mask)) * entropy(logits)[:, None]

    def _learn(self, lessons: Lessons) -> None:
        train, check = inner_split(lessons.classes.cpu().numpy(), self.seed)
        rows, held = (torch.from_numpy(part).to(lessons.device) for part in (train, check if len(check) else train))
        total, done = self.pretrain + len(STAGES) * self.epochs, 0
        optimiser = torch.optim.Adam(self.predictor_.parameters(), lr=self.rate)
        self.predictor_.train()
        for _ in range(self.pretrain):
            for part in torch.split(rows[torch.randperm(len(rows), device=rows.device)], self.batch):
                self._step(optimiser, [lessons.masked_loss(self.predictor_, part)])
            done = self._tell(done, total)
        best, kept = self._held_loss(lessons, held), copy.deepcopy(self._weights())
        for share in STAGES:
            optimiser = torch.optim.Adam([*self.predictor_.parameters(), *self.value_.parameters()], lr=self.rate)
            for _ in range(self.epochs):
                for part in torch.split(rows[torch.randperm(len(rows), device=rows.device)], self.batch):
                    self._step(optimiser, self._episode(lessons, part, share))
                done = self._tell(done, total)
                now = self._held_loss(lessons, held)
                best, kept = (now, copy.deepcopy(self._weights())) if now < best else (best, kept)
            for network, weights in zip(self._parts().values(), kept, strict=True):
                network.load_state_dict(weights)

    def _step(self, optimiser: torch.optim.Optimizer, losses: list[Tensor]) -> None:
        optimiser.zero_grad()
        torch.autograd.backward(torch.stack(losses).sum())
        optimiser.step()

    def _tell(self, done: int, total: int) -> int:
        if self.progress:
            self.progress(done + 1, total)
        return done + 1

    def _weights(self) -> list[dict[str, Tensor]]:
        return [network.state_dict() for network in self._parts().values()]

    def _episode(self, lessons: Lessons, rows: Tensor, share: float) -> list[Tensor]:
        """One round of questions; each teaches the predictor, and the value network what the answer was worth."""
        self.predictor_.train()
        self.value_.train()
        places, classes = lessons.places[rows], lessons.classes[rows]
        columns, mask = self._columns(places), lessons.first_masks(len(rows))
        logits = self.predictor_(places, columns, mask)
        loss = cross_entropy(logits, classes, reduction="none")
        count = min(self.steps, int((~lessons.start).sum()))
        losses = [loss.mean() / (count + 1)]
        for _ in range(count):
            values = self._values(places, mask, logits.detach())
            chosen = self._pick(values / lessons.costs, mask, share)
            mask = take(mask, chosen)
            before, logits = loss.detach(), self.predictor_(places, columns, mask)
            loss = cross_entropy(logits, classes, reduction="none")
            told = values.gather(1, chosen[:, None])[:, 0]
            losses.append((((told - (before - loss.detach())) ** 2).mean() + loss.mean()) / (count + 1))
        return losses

    def _pick(self, worth: Tensor, mask: Tensor, share: float) -> Tensor:
        """The best that is not known, or with the share's chance any."""
        best = worth.detach().masked_fill(mask, -torch.inf).argmax(dim=1)
        any_one = torch.rand_like(worth).masked_fill(mask, -1).argmax(dim=1)
        return torch.where(torch.rand(len(best), device=best.device) < share, any_one, best)

    @torch.no_grad()
    def _held_loss(self, lessons: Lessons, rows: Tensor) -> float:
        """The mean loss over the steps of rows that were held out, without random choices."""
        self.predictor_.eval()
        self.value_.eval()
        places, classes = lessons.places[rows], lessons.classes[rows]
        columns, mask, losses = self._columns(places), lessons.first_masks(len(rows)), []
        for step in range(min(self.steps, int((~lessons.start).sum())) + 1):
            logits = self.predictor_(places, columns, mask)
            losses.append(float(cross_entropy(logits, classes)))
            if step < self.steps and not bool(mask.all()):
                mask = take(mask, self._pick(self._values(places, mask, logits) / lessons.costs, mask, 0.0))
        return float(np.mean(losses))
