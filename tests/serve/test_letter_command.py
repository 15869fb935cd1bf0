"""``edfa letter``: from a receipt that holds or a kept interview, the same bytes each time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from advisors import german

from edfa.cli import app

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "letter.toml"
FACTS = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A saved advisor, a receipt, a signed one, and the kept interview."""
    folder = tmp_path_factory.mktemp("letters")
    german().save(folder / "advisor")
    interview = german().interview(FACTS).answer(checking_status="<0").answer(duration=48)
    (folder / "receipt.json").write_text(interview.receipt().to_json(), encoding="utf-8")
    (folder / "signed.json").write_text(
        interview.receipt(key=b"k" * 16).to_json(), encoding="utf-8"
    )
    (folder / "kept.json").write_text(interview.to_json(), encoding="utf-8")
    (folder / "key").write_bytes(b"k" * 16)
    (folder / "other_key").write_bytes(b"o" * 16)
    return folder


@pytest.fixture
def run(capsys, place):
    def call(*options):
        with pytest.raises(SystemExit) as ended:
            app(["letter", str(place / "advisor"), *map(str, options)])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


def test_a_letter_from_a_receipt(run, place, tmp_path):
    out = tmp_path / "letter.html"
    code, said, _ = run("--receipt", place / "receipt.json", "--operator", EXAMPLE, "--out", out)
    assert code == 0
    assert "balance of the checking account" in said
    assert '<html lang="en">' in out.read_text(encoding="utf-8")
    signed = (
        "--receipt",
        place / "signed.json",
        "--key",
        place / "key",
        "--template",
        "eu",
        "--language",
        "de",
    )
    code, said, _ = run(*signed, "--operator", EXAMPLE, "--out", out, "--json")
    assert code == 0
    audit = json.loads(said)
    assert audit["template"] == "eu"
    assert audit["method"]["contributions"]
    assert '<html lang="de">' in out.read_text(encoding="utf-8")


def test_the_same_bytes_in_another_process(run, place, tmp_path):
    run("--receipt", place / "receipt.json", "--operator", EXAMPLE, "--out", tmp_path / "here.html")
    code = "import sys, edfa.cli; edfa.cli.app(sys.argv[1:])"
    there = tmp_path / "there.html"
    options = ["--receipt", place / "receipt.json", "--operator", EXAMPLE, "--out", there]
    subprocess.run(
        [sys.executable, "-c", code, "letter", place / "advisor", *options],
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )
    assert there.read_bytes() == (tmp_path / "here.html").read_bytes()


def test_a_letter_from_a_kept_interview(run, place, tmp_path):
    kept = ("--interview", place / "kept.json", "--operator", EXAMPLE)
    for name, more in (("one.html", ()), ("two.html", ()), ("de.html", ("--language", "de"))):
        assert run(*kept, "--out", tmp_path / name, *more)[0] == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert '<html lang="de">' in (tmp_path / "de.html").read_text(encoding="utf-8")


def test_a_case_goes_before_the_operator_s_file(run, place, tmp_path):
    case = tmp_path / "case.toml"
    case.write_text("[person]\nname = 'Kim Case'\n", encoding="utf-8")
    out = tmp_path / "letter.html"
    assert (
        run(
            "--receipt", place / "receipt.json", "--operator", EXAMPLE, "--case", case, "--out", out
        )[0]
        == 0
    )
    page = out.read_text(encoding="utf-8")
    assert "Kim Case" in page
    assert "34 Elm Street" in page  # of the section, only the name is another


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "x.html"], "give one of --receipt FILE and --interview FILE"),
        (
            ["--out", "x.html", "--receipt", "receipt.json", "--interview", "kept.json"],
            "give one of",
        ),
        (["--out", "x.html", "--interview", "kept.json", "--key", "key"], "--key is for a receipt"),
        (["--out", "x.doc", "--receipt", "receipt.json"], ".html or .pdf"),
        (["--out", "x.html", "--receipt", "receipt.json", "--template", "uk"], "known: us, eu"),
        (
            ["--out", "x.html", "--receipt", "receipt.json", "--language", "fr"],
            "no language named 'fr'",
        ),
        (
            ["--out", "x.html", "--receipt", "receipt.json", "--key", "key"],
            "The signature is missing",
        ),
        (
            ["--out", "x.html", "--receipt", "signed.json", "--key", "other_key"],
            "The signature is wrong",
        ),
        (["--out", "x.html", "--receipt", "kept.json"], "receipt"),
        (["--out", "x.html", "--receipt", "recipt.json"], "did you mean 'receipt.json'"),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(
    run, place, tmp_path, monkeypatch, options, says
):
    monkeypatch.chdir(place)
    code, _, error = run("--operator", EXAMPLE, *options)
    assert code == 2
    assert says in error.replace("\n", " ")
    assert len(error.strip().splitlines()) == 1
    assert not (place / "x.html").exists()
