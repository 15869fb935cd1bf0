"""How encoded people become what a user model is asked about, and its answers those of the card.

``Source`` joins a ``FittedModel`` with the encoder of a table and the order of the card's classes.
``to_parts`` and ``from_parts`` write it to a folder and read it again: the model's own file where
there is a safe one, its columns and their data types, and how people are encoded.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.data.table import Table
from edfa.errors import ColumnError, ModelError, SettingError, UnreadableError
from edfa.predictors.user_model.ask import ENCODED, FittedModel
from edfa.predictors.user_model.files import read_model, write_model
from edfa.predictors.user_model.frames import FrameMaker, cast_frame
from edfa.predictors.user_model.given import Given
from edfa.predictors.user_model.prepared import PreparedPipeline, prepare
from edfa.reading import parse_json
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

OWN, ENCODER = "own.json", "encoder.json"
PLAIN = "biufOU"  # kinds of numpy's data types whose values JSON has


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
        """Ask a model about people of a table.

        Parameters
        ----------
        own
            The model.
        train
            The training part, which has the schema and the encoder.

        Raises
        ------
        ColumnError
            If the model wants a column that the card has not.
        ModelError
            If the model knows other classes than the card.
        """
        names, columns = train.schema.names, own.columns
        own.check_columns(names)
        frames = (
            None if isinstance(columns, str) else FrameMaker(train.encoder, columns, own.dtypes)
        )
        reads = np.array([columns == ENCODED or name in columns for name in names])
        categorical = tuple(np.flatnonzero(train.schema.categorical).tolist())
        return cls(own, own.order(train.schema.classes), reads, categorical, frames)

    @classmethod
    def of_matrix(cls, own: FittedModel, classes: AnyArray, width: int) -> Self:
        """Ask a model about rows of numbers without a table.

        Parameters
        ----------
        own
            The model, of columns ``"encoded"``.
        classes
            The classes that occur among the outcomes, (classes,).
        width
            The number of columns.

        Raises
        ------
        SettingError
            If the model wants named columns.
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
        """Ask the model about complete encoded people.

        Parameters
        ----------
        rows
            The people, (n, features).
        given
            Numbers that all of them gave and that encoding cannot express.

        Returns
        -------
        The model's probabilities in the order of the card's classes, (n, classes).
        """
        if self.prepared is not None and not given:
            with suppress(Exception):  # whatever it stumbles over, the model itself is asked
                return self._in_order(self.own.check(self.prepared.predict_proba(rows), len(rows)))
        people = rows if self.frames is None else self.frames.frame(rows, given)
        return self._in_order(self.own.ask(people))

    def ask_given(self, X: Float32Array, frame: pd.DataFrame) -> tuple[IntArray, Float64Array]:  # noqa: N803
        """Ask about those people as they were given of whom encoding cannot express everything.

        A level that is no category of the model's is missing to it, as pandas has it.

        Parameters
        ----------
        X
            The encoded people of ``frame``, (people, features), complete.
        frame
            The people as they were given, with at least the columns of the model.

        Returns
        -------
        The positions of those people (n,), and the model's probabilities of them (n, classes).
        """
        nobody = np.zeros(0, dtype=np.intp), np.zeros((0, len(self.order)))
        if self.frames is None:
            return nobody
        columns = list(self.frames.columns)
        given = frame[columns].reset_index(drop=True)
        ours = self.frames.encoder.decode(X)[columns].astype(object)
        theirs = given.astype(object)
        differs = (ours != theirs) & ~(ours.isna() & theirs.isna())
        rows = np.flatnonzero(differs.any(axis=1))
        if not len(rows):
            return nobody
        asked = cast_frame(given.iloc[rows].reset_index(drop=True), self.frames.dtypes)
        return rows, self._in_order(self.own.ask(asked))

    def _in_order(self, answer: Float64Array) -> Float64Array:
        """Probabilities of the model's classes as those of the card's; both (people, classes)."""
        if answer.shape[1] != len(self.order):
            raise ModelError(
                f"the model {self.own.name} answers {answer.shape[1]} probabilities; the card has "
                f"{len(self.order)} classes"
            )
        return np.asarray(answer[:, self.order])

    def to_parts(self) -> tuple[dict[str, bytes], bool]:
        """What a folder is to hold, so that ``from_parts`` can read it.

        Returns
        -------
        The content of each file by its name, and whether the model itself is among them. A function
        or a torch module has no safe file, and must be passed again when the folder is read.

        Raises
        ------
        ColumnError
            If a column has a data type that cannot be written as JSON.
        """
        own, file = self.own, write_model(self.own)
        facts = {
            "kind": own.kind,
            "columns": own.columns,
            "classes": own.classes,
            "dtypes": {name: _dtype_to_json(name, dtype) for name, dtype in own.dtypes.items()},
            "order": self.order.tolist(),
            "reads": self.reads.tolist(),
            "categorical": self.categorical,
            "file": None if file is None else file[0],
        }
        parts = {OWN: json.dumps(facts).encode()}
        if self.frames is not None:
            parts[ENCODER] = self.frames.encoder.to_json().encode()
        if file is not None:
            parts[file[0]] = file[1]
        return parts, file is not None

    @classmethod
    def from_parts(cls, parts: Mapping[str, bytes], model: Any, tried: Float32Array) -> Self:
        """Read what ``to_parts`` wrote.

        Parameters
        ----------
        parts
            The content of each file of the folder by its name.
        model
            The model, where it is in no file, else None.
        tried
            Encoded people (n, features) whom the model is asked about before its answers are relied
            on.

        Raises
        ------
        ModelError
            If the model is in no file, and none is passed.
        UnreadableError
            If a part is damaged.
        """
        facts = parse_json(parts[OWN].decode("utf-8"), OWN)
        columns = facts["columns"] if isinstance(facts["columns"], str) else tuple(facts["columns"])
        classes = None if facts["classes"] is None else tuple(facts["classes"])
        dtypes = {name: _dtype_from_json(dtype) for name, dtype in facts["dtypes"].items()}
        order, reads = np.array(facts["order"]), np.array(facts["reads"])
        if sorted(facts["order"]) != list(range(len(order))):
            raise UnreadableError("the order of the classes is damaged")
        if reads.dtype != bool or reads.shape != tried.shape[1:]:
            raise UnreadableError("the features that the model reads are damaged")
        frames, rows = None, pd.DataFrame(tried)
        if not isinstance(columns, str):
            encoder = Encoder.from_json(parts[ENCODER].decode("utf-8"))
            frames = FrameMaker(encoder, columns, dtypes)
            rows = frames.frame(tried)
        if model is not None:
            like = rows if dtypes else None
            own = FittedModel.of(model, columns=columns, classes=classes, like=like)
        elif facts["file"] is None:
            raise ModelError(
                "the model of this advisor is in no file; pass the same one again: "
                "Advisor.load(folder, model=...)"
            )
        else:
            kind = str(facts["kind"])
            read = read_model(facts["file"], parts[facts["file"]], kind, rows)
            own = FittedModel(read, kind, columns, dtypes, classes)
        return cls(own, order, reads, tuple(facts["categorical"]), frames)


def _dtype_to_json(name: str, dtype: Any) -> Any:
    """A column's data type: its name, or its categories and theirs."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    inner = dtype.categories.dtype
    if isinstance(inner, np.dtype) and inner.kind not in PLAIN:
        raise ColumnError(f"{name!r} has categories of {inner}, whose values cannot be kept")
    return {
        "categories": dtype.categories.tolist(),
        "of": str(inner),
        "ordered": bool(dtype.ordered),
    }


def _dtype_from_json(written: Any) -> Any:
    """The data type that ``_dtype_to_json`` wrote."""
    if isinstance(written, str):
        return pd.api.types.pandas_dtype(written)
    categories = pd.Index(written["categories"], dtype=written["of"])
    return pd.CategoricalDtype(categories, written["ordered"])
