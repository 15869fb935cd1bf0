"""Encoding of a table's columns into the float32 matrix that models read, and back.

Continuous features are standardised, ordinal ones numbered in order, categorical ones
label-encoded. ``NaN`` never comes out of here: it is reserved for "not acquired". A value that is
*truly* missing, or one of the card's codes (HELOC's -9, "no bureau record"), is a fact about the
person and gets a number of its own, beyond all measurements: below the lowest for continuous and
ordinal features, after the last level for categorical ones.

Three borders, three policies:

- **Rules** (``encode_one``): whatever training never showed is an error.
- **What a person tells** (``encode_fact``, ``encode_person``): a number slightly outside the range
  moves to its edge, which ``at_edge`` reports; an ordinal number that training never showed moves
  to the nearest one. An error is only what cannot be: an unknown level, words for a number, a gap
  where training had none, a negative number where none was, and a number farther beyond the range
  than the range is wide, which is a typing error.
- **A batch** (``encode``): a number outside the range moves to its edge, however far; a level
  training never showed, or a gap where training had none, becomes the feature's typical training
  value (median or most frequent level).

The range is what training showed, widened by the card's ``range`` where that is larger.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.column import Levels, Measure
from edfa.data.schema import Schema
from edfa.data.values import to_pandas
from edfa.errors import ColumnError, DataError, UnknownNameError, hint
from edfa.typing import Float32Array

__all__ = ["Encoder", "Levels", "Measure"]


@dataclass(frozen=True)
class Encoder:
    """The encoding of every feature of a table, in the schema's order. Fitted on the training part
    alone.

    Examples
    --------
    >>> from edfa import Feature
    >>> schema = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "y", "good")
    >>> frame = pd.DataFrame({"age": [20, 40, 60], "home": ["rent", "own", "rent"]})
    >>> encoder = Encoder.fit(frame, schema)
    >>> encoder.encode(frame)[:, 1]
    array([1., 0., 1.], dtype=float32)
    >>> encoder.decode(encoder.encode(frame)).equals(frame)
    True
    >>> encoder.encode_person({"home": "own"})
    array([nan,  0.], dtype=float32)
    """

    columns: tuple[Measure | Levels, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema) -> "Encoder":
        """Learn scales, levels and states from training rows; ``frame`` has a column for each
        feature of ``schema``.
        """
        return cls(
            tuple(
                (Measure if f.kind == "continuous" else Levels).fit(frame[f.name], f)
                for f in schema
            )
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the matrix' columns."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Measure | Levels:
        """The encoding of one feature."""
        try:
            return self.columns[self.names.index(name)]
        except ValueError:
            raise UnknownNameError("feature", name, self.names) from None

    def encode(self, frame: pd.DataFrame) -> Float32Array:
        """The rows of ``frame`` as a matrix without NaN, (rows, features), by the batch policy
        above.
        """
        frame = to_pandas(frame)
        if absent := [name for name in self.names if name not in frame.columns]:
            raise ColumnError(
                f"the table has no column {absent[0]!r}{hint(absent[0], frame.columns)}"
            )
        matrix = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for i, column in enumerate(self.columns):
            matrix[:, i] = column.encode(frame[column.name])
        return matrix

    def encode_person(self, facts: Mapping[str, Any]) -> Float32Array:
        """What a person tells, by feature name, as a row, (features,), by the policy above; NaN:
        not known.
        """
        row = np.full(len(self.columns), np.nan, dtype=np.float32)
        for name, value in facts.items():
            column = self[name]
            row[self.columns.index(column)] = column.encode_fact(value)
        return row

    def decode(self, matrix: Float32Array) -> pd.DataFrame:
        """The values of a matrix without NaN, (rows, features), as a frame; ``decode_cells`` is for
        rows with NaN.
        """
        matrix = self._check_matrix(matrix)
        if np.isnan(matrix).any():
            raise DataError(
                "the matrix has cells that were not acquired (NaN); decode_cells decodes "
                "the known ones"
            )
        return pd.DataFrame({c.name: c.decode(matrix[:, i]) for i, c in enumerate(self.columns)})

    def decode_cells(self, name: str, codes: npt.ArrayLike) -> list[Any]:
        """The values of codes of one feature, (cells,) or a single one; None for a truly missing
        value.
        """
        cells = np.atleast_1d(np.asarray(codes, dtype=np.float32))
        if len(cells) == 1:  # a plan is decoded cell by cell: spare it the Series
            return [self[name].decode_one(float(cells[0]))]
        values = self[name].decode(cells)
        return [None if pd.isna(v) else v for v in values.tolist()]

    def _check_matrix(self, matrix: Float32Array) -> Float32Array:
        """``matrix`` as float32; DataError unless it has a column for each feature."""
        matrix = np.asarray(matrix, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise DataError(
                f"a matrix of {len(self.columns)} columns is needed, not of shape {matrix.shape}"
            )
        return matrix

    def to_json(self) -> str:
        """The encoder as JSON; ``from_json`` makes an equal one of it."""
        return json.dumps(
            [{"type": type(c).__name__} | asdict(c) for c in self.columns], ensure_ascii=False
        )

    @classmethod
    def from_json(cls, text: str) -> "Encoder":
        """The encoder that ``to_json`` wrote."""
        return cls(tuple(_column(entry) for entry in json.loads(text)))


def _column(entry: dict[str, Any]) -> Measure | Levels:
    """The encoding of one feature from its JSON entry."""
    kinds: dict[str, Callable[..., Measure | Levels]] = {"Measure": Measure, "Levels": Levels}
    return kinds[entry.pop("type")](
        **{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    )
