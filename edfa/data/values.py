"""What values mean: the cells of a file, the columns of a data frame, the answers of a person.

Every way in asks here: CSV, Parquet, JSON lines, data frames and interviews. What a column means
does not depend on its data type, nor on the rows that happen to stand beside each other: a column
is read as if each of its cells were read alone.

- A **gap** is null, NaN or an empty text.
- A **number** is a number that is not a truth value, or a text as ``parse_number`` reads it:
  ``€1,430``, ``45 %``, ``$2.5k``, `` 12 ``. A point is the decimal point and a comma parts
  thousands; what could mean two things (``1,5``, ``€1.430``) is no number, since a guess that is
  wrong by a factor of a thousand must not be made in silence. It is exact to the last digit, and at
  most ``LARGEST`` away from zero.
- A **word** is a text as it stands. A whole number is written without a point (1.0 is ``"1"``), any
  other number with all its digits, a truth value as ``"True"`` or ``"False"``.

Read first: ``parse_number``, ``as_number`` and ``as_word`` for one value, ``read_numbers`` and
``read_words`` for columns, ``to_pandas`` for frames of any make.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from edfa.errors import ColumnError, DataError, EmptyTableError, FactError, SchemaError, hint
from edfa.reading import MAX_CHARACTERS_SHOWN, first_line, is_unicode, shorten
from edfa.typing import AnyArray, BoolArray

ROW_ERROR = "\x00error of this row"
"""The column in which a reader of files says why a row cannot be read, (rows,) of texts; null: it
can.
"""

PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?$"
# Letters of other scripts that look like Latin ones, in lower case.
_ALIKE = str.maketrans("авекмнорстухіјѕһԁԛԝүαβεηικνορτυχϲ", "abekmhopctyxijshdqwyabehikvoptuxc")
# numbers beyond it measure nothing about a person, and are no longer whole in floating point
LARGEST_NUMBER = 1e15

CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY", "INR", "Rs")
_MONEY = "|".join(map(re.escape, CURRENCIES))
_NUMBER = re.compile(
    rf"""(?P<open>\()?\s*                                      # accountants write (1,430) for -1430
    (?P<sign>[-+\u2212]?)\s*(?P<before>{_MONEY})?\s*(?P<inner>[-\u2212]?)
    (?P<whole>[1-9]\d{{0,2}}(?P<separator>[,'\u2019\ \u00a0\u202f])\d{{3}}(?:(?P=separator)\d{{3}})*|\d+)?
    (?P<decimals>\.\d*)?(?P<power>[eE][-+]?\d+)?
    \s*(?P<scale>[kKmM])?\s*(?P<after>%|{_MONEY})?\s*(?P<close>\))?""",  # noqa: E501
    re.VERBOSE,
)
MONTHS = {"day": 12 / 365.25, "week": 84 / 365.25, "month": 1.0, "year": 12.0}
LARGEST_EXACT_INTEGER = 2**53  # floats below it are whole numbers exactly
_WHOLE_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0")


def exact_text(value: object) -> str:
    """Write a value as a text that no other value has.

    Parameters
    ----------
    value
        A number of any type, or anything else.

    Returns
    -------
    str
        A whole number without a fraction, any other number with all its digits, and the ``str`` of
        what is no number.

    Examples
    --------
    >>> exact_text(9999997.0), exact_text(0.1), exact_text(2), exact_text("own ")
    ('9999997', '0.1', '2', 'own ')
    """
    if isinstance(value, int) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    return (
        str(int(number)) if number.is_integer() and abs(number) <= LARGEST_NUMBER else repr(number)
    )


def parse_number(text: str) -> float | None:
    """Read the number that a text means.

    Parameters
    ----------
    text
        A number with or without a sign, separators of thousands, a sign of money, a per cent sign
        (which is left out: ``"45%"`` is 45), brackets for a negative amount, ``k`` for thousands,
        and after money ``m`` for millions.

    Returns
    -------
    float | None
        The number; None if the text means none, could mean two, or is too large for a float.

    Examples
    --------
    >>> parse_number(" €1,430 "), parse_number("$2.5k"), parse_number("45 %"), parse_number("(200)")
    (1430.0, 2500.0, 45.0, -200.0)
    >>> parse_number("1,5"), parse_number("€1.430"), parse_number("12 months")
    (None, None, None)
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not (match["whole"] or len(match["decimals"] or "") > 1):
        return None
    money = bool(match["before"] or match["after"] not in (None, "%"))
    if bool(match["open"]) != bool(match["close"]) or (match["sign"] and match["inner"]):
        return None
    if money and len(match["decimals"] or "") == 4 and not match["separator"]:  # 1430, or 1.43?
        return None
    scale = (match["scale"] or "").lower()
    if scale == "m" and not money:  # metres, months, minutes or millions
        return None
    digits = (
        re.sub(r"\D", "", match["whole"] or "0")
        + (match["decimals"] or "")
        + (match["power"] or "")
    )
    number = float(digits) * {"": 1.0, "k": 1e3, "m": 1e6}[scale]
    if not math.isfinite(number):
        return None
    negative = match["open"] or set(match["sign"] + match["inner"]) & set("-\u2212")
    return -number if negative else number


def unit_of(texts: list[str]) -> tuple[str, ...]:
    """Find the signs of money and per cent that stand beside numbers in ``texts``.

    Returns
    -------
    tuple[str, ...]
        Each sign once, sorted; a text that is no number counts for nothing.

    Examples
    --------
    >>> unit_of(["€1,430", "€20", "7"])
    ('€',)
    """
    matches = [match for text in texts if (match := _NUMBER.fullmatch(text.strip()))]
    return tuple(sorted({sign for m in matches for sign in (m["before"], m["after"]) if sign}))


def months_of(takes: str, where: str = "takes") -> float:
    """Read a duration in words as a number of months.

    Parameters
    ----------
    takes
        A number of days, weeks, months or years, such as ``"24 months"``; empty for no time.
    where
        The key that the duration stands under, with which an error message begins.

    Raises
    ------
    SchemaError
        If the text is no duration.

    Examples
    --------
    >>> months_of("24 months"), months_of("2 years"), months_of("")
    (24.0, 24.0, 0.0)
    """
    if not takes:
        return 0.0
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(day|week|month|year)s?\s*", takes)
    if match is None:
        raise SchemaError(
            f"{where}: a number of days, weeks, months or years, such as '24 months', not {takes!r}"
        )
    return float(match[1]) * MONTHS[match[2]]


def is_gap(value: Any) -> bool:
    """Whether a single value says nothing: null, NaN or an empty text; no list or array does.

    >>> is_gap(""), is_gap(None), is_gap(float("nan")), is_gap(0), is_gap([])
    (True, True, True, False, False)
    """
    if isinstance(value, str):
        return value == ""
    if isinstance(value, Decimal):  # pandas raises for a signalling NaN
        return value.is_nan()
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def unwrap(value: Any) -> Any:
    """The Python value of a numpy scalar or an array without dimensions; anything else as it is."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    # A date of numpy would become a number of nanoseconds.
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufSU" else value


def without_limit(value: Any) -> float | None:
    """The number that a value means, of any size; None if it means none, or is a gap. Too large for
    a float: infinite.

    >>> without_limit("€1,430"), without_limit(True), without_limit(10**400)
    (1430.0, None, inf)
    """
    value = unwrap(value)
    if is_gap(value) or isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        return parse_number(value)
    if not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < Fraction(0) else math.inf


def as_number(value: Any, name: str) -> float | None:
    """Read one answer to a question about a number.

    Parameters
    ----------
    value
        A number of any type, or a text as ``parse_number`` reads it.
    name
        The feature, with which an error message begins.

    Returns
    -------
    float | None
        The number; None for a gap.

    Raises
    ------
    FactError
        If the value is neither, is infinite, or is farther than ``LARGEST`` from zero.

    Examples
    --------
    >>> as_number("€1,430", "income"), as_number("", "income")
    (1430.0, None)
    """
    value = unwrap(value)
    if is_gap(value):
        return None
    number = without_limit(value)
    if number is None:
        raise FactError(f"{name}: a number is needed, not {shorten(value)}")
    if not math.isfinite(number):
        raise FactError(f"{name}: a finite number is needed, not {shorten(value)}")
    if abs(number) > LARGEST_NUMBER:
        raise FactError(f"{name}: {number:g} is beyond {LARGEST_NUMBER:g}, no measurement")
    return number


def as_word(value: Any, name: str) -> str | None:
    """Read one answer to a question about a word.

    Parameters
    ----------
    value
        A text, a number, or a truth value.
    name
        The feature, with which an error message begins.

    Returns
    -------
    str | None
        The text as it stands; a number as text, without a point where it is whole; None for a gap.

    Raises
    ------
    FactError
        If the value is none of these, or a text that cannot be written to a file.

    Examples
    --------
    >>> as_word(1.0, "job"), as_word("01", "job"), as_word(True, "job")
    ('1', '01', 'True')
    """
    value = unwrap(value)
    if is_gap(value):
        return None
    if isinstance(value, str):
        if not is_unicode(value):
            raise FactError(f"{name}: {shorten(value)} is no text: it has half a character")
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, Integral) and abs(int(value)) < 10**MAX_CHARACTERS_SHOWN:
        return str(bool(value)) if isinstance(value, bool) else str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return (
            str(int(number))
            if number.is_integer() and abs(number) < LARGEST_EXACT_INTEGER
            else repr(number)
        )
    raise FactError(f"{name}: a word is needed, not {shorten(value)}")


def match_level(word: str, levels: Iterable[str]) -> str | None:
    """Find the level that a word means.

    A data frame writes the whole numbers of a column with gaps as ``1.0``, and a truth value as
    ``True``; such words still mean the levels ``1`` and ``true``.

    Parameters
    ----------
    word
        What a cell or an answer says.
    levels
        The levels of the feature.

    Returns
    -------
    str | None
        The level that equals ``word``, else the only one that differs from it in these two ways;
        None if there is none, or more than one.

    Examples
    --------
    >>> levels = ["1", "2"]
    >>> match_level("1.0", levels), match_level("True", ["true", "false"]), match_level("01", levels)
    ('1', 'true', None)
    """  # noqa: E501
    known = list(levels)
    if word in known:
        return word
    if word in ("True", "False"):
        same = [level for level in known if level.casefold() == word.casefold()]
    else:
        same = [level for level in known if _without_point(level) == _without_point(word)]
    return same[0] if len(same) == 1 else None


def _without_point(word: str) -> str:
    match = _WHOLE_FLOAT.fullmatch(word)
    return match[1] if match else word


def exact(number: float) -> str:
    """A number with as many digits as it takes to tell it from every other.

    >>> exact(99.95), exact(20.0), exact(0.27384999999999998)
    ('99.95', '20', '0.27385')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number)).removesuffix(".0")


def to_pandas(frame: Any) -> pd.DataFrame:
    """Make a pandas frame with plain data types of a frame of any make.

    Plain are numpy's numbers and truth values, ``str``, categorical, dates and, for what is mixed
    or has no other, ``object``. Nothing is rounded: whole numbers with gaps become floats only if
    every one is exact as a float.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame.

    Returns
    -------
    pandas.DataFrame
        The same rows, with texts as column names. Columns that are plain already are not copied.

    Raises
    ------
    DataError
        If ``frame`` is no frame, or cannot be read.

    Examples
    --------
    >>> to_pandas(pd.DataFrame({0: pd.array([1, None], dtype="Int64")})).to_dict("list")
    {'0': [1.0, nan]}
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
        raise DataError(f"the data frame cannot be read: {first_line(error)}") from None


def _is_plain(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufbOmM"
    return isinstance(dtype, pd.CategoricalDtype | pd.DatetimeTZDtype) or str(dtype) == "str"


def _plain(values: pd.Series) -> pd.Series:
    """A column with a plain data type; the column itself if it has one."""
    dtype = values.dtype
    if _is_plain(dtype) or dtype.kind in "mM":
        return values
    if pd.api.types.is_string_dtype(dtype):
        return values.astype("str")
    gaps = values.isna()
    integers = pd.api.types.is_integer_dtype(dtype)
    if integers and not gaps.any():
        return values.astype("uint64" if pd.api.types.is_unsigned_integer_dtype(dtype) else "int64")
    if integers or pd.api.types.is_float_dtype(dtype):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        if not integers or (np.abs(numbers[~gaps]) < LARGEST_EXACT_INTEGER).all():
            return _series(numbers, values)
    if pd.api.types.is_bool_dtype(dtype) and not gaps.any():
        return values.astype(bool)
    return values.astype(object).mask(gaps, None)


def check_names(columns: Iterable[Any], known: Sequence[str]) -> None:
    """Check the names of columns against those of a card.

    Other unknown columns are no error: a file may have more than a card describes.

    Parameters
    ----------
    columns
        The names of all columns.
    known
        The names that the card has.

    Raises
    ------
    ColumnError
        If a name is there twice, or looks like a known one without being equal to it: case, white
        space, normal forms and letters of other scripts make no difference to how a name looks.

    Examples
    --------
    >>> check_names([" Age", "note"], ["age", "home"])
    Traceback (most recent call last):
        ...
    edfa.errors.ColumnError: column ' Age' is none of the card's, and looks like 'age'; rename it, or leave it out
    """  # noqa: E501
    names = [str(name) for name in columns]
    check_unique(names)
    right_names, looks = set(known), {_look(name): name for name in known}
    for name in names:
        if name not in right_names and (right := looks.get(_look(name))) is not None:
            raise ColumnError(
                f"column {name!r} is none of the card's, and looks like {right!r}; rename "
                "it, or leave it out"
            )


def check_unique(names: Iterable[str], where: str = "") -> None:
    """Raise ColumnError, which begins with ``where``, if a column's name is there twice.

    >>> check_unique(["age", "home", "age"], "people.csv: ")
    Traceback (most recent call last):
        ...
    edfa.errors.ColumnError: people.csv: column 'age' appears 2 times
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise ColumnError(f"{where}column {name!r} appears {times} times")


def check_columns(frame: pd.DataFrame, required: list[str]) -> None:
    """Check that a frame has rows and columns to work with.

    Parameters
    ----------
    frame
        A frame with texts as column names, such as ``to_pandas`` makes.
    required
        The columns that must be there.

    Raises
    ------
    ColumnError
        If a name is there twice, or a required column is missing.
    EmptyTableError
        If there is no row.
    """
    check_unique(frame.columns)
    check_present(frame, required)
    if len(frame) == 0:
        raise EmptyTableError("the table has columns but no rows")


def check_present(frame: pd.DataFrame, required: Iterable[str]) -> None:
    """Raise ColumnError, with the most similar name, if a required column is missing."""
    if absent := [name for name in required if name not in frame.columns]:
        raise ColumnError(f"the table has no column {absent[0]!r}{hint(absent[0], frame.columns)}")


def _look(name: str) -> str:
    """What a name looks like: white space, case, normal forms and letters of other scripts are the
    same.
    """
    text = unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)
    visible = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join(visible.split())


