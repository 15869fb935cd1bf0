"""GSMRL (bin surrogate): an agent that learns the order, and when to stop, with hints from a generative model.

Li, Oliva (2021), Active feature acquisition with generative surrogate models.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from edfa.acquisition.learned import Learned, Lessons, entropy, take
from edfa.errors import UnknownNameError
from edfa.people import People
from edfa.predictors.bins import MOST, Bins, bin_network
from edfa.predictors.mlp import MaskedNet
from edfa.predictors.tokens import one_thread
from edfa.typing import AnyArray, Float64Array

__all__ = ["GSMRL"]

HIDDEN, CLIP, DISCOUNT, CURIOUS = 128, 0.2, 0.95, 0.01


@dataclass(frozen=True, eq=False)
class _Episodes:
    """What the agent saw, did and earned: steps × rows, flattened."""

    seen: Tensor
    closed: Tensor
    action: Tensor
    logs: Tensor
    advantage: Tensor
    worth: Tensor


@dataclass(eq=False)
class GSMRL(Learned):
    """Proximal policy optimisation over questions, with a surrogate that shapes rewards and gives hints.

    Parameters
    ----------
    reward
        ``"paper"``: the drop in entropy less the price at each step, and less the loss at the end. ``"dense"``: the log
        chance of the true class after each step as well, which learns faster.
    price
        What a unit of cost takes off the reward.
    stop
        Whether the agent may stop by itself; otherwise the budget ends a run.
    steps, rounds, rows
        Questions in an episode, rounds of learning, and episodes in a round.

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
    price: float = 0.0
    stop: bool = False
    steps: int = 12
    pretrain: int = 30
    rounds: int = 150
    rows: int = 256
    rate: float = 1e-3
    device: str = "auto"
    progress: Callable[[int, int], None] | None = None
    per_cost = False
    networks = ("predictor_", "guess_", "actor_", "critic_")

    def __post_init__(self) -> None:
        self._check_settings(steps=self.steps, rounds=self.rounds, rows=self.rows, rate=self.rate)
        if self.reward not in ("paper", "dense"):
            raise UnknownNameError("reward", self.reward, ("paper", "dense"))

    def score(self, people: People) -> Float64Array:
        """The log chance with which the agent asks for each open feature; nothing where it would rather stop."""
        places, mask = self._look(people)
        with one_thread(), torch.no_grad():
            codes = torch.from_numpy(self.bins_.codes(np.column_stack([people.X, np.zeros(len(people))])))
            seen = self._see(places, codes, mask)[0]
            closed = torch.cat([torch.from_numpy(~people.askable), torch.full((len(people), 1), not self.stop)], dim=1)
            logs = self.actor_(seen).masked_fill(closed, -torch.inf).log_softmax(dim=1).double().numpy()
        scores = np.where(people.askable, logs[:, :-1], np.nan)
        if self.stop:
            scores[logs[:, -1] >= logs[:, :-1].max(axis=1)] = np.nan
        return scores

    def _build(self, device: torch.device) -> None:
        knots, classes = [len(k) for k in self.knots_], len(self.prior_)
        if not hasattr(self, "bins_"):
            return  # the bins come from the rows, or from the folder
        self.guess_ = self.bins_.network.to(device)
        self.predictor_ = MaskedNet(knots, classes, HIDDEN).to(device)
        width = sum(len(t) for t in self.bins_.typical) + 5 * len(knots) + classes
        self.actor_, self.critic_ = (_head(width, n).to(device) for n in (len(knots) + 1, 1))
        index = np.full((len(knots), MOST), -1)
        values = np.zeros((len(knots), MOST), dtype=np.float32)
        first = 0
        for j, typical in enumerate(self.bins_.typical[:-1]):
            index[j, : len(typical)] = first + np.arange(len(typical))
            values[j, : len(typical)] = (
                (np.arange(len(typical)) - (len(typical) - 1) / 2) / max(len(typical) - 1, 1) * 3.4
            )
            first += len(typical)
        self._index, self._typical = torch.from_numpy(index).to(device), torch.from_numpy(values).to(device)

    def _see(self, places: Tensor, codes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What the agent is shown, and the surrogate's logits: what is known, the classes, and hints on the rest."""
        columns = torch.arange(places.shape[1], device=places.device)
        logits = self.predictor_(places, columns, mask)
        hidden = torch.zeros(len(mask), 1, dtype=torch.bool, device=mask.device)
        shown = self.bins_.light(codes, torch.cat([mask, hidden], dim=1))
        told = torch.cat([codes[:, :-1], logits.argmax(dim=1, keepdim=True)], dim=1)
        given = self.bins_.light(told, torch.cat([mask, ~hidden], dim=1))
        hints = [*self._moments(self.guess_(shown)), *self._moments(self.guess_(given))]
        return torch.cat([shown, mask.float(), logits.softmax(dim=1), *hints], dim=1), logits

    def _moments(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and spread of every feature under the surrogate, exactly."""
        padded = logits[:, self._index.clamp(min=0)].masked_fill(self._index < 0, -torch.inf).softmax(dim=-1)
        mean = (padded * self._typical).sum(dim=-1)
        return mean, ((padded * self._typical**2).sum(dim=-1) - mean**2).clamp(min=0).sqrt()

    def _learn(self, lessons: Lessons) -> None:
        # DEVIATION: bins of each feature in place of the paper's flow: the agent uses it for single features alone.
        rows = np.column_stack([lessons.rows, lessons.classes.cpu().numpy()]).astype(np.float32)
        self.bins_ = Bins.of(rows, seed=self.seed, epochs=max(1, self.pretrain))
        self._build(lessons.device)
        codes = torch.from_numpy(self.bins_.codes(rows)).to(lessons.device)
        self._pretrain(lessons)
        for network in (self.predictor_, self.guess_):
            network.eval().requires_grad_(False)
        optimiser = torch.optim.Adam([*self.actor_.parameters(), *self.critic_.parameters()], lr=self.rate)
        for done in range(self.rounds):
            chosen = torch.randint(len(rows), (self.rows,), device=lessons.device)
            episodes = self._play(lessons, codes, chosen)
            for _ in range(4):
                for part in torch.split(torch.randperm(len(episodes.action), device=lessons.device), 512):
                    self._improve(optimiser, episodes, part)
            if self.progress:
                self.progress(done + 1, self.rounds)

    def _pretrain(self, lessons: Lessons) -> None:
        """The surrogate's predictor, on random masks."""
        optimiser = torch.optim.Adam(self.predictor_.parameters(), lr=1e-3)
        for _ in range(self.pretrain):
            for rows in torch.split(torch.randperm(len(lessons.places), device=lessons.device), 256):
                optimiser.zero_grad()
                torch.autograd.backward(lessons.masked_loss(self.predictor_, rows))
                optimiser.step()

    @torch.no_grad()
    def _play(self, lessons: Lessons, codes: Tensor, rows: Tensor) -> _Episodes:
        """One episode of each row, as the agent plays now."""
        places, classes, mine = lessons.places[rows], lessons.classes[rows], codes[rows]
        mask, alive = lessons.first_masks(len(rows)), torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        steps = min(self.steps, int((~lessons.start).sum()))
        seen, logits = self._see(places, mine, mask)
        log: list[tuple[Tensor, ...]] = []
        for step in range(steps):
            closed = torch.cat([mask, torch.full_like(mask[:, :1], not self.stop)], dim=1)
            probabilities = self.actor_(seen).masked_fill(closed, -torch.inf).log_softmax(dim=1)
            action = torch.multinomial(probabilities.exp(), 1)[:, 0]
            told_log = probabilities.gather(1, action[:, None])[:, 0]
            stops = action == mask.shape[1]
            after = torch.where(stops[:, None], mask, take(mask, action.clamp(max=mask.shape[1] - 1)))
            following, told = self._see(places, mine, after)
            ends = stops | (step + 1 == steps)
            reward = self._rewards(logits, told, classes, lessons.costs, action, ends)
            log.append((seen, closed, action, told_log, reward, self.critic_(seen)[:, 0], alive, ends))
            alive = alive & ~ends
            mask, seen, logits = after, following, told
        return _settle(log)

    def _rewards(
        self, before: Tensor, after: Tensor, classes: Tensor, costs: Tensor, action: Tensor, ends: Tensor
    ) -> Tensor:
        """The drop in entropy less the price; and the surrogate's loss, at the end or all along."""
        stops = action == len(costs)
        price = torch.where(stops, 0.0, costs[action.clamp(max=len(costs) - 1)])
        truth = after.log_softmax(dim=1).gather(1, classes[:, None])[:, 0]
        shaped = entropy(before) - entropy(after) - self.price * price
        return shaped + truth * (ends if self.reward == "paper" else 1.0)

    def _improve(self, optimiser: torch.optim.Optimizer, episodes: _Episodes, part: Tensor) -> None:
        logs = self.actor_(episodes.seen[part]).masked_fill(episodes.closed[part], -torch.inf).log_softmax(dim=1)
        ratio = (logs.gather(1, episodes.action[part][:, None])[:, 0] - episodes.logs[part]).exp()
        gain = episodes.advantage[part]
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        missed = ((self.critic_(episodes.seen[part])[:, 0] - episodes.worth[part]) ** 2).mean()
        curious = -(logs.exp() * logs.masked_fill(episodes.closed[part], 0.0)).sum(dim=1).mean()
        optimiser.zero_grad()
        torch.autograd.backward(0.5 * missed - surrogate - CURIOUS * curious)
        parameters = [*self.actor_.parameters(), *self.critic_.parameters()]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    def _arrays(self) -> dict[str, AnyArray]:
        cuts = {f"c.{i}": cut for i, cut in enumerate(self.bins_.cuts)}
        return cuts | {f"t.{i}": typical for i, typical in enumerate(self.bins_.typical)}

    def _restore(self, arrays: dict[str, AnyArray]) -> None:
        count = sum(name.startswith("c.") for name in arrays)
        cuts, typical = (tuple(arrays[f"{key}.{i}"] for i in range(count)) for key in "ct")
        self.bins_ = Bins(cuts, typical, bin_network(typical))

    def _parts(self) -> dict[str, nn.Module]:
        if hasattr(self, "bins_"):
            self.bins_ = replace(self.bins_, network=self.guess_)
        return super()._parts()


def _head(width: int, outputs: int) -> nn.Sequential:
    layers = (nn.Linear(width, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))
    return nn.Sequential(*layers)


def _settle(log: list[tuple[Tensor, ...]]) -> _Episodes:
    """Advantages, backwards from the end (GAE), over the steps that were lived."""
    seen, closed, action, logs, reward, worth, alive, ends = (torch.stack(part) for part in zip(*log, strict=True))
    advantage, following = torch.zeros_like(reward), torch.zeros_like(reward[0])
    later = torch.zeros_like(reward[0])
    for step in reversed(range(len(reward))):
        goes_on = (~ends[step]).float()
        surprise = reward[step] + DISCOUNT * following * goes_on - worth[step]
        later = surprise + DISCOUNT * DISCOUNT * later * goes_on
        advantage[step], following = later, worth[step]
    lived = alive.flatten()
    target = (advantage + worth).flatten()[lived]
    flat = advantage.flatten()[lived]
    scaled = (flat - flat.mean()) / (flat.std() + 1e-6)
    seen, closed, action, logs = (part.flatten(0, 1)[lived] for part in (seen, closed, action, logs))
    return _Episodes(seen, closed, action, logs, scaled, target)
