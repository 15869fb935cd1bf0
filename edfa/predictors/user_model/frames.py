"""Encoded people as the data frame that a user model wants: its columns, in its order,
in its data types.

Each distinct code of a column is decoded and cast once and remembered (``Lookup``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.data.values import read_words
from edfa.errors import ColumnError, DataError
from edfa.typing import AnyArray, BoolArray, Float32Array

__all__ = ["FrameMaker", "Lookup", "cast_frame"]

MOST_CODES = 20_000  # remembered for each column; beyond that, only those of the latest call


class Lookup:
    """What each distinct code of a column becomes, worked out once.

    Threads may share one: what is remembered is replaced as a whole, so that two that meet at
    most work the same thing out twice.

    Parameters
    ----------
    make
        Gives an array with an entry for each of some distinct codes, (codes,).

    Examples
    --------
    >>> lookup = Lookup(lambda codes: codes * 2)
    >>> lookup(np.array([3, 1, 3], dtype=np.float32)).tolist()
    [6.0, 2.0, 6.0]
    """

    def __init__(self, make: Callable[[Float32Array], Any]) -> None:
        self._make = make
        nothing = np.zeros(0, dtype=np.float32)
        self._known: tuple[Float32Array, Any] = (nothing, make(nothing))

    def __call__(self, cells: Float32Array) -> Any:
        """What each of the ``cells`` (rows,) becomes, (rows, ...)."""
        codes, results = self._known
        at = codes.searchsorted(cells)
        if len(cells) and not (len(codes) and (codes.take(at, mode="clip") == cells).all()):
            codes, results = self._learn(cells)
            at = codes.searchsorted(cells)
        return results.take(at, axis=0) if isinstance(results, np.ndarray) else results.take(at)

    def _learn(self, cells: Float32Array) -> tuple[Float32Array, Any]:
        """What is known of all codes in ``cells``, remembered unless it is too much."""
        codes, results = self._known
        new = np.setdiff1d(cells, codes)
        if len(codes) + len(new) > MOST_CODES:
            codes, results, new = codes[:0], results[:0], np.unique(cells)
        made = join([results, self._make(new)])
        both = np.concatenate([codes, new])
        order = np.argsort(both)
        learnt = both[order], made[order]
        if len(both) <= MOST_CODES:
            self._known = learnt
        return learnt


class FrameMaker:
    """Makes the data frame that a model wants of encoded people, fast where values are repeated.

    The values are those of ``encoder.decode(X)[columns].astype(dtypes)``, with each cell decoded as
    if it stood alone: whole numbers are written "1" in a column of texts, whatever the other rows
    hold. A truly missing value stays missing, and a level that is no category of the model's is a
    missing one to it, as pandas has it: the card may have levels that the model never met.
    DataError for whatever the model's data type cannot hold (a gap or 300 in ``int8``). Threads may
    share it.

    Parameters
    ----------
    encoder
        How the people were encoded.
    columns
        The names of the columns that the model wants, in its order.
    dtypes
        Data types by name, as ``frame.dtypes`` of what the model was fitted on; other names are
        ignored. A column without one has the type that ``decode`` gives it.

    Examples
    --------
    >>> from edfa import Feature, Schema
    >>> schema = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "y", "good")
    >>> people = pd.DataFrame({"age": [20, 40, 60], "home": ["rent", "own", "rent"]})
    >>> encoder = Encoder.fit(people, schema)
    >>> FrameMaker(encoder, ("home", "age"), {"age": "float32"}).frame(encoder.encode(people)[:2])
       home   age
    0  rent  20.0
    1   own  40.0
    """

    def __init__(
        self,
        encoder: Encoder,
        columns: Sequence[str],
        dtypes: "Mapping[str, Any] | pd.Series | None" = None,
    ) -> None:
        self.encoder = encoder
        self.columns = tuple(columns)
        if twice := [name for name, count in Counter(self.columns).items() if count > 1]:
            raise ColumnError(f"the model wants column {twice[0]!r} more than once")
        given = {} if dtypes is None else dict(dtypes.items())
        self.dtypes = {
            name: pd.api.types.pandas_dtype(given[name]) for name in self.columns if name in given
        }
        for name, dtype in self.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is None:
                raise ColumnError(
                    f"column {name!r}: the categories of the model are needed, not the "
                    "type 'category'"
                )
        self.features = np.array(
            [encoder.names.index(name) for name in self.columns], dtype=np.intp
        )
        self._lookups = [Lookup(partial(self._make, column)) for column in range(len(self.columns))]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.encoder, self.columns, self.dtypes)

    def frame(self, X: Float32Array) -> pd.DataFrame:  # noqa: N803
        """The values of encoded rows, (rows, features of the card); cells that the model wants must
        be known.
        """
        cells = self.cells(X)
        index = pd.RangeIndex(cells.shape[1])
        arrays = [
            self._finish(column, lookup(codes), index)
            for column, (lookup, codes) in enumerate(zip(self._lookups, cells, strict=True))
        ]
        return pd.DataFrame(dict(zip(self.columns, arrays, strict=True)), index=index, copy=False)

    def cells(self, X: Float32Array) -> Float32Array:  # noqa: N803
        """The codes that the model wants of encoded rows, (columns, rows); DataError for rows of
        another card.
        """
        X = np.asarray(X, dtype=np.float32)  # noqa: N806
        if X.ndim != 2 or X.shape[1] != len(self.encoder.columns):
            raise DataError(
                f"a matrix of {len(self.encoder.columns)} columns is needed, not of shape {X.shape}"
            )
        return X.T.take(self.features, axis=0)

    def _finish(self, column: int, values: Any, index: pd.Index) -> Any:
        """One column of the frame, (rows,), of what memory has for it."""
        name = self.columns[column]
        dtype = self.dtypes.get(name)
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(values, dtype=dtype, validate=False)
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            return pd.Series(
                values, index, dtype=object, copy=False
            )  # a bare array of texts would become ``str``
        if (
            dtype is None
            and values.dtype == np.float64
            and self.encoder.columns[self.features[column]].whole
        ):
            return (
                values.astype(np.int64) if (values == np.round(values)).all() else values
            )  # NaN is unlike itself
        return values

    def _make(self, i: int, codes: Float32Array) -> Any:
        """What the model is handed for each code of column ``i``, (codes,); for categories, their
        numbers.
        """
        column = self.encoder.columns[self.features[i]]
        if np.isnan(codes).any():
            raise DataError(
                f"{column.name!r} was not acquired in some row (NaN), and the model wants a value"
            )
        gap = column.slots[column.states.index(None)] if None in column.states else np.nan
        known = column.decode(
            codes[codes != gap]
        )  # a gap beside them would turn whole numbers into floats
        return _cast_known(column.name, known, codes != gap, self.dtypes.get(column.name))


def cast_frame(frame: pd.DataFrame, dtypes: Mapping[str, Any]) -> pd.DataFrame:
    """People as they were given, (people, columns), in a model's data types by name, by the rules
    of ``FrameMaker``.

    The words "True" and "False" are truth values to a model that has such a column; a level that is
    no category of the model's is missing to it. DataError for a value that a data type cannot hold.

    Examples
    --------
    >>> cast_frame(pd.DataFrame({"car": ["True", "False"], "age": [20, 30]}),
    ...     {"car": bool})["car"].tolist()
    [True, False]
    """
    made = frame.copy(deep=False)
    for name, wanted in dtypes.items():
        dtype, values = pd.api.types.pandas_dtype(wanted), frame[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        known = values.notna().to_numpy(dtype=bool)
        cells = _cast_known(name, values[known], known, dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            cells = pd.Categorical.from_codes(cells, dtype=dtype)
        made[name] = pd.Series(cells, index=frame.index, dtype=dtype)
    return made


def _cast_known(name: str, values: pd.Series, known: BoolArray, dtype: Any) -> Any:
    """The known values of a column in the model's data type, with its missing value elsewhere,
    (cells,).
    """
    made = _cast(name, values, dtype)
    if len(values) == len(known):
        return made
    gap_is_last = np.where(known, np.cumsum(known) - 1, len(values))
    return join([made, _missing(name, values.dtype, dtype)]).take(gap_is_last)


def join(parts: Sequence[Any]) -> Any:
    """Arrays of one data type, or of whole and other numbers, as one."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return pd.concat([pd.Series(part) for part in parts], ignore_index=True).array


