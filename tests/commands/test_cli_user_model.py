"""`edfa fit --model`: files are asked as their owner asks them, and errors advise options of the
shell.
"""

import json
import shutil
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from advisors import config
from own_people import HOMES, people
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression

from edfa import Advisor
from edfa.advice.config import parse_advisor
from edfa.commands.user_model import wrap_file
from edfa.errors import UnreadableError
from edfa.predictors.user_model import files
from edfa.predictors.user_model.files import read_like

NUMBERS = ["debt", "income"]
COLUMNS = ["home", *NUMBERS]
HOME = pd.CategoricalDtype([*HOMES, "castle"])  # one that nobody has


@pytest.fixture
def untried(monkeypatch):
    """Files are read without being tried in a process of their own, which takes a second each."""
    monkeypatch.setattr(files, "try_in_child", lambda *_, **__: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People, their card, a few rows of the frame with categories, and models in files."""
    place, table = tmp_path_factory.mktemp("own"), people()
    table.frame.to_csv(place / "people.csv", index=False)
    table.schema.write(place / "card.toml")
    shown, y = table.train.frame[COLUMNS].astype({"home": HOME}), table.train.y
    shown.iloc[[3, 1, 4]].to_parquet(
        place / "like.parquet"
    )  # an index of its own, and not every category
    boosted = xgboost.XGBClassifier(n_estimators=8, n_jobs=1, enable_categorical=True).fit(shown, y)
    boosted.save_model(place / "boosted.ubj")
    light = lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1).fit(shown, y)
    light.booster_.save_model(place / "light.txt")
    nameless = xgboost.XGBClassifier(n_estimators=8, n_jobs=1).fit(shown[NUMBERS].to_numpy(), y)
    nameless.save_model(place / "nameless.ubj")
    matrix = shown[NUMBERS].to_numpy(np.float32)
    linear = LogisticRegression().fit(matrix, np.where(y, "yes", "no"))
    graph = to_onnx(linear, matrix[:1], options={"zipmap": False})
    (place / "graph.onnx").write_bytes(graph.SerializeToString())
    asked = table.test.frame[COLUMNS].astype({"home": HOME})
    answers = {
        "boosted.ubj": boosted.predict_proba(asked),
        "light.txt": light.predict_proba(asked),
        "nameless.ubj": nameless.predict_proba(asked[NUMBERS].to_numpy()),
        "graph.onnx": linear.predict_proba(asked[NUMBERS].to_numpy(np.float32)),
    }
    return SimpleNamespace(place=place, answers=answers)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("boosted.ubj", {"classes": ("no", "yes"), "like": "like.parquet"}),
        ("light.txt", {"like": "like.parquet"}),
        ("nameless.ubj", {"classes": ("no", "yes"), "columns": ("debt", "income")}),
        ("graph.onnx", {"columns": ("debt", "income")}),
    ],
)
def test_a_model_from_a_file_answers_as_its_owner_asks_it(name, options, folder, untried):
    file = {"model": {"file": name, "partial": "completed", **options}}
    wrapped = wrap_file(parse_advisor(file, folder.place).model).fit_table(people().train)
    np.testing.assert_allclose(
        wrapped.predict_proba(people().test.X), folder.answers[name], atol=1e-6
    )


def test_a_model_with_categories_is_fitted_saved_and_asked_from_the_shell(folder, run, tmp_path):
    place, out = folder.place, tmp_path / "advisor"
    fit = ("fit", place / "people.csv", "--schema", place / "card.toml", "--out", out, "--json")
    file = config(tmp_path, model={"file": str(place / "boosted.ubj"), "like": "like.parquet"})
    shutil.copy(place / "like.parquet", tmp_path)
    done = run(*fit, "--config", file, "--classes", "no, yes")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["warnings"] == []
    table = people()
    known = table.test.frame[list(table.schema.names)]
    known.to_csv(tmp_path / "known.csv", index=False)
    advised = run(
        "advise", out, tmp_path / "known.csv", "--out", tmp_path / "advice.csv", "--jobs", 1
    )
    assert advised.returncode == 0, advised.stderr
    chances = pd.read_csv(tmp_path / "advice.csv")["probability"].to_numpy()
    np.testing.assert_allclose(chances, folder.answers["boosted.ubj"][:, 1], atol=1e-6)
    assert Advisor.load(out).fitted.model.own.dtypes["home"] == HOME


def test_errors_advise_options_of_the_shell(folder, run, tmp_path, untried):
    place = folder.place
    out = tmp_path / "advisor"
    fit = ("fit", place / "people.csv", "--schema", place / "card.toml", "--out", out)
    like = config(tmp_path, model={"file": "m.ubj", "like": str(place / "like.parquet")})
    advice = '; show the frame it was fitted on: [model] like = "rows.parquet" in --config'
    for arguments, end in [
        (("boosted.ubj", "--config", like), "the order of its probabilities: --classes no,yes\n"),
        (("boosted.ubj", "--classes", "no,yes"), f"{advice} advisor.toml\n"),
        (("light.txt",), f"{advice} advisor.toml\n"),
        (
            ("nameless.ubj", "--classes", "no,yes"),
            'say it: [model] columns = ["a", "b"] in --config advisor.toml, or columns = "encoded" '
            "there if it was fitted on a table's X\n",
        ),
    ]:
        done = run(*fit, "--model", place / arguments[0], *arguments[1:])
        assert done.returncode == 2
        assert done.stderr.endswith(end)
        assert "wrap(" not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    alone = run(*fit, "--classes", "x")
    assert alone.returncode == 2
    assert "--classes" in alone.stderr
    assert "--model" in alone.stderr


def test_a_warning_of_the_model_is_one_line_without_a_path(folder, run, tmp_path, untried):
    place = folder.place
    out = tmp_path / "advisor"
    fit = ("fit", place / "people.csv", "--schema", place / "card.toml", "--out", out)
    model = {"file": str(place / "nameless.ubj"), "columns": ["debt", "income"]}
    wrong = ("--config", config(tmp_path, model=model), "--classes", "yes,no", "--force")
    done = run(*fit, *wrong)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "against their outcomes" in line]
    assert len(lines) == 1
    assert lines[0].startswith("Warning: the model XGBClassifier ranks training people")
    assert "wrapped.py" not in done.stdout + done.stderr
    quiet = run(*fit, *wrong, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_rows_like_the_models_keep_their_data_types(tmp_path):
    shown = pd.DataFrame(
        {
            "home": pd.Categorical(
                ["own", "rent"], categories=["castle", "rent", "own"], ordered=True
            ),
            "single": np.array([1, 2], dtype=np.float32),
            "small": np.array([1, 2], dtype=np.int8),
            "car": [True, False],
            "word": ["a", "b"],
        },
        index=[7, 3],
    )
    shown.to_parquet(tmp_path / "like.parquet")
    pd.testing.assert_frame_equal(
        read_like(tmp_path / "like.parquet"), shown.reset_index(drop=True)
    )


def test_rows_without_data_types_or_categories_are_refused(tmp_path):
    shown = pd.DataFrame({"size": pd.Categorical([3, 1], categories=[5, 3, 1])})
    shown.to_parquet(
        tmp_path / "like.parquet"
    )  # pandas itself reads whole numbers back, without a word
    with pytest.raises(
        UnreadableError, match=r"categories of column 'size' are no words.*edfa\.wrap"
    ):
        read_like(tmp_path / "like.parquet")
    shown.to_csv(tmp_path / "like.csv")
    with pytest.raises(
        UnreadableError, match=r"like\.csv has no data types; write the rows to a Parquet file"
    ):
        read_like(tmp_path / "like.csv")
    (tmp_path / "other.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(UnreadableError, match="not a whole Parquet file"):
        read_like(tmp_path / "other.parquet")
    with pytest.raises(UnreadableError, match="there is no file"):
        read_like(tmp_path / "absent.parquet")
