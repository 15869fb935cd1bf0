"""What the page says, in one language: its own sentences, and the card's labels, levels, units and
outcomes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edfa.advice.assessment import Decision
from edfa.data.schema import Feature, Schema
from edfa.reading import read_entries
from edfa.text import narrate, phrases

__all__ = ["Wording", "sentences"]


def sentences(language: str) -> Mapping[str, str]:
    """Every sentence of the page in a language, keyed ``section.name``."""
    phrases.table(language)  # a language nobody speaks is an error
    return read_entries("edfa_serve", f"sentences/{language}.toml")


@dataclass(frozen=True, eq=False)
class Wording:
    """A language, and the card as it is said in it.

    ``schema`` is the advisor's, its labels, units and codes in the language. Calling a wording says
    a sentence of the page, or one that is said everywhere; with a count, its singular or plural.

    Examples
    --------
    >>> import edfa
    >>> german = Wording.of(edfa.load("german").schema, "de")
    >>> german("question.left", 3), german("of", n=43, total=100)
    ('Es bleiben höchstens 3 Fragen, diese eingeschlossen.', '43 von 100')
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
            key = f"{key}.{'one' if count == 1 else 'other'}"
            values["count"] = self.number(count)
        own, common = sentences(self.language), phrases.table(self.language)
        return str(own[key] if key in own else common[key]).format(**values)

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

    def number(self, value: float) -> str:
        """A number as the language writes it."""
        return phrases.number(value, self.language)

    def unit(self, name: str) -> str:
        """The unit beside a number, in the plural; empty if there is none."""
        if not self.schema[name].unit:
            return ""
        return self.value(name, 2.5).removeprefix(self.number(2.5)).strip()

    def value(self, name: str, raw: Any) -> str:
        """A value in words, with its unit; a level without quotation marks."""
        text = phrases.value(self.schema[name], raw, self.language)
        return phrases.unquoted(text, self.language)

    def count(self, decision: Decision) -> str:
        """The estimate of a decision as a count: 31 of 100."""
        if decision.cases is None:
            return self("of", n=narrate.chance(decision, self.language), total=100)
        count = self.number(round(decision.probability * decision.cases))
        return self("of", n=count, total=self.number(decision.cases))


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
