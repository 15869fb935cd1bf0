import concurrent.futures
import copy
import multiprocessing
import threading

import numpy as np
import pytest
import xgboost as xgb
from random_worlds import random_network
from sklearn.base import clone

import edfa
from edfa import SubsetXGB
from edfa.data.synthetic import credit_story
from edfa.errors import (
    DataError,
    EmptyTableError,
    SettingError,
    TargetError,
    UnknownNameError,
    UnreadableError,
)
from edfa.fingerprint import digest
from edfa.predictors.base import UnfittedError, by_mask
from edfa.testing import check_predictor

TABLE = edfa.load("german")
X, Y = TABLE.train.X, TABLE.train.y


def small(**options):
    return SubsetXGB(**{"n_estimators": 40, **options})


@pytest.mark.parametrize("mode", ["per_subset", "nan"])
def test_the_contract(mode):
    check_predictor(lambda: small(mode=mode), X, Y)


def test_three_classes_keep_the_contract():
    table = random_network(7, seed=3).table(400)
    classes = np.random.default_rng(0).integers(0, 3, len(table.train))
    check_predictor(small, table.train.X, classes)


@pytest.mark.parametrize("mode", ["per_subset", "nan"])
def test_it_comes_close_to_the_exact_posterior(mode):
    story = credit_story()
    table = story.table(6000)
    model = SubsetXGB(mode).fit(table.train.X, table.train.y)
    rows = table.test.X[:400].astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.5] = np.nan
    gap = np.abs(model.predict_proba(rows) - story.posterior(rows)).mean()
    assert gap < (0.02 if mode == "per_subset" else 0.04)


def test_all_known_is_plain_xgboost():
    model = small().fit(X, Y)
    everything = np.ones(X.shape[1], dtype=bool)
    direct = model.booster(everything).predict(xgb.DMatrix(TABLE.test.X))
    np.testing.assert_allclose(model.predict_proba(TABLE.test.X)[:, 1], direct, atol=1e-6)


def test_values_in_one_cell_are_the_same_to_the_model():
    model = small().fit(X, Y)
    mask = np.zeros(20, dtype=bool)
    mask[[1, 4, 12]] = True
    thresholds = model.cells(mask, 4)
    assert len(thresholds) > 3
    assert (np.diff(thresholds) > 0).all()
    row = np.where(mask, TABLE.test.X[0], np.nan).astype(np.float32)
    sweep = np.sort(
        np.concatenate([thresholds, np.nextafter(thresholds, np.float32(-np.inf)), X[:, 4]])
    )
    people = np.tile(row, (len(sweep), 1))
    people[:, 4] = sweep
    probabilities = model.predict_proba(people)[:, 1]
    cell = np.searchsorted(thresholds, sweep, side="right")
    for c in np.unique(cell):
        assert len(set(probabilities[cell == c])) == 1
    assert len(model.cells(mask, 0)) == 0, "a feature that is not known splits nothing"


def test_models_are_cached_in_memory_up_to_a_limit_and_on_disk(tmp_path, monkeypatch):
    fitted = []
    train = SubsetXGB._train
    monkeypatch.setattr(
        SubsetXGB, "_train", lambda self, mask: fitted.append(1) or train(self, mask)
    )
    rows = np.full((6, 20), np.nan, dtype=np.float32)
    rows[np.arange(6), np.arange(6)] = 0
    model = small().cache_in(tmp_path, max_models=3).fit(X, Y)
    first = model.predict_proba(rows)
    assert len(fitted) == 6
    assert len(model._models) == 3
    np.testing.assert_array_equal(model.predict_proba(rows), first)
    other = small().cache_in(tmp_path, max_models=3).fit(X, Y)
    np.testing.assert_array_equal(other.predict_proba(rows), first)
    assert len(fitted) == 6, "the others come from disk"
    for file in tmp_path.rglob("*.ubj"):
        file.write_bytes(file.read_bytes()[:40])
    np.testing.assert_array_equal(small().cache_in(tmp_path).fit(X, Y).predict_proba(rows), first)
    assert len(fitted) == 12, "a damaged file is fitted anew"
    small(seed=1).cache_in(tmp_path).fit(X, Y).predict_proba(rows)
    assert len(fitted) == 18, "another seed is another model"


