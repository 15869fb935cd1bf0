"""`edfa fit` on a drafted card: guesses stop it until they are accepted, and warnings are told."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from advisors import config, with_endings

from edfa import Advisor, Nearest, Schema, SubsetXGB, load
from edfa.advice.config import read_advisor
from edfa.data import infer_schema
from edfa.errors import SettingError
from edfa.settings import keywords

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "advisor.toml"


@pytest.fixture
def loans(tmp_path):
    """A file with a leak in it, hardly anybody refused, and its drafted card."""
    random = np.random.default_rng(0)
    n = 800
    income = random.integers(500, 5000, n)
    paid = random.random(n) < 1 / (1 + np.exp(-0.5 - income / 1200))
    frame = pd.DataFrame(
        {
            "income": [f"€{v:,}" for v in income],
            "recoveries": np.where(paid, 0, random.integers(1, 99, n)),
            "risk": random.choice(["low", "medium", "high"], n),
            "status": np.where(paid, "paid", "default"),
        }
    )
    frame.to_csv(tmp_path / "loans.csv", index=False)
    infer_schema(frame, "status", "paid").write(tmp_path / "card.toml")
    return SimpleNamespace(
        rows=tmp_path / "loans.csv", card=tmp_path / "card.toml", out=tmp_path / "advisor"
    )


def test_guesses_stop_a_fit_until_they_are_accepted_or_taken_out(loans, run):
    arguments = ("fit", loans.rows, "--schema", loans.card, "--out", loans.out)
    stopped = run(*arguments)
    assert stopped.returncode == 2
    assert stopped.stderr == (
        "error: the card's guesses about 'income' and 2 more are not confirmed; check "
        "them and take `guessed = true` "
        "out, or go on with --accept-guesses\n"
    )
    assert "income: continuous, free" in stopped.stdout
    assert "risk: ordinal, free" in stopped.stdout
    assert not loans.out.exists()
    quiet = run(*arguments, "--quiet")
    assert (quiet.returncode, quiet.stdout) == (2, "")
    done = run(*arguments, "--accept-guesses", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guesses"] == ["income", "recoveries", "risk"]
    assert Advisor.load(loans.out).schema.guessed == ("income", "recoveries", "risk")
    schema = Schema.read(loans.card)
    sure = tuple(replace(f, guessed=f.name == "risk") for f in schema)
    replace(schema, features=sure).write(loans.card)
    assert "about 'risk' are not confirmed" in run(*arguments, "--force").stderr
    loans.card.write_text(loans.card.read_text().replace("guessed = true\n", ""))
    confirmed = run(*arguments, "--force", "--json")
    assert confirmed.returncode == 0, confirmed.stderr
    assert json.loads(confirmed.stdout)["guesses"] == []


def test_a_fit_warns_and_tells_base_rate_and_auroc(loans, run):
    arguments = ("fit", loans.rows, "--schema", loans.card, "--out", loans.out, "--accept-guesses")
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert "Warning: recoveries alone nearly decides status (AUROC 1.000)" in done.stdout
    assert (
        "Warning: recoveries ('recoveries') sounds like what is known only after the outcome"
        in done.stdout
    )
    told = json.loads(run(*arguments, "--force", "--json").stdout)
    assert f"Warning: {told['warnings'][0]}" in done.stdout
    assert told["evaluation"]["base_rate"] == pytest.approx(0.91, abs=0.04)
    assert told["evaluation"]["auroc"] > 0.8
    known = (
        f"balanced accuracy {told['evaluation']['balanced']:.3f} when all is asked (0.5 knowing "
        f"nothing), AUROC {told['evaluation']['auroc']:.3f}, "
    )
    assert known in done.stdout


def test_a_rare_class_without_a_threshold_is_warned_of(loans, run):
    schema = Schema.read(loans.card)
    kept = tuple(replace(f, guessed=False) for f in schema if f.name != "recoveries")
    replace(schema, features=kept).write(loans.card)
    arguments = ("fit", loans.rows, "--schema", loans.card, "--out", loans.out, "--json")
    alone = json.loads(run(*arguments).stdout)
    assert any("would be refused" in w and "--threshold balanced" in w for w in alone["warnings"])
    balanced = json.loads(run(*arguments, "--threshold", "balanced", "--force").stdout)
    assert not any("would be" in w for w in balanced["warnings"])


def test_the_settings_of_the_promise_are_those_of_an_advisor(run, tmp_path, monkeypatch):
    made = []

    def fit(self, *arguments, **options):
        made.append(self)
        raise SettingError("enough")

    monkeypatch.setattr(Advisor, "fit", fit)
    names = ("target", "loss", "reference", "committee", "min_survival", "groups", "alpha", "delta")
    assert run("fit", "german", "--out", tmp_path / "a").returncode == 2
    assert [getattr(made[0], name) for name in names] == [
        getattr(Advisor(), name) for name in names
    ]
    told = {
        "target": "act",
        "loss": "let_down",
        "reference": "retrained",
        "committee": 5,
        "min_survival": 0.7,
    }
    chosen = ("--config", config(tmp_path, **told, groups="housing", delta=0.1), "--groups", "job")
    assert run("fit", "german", "--out", tmp_path / "a", *chosen).returncode == 2
    assert [getattr(made[1], name) for name in names] == [*told.values(), "job", 0.2, 0.1]
    for setting, wrong, message in [
        ("reference", "retrainde", "did you mean 'retrained'?"),
        ("committee", 1, "committee: 0, or at least 2 models, not 1"),
        ("min_survival", 2, "min_survival: a share from 0 to 1, not 2"),
        (
            "groups",
            "jib",
            "groups: no categorical or ordinal feature named 'jib'; did you mean 'job'?",
        ),
    ]:
        file = config(tmp_path, **{setting: wrong})
        done = run("fit", "german", "--out", tmp_path / "a", "--config", file)
        assert done.returncode == 2
        assert message in done.stderr
    assert len(made) == 2  # the others were refused before any work


def test_groups_are_shown_in_a_table_and_saved(run, tmp_path):
    arguments = (
        "german",
        "--threshold",
        "balanced",
        "--groups",
        "own_telephone",
        "--config",
        config(tmp_path, reference="trajectory_end", loss="let_down"),
    )
    done = run("fit", *arguments, "--out", tmp_path / "a")
    assert done.returncode == 0, done.stderr
    loaded = Advisor.load(tmp_path / "a")
    groups = loaded.evaluation_.groups
    lines = [line.split() for line in done.stdout.splitlines()]
    assert all(
        word in done.stdout
        for word in ("people", "told to", "let down", "wasted", "changes", "effort")
    )
    for label, group in groups.items():
        shown = [
            label,
            str(group.people),
            f"{group.cost:.2f}",
            f"{group.coverage:.1%}",
            str(group.n),
        ]
        shown += [
            f"{group.risk:.1%}",
            f"{group.wasted:.1%}",
            f"{group.changes:.2f}",
            f"{group.effort:.2f}",
        ]
        assert shown in lines
        assert loaded.certificates[label].sentence in done.stdout
    rows = tmp_path / "people.csv"
    people = load("german").calibration.frame.drop(columns="class")
    people.to_csv(rows, index=False)
    again = run("certify", tmp_path / "a", rows, "--json", "--no-keep")
    assert again.returncode == 0, again.stderr
    assert set(json.loads(again.stdout)["certificates"]) == set(groups) == {"none", "yes"}
    people[people["own_telephone"] == "yes"].head(8).to_csv(rows, index=False)
    few = run("certify", tmp_path / "a", rows, "--no-keep")
    assert few.returncode == 3
    assert few.stdout.startswith("No certificate in group 'yes'")
    told = json.loads(run("fit", *arguments, "--out", tmp_path / "b", "--json").stdout)
    assert set(told["certificates"]["certificates"]) == {"none", "yes"}
    assert "certificate" not in told
    assert told["evaluation"]["groups"]["yes"]["people"] == groups["yes"].people


def test_the_certificate_of_each_ending_is_printed_with_its_name(run, tmp_path):
    arguments = ("german", "--config", config(tmp_path, reference="trajectory_end", committee=2))
    done = run("fit", *arguments, "--out", tmp_path / "a")
    assert done.returncode == 0, done.stderr
    endings = Advisor.load(tmp_path / "a").endings
    assert set(endings) == {"granted", "act", "nothing"}
    for name, certificate in endings.items():
        assert f"\n{name}: {certificate.sentence}" in done.stdout
    rows = tmp_path / "people.csv"
    load("german").calibration.frame.drop(columns="class").to_csv(rows, index=False)
    again = run("certify", tmp_path / "a", rows)
    for name in endings:
        assert f"{name}: " in again.stdout
    told = json.loads(run("certify", tmp_path / "a", rows, "--json", "--no-keep").stdout)
    assert set(told["endings"]) == set(endings)


def test_a_promise_about_any_ending_is_not_lost_unasked(run, tmp_path):
    """New people of whom nothing can be said do not take a certificate's place."""
    advisor = Advisor(reference="trajectory_end", committee=2).fit(load("german"))
    advisor.fitted_ = with_endings(advisor.fitted, granted=0.1)
    advisor.save(tmp_path / "a")
    rows = tmp_path / "people.csv"
    load("german").calibration.frame.drop(columns="class").head(8).to_csv(rows, index=False)
    done = run("certify", tmp_path / "a", rows)
    assert done.returncode == 3
    assert "The old certificate stays, for it promises something about granted;" in done.stdout
    assert Advisor.load(tmp_path / "a").endings["granted"].tau == 0.1


