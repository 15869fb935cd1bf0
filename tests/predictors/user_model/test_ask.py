"""One way to ask a fitted model, whatever its library; what cannot be asked is refused with the
reason.
"""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost as xgb
from own_people import people, two_numbers
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import edfa
from edfa.errors import ColumnError, ModelError, SettingError
from edfa.predictors.user_model.ask import FittedModel
from edfa.predictors.user_model.files import read_model, write_model

NUMBERS = ["income", "debt"]


@pytest.fixture(scope="module")
def frame():
    return people().train.frame[NUMBERS]


@pytest.fixture(scope="module")
def codes():
    return people().train.y


def test_each_library_says_its_columns_and_answers_as_it_does_itself(frame, codes):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, codes)
    boosted = xgb.XGBClassifier(n_estimators=5).fit(frame, codes)
    light = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(frame, codes)
    for model in (pipeline, boosted, light):
        own = FittedModel.of(model)
        assert own.columns == tuple(NUMBERS)
        assert own.classes == (0, 1)
        np.testing.assert_array_equal(own.ask(frame), model.predict_proba(frame))


def test_boosters_of_the_libraries_are_asked_too(frame, codes):
    booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(frame, label=codes), 5)
    own = FittedModel.of(booster)
    assert own.columns == tuple(NUMBERS)
    np.testing.assert_array_equal(
        own.ask(frame)[:, 1], booster.predict(xgb.DMatrix(frame)).astype(float)
    )
    light = lightgbm.train(
        {"objective": "binary", "verbose": -1}, lightgbm.Dataset(frame, codes), 5
    )
    np.testing.assert_array_equal(FittedModel.of(light).ask(frame)[:, 1], light.predict(frame))


def test_a_function_may_answer_the_second_class_alone_or_all(frame):
    chance = two_numbers(frame)
    full = np.stack([1 - chance, chance], axis=1)
    for answer in (chance, chance[:, None], full, pd.Series(chance), full.tolist()):
        own = FittedModel.of(lambda people, answer=answer: answer, columns=NUMBERS)
        np.testing.assert_allclose(own.ask(frame), full, rtol=1e-15)


def test_a_module_answers_log_odds_of_one_class_or_of_each():
    rows = np.array([[0.5, -1.0], [2.0, 0.0]], dtype=np.float32)
    one = torch.nn.Linear(2, 1).eval()
    own = FittedModel.of(one, columns="encoded")
    odds = np.exp(one(torch.as_tensor(rows)).detach().double().numpy()[:, 0])
    np.testing.assert_allclose(own.ask(rows)[:, 1], odds / (1 + odds), rtol=1e-9)
    three = torch.nn.Linear(2, 3).eval()
    scores = np.exp(three(torch.as_tensor(rows)).detach().double().numpy())
    np.testing.assert_allclose(
        FittedModel.of(three, columns="encoded").ask(rows),
        scores / scores.sum(axis=1, keepdims=True),
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LogisticRegression, "LogisticRegression is a class; wrap a fitted model of it"),
        (LogisticRegression(), "this LogisticRegression is not fitted; edfa never fits"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "this Pipeline is not fitted"),
        (xgb.XGBClassifier(), "XGBClassifier is not fitted"),
        (LinearSVC(), "LinearSVC has no predict_proba.*CalibratedClassifierCV"),
        (KMeans(), "KMeans has no predict_proba"),
        (torch.nn.Linear(2, 1), "Linear is in training mode; call eval"),
        ({"coefficients": [1, 2]}, "a dict is no model"),
        (None, "a NoneType is no model"),
        (3.5, "a float is no model"),
    ],
)
def test_what_is_no_fitted_model_is_refused(model, words):
    with pytest.raises(ModelError, match=words):
        edfa.wrap(model, columns=NUMBERS)


def test_an_advisor_points_to_wrap():
    with pytest.raises(SettingError, match=r"edfa\.wrap\(model\)"):
        edfa.Advisor(predictor=RandomForestClassifier())


def test_a_model_of_numpy_rows_must_be_told_its_columns(frame, codes):
    model = LogisticRegression().fit(frame.to_numpy(), codes)
    with pytest.raises(
        ModelError, match=r"does not say which columns it wants.*columns=\[\.\.\.\]"
    ):
        edfa.wrap(model)
    assert edfa.wrap(model, columns=NUMBERS).own.columns == tuple(NUMBERS)
    with pytest.raises(ModelError, match="does not say which columns"):
        edfa.wrap(two_numbers)
    with pytest.raises(SettingError, match=r"'encoded'.*not 'encode'"):
        edfa.wrap(model, columns="encode")


def test_columns_are_those_of_a_frame_like_the_models_own(frame, codes):
    model = LogisticRegression().fit(frame.to_numpy(), codes)
    own = FittedModel.of(model, like=frame[["debt", "income"]].astype("float32").head(2))
    assert own.columns == ("debt", "income")
    assert {str(dtype) for dtype in own.dtypes.values()} == {"float32"}


