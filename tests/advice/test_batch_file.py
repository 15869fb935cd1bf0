"""Whole files of people: every format, chunks, errors, and going on after a kill."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from advisors import german, part_way

import edfa
from edfa.advice.batch import COLUMNS, advise
from edfa.advice.batch_file import advise_file
from edfa.errors import ColumnError, DataError, EmptyTableError, SettingError, UnreadableError


@pytest.fixture(scope="module")
def people():
    """All of German credit, part way through."""
    table = edfa.load("german")
    encoder = table.encoder
    rows = part_way(german(), encoder.encode(table.frame))
    return encoder.decode(encoder.encode(table.frame)).astype(object).where(~np.isnan(rows), None)


@pytest.fixture(scope="module")
def told(people):
    """Their advice, all at once."""
    return advise(german().fitted, people)


WRITE = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".jsonl": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, force_ascii=False
    ),
    ".parquet": lambda frame, path: frame.infer_objects().to_parquet(path, index=False),
}


def read(path):
    """Advice from a file, plans as data."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return pd.DataFrame(rows)
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame.assign(
        plans=[json.loads(text) if isinstance(text, str) else None for text in frame["plans"]]
    )


def test_wrong_values_are_errors_of_their_rows_alone(people, told):
    spoilt = people.assign(
        age=["old" if i % 50 == 3 else age for i, age in enumerate(people["age"])]
    )
    advice = advise(german().fitted, spoilt)
    assert advice["error"].notna().sum() == 20
    fine = advice["error"].isna()
    same = [frame[fine].drop(columns=["row", "error"]) for frame in (advice, told)]
    pd.testing.assert_frame_equal(*same)


QUICK = {(".csv", ".jsonl"), (".jsonl", ".parquet"), (".parquet", ".csv")}


@pytest.mark.parametrize(
    ("rows", "out"),
    [
        pytest.param(rows, out, marks=[] if (rows, out) in QUICK else pytest.mark.long)
        for rows in WRITE
        for out in WRITE
    ],
)
def test_every_format_says_the_same(rows, out, people, told, tmp_path):
    WRITE[rows](people, tmp_path / f"rows{rows}")
    counts = advise_file(
        german().fitted, tmp_path / f"rows{rows}", tmp_path / f"out{out}", chunk=300
    )
    assert counts == {"people": 1000, "errors": 0, "flagged": 0, "resumed": 0}
    found = read(tmp_path / f"out{out}")
    assert list(found.columns) == list(COLUMNS)
    assert found["row"].tolist() == list(range(1000))
    assert np.allclose(found["probability"], told["probability"], atol=0)
    assert found["plans"].tolist() == [json.loads(text) for text in told["plans"]]
    for name in ("outcome", "question", "status", "reason"):
        assert _plain(found[name]) == _plain(told[name])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([f"rows{rows}", f"out{out}"])


def _plain(column):
    return column.astype(object).where(column.notna(), None).tolist()


def test_rows_that_cannot_be_understood_do_not_stop_the_others(people, tmp_path):
    spoilt = people.head(50).copy()
    spoilt.loc[7, "duration"] = "a while"
    spoilt.loc[9, "checking_status"] = "plenty"
    spoilt.to_csv(tmp_path / "rows.csv", index=False)
    counts = advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.jsonl", chunk=8)
    assert counts["errors"] == 2
    found = read(tmp_path / "out.jsonl")
    assert np.flatnonzero(found["error"].notna()).tolist() == [7, 9]
    assert "duration: a number is needed, not 'a while'" in found["error"][7]


OWN = [
    {"max_changes": 1},
    {"locked": ["duration"], "max_changes": 1},
    None,
    {"locked": ["duration"]},
]


def _cells(people):
    return [None if OWN[i % 4] is None else json.dumps(OWN[i % 4]) for i in range(len(people))]


@pytest.mark.parametrize(
    "rows",
    [".csv", *(pytest.param(ending, marks=pytest.mark.long) for ending in (".jsonl", ".parquet"))],
)
def test_a_column_holds_peoples_own_rules(rows, people, tmp_path):
    some = people.head(200)
    expected = advise(german().fitted, some, overlays=pd.Series(_cells(some)))
    assert expected["plans"].tolist() != advise(german().fitted, some)["plans"].tolist()
    WRITE[rows](some.assign(own=_cells(some)), tmp_path / f"rows{rows}")
    advise_file(
        german().fitted,
        tmp_path / f"rows{rows}",
        tmp_path / "out.jsonl",
        chunk=30,
        overlays="own",
    )
    found = read(tmp_path / "out.jsonl")
    assert found["plans"].tolist() == [json.loads(text) for text in expected["plans"]]
    assert found["status"].tolist() == expected["status"].tolist()
    assert _plain(found["reason"]) == _plain(expected["reason"])


