"""The border for columns: data frames of any make as numbers and words, by the rules of
``edfa.data.cells``.

What a column means does not depend on its data type, nor on the rows that happen to stand beside
each other: a column is read as if each of its cells were read alone.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.cells import WHOLE, as_word, is_gap, shorten, without_limit
from edfa.data.numbers import parse_number
from edfa.errors import ColumnError, DataError, FactError
from edfa.typing import AnyArray, BoolArray

__all__ = [
    "ROW_ERROR",
    "as_words",
    "check_names",
    "find_gaps",
    "find_missing",
    "read_numbers",
    "read_words",
    "to_pandas",
    "to_words",
]

ROW_ERROR = "\x00error of this row"
"""The column in which a reader of files says why a row cannot be read, (rows,) of texts; null: it
can.
"""

PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?$"
# Letters of other scripts that look like Latin ones, in lower case.
_ALIKE = str.maketrans("авекмнорстухіјѕһԁԛԝүαβεηικνορτυχϲ", "abekmhopctyxijshdqwyabehikvoptuxc")


def to_pandas(frame: Any) -> pd.DataFrame:
    """A pandas, polars or pyarrow frame as a pandas frame whose columns have texts as names and
    plain data types.

    Plain are numpy's numbers and truth values, ``str``, categorical, dates and, for what is mixed
    or has no other, ``object``. Nothing is rounded: whole numbers with gaps become floats only if
    every one is exact as a float. Columns that are plain already are not copied.
    """
    table: pd.DataFrame = frame if isinstance(frame, pd.DataFrame) else _from_native(frame)
    if not all(type(name) is str for name in table.columns):
        table = table.set_axis([str(name) for name in table.columns], axis=1)
    if all(_is_plain(dtype) for dtype in table.dtypes):
        return table
    return pd.concat([_plain(table.iloc[:, i]) for i in range(table.shape[1])], axis=1)


def _from_native(frame: Any) -> pd.DataFrame:
    import narwhals as nw
    import pyarrow as pa

    try:
        return pd.DataFrame(nw.from_native(frame, eager_only=True).to_pandas())
    except TypeError:
        raise DataError(
            f"a data frame is needed (pandas, polars or pyarrow), not {type(frame).__name__}"
        ) from None
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"the data frame cannot be read: {str(error).splitlines()[0]}") from None


def _is_plain(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufbOmM"
    return isinstance(dtype, pd.CategoricalDtype | pd.DatetimeTZDtype) or str(dtype) == "str"


def _plain(values: pd.Series) -> pd.Series:
    """A column with a plain data type; the column itself if it has one."""
    dtype = values.dtype
    if _is_plain(dtype) or isinstance(dtype, np.dtype):
        return values if _is_plain(dtype) else values.astype(object)
    if isinstance(dtype, pd.StringDtype) or pd.api.types.is_string_dtype(dtype):
        return values.astype("str")
    gaps = values.isna()
    if pd.api.types.is_bool_dtype(dtype):
        return values.astype(bool) if not gaps.any() else values.astype(object).mask(gaps, None)
    if pd.api.types.is_integer_dtype(dtype):
        return _plain_integers(values, gaps)
    if pd.api.types.is_float_dtype(dtype):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        return pd.Series(numbers, index=values.index, name=values.name)
    return values if dtype.kind in "mM" else values.astype(object)


def _plain_integers(values: pd.Series, gaps: pd.Series) -> pd.Series:
    if not gaps.any():
        return values.astype("uint64" if "uint" in str(values.dtype).lower() else "int64")
    cells = values.astype(object)
    if all(abs(int(value)) < WHOLE for value in cells[~gaps].unique()):
        return pd.Series(
            values.to_numpy(dtype=float, na_value=np.nan), index=values.index, name=values.name
        )
    return cells.mask(gaps, None)


def check_names(columns: Iterable[Any], known: Sequence[str]) -> None:
    """Raise ColumnError for a name that is there twice, or that only looks like one of the
    ``known`` names.

    Other unknown columns are nobody's business: a file may have more than a card describes.

    >>> check_names([" Age", "note"], ["age", "home"])
    Traceback (most recent call last):
        ...
    edfa.errors.ColumnError: column ' Age' is none of the card's, and looks like 'age'; rename it, or leave it out
    """  # noqa: E501
    names = [str(name) for name in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ColumnError(f"column {twice!r} appears {names.count(twice)} times")
    looks = {_look(name): name for name in known}
    for name in (name for name in names if name not in set(known)):
        if (right := looks.get(_look(name))) is not None:
            raise ColumnError(
                f"column {name!r} is none of the card's, and looks like {right!r}; rename "
                "it, or leave it out"
            )


def _look(name: str) -> str:
    """What a name looks like: white space, case, normal forms and letters of other scripts are the
    same.
    """
    text = unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)
    visible = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join(visible.split())


def find_gaps(values: pd.Series) -> BoolArray:
    """Which cells, (rows,), say nothing: null or empty."""
    if values.dtype == object:
        return np.fromiter((is_gap(value) for value in values), dtype=bool, count=len(values))
    empty = values.isna().to_numpy(dtype=bool)
    return np.asarray(
        empty
        if values.dtype.kind in "iufbmM"
        else empty | (values == "").fillna(False).to_numpy(dtype=bool)
    )


def find_missing(values: pd.Series, missing: Sequence[str], words: bool) -> BoolArray:
    """Which cells, (rows,), hold a text that the card lists as ``missing``, or of a column of
    numbers that number.
    """
    if not missing:
        return np.zeros(len(values), dtype=bool)
    if words:
        return read_words(values).isin(missing).to_numpy(dtype=bool)
    numbers = [number for text in missing if (number := parse_number(text)) is not None]
    same = read_numbers(values).isin(numbers).to_numpy(dtype=bool)
    return (
        same
        if values.dtype.kind in "iufb"
        else same | read_words(values).isin(missing).to_numpy(dtype=bool)
    )


def read_numbers(values: pd.Series) -> pd.Series:
    """A column, (rows,), as numbers of any size: NaN where a cell means none; integers if all are
    written as such.

    >>> read_numbers(pd.Series(["€1,430", "7"])).tolist(), read_numbers(pd.Series([1.5, None,
    ...     True])).tolist()
    ([1430, 7], [1.5, nan, nan])
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        distinct = read_numbers(_categories(values)).to_numpy(float)
        return _series(np.append(distinct, np.nan)[values.cat.codes], values)
    kind = values.dtype.kind
    if kind in "iuf" and isinstance(values.dtype, np.dtype):
        return values
    if kind in "bmM":
        return _series(np.full(len(values), np.nan), values)
    if values.dtype == object and not _all_texts(values):
        cells = list(values)
        found = [without_limit(value) for value in cells]
        numbers = np.array([np.nan if number is None else number for number in found], dtype=float)
        return _whole(
            numbers, not any(isinstance(value, float | np.floating) for value in cells), values
        )
    texts = values.astype("str") if values.dtype != "str" else values
    numbers = _parse(texts)
    return _whole(numbers, not texts.str.contains(".", regex=False).fillna(False).any(), values)


