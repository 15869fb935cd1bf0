"""The commands around tables: schema, data and blanket."""

import json
import subprocess
import sys

import pytest

import edfa
from edfa import Schema


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """German credit in a file."""
    path = tmp_path_factory.mktemp("rows") / "g.csv"
    edfa.load("german").frame.to_csv(path, index=False)
    return path


def draft(rows, out, *options):
    """The words of a command that drafts a card."""
    return ("schema", rows, "--target", "class", "--favourable", "good", "--out", out, *options)


def test_schema_drafts_a_card_to_edit_and_loses_nothing(rows, tmp_path, run):
    assert run("data", "german", "--out", tmp_path / "g.csv").returncode == 0
    assert (tmp_path / "g.csv").read_text() == rows.read_text()
    card = tmp_path / "card.toml"
    done = run(*draft(rows, card))
    assert done.returncode == 0, done.stderr
    assert Schema.read(card).favourable == "good"
    card.write_text("mine")
    again = run(*draft(rows, card))
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert card.read_text() == "mine"
    assert run(*draft(rows, card, "--force")).returncode == 0
    described = run("data", rows, "--schema", card)
    assert "credit_amount" in described.stdout


def test_schema_prints_without_out(tmp_path, run):
    run("data", "german", "--out", tmp_path / "g.parquet")
    done = run("schema", tmp_path / "g.parquet", "--target", "class", "--favourable", "bad")
    assert Schema.from_toml(done.stdout).favourable == "bad"


def test_schema_asks_for_the_favourable_class_and_writes_nothing_without(rows, tmp_path, run):
    done = run("schema", rows, "--target", "class", "--out", tmp_path / "card.toml")
    assert done.returncode == 2
    message = "target 'class': which class would a person want, bad, good? It is never guessed; "
    assert done.stderr == f"error: {message}did you mean --favourable 'good'?\n"
    assert not (tmp_path / "card.toml").exists()


def test_the_version_is_that_of_the_package():
    """Of the program as a shell starts it."""
    command = [sys.executable, "-m", "edfa", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"edfa {edfa.__version__}\n")


def test_data_lists_the_sets(run):
    done = run("data")
    for name in ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "germn"], "no data set named 'germn'; did you mean 'german'?"),
        (["schema", "nowhere.csv", "--target", "y"], "there is no file nowhere.csv"),
        (["data", "nowhere.csv", "--schema", "nowhere.toml"], "there is no file nowhere.toml"),
    ],
)
def test_an_error_is_one_line_and_no_traceback(arguments, message, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip() == f"error: {message}"


def test_brackets_in_a_table_are_not_markup(tmp_path, run):
    (tmp_path / "t.csv").write_text(
        "[bold]x,y\n" + "".join(f"[red]{i % 3},{'good' if i % 2 else 'bad'}\n" for i in range(12))
    )
    run(
        "schema",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--favourable",
        "good",
        "--out",
        tmp_path / "c.toml",
    )
    done = run("data", tmp_path / "t.csv", "--schema", tmp_path / "c.toml")
    assert "[bold]x" in done.stdout
    assert "[red]0" in done.stdout


def test_blanket_shows_tree_evidence_and_cost(run):
    done = run("blanket", "german")
    assert done.returncode == 0, done.stderr
    assert "├── checking_status" in done.stdout
    assert "effect (nats)" in done.stdout
    assert "600 rows" in done.stdout
    assert "tests" in done.stdout


def test_blanket_speaks_json_and_compares(rows, tmp_path, run):
    run(*draft(rows, tmp_path / "c.toml"))
    done = run("blanket", rows, "--schema", tmp_path / "c.toml", "--json", "--method", "bamb")
    (blanket,) = json.loads(done.stdout)
    assert blanket["target"] == "class"
    assert blanket["method"] == "bamb"
    bare = run("blanket", rows, "--target", "housing", "--json")
    assert json.loads(bare.stdout)[0]["target"] == "housing"
    comparison = run("blanket", "german", "--compare")
    for method in ("hiton-mb", "bamb", "eamb", "iamb"):
        assert method in comparison.stdout
    without_target = run("blanket", rows)
    assert without_target.returncode == 2
    assert "--target NAME, or --schema CARD" in without_target.stderr
