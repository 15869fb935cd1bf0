"""Encoded people as the data frame that a user model wants: its columns, in its order,
in its data types.

Each distinct code of a column is decoded and cast once and remembered (``Lookup``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.data.values import read_words
from edfa.errors import ColumnError, DataError
from edfa.predictors.user_model.given import Given
from edfa.typing import AnyArray, BoolArray, Float32Array

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

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without what is remembered."""
        codes, results = self._known
        return {"_make": self._make, "_known": (codes[:0], results[:0])}

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
        both = np.concatenate([codes, new])
        order = np.argsort(both)
        learnt = both[order], _join(results, self._make(new))[order]
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
        dtypes: Mapping[str, Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self.columns = tuple(columns)
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise ColumnError(f"the model wants column {twice[0]!r} more than once")
        given = {} if dtypes is None else dtypes
        self.dtypes = {
            name: pd.api.types.pandas_dtype(given[name]) for name in self.columns if name in given
        }
        for name, dtype in self.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is None:
                raise ColumnError(
                    f"column {name!r}: the categories of the model are needed, not the "
                    "type 'category'"
                )
        self.features = [encoder.names.index(name) for name in self.columns]
        self._lookups = [Lookup(partial(self._make, name)) for name in self.columns]

    def frame(self, X: Float32Array, given: Iterable[Given] = ()) -> pd.DataFrame:  # noqa: N803
        """The people of encoded rows, as the model wants them.

        Parameters
        ----------
        X
            Encoded people, (rows, features of the card); what the model wants must be known.
        given
            Numbers that all of them gave and that encoding cannot express. A number stands in the
            frame where a row has its code; a column that holds no numbers stays as it is.

        Returns
        -------
        A frame of the columns of the model, in its order and data types.

        Raises
        ------
        DataError
            For rows of another card, a value that is not known, or one that a data type of the
            model cannot hold.
        """
        X, names = np.asarray(X, dtype=np.float32), self.encoder.names  # noqa: N806
        if X.ndim != 2 or X.shape[1] != len(names):
            raise DataError(f"a matrix of {len(names)} columns is needed, not of shape {X.shape}")
        index = pd.RangeIndex(len(X))
        arrays = {
            name: self._finish(name, lookup(X[:, feature]), index)
            for name, feature, lookup in zip(
                self.columns, self.features, self._lookups, strict=True
            )
        }
        frame = pd.DataFrame(arrays, index=index, copy=False)
        for position, code, value in given:
            name, own = names[position], X[:, position] == np.float32(code)
            dtype = frame[name].dtype if name in frame.columns else None
            if own.any() and dtype is not None and pd.api.types.is_numeric_dtype(dtype):
                whole = pd.api.types.is_integer_dtype(dtype) and value.is_integer()
                frame[name] = frame[name].mask(own, int(value) if whole else value)
        return frame

    def _finish(self, name: str, values: Any, index: pd.Index) -> Any:
        """One column of the frame, (rows,), of what its ``Lookup`` has for it."""
        dtype = self.dtypes.get(name)
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(values, dtype=dtype, validate=False)
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            # a bare array of texts would become ``str``
            return pd.Series(values, index, dtype=object, copy=False)
        if dtype is None and values.dtype == np.float64 and self.encoder[name].whole:
            # NaN is unlike itself
            return values.astype(np.int64) if (values == np.round(values)).all() else values
        return values

    def _make(self, name: str, codes: Float32Array) -> Any:
        """What the model is handed for each code of a column, (codes,); for categories, their
        numbers.
        """
        column = self.encoder[name]
        if np.isnan(codes).any():
            raise DataError(
                f"{name!r} was not acquired in some row (NaN), and the model wants a value"
            )
        known = np.ones(len(codes), dtype=bool)
        if None in column.states:
            known = codes != column.slots[column.states.index(None)]
        # without the gaps, which would turn whole numbers into floats
        return _cast_known(name, column.decode(codes[known]), known, self.dtypes.get(name))


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
    (cells,); DataError where the data type has none.
    """
    made = _cast(name, values, dtype)
    if known.all():
        return made
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        raise DataError(
            f"column {name!r} is missing in some row, and the model's data type {dtype} "
            "has no such value"
        )
    position = np.where(known, np.cumsum(known) - 1, -1)
    gap = -1 if isinstance(dtype, pd.CategoricalDtype) else np.nan
    return pd.api.extensions.take(made, position, allow_fill=True, fill_value=gap)


def _join(first: Any, second: Any) -> Any:
    """Two arrays of one data type, or of whole and other numbers, as one."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return pd.concat([pd.Series(first), pd.Series(second)], ignore_index=True).array


def _bare(values: pd.Series) -> Any:
    """The array of a column: numpy's where it has one."""
    return values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array


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
        written = read_words(pd.Series(dtype.categories)).tolist()
        places = {word: i for i, word in reversed(list(enumerate(written)))}  # the first of each
        words = read_words(values).map(places)
        numbers = np.where(numbers < 0, words.fillna(-1).to_numpy(dtype=int), numbers)
    return numbers
