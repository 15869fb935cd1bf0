"""Study files: what is wrong with one is said before anything runs; what is right becomes the same
cells every time.
"""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import edfa
from edfa.errors import SchemaError, SettingError, UnknownNameError, UnreadableError
from edfa_studies.cells import Cell
from edfa_studies.config import (
    MEASURES,
    SHIPPED,
    cells_of,
    expand,
    parse_study,
    read_study,
    select,
)
from edfa_studies.estimate import cell_seconds, estimate, measured_seconds, product_seconds
from edfa_studies.products import products

GROWTH = '[[grid]]\nmeasure = "growth"\ndata = ["german"]\n'
PROMISE = '[[grid]]\nmeasure = "promise"\ndata = ["german"]\n'


def parse(text, folder=Path()):
    return parse_study(text, folder / "mine.toml")


def one(text):
    (cell,) = expand(parse(text))
    return cell


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_studies_are_right(name):
    study = read_study(name)
    cells = expand(study)
    assert study.name == name
    assert study.title
    assert all(grid.title for grid in study.grids)
    assert len({cell.key for cell in cells}) == len(cells)
    assert {"sets", "growth", "promise"} <= {cell.measure for cell in cells}
    assert [Cell.from_json(cell.to_json()).key for cell in cells[:20]] == [
        cell.key for cell in cells[:20]
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_tables_can_tell_the_cells_of_the_shipped_studies_apart(name):
    cells = expand(read_study(name))
    assert len({tuple(cell.description.items()) for cell in cells}) == len(cells)


def test_the_paper_has_every_cross_of_its_tables():
    cells = expand(read_study("paper"))
    assert {cell.data.name for cell in cells} == set(edfa.data.catalog.NAMES)
    assert {cell.settings["cap"] for cell in cells} == {50_000}

    def kinds(part, **chosen):
        text = ",".join(f"{key}={value}" for key, value in chosen.items())
        return {getattr(cell, part).name for cell in select(cells, text)}

    policies = {"edfa", "edfa-random", "dime", "eddi", "gsmrl", "greedy", "random", "survival"}
    for data in edfa.data.catalog.NAMES:
        assert kinds("blanket", measure="growth", data=data, policy="edfa") == {
            "eamb",
            "hiton-mb",
            "bamb",
        }
        assert kinds("policy", measure="growth", data=data, predictor="xgb-masked") == policies
        assert kinds("policy", measure="growth", data=data, predictor="ftt") >= policies
        five = {"nearest", "generative", "dice", "nice", "probe"}
        assert kinds(
            "searcher", measure="promise", data=data, predictor="xgb", promise="paper"
        ) == five | {"survival"}
        assert kinds("searcher", measure="promise", data=data, predictor="ftt") == five
    assert kinds("data", predictor="bn") == set(edfa.data.catalog.NAMES)
    assert kinds("predictor", data="adult", policy="edfa-structural") == {"xgb", "ftt"}


def test_smoke_measures_everything_that_can_be_measured():
    assert {cell.measure for cell in expand(read_study("smoke"))} == set(MEASURES)


def test_every_measure_is_one():
    measures = pytest.importorskip("edfa_studies.measures")
    assert set(MEASURES) == set(measures.MEASURES)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("title = =", SchemaError, "mine.toml: not a TOML file"),
        ("", SchemaError, "mine.toml: grid: is missing"),
        ("grid = 3", SchemaError, "mine.toml: grid: .*list, not 3"),
        ("grid = []", SchemaError, "mine.toml: grid: .*at least 1 item"),
        ("seed = 3\n" + GROWTH, SchemaError, "mine.toml: seed: no such key; did you mean 'seeds'?"),
        ("title = 3\n" + GROWTH, SchemaError, "mine.toml: title: .*string, not 3"),
        ('[[grid]]\ndata = ["german"]', SchemaError, "mine.toml: grid 1.measure: is missing"),
        (
            '[[grid]]\nmeasure = "grwth"',
            UnknownNameError,
            "grid 1.measure: no measure named 'grwth'.*'growth'",
        ),
        ('[[grid]]\nmeasure = "growth"', SchemaError, "mine.toml: grid 1.data: is missing"),
        (GROWTH + "pepole = 3", SchemaError, "grid 1.pepole: no such key; did you mean 'people'?"),
        (GROWTH + 'people = "few"', SchemaError, "grid 1.people: .*integer.*not 'few'"),
        (GROWTH + "people = 0", SchemaError, "grid 1.people: .*greater than or equal to 1, not 0"),
        (GROWTH + "cap = -1", SchemaError, "grid 1.cap: .*greater than or equal to 0, not -1"),
        (GROWTH + "budget = 0", SchemaError, "grid 1.budget: .*greater than 0, not 0"),
        (GROWTH + "delta = 1.5", SchemaError, "grid 1.delta: .*less than 1, not 1.5"),
        (GROWTH + 'reading = "crad"', SchemaError, "grid 1.reading: 'crad' is not one of.*'card'"),
        (GROWTH + "policy = []", SchemaError, "grid 1.policy: an empty list"),
        (
            GROWTH + 'policy = ["edaf"]',
            UnknownNameError,
            "grid 1.policy: no policy named 'edaf'.*'edfa'",
        ),
        (
            GROWTH + 'searcher = ["dise"]',
            UnknownNameError,
            "grid 1.searcher: no searcher named 'dise'.*'dice'",
        ),
        (GROWTH + 'predictor = ["xbg"]', UnknownNameError, "no predictor named 'xbg'.*'xgb'"),
        (
            GROWTH + 'blanket = ["hitonmb"]',
            UnknownNameError,
            "no blanket named 'hitonmb'.*'hiton-mb'",
        ),
        (
            GROWTH + GROWTH.replace("german", "germn"),
            UnknownNameError,
            "grid 2.data: no data set named 'germn'",
        ),
        (GROWTH + 'policy = ["fixed"]', UnknownNameError, "no policy named 'fixed'"),
        (
            GROWTH + 'promise = ["paper"]',
            SchemaError,
            "grid 1.promise: the measure 'growth' does not use it",
        ),
        (
            GROWTH.replace("growth", "sets") + 'policy = ["edfa"]',
            SchemaError,
            "it uses data, blanket",
        ),
        (PROMISE + 'promise = ["papr"]', UnknownNameError, "no promise named 'papr'.*'paper'"),
        (
            PROMISE + 'promise = ["advisor"]',
            SchemaError,
            "grid 1.reading: the promise 'advisor' is about .* refused",
        ),
        (
            "[predictors]\nxgb = 3\n" + GROWTH,
            SchemaError,
            "predictors.xgb: .*dictionary, not 3",
        ),
        (
            '[predictors.a]\nof = "xgg"\n' + GROWTH,
            UnknownNameError,
            "predictors.a: no predictor named 'xgg'.*'xgb'",
        ),
        (
            '[predictors.a]\nof = "xgb"\nmod = "nan"\n' + GROWTH,
            SchemaError,
            "predictors.a.mod: no such key.*'mode'",
        ),
        (
            '[predictors.a]\nof = "xgb"\nmode = "nam"\n' + GROWTH,
            SchemaError,
            "predictors.a.mode: 'nam' is not one of",
        ),
        (
            '[predictors.xgb]\nn_estimators = "x"\n' + GROWTH,
            SchemaError,
            "predictors.xgb.n_estimators: .*integer",
        ),
        (
            '[predictors.xgb]\nthreshold = "half"\n' + GROWTH,
            SchemaError,
            "threshold: a probability .* not 'half'",
        ),
        (
            "[predictors.xgb]\nthreshold = 2\n" + GROWTH,
            SchemaError,
            "threshold: a probability .* not 2",
        ),
        (
            "[predictors.xgb]\nfavourable = 1\n" + GROWTH,
            SchemaError,
            "predictors.xgb.favourable: no such key",
        ),
        (
            '[policies.edfa]\nblanket = "x"\n' + GROWTH,
            SchemaError,
            "policies.edfa.blanket: no such key",
        ),
        (
            '[policies.mine]\nrank = "cost"\n' + GROWTH,
            UnknownNameError,
            "policies.mine: no policy named 'mine'",
        ),
        (
            '[blankets.b]\nof = "eamb"\nalfa = 0.1\n' + GROWTH,
            SchemaError,
            "blankets.b.alfa: no such key.*'alpha'",
        ),
        (
            "[searchers.nearest]\nmax_change = 2\n" + GROWTH,
            SchemaError,
            "searchers.nearest.max_change: .*'max_changes'",
        ),
        (
            "[promises.paper]\nalpha = 0.2\n" + PROMISE,
            SchemaError,
            "promises.paper.alpha: no such key.*'alphas'",
        ),
        (
            "[promises.paper]\nalphas = [1.2]\n" + PROMISE,
            SettingError,
            "promise paper: alpha lies between 0 and 1",
        ),
        (
            "[promises.paper]\nalphas = []\n" + PROMISE,
            SchemaError,
            "promise paper: at least one of alphas",
        ),
        (
            '[promises.paper]\nmethods = ["pc"]\n' + PROMISE,
            SettingError,
            "promise paper: bound is not 'pc'",
        ),
        (
            '[promises.paper]\nsignal = "surval"\n' + PROMISE,
            UnknownNameError,
            "no signal named 'surval'.*'survival'",
        ),
        (
            '[promises.paper]\nreference = "end"\n' + PROMISE,
            SchemaError,
            "promises.paper.reference: 'end' is not one",
        ),
        (
            '[promises.paper]\ntarget = "early"\n' + PROMISE,
            SettingError,
            "target='early' needs anchor=",
        ),
        (
            '[promises.paper]\ntarget = "refused"\n' + PROMISE,
            SettingError,
            "bound='paper' goes with target='all'",
        ),
        (
            '[data.mine]\nof = "t.csv"\n' + GROWTH,
            SchemaError,
            r"data: a list of names; .*\[tables.NAME\]",
        ),
        ('[tables.mine]\nof = "t.csv"\n' + GROWTH, SchemaError, "tables.mine.card: is missing"),
        (
            '[tables.a]\nof = "t.csv"\ncard = "t.toml"\nx = 1\n' + GROWTH,
            SchemaError,
            "tables.a.x: no such key",
        ),
        (
            '[tables.a]\nof = "t.csv"\ncard = "t.toml"\n' + GROWTH,
            UnreadableError,
            "tables.a: there is no file .*t.csv",
        ),
        (
            GROWTH + 'predictor = ["bn"]\nreading = "card"',
            SchemaError,
            "grid 1.predictor: bn cannot obey the directions on the card of german",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text, error, message):
    with pytest.raises(error, match=message) as caught:
        expand(parse(text))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine.toml: ")


def test_an_unknown_study_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="no study named 'papr'; did you mean 'paper'"):
        read_study("papr")
    with pytest.raises(UnreadableError, match="there is no file"):
        read_study(tmp_path / "mine.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(UnreadableError, match=r"latin\.toml is not UTF-8"):
        read_study(tmp_path / "latin.toml")


def test_keys_at_the_top_hold_for_all_grids_unless_they_say_otherwise():
    study = parse(
        'data = ["german"]\npeople = 7\nseeds = 2\n[[grid]]\nmeasure = "growth"\n'
        + GROWTH
        + "people = 8"
    )
    assert [grid.people for grid in study.grids] == [7, 8]
    assert [grid.seeds for grid in study.grids] == [2, 2]
    assert [grid.data for grid in study.grids] == [("german",)] * 2
    top = parse(
        'policy = "dime"\n[[grid]]\nmeasure = "sets"\ndata = "german"'
    )  # not for a measure that has none
    assert expand(top)[0].policy.name == "-"


def test_a_grid_is_the_cross_of_its_lists():
    study = parse(
        GROWTH + 'predictor = ["xgb", "ftt"]\nblanket = ["eamb", "bamb", "iamb"]\nseeds = 2'
    )
    cells = expand(study)
    assert len(cells) == 12
    assert [(c.seed, c.predictor.name, c.blanket.name) for c in cells[:4]] == [
        (0, "xgb", "eamb"),
        (0, "xgb", "bamb"),
        (0, "xgb", "iamb"),
        (0, "ftt", "eamb"),
    ]
    assert [cell.seed for cell in cells] == [0] * 6 + [1] * 6


def test_the_first_seed_of_every_grid_comes_first():
    """So that a study cut short is a smaller study, not half of one."""
    cells = expand(parse(GROWTH + "seeds = 3\n" + PROMISE + "seeds = 2"))
    assert [(c.measure, c.seed) for c in cells] == [
        ("growth", 0),
        ("promise", 0),
        ("growth", 1),
        ("promise", 1),
        ("growth", 2),
    ]


def test_cells_say_all_that_their_result_depends_on():
    shared = {"budget": 0.5, "cap": 0, "split": 3, "reading": "card"}
    top = (
        'budget = 0.5\ncap = 0\nsplit = 3\nreading = "card"\npeople = '
        "9\ncalibration = 8\npromise_test = 7\n"
    )
    growth = one(top + GROWTH)
    assert growth.settings == shared | {"people": 9}
    assert one(top + GROWTH.replace("growth", "examples")).settings == growth.settings
    sets = one(top + GROWTH.replace("growth", "sets") + "seeds = 5")
    assert sets.settings == shared
    assert {sets.predictor.of, sets.policy.of, sets.searcher.of} == {"-"}
    promise = one(top + PROMISE + "delta = 0.1")
    assert promise.settings == shared | {
        "calibration": 8,
        "test": 7,
        "delta": 0.1,
        "promise": {
            "name": "paper",
            "alphas": [0.2, 0.3],
            "methods": ["paper", "cp", "wsr"],
            "signal": "uncertainty",
            "reference": "trajectory_end",
            "target": "all",
        },
    }


def test_a_promise_of_ones_own_is_the_papers_with_changes():
    text = '[promises.mine]\nalphas = [0.1]\nmethods = ["hb"]\ngrid = 50\n'
    promise = one(text + PROMISE + 'promise = "mine"').settings["promise"]
    assert promise["name"] == "mine"
    assert (promise["alphas"], promise["methods"], promise["grid"]) == ([0.1], ["hb"], 50)
    assert promise["signal"] == "uncertainty"


def test_the_advisors_signal_goes_with_the_searcher():
    text = PROMISE + 'promise = "advisor"\nreading = "card"\nsearcher = ["nearest", "survival"]'
    cells = expand(parse(text))
    assert [cell.settings["promise"]["signal"] for cell in cells] == ["uncertainty", "survival"]


def test_names_stand_for_what_the_spec_says():
    names = ["edfa-random", "edfa-no-pc-priority", "edfa-structural"]
    cells = expand(parse(GROWTH + f"policy = {json.dumps(names)}\nsearcher = ['generative']"))
    assert [cell.policy.content for cell in cells] == [
        {"of": "random-blanket", "settings": {}},
        {"of": "edfa", "settings": {"pc_first": False}},
        {"of": "edfa", "settings": {"rank": "cost"}},
    ]
    assert cells[0].searcher.of == "cvae"
    variant = one(
        '[policies.a]\nof = "edfa-structural"\npc_first = false\n' + GROWTH + 'policy = "a"'
    )
    assert variant.policy.content == {"of": "edfa", "settings": {"rank": "cost", "pc_first": False}}


def test_cells_of_two_grids_are_one_whatever_they_are_called():
    section = '[policies.cheapest]\nof = "edfa"\nrank = "cost"\n'
    study = parse(
        section
        + GROWTH
        + 'policy = ["edfa", "edfa-structural"]\n'
        + GROWTH
        + 'policy = ["cheapest"]'
    )
    cells = expand(study)
    assert [cell.policy.name for cell in cells] == ["edfa", "edfa-structural"]
    assert [len(list(cells_of(study, grid))) for grid in study.grids] == [2, 1]


def test_keys_depend_on_no_name_and_no_way_of_writing():
    plain = one(GROWTH + "budget = 1").key
    assert one(GROWTH + "budget = 1.0").key == plain
    assert one("budget = 1.0\n" + GROWTH.replace('["german"]', '"german"')).key == plain
    a = one(
        '[predictors.a]\nof = "xgb"\nn_estimators = 20\nmode = "nan"\n' + GROWTH + 'predictor = "a"'
    )
    b = one(
        '[predictors.b]\nmode = "nan"\nn_estimators = 20.0\nof = "xgb"\n'
        + GROWTH
        + 'predictor = "b"'
    )
    assert a.key == b.key
    assert a.key != one(GROWTH).key
    assert one('title = "Mine"\n' + GROWTH + 'title = "Its grid"').key == one(GROWTH).key


def test_keys_are_the_same_in_another_process():
    code = (
        "from pathlib import Path; from edfa_studies.config import expand, parse_study; "
        f"print(expand(parse_study({GROWTH!r}, Path('mine.toml')))[0].key)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == one(GROWTH).key


def test_a_table_of_ones_own(tmp_path):
    table = edfa.load("german", cap=100)
    table.frame.to_csv(tmp_path / "rows.csv", index=False)
    table.schema.write(tmp_path / "card.toml")
    text = (
        '[tables.mine]\nof = "rows.csv"\ncard = '
        '"card.toml"\n[[grid]]\nmeasure = "growth"\ndata = "mine"\n'
    )
    (before,) = expand(parse(text, tmp_path))
    assert before.data.name == "mine"
    assert Path(before.data.of) == tmp_path / "rows.csv"
    assert Path(before.data.settings["card"]) == tmp_path / "card.toml"
    table.frame[:50].to_csv(tmp_path / "rows.csv", index=False)
    (after,) = expand(parse(text, tmp_path))
    assert after.key != before.key  # other rows are another cell
    (tmp_path / "card.toml").write_text("nothing")
    with pytest.raises(SchemaError, match=r"card\.toml"):
        parse(text, tmp_path)


def test_some_cells_alone():
    cells = expand(parse(GROWTH + 'policy = ["edfa", "dime"]\nseeds = 2\n' + PROMISE))
    assert {c.policy.name for c in select(cells, "measure=growth, policy=dime")} == {"dime"}
    assert len(select(cells, "policy=dime,policy=edfa,measure=growth")) == 4
    assert [c.seed for c in select(cells, "seed=1,policy=edfa")] == [1]
    assert [c.measure for c in select(cells, "promise=paper")] == ["promise"]
    assert select(cells, "") == cells
    with pytest.raises(
        UnknownNameError, match="no policy in this study named 'dme'; did you mean 'dime'"
    ):
        select(cells, "policy=dme")
    with pytest.raises(
        UnknownNameError, match="no key for --only named 'polcy'; did you mean 'policy'"
    ):
        select(cells, "polcy=dime")
    with pytest.raises(SettingError, match="pairs such as"):
        select(cells, "dime")
    with pytest.raises(SettingError, match="no cell of this study matches all of"):
        select(cells, "measure=promise,policy=dime")


def test_shared_work_is_counted_once():
    single = estimate(parse(GROWTH + 'predictor = "ftt"'))
    both = estimate(
        parse(GROWTH + 'predictor = "ftt"\n' + GROWTH + 'predictor = "ftt"\nsearcher = "nice"')
    )
    counts = {shared.kind: shared.count for shared in both.shared}
    assert counts == {"blanket": 1, "predictor": 1, "policy": 1, "trajectory": 1} or counts == {
        "blanket": 1,
        "predictor": 1,
        "trajectory": 1,
    }
    assert (both.cells, both.grids[0].cells, both.grids[1].new) == (2, 1, 1)
    cell = expand(parse(GROWTH + 'predictor = "ftt"\nsearcher = "nice"'))[0]
    assert both.seconds == pytest.approx(single.seconds + cell_seconds(cell))
    assert both.seconds == pytest.approx(sum(grid.seconds for grid in both.grids))


def test_a_cell_of_two_grids_counts_for_the_first():
    twice = estimate(parse(GROWTH + GROWTH))
    assert [(grid.cells, grid.new) for grid in twice.grids] == [(1, 1), (1, 0)]
    assert twice.grids[1].seconds == 0
    assert twice.cells == 1


def test_more_people_rows_and_questions_take_longer():
    def seconds(text):
        return estimate(parse(text)).seconds

    base = seconds(GROWTH)
    assert seconds(GROWTH + "people = 1000") > base
    assert seconds(GROWTH + "seeds = 3") > 2 * base
    assert seconds(GROWTH.replace("german", "adult")) > base
    assert seconds(GROWTH.replace("german", "adult") + "cap = 2000") < seconds(
        GROWTH.replace("german", "adult")
    )
    assert seconds(GROWTH + 'predictor = "ftt"') > base
    assert seconds(GROWTH + 'policy = "dime"') > base
    dime = GROWTH.replace("german", "adult") + 'policy = "dime"'
    assert seconds("[policies.dime]\ntrain_rows = 1000\n" + dime) < seconds(dime)


def test_times_of_cells_that_are_done_are_better_than_any_table():
    study = parse(GROWTH + "seeds = 3")
    cells = expand(study)
    row = {"measure": "growth", **cells[0].labels, "status": "done", "key": cells[0].key}
    status = pd.DataFrame(
        [
            row | {"seconds": 100.0},
            row | {"seconds": 300.0},
            row | {"seconds": 9.0, "status": "open"},
        ]
    )
    measured = measured_seconds(status)
    assert cell_seconds(cells[1], measured) == 200
    none = estimate(study)
    some = estimate(study, measured, done={cells[0].key}, made=lambda kind, key: True)
    assert (none.measured, none.done, some.measured, some.done) == (0, 0, 2, 1)
    assert some.seconds == 400
    assert "measured once" in none.basis
    assert some.basis == "2 of 2 open cells from cells like them that are done"


def test_what_the_cache_has_takes_no_time():
    study = parse(GROWTH)
    assert estimate(study, made=lambda kind, key: True).shared == ()
    assert estimate(study, made=lambda kind, key: kind == "blanket").shared[0].kind != "blanket"


@pytest.mark.parametrize("name", SHIPPED)
def test_every_cell_and_product_of_the_shipped_studies_has_a_time(name):
    for cell in expand(read_study(name)):
        assert cell_seconds(cell) > 0
        assert all(product_seconds(product) >= 0 for product in products(cell))
