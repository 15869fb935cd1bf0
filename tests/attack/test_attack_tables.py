"""Hostile files: a malformed file is refused and its line named, a malformed row is an error of its
own.
"""

import gzip
import io
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.cards import cards
from hostile.tables import broken_bytes, names
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from edfa import Feature, Schema, Table
from edfa.cli import cli
from edfa.data import read
from edfa.data.encode import Encoder
from edfa.data.infer_schema import infer_card
from edfa.data.partial import encode_partial
from edfa.data.read import chunks, read_frame
from edfa.errors import ColumnError, EdfaError, UnreadableError

SCHEMA = Schema((Feature("inc", "continuous"), Feature("job", "categorical")), "y", "good")
TRAIN = pd.DataFrame(
    {"inc": range(40), "job": ["01", "02", "A3", "1"] * 10, "y": ["good", "bad"] * 20}
)
ENCODER = Encoder.fit(TRAIN, SCHEMA)
FAST = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(work):
    """What an error of edfa's says; empty if there is none."""
    try:
        work()
    except EdfaError as error:
        return str(error) or "nothing"
    return ""


def people(path, size=100):
    """What is known of everybody in a file, and what is wrong with whom."""
    parts = [encode_partial(frame, ENCODER, SCHEMA) for frame in chunks(path, size, SCHEMA)]
    errors = [part.errors.get(row) for part in parts for row in range(len(part.X))]
    return np.concatenate([np.zeros((0, 2)), *(part.X for part in parts)]), errors


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("inc,job,\n1,01,\n", ColumnError, "line 1: column 3 of the header has no name"),
        ("inc,,job\n1,2,01\n", ColumnError, "line 1: column 2 of the header has no name"),
        (",inc,job\n0,1,01\n", ColumnError, "line 1: column 1 of the header has no name"),
        ("\n\ninc, \n1,01\n", ColumnError, "line 3: column 2 of the header has no name"),
        ("inc,job,inc\n1,01,2\n", ColumnError, "line 1: column 'inc' appears 2 times"),
        (
            "inc,job\n1,01,\n2,02,\n",
            UnreadableError,
            "line 2: 3 fields, the header has 2; no row fits the header",
        ),
        ('inc,job\n1,"01\n2,02\n', UnreadableError, "line 2 cannot be read as CSV"),
        (" inc,job\n1,01\n", ColumnError, "column ' inc' .* looks like 'inc'"),
        ("Inc,job\n1,01\n", ColumnError, "column 'Inc' .* looks like 'inc'"),
        ("\u0456nc,job\n1,01\n", ColumnError, "looks like 'inc'"),
        ("inc,\uff4aob\n1,01\n", ColumnError, "looks like 'job'"),
        ("inc,inc\u200b,job\n1,2,01\n", ColumnError, "looks like 'inc'"),
    ],
)
def test_a_malformed_file_is_refused_and_its_line_named(content, error, message, tmp_path):
    path = write(tmp_path, "people.csv", content)
    with pytest.raises(error, match=message) as caught:
        people(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(EdfaError):
        Table.from_frame(read_frame(path, SCHEMA), SCHEMA)


def test_a_malformed_row_is_its_own_error_and_the_others_are_read(tmp_path):
    text = 'inc,job\n1,01\n2\n3,02,\n\n4,"0"2\n5,A3\n'
    X, errors = people(write(tmp_path, "people.csv", text))  # noqa: N806
    assert [error is not None for error in errors] == [False, True, True, True, False]
    assert errors[1:4] == [
        "people.csv line 3: 1 field, the header has 2",
        "people.csv line 4: 3 fields, the header has 2",
        "people.csv line 6 cannot be read as CSV: ',' expected after '\"'",
    ]
    alone = ENCODER.encode_person({"inc": 5, "job": "A3"})
    np.testing.assert_array_equal(X[4], alone)
    with pytest.raises(UnreadableError, match=r"line 3: 1 field"):
        read_frame(tmp_path / "people.csv")


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_malformed_line_of_json_is_its_own_error(size, tmp_path):
    lines = [
        '{"inc": 1, "job": "01"}',
        '{"inc": [1], "job": "01"}',
        '{"inc": {"a": 1}}',
        '{"inc": ' + "9" * 400 + "}",
        '{"inc": ' + "9" * 5000 + "}",
        '{"inc": 1, "inc": 2}',
        "[1]",
        '{"inc": NaN}',
        '{"job": "\\ud800"}',
        "{" * 2000,
        '{"job": ["01"]}',
        "{}",
        '{"inc": true}',
        '{"job": "02"}',
    ]
    X, errors = people(write(tmp_path, "people.jsonl", "\n".join(lines) + "\n"), size)  # noqa: N806
    assert [i for i, error in enumerate(errors) if error is None] == [0, 11, 13]
    assert np.isnan(X[11]).all()
    assert X[13, 1] == ENCODER.encode_person({"job": "02"})[1]
    assert all(len(error) < 200 and "\n" not in error for error in errors if error)


def test_an_empty_line_of_one_column_is_a_person_of_whom_nothing_is_known(tmp_path):
    for text in ("inc\n1\n\n3\n", 'inc\n1\n\n"3"\n', "inc\r\n1\r\n\r\n3"):
        X, errors = people(write(tmp_path, "people.csv", text))  # noqa: N806
        assert np.isnan(X[:, 0]).tolist() == [False, True, False], text
        assert errors == [None] * 3


def test_levels_are_text_from_the_first_byte(tmp_path):
    """The rows of the table of attacks: 01 and 1, 1.10 and 1.1, true and TRUE, 16 digits beside
    gaps.
    """
    pairs = [
        ("01", "1"),
        ("1.10", "1.1"),
        ("true", "TRUE"),
        ("9007199254740993", "9007199254740992"),
        ("1e3", "1000"),
    ]
    for a, b in pairs:
        cells = [a, b, "", a] * 5
        rows = "".join(f"{i},{cell},{'good' if i % 2 else 'bad'}\n" for i, cell in enumerate(cells))
        path = write(tmp_path, "t.csv", "inc,job,y\n" + rows)
        table = Table.from_csv(path, SCHEMA)
        assert table.frame["job"].dropna().unique().tolist() == [a, b]
        assert read_frame(path)["job"].dropna().unique().tolist() == [a, b]  # without a card too
        assert table.frame["inc"].dtype == "int64"


def test_chunks_do_not_decide_what_a_code_means(tmp_path):
    text = "job\n" + "01\n02\n" * 50 + "A3\n" * 50
    path = write(tmp_path, "people.csv", text)
    assert [people(path, size)[1] for size in (7, 200)] == [[None] * 150] * 2
    np.testing.assert_array_equal(people(path, 7)[0], people(path, 200)[0])


WHOLE_CSV = b'inc,job,y\n1,01,good\n2.5,"a,b",bad\n,A3,good\n'
WHOLE_JSON = b'{"inc": 1, "job": "01"}\n{"inc": 2.5}\n{"job": null}\n'
_buffer = io.BytesIO()
TRAIN.head(5).to_parquet(_buffer)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.csv.gz"])
@settings(FAST, derandomize=True)
@given(data=st.data())
def test_any_bytes_are_a_table_or_refused(name, data, tmp_path):
    whole = {
        "t.csv": WHOLE_CSV,
        "t.jsonl": WHOLE_JSON,
        "t.parquet": _buffer.getvalue(),
        "t.csv.gz": gzip.compress(WHOLE_CSV),
    }
    path = write(tmp_path, name, data.draw(broken_bytes(whole[name])))
    for work in (
        lambda: read_frame(path, SCHEMA),
        lambda: read_frame(path),
        lambda: Table.from_frame(read_frame(path, SCHEMA), SCHEMA),
        lambda: people(path, 2) if path.suffix != ".gz" else None,
    ):
        assert "\n" not in refusal(work)


def test_words_that_are_no_text_in_a_parquet_are_refused(tmp_path):
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 2], dtype=np.int32)), pa.py_buffer(b"a\xff")
    )
    pq.write_table(pa.table({"job": bad, "inc": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(UnreadableError, match="not a whole Parquet file"):
        read_frame(tmp_path / "t.parquet")
    with pytest.raises(UnreadableError, match="not a whole Parquet file"):
        people(tmp_path / "t.parquet")


@FAST
@given(
    st.lists(names, min_size=2, max_size=4, unique=True),
    st.sampled_from(["categorical", "continuous"]),
)
def test_any_name_survives_the_card(columns, kind):
    values = {"categorical": ["a", "b", "c", "d", "e"], "continuous": [1, 2, 3, 4, 5]}[kind] * 4
    *features, target = columns
    frame = pd.DataFrame(dict.fromkeys(features, values) | {target: ["good", "bad"] * 10})
    try:
        schema = Schema.from_toml(infer_card(frame, target, "good"))
    except ColumnError:  # every column looks like an identifier, or the names look alike
        return
    assert schema.target == target
    assert set(schema.names) <= set(features)
    assert Schema.from_toml(schema.to_toml()) == schema


@FAST
@given(cards())
def test_a_hostile_card_is_right_or_refused_in_words(text):
    if message := refusal(lambda: Schema.from_toml(text)):
        assert "\n" not in message.replace("a\nb", "")
        return
    schema = Schema.from_toml(text)
    assert Schema.from_toml(schema.to_toml()) == schema
    for feature in (f for f in schema if f.kind == "continuous"):
        encoder = Encoder.fit(
            pd.DataFrame({feature.name: [1.0, 2.0, 3.0]}), Schema((feature,), "y", "good")
        )
        assert np.isfinite(
            encoder.encode(pd.DataFrame({feature.name: [1.0, 1e15, -1e15, np.nan]}))
        ).all()


@pytest.mark.long
def test_a_parquet_of_absurd_size_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "big.parquet"
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, dtype=np.int32)), ["x"])
    pq.write_table(pa.table({"job": ones, "inc": ones}), path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(read, "MAX_CELLS", 5_000_000)
    with pytest.raises(
        UnreadableError, match="6,000,000 cells or more; at most 5,000,000 are read"
    ):
        read_frame(path)
    with pytest.raises(UnreadableError, match="cells or more"):
        read_frame(
            write(tmp_path, "bomb.csv.gz", gzip.compress(b"inc,job\n" + b"1,2\n" * 3_000_000))
        )


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "MAX_LINE_BYTES", 1000)
    for name in ("long.csv", "long.csv.gz"):
        content = b"inc,job\n1," + b"2" * 5000
        path = write(tmp_path, name, gzip.compress(content) if name.endswith("gz") else content)
        with pytest.raises(UnreadableError, match="a line has more than 1,000 bytes"):
            read_frame(path)


