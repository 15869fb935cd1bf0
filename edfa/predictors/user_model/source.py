"""How encoded people become what a user model is asked about, and its answers those of
the card.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from edfa.data.table import Table
from edfa.errors import ModelError, SettingError
from edfa.predictors.user_model.ask import ENCODED, FittedModel
from edfa.predictors.user_model.frames import FrameMaker, cast_frame
from edfa.predictors.user_model.given import Given, put_given
from edfa.predictors.user_model.prepared import PreparedPipeline, prepare
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Source"]


@dataclass(frozen=True, eq=False)
class Source:
    """Asks a model about complete encoded people.

    Parameters
    ----------
    own
        The model.
    order
        Which of the model's probabilities belongs to each class of the card, (classes,).
    reads
        Which features are columns of the model, (features,).
    categorical
        The positions of categorical features.
    frames
        Makes frames of encoded rows; None: the model is asked about the encoded matrix itself.
    prepared
        A faster way to the same bits, for a Pipeline; None: there is none.
    """

    own: FittedModel
    order: IntArray
    reads: BoolArray
    categorical: tuple[int, ...] = ()
    frames: FrameMaker | None = None
    prepared: PreparedPipeline | None = None

    @classmethod
    def of_table(cls, own: FittedModel, train: Table) -> Self:
        """For people of a table; ColumnError or ModelError if the model wants other columns or
        knows other classes.
        """
        names, columns = train.schema.names, own.columns
        own.check_columns(names)
        frames = (
            None if isinstance(columns, str) else FrameMaker(train.encoder, columns, own.dtypes)
        )
        reads = np.array([columns == ENCODED or name in columns for name in names])
        categorical = tuple(
            i for i, feature in enumerate(train.schema) if feature.kind == "categorical"
        )
        return cls(own, own.order(train.schema.classes), reads, categorical, frames)

    @classmethod
    def of_matrix(cls, own: FittedModel, classes: AnyArray, width: int) -> Self:
        """For rows of numbers without a table; ``classes`` are those that occur, ``width`` is the
        number of columns.
        """
        if own.columns != ENCODED:
            raise SettingError(
                "a model that wants columns is asked about a table: "
                "fit_table(table.train), or Advisor(predictor=...)"
            )
        return cls(
            own, own.order([str(label) for label in classes.tolist()]), np.ones(width, dtype=bool)
        )

    def with_prepared(self, X: Float32Array) -> Self:  # noqa: N803
        """The same with columns of a Pipeline prepared once for each distinct value, if that gives
        equal bits.

        ``X`` (people, features) are training people to find out on.
        """
        if self.frames is None or not hasattr(self.own.model, "named_steps"):
            return self
        return replace(self, prepared=prepare(self.own.model, self.frames, X))

    def ask(self, rows: Float32Array, given: tuple[Given, ...] = ()) -> Float64Array:
        """The model's probabilities (n, classes), in the card's order, of complete encoded rows (n,
        features) of people who gave the numbers ``given``.
        """
        if self.prepared is not None and not given:
            with suppress(Exception):  # whatever it stumbles over, the model itself is asked
                return self._in_order(self.own.check(self.prepared.predict_proba(rows), len(rows)))
        if self.frames is None:
            return self._in_order(self.own.ask(rows))
        frame = put_given(self.frames.frame(rows), rows, self.frames.encoder.names, given)
        return self._in_order(self.own.ask(frame))

    def ask_given(self, X: Float32Array, frame: pd.DataFrame) -> tuple[IntArray, Float64Array]:  # noqa: N803
        """Ask about those people as they were given of whom encoding cannot express everything.

        ``X`` (people, features) are the encoded people of ``frame``. Returns their rows (n,) and
        the model's probabilities (n, classes). A level that is no category of the model's is
        missing to it, as pandas has it.
        """
        if self.frames is None:
            return np.zeros(0, dtype=np.intp), np.zeros((0, len(self.order)))
        columns = list(self.frames.columns)
        given, encoded = (
            frame[columns].reset_index(drop=True),
            self.frames.encoder.decode(X)[columns],
        )
        apart = np.zeros(len(given), dtype=bool)
        for name in columns:
            ours, theirs = (part[name].astype(object).to_numpy() for part in (encoded, given))
            apart |= (ours != theirs) & ~(pd.isna(ours) & pd.isna(theirs))
        rows = np.flatnonzero(apart)
        if not len(rows):
            return rows, np.zeros((0, len(self.order)))
        asked = cast_frame(given.iloc[rows].reset_index(drop=True), self.frames.dtypes)
        return rows, self._in_order(self.own.ask(asked))

    def _in_order(self, answer: Float64Array) -> Float64Array:
        if answer.shape[1] != len(self.order):
            raise ModelError(
                f"the model {self.own.name} answers {answer.shape[1]} probabilities; the card has "
                f"{len(self.order)} classes"
            )
        return np.asarray(answer[:, self.order])
