"""What the neural models share: columns as tokens, training on random masks, early stopping,
saving.

``Neural`` is the base class; the functions at the end of this module serve every other network of
the library too.

A mask is drawn for each row and epoch so that the number of known features is uniform, with the
start set always known: the states a person passes through are then all seen in training, small sets
as often as large ones.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from edfa.extras import extra

with extra("neural", "a neural model"):
    import torch
    from torch import Tensor, nn

from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.errors import SettingError, UnreadableError
from edfa.predictors.base import (
    ClassWeight,
    Predictor,
    Progress,
    from_settings,
    inner_split,
    sample_weights,
)
from edfa.predictors.monotone import check_signs
from edfa.predictors.penalty import Penalty
from edfa.predictors.tokens import answer, find_knots, knot_positions, one_thread, seeded
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

MODEL_FILE = "model.safetensors"
LEAST_PROBABILITY = 1e-12  # probability of a class
CHECK_MASKS = 4  # fixed masks under which each held-out row is checked


@dataclass(kw_only=True, eq=False, repr=False)
class Neural(Predictor):
    """A network over tokens. A subclass builds it in ``_new_network``.

    Parameters
    ----------
    seed
        Decides the held-out rows, the first weights and the masks.
    epochs, batch_size, learning_rate
        Largest number of passes over the rows, rows in a step, and AdamW's learning rate.
    patience
        Number of epochs without improvement on held-out rows after which training stops.
    start
        Positions of the columns that are known from the start, and so in every training mask.
    dropout
        The share of activations left out in training.
    class_weight
        None: every row counts the same; ``"balanced"``: every class counts the same; a mapping: the
        weight of each class.
    threshold, favourable
        The probability from which on one class is decided for, and the position of that class in
        ``classes_`` (None: the second of two); without a threshold, the likeliest class.
    monotone
        For each column 1, -1 or 0: whether a higher value should never lower, never raise, or may
        do both to the probability of the ``favourable`` class. It is a penalty in training, so that
        it holds in most places, not everywhere; ``check_directions`` measures where. None: all are
        free.
    monotone_penalty
        What a slope of one in the wrong direction, in log odds from one knot to the next, adds to
        the loss.
    device
        Where it is trained, in torch's words; ``"auto"``: on a GPU if there is one. Predictions are
        made on the CPU.

    Attributes
    ----------
    knots_
        For each column, the values between which its tokens are interpolated.
    network_
        A module that maps knot positions (people, columns), column positions and a mask to logits
        (people, classes).
    """

    learnt_attributes: ClassVar[tuple[str, ...]] = (*Predictor.learnt_attributes, "knots_")
    seed: int = 0
    dropout: float = 0.1
    epochs: int = 60
    batch_size: int = 256
    learning_rate: float = 1e-3
    patience: int = 8
    start: tuple[int, ...] = ()
    class_weight: ClassWeight = None
    threshold: float | None = None
    favourable: int | None = None
    monotone: tuple[int, ...] | None = None
    monotone_penalty: float = 1.0
    device: str = "auto"

    @abstractmethod
    def _new_network(self, knots: list[int]) -> nn.Module:
        """A network with fresh weights, for columns with these numbers of ``knots`` and for the
        classes in ``classes_``.
        """

    def _build(self) -> nn.Module:
        """A network with fresh weights for ``knots_`` and ``classes_``."""
        return self._new_network([len(knots) for knots in self.knots_])

    def learnt_state(self) -> Mapping[str, Any]:
        """Classes, prior and knots, and under ``network_`` the weights as arrays."""
        if not hasattr(self, "network_"):
            return {}
        return {**super().learnt_state(), "network_": weights_of(self.network_)}

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        """Check the settings, find knots, and train a fresh network."""
        if (
            self.epochs < 1
            or self.batch_size < 1
            or not self.learning_rate > 0
            or self.patience < 1
        ):
            raise SettingError(
                "epochs, batch_size and patience are at least 1 and learning_rate is above 0"
            )
        if not 0 < self.monotone_penalty < np.inf:
            raise SettingError(f"monotone_penalty: a number above 0, not {self.monotone_penalty}")
        signs = check_signs(self.monotone, matrix.shape[1])
        if any(signs) and self.favourable is None and len(self.classes_) > 2:
            raise SettingError(
                f"monotone: say towards which of {len(self.classes_)} classes: favourable=0, …"
            )
        self.knots_ = find_knots(matrix)
        device = find_device(self.device)
        with seeded(self.seed):
            self.network_ = self._build().to(device)
            positions = self._encode(matrix, np.arange(matrix.shape[1]))
            weights = sample_weights(self.class_weight, self.classes_[codes])
            weights = np.ones(len(codes), dtype=np.float32) if weights is None else weights
            arrays = (positions, ~np.isnan(matrix) & self.varies_, codes, weights)
            data = _TrainingData(*(torch.from_numpy(array).to(device) for array in arrays))
            train, held_out = (
                torch.from_numpy(rows).to(device) for rows in inner_split(codes, self.seed)
            )
            penalty = None
            if any(signs):
                about = self._about(len(self.classes_))
                penalty = Penalty.of(signs, data.positions, about, self.monotone_penalty, self.seed)
            self._train(data, train, held_out, penalty, progress)
        self.network_.to("cpu").eval()

    def _encode(self, known: Float32Array, columns: IntArray) -> Float32Array:
        """Knot positions (people, columns) of values of these columns."""
        return knot_positions(known, [self.knots_[j] for j in columns])

    def _train(
        self,
        data: "_TrainingData",
        train: Tensor,
        held_out: Tensor,
        penalty: Penalty | None,
        progress: Progress | None,
    ) -> None:
        """Train until the loss of the held-out rows under fixed masks stops falling.

        Each epoch draws fresh masks for the rows that are learnt from.

        Parameters
        ----------
        data
            All training rows.
        train, held_out
            Positions of rows to learn from, and to stop by; with none held out, all epochs are
            trained.
        penalty
            What slopes in the wrong direction cost; None: all columns are free.
        progress
            Called after each epoch.
        """
        random = torch.Generator(data.known.device).manual_seed(self.seed)
        checks = (
            [self._draw_masks(data.known[held_out], random) for _ in range(CHECK_MASKS)]
            if len(held_out)
            else []
        )
        optimiser = torch.optim.AdamW(
            self.network_.parameters(), lr=self.learning_rate, weight_decay=1e-5
        )
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser, factor=0.3, patience=self.patience // 3
        )
        best_loss, waited, best_weights = float("inf"), 0, deepcopy(self.network_.state_dict())
        for epoch in range(self.epochs):
            self.network_.train()
            order = torch.randperm(len(train), generator=random, device=train.device)
            for rows in torch.split(train[order], self.batch_size):
                mask = self._draw_masks(data.known[rows], random)
                loss = data.loss(self.network_, rows, mask)
                if penalty is not None:
                    loss = loss + penalty.loss(self.network_, data.positions[rows], mask)
                descend(optimiser, loss)
            self.network_.eval()
            if progress:
                progress(epoch + 1, self.epochs)
            if not checks:
                continue
            checked = self._held_out_loss(data, held_out, checks, penalty)
            schedule.step(checked)
            if checked < best_loss - 1e-5:
                best_loss, waited, best_weights = checked, 0, deepcopy(self.network_.state_dict())
            else:
                waited += 1
            if waited >= self.patience:
                break
        if checks:
            self.network_.load_state_dict(best_weights)

    def _held_out_loss(
        self, data: "_TrainingData", held_out: Tensor, masks: list[Tensor], penalty: Penalty | None
    ) -> float:
        """The mean loss of the held-out rows under some masks.

        Parameters
        ----------
        data
            All training rows.
        held_out
            Positions of the rows that training stops by.
        masks
            What is shown of these rows, each (held-out rows, columns).
        penalty
            Added to the loss, at the same places every time; None: there is none.
        """
        again, positions = penalty and penalty.from_start(), data.positions[held_out]
        losses = []
        for mask in masks:
            with torch.no_grad():
                loss = float(data.loss(self.network_, held_out, mask))
            if again is not None:
                loss += float(again.loss(self.network_, positions, mask).detach())
            losses.append(loss)
        return float(np.mean(losses))

    def _draw_masks(self, known: Tensor, random: torch.Generator) -> Tensor:
        """Random masks with a uniform number of known features; the start set is always shown.

        Parameters
        ----------
        known
            What is known of each row, (rows, columns); nothing else is ever shown.
        random
            Draws the masks.

        Returns
        -------
        What is shown of each row, (rows, columns).
        """
        share_hidden = torch.rand((len(known), 1), generator=random, device=known.device)
        mask = torch.rand(known.shape, generator=random, device=known.device) >= share_hidden
        mask[:, list(self.start)] = True
        return mask & known

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Packed: everybody here knows the same features, so only those columns go in."""
        columns = np.flatnonzero(mask)
        positions = torch.from_numpy(self._encode(known, columns))
        with one_thread(), torch.no_grad():
            logits = [
                self.network_(part, torch.from_numpy(columns), None)
                for part in torch.split(positions, 4096)
            ]
            probabilities = torch.cat(logits).double().softmax(dim=1).numpy()
        logs = np.log(np.clip(probabilities, LEAST_PROBABILITY, None))  # no class is ruled out
        powers = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def differentiable(self, mask: BoolArray) -> Callable[[Tensor], Tensor]:
        """The model as a function through which gradients flow.

        Parameters
        ----------
        mask
            Which features are known, (features,).

        Returns
        -------
        A function from values of the known features (people, known features), float64, to logits
        (people, classes).
        """
        network = deepcopy(self.network_).double().requires_grad_(False)
        columns = torch.from_numpy(np.flatnonzero(mask))
        knots = [torch.from_numpy(self.knots_[j]).double() for j in columns]

        def logits(known: Tensor) -> Tensor:
            positions = [_interpolate(k, known[:, i]) for i, k in enumerate(knots)]
            return torch.as_tensor(network(torch.stack(positions, dim=1), columns, None))

        return logits

    def to_folder(self, folder: str | Path) -> None:
        """Write the network's weights, the knots and what else was learnt, as safetensors; no
        pickle.

        Parameters
        ----------
        folder
            A new folder, or one that holds a model of this class, which is replaced.
        """
        self._check_savable()
        arrays = {
            "w": weights_of(self.network_),
            "k": self.knots_,
            "prior": self.prior_,
            "classes": self.classes_,
        }
        parts = {MODEL_FILE: save_arrays(arrays)}
        write_parts(folder, type(self).__name__, self._settings(), parts)

    @classmethod
    def from_folder(cls, folder: str | Path | Folder) -> Self:
        """Read what ``to_folder`` wrote; the part is checked against its hash.

        Parameters
        ----------
        folder
            A folder on disk, or one that was read into memory.

        Raises
        ------
        UnreadableError
            If it holds something else, or is damaged: the weights must be those of the network that
            the settings and knots give.
        """
        with open_parts(folder, cls.__name__) as (settings, parts):
            arrays = load_arrays(parts[MODEL_FILE], MODEL_FILE)
            model = from_settings(cls, settings, folder)
            expected = {"classes": ("iufb", None), "prior": ("f", len(arrays["classes"]))}
            check_arrays(arrays, expected, MODEL_FILE)
            model.classes_, model.prior_ = arrays["classes"], arrays["prior"]
            model.knots_ = read_knots(arrays, MODEL_FILE)
            model.n_features_in_ = len(model.knots_)
            model.varies_ = np.array([len(knots) > 1 for knots in model.knots_])
            weights = {name[2:]: array for name, array in arrays.items() if name.startswith("w.")}
            model.network_ = load_network(model._build, weights, MODEL_FILE)
        return model


