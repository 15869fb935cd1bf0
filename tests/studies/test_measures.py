"""What cells measure, held against the library asked directly, and against the model itself."""

import json
from pathlib import Path

import numpy as np
import pytest

import edfa
from edfa.acquisition import Terms
from edfa.certification.replay import replay
from edfa.errors import UnknownNameError
from edfa.explanation.necessity import sweep
from edfa.recourse import Rules
from edfa_studies.cells import Cell, Part
from edfa_studies.measures import MEASURES, measure
from edfa_studies.products import Materials

SETTINGS = {"people": 24, "budget": 0.9, "cap": 0, "split": 0, "reading": "paper"}
PROMISE = {
    "name": "paper",
    "alphas": [0.2, 0.3],
    "methods": ["paper", "cp"],
    "signal": "uncertainty",
    "target": "all",
}


def cell(measure: str, policy: str = "edfa", searcher: str = "nearest", **settings) -> Cell:
    model = Part(
        "xgb", "xgb", {"n_estimators": 20} | ({"mode": "nan"} if policy == "random" else {})
    )
    parts = [Part(name, name) for name in ("eamb", policy, searcher)]
    return Cell(
        measure, Part("german", "german"), model, *parts, seed=0, settings=SETTINGS | settings
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", params=["edfa", "random"])
def growth(request, cache):
    this = cell("growth", request.param)
    return Materials(this, Path(cache)), measure(this, cache)


@pytest.mark.parametrize("name", MEASURES)
def test_results_are_json(name, cache):
    promise = (
        {"calibration": 30, "test": 30, "delta": 0.05, "promise": PROMISE}
        if name == "promise"
        else {}
    )
    result = measure(cell(name, people=10, **promise), cache)
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_an_unknown_measure_is_an_error(cache):
    with pytest.raises(UnknownNameError, match="did you mean 'growth'"):
        measure(cell("grwth"), cache)


def test_every_feature_of_the_blanket_is_counterfactual_or_semifactual(growth):
    materials, result = growth
    size = len(materials.blanket)
    for row in (*result["step"], *result["cost"]):
        assert row["active"] * size + row["semifactual"] == pytest.approx(size)


def test_the_last_step_the_whole_cost_and_the_end_agree(growth):
    _, result = growth
    end = result["end"][0]
    for row in (result["step"][-1], result["cost"][-1]):
        for name in ("recourse", "accuracy", "active", "features", "outside"):
            assert row[name] == pytest.approx(end[name])
    assert [row["cost"] for row in result["step"]] == sorted(row["cost"] for row in result["step"])


def test_a_blanket_policy_asks_nothing_outside_and_a_random_one_does(growth):
    materials, result = growth
    outside = result["end"][0]["outside"]
    assert (outside == 0) == (materials.cell.policy.of == "edfa")


def test_counts_are_those_of_the_library(growth):
    materials, result = growth
    table, who = materials.table, materials.people("test")
    trajectory = edfa.acquire(
        table.test.X[who],
        materials.policy,
        materials.predictor,
        0.9,
        reference=table.train,
        terms=Terms(person=who),
    )
    plans = edfa.find_recourse(trajectory, edfa.Nearest(table.train), rules=Rules(reading="paper"))
    end = result["end"][0]
    assert end["recourse"] == pytest.approx(plans.count[trajectory.last].mean())
    assert end["accuracy"] == (trajectory.decision[trajectory.last] == table.test.y[who]).mean()
    assert result["quality"][0]["l0"] == pytest.approx(plans.l0.mean())
    first = [trajectory.spent[(trajectory.who == i) & plans.legal] for i in range(len(who))]
    everything = table.schema.costs.sum() - table.schema.costs[trajectory.background.start].sum()
    costs = [spent[0] / everything for spent in first if len(spent)]
    assert end["first_cost"] == pytest.approx(np.mean(costs))
    assert end["first_share"] == len(costs) / len(who)


def test_promises_are_those_of_the_library(cache):
    this = cell("promise", calibration=150, test=200, delta=0.05, promise=PROMISE)
    result, materials = measure(this, cache), Materials(this, Path(cache))
    plans = edfa.find_recourse(
        materials.trajectory("calibration"), materials.searcher, rules=materials.rules
    )
    made = edfa.certify(replay(plans), alpha=0.3, bound="cp")
    row = next(row for row in result["certificate"] if (row["alpha"], row["method"]) == (0.3, "cp"))
    assert (row["status"], row["n"], row["risk"], row["upper"]) == (
        made.status,
        made.n,
        made.risk,
        made.bound,
    )
    rules = {r["rule"]: r for r in result["rule"] if (r["alpha"], r["method"]) == (0.3, "cp")}
    assert rules["first"]["cost"] <= rules["last"]["cost"] == row["full_cost"]
    groups = [
        row for row in result["group"] if (row["alpha"], row["feature"]) == (0.2, "personal_status")
    ]
    assert sum(row["n"] for row in groups) == made.n


def test_a_promise_about_refused_people_counts_who_is_granted_in_the_end(cache):
    promise = PROMISE | {"target": "refused", "methods": ["cp"], "signal": "survival"}
    this = cell(
        "promise",
        "survival",
        "survival",
        reading="card",
        calibration=60,
        test=60,
        delta=0.05,
        promise=promise,
    )
    row = measure(this, cache)["certificate"][0]
    assert 0 < row["n"] < row["people"]


def test_a_transition_is_true_of_the_model(cache):
    """The feature could not turn the decision before the fact was asked, and the change does
    now.
    """
    this = cell("examples", people=80)
    materials = Materials(this, Path(cache))
    transitions = measure(this, cache)["transition"]
    assert transitions
    trajectory, schema = materials.trajectory("test"), materials.table.schema
    titles = [feature.title for feature in schema]
    support = trajectory.background.support
    for example in transitions:
        i = int(np.flatnonzero(trajectory.person == example["person"])[0])
        row = int(trajectory.at(example["step"])[i])
        feature = titles.index(example["feature"])
        necessity = sweep(trajectory.X[[row - 1, row]], trajectory.predictor, support).necessity[
            :, feature
        ]
        assert necessity[0] == 0 < necessity[1]
        assert titles[trajectory.feature[row]] == example["asked"]
        assert example["decision"] != example["reached"]


def test_what_people_end_with_is_about_what_they_were_asked(cache):
    for person in measure(cell("examples", "random", people=15), cache)["person"]:
        assert len(person["asked"]) == person["steps"] >= person["outside"]
        assert (person["plan"] == "") == (person["changes"] == 0)