def test_the_advisor_file_of_the_guide_is_one(tmp_path):
    """Every key of the example is one, and makes an advisor of what it says."""
    file = read_advisor(EXAMPLE)
    advisor = Advisor(**file.settings)
    assert isinstance(advisor.predictor, SubsetXGB)
    assert advisor.predictor.n_estimators == 200
    assert advisor.rules.max_months == 24
    assert (file.cap, file.jobs, file.compare_free, file.model) == (20_000, -1, False, None)
    left_out = {name for name in keywords(Advisor) if name not in file.settings}
    assert left_out <= {"predictor", "groups"}, "the example shows every setting"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha = ", "advisor.toml: not a TOML file"),
        ('polcy = "edfa"', "advisor.toml.polcy: no such key; did you mean 'policy'?"),
        ('policy = "edffa"', "no policy named 'edffa'; did you mean 'edfa'?"),
        ('alpha = "much"', "advisor.toml.alpha:"),
        (
            "[predictors.small]\nof = 'xbg'",
            "predictors.small.of: no predictor named 'xbg'; did you",
        ),
        ("[predictors.xgb]\nn_estimator = 3", "predictors.xgb.n_estimator: no such key; did you"),
        ("[predictors.xgb]\nmonotone = [1]", "predictors.xgb.monotone: no such key"),
        ("[searchers.mine]\nof = 'nearest'\nfarther = 'x'", "searchers.mine.farther: "),
        (
            "[policies.mine]\nof = 'edfa'",
            "advisor.toml.policies: no such key; did you mean 'policy'",
        ),
        ("[rules]\nlockd = []", "rules.lockd: no such key; did you mean 'locked'?"),
        ("[model]\nfiel = 'm.onnx'", "advisor.toml.model."),
        ('predictor = "xgb"\n[model]\nfile = "m.onnx"', "predictor: the user model of [model]"),
    ],
)
def test_an_advisor_file_that_is_wrong_names_the_key(text, message, tmp_path, run):
    (tmp_path / "advisor.toml").write_text(text)
    begin = ("fit", "german", "--out", tmp_path / "a", "--config")
    done = run(*begin, tmp_path / "advisor.toml")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "a").exists()


def test_parts_of_an_advisor_file_are_made_with_their_settings(tmp_path):
    sections = {
        "predictors.small": {"of": "xgb", "n_estimators": 7},
        "searchers.nearest": {"farther": 9},
    }
    file = config(tmp_path, predictor="small", searcher="nearest", cap=500, **sections)
    settings = read_advisor(file).settings
    assert settings["predictor"].get_params() == SubsetXGB(n_estimators=7).get_params()
    assert settings["searcher"].get_params() == Nearest(farther=9).get_params()
    model = read_advisor(config(tmp_path, model={"file": "m.onnx", "columns": "encoded"})).model
    assert (model.file, model.columns) == (str(tmp_path / "m.onnx"), "encoded")
