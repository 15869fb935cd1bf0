"""A first schema for any table: kinds, sensitive features and directions of change are guessed, for people to check."""

import re
from typing import Any, NamedTuple

import pandas as pd

from edfa.data.card import comment
from edfa.data.clean import Dropped, clean
from edfa.data.feature import Change, Feature
from edfa.data.schema import Schema
from edfa.data.validate import check_columns, to_pandas, to_words
from edfa.errors import TargetError, hint

__all__ = ["infer_card", "infer_schema"]

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-", "missing", "unknown")
GOOD_WORDS = ("good", "approved", "accepted", "paid", "repaid", "granted", "healthy", "negative", "yes", "true")
_SENSITIVE = set("age sex gender race ethnicity religion nationality foreign marital marriage country".split())
_ONLY_UP = set("age education degree schooling seniority tenure experience".split())
_FROZEN = set("birth history delinquency delinquencies late default dependents".split())


def infer_schema(frame: Any, target: str, favourable: str | None = None, title: str = "") -> Schema:
    """Guess the schema of a data frame; ``infer_card`` also says what was guessed and why.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame, one row a person.
    target
        The column that holds the outcome.
    favourable
        The class a person would want. If None, it is guessed from the labels.
    title
        The name of the data set, for people.

    Raises
    ------
    DataError
        If there is no such column, no row, or only one class.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [31, 45, 27, 60], "home": list("orro"), "paid": ["yes", "no", "yes", "no"]})
    >>> schema = infer_schema(people, target="paid")
    >>> schema.favourable, schema["age"].kind, schema["age"].change, schema["home"].kind
    ('yes', 'continuous', 'up', 'categorical')
    """
    return _infer(frame, target, favourable, title).schema


def infer_card(frame: Any, target: str, favourable: str | None = None, title: str = "") -> str:
    """Guess the schema of a data frame, as the text of a card with a comment for every guess.

    Parameters are those of ``infer_schema``. Columns that were left out are named, with the reason, at the top.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [31, 45, 27, 60], "home": list("orro"), "paid": ["yes", "no", "yes", "no"]})
    >>> print(infer_card(people, target="paid"))  # doctest: +ELLIPSIS
    # A draft: every line marked "guessed" is for you to check...
    """
    schema, remarks, dropped = _infer(frame, target, favourable, title)
    head = ['A draft: every line marked "guessed" is for you to check. Costs are all 1 until you set them;']
    head += ["mark with `start = true` what is known before the first question."]
    head += [f"Left out: {column.name}: {column.reason}." for column in dropped]
    if schema.missing:
        head += [f"guessed: {', '.join(schema.missing)} among numbers mean not recorded."]
    return comment("\n".join(head)) + "\n" + schema.to_toml(remarks)


class _Inferred(NamedTuple):
    """A guessed schema, the remarks on its guesses by feature or target, and the columns that were left out."""

    schema: Schema
    remarks: dict[str, str]
    dropped: tuple[Dropped, ...]


def _infer(frame: Any, target: str, favourable: str | None, title: str) -> _Inferred:
    table = to_pandas(frame)
    check_columns(table, [target])
    gaps = {str(c): words for c in table.columns if (words := _missing_words(table[c]))}
    missing = tuple(sorted({w for words in gaps.values() for w in words}))
    numeric = table.copy()
    for column in gaps:
        numeric[column] = pd.to_numeric(numeric[column].mask(numeric[column].isin(missing)))
    usable, report = clean(numeric, keep=[target])
    guesses = [_guess(usable[c], str(c)) for c in usable.columns if c != target]
    labels = sorted(to_words(usable[target].dropna()).unique())
    chosen, remark = _favourable(labels, favourable, target)
    schema = Schema(tuple(f for f, _ in guesses), target, chosen, missing=missing, title=title)
    return _Inferred(schema, {f.name: r for f, r in guesses} | {target: remark}, report.dropped)


def _missing_words(values: pd.Series) -> list[str]:
    """The strings that mean "not recorded" in a column that otherwise holds numbers; empty for other columns."""
    if values.dtype.kind in "iufbmM":
        return []
    known = values.dropna()
    words = [w for w in MISSING_WORDS if (known == w).any()]
    rest = known[~known.isin(words)]
    numbers = words and len(rest) and pd.to_numeric(rest, errors="coerce").notna().all()
    return words if numbers else []


def _favourable(labels: list[str], wanted: str | None, target: str) -> tuple[str, str]:
    """The class that is good for a person, and a remark if it was guessed."""
    if len(labels) < 2:
        raise TargetError(f"target {target!r} is constant: every row is {labels[0] if labels else 'missing'!r}")
    if wanted is not None:
        if wanted not in labels:
            raise TargetError(f"target {target!r} never is {wanted!r}{hint(wanted, labels)}")
        return wanted, ""
    good = [label for label in labels if label.casefold() in GOOD_WORDS]
    shown = ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")
    advice = "" if len(labels) == 2 else f"\n{len(labels)} classes: merge them to two, or list them as classes."
    return (good or labels[-1:])[0], f"guessed: which of {shown} is good for the person?{advice}"


def _guess(values: pd.Series, name: str) -> tuple[Feature, str]:
    """A feature guessed from a column's name and values, and a remark that says so."""
    name_words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    distinct, missing = int(values.nunique()), float(values.isna().mean())
    numeric = values.dtype.kind in "iuf"
    sensitive = not name_words.isdisjoint(_SENSITIVE)
    change: Change = "free"
    if numeric and not name_words.isdisjoint(_ONLY_UP):
        change = "up"
    elif sensitive or not name_words.isdisjoint(_FROZEN):
        change = "frozen"
    feature = Feature(name, "continuous" if numeric else "categorical", sensitive=sensitive, change=change)
    shown = f"{values.min():g} to {values.max():g}" if numeric else ", ".join(to_words(values.dropna()).unique()[:6])
    remark = (
        f"guessed: {feature.kind}; {distinct:,} different values ({shown}{'' if numeric or distinct < 7 else ', …'})"
    )
    if numeric and distinct <= 10:
        remark += "; few values: ordinal, or categorical if they are codes?"
    if missing:
        remark += f"; {missing:.1%} missing"
    by_name = [*(["sensitive"] if sensitive else []), *([f"change {change!r}"] if change != "free" else [])]
    return feature, remark + (f"\nguessed from its name: {', '.join(by_name)}" if by_name else "")
