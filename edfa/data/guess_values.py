"""What a column's values suggest, for the draft of a card: numbers, dates, words with an order, and
what is a gap.
"""

import re
from dataclasses import dataclass, field

import pandas as pd

from edfa.data.values import read_numbers, to_words, unit_of

GAPS = frozenset(("", "na", "n/a", "n.a.", "#n/a", "nan", "null", "?", "-", "--", "\u2013"))
GAPS_AMONG_NUMBERS = GAPS | frozenset(
    ("none", "missing", "unknown", "not available", "not recorded", ".", "*")
)
LEAST_SHARE_OF_NUMBERS = 0.9  # the share of numbers from which on a column is meant to hold numbers
MOST_STEPS = 30  # levels that an ordinal feature of words has at most

# Each group of words is one step; words of one step never stand in for each other within a column.
SCALES = tuple(
    tuple(tuple(word.replace("_", " ") for word in step.split("|")) for step in scale.split())
    for scale in (
        "none very_low|minimal|minor low|lower|little "
        "medium|moderate|middle|mid|average|normal high|higher|major"
        " very_high|severe|extreme",
        "never rarely|seldom|hardly_ever sometimes|occasionally often|frequently|usually always",
        "daily weekly monthly quarterly yearly|annually",
        (
            "very_bad|very_poor|terrible bad|poor fair|average|ok|okay|satisfactory good "
            "very_good excellent|outstanding"
        ),
        "tiny|very_small small medium large|big very_large|extra_large|huge",
        "xs s m l xl xxl",
        "none basic|beginner|elementary intermediate advanced expert|professional",
        "none|no_schooling primary|primary_school secondary|secondary_school|high_school|highschool"
        " college|some_college|vocational bachelor|bachelors|undergraduate|bachelor's "
        "master|masters|graduate|master's"
        " doctorate|phd|doctoral",
        "primary secondary tertiary",
        "strongly_disagree disagree neutral|neither agree strongly_agree",
        "very_dissatisfied dissatisfied neutral satisfied very_satisfied",
        "unskilled semi-skilled|semiskilled skilled highly_skilled",
        "bronze silver gold platinum",
        "fail|failed pass|passed merit distinction",
        "first second third fourth fifth",
        "young|child middle-aged|adult old|elderly|senior",
    )
)
YES_NO = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"))

_UNITS = (
    "years? yrs? y months? mths? mo days? weeks? hours? k to and or more less than under over up "
    "above below until at least most x between from km eur usd gbp"
)
_RANGE_WORDS = re.compile(
    rf"\b(?:{'|'.join(_UNITS.split())})\b|[<>=≤≥+~\-\u2013€$£%\s()\[\],.]", re.IGNORECASE
)
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_BELOW = re.compile(r"<|≤|\b(?:under|below|less|up to|until|at most)\b", re.IGNORECASE)
_ABOVE = re.compile(r">|≥|\+|\b(?:over|above|more|at least)\b", re.IGNORECASE)

_TIME = r"(?:[T ]\d{1,2}:\d{2}.*)?"
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"[12]\d{{3}}[-/.]{_MONTH}(?:[-/.]{_DAY})?{_TIME}|{_DAY}[-/.]{_DAY}[-/.](?:[12]\d{{3}}|\d{{2}}){_TIME}"
    rf"|(?:{_DAY}[ -])?{_MONTH_NAME}[ .,-]+(?:{_DAY},? )?(?:\d{{4}}|\d{{2}})",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(
    r"[-\u2212]?\s*[€$£]?\s*[-\u2212]?(?:\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+)\s*[€$£%]?"
)


@dataclass(frozen=True, eq=False)
class Reading:
    """A column as its values suggest to read it.

    Parameters
    ----------
    column
        Numbers or words, (rows,), null where nothing is recorded.
    gaps
        The texts of the column that mean "not recorded".
    unit
        The sign beside its numbers, such as ``"€"``; empty if there is none.
    reason
        Why the column cannot be used as it is; empty if it can.
    """

    column: pd.Series
    gaps: frozenset[str] = field(default_factory=frozenset)
    unit: str = ""
    reason: str = ""


