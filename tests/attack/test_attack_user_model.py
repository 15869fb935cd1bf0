"""Files of models that somebody changed: refused without running or unpacking anything, and nothing
crashes.
"""

import contextlib
import functools
import io
import json
import operator
import os
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import xgboost as xgb
from effort import some
from hostile.user_models import asked, change_part, flip_bit, outcome, own_model, parts_of, people
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import Bunch

from edfa.errors import EdfaError, ModelError, UnreadableError
from edfa.predictors.user_model import skops_file
from edfa.predictors.user_model.check_nodes import check_lightgbm, check_nodes
from edfa.predictors.user_model.files import (
    open_model,
    read_model,
    try_in_child,
    write_model,
)
from edfa.predictors.user_model.onnx import OnnxModel
from edfa.predictors.user_model.skops_file import needs_trial, unpack

sio = pytest.importorskip("skops.io")
bounded = settings(max_examples=some(50), deadline=None, suppress_health_check=list(HealthCheck))


def with_function(function, **settings):
    """A skops file of a Pipeline that calls a function when it is asked."""
    model = make_pipeline(FunctionTransformer(), LogisticRegression()).fit(
        people()[["age"]], outcome()
    )
    model.steps[0][1].set_params(func=function, **settings)
    return sio.dumps(model)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (os.system, "posix.system"),
        (eval, "builtins.eval"),
        (np.load, "numpy.load"),
        (functools.partial(os.system, "touch owned"), "posix.system"),
        (operator.methodcaller("to_pickle", "owned"), "OperatorFuncNode"),
        (LogisticRegression().fit, "MethodNode"),
        (subprocess.Popen, "subprocess.Popen"),
    ],
)
def test_a_function_in_a_pipeline_is_refused_and_not_run(function, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableError, match=named):
        unpack(with_function(function), "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_no_module_that_a_file_names_is_imported(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("import pathlib\npathlib.Path('owned').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    content = change_part(
        with_function(np.log1p),
        lambda part: part.replace(b"LogisticRegression", b"Model").replace(
            b"sklearn.linear_model._logistic", b"planted"
        ),
        lambda name: name == "schema.json",
    )
    with pytest.raises(UnreadableError, match=r"planted\.Model"):
        unpack(content, "model.skops")
    assert not (tmp_path / "owned").exists()


def bomb(size, entries=1):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(entries):
            file.writestr(f"{number}.npy", bytes(size))
    return target.getvalue()


def test_a_zip_bomb_is_refused_without_unpacking_it(monkeypatch):
    content = bomb(100 << 20)
    lying = content.replace((100 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != content
    monkeypatch.setattr(skops_file, "MOST_ENTRIES", 10)
    tracemalloc.start()
    try:
        for changed, reason in (
            (content, "times its size"),
            (lying, "damaged|larger"),
            (bomb(1, 20), "20 parts"),
        ):
            with pytest.raises(UnreadableError, match=reason):
                unpack(changed, "model.skops")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    monkeypatch.undo()
    monkeypatch.setattr(skops_file, "UNPACKED_LIMIT", 1 << 20)
    with pytest.raises(UnreadableError, match="at most 1,048,576 are read"):
        unpack(
            change_part(
                write_model(own_model("forest"))[1],
                lambda _: bytes(2_000_000),
                lambda name: name.endswith(".npy"),
            ),
            "m",
        )


def test_files_that_are_no_skops_files_are_one_error():
    deep = io.BytesIO()
    with zipfile.ZipFile(deep, "w") as file:
        file.writestr("schema.json", "[" * 100_000)
    for content in (b"", b"PK\x03\x04", bomb(10), deep.getvalue()):
        with pytest.raises(UnreadableError):
            unpack(content, "model.skops")


def lead_astray(part, field="left_child", value=10**7, node=0):
    """The nodes of a tree, one of which leads where nothing is."""
    array = np.load(io.BytesIO(part))
    if array.dtype.names is None or field not in array.dtype.names:
        return part
    array[field][node] = value
    target = io.BytesIO()
    np.save(target, array)
    return target.getvalue()


CRASH = """
import sys
from skops.io import loads
from edfa.predictors.user_model.skops_file import TRUSTED
import pandas as pd
column, _, content = sys.stdin.buffer.read().partition(b"\\n")
model = loads(content, trusted=list(TRUSTED))
model.predict_proba(pd.DataFrame([[1.0] * model.n_features_in_]).to_numpy())
"""


def crashes(content):
    """Whether reading and asking a skops file, unchecked, ends the process."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CRASH],
        input=b"\n" + content,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    return ended.returncode < 0  # a signal ended it


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_tree_that_crashes_whoever_asks_it_is_refused_before_it_is_asked():
    model = RandomForestClassifier(5, random_state=0).fit(people()[["age"]].to_numpy(), outcome())
    content = change_part(sio.dumps(model), lead_astray, lambda name: name.endswith(".npy"))
    assert crashes(content)
    with pytest.raises(UnreadableError, match="a node that is not there"):
        unpack(content, "model.skops")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("counted", [[10**8, -(10**8)], [-(10**8), 10**8]])
def test_support_vectors_that_are_not_there_are_refused_before_they_are_asked(counted):
    model = SVC(probability=True).fit(people()[["age"]].to_numpy(), outcome())
    check_nodes(unpack(sio.dumps(model), "model.skops"))
    model._n_support = (model._n_support + counted).astype(np.int32)
    content = sio.dumps(model)
    assert crashes(content)
    with pytest.raises(UnreadableError, match="support vectors are others than it says"):
        unpack(content, "model.skops")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_probA", np.zeros(2)),
        ("_dual_coef_", np.zeros((1, 1))),
        ("support_", np.zeros(1, dtype=np.int32)),
        ("kernel", "precomputed"),
        ("_sparse", True),
    ],
)
def test_support_vectors_of_other_shapes_are_refused(name, value):
    model = SVC(probability=True).fit(people()[["age"]].to_numpy(), outcome())
    setattr(model, name, value)
    with pytest.raises(UnreadableError, match=r"support vectors|kernel"):
        unpack(sio.dumps(model), "model.skops")


def test_what_is_no_tree_is_refused_where_native_code_takes_it_for_one():
    numbers = people()[["age"]].to_numpy()
    model = GradientBoostingClassifier(n_estimators=2).fit(numbers, outcome())
    for member in model.estimators_.ravel():
        member.tree_ = Bunch(value=np.zeros((3, 1, 1)))
    with pytest.raises(UnreadableError, match="none of scikit-learn's"):
        unpack(sio.dumps(model), "model.skops")


def test_neighbours_of_other_classes_are_refused():
    model = KNeighborsClassifier(algorithm="brute").fit(people()[["age"]].to_numpy(), outcome())
    check_nodes(unpack(sio.dumps(model), "model.skops"))
    for labels in (model._y + 10**6, model._y - 1, model._y[1:]):
        model._y = labels
        with pytest.raises(UnreadableError, match="class"):
            unpack(sio.dumps(model), "model.skops")


@pytest.mark.parametrize(
    ("model", "tried"),
    [
        (RandomForestClassifier(n_estimators=2), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (KNeighborsClassifier(algorithm="kd_tree"), True),
        (make_pipeline(StandardScaler(), xgb.XGBClassifier(n_estimators=2)), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_known_to_be_looked_through_is_tried_in_another_process(model, tried):
    fitted = model.fit(people()[["age"]].to_numpy(), np.unique(outcome(), return_inverse=True)[1])
    assert needs_trial(sio.dumps(fitted), "model.skops") == tried


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux bounds the memory of a process"
)
def test_a_file_that_takes_too_much_memory_or_time_is_refused():
    own = own_model("logistic")

    def grow(part):
        array = np.load(io.BytesIO(part))
        shape, more = str(array.shape), f"({1 << 27},)"
        head = part[:128].replace(shape.encode(), more.encode())[:127].ljust(127) + b"\n"
        return head + part[128:] if array.dtype == float else part

    content = change_part(write_model(own)[1], grow, lambda name: name.endswith(".npy"))
    with pytest.raises(UnreadableError, match=r"takes more than 0\.25 GiB"):
        try_in_child("model.skops", content, memory=1 << 28)
    with pytest.raises(UnreadableError, match=r"tried for 0\.01 seconds"):
        try_in_child("model.skops", content, seconds=0.01)
    with pytest.raises(UnreadableError, match="damaged"):
        unpack(content, "model.skops")


DAMAGES = [
    ("left_child", 10**7),
    ("left_child", 0),
    ("right_child", -5),
    ("feature", 4),
    ("feature", -7),
]
DAMAGES += [("left", 10**7), ("right", 0), ("feature_idx", 99), ("bitset_idx", 50)]


@pytest.mark.parametrize(("field", "value"), DAMAGES)
def test_every_node_is_looked_at_not_only_those_that_rows_come_by(field, value):
    name = (
        "forest" if field in ("left_child", "right_child", "feature") else "histograms, categories"
    )
    content = write_model(own_model(name))[1]

    def damage(part):
        array = np.load(io.BytesIO(part))
        if array.dtype.names is None:
            return part
        inner = array["left_child"] != -1 if name == "forest" else array["is_leaf"] == 0
        inner &= array["is_categorical"] != 0 if field == "bitset_idx" else True
        return lead_astray(part, field, value, np.flatnonzero(inner)[-1]) if inner.any() else part

    check_nodes(unpack(content, "model.skops"))
    with pytest.raises(UnreadableError, match="tree"):
        unpack(change_part(content, damage, lambda part: part.endswith(".npy")), "model.skops")


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("left_child=", "left_child=9"),
        ("num_class=", "num_class=3"),
        *(
            pytest.param(*other, marks=pytest.mark.long)
            for other in (
                ("right_child=", "right_child=1 "),
                ("split_feature=", "split_feature=7"),
                ("num_leaves=", "num_leaves=9"),
                ("max_feature_idx=", "max="),
                ("tree_sizes=", "tree_sizes=1"),
            )
        ),
    ],
)
def test_trees_of_lightgbm_are_looked_at_before_it_reads_them(line, changed):
    text = write_model(own_model("lightgbm booster"))[1].decode()
    check_lightgbm(text, "model.lgb.txt")
    assert line in text
    with pytest.raises(UnreadableError, match="as LightGBM writes it"):
        read_model("model.lgb.txt", text.replace(line, changed, 1).encode(), "booster")


@pytest.mark.parametrize(
    ("field", "value"), [("left_children", 10**6), ("split_indices", 900), ("parents", 3)]
)
def test_trees_of_xgboost_are_looked_at(field, value):
    class Booster:
        def save_raw(self, _):
            return json.dumps(whole).encode()

    Booster.__module__ = "xgboost.core"
    whole = json.loads(bytes(own_model("xgboost").model.get_booster().save_raw("json")))
    check_nodes(Booster())
    whole["learner"]["gradient_booster"]["model"]["trees"][-1][field][0] = value
    with pytest.raises(UnreadableError):
        check_nodes(Booster())


def damage_model(**changed):
    """An XGBoost file in JSON with entries of its trees' list, or of its last tree, replaced."""
    whole = json.loads(bytes(own_model("xgboost").model.get_booster().save_raw("json")))
    model = whole["learner"]["gradient_booster"]["model"]
    for name, value in changed.items():
        if name in model:
            model[name] = value(model[name])
        else:
            model["trees"][-1][name] = value(model["trees"][-1][name])
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("tree_info", lambda old: [2**29] * len(old)),
        ("tree_info", lambda old: [-1] * len(old)),
        ("tree_info", lambda old: [1] * len(old)),
        ("tree_info", lambda old: old[:-1]),
        ("iteration_indptr", lambda old: [*old[:-1], 10**6]),
        ("trees", lambda old: old[:-1]),
        ("id", lambda old: 0),
        ("base_weights", lambda old: old[:-1]),
        ("split_conditions", lambda old: [*old[:-1], float("inf")]),
        ("categories", lambda old: [2**31 - 1]),
        ("categories_nodes", lambda old: [0]),
        ("split_type", lambda old: [9] * len(old)),
    ],
)
def test_a_strangers_xgboost_file_is_refused_before_xgboost_sees_it(
    entry, value, tmp_path, monkeypatch
):
    def reached(*_):
        raise AssertionError("XGBoost has seen it")

    (tmp_path / "model.json").write_bytes(damage_model(**{entry: value}))
    for library in ("xgboost.Booster.load_model", "xgboost.XGBClassifier.load_model"):
        monkeypatch.setattr(library, reached)
    with pytest.raises(UnreadableError) as error:
        read_model("model.json", (tmp_path / "model.json").read_bytes(), "booster")
    assert str(error.value).startswith("model.json is no booster as XGBoost writes it: ")
    with pytest.raises(UnreadableError, match="is no booster as XGBoost writes it"):
        open_model(tmp_path / "model.json")


def test_an_entry_that_is_there_twice_is_refused():
    content = damage_model()
    twice = content.replace(b'"tree_info"', b'"tree_info": [536870912], "tree_info"')
    with pytest.raises(UnreadableError, match="an entry is there twice"):
        read_model("model.json", twice)


@pytest.mark.parametrize("kind", ["gbtree", "dart", "gblinear"])
def test_whatever_xgboost_writes_for_a_classifier_is_read(kind):
    frame = people()
    columns = ["age"] if kind == "gblinear" else ["age", "job"]
    more = {} if kind == "gblinear" else {"max_cat_to_onehot": 1}
    for labels in (outcome(), np.arange(len(frame)) % 3):
        codes = np.unique(labels, return_inverse=True)[1]
        model = xgb.XGBClassifier(
            n_estimators=3, booster=kind, enable_categorical=True, verbosity=0, **more
        ).fit(frame[columns], codes)
        for form in ("json", "ubj"):
            content = bytes(model.get_booster().save_raw(form))
            again = read_model(f"model.{form}", content)
            assert np.array_equal(
                again.predict_proba(frame[columns]), model.predict_proba(frame[columns])
            )


@given(
    part=st.integers(0, 10**6),
    bit=st.integers(0, 10**9),
    name=st.sampled_from(["forest", "histograms, categories"]),
)
@bounded
def test_a_flipped_bit_of_a_skops_file_is_an_error_or_a_whole_model(part, bit, name):
    content = write_of(name)
    names = sorted(parts_of(content))
    chosen = names[part % len(names)]
    changed = change_part(content, lambda old: flip_bit(old, bit), lambda other: other == chosen)
    try:
        unpack(changed, "model.skops")
    except EdfaError:
        return


@functools.cache
def write_of(name):
    return write_model(own_model(name))[1]


@given(place=st.integers(0, 10**9), cut=st.booleans(), name=st.sampled_from(["onnx", "logistic"]))
@bounded
def test_a_cut_off_or_flipped_file_is_an_error_or_a_model(place, cut, name):
    content = graph() if name == "onnx" else write_of(name)
    changed = content[: place % len(content)] if cut else flip_bit(content, place)
    try:
        OnnxModel.open(changed) if name == "onnx" else unpack(changed, "model.skops")
    except (UnreadableError, ModelError):
        return
    # An ONNX file has no end: cut between two of its fields it is another model, which hashes and
    # answers tell.
    assert not cut or name == "onnx"


@functools.cache
def graph():
    import warnings

    skl2onnx = pytest.importorskip("skl2onnx")
    rows = people()[["age"]].to_numpy(dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression().fit(rows, outcome())
        return skl2onnx.to_onnx(model, rows[:1], options={"zipmap": False}).SerializeToString()


@pytest.mark.parametrize(("name", "bit"), [("xgboost", 29_726), ("lightgbm", 15_569)])
def test_a_flipped_bit_of_a_boosters_file_is_refused_or_changes_nothing(name, bit):
    """XGBoost and LightGBM end the process that reads one over a quarter and an eighth of them;
    these are such bits.
    """
    own = own_model(name)
    file, content = write_model(own)
    rows = asked(own, 64)
    with contextlib.suppress(UnreadableError):
        read_model(file, flip_bit(content, bit), own.kind, rows)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("lightgbm", 0.3),
        *(("forest", share) for share in (0, 0.3, 0.9)),
        *(("histograms, categories", share) for share in (0, 0.3, 0.9)),
        *(pytest.param("lightgbm", share, marks=pytest.mark.long) for share in (0, 0.9)),
    ],
)
def test_a_file_cut_off_is_refused(name, share):
    file, content = write_model(own_model(name))
    with pytest.raises(UnreadableError, match="model"):
        read_model(file, content[: int(len(content) * share)])
