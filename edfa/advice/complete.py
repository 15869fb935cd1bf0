"""People of whom everything that matters is known: what certificates are made on and audits look
at.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edfa.advice.fitted import FittedAdvisor
from edfa.data.partial import encode_partial
from edfa.data.table import Table
from edfa.data.validate import check_columns, to_pandas
from edfa.errors import ColumnError, DataError, hint
from edfa.typing import BoolArray, Float32Array, ObjectArray

__all__ = ["Complete", "encode_complete"]


@dataclass(frozen=True, eq=False)
class Complete:
    """Encoded rows ``X`` (people, features); features that nobody is asked for may be NaN.

    ``at_edge`` (people,) says who was moved to the edge of what training showed, ``group``
    (people,) is everybody's group, None for an advisor without groups.
    """

    X: Float32Array
    at_edge: BoolArray
    group: ObjectArray

    @property
    def moved(self) -> int:
        """How many people were moved to the edge."""
        return int(self.at_edge.sum())

    @property
    def warning(self) -> str:
        """How many people were moved, in words."""
        return (
            f"{self.moved} of {len(self.X)} people have a number that nobody had in training; "
            "it was taken at the edge of what was seen"
        )


def encode_complete(people: Any, fitted: FittedAdvisor) -> Complete:
    """Encode a table, a frame without an outcome, or rows that are encoded already.

    A table's own people are taken as they are, however far from the training people. A frame is
    read as a file of people is: a value that cannot be understood, or a gap where training people
    had none, is a DataError that names its row. That is so for what the advisor asks; features that
    nobody is asked for may be empty, wrong or not there, unless the promise is held against a model
    of all features, or people's groups are told by them.
    """
    if isinstance(people, np.ndarray):
        group = fitted.group_of(people)
        if fitted.groups is not None and None in group.tolist():
            raise DataError(
                f"row {group.tolist().index(None)}: {fitted.groups} is empty; "
                f"{_why(fitted, fitted.groups)}"
            )
        return Complete(people, np.zeros(len(people), dtype=bool), group)
    if isinstance(people, Table):
        columns = [
            column
            for column, counts in zip(fitted.encoder.columns, fitted.relevant, strict=True)
            if counts
        ]
        outside = [column.outside(people.frame[column.name]) for column in columns]
        X = fitted.encoder.encode(people.frame)  # noqa: N806
        fitted.model.remember(X, people.frame)
        return Complete(X, np.logical_or.reduce(outside), fitted.group_of(people))
    return _encode_frame(to_pandas(people).reset_index(drop=True), fitted)


def _encode_frame(frame: pd.DataFrame, fitted: FittedAdvisor) -> Complete:
    """``encode_complete`` of a frame."""
    needed = _needed(fitted)
    names = np.array(fitted.schema.names)[needed].tolist()
    absent = [
        name
        for name in names
        if name not in frame.columns and not fitted.asked[fitted.schema.index(name)]
    ]
    if absent:
        nearest = hint(absent[0], frame.columns)
        raise ColumnError(
            f"the table has no column {absent[0]!r}{nearest}; {_why(fitted, absent[0])}"
        )
    check_columns(frame, names)
    encoded = encode_partial(frame, fitted.encoder, fitted.schema, needed)
    for row in sorted(encoded.errors):
        raise DataError(f"row {row}: {encoded.errors[row]}")
    for column, counts in zip(fitted.encoder.columns, needed, strict=True):
        if column.name in frame.columns:
            codes = encoded.X[:, fitted.schema.index(column.name)]
            gaps = np.isnan(codes)
            if gaps.any() and None in column.states:
                codes[gaps] = column.slots[column.states.index(None)]
            elif gaps.any() and counts:  # training people had none: it stands for nothing
                raise DataError(
                    f"row {int(gaps.argmax())}: {column.name} is empty; {_why(fitted, column.name)}"
                )
    at_edge = np.zeros(len(frame), dtype=bool)
    at_edge[
        [
            row
            for row, flags in encoded.flags.items()
            if any(flag.kind != "left_out" for flag in flags)
        ]
    ] = True
    return Complete(encoded.X, at_edge, fitted.group_of(encoded.X))


def _needed(fitted: FittedAdvisor) -> BoolArray:
    """The features that must be known of everybody, (features,)."""
    if fitted.reference == "all_features":
        return np.ones(len(fitted.schema), dtype=bool)
    is_group = np.array([name == fitted.groups for name in fitted.schema.names])
    return np.asarray(fitted.asked | is_group)


def _why(fitted: FittedAdvisor, name: str) -> str:
    """Why a certificate needs a feature of everybody."""
    if fitted.asked[fitted.schema.index(name)]:
        return "a certificate is made on complete people"
    if name == fitted.groups:
        return f"a certificate for each group needs {name} of everybody"
    return "the reference 'all_features' needs every feature of everybody"
