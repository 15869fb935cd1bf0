"""Settings and learnt state say which model it is: another answer, another state; the same fit, the
same state.
"""

import pickle
from collections.abc import Mapping

import numpy as np
import pytest
from hostile.folders import rehash
from sklearn.base import clone

import edfa
from edfa import BayesNet, FTTransformer, MaskedMLP, SubsetXGB
from edfa.errors import DataError, SettingError, UnreadableError
from edfa.predictors import align
from edfa.predictors.base import as_mappings, sample_weights

TABLE = edfa.load("german")
X, Y = TABLE.train.X[:, :8], TABLE.train.y
OTHER_ROWS = X[::-1][:-1].copy(), Y[::-1][:-1]
MODELS = {
    "xgb": lambda **o: SubsetXGB(**{"n_estimators": 10, **o}),
    "nan": lambda **o: SubsetXGB(**{"mode": "nan", "n_estimators": 10, **o}),
    "mlp": lambda **o: MaskedMLP(**{"epochs": 2, **o}),
    "ftt": lambda **o: FTTransformer(**{"epochs": 1, **o}),
    "bn": lambda **o: BayesNet(**o),
}
each = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
learning = pytest.mark.parametrize(
    "make", [MODELS[name] for name in ("xgb", "nan", "mlp", "ftt", "bn")]
)


def flat(value, name=""):
    """All leaves of nested mappings, by path; arrays as dtype, shape and bytes, estimators as their
    settings.
    """
    if hasattr(value, "get_params"):
        return flat(value.get_params(deep=False), name)
    if isinstance(value, Mapping):
        return {
            key: leaf
            for inner in value
            for key, leaf in flat(value[inner], f"{name}/{inner}").items()
        }
    if isinstance(value, np.ndarray):
        return {name: (str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())}
    assert value is None or isinstance(
        value, str | bytes | bool | int | float | np.generic | tuple
    ), (name, value)
    return {name: value}


def identity(model):
    return flat({"params": model.get_params(deep=False), "state": model.learnt_state()})


@each
def test_the_same_fit_has_the_same_state_whatever_was_asked_since(make, tmp_path):
    first, second = make().fit(X, Y), make().fit(X, Y)
    assert identity(first) == identity(second)
    before = identity(first)
    first.predict_proba(X[:20])
    assert identity(first) == before, "asking changes nothing"
    assert identity(first.fit(X, Y)) == before, "nor does fitting it again"
    assert identity(clone(first).fit(X, Y)) == before
    assert identity(pickle.loads(pickle.dumps(first))) == before  # noqa: S301
    if hasattr(first, "to_folder"):
        first.to_folder(tmp_path / "model")
        assert identity(type(first).from_folder(tmp_path / "model")) == before


@each
def test_other_rows_another_threshold_and_other_classes_show(make):
    model = make().fit(X, Y)
    others = {
        "other rows": make().fit(*OTHER_ROWS),
        "one class changed": make().fit(X, np.where(np.arange(len(Y)) == 7, 1 - Y, Y)),
        "other names of classes": make().fit(X, Y + 1),
        "a setting": make(threshold=0.3).fit(X, Y),
        "a class weight": make(class_weight="balanced").fit(X, Y),
    }
    for what, other in others.items():
        assert identity(other) != identity(model), what
    model.threshold = 0.7
    assert identity(model) != identity(make().fit(X, Y)), "a threshold that was set afterwards"


@pytest.mark.parametrize("make", [MODELS[name] for name in ("xgb", "nan", "mlp", "ftt")])
def test_another_seed_shows(make):
    assert identity(make(seed=1).fit(X, Y)) != identity(make().fit(X, Y))


@pytest.mark.parametrize("make", [MODELS["mlp"], MODELS["ftt"]])
def test_weights_alone_show(make):
    """Two networks of the same settings and rows, one trained a step further."""
    model, other = make().fit(X, Y), make().fit(X, Y)
    for weights in other.network_.parameters():
        weights.data += 1e-3
    assert flat(model.learnt_state()) != flat(other.learnt_state())


def test_which_columns_are_shown_and_of_which_model_shows():
    inner, other = (SubsetXGB(n_estimators=10, seed=seed).fit(X, Y) for seed in (0, 1))
    views = [
        align(inner, [0, 1]),
        align(inner, [0, 2]),
        align(other, [0, 1]),
        align(align(inner, [0, 1, 2]), [0, 1]),
    ]
    *states, twice = map(identity, views)
    assert all(states[i] != states[j] for i in range(3) for j in range(i))
    assert identity(align(inner, [1, 0])) == states[0]
    assert twice == states[0], "a view of a view that is shown the same columns answers the same"
    assert align(inner, [0, 1]).cache_key == views[0].cache_key != inner.cache_key


