"""Interviews under attack: hostile answers, edited files, copies, taking back, resuming with other
wishes.
"""

import copy
import io
import json
import pickle
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from effort import some
from hostile.receipts import NUMBERS, VALUES, WORDS, attempt, damaged, nested, small, someone
from hostile.rules import overlays
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edfa import Interview, Overlay
from edfa.cli import app
from edfa.errors import (
    DataError,
    EdfaError,
    FactError,
    MismatchError,
    SettingError,
    UnknownNameError,
    UnreadableError,
)

START = {"age": 40, "sum": 14.0}
ANSWERS = {"home": "fré", "income": 24.5, "debt": 12.0, "shoe": "40"}
NAMES = st.sampled_from([*START, *ANSWERS])
HOSTILE = st.one_of(
    VALUES,
    st.sampled_from(
        [
            float("nan"),
            float("inf"),
            Decimal("1e9999"),
            Path("x"),
            b"own",
            np.array(3.0),
            np.array([1, 2]),
            np.float32("nan"),
            np.str_("own"),
            object(),
            {"own"},
            10**400,
            3j,
            range(3),
            len,
        ]
    ),
    st.integers(4400, 5000).map(lambda digits: 10**digits),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The small advisor, saved; tests only read it."""
    path = tmp_path_factory.mktemp("talk") / "advisor"
    small().save(path)
    return path


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process."""

    def call(*arguments, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code or 0, out=out, err=err)

    return call


class HostilePerson(RuleBasedStateMachine):
    """Whatever a person does, only EdfaError is raised, nothing half-done stays, and a replay is
    equal.
    """

    @initialize(facts=st.dictionaries(NAMES | WORDS, HOSTILE, max_size=3), sane=st.booleans())
    def begin(self, facts, sane):
        held, refused = attempt(lambda: small().interview(START if sane else facts), EdfaError)
        self.held = small().interview() if refused else held

    def _try(self, act):
        before = self.held.to_json()
        if attempt(act, EdfaError)[1]:
            assert self.held.to_json() == before, "what is refused leaves no trace"

    @rule(name=NAMES | WORDS, value=HOSTILE)
    def answer_anything(self, name, value):
        self._try(lambda: self.held.answer({name: value}))

    @rule(name=NAMES)
    def answer_well(self, name):
        self._try(lambda: self.held.answer({name: {**START, **ANSWERS}[name]}))

    @rule(facts=HOSTILE)
    def answer_with_no_names(self, facts):
        self._try(lambda: self.held.answer(facts))

    @rule(name=NAMES | HOSTILE)
    def decline(self, name):
        self._try(lambda: self.held.decline(name))

    @rule(name=st.none() | NAMES | HOSTILE)
    def undo(self, name):
        self._try(lambda: self.held.undo(name))

    @rule(k=st.integers(-2, 4) | NUMBERS.filter(lambda n: n < 10 or n > 1e100))
    def plans(self, k):
        self._try(lambda: self.held.plans(k))

    @rule(key=st.none() | st.binary(max_size=40), chosen=st.none() | WORDS)
    def receipt(self, key, chosen):
        self._try(lambda: self.held.receipt(key=key, chosen=chosen))

    @rule(facts=st.dictionaries(NAMES | WORDS, HOSTILE, max_size=2))
    def suppose(self, facts):
        self._try(lambda: self.held.what_if(facts).decision)

    @rule()
    def go_on_from_json(self):
        self.held = Interview.from_json(self.held.to_json(), small())

    @rule()
    def go_on_with_a_copy(self):
        before, self.held = self.held, copy.copy(self.held)
        kept = before.to_json()
        self._try(lambda: self.held.decline("shoe"))
        assert before.to_json() == kept

    @precondition(lambda self: self.held.log.events)
    @invariant()
    def one_state_for_each_event(self):
        assert len(self.held.timeline) == len(self.held.log.events)
        assert not {*self.held.log.facts} & {*self.held.log.declined}
        json.dumps(json.loads(self.held.to_json()), allow_nan=False).encode()

    def teardown(self):
        again = Interview.from_json(self.held.to_json(), small())
        assert again.timeline == self.held.timeline
        receipt = self.held.receipt(time="then")
        assert again.receipt(time="then") == receipt
        assert small().verify(receipt.to_json()).holds


HostilePerson.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
test_a_hostile_person = HostilePerson.TestCase


@settings(max_examples=some(150), deadline=None)
@given(damaged(someone().to_json()))
def test_a_kept_interview_that_was_edited_is_refused_or_makes_sense(text):
    held, refused = attempt(
        lambda: Interview.from_json(text, small()), UnreadableError, MismatchError
    )
    if refused:
        return
    assert Interview.from_json(held.to_json(), small()).timeline == held.timeline
    assert held.receipt().advisor == small().fingerprint


@settings(max_examples=some(80), deadline=None)
@given(overlays())
def test_hostile_rules_of_a_kept_interview_are_refused_or_hold(rules):
    text = json.dumps(json.loads(someone().to_json()) | {"overlay": rules})
    held, refused = attempt(lambda: Interview.from_json(text, small()), UnreadableError)
    assert refused or isinstance(held.overlay, Overlay)


KEPT = json.loads(someone().to_json())
NONSENSE = [
    {"events": [{"kind": "start", "facts": {"age": 40}, "asked": True}]},
    {"events": [{"kind": "start", "facts": {}}, {"kind": "answer", "facts": {}}]},
    {"events": [{"kind": "start", "facts": {}}, {"kind": "decline", "facts": {"home": "own"}}]},
    {"events": [{"kind": "start", "facts": {}}, {"kind": "answer", "facts": {"home": "castle"}}]},
    {"events": [{"kind": "start", "facts": {}}, {"kind": "answer", "facts": {"hom": "own"}}]},
    {"events": [{"kind": "whisper", "facts": {}}]},
    {"events": [{"kind": "start", "facts": {}, "extra": 1}]},
    {"events": [3]},
    {"events": {"kind": "start"}},
    {"events": None},
    {"costs": []},
    {"costs": {"debt": -1}},
    {"costs": {"deb": 1}},
    {"locks": "home"},
    {"locks": ["hom"]},
    {"language": "fr"},
    {"language": ["en"]},
    {"overlay": []},
    {"overlay": {}},
    {"overlay": {"version": 1, "locked": ["hom"]}},
    {"version": True},
    {"advisor": 3},
    {"extra": 1},
]


@pytest.mark.parametrize("change", NONSENSE, ids=[json.dumps(c)[:60] for c in NONSENSE])
def test_nonsense_in_a_kept_interview_is_unreadable(change):
    with pytest.raises(UnreadableError) as raised:
        Interview.from_json(json.dumps(KEPT | change), small())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("missing", sorted(KEPT))
def test_a_kept_interview_without_one_of_its_keys_is_unreadable(missing):
    with pytest.raises(UnreadableError):
        Interview.from_json(json.dumps({k: v for k, v in KEPT.items() if k != missing}), small())


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", nested(100_000), nested(100_000, "{"), nested(500, "{"), 3, None],
)
def test_what_is_no_interview_is_unreadable(text):
    with pytest.raises(UnreadableError):
        Interview.from_json(text, small())
    with pytest.raises(MismatchError, match="held with advisor 'another'"):
        Interview.from_json(json.dumps(KEPT | {"advisor": "another"}), small())


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_an_interview_of_its_own(duplicate):
    first = small().interview(START).answer(home="own")
    second = duplicate(first)
    second.answer(income=30.0)
    first.decline("debt").undo().answer(income=20.0)
    assert (first.log.facts["income"], second.log.facts["income"]) == (20.0, 30.0)
    assert (len(first.timeline), len(second.timeline)) == (3, 3)
    assert first.decision != second.decision
    with pytest.raises(DataError, match="to_json"):
        pickle.dumps(first)


def test_a_start_fact_without_a_value_is_declined():
    held = small().interview({"age": None, "sum": 14.0})
    assert (dict(held.log.facts), held.log.declined) == ({"sum": 14.0}, ("age",))
    assert held.receipt().declined == ("age",)
    assert held.answer(age=30).log.declined == ()
    with pytest.raises(FactError, match="a value is needed"):
        held.answer(debt=None)


def test_a_fact_of_the_start_can_be_taken_back_by_its_name():
    held = small().interview(START).answer(home="own")
    held.undo("age")
    assert dict(held.log.facts) == {"sum": 14.0, "home": "own"}
    assert (
        held.answer(age=33).timeline[-1].decision
        == small().interview({**START, "age": 33, "home": "own"}).decision
    )
    held = small().interview(START)
    with pytest.raises(DataError, match="nothing to undo"):
        held.undo()
    assert dict(held.log.facts) == START


def test_undo_in_the_terminal_goes_back_also_among_start_questions(folder, tmp_path, run):
    keep = tmp_path / "kept.json"
    typed = [":undo", "40", ":undo", "41", "14", ":undo", "15", ":stop"]
    done = run("interview", folder, "--keep", keep, typed="\n".join(typed) + "\n")
    assert done.code == 0, done.err
    assert done.out.count("There is nothing to take back.") == 1
    facts = [event["facts"] for event in json.loads(keep.read_text())["events"]]
    assert facts == [{}, {"age": 41}, {"sum": 15}]


def test_a_null_for_a_start_fact_in_a_file_is_declined(folder, tmp_path, run):
    (tmp_path / "a.json").write_text(json.dumps({"age": None, "sum": 14.0, **ANSWERS}))
    done = run("interview", folder, "--answers", tmp_path / "a.json", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["declined"] == ["age"]


def test_resuming_takes_another_language_and_refuses_other_wishes(folder, tmp_path, run):
    kept, answers = tmp_path / "kept.json", tmp_path / "answers.json"
    kept.write_text(small().interview(START).answer(home="own").to_json())
    answers.write_text("{}")
    (tmp_path / "rules.toml").write_text("max_changes = 1\n")
    begin = ("interview", folder, "--answers", answers, "--resume", kept)
    for option in (("--lock", "income"), ("--rules", tmp_path / "rules.toml")):
        done = run(*begin, *option)
        assert done.code == 2
        assert (
            f"{option[0]}: set when an interview begins; --resume goes on with those it has"
            in done.err
        )
    for option, language in (((), "en"), (("--language", "de"), "de")):
        assert json.loads(run(*begin, *option, "--json").out)["language"] == language
    kept.write_text(small().interview(START, language="de").to_json())
    assert json.loads(run(*begin, "--json").out)["language"] == "de"
    assert run(*begin, "--language", "fr").code == 2


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b"{",
        b"",
        b'{"age": 1, "age": 2}',
        b'{"age": NaN}',
        b"[1]",
        b'{"age": 1e999}',
    ],
)
def test_damaged_files_end_with_two(content, folder, tmp_path, run):
    (tmp_path / "bad.json").write_bytes(content)
    good = tmp_path / "good.json"
    good.write_text("{}")
    for command in (
        ("interview", folder, "--answers", tmp_path / "bad.json"),
        ("interview", folder, "--answers", good, "--resume", tmp_path / "bad.json"),
        ("verify", folder, tmp_path / "bad.json"),
    ):
        done = run(*command)
        assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done.err
    assert run("verify", folder, folder).code == 2
    assert run("verify", folder, tmp_path / "absent.json").code == 2


def test_names_that_are_none():
    held = small().interview(START)
    for name in (None, 3, ["home"], b"home", "Home"):
        with pytest.raises(UnknownNameError):
            held.decline(name)
    with pytest.raises(SettingError):
        held.plans(k=0)
