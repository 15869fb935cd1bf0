"""What the policies that train networks share: training rows as tensors, learnt state, folders
without pickle.

``LearnedPolicy`` is the base class; a subclass builds its networks in ``_build``, trains them in
``_learn`` on ``TrainingData``, with the few functions at the end of this module, and asks them in
``_score``.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from edfa.extras import extra

with extra("neural", "a policy that trains networks"):
    import torch
    from torch import Tensor, nn

from edfa.acquisition.base import Policy
from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.data.table import Table
from edfa.errors import DataError, SettingError, check_known
from edfa.people import People
from edfa.predictors.base import Predictor, Progress, UnfittedError, as_mappings, from_settings
from edfa.predictors.neural import descend, find_device, load_network, read_knots, weights_of
from edfa.predictors.tokens import answer, find_knots, knot_positions, one_thread, seeded
from edfa.typing import AnyArray, Float32Array, Float64Array

POLICY_FILE = "policy.safetensors"


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The rows a policy learns from, with their tensors on the device that trains.

    Parameters
    ----------
    rows
        (rows, features) the encoded rows.
    positions
        (rows, features) the rows as positions among knots.
    classes
        (rows,) class codes.
    start
        (features,) which features are known from the start.
    costs
        (features,) their prices; 1 for what is free.
    """

    rows: Float32Array
    positions: Tensor
    classes: Tensor
    start: Tensor
    costs: Tensor

    @property
    def device(self) -> torch.device:
        """The device that trains."""
        return self.positions.device

    def train_masked(
        self, network: nn.Module, optimiser: torch.optim.Optimizer, rows: Tensor, size: int
    ) -> None:
        """Train a network that predicts classes for one pass, under random masks.

        The number of known features is uniform; the start set is always known.

        Parameters
        ----------
        network, optimiser
            What is trained, and how.
        rows
            (n,) the positions of the rows to learn from.
        size
            The number of rows in a step of training.
        """
        for batch in shuffled(rows, size):
            positions = self.positions[batch]
            mask = (torch.rand_like(positions) >= torch.rand_like(positions[:, :1])) | self.start
            logits = answer(network, positions, mask)
            descend(optimiser, nn.functional.cross_entropy(logits, self.classes[batch]))

    def questions(self, most: int) -> int:
        """How many features can be asked for in an episode, ``most`` at most."""
        return min(most, int((~self.start).sum()))

    def start_masks(self, count: int) -> Tensor:
        """Masks (count, features) of people of whom the start set is known and nothing else."""
        return self.start.expand(count, -1).clone()