def test_classes_are_told_apart_by_their_text():
    own = FittedModel.of(two_numbers, columns=NUMBERS, classes=(1, 0))
    assert own.order(("0", "1")).tolist() == [1, 0]
    assert FittedModel.of(two_numbers, columns=NUMBERS, classes=(True, False)).order(
        ("0", "1")
    ).tolist() == [1, 0]
    assert FittedModel.of(two_numbers, columns=NUMBERS, classes=(0.0, 1.0)).order(
        ("0", "1")
    ).tolist() == [0, 1]
    with pytest.raises(ModelError, match="say which is which"):
        own.order(("no", "yes"))


def test_a_missing_column_is_named_with_the_nearest():
    own = FittedModel.of(two_numbers, columns=["incom", "debt"])
    with pytest.raises(ColumnError, match=r"'incom'.*did you mean 'income'"):
        own.check_columns(people().schema.names)


def test_a_failure_of_the_model_is_one_line_and_keeps_its_cause(frame):
    def fails(people):
        raise RuntimeError("the server\nis away")

    with pytest.raises(
        ModelError, match="fails failed on 216 rows: RuntimeError: the server is away"
    ) as caught:
        FittedModel.of(fails, columns=NUMBERS).ask(frame)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_stopping_by_hand_is_no_failure_of_the_model(frame):
    def stopped(people):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FittedModel.of(stopped, columns=NUMBERS).ask(frame)


def test_a_calibrated_machine_can_be_wrapped(frame, codes):
    model = CalibratedClassifierCV(LinearSVC(), cv=2).fit(frame, codes)
    np.testing.assert_array_equal(FittedModel.of(model).ask(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "answers_it was asked about 216 people and answered None"),
        (0.51234567, r"asked about 216 people and answered one number, 0\.5123"),
        (np.full(215, 0.5), "asked about 216 people and answered 215 rows"),
        (np.full((1, 2), 0.5), "asked about 216 people and answered 1 row$"),
        (np.full((216, 2, 2), 0.5), r"answered an array of \(216, 2, 2\)"),
        (["yes"] * 216, "asked about 216 people and answered list, not probabilities"),
    ],
)
def test_an_answer_of_another_shape_says_what_was_asked_and_what_came(answer, words, frame):
    def answers_it(people):
        return answer

    with pytest.raises(ModelError, match=words):
        FittedModel.of(answers_it, columns=NUMBERS).ask(frame)


def test_of_one_person_the_answer_may_lack_the_dimension_of_people(frame):
    one = frame.head(1)
    for answer in (0.25, [0.25], [[0.25]], [0.75, 0.25], [[0.75, 0.25]]):
        own = FittedModel.of(lambda people, answer=answer: answer, columns=NUMBERS)
        np.testing.assert_array_equal(own.ask(one), [[0.75, 0.25]])
    with pytest.raises(ModelError, match="asked about 1 person and answered None"):
        FittedModel.of(lambda people: None, columns=NUMBERS).ask(one)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([1.3, -0.3], r"row 7 is \[1\.3, -0\.3\], which are not all from 0 to 1"),
        ([0.123456789, 0.8], r"row 7 is \[0\.1235, 0\.8\], which adds up to 0\.9235"),
    ],
)
def test_the_row_that_is_no_probabilities_is_shown(row, words, frame):
    """All other rows add up to 1, some of them not to the bit."""
    chance = two_numbers(frame)
    answer = np.stack([1 - chance, chance], axis=1)
    answer[7] = row
    with pytest.raises(ModelError, match=words):
        FittedModel.of(lambda people: answer, columns=NUMBERS).ask(frame)


@pytest.mark.parametrize("columns", [NUMBERS, "encoded"])
def test_a_model_may_write_into_what_it_is_handed(columns, frame):
    people = frame if columns is NUMBERS else frame.to_numpy(np.float32)
    before = people.copy()

    def writes(people):
        chance = two_numbers(pd.DataFrame(people, columns=NUMBERS))
        if isinstance(people, pd.DataFrame):
            people.loc[:, "debt"] = 0.0
            del people["income"]
        else:
            people[:] = 0
        return chance

    own = FittedModel.of(writes, columns=columns)
    np.testing.assert_array_equal(own.ask(people), own.ask(people))
    np.testing.assert_array_equal(np.asarray(people), np.asarray(before))


def test_trees_that_answer_labels_or_numbers_are_refused(frame, codes):
    matrix, three = xgb.DMatrix(frame, label=codes), np.arange(len(frame)) % 3
    for objective in ("multi:softmax", "binary:hinge", "binary:logitraw", "reg:squarederror"):
        several = {"num_class": 2} if objective.startswith("multi") else {}
        booster = xgb.train({"objective": objective, **several}, matrix, 2)
        with pytest.raises(
            ModelError,
            match=f"this Booster was fitted for {objective}, which answers no probabilities",
        ):
            edfa.wrap(booster)
    hinge = xgb.XGBClassifier(n_estimators=2, objective="binary:hinge").fit(frame, codes)
    for model in (hinge, make_pipeline(StandardScaler(), hinge)):
        with pytest.raises(ModelError, match="this XGBClassifier was fitted for binary:hinge"):
            edfa.wrap(model, columns=NUMBERS)
    for objective in ("regression", "multiclassova"):
        several = {"num_class": 3} if objective == "multiclassova" else {}
        settings = {"objective": objective, "verbose": -1, **several}
        light = lightgbm.train(settings, lightgbm.Dataset(frame, three if several else codes), 2)
        with pytest.raises(ModelError, match=f"this Booster was fitted for {objective}"):
            edfa.wrap(light)


