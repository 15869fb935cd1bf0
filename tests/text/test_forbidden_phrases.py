"""What must never be said to a person: see every sentence of both languages, and every word of the
cards.
"""

import ast
import re
from pathlib import Path

import pytest

import edfa
from edfa.data.catalog import load_schema
from edfa.text import phrases

FORBIDDEN = {
    "en": (
        r"never matters?",
        r"whatever (it is|they are)",
        r"scored? (is |was )?too low",
        r"our (internal )?(policy|standards)",
        r"\bincomplete\b",
        r"(?<!not a )(?<!no )promise of credit",
        r"\bguarantee",
        r"you will (be granted|get|receive|not repay|fail to repay)",
        r"your chance of repaying",
    ),
    "de": (
        r"nie eine Rolle",
        r"spielt? (überhaupt )?keine Rolle",
        r"\bScore\b.*zu niedrig",
        r"unsere (internen )?(Richtlinien?|Vorgaben)",
        r"unvollständig",
        r"(?<!keine )Kreditzusage",
        r"\b[Gg]aranti",
        r"Sie werden (bewilligt|bekommen|erhalten|nicht zurückzahlen)",
    ),
}
CARDS = ("german", "adult", "taiwan", "gmsc", "heloc", "acs_income", "diabetes130")


def forbidden(text, language):
    return [pattern for pattern in FORBIDDEN[language] if re.search(pattern, text, re.I)]


@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_no_sentence_says_what_must_not_be_said(language):
    for kind in ("", "summary"):
        for key, entry in phrases.table(language, kind).items():
            assert not forbidden(str(entry), language), key


@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_the_patterns_find_what_they_are_for(language):
    bad = {
        "en": [
            "These never matter for the decision, whatever they are.",
            "Your score is too low.",
            "It is incomplete.",
        ],
        "de": [
            "Diese spielen für die Entscheidung nie eine Rolle.",
            "Das ist eine Kreditzusage.",
            "garantiert",
        ],
    }
    for text in bad[language]:
        assert forbidden(text, language), text
    assert not forbidden("This is not a promise of credit.", "en")
    assert not forbidden("Das ist keine Kreditzusage.", "de")


def test_no_text_of_the_code_says_that_something_never_matters():
    """Neither what is shown of an object nor its documentation; only the list of what letters may
    not say.
    """
    root, never = Path(edfa.__file__).parent, re.compile(r"never[\s_]+matter", re.I)
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert path.name == "letter_words.py" or not [
            text for text in texts if never.search(text)
        ], path
    for path in (path for kind in ("toml", "html", "jinja") for path in root.rglob(f"*.{kind}")):
        assert not never.search(path.read_text(encoding="utf-8")), path


def test_only_the_standing_of_who_may_act_says_that_they_may():
    says = {
        "en": re.compile(r"you (may|can) act", re.I),
        "de": re.compile(r"Sie können jetzt .*handeln", re.I),
    }
    for language, pattern in says.items():
        assert [
            key for key, entry in phrases.table(language).items() if pattern.search(str(entry))
        ] == ["standing.act"]


@pytest.mark.parametrize("name", CARDS)
def test_no_card_says_so_either(name):
    for feature in load_schema(name):
        for language in phrases.LANGUAGES:
            said = feature.said(language)
            words = [
                said.label,
                said.reason,
                said.ask,
                said.hint,
                *said.levels.values(),
                *said.codes.values(),
            ]
            assert not [text for text in words if forbidden(text, language)], feature.name
