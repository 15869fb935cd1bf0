"""Files of people and of advice under attack: two runs at once, kept parts that lie, inputs that
change, no room.
"""

import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from effort import some
from hostile.files import BROKEN, DAMAGE, FORMULAS, cells, rule_files, words
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa.advice import batch_file
from edfa.advice.batch import COLUMNS, advise
from edfa.advice.batch_file import advise_file
from edfa.advice.people_files import decode_part, encode_part, write_advice
from edfa.cli import app
from edfa.data.read import chunks
from edfa.data.synthetic import credit_story
from edfa.errors import BusyError, DataError, UnreadableError, UnwritableError
from edfa.text.spreadsheet import restored, safe
from edfa.writing import check_writable, locked
from edfa_studies.report import _write, exhibit_files


class Killed(BaseException):
    """Stands for a signal: nothing catches it."""


@cache
def advisor(number):
    """One of two small advisors of the same table, who say different things."""
    model = edfa.SubsetXGB(n_estimators=5 + 10 * number)
    options = {"threshold": "balanced", "searcher": "nearest", "committee": 0, "alpha": 0.5}
    return edfa.Advisor(predictor=model, **options).fit(
        credit_story().table(400, seed=number), n_jobs=1
    )


@cache
def people():
    frame = credit_story().table(24, seed=9).frame.drop(columns="repays").astype(object)
    return frame.where(np.random.default_rng(0).random(frame.shape) > 0.3, None)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """No waiting for the disk: nothing here pulls the plug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edfa.writing._flush", lambda path: None)
        yield


@pytest.fixture
def rows(tmp_path):
    people().to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def stop_after(parts):
    """Progress that ends the run, as a signal would, once so many parts are done."""

    def progress(_people, done):
        if done >= parts:
            raise Killed

    return progress


def cut_short(number, rows, out, parts, **options):
    """A run that is killed after some parts."""
    with pytest.raises(Killed):
        advise_file(
            advisor(number).fitted,
            rows,
            out,
            chunk=5,
            workers=1,
            progress=stop_after(parts),
            **options,
        )


def clean(number, rows, out, **options):
    """The bytes of a run that nothing came before."""
    place = out.parent / "clean" / out.name
    place.parent.mkdir(exist_ok=True)
    advise_file(advisor(number).fitted, rows, place, workers=1, **options)
    return place.read_bytes()


@contextmanager
def _folder():
    """A new folder, for one example of hypothesis."""
    with TemporaryDirectory() as name:
        yield Path(name)


def kept(out):
    return sorted(out.with_name(f".{out.name}.parts").glob("*.parquet"))


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def run(*arguments, capsys):
    """A command's exit code and what it wrote to standard error."""
    capsys.readouterr()
    try:
        app([str(word) for word in arguments])
    except SystemExit as end:
        return end.code or 0, capsys.readouterr().err
    return 0, capsys.readouterr().err


# two runs to one place


def test_a_second_run_to_one_place_is_refused_at_once(rows, tmp_path, capsys):
    out, answers = tmp_path / "out.csv", []
    advisor(1).save(tmp_path / "other")

    def second(_people, done):
        if done == 1:
            with pytest.raises(BusyError, match=r"another run is writing out\.csv"):
                advise_file(advisor(1).fitted, rows, out)
            answers.append(run("advise", tmp_path / "other", rows, "--out", out, capsys=capsys))

    counts = advise_file(advisor(0).fitted, rows, out, chunk=5, workers=1, progress=second)
    assert (counts["people"], counts["resumed"]) == (24, 0)
    assert answers[0][0] == 2
    assert "another run is writing out.csv" in answers[0][1]
    assert out.read_bytes() == clean(0, rows, out)
    assert leftovers(tmp_path) == []


