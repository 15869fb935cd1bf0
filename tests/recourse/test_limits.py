"""Rules: they tighten, they are checked first, they hold."""

import json
from dataclasses import replace

import numpy as np
import pytest
from discrete import as_sets, world

import edfa
from edfa.errors import FactError, SchemaError, SettingError, UnknownNameError, UnreadableError
from edfa.people import Background, People
from edfa.recourse import DiCE, Nearest, Rules, find_recourse


def search(german, **given):
    table, model = german
    searcher = Nearest(table.train)
    people = People(table.test.X[:60], Background.of(table.train, model))
    return find_recourse(people, searcher, rules=Rules(**given))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"locked": ("purpos",)}, UnknownNameError, "did you mean 'purpose'"),
        ({"ranges": {"amount": (0, 1)}}, UnknownNameError, "credit_amount"),
        ({"together": (("purpose", "job_"),)}, UnknownNameError, "did you mean 'job'"),
        ({"only": ("age",)}, SchemaError, "only tighten"),
        ({"only": ("credit_history",)}, SchemaError, "frozen"),
        ({"directions": {"employment": "down"}}, SchemaError, "the card allows 'up' only"),
        ({"directions": {"purpose": "up"}}, SchemaError, "needs an order"),
        ({"ranges": {"purpose": (0, 1)}}, SchemaError, "levels"),
        ({"levels": {"duration": (12,)}}, SchemaError, "range instead"),
        ({"levels": {"housing": ("owns",)}}, FactError, "own"),
        ({"forbidden": (("housing", "own", "tent"),)}, FactError, "tent"),
        ({"max_changes": 0}, SettingError, "at least 1"),
        ({"max_effort": 0}, SettingError, "above 0"),
        ({"min_probability": 1.0}, SettingError, "min_probability"),
        ({"weights": {"duration": -1}}, SettingError, "positive"),
        (
            {"weights": {"duration": 2}, "difficulty": {"duration": 2}},
            SettingError,
            "one of the two",
        ),
        ({"difficulty": {"duration": 6}}, SettingError, "from 1"),
        ({"directions": {"duration": "left"}}, SettingError, "up or down"),
        ({"ranges": {"duration": (9, 3)}}, SettingError, "must not be above"),
        ({"reading": "tea leaves"}, SettingError, "card or paper"),
    ],
)
def test_what_cannot_be_meant_is_said_before_any_work(given, error, words, german):
    with pytest.raises(error, match=words):
        search(german, **given)


def test_the_card_holds_by_default(german):
    changes = search(german).frame()
    schema = german[0].schema
    assert not {f.name for f in schema if not f.actionable} & set(changes["feature"])
    levels = list(schema["employment"].levels)
    moved = changes[changes["feature"] == "employment"]
    assert len(moved) > 5
    assert all(
        levels.index(b) > levels.index(a) for a, b in zip(moved["from"], moved["to"], strict=True)
    )


def test_the_papers_reading_frees_all_but_what_is_sensitive(german):
    changed = set(search(german, reading="paper").frame()["feature"])
    assert "credit_history" in changed
    assert not changed & set(german[0].schema.sensitive)


def test_locks_ranges_levels_directions_and_transitions_hold(german):
    free = search(german).frame()
    given = {
        "locked": ("purpose",),
        "ranges": {"credit_amount": (1000, 4000)},
        "levels": {"savings_status": (">=1000",)},
        "directions": {"duration": "down"},
        "forbidden": (("housing", "rent", "own"),),
        "max_changes": 2,
        "min_probability": 0.6,
    }
    limited = search(german, **given).frame()
    by = {
        name: (limited[limited["feature"] == name], free[free["feature"] == name])
        for name in set(free["feature"])
    }
    assert len(by["purpose"][1]) > 0
    assert len(by["purpose"][0]) == 0
    assert not by["credit_amount"][1]["to"].between(1000, 4000).all()
    assert by["credit_amount"][0]["to"].between(1000, 4000).all()
    assert len(by["credit_amount"][0]) > 5
    assert set(by["savings_status"][1]["to"]) - {">=1000"}
    assert set(by["savings_status"][0]["to"]) == {">=1000"}
    assert (by["duration"][1]["to"] > by["duration"][1]["from"]).any()
    assert (by["duration"][0]["to"] < by["duration"][0]["from"]).all()
    moves = [set(zip(part["from"], part["to"], strict=True)) for part in by["housing"]]
    assert ("rent", "own") in moves[1]
    assert ("rent", "own") not in moves[0]
    assert free["l0"].max() >= 3
    assert limited["l0"].max() == 2
    assert free["probability_after"].min() < 0.6 <= limited["probability_after"].min()


