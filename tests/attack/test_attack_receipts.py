"""Receipts under attack: forged, cut, mutated byte by byte, weakly keyed, of another
certificate.
"""

import json
from dataclasses import fields, replace

import pytest
from effort import some
from hostile.receipts import KEY, attempt, damaged, loans, nested, people, small, someone
from hostile.rules import overlays
from hypothesis import given, settings

import edfa
from edfa import Receipt
from edfa.advice.fitted import NO_PROMISE
from edfa.advice.receipt import read_key
from edfa.errors import SettingError, UnreadableError

INPUTS = {
    "time",
    "versions",
    "language",
    "overlay",
    "k",
    "chosen",
    "key",
    "signature",
}
"""What follows from no answer: without the key, nothing shows that it was changed."""
TEXT = someone().receipt(time="2026-01-01T00:00:00+00:00", key=KEY).to_json()


def mutants(text, every=1):
    """The text with one byte of its UTF-8 changed, for each byte; what is no UTF-8 any more,
    replaced as readers do.
    """
    raw = text.encode()
    for i in range(0, len(raw), every):
        changed = raw[i] ^ (1 if i % 3 else 1 << i % 7)
        yield i, (raw[:i] + bytes([changed]) + raw[i + 1 :]).decode(errors="replace")


def content(receipt):
    """All that a receipt says."""
    return {f.name: getattr(receipt, f.name) for f in fields(Receipt)}


def test_a_receipt_with_any_byte_changed_is_unreadable_or_not_rightly_signed_or_says_the_same():
    whole, read = Receipt.from_json(TEXT), 0
    assert whole.right(KEY)
    for i, mutant in mutants(TEXT):
        try:
            receipt = Receipt.from_json(mutant)
        except UnreadableError:
            continue
        read += 1
        assert not receipt.right(KEY) or content(receipt) == content(whole), (
            i,
            mutant[max(i - 20, 0) : i + 20],
        )
    assert read > len(TEXT) / 2, "most of a receipt is words and numbers, which stay readable"


def test_a_mutated_receipt_never_holds_with_the_key_and_without_it_only_in_what_no_replay_shows():
    whole, held = Receipt.from_json(TEXT), 0
    assert small().verify(whole, KEY).holds
    for i, mutant in mutants(TEXT, every=23):
        try:
            receipt = Receipt.from_json(mutant)
        except UnreadableError:
            continue
        changed = {
            name for name, value in content(receipt).items() if value != getattr(whole, name)
        }
        assert not changed or not small().verify(receipt, KEY).holds, i
        if small().verify(receipt).holds:
            assert changed <= INPUTS, (i, changed)
            held += bool(changed)
    assert held, "such as the time"


@pytest.mark.parametrize(
    "key", [b"", b"k", b"fifteen bytes..", "a text of many characters", 7, [1] * 20]
)
def test_a_weak_key_neither_signs_nor_checks(key, tmp_path):
    for use in (
        lambda: someone().receipt(key=key),
        lambda: small().verify(TEXT, key),
        lambda: Receipt.from_json(TEXT).sign(key),
    ):
        with pytest.raises(SettingError, match="the key"):
            use()
    if isinstance(key, bytes):
        (tmp_path / "key").write_bytes(key + b"\n")
        with pytest.raises(SettingError, match="at least 16"):
            read_key(tmp_path / "key")


@pytest.mark.parametrize(
    "strip",
    [{"signature": ""}, {"signature": "", "key": ""}, {"signature": "é" * 64}, {"key": "0"}],
)
def test_a_receipt_without_its_signature_does_not_hold_with_the_key(strip):
    forged = json.dumps(json.loads(TEXT) | strip | {"time": "2031-01-01T00:00:00+00:00"})
    verified = small().verify(forged, KEY)
    assert (verified.outcome, verified.holds) == ("changed", False)
    assert verified.signature in ("missing", "wrong")


