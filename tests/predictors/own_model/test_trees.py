"""Trees as they are read answer as the library does, and average over what is not known as their
definition says.
"""

from functools import cache
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from edfa.errors import ColumnError
from edfa.predictors.own_model.trees import Tree, TreeEnsemble, read_trees, right_from

COLUMNS = 4
PLACE = 2  # the column of categories
LEVELS = list("abcdefg")


def people(rows=600, seed=0, missing=0.15):
    """Numbers, whole numbers and categories; some of each are missing, and a class that depends on
    all of them.
    """
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": random.normal(size=rows),
            "years": random.integers(-3, 9, rows).astype(float),
            "place": pd.Categorical(random.choice(LEVELS, rows), categories=LEVELS),
            "debt": random.exponential(size=rows),
        }
    )
    score = (
        frame["income"] + 0.3 * frame["years"] + frame["place"].isin(list("bdg")) - frame["debt"]
    )
    score += random.normal(scale=0.5, size=rows)
    frame = frame.mask(random.random(frame.shape) < missing)
    return frame.astype({"place": pd.CategoricalDtype(LEVELS)}), np.digitize(score, [-0.3, 1.5])


def as_matrix(frame):
    """The frame as numbers: categories are their codes."""
    codes = frame["place"].cat.codes.astype(float)
    return frame.assign(place=codes.mask(codes < 0)).to_numpy(dtype=float)


def as_codes(frame):
    """The same, still a frame: for libraries that take no categories."""
    return pd.DataFrame(as_matrix(frame), columns=frame.columns)


FRAME, THREE = people()
TWO = np.minimum(THREE, 1)
NEW, _ = people(500, seed=1)


def xgboost_model(classes=2, **other):
    y = TWO if classes == 2 else THREE
    given = {
        "n_estimators": 30,
        "max_depth": 4,
        "max_cat_to_onehot": 3,
        "enable_categorical": True,
        "n_jobs": 1,
    }
    return xgb.XGBClassifier(**given | other).fit(FRAME, y)


def lightgbm_model(classes=2, **other):
    lightgbm = pytest.importorskip("lightgbm")
    given = {
        "n_estimators": 30,
        "num_leaves": 8,
        "min_data_per_group": 5,
        "verbose": -1,
        "n_jobs": 1,
    }
    return lightgbm.LGBMClassifier(**given | other).fit(FRAME, TWO if classes == 2 else THREE)


def forest_model(kind=RandomForestClassifier, classes=2, **other):
    return kind(random_state=0, **other).fit(as_codes(FRAME), TWO if classes == 2 else THREE)


def catboost_model(classes=2, frame=None, **other):
    catboost = pytest.importorskip("catboost")
    given = {
        "iterations": 30,
        "depth": 4,
        "verbose": 0,
        "thread_count": 1,
        "allow_writing_files": False,
    }
    rows = as_codes(FRAME) if frame is None else frame
    return catboost.CatBoostClassifier(**given | other).fit(rows, TWO if classes == 2 else THREE)