def find_device(name: str) -> torch.device:
    """The device of this name, in torch's words; ``"auto"``: a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def read_knots(arrays: Mapping[str, AnyArray], name: str) -> list[Float32Array]:
    """The knots of each column in the arrays of a saved network.

    Parameters
    ----------
    arrays
        Arrays by name, among them ``prior`` and k.0, k.1 and so on.
    name
        What errors call the file.

    Returns
    -------
    The knots of each column, ascending.

    Raises
    ------
    UnreadableError
        If there are none, or some are not in ascending order, or the prior is of fewer than two
        classes.
    """
    if len(arrays["prior"]) < 2:
        raise UnreadableError(f"{name} is damaged: there are two classes or more")
    count = sum(array_name.startswith("k.") for array_name in arrays)
    check_arrays(arrays, {f"k.{i}": ("f", None) for i in range(count)}, name)
    knots = [arrays[f"k.{i}"] for i in range(count)]
    if not knots or any(not len(k) or (np.diff(k) <= 0).any() for k in knots):
        raise UnreadableError(f"{name} is damaged: knots are numbers in ascending order")
    return knots


def load_network(
    build: Callable[[], nn.Module], weights: Mapping[str, AnyArray], name: str
) -> nn.Module:
    """A network with saved weights, ready to predict.

    To see whether the weights are its own, it is first made without memory for them: settings from
    outside may ask for any size.

    Parameters
    ----------
    build
        Makes the network with fresh weights.
    weights
        The saved weights by name.
    name
        What errors call the file.

    Raises
    ------
    UnreadableError
        Unless just its weights are there, in their shapes.
    """
    with torch.device("meta"):
        shapes = {key: tuple(tensor.shape) for key, tensor in build().state_dict().items()}
    check_arrays(weights, {key: ("f", *shape) for key, shape in shapes.items()}, name)
    if unknown := sorted(set(weights) - set(shapes)):
        raise UnreadableError(f"{name} is damaged: there is no weight {unknown[0]!r}")
    network = build()
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return network.eval()


def weights_of(network: nn.Module) -> dict[str, AnyArray]:
    """The weights of a network by name, as arrays."""
    return {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}


def dense(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with fresh weights, from each width to the next, an activation between them.

    >>> [type(layer).__name__ for layer in dense(4, 8, 2)]
    ['Linear', 'ReLU', 'Linear']
    """
    layers: list[nn.Module] = []
    for inside, outside in pairwise(widths):
        layers += [nn.Linear(inside, outside), activation()]
    return nn.Sequential(*layers[:-1])


