"""Small fitted models of several libraries, on people with two numbers and two categories, and ways
to damage them.
"""

import io
import zipfile
from functools import cache

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from edfa.predictors.user_model.ask import FittedModel

NUMBERS, WORDS = ["age", "debt"], ["job", "city"]


@cache
def people(count=200):
    """People as a table has them: numbers, one of them with gaps, and categories of which some are
    nobody's.
    """
    random = np.random.default_rng(0)
    age = random.integers(18, 80, count).astype(float)
    debt = np.where(random.random(count) < 0.1, np.nan, random.normal(size=count))
    job = pd.Categorical(random.choice(["b", "a", "d"], count), categories=["c", "b", "a", "d"])
    city = pd.Categorical(random.choice(["x", "y"], count))
    return pd.DataFrame({"age": age, "debt": debt, "job": job, "city": city})


@cache
def outcome():
    frame = people()
    score = frame["age"] / 40 + frame["debt"].fillna(0) + (frame["job"] == "a") - 1.5
    return np.where(score + np.random.default_rng(1).normal(size=len(frame)) > 0, "good", "bad")


def codes():
    return (outcome() == "good").astype(int)


def pipeline(last, encoder=None):
    words = encoder or OrdinalEncoder()
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS), (words, WORDS)
    )
    return make_pipeline(columns, last)


def _selected():
    """A Pipeline whose columns are selected by their data types."""
    numbers, words = (
        make_column_selector(dtype_include=np.number),
        make_column_selector(dtype_exclude=np.number),
    )
    columns = make_column_transformer(
        (SimpleImputer(), numbers), (OneHotEncoder(handle_unknown="ignore"), words)
    )
    return make_pipeline(columns, LogisticRegression())


def _three():
    return np.digitize(people()["age"], [35, 60])


def _xgboost(y):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True, n_jobs=1).fit(
        people(), y
    )


def _lightgbm(y, **settings):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1, **settings).fit(people(), y)


def _in_pipeline(library):
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    if library == "xgboost":
        return pipeline(XGBClassifier(n_estimators=3, n_jobs=1)).fit(people(), codes())
    return pipeline(LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)).fit(people(), outcome())


MODELS = {
    "logistic": lambda: pipeline(LogisticRegression(), OneHotEncoder(handle_unknown="ignore")).fit(
        people(), outcome()
    ),
    "columns by selectors": lambda: _selected().fit(people(), outcome()),
    "forest": lambda: pipeline(RandomForestClassifier(5, random_state=0)).fit(people(), outcome()),
    "extra trees": lambda: pipeline(ExtraTreesClassifier(5, random_state=0)).fit(
        people(), outcome()
    ),
    "gradient boosting": lambda: pipeline(GradientBoostingClassifier(n_estimators=4)).fit(
        people(), outcome()
    ),
    "boosting of three classes": lambda: pipeline(GradientBoostingClassifier(n_estimators=4)).fit(
        people(), _three()
    ),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=4).fit(
        people()[NUMBERS], outcome()
    ),
    "histograms, categories": lambda: HistGradientBoostingClassifier(max_iter=4).fit(
        people(), outcome()
    ),
    "histograms, three classes": lambda: HistGradientBoostingClassifier(max_iter=4).fit(
        people(), _three()
    ),
    "calibrated": lambda: CalibratedClassifierCV(pipeline(RandomForestClassifier(3)), cv=2).fit(
        people(), outcome()
    ),
    "isotonic": lambda: CalibratedClassifierCV(pipeline(GaussianNB()), method="isotonic", cv=2).fit(
        people(), outcome()
    ),
    "vote": lambda: pipeline(
        VotingClassifier(
            [("a", LogisticRegression()), ("b", GaussianNB())],
            voting="soft",
            flatten_transform=False,
        )
    ).fit(people(), outcome()),
    "xgboost in a pipeline": lambda: _in_pipeline("xgboost"),
    "lightgbm in a pipeline": lambda: _in_pipeline("lightgbm"),
    "xgboost": lambda: _xgboost(codes()),
    "xgboost, three classes": lambda: _xgboost(_three()),
    "xgboost booster": lambda: _xgboost(codes()).get_booster(),
    "lightgbm": lambda: _lightgbm(outcome()),
    "lightgbm, three classes": lambda: _lightgbm(_three()),
    "lightgbm booster": lambda: _lightgbm(outcome(), min_child_samples=5).booster_,
}


@cache
def own_model(name):
    """One of ``MODELS``, as ``FittedModel``."""
    model = MODELS[name]()
    return FittedModel.of(model, columns=NUMBERS if name == "histograms" else NUMBERS + WORDS)


def asked(own, count=None):
    return people()[list(own.columns)].iloc[:count]


def flip_bit(content, bit):
    """The content with one bit the other way round, whatever its length."""
    changed = bytearray(content)
    place = bit % (len(changed) * 8)
    changed[place // 8] ^= 1 << (place % 8)
    return bytes(changed)


def parts_of(content):
    """The parts of a skops file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def change_part(content, change, which=lambda name: True):
    """A skops file in which ``change`` was done to the parts that ``which`` names, and every
    checksum fits.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, part in parts_of(content).items():
            file.writestr(name, change(part) if which(name) else part)
    return target.getvalue()