# name: how to fit it, whether it takes categories, how far its answers may be from the reading
MODELS = {
    "xgboost": (xgboost_model, True, 5e-7),
    "xgboost-three-classes": (lambda: xgboost_model(3), True, 5e-7),
    "xgboost-one-category-a-split": (lambda: xgboost_model(max_cat_to_onehot=50), True, 5e-7),
    "xgboost-dart": (lambda: xgboost_model(booster="dart", rate_drop=0.3), True, 5e-7),
    "xgboost-parallel": (lambda: xgboost_model(3, num_parallel_tree=2, subsample=0.5), True, 5e-7),
    "xgboost-base-score": (lambda: xgboost_model(base_score=0.8), True, 5e-7),
    "lightgbm": (lightgbm_model, True, 1e-15),
    "lightgbm-three-classes": (lambda: lightgbm_model(3), True, 1e-15),
    "lightgbm-one-category-a-split": (lambda: lightgbm_model(max_cat_to_onehot=50), True, 1e-15),
    "lightgbm-steep": (lambda: lightgbm_model(sigmoid=1.7), True, 1e-15),
    "lightgbm-forest": (
        lambda: lightgbm_model(3, boosting_type="rf", subsample=0.5, subsample_freq=1),
        True,
        1e-15,
    ),
    "lightgbm-dart": (lambda: lightgbm_model(boosting_type="dart"), True, 1e-15),
    "lightgbm-without-missing": (lambda: lightgbm_model(use_missing=False), True, 1e-15),
    "tree": (lambda: forest_model(DecisionTreeClassifier), False, 1e-15),
    "random-forest": (lambda: forest_model(n_estimators=20), False, 1e-15),
    "random-forest-three-classes": (
        lambda: forest_model(classes=3, n_estimators=20, max_depth=5),
        False,
        1e-15,
    ),
    "extra-trees": (
        lambda: forest_model(ExtraTreesClassifier, classes=3, n_estimators=20),
        False,
        1e-15,
    ),
    "catboost": (catboost_model, False, 1e-15),
    "catboost-three-classes": (lambda: catboost_model(3), False, 1e-15),
    "catboost-by-leaves": (lambda: catboost_model(grow_policy="Lossguide"), False, 1e-15),
    "catboost-by-depth": (lambda: catboost_model(3, grow_policy="Depthwise"), False, 1e-15),
    "catboost-missing-largest": (lambda: catboost_model(nan_mode="Max"), False, 1e-15),
}
OF_EACH_LIBRARY = ["xgboost", "lightgbm", "random-forest", "catboost"]


@cache
def fitted(name):
    """The model, its reading, and how to ask it about a frame."""
    model = MODELS[name][0]()
    takes_categories = MODELS[name][1]
    return (
        model,
        read_trees(model),
        lambda frame: model.predict_proba(frame if takes_categories else as_codes(frame)),
    )


def all_masks():
    return [
        np.array([bits >> j & 1 for j in range(COLUMNS)], dtype=bool) for bits in range(2**COLUMNS)
    ]


# the reading is the model


@pytest.mark.parametrize("name", MODELS)
def test_a_reading_answers_as_the_library(name):
    _, trees, ask = fitted(name)
    answers = ask(NEW)
    assert trees.predict_proba(as_matrix(NEW)).shape == answers.shape
    assert trees.agrees(as_matrix(NEW), answers) <= MODELS[name][2]
    assert answers[:, 0].std() > 0.1
    assert trees.categorical == (frozenset({PLACE}) if MODELS[name][1] else frozenset())


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_values_that_training_never_showed_go_where_the_library_sends_them(name):
    numbers = people(missing=0)[0].drop(columns="place")
    model = clone(fitted(name)[0]).fit(numbers, TWO)
    gaps = NEW.drop(columns="place")
    assert gaps.isna().to_numpy().any()
    assert read_trees(model).agrees(gaps.to_numpy(), model.predict_proba(gaps)) <= 5e-7


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_a_category_that_training_never_showed_goes_where_the_library_sends_it(name):
    shown = FRAME["place"].isin(list("abcdf")) | FRAME["place"].isna()
    model = clone(fitted(name)[0]).fit(FRAME[shown], TWO[shown])
    assert NEW["place"].isin(["e", "g"]).any()
    assert read_trees(model).agrees(as_matrix(NEW), model.predict_proba(NEW)) <= 5e-7


