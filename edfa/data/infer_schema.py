"""A first card for any table, with every guess marked, for a person to edit."""

import re
from typing import Any

import pandas as pd

from edfa.data.clean import clean
from edfa.data.feature import Change, Feature
from edfa.data.schema import Schema
from edfa.data.validate import check_columns, to_pandas, to_words
from edfa.errors import TargetError, hint

__all__ = ["draft"]

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-", "missing", "unknown")
GOOD_WORDS = ("good", "approved", "accepted", "paid", "repaid", "granted", "healthy", "negative", "yes", "true")
_SENSITIVE = set("age sex gender race ethnicity religion nationality foreign marital marriage country".split())
_ONLY_UP = set("age education degree schooling seniority tenure experience".split())
_FROZEN = set("birth history delinquency delinquencies late default dependents".split())


def draft(frame: Any, target: str, favourable: str | None = None, title: str = "") -> str:
    """The text of a card for ``frame``: kinds, sensitive features and directions are guesses, and say so.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [31, 45, 27, 60], "home": list("orro"), "paid": ["yes", "no", "yes", "no"]})
    >>> print(draft(people, target="paid"))  # doctest: +ELLIPSIS
    # A draft: every line marked "guessed" is for you to check...
    """
    table = to_pandas(frame)
    check_columns(table, [target])
    gaps = {str(c): words for c in table.columns if (words := _missing_words(table[c]))}
    missing = tuple(sorted({w for words in gaps.values() for w in words}))
    blank = table.copy()
    for column in gaps:
        blank[column] = pd.to_numeric(blank[column].mask(blank[column].isin(missing)))
    usable, report = clean(blank, keep=[target])
    guesses = [_guess(usable[c], str(c)) for c in usable.columns if c != target]
    labels = sorted(to_words(usable[target].dropna()).unique())
    chosen, why = _favourable(labels, favourable, target)
    remarks = {f.name: remark for f, remark in guesses} | {target: why}
    schema = Schema(tuple(f for f, _ in guesses), target, chosen, missing=missing, title=title)
    head = ['# A draft: every line marked "guessed" is for you to check. Costs are all 1 until you set them;']
    head += ["# mark with `start = true` what is known before the first question."]
    head += [f"# Left out: {d.name}: {d.reason}." for d in report.dropped]
    head += [f"# guessed: {', '.join(missing)} among numbers mean not recorded." if missing else ""]
    return "\n".join(line for line in head if line) + "\n\n" + schema.to_toml(remarks)


def _missing_words(values: pd.Series) -> list[str]:
    """Words for "not recorded" in a column that otherwise holds numbers."""
    if values.dtype.kind in "iufbmM":
        return []
    known = values.dropna()
    words = [w for w in MISSING_WORDS if (known == w).any()]
    rest = known[~known.isin(words)]
    numbers = words and len(rest) and pd.to_numeric(rest, errors="coerce").notna().all()
    return words if numbers else []


def _favourable(labels: list[str], wanted: str | None, target: str) -> tuple[str, str]:
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
    """A feature, and the remark that goes above it."""
    tokens = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    distinct, missing = int(values.nunique()), float(values.isna().mean())
    numeric = values.dtype.kind in "iuf"
    sensitive = not tokens.isdisjoint(_SENSITIVE)
    change: Change = "free"
    if numeric and not tokens.isdisjoint(_ONLY_UP):
        change = "up"
    elif sensitive or not tokens.isdisjoint(_FROZEN):
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
    guessed = [word for word, said in (("sensitive", sensitive), (f"change {change!r}", change != "free")) if said]
    return feature, remark + (f"\nguessed from its name: {', '.join(guessed)}" if guessed else "")
