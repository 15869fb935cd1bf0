"""Directions as a penalty in training: where a network's log odds slope the wrong way, the slope
adds to the loss.

A slope speaks of all signed columns at once, so that some rows of a batch are enough. Pairs of rows
that differ in one column say less: with twenty signed columns they left ten times as many steps in
the wrong direction. ``edfa.predictors.neural``, which uses it, has imported torch under ``extra``
before.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from edfa.predictors.tokens import answer

EVERY_NTH_ROW = 4  # one row in so many of a batch is looked at
# the chance that a signed value is another row's: slopes count where people may go, not where they
# are
SWAPPED = 0.5


@dataclass(frozen=True, eq=False)
class Penalty:
    """What slopes in the wrong direction add to the loss.

    Parameters
    ----------
    columns, signs
        (signed columns,) their positions, and 1 where more is better, -1 where less is.
    last
        (columns,) the position of the last knot of each column.
    about
        The position of the class that is better to have.
    weight
        What a slope of one, in log odds from one knot to the next, weighs.
    random, seed
        Draws the places at which slopes are taken, and what it was started with.
    """

    columns: Tensor
    signs: Tensor
    last: Tensor
    about: int
    weight: float
    random: torch.Generator
    seed: int

    @classmethod
    def of(
        cls, signs: tuple[int, ...], positions: Tensor, about: int, weight: float, seed: int
    ) -> "Penalty":
        """From one of -1, 0, 1 for each column, and the knot positions of all rows (rows,
        columns).
        """
        columns = [column for column, sign in enumerate(signs) if sign]
        signed = torch.tensor(
            [[column, signs[column]] for column in columns], device=positions.device
        )
        random = torch.Generator(positions.device).manual_seed(seed)
        return cls(signed[:, 0], signed[:, 1], positions.amax(dim=0), about, weight, random, seed)

    def from_start(self) -> "Penalty":
        """The same penalty that draws the same places once more."""
        return replace(self, random=torch.Generator(self.random.device).manual_seed(self.seed))

    def loss(self, network: nn.Module, positions: Tensor, mask: Tensor) -> Tensor:
        """The weighted sum over known signed columns of wrong slopes, its mean over some of the
        rows.

        ``positions`` are the knot positions of a batch and ``mask`` says what is known of it,
        (rows, columns) both.
        """
        some = -(-len(positions) // EVERY_NTH_ROW)
        places = self._places(positions[:some]).requires_grad_()
        log_odds = self._log_odds(network, places, mask[:some])
        (slope,) = torch.autograd.grad(log_odds.sum(), places, create_graph=True)
        wrong = torch.relu(-self.signs * slope[:, self.columns]) * mask[:some, self.columns]
        return self.weight * wrong.sum(dim=1).mean()

    def _places(self, positions: Tensor) -> Tensor:
        """Where slopes are taken: signed values of the row or of another one, up to one knot
        aside.
        """
        shape, device = (len(positions), len(self.columns)), positions.device
        other, swap, aside = (
            torch.rand(shape, generator=self.random, device=device) for _ in range(3)
        )
        others = positions[(other * len(positions)).long(), self.columns]
        moved = torch.where(swap < SWAPPED, others, positions[:, self.columns]) + 2 * aside - 1
        places = positions.clone()
        places[:, self.columns] = moved.clamp(min=0).minimum(self.last[self.columns])
        return places

    def _log_odds(self, network: nn.Module, places: Tensor, mask: Tensor) -> Tensor:
        """Of the better class against all others, (rows,), by the network as it answers: without
        dropout.
        """
        training = network.training
        network.eval()
        with sdpa_kernel(
            SDPBackend.MATH
        ):  # the only attention whose slope can itself be learnt from
            logits = answer(network, places, mask)
        network.train(training)
        others = torch.arange(logits.shape[1], device=logits.device) != self.about
        return logits[:, self.about] - logits[:, others].logsumexp(dim=1)
