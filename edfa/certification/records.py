"""Records, from which certificates are made, and the stop rule.

``Records`` have one row for each step of each run of each person; they check what they are
given, so that nothing after them has to. The rule: act at the first step that has a plan and a
signal of at most tau, else take the last plan. ``Runs`` are records sorted for it, ``stop_at``
applies it and gives ``Stops``.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import pandas as pd

from edfa.errors import ColumnError, DataError, EmptyTableError, MismatchError, hint
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array

Reference = Literal["trajectory_end", "all_features", "retrained"]
REFERENCES: tuple[Reference, ...] = ("retrained", "all_features", "trajectory_end")
"""What plans may be held against, the strongest first."""
Loss = Literal["recourse", "let_down", "in_vain", "overturned", "missed"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
PLAN_LOSSES = LOSSES[:3]  # of plans; the others are about people who are told something else
NEEDED = ("person", "seed", "step", "spent", "signal", "loss", "legal")
OPTIONAL = ("group", "refused", "wasted", "counts")
NAMES = ("advisor", "signal_name", "reference", "loss_name")  # what all rows have in common


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Acquisition runs of calibration people, as columns of shape (rows,).

    A run is one person under one random seed, a row is one step of a run. Rows may come in any
    order. A certifier also reads ``code`` (each row's index into ``people``, the distinct persons
    in order of appearance) and ``order`` (an index that sorts the rows by person, seed and step),
    which are derived.

    Parameters
    ----------
    person, seed, step
        Whose step this is; person is a number or a text.
    spent
        Cost up to and including this step; never falls within a run.
    signal
        The number the stop rule watches; small means sure. Not read where ``legal`` is false.
    loss
        In [0, 1]: whether the plan made at this step fails once the rest is known. Not read where
        ``legal`` is false. None if the ends of the runs are not known yet: a rule can stop such
        runs, but nothing is certified from them.
    legal
        Whether the step has a plan. To blame a run for stopping without one, call the step legal,
        with loss 1.
    group
        One label per person, repeated at each of their steps; or None.
    refused
        Whether the decision at this step is unfavourable; or None.
    advisor
        Fingerprint of everything that made the runs.
    signal_name, reference
        Which signal it is, and what plans are held against: the trajectory's end, all features, or
        models learnt again.
    wasted
        Whether the reference decides for the desired class without the plan of this step; or None.
    loss_name
        Which loss it is: the paper's "recourse", "let_down", or that of an ending: "in_vain",
        "overturned", "missed" (see ``edfa.certification.endings``). Like the other names it goes
        into the certificate.
    counts
        Whether a run that stops at this step is counted by targets other than "all"; or None: all
        are.

    Examples
    --------
    >>> Records(["ann", "ann", "bob"], [0, 0, 0], [0, 1, 0], [0, 2, 0], [0.4, 0.1, 0.3], [1, 0, 0],
    ...     [True] * 3)
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
    wasted: BoolArray | None = None
    loss_name: Loss = "recourse"
    counts: BoolArray | None = None
    code: Int64Array = field(init=False)
    people: AnyArray = field(init=False)
    order: Any = field(init=False)

    def __post_init__(self) -> None:
        for name, values in self._columns().items():
            self._set(name, _as_column(name, values))
        for name, values in self._columns().items():
            if values.shape != self.step.shape:
                raise DataError(f"{name} has {values.size} rows, step has {self.step.size}")
        if not len(self):
            raise EmptyTableError("there are no records to certify from")
        code, people = pd.factorize(self.person)
        if (code < 0).any():
            raise DataError(f"row {np.argmin(code)} names no person")
        self._set("code", code.astype(np.int64))
        self._set("people", np.asarray(people))
        self._set("order", self._sort_order())
        self._check_steps()
        if self.group is not None:
            self._check_groups(self.group)

    def _columns(self) -> dict[str, Any]:
        """The columns that are there, by name."""
        columns = {name: getattr(self, name) for name in (*NEEDED, *OPTIONAL)}
        return {name: values for name, values in columns.items() if values is not None}

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        runs = Runs.from_records(self).start
        return f"Records({len(self.people)} people, {len(runs)} runs, {len(self)} steps)"

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        advisor: str = "",
        signal_name: str = "uncertainty",
        reference: Reference = "trajectory_end",
        loss_name: Loss = "recourse",
    ) -> "Records":
        """Read a frame that has a column for each field.

        Parameters
        ----------
        frame
            A pandas, polars or pyarrow frame with one row per step; the columns group, refused
            and wasted are optional, further ones are not read.
        advisor, signal_name, reference, loss_name
            What all rows have in common; see ``Records``.

        Raises
        ------
        ColumnError
            If a column is missing or holds another type.
        DataError
            If a value is none that the column may have.

        Examples
        --------
        >>> columns = {"person": [1], "seed": [0], "step": [0], "spent": [0.0], "signal": [0.2],
        ...     "loss": [0.0]}
        >>> Records.from_frame(pd.DataFrame(columns))
        Traceback (most recent call last):
            ...
        edfa.errors.ColumnError: records need a column 'legal'; known: person, seed, step, spent, signal, loss
        """  # noqa: E501
        table = nw.from_native(frame, eager_only=True)
        for name in NEEDED:
            if name not in table.columns:
                raise ColumnError(f"records need a column {name!r}{hint(name, table.columns)}")
        present = [name for name in (*NEEDED, *OPTIONAL) if name in table.columns]
        columns = {name: table[name].to_numpy() for name in present}
        return cls(
            **columns,
            advisor=advisor,
            signal_name=signal_name,
            reference=reference,
            loss_name=loss_name,
        )

    def frame(self) -> pd.DataFrame:
        """The columns as a table, one row per step, in the order they came in."""
        return pd.DataFrame(self._columns())

    def take(self, rows: Any) -> "Records":
        """Records of some of the rows.

        Parameters
        ----------
        rows
            A mask, a slice or positions, as for a NumPy array.
        """
        return replace(self, **{name: values[rows] for name, values in self._columns().items()})

    @classmethod
    def join(cls, *parts: "Records") -> "Records":
        """Concatenate records of one advisor, such as those of several seeds.

        Raises
        ------
        MismatchError
            If the parts differ in advisor, signal, reference or loss.
        EmptyTableError
            If there are no parts.
        """
        if not parts:
            raise EmptyTableError("there are no records to join")
        first = parts[0]
        for part in parts[1:]:
            for name in NAMES:
                if getattr(part, name) != getattr(first, name):
                    raise MismatchError(
                        f"{name} is {getattr(first, name)!r} here and {getattr(part, name)!r} there"
                    )
        rows = pd.concat([part.frame() for part in parts])
        return cls.from_frame(rows, **{name: getattr(first, name) for name in NAMES})

    def _sort_order(self) -> Any:
        """An index that sorts rows by person, seed and step; rows that come sorted cost neither
        sort nor copy.
        """
        keys = (self.code, self.seed, self.step)
        order: Any = slice(None)
        if not _is_rising(*keys).all():
            order = np.lexsort(keys[::-1])
            repeated = ~_is_rising(*(key[order] for key in keys))
            if repeated.any():
                at = order[np.argmax(repeated)]
                raise DataError(
                    f"person {_to_python(self.person[at])!r} has step {self.step[at]} of "
                    f"seed {self.seed[at]} twice"
                )
        return order

    def _check_steps(self) -> None:
        """Refuse losses, signals and costs that cannot be; the error names the first row of such a
        kind.
        """
        if self.loss is not None:
            bad = self.legal & ~((self.loss >= 0) & (self.loss <= 1))
            self._refuse(bad, "loss", "lies outside [0, 1] at a legal step")
        self._refuse(
            self.legal & ~np.isfinite(self.signal), "signal", "is no number at a legal step"
        )
        self._refuse(~(self.spent >= 0) | np.isinf(self.spent), "spent", "is no cost")
        code, seed, spent = (column[self.order] for column in (self.code, self.seed, self.spent))
        falls = (code[1:] == code[:-1]) & (seed[1:] == seed[:-1]) & (spent[1:] < spent[:-1])
        bad = np.zeros(len(self), dtype=bool)
        bad[np.arange(len(self))[self.order][1:][falls]] = True
        self._refuse(bad, "spent", "is less than at the step before")

    def _refuse(self, bad: BoolArray, name: str, why: str) -> None:
        """Raise an error about the first bad row of a column, if there is one."""
        if bad.any():
            at = np.argmax(bad)
            where = (
                f"person {_to_python(self.person[at])!r}, seed "
                f"{self.seed[at]}, step {self.step[at]}"
            )
            raise DataError(f"{where}: {name} {getattr(self, name)[at]:g} {why}")

    def _check_groups(self, group: AnyArray) -> None:
        """Refuse people without a group, and people in two."""
        label = pd.factorize(group)[0]  # -1: missing
        if (label < 0).any():
            raise DataError(f"person {_to_python(self.person[np.argmin(label)])!r} has no group")
        first = np.unique(self.code, return_index=True)[1]
        differs = label != label[first][self.code]
        if differs.any():
            raise DataError(
                f"person {_to_python(self.person[np.argmax(differs)])!r} is in two groups"
            )


def _is_rising(*keys: Int64Array) -> BoolArray:
    """Whether each row but the first comes after the one before it; (rows,) to (rows - 1,).

    Rows are compared by the keys from left to right, as words are by their letters.
    """
    after = np.zeros(len(keys[0]) - 1, dtype=bool)
    for key in reversed(keys):
        after = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & after)
    return after


def _as_column(name: str, values: Any) -> AnyArray:
    """Convert one column to the type of its field, or refuse it.

    Persons and groups are numbers or texts; seeds and steps whole numbers; ``legal``,
    ``refused``, ``wasted`` and ``counts`` truth values; all others float64.
    """
    column = np.asarray(values)
    if name in ("person", "group"):
        return column if column.dtype.kind in "iuU" else column.astype(object)
    kind, kinds = "float64", "iufb"
    if name in ("seed", "step"):
        kind, kinds = "int64", "iuf"
    elif name in ("legal", "refused", "wasted", "counts"):
        kind, kinds = "bool", "b"
    if column.size and column.dtype.kind not in kinds:
        raise ColumnError(f"{name} holds {column.dtype} where {kind} is due")
    if kind == "int64" and np.any(np.mod(column, 1) != 0):
        raise ColumnError(f"{name} holds numbers that are not whole")
    return column.astype(kind, copy=False)


def _to_python(value: Any) -> Any:
    """A NumPy scalar as the Python object that messages show."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class Runs:
    """Records sorted by person, seed and step, and where each run (one person under one seed) lies
    among the rows.

    Parameters
    ----------
    person, seed
        Whose run it is, as an index into the records' people, and under which seed; (runs,).
    start, length
        The run's first row and its number of rows; (runs,).
    step, spent
        The number of each step, and the cost up to and including it; (rows,).
    signal
        What the stop rule watches, (rows,); infinite at an illegal step, so that no rule stops
        there.
    loss
        Whether the step's plan fails, (rows,); NaN where it is not known yet.
    refused, wasted, counts
        As in ``Records``, (rows,); or None.

    Examples
    --------
    >>> records = Records(["ann", "ann"], [0, 0], [0, 1], [0, 2], [0.4, 0.1], [1, 0], [True, True])
    >>> runs = Runs.from_records(records)
    >>> runs.stops(0.2)
    (array([1]), array([ True]))
    """

    person: Int64Array
    seed: Int64Array
    start: Int64Array
    length: Int64Array
    step: Int64Array
    signal: Float64Array
    loss: Float64Array
    spent: Float64Array
    refused: BoolArray | None
    wasted: BoolArray | None
    counts: BoolArray | None

    @classmethod
    def from_records(cls, records: Records) -> "Runs":
        """Sort ``records`` into runs."""
        rows = records.order
        some = {n: getattr(records, n) for n in ("refused", "wasted", "counts")}
        code, seed = records.code[rows], records.seed[rows]
        first = np.concatenate([[True], (code[1:] != code[:-1]) | (seed[1:] != seed[:-1])])
        start = np.flatnonzero(first)
        return cls(
            person=code[start],
            seed=seed[start],
            start=start,
            length=np.diff(start, append=len(code)),
            step=records.step[rows],
            signal=np.where(records.legal, records.signal, np.inf)[rows],
            loss=np.full(len(code), np.nan) if records.loss is None else records.loss[rows],
            spent=records.spent[rows],
            **{name: None if column is None else column[rows] for name, column in some.items()},
        )

    @cached_property
    def signal_matrix(self) -> Float64Array:
        """The signals with shape (runs, steps of the longest run); infinite past the end of a
        shorter run.
        """
        within = np.arange(self.length.max()) < self.length[:, None]
        matrix = np.full(within.shape, np.inf)
        matrix[within] = self.signal
        return matrix

    @cached_property
    def end(self) -> Int64Array:
        """The last row of each run, the paper's K: everything the policy may acquire is known.
        Shape (runs,).
        """
        return self.start + self.length - 1

    @cached_property
    def last_legal(self) -> Int64Array:
        """The row of the last legal step of each run, from which a run that never triggers takes
        its plan; -1: none.
        """
        rows = np.where(np.isfinite(self.signal), np.arange(len(self.signal)), -1)
        return np.maximum.reduceat(rows, self.start)

    def stops(self, tau: Any) -> tuple[Int64Array, BoolArray]:
        """Where each run stops.

        Parameters
        ----------
        tau
            The threshold, or one for each run, (runs,).

        Returns
        -------
        tuple of numpy.ndarray
            The row at which each run stops (-1: it has no plan), and whether its signal
            triggered the stop; each of shape (runs,).
        """
        # DEVIATION: Algorithm 2 stops at "the first step with s <= tau"; a step without a plan has
        # nothing to issue, so its signal is infinite here and the first *legal* such step is meant,
        # as the fallback to the last legal one is.
        signals, taus = self.signal_matrix, np.asarray(tau, dtype=np.float64)
        low = (signals <= taus[..., None]) & (signals < np.inf)
        triggered = np.asarray(low.any(axis=1))
        return np.where(triggered, self.start + low.argmax(axis=1), self.last_legal), triggered

    def running_minima(self) -> tuple[Int64Array, Int64Array]:
        """Runs and rows of signals below all earlier ones of their run: the only rows where a
        threshold can stop it.

        Both arrays have the shape (minima,), in the order of runs and steps.
        """
        signals = self.signal_matrix
        lowest: BoolArray = np.empty(signals.shape, dtype=bool)
        lowest[:, 0] = signals[:, 0] < np.inf
        np.less(signals[:, 1:], np.minimum.accumulate(signals[:, :-1], axis=1), out=lowest[:, 1:])
        run, column = np.divmod(np.flatnonzero(lowest), signals.shape[-1])
        return run, self.start[run] + column

    def distinct(self) -> BoolArray:
        """Mask of the runs to use: one run per person if the seed makes no difference for anybody,
        else all runs.
        """
        new = np.append(True, self.person[1:] != self.person[:-1])
        if new.all():
            return new
        first_run = np.flatnonzero(new)[np.cumsum(new) - 1]
        return new if self._equal(first_run) else np.ones(len(new), dtype=bool)

    def _equal(self, other: Int64Array) -> bool:
        """Whether each run has the same steps as the run ``other`` (an index for each run)."""
        if np.any(self.length != self.length[other]):
            return False
        twin = np.arange(len(self.signal)) + np.repeat(self.start[other] - self.start, self.length)
        legal_loss = np.where(np.isfinite(self.signal), self.loss, 0.0)
        columns = (self.signal, legal_loss, self.spent, self.refused, self.counts)
        return all(c is None or np.array_equal(c, c[twin]) for c in columns)


