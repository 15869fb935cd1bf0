"""What the neural models share: columns as tokens, training on random masks, early stopping, saving.

A mask is drawn for each row and epoch so that the number of known features is uniform, with the start set always known:
the states a person passes through are then all seen in training, small sets as often as large ones.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import load, save
from torch import Tensor, nn

from edfa.errors import SchemaError
from edfa.predictors.base import Floats, Mask, Predictor, class_weights, fit_temperature, inner_split, soften
from edfa.predictors.store import read_parts, write_parts

__all__ = ["Neural", "Tokens"]

MAX_LEVELS = 1000  # a column of at most so many whole numbers is read as codes of levels
CHECKS = 4  # fixed masks that each row of the inner split is checked under


class Tokens(nn.Module):
    """Each known value as a vector: a number scales its column's direction, a level has a vector of its own."""

    def __init__(self, levels: list[int], width: int) -> None:
        super().__init__()
        sizes = [size + 1 for size in levels]  # one more for a level never seen
        self.register_buffer("offsets", torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()]), persistent=False)
        self.register_buffer("sizes", torch.tensor(levels), persistent=False)
        scale = width**-0.5
        self.direction = nn.Parameter(torch.empty(len(levels), width).uniform_(-scale, scale))
        self.bias = nn.Parameter(torch.empty(len(levels), width).uniform_(-scale, scale))
        self.vectors = nn.Parameter(torch.empty(sum(sizes), width).uniform_(-scale, scale))

    def forward(self, values: Tensor, columns: Tensor) -> Tensor:
        """Values (rows, k) of k columns to tokens (rows, k, width)."""
        offsets, sizes = self.get_buffer("offsets")[columns], self.get_buffer("sizes")[columns]
        coded = sizes > 0
        places = offsets + torch.where(coded, values, 0.0).long()
        numbers = values[..., None] * self.direction[columns]
        return torch.where(coded[:, None], self.vectors[places], numbers) + self.bias[columns]