RULE_FILES = {
    "keys.jsonl": "\n".join(
        json.dumps({"row": i} | (OWN[i % 4] or {})) for i in range(200) if OWN[i % 4]
    ),
    "whole.jsonl": "\n".join(json.dumps({"row": i, "overlay": OWN[i % 4]}) for i in range(200)),
    "whole.csv": pd.DataFrame(
        {
            "row": range(200),
            "overlay": [json.dumps(OWN[i % 4]) if OWN[i % 4] else "" for i in range(200)],
        }
    ).to_csv(index=False),
    "keys.csv": pd.DataFrame(
        [
            {
                "row": i,
                "max_changes": own.get("max_changes"),
                "locked": json.dumps(own["locked"]) if "locked" in own else "",
            }
            for i in range(200)
            if (own := OWN[i % 4] or {})
        ]
    )
    .astype({"max_changes": "Int64"})
    .sample(frac=1, random_state=0)
    .to_csv(index=False),
}


@pytest.mark.parametrize("name", RULE_FILES)
def test_a_file_holds_peoples_own_rules(name, people, tmp_path):
    some = people.head(200)
    expected = advise(german().fitted, some, overlays=pd.Series(_cells(some)))
    some.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / name).write_text(RULE_FILES[name])
    counts = advise_file(
        german().fitted,
        tmp_path / "rows.csv",
        tmp_path / "out.jsonl",
        chunk=70,
        overlays=tmp_path / name,
    )
    assert counts["errors"] == 0
    found = read(tmp_path / "out.jsonl")
    assert found["plans"].tolist() == [json.loads(text) for text in expected["plans"]]
    assert found["status"].tolist() == expected["status"].tolist()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", '{"row": 1}\n{"row', "r.jsonl, line 2, is not JSON"),
        ("r.jsonl", "[1]", "r.jsonl, line 1: an object"),
        ("r.jsonl", '{"row": 1}\n\n{"row": 1}', "r.jsonl, line 3: row 1 has an overlay already"),
        ("r.jsonl", '{"row": -1}', "row is a whole number from 0, not '-1'"),
        ("r.jsonl", '{"locked": ["age"]}', "row is a whole number from 0, not 'None'"),
        (
            "r.jsonl",
            '{"row": 40}',
            "r.jsonl: there is no row 40; the rows are numbered from 0 to 39",
        ),
        (
            "r.csv",
            "row,lockd\n1,age\n",
            "no setting of an overlay is called 'lockd'; did you mean 'locked'",
        ),
        ("r.csv", "locked\nage\n", "r.csv has no column 'row'"),
        (
            "r.csv",
            "row,locked\none,age\n",
            "r.csv, line 2: row is a whole number from 0, not 'one'",
        ),
        ("r.csv", "", "r.csv cannot be read"),
        ("r.toml", "", "r.toml: a file of overlays is a .jsonl or .csv file"),
    ],
)
def test_bad_files_of_rules_are_refused(name, text, message, people, tmp_path):
    people.head(40).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as raised:
        advise_file(
            german().fitted,
            tmp_path / "rows.csv",
            tmp_path / "out.csv",
            overlays=tmp_path / name,
        )
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out.csv").exists()


def test_where_rules_come_from_is_said_once_and_rightly(people, tmp_path):
    people.head(40).to_csv(tmp_path / "rows.csv", index=False)
    for options, error, message in (
        ({"overlays": "duration"}, SettingError, "'duration' is a feature"),
        (
            {"overlays": "hosing"},
            ColumnError,
            "no column 'hosing' of overlays; did you mean 'housing'",
        ),
        ({"overlays": tmp_path / "absent.csv"}, UnreadableError, "absent.csv"),
    ):
        with pytest.raises(error, match=message):
            advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.csv", **options)


