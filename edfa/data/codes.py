"""One column's words ↔ numbers: ``Measure`` for continuous features, ``Levels`` for ordinal and categorical ones."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.feature import Feature
from edfa.errors import DataError, FactError, hint
from edfa.typing import Float32Array

__all__ = ["Levels", "Measure"]


@dataclass(frozen=True)
class Measure:
    """A continuous feature: standardised measurements, and states (missing, codes) one step apart below them."""

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
        """Learn from training values; codes and gaps are no measurements."""
        codes = [float(code) for code in feature.codes]
        gaps = values.isna()
        known = values[~gaps & ~values.isin(codes)].to_numpy(float) if codes or gaps.any() else values.to_numpy(float)
        known = known if len(known) else np.zeros(1)
        low, high = (end for end in feature.range or (math.inf, -math.inf))
        return cls(
            name=feature.name,
            mean=float(known.mean()),
            scale=float(known.std()) or 1.0,
            low=float(min(known.min(), low if math.isfinite(low) else math.inf)),
            high=float(max(known.max(), high if math.isfinite(high) else -math.inf)),
            typical=float(np.quantile(known, 0.5, method="lower")),
            whole=values.dtype.kind == "i",
            states=(*([None] if gaps.any() else []), *codes),
        )

    def _standard(self, numbers: npt.ArrayLike) -> Float32Array:
        return ((np.asarray(numbers, dtype=float) - self.mean) / self.scale).astype(np.float32)

    @property
    def slots(self) -> Float32Array:
        """The number that stands for each state."""
        floor = self._standard(self.low)
        return (floor - 1 - np.arange(len(self.states))).astype(np.float32)

    def encode(self, values: pd.Series) -> Float32Array:
        """Measurements to standard units, each state to its slot."""
        numbers = values.to_numpy(float)
        gaps = np.isnan(numbers)
        codes = self._standard(np.clip(np.where(gaps, self.typical, numbers), self.low, self.high))
        for state, slot in zip(self.states, self.slots, strict=True):
            codes[gaps if state is None else numbers == state] = slot
        return codes

    def encode_one(self, value: Any) -> float:
        """One person's answer, checked."""
        number = _as_number(value, self.name)
        if number is None or number in self.states:
            if number not in self.states:
                raise FactError(f"{self.name}: a value is needed, none was given")
            return float(self.slots[self.states.index(number)])
        if not self.low <= number <= self.high:
            raise FactError(f"{self.name}: {number:g} is outside {self.low:g} to {self.high:g}, the values learnt from")
        return float(self._standard(number))

    def decode_one(self, code: float) -> Any:
        """The same of one code, without a column around it; a truly missing value is ``None``."""
        single = np.float32(code)
        for state, slot in zip(self.states, self.slots, strict=True) if self.states else ():
            if slot == single:
                return state
        rough = float(single) * self.scale + self.mean
        number = rough
        for digits in range(16):
            power = 10.0**digits
            if np.float32((round(rough * power) / power - self.mean) / self.scale) == single:
                number = round(rough * power) / power
                break
        return int(number) if self.whole and number.is_integer() else number

    def decode(self, codes: Float32Array) -> pd.Series:
        """Back to numbers: of all decimals that would encode to the same float32, the shortest.

        So ``encode(decode(c)) == c`` bit for bit for every code that came from a number, and a person's own number
        comes back exactly whenever float32 can tell it from its neighbours.
        """
        rough = codes.astype(float) * self.scale + self.mean
        numbers, open_ = np.round(rough), np.ones(len(codes), dtype=bool)
        for digits in range(16):
            numbers[open_] = np.round(rough[open_], digits)
            open_[open_] = self._standard(numbers[open_]) != codes[open_]
            if not open_.any():
                break
        numbers[open_] = rough[open_]
        for state, slot in zip(self.states, self.slots, strict=True):
            numbers[codes == slot] = np.nan if state is None else state
        keep = self.whole and not np.isnan(numbers).any() and bool((numbers == np.round(numbers)).all())
        return pd.Series(numbers.astype("int64") if keep else numbers)


