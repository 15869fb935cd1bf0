"""What the neural models share: columns as tokens, training on random masks, early stopping, saving.

A mask is drawn for each row and epoch so that the number of known features is uniform, with the start set always known:
the states a person passes through are then all seen in training, small sets as often as large ones.
"""

import json
from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors.numpy import load, save
from torch import Tensor, nn

from edfa.errors import SchemaError
from edfa.predictors.base import Predictor, class_weights, fit_temperature, inner_split, soften
from edfa.artifacts import read_parts, write_parts
from edfa.predictors.tokens import Tokens, find_knots, one_thread, place
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Neural", "Tokens", "one_thread"]

CHECKS = 4  # fixed masks that each row of the inner split is checked under


class Neural(Predictor):
    """A network over tokens. Subclasses build it in ``_network``; it maps (places, columns, mask) to logits."""

    seed: int
    epochs: int
    batch: int
    rate: float
    patience: int
    start: tuple[int, ...]
    balanced: bool
    calibrate: bool
    device: str
    progress: Callable[[int, int], None] | None

    @abstractmethod
    def _network(self, knots: list[int], classes: int) -> nn.Module:
        """A fresh network."""

    def _fit(self, matrix: Float32Array, codes: Int64Array) -> None:
        if self.epochs < 1 or self.batch < 1 or not self.rate > 0 or self.patience < 1:
            raise SchemaError("epochs, batch and patience are at least 1 and rate is above 0")
        self._knots = find_knots(matrix)
        where = self._where()
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._model = self._network([len(k) for k in self._knots], len(self.classes_)).to(where)
            places = self._encode(matrix, np.arange(matrix.shape[1]))
            weights = class_weights(codes, len(self.classes_), self.balanced)
            weights = np.ones(len(codes), dtype=np.float32) if weights is None else weights
            arrays = (places, ~np.isnan(matrix) & self.varies_, codes, weights)
            lessons = _Lessons(*(torch.from_numpy(array).to(where) for array in arrays))
            self._train(lessons, *(torch.from_numpy(rows).to(where) for rows in inner_split(codes, self.seed)))
        self._model.to("cpu").eval()

    def _encode(self, known: Float32Array, columns: IntArray) -> Float32Array:
        return place(known, [self._knots[j] for j in columns])

    def _where(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _train(self, lessons: "_Lessons", train: Tensor, check: Tensor) -> None:
        """Epoch after epoch on fresh masks, until fixed masks of the rows held out get no better."""
        random = torch.Generator(lessons.known.device).manual_seed(self.seed)
        checks = [self._draw(lessons.known[check], random) for _ in range(CHECKS)] if len(check) else []
        optimiser = torch.optim.AdamW(self._model.parameters(), lr=self.rate, weight_decay=1e-5)
        slower = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.3, patience=self.patience // 3)
        best, waited, kept = float("inf"), 0, self._state()
        for epoch in range(self.epochs):
            self._model.train()
            order = torch.randperm(len(train), generator=random, device=train.device)
            for rows in torch.split(train[order], self.batch):
                optimiser.zero_grad()
                torch.autograd.backward(lessons.loss(self._model, rows, self._draw(lessons.known[rows], random)))
                optimiser.step()
            self._model.eval()
            if self.progress:
                self.progress(epoch + 1, self.epochs)
            if not checks:
                continue
            with torch.no_grad():
                now = float(np.mean([float(lessons.loss(self._model, check, mask)) for mask in checks]))
            slower.step(now)
            best, waited, kept = (now, 0, self._state()) if now < best - 1e-5 else (best, waited + 1, kept)
            if waited >= self.patience:
                break
        if checks:
            self._model.load_state_dict(kept)
        self._temperature = 1.0
        if checks and self.calibrate:
            with torch.no_grad():
                told = [lessons.logits(self._model, check, mask).double().softmax(dim=1) for mask in checks]
            codes = np.tile(lessons.targets[check].cpu().numpy(), CHECKS)
            self._temperature = fit_temperature(torch.cat(told).cpu().numpy(), codes)

    def _draw(self, known: Tensor, random: torch.Generator) -> Tensor:
        """Masks with a uniform number of known features; the start set is always on."""
        rate = torch.rand((len(known), 1), generator=random, device=known.device)
        mask = torch.rand(known.shape, generator=random, device=known.device) >= rate
        mask[:, list(self.start)] = True
        return mask & known

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Packed: everybody here knows the same features, so only those columns go in."""
        columns = np.flatnonzero(mask)
        values = torch.from_numpy(self._encode(known, columns))
        with one_thread(), torch.no_grad():
            parts = [self._model(part, torch.from_numpy(columns), None) for part in torch.split(values, 4096)]
            chances = torch.cat(parts).double().softmax(dim=1)
        return soften(chances.numpy(), self._temperature)

    def differentiable(self, mask: BoolArray) -> Callable[[Tensor], Tensor]:
        """Logits as a function of the values known (float64, just those columns), through which gradients flow."""
        network, columns = deepcopy(self._model).double().requires_grad_(False), torch.from_numpy(np.flatnonzero(mask))
        knots = [torch.from_numpy(self._knots[j]).double() for j in columns]

        def logits(known: Tensor) -> Tensor:
            places = torch.stack([_between(k, known[:, i]) for i, k in enumerate(knots)], dim=1)
            return torch.as_tensor(network(places, columns, None) / self._temperature)

        return logits

    def to_folder(self, folder: str | Path) -> None:
        """Write the network's weights and what is known of the columns; no pickle."""
        self._check_fitted()
        classes = np.asarray(self.classes_)
        if classes.dtype.kind not in "iufb":
            raise SchemaError("classes must be numbers to be saved; use a Table's y")
        arrays = {f"w.{name}": tensor.numpy() for name, tensor in self._model.state_dict().items()}
        arrays |= {"prior": self.prior_, "classes": classes, "temperature": np.array([self._temperature])}
        arrays |= {f"k.{i}": knots for i, knots in enumerate(self._knots)}
        settings = {k: v for k, v in self.get_params().items() if k != "progress"}
        ordered = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_parts(folder, type(self).__name__, json.loads(json.dumps(settings)), {"model.safetensors": save(ordered)})

    @classmethod
    def from_folder(cls, folder: str | Path) -> Self:
        """Read what ``to_folder`` wrote; the part is checked against its hash."""
        settings, parts = read_parts(folder, cls.__name__)
        arrays = load(parts["model.safetensors"])
        model = cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})
        model.classes_, model.prior_ = arrays["classes"], arrays["prior"]
        model._temperature = float(arrays["temperature"][0])
        model.n_features_in_ = sum(name.startswith("k.") for name in arrays)
        model._knots = [arrays[f"k.{i}"] for i in range(model.n_features_in_)]
        model.varies_ = np.array([len(knots) > 1 for knots in model._knots])
        model._model = model._network([len(k) for k in model._knots], len(model.classes_))
        weights = {name[2:]: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("w.")}
        model._model.load_state_dict(weights)
        model._model.eval()
        return model


def _between(knots: Tensor, values: Tensor) -> Tensor:
    """Where values lie between knots, as ``np.interp`` has it."""
    if len(knots) < 2:
        return torch.zeros_like(values)
    right = torch.searchsorted(knots, values.detach().contiguous()).clamp(1, len(knots) - 1)
    low, high = knots[right - 1], knots[right]
    return (right - 1) + ((values - low) / (high - low)).clamp(0, 1)


@dataclass(frozen=True)
class _Lessons:
    """The rows a network learns from, where it learns."""

    places: Tensor
    known: Tensor
    targets: Tensor
    weight: Tensor

    def logits(self, model: nn.Module, rows: Tensor, mask: Tensor) -> Tensor:
        columns = torch.arange(self.known.shape[1], device=self.known.device)
        with torch.autocast(self.known.device.type, dtype=torch.bfloat16, enabled=self.known.is_cuda):
            return torch.as_tensor(model(self.places[rows], columns, mask).float())

    def loss(self, model: nn.Module, rows: Tensor, mask: Tensor) -> Tensor:
        told = nn.functional.cross_entropy(self.logits(model, rows, mask), self.targets[rows], reduction="none")
        return (told * self.weight[rows]).mean()
