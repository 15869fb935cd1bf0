"""What can be read off the trees of a model of the user's own: where it cuts, and an answer from a
part of the facts.

A reading is used for search and for intervals, never as the model's answer, and only where it gives
some training people the answers that the model gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.encode import Measure
from edfa.errors import ModelError
from edfa.predictors.own_model.source import Source
from edfa.predictors.own_model.trees import TreeEnsemble, read_trees
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["TreeInput", "TreeView"]

AGREES = 1e-6  # how far a reading may be from the model on the people it is tried on
NEAR = 4  # float32 numbers on either side of a threshold among which its code is looked for


@dataclass(frozen=True, eq=False)
class TreeInput:
    """How encoded people become the matrix that trees compare: a column, or several, for each
    feature.

    ``source`` asks the model; ``trees`` are its trees, or those of the last step of a Pipeline.
    """

    source: Source
    trees: TreeEnsemble

    @classmethod
    def of(cls, source: Source, tried: Float32Array, answers: Float64Array) -> "TreeInput | None":
        """Read a model's trees; None if it has none that can be read, or they do not give
        ``answers`` to ``tried``.

        ``tried`` (people, features) are encoded people and ``answers`` (people, classes) what the
        model said.
        """
        model = source.own.model
        if source.frames is not None and hasattr(model, "named_steps"):
            if source.prepared is None:
                return None
            model = model[-1]
        try:
            trees = read_trees(model)
            if trees is None:
                return None
            reading = cls(source, trees)
            given = np.empty_like(answers)
            given[:, source.order] = answers
            return reading if trees.agrees(reading.matrix(tried), given) <= AGREES else None
        except (TypeError, ValueError, LookupError):  # text where trees want numbers, for example
            return None

    def matrix(self, rows: Float32Array) -> Float64Array:
        """The matrix (n, input columns) that trees compare, of complete encoded rows (n,
        features).
        """
        frames = self.source.frames
        if frames is None:
            return rows.astype(float)
        if self.source.prepared is not None:
            made = self.source.prepared.transform(rows)
            return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)
        return np.stack([_numbers(column) for _, column in frames.frame(rows).items()], axis=1)

    def columns_of(self, feature: int) -> IntArray:
        """The input columns that a feature moves, (n,)."""
        frames, prepared = self.source.frames, self.source.prepared
        if frames is None:
            return np.array([feature])
        place = np.flatnonzero(frames.features == feature)
        if prepared is None or not len(place):
            return place
        return np.asarray(prepared.layout.moved[int(place[0])])

    def cells(self, feature: int) -> Float32Array | None:
        """The codes, ascending, between which values of a feature make no difference to the model;
        None: unknown.

        Thresholds of the model's own numbers become codes of the encoder. Of levels none are said:
        between two codes there is nothing that a model could be asked about.
        """
        frames, columns = self.source.frames, self.columns_of(feature)
        if frames is None:
            return (
                None
                if feature in self.trees.categorical
                else _as_codes(self.trees.thresholds(feature))
            )
        column = frames.encoder.columns[feature]
        if not isinstance(column, Measure):
            return None
        dtype = frames.dtypes.get(column.name)
        cast = dtype is not None and not pd.api.types.is_float_dtype(dtype)
        if self.source.prepared is not None or len(columns) != 1 or cast:
            return None  # what a scaler does to a number is its own affair
        if int(columns[0]) in self.trees.categorical:
            return None
        return np.union1d(
            _codes_of(column, self.trees.thresholds(int(columns[0]))), _state_codes(column)
        )


@dataclass(frozen=True, eq=False)
class TreeView:
    """Answers from a part of the facts by following the trees: where a split's fact is not known,
    both ways count.

    Ways are weighted by how many training people took them ("path-dependent"): that is no
    conditional mean, and for boosted trees it averages log odds.
    """

    reading: TreeInput

    @classmethod
    def of(cls, source: Source, tried: Float32Array, answers: Float64Array) -> "TreeView":
        """The view of a model whose trees can be read; ModelError for any other."""
        reading = TreeInput.of(source, tried, answers)
        if reading is None:
            raise ModelError(
                f"the trees of the model {source.own.name} cannot be read, so that "
                "partial='tree' is not possible; use "
                "'distilled' or 'completed'"
            )
        return cls(reading)

    def learnt_state(self) -> Mapping[str, Any]:
        """Nothing beside the model is learnt."""
        return {}

    def predict_known(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Probabilities (people, classes) of people of whom the features in ``mask`` (features,)
        are ``known``.
        """
        source, trees = self.reading.source, self.reading.trees
        rows = np.tile(self._any_row(len(mask)), (len(known), 1))
        rows[:, mask] = known
        columns = [self.reading.columns_of(feature) for feature in np.flatnonzero(mask).tolist()]
        shown = np.zeros(trees.columns, dtype=bool)
        shown[np.concatenate(columns).astype(np.intp)] = True
        answers = trees.marginalise(shown, self.reading.matrix(rows)[:, shown])
        return np.asarray(answers[:, source.order])

    def _any_row(self, width: int) -> Float32Array:
        """A row (features,) whose every cell is a code that occurs; what is not known is left out
        of the matrix.
        """
        frames = self.reading.source.frames
        if frames is None:
            return np.zeros(width, dtype=np.float32)
        return np.array(
            [
                0.0 if isinstance(c, Measure) else float(c.levels.index(c.typical))
                for c in frames.encoder.columns
            ],
            dtype=np.float32,
        )

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """The thresholds of a feature, as the model has them whatever else is known."""
        return self.reading.cells(feature)


def _codes_of(column: Measure, thresholds: Float64Array) -> Float32Array:
    """For each threshold the least code whose number is not below it; those beyond all codes are
    left out.
    """
    first = np.clip(column._standardise(thresholds), -1e30, 1e30)
    tries = [first]
    for _ in range(NEAR):
        tries = [
            np.nextafter(tries[0], np.float32(-np.inf)),
            *tries,
            np.nextafter(tries[-1], np.float32(np.inf)),
        ]
    codes = np.stack(tries, axis=1)
    numbers = column.decode(codes.ravel()).to_numpy(float).reshape(codes.shape)
    above = numbers >= thresholds[:, None]
    return np.unique(codes[np.arange(len(codes)), above.argmax(axis=1)])


def _state_codes(column: Measure) -> Float32Array:
    """Codes that part states (a gap, for example) from each other and from the numbers, which lie
    above them.
    """
    if not len(column.slots):
        return np.zeros(0, dtype=np.float32)
    return np.append(np.sort(column.slots)[1:], column.slots.max() + np.float32(0.5)).astype(
        np.float32
    )


def _as_codes(thresholds: Float64Array) -> Float32Array:
    """Thresholds of codes themselves, rounded up to float32."""
    codes = thresholds.astype(np.float32)
    return np.unique(
        np.where(codes.astype(float) < thresholds, np.nextafter(codes, np.float32(np.inf)), codes)
    )


def _numbers(column: pd.Series) -> Float64Array:
    """A column of a frame as trees see it: numbers, or the codes of categories; NaN where it is
    missing.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy(float)
        return np.where(codes < 0, np.nan, codes)
    return column.to_numpy(float)