HOSTILE = [
    "",
    "null",
    "3",
    "[]",
    "{}",
    '"receipt"',
    '{"version": 1}',
    '{"version": 2}',
    '{"version": [1]}',
    '{"version": true}',
    '{"version": 1.0}',
    nested(100_000),
    nested(100_000, "{"),
    TEXT[:-1],
    TEXT[: len(TEXT) // 2],
    TEXT.replace('"k": 3', '"k": 3, "k": 4'),
    TEXT.replace('"k": 3', '"k": NaN'),
    TEXT.replace('"k": 3', '"k": 1e999'),
    TEXT.replace('"k": 3', '"k": ' + "9" * 5000),
    TEXT.replace('"k": 3', f'"k": 3, "extra": {nested(300)}'),
    TEXT.replace('"facts": {', '"facts": {"deep": ' + nested(300) + ", "),
    TEXT.replace('"facts": {', '"facts": {"big": 1e999, '),
    TEXT.replace('"facts": {', '"facts": {"half": "\\ud800", '),
    TEXT.replace('"facts": {', '"facts": {"\\udfff": 1, '),
    TEXT.replace('"plans": [', '"plans": [7, '),
    TEXT.replace('"version": 1', '"version": 0'),
    TEXT.replace('"version": 1', '"version": 2'),
]


@pytest.mark.parametrize("text", HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_what_is_no_receipt_is_unreadable(text):
    with pytest.raises(UnreadableError) as raised:
        Receipt.from_json(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
    for no_text in (None, 3, b"{}", [], {}):
        with pytest.raises(UnreadableError):
            Receipt.from_json(no_text)


@settings(max_examples=some(150), deadline=None)
@given(damaged(TEXT))
def test_a_damaged_receipt_is_unreadable_or_is_judged(text):
    receipt, refused = attempt(lambda: Receipt.from_json(text), UnreadableError)
    if refused:
        return
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert repr(receipt)
    assert receipt._repr_html_()
    verified = small().verify(receipt, KEY)
    assert str(verified)
    assert not verified.holds or content(receipt) == content(Receipt.from_json(TEXT))


@settings(max_examples=some(60), deadline=None)
@given(overlays())
def test_hostile_rules_in_a_receipt_are_judged(rules):
    verified = small().verify(replace(Receipt.from_json(TEXT), overlay=rules), KEY)
    assert str(verified)
    assert (verified.holds, verified.signature) == (False, "wrong")


@pytest.mark.parametrize(
    "part",
    [
        {"decision": {}},
        {"decision": {"outcome": [1], "probability": "high"}},
        {"standing": {"status": 3}},
        {"no_plan": {"reason": {"a": 1}}},
        {"plans": [{}]},
        {"plans": [{"changes": 3}]},
        {"plans": [{"changes": [3, None, {}], "probability_before": None}]},
        {"events": [{}]},
        {"facts": {"age": [1, {"b": 2}]}},
    ],
)
def test_a_receipt_of_other_parts_is_shown_and_does_not_hold(part):
    receipt = Receipt.from_json(json.dumps(json.loads(TEXT) | part))
    assert repr(receipt)
    assert receipt._repr_html_()
    assert small().verify(receipt).outcome == "changed"


def test_the_signed_bytes_are_the_same_for_the_same_content():
    receipt = Receipt.from_json(TEXT)
    other = json.dumps(json.loads(TEXT), indent=3, sort_keys=True, ensure_ascii=True)
    assert Receipt.from_json(other).payload() == receipt.payload()
    assert receipt.payload().isascii()
    assert Receipt.from_json(other).right(KEY)
    composed = replace(
        receipt, facts={**receipt.facts, "home": "fre\u0301"}
    )  # looks the same, and is not
    assert not composed.right(KEY)
    for number in (0.1, 1e-310, 1e22, 123456789.123456789, -0.0):
        signed = replace(receipt, spent=number).sign(KEY)
        assert Receipt.from_json(signed.to_json()).right(KEY)


def test_a_receipt_says_under_which_certificate_it_was_made():
    advisor = edfa.Advisor(**small().get_params(deep=False))
    advisor.fitted_ = small().fitted
    held = (
        advisor.interview({"age": 40, "sum": 9.0})
        .answer(home="own")
        .answer(income=31.5)
        .answer(debt=9.5)
    )
    before = held.receipt(key=KEY)
    assert before.certificate_id == small().certificate.digest
    assert advisor.verify(before, KEY).outcome == "holds"
    advisor.certify(people(300, seed=9))
    made = advisor.verify(before, KEY)
    assert (made.outcome, made.holds, made.differences) == ("other_certificate", False, ())
    assert made.certificates == (small().certificate.digest, advisor.certificate.digest)
    assert f"made under certificate {small().certificate.digest}; the advisor now has" in str(made)
    assert "does not hold" not in str(made)
    forged = replace(before, decision={**before.decision, "outcome": "x"})
    assert [d.part for d in advisor.verify(forged).differences] == ["decision"], (
        "all else is compared"
    )
    pretended = replace(before, certificate_id=advisor.certificate.digest)
    assert advisor.verify(pretended).outcome == "changed", (
        "it is held against the certificate that it names"
    )
    advisor.fitted_ = replace(advisor.fitted_, promise=NO_PROMISE)
    assert "now has no certificate" in str(advisor.verify(before))


def test_what_was_asked_is_compared_too():
    receipt = Receipt.from_json(TEXT)
    assert [event["asked"] for event in receipt.events].count(True) >= 2
    events = tuple({**event, "asked": False} for event in receipt.events)
    assert not small().verify(replace(receipt, events=events)).holds
    assert len(loans().schema.start) == 2