def test_finished_chunks_of_other_rules_are_not_used(people, tmp_path, monkeypatch):
    people.head(40).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "rules.jsonl").write_text('{"row": 1, "max_changes": 1}')
    monkeypatch.setattr("edfa.advice.batch_file.write_advice", lambda *a: None)
    monkeypatch.setattr("edfa.advice.finished_parts.shutil.rmtree", lambda *a, **k: None)
    settings = {"chunk": 10, "overlays": tmp_path / "rules.jsonl"}
    arguments = (german().fitted, tmp_path / "rows.csv", tmp_path / "out.csv")
    assert advise_file(*arguments, **settings)["resumed"] == 0
    assert advise_file(*arguments, **settings)["resumed"] == 4
    monkeypatch.undo()
    (tmp_path / "rules.jsonl").write_text('{"row": 1, "max_changes": 2, "locked": []}')
    assert advise_file(*arguments, **settings)["resumed"] == 0


def test_flagged_people_are_counted(people, tmp_path):
    some = people.head(20).assign(age=80, housing="castle")
    some.to_csv(tmp_path / "rows.csv", index=False)
    counts = advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.csv", chunk=7)
    assert counts == {"people": 20, "errors": 0, "flagged": 20, "resumed": 0}
    found = read(tmp_path / "out.csv")
    assert found["flags"].str.contains("80 is above 75").all()
    assert found["flags"].str.contains("left out").all()


@pytest.mark.parametrize("link", [False, True])
def test_people_are_not_written_over_by_their_advice(link, people, tmp_path):
    rows, out = tmp_path / "people.csv", tmp_path / ("link.csv" if link else "people.csv")
    people.to_csv(rows, index=False)
    if link:
        out.symlink_to(rows)
    before = rows.read_bytes()
    with pytest.raises(DataError, match="is read and cannot be written over"):
        advise_file(german().fitted, rows, out)
    assert rows.read_bytes() == before


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "none.csv").write_text("duration,age\n")
    (tmp_path / "other.csv").write_text("height,weight\n1,2\n")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "torn.jsonl").write_text('{"duration": 24}\n{"durat')
    (tmp_path / "rows.csv").write_text("duration\n24\n")
    for name, error in (
        ("absent.csv", UnreadableError),
        ("empty.csv", EmptyTableError),
        ("none.csv", EmptyTableError),
        ("other.csv", ColumnError),
        ("torn.parquet", UnreadableError),
        ("torn.jsonl", UnreadableError),
    ):
        with pytest.raises(error) as raised:
            advise_file(german().fitted, tmp_path / name, tmp_path / "out.csv")
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "out.csv").exists()
    with pytest.raises(UnreadableError, match=r"out\.xls"):
        advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.xls")
    with pytest.raises(DataError, match="at least 1"):
        advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.csv", chunk=0)


def test_parts_of_another_task_are_not_used(people, tmp_path):
    people.head(40).to_csv(tmp_path / "rows.csv", index=False)
    folder = tmp_path / ".out.csv.parts"
    folder.mkdir()
    (folder / "00000000.parquet").write_bytes(b"left by another run")
    (folder / "journal.json").write_text("{}")
    counts = advise_file(german().fitted, tmp_path / "rows.csv", tmp_path / "out.csv", chunk=10)
    assert counts == {"people": 40, "errors": 0, "flagged": 0, "resumed": 0}


SLOWLY = """
import sys, time
import edfa, edfa.advice.batch_file
advisor = edfa.Advisor.load(sys.argv[1])
each = edfa.advice.batch_file.advise
def slowly(*arguments, **options):
    time.sleep(0.05)
    return each(*arguments, **options)
edfa.advice.batch_file.advise = slowly
tell = lambda *done: print(done, flush=True)
edfa.advice.batch_file.advise_file(advisor.fitted, sys.argv[2], sys.argv[3], chunk=20, progress=tell)
"""


@pytest.mark.long
def test_a_killed_run_goes_on_where_it_was(people, tmp_path):
    german().save(tmp_path / "advisor")
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    people.to_csv(rows, index=False)
    advise_file(german().fitted, rows, tmp_path / "whole.csv", chunk=20)
    command = [sys.executable, "-c", SLOWLY, tmp_path / "advisor", rows, out]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        process.stdout.readline()
    time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert not out.exists()
    counts = advise_file(german().fitted, rows, out, chunk=20)
    assert 3 <= counts["resumed"] < 50
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".out")]
