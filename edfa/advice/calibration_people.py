"""People to certify on: all that matters is known of them, and they are strangers to the advisor.

``CalibrationPeople.of`` is the entry; ``encode_complete`` encodes without checking who they are.
They are neither the training people again, nor one person many times. Two people may have the same
facts by chance, the more often the fewer facts there are; how often that happens is seen among
people of whom it is known that they are others.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from edfa.advice.fitted import FittedAdvisor
from edfa.data.partial import encode_partial
from edfa.data.table import Table
from edfa.data.values import check_columns, to_pandas
from edfa.errors import ColumnError, DataError, EmptyTableError, hint
from edfa.typing import BoolArray, Float32Array, ObjectArray

CHANCE = 1e-3  # probability of as many equal people below which it is not believed to be chance
MORE_REPEATS = 0.1  # share of people who may repeat another's facts, beyond what training people do


@dataclass(frozen=True, eq=False)
class CalibrationPeople:
    """Complete people.

    Parameters
    ----------
    X
        Encoded rows, (people, features); features that nobody is asked for may be NaN.
    at_edge
        Who has a number beyond what training showed, which was taken at the edge, (people,).
    group
        Everybody's group, (people,); None for an advisor without groups.
    warnings
        What a reader of a certificate should know of them.
    """

    X: Float32Array
    at_edge: BoolArray
    group: ObjectArray
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, people: Any, fitted: FittedAdvisor) -> "CalibrationPeople":
        """People to certify on.

        Parameters
        ----------
        people
            A table, a frame without an outcome, or encoded rows; see ``encode_complete``.
        fitted
            The advisor.

        Raises
        ------
        EmptyTableError
            If there is nobody.
        DataError
            If somebody is not known well enough, they are the training people, or the same people
            again and again.
        """
        complete = encode_complete(people, fitted)
        if not len(complete.X):
            raise EmptyTableError("there is nobody to certify on")
        _check_not_repeated(complete.X, fitted.train.X)
        warnings = check_disjoint_from_training(people, complete.X, fitted)
        if moved := int(complete.at_edge.sum()):
            at_edge = (
                f"{moved} of {len(complete.X)} people have a number that nobody had in training; "
                "it was taken at the edge of what was seen"
            )
            warnings = (at_edge, *warnings)
        return replace(complete, warnings=warnings)


def encode_complete(people: Any, fitted: FittedAdvisor) -> CalibrationPeople:
    """Encode complete people.

    Parameters
    ----------
    people
        A table, whose people are taken as they are, however far from the training people; a frame,
        which is read as a file of people is; or encoded rows, (people, features).
    fitted
        The advisor.

    Raises
    ------
    ColumnError
        If a frame lacks a feature that is needed.
    DataError
        If a value of a frame cannot be understood, or is missing where training people had no gap;
        the message names the row. Features that nobody is asked for may be empty, wrong or not
        there, unless the promise is held against a model of all features, or people's groups are
        told by them.
    """
    if isinstance(people, np.ndarray):
        group, name = fitted.group_of(people), fitted.promise.groups
        missing = np.flatnonzero(pd.isna(group))
        if name is not None and len(missing):
            raise DataError(f"row {missing[0]}: {name} is empty; {_why_needed(fitted, name)}")
        return CalibrationPeople(people, np.zeros(len(people), dtype=bool), group)
    if isinstance(people, Table):
        outside = [
            column.outside(people.frame[column.name])
            for column, counts in zip(fitted.encoder.columns, fitted.relevant, strict=True)
            if counts
        ]
        X = fitted.encoder.encode(people.frame)  # noqa: N806
        fitted.model.remember(X, people.frame)
        return CalibrationPeople(X, np.logical_or.reduce(outside), fitted.group_of(people))
    return _encode_frame(to_pandas(people).reset_index(drop=True), fitted)


def _encode_frame(frame: pd.DataFrame, fitted: FittedAdvisor) -> CalibrationPeople:
    """``encode_complete`` of a frame."""
    needed = _needed(fitted)
    names = np.array(fitted.schema.names)[needed].tolist()
    for name in names:
        if name not in frame.columns and not fitted.asked[fitted.schema.index(name)]:
            nearest, why = hint(name, frame.columns), _why_needed(fitted, name)
            raise ColumnError(f"the table has no column {name!r}{nearest}; {why}")
    check_columns(frame, names)
    encoded = encode_partial(frame, fitted.encoder, fitted.schema, needed)
    if encoded.errors:
        row = min(encoded.errors)
        raise DataError(f"row {row}: {encoded.errors[row]}")
    for column, counts in zip(fitted.encoder.columns, needed, strict=True):
        if column.name in frame.columns:
            codes = encoded.X[:, fitted.schema.index(column.name)]
            gaps = np.isnan(codes)
            if gaps.any() and None in column.states:
                codes[gaps] = column.slots[column.states.index(None)]
            elif gaps.any() and counts:  # training people had none: it stands for nothing
                why = _why_needed(fitted, column.name)
                raise DataError(f"row {int(gaps.argmax())}: {column.name} is empty; {why}")
    moved = [
        row
        for row, flags in encoded.flags.items()
        if any(flag.kind != "left_out" for flag in flags)
    ]
    at_edge = np.isin(np.arange(len(frame)), moved)
    return CalibrationPeople(encoded.X, at_edge, fitted.group_of(encoded.X))


def _needed(fitted: FittedAdvisor) -> BoolArray:
    """The features that must be known of everybody, (features,)."""
    if fitted.promise.reference == "all_features":
        return np.ones(len(fitted.schema), dtype=bool)
    return np.asarray(fitted.asked | np.isin(fitted.schema.names, [fitted.promise.groups or ""]))


def _why_needed(fitted: FittedAdvisor, name: str) -> str:
    """Why a certificate needs a feature of everybody."""
    if fitted.asked[fitted.schema.index(name)]:
        return "a certificate is made on complete people"
    if name == fitted.promise.groups:
        return f"a certificate for each group needs {name} of everybody"
    return "the reference 'all_features' needs every feature of everybody"


def _check_not_repeated(X: Float32Array, train: Float32Array) -> None:  # noqa: N803
    """Refuse encoded rows that are the same people again and again: a DataError.

    A bound speaks of as many people as there are, so that copies of one person promise what nobody
    has looked at. Where few facts are known, strangers have the same ones, too: training rows, just
    as many of them, show how often.
    """
    shown, size = np.asarray(~np.isnan(X).any(axis=0)), min(len(X), len(train))
    rows = row_keys(X, shown)
    repeated, usual = (_repeats(part, size) / size for part in (rows, row_keys(train, shown)))
    most = MORE_REPEATS + 1.5 / np.sqrt(size)  # which is three standard errors at most
    if repeated - usual > most:
        raise DataError(
            f"{_repeats(rows, len(rows))} of {len(rows)} people repeat the facts of another one, "
            f"{usual:.0%} would be usual; certify on different people, each of them once"
        )


def check_disjoint_from_training(
    people: Any,
    X: Float32Array,  # noqa: N803
    fitted: FittedAdvisor,
) -> tuple[str, ...]:
    """Refuse training people; warn about people with the facts of a training person, or of one
    another.

    Parameters
    ----------
    people
        As they were passed: a table, a frame or encoded rows.
    X
        Their encoded rows, (people, features); they are compared by the features that are known of
        all of them.
    fitted
        The advisor, with its training and calibration people.

    Returns
    -------
    tuple of str
        Warnings.

    Raises
    ------
    DataError
        For the training part itself, and for more exact twins of training people than chance
        explains: as often as the advisor's own calibration people have one.
    """
    shown, train = np.asarray(~np.isnan(X).any(axis=0)), fitted.train
    origin = (train.name, train.seed, len(train), "train")
    if isinstance(people, Table) and origin == (
        people.name,
        people.seed,
        len(people),
        people.part,
    ):
        raise DataError("these are the people the advisor was fitted on; certify on others")
    rows, learnt, others = (row_keys(part, shown) for part in (X, train.X, fitted.calibration))
    messages, known = [], set(learnt)
    twins, usual = (sum(row in known for row in part) for part in (rows, others))
    if _by_chance(twins, len(rows), usual, len(others)) < CHANCE:
        raise DataError(
            f"{twins} of {len(rows)} people are among those the advisor was fitted on; "
            "certify on others"
        )
    if twins:
        messages.append(
            f"{twins} of {len(rows)} people have exactly the facts of a training person"
        )
    size = min(len(rows), len(learnt))
    if _by_chance(_repeats(rows, size), size, _repeats(learnt, size), size) < CHANCE:
        messages.append(
            f"{_repeats(rows, len(rows))} of {len(rows)} people have exactly the facts of another "
            "of them, more than chance explains; a person who is there twice counts twice"
        )
    return tuple(messages)


def row_keys(rows: Float32Array, shown: BoolArray) -> list[bytes]:
    """Each row as bytes; equal rows have equal bytes.

    Parameters
    ----------
    rows
        Encoded rows, (people, features).
    shown
        The features that are looked at, (features,).
    """
    whole = np.ascontiguousarray(rows[:, shown]) + np.float32(0)  # no minus zero
    return [row.tobytes() for row in whole]


def _repeats(rows: list[bytes], size: int) -> int:
    """How many of ``size`` rows, drawn at random, repeat another one of them."""
    drawn = np.random.default_rng(0).permutation(len(rows))[:size].tolist()
    return size - len({rows[i] for i in drawn})


def _by_chance(count: int, n: int, seen: int, of: int) -> float:
    """The probability that at least ``count`` of ``n`` people are twins of somebody if each is one
    as often as ``seen`` of ``of`` others were.
    """
    rate = (seen + 1) / (of + 2)
    return float(special.betainc(count, n - count + 1, rate)) if count else 1.0
