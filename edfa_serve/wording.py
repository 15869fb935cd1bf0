"""What the page says, in one language: its own sentences, and the card's labels, levels, units and
outcomes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor
from numbers import Real
from typing import Any

from edfa.advice.assessment import Decision
from edfa.data.schema import Feature, Schema
from edfa.reading import read_entries
from edfa.text import phrases

__all__ = ["Wording", "sentences"]

TOTALS = (100, 1_000, 10_000)  # what chances are counted out of; the coarsest that tells them apart


def sentences(language: str) -> Mapping[str, str]:
    """Every sentence of the page in a language, keyed ``section.name``."""
    phrases.table(language)  # a language nobody speaks is an error
    return read_entries("edfa_serve", f"sentences/{language}.toml")


@dataclass(frozen=True, eq=False)
class Wording:
    """A language, and the card as it is said in it.

    ``schema`` is the advisor's, its labels, units and codes in the language. Calling a wording says
    a sentence of the page; with a count, its singular or plural.

    Examples
    --------
    >>> import edfa
    >>> german = Wording.of(edfa.load("german").schema, "de")
    >>> german("question.left", 3), german("of", n=43, total=100)
    ('Noch höchstens 3 Fragen', '43 von 100')
    >>> german.value("duration", 36)
    '36 Monate'
    """

    language: str
    schema: Schema

    @classmethod
    def of(cls, schema: Schema, language: str) -> "Wording":
        """The wording of a card in a language."""
        return cls(
            language,
            replace(schema, features=tuple(_said(feature, language) for feature in schema)),
        )

    def __call__(self, key: str, count: int | None = None, /, **values: object) -> str:
        if count is not None:
            key, values = (
                f"{key}.{'one' if count == 1 else 'other'}",
                values | {"count": self.number(count)},
            )
        return sentences(self.language)[key].format(**values)

    @property
    def title(self) -> str:
        """What the card is about; without a title, the name of this software."""
        return phrases.plain(self.schema.title_in(self.language)) or "edfa"

    @property
    def wanted(self) -> str:
        """The favourable outcome."""
        return self.outcome(self.schema.favourable)

    def outcome(self, name: str) -> str:
        """What a class means."""
        return phrases.plain(self.schema.outcome(name, self.language))

    def label(self, name: str) -> str:
        """The name of a feature, with a capital letter: it stands at the beginning."""
        title = phrases.plain(self.schema[name].title)
        return title[:1].upper() + title[1:]

    def labels(self, names: Iterable[str], conjunction: phrases.Conjunction = "and") -> str:
        """The names of features as a list in words, each in quotation marks."""
        return phrases.listed(
            [phrases.label(self.schema[n], self.language) for n in names],
            self.language,
            conjunction,
        )

    def number(self, value: float) -> str:
        """A number as the language writes it."""
        return phrases.number(value, self.language)

    def percent(self, share: float) -> str:
        """A share as a percentage."""
        return phrases.percent(share, self.language)

    def value(self, name: str, raw: Any) -> str:
        """A value in words, with its unit; a level without quotation marks."""
        feature = self.schema[name]
        words = feature.said(self.language).levels.get(str(raw))
        text = phrases.plain(words) if words else phrases.value(feature, raw, self.language)
        left, right = phrases.table(self.language)["quotes"]
        return (
            text[len(left) : -len(right)]
            if text.startswith(left) and text.endswith(right)
            else text
        )

    def bounded(self, name: str, raw: Any, way: int) -> str:
        """A value and everything below (``way`` -1) or above it (1)."""
        feature, side = self.schema[name], phrases.at_most if way < 0 else phrases.at_least
        if isinstance(raw, Real) and not isinstance(raw, bool):
            return side(feature, raw, self.language)
        ends = feature.levels[:1] if way < 0 else feature.levels[-1:]
        if raw in ends or str(raw).startswith(("<", ">")):
            return self.value(name, raw)
        return phrases.say(
            "bounds.or_lower" if way < 0 else "bounds.or_higher",
            self.language,
            value=self.value(name, raw),
        )

    def chances(self, decision: Decision) -> tuple[str, str]:
        """The estimate and what is needed, as counts out of the same number: what is refused never
        looks enough.

        The second is empty where the likeliest outcome is decided.
        """
        if decision.cases is not None:
            return self._of(round(decision.probability * decision.cases), decision.cases), ""
        share, needed = decision.probability, decision.threshold
        total = next((t for t in TOTALS if _honest(share, needed, t)), None)
        if (
            total is None and needed is not None and share < needed
        ):  # nearer than any count tells: rounded apart
            return self._of(floor(share * TOTALS[0]), TOTALS[0]), self._of(
                ceil(needed * TOTALS[0]), TOTALS[0]
            )
        total = total or TOTALS[0]
        return self._of(round(share * total), total), "" if needed is None else self._of(
            round(needed * total), total
        )

    def _of(self, count: int, total: int) -> str:
        return self("of", n=self.number(count), total=self.number(total))

    def pair(self, before: float, after: float) -> tuple[str, str]:
        """Two chances as counts out of the same number."""
        total = next((t for t in TOTALS if round(before * t) != round(after * t)), TOTALS[0])
        return self._of(round(before * total), total), self._of(round(after * total), total)


def _said(feature: Feature, language: str) -> Feature:
    """The feature with its words in a language where the card otherwise has its own."""
    words = feature.said(language)
    return replace(
        feature,
        label=words.label,
        unit=words.unit,
        codes=dict(words.codes),
        ask=words.ask,
        hint=words.hint,
    )


def _honest(share: float, needed: float | None, total: int) -> bool:
    """Whether counts out of ``total`` stand to each other as the shares do, and none is rounded to
    nothing or all.
    """
    count = round(share * total)
    if count in (0, total) and share not in (0.0, 1.0):
        return False
    return needed is None or (count >= round(needed * total)) == (share >= needed)
