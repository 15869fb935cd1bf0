"""DIME: a value network that learns how much each feature would lower the loss.

It is trained together with a network that predicts classes from any subset of features; ``DIME``
asks for the feature with the largest value per cost.

Gadgil, Covert, Lee (2024), Estimating conditional mutual information for dynamic feature selection.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from edfa.extras import extra

with extra("neural", "DIME"):
    import torch
    from torch import Tensor
    from torch.nn.functional import cross_entropy

from edfa.acquisition.learned import (
    LearnedPolicy,
    TrainingData,
    acquire_one,
    entropy,
    shuffled,
)
from edfa.people import People
from edfa.predictors.base import Progress, inner_split
from edfa.predictors.mlp import MaskedNet
from edfa.predictors.neural import descend
from edfa.predictors.tokens import answer

# DEVIATION: the paper lowers the share of random choices when the loss stands still; here in stages
# of known length.
STAGES = (0.3, 0.1, 0.03)


@dataclass(eq=False)
class DIME(LearnedPolicy):
    """Discriminative mutual information: ask for what the value network says will tell most per
    cost.

    A score is the value network's estimate, between zero and the entropy of the predictor's classes
    that is left.

    Parameters
    ----------
    seed
        Decides the held-out rows, the first weights, the masks and the random choices in training.
    width
        Length of the networks' hidden layers.
    steps
        Number of features asked of a row in training.
    pretrain, epochs
        Number of passes over the rows that train the predictor alone on random masks, then of
        passes in each of the three stages that train both networks.
    batch_size, learning_rate
        Rows in a step of training, and Adam's learning rate.
    device
        Where it is trained, in torch's words; ``"auto"``: on a GPU if there is one.

    Attributes
    ----------
    predictor_, value_
        The network that predicts classes, and the one that values features.

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
    batch_size: int = 256
    learning_rate: float = 1e-3
    device: str = "auto"
    networks = ("predictor_", "value_")
    above_zero = ("width", "steps", "epochs", "batch_size", "learning_rate")

    def _score(self, people: People, positions: Tensor, mask: Tensor) -> Tensor:
        return self._values(positions, mask, answer(self.predictor_, positions, mask))

    def _build(self) -> None:
        knots = [len(k) for k in self.knots_]
        self.predictor_ = MaskedNet(knots, len(self.prior_), self.width)
        self.value_ = MaskedNet(knots, len(knots), self.width)

    def _values(self, positions: Tensor, mask: Tensor, logits: Tensor) -> Tensor:
        """Values of features (rows, features), between zero and the entropy: no feature can tell
        more.
        """
        share = torch.sigmoid(answer(self.value_, positions, mask))
        return share * entropy(logits)[:, None]

    def _learn(self, data: TrainingData, progress: Progress | None) -> None:
        networks = self._build_on(data.device)
        train, check = inner_split(data.classes.cpu().numpy(), self.seed)
        rows, held_out = (
            torch.from_numpy(part).to(data.device)
            for part in (train, check if len(check) else train)
        )
        report = progress or (lambda done, total: None)
        total = self.pretrain + len(STAGES) * self.epochs
        optimiser = torch.optim.Adam(self.predictor_.parameters(), lr=self.learning_rate)
        self.predictor_.train()
        for epoch in range(self.pretrain):
            data.train_masked(self.predictor_, optimiser, rows, self.batch_size)
            report(epoch + 1, total)
        best_loss = self._held_out_loss(data, held_out)
        best_weights = copy.deepcopy(networks.state_dict())
        for stage, random_share in enumerate(STAGES):
            optimiser = torch.optim.Adam(networks.parameters(), lr=self.learning_rate)
            for epoch in range(self.epochs):
                networks.train()
                for batch in shuffled(rows, self.batch_size):
                    descend(optimiser, self._loss(data, batch, random_share))
                report(self.pretrain + stage * self.epochs + epoch + 1, total)
                loss = self._held_out_loss(data, held_out)
                if loss < best_loss:
                    best_loss, best_weights = loss, copy.deepcopy(networks.state_dict())
            networks.load_state_dict(best_weights)

    def _episode(
        self, data: TrainingData, rows: Tensor, random_share: float
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """One round of questions to these rows, a share of them random: after every answer the
        predictor's logits (rows, classes), and what the question was said to be worth (rows,), None
        at the start.
        """
        positions, mask = data.positions[rows], data.start_masks(len(rows))
        logits = answer(self.predictor_, positions, mask)
        yield logits, None
        for _ in range(data.questions(self.steps)):
            values = self._values(positions, mask, logits.detach())
            feature = self._choose(values / data.costs, mask, random_share)
            mask = acquire_one(mask, feature)
            logits = answer(self.predictor_, positions, mask)
            yield logits, values.gather(1, feature[:, None])[:, 0]

    def _loss(self, data: TrainingData, rows: Tensor, random_share: float) -> Tensor:
        """The loss of an episode: each answer teaches the predictor, and the value network what
        that answer was worth.
        """
        losses: list[Tensor] = []
        before = torch.zeros(0)
        for logits, worth in self._episode(data, rows, random_share):
            loss = cross_entropy(logits, data.classes[rows], reduction="none")
            gain = 0.0 if worth is None else ((worth - (before - loss.detach())) ** 2).mean()
            losses.append(gain + loss.mean())
            before = loss.detach()
        return torch.stack(losses).mean()

    def _choose(self, value_per_cost: Tensor, mask: Tensor, random_share: float) -> Tensor:
        """The unknown feature with the best value per cost, or with probability ``random_share``
        any: (rows,).
        """
        best = value_per_cost.detach().masked_fill(mask, -torch.inf).argmax(dim=1)
        any_one = torch.rand_like(value_per_cost).masked_fill(mask, -1).argmax(dim=1)
        return torch.where(torch.rand(len(best), device=best.device) < random_share, any_one, best)

    @torch.no_grad()
    def _held_out_loss(self, data: TrainingData, rows: Tensor) -> float:
        """The predictor's mean loss over the steps of these rows, without random choices."""
        self._networks().eval()
        episode = self._episode(data, rows, random_share=0.0)
        return float(
            np.mean([float(cross_entropy(logits, data.classes[rows])) for logits, _ in episode])
        )
