"""A prepared Pipeline answers what the Pipeline answers, to the bit, or is not made."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from effort import some
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import edfa
from edfa import Feature, Schema
from edfa.data import Encoder
from edfa.errors import DataError
from edfa.predictors.user_model import frames as memory
from edfa.predictors.user_model.frames import FrameMaker
from edfa.predictors.user_model.prepared import prepare


@pytest.fixture(scope="module")
def german():
    return edfa.load("german")


def treat(frame, words, numbers, **options):
    """Columns treated one by one: words by one step, numbers by another."""
    named = [name for name in frame if frame[name].dtype == "str"]
    others = [name for name in frame if name not in named]
    return make_column_transformer((words, named), (numbers, others), **options)


def scale():
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())


def logistic():
    return LogisticRegression(C=0.3, max_iter=500)


def one_hot(**options):
    return OneHotEncoder(handle_unknown="ignore", **options)


def twice(frame):
    """Numbers are scaled and put in bins: columns of the output that move together lie apart."""
    numbers = [name for name in frame if frame[name].dtype != "str"]
    words = [name for name in frame if name not in numbers]
    bins = KBinsDiscretizer(4, strategy="uniform")
    return make_column_transformer(
        (bins, numbers), (one_hot(), words), (scale(), numbers), sparse_threshold=1.0
    )


PIPELINES = {
    "logistic": lambda f: make_pipeline(treat(f, one_hot(), scale()), logistic()),
    "logistic_sparse": lambda f: make_pipeline(
        treat(f, one_hot(), scale(), sparse_threshold=1.0), logistic()
    ),
    "logistic_twice": lambda f: make_pipeline(twice(f), logistic()),
    "logistic_in_frames": lambda f: make_pipeline(
        treat(f, one_hot(sparse_output=False), scale()), logistic()
    ).set_output(transform="pandas"),
    "logistic_by_columns": lambda f: make_pipeline(
        treat(f, one_hot(), scale()), FunctionTransformer(np.asfortranarray), logistic()
    ),
    "forest": lambda f: make_pipeline(
        treat(f, one_hot(), "passthrough"), RandomForestClassifier(20, random_state=0)
    ),
    "boosting": lambda f: make_pipeline(
        treat(
            f, OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "passthrough"
        ),
        HistGradientBoostingClassifier(max_iter=20),
    ),
}


def fitted(table, make):
    """A Pipeline of the first 300 training people, and what makes its frames: some values are new
    to both.
    """
    frame = table.encoder.decode(table.train.X[:300])
    return make(frame).fit(frame, table.train.y[:300]), FrameMaker(
        table.encoder, table.encoder.names
    )


@pytest.mark.parametrize("name", PIPELINES)
def test_answers_have_the_same_bits(name, german):
    pipeline, frames = fitted(german, PIPELINES[name])
    prepared = prepare(pipeline, frames, german.train.X[:300])
    assert prepared is not None
    rng = np.random.default_rng(1)
    people = np.concatenate([german.train.X, german.test.X])
    mixed = np.take_along_axis(
        people, rng.integers(len(people), size=(some(1000), people.shape[1])), axis=0
    )
    people = people[:: len(people) // some(len(people))]
    for rows in (people, mixed, people[:1], people[100:102]):
        assert (
            prepared.predict_proba(rows).tobytes()
            == pipeline.predict_proba(frames.frame(rows)).tobytes()
        )
    copy = pickle.loads(pickle.dumps(prepared))  # noqa: S301 - our own, sent to a worker
    assert copy.predict_proba(people).tobytes() == prepared.predict_proba(people).tobytes()


def test_sparse_matrices_stay_sparse_with_the_same_entries(german):
    pipeline, frames = fitted(german, PIPELINES["logistic_twice"])
    ours = prepare(pipeline, frames, german.train.X).transform(german.test.X)
    theirs = pipeline[:-1].transform(frames.frame(german.test.X))
    assert sparse.issparse(ours)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part), strict=True)


class Watched(FunctionTransformer):
    """Passes numbers through and counts rows."""

    rows = 0

    def transform(self, X):  # noqa: N803
        type(self).rows += len(X)
        return super().transform(X)


def test_each_value_is_transformed_once(german):
    pipeline, frames = fitted(
        german, lambda f: make_pipeline(treat(f, one_hot(), scale()), Watched(), logistic())
    )
    prepared = prepare(pipeline, frames, german.train.X[:300])
    prepared.predict_proba(german.train.X)
    before = Watched.rows
    prepared.predict_proba(german.train.X)
    assert Watched.rows == before
    new = german.train.X[:1].copy()
    new[0, german.schema.index("credit_amount")] += 0.01234
    assert (
        prepared.predict_proba(new).tobytes() == pipeline.predict_proba(frames.frame(new)).tobytes()
    )
    assert Watched.rows - before == 2, (
        "the new value, and the person whom the Pipeline itself was asked about"
    )


def noise(matrix):
    return matrix + np.random.default_rng().normal(size=matrix.shape) * 1e-9


def centre(matrix):
    return matrix - matrix.mean(axis=0)


def rare(matrix):
    """A column that moves only where two others are high together: no single change of the first
    person shows it.
    """
    return np.column_stack([matrix, (matrix[:, -1] > matrix[0, -1]) * (matrix[:, -2] > 0)])


@pytest.mark.parametrize(
    "step",
    [
        PolynomialFeatures(2, include_bias=False),
        Normalizer(),
        FunctionTransformer(noise),
        FunctionTransformer(centre),
        FunctionTransformer(rare),
    ],
    ids=["interactions", "rows_normalised", "random", "centred_by_call", "rare_interaction"],
)
def test_none_where_columns_are_not_treated_one_by_one(step, german):
    def numbers_only(frame):
        names = [name for name in frame if frame[name].dtype != "str"]
        return make_pipeline(make_column_transformer((StandardScaler(), names)), step, logistic())

    pipeline, frames = fitted(german, numbers_only)
    assert prepare(pipeline, frames, german.train.X) is None


def test_none_where_there_is_nothing_to_prepare(german):
    frames = FrameMaker(german.encoder, german.encoder.names)
    assert prepare(object(), frames, german.train.X) is None
    assert prepare(make_pipeline(logistic()), frames, german.train.X) is None
    assert prepare(make_pipeline(StandardScaler(), logistic()), frames, german.train.X) is None, (
        "not fitted"
    )
    pipeline, frames = fitted(german, PIPELINES["logistic"])
    assert prepare(pipeline, frames, german.train.X[:0]) is None


class Unforeseen(FunctionTransformer):
    """Treats columns one by one, until a number is larger than any in training."""

    def fit(self, X, y=None):  # noqa: N803
        self.most_ = X.max()
        return super().fit(X, y)

    def transform(self, X):  # noqa: N803
        return X * 2 if X.max() <= self.most_ else X - X.sum(axis=1, keepdims=True)


def test_what_moves_unforeseen_is_asked_of_the_whole_pipeline():
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(200, 3)).round(2), columns=list("abc")
    )
    encoder = Encoder.fit(
        frame, Schema(tuple(Feature(n, "continuous", range=(-9, 9)) for n in "abc"), "y", "good")
    )
    frames = FrameMaker(encoder, tuple("abc"))
    pipeline = make_pipeline(FunctionTransformer(np.asarray), Unforeseen(), logistic())
    pipeline.fit(frame, (frame["a"] > 0).astype(int))
    X = encoder.encode(frame)  # noqa: N806
    prepared = prepare(pipeline, frames, X)
    high = encoder.encode(pd.DataFrame({"a": [8.0, 0.1], "b": [0.2, 0.3], "c": [0.4, 7.5]}))
    assert (
        prepared.predict_proba(high).tobytes()
        == pipeline.predict_proba(frames.frame(high)).tobytes()
    )
    assert prepared.predict_proba(X).tobytes() == pipeline.predict_proba(frames.frame(X)).tobytes()


def test_what_was_not_acquired_is_named(german):
    pipeline, frames = fitted(german, PIPELINES["logistic"])
    prepared = prepare(pipeline, frames, german.train.X)
    person = german.test.X[:1].copy()
    person[0, german.schema.index("age")] = np.nan
    with pytest.raises(DataError, match="'age' was not acquired"):
        prepared.predict_proba(person)


def test_memory_is_bounded_and_threads_share_it(german, monkeypatch):
    pipeline, frames = fitted(german, PIPELINES["logistic_sparse"])
    prepared = prepare(pipeline, frames, german.train.X[:100])
    monkeypatch.setattr(memory, "MOST_CODES", 150)
    people = np.concatenate([german.train.X, german.test.X])
    direct = pipeline.predict_proba(frames.frame(people))
    starts = list(range(0, 700, 35)) * 2
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: prepared.predict_proba(people[i : i + 50]), starts))
    for i, part in zip(starts, parts, strict=True):
        np.testing.assert_allclose(part, direct[i : i + 50], rtol=0, atol=1e-12)
    assert prepared.predict_proba(people).shape == direct.shape
    assert max(len(lookup._known[0]) for lookup in prepared._lookups) <= 150