def test_boosters_are_read_as_their_classifiers():
    for name, booster in [
        ("xgboost", lambda m: m.get_booster()),
        ("lightgbm", lambda m: m.booster_),
    ]:
        model, trees, _ = fitted(name)
        alone = read_trees(booster(model))
        assert np.array_equal(
            alone.predict_proba(as_matrix(NEW)), trees.predict_proba(as_matrix(NEW))
        )


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_rounds_after_the_best_one_are_left_out(name):
    noise = np.random.default_rng(2).permutation(TWO)  # nothing to learn: an early stop is sure
    if name == "xgboost":
        model = xgb.XGBClassifier(
            n_estimators=50, early_stopping_rounds=3, enable_categorical=True, n_jobs=1
        )
        model.fit(FRAME[:300], noise[:300], eval_set=[(FRAME[300:], noise[300:])], verbose=False)
        best = model.best_iteration + 1
    else:
        lightgbm = pytest.importorskip("lightgbm")
        model = lightgbm.LGBMClassifier(
            n_estimators=50, early_stopping_round=3, verbose=-1, n_jobs=1
        )
        model.fit(FRAME[:300], noise[:300], eval_X=FRAME[300:], eval_y=noise[300:])
        best = model.best_iteration_
    trees = read_trees(model)
    assert len(trees.root) == best < 50
    assert trees.agrees(as_matrix(NEW), model.predict_proba(NEW)) <= 5e-7


def test_a_disagreement_is_measured():
    _, trees, ask = fitted("xgboost")
    answers = ask(NEW).astype(float)
    answers[7] += [0.25, -0.25]
    assert trees.agrees(as_matrix(NEW), answers) == pytest.approx(0.25, abs=1e-6)
    assert trees.agrees(as_matrix(NEW), answers[:, :1]) == np.inf
    assert trees.agrees(as_matrix(NEW)[:0], answers[:0]) == np.inf
    answers[7] = np.nan
    assert not trees.agrees(as_matrix(NEW), answers) <= 1e-6


def test_bits_do_not_depend_on_the_batch():
    for name in OF_EACH_LIBRARY:
        try:
            _, trees, _ = fitted(name)
        except pytest.skip.Exception:
            continue
        rows, mask = as_matrix(NEW)[:40], np.array([True, False, True, False])
        assert np.array_equal(trees.predict_proba(rows)[7:8], trees.predict_proba(rows[7:8]))
        assert np.array_equal(
            trees.marginalise(mask, rows[:, mask])[7:8], trees.marginalise(mask, rows[7:8, mask])
        )
        assert trees.predict_proba(rows[:0]).shape == (0, 2)


# where they split


@pytest.mark.parametrize("name", MODELS)
def test_the_library_answers_all_numbers_of_a_cell_with_the_same_bits(name):
    _, trees, ask = fitted(name)
    for column in ("income", "years", "debt"):
        cuts = trees.thresholds(FRAME.columns.get_loc(column))
        assert len(cuts) > 3
        assert (np.diff(cuts) > 0).all()
        which = np.random.default_rng(0).integers(0, len(cuts) - 1, len(NEW))
        ends = np.nextafter(cuts[1:], -np.inf)
        lowest, highest = (
            NEW.assign(**{column: cuts[:-1][which]}),
            NEW.assign(**{column: ends[which]}),
        )
        assert np.array_equal(np.searchsorted(cuts, highest[column], side="right"), which + 1)
        assert np.array_equal(ask(lowest), ask(highest))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "tree", "catboost"])
def test_a_threshold_is_the_first_number_of_its_cell(name):
    _, trees, ask = fitted(name)
    column = FRAME.columns.get_loc("income")
    turned = 0
    for cut in trees.thresholds(column)[:40]:
        at, before = NEW.assign(income=cut), NEW.assign(income=np.nextafter(cut, -np.inf))
        turned += bool((ask(at) != ask(before)).any())
    assert turned >= 0.9 * min(40, len(trees.thresholds(column)))


def test_columns_without_thresholds():
    trees = fitted("xgboost")[1]
    with pytest.raises(ColumnError, match=r"column 2 .* categories"):
        trees.thresholds(PLACE)
    for column in (4, -1):
        with pytest.raises(ColumnError, match="4 input columns"):
            trees.thresholds(column)
    rows = np.column_stack([np.arange(40.0), np.ones(40)])
    assert len(read_trees(DecisionTreeClassifier().fit(rows, rows[:, 0] > 19)).thresholds(1)) == 0


