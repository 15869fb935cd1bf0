"""EDFA-generative: values that a conditional autoencoder makes up for people on the other side."""

import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor, nn

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.explanation.support import Support
from edfa.predictors.base import Predictor
from edfa.recourse._search.postprocess import confirm
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["CVAE", "Autoencoder", "Columns", "learn"]

LATENT, HIDDEN, BATCH, RATE = 8, 128, 256, 2e-3
BETA = 0.5  # the weight of the Kullback-Leibler term, after warming up
STEPS, CHECKS, PATIENCE = 60, 12, 3  # of training between two looks at validity; looks; looks without a better one
HELD = 200  # people whose plans say when to stop training
TRIED = 8  # draws for each of them
ROWS = 50_000  # made at a time
LEARNING = threading.Lock()  # one learns at a time: torch's random numbers are everybody's


@dataclass(frozen=True, eq=False)
class Columns:
    """Where each feature stands in the network's input: one place for a number, one a level for a category."""

    support: Support
    ordered: BoolArray

    @property
    def sizes(self) -> list[int]:
        """Places of each feature."""
        return [1 if o else len(v) for o, v in zip(self.ordered, self.support.values, strict=True)]

    @property
    def owner(self) -> IntArray:
        """The feature that each place is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def encode(self, rows: Float32Array) -> Float64Array:
        """Rows without gaps (what is not known may hold anything) to places."""
        parts = [
            ndtri(self._rank(j, rows[:, j]))[:, None] if ordered else rows[:, [j]] == self.support.values[j]
            for j, ordered in enumerate(self.ordered)
        ]
        return np.concatenate(parts, axis=1, dtype=float)

    def _rank(self, j: int, values: Float32Array) -> Float64Array:
        """The share of training people below, half of those with the same value counted."""
        above = np.cumsum(self.support.shares[j])
        place = np.clip(np.searchsorted(self.support.values[j], values), 0, len(above) - 1)
        return np.asarray(np.clip(above[place] - self.support.shares[j][place] / 2, 1e-4, 1 - 1e-4))

    def number(self, j: int, normal: Float64Array) -> Float32Array:
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

    def given(self, places: Tensor, desired_class: Tensor, known: Tensor, fixed: Tensor) -> Tensor:
        """The condition; what is not fixed does not show."""
        one = torch.nn.functional.one_hot(desired_class, self.classes).to(places.dtype)
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

    def loss(self, places: Tensor, desired_class: Tensor, random: torch.Generator, beta: float) -> Tensor:
        """What is known and not fixed should be likely; z should be standard normal."""
        rates = torch.rand((2, len(places), 1), generator=random)
        known = torch.rand((len(places), len(self.columns.sizes)), generator=random) >= rates[0]
        fixed = known & (torch.rand(known.shape, generator=random) >= rates[1])
        given = self.given(places, desired_class, known, fixed)
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
    network: Autoencoder,
    rows: Float32Array,
    decided: IntArray,
    valid: Callable[[Autoencoder], float],
    seed: int,
) -> Autoencoder:
    """Train until what it makes is valid no more often: a better likelihood can go with worse plans."""
    random = torch.Generator().manual_seed(seed)
    places, desired_class = torch.from_numpy(network.columns.encode(rows)).float(), torch.from_numpy(decided)
    descent = torch.optim.Adam(network.parameters(), lr=RATE)
    best, waited, kept = -1.0, 0, deepcopy(network.state_dict())
    for check in range(CHECKS):
        network.train()
        for step in range(STEPS):
            some = torch.randint(len(places), (min(BATCH, len(places)),), generator=random)
            beta = BETA * min(1.0, (check * STEPS + step + 1) / (2 * STEPS))
            descent.zero_grad()
            torch.autograd.backward(network.loss(places[some], desired_class[some], random, beta))
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


class CVAE(Searcher):
    """Plans from a masked conditional variational autoencoder, one for all sets of known features.

    It is trained when first asked, on what the predictor decides about the training people from all features. Numbers
    it makes up are taken at the nearest value of a training person that may be proposed.

    Parameters
    ----------
    train
        The training people.
    draws, max_draws
        How many are made for each person at first; and at most, doubling, for those without a plan.
    seed
        Of the training.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], Background.of(table.train, model))
    >>> plans = find_recourse(people, CVAE(table.train))
    >>> bool((model.predict(plans.rows()) != plans.decision[plans.of]).all())
    True
    """

    def __init__(self, train: Table | None = None, *, draws: int = 64, max_draws: int = 1024, seed: int = 0) -> None:
        if not 1 <= draws <= max_draws:
            raise SettingError("draws is at least 1 and not above max_draws")
        self.draws = draws
        self.max_draws = max_draws
        self.seed = seed
        if train is not None:
            self.fit(train)

    def _learn(self, train: Table) -> None:
        ordered = np.array([feature.kind != "categorical" for feature in train.schema])
        self.columns_ = Columns(self.support_, ordered)

    def search(self, problem: SearchProblem) -> Candidates:
        """Draw; those without a plan again, twice as often."""
        network, open_, count = self.network(problem.predictor), np.arange(len(problem)), self.draws
        parts = [Candidates.none(problem)]
        while count <= self.max_draws and len(open_):
            parts.append(confirm(self, problem, self._draw(problem, network, open_, count)))
            open_, count = np.setdiff1d(open_, parts[-1].case), 2 * count
        return Candidates.join(*parts)

    def network(self, predictor: Predictor) -> Autoencoder:
        """The autoencoder for this predictor's decisions, trained when it is first asked for."""
        everything = np.ones(self.rows_.shape[1], dtype=bool)
        with LEARNING:
            return self.cache_.get(predictor, everything, "autoencoder", lambda: self._train(predictor))

    def _train(self, predictor: Predictor) -> Autoencoder:
        # DEVIATION: the class it is conditioned on is decided from all features; the paper does not say from which.
        everything = np.ones(self.rows_.shape[1], dtype=bool)
        decided = predictor.decide(predictor.predict_known(everything, self.rows_))
        held = np.random.default_rng(self.seed).permutation(len(self.rows_))[:HELD]

        def valid(network: Autoencoder) -> float:
            return self._valid(predictor, network, self.rows_[held], decided[held])

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            fresh = Autoencoder(self.columns_, len(predictor.classes_))
        return learn(fresh, self.rows_, decided, valid, self.seed)

    def _valid(self, predictor: Predictor, network: Autoencoder, rows: Float32Array, decided: IntArray) -> float:
        """The share of made-up people, with what is sensitive or frozen kept, who are where they should be."""
        free = np.array([f.actionable for f in self.train_.schema])
        everything, desired_class = np.ones(len(free), dtype=bool), (np.repeat(decided, TRIED) + 1) % network.classes
        rows = np.repeat(rows, TRIED, axis=0)
        noise = Noise.of(np.random.default_rng(0), len(rows), network)
        made = np.where(free, make(network, rows, desired_class, (everything, ~free), noise), rows)
        return float((predictor.decide(predictor.predict_known(everything, made)) == desired_class).mean())

    def _draw(self, problem: SearchProblem, network: Autoencoder, case: IntArray, count: int) -> Candidates:
        """Made-up values of what may change, for each case as often as said; the same noise for everybody."""
        noise, free = Noise.of(problem.random, count, network), problem.actions.free & problem.mask
        parts = []
        for some in np.array_split(case, -(-len(case) * count // ROWS)):
            who = np.repeat(some, count)
            rows = np.zeros((len(who), len(problem.mask)), dtype=np.float32)
            rows[:, problem.features] = problem.facts[who]
            desired_class = _wanted(problem, network.classes, some, count)
            made = make(network, rows, desired_class, (problem.mask, problem.mask & ~free), noise.times(len(some)))
            parts.append(Candidates.of(who, _permitted(problem, who, made)))
        return Candidates.join(*parts)


class Noise(NamedTuple):
    """What makes each draw different: of z, of each place, and whether z is near the person's own."""

    z: Float64Array
    places: Float64Array
    near: BoolArray

    @classmethod
    def of(cls, random: np.random.Generator, count: int, network: Autoencoder) -> "Noise":
        """Every second draw looks around the person's own z."""
        width = sum(network.columns.sizes)
        uniform = random.random((count, width))
        return cls(random.normal(size=(count, LATENT)), np.clip(uniform, 1e-9, 1 - 1e-9), np.arange(count) % 2 > 0)

    def times(self, count: int) -> "Noise":
        """The same for so many people."""
        return Noise(np.tile(self.z, (count, 1)), np.tile(self.places, (count, 1)), np.tile(self.near, count))


def make(
    network: Autoencoder, rows: Float32Array, desired_class: IntArray, masks: tuple[BoolArray, BoolArray], noise: Noise
) -> Float32Array:
    """Rows as the network makes them up for the class wanted; ``masks`` say what is known and what of it is fixed."""
    kind, columns = next(network.parameters()).dtype, network.columns
    with torch.no_grad():
        places = torch.from_numpy(columns.encode(rows)).to(kind)
        known, fixed = (torch.from_numpy(np.tile(mask, (len(rows), 1))) for mask in masks)
        given = network.given(places, torch.from_numpy(desired_class), known, fixed)
        mean, scale = network.encode(places, known, given)
        z, near = torch.from_numpy(noise.z).to(kind), torch.from_numpy(noise.near)[:, None]
        told, deviation = network.decode(torch.where(near, mean + scale.exp() * z, z), given)
    score, spread = told.double().numpy(), deviation.double().numpy()
    made, first = np.empty_like(rows), 0
    for j, size in enumerate(columns.sizes):
        part = slice(first, first + size)
        if columns.ordered[j]:
            normal = score[:, first] + np.exp(spread[:, first]) * ndtri(noise.places[:, first])
            made[:, j] = columns.number(j, normal)
        else:  # the largest of scores with Gumbel noise is a draw from their softmax
            drawn = (score[:, part] - np.log(-np.log(noise.places[:, part]))).argmax(axis=1)
            made[:, j] = columns.support.values[j][drawn]
        first += size
    return made


def _wanted(problem: SearchProblem, classes: int, case: IntArray, count: int) -> IntArray:
    """The class wanted, or each of the others in turn."""
    if problem.desired_class is not None:
        return np.full(len(case) * count, problem.desired_class)
    turn = 1 + np.arange(count) // 2 % (classes - 1)
    return (np.repeat(problem.group.decision[case], count) + np.tile(turn, len(case))) % classes


def _permitted(problem: SearchProblem, case: IntArray, made: Float32Array) -> Float32Array:
    """What of it may be proposed; numbers at the nearest value that may be."""
    to = np.full((len(case), len(problem.features)), np.nan, dtype=np.float32)
    for column in problem.free:
        feature = int(problem.features[column])
        value = made[:, feature]
        if problem.actions.ordered[feature]:
            value = problem.actions.snap(feature, value)
        fine = problem.actions.permits(feature, problem.facts[case, column], value)
        to[:, column] = np.where(fine, value, np.float32(np.nan))
    return to