def find_gaps(values: pd.Series) -> BoolArray:
    """Which cells, (rows,), say nothing, as ``is_gap`` says of one."""
    if values.dtype == object:
        return np.fromiter(map(is_gap, values), dtype=bool, count=len(values))
    empty = values.isna().to_numpy(dtype=bool)
    return empty if values.dtype.kind in "iufbmM" else empty | values.isin([""]).to_numpy()


def find_missing(values: pd.Series, missing: Sequence[str], words: bool) -> BoolArray:
    """Find the cells that a card says are not recorded.

    Parameters
    ----------
    values
        A column, (rows,).
    missing
        The card's ``missing``: texts that mean "not recorded".
    words
        Whether the column holds words. In a column of numbers, the number that such a text means
        is not recorded either.

    Returns
    -------
    BoolArray
        Whether each cell is listed, (rows,); gaps are not, see ``find_gaps``.
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
    """Read a column as numbers.

    Parameters
    ----------
    values
        A column of any plain data type, (rows,).

    Returns
    -------
    pandas.Series
        The numbers, of any size, with the index and the name of ``values``: NaN where a cell means
        none, as for truth values and dates; integers if all are written as such.

    Examples
    --------
    >>> read_numbers(pd.Series(["€1,430", "7"])).tolist()
    [1430, 7]
    >>> read_numbers(pd.Series([1.5, None, True])).tolist()
    [1.5, nan, nan]
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
        numbers = np.array([without_limit(value) for value in values], dtype=float)
        fractions = any(isinstance(value, float | np.floating) for value in values)
    else:
        texts = values.astype("str")
        numbers = _parse(texts)
        fractions = bool(texts.str.contains(".", regex=False).fillna(False).any())
    if fractions or not len(numbers) or not (np.abs(numbers) < LARGEST_EXACT_INTEGER).all():
        return _series(numbers, values)
    exact = (numbers == np.floor(numbers)).all()
    return _series(numbers.astype("int64") if exact else numbers, values)


