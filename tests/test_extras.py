"""edfa without its extras: what needs neither PyTorch nor matplotlib works, the rest names the
extra it needs.
"""

import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from edfa.errors import MissingExtraError
from edfa.extras import MODULES, check_extra, extra

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(package for packages in MODULES.values() for package in packages)
BLOCKED = f"""
import contextlib, io, json, sys
from pathlib import Path

class Blocked:
    '''As if these packages were not installed.'''
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {PACKAGES!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
import edfa

def missing(*calls):
    '''What each call says is missing; None where it says nothing of the kind.'''
    said = []
    for call in calls:
        try:
            call()
            said.append(None)
        except edfa.errors.MissingExtraError as error:
            said.append(str(error))
    return said

def run(*words):
    '''The exit code of a command, and what it wrote.'''
    from edfa.cli import app
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(words)
        except SystemExit as stop:
            return stop.code, out.getvalue() + err.getvalue()
"""


def without_extras(code, folder):
    """Run code in a process of its own without the extras; what it assigned to ``result``."""
    program = f"{BLOCKED}\n{textwrap.dedent(code)}\nprint(json.dumps(result))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_an_advisor_from_table_to_letter_needs_no_extra(tmp_path):
    result = without_extras(
        f"""
        from edfa_serve.letters.letter import write_letter
        from edfa_serve.letters.settings import read_operator

        table = edfa.load("german")
        model = edfa.SubsetXGB(n_estimators=20)
        advisor = edfa.Advisor(predictor=model, threshold="balanced", committee=2).fit(table)
        advisor.save("advisor")
        interview = edfa.Advisor.load("advisor").interview({{"age": 28, "purpose": "new car", "credit_amount": 2631}})
        interview.answer(duration=48)
        interview.answer(checking_status="0<=X<200")
        letter = write_letter(interview, read_operator(Path({str(ROOT / "docs" / "examples" / "letter.toml")!r}), "en"))
        letter.write("letter.html")
        receipt = interview.receipt()
        nouns = [advisor, interview, advisor.certificate, advisor.fitted.blanket, table, table.schema, receipt]
        trajectory = edfa.acquire(table.test, advisor.fitted.policy, advisor.fitted.predictor, budget=0.3)
        nouns += [trajectory, *interview.plans()]
        pages = [noun._repr_html_() for noun in nouns if hasattr(noun, "_repr_html_")]
        result = {{
            "refused": interview.decision.refused,
            "plans": len(interview.plans()),
            "verified": bool(edfa.Advisor.load("advisor").verify(receipt)),
            "letter": Path("letter.html").read_text(encoding="utf-8")[:15],
            "pages": len(pages),
            "noted": sum("edfa[plots]" in page for page in pages),
            "advised": run("data", "german", "--out", "people.csv")[0]
            or run("advise", "advisor", "people.csv", "--out", "advice.csv", "--plans", "1", "--quiet")[0],
            "loaded": [name for name in {PACKAGES!r} if name in sys.modules],
        }}
        """,
        tmp_path,
    )
    assert result["refused"]
    assert result["verified"]
    assert result["letter"].lower() == "<!doctype html>"
    assert result["plans"] >= 1
    assert result["pages"] >= 8
    assert result["noted"] >= 2, "where a drawing is due, the page says which extra draws it"
    assert result["advised"] == 0
    assert result["loaded"] == []


@pytest.mark.long
def test_help_and_studies_of_trees_need_no_extra(tmp_path):
    (tmp_path / "small.toml").write_text(
        'title = "small"\n[[grid]]\nmeasure = "growth"\ndata = ["german"]\npredictor = '
        '["xgb"]\npolicy = ["edfa"]\n'
        'searcher = ["nearest"]\nseeds = 1\npeople = 5\n'
    )
    result = without_extras(
        """
        result = {
            "help": [run(*words, "--help")[0] for words in ([], ["fit"], ["study", "report"])],
            "list": run("study", "list")[0],
            "run": run("study", "run", "small.toml", "--jobs", "1"),
            "report": run("study", "report", "small.toml"),
            "loaded": [name for name in ("torch", "matplotlib") if name in sys.modules],
        }
        """,
        tmp_path,
    )
    assert result["help"] == [0, 0, 0]
    assert result["list"] == 0
    assert result["run"][0] == 0, result["run"]
    code, text = result["report"]
    assert code == 2
    assert "edfa[plots]" in text
    assert result["loaded"] == []


