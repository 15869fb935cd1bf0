"""A batch of partially known people: what every searcher starts from, however they came to be known so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import DataError
from edfa.explanation.necessity import Sweep
from edfa.predictors.base import Predictor
from edfa.typing import Float32Array, Float64Array, Int64Array

__all__ = ["Explained", "People", "States"]


@dataclass(frozen=True, eq=False)
class People:
    """Partially known people, a row each; NaN is not known.

    Parameters
    ----------
    X, schema, encoder
        The rows as an encoder makes them, the card, and the encoder.
    predictor
        The fitted model that decides. Plans that were read from a file have none.
    blanket
        Only its features are changed; without one, every feature may be.
    person, seed, step
        Whole numbers that come back with the plans; one for all, or one a row.
    spent
        What was paid so far; one for all, or one a row.
    made
        What brought them here, such as policy and prices; a certificate holds for the same alone.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:3], table.schema, table.encoder, model)
    >>> people.person, people.step
    (array([0, 1, 2]), array([0, 0, 0]))
    """

    X: Float32Array
    schema: Schema
    encoder: Encoder
    predictor: Predictor | None
    blanket: Blanket | None = None
    person: Int64Array | int | None = None
    seed: Int64Array | int = 0
    step: Int64Array | int = 0
    spent: Float64Array | float = 0.0
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = np.asarray(self.X, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != len(self.schema):
            raise DataError(f"people are rows of {len(self.schema)} features; X has the shape {rows.shape}")
        if np.isinf(rows).any():
            raise DataError("X is infinite somewhere; NaN means that a fact is not known")
        if self.schema.names != self.encoder.names:
            raise DataError("the schema and the encoder do not describe the same features")
        if self.predictor is not None:
            self.predictor._check_fitted()
        for name in self.blanket.features if self.blanket else ():
            self.schema.index(name)
        numbers = {"person": np.arange(len(rows)) if self.person is None else self.person}
        for name, given in (numbers | {"seed": self.seed, "step": self.step}).items():
            column = np.asarray(given, dtype=np.int64)
            if column.ndim and column.shape != (len(rows),):
                raise DataError(f"{name} has {column.size} numbers for {len(rows)} people")
            object.__setattr__(self, name, np.broadcast_to(column, (len(rows),)))
        spent = np.asarray(self.spent, dtype=float)
        if spent.ndim and spent.shape != (len(rows),):
            raise DataError(f"spent has {spent.size} numbers for {len(rows)} people")
        object.__setattr__(self, "spent", np.broadcast_to(spent, (len(rows),)))
        object.__setattr__(self, "X", rows)

    def __len__(self) -> int:
        return len(self.X)

    def people(self) -> "People":
        """Itself, as anything that can be asked for recourse gives its people."""
        return self


@dataclass(frozen=True, eq=False)
class Explained:
    """People whose facts were swept already, so that looking for plans need not sweep them again."""

    persons: People
    swept: Sweep

    def people(self) -> People:
        """The people."""
        return self.persons


class States(Protocol):
    """Whatever holds people in some state of knowledge: ``People`` itself, a trajectory."""

    def people(self) -> People:
        """The people."""
