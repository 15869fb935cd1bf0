"""Models in files: read back they answer the same bits; those that cannot be kept safely are
not.
"""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from hostile.user_models import MODELS, asked, codes, outcome, own_model, people, pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from edfa.artifacts import readable
from edfa.errors import ColumnError, MissingExtraError, ModelError, UnreadableError
from edfa.predictors.user_model import files
from edfa.predictors.user_model.ask import FittedModel
from edfa.predictors.user_model.check_nodes import check_nodes
from edfa.predictors.user_model.files import (
    compare_answers,
    open_model,
    read_model,
    try_in_child,
    write_model,
)
from edfa.predictors.user_model.source import _dtype_from_json, _dtype_to_json

ENDINGS = {"xgboost": "model.ubj", "lightgbm": "model.lgb.txt"}


LONG = {
    "boosting of three classes",
    "isotonic",
    "gradient boosting",
    "lightgbm booster",
    "lightgbm, three classes",
} | {"xgboost in a pipeline"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long) if n in LONG else n for n in MODELS],
)
def test_a_model_that_is_written_and_read_answers_the_same_bits(name):
    own = own_model(name)
    file, content = write_model(own)
    kept_by_library = name.split(",")[0].split()[0] in ENDINGS and "pipeline" not in name
    assert file == (ENDINGS[name.split(",")[0].split()[0]] if kept_by_library else "model.skops")
    model = read_model(file, content, own.kind)
    check_nodes(model)
    again = FittedModel.of(model, columns=own.columns, classes=own.classes)
    assert (again.kind, again.name) == (own.kind, own.name)
    np.testing.assert_array_equal(again.ask(asked(own)), own.ask(asked(own)))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_the_same_model_is_the_same_file(name):
    own = own_model(name)
    assert write_model(own) == write_model(own)


def plus_one(rows):
    return rows + 1


class Mine(LogisticRegression):
    """A class of the user's own."""


class Stranger:
    """Knows nothing of scikit-learn."""

    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.5)


def test_what_holds_code_of_the_users_own_is_not_kept():
    import torch

    numbers, y = people()[["age"]], outcome()
    assert (
        write_model(FittedModel.of(lambda rows: np.full(len(rows), 0.5), columns=["age"])) is None
    )
    assert write_model(FittedModel.of(torch.nn.Linear(1, 1).eval(), columns=["age"])) is None
    assert write_model(FittedModel.of(Stranger(), columns=["age"])) is None
    assert write_model(FittedModel.of(Mine().fit(numbers, y))) is None
    changed = make_pipeline(FunctionTransformer(plus_one), LogisticRegression()).fit(numbers, y)
    assert write_model(FittedModel.of(changed, columns=["age"])) is None
    plain = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()).fit(numbers, y)
    assert write_model(FittedModel.of(plain, columns=["age"]))[0] == "model.skops"


def test_an_xgboost_model_with_a_number_for_gaps_is_not_kept():
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=2, missing=-1.0).fit(people()[["age"]], codes())
    assert write_model(FittedModel.of(model)) is None


def test_skops_is_named_where_it_is_missing(monkeypatch):
    own = own_model("logistic")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"edfa\[own\]"):
        write_model(own)


def test_a_trial_passes_in_a_folder_with_a_space_whatever_lies_there(tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(folder)
    own = own_model("histograms, categories")
    rows = asked(own, 64)
    try_in_child(*write_model(own), rows)


def test_boosters_are_tried_too_and_nothing_is_printed(capfd):
    own = own_model("lightgbm booster")
    rows = asked(own, 64)
    capfd.readouterr()
    try_in_child(*write_model(own), rows)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "int16",
        "Int64",
        "str",
        "string",
        "object",
        "datetime64[ns]",
        pd.CategoricalDtype([3, 2, 1], ordered=True),
        pd.CategoricalDtype(pd.Index(["a", 1, None][:2], dtype=object)),
        pd.CategoricalDtype(["b", "a"]),
        pd.CategoricalDtype([True, False]),
        pd.CategoricalDtype(np.array([0.1, 2 / 3], dtype="float32")),
    ],
)
def test_data_types_are_kept(dtype):
    written = json.loads(json.dumps(_dtype_to_json("age", pd.api.types.pandas_dtype(dtype))))
    again = _dtype_from_json(written)
    assert again == dtype
    if isinstance(dtype, pd.CategoricalDtype):
        assert again.categories.dtype == dtype.categories.dtype
        assert again.categories.tolist() == dtype.categories.tolist()