def descend(
    optimiser: torch.optim.Optimizer, loss: Tensor, clipped: Sequence[nn.Parameter] = ()
) -> None:
    """Take one step down the gradient of a loss.

    Parameters
    ----------
    optimiser
        What steps.
    loss
        A single number.
    clipped
        Parameters over which the gradient is scaled down to a norm of at most 1.
    """
    optimiser.zero_grad()
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(clipped, 1.0)
    optimiser.step()


def _interpolate(knots: Tensor, values: Tensor) -> Tensor:
    """Positions of ``values`` (people,) among ``knots``, as ``knot_positions`` has them."""
    if len(knots) < 2:
        return torch.zeros_like(values)
    right = torch.searchsorted(knots, values.detach().contiguous()).clamp(1, len(knots) - 1)
    low, high = knots[right - 1], knots[right]
    return (right - 1) + ((values - low) / (high - low)).clamp(0, 1)


@dataclass(frozen=True)
class _TrainingData:
    """The training rows as tensors, on the device that trains.

    Parameters
    ----------
    positions
        Knot positions, (rows, columns).
    known
        What is known of each row, (rows, columns).
    codes
        The class of each row, (rows,).
    weight
        What each row counts, (rows,).
    """

    positions: Tensor
    known: Tensor
    codes: Tensor
    weight: Tensor

    def loss(self, network: nn.Module, rows: Tensor, mask: Tensor) -> Tensor:
        """The weighted mean cross-entropy.

        Parameters
        ----------
        network
            The network that is trained.
        rows
            Positions of rows, (n,).
        mask
            What is shown of these rows, (n, columns).
        """
        with torch.autocast(
            self.known.device.type, dtype=torch.bfloat16, enabled=self.known.is_cuda
        ):
            logits = answer(network, self.positions[rows], mask).float()
        losses = nn.functional.cross_entropy(logits, self.codes[rows], reduction="none")
        return (losses * self.weight[rows]).mean()