def _parse(texts: pd.Series) -> AnyArray:
    """Texts as numbers, (rows,): those written plainly together, any others once each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array(texts, from_pandas=True)
    plain = pc.match_substring_regex(array, PLAIN)
    numbers = pc.cast(pc.if_else(plain, array, None), pa.float64())
    result = np.array(numbers.to_numpy(zero_copy_only=False), dtype=float)
    odd = pc.fill_null(pc.invert(plain), False).to_numpy(zero_copy_only=False)
    meant = {text: parse_number(text) for text in texts[odd].unique()}
    result[odd] = texts[odd].map(meant).astype(float)
    return result


def read_words(values: pd.Series) -> pd.Series:
    """Read a column as words.

    Parameters
    ----------
    values
        A column of any plain data type, (rows,).

    Returns
    -------
    pandas.Series
        The words, of data type ``str``, with the index and the name of ``values``: null where a
        cell is a gap, or means no word, such as a date.

    Examples
    --------
    >>> read_words(pd.Series([1.0, 2.5, None])).tolist()
    ['1', '2.5', nan]
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        distinct = read_words(_categories(values))
        return _series(distinct.array.take(values.cat.codes.to_numpy(), allow_fill=True), values)
    if values.dtype == "str":
        empty = values == ""
        return values.mask(empty) if empty.any() else values
    if values.dtype == object and _all_texts(values):
        return read_words(values.astype("str"))
    if values.dtype.kind in "OmM":
        return _series(_words(values), values)
    codes, numbers = pd.factorize(values)  # each distinct one is written once
    return _series(_words(numbers.tolist()).take(codes, allow_fill=True), values)


