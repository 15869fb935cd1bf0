"""A first schema for any table: what its columns hold and what people can change is guessed, for
people to check.

No guess is made about which outcome is good for a person, and whatever is guessed is marked so:
``guessed = true``. Directions are read from the training part alone, so that nobody whom a
certificate rests on takes part in them.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.card import comment
from edfa.data.clean import clean
from edfa.data.guess_direction import guess_direction
from edfa.data.guess_names import guess_from_name, is_code, is_date_name
from edfa.data.guess_values import Reading, is_gap, order_of, read_values, yes_or_no
from edfa.data.schema import Feature, Schema
from edfa.data.table import Table
from edfa.data.values import LARGEST_NUMBER, check_columns, to_pandas, to_words
from edfa.errors import ColumnError, TargetError, hint

MOST_CLASSES = 20
FEW_ROWS = 20  # a table this small shows nothing about identifiers
GOOD_WORDS = frozenset(
    "good approved approve accepted accept granted paid repaid healthy benign pass passed "
    "success successful eligible"
    " current low".split()
)
BAD_WORDS = frozenset(
    (
        "bad refused rejected denied declined default defaulted late malignant "
        "sick ill fail failed failure overdue"
    ).split()
)
HEAD = """A draft: a table does not say what people can change, so every feature below says `guessed = true`.
Check one, correct it, and take that line out of it. `edfa fit` stops while one is left, but for --accept-guesses.
Costs are all 1 until you set them; mark with `start = true` what is known before the first question."""  # noqa: E501


def infer_schema(frame: Any, target: str, favourable: str | None = None, title: str = "") -> Schema:
    """Guess the schema of a data frame; ``infer_card`` also says what was guessed and why.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame, one row a person.
    target
        The column that holds the outcome.
    favourable
        The class a person would want. It is never guessed: without it, the error lists the classes.
    title
        The name of the data set, for people.

    Raises
    ------
    DataError
        If there is no such column, no row, only one class, or nothing that could be learnt from; if
        ``favourable`` is not given, or is no class.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [31, 45, 27, 60], "home": list("orro"), "paid": ["yes", "no",
    ...     "yes", "no"]})
    >>> schema = infer_schema(people, target="paid", favourable="yes")
    >>> schema["age"].kind, schema["age"].change, schema["home"].kind, schema.guessed
    ('continuous', 'frozen', 'categorical', ('age', 'home'))
    """
    return _infer(frame, target, favourable, title)[0]


def infer_card(frame: Any, target: str, favourable: str | None = None, title: str = "") -> str:
    """Guess the schema of a data frame, as the text of a card with a comment for every guess.

    Parameters
    ----------
    frame, target, favourable, title
        As in ``infer_schema``.

    Returns
    -------
    str
        A card in TOML. Columns that were left out are named, with the reason, at the top.

    Raises
    ------
    DataError
        As in ``infer_schema``.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [31, 45, 27, 60], "home": list("orro"), "paid": ["yes", "no",
    ...     "yes", "no"]})
    >>> print(infer_card(people, target="paid", favourable="yes"))  # doctest: +ELLIPSIS
    # A draft: ...
    """
    schema, remarks, dropped = _infer(frame, target, favourable, title)
    head = [HEAD, *(f"Left out: {name}: {reason}." for name, reason in dropped.items())]
    if schema.missing:
        gaps = " or ".join(map(repr, schema.missing))
        head.append(f"guessed: not recorded, in every column, means {gaps}.")
    return comment("\n".join(head)) + "\n" + schema.to_toml(remarks)


def _infer(
    frame: Any, target: str, favourable: str | None, title: str
) -> tuple[Schema, dict[str, str], dict[str, str]]:
    """A guessed schema; by feature or target the remarks on its guesses; by name the columns that
    were left out, with the reasons.
    """
    table = to_pandas(frame)
    check_columns(table, [target])
    classes, gaps = _read_outcome(table[target], favourable, target)
    readings = {
        name: _read(table[name], name, frozenset(classes))
        for name in table.columns
        if name != target
    }
    usable, report = clean(
        pd.DataFrame(
            {name: r.column for name, r in readings.items() if not r.reason}, index=table.index
        )
    )
    if not len(usable.columns):
        raise ColumnError(
            f"the table has no column besides {target!r} that something could be learnt from"
        )
    guesses = {name: _guess(usable[name], readings[name]) for name in usable.columns}
    gaps = gaps.union(*(readings[name].gaps for name in guesses))
    several = len(classes) > 2
    schema = Schema(
        tuple(feature for feature, _ in guesses.values()),
        target,
        str(favourable),
        classes=classes if several else (),
        missing=tuple(sorted(gaps)),
        target_guessed=several,
        title=title,
    )
    schema, directions = _with_directions(table, schema)
    remarks = {name: remark + directions.get(name, "") for name, (_, remark) in guesses.items()}
    if several:
        shown = ", ".join(classes)
        remarks[target] = f"guessed: {shown} stay apart; merge them to two if people only need two."
    unusable = {name: r.reason for name, r in readings.items() if r.reason}
    return schema, remarks, unusable | dict(report.dropped)


def _read_outcome(
    values: pd.Series, favourable: str | None, target: str
) -> tuple[tuple[str, ...], frozenset[str]]:
    """The classes of the outcome in order, and the texts that mean "not recorded" among its labels;
    TargetError unless ``favourable`` is one of a few classes.
    """
    labels: list[str] = to_words(values.dropna()).unique().tolist()
    gaps = {label for label in labels if is_gap(label)} if len(labels) > 2 else set()
    labels = sorted({*labels} - gaps)
    if len(labels) < 2:
        raise TargetError(
            f"target {target!r} is constant: every row is {labels[0] if labels else 'missing'!r}"
        )
    if len(labels) > MOST_CLASSES:
        raise TargetError(
            f"target {target!r} has {len(labels):,} different values; an outcome is one "
            f"of at most {MOST_CLASSES} "
            "classes, such as above and below a number"
        )
    if favourable is None:
        raise TargetError(_ask_for_favourable(labels, target))
    if str(favourable) not in labels:
        raise TargetError(
            f"target {target!r} never is {str(favourable)!r}{hint(favourable, labels)}"
        )
    if values.dtype.kind in "iuf":
        labels.sort(key=float)
    return order_of(labels) or tuple(labels), frozenset(gaps)


def _ask_for_favourable(labels: list[str], target: str) -> str:
    """The message that asks which class is good for a person; a clear word is suggested, never
    taken.
    """
    good = [label for label in labels if label.strip().casefold() in GOOD_WORDS]
    rest = [label for label in labels if label.strip().casefold() not in BAD_WORDS]
    likely = good if len(good) == 1 else rest if len(labels) == 2 and len(rest) == 1 else []
    ask = "pass --favourable NAME (favourable=… in Python)"
    if likely:
        ask = f"did you mean --favourable '{likely[0]}'?"
    return (
        f"target {target!r}: which class would a person want, "
        f"{', '.join(labels)}? It is never guessed; {ask}"
    )


def _read(values: pd.Series, name: str, labels: frozenset[str]) -> Reading:
    """A column as its values and its name suggest to read it."""
    reading = read_values(values, labels)
    numbers = reading.column
    if reading.reason or numbers.dtype.kind not in "iuf":
        return reading
    if (np.abs(numbers.to_numpy(float)) > LARGEST_NUMBER).any():
        return replace(reading, reason=f"infinite, or beyond {LARGEST_NUMBER:g}, in some rows")
    if is_date_name(name) and _packed_dates(numbers.dropna()):
        return replace(reading, reason="a date; turn it into a number of days or years first")
    if len(numbers) > FEW_ROWS and numbers.dtype.kind in "iu":
        steps = numbers.to_numpy() - np.arange(len(numbers))
        if (steps == steps[0]).all() and steps[0] in (0, 1):
            return replace(reading, reason="a row number")
    return replace(reading, column=to_words(numbers)) if is_code(name) else reading


def _packed_dates(numbers: pd.Series) -> bool:
    """Whether numbers are dates written as 20260131."""
    years, months, days = numbers // 10_000, numbers // 100 % 100, numbers % 100
    return bool(
        len(numbers)
        and (years.between(1900, 2100) & months.between(1, 12) & days.between(1, 31)).all()
    )


def _guess(values: pd.Series, reading: Reading) -> tuple[Feature, str]:
    """A feature guessed from a column's name and values, and a remark that says so."""
    name, distinct, missing = str(values.name), int(values.nunique()), float(values.isna().mean())
    levels = yes_or_no(values)
    numeric = values.dtype.kind in "iuf" and not levels
    words: list[str] = [] if numeric else to_words(values.dropna()).unique().tolist()
    order = () if numeric or levels or is_code(name) else order_of(words)
    span = (float(values.min()), float(values.max())) if numeric else (0.0, 0.0)
    named = guess_from_name(
        name, numeric=numeric, ordered=numeric or bool(order), span=span, levels=words
    )
    feature = Feature(
        name,
        "continuous" if numeric else "ordinal" if order else "categorical",
        sensitive=named.sensitive,
        change=named.change,
        unit=reading.unit or named.unit,
        levels=levels or order,
        per_year=named.per_year,
        guessed=True,
    )
    shown = f"{span[0]:g} to {span[1]:g}" if numeric else ", ".join((order or words)[:6])
    more = "" if numeric or distinct < 7 else ", …"
    remark = f"guessed: {feature.kind}; {distinct:,} different values ({shown}{more})"
    if numeric and distinct <= 10:
        remark += "; few values: ordinal, or categorical if they are codes?"
    if missing:
        remark += f"; {missing:.1%} missing"
    return feature, remark + (f"\nguessed from its name: {named.why}" if named.why else "")


def _with_directions(table: pd.DataFrame, schema: Schema) -> tuple[Schema, dict[str, str]]:
    """The schema with the directions that the training part supports, and a remark on each by
    feature.
    """
    try:
        train = Table.from_frame(table[[*schema.names, schema.target]], schema).train
    except TargetError:  # gaps, or too few rows of a class: such a table cannot be split yet
        return schema, {}
    good = train.y == train.schema.classes.index(schema.favourable)
    features, remarks = [], {}
    for feature in schema:
        values = train.frame[feature.name]
        if feature.words:  # by the positions of ordered levels
            values = values.map({str(level): i for i, level in enumerate(feature.levels)})
        movable = feature.actionable and feature.kind != "categorical"
        guess = guess_direction(values.to_numpy(float), good) if movable else None
        if guess and feature.change in ("free", guess.direction):
            feature = replace(feature, monotone=guess.direction)
            remarks[feature.name] = (
                f"\nguessed from {len(train):,} training rows: monotone {guess.direction!r} "
                f"(rank correlation with {schema.favourable!r} {guess.correlation:+.2f})"
            )
        features.append(feature)
    return replace(schema, features=tuple(features)), remarks
