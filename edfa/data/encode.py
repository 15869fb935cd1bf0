"""Encoding of a table's columns into the float32 matrix that models read, and back.

Continuous features are standardised, ordinal ones numbered in order, categorical ones
label-encoded. ``NaN`` never comes out of here: it is reserved for "not acquired". A value that is
*truly* missing, or one of the card's codes (HELOC's -9, "no bureau record"), is a fact about the
person and gets a number of its own, beyond all measurements: below the lowest for continuous and
ordinal features, after the last level for categorical ones.

Three borders, three policies:

- **Rules** (``encode_one``): whatever training never showed is an error.
- **What a person tells** (``encode_fact``, ``encode_person``): a number slightly outside the range
  moves to its edge, which ``find_flag`` reports; an ordinal number that training never showed moves
  to the nearest one. An error is only what cannot be: an unknown level, words for a number, a gap
  where training had none, a negative number where none was, and a number farther beyond the range
  than the range is wide, which is a typing error.
- **A batch** (``encode``): a number outside the range moves to its edge, however far; a level
  training never showed, or a gap where training had none, becomes the feature's typical training
  value (median or most frequent level).

The range is what training showed, widened by the card's ``range`` where that is larger.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.schema import Feature, Schema
from edfa.data.values import (
    LARGEST_NUMBER,
    as_number,
    as_word,
    check_present,
    exact,
    match_level,
    read_numbers,
    to_pandas,
    to_words,
)
from edfa.errors import ColumnError, DataError, FactError, UnknownNameError, hint
from edfa.reading import MAX_CHARACTERS_SHOWN, shorten
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array

# a range is at most so many steps of the scale wide: float32 tells a state from the value above it
FINEST = 1e6


FlagKind = Literal["above", "below", "between", "left_out"]


@dataclass(frozen=True)
class Flag:
    """A fact whose value is replaced, or left out, because it lies beyond the training values.

    Parameters
    ----------
    feature
        The feature's name.
    kind
        ``"above"`` or ``"below"`` (of all that was seen), ``"between"`` (levels that were seen), or
        ``"left_out"`` (it cannot be understood, and does not matter to the decision).
    told
        The value that the person gave.
    taken
        The value that stands for it; None if it was left out.
    """

    feature: str
    kind: FlagKind
    told: Any
    taken: Any = None


class _Column(Protocol):
    """What ``Measure`` and ``Levels`` share: how one value is checked and encoded."""

    name: str
    whole: bool
    states: tuple[float | None, ...]
    words: bool = False

    @property
    def slots(self) -> Float32Array:
        """The code of each state, (states,)."""

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number that is understood."""

    def _read(self, value: Any) -> Any:
        """One value as a number or a word of this column, None for a gap; FactError for others."""

    def _code(self, answer: Any) -> float | None:
        """The code of a number or a word; None if training never showed it."""

    def _nearest(self, number: float) -> float:
        """The number that training showed and that is nearest to another one."""

    def _never_seen(self, answer: Any) -> FactError:
        """The error that names a number or a word that training never showed."""

    def encode_one(self, value: Any) -> float:
        """Encode a value that training showed.

        Parameters
        ----------
        value
            A number, a word, or None for a value that is truly missing; numbers may be texts.

        Returns
        -------
        float
            Its code in the matrix that models read.

        Raises
        ------
        FactError
            If training never showed the value.
        """
        answer = self._read(value)
        if answer in self.states:
            return float(self.slots[self.states.index(answer)])
        if answer is None:
            raise FactError(f"{self.name}: a value is needed, none was given")
        if (code := self._code(answer)) is None:
            raise self._never_seen(answer)
        return code

    def encode_fact(self, value: Any) -> float:
        """Encode what a person tells: as ``encode_one`` does, or the value that ``find_flag``
        takes in its place.
        """
        flag = self.find_flag(value)
        return self.encode_one(value if flag is None else flag.taken)

    def find_flag(self, value: Any) -> Flag | None:
        """Find the number that stands for one that training never showed.

        Parameters
        ----------
        value
            What a person tells.

        Returns
        -------
        Flag | None
            The flag, whose ``taken`` is the end of the range or the nearest ordinal number; None if
            the value is taken as it is. Words are never moved.

        Raises
        ------
        FactError
            For a number that cannot be: a negative one where training showed none, or one farther
            outside the range than the range is wide.

        Examples
        --------
        >>> import edfa
        >>> edfa.load("german").encoder["age"].find_flag(80)
        Flag(feature='age', kind='above', told=80, taken=75)
        """
        number = None if self.words else self._read(value)
        if number is None or number in self.states or self._code(number) is not None:
            return None
        low, high = self.ends
        if number < 0 <= low or max(low - number, number - high) > high - low:
            raise self._never_seen(number)
        kind: FlagKind = "above" if number > high else "below" if number < low else "between"
        edge = self._nearest(number)
        taken = int(edge) if self.whole and edge.is_integer() else edge
        return Flag(self.name, kind, value, taken)