NEURAL = {
    "edfa.FTTransformer": "FTTransformer",
    "edfa.MaskedMLP": "MaskedMLP",
    "edfa.predictors.PREDICTORS['ftt']": "FTTransformer",
    "edfa.acquisition.DIME": "DIME",
    "edfa.acquisition.EDDI": "EDDI",
    "edfa.acquisition.GSMRL": "GSMRL",
    "edfa.recourse.SEARCHERS['cvae']": "CVAE",
    "edfa.Background.of(edfa.load('german').train, None).bins": "Bins",
    "import_module('edfa.recourse._search.gradient')": "the search along a gradient",
    "import_module('edfa.predictors.neural')": "a neural model",
    "edfa.Advisor(predictor='ftt', committee=0).fit(edfa.load('german'))": "FTTransformer",
}


@pytest.mark.long
def test_what_trains_networks_names_the_extra(tmp_path):
    calls = ", ".join(f"lambda: {call}" for call in NEURAL)
    said = without_extras(
        f"from importlib import import_module\nresult = missing({calls})", tmp_path
    )
    wanted = [
        f"{what} needs an optional dependency: pip install 'edfa[neural]'"
        for what in NEURAL.values()
    ]
    assert said == wanted


@pytest.mark.long
def test_what_draws_names_the_extra(tmp_path):
    said = without_extras(
        """
        from edfa_studies.figures.render import render
        from edfa_studies.report import write_report
        from edfa.text import html
        result = missing(lambda: render(print, "name", (1, 1)), lambda: html.draw_svg(print, "title", (1, 1)))
        """,
        tmp_path,
    )
    assert [text.split("edfa")[-1] for text in said] == ["[plots]'", "[plots]'"]


def test_commands_name_the_extra_before_any_work(tmp_path):
    (tmp_path / "ftt.toml").write_text('predictor = "ftt"')
    (tmp_path / "neural.toml").write_text(
        'title = "neural"\n[[grid]]\nmeasure = "growth"\ndata = ["german"]\npredictor = '
        '["mlp"]\npolicy = ["dime"]\n'
        'searcher = ["nearest"]\nseeds = 1\npeople = 5\n'
    )
    result = without_extras(
        """
        result = [
            run("fit", "german", "--config", "ftt.toml", "--out", "advisor"),
            run("study", "run", "neural.toml"),
        ]
        """,
        tmp_path,
    )
    for code, text in result:
        assert code == 2
        assert "edfa[neural]" in text
    assert not (tmp_path / "neural-study" / "study.sqlite").exists()


def test_a_broken_package_is_no_missing_one():
    with (
        pytest.raises(ModuleNotFoundError, match="elsewhere") as caught,
        extra("neural", "FTTransformer"),
    ):
        raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")
    assert not isinstance(caught.value, MissingExtraError)
    with pytest.raises(OSError, match="shared object"), extra("neural", "FTTransformer"):
        raise OSError("libtorch.so: cannot open shared object file")
    for name in MODULES:
        check_extra(name, "this test")  # they are installed here


def test_every_extra_that_an_error_names_is_there():
    """And the tests have all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for name, packages in MODULES.items():
        assert [word.partition(">")[0] for word in extras[name]] == list(packages)
        assert not [line for line in project["dependencies"] if line.startswith(packages)]
    (own,) = [line for line in extras["test"] if line.startswith("edfa[")]
    assert set(own[5:-1].split(",")) == set(extras) - {"test", "dev", "docs"}
