"""EDFA-generative: values that a conditional autoencoder makes up for people on the other side.

``CVAE`` is the searcher. For each model it has an ``Autoencoder`` trained (``train_autoencoder``)
on what the model decides about training people, with features hidden at random, so that one network
serves every set of known features. ``InputLayout`` says where a feature stands in the network's
input, ``generate`` makes people up, and ``DrawNoise`` is what makes one draw different from
another.
"""

import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from edfa.extras import extra

with extra("neural", "CVAE"):
    import torch
    from torch import Tensor, nn

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.explanation.necessity import Support
from edfa.predictors.base import Predictor
from edfa.predictors.neural import dense, descend
from edfa.predictors.tokens import seeded
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

LATENT, HIDDEN, BATCH, RATE = 8, 128, 256, 2e-3
BETA = 0.5  # the weight of the Kullback-Leibler term, after warming up
# training steps between two checks of validity; checks; checks without a better
STEPS, CHECKS, PATIENCE = 60, 12, 3
VALIDATION_PEOPLE = 200  # people whose plans say when to stop training
DRAWS_CHECKED = 8  # draws for each of them
ROWS_DRAWN_AT_ONCE = 50_000  # made up at a time
# one network is trained at a time: torch's random numbers are shared by all threads
TRAINING = threading.Lock()