@dataclass(frozen=True, eq=False)
class Stops:
    """Where a rule stops each run; columns of shape (runs,).

    Parameters
    ----------
    person, seed
        Whose run it is.
    step
        The step whose plan is issued; -1: the run has none.
    spent
        The cost until the run stops; NaN if it is not known.
    triggered
        Whether the run stops because its signal is low enough; the others go to the end and take
        their last plan.
    sentence
        The guarantee; empty if there is none.
    """

    person: AnyArray
    seed: Int64Array
    step: Int64Array
    spent: Float64Array
    triggered: BoolArray
    sentence: str = ""

    def frame(self) -> pd.DataFrame:
        """The columns as a table, one row per run."""
        names = ("person", "seed", "step", "spent", "triggered")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False, max_rows=20))


def stop_at(runs: Any, tau: float, sentence: str) -> Stops:
    """Apply the stop rule.

    Parameters
    ----------
    runs
        Records; or signals of shape (runs, steps), NaN at a step without a plan.
    tau
        The threshold: inf stops at the first plan, -inf never before the end.
    sentence
        The guarantee of the rule; empty: it has none.

    Returns
    -------
    Stops
        One row for each run: people in the order in which they first appear, then seeds.

    Examples
    --------
    >>> stop_at([[0.4, 0.1], [float("nan"), 0.3]], tau=0.2, sentence="").step.tolist()
    [1, 1]
    """
    records = runs if isinstance(runs, Records) else _records_of_signals(runs)
    ordered = Runs.from_records(records)
    row, triggered = ordered.stops(tau)
    spent = ordered.spent[np.where(triggered, row, ordered.end)]
    return Stops(
        records.people[ordered.person],
        ordered.seed,
        np.where(row >= 0, ordered.step[row], -1),
        spent if records is runs else np.full_like(spent, np.nan),
        triggered,
        sentence,
    )


def _records_of_signals(signals: Any) -> Records:
    """Records, with no costs, of signals of shape (runs, steps): one run of each person."""
    matrix = np.atleast_2d(np.asarray(signals, dtype=np.float64))
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(
            f"signals have one row a run and one column a step, not the shape {matrix.shape}"
        )
    person, step = (index.ravel() for index in np.indices(matrix.shape))
    signal, seed, spent = matrix.ravel(), np.zeros_like(step), np.zeros(matrix.size)
    return Records(person, seed, step, spent, signal, None, legal=signal < np.inf)
