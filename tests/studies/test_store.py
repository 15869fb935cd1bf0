"""The store: written once, whole or not, by several at a time, in SQLite and in PostgreSQL."""

import json
import multiprocessing
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa
from toy_work import toy_cell, toy_cells

from edfa.errors import DataError, SettingError, UnavailableError, UnreadableError
from edfa_studies.cells import Cell, Part
from edfa_studies.store import Store

ROWS = {"step": [{"step": 0, "cost": 0.1}, {"step": 1, "cost": 0.2}]}


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a new store goes."""
    if request.param == "sqlite":
        yield str(tmp_path / "study.sqlite")
        return
    url = request.getfixturevalue("postgres")
    yield url
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS study_result, study_cell, study_note"))
    engine.dispose()


@pytest.fixture
def store(place):
    with Store.open(place) as opened:
        yield opened


def test_cells_are_open_then_done_or_failed(store):
    first, second, third = toy_cells(3)
    store.add([first, second, third])
    store.add([first])
    store.save(first, ROWS, 1.5)
    store.fail(second, "Traceback: no", 0.5)
    store.fail(second, "Traceback: no again", 0.5, attempts=2)
    status = store.status().set_index("key")
    assert status.loc[[c.key for c in (first, second, third)], "status"].tolist() == [
        "done",
        "failed",
        "open",
    ]
    assert status.loc[second.key, "error"] == "Traceback: no again"
    assert status.loc[second.key, "attempts"] == 3
    assert status.loc[first.key, "seconds"] == 1.5
    assert status["seed"].tolist() == [0, 1, 2]
    assert (store.done(), store.failed()) == ({first.key}, {second.key})
    store.save(second, ROWS, 1.0)
    assert store.failed() == set()
    assert store.status().set_index("key")["error"].isna().all()


def test_a_done_cell_is_written_once(store):
    cell = toy_cell()
    store.save(cell, ROWS, 1.0)
    before = store.frame("toy", "step"), store.status()
    store.save(cell, {"step": [{"step": 9}], "other": [{"a": 1}]}, 9.0)
    store.fail(cell, "Traceback", 3.0)
    store.add([cell])
    assert store.frame("toy", "step").equals(before[0])
    assert store.status().equals(before[1])
    assert store.frame("toy", "other").empty


def test_frame_puts_names_first_and_is_in_one_order(store):
    parts = [Part(name, name) for name in ("german", "xgb", "hiton-mb", "edfa", "nearest")]
    settings = {"reading": "paper", "promise": {"name": "advisor", "alphas": [0.2]}}
    cells = [Cell("toy", *parts, seed=seed, settings=settings) for seed in (3, 1, 2)]
    lower, upper = (Cell("toy", Part(name, name), *parts[1:]) for name in ("adult", "Zoo"))
    for cell in (cells[0], lower, cells[2], upper, cells[1]):
        store.save(cell, {"step": [{"step": 0, "own": cell.seed}, {"step": 1}], "empty": []}, 1.0)
    store.add([toy_cell(77)])
    frame = store.frame("toy", "step")
    names = [
        "data",
        "predictor",
        "blanket",
        "policy",
        "searcher",
        "seed",
        "reading",
        "promise",
        "cell",
        "step",
        "own",
    ]
    assert frame.columns.tolist() == names
    assert frame["data"].unique().tolist() == ["Zoo", "adult", "german"]
    assert frame.query("data == 'german'")["seed"].tolist() == [1, 1, 2, 2, 3, 3]
    assert frame.query("data == 'german' and step == 0")["own"].tolist() == [1, 2, 3]
    assert frame.query("step == 1")["own"].isna().all()
    assert frame.query("seed == 1")["promise"].unique().tolist() == ["advisor"]
    assert frame.query("data == 'adult'")["reading"].unique().tolist() == [""]
    assert store.frame("toy", "step", keys=[cells[1].key])["cell"].tolist() == [cells[1].key] * 2
    assert store.frame("toy", "empty").columns.tolist() == names[:9]
    assert store.frame("growth", "step").empty


def test_numbers_that_json_does_not_have(store, place):
    rows = [
        {
            "tau": -np.inf,
            "risk": np.float32("nan"),
            "never": np.nan,
            "text": "inf",
            "known": ["é", np.int64(1)],
        },
        {"tau": np.float64(0.5), "risk": 0.25, "never": None, "text": "said", "known": [np.nan]},
        {"tau": np.inf, "risk": 1, "never": np.nan, "text": None, "known": []},
    ]
    store.save(toy_cell(), {"rule": rows}, 1.0)
    frame = store.frame("toy", "rule")
    assert frame["tau"].tolist() == [-np.inf, 0.5, np.inf]
    np.testing.assert_array_equal(frame["risk"].to_numpy(), [np.nan, 0.25, 1.0])
    assert frame["never"].dtype == "float64"
    assert frame["never"].isna().all()
    assert frame["text"].tolist()[:2] == ["inf", "said"]
    assert frame["known"].tolist() == [["é", 1], [None], []]
    with store.engine.connect() as connection:
        text = connection.execute(sa.text("SELECT columns FROM study_result")).scalar()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_what_is_not_json_is_refused_and_nothing_written(store):
    with pytest.raises(DataError, match="a result holds something of type object"):
        store.save(toy_cell(), {"step": [{"a": 1}], "end": [{"thing": object()}]}, 1.0)
    assert store.done() == set()
    assert store.frame("toy", "step").empty


def test_names_are_those_of_the_last_study(store):
    cell = toy_cell()
    store.save(cell, ROWS, 1.0)
    parts = [Part(f"my {name}", name) for name in ("german", "xgb", "hiton-mb", "edfa", "nearest")]
    renamed = Cell("toy", *parts, seed=0, settings=dict(cell.settings))
    store.add([renamed])
    assert store.done() == {renamed.key}
    assert store.frame("toy", "step")["policy"].unique().tolist() == ["my edfa"]


def test_notes(store):
    store.note("title", "A study")
    store.note("versions", {"edfa": "1.0"})
    store.note("title", "Another")
    assert store.notes == {"title": "Another", "versions": {"edfa": "1.0"}}


def write_some(place, first, barrier):
    """In a process of its own: half of its cells are written by the other one too."""
    barrier.wait(30)
    with Store.open(place) as store:
        for seed in range(first, first + 40):
            store.save(toy_cell(seed), {"step": [{"step": 0, "own": seed}]}, 1.0)


def test_two_processes_write_at_once_and_no_row_is_lost(place):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)  # the store is begun by both at once, too
    writers = [
        context.Process(target=write_some, args=(place, first, barrier)) for first in (0, 20)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(600)
    assert [writer.exitcode for writer in writers] == [0, 0]
    with Store.open(place) as store:
        assert store.frame("toy", "step")["own"].tolist() == list(range(60))
        assert (store.status()["attempts"] == 1).all()


def test_a_full_disk_is_one_line_and_what_was_written_stays(tmp_path):
    path = tmp_path / "study.sqlite"
    with Store.open(path) as store:
        store.save(toy_cell(0), ROWS, 1.0)

        @sa.event.listens_for(store.engine, "checkout")
        def limit(connection, *_):
            connection.execute("PRAGMA max_page_count = 40")

        def fill():
            for seed in range(1, 100):
                store.save(toy_cell(seed), {"step": [{"text": "x" * 20_000}]}, 1.0)

        with pytest.raises(
            UnavailableError, match=r"study\.sqlite cannot be written: database or disk is full"
        ) as raised:
            fill()
        assert "\n" not in str(raised.value)
        assert 2 < len(store.done()) < 100
        assert (
            set(store.frame("toy", "step")["cell"]) == store.done()
        )  # no cell is done without its rows


def test_a_store_that_may_not_be_written(tmp_path):
    path = tmp_path / "study.sqlite"
    with Store.open(path) as store:
        store.save(toy_cell(0), ROWS, 1.0)

        @sa.event.listens_for(store.engine, "checkout")
        def forbid(connection, *_):
            connection.execute("PRAGMA query_only = ON")

        with pytest.raises(
            UnavailableError, match="cannot be written: attempt to write a readonly database"
        ):
            store.save(toy_cell(1), ROWS, 1.0)
        assert store.done() == {toy_cell(0).key}


def test_what_is_no_store(tmp_path):
    (tmp_path / "notes.txt").write_text("These are notes, and quite long ones. " * 50)
    with pytest.raises(
        UnreadableError,
        match=r"notes\.txt is not a database of edfa, or damaged \(written\): file is not a database",
    ):
        Store.open(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("These are notes")
    with pytest.raises(UnavailableError, match="unable to open database file"):
        Store.open(tmp_path)
    with pytest.raises(UnavailableError, match="cannot be written: Not a directory"):
        Store.open(tmp_path / "notes.txt" / "below" / "study.sqlite")
    with pytest.raises(SettingError, match="not mysql"):
        Store.open("mysql://me@here/study")
    with pytest.raises(SettingError, match="a database is a path"):
        Store.open("://")
    with Store.open(tmp_path / "old.sqlite") as store, store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE study_note SET value = '99'"))
    with pytest.raises(UnreadableError, match="has version 99; this version of edfa reads 1"):
        Store.open(tmp_path / "old.sqlite")


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(UnavailableError, match="cannot be written") as raised:
        Store.open(f"postgresql://edfa:secret@/study?host={tmp_path}")
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_large_frame_is_whole(tmp_path):
    path = tmp_path / "study.sqlite"
    names = [f"measure_{i}" for i in range(10)]
    random = np.random.default_rng(0)
    with Store.open(path) as store:
        store.add(cells := toy_cells(2_000))
        values = {name: random.random(40).tolist() for name in names}
        text = json.dumps({"step": list(range(40)), **values})
        with sqlite3.connect(path) as direct:
            direct.executemany(
                "INSERT INTO study_result VALUES (?, 'step', ?)", [(c.key, text) for c in cells]
            )
            direct.execute("UPDATE study_cell SET status = 'done'")
        direct.close()
        frame = store.frame("toy", "step")
    assert frame.shape == (80_000, 9 + 11)
    assert frame["measure_3"].tolist() == values["measure_3"] * 2_000