def test_threads_share_one_model():
    model = small().fit(X, Y)
    rows = np.where(np.random.default_rng(0).random((60, 20)) < 0.3, X[:60], np.nan)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict_proba(rows), range(4)))
    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])


def test_who_waits_for_a_model_keeps_nobody_else_waiting(monkeypatch):
    """One is learnt slowly: who needs it waits and it is learnt once; who needs another is answered
    meanwhile.
    """
    model, go_on, learnt = small().fit(X, Y), threading.Event(), []
    slow, train = np.arange(20) < 3, SubsetXGB._train

    def patient(self, mask):
        learnt.append(int(mask.sum()))
        assert mask.sum() != 3 or go_on.wait(30)
        return train(self, mask)

    monkeypatch.setattr(SubsetXGB, "_train", patient)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(model.booster, slow) for _ in range(3)]
        quick = pool.submit(model.booster, np.arange(20) < 5)
        assert quick.result(timeout=600) is model.booster(np.arange(20) < 5)
        assert not any(one.done() for one in waiting)
        go_on.set()
        assert len({id(one.result(timeout=600)) for one in waiting}) == 1
    assert sorted(learnt) == [3, 5]


def _answer_in_a_process(folder):
    rows = np.where(np.random.default_rng(0).random((60, 20)) < 0.3, X[:60], np.nan)
    return small().cache_in(folder).fit(X, Y).predict_proba(rows)