@pytest.mark.parametrize("make", [lambda train: Nearest(train, neighbours=1000), DiCE])
def test_pairs_that_were_never_seen_together_are_not_proposed(make):
    train, model = world(["categorical"] * 3, [3, 3, 3], seed=5)
    apart = (train.X[:, 0] + train.X[:, 1]) % 3 > 0
    seen = edfa.Table(train.frame[apart], train.schema, part="train", fitted=train.encoder)
    people = People(seen.X[::5], Background.of(train, model))
    free = find_recourse(people, make(seen))
    tied = find_recourse(people, make(seen), rules=Rules(together=(("f0", "f1"),)))
    after, tied_after = free.rows(), tied.rows()
    assert ((after[:, 0] + after[:, 1]) % 3 == 0).any()
    assert len(tied) > 10
    assert ((tied_after[:, 0] + tied_after[:, 1]) % 3 > 0).all()


def test_weights_change_the_order_and_not_the_plans(german):
    easy, hard = search(german), search(german, difficulty={"credit_amount": 5, "duration": 1})
    assert all(set(as_sets(easy, i)) == set(as_sets(hard, i)) for i in range(60))
    column = german[0].schema.index("credit_amount")
    first = [~np.isnan(p.to[p.first[p.legal], column]) for p in (easy, hard)]
    assert first[1].sum() < first[0].sum()
    touched = ~np.isnan(easy.to[:, column]) & (easy.l0 == 1)
    key = {(int(i), v.tobytes()): e for i, v, e in zip(hard.of, hard.to, hard.effort, strict=True)}
    ratio = [
        key[int(i), v.tobytes()] / e
        for i, v, e in zip(easy.of[touched], easy.to[touched], easy.effort[touched], strict=True)
    ]
    assert np.allclose(ratio, 4)


def test_a_value_that_is_no_measurement_is_neither_proposed_nor_moved_up(load_real):
    table = load_real("heloc", cap=2000)
    ways = {f.name: "up" if j % 3 else "free" for j, f in enumerate(table.schema)}
    features = tuple(
        replace(f, change=ways[f.name], monotone=None, per_year=0, takes="") for f in table.schema
    )
    table = edfa.Table.from_frame(
        table.frame, replace(table.schema, features=features, rules=Rules())
    )
    model = edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)
    states = [np.isin(table.test.X[:, j], c.slots) for j, c in enumerate(table.encoder.columns)]
    rows = np.flatnonzero(np.stack(states).any(axis=0))[:40]
    people = People(table.test.X[rows], Background.of(table.train, model))
    plans = find_recourse(people, Nearest(table.train))
    assert len(plans) > 20
    for j, (column, feature) in enumerate(zip(table.encoder.columns, table.schema, strict=True)):
        changed = ~np.isnan(plans.to[:, j])
        assert not np.isin(plans.to[changed, j], column.slots).any()
        if feature.change in ("up", "down"):
            assert not np.isin(people.X[plans.of[changed], j], column.slots).any()


def test_rules_come_back_from_json():
    mine = Rules(
        ("a",), ("b",), {"b": 2}, {"c": 0.5}, {"b": "up"}, {"b": (0, 1)}, {"d": ("x",)}, 2, 0.6
    )
    assert Rules.from_json(mine.to_json()) == mine
    more = Rules(forbidden=(("housing", "own", "rent"),), together=(("a", "b"),), reading="paper")
    assert Rules.from_json(more.to_json()) == more


def test_rules_of_an_older_edfa_or_a_damaged_file_are_unreadable():
    text = Rules(locked=("purpose",), max_changes=2).to_json()
    for damaged in (
        "",
        "{}",
        "null",
        "3",
        '"text"',
        "[]",
        "[[1]]",
        "[" * 100_000,
        text[:-1],
        text[:20],
        "\x00",
    ):
        with pytest.raises(UnreadableError, match=r"^rules: this is not what to_json writes$"):
            Rules.from_json(damaged)
    with pytest.raises(UnreadableError, match=r"^rules: version 0 cannot be read, only 1$"):
        Rules.from_json(json.dumps(json.loads(text) | {"version": 0}))
    assert Rules.from_json('{"version": 1}') == Rules(), "what is left out has its default"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lockd": ["purpose"]}, "rules.lockd: no such key; did you mean 'locked'?"),
        ({"locked": 3}, "rules.locked: "),
        ({"max_changes": "many"}, "rules.max_changes: "),
        ({"max_changes": 0}, "max_changes: at least 1, not 0"),
        ({"min_probability": float("nan")}, "min_probability: from 0"),
        ({"ranges": {"duration": [9, 3]}}, "ranges.duration: the first number"),
        (
            {"directions": {"duration": "left"}},
            "rules.directions.duration: 'left' is not one of up, down",
        ),
    ],
)
def test_values_from_json_obey_the_rules_of_the_constructor(given, words):
    with pytest.raises(SettingError) as caught:
        Rules.from_json(json.dumps({"version": 1} | given))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