def _find_states(values: pd.Series, feature: Feature) -> tuple[float | None, ...]:
    """None if any of the training values, (rows,), is missing, then the codes of the feature."""
    return (*([None] if values.isna().any() else []), *map(float, feature.codes))


@dataclass(frozen=True)
class Measure(_Column):
    """The encoding of a continuous feature: standardised measurements, and its states one step
    apart below them.

    Parameters
    ----------
    name
        The feature.
    mean, scale
        Mean and standard deviation of the training measurements, states left out; a scale of 0
        becomes 1.
    low, high
        The range of values that are understood: what training showed, widened by the card's
        ``range``.
    typical
        The median training measurement, put where a batch has a gap and training had none.
    whole
        Whether the column holds integers, so that decoded values are integers too.
    states
        None for a missing value if training rows had any, then the card's codes.
    """

    name: str
    mean: float
    scale: float
    low: float
    high: float
    typical: float
    whole: bool
    states: tuple[float | None, ...] = ()

    @classmethod
    def fit(cls, values: pd.Series, feature: Feature) -> "Measure":
        """Learn the scale from training values.

        Parameters
        ----------
        values
            Numbers or null, (rows,). Nulls and the codes of ``feature`` are no measurements.
        feature
            The feature that they are values of; its ``range`` widens the range that is understood.

        Raises
        ------
        ColumnError
            If a number is infinite, or farther than ``LARGEST`` from zero.
        """
        states = _find_states(values, feature)
        known = values[values.notna() & ~values.isin(states)].to_numpy(float)
        known = known if len(known) else np.zeros(1)
        if not (np.abs(known) <= LARGEST_NUMBER).all():
            raise ColumnError(
                f"column {feature.name!r} is infinite, or beyond {LARGEST_NUMBER:g}, in some row"
            )
        ends = [end for end in feature.range or () if math.isfinite(end)]
        low, high = float(min([known.min(), *ends])), float(max([known.max(), *ends]))
        return cls(
            name=feature.name,
            mean=float(known.mean()),
            scale=max(float(known.std()) or 1.0, (high - low) / FINEST),
            low=low,
            high=high,
            typical=float(np.quantile(known, 0.5, method="lower")),
            whole=values.dtype.kind == "i",
            states=states,
        )

    def _standardise(self, numbers: npt.ArrayLike) -> Float32Array:
        """Numbers of any shape in standard deviations from the mean."""
        return ((np.asarray(numbers, dtype=float) - self.mean) / self.scale).astype(np.float32)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number that is understood."""
        return self.low, self.high

    @property
    def slots(self) -> Float32Array:
        """The code of each state, (states,): one step each below the code of the lowest value."""
        floor = self._standardise(self.low)
        return (floor - 1 - np.arange(len(self.states))).astype(np.float32)

    def encode(self, values: pd.Series) -> Float32Array:
        """Encode a column by the policy for batches.

        Parameters
        ----------
        values
            Numbers or nulls, (rows,).

        Returns
        -------
        Float32Array
            The codes, (rows,), without NaN: numbers outside the range are at its edge, and a gap is
            the median where training had none.
        """
        numbers = read_numbers(values).to_numpy(float)
        gaps = np.isnan(numbers)
        codes = self._standardise(
            np.clip(np.where(gaps, self.typical, numbers), self.low, self.high)
        )
        for state, slot in zip(self.states, self.slots, strict=True):
            codes[gaps if state is None else numbers == state] = slot
        return codes

    def outside(self, values: pd.Series) -> BoolArray:
        """Which numbers, (rows,), ``encode`` moves to an edge of the range."""
        numbers = read_numbers(values)
        beyond = (numbers < self.low) | (numbers > self.high)
        return np.asarray(beyond & ~numbers.isin(self.states))

    def _read(self, value: Any) -> float | None:
        """An answer as a number; one that reads like an end of the range, in six digits, is that
        end.
        """
        number = as_number(value, self.name)
        if number is None or self.whole or number in self.states or self.low <= number <= self.high:
            return number
        return next((end for end in self.ends if f"{end:g}" == f"{number:g}"), number)

    def _code(self, answer: float) -> float | None:
        return float(self._standardise(answer)) if self.low <= answer <= self.high else None

    def _nearest(self, number: float) -> float:
        return min(max(number, self.low), self.high)

    def _never_seen(self, answer: float) -> FactError:
        ends = f"{exact(self.low)} to {exact(self.high)}"
        return FactError(f"{self.name}: {exact(answer)} is outside {ends}, the values learnt from")

    def _numbers(self, codes: Float32Array) -> Float64Array:
        """Of all decimals that would encode to the same float32, the shortest, (rows,)."""
        exact = codes.astype(float) * self.scale + self.mean
        numbers, unsettled = exact.copy(), np.ones(len(codes), dtype=bool)
        for digits in range(16):
            rounded = np.round(exact[unsettled], digits)
            settled = self._standardise(rounded) == codes[unsettled]
            numbers[np.flatnonzero(unsettled)[settled]] = rounded[settled]
            unsettled[unsettled] = ~settled
            if not unsettled.any():
                break
        return numbers

    def decode_one(self, code: float) -> Any:
        """The value of one code, as ``decode`` finds it; None for a truly missing one."""
        single = np.array([code], dtype=np.float32)
        if self.states and single[0] in self.slots:
            return self.states[self.slots.tolist().index(single[0])]
        number = float(self._numbers(single)[0]) + 0.0  # -0.0 is 0.0
        return int(number) if self.whole and number.is_integer() else number

    def decode(self, codes: Float32Array) -> pd.Series:
        """Turn codes into numbers.

        Of all decimals that would encode to the same float32, the shortest is taken. So
        ``encode(decode(c)) == c`` bit for bit for every code that came from a number, and a
        person's own number comes back exactly whenever float32 can tell it from its neighbours.

        Parameters
        ----------
        codes
            Codes without NaN, (rows,).

        Returns
        -------
        pandas.Series
            The numbers, (rows,), NaN where a value is truly missing.
        """
        numbers = self._numbers(codes)
        for state, slot in zip(self.states, self.slots, strict=True):
            numbers[codes == slot] = np.nan if state is None else state
        integers = self.whole and bool((numbers == np.round(numbers)).all())
        return pd.Series(numbers.astype("int64") if integers else numbers)


@dataclass(frozen=True)
class Levels(_Column):
    """The encoding of an ordinal or categorical feature: levels numbered from 0, and its states
    beside them.

    Parameters
    ----------
    name
        The feature.
    levels
        Its values in the order of their codes, all strings or all numbers; numbers are ordinal.
    typical
        The level put where a batch has one that training never showed: the median of ordinal
        numbers, else the most frequent level.
    ordered
        Whether the feature is ordinal: its states are then numbered down from -1, else on from the
        last level.
    whole
        Whether the column holds integers, so that decoded values are integers too.
    states
        None for a missing value if training rows had any, then the card's codes.
    """

    name: str
    levels: tuple[str | float, ...]
    typical: str | float
    ordered: bool
    whole: bool
    states: tuple[float | None, ...] = ()

    @classmethod
    def fit(cls, values: pd.Series, feature: Feature) -> "Levels":
        """Learn the levels from training values.

        Parameters
        ----------
        values
            Words, numbers or null, (rows,). Nulls and the codes of ``feature`` are no levels.
        feature
            The feature that they are values of. If it lists levels these are taken, in their order;
            otherwise those that occur, sorted.
        """
        states = _find_states(values, feature)
        known = values[values.notna() & ~values.isin(states)]
        convert = str if feature.words else float
        levels = tuple(convert(v) for v in (feature.levels or sorted(known.unique()))) or (
            (0.0,) if feature.codes else ()
        )
        counts = known.value_counts()
        if feature.words or not len(known):
            typical = max(levels, key=lambda level: (counts.get(level, 0), -levels.index(level)))
        else:
            typical = float(np.quantile(known, 0.5, method="lower"))
        return cls(
            name=feature.name,
            levels=levels,
            typical=typical,
            ordered=feature.kind == "ordinal",
            whole=values.dtype.kind == "i",
            states=states,
        )

    @property
    def words(self) -> bool:  # type: ignore[override]
        """Whether the levels are strings rather than numbers."""
        return isinstance(self.levels[0], str)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest level of numbers."""
        numbers = [float(level) for level in self.levels]
        return min(numbers), max(numbers)

    @property
    def slots(self) -> Float32Array:
        """The code of each state, (states,): below 0 if ordered, else after the last level."""
        steps = np.arange(len(self.states), dtype=np.float32)
        return -1 - steps if self.ordered else len(self.levels) + steps

    def encode(self, values: pd.Series) -> Float32Array:
        """Encode a column by the policy for batches.

        Parameters
        ----------
        values
            Words, numbers or nulls, (rows,).

        Returns
        -------
        Float32Array
            The codes, (rows,), without NaN. An unknown number is the nearest level; an unknown
            word, or a gap where training had none, is the typical level.
        """
        values = to_words(values) if self.words else read_numbers(values)
        codes = pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.float32)
        unknown = codes < 0
        codes[unknown] = self._stand_ins(values[unknown])
        for state, slot in zip(self.states, self.slots, strict=True):
            codes[values.isna() if state is None else values == state] = slot
        return codes

    def _stand_ins(self, values: pd.Series) -> Float32Array:
        """The codes of values that are no levels, (rows,): of the level that a word means, of the
        nearest ordinal number, else of the typical level.
        """
        typical = float(self.levels.index(self.typical))
        if self.words:
            meant = {word: self._code(word) for word in values.dropna().unique()}
            return values.map(meant).astype(float).fillna(typical).to_numpy(np.float32)
        numbers = values.to_numpy(float)
        nearest = np.abs(np.asarray(self.levels, float)[None] - numbers[:, None]).argmin(axis=1)
        return np.where(np.isnan(numbers), typical, nearest).astype(np.float32)

    def outside(self, values: pd.Series) -> BoolArray:
        """Which ordinal numbers, (rows,), ``encode`` moves to the nearest level; words never
        move.
        """
        known = values.isna() | values.isin([*self.levels, *self.states])
        return np.asarray(~known) & (not self.words)

    def _read(self, value: Any) -> str | float | None:
        return as_word(value, self.name) if self.words else as_number(value, self.name)

    def _code(self, answer: str | float) -> float | None:
        """The position of a level; of a word also that of the level that it means."""
        level = match_level(str(answer), map(str, self.levels)) if self.words else answer
        return float(self.levels.index(level)) if level in self.levels else None

    def _nearest(self, number: float) -> float:
        return min(map(float, self.levels), key=lambda level: abs(level - number))

    def _never_seen(self, answer: str | float) -> FactError:
        shown = [level if isinstance(level, str) else exact(level) for level in self.levels]
        text = answer if isinstance(answer, str) else exact(answer)
        return FactError(
            f"{self.name}: no level {shorten(text)}{hint(text[:MAX_CHARACTERS_SHOWN], shown)}"
        )

    @cached_property
    def _values(self) -> dict[float, Any]:
        """The level or the state that each code stands for."""
        values = [*self.levels, *self.states]
        if self.whole and not self.words:
            values = [None if value is None else int(value) for value in values]
        return dict(zip([*range(len(self.levels)), *self.slots.tolist()], values, strict=True))

    def decode_one(self, code: float) -> Any:
        """The value of one code; None for a truly missing one, DataError for any other code."""
        try:
            return self._values[float(code)]
        except KeyError:
            raise DataError(f"{self.name}: {code} is not the code of any level") from None

    def decode(self, codes: Float32Array) -> pd.Series:
        """Turn codes into levels.

        Parameters
        ----------
        codes
            Codes without NaN, (rows,).

        Returns
        -------
        pandas.Series
            Strings or numbers, (rows,), null where a value is truly missing.

        Raises
        ------
        DataError
            If a code is neither that of a level nor that of a state.
        """
        which, distinct = pd.factorize(codes, use_na_sentinel=False)
        values = [self.decode_one(code) for code in distinct.tolist()]
        if self.words:
            return pd.Series(np.array(values, dtype=object)[which], dtype="str")
        numbers = np.array(values, dtype=float)[which]
        integers = self.whole and not np.isnan(numbers).any()
        return pd.Series(numbers.astype("int64") if integers else numbers)