def _parse(texts: pd.Series) -> AnyArray:
    """Texts as numbers, (rows,): those written plainly together, any others once each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array(texts, from_pandas=True)
    plain = pc.match_substring_regex(array, PLAIN)
    numbers = pc.cast(
        pc.replace_substring_regex(pc.if_else(plain, array, None), r"^\+", ""), pa.float64()
    )
    result = np.array(numbers.to_numpy(zero_copy_only=False), dtype=float)
    odd = np.flatnonzero(pc.fill_null(pc.invert(plain), False).to_numpy(zero_copy_only=False))
    if len(odd):
        codes, distinct = pd.factorize(texts.iloc[odd])
        parsed = [parse_number(text) for text in distinct.tolist()]
        result[odd] = np.array([np.nan if number is None else number for number in parsed])[codes]
    return result


def _whole(numbers: AnyArray, integers: bool, values: pd.Series) -> pd.Series:
    """Numbers as a column like ``values``; as int64 if they are written as integers and exact."""
    exact = integers and bool(
        (np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < WHOLE)).all()
    )
    return _series(numbers.astype("int64") if exact and len(numbers) else numbers, values)


def read_words(values: pd.Series) -> pd.Series:
    """A column, (rows,), as words of data type ``str``: null where a cell is a gap, or means none.

    >>> read_words(pd.Series([1.0, 2.5, None])).tolist()
    ['1', '2.5', nan]
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        distinct = read_words(_categories(values))
        return _series(distinct.array.take(values.cat.codes.to_numpy(), allow_fill=True), values)
    if values.dtype == "str":
        empty = values == ""
        return values.mask(empty) if empty.any() else values
    if values.dtype == object:
        return (
            _words(list(values), values)
            if not _all_texts(values)
            else read_words(values.astype("str"))
        )
    if values.dtype.kind in "mM":
        return _words([None] * len(values), values)
    codes, numbers = pd.factorize(values)  # each distinct one is written once
    written = _words(numbers.tolist(), pd.Series(numbers))
    return _series(written.array.take(codes, allow_fill=True), values)


def _words(cells: list[Any], like: pd.Series) -> pd.Series:
    words = []
    for value in cells:
        try:
            words.append(as_word(value, ""))
        except FactError:
            words.append(None)
    return _series(pd.array(words, dtype="str"), like)


def to_words(values: pd.Series) -> pd.Series:
    """``read_words`` of a column that holds nothing else; ColumnError naming the row for a cell
    that means no word.
    """
    words = read_words(values)
    strange = np.flatnonzero(words.isna().to_numpy() & ~find_gaps(values))
    if len(strange):
        cell = shorten(values.iloc[strange[0]])
        raise ColumnError(
            f"column {str(values.name)!r}: row {strange[0]} holds {cell}, which is no word"
        )
    return words


def as_words(values: Any) -> list[str]:
    """An array of values without nulls as words, by the rule for one cell."""
    return to_words(pd.Series(values)).tolist()


def _all_texts(values: pd.Series) -> bool:
    """Whether a column of objects holds nothing but whole texts and nulls."""
    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        return False
    return not values.map(
        lambda v: (
            isinstance(v, str) and not v.isascii() and any("\ud800" <= c <= "\udfff" for c in v)
        )
    ).any()


def _categories(values: pd.Series) -> pd.Series:
    return _plain(pd.Series(values.cat.categories))


def _series(data: Any, like: pd.Series) -> pd.Series:
    return pd.Series(data, index=like.index, name=like.name)
