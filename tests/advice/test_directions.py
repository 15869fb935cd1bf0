"""The card says which way is good: every advisor obeys, measures how far it does, or refuses; and
what it costs.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from advisors import config
from sklearn.metrics import roc_auc_score

import edfa
from edfa.advice.evaluation import Comparison, check_comparable, compare_free
from edfa.advice.factory import new_predictor
from edfa.cli import app
from edfa.errors import SettingError
from edfa.predictors.monotone import check_directions, signs


def directed(table, **directions):
    """The table with these directions on its card, and no others."""
    free = {"monotone": None, "change": "free"}
    features = tuple(
        replace(
            f,
            **(
                free | {"monotone": directions[f.name]}
                if f.name in directions
                else {"monotone": None}
            ),
        )
        for f in table.schema
    )
    return edfa.Table(table.frame, replace(table.schema, features=features), name=table.name)


GERMAN = directed(edfa.load("german"), duration="down", credit_amount="down")
FREE = directed(edfa.load("german", cap=300))
FAST = {"searcher": "nearest", "threshold": "balanced"}


def story(count=1500, seed=0):
    """Three classes: more of x is better, more of z is worse."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(count, 3)).round(2), columns=["x", "z", "w"])
    luck = frame.x - frame.z + random.normal(size=count)
    frame["outcome"] = np.array(["refused", "granted", "looked at"])[
        np.where(luck > 0.8, 1, np.where(luck < 0, 0, 2))
    ]
    features = tuple(edfa.Feature(name, "continuous", start=name == "x") for name in "xzw")
    schema = edfa.Schema(
        features, "outcome", "granted", classes=("looked at", "refused", "granted")
    )
    return edfa.Table(frame, schema, name="story")


def test_the_model_is_told_the_cards_directions():
    model = new_predictor("xgb", GERMAN, None, 0)
    assert model.monotone == signs(GERMAN.schema)
    assert sum(map(abs, model.monotone)) == 2
    assert new_predictor("xgb", FREE, None, 0).monotone is None
    assert new_predictor("xgb", GERMAN, None, 0, obey_directions=False).monotone is None
    own = tuple(int(j == 4) for j in range(20))
    assert new_predictor(edfa.SubsetXGB(monotone=own), GERMAN, None, 0).monotone == own, (
        "its own stay"
    )


def test_an_advisor_obeys_saves_and_says_so_in_its_fingerprint(tmp_path):
    few = {"predictor": edfa.SubsetXGB(n_estimators=20), **FAST}
    advisor, ignoring = (
        edfa.Advisor(**few, obey_directions=obey).fit(GERMAN) for obey in (True, False)
    )
    names = GERMAN.schema.names
    assert advisor.directions_ is None, "what holds exactly is not measured"
    assert (
        check_directions(advisor.fitted.model, GERMAN.train.X, signs(GERMAN.schema), names).worst
        is None
    )
    assert (
        check_directions(ignoring.fitted.model, GERMAN.train.X, signs(GERMAN.schema), names).worst
        is not None
    )
    assert advisor.fingerprint != ignoring.fingerprint
    ignoring.save(tmp_path / "ignoring")
    assert edfa.Advisor.load(tmp_path / "ignoring").obey_directions is False
    advisor.save(tmp_path / "obeying")
    assert edfa.Advisor.load(tmp_path / "obeying").fitted.model.monotone == signs(GERMAN.schema)


def test_a_network_is_checked_and_what_was_found_is_kept(tmp_path):
    advisor = edfa.Advisor(predictor=edfa.MaskedMLP(epochs=6), **FAST).fit(GERMAN)
    found = advisor.directions_
    assert {f.feature for f in found.features} <= {"duration", "credit_amount"}
    assert found.features
    advisor.save(tmp_path / "advisor")
    assert edfa.Advisor.load(tmp_path / "advisor").directions_ == found
    assert edfa.Advisor(predictor=edfa.MaskedMLP(epochs=1), **FAST).fit(FREE).directions_ is None


def test_models_that_cannot_obey_refuse_before_any_work():
    stages = []
    with pytest.raises(
        SettingError,
        match=r"^duration: .* a BayesNet cannot obey it; use predictor='xgb', .*obey_directions=False",
    ):
        edfa.Advisor(predictor="bn").fit(GERMAN, progress=lambda *stage: stages.append(stage))
    assert not stages
    assert new_predictor("bn", GERMAN, None, 0, obey_directions=False).threshold is None
    assert new_predictor("bn", FREE, None, 0).threshold is None
    three = directed(story(), z="down")
    with pytest.raises(
        SettingError, match=r"^z: .* between two classes, not 3; use predictor='mlp'"
    ):
        new_predictor("xgb", three, None, 0)
    assert new_predictor("mlp", three, None, 0).favourable == 2