@dataclass(frozen=True)
class Encoder:
    """The encoding of every feature of a table, fitted on its training part alone.

    Parameters
    ----------
    columns
        The encoding of each feature, in the schema's order: ``Measure`` for a continuous one,
        ``Levels`` for others.

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
        """Learn scales, levels and states from training rows.

        Parameters
        ----------
        frame
            The training rows, with a column for each feature, as ``validate_frame`` leaves them.
        schema
            The features.
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
        """Encode rows of which everything is known, by the batch policy above.

        Parameters
        ----------
        frame
            A frame of any make with a column for each feature; other columns are ignored.

        Returns
        -------
        Float32Array
            The codes, (rows, features), without NaN.

        Raises
        ------
        ColumnError
            If a feature has no column, or a column of words holds what is no word.
        """
        frame = to_pandas(frame)
        check_present(frame, self.names)
        matrix = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for i, column in enumerate(self.columns):
            matrix[:, i] = column.encode(frame[column.name])
        return matrix

    def encode_person(self, facts: Mapping[str, Any]) -> Float32Array:
        """Encode what one person tells, by the policy for people above.

        Parameters
        ----------
        facts
            Values by feature name; features that are left out are not known.

        Returns
        -------
        Float32Array
            One row, (features,), NaN where a feature is not known.

        Raises
        ------
        FactError
            If a value cannot be understood.
        UnknownNameError
            If there is no feature of a name.
        """
        row = np.full(len(self.columns), NAN)
        for name, value in facts.items():
            column = self[name]
            row[self.columns.index(column)] = column.encode_fact(value)
        return row

    def decode(self, matrix: Float32Array) -> pd.DataFrame:
        """Decode rows of which everything is known; ``decode_cells`` is for others.

        Parameters
        ----------
        matrix
            Codes, (rows, features), without NaN.

        Returns
        -------
        pandas.DataFrame
            A column of values for each feature; null where a value is truly missing.

        Raises
        ------
        DataError
            If the matrix has another shape, NaN, or a number that is no code.
        """
        matrix = np.asarray(matrix, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise DataError(
                f"a matrix of {len(self.columns)} columns is needed, not of shape {matrix.shape}"
            )
        if np.isnan(matrix).any():
            raise DataError(
                "the matrix has cells that were not acquired (NaN); decode_cells decodes "
                "the known ones"
            )
        return pd.DataFrame({c.name: c.decode(matrix[:, i]) for i, c in enumerate(self.columns)})

    def decode_cells(self, name: str, codes: npt.ArrayLike) -> list[Any]:
        """Decode codes of one feature.

        Parameters
        ----------
        name
            The feature.
        codes
            Codes without NaN, (cells,), or a single one.

        Returns
        -------
        list
            The values, None for a truly missing one.
        """
        cells = np.atleast_1d(np.asarray(codes, dtype=np.float32))
        if len(cells) == 1:  # a plan is decoded cell by cell: spare it the Series
            return [self[name].decode_one(float(cells[0]))]
        values = self[name].decode(cells)
        return [None if pd.isna(v) else v for v in values.tolist()]

    def to_json(self) -> str:
        """The encoder as JSON; ``from_json`` makes an equal one of it."""
        return json.dumps(
            [{"type": type(c).__name__} | asdict(c) for c in self.columns], ensure_ascii=False
        )

    @classmethod
    def from_json(cls, text: str) -> "Encoder":
        """The encoder that ``to_json`` wrote."""
        kinds: dict[str, Callable[..., Measure | Levels]] = {"Measure": Measure, "Levels": Levels}
        return cls(
            tuple(
                kinds[entry.pop("type")](
                    **{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
                )
                for entry in json.loads(text)
            )
        )