@dataclass(eq=False, repr=False)
class CVAE(Searcher):
    """Plans from a masked conditional variational autoencoder, one for all sets of known features.

    It is trained when first asked, on what the predictor decides about the training people from all
    features. Numbers it makes up are taken at the nearest value of a training person that may be
    proposed.

    Parameters
    ----------
    train
        The training people.
    draws, max_draws
        How many are made for each person at first; and at most, doubling, for those without a plan.
    seed
        Of the training.
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
    >>> plans = find_recourse(people, CVAE(table.train))
    >>> bool((model.predict(plans.rows()) != plans.decision[plans.of]).all())
    True
    """

    _: KW_ONLY
    draws: int = 64
    max_draws: int = 1024
    seed: int = 0

    def _check_settings(self) -> None:
        super()._check_settings()
        if not 1 <= self.draws <= self.max_draws:
            raise SettingError("draws is at least 1 and not above max_draws")

    def _learn(self, train: Table) -> None:
        self.layout_ = InputLayout(self.support_, self.ordered_)

    def search(self, problem: SearchProblem) -> Candidates:
        """Draw; for cases without a plan again, twice as often.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.

        Returns
        -------
        Candidates
            What was drawn and is recourse, with the model's probabilities.
        """
        network, active = self.network(problem.predictor), np.arange(len(problem))
        count = self.draws
        parts = [Candidates.none(problem)]
        while count <= self.max_draws and len(active):
            parts.append(self.confirm(problem, self._draw(problem, network, active, count)))
            active, count = np.setdiff1d(active, parts[-1].case), 2 * count
        return Candidates.join(*parts)

    def network(self, predictor: Predictor) -> "Autoencoder":
        """The autoencoder for a predictor's decisions.

        It is trained when it is first asked for, and stored in the searcher's cache. Networks are
        trained one after the other, whatever the number of threads.
        """
        everything = np.ones_like(self.ordered_)
        with TRAINING:
            return self.cache_.get(
                predictor, everything, "autoencoder", lambda: self._train(predictor)
            )

    def _train(self, predictor: Predictor) -> "Autoencoder":
        # DEVIATION: the class it is conditioned on is decided from all features; the paper does not
        # say from which.
        """Train an autoencoder on what ``predictor`` decides about the training people.

        The weights start from the searcher's seed. Up to ``CHECKED`` training people, drawn by the
        seed, say when to stop.
        """
        decided = predictor.decide(predictor.predict_proba(self.rows_))
        checked = np.random.default_rng(self.seed).permutation(len(self.rows_))[:VALIDATION_PEOPLE]

        def validity(network: Autoencoder) -> float:
            return self._validity(predictor, network, self.rows_[checked], decided[checked])

        with seeded(self.seed):
            network = Autoencoder(self.layout_, len(predictor.classes_))
        return train_autoencoder(network, self.rows_, decided, validity, self.seed)

    def _validity(
        self, predictor: Predictor, network: "Autoencoder", rows: Float32Array, decided: IntArray
    ) -> float:
        """The share of made-up people who get the decision they were made up for.

        ``rows`` (people, features) with decisions ``decided`` (people,) keep what is sensitive or
        frozen.
        """
        free = np.array([f.actionable for f in self.train_.schema])
        everything = np.ones_like(free)
        target = (np.repeat(decided, DRAWS_CHECKED) + 1) % network.classes
        rows = np.repeat(rows, DRAWS_CHECKED, axis=0)
        noise = DrawNoise.of(np.random.default_rng(0), len(rows), network)
        made_up = np.where(free, generate(network, rows, target, (everything, ~free), noise), rows)
        reached = predictor.decide(predictor.predict_proba(made_up))
        return float((reached == target).mean())

    def _draw(
        self, problem: SearchProblem, network: "Autoencoder", case: IntArray, count: int
    ) -> Candidates:
        """Made-up values of what may change, ``count`` times for each case of ``case`` (cases,).

        The same noise is used for every case. Numbers are taken at the nearest value that may be
        proposed, and whatever may not be proposed to a case is left unchanged.
        """
        noise = DrawNoise.of(problem.random, count, network)
        masks, parts = (problem.mask, problem.mask & ~problem.actions.free), []
        for some in np.array_split(case, -(-len(case) * count // ROWS_DRAWN_AT_ONCE)):
            row_case = np.repeat(some, count)
            rows = problem.cases.X[row_case]
            target = _target_classes(problem, network.classes, some, count)
            made_up = generate(network, rows, target, masks, noise.repeated(len(some)))
            made_up = made_up[:, problem.features]
            for column in problem.free:  # numbers are taken at the nearest value there is
                feature = int(problem.features[column])
                if self.ordered_[feature]:
                    made_up[:, column] = problem.actions.snap(feature, made_up[:, column])
            parts.append(Candidates(row_case, problem.permitted(row_case, made_up)))
        return Candidates.join(*parts)


def _target_classes(problem: SearchProblem, classes: int, case: IntArray, count: int) -> IntArray:
    """The class that each draw is made up for, (cases * count,).

    It is the desired class, or, where any other decision is recourse, each of the others in turn.
    """
    if problem.desired_class is not None:
        return np.full(len(case) * count, problem.desired_class)
    turn = 1 + np.arange(count) // 2 % (classes - 1)
    return (np.repeat(problem.group.decision[case], count) + np.tile(turn, len(case))) % classes


@dataclass(frozen=True, eq=False)
class InputLayout:
    """Where each feature stands in the network's input: one input for a number, one for each level
    of a category.

    A number is given as the normal quantile of its rank among training people.

    Parameters
    ----------
    support
        The values of the training people and their shares.
    ordered
        Which features are no categories, (features,).
    """

    support: Support
    ordered: BoolArray

    @property
    def sizes(self) -> list[int]:
        """The number of inputs of each feature."""
        return [1 if o else len(v) for o, v in zip(self.ordered, self.support.values, strict=True)]

    @property
    def feature(self) -> IntArray:
        """The feature that each input belongs to, (inputs,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def encode(self, rows: Float32Array) -> Float64Array:
        """Rows as inputs of the network.

        Parameters
        ----------
        rows
            Encoded facts, (rows, features). What is not known may hold any number, or NaN: the
            network is shown which features are known, and all other inputs count for nothing.

        Returns
        -------
        numpy.ndarray
            The inputs, (rows, inputs), all of them finite.
        """
        parts = [
            ndtri(self._rank(j, rows[:, j]))[:, None]
            if ordered
            else rows[:, [j]] == self.support.values[j]
            for j, ordered in enumerate(self.ordered)
        ]
        return np.concatenate(parts, axis=1, dtype=float)

    def _rank(self, j: int, values: Float32Array) -> Float64Array:
        """The share of training people below each value of feature j, half of those with the same
        value counted.
        """
        cumulative = np.cumsum(self.support.shares[j])
        position = np.clip(np.searchsorted(self.support.values[j], values), 0, len(cumulative) - 1)
        middle = cumulative[position] - self.support.shares[j][position] / 2
        return np.clip(middle, 1e-4, 1 - 1e-4)

    def decode_number(self, j: int, normal: Float64Array) -> Float32Array:
        """The values of training people at normal quantiles of a feature.

        Parameters
        ----------
        j
            The feature, which is no category.
        normal
            The quantiles, (n,).

        Returns
        -------
        numpy.ndarray
            Values of the feature that training people have, (n,).
        """
        cumulative = np.cumsum(self.support.shares[j])
        position = np.searchsorted(cumulative, ndtr(normal), side="left")
        return np.asarray(self.support.values[j][np.minimum(position, len(cumulative) - 1)])


class Autoencoder(nn.Module):
    """Encoder q(z | x, c) and decoder p(x | z, c); c is the class, what is fixed, and which
    features are known.

    Parameters
    ----------
    layout
        Where each feature stands in the input.
    classes
        The number of classes.
    """

    def __init__(self, layout: InputLayout, classes: int) -> None:
        super().__init__()
        self.layout, self.classes = layout, classes
        width, features = sum(layout.sizes), len(layout.sizes)
        condition = classes + width + 2 * features
        self.feature = torch.from_numpy(layout.feature)
        self.encoder = dense(width + condition, HIDDEN, HIDDEN, 2 * LATENT)
        self.decoder = dense(LATENT + condition, HIDDEN, HIDDEN, 2 * width)

    def condition(self, inputs: Tensor, target: Tensor, known: Tensor, fixed: Tensor) -> Tensor:
        """The condition c of each row; what is not fixed does not show in it.

        Parameters
        ----------
        inputs
            The rows, (rows, inputs).
        target
            The class code that each row is made up for, (rows,).
        known, fixed
            Which features are known, and which of these must stay as they are, (rows, features).

        Returns
        -------
        Tensor
            (rows, classes + inputs + 2 * features).
        """
        one_hot = torch.nn.functional.one_hot(target, self.classes).to(inputs.dtype)
        shown = inputs * fixed[:, self.feature]
        return torch.cat([one_hot, shown, known.to(inputs.dtype), fixed.to(inputs.dtype)], dim=1)

    def encode(self, inputs: Tensor, known: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log deviation of z, (rows, latent) each.

        ``inputs`` (rows, inputs) count where they are ``known`` (rows, features); ``condition`` is
        that of ``Autoencoder.condition``.
        """
        output = self.encoder(torch.cat([inputs * known[:, self.feature], condition], dim=1))
        return output[:, :LATENT], output[:, LATENT:].clamp(-4, 3)

    def decode(self, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """What z (rows, latent) stands for under a ``condition``.

        Returns
        -------
        tuple
            A level's score or a number's mean, and a number's log deviation, (rows, inputs) each.
        """
        mean, log_deviation = self.decoder(torch.cat([z, condition], dim=1)).chunk(2, dim=1)
        return mean, log_deviation.clamp(-3, 1)

    def loss(self, inputs: Tensor, target: Tensor, random: torch.Generator, beta: float) -> Tensor:
        """The negative evidence lower bound: what is known and not fixed is likely, z near standard
        normal.

        Parameters
        ----------
        inputs, target
            Training people, (rows, inputs), and their classes, (rows,).
        random
            Draws which features of each row are known and which of these are fixed, and z.
        beta
            The weight of the Kullback-Leibler term.

        Returns
        -------
        Tensor
            The mean over the rows, a scalar.
        """
        rates = torch.rand((2, len(inputs), 1), generator=random)
        known = torch.rand((len(inputs), len(self.layout.sizes)), generator=random) >= rates[0]
        fixed = known & (torch.rand(known.shape, generator=random) >= rates[1])
        condition = self.condition(inputs, target, known, fixed)
        mean, log_deviation = self.encode(inputs, known, condition)
        z = mean + log_deviation.exp() * torch.randn(mean.shape, generator=random)
        surprise = self._surprise(inputs, *self.decode(z, condition)) * (known & ~fixed)
        divergence = 0.5 * (mean**2 + (2 * log_deviation).exp() - 1 - 2 * log_deviation).sum(dim=1)
        return (surprise.sum(dim=1) + beta * divergence).mean()

    def _surprise(self, inputs: Tensor, mean: Tensor, log_deviation: Tensor) -> Tensor:
        """Minus the log likelihood of each feature, (rows, features)."""
        parts, starts = [], np.cumsum(self.layout.sizes)[:-1].tolist()
        cells = (part.tensor_split(starts, dim=1) for part in (inputs, mean, log_deviation))
        for ordered, x, m, d in zip(self.layout.ordered, *cells, strict=True):
            if ordered:
                parts.append(((x - m) / d.exp()) ** 2 / 2 + d)
            else:
                parts.append(-(x * m.log_softmax(dim=1)).sum(dim=1, keepdim=True))
        return torch.cat(parts, dim=1)


def train_autoencoder(
    network: Autoencoder,
    rows: Float32Array,
    decided: IntArray,
    validity: Callable[[Autoencoder], float],
    seed: int,
) -> Autoencoder:
    """Train until what the network makes up is valid no more often: a better likelihood can go with
    worse plans.

    Parameters
    ----------
    network
        An untrained network, which is trained in place.
    rows, decided
        Training people, (training people, features), and the decisions about them, (training
        people,).
    validity
        The share of what the network makes up that gets its decision; it is asked after every
        ``STEPS`` steps, and the weights with the highest are taken.
    seed
        Of the batches and of what is hidden from the network.

    Returns
    -------
    Autoencoder
        The same network in double precision, without gradients.
    """
    random = torch.Generator().manual_seed(seed)
    inputs = torch.from_numpy(network.layout.encode(rows)).float()
    target = torch.from_numpy(decided)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    best, waited, weights = -1.0, 0, deepcopy(network.state_dict())
    for check in range(CHECKS):
        network.train()
        for step in range(STEPS):
            batch = torch.randint(len(inputs), (min(BATCH, len(inputs)),), generator=random)
            beta = BETA * min(1.0, (check * STEPS + step + 1) / (2 * STEPS))
            descend(optimiser, network.loss(inputs[batch], target[batch], random, beta))
        network.eval()
        now, waited = validity(network), waited + 1
        if now > best:
            best, waited, weights = now, 0, deepcopy(network.state_dict())
        if waited >= PATIENCE:
            break
    network.load_state_dict(weights)
    return network.double().requires_grad_(False)


class DrawNoise(NamedTuple):
    """What makes each draw different.

    Parameters
    ----------
    z
        A standard normal place in the latent space, (draws, latent).
    uniform
        Numbers between 0 and 1, from which values are drawn, (draws, inputs).
    near
        Where z is taken around the person's own place instead, (draws,).
    """

    z: Float64Array
    uniform: Float64Array
    near: BoolArray

    @classmethod
    def of(cls, random: np.random.Generator, count: int, network: Autoencoder) -> "DrawNoise":
        """As many draws as ``count``; every second one looks around the person's own z."""
        width = sum(network.layout.sizes)
        uniform = random.random((count, width))
        z = random.normal(size=(count, LATENT))
        return cls(z, np.clip(uniform, 1e-9, 1 - 1e-9), np.arange(count) % 2 > 0)

    def repeated(self, people: int) -> "DrawNoise":
        """The same draws for each of this number of people."""
        return DrawNoise(*(np.concatenate([part] * people) for part in self))


def generate(
    network: Autoencoder,
    rows: Float32Array,
    target: IntArray,
    masks: tuple[BoolArray, BoolArray],
    noise: DrawNoise,
) -> Float32Array:
    """People as the network makes them up.

    Parameters
    ----------
    network
        A trained network.
    rows
        Encoded facts, (rows, features); what is not known may hold any number, or NaN.
    target
        The class code that each row is made up for, (rows,).
    masks
        Which features are known, and which of these are fixed, (features,) each.
    noise
        One draw for each row.

    Returns
    -------
    numpy.ndarray
        Made-up values of every feature, (rows, features), fixed ones included: the caller puts the
        person's own values back.
    """
    dtype, layout = next(network.parameters()).dtype, network.layout
    with torch.no_grad():
        inputs = torch.from_numpy(layout.encode(rows)).to(dtype)
        known, fixed = (torch.from_numpy(np.tile(mask, (len(rows), 1))) for mask in masks)
        condition = network.condition(inputs, torch.from_numpy(target), known, fixed)
        own_mean, own_scale = network.encode(inputs, known, condition)
        z, near = torch.from_numpy(noise.z).to(dtype), torch.from_numpy(noise.near)[:, None]
        decoded = network.decode(torch.where(near, own_mean + own_scale.exp() * z, z), condition)
    mean, log_deviation = (output.double().numpy() for output in decoded)
    made_up, starts = np.empty_like(rows), np.cumsum(layout.sizes)[:-1]
    parts = (np.split(part, starts, axis=1) for part in (mean, log_deviation, noise.uniform))
    for j, (m, d, uniform) in enumerate(zip(*parts, strict=True)):
        if layout.ordered[j]:
            made_up[:, j] = layout.decode_number(j, (m + np.exp(d) * ndtri(uniform))[:, 0])
        else:  # the largest of scores with Gumbel noise is a draw from their softmax
            level = (m - np.log(-np.log(uniform))).argmax(axis=1)
            made_up[:, j] = layout.support.values[j][level]
    return made_up