def _bare(values: pd.Series) -> Any:
    """The array of a column: numpy's where it has one."""
    return values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array


def _missing(name: str, decoded: Any, dtype: Any) -> Any:
    """The missing value of a data type, as an array of one item; DataError if it has none."""
    if isinstance(dtype, pd.CategoricalDtype):
        return np.array([-1])
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        raise DataError(
            f"column {name!r} is missing in some row, and the model's data type {dtype} "
            "has no such value"
        )
    gap = pd.Series([np.nan], dtype="str" if pd.api.types.is_string_dtype(decoded) else float)
    return _bare(gap if dtype is None else gap.astype(dtype))


def _cast(name: str, values: pd.Series, dtype: Any) -> Any:
    """Known values, (values,), in the model's data type; DataError naming one that it cannot
    hold.
    """
    if dtype is None:
        return _bare(values)
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_numbers(values, dtype)
    if pd.api.types.is_bool_dtype(dtype):
        values = _truth(name, values, dtype)
    try:
        made = values.astype(dtype)
        wrong = made.isna().to_numpy(dtype=bool)
        if isinstance(dtype, np.dtype) and dtype.kind in "iu":
            wrong = (
                np.abs(values.to_numpy(float) - made.to_numpy(float)) >= 1
            )  # beyond the type's range
    except (TypeError, ValueError, OverflowError):
        raise _unfit(name, values, dtype) from None
    if wrong.any():
        raise _unfit(name, values[wrong], dtype)
    return _bare(made)


def _unfit(name: str, values: pd.Series, dtype: Any) -> DataError:
    return DataError(
        f"column {name!r}: {values.iloc[0]!r} does not fit the model's data type {dtype}"
    )


def _truth(name: str, values: pd.Series, dtype: Any) -> pd.Series:
    """Truth values of the words "True" and "False", of the numbers 1 and 0, or of themselves."""
    truth = values.astype(object).map({"True": True, "False": False, 1: True, 0: False})
    strange = truth.isna()
    if strange.any():
        raise _unfit(name, values[strange], dtype)
    return truth.astype(bool)


def _category_numbers(values: pd.Series, dtype: pd.CategoricalDtype) -> AnyArray:
    """The number of each value's category; -1 for a value that is none.

    Where the card has words and the model numbers or truth values, or the other way round, those
    written alike match.
    """
    numbers = np.asarray(dtype.categories.get_indexer(pd.Index(values)))
    if (numbers < 0).any():
        written = {
            word: i
            for i, word in reversed(list(enumerate(read_words(pd.Series(dtype.categories)))))
        }
        words = read_words(values).map(written)
        numbers = np.where(numbers < 0, words.fillna(-1).to_numpy(dtype=int), numbers)
    return numbers
