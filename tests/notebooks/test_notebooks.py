"""The notebooks run from first cell to last, without the network, and what their text says of the
output is so.
"""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from run_notebook import cells

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))


def run(name, folder, **environment):
    """The finished process that ran a notebook in ``folder``; warnings are errors, as in every
    test.
    """
    runner = Path(__file__).with_name("run_notebook.py")
    variables = {key: value for key, value in os.environ.items() if key != "EDFA_DATA"}
    variables |= {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    } | environment
    command = [sys.executable, "-W", "error", str(runner), str(NOTEBOOKS / f"{name}.py")]
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


def output(name, folder, **environment):
    done = run(name, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("--- cell") == sum(kind == "code" for kind, _ in cells_of(name))
    return " ".join(done.stdout.split())


def cells_of(name):
    return cells((NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.long
def test_a_lender_with_their_own_model(tmp_path):
    shown = output("lender_with_own_model", tmp_path)
    assert "The decisions are those of the operator's own model" in shown
    assert "You may act on the first plan now" in shown
    assert "2 facts about you are not known yet" in shown
    works = re.search(r"works in (\d+)% of cases; may act: False", shown)
    assert 50 <= int(works[1]) < 60, "the text: the model would refuse it in nearly half of them"
    assert "length of the loan: 36 months" in shown
    assert "True The receipt holds" in shown
    assert {"people.csv", "card.toml", "letter.html", "advisor"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.long
def test_a_researcher_with_a_policy_a_searcher_and_a_study(tmp_path):
    shown = output("researcher_policy_searcher_study", tmp_path)
    assert "broken: a batch gives what one person at a time gives" in shown
    pair = (
        r"{} Nearest (?:[\d.]+ ){{3}}([\d.]+) .*? {} OneChange (?:[\d.]+ ){{3}}([\d.]+) ([\d.]+) "
    )
    for policy in ("EDFA", "ChangeableFirst"):
        nearest, one_change, changes = map(
            float, re.search(pair.format(policy, policy), shown).groups()
        )
        assert one_change < nearest, "the text: one change helps fewer people"
        assert changes == 1
    assert re.search(r"total=(\d+), done=\1, failed=0", shown)
    ends = re.findall(
        r"EAMB (EDFA|random|changeable-first) ([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) 2\b", shown
    )
    asked = {policy: (float(cost), float(with_plan)) for policy, _, _, cost, with_plan in ends}
    assert asked["EDFA"][0] == pytest.approx(1 / 3, abs=0.05), (
        "the text: after about a third of the price"
    )
    assert asked["EDFA"][1] > 0.9
    assert asked["random"][0] > 0.8
    assert asked["changeable-first"][0] > 0.8


@pytest.mark.long
def test_a_clinic_with_costs_of_tests(tmp_path, shared_data):
    shown = output("clinic_diabetes130", tmp_path, EDFA_DATA=str(shared_data))
    assert "5: 2 facts, such as glucose serum test, A1c test" in shown
    assert "A1Cresult: not ordered" in shown
    assert "max_glu_serum: not ordered" in shown
    of_model, of_all = map(
        float,
        re.search(r"right about ([\d.]+)%, knowing everything about ([\d.]+)%", shown).groups(),
    )
    assert of_all <= of_model, "the text: a model that is shown everything is not right more often"
    assert "“rehabilitation” (now “skilled nursing facility”)" in shown
    people, well = map(
        int, re.search(r"records (\d+) people .*? well for (\d+) of", shown).groups()
    )
    assert abs(well / people - 0.5) < 0.1, "the text: only half stayed away"
    assert "We have found no step" in shown
    assert shown.count("No certificate") == 3, "the text: none of the three ways to end is promised"
    assert len(re.findall(r"about \d{3} more would be needed", shown)) == 2, (
        "the text: a hundred or so"
    )


@pytest.mark.long
def test_without_the_data_set_the_clinic_is_told_where_to_put_it(tmp_path):
    done = run("clinic_diabetes130", tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "edfa.errors.UnavailableError: diabetes130 does not travel with edfa: put "
        "diabetes130.parquet"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_text_with_a_title_and_links_that_lead_somewhere(name):
    (kind, first), *_ = cells_of(name)
    assert kind == "markdown"
    assert first.startswith("# # ")
    prose = "\n".join(source for kind, source in cells_of(name) if kind == "markdown")
    assert all(line.startswith("#") for line in prose.splitlines() if line)
    for link in re.findall(r"\]\(([^)#]+)", prose):
        assert (NOTEBOOKS / link).is_file(), link


def test_the_site_shows_every_notebook():
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- notebook (\w+) -->", page)) == NAMES
    tools = runpy.run_path(str(ROOT / "tools" / "site_notebooks.py"))
    shown = tools["as_markdown"](
        "# %% [markdown]\n# # Sums\n#\n# [more](../docs/x.md)\n\n# %%\n# why\n1 + 1\n"
    )
    assert shown == "## Sums\n\n[more](x.md)\n\n```python\n# why\n1 + 1\n```"