def test_a_link_to_the_result_is_the_same_place(rows, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.csv"
    link.symlink_to(tmp_path / "out.csv")
    with locked(tmp_path / ".out.csv.parts"), pytest.raises(BusyError):
        advise_file(advisor(0).fitted, rows, link)
    advise_file(advisor(0).fitted, rows, link)
    assert link.is_symlink()
    assert (tmp_path / "out.csv").read_bytes() == clean(0, rows, tmp_path / "out.csv")


def test_two_runs_at_once_never_mix(rows, tmp_path):
    out = tmp_path / "out.csv"
    expected = {number: clean(number, rows, out) for number in (0, 1)}
    assert expected[0] != expected[1]
    ends = {}

    def one(number):
        try:
            advise_file(advisor(number).fitted, rows, out, chunk=3, workers=1)
            ends[number] = "done"
        except BusyError:
            ends[number] = "busy"

    for _ in range(4):
        threads = [threading.Thread(target=one, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = [number for number, end in ends.items() if end == "done"]
        assert done
        assert out.read_bytes() in [expected[number] for number in done]
    assert leftovers(tmp_path) == []


# runs after one another, killed at any number of parts, with parts that are damaged meanwhile

which_run = st.tuples(st.integers(0, 1), st.integers(1, 2))  # the advisor, and the number of plans
killed_runs = st.tuples(
    which_run, st.sampled_from([3, 5, 24]), st.integers(0, 6)
)  # its chunk, and parts until its end
steps = st.lists(
    st.tuples(killed_runs, st.sampled_from(sorted(DAMAGE)), st.integers(0, 50)), max_size=4
)


@pytest.mark.long
@given(steps, which_run, st.booleans(), st.sampled_from([".csv", ".jsonl", ".parquet"]), st.data())
@settings(max_examples=25, deadline=None)
def test_whatever_came_before_the_result_is_that_of_a_clean_run(steps, last, again, suffix, data):
    with pytest.MonkeyPatch.context() as patch, _folder() as folder:
        patch.setattr(batch_file, "ROWS_PER_BLOCK", 10)
        people().to_csv(folder / "rows.csv", index=False)
        out = folder / f"out{suffix}"
        for ((which, plans), chunk, killed), damage, at in steps:
            options = {
                "k": plans,
                "chunk": chunk,
                "workers": 1,
                "progress": stop_after(killed) if killed else None,
            }
            with suppress(Killed):
                advise_file(advisor(which).fitted, folder / "rows.csv", out, **options)
            if parts := kept(out):
                DAMAGE[damage](parts, at % len(parts))
        number, k = steps[-1][0][0] if steps and again else last
        chunk = data.draw(st.sampled_from([4, 7, None]))
        advise_file(advisor(number).fitted, folder / "rows.csv", out, k=k, chunk=chunk, workers=1)
        assert out.read_bytes() == clean(number, folder / "rows.csv", out, k=k)
        assert leftovers(folder) == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_parts_are_advised_again(kind, rows, tmp_path):
    out = tmp_path / "out.csv"
    cut_short(0, rows, out, 3)
    before = len(kept(out))
    assert before == 3
    DAMAGE[kind](kept(out), 1)
    counts = advise_file(advisor(0).fitted, rows, out, chunk=5, workers=1)
    whole = {"not there": 3, "strangers": 3, "copied to another block": 3, "swapped": 1}
    assert counts == {"people": 24, "errors": 0, "flagged": 0, "resumed": whole.get(kind, 2)}
    assert out.read_bytes() == clean(0, rows, out)
    assert leftovers(tmp_path) == []


def test_a_part_that_arrow_would_read_but_nobody_wrote_is_not_used(rows, tmp_path):
    """Advice edited by hand: whole as Parquet, and under the name of a part."""
    out = tmp_path / "out.csv"
    cut_short(0, rows, out, 2)
    part = kept(out)[0]
    table = decode_part(part.read_bytes()).to_pandas()
    part.write_bytes(encode_part(table.assign(outcome="granted")))
    advise_file(advisor(0).fitted, rows, out, workers=1)
    assert out.read_bytes() == clean(0, rows, out)


def test_parts_of_another_file_of_people_are_not_used(rows, tmp_path):
    """Right in themselves, copied from the run of another output: used if the people are the same,
    and only then.
    """
    other, out = tmp_path / "other.csv", tmp_path / "out.csv"
    cut_short(0, rows, other, 2)
    shutil.copytree(tmp_path / ".other.csv.parts", tmp_path / ".out.csv.parts")
    people().iloc[::-1].to_csv(rows, index=False)
    assert advise_file(advisor(0).fitted, rows, out, workers=1)["resumed"] == 0
    assert out.read_bytes() == clean(0, rows, out)


def test_parts_that_overlap_count_once(rows, tmp_path):
    out = tmp_path / "out.csv"
    cut_short(0, rows, out, 2)
    aside = [(path.name, path.read_bytes()) for path in kept(out)]
    shutil.rmtree(tmp_path / ".out.csv.parts")
    with pytest.raises(Killed):
        advise_file(advisor(0).fitted, rows, out, chunk=7, workers=1, progress=stop_after(2))
    for name, content in aside:
        (tmp_path / ".out.csv.parts" / name).write_bytes(content)
    advise_file(advisor(0).fitted, rows, out, workers=1)
    assert out.read_bytes() == clean(0, rows, out)


def test_a_part_changed_in_the_middle_of_a_run_does_not_get_into_the_result(rows, tmp_path):
    out = tmp_path / "out.csv"

    def damage(_people, done):
        if done == 4:
            DAMAGE["a bit flipped"](kept(out), 0)

    with pytest.raises(UnreadableError, match="was changed"):
        advise_file(advisor(0).fitted, rows, out, chunk=5, workers=1, progress=damage)
    assert not out.exists()
    advise_file(advisor(0).fitted, rows, out, workers=1)
    assert out.read_bytes() == clean(0, rows, out)


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_link_in_the_place_of_the_folder_of_parts_is_refused(kind, rows, tmp_path, capsys):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "letter").write_text("keep me")
    (tmp_path / ".out.csv.parts").symlink_to(precious if kind == "folder" else precious / "letter")
    with pytest.raises(UnwritableError, match="is no folder of finished parts"):
        advise_file(advisor(0).fitted, rows, tmp_path / "out.csv")
    assert (precious / "letter").read_text() == "keep me"
    assert [path.name for path in precious.iterdir()] == ["letter"]


# the input


def test_an_input_edited_with_the_same_size_and_time_is_read_afresh(rows, tmp_path):
    out = tmp_path / "out.csv"
    cut_short(0, rows, out, 3)
    status = rows.stat()
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    os.utime(rows, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (rows.stat().st_size, rows.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert advise_file(advisor(0).fitted, rows, out, workers=1)["resumed"] == 0
    assert out.read_bytes() == clean(0, rows, out)


def test_of_a_file_that_grew_what_is_finished_is_kept(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_file, "ROWS_PER_BLOCK", 10)
    out = tmp_path / "out.csv"
    cut_short(0, rows, out, 3)
    rows.write_text(rows.read_text() + rows.read_text().splitlines()[1] + "\n")
    assert advise_file(advisor(0).fitted, rows, out, workers=1)["resumed"] >= 2
    assert out.read_bytes() == clean(0, rows, out)


@pytest.mark.parametrize("what", ["grows", "turns", "goes", "rules", "a file more"])
def test_an_input_that_changes_while_it_is_read_is_refused(what, rows, tmp_path):
    out, rules, folder = tmp_path / "out.csv", tmp_path / "rules.jsonl", tmp_path / "folder"
    rules.write_text('{"row": 1, "max_changes": 1}')
    folder.mkdir()
    people().to_parquet(folder / "a.parquet")
    before = rows.read_bytes()
    lines = before.splitlines(keepends=True)
    changes = {
        "grows": lambda: rows.write_bytes(before + lines[1]),
        "turns": lambda: rows.write_bytes(b"".join([lines[0], *lines[:0:-1]])),
        "goes": rows.unlink,
        "rules": lambda: rules.write_text('{"row": 1, "max_changes": 2}'),
        "a file more": lambda: people().to_parquet(folder / "b.parquet"),
    }
    source = folder if what == "a file more" else rows
    with pytest.raises(UnreadableError, match=r"was changed while it was read|there is no file"):
        advise_file(
            *(advisor(0).fitted, source, out),
            **{"chunk": 5, "workers": 1, "overlays": rules},
            progress=lambda _people, done: changes[what]() if done == 2 else None,
        )
    assert not out.exists()
    rows.write_bytes(before)
    advise_file(advisor(0).fitted, rows, out, workers=1)
    assert out.read_bytes() == clean(0, rows, out)


# places


def test_places_that_cannot_be_written_are_known_before_the_work(
    rows, tmp_path, capsys, monkeypatch
):
    advisor(0).save(tmp_path / "advisor")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    monkeypatch.setattr(batch_file, "advise", lambda *a, **k: pytest.fail("work was spent"))
    for name in (
        "absent/out.csv",
        "rows.csv/out.csv",
        "folder.csv",
        "loop.csv",
        "n" * 300 + ".csv",
    ):
        code, text = run(
            "advise", tmp_path / "advisor", rows, "--out", tmp_path / name, capsys=capsys
        )
        assert (code, text.count("\n")) == (2, 1), text
        assert "cannot write" in text
    with pytest.raises(UnwritableError, match="there is no folder absent"):
        advise_file(advisor(0).fitted, rows, tmp_path / "absent" / "out.csv")
    assert not (tmp_path / "absent").exists()
    fit = ("fit", "german", "--out", rows / "advisor")
    demo, study = (
        ("demo", "--out", rows / "demo"),
        ("study", "run", "smoke", "--out", rows / "study"),
    )
    for command in (fit, demo, study):
        code, text = run(*command, capsys=capsys)
        assert (code, text.count("\n")) == (2, 1), text
        assert "cannot write" in text


def test_a_full_disk_is_known_before_the_work(rows, tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edfa.writing.os.fsync", full)
    with pytest.raises(UnwritableError, match=r"cannot write .*out\.csv: No space left on device"):
        advise_file(advisor(0).fitted, rows, tmp_path / "out.csv")
    monkeypatch.undo()
    assert (
        check_writable(tmp_path / "a" / "b" / "c", made=True)
        == (tmp_path / "a" / "b" / "c").resolve()
    )
    assert leftovers(tmp_path) == []


def _small_files():
    """In a child: no file grows beyond some bytes, as on a disk that is full by then."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_disk_that_fills_up_leaves_the_old_result_and_the_parts(suffix, tmp_path):
    advisor(0).save(tmp_path / "advisor")
    pd.concat([people()] * 60).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / f"out{suffix}"
    out.write_text("old")
    words = (
        "advise",
        "advisor",
        "rows.csv",
        "--out",
        out.name,
        "--jobs",
        "1",
        "--chunk",
        "200",
        "--quiet",
    )
    code = f"from edfa.cli import app; app({list(words)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        preexec_fn=_small_files,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"PYTHONPATH": str(Path(edfa.__file__).parents[1]), "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "cannot write" in done.stderr
    assert out.read_text() == "old"
    assert not [name for name in leftovers(tmp_path) if name.endswith((".lock", suffix))]
    counts = advise_file(advisor(0).fitted, tmp_path / "rows.csv", out, workers=1)
    assert counts["resumed"] == 8
    assert leftovers(tmp_path) == []


# spreadsheets


@given(words)
def test_safe_words_can_be_had_back_and_begin_like_no_formula(text):
    assert restored(safe(text)) == text
    assert safe(text)[:1] not in set("=@\t\r\n")
    if safe(text)[:1] in set("+-"):
        float(safe(text))


@pytest.mark.parametrize("word", FORMULAS)
def test_words_of_advice_are_safe_in_a_spreadsheet(word, tmp_path):
    texts = [name for name, kind in COLUMNS.items() if kind == "string" and name != "plans"]
    row = {
        "row": 0,
        "probability": -0.5,
        "refused": True,
        "cost": -1.0,
        "plans": "[]",
    } | dict.fromkeys(texts, word)
    tables = [decode_part(encode_part(pd.DataFrame([row])))]
    for suffix in (".csv", ".jsonl", ".parquet"):
        write_advice(tables, tmp_path / f"out{suffix}")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        header, cells = csv.reader(file)
    shown = dict(zip(header, cells, strict=True))
    assert {shown[name] for name in texts} == {f"'{word}"}
    assert (shown["probability"], shown["cost"]) == ("-0.5", "-1")
    assert restored(shown["outcome"]) == word
    assert json.loads((tmp_path / "out.jsonl").read_text())["outcome"] == word
    assert pd.read_parquet(tmp_path / "out.parquet")["outcome"].tolist() == [word]
    assert next(chunks(tmp_path / "out.parquet", 9))["error"].tolist() == [word]


def test_a_class_that_is_a_formula_and_one_that_is_a_number(tmp_path):
    plain, evil = credit_story().table(300, seed=0), "=cmd|' /C calc'!A0"
    frame = plain.frame.rename(columns={"savings": "@savings", "employment": "+employment"})
    frame["repays"] = frame["repays"].map({"yes": evil, "no": "-1"})
    card = plain.schema.to_toml().replace('favourable = "yes"', f'favourable = "{evil}"')
    card = card.replace('classes = ["no", "yes"]', f'classes = ["-1", "{evil}"]')
    card = card.replace(".savings]", '."@savings"]').replace(".employment]", '."+employment"]')
    table = edfa.Table.from_frame(frame, edfa.Schema.from_toml(card))
    fitted = (
        edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=5), committee=0, searcher="nearest")
        .fit(table)
        .fitted
    )
    rows = (
        frame.drop(columns="repays")
        .astype(object)
        .where(np.random.default_rng(0).random((300, 5)) > 0.5, None)
    )
    rows.loc[:4, ["@savings", "+employment"]] = "plenty"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    advise_file(fitted, tmp_path / "rows.csv", tmp_path / "out.csv")
    shown = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert set(shown["outcome"]) == {f"'{evil}", "-1", ""}
    assert "'@savings" in set(shown["question"])
    assert shown["error"][:4].str.startswith(("'+employment: ", "'@savings: ")).all()
    for name in ("outcome", "question", "error", "flags", "reason"):
        assert not shown[name].str.startswith(("@", "=", "+")).any()


def test_the_tables_of_a_study_are_safe_too():
    from edfa_studies.sections import Exhibit

    frame = pd.DataFrame({"=policy": ["@edfa", "-1", "fine"], "mean": [-1.5, 2.0, np.nan]})
    files = exhibit_files(Exhibit("t", "caption", frame))
    assert files["csv/t.csv"].splitlines() == ["'=policy,mean", "'@edfa,-1.5", "-1,2", "fine,"]


def test_a_report_replaces_nothing_but_a_report(tmp_path):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "thesis.txt").write_text("keep me")
    with pytest.raises(UnwritableError, match=r"thesis\.txt is no part of a report"):
        _write(tmp_path / "report", {"report.html": "<p>"})
    assert (tmp_path / "report" / "thesis.txt").read_text() == "keep me"


# people's own rules


@given(st.lists(cells, min_size=1, max_size=3))
@settings(max_examples=some(60), deadline=None)
def test_hostile_cells_of_rules_are_their_rows_errors(texts):
    frame = people().head(len(texts))
    advice = advise(advisor(0).fitted, frame, overlays=pd.Series(texts, dtype=object))
    assert advice["row"].tolist() == list(range(len(texts)))
    errors = advice["error"].dropna()
    assert errors.str.startswith("overlay: ").all()
    assert not errors.str.contains("\n").any()


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_broken_cells_of_rules_do_not_stop_the_others(text, suffix, tmp_path):
    some = people().head(3).assign(own=["", text, ""])
    rows = tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        rows.write_text("\n".join(json.dumps(row) for row in some.to_dict("records")))
    else:
        some.to_parquet(rows)
    counts = advise_file(advisor(0).fitted, rows, tmp_path / "out.jsonl", overlays="own", workers=1)
    assert (counts["people"], counts["errors"]) == (3, 1)


@pytest.mark.parametrize(
    "cell", [[1], {"locked": [1]}, {"max_changes": []}, [[]], {"a": {"b": None}}, True, 1.5]
)
def test_cells_of_rules_that_are_no_text_are_their_rows_errors(cell, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(json.dumps(row | {"own": cell}) for row in people().head(3).to_dict("records"))
    )
    counts = advise_file(advisor(0).fitted, rows, tmp_path / "out.jsonl", overlays="own", workers=1)
    assert counts["errors"] == 3
    pd.DataFrame({"own": [cell] * 3}).to_parquet(tmp_path / "rows.parquet")
    both = pd.concat(
        [people().head(3).reset_index(drop=True), pd.read_parquet(tmp_path / "rows.parquet")],
        axis=1,
    )
    assert advise(advisor(0).fitted, both, overlays=both["own"])["error"].notna().all()


@given(rule_files())
@settings(max_examples=some(60), deadline=None)
def test_hostile_files_of_rules_are_one_typed_error_or_their_rows(text):
    with _folder() as folder:
        people().head(5).to_csv(folder / "rows.csv", index=False)
        (folder / "r.jsonl").write_text(text, encoding="utf-8", newline="")
        counts, error = None, None
        try:
            options = {"overlays": folder / "r.jsonl", "workers": 1}
            counts = advise_file(
                advisor(0).fitted, folder / "rows.csv", folder / "out.csv", **options
            )
        except DataError as refused:
            error = str(refused)
        assert (folder / "out.csv").exists() == (error is None)
        assert counts["people"] == 5 if error is None else "\n" not in error


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", '{"row": 1, "row": 2}', "the key 'row' is there twice"),
        ("r.jsonl", '{"row": 99999999999999999999999}', "row is a whole number from 0"),
        ("r.jsonl", '{"row": ' + "9" * 5_000 + "}", "is not JSON"),
        ("r.jsonl", '{"row": 4611686018427387903}', "there is no row 4611686018427387903"),
        ("r.jsonl", '{"row": NaN}', "NaN is no number"),
        ("r.jsonl", '{"row": 1.0}', "row is a whole number from 0"),
        ("r.jsonl", '{"row":' + "[" * 100_000, "nested too deeply"),
        ("r.jsonl", '{"row": 1}\n{"row": 1}', "row 1 has an overlay already"),
        ("r.csv", "row,max_changes\n1,1,\n", "line 2 has 3 cells, and the first line 2"),
        ("r.csv", "row,row\n1,2\n", "the column 'row' is there twice"),
        ("r.csv", "row,max_changes\n1\n", "line 2 has 1 cells"),
        ("r.csv", 'row,locked\n1,"age\n', "unexpected end of data"),
        ("r.csv", "row,locked\n-1,age\n", "row is a whole number from 0, not '-1'"),
        ("r.csv", "row,locked\n01,age\n", "row is a whole number from 0, not '01'"),
        ("r.csv", "row,locked\n,age\n", "row is a whole number from 0, not 'None'"),
    ],
)
def test_hostile_files_of_rules_are_refused(name, text, message, rows, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as raised:
        advise_file(
            advisor(0).fitted, rows, tmp_path / "out.csv", overlays=tmp_path / name, workers=1
        )
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out.csv").exists()


def test_a_separator_of_lines_within_words_is_no_end_of_a_line(rows, tmp_path):
    (tmp_path / "r.jsonl").write_text(
        '{"row": 1, "locked": ["sav\u2028ings"]}\r\n{"row": 2, "max_changes": 1}\r\n'
    )
    out = tmp_path / "out.jsonl"
    counts = advise_file(advisor(0).fitted, rows, out, overlays=tmp_path / "r.jsonl", workers=1)
    assert counts["errors"] == 1