class LearnedPolicy(Policy):
    """A policy that trains networks. A subclass is a dataclass of settings, with ``_build``,
    ``_learn`` and ``_score``.

    What was learnt is in attributes that end with an underscore. ``get_params()`` and
    ``learnt_state()`` decide every score.

    Attributes
    ----------
    knots_
        For each feature, the values between which its tokens are interpolated.
    prior_
        (classes,) the share of each class among the training rows.
    """

    networks: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that hold the networks."""
    above_zero: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that must be above zero."""
    rewards: ClassVar[tuple[str, ...]] = ()
    """The words that the setting ``reward`` may have, where there is one."""
    asks_model: ClassVar[bool] = False
    seed: int
    device: str
    reward: str

    def __post_init__(self) -> None:
        for name in self.above_zero:
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} must be above zero, not {getattr(self, name)}")
        if self.rewards:
            check_known("reward", self.reward, self.rewards)

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from training people, with the prices and the start set of their card.

        Parameters
        ----------
        train
            The training people.
        predictor, n_jobs
            Change nothing.
        progress
            Called with the number of steps done and of all steps.
        """
        rows, classes, schema = train.X, train.y, train.schema
        self.knots_ = find_knots(rows)
        self.prior_ = np.bincount(classes, minlength=len(schema.classes)) / len(classes)
        costs = np.where(schema.costs > 0, schema.costs, 1.0).astype(np.float32)
        start = np.array([feature.start for feature in schema])
        arrays = knot_positions(rows, self.knots_), np.asarray(classes), start, costs
        device = find_device(self.device)
        data = TrainingData(rows, *(torch.from_numpy(array).to(device) for array in arrays))
        with seeded(self.seed):
            self._learn(data, progress)
        self._networks().to("cpu").eval()
        return self

    def learnt_state(self) -> Mapping[str, Any]:
        """Everything learnt that decides scores: knots, prior, other arrays, and each network's
        weights by name.

        Values are arrays or mappings of these. Empty before ``fit``.
        """
        if not hasattr(self, "knots_"):
            return {}
        weights = {name: weights_of(getattr(self, name)) for name in self.networks}
        return {
            "knots_": as_mappings(self.knots_),
            "prior_": self.prior_,
            **self._arrays(),
            **weights,
        }

    @abstractmethod
    def _build(self) -> None:
        """Set networks with fresh weights, from ``knots_``, ``prior_`` and what ``_restore``
        sets.
        """

    def score(self, people: People) -> Float64Array:
        """What the networks find each feature worth that may be asked, (people, features); NaN
        elsewhere.
        """
        self._check_fitted()
        if people.X.shape[1] != len(self.knots_):
            raise DataError(
                f"this {type(self).__name__} learnt from {len(self.knots_)} features, not "
                f"{people.X.shape[1]}"
            )
        positions = torch.from_numpy(knot_positions(people.X, self.knots_))
        with one_thread(), torch.no_grad():
            scores = self._score(people, positions, torch.from_numpy(people.known))
        return np.where(people.askable, scores.double().numpy(), np.nan)

    @abstractmethod
    def _score(self, people: People, positions: Tensor, mask: Tensor) -> Tensor:
        """The score of every feature, (people, features); those that may not be asked can have any.

        ``positions`` are the people's knot positions and ``mask`` what is known of them, both
        (people, features).
        """

    @abstractmethod
    def _learn(self, data: TrainingData, progress: Progress | None) -> None:
        """Build the networks and train them."""

    def _networks(self) -> nn.ModuleDict:
        """All networks by name, as one module."""
        return nn.ModuleDict({name: getattr(self, name) for name in self.networks})

    def _build_on(self, device: torch.device) -> nn.ModuleDict:
        """Networks with fresh weights on the device that trains, as one module."""
        self._build()
        return self._networks().to(device)

    def _arrays(self) -> dict[str, AnyArray]:
        """What else was learnt and is to be saved, by name."""
        return {}

    def _restore(self, arrays: Mapping[str, AnyArray]) -> None:
        """Set from saved arrays what ``_arrays`` gave."""

    def to_folder(self, folder: str | Path) -> None:
        """Write settings as JSON and what was learnt as safetensors; no pickle."""
        self._check_fitted()
        arrays = {
            "k": self.knots_,
            "prior": self.prior_,
            **self._arrays(),
            **weights_of(self._networks()),
        }
        parts = {POLICY_FILE: save_arrays(arrays)}
        write_parts(folder, type(self).__name__, self.get_params(deep=False), parts)

    @classmethod
    def from_folder(cls, folder: str | Path | Folder) -> Self:
        """Read what ``to_folder`` wrote; the part is checked against its hash.

        Raises
        ------
        UnreadableError
            If the folder is damaged, has been changed, or has settings that this policy lacks.
        """
        with open_parts(folder, cls.__name__) as (settings, parts):
            policy = from_settings(cls, settings, folder)
            arrays = load_arrays(parts[POLICY_FILE], POLICY_FILE)
            weights = {
                name: array for name, array in arrays.items() if name.split(".")[0] in cls.networks
            }
            others = [name for name in arrays if name not in weights]
            check_arrays(arrays, dict.fromkeys(["prior", *others], ("f", None)), POLICY_FILE)
            policy.knots_, policy.prior_ = read_knots(arrays, POLICY_FILE), arrays["prior"]

            def fresh() -> nn.Module:
                policy._restore(arrays)
                policy._build()
                return policy._networks()

            load_network(fresh, weights, POLICY_FILE)
        return policy

    def _check_fitted(self) -> None:
        if not hasattr(self, "knots_"):
            raise UnfittedError(
                f"this {type(self).__name__} has learnt nothing yet; call fit(table.train) first"
            )

    def save_state(self, folder: Path) -> None:
        """Write what ``to_folder`` writes."""
        self.to_folder(folder)

    def load_state(self, folder: Path | Folder, train: Table) -> Self:
        """The policy that ``save_state`` wrote, with its settings; ``train`` is not needed."""
        return type(self).from_folder(folder)


def shuffled(rows: Tensor, size: int) -> Sequence[Tensor]:
    """The ``rows`` (rows,) in random order, in batches of at most ``size``."""
    return torch.split(rows[torch.randperm(len(rows), device=rows.device)], size)


def acquire_one(mask: Tensor, feature: Tensor) -> Tensor:
    """``mask`` (rows, features) with one more known feature in each row: ``feature`` (rows,)."""
    return mask.scatter(1, feature[:, None], True)


def entropy(logits: Tensor) -> Tensor:
    """The entropy (rows,) of the classes that ``logits`` (rows, classes) describe, in nats."""
    logs = logits.log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)