def _words(cells: Iterable[Any]) -> Any:
    """Cells as a pandas array of words, null for gaps and for what means no word."""
    words = []
    for value in cells:
        try:
            words.append(as_word(value, ""))
        except FactError:
            words.append(None)
    return pd.array(words, dtype="str")


def to_words(values: pd.Series) -> pd.Series:
    """Read a column that must hold nothing but words and gaps.

    Returns
    -------
    pandas.Series
        The words, as ``read_words`` reads them, (rows,).

    Raises
    ------
    ColumnError
        If a cell means no word; the message names its row.
    """
    words = read_words(values)
    strange = np.flatnonzero(words.isna().to_numpy() & ~find_gaps(values))
    if len(strange):
        cell = shorten(values.iloc[strange[0]])
        raise ColumnError(
            f"column {str(values.name)!r}: row {strange[0]} holds {cell}, which is no word"
        )
    return words


def _all_texts(values: pd.Series) -> bool:
    """Whether a column of objects holds nothing but whole texts and nulls."""
    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        return False
    return all(is_unicode(value) for value in values if isinstance(value, str))


def _categories(values: pd.Series) -> pd.Series:
    return _plain(pd.Series(values.cat.categories))


def _series(data: Any, like: pd.Series) -> pd.Series:
    return pd.Series(data, index=like.index, name=like.name)
