"""What one person says reaches nobody else, and no training person is in what leaves the
process.
"""

import functools
import gc
import json
import logging
import sys
import types
import warnings

import numpy as np
import pytest
from hostile.receipts import KEY, loans, people, small

import edfa
from edfa.advice.batch_file import advise_file
from edfa.errors import EdfaError, UnreadableError
from edfa.people import People
from edfa.recourse.plans import Plans
from edfa.text.interview_page import interview_html

MARKED = {
    "age": 47,
    "sum": 13.1370451,
    "income": 22.7713509,
    "debt": 11.9173082,
    "shoe": "Zyxwv-40",
}
"""Facts that nobody else has; the last is no level, and is kept and left out."""
PLAIN = {"age": 30, "sum": 12.5, "income": 25.25, "debt": 10.5, "home": "rent"}


def spellings(facts):
    """Every way in which a distinctive fact may be written: as text, rounded, and as the bytes of
    encoded numbers.
    """
    encoder = small().fitted.encoder
    for name, value in facts.items():
        if isinstance(value, str):
            yield value.encode()
        elif isinstance(value, float):
            yield repr(value).encode()
            yield f"{value:.5f}".encode()
            yield np.float64(value).tobytes()
            yield np.float32(value).tobytes()
            yield np.float32(encoder[name].encode_fact(value)).tobytes()


def talk(facts, advisor=None):
    """A whole interview, with mistakes, plans, what-ifs and a receipt."""
    held = (advisor or small()).interview(
        {n: facts[n] for n in ("age", "sum")}, overlay=edfa.Overlay(prices={"home": 1.5})
    )
    if "shoe" in facts:
        held.answer(shoe=facts["shoe"])
    for name in ("income", "debt"):
        held.answer({name: facts[name]})
    held.decline("home").undo().answer(home=facts.get("home", "own"))
    held.what_if({"income": facts["income"]}).plans()
    held.plans()
    return held


def artefacts(held):
    """Everything that an interview hands out, as bytes."""
    receipt = held.receipt(key=KEY)
    texts = [
        held.to_json(),
        receipt.to_json(),
        receipt._repr_html_(),
        repr(held),
        repr(receipt),
        interview_html(held),
    ]
    texts += [
        held._repr_html_(),
        str(small().verify(receipt, KEY)),
        str(held.standing),
        str(held.timeline),
    ]
    texts += [
        repr(held.plans()),
        *(plan._repr_html_() for plan in held.plans()),
        small()._repr_html_(),
    ]
    return [text.encode() for text in texts]


def test_the_markers_are_found_where_they_belong():
    """Else the tests below could not fail."""
    whole = b"".join(artefacts(talk(MARKED)))
    for value in MARKED.values():
        assert str(value).encode() in whole


def test_what_one_person_says_reaches_no_other_and_no_file(tmp_path, caplog, capfd):
    errors = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        talk(MARKED)
        with pytest.raises(EdfaError):
            small().interview({"age": 47}).answer(income="Zyxwv-40")
        logged = [record.getMessage() for record in caplog.records] + [
            str(w.message) for w in warned
        ]
        other = talk(PLAIN)
        for wrong in (
            {"income": "much"},
            {"income": 1e9},
            {"shoo": 1},
            {"home": "castle"},
            {"debt": [3]},
        ):
            try:
                small().interview().answer(wrong)
            except EdfaError as error:
                errors.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
    small().save(tmp_path / "advisor")
    people(8, seed=3).to_csv(tmp_path / "people.csv", index=False)
    advise_file(small().fitted, tmp_path / "people.csv", tmp_path / "advice.jsonl")
    files = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    files |= {f"artefact {i}": text for i, text in enumerate(artefacts(other))}
    files |= {"log": "\n".join(logged).encode(), "errors": "\n".join(errors).encode()}
    files |= {"output": "".join(capfd.readouterr()).encode()}
    assert len(errors) == 5
    for spelling in spellings(MARKED):
        assert [name for name, content in files.items() if spelling in content] == [], spelling


