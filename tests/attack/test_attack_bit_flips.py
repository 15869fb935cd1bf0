"""One bit of a file flips, or somebody changes it and makes the hashes fit: refused, or every
answer stays the same.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from hostile.folders import ask_people, flip, tiny

import edfa
from edfa import Advisor, SubsetXGB
from edfa.errors import UnreadableError
from edfa.predictors.booster_file import BoosterFile, check_boosters
from edfa.predictors.boosting import Forest, load_boosters
from edfa.writing import list_files

FLIPS, REHASHED, CACHED, RAW = 500, 200, 50, 400
ROWS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
SUM = ROWS[:, 0] + ROWS[:, 1]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flips") / "advisor"
    tiny().save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "advisor"))


def some_bits(folder, count, seed=0):
    """Files and bits, so that every file is hit about as often, whatever its size."""
    names, random = list_files(folder), np.random.default_rng(seed)
    for i in range(count):
        name = names[i % len(names)]
        yield name, int(random.integers((folder / name).stat().st_size * 8))


def test_no_flipped_bit_of_any_file_of_an_advisor_is_read(copy):
    for name, bit in some_bits(copy, FLIPS):
        content = (copy / name).read_bytes()
        flip(copy / name, bit)
        with pytest.raises(UnreadableError):
            Advisor.load(copy)
        (copy / name).write_bytes(content)
    assert ask_people(Advisor.load(copy)) == ask_people(tiny())


REHASHING = """
import sys
from pathlib import Path
from hostile.folders import ask_people, flip, rehash
from test_attack_bit_flips import REHASHED, some_bits
from edfa import Advisor
from edfa.errors import UnreadableError
from edfa.writing import list_files

folder = Path(sys.argv[1])
whole = {name: (folder / name).read_bytes() for name in list_files(folder)}
first = Advisor.load(folder)
expected = ask_people(first)
for name, bit in some_bits(folder, REHASHED, seed=1):
    flip(folder / name, bit)
    rehash(folder)
    try:
        advisor = Advisor.load(folder)
    except UnreadableError:
        print("refused", name, flush=True)
    else:
        same = advisor.fingerprint == first.fingerprint and ask_people(advisor) == expected
        print("same" if same else "OTHER", name, bit, flush=True)
    for part, content in whole.items():
        if (folder / part).read_bytes() != content:
            (folder / part).write_bytes(content)
"""


def run(script, *arguments):
    """The lines that a process of its own prints; a crash of it is an error here."""
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (Path(edfa.__file__).parents[1], here, here.parent)))
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-500:]
    return done.stdout.splitlines()


@pytest.mark.long
def test_a_flipped_bit_with_fitting_hashes_is_refused_or_changes_no_answer(copy):
    """In a process of its own, which a native reader could end."""
    lines = run(REHASHING, copy)
    assert len(lines) == REHASHED
    assert not [line for line in lines if line.startswith("OTHER")]
    boosters = [line for line in lines if ".ubj" in line]
    assert len(boosters) > REHASHED // 3
    assert all(line.startswith("refused") for line in boosters), (
        "a tree is part of the fingerprint, to the bit"
    )


READING = """
import numpy as np
from test_attack_bit_flips import RAW, ROWS, booster_file
from edfa.errors import UnreadableError
from edfa.predictors.boosting import load_boosters