def read_values(values: pd.Series, labels: frozenset[str] = frozenset()) -> Reading:
    """Read a column as its values suggest.

    Parameters
    ----------
    values
        A column of any plain data type, (rows,).
    labels
        Texts that never mean "not recorded", such as the classes of the outcome.

    Returns
    -------
    Reading
        Numbers where everything that is recorded is a number, else the values as they stand. Dates,
        lists, numbers in different units and columns that are meant to hold numbers and do not are
        readings with a reason.

    Examples
    --------
    >>> reading = read_values(pd.Series(["€1,430", "unknown", "€20"]))
    >>> reading.column.tolist(), sorted(reading.gaps), reading.unit
    ([1430.0, nan, 20.0], ['unknown'], '€')
    """
    if values.dtype.kind in "mM":
        return Reading(values, reason="a date; turn it into a number of days or years first")
    if values.dtype.kind in "iufb":
        return Reading(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        return Reading(to_words(values))
    if not values.map(pd.api.types.is_scalar).all():
        return Reading(values, reason="one value a cell is needed, it holds lists")
    known = values.dropna()
    texts = [str(value) for value in known.unique().tolist()]
    gaps = {text for text in texts if text not in labels and is_gap(text, among_numbers=True)}
    rest = known[~known.isin(gaps)]
    numbers = read_numbers(rest)
    share = float(numbers.notna().mean()) if len(rest) else 0.0
    if share == 1 and rest.map(lambda value: not isinstance(value, bool)).all():
        return _read_as_numbers(values, gaps, texts)
    gaps = {text for text in gaps if is_gap(text)}  # among words, "none" and "unknown" are levels
    words = [text for text in texts if text not in gaps]
    if words and all(_DATE.fullmatch(word.strip()) for word in words):
        return Reading(values, reason="a date; turn it into a number of days or years first")
    if reason := _spoilt_numbers(rest, numbers, share, words):
        return Reading(values, reason=reason)
    return Reading(values.mask(values.isin(gaps)), frozenset(gaps))


def _read_as_numbers(values: pd.Series, gaps: set[str], texts: list[str]) -> Reading:
    """The reading of a column in which everything but ``gaps`` is a number; ``texts`` are its
    different values.
    """
    units = unit_of([text for text in texts if text not in gaps])
    if len(units) > 1:
        return Reading(
            values, reason=f"numbers in different units ({', '.join(units)}); write them in one"
        )
    return Reading(
        read_numbers(values.mask(values.isin(gaps))),
        frozenset(gaps),
        unit=units[0] if units else "",
    )


def _spoilt_numbers(rest: pd.Series, numbers: pd.Series, share: float, words: list[str]) -> str:
    """Why a column that seems meant to hold numbers cannot be read so; empty if it is not meant
    to.
    """
    odd = rest[numbers.isna()]
    if (
        len(odd)
        and odd.map(
            lambda v: isinstance(v, str) and bool(_DECIMAL_COMMA.fullmatch(v.strip()))
        ).all()
    ):
        return (
            f"numbers such as {odd.iloc[0]!r}, which could be read in two ways; "
            "write them with a decimal point only"
        )
    if share >= LEAST_SHARE_OF_NUMBERS and len(words) > MOST_STEPS:
        return (
            f"numbers, but row {odd.index[0]} says {odd.iloc[0]!r}; "
            "correct it, or list it under `missing`"
        )
    return ""


def is_gap(text: str, among_numbers: bool = False) -> bool:
    """Whether a text usually means "not recorded": among words fewer do so than among numbers."""
    return text.strip().casefold() in (GAPS_AMONG_NUMBERS if among_numbers else GAPS)


def yes_or_no(values: pd.Series) -> tuple[str, ...]:
    """Find the levels of a column of yes and no, true and false, or 0 and 1.

    Parameters
    ----------
    values
        A column, (rows,). Only where it holds numbers or truth values, 0 and 1 are no and yes.

    Returns
    -------
    tuple[str, ...]
        The negative level and the positive one, as they are written; empty for other columns.

    Examples
    --------
    >>> yes_or_no(pd.Series(["Yes", "No", None])), yes_or_no(pd.Series(["rent", "own"]))
    (('No', 'Yes'), ())
    """
    if values.nunique() != 2:
        return ()
    levels: list[str] = to_words(values.dropna()).unique().tolist()
    spelled = {level.strip().casefold(): level for level in levels}
    pairs = (*YES_NO, ("0", "1")) if values.dtype.kind in "iufb" else YES_NO
    for no, yes in pairs:
        if set(spelled) == {no, yes}:
            return spelled[no], spelled[yes]
    return ()


def order_of(levels: list[str]) -> tuple[str, ...]:
    """Put words in order: low, medium, high, or ranges by their first number.

    Parameters
    ----------
    levels
        Different words.

    Returns
    -------
    tuple[str, ...]
        The words in ascending order; empty if they have none, are fewer than two or more than 30.

    Examples
    --------
    >>> order_of(["high", "low", "medium"])
    ('low', 'medium', 'high')
    >>> order_of([">=7 years", "<1 year", "1-4 years", "4-7 years"])
    ('<1 year', '1-4 years', '4-7 years', '>=7 years')
    >>> order_of(["rent", "own"])
    ()
    """
    if not 2 <= len(levels) <= MOST_STEPS:
        return ()
    plain = {level: re.sub(r"[_\s]+", " ", level.strip().casefold()) for level in levels}
    for scale in SCALES:
        step = {word: i for i, words in enumerate(scale) for word in words}
        letters = scale[1] == ("s",) and len(levels) < 3  # s and m alone may be single and married
        if not letters and all(word in step for word in plain.values()):
            return _sorted_by({level: (float(step[word]), 0) for level, word in plain.items()})
    keys = {level: key for level in levels if (key := _range_key(level)) is not None}
    return _sorted_by(keys) if len(keys) == len(levels) else ()


def _sorted_by(keys: dict[str, tuple[float, int]]) -> tuple[str, ...]:
    """The levels by their key; empty if two have the same, since nothing says which comes first."""
    return tuple(sorted(keys, key=keys.__getitem__)) if len(set(keys.values())) == len(keys) else ()


def _range_key(level: str) -> tuple[float, int] | None:
    """The first number of a range such as "1-4 years", and whether the range ends or begins there;
    None for others.
    """
    first = _DIGITS.search(level)
    if first is None or _RANGE_WORDS.sub("", _DIGITS.sub("", level)):
        return None
    several = len(_DIGITS.findall(level)) > 1
    end = 0 if several else -1 if _BELOW.search(level) else 1 if _ABOVE.search(level) else 0
    return float(first[0].replace(",", "") or 0), end
