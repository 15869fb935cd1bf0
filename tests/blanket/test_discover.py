import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from random_worlds import random_mechanisms, random_network

import edfa
from edfa import Blanket, discover
from edfa.blanket import Search, compare, stability
from edfa.blanket.sources import open_source
from edfa.data.synthetic import credit_story
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    SettingError,
    TargetError,
    UnknownNameError,
)

STORY = credit_story()


@pytest.mark.parametrize("method", ["hiton-mb", "bamb", "eamb", "iamb"])
def test_the_credit_story_is_found(method):
    blanket = discover(STORY.table(20_000), method)
    assert {c: set(s) for c, s in blanket.units.items()} == {
        "savings": set(),
        "late_payment": {"wage_came_late"},
    }
    assert set(blanket.pc) == {"savings", "late_payment"}
    assert blanket.spouses == ("wage_came_late",)
    assert set(blanket.features) == {"savings", "late_payment", "wage_came_late"}
    assert (len(blanket), "savings" in blanket, "telephone" in blanket) == (3, True, False)
    assert blanket.n == 20_000


def test_evidence_is_the_weakest_test_that_was_passed():
    table = STORY.table(20_000)
    blanket = discover(table)
    spouse = blanket.evidence["wage_came_late"]
    assert "late_payment" in spouse.given, "a spouse's evidence is its collider"
    assert set(blanket.evidence) == set(blanket.features)
    for evidence in blanket.evidence.values():
        assert evidence.p <= blanket.alpha
        assert evidence.effect >= 0.001
    assert blanket.separating["telephone"] == ()
    assert blanket.separating["employment"] == ("savings",)


def test_any_feature_can_be_the_target():
    table = STORY.table(20_000)
    assert set(discover(table, target="savings").features) == {"employment", "repays"}
    assert discover(table, target="telephone").features == ()


def test_bare_frames_of_every_kind_work():
    frame = STORY.sample(8000)
    expected = discover(frame, target="repays")
    assert discover(pl.from_pandas(frame), target="repays") == expected
    coded = frame.apply(lambda c: pd.factorize(c, sort=True)[0])
    assert discover(coded, target="repays").units == expected.units


def test_a_number_and_its_word_are_one_level():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 400)
    mixed = pd.Series([int(v) if i % 2 else str(v) for i, v in enumerate(y)], dtype=object)
    blanket = discover(pd.DataFrame({"x": mixed, "y": np.where(y, "a", "b")}), target="y")
    assert blanket.features == ("x",)


def test_a_continuous_target_is_cut_on_request():
    world = random_mechanisms(8, seed=1)
    name = next(
        f.name for f in world.schema() if f.kind == "continuous" and world.graph.blanket(f.name)
    )
    frame = world.sample(5000)
    with pytest.raises(TargetError, match=f"target '{name}' is continuous; .*bins=5"):
        discover(frame, target=name)
    assert set(discover(frame, target=name, bins=4).features) & set(world.graph.blanket(name))
    with pytest.raises(SettingError, match="two bins at least, not 1"):
        discover(frame, target=name, bins=1)


FRAME = STORY.sample(100)
TWICE = FRAME.copy()
TWICE.insert(0, "repays", "yes", allow_duplicates=True)

BAD = [
    ("few rows", FRAME.iloc[:20], {}, EmptyTableError, "20 rows are too few .* 30 are needed"),
    ("constant target", FRAME.assign(repays="yes"), {}, TargetError, "'repays' is constant"),
    ("target twice", TWICE, {}, ColumnError, "'repays' appears 2 times"),
    ("no such target", FRAME, {"target": "repay"}, UnknownNameError, "did you mean 'repays'"),
    ("no target", FRAME, {"target": None}, TargetError, "needs to be told its target"),
    ("alpha", FRAME, {"alpha": 1.0}, SettingError, "alpha is a level between 0 and 1"),
    ("alpha zero", FRAME, {"alpha": 0}, SettingError, "alpha is a level between 0 and 1"),
    ("recover", FRAME, {"recover": 2}, SettingError, "recover is a share"),
    ("condition", FRAME, {"max_condition": 0}, SettingError, "max_condition is at least 1"),
    (
        "method",
        FRAME,
        {"method": "hiton"},
        UnknownNameError,
        "no method named 'hiton'; did you mean 'hiton-mb'",
    ),
    ("test", FRAME, {"test": "g3"}, UnknownNameError, "no test named 'g3'; known: auto, g2"),
    ("symmetry", FRAME, {"symmetry": "xor"}, UnknownNameError, "no symmetry named 'xor'"),
    (
        "lists",
        FRAME.assign(repays=[["yes"]] * 100),
        {},
        DataError,
        "holds neither numbers nor words",
    ),
    ("not a frame", [1, 2], {}, DataError, "a data frame is needed"),
]


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_bad_input(frame, options, error, message):
    with pytest.raises(error, match=message) as caught:
        discover(frame, **{"target": "repays"} | options)
    assert "\n" not in str(caught.value)