CARD = """
[target]
name = "{target}"
favourable = "{good}"
[features.inc]
kind = "continuous"
[features.job]
kind = "categorical"
"""


@pytest.mark.parametrize(
    ("target", "good"), [("self", "good"), ("y", "[/good]"), ("y", "=cmd"), ("y", "a\nb")]
)
def test_a_strange_outcome_is_described_and_written(target, good, tmp_path):
    frame = TRAIN.rename(columns={"y": target}).replace({target: {"good": good}})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "card.toml").write_text(CARD.format(target=target, good=good.replace("\n", "\\n")))
    arguments = ["data", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "card.toml")]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path / "out.csv")]).exit_code == 0
    before, after = (
        Table.from_csv(tmp_path / name, tmp_path / "card.toml") for name in ("t.csv", "out.csv")
    )
    pd.testing.assert_frame_equal(before.frame, after.frame)


@FAST
@given(
    numbers=st.lists(st.floats(-1e14, 1e14), min_size=6, max_size=6),
    words=st.lists(
        st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5),
        min_size=6,
        max_size=6,
    ),
)
@example(numbers=[0.1, 1.0, 2.0, 3.0, 4.0, 5.0], words=["a\rb", "\r", "a\nb", '"', ",", " a "])
def test_rows_that_are_written_are_read_back_the_same(numbers, words, tmp_path):
    from edfa.commands.tables import _write_rows

    table = Table.from_frame(
        pd.DataFrame({"inc": numbers, "job": words, "y": ["good", "bad"] * 3}), SCHEMA
    )
    for name in ("out.csv", "out.parquet"):
        _write_rows(table, tmp_path / name)
        again = Table.from_frame(read_frame(tmp_path / name, SCHEMA), SCHEMA)
        pd.testing.assert_frame_equal(again.frame.astype({"inc": float}), table.frame)


@pytest.mark.parametrize("command", ["data", "schema"])
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(command, tmp_path):
    TRAIN.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "card.toml").write_text(CARD.format(target="y", good="good"))
    out = tmp_path / ("out.csv" if command == "data" else "new.toml")
    out.write_text("old")
    rows, card = str(tmp_path / "t.csv"), str(tmp_path / "card.toml")
    work = {
        "data": ["data", rows, "--schema", card, "--out", str(out)],
        "schema": [
            "schema",
            rows,
            "--target",
            "y",
            "--favourable",
            "good",
            "--out",
            str(out),
            "--force",
        ],
    }[command]
    # The process is stopped just before the rename that makes the new file the file.
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom edfa.cli import app\n"
        "Path.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"app({work!r})"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=600, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert out.read_text() == "old"
    assert CliRunner().invoke(cli, work).exit_code == 0
    assert out.read_text() != "old"
    assert not [path for path in tmp_path.iterdir() if ".new" in path.name]