@dataclass(frozen=True)
class Levels:
    """An ordinal or categorical feature: levels numbered from 0, and states (missing, codes) beside them."""

    name: str
    levels: tuple[str | float, ...]
    typical: str | float
    ordered: bool
    whole: bool
    states: tuple[float | None, ...] = ()

    @classmethod
    def fit(cls, values: pd.Series, feature: Feature) -> "Levels":
        """The card's levels, or those that occur in training, sorted."""
        codes = [float(code) for code in feature.codes]
        known = values.dropna()
        known = known[~known.isin(codes)] if codes else known
        convert = str if feature.words else float
        levels = tuple(convert(v) for v in (feature.levels or sorted(known.unique()))) or ((0.0,) if codes else ())
        counts = known.value_counts()
        ordered = feature.kind == "ordinal"
        middle = (
            float(np.quantile(known, 0.5, method="lower")) if ordered and not feature.words and len(known) else None
        )
        often = max(levels, key=lambda level: (counts.get(level, 0), -levels.index(level)))
        return cls(
            name=feature.name,
            levels=levels,
            typical=often if middle is None else middle,
            ordered=ordered,
            whole=values.dtype.kind == "i",
            states=(*([None] if values.isna().any() else []), *codes),
        )

    @property
    def slots(self) -> Float32Array:
        """The number that stands for each state."""
        steps = np.arange(len(self.states), dtype=np.float32)
        return -1 - steps if self.ordered else len(self.levels) + steps

    @property
    def words(self) -> bool:
        """Whether the levels are words."""
        return isinstance(self.levels[0], str)

    def encode(self, values: pd.Series) -> Float32Array:
        """Levels to their numbers, each state to its slot."""
        codes = pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.float32)
        lost = codes < 0
        codes[lost] = self._nearest(values[lost])
        for state, slot in zip(self.states, self.slots, strict=True):
            codes[values.isna() if state is None else values == state] = slot
        return codes

    def _nearest(self, values: pd.Series) -> Float32Array | float:
        usual = float(self.levels.index(self.typical))
        if self.words or not self.ordered:
            return usual
        gaps = values.isna().to_numpy()
        distance = np.abs(np.asarray(self.levels, float)[None] - np.where(gaps, 0.0, values.to_numpy(float))[:, None])
        return np.where(gaps, usual, distance.argmin(axis=1)).astype(np.float32)

    def encode_one(self, value: Any) -> float:
        """One person's answer, checked."""
        if _is_gap(value):
            if None not in self.states:
                raise FactError(f"{self.name}: a value is needed, none was given")
            return float(self.slots[self.states.index(None)])
        given = _as_word(value) if self.words else _as_number(value, self.name)
        if given in self.levels:
            return float(self.levels.index(given))
        if given in self.states:
            return float(self.slots[self.states.index(given)])
        shown = self.levels if self.words else [f"{level:g}" for level in self.levels]
        raise FactError(f"{self.name}: no level {str(value)!r}{hint(value, shown)}")

    def decode_one(self, code: float) -> Any:
        """The same of one code; a truly missing value is ``None``."""
        place = int(code)
        if place == code and 0 <= place < len(self.levels):
            level: Any = self.levels[place]
            return int(level) if self.whole and not self.words else level
        for state, slot in zip(self.states, self.slots, strict=True):
            if slot == code:
                return int(state) if self.whole and state is not None else state
        raise DataError(f"{self.name}: {code} is not the code of any level")

    def decode(self, codes: Float32Array) -> pd.Series:
        """Back to the words, or numbers, of the table."""
        numbers = np.concatenate([np.arange(len(self.levels)), self.slots]).astype(np.float32)
        order = np.argsort(numbers)
        place = order[np.clip(np.searchsorted(numbers[order], codes), 0, len(numbers) - 1)]
        if not np.array_equal(numbers[place], codes):
            stray = codes[numbers[place] != codes][0]
            raise DataError(f"{self.name}: {stray} is not the code of any level")
        if self.words:
            return pd.Series(np.array([*self.levels, *self.states], dtype=object)[place], dtype="str")
        values = np.array([*self.levels, *(np.nan if s is None else s for s in self.states)])[place]
        return pd.Series(values.astype("int64") if self.whole and not np.isnan(values).any() else values)


def _is_gap(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value))) or value == ""


def _as_word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_number(value: Any, name: str) -> float | None:
    if _is_gap(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise FactError(f"{name}: a number is needed, not {value!r}") from None
    if not math.isfinite(number):
        raise FactError(f"{name}: a finite number is needed, not {value!r}")
    return number
