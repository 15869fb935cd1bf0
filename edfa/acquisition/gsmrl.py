"""GSMRL (bin surrogate): an agent that learns the order of questions, with hints from a generative
model.

A surrogate model of features and outcome shapes the rewards, and tells the agent what it expects of
the features that are not known; the agent is trained by proximal policy optimisation.

Li, Oliva (2021), Active feature acquisition with generative surrogate models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from edfa.extras import extra

with extra("neural", "GSMRL"):
    import torch
    from torch import Tensor, nn

from edfa.acquisition.learned import (
    LearnedPolicy,
    TrainingData,
    entropy,
    shuffled,
)
from edfa.people import People
from edfa.predictors.base import Progress
from edfa.predictors.bins import MAX_BINS, Bins, bin_network
from edfa.predictors.mlp import MaskedNet
from edfa.predictors.neural import dense, descend
from edfa.predictors.tokens import answer
from edfa.typing import AnyArray

HIDDEN = 128  # length of hidden layers
CLIP, DISCOUNT, ENTROPY_BONUS = 0.2, 0.95, 0.01


class _Episodes(NamedTuple):
    """What the agent saw, did and earned: one entry for each step that was played.

    Parameters
    ----------
    observation
        What the agent saw, (entries, inputs).
    closed
        Which actions it could not choose, (entries, actions).
    action, log_probability
        What it chose, and the log probability of that, (entries,).
    advantage
        How much better that turned out than expected, standardised, (entries,).
    target
        The return that the critic is to predict, (entries,).
    """

    observation: Tensor
    closed: Tensor
    action: Tensor
    log_probability: Tensor
    advantage: Tensor
    target: Tensor


@dataclass(eq=False)
class GSMRL(LearnedPolicy):
    """Proximal policy optimisation over questions, with a surrogate that shapes rewards and gives
    hints.

    A score is the log probability with which the agent asks for a feature.

    Parameters
    ----------
    seed
        Decides the first weights, the masks, the rows and the actions in training.
    reward
        ``"paper"``: the drop in entropy at each step, less the loss at the end. ``"dense"``: the
        log probability of the true class after each step as well, which learns faster.
    steps, rounds, episodes
        Number of questions in an episode, of rounds of learning, and of episodes in a round.
    pretrain
        Number of passes over the rows that train the surrogate.
    learning_rate
        Adam's learning rate for the agent.
    device
        Where it is trained, in torch's words; ``"auto"``: on a GPU if there is one.

    Attributes
    ----------
    bins_
        The surrogate's distribution of every feature and the outcome, in bins.
    predictor_, surrogate_, actor_, critic_
        The networks: the surrogate's classifier, the surrogate of ``bins_``, and the agent's two.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> policy = GSMRL(pretrain=1, rounds=1, steps=2).fit(table.train)
    >>> model = edfa.SubsetXGB("nan", n_estimators=10).fit(table.train.X, table.train.y)
    >>> len(edfa.acquire(table.test, policy, model, budget=5).order(0)) > 0
    True
    """

    seed: int = 0
    reward: Literal["paper", "dense"] = "dense"
    steps: int = 12
    pretrain: int = 30
    rounds: int = 150
    episodes: int = 256
    learning_rate: float = 1e-3
    device: str = "auto"
    per_cost = False
    networks = ("predictor_", "surrogate_", "actor_", "critic_")
    above_zero = ("steps", "rounds", "episodes", "learning_rate")
    rewards = ("paper", "dense")

    def _score(self, people: People, positions: Tensor, mask: Tensor) -> Tensor:
        codes = self.bins_.codes(np.column_stack([people.X, np.zeros(len(people))]))
        observation = self._observe(positions, torch.from_numpy(codes), mask)[0]
        return self._act(observation, _close(torch.from_numpy(~people.askable)))[:, :-1]

    def _act(self, observation: Tensor, closed: Tensor) -> Tensor:
        """The log probability of every action, (rows, actions); ``closed`` ones have none."""
        logits = self.actor_(observation).masked_fill(closed, -torch.inf)
        return torch.log_softmax(logits, dim=1)

    def _build(self) -> None:
        knots, classes = [len(k) for k in self.knots_], len(self.prior_)
        self.surrogate_ = self.bins_.network
        self.predictor_ = MaskedNet(knots, classes, HIDDEN)
        width = sum(len(t) for t in self.bins_.typical) + 5 * len(knots) + classes
        # DEVIATION: the agent has an action that stops, as the paper's, but cannot choose it: the
        # budget ends a run.
        self.actor_, self.critic_ = (
            dense(width, HIDDEN, HIDDEN, outputs, activation=nn.Tanh)
            for outputs in (len(knots) + 1, 1)
        )
        # For each feature, where the logits of its bins are (-1: no bin) and what its bins count
        # as, on a common scale.
        sizes = np.array([[len(t)] for t in self.bins_.typical[:-1]])
        bins = np.arange(MAX_BINS)
        index = np.where(bins < sizes, np.cumsum(sizes)[:, None] - sizes + bins, -1)
        values = (bins - (sizes - 1) / 2) / np.maximum(sizes - 1, 1) * 3.4
        self._bin_index = torch.from_numpy(index)
        self._bin_values = torch.from_numpy(np.where(bins < sizes, values, 0).astype(np.float32))

    def _observe(self, positions: Tensor, codes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The agent's inputs (rows, inputs), and the surrogate's logits (rows, classes).

        The inputs are the known features, the classes, and hints on the rest, made from knot
        positions, bins and a mask of the known features of each row.
        """
        logits = answer(self.predictor_, positions, mask)
        hidden = torch.zeros(len(mask), 1, dtype=torch.bool, device=mask.device)
        without_outcome = self.bins_.one_hot(codes, torch.cat([mask, hidden], dim=1))
        guessed = torch.cat([codes[:, :-1], logits.argmax(dim=1, keepdim=True)], dim=1)
        with_outcome = self.bins_.one_hot(guessed, torch.cat([mask, ~hidden], dim=1))
        hints = [
            *self._moments(self.surrogate_(without_outcome)),
            *self._moments(self.surrogate_(with_outcome)),
        ]
        return torch.cat(
            [without_outcome, mask.float(), logits.softmax(dim=1), *hints], dim=1
        ), logits

    def _moments(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of every feature (rows, features) under the surrogate,
        exactly.
        """
        index, values = self._bin_index.to(logits.device), self._bin_values.to(logits.device)
        probabilities = (
            logits[:, index.clamp(min=0)].masked_fill(index < 0, -torch.inf).softmax(dim=-1)
        )
        mean = (probabilities * values).sum(dim=-1)
        return mean, ((probabilities * values**2).sum(dim=-1) - mean**2).clamp(min=0).sqrt()

    def _learn(self, data: TrainingData, progress: Progress | None) -> None:
        # DEVIATION: bins of each feature in place of the paper's flow: the agent uses it for single
        # features alone.
        rows = np.column_stack([data.rows, data.classes.cpu().numpy()]).astype(np.float32)
        self.bins_ = Bins.of(rows, seed=self.seed, epochs=max(1, self.pretrain))
        self._build_on(data.device)
        codes = torch.from_numpy(self.bins_.codes(rows)).to(data.device)
        optimiser = torch.optim.Adam(self.predictor_.parameters(), lr=1e-3)
        everybody = torch.arange(len(rows), device=data.device)
        for _ in range(self.pretrain):
            data.train_masked(self.predictor_, optimiser, everybody, 256)
        for network in (self.predictor_, self.surrogate_):
            network.eval().requires_grad_(False)
        agent = [*self.actor_.parameters(), *self.critic_.parameters()]
        optimiser = torch.optim.Adam(agent, lr=self.learning_rate)
        for done in range(self.rounds):
            chosen = torch.randint(len(rows), (self.episodes,), device=data.device)
            episodes = self._play(data, codes, chosen)
            entries = torch.arange(len(episodes.action), device=data.device)
            for _ in range(4):
                for part in shuffled(entries, 512):
                    descend(optimiser, self._loss(episodes, part), clipped=agent)
            if progress:
                progress(done + 1, self.rounds)

    @torch.no_grad()
    def _play(self, data: TrainingData, codes: Tensor, rows: Tensor) -> _Episodes:
        """One episode of each of these rows, as the agent plays now; ``codes`` are the bins of all
        rows.
        """
        positions, classes, bins = data.positions[rows], data.classes[rows], codes[rows]
        mask, steps = data.start_masks(len(rows)), data.questions(self.steps)
        observation, logits = self._observe(positions, bins, mask)
        log: list[tuple[Tensor, ...]] = []
        for step in range(steps):
            closed = _close(mask)
            logs = self._act(observation, closed)
            action = torch.multinomial(logs.exp(), 1)
            mask = mask.scatter(1, action, True)
            next_observation, next_logits = self._observe(positions, bins, mask)
            # The drop in entropy, and the log probability of the true class at the end or at each
            # step.
            reward = entropy(logits) - entropy(next_logits)
            if self.reward == "dense" or step + 1 == steps:
                reward += next_logits.log_softmax(dim=1).gather(1, classes[:, None])[:, 0]
            worth, chosen = self.critic_(observation)[:, 0], logs.gather(1, action)[:, 0]
            log.append((observation, closed, action[:, 0], chosen, reward, worth))
            observation, logits = next_observation, next_logits
        return _with_advantages(log)

    def _loss(self, episodes: _Episodes, part: Tensor) -> Tensor:
        """The loss of proximal policy optimisation on a part of the entries."""
        observation, closed, action, before, advantage, target = (
            tensor[part] for tensor in episodes
        )
        logs = self._act(observation, closed)
        ratio = (logs.gather(1, action[:, None])[:, 0] - before).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        worth = self.critic_(observation)[:, 0]
        critic_loss: Tensor = ((worth - target) ** 2).mean()
        spread = -(logs.exp() * logs.masked_fill(closed, 0.0)).sum(dim=1).mean()
        return 0.5 * critic_loss - gain - ENTROPY_BONUS * spread

    def _arrays(self) -> dict[str, AnyArray]:
        cuts = {f"c.{i}": cut for i, cut in enumerate(self.bins_.cuts)}
        return cuts | {f"t.{i}": typical for i, typical in enumerate(self.bins_.typical)}

    def _restore(self, arrays: Mapping[str, AnyArray]) -> None:
        count = sum(name.startswith("c.") for name in arrays)
        cuts, typical = (tuple(arrays[f"{key}.{i}"] for i in range(count)) for key in "ct")
        self.bins_ = Bins(cuts, typical, bin_network(typical))


def _close(known: Tensor) -> Tensor:
    """Which actions are closed, (rows, features + 1): asking for ``known`` features (rows,
    features), and the last one, stopping.
    """
    return nn.functional.pad(known, (0, 1), value=True)


def _with_advantages(log: list[tuple[Tensor, ...]]) -> _Episodes:
    """Steps with generalised advantage estimates, worked out backwards from the end.

    Parameters
    ----------
    log
        For each step, of all rows: the observation (rows, inputs), the closed actions (rows,
        actions), the action, its log probability, the reward, and the critic's value, (rows,) each.

    Returns
    -------
    _Episodes
        An entry for each row of each step, step after step.
    """
    observation, closed, action, logs, reward, value = (
        torch.stack(p) for p in zip(*log, strict=True)
    )
    advantage = torch.zeros_like(reward)
    next_value = next_advantage = torch.zeros_like(reward[0])
    for step in reversed(range(len(reward))):
        error = reward[step] + DISCOUNT * next_value - value[step]
        next_advantage = error + DISCOUNT * DISCOUNT * next_advantage
        advantage[step], next_value = next_advantage, value[step]
    flat = advantage.flatten()
    scaled = (flat - flat.mean()) / (flat.std() + 1e-6)
    observation, closed, action, logs = (
        part.flatten(0, 1) for part in (observation, closed, action, logs)
    )
    return _Episodes(observation, closed, action, logs, scaled, (advantage + value).flatten())