class Neural(Predictor):
    """A network over tokens. Subclasses build it in ``_network``; it maps (values, columns, mask) to logits."""

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
    def _network(self, levels: list[int], classes: int) -> nn.Module:
        """A fresh network."""

    def _fit(self, matrix: Floats, codes: npt.NDArray[np.int64]) -> None:
        if self.epochs < 1 or self.batch < 1 or not self.rate > 0 or self.patience < 1:
            raise SchemaError("epochs, batch and patience are at least 1 and rate is above 0")
        self._learn_columns(matrix)
        with _one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._model = self._network(self._levels, len(self.classes_)).to(self._where())
            self._train(torch.from_numpy(self._encode(matrix, np.arange(matrix.shape[1]))), matrix, codes)

    def _learn_columns(self, matrix: Floats) -> None:
        """Which columns hold codes of levels, and the scale of the others."""
        self._values: list[Floats] = []
        for column in matrix.T:
            found = np.unique(column[~np.isnan(column)])
            coded = len(found) <= MAX_LEVELS and bool((found == np.round(found)).all())
            self._values.append(found if coded else np.zeros(0, dtype=np.float32))
        self._levels = [len(v) for v in self._values]
        self._mean = np.nanmean(matrix, axis=0)
        spread = np.nanstd(matrix, axis=0)
        self._spread = np.where(spread > 0, spread, 1).astype(np.float32)

    def _encode(self, known: Floats, columns: npt.NDArray[np.intp]) -> Floats:
        """Standard units, or the number of the level; one past the last for a level never seen."""
        coded = np.empty(known.shape, dtype=np.float32)
        for k, j in enumerate(columns):
            values, column = self._values[j], known[:, k]
            if len(values):
                place = np.minimum(np.searchsorted(values, column), len(values) - 1)
                coded[:, k] = np.where(values[place] == column, place, len(values))
            else:
                coded[:, k] = (column - self._mean[j]) / self._spread[j]
        return np.nan_to_num(coded, copy=False)

    def _where(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _train(self, values: Tensor, matrix: Floats, codes: npt.NDArray[np.int64]) -> None:
        where, random = self._where(), torch.Generator().manual_seed(self.seed)
        known, targets = torch.from_numpy(~np.isnan(matrix)), torch.from_numpy(codes)
        weights = class_weights(codes, len(self.classes_), self.balanced)
        weight = torch.ones(len(codes)) if weights is None else torch.from_numpy(weights)
        train, check = (torch.from_numpy(rows) for rows in inner_split(codes, self.seed))
        columns = torch.arange(values.shape[1], device=where)
        checks = [self._draw(known[check], random) for _ in range(CHECKS)] if len(check) else []
        optimiser = torch.optim.AdamW(self._model.parameters(), lr=self.rate, weight_decay=1e-5)

        def loss(rows: Tensor, mask: Tensor) -> Tensor:
            with torch.autocast(where.type, dtype=torch.bfloat16, enabled=where.type == "cuda"):
                logits = self._model(values[rows].to(where), columns, mask.to(where))
            each = nn.functional.cross_entropy(logits.float(), targets[rows].to(where), reduction="none")
            return (each * weight[rows].to(where)).mean()

        best, waited, kept = float("inf"), 0, self._state()
        for epoch in range(self.epochs):
            self._model.train()
            for rows in torch.split(train[torch.randperm(len(train), generator=random)], self.batch):
                optimiser.zero_grad()
                torch.autograd.backward(loss(rows, self._draw(known[rows], random)))
                optimiser.step()
            self._model.eval()
            if self.progress:
                self.progress(epoch + 1, self.epochs)
            if not checks:
                continue
            with torch.no_grad():
                now = float(np.mean([float(loss(check, mask)) for mask in checks]))
            best, waited, kept = (now, 0, self._state()) if now < best - 1e-5 else (best, waited + 1, kept)
            if waited >= self.patience:
                break
        if checks:
            self._model.load_state_dict(kept)
        self._model.to("cpu").eval()
        self._temperature = 1.0
        if checks and self.calibrate:
            with torch.no_grad():
                told = [self._model(values[check], columns.cpu(), mask).double().softmax(dim=1) for mask in checks]
            self._temperature = fit_temperature(torch.cat(told).numpy(), np.tile(codes[check.numpy()], CHECKS))

    def _draw(self, known: Tensor, random: torch.Generator) -> Tensor:
        """Masks with a uniform number of known features; the start set is always on."""
        rate = torch.rand((len(known), 1), generator=random)
        mask = torch.rand(known.shape, generator=random) >= rate
        mask[:, list(self.start)] = True
        return mask & known

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}

    def _answer(self, mask: Mask, known: Floats) -> npt.NDArray[np.float64]:
        """Packed: everybody here knows the same features, so only those columns go in."""
        columns = np.flatnonzero(mask)
        values = torch.from_numpy(self._encode(known, columns))
        with _one_thread(), torch.no_grad():
            parts = [self._model(part, torch.from_numpy(columns), None) for part in torch.split(values, 4096)]
            chances = torch.cat(parts).double().softmax(dim=1)
        return soften(chances.numpy(), self._temperature)

    def to_folder(self, folder: str | Path) -> None:
        """Write the network's weights and what is known of the columns; no pickle."""
        self._check_fitted()
        classes = np.asarray(self.classes_)
        if classes.dtype.kind not in "iufb":
            raise SchemaError("classes must be numbers to be saved; use a Table's y")
        arrays = {f"w.{name}": tensor.numpy() for name, tensor in self._model.state_dict().items()}
        arrays |= {"mean": self._mean, "spread": self._spread, "prior": self.prior_, "classes": classes}
        arrays["temperature"] = np.array([self._temperature])
        arrays |= {f"v.{i}": values for i, values in enumerate(self._values)}
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
        model._mean, model._spread = arrays["mean"], arrays["spread"]
        model._temperature = float(arrays["temperature"][0])
        model.n_features_in_ = len(model._mean)
        model._values = [arrays[f"v.{i}"] for i in range(model.n_features_in_)]
        model._levels = [len(v) for v in model._values]
        model._model = model._network(model._levels, len(model.classes_))
        weights = {name[2:]: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("w.")}
        model._model.load_state_dict(weights)
        model._model.eval()
        return model


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread a process: on shared cores, more of them wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