@pytest.mark.long
def test_processes_share_one_folder(tmp_path):
    """Started at once they fit the same models and write the same files: nobody reads half of
    one.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
        answers = list(pool.map(_answer_in_a_process, [str(tmp_path)] * 3))
    cached = sorted(tmp_path.rglob("*"))
    assert [path for path in cached if path.suffix == ".ubj"], "models are on disk"
    assert not [path for path in cached if path.name.startswith(".")], "no partial file is left"
    for other in [*answers[1:], _answer_in_a_process(str(tmp_path))]:
        np.testing.assert_array_equal(other, answers[0])


def test_rows_are_grouped_by_what_is_known():
    rows = np.array([[1, np.nan], [np.nan, 2], [3, np.nan], [np.nan, np.nan]], dtype=np.float32)
    groups = {tuple(mask.tolist()): places.tolist() for mask, places in by_mask(rows)}
    assert groups == {(True, False): [0, 2], (False, True): [1], (False, False): [3]}


def test_a_threshold_decides():
    probabilities = small().fit(X, Y).predict_proba(X)[:, 1]
    strict = small(threshold=0.9).fit(X, Y)
    np.testing.assert_array_equal(strict.predict(X), (probabilities >= 0.9).astype(int))
    three = small(threshold=0.5).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(DataError, match="between two classes, not 3"):
        three.predict(X)


def test_balance_moves_towards_the_rare_class():
    rare = (np.random.default_rng(0).random(len(X)) < 0.1).astype(int)
    plain, even = (
        small(class_weight=weight).fit(X, rare).predict_proba(TABLE.test.X)[:, 1].mean()
        for weight in (None, "balanced")
    )
    assert even > plain + 0.1


HOLE = X.copy()
HOLE[:, 3] = np.nan
ENDLESS = X.copy()
ENDLESS[2, 1] = np.inf


@pytest.mark.parametrize(
    ("rows", "classes", "options", "error", "message"),
    [
        (HOLE, Y, {}, DataError, "column 3 of X has no value"),
        (ENDLESS, Y, {}, DataError, r"infinite \(inf\) in row 2, column 1"),
        (
            X,
            np.where(np.arange(len(Y)) == 5, np.nan, Y),
            {},
            TargetError,
            "y does not name classes",
        ),
        (X, np.zeros(len(Y)), {}, TargetError, "one class only"),
        (X, Y[:-1], {}, DataError, "one class a row"),
        (X[0], Y, {}, DataError, r"Reshape your data: one person is \(1, n\)"),
        (X[:0], Y[:0], {}, EmptyTableError, "no rows"),
        ([["a"]], [1], {}, DataError, "a matrix of numbers"),
        (X, Y, {"mode": "per subset"}, UnknownNameError, "did you mean 'per_subset'"),
        (X, Y, {"n_estimators": 0}, SettingError, "at least 1"),
    ],
)
def test_bad_training_input(rows, classes, options, error, message):
    with pytest.raises(error, match=message):
        small(**options).fit(rows, classes)


def test_bad_questions():
    with pytest.raises(UnfittedError, match=r"call fit\(X, y\) first"):
        small().predict_proba(X)
    model = small().fit(X, Y)
    with pytest.raises(DataError, match="X has 3 features, but SubsetXGB is expecting 20"):
        model.predict_proba(X[:, :3])
    with pytest.raises(DataError, match="infinite"):
        model.predict_proba(ENDLESS)


def test_a_folder_with_a_changed_byte(tmp_path):
    model = small(mode="nan").fit(X, Y)
    folder = tmp_path / "model"
    model.to_folder(folder)
    model.to_folder(folder)
    (part,) = folder.glob("*.ubj")
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    with pytest.raises(UnreadableError, match="has been changed"):
        SubsetXGB.from_folder(folder)
    part.unlink()
    with pytest.raises(UnreadableError, match="has been changed"):
        SubsetXGB.from_folder(folder)
    manifest = folder / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(UnreadableError, match="another edfa"):
        SubsetXGB.from_folder(folder)
    manifest.write_text(text.replace("SubsetXGB", "Other"))
    with pytest.raises(UnreadableError, match="holds a Other, not a SubsetXGB"):
        SubsetXGB.from_folder(folder)
    manifest.unlink()
    with pytest.raises(UnreadableError, match="not a saved model"):
        SubsetXGB.from_folder(folder)


SETS = np.array([np.arange(20) < 3, np.arange(20) % 2 == 0, np.ones(20, dtype=bool)])
ASKED = np.where(
    np.random.default_rng(0).random((60, 20)) < 0.5, TABLE.test.X[:60], np.float32(np.nan)
)


def mixed(**options):
    return small(mode="mixed", **options).fit(X, Y)


def hide(mask, rows=TABLE.test.X[:60]):
    return np.where(mask, rows, np.float32(np.nan))


def test_sets_that_are_named_have_their_own_model_and_others_share_one():
    exact, masked, model = small().fit(X, Y), small(mode="nan").fit(X, Y), mixed().keeping(SETS)
    for mask in SETS:
        np.testing.assert_array_equal(
            model.predict_proba(hide(mask)), exact.predict_proba(hide(mask))
        )
    np.testing.assert_array_equal(model.predict_proba(ASKED), masked.predict_proba(ASKED))
    unnamed = mixed()
    np.testing.assert_array_equal(unnamed.predict_proba(ASKED[:5]), exact.predict_proba(ASKED[:5]))
    assert model.kept_.shape == (3, 20)
    assert unnamed.kept_ is None
    with pytest.raises(SettingError, match="mode 'mixed', not 'nan'"):
        masked.keeping(SETS)


def test_which_model_answers_does_not_depend_on_what_was_asked_before(tmp_path):
    fresh, used = mixed().keeping(SETS), mixed()
    used.predict_proba(ASKED[:20])  # each of these sets has its own model here
    used = used.keeping(SETS[:1]).keeping(SETS[::-1]).cache_in(max_models=1)
    expected = fresh.predict_proba(np.concatenate([ASKED, *map(hide, SETS)]))
    turned = used.predict_proba(np.concatenate([ASKED, *map(hide, SETS)])[::-1])
    np.testing.assert_array_equal(turned[::-1], expected)
    assert digest(fresh) == digest(used)
    assert (
        len(
            {
                digest(model)
                for model in (fresh, mixed(), mixed().keeping(SETS[:2]), mixed().keeping([]))
            }
        )
        == 4
    )
    used.to_folder(tmp_path / "model")
    copies = (SubsetXGB.from_folder(tmp_path / "model"), copy.deepcopy(fresh))
    for other in copies:
        np.testing.assert_array_equal(
            other.predict_proba(np.concatenate([ASKED, *map(hide, SETS)])), expected
        )
        assert digest(other) == digest(fresh)
    assert not hasattr(clone(fresh), "kept_")


def test_a_folder_holds_what_can_still_be_asked_for(tmp_path):
    model = mixed()
    model.predict_proba(ASKED[:10])
    model = model.keeping(SETS[:1])
    model.predict_proba(np.concatenate([ASKED[:10], hide(SETS[0])]))
    model.to_folder(tmp_path / "model")
    assert len(list((tmp_path / "model").glob("*.ubj"))) == 2


def test_mixed_models_share_a_folder_without_mixing_up(tmp_path):
    everything = hide(SETS[2])
    expected = [mixed().keeping(kept).predict_proba(everything) for kept in (SETS, [])]
    assert (expected[0] != expected[1]).any()
    for _ in range(2):
        for kept, probabilities in zip((SETS, []), expected, strict=True):
            model = small(mode="mixed").cache_in(tmp_path).fit(X, Y).keeping(kept)
            np.testing.assert_array_equal(model.predict_proba(everything), probabilities)


@pytest.mark.parametrize("kept", [True, False])
def test_cells_and_decisions_of_mixed_models(kept):
    model = mixed(threshold=0.7).keeping(SETS[1:2] if kept else SETS[:1])
    mask, rows = SETS[1], TABLE.test.X[:30]
    for feature in (2, 4):
        thresholds = model.cells(mask, feature)
        assert len(thresholds)
        sweep = np.sort(np.concatenate([thresholds, np.nextafter(thresholds, np.float32(-np.inf))]))
        people = np.tile(hide(mask, rows[:1]), (len(sweep), 1))
        people[:, feature] = sweep
        answers, cell = (
            model.predict_proba(people)[:, 1],
            np.searchsorted(thresholds, sweep, side="right"),
        )
        assert all(len(set(answers[cell == c])) == 1 for c in np.unique(cell))
    column, value = np.array([1, 1, 2]), np.array([-1.0, 1.5, 0.5], dtype=np.float32)
    decided = model.decide_tries(mask, rows[:, mask], column, value)
    assert (decided is not None) == kept, "the masked model has no faster way"
    for i in range(3) if kept else ():
        changed = rows[:, mask].copy()
        changed[:, column[i]] = value[i]
        np.testing.assert_array_equal(
            decided[:, i], model.decide(model.predict_known(mask, changed))
        )


@pytest.mark.parametrize("kept", [True, False])
def test_mixed_models_obey_directions(kept):
    signs = tuple(1 if j == 1 else -1 if j == 4 else 0 for j in range(20))
    model = mixed(monotone=signs).keeping(SETS if kept else [])
    people = np.tile(
        hide(np.ones(20, dtype=bool) if kept else np.arange(20) < 9)[:, None], (1, 40, 1)
    )
    for feature in (1, 4):
        moved = people.copy()
        moved[:, :, feature] = np.linspace(X[:, feature].min(), X[:, feature].max(), 40)
        chances = model.predict_proba(moved.reshape(-1, 20))[:, 1].reshape(60, 40)
        assert (np.diff(chances, axis=1) * signs[feature] >= 0).all()
        assert (np.diff(chances, axis=1) != 0).any()