@settings(max_examples=some(300), deadline=None)
@given(
    st.floats(-1e30, 1e30) | st.sampled_from([3.4028234663852886e38, -3.4028234663852886e38]),
    st.booleans(),
    st.booleans(),
)
def test_the_first_number_that_goes_right(threshold, equal_goes_right, single):
    kind = np.float32 if single else np.float64
    if single and equal_goes_right:
        threshold = float(np.float32(threshold))

    def goes_right(value):
        with np.errstate(over="ignore"):
            compared = float(kind(value))
        return compared >= threshold if equal_goes_right else compared > threshold

    first = right_from(np.array([threshold]), equal_goes_right=equal_goes_right, single=single)[0]
    assert goes_right(first)
    assert not goes_right(np.nextafter(first, -np.inf))


# what they answer from few facts


def expected(trees, node, row, mask):
    """The definition, one person and one node at a time."""
    left, right, column = trees.left[node], trees.right[node], trees.column[node]
    if left == node:
        return trees.value[node]
    if not mask[column]:
        weight = trees.cover[left] + trees.cover[right]
        share = trees.cover[right] / weight if weight else 0.5
        return (1 - share) * expected(trees, left, row, mask) + share * expected(
            trees, right, row, mask
        )
    value, group = row[column], trees.category_set[node]
    if np.isnan(value):
        goes_right = trees.missing_right[node]
    elif group >= 0:
        goes_right = 0 <= value < trees.listed.shape[1] and trees.listed[group, int(value)]
    else:
        goes_right = value >= trees.threshold[node]
    return expected(trees, right if goes_right else left, row, mask)


def expected_probabilities(trees, row, mask):
    sums = np.zeros(len(trees.base))
    for root, output in zip(trees.root, trees.output, strict=True):
        answer = expected(trees, root, row, mask)
        if len(answer) > 1:
            sums += answer
        else:
            sums[output] += answer[0]
    margins = trees.base + trees.scale * sums
    if trees.link == "shares":
        return margins
    chances = np.exp(margins if trees.link == "softmax" else [0.0, margins[0]])
    return chances / chances.sum()


