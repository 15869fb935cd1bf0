"""The sentences of a letter that depend on the person, and what no letter may say.

``say_letter`` says an entry of ``letter.<language>.toml``, the functions ``write_...`` say dates,
reasons, estimates and sources; ``forbidden_phrase`` finds what must not be said.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from numbers import Real
from typing import Any

from edfa.data.schema import Feature
from edfa.reading import read_entries
from edfa.text import phrases
from edfa.text.phrases import ONE_BOUND, TWO_BOUNDS, plain

BUREAU_SOURCES = (
    "bureau",
    "bureau score",
)  # what a card calls a credit bureau, and a score that it has made
TIMES = (
    "hours",
    "hours a week",
    "days",
    "weeks",
    "months",
    "years",
)  # units whose numbers are long or short rather than high or low

# What a letter must not say, as patterns that ignore case, with the reason why.
NEVER: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (
            r"never matters?\b",
            "nobody knows what matters for other people; say: made no difference here",
        ),
        (r"whatever (it is|they are|its value)", "nobody knows what matters for other people"),
        (
            r"score (is|was)? ?(too low|insufficient)|qualifying score|insufficient score",
            "it is no specific reason",
        ),
        (r"\b(our|internal) (polic(y|ies)|standards?)\b", "it is no specific reason"),
        (r"application (is|was) incomplete", "a decision was made"),
        (
            r"\b(we|you are|is|are) guaranteed?\b|we promise|will be (granted|approved)",
            "no credit is promised",
        ),
        (r"your chances? (of|that)", "a certificate is about many people, not about one"),
        (
            r"will not (re)?pay|won't (re)?pay|cannot be trusted",
            "nobody knows what a person will do",
        ),
    ),
    "de": (
        (
            r"nie(mals)? eine rolle|spielt nie\b",
            "niemand weiß, was für andere zählt; besser: machte hier keinen Unterschied",
        ),
        (
            r"(was auch immer|gleich,? welche[rsn]?|egal,? welche[rsn]?|wie auch immer)",
            "niemand weiß, was für andere zählt",
        ),
        (
            r"(score|punktzahl|punktwert) (ist|war)? ?(zu niedrig|nicht ausreichend)",
            "das ist kein bestimmter Grund",
        ),
        (
            r"(unsere[rn]?|interne[rn]?) (richtlinien?|vorgaben?|geschäftspolitik)",
            "das ist kein bestimmter Grund",
        ),
        (r"antrag (ist|war) unvollständig", "es wurde entschieden"),
        (
            r"\bgarantier|versprechen wir|wir versprechen|wird (bewilligt|gewährt) werden",
            "kein Kredit wird zugesagt",
        ),
        (r"ihre chancen?\b", "ein Zertifikat spricht von vielen, nicht von einer Person"),
        (
            r"nicht zurückzahlen werden|werden [^.]{0,40}nicht zurückzahlen",
            "niemand weiß, was jemand tun wird",
        ),
    ),
}
UNCERTIFIED = {
    "en": r"you may act|you can act",
    "de": r"sie (können|dürfen)( \w+){0,4} (nach|auf) [^.]{0,40}handeln",
}


def sentences(language: str) -> Mapping[str, Any]:
    """Read the entries of a letter in a language.

    Parameters
    ----------
    language
        ``"en"`` or ``"de"``.

    Returns
    -------
    Mapping
        The entries of ``letter.<language>.toml`` by ``section.name``.

    Raises
    ------
    UnknownNameError
        If there is no such language.
    """
    phrases.table(language)
    return read_entries("edfa_serve.letters", f"letter.{language}.toml")


def say_letter(key: str, language: str, **values: object) -> str:
    """One entry, ``section.name``, with its placeholders filled by ``values``.

    >>> say_letter("reason.value", "en", name="income", value="900 EUR")
    'income: 900 EUR'
    """
    return str(sentences(language)[key]).format(**values)


def write_date(day: date, style: str, language: str) -> str:
    """Write a day in words.

    Parameters
    ----------
    day
        The day.
    style
        ``"us"`` or ``"eu"``: the order of day and month.
    language
        The language of the letter.

    Examples
    --------
    >>> write_date(date(2026, 11, 3), "us", "en"), write_date(date(2026, 11, 3), "eu", "de")
    ('November 3, 2026', '3. November 2026')
    """
    month = sentences(language)["months"][day.month - 1]
    return say_letter(f"date.{style}", language, day=day.day, month=month, year=day.year)


def write_reason(
    features: Sequence[Feature],
    facts: Mapping[str, Any],
    language: str,
    *,
    directed: Sequence[str] = (),
    shared: bool = False,
) -> str:
    """Say one reason with the person's own values, in the words of the card.

    Parameters
    ----------
    features
        The features that the reason is about, at least one.
    facts
        The person's values by feature.
    language
        The language of the letter.
    directed
        Names of features of which the model obeys the card's direction: it is said which way they
        are wrong, if their value is a number.
    shared
        Whether other features of the card have the same reason, so that it is said which is meant.

    Examples
    --------
    >>> duration = Feature("duration", "continuous", label="duration of the loan", unit="months",
    ...     monotone="down")
    >>> write_reason([duration], {"duration": 48}, "en", directed=("duration",))
    'duration of the loan: 48 months (too long)'
    >>> newest = Feature("newest", "continuous", label="latest payment", unit="EUR",
    ...     reason="amounts paid")
    >>> write_reason([newest], {"newest": 0}, "en", shared=True)
    'amounts paid (latest payment: 0 EUR)'
    """

    def valued(name: str, feature: Feature, key: str) -> str:
        value = facts.get(feature.name)
        words = {"name": name, "value": _in_words(feature, value, language)}
        way = _direction(feature, value) if feature.name in directed else None
        if way is None:
            return say_letter("reason.value", language, **words)
        direction = say_letter(f"direction.{way}", language)
        return say_letter(key, language, direction=direction, **words)

    reason = plain(features[0].said(language).reason)
    labels = [plain(feature.said(language).label) for feature in features]
    if len(features) == 1 and not (shared and labels[0].casefold() != reason.casefold()):
        return valued(reason, features[0], "reason.directed")
    named = zip(labels, features, strict=True)
    values = "; ".join(valued(name, feature, "reason.part_directed") for name, feature in named)
    return say_letter("reason.several", language, reason=reason, values=values)


def write_estimate(probability: float, threshold: float | None, language: str) -> str:
    """Say what the estimate of a refused person came to and what is needed, out of 100.

    There are as many digits as it takes to tell the two apart, at most three, so that no refused
    person reads that they had enough.

    Parameters
    ----------
    probability
        Of the favourable outcome, from 0 to 1.
    threshold
        The probability that is needed; None: the likeliest outcome wins.
    language
        The language of the letter.

    Examples
    --------
    >>> write_estimate(0.6998, 0.7, "en")
    'For you the estimate is 69.98 of 100; at least 70 of 100 are needed.'
    >>> write_estimate(0.43, None, "en")
    'For you the estimate is 43 of 100, and another outcome is likelier.'
    """
    if threshold is None:
        chance = phrases.in_hundred(probability, language)
        return say_letter("estimate.likeliest", language, chance=chance)
    chance, needed = phrases.hundredths(probability, threshold, language)
    key = "threshold" if probability < threshold else "more"  # a tie goes against the person
    return say_letter(f"estimate.{key}", language, chance=chance, needed=needed)


def write_origin(feature: Feature, bureau: str, language: str) -> str:
    """Say where a fact comes from.

    Parameters
    ----------
    feature
        The feature, whose card names the source; without one, the person has told it.
    bureau
        The name of the credit bureau; empty: it is not named.
    language
        The language of the letter.

    Examples
    --------
    >>> write_origin(Feature("score", "continuous", source="bureau score"), "Bureau Ltd", "en")
    'a report of Bureau Ltd'
    """
    if not feature.source:
        return say_letter("origin.person", language)
    if feature.source not in BUREAU_SOURCES:
        return say_letter("origin.other", language, source=plain(feature.source))
    return say_letter(
        "origin.bureau" if bureau else "origin.bureau_unnamed", language, bureau=bureau
    )


def forbidden_phrase(text: str, language: str, *, certified: bool = False) -> str | None:
    """Find what no letter may say.

    Parameters
    ----------
    text, language
        A text and its language.
    certified
        Whether the person may act now, so that the letter may say so.

    Returns
    -------
    str or None
        The first forbidden phrase, and why it is one; None if there is none.

    Examples
    --------
    >>> forbidden_phrase("Our policies do not allow it.", "en")
    "'Our policies': it is no specific reason"
    """
    words, patterns = " ".join(text.split()), NEVER[language]
    if not certified:
        patterns = (*patterns, (UNCERTIFIED[language], "nothing is certified"))
    for pattern, why in patterns:
        if match := re.search(pattern, words, re.IGNORECASE):
            return f"{match.group()!r}: {why}"
    return None


def _in_words(feature: Feature, value: Any, language: str) -> str:
    """A value in words; of a number with decimals three digits, the table of facts has them all."""
    if isinstance(value, float) and not value.is_integer() and f"{value:g}" not in feature.codes:
        value = phrases.short(value)
    return phrases.value(feature, value, language)


def _direction(feature: Feature, value: Any) -> str | None:
    """Which way a value is wrong: ``"high"``, ``"low"``, ``"long"`` or ``"short"``.

    None if it is no number, a code, or if the card has no direction or unit for it.
    """
    if isinstance(value, Real):
        number = all(float(code) != value for code in feature.codes)
    else:
        number = any(bound.fullmatch(str(value)) for bound in (ONE_BOUND, TWO_BOUNDS))
    # classes, which have no unit, are neither high nor low
    if feature.monotone is None or not number or not feature.unit:
        return None
    if feature.unit in TIMES:
        return "short" if feature.monotone == "up" else "long"
    return "low" if feature.monotone == "up" else "high"
