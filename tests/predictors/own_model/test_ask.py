"""One way to ask a fitted model, whatever its library; what cannot be asked is refused with the reason."""

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
from edfa.predictors.own_model.ask import OwnModel

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
        own = OwnModel.of(model)
        assert own.columns == tuple(NUMBERS)
        assert own.classes == (0, 1)
        np.testing.assert_array_equal(own.ask(frame), model.predict_proba(frame))


def test_boosters_of_the_libraries_are_asked_too(frame, codes):
    booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(frame, label=codes), 5)
    own = OwnModel.of(booster)
    assert own.columns == tuple(NUMBERS)
    np.testing.assert_array_equal(own.ask(frame)[:, 1], booster.predict(xgb.DMatrix(frame)).astype(float))
    light = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(frame, codes), 5)
    np.testing.assert_array_equal(OwnModel.of(light).ask(frame)[:, 1], light.predict(frame))


def test_a_function_may_answer_the_second_class_alone_or_all(frame):
    chance = two_numbers(frame)
    full = np.stack([1 - chance, chance], axis=1)
    for answer in (chance, chance[:, None], full, pd.Series(chance), full.tolist()):
        own = OwnModel.of(lambda people, answer=answer: answer, columns=NUMBERS)
        np.testing.assert_allclose(own.ask(frame), full, rtol=1e-15)


def test_a_module_answers_log_odds_of_one_class_or_of_each():
    rows = np.array([[0.5, -1.0], [2.0, 0.0]], dtype=np.float32)
    one = torch.nn.Linear(2, 1).eval()
    own = OwnModel.of(one, columns="encoded")
    odds = np.exp(one(torch.as_tensor(rows)).detach().double().numpy()[:, 0])
    np.testing.assert_allclose(own.ask(rows)[:, 1], odds / (1 + odds), rtol=1e-9)
    three = torch.nn.Linear(2, 3).eval()
    scores = np.exp(three(torch.as_tensor(rows)).detach().double().numpy())
    np.testing.assert_allclose(
        OwnModel.of(three, columns="encoded").ask(rows), scores / scores.sum(axis=1, keepdims=True), rtol=1e-9
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
    with pytest.raises(ModelError, match=r"does not say which columns it wants.*columns=\[\.\.\.\]"):
        edfa.wrap(model)
    assert edfa.wrap(model, columns=NUMBERS).own.columns == tuple(NUMBERS)
    with pytest.raises(ModelError, match="does not say which columns"):
        edfa.wrap(two_numbers)
    with pytest.raises(SettingError, match=r"'encoded'.*not 'encode'"):
        edfa.wrap(model, columns="encode")


def test_columns_are_those_of_a_frame_like_the_models_own(frame, codes):
    model = LogisticRegression().fit(frame.to_numpy(), codes)
    own = OwnModel.of(model, like=frame[["debt", "income"]].astype("float32").head(2))
    assert own.columns == ("debt", "income")
    assert {str(dtype) for dtype in own.dtypes.values()} == {"float32"}


def test_classes_are_told_apart_by_their_text():
    own = OwnModel.of(two_numbers, columns=NUMBERS, classes=(1, 0))
    assert own.order(("0", "1")).tolist() == [1, 0]
    assert OwnModel.of(two_numbers, columns=NUMBERS, classes=(True, False)).order(("0", "1")).tolist() == [1, 0]
    assert OwnModel.of(two_numbers, columns=NUMBERS, classes=(0.0, 1.0)).order(("0", "1")).tolist() == [0, 1]
    with pytest.raises(ModelError, match="say which is which"):
        own.order(("no", "yes"))


def test_a_missing_column_is_named_with_the_nearest():
    own = OwnModel.of(two_numbers, columns=["incom", "debt"])
    with pytest.raises(ColumnError, match=r"'incom'.*did you mean 'income'"):
        own.check_columns(people().schema.names)


def test_a_failure_of_the_model_is_one_line_and_keeps_its_cause(frame):
    def fails(people):
        raise RuntimeError("the server\nis away")

    with pytest.raises(ModelError, match="fails failed on 216 rows: RuntimeError: the server is away") as caught:
        OwnModel.of(fails, columns=NUMBERS).ask(frame)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_stopping_by_hand_is_no_failure_of_the_model(frame):
    def stopped(people):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        OwnModel.of(stopped, columns=NUMBERS).ask(frame)


def test_a_calibrated_machine_can_be_wrapped(frame, codes):
    model = CalibratedClassifierCV(LinearSVC(), cv=2).fit(frame, codes)
    np.testing.assert_array_equal(OwnModel.of(model).ask(frame), model.predict_proba(frame))