random = np.random.default_rng(0)
for classes in (2, 3):
    file = booster_file(classes)
    for _ in range(RAW // 2):
        content = bytearray(file.content)
        way = random.random()
        if way < 0.8:
            content[random.integers(len(content))] ^= 1 << int(random.integers(8))
        elif way < 0.9:
            content[random.integers(len(content))] = random.choice(list(b"{}[]SL$#i9-"))
        else:
            del content[int(random.integers(len(content))) :]
        try:
            (trees,) = load_boosters([file._replace(content=bytes(content))])
        except UnreadableError:
            print("refused", flush=True)
        else:
            assert len(trees.booster.inplace_predict(ROWS)) == len(ROWS)
            trees.booster.save_raw("json")
            print("read", flush=True)
"""


def booster_file(classes):
    codes = np.digitize(SUM, [0.0] if classes == 2 else [-0.5, 0.5])
    model = SubsetXGB("nan", n_estimators=5).fit(ROWS, codes)
    return BoosterFile("model.ubj", model._trees(None).content, 6, classes)


@pytest.mark.long
def test_no_damaged_booster_ends_the_process():
    lines = run(READING)
    assert len(lines) == RAW
    assert lines.count("refused") > RAW // 2


@pytest.mark.parametrize("classes", [2, 3])
def test_what_xgboost_writes_is_read(classes):
    for settings in (
        {},
        {"max_depth": 6, "n_estimators": 140},
        {"monotone": (1,) * 6 if classes == 2 else None},
    ):
        codes = np.digitize(SUM, [0.0] if classes == 2 else [-0.5, 0.5])
        model = SubsetXGB("nan", **({"n_estimators": 3} | settings)).fit(ROWS, codes)
        content = model._trees(None).content
        (version,) = check_boosters([BoosterFile("model.ubj", content, 6, classes)])
        assert len(version) == 3
        for wrong in (
            {"features": 5},
            {"classes": 4},
            {"content": content + b"}"},
            {"content": b""},
        ):
            with pytest.raises(
                UnreadableError, match=r"^model\.ubj is no booster as XGBoost writes it: "
            ):
                check_boosters([BoosterFile("model.ubj", content, 6, classes)._replace(**wrong)])


def set_number(content, array, node, value):
    """The booster with one number of an array of its first tree replaced."""
    start = content.index(array.encode()) + len(array) + len("[$l#L") + 8 + 4 * node
    return content[:start] + np.array(value, dtype=">i4").tobytes() + content[start + 4 :]


@pytest.mark.parametrize(
    ("array", "node", "value"),
    [
        ("left_children", 0, 0),  # a node is its own child
        ("left_children", 0, 2),  # both children are the same
        ("left_children", 0, 1_000_000),
        ("right_children", 0, -7),
        ("right_children", 1, 0),  # a way round
        ("parents", 1, 2),
        ("parents", 0, 0),
        ("split_indices", 0, 6),
        ("split_indices", 0, -1),
        ("split_conditions", 0, 0x7FC00000),  # NaN
    ],
)
def test_nodes_that_lead_nowhere_are_refused(array, node, value):
    file = booster_file(2)
    assert check_boosters([file])
    with pytest.raises(UnreadableError, match="is no booster as XGBoost writes it: a "):
        check_boosters([file._replace(content=set_number(file.content, array, node, value))])


def first_leaf(content):
    booster = xgb.Booster()
    booster.load_model(bytearray(content))
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
    return model["trees"][0]["left_children"].index(-1)


@pytest.mark.parametrize("infinite", [0x7F800000, 0xFF800000 - 2**32])
def test_an_infinite_split_is_read_and_an_infinite_leaf_is_refused(infinite):
    """XGBoost 3.4 parts what is known from what is not by a split at -inf."""
    file = booster_file(2)
    split = file._replace(content=set_number(file.content, "split_conditions", 0, infinite))
    booster = load_boosters([split])[0].booster
    assert np.isfinite(booster.inplace_predict(ROWS)).all()
    forest = Forest.of(booster.save_raw("json"))
    assert all(np.isfinite(thresholds).all() for thresholds in forest.thresholds)
    margins = forest.margins(ROWS[:50], np.zeros(1, dtype=int), ROWS[0, :1])[:, 0]
    rows = ROWS[:50].copy()
    rows[:, 0] = rows[0, 0]
    exact = booster.inplace_predict(rows, predict_type="margin")
    assert np.abs(margins - exact).max() <= forest.tolerance
    leaf = set_number(file.content, "split_conditions", first_leaf(file.content), infinite)
    with pytest.raises(UnreadableError, match="a tree has a value that is no number"):
        check_boosters([file._replace(content=leaf)])


def test_a_damaged_or_swapped_file_of_the_cache_is_trained_again_and_written_over(tmp_path):
    masks = [
        np.arange(6) < 3,
        np.arange(6) >= 3,
    ]  # of one shape: a model of one would answer for the other
    people = [np.where(mask, ROWS[:20], np.float32(np.nan)) for mask in masks]

    def answers(folder=tmp_path):
        model = SubsetXGB(n_estimators=4).cache_in(folder).fit(ROWS, SUM > 0)
        return np.concatenate([model.predict_proba(rows) for rows in people])

    expected = answers(None)
    np.testing.assert_array_equal(answers(), expected)
    files = sorted(tmp_path.rglob("*.ubj"))
    whole = {file: file.read_bytes() for file in files}
    assert len(files) == 2
    random = np.random.default_rng(0)

    def check():
        np.testing.assert_array_equal(answers(), expected)
        assert {file: file.read_bytes() for file in files} == whole

    check()
    for i in range(CACHED):
        flip(files[i % 2], int(random.integers(len(whole[files[i % 2]]) * 8)))
        check()
    for content in (b"", whole[files[0]][:40], whole[files[0]][32:], whole[files[1]], b"\0" * 1000):
        files[0].write_bytes(content)
        check()
    files[0].unlink()
    files[0].mkdir()  # nothing can be written there; it is only a cache
    np.testing.assert_array_equal(answers(), expected)


def test_names_of_cached_and_saved_models_are_short_for_any_number_of_features(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2500)).astype(np.float32)
    sets = np.stack([np.arange(2500) % 2 == 0, np.arange(2500) < 40])
    model = (
        SubsetXGB("mixed", n_estimators=1, max_depth=1)
        .cache_in(tmp_path / "cache")
        .fit(rows, rows[:, 0] > 0)
    )
    model = model.keeping(sets)
    model._train = lambda mask: SubsetXGB._train(
        model, sets[1]
    )  # the masked model of so many columns takes long
    model._definite = lambda: {"own_0": sets[1]}
    model.booster(sets[1])
    model.to_folder(tmp_path / "model")
    names = [path.name for path in tmp_path.rglob("*.ubj")]
    assert len(names) == 2
    assert max(map(len, names)) < 64