def test_what_directions_cost_is_measured_as_the_policy_shows_the_model():
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20), **FAST).fit(GERMAN)
    compared = compare_free(advisor.fitted, GERMAN.test)
    free = edfa.Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20), **FAST, obey_directions=False
    ).fit(GERMAN)
    for figure, one in ((compared.auroc, advisor), (compared.auroc_free, free)):
        chances = one.fitted.predictor.predict_proba(GERMAN.test.X)[:, 1]
        assert figure == pytest.approx(roc_auc_score(GERMAN.test.y, chances))
    assert compared.auroc != compared.auroc_free
    assert compared.lost == pytest.approx(compared.auroc_free - compared.auroc)
    assert advisor.fitted.model.monotone is not None, "the advisor's own model is left as it is"
    with pytest.raises(SettingError, match="no directions to compare with"):
        compare_free(free.fitted, GERMAN.test)


def test_the_cost_of_directions_in_a_sentence():
    assert Comparison(200, 0.79, 0.8).sentence.startswith(
        "Directions of the card cost 0.0100 of the AUROC: 0.7900 with"
    )
    assert "gain 0.0100" in Comparison(200, 0.8, 0.79).sentence
    assert json.loads(Comparison(200, 0.79, 0.8).to_json())["lost"] == pytest.approx(0.01)
    check_comparable(GERMAN.schema)
    with pytest.raises(SettingError, match="the card has no directions"):
        check_comparable(FREE.schema)
    with pytest.raises(SettingError, match="ignores the directions"):
        check_comparable(GERMAN.schema, obey_directions=False)


def test_fit_tells_what_directions_cost(tmp_path, capsys):
    GERMAN.frame.to_csv(tmp_path / "people.csv", index=False)
    GERMAN.schema.write(tmp_path / "card.toml")

    def fit(folder, *more, **settings):
        begin = [
            "fit",
            str(tmp_path / "people.csv"),
            "--schema",
            str(tmp_path / "card.toml"),
            "--config",
            str(config(tmp_path, searcher="nearest", compare_free=True, **settings)),
        ]
        with pytest.raises(SystemExit) as ended:
            app([*begin, "--out", str(tmp_path / folder), *more])
        return ended.value.code or 0, capsys.readouterr()

    code, told = fit("one", "--json")
    assert code == 0
    compared = json.loads(told.out)["compared"]
    assert compared["lost"] == pytest.approx(compared["auroc_free"] - compared["auroc"])
    code, told = fit("two", obey_directions=False)
    assert code != 0
    assert "ignores the directions" in told.err
    assert not (tmp_path / "two").exists()
    code, told = fit("three", predictor="mlp")
    assert code == 0
    assert "steps to a better value lower the chance" in told.out + told.err
    assert f"({len(GERMAN.test)} people)" in told.out + told.err


@pytest.mark.parametrize("threshold", [0.3, "balanced"])
def test_a_threshold_with_three_classes_from_table_to_plan(threshold, tmp_path):
    table = story()
    advisor = edfa.Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20), searcher="nearest", threshold=threshold
    ).fit(table)
    needed = 0.3 if threshold == 0.3 else float((table.train.y == 2).mean())
    chances = advisor.fitted.predictor.predict_proba(table.test.X)
    decided = advisor.fitted.predictor.decide(chances)
    assert np.array_equal(decided == 2, chances[:, 2] >= needed)
    assert np.array_equal(decided[decided != 2], chances[decided != 2, :2].argmax(axis=1))
    assert (decided == 2).sum() > (chances.argmax(axis=1) == 2).sum(), (
        "the threshold makes a difference"
    )
    advisor.save(tmp_path / "advisor")
    again = edfa.Advisor.load(tmp_path / "advisor")
    assert again.fitted.model.favourable == 2
    person = {"x": -1.0, "z": 1.0, "w": 0.0}
    told = []
    for one in (advisor, again):
        interview = one.interview({"x": -1.0})
        while (asked := interview.question) is not None:
            interview.answer({asked.feature: person[asked.feature]})
        assert interview.decision.threshold == pytest.approx(needed)
        assert not interview.decision.favourable
        plan = interview.plans()[0]
        assert plan.probability_after >= needed
        told.append(plan)
    assert told[0] == told[1]


def test_a_threshold_between_two_classes_is_as_it_was():
    model = new_predictor(edfa.SubsetXGB(n_estimators=5), GERMAN, 0.6, 0).fit_table(GERMAN.train)
    assert (model.threshold, model.favourable) == (0.6, None)
    turned = edfa.Table(GERMAN.frame, replace(FREE.schema, favourable="bad"), name="turned")
    model = new_predictor(edfa.SubsetXGB(n_estimators=5), turned, 0.6, 0).fit_table(turned.train)
    assert model.threshold == np.nextafter(0.4, 1)
    chances = np.array([[0.6, 0.4], [0.59, 0.41]])
    assert model.decide(chances).tolist() == [0, 1]