def reachable(roots):
    """Every object that can be reached from some, but not by way of code: modules, classes,
    functions.
    """
    code = (types.ModuleType, type, types.FunctionType, types.FrameType, types.BuiltinFunctionType)
    seen, left = set(), list(roots)
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, code):
            continue
        seen.add(id(thing))
        yield thing
        left += gc.get_referents(thing)
        if isinstance(thing, functools.partial):
            left += [thing.args, thing.keywords]


def remnants(roots):
    """What is reachable and holds a marked fact: its text, its number, or the code of it in an
    array or in bytes.
    """
    encoder = small().fitted.encoder
    numbers = {n: v for n, v in MARKED.items() if isinstance(v, float)}
    codes = np.array(
        [*numbers.values(), *(encoder[n].encode_fact(v) for n, v in numbers.items())],
        dtype=np.float32,
    )
    words, raw = MARKED["shoe"], [code.tobytes() for code in codes]
    for thing in reachable(roots):
        if isinstance(thing, np.ndarray):
            holds = thing.dtype.kind == "f" and np.isin(thing.astype(np.float32), codes).any()
        elif isinstance(thing, bytes):
            holds = any(code in thing for code in (words.encode(), *raw))
        else:
            holds = (
                words in thing
                if isinstance(thing, str)
                else isinstance(thing, float) and thing in numbers.values()
            )
        if holds:
            yield thing


def test_nothing_that_was_said_stays_in_an_advisor():
    """When the interview is gone, no cache of the advisor, the model or the modules has its
    answers.
    """
    held = talk(MARKED)
    assert {type(thing) for thing in remnants([held])} >= {str, float, np.ndarray}, "there they are"
    held.receipt()
    del held
    gc.collect()
    modules = [
        vars(module) for name, module in list(sys.modules.items()) if name.split(".")[0] == "edfa"
    ]
    assert list(remnants([small(), *modules])) == []


def keys_of(value):
    """Every key in plain data."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from keys_of(part)


@pytest.fixture(scope="module")
def plans():
    """Plans for test people, which take training people's values."""
    fitted = small().fitted
    return edfa.find_recourse(People(loans().test.X, fitted.background), fitted.searcher, n_jobs=1)


def test_no_plan_names_a_training_person(plans, tmp_path):
    held = talk(PLAIN)
    assert held.plans()
    advice = tmp_path / "advice.jsonl"
    people(40, seed=3).to_csv(tmp_path / "people.csv", index=False)
    advise_file(small().fitted, tmp_path / "people.csv", advice)
    texts = [
        held.receipt().to_json(),
        held.to_json(),
        plans.to_json(),
        *advice.read_text().splitlines(),
    ]
    for text in texts:
        assert not [
            key for key in keys_of(json.loads(text)) if "donor" in key or "neighbour" in key
        ]
    assert "donor" not in plans.frame().columns
    assert not hasattr(plans, "donor")
    assert not hasattr(plans[0], "donor")
    shown = (
        repr(plans),
        repr(plans[0]),
        str(plans[0]),
        plans._repr_html_(),
        plans[0]._repr_html_(),
    )
    assert not any("donor" in text for text in shown)
    again = Plans.from_json(plans.to_json())
    assert list(again) == list(plans)


def test_a_training_row_that_a_file_of_plans_names_is_refused(plans):
    content = json.loads(plans.to_json())
    named = [{**plan, "donor": 7} for plan in content["plans"]]
    with pytest.raises(UnreadableError):
        Plans.from_json(json.dumps(content | {"plans": named}))


def test_no_row_of_a_training_person_is_in_what_leaves_the_process(plans, tmp_path):
    """All distinctive numbers of one training person together would be somebody."""
    held, train = talk(PLAIN), loans().train.frame
    people(40, seed=3).to_csv(tmp_path / "people.csv", index=False)
    advise_file(small().fitted, tmp_path / "people.csv", tmp_path / "advice.jsonl")
    for text in (*artefacts(held), (tmp_path / "advice.jsonl").read_bytes()):
        words = set(
            text.decode()
            .replace('"', " ")
            .replace(",", " ")
            .replace("}", " ")
            .replace(":", " ")
            .split()
        )
        for row in train[["sum", "income", "debt"]].itertuples(index=False):
            assert len({str(value) for value in row} & words) < 3, row