def test_categories_that_cannot_be_kept_are_named():
    dates = pd.CategoricalDtype(pd.date_range("2020-01-01", periods=2))
    with pytest.raises(ColumnError, match="'when' has categories of datetime64"):
        _dtype_to_json("when", dates)


@pytest.mark.parametrize(
    "written", ["evil", {"categories": [1, 1], "of": "int64", "ordered": False}, {"of": "int64"}, 3]
)
def test_damaged_data_types_are_one_error(written):
    with pytest.raises(UnreadableError, match="own is damaged"), readable("own"):
        _dtype_from_json(written)


def test_models_are_opened_by_the_name_of_their_file(tmp_path):
    own, boosted = own_model("xgboost"), own_model("lightgbm")
    own.model.save_model(tmp_path / "loans.json")
    boosted.model.booster_.save_model(tmp_path / "loans.txt")
    for path, like in ((tmp_path / "loans.json", own), (tmp_path / "loans.txt", boosted)):
        again = FittedModel.of(open_model(path), columns=like.columns)
        np.testing.assert_array_equal(again.ask(asked(like)), like.ask(asked(like)))


def test_a_skops_file_is_opened_in_this_process(tmp_path, monkeypatch):
    import skops.io

    monkeypatch.delattr(files, "try_in_child")
    own = own_model("forest")
    skops.io.dump(own.model, tmp_path / "loans.skops")
    again = FittedModel.of(open_model(tmp_path / "loans.skops"))
    np.testing.assert_array_equal(again.ask(asked(own)), own.ask(asked(own)))
    assert again.classes == ("bad", "good")


def test_trees_for_something_else_than_classes_are_refused(tmp_path):
    from xgboost import XGBRegressor

    XGBRegressor(n_estimators=2).fit(people()[["age"]], codes()).save_model(tmp_path / "price.ubj")
    with pytest.raises(ModelError, match="reg:squarederror"):
        open_model(tmp_path / "price.ubj")


def test_other_files_are_refused_with_what_would_do(tmp_path):
    for name in ("model.pkl", "model.joblib", "model.pt", "model.pickle"):
        (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
        with pytest.raises(UnreadableError, match=r"skops\.io\.dump"):
            open_model(tmp_path / name)
    (tmp_path / "model.skops").write_bytes(b"\x80\x04}.")
    with pytest.raises(UnreadableError, match="is a pickle"):
        open_model(tmp_path / "model.skops")
    (tmp_path / "model.h5").write_bytes(b"")
    with pytest.raises(UnreadableError, match=r"known: \.ubj \(XGBoost\)"):
        open_model(tmp_path / "model.h5")
    with pytest.raises(UnreadableError, match=r"did you mean 'model\.skops'"):
        open_model(tmp_path / "model.skop")


def test_two_models_are_compared_by_their_decisions():
    own = own_model("logistic")
    assert compare_answers(own, own, people()) == 0
    turned = FittedModel.of(
        lambda rows: own.ask(rows)[:, ::-1], columns=own.columns, classes=("good", "bad")
    )
    assert compare_answers(own, turned, people()) == 0
    assert compare_answers(own, FittedModel.of(turned.model, columns=own.columns), people()) == 1
    fewer = pipeline(LogisticRegression(C=0.001)).fit(people(), outcome())
    other = FittedModel.of(fewer)
    share = (own.model.predict(people()) != fewer.predict(people())).mean()
    assert compare_answers(own, other, people()) == share > 0