@pytest.mark.parametrize(
    "name", [name for name in MODELS if name not in ("random-forest", "extra-trees")]
)
def test_facts_that_are_not_known_are_averaged_by_the_definition(name):
    _, trees, _ = fitted(name)
    rows = as_matrix(NEW)[:6]
    for mask in all_masks():
        exact = [expected_probabilities(trees, row, mask) for row in rows]
        assert np.allclose(trees.marginalise(mask, rows[:, mask]), exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_with_everything_known_it_is_the_prediction_and_with_nothing_the_mean_leaf(name):
    _, trees, _ = fitted(name)
    rows = as_matrix(NEW)
    everything, nothing = np.ones(COLUMNS, dtype=bool), np.zeros(COLUMNS, dtype=bool)
    assert np.array_equal(trees.marginalise(everything, rows), trees.predict_proba(rows))
    answers = trees.marginalise(nothing, rows[:, nothing])
    assert np.array_equal(answers, np.repeat(answers[:1], len(rows), axis=0))
    assert np.allclose(answers.sum(axis=1), 1)


def shapley_values(trees, rows):
    """How much of each person's log odds each column explains (people, columns), by Shapley's
    formula, and the rest.
    """
    worth = {}
    for mask in all_masks():
        worth[frozenset(np.flatnonzero(mask).tolist())] = logit(
            trees.marginalise(mask, rows[:, mask])[:, 1]
        )
    values = np.zeros((len(rows), COLUMNS))
    for j in range(COLUMNS):
        others = [i for i in range(COLUMNS) if i != j]
        for size in range(COLUMNS):
            weight = factorial(size) * factorial(COLUMNS - size - 1) / factorial(COLUMNS)
            for coalition in combinations(others, size):
                values[:, j] += weight * (
                    worth[frozenset(coalition) | {j}] - worth[frozenset(coalition)]
                )
    return np.column_stack([values, worth[frozenset()]])


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_shapley_values_are_the_librarys_own(name):
    """Each of these libraries has a TreeSHAP of its own, which averages over unknown columns in the
    same way.
    """
    model, trees, _ = fitted(name)
    if name == "xgboost":
        data = xgb.DMatrix(NEW, enable_categorical=True)
        theirs = model.get_booster().predict(data, pred_contribs=True)
    elif name == "lightgbm":
        theirs = model.predict(NEW, pred_contrib=True)
    else:
        data = pytest.importorskip("catboost").Pool(as_codes(NEW))
        theirs = model.get_feature_importance(data, type="ShapValues")
    assert np.abs(shapley_values(trees, as_matrix(NEW)) - theirs).max() <= (
        2e-5 if name == "xgboost" else 1e-9
    )


@pytest.mark.parametrize(
    "name", ["xgboost", "lightgbm", "tree", "catboost", "catboost-by-leaves", "catboost-by-depth"]
)
def test_the_cover_counts_the_training_rows_that_pass(name):
    _, trees, _ = fitted(name)
    first = trees.root[1] if len(trees.root) > 1 else len(trees.left)
    count, rows = np.zeros(len(trees.left)), as_matrix(FRAME)

    def pass_through(node, here):
        count[node] = len(here)
        if trees.left[node] != node:
            right = trees._goes_right(np.array([node]), rows[here, trees.column[node]][None, :])[0]
            pass_through(trees.left[node], here[~right])
            pass_through(trees.right[node], here[right])

    pass_through(0, np.arange(len(rows)))
    share = (
        trees.cover[:first] / trees.cover[0]
    )  # XGBoost weights rows, in the first tree all by the same number
    assert np.allclose(share, count[:first] / len(rows), atol=1e-6)


@st.composite
def small_ensembles(draw):
    """Trees of any shape, with numbers, categories and missing values in any order of splits."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = [("sigmoid", 1, 1), ("softmax", 3, 1), ("softmax", 3, 3), ("shares", 2, 2)]
    link, classes, width = draw(st.sampled_from(kinds))
    trees = [
        random_tree(random, draw(st.integers(0, 9)), width, classes)
        for _ in range(draw(st.integers(1, 4)))
    ]
    base = random.normal(size=classes) if link != "shares" else np.zeros(classes)
    return TreeEnsemble.of(trees, COLUMNS, link, base, scale=1 / len(trees)), random


def random_tree(random, splits, width, classes):
    nodes = 2 * splits + 1
    left, right, open_nodes, size = np.full(nodes, -1), np.full(nodes, -1), [0], 1
    column, categories = random.integers(0, COLUMNS, nodes), {}
    for _ in range(splits):
        node = open_nodes.pop(random.integers(len(open_nodes)))
        left[node], right[node] = size, size + 1
        open_nodes += [size, size + 1]
        size += 2
        if column[node] == PLACE:
            categories[node] = random.permutation(5)[: random.integers(0, 5)].tolist()
    value = random.normal(size=(nodes, width))
    if width == 2:
        value = np.column_stack([p := random.random(nodes), 1 - p])
    threshold, missing_right = (
        random.integers(-2, 4, nodes).astype(float),
        random.random(nodes) < 0.5,
    )
    cover = random.integers(0, 4, nodes)
    output = int(random.integers(classes)) if width == 1 else 0
    return Tree(left, right, column, threshold, missing_right, cover, value, categories, output)


@settings(max_examples=some(150), deadline=None)
@given(small_ensembles(), st.lists(st.booleans(), min_size=COLUMNS, max_size=COLUMNS))
def test_any_trees_follow_the_definition(ensemble, mask):
    trees, random = ensemble
    mask = np.array(mask)
    rows = random.integers(-3, 7, (8, COLUMNS)).astype(float)
    rows[random.random(rows.shape) < 0.2] = np.nan
    exact = [expected_probabilities(trees, row, mask) for row in rows]
    assert np.allclose(trees.marginalise(mask, rows[:, mask]), exact, rtol=0, atol=1e-12)
    exact = [expected_probabilities(trees, row, np.ones(COLUMNS, dtype=bool)) for row in rows]
    assert np.allclose(trees.predict_proba(rows), exact, rtol=0, atol=1e-12)


def test_many_people_are_answered_in_parts(monkeypatch):
    _, trees, _ = fitted("random-forest")
    rows, mask = as_matrix(NEW), np.array([True, True, False, False])
    whole = trees.predict_proba(rows), trees.marginalise(mask, rows[:, mask])
    monkeypatch.setattr("edfa.predictors.own_model.trees.BLOCK", 10_000)
    assert np.array_equal(trees.predict_proba(rows), whole[0])
    assert np.array_equal(trees.marginalise(mask, rows[:, mask]), whole[1])


def test_inputs_of_another_width_are_refused():
    trees, rows = fitted("xgboost")[1], as_matrix(NEW)
    with pytest.raises(ColumnError, match="4 columns is due"):
        trees.predict_proba(rows[:, :3])
    with pytest.raises(ColumnError, match="4 input columns"):
        trees.marginalise(np.ones(3, dtype=bool), rows[:, :3])
    with pytest.raises(ColumnError, match="2 columns is due"):
        trees.marginalise(np.array([True, True, False, False]), rows)


# what is not read


def unreadable_models():
    numbers = as_codes(FRAME)
    filled = numbers.fillna(0)
    yield "histogram boosting", HistGradientBoostingClassifier(max_iter=3).fit(numbers, TWO)
    yield "gradient boosting", GradientBoostingClassifier(n_estimators=3).fit(filled, TWO)
    yield "logistic", LogisticRegression().fit(filled, TWO)
    yield "pipeline", make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(numbers, TWO)
    yield "two outcomes", RandomForestClassifier(3).fit(numbers, np.column_stack([TWO, THREE]))
    yield "a function", lambda frame: frame
    yield "xgboost regression", xgb.XGBRegressor(n_estimators=3, n_jobs=1).fit(numbers, TWO)
    yield "its booster", xgb.XGBRegressor(n_estimators=3, n_jobs=1).fit(numbers, TWO).get_booster()
    yield (
        "xgboost, -1 means missing",
        xgb.XGBClassifier(n_estimators=3, missing=-1.0, n_jobs=1).fit(numbers, TWO),
    )
    yield (
        "xgboost, linear",
        xgb.XGBClassifier(n_estimators=3, booster="gblinear", n_jobs=1).fit(numbers, TWO),
    )
    several = xgb.XGBClassifier(n_estimators=3, multi_strategy="multi_output_tree", n_jobs=1)
    yield "xgboost, all classes in one tree", several.fit(numbers, THREE)


@pytest.mark.filterwarnings("ignore:.*are not used:UserWarning")
def test_what_cannot_be_read_is_none():
    for name, model in unreadable_models():
        assert read_trees(model) is None, name


def test_lightgbm_models_that_cannot_be_read():
    lightgbm = pytest.importorskip("lightgbm")
    regression = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(FRAME, TWO)
    assert read_trees(regression) is None
    assert read_trees(regression.booster_) is None
    assert read_trees(lightgbm_model(zero_as_missing=True)) is None
    assert read_trees(lightgbm_model(3, objective="multiclassova")) is None
    assert read_trees(lightgbm_model(linear_tree=True)) is None


def test_catboost_models_that_cannot_be_read():
    words = FRAME.assign(place=FRAME["place"].astype(object).fillna("none"))
    assert read_trees(catboost_model(frame=words, cat_features=["place"])) is None
    assert (
        read_trees(catboost_model(frame=words, cat_features=["place"], one_hot_max_size=20)) is None
    )
    assert read_trees(catboost_model(3, loss_function="MultiClassOneVsAll")) is None
