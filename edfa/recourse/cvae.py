"""EDFA-generative: values that a conditional autoencoder makes up for people on the other side."""

import threading
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri

from edfa.data.table import Table
from edfa.errors import SchemaError
from edfa.predictors.base import Floats, Mask, Predictor
from edfa.recourse.autoencoder import LATENT, Autoencoder, Columns, learn
from edfa.recourse.base import Codes, Found, Searcher, Task
from edfa.recourse.finish import confirm
from edfa.recourse.rules import Bools, Reals

__all__ = ["Generative"]

HELD = 200  # people whose plans say when to stop training
TRIED = 8  # draws for each of them
ROWS = 50_000  # made at a time
LEARNING = threading.Lock()  # one learns at a time: torch's random numbers are everybody's


class Generative(Searcher):
    """Plans from a masked conditional variational autoencoder, one for all sets of known features.

    It is trained when first asked, on what the predictor decides about the training people from all features. Numbers
    it makes up are taken at the nearest value of a training person that may be proposed.

    Parameters
    ----------
    train
        The training people.
    draws, most
        How many are made for each person at first; and at most, doubling, for those without a plan.
    seed
        Of the training.

    Examples
    --------
    >>> import edfa
    >>> from edfa.recourse import People, find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(trees=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], table.schema, table.encoder, model)
    >>> plans = find_recourse(people, Generative(table.train))
    >>> bool(plans.valid.all())
    True
    """

    def __init__(self, train: Table, *, draws: int = 64, most: int = 1024, seed: int = 0) -> None:
        super().__init__(train)
        if not 1 <= draws <= most:
            raise SchemaError("draws is at least 1 and not above most")
        self.draws, self.most, self.seed = draws, most, seed
        ordered = np.array([f.kind != "categorical" for f in train.schema])
        self.columns = Columns(self.support, ordered)
        self._learnt: tuple[Any, Autoencoder] | None = None

    def search(self, task: Task) -> Found:
        """Draw; those without a plan again, twice as often."""
        network, open_, count = self.network(task.predictor), np.arange(len(task)), self.draws
        parts = [Found.none(task)]
        while count <= self.most and len(open_):
            parts.append(confirm(self, task, self._draw(task, network, open_, count)))
            open_, count = np.setdiff1d(open_, parts[-1].case), 2 * count
        return Found.join(*parts)

    def network(self, predictor: Predictor) -> Autoencoder:
        """The autoencoder for this predictor's decisions."""
        with LEARNING:
            return self._network(predictor)

    def _network(self, predictor: Predictor) -> Autoencoder:
        if self._learnt is None or self._learnt[0] is not predictor.prior_:  # made anew by every fit
            # DEVIATION: the class it is conditioned on is decided from all features; the paper does not say from which.
            everything = np.ones(self.rows.shape[1], dtype=bool)
            decided = predictor.decide(predictor.predict_known(everything, self.rows))
            held = np.random.default_rng(self.seed).permutation(len(self.rows))[:HELD]

            def valid(network: Autoencoder) -> float:
                return self._valid(predictor, network, self.rows[held], decided[held])

            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                fresh = Autoencoder(self.columns, len(predictor.classes_))
            self._learnt = predictor.prior_, learn(fresh, self.rows, decided, valid, self.seed)
        return self._learnt[1]

    def _valid(self, predictor: Predictor, network: Autoencoder, rows: Floats, decided: Codes) -> float:
        """The share of made-up people, with what is sensitive or frozen kept, who are where they should be."""
        free = np.array([f.actionable for f in self.train.schema])
        everything, wanted = np.ones(len(free), dtype=bool), (np.repeat(decided, TRIED) + 1) % network.classes
        rows = np.repeat(rows, TRIED, axis=0)
        noise = Noise.of(np.random.default_rng(0), len(rows), network)
        made = np.where(free, make(network, rows, wanted, (everything, ~free), noise), rows)
        return float((predictor.decide(predictor.predict_known(everything, made)) == wanted).mean())

    def _draw(self, task: Task, network: Autoencoder, case: Codes, count: int) -> Found:
        """Made-up values of what may change, for each case as often as said; the same noise for everybody."""
        noise, free = Noise.of(task.random, count, network), task.rules.free & task.mask
        parts = []
        for some in np.array_split(case, -(-len(case) * count // ROWS)):
            who = np.repeat(some, count)
            rows = np.zeros((len(who), len(task.mask)), dtype=np.float32)
            rows[:, task.features] = task.facts[who]
            wanted = _wanted(task, network.classes, some, count)
            made = make(network, rows, wanted, (task.mask, task.mask & ~free), noise.times(len(some)))
            parts.append(Found.of(who, _permitted(task, who, made)))
        return Found.join(*parts)


class Noise(NamedTuple):
    """What makes each draw different: of z, of each place, and whether z is near the person's own."""

    z: Reals
    places: Reals
    near: Bools

    @classmethod
    def of(cls, random: np.random.Generator, count: int, network: Autoencoder) -> "Noise":
        """Every second draw looks around the person's own z."""
        width = sum(network.columns.sizes)
        uniform = random.random((count, width))
        return cls(random.normal(size=(count, LATENT)), np.clip(uniform, 1e-9, 1 - 1e-9), np.arange(count) % 2 > 0)

    def times(self, count: int) -> "Noise":
        """The same for so many people."""
        return Noise(np.tile(self.z, (count, 1)), np.tile(self.places, (count, 1)), np.tile(self.near, count))


def make(network: Autoencoder, rows: Floats, wanted: Codes, masks: tuple[Mask, Mask], noise: Noise) -> Floats:
    """Rows as the network makes them up for the class wanted; ``masks`` say what is known and what of it is fixed."""
    kind, columns = next(network.parameters()).dtype, network.columns
    with torch.no_grad():
        places = torch.from_numpy(columns.encode(rows)).to(kind)
        known, fixed = (torch.from_numpy(np.tile(mask, (len(rows), 1))) for mask in masks)
        given = network.given(places, torch.from_numpy(wanted), known, fixed)
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


def _wanted(task: Task, classes: int, case: Codes, count: int) -> Codes:
    """The class wanted, or each of the others in turn."""
    if task.wanted is not None:
        return np.full(len(case) * count, task.wanted)
    turn = 1 + np.arange(count) // 2 % (classes - 1)
    return (np.repeat(task.group.decision[case], count) + np.tile(turn, len(case))) % classes


def _permitted(task: Task, case: Codes, made: Floats) -> Floats:
    """What of it may be proposed; numbers at the nearest value that may be."""
    to = np.full((len(case), len(task.features)), np.nan, dtype=np.float32)
    for column in task.free:
        feature = int(task.features[column])
        value = made[:, feature]
        if task.rules.ordered[feature]:
            value = task.rules.snap(feature, value)
        fine = task.rules.permits(feature, task.facts[case, column], value)
        to[:, column] = np.where(fine, value, np.float32(np.nan))
    return to
