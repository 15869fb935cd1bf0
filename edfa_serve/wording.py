"""The words of the page in one language.

A ``Wording`` says the page's own sentences (``edfa_serve/sentences/<language>.toml``), those that
are said everywhere (``edfa/text/sentences``), and the labels, levels, units and outcomes of a card.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edfa.advice.assessment import Decision
from edfa.data.schema import Schema
from edfa.reading import read_entries
from edfa.text import narrate, phrases


def sentences(language: str) -> Mapping[str, str]:
    """Read the sentences of the page in a language.

    Parameters
    ----------
    language
        One of ``edfa.text.phrases.LANGUAGES``.

    Returns
    -------
    Mapping[str, str]
        The sentences by ``section.name``, with placeholders in braces.

    Raises
    ------
    UnknownNameError
        If there is no such language.
    """
    phrases.table(language)
    return read_entries("edfa_serve", f"sentences/{language}.toml")


@dataclass(frozen=True, eq=False)
class Wording:
    """A card and a language in which it is said.

    Calling a wording returns a sentence by its key, one of the page's own or one of
    ``edfa/text/sentences``, with its placeholders filled; with a count, its singular or plural.

    Parameters
    ----------
    schema
        The card of the advisor.
    language
        One of ``edfa.text.phrases.LANGUAGES``.

    Examples
    --------
    >>> import edfa
    >>> german = Wording(edfa.load("german").schema, "de")
    >>> german("question.left", 3), german("of", n=43, total=100)
    ('Es bleiben höchstens 3 Fragen, diese eingeschlossen.', '43 von 100')
    >>> german.value("duration", 36)
    '36 Monate'
    """

    schema: Schema
    language: str

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
        """The favourable outcome in words."""
        return self.outcome(self.schema.favourable)

    def outcome(self, name: str) -> str:
        """A class of the target in words."""
        return phrases.plain(self.schema.outcome(name, self.language))

    def label(self, name: str) -> str:
        """The label of a feature, its first letter a capital."""
        label = phrases.plain(self.schema[name].said(self.language).label)
        return label[:1].upper() + label[1:]

    def number(self, value: float) -> str:
        """A number with the separators of the language."""
        return phrases.number(value, self.language)

    def unit(self, name: str) -> str:
        """The unit of a feature in the plural; empty if it has none."""
        if not self.schema[name].said(self.language).unit:
            return ""
        return self.value(name, 2.5).removeprefix(self.number(2.5)).strip()

    def value(self, name: str, raw: Any) -> str:
        """A value of a feature in words: with its unit, or a level without quotation marks."""
        text = phrases.value(self.schema[name], raw, self.language)
        return phrases.unquoted(text, self.language)

    def count(self, decision: Decision) -> str:
        """The estimate of a decision as a count, such as ``31 of 100``."""
        if decision.cases is None:
            return self("of", n=narrate.chance(decision, self.language), total=100)
        count = self.number(round(decision.probability * decision.cases))
        return self("of", n=count, total=self.number(decision.cases))
