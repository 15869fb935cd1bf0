"""What is written is whole or not there, whenever the writer dies."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import edfa
from edfa.artifacts import (
    SEAL,
    load_arrays,
    make_manifest,
    read_parts,
    save_arrays,
    write_parts,
)
from edfa.errors import UnreadableError
from edfa.reading import sha256_of
from edfa.writing import atomic_file, list_files, replace_folder, restore_interrupted, write_text

OLD = {"a.bin": b"old" * 50, "b.bin": b"old too"}
NEW = {"a.bin": b"new" * 70, "c.bin": b"another part"}

# A process that kills itself just before the n-th change of the file system below a folder.
VICTIM = """
import os, signal, sys
from pathlib import Path
from edfa.artifacts import write_parts
place, left = Path(sys.argv[1]), int(sys.argv[2])
CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.listdir", "os.scandir"}

def count(event, arguments):
    global left
    if event in CHANGES and str(place.parent) in str(arguments[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
write_parts(place, "Thing", {"age": "new"}, {"a.bin": b"new" * 70, "c.bin": b"another part"})
"""


class Killed(BaseException):
    """Stands for a signal: nothing catches it."""


class Countdown:
    """Raises at the n-th file operation below a folder, while it is set."""

    def __init__(self):
        self.left, self.place = -1, ""

    def __call__(self, event, arguments):
        if (
            self.left >= 0
            and event.startswith(("open", "os.", "shutil."))
            and self.place in str(arguments[:1])
        ):
            self.left -= 1
            if self.left < 0:
                raise Killed


COUNTDOWN = Countdown()
sys.addaudithook(COUNTDOWN)  # a hook stays for good; it does nothing but where it is set


def check_old_or_new(folder):
    settings, parts = read_parts(folder, "Thing")
    assert (settings["age"], parts) in (("old", OLD), ("new", NEW))
    return settings["age"]


@pytest.fixture
def folder(tmp_path):
    write_parts(tmp_path / "model", "Thing", {"age": "old"}, OLD)
    return tmp_path / "model"


def test_a_folder_replaces_another_and_leaves_nothing_beside(folder):
    write_parts(folder, "Thing", {"age": "new"}, NEW)
    assert check_old_or_new(folder) == "new"
    assert list_files(folder.parent) == ["model/a.bin", "model/c.bin", "model/manifest.json"]


def test_a_writer_that_raises_at_any_moment_leaves_the_old_or_the_new(folder):
    ages = []
    for moment in range(100):
        COUNTDOWN.place, COUNTDOWN.left = str(folder.parent), moment
        try:
            write_parts(folder, "Thing", {"age": "new"}, NEW)
        except Killed:
            ages.append(check_old_or_new(folder))
            write_parts(folder, "Thing", {"age": "old"}, OLD)
        else:
            break
        finally:
            COUNTDOWN.left = -1
    assert len(ages) > 10
    assert set(ages) == {"old", "new"}


@pytest.mark.long
def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new(folder):
    ages = []
    for moment in range(100):
        arguments = [sys.executable, "-c", VICTIM, str(folder), str(moment)]
        done = subprocess.run(
            arguments,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path(edfa.__file__).parents[1])},
        )
        ages.append(check_old_or_new(folder))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        write_parts(folder, "Thing", {"age": "old"}, OLD)
    assert len(ages) > 10
    assert set(ages) == {"old", "new"}
    assert list_files(folder.parent) == ["model/a.bin", "model/c.bin", "model/manifest.json"]


SAVER = """
import sys
import edfa
table = edfa.load("german")
models = [edfa.SubsetXGB(seed=seed, n_estimators=5).fit(table.train.X, table.train.y) for seed in (0, 1)]
for model in models:
    model.predict_proba(table.test.X)
    model.to_folder(sys.argv[1])
print("ready", flush=True)
while True:
    for model in models:
        model.to_folder(sys.argv[1])
"""


@pytest.mark.long
def test_a_model_is_readable_after_its_writer_was_killed(tmp_path):
    table, folder = edfa.load("german"), tmp_path / "model"
    answers = [
        edfa.SubsetXGB(seed=seed, n_estimators=5)
        .fit(table.train.X, table.train.y)
        .predict_proba(table.test.X)
        for seed in (0, 1)
    ]
    for wait in (0.1, 0.13, 0.17):
        environment = os.environ | {"PYTHONPATH": str(Path(edfa.__file__).parents[1])}
        writer = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            assert writer.stdout.readline() == "ready\n"
            time.sleep(wait)
        finally:
            writer.kill()
            writer.communicate()
        saved = edfa.SubsetXGB.from_folder(folder).predict_proba(table.test.X)
        assert any(np.array_equal(saved, answer) for answer in answers)


def fail_in_a_folder(folder):
    with replace_folder(folder) as partial:
        (partial / "a.bin").write_bytes(b"half")
        raise RuntimeError("no more")


def test_a_block_that_fails_leaves_the_old_folder(folder):
    with pytest.raises(RuntimeError, match="no more"):
        fail_in_a_folder(folder)
    assert check_old_or_new(folder) == "old"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_set_aside_is_put_back_by_its_reader(folder):
    folder.rename(folder.with_name(".model.old"))
    with pytest.raises(
        UnreadableError, match="not a saved model"
    ):  # it was replaced and then deleted: it stays so
        read_parts(folder, "Thing")
    folder.with_name(
        f".model.{'0' * 32}.new"
    ).mkdir()  # as it is where a writer was killed between its two renames
    assert check_old_or_new(folder) == "old"
    restore_interrupted(folder)
    assert check_old_or_new(folder) == "old"


def fail_in_a_file(path):
    with atomic_file(path) as partial:
        assert (partial.parent, partial.suffix) == (path.parent, path.suffix)
        partial.write_text("half")
        raise RuntimeError("no more")


def test_a_file_is_whole_or_as_before(tmp_path):
    path = tmp_path / "result.csv"
    write_text(path, "old")
    with pytest.raises(RuntimeError, match="no more"):
        fail_in_a_file(path)
    assert path.read_text() == "old"
    with atomic_file(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list_files(tmp_path) == ["result.csv"]


def test_many_may_write_one_file_at_once(tmp_path):
    texts = [f"{number} " * 10_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text(tmp_path / "one", text), texts))
    assert (tmp_path / "one").read_text() in texts
    assert list_files(tmp_path) == ["one"]


def test_the_hash_of_a_file_is_that_of_its_content(tmp_path):
    write_text(tmp_path / "empty", "")
    assert (
        sha256_of(tmp_path / "empty")
        == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


@pytest.mark.parametrize(
    "manifest", ["", "[]", "{}", '{"format": 1, "kind": "Thing", "manifest_sha256": ""}']
)
def test_a_damaged_manifest_is_named(folder, manifest):
    (folder / "manifest.json").write_text(manifest)
    with pytest.raises(UnreadableError, match=r"its manifest\.json is missing or damaged"):
        read_parts(folder, "Thing")


def test_a_part_outside_the_folder_is_not_read(folder):
    (folder.parent / "secret").write_bytes(b"x")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop(SEAL)
    (folder / "manifest.json").write_text(make_manifest(manifest, {"../secret": b"x"}))
    with pytest.raises(UnreadableError, match=r"'\.\./secret' is no name of a part"):
        read_parts(folder, "Thing")


def test_safetensors_is_handed_arrays_in_c_order_whatever_lies_in_memory(monkeypatch):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    given = {"fortran": np.asfortranarray(rows), "strided": rows[:, ::2], "scalar": np.array(2.5)}
    handed = {}

    def record(arrays):
        handed.update(arrays)
        return b""

    for name, array in load_arrays(save_arrays(given), "arrays").items():
        assert np.array_equal(array, given[name])
    monkeypatch.setattr("safetensors.numpy.save", record)
    save_arrays(given)
    assert all(array.flags.c_contiguous for array in handed.values())


def test_a_model_of_fortran_ordered_rows_answers_the_same_once_it_is_read(tmp_path):
    random = np.random.default_rng(0)
    rows = np.asfortranarray(random.normal(size=(400, 3)).astype(np.float32))
    chance = 1 / (1 + np.exp(-rows[:, 0]))
    model = edfa.SubsetXGB(n_estimators=5).fit(
        rows, (chance > 0.5).astype(int), soft_labels=np.stack([1 - chance, chance], axis=1)
    )
    model.to_folder(tmp_path / "model")
    again = edfa.SubsetXGB.from_folder(tmp_path / "model")
    assert np.array_equal(model.predict_proba(rows), again.predict_proba(rows))
