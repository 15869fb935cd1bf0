"""What a certificate is made from: one row for each step of each run of each person."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.errors import ColumnError, DataError, EmptyTableError, MismatchError, hint
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array

__all__ = ["Records", "Reference"]

Reference = Literal["trajectory_end", "all_features"]
NEEDED = ("person", "seed", "step", "spent", "signal", "loss", "legal")
OPTIONAL = ("group", "refused")


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Runs of the acquisition for calibration people, in columns of equal length.

    ``signal`` is what the stop rule watches (small means sure), ``loss`` in [0, 1] says whether a plan made at this
    step fails once the rest is known, ``legal`` whether there is a plan at all, ``spent`` is the cost so far. Signal
    and loss of an illegal step are not read. To blame a run for stopping without a plan, call the step legal, with
    loss 1. ``group`` is one label a person; ``refused`` says whether the decision at this step is unfavourable. Runs
    whose end is not known yet have no ``loss``: a rule can stop them, but nothing is certified from them.

    ``advisor`` is the fingerprint of all that made the runs; ``signal_name`` and ``reference`` (what "the rest" is) go
    into the certificate.

    Examples
    --------
    >>> Records(["ann", "ann", "bob"], [0, 0, 0], [0, 1, 0], [0, 2, 0], [0.4, 0.1, 0.3], [1, 0, 0], [True] * 3)
    Records(2 people, 2 runs, 3 steps)
    >>> Records(["ann", "ann"], [0, 0], [1, 1], [0, 2], [0.4, 0.1], [1, 0], [True, True])
    Traceback (most recent call last):
        ...
    edfa.errors.DataError: person 'ann' has step 1 of seed 0 twice
    """

    person: AnyArray
    seed: Int64Array
    step: Int64Array
    spent: Float64Array
    signal: Float64Array
    loss: Float64Array | None
    legal: BoolArray
    group: AnyArray | None = None
    refused: BoolArray | None = None
    advisor: str = ""
    signal_name: str = "uncertainty"
    reference: Reference = "trajectory_end"
    # Found once: a number for each person in order of appearance, the people, the rows by person, seed and step.
    code: Int64Array = field(init=False)
    people: AnyArray = field(init=False)
    order: Any = field(init=False)

    def __post_init__(self) -> None:
        for name in (*NEEDED, *OPTIONAL):
            if getattr(self, name) is not None:
                self._set(name, _column(name, getattr(self, name)))
        self._check_lengths()
        code, people = pd.factorize(self.person)
        if (code < 0).any():
            raise DataError(f"row {np.argmin(code)} names no person")
        self._set("code", code.astype(np.int64))
        self._set("people", np.asarray(people))
        self._set("order", self._sorted())
        self._check_steps()
        if self.group is not None:
            self._check_groups()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        runs = len({*zip(self.code.tolist(), self.seed.tolist(), strict=True)})
        return f"Records({len(self.people)} people, {runs} runs, {len(self)} steps)"

    @classmethod
    def from_frame(cls, frame: Any, **settings: Any) -> "Records":
        """From a pandas, polars or pyarrow frame with a column for each field; ``settings`` are advisor and the like.

        >>> columns = {"person": [1], "seed": [0], "step": [0], "spent": [0.0], "signal": [0.2], "loss": [0.0]}
        >>> Records.from_frame(pd.DataFrame(columns))
        Traceback (most recent call last):
            ...
        edfa.errors.ColumnError: records need a column 'legal'; known: person, seed, step, spent, signal, loss
        """
        table = nw.from_native(frame, eager_only=True)
        for name in NEEDED:
            if name not in table.columns:
                raise ColumnError(f"records need a column {name!r}{hint(name, table.columns)}")
        present = [name for name in (*NEEDED, *OPTIONAL) if name in table.columns]
        return cls(**{name: table[name].to_numpy() for name in present}, **settings)

    def frame(self) -> pd.DataFrame:
        """One row a step, as given."""
        columns = {name: getattr(self, name) for name in (*NEEDED, *OPTIONAL)}
        return pd.DataFrame({name: values for name, values in columns.items() if values is not None})

    def take(self, rows: Any) -> "Records":
        """Some of the rows, by mask or position."""
        columns = {name: getattr(self, name) for name in (*NEEDED, *OPTIONAL)}
        return replace(self, **{name: values[rows] for name, values in columns.items() if values is not None})

    @cached_property
    def lots(self) -> npt.NDArray[np.uint64]:
        """A number for each of the people, from their written name alone: an order that has seen no loss."""
        return np.asarray(pd.util.hash_array(np.array([str(person) for person in self.people], dtype=object)))

    @classmethod
    def join(cls, *parts: "Records") -> "Records":
        """The records of several runs of one advisor, such as those of other seeds."""
        if not parts:
            raise EmptyTableError("there are no records to join")
        kinds = ("advisor", "signal_name", "reference")
        for part in parts[1:]:
            for name in kinds:
                if getattr(part, name) != getattr(parts[0], name):
                    raise MismatchError(f"{name} is {getattr(parts[0], name)!r} here and {getattr(part, name)!r} there")
        frames = pd.concat([part.frame() for part in parts])
        return cls.from_frame(frames, **{name: getattr(parts[0], name) for name in kinds})

    def one_seed(self, seed: int = 0) -> "Records":
        """One run of each person, drawn at random: then every loss is 0 or 1 and the exact bound applies."""
        runs = self.frame()[["person", "seed"]].drop_duplicates()
        drawn = runs.sample(frac=1, random_state=seed).drop_duplicates("person")
        kept = pd.MultiIndex.from_frame(drawn)
        return self.take(pd.MultiIndex.from_arrays([self.person, self.seed]).isin(kept))

    def _check_lengths(self) -> None:
        for name in (*NEEDED, *OPTIONAL):
            values = getattr(self, name)
            if values is not None and values.shape != self.step.shape:
                raise DataError(f"{name} has {values.size} rows, step has {self.step.size}")
        if not len(self):
            raise EmptyTableError("there are no records to certify from")

    def _sorted(self) -> Any:
        """The order by person, seed and step; rows that come sorted, as they mostly do, cost neither sort nor copy."""
        keys = (self.code, self.seed, self.step)
        order: Any = slice(None)
        if not _rising(*keys).all():
            order = np.lexsort(keys[::-1])
            twice = ~_rising(*(key[order] for key in keys))
            if twice.any():
                at = order[np.argmax(twice)]
                raise DataError(
                    f"person {_plain(self.person[at])!r} has step {self.step[at]} of seed {self.seed[at]} twice"
                )
        return order

    def _check_steps(self) -> None:
        if self.loss is not None:
            bad = self.legal & ~((self.loss >= 0) & (self.loss <= 1))
            self._refuse(bad, "loss", "lies outside [0, 1] at a legal step")
        self._refuse(self.legal & ~np.isfinite(self.signal), "signal", "is no number at a legal step")
        self._refuse(~(self.spent >= 0) | np.isinf(self.spent), "spent", "is no cost")
        code, seed, spent = (column[self.order] for column in (self.code, self.seed, self.spent))
        falls = (code[1:] == code[:-1]) & (seed[1:] == seed[:-1]) & (spent[1:] < spent[:-1])
        bad = np.zeros(len(self), dtype=bool)
        bad[np.arange(len(self))[self.order][1:][falls]] = True
        self._refuse(bad, "spent", "is less than at the step before")

    def _refuse(self, bad: BoolArray, name: str, why: str) -> None:
        if bad.any():
            at = np.argmax(bad)
            where = f"person {_plain(self.person[at])!r}, seed {self.seed[at]}, step {self.step[at]}"
            raise DataError(f"{where}: {name} {getattr(self, name)[at]:g} {why}")

    def _check_groups(self) -> None:
        pairs = pd.DataFrame({"code": self.code, "group": self.group}).drop_duplicates()
        if pairs["group"].isna().any():
            raise DataError(
                f"person {_plain(self.people[pairs['code'][pairs['group'].isna()].iloc[0]])!r} has no group"
            )
        twice = pairs["code"].duplicated()
        if twice.any():
            raise DataError(f"person {_plain(self.people[pairs['code'][twice].iloc[0]])!r} is in two groups")


def _rising(*keys: Int64Array) -> BoolArray:
    """Whether each row is past the one before it."""
    past = np.zeros(len(keys[0]) - 1, dtype=bool)
    for key in reversed(keys):
        past = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & past)
    return past


def _column(name: str, values: Any) -> AnyArray:
    column = np.asarray(values)
    if name in ("person", "group"):
        return column if column.dtype.kind in "iuU" else column.astype(object)
    wanted, kinds = {
        "seed": (np.int64, "iuf"),
        "step": (np.int64, "iuf"),
        "legal": (np.bool_, "b"),
        "refused": (np.bool_, "b"),
    }.get(name, (np.float64, "iufb"))
    if column.size and column.dtype.kind not in kinds:
        raise ColumnError(f"{name} holds {column.dtype} where {np.dtype(wanted).name} is due")
    if wanted is np.int64 and np.any(np.mod(column, 1) != 0):
        raise ColumnError(f"{name} holds numbers that are not whole")
    return column.astype(wanted, copy=False)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