@each
def test_before_a_fit_nothing_is_learnt(make):
    assert make().learnt_state() == {}


@each
def test_the_constructor_stores_settings_and_nothing_else(make):
    model = make()
    assert set(vars(model)) == set(model.get_params(deep=False))
    assert repr(model).startswith(type(model).__name__)


@each
def test_what_was_learnt_ends_with_an_underscore(make):
    model = make()
    settings = set(vars(model))
    model.fit(X, Y).predict_proba(X[:5])
    learnt = {name for name in vars(model) if not name.startswith("_")} - settings
    assert {name for name in learnt if not name.endswith("_")} <= {"threshold", "favourable"}, (
        "but for the view's"
    )


@learning
def test_progress_is_told_and_no_setting(make):
    steps = []
    make().fit(X, Y, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] == len(steps)
    assert "progress" not in make().get_params()


@learning
def test_weights_of_classes_by_name_are_kept_in_a_folder(make, tmp_path):
    model = make(class_weight={0: 5.0, 1: 1.0}).fit(X, Y)
    balanced, plain = (make(class_weight=weight).fit(X, Y) for weight in ("balanced", None))
    rows = TABLE.test.X[:, :8]
    assert model.predict_proba(rows)[:, 0].mean() > plain.predict_proba(rows)[:, 0].mean()
    assert not np.array_equal(model.predict_proba(rows), balanced.predict_proba(rows))
    model.to_folder(tmp_path / "model")
    again = type(model).from_folder(tmp_path / "model")
    assert again.class_weight == {0: 5.0, 1: 1.0}
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize("bad", ["balance", {0: 1.0, 5: 2.0}, 3])
@learning
def test_class_weights_that_make_no_sense(make, bad):
    with pytest.raises(
        SettingError, match="class_weight: 'balanced', a weight for every class, or None"
    ):
        make(class_weight=bad).fit(X, Y)


def test_balanced_weights_make_all_classes_count_the_same():
    codes = np.array([0] * 70 + [1] * 20 + [2] * 10)
    weights = sample_weights("balanced", codes)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(np.bincount(codes, weights), 100 / 3, rtol=1e-6)
    assert sample_weights(None, codes) is None


def test_positions_stand_for_lists():
    assert as_mappings({1: [np.int64(3), ("a",)], "b": None}) == {
        "1": {"0": 3, "1": {"0": "a"}},
        "b": None,
    }


@learning
def test_settings_of_another_version_are_named(make, tmp_path):
    make().fit(X, Y).to_folder(tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"class_weight"', '"balanced"'))
    rehash(tmp_path / "model")
    with pytest.raises(UnreadableError, match=r"another edfa: \w+ has no setting 'balanced'"):
        type(make()).from_folder(tmp_path / "model")


@learning
def test_classes_that_are_words_are_not_saved(make, tmp_path):
    with pytest.raises(DataError, match="classes must be numbers to be saved"):
        make().fit(X, np.where(Y == 1, "good", "bad")).to_folder(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("max_models", [0, -1])
def test_a_cache_holds_at_least_one_model(max_models):
    with pytest.raises(SettingError, match="max_models: at least 1"):
        SubsetXGB().cache_in(max_models=max_models)


def test_where_models_are_cached_changes_no_answer_and_is_no_setting(tmp_path):
    """Before or after the fit; a clone starts without."""
    rows = np.where(np.random.default_rng(0).random((60, 8)) < 0.4, X[:60], np.nan)
    plain = SubsetXGB(n_estimators=10).fit(X, Y)
    before = SubsetXGB(n_estimators=10).cache_in(tmp_path / "a", max_models=2).fit(X, Y)
    after = SubsetXGB(n_estimators=10).fit(X, Y).cache_in(tmp_path / "b", max_models=2)
    for model in (before, after):
        np.testing.assert_array_equal(model.predict_proba(rows), plain.predict_proba(rows))
        assert len(model._models) == 2
        assert identity(model) == identity(plain)
    assert (
        len(list((tmp_path / "a").rglob("*.ubj"))) == len(list((tmp_path / "b").rglob("*.ubj"))) > 2
    )
    assert clone(before)._cache_folder is None
    fewer = plain.cache_in(max_models=1)
    assert len(fewer._models) == 1
    sent = pickle.loads(pickle.dumps(before))  # noqa: S301
    assert sent._cache_folder == tmp_path / "a"


def test_a_setting_changed_after_the_fit_finds_no_models_of_before(tmp_path):
    """Models on disk are found by the settings that trained them, not by those at the time of the
    fit.
    """
    model = SubsetXGB(n_estimators=10).cache_in(tmp_path).fit(X, Y)
    model.predict_proba(X[:1])
    model.set_params(max_depth=1)
    model._models.forget()
    shallow = SubsetXGB(n_estimators=10, max_depth=1).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), shallow.predict_proba(X))
