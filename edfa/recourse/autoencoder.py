"""A masked conditional variational autoencoder: one model for every set of known and of fixed features.

It learns to fill in some known features from others, given the class that a model decides: p(x_free | x_fixed, class),
with random sets of known and of fixed features. Numbers are turned into normal ranks, categories into levels.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor, nn

from edfa.explanation.support import Support
from edfa.predictors.base import Floats, Mask
from edfa.recourse.rules import Reals

__all__ = ["Autoencoder", "Columns", "learn"]

LATENT, HIDDEN, BATCH, RATE = 8, 128, 256, 2e-3
BETA = 0.5  # the weight of the Kullback-Leibler term, after warming up
STEPS, CHECKS, PATIENCE = 60, 12, 3  # of training between two looks at validity; looks; looks without a better one


@dataclass(frozen=True, eq=False)
class Columns:
    """Where each feature stands in the network's input: one place for a number, one a level for a category."""

    support: Support
    ordered: Mask

    @property
    def sizes(self) -> list[int]:
        """Places of each feature."""
        return [1 if o else len(v) for o, v in zip(self.ordered, self.support.values, strict=True)]

    @property
    def owner(self) -> npt.NDArray[np.intp]:
        """The feature that each place is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def encode(self, rows: Floats) -> Reals:
        """Rows without gaps (what is not known may hold anything) to places."""
        parts = [
            ndtri(self._rank(j, rows[:, j]))[:, None] if ordered else rows[:, [j]] == self.support.values[j]
            for j, ordered in enumerate(self.ordered)
        ]
        return np.concatenate(parts, axis=1, dtype=float)

    def _rank(self, j: int, values: Floats) -> Reals:
        """The share of training people below, half of those with the same value counted."""
        above = np.cumsum(self.support.shares[j])
        place = np.clip(np.searchsorted(self.support.values[j], values), 0, len(above) - 1)
        return np.asarray(np.clip(above[place] - self.support.shares[j][place] / 2, 1e-4, 1 - 1e-4))

    def number(self, j: int, normal: Reals) -> Floats:
        """A normal rank back to a value of a training person."""
        above = np.cumsum(self.support.shares[j])
        place = np.searchsorted(above, ndtr(normal), side="left")
        return np.asarray(self.support.values[j][np.minimum(place, len(above) - 1)])


class Autoencoder(nn.Module):
    """Encoder q(z | x, c) and decoder p(x | z, c); c is the class, what is fixed, and which features are known."""

    def __init__(self, columns: Columns, classes: int) -> None:
        super().__init__()
        self.columns, self.classes = columns, classes
        width, features = sum(columns.sizes), len(columns.sizes)
        given = classes + width + 2 * features
        self.register_buffer("owner", torch.from_numpy(columns.owner), persistent=False)
        self.encoder = _layers(width + given, 2 * LATENT)
        self.decoder = _layers(LATENT + given, 2 * width)

    def given(self, places: Tensor, wanted: Tensor, known: Tensor, fixed: Tensor) -> Tensor:
        """The condition; what is not fixed does not show."""
        one = torch.nn.functional.one_hot(wanted, self.classes).to(places.dtype)
        kept = places * fixed[:, self.get_buffer("owner")]
        return torch.cat([one, kept, known.to(places.dtype), fixed.to(places.dtype)], dim=1)

    def encode(self, places: Tensor, known: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log deviation of z."""
        told = self.encoder(torch.cat([places * known[:, self.get_buffer("owner")], given], dim=1))
        return told[:, :LATENT], told[:, LATENT:].clamp(-4, 3)

    def decode(self, z: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Of each place: a level's score or a number's mean; and a number's log deviation."""
        mean, scale = self.decoder(torch.cat([z, given], dim=1)).chunk(2, dim=1)
        return mean, scale.clamp(-3, 1)

    def loss(self, places: Tensor, wanted: Tensor, random: torch.Generator, beta: float) -> Tensor:
        """What is known and not fixed should be likely; z should be standard normal."""
        rates = torch.rand((2, len(places), 1), generator=random)
        known = torch.rand((len(places), len(self.columns.sizes)), generator=random) >= rates[0]
        fixed = known & (torch.rand(known.shape, generator=random) >= rates[1])
        given = self.given(places, wanted, known, fixed)
        mean, scale = self.encode(places, known, given)
        z = mean + scale.exp() * torch.randn(mean.shape, generator=random)
        told, deviation = self.decode(z, given)
        wrong = self._surprise(places, told, deviation) * (known & ~fixed)
        spread = 0.5 * (mean**2 + (2 * scale).exp() - 1 - 2 * scale).sum(dim=1)
        return (wrong.sum(dim=1) + beta * spread).mean()

    def _surprise(self, places: Tensor, told: Tensor, deviation: Tensor) -> Tensor:
        """Minus the log likelihood of each feature."""
        found, first = [], 0
        for ordered, size in zip(self.columns.ordered, self.columns.sizes, strict=True):
            part = slice(first, first + size)
            if ordered:
                gap = (places[:, first] - told[:, first]) / deviation[:, first].exp()
                found.append(gap**2 / 2 + deviation[:, first])
            else:
                found.append(-(places[:, part] * told[:, part].log_softmax(dim=1)).sum(dim=1))
            first += size
        return torch.stack(found, dim=1)


def learn(
    network: Autoencoder, rows: Floats, decided: npt.NDArray[np.intp], valid: Callable[[Autoencoder], float], seed: int
) -> Autoencoder:
    """Train until what it makes is valid no more often: a better likelihood can go with worse plans."""
    random = torch.Generator().manual_seed(seed)
    places, wanted = torch.from_numpy(network.columns.encode(rows)).float(), torch.from_numpy(decided)
    descent = torch.optim.Adam(network.parameters(), lr=RATE)
    best, waited, kept = -1.0, 0, deepcopy(network.state_dict())
    for check in range(CHECKS):
        network.train()
        for step in range(STEPS):
            some = torch.randint(len(places), (min(BATCH, len(places)),), generator=random)
            beta = BETA * min(1.0, (check * STEPS + step + 1) / (2 * STEPS))
            descent.zero_grad()
            torch.autograd.backward(network.loss(places[some], wanted[some], random, beta))
            descent.step()
        network.eval()
        now = valid(network)
        best, waited, kept = (now, 0, deepcopy(network.state_dict())) if now > best else (best, waited + 1, kept)
        if waited >= PATIENCE:
            break
    network.load_state_dict(kept)
    return network.double().requires_grad_(False)


def _layers(inside: int, outside: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inside, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outside)
    )