def test_json_text_and_html():
    blanket = discover(STORY.table(5000))
    assert Blanket.from_json(blanket.to_json()) == blanket
    assert json.loads(blanket.to_json())["version"] == 1
    lines = str(blanket).splitlines()
    assert lines[0] == "repays: 3 features in 2 units"
    assert any(line.endswith("└── wage_came_late") for line in lines)
    html = Blanket("<y>", {"<a>": ("<b>",)}, unattached=("<c>",))._repr_html_()
    assert html.count("&lt;b&gt;") >= 1
    assert "<b>" not in html
    assert blanket._repr_html_().count("<tr>") == 4, "a row for each member, and the head"
    assert "behind no child" in str(Blanket("y", {}, unattached=("c",)))


@pytest.mark.parametrize("method", ["hiton-mb", "bamb", "eamb", "iamb"])
def test_progress_is_told(method):
    steps = []
    discover(STORY.table(3000), method, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] == len(steps)


def test_stability_counts_half_samples():
    shares = stability(STORY.table(4000), B=10, seed=1)
    assert shares.members["late_payment"] == 1.0
    assert shares.pairs["late_payment", "wage_came_late"] >= 0.8
    assert shares.members.get("telephone", 0) <= 0.2
    assert shares.runs == 10
    steps = []
    stability(STORY.table(400), B=3, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert stability(STORY.table(4000), B=10, seed=1) == shares
    assert set(shares.frame()["member"]) >= {"savings", "late_payment"}
    with pytest.raises(SettingError, match="at least one half-sample"):
        stability(STORY.table(100), B=0)


def test_methods_side_by_side_share_their_tests():
    table = random_network(10, seed=5).table(4000)
    comparison = compare(table)
    alone = {method: discover(table, method) for method in comparison.blankets}
    for method, blanket in comparison.blankets.items():
        assert alone[method].units == blanket.units
    shared = max(b.tests for b in comparison.blankets.values())
    assert shared < sum(b.tests for b in alone.values())
    frame = comparison.frame()
    assert list(frame) == ["hiton-mb", "bamb", "eamb", "iamb"]
    for method, blanket in comparison.blankets.items():
        assert set(frame.index[frame[method] == "pc"]) == set(blanket.pc)


@pytest.mark.parametrize("name", ["german", "adult", "taiwan"])
def test_real_tables_with_copies_codes_and_wide_columns(name):
    table = edfa.load(name, cap=4000)
    blanket = discover(table.train)
    assert 1 <= len(blanket) < len(table.schema)
    assert set(blanket.features) <= set(table.schema.names)


def test_what_is_found_again_is_the_truth():
    """Mixed networks with a known blanket, on average over targets."""
    scores = []
    for seed in range(300, 304):
        world = random_mechanisms(12, seed=seed)
        frame = world.sample(10_000, seed=seed)
        targets = [f.name for f in world.schema() if f.kind == "categorical"][:3]
        tester = Search().tester(open_source(frame, targets[0], None, False)[0])
        for target in targets:
            blanket = Search().discover(tester, target)
            truth, members = set(world.graph.blanket(target)), set(blanket.features)
            hits = 2 * len(truth & members)
            scores.append(hits / (len(truth) + len(members)) if truth or members else 1.0)
    assert np.mean(scores) > 0.9


@pytest.mark.parametrize("method", ["hiton-mb", "bamb", "eamb", "iamb"])
def test_the_published_algorithms_say_what_they_rest_on(method):
    """Parity mode records no separating set for some spouses; their evidence is a test all the
    same.
    """
    blanket = edfa.discover(edfa.load("german").train, method, parity=True)
    assert set(blanket.evidence) == set(blanket.features)
