"""What the learned policies share: training rows as tensors, and folders without pickle."""

import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from safetensors.numpy import load, save
from torch import Tensor, nn

from edfa.acquisition.base import Policy, State
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, SchemaError
from edfa.predictors.base import UnfittedError
from edfa.artifacts import read_parts, write_parts
from edfa.predictors.tokens import find_knots, one_thread, place
from edfa.typing import AnyArray, Float32Array, Int64Array

__all__ = ["Learned", "Lessons", "entropy", "take"]


@dataclass(frozen=True, eq=False)
class Lessons:
    """The rows a policy learns from, where it learns: places between knots, classes, start set, prices."""

    rows: Float32Array
    places: Tensor
    classes: Tensor
    start: Tensor
    costs: Tensor

    @property
    def device(self) -> torch.device:
        """Where."""
        return self.places.device

    def masked_loss(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Of a predictor under random masks with a uniform number of known features; the start set is always known."""
        places = self.places[rows]
        mask = (torch.rand_like(places) >= torch.rand_like(places[:, :1])) | self.start
        columns = torch.arange(places.shape[1], device=places.device)
        return nn.functional.cross_entropy(network(places, columns, mask), self.classes[rows])

    def first_masks(self, count: int) -> Tensor:
        """Nothing known but the start set."""
        return self.start.expand(count, -1).clone()


class Learned(Policy):
    """A policy with ``networks``. Subclasses are dataclasses of settings, ``_build`` the networks and ``_learn``."""

    networks: ClassVar[tuple[str, ...]] = ()
    seed: int
    device: str
    progress: Callable[[int, int], None] | None

    def fit(self, table: Table) -> Self:
        """Learn from (training) people, with the card's prices and start set."""
        return self.fit_rows(table.X, table.y, table.schema)

    def fit_rows(self, rows: Float32Array, classes: Int64Array, schema: Schema) -> Self:
        """The same from encoded rows and class codes."""
        if len(rows) < 2 or len(rows) != len(classes):
            raise DataError(f"one class a row is needed, and two rows: {len(rows)} rows, {len(classes)} classes")
        if rows.shape[1] != len(schema):
            raise DataError(f"rows of {len(schema)} features are needed, not of {rows.shape[1]}")
        self.knots_ = find_knots(np.asarray(rows, dtype=np.float32))
        self.prior_ = np.bincount(classes, minlength=len(schema.classes)) / len(classes)
        costs = np.where(schema.costs > 0, schema.costs, 1.0).astype(np.float32)
        where = "cuda" if self.device == "auto" and torch.cuda.is_available() else self.device
        device = torch.device("cpu" if where == "auto" else where)
        arrays = (place(rows, self.knots_), classes, np.array([f.start for f in schema]), costs)
        lessons = Lessons(rows, *(torch.from_numpy(np.asarray(array)).to(device) for array in arrays))
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._build(device)
            self._learn(lessons)
        for network in self._parts().values():
            network.to("cpu").eval()
        return self

    @abstractmethod
    def _build(self, device: torch.device) -> None:
        """Fresh networks from ``knots_`` and ``prior_``."""

    @abstractmethod
    def _learn(self, lessons: Lessons) -> None:
        """Train them."""

    def _parts(self) -> dict[str, nn.Module]:
        return {name: getattr(self, name) for name in self.networks}

    def _arrays(self) -> dict[str, AnyArray]:
        """What else is to be saved."""
        return {}

    def _restore(self, arrays: dict[str, AnyArray]) -> None:
        """Take it up again."""

    def _look(self, state: State) -> tuple[Tensor, Tensor]:
        """Places and mask of what is known."""
        if not hasattr(self, "knots_"):
            raise UnfittedError(f"this {type(self).__name__} has learnt nothing yet; call fit(table.train) first")
        if state.X.shape[1] != len(self.knots_):
            raise DataError(
                f"this {type(self).__name__} learnt from {len(self.knots_)} features, not {state.X.shape[1]}"
            )
        return torch.from_numpy(place(state.X, self.knots_)), torch.from_numpy(state.known)

    def to_folder(self, folder: str | Path) -> None:
        """Write settings and weights; no pickle."""
        if not hasattr(self, "knots_"):
            raise UnfittedError(f"this {type(self).__name__} has learnt nothing yet; call fit(table.train) first")
        arrays: dict[str, AnyArray] = {f"k.{i}": knots for i, knots in enumerate(self.knots_)}
        arrays |= self._arrays() | {"prior": self.prior_}
        for name, network in self._parts().items():
            arrays |= {f"{name}.{key}": value.cpu().numpy() for key, value in network.state_dict().items()}
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "progress"}  # type: ignore[arg-type]
        ordered = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        parts = {"policy.safetensors": save(ordered)}
        write_parts(folder, type(self).__name__, json.loads(json.dumps(settings)), parts)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Self:
        """Read what ``to_folder`` wrote; the part is checked against its hash."""
        settings, parts = read_parts(folder, cls.__name__)
        arrays = load(parts["policy.safetensors"])
        made = cls(**settings)
        made.knots_ = [arrays[f"k.{i}"] for i in range(sum(name.startswith("k.") for name in arrays))]
        made.prior_ = arrays["prior"]
        made._restore(arrays)
        made._build(torch.device("cpu"))
        for name, network in made._parts().items():
            mine = {key.removeprefix(f"{name}."): v for key, v in arrays.items() if key.startswith(f"{name}.")}
            network.load_state_dict({key: torch.from_numpy(value) for key, value in mine.items()})
            network.eval()
        return made

    def _check_settings(self, **above_zero: float) -> None:
        if bad := [name for name, value in above_zero.items() if not value > 0]:
            raise SchemaError(f"{bad[0]} must be above zero, not {above_zero[bad[0]]}")


def take(mask: Tensor, chosen: Tensor) -> Tensor:
    """The mask with one more feature a row."""
    return mask.scatter(1, chosen[:, None], True)


def entropy(logits: Tensor) -> Tensor:
    """Of the classes, in nats."""
    logs = logits.log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)
