"""People of whom everything that matters is known: what certificates are made on and audits look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.advice.assessment import FittedAdvisor
from edfa.data.partial import encode_partial
from edfa.data.table import Table
from edfa.data.validate import check_columns, to_pandas
from edfa.errors import DataError
from edfa.typing import Float32Array

__all__ = ["Complete", "encode_complete"]


@dataclass(frozen=True, eq=False)
class Complete:
    """Encoded rows ``X`` (people, features), and how many people were ``moved`` to the edge of what training showed.

    Features that do not matter to the advisor may be NaN.
    """

    X: Float32Array
    moved: int = 0

    @property
    def warning(self) -> str:
        """How many people were moved, in words."""
        return (
            f"{self.moved} of {len(self.X)} people have a number that nobody had in training; "
            "it was taken at the edge of what was seen"
        )


def encode_complete(people: Any, fitted: FittedAdvisor) -> Complete:
    """Encode a table, a frame without an outcome, or rows that are encoded already.

    A table's own people are taken as they are, however far from the training people. A frame is read as a file of
    people is: a value that cannot be understood, or a gap where training people had none, is a DataError that names its
    row; features that do not matter to the advisor are not looked at.
    """
    if isinstance(people, np.ndarray):
        return Complete(people)
    columns = [column for column, counts in zip(fitted.encoder.columns, fitted.relevant, strict=True) if counts]
    if isinstance(people, Table):
        outside = [column.outside(people.frame[column.name]) for column in columns]
        return Complete(fitted.encoder.encode(people.frame), int(np.logical_or.reduce(outside).sum()))
    frame = to_pandas(people).reset_index(drop=True)
    check_columns(frame, [column.name for column in columns])
    encoded = encode_partial(frame[[column.name for column in columns]], fitted.encoder, fitted.schema)
    for row in sorted(encoded.errors):
        raise DataError(f"row {row}: {encoded.errors[row]}")
    for column in columns:
        codes = encoded.X[:, fitted.schema.index(column.name)]
        gaps = np.isnan(codes)
        if gaps.any() and None not in column.states:  # training people had none: it stands for nothing
            raise DataError(
                f"row {int(gaps.argmax())}: {column.name} is empty; a certificate is made on complete people"
            )
        codes[gaps] = column.slots[column.states.index(None)] if gaps.any() else np.nan
    return Complete(encoded.X, len(encoded.flags))