def test_a_classifier_that_turns_labels_into_probabilities_is_taken(frame):
    """XGBClassifier works them out itself where its trees were boosted for labels."""
    three = np.arange(len(frame)) % 3
    models = [
        xgb.XGBClassifier(n_estimators=3, objective=f"multi:{what}").fit(frame, three)
        for what in ("softmax", "softprob")
    ]
    labels, chances = (FittedModel.of(model).ask(frame) for model in models)
    np.testing.assert_allclose(labels, chances, atol=1e-6)
    again = read_model(*write_model(FittedModel.of(models[0])))
    np.testing.assert_array_equal(FittedModel.of(again).ask(frame), labels)


def test_a_model_that_fails_on_words_is_pointed_to_like(codes):
    words = people().train.frame[["home", "income"]]
    shown = words.astype({"home": "category"})
    boosted = xgb.XGBClassifier(n_estimators=2, enable_categorical=True).fit(shown, codes)
    light = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(shown, codes)
    scikit = LogisticRegression().fit(words[["income"]].assign(home=0.0)[["home", "income"]], codes)
    end = r"; show the frame it was fitted on: wrap\(model, like=frame\.head\(\)\)$"
    for model in (boosted, light, scikit):
        with pytest.raises(ModelError, match=end):
            FittedModel.of(model).ask(words)
    with pytest.raises(ModelError) as caught:
        FittedModel.of(scikit, like=shown).ask(shown)
    assert "show the frame" not in str(caught.value)

    def away(people):
        raise ConnectionError("the server is away")

    with pytest.raises(ModelError, match=r"is away$"):
        FittedModel.of(away, columns=["home"]).ask(words)


def test_a_class_that_the_model_lacks_is_named():
    own = FittedModel.of(two_numbers, columns=NUMBERS, classes=("low", "high"))
    with pytest.raises(
        ModelError,
        match=r"'low', 'high', the card's 'low', 'middle', 'high'; the model lacks class 'middle'$",
    ):
        own.order(("low", "middle", "high"))
    with pytest.raises(ModelError, match=r"the card's 'a', 'b', 'c'; as many are needed$"):
        own.order(("a", "b", "c"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_completions": 2.5}, r"n_completions: a whole number of at least 2, not 2\.5"),
        ({"n_completions": "8"}, "n_completions: a whole number of at least 2, not '8'"),
        ({"n_completions": True}, "n_completions: .* not True"),
        ({"n_hybrids": -1}, "n_hybrids: a whole number of at least 0, not -1"),
        ({"batch_rows": "a"}, "batch_rows: a whole number of at least 1, not 'a'"),
        ({"max_rows": 0}, "max_rows: a whole number of at least 1, or None, not 0"),
        ({"max_rows": -5}, "max_rows: .* not -5"),
        ({"seed": "a"}, "seed: a whole number"),
        ({"like": 3}, "like: a data frame, .*not int"),
        ({"classes": 3}, "classes: a list of the outcomes .*not 3"),
        ({"classes": "good"}, "classes: a list of the outcomes .*not 'good'"),
        ({"classes": {"bad", "good"}}, "classes: a list of the outcomes"),
        ({"classes": ("bad", "bad")}, "classes: each outcome once, not 'bad', 'bad'"),
        ({"columns": 3}, "columns: a list of names in the model's order, or 'encoded', not 3"),
        ({"columns": [0, 1]}, r"columns: a list of names .*not \[0, 1\]"),
        ({"columns": []}, r"columns: a list of names .*not \[\]"),
    ],
)
def test_settings_of_another_kind_are_refused_before_any_work(settings, words):
    with pytest.raises(SettingError, match=words) as caught:
        edfa.wrap(two_numbers, **{"columns": NUMBERS, **settings})
    assert "\n" not in str(caught.value)


def test_settings_of_numpy_and_pandas_are_as_good(frame):
    own = edfa.wrap(
        two_numbers,
        columns=frame.columns,
        classes=np.array(["no", "yes"]),
        n_completions=np.int64(8),
    ).own
    assert own.columns == tuple(NUMBERS)
    assert own.classes == ("no", "yes")
    assert edfa.wrap(two_numbers, columns=NUMBERS, max_rows=None).max_rows is None


def test_a_column_that_like_lacks_is_named(frame):
    with pytest.raises(
        ColumnError,
        match="like: there is no column 'height', which the model wants; known: income, debt",
    ):
        edfa.wrap(two_numbers, columns=["income", "height"], like=frame)
