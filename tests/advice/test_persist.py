"""Saved advisors: the same to the bit, refused when changed, whole or not there whenever a save is
cut off.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from advisors import begin, german, words
from hostile.folders import rehash

import edfa
from edfa import Advisor
from edfa.artifacts import FORMAT, SEAL, seal
from edfa.errors import DataError, SettingError, UnreadableError
from edfa.writing import list_files, replace_folder, restore_interrupted


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved advisor, not to be changed."""
    folder = tmp_path_factory.mktemp("saved") / "advisor"
    german().save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """One that may be."""
    return Path(shutil.copytree(saved, tmp_path / "advisor"))


def test_what_is_loaded_says_the_same_to_the_bit(saved):
    loaded = Advisor.load(saved)
    assert loaded.fingerprint == german().fingerprint
    assert loaded.certificate == german().certificate
    assert loaded.evaluation_ == german().evaluation_
    assert loaded.fitted.blanket == german().fitted.blanket
    assert np.array_equal(loaded.fitted.train.X, german().fitted.train.X)
    for person in words(edfa.load("german"))[:20]:
        held = [
            begin(a, person).answer({n: person[n] for n in ("duration",)})
            for a in (loaded, german())
        ]
        assert held[0].receipt(time="then") == held[1].receipt(time="then")
    assert loaded.verify(held[1].receipt()).holds


def test_saving_what_was_loaded_changes_no_byte(saved, tmp_path):
    Advisor.load(saved).save(tmp_path / "again")
    first, second = (
        json.loads((folder / "manifest.json").read_text()) for folder in (saved, tmp_path / "again")
    )
    assert first == second


def test_no_part_is_code(saved):
    assert {Path(part).suffix for part in list_files(saved)} <= {
        ".json",
        ".parquet",
        ".safetensors",
        ".ubj",
    }
    assert not [
        part for part in list_files(saved) if (saved / part).read_bytes()[:1] == b"\x80"
    ]  # as a pickle begins


def test_every_changed_byte_is_noticed(copy):
    for part in list_files(copy):
        content = (copy / part).read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[place] ^= 1
            (copy / part).write_bytes(bytes(changed))
            if part == "manifest.json":
                continue
            with pytest.raises(UnreadableError, match=f"the part {part} has been changed"):
                Advisor.load(copy)
        (copy / part).write_bytes(content)
    Advisor.load(copy)


def test_every_missing_part_is_noticed(copy):
    for part in list_files(copy):
        content = (copy / part).read_bytes()
        (copy / part).unlink()
        with pytest.raises(
            UnreadableError, match=part if part != "manifest.json" else "is missing or damaged"
        ):
            Advisor.load(copy)
        (copy / part).write_bytes(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": FORMAT + 1},
            f"another edfa \\(format {FORMAT + 1}, this one reads {FORMAT}\\)",
        ),
        ({"format": "one"}, "another edfa"),
        ({"kind": "SubsetXGB"}, "holds a SubsetXGB, not an advisor"),
        ({"policy": None}, "what its manifest.json describes is damaged"),
        ({"predictor": {"name": "os.system", "threshold": None}}, "no predictor named 'os.system'"),
        ({"fingerprint": 7}, "the fingerprint is 7"),
        ({"made_with": {"numpy": 2}}, "versions as text"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(change, message, copy):
    rehash(copy, **change)
    with pytest.raises(UnreadableError, match=message):
        Advisor.load(copy)


def write_manifest(folder, **changes):
    """Change entries of a manifest, whose seal fits again."""
    manifest = json.loads((folder / "manifest.json").read_text()) | changes
    (folder / "manifest.json").write_text(json.dumps(manifest | {SEAL: seal(manifest)}))


@pytest.mark.parametrize(
    ("hashes", "message"),
    [({}, "schema.json is missing"), (None, "no hashes"), ({"schema.json": 3}, "no hashes")],
)
def test_a_manifest_without_hashes_is_refused(hashes, message, copy):
    write_manifest(copy, sha256=hashes)
    with pytest.raises(UnreadableError, match=message):
        Advisor.load(copy)


def test_parts_lie_in_the_folder(copy):
    hashes = json.loads((copy / "manifest.json").read_text())["sha256"]
    for name in ("../outside", "/etc/hostname", "model/../../outside", "./schema.json"):
        write_manifest(copy, sha256=hashes | {name: "0"})
        with pytest.raises(UnreadableError, match="is no name of a part"):
            Advisor.load(copy)


def test_what_is_no_advisor_is_neither_loaded_nor_replaced(tmp_path):
    with pytest.raises(UnreadableError, match="there is no folder"):
        Advisor.load(tmp_path / "nowhere")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("x")
    with pytest.raises(UnreadableError, match="not a saved advisor"):
        Advisor.load(tmp_path / "photos")
    with pytest.raises(DataError, match="holds no advisor"):
        german().save(tmp_path / "photos")
    assert (tmp_path / "photos" / "one.jpg").read_text() == "x"


def test_what_cannot_be_told_cannot_be_saved(tmp_path):
    class Own(edfa.EDFA):
        """A policy of one's own."""

    table = edfa.load("german")
    blanket = german().fitted.blanket
    advisor = edfa.Advisor(policy=Own(blanket), predictor=edfa.SubsetXGB(n_estimators=10)).fit(
        table
    )
    with pytest.raises(SettingError, match="Own is not a registered policy"):
        advisor.save(tmp_path / "advisor")
    assert not (tmp_path / "advisor").exists()


OTHERS = {
    "greedy": {"policy": "greedy"},
    "dime": {
        "policy": lambda train: edfa.acquisition.DIME(pretrain=1, epochs=1, steps=2).fit(train)
    },
    "survival": {"policy": "survival", "searcher": "survival", "signal": "survival"},
    "settings": {
        "policy": lambda train: edfa.EDFA(german().fitted.blanket, rank="cost"),
        "searcher": "nice",
    },
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n == "greedy" else ()) for n in OTHERS]
)
def test_other_policies_are_saved_too(name, tmp_path):
    table = edfa.load("german")
    chosen = {
        part: made(table.train) if callable(made) else made for part, made in OTHERS[name].items()
    }
    advisor = edfa.Advisor(
        **chosen, predictor=edfa.SubsetXGB("nan", n_estimators=10), budget=6
    ).fit(table)
    advisor.save(tmp_path / "advisor")
    loaded = Advisor.load(tmp_path / "advisor")
    for person in words(table)[:10]:
        held = [begin(a, person) for a in (loaded, advisor)]
        for _ in range(2):
            assert held[0].question == held[1].question
            for one in held if held[0].question else ():
                one.answer({one.question.feature: person[one.question.feature]})
        assert held[0].receipt(time="then") == held[1].receipt(time="then")


def test_a_swap_cut_off_anywhere_leaves_the_old_or_the_new(tmp_path):
    """Killed at every call to the file system, one after the other."""
    folder, ended = tmp_path / "folder", []
    for point in range(1, 60):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "content").write_text("old")
        child = os.fork()
        if child == 0:
            _die_at(point)
            with replace_folder(folder) as partial:
                (partial / "content").write_text("new")
                (partial / "more").write_text("new")
            os._exit(0)
        ended.append(os.waitpid(child, 0)[1])
        restore_interrupted(folder)
        found = (folder / "content").read_text()
        assert found in ("old", "new")
        assert (folder / "more").exists() == (found == "new")
        if ended[-1] == 0:
            break
    assert ended[-1] == 0
    assert found == "new"
    assert os.WTERMSIG(ended[0]) == signal.SIGKILL
    assert len(ended) > 8
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]  # nothing of the killed ones is left


def _die_at(point):
    """In a child: be killed at the so manieth call that changes the disk."""
    count = [0]

    def counted(call):
        def wrapped(*arguments, **options):
            count[0] += 1
            if count[0] == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return wrapped

    for name in ("mkdir", "rename", "fsync", "rmdir", "unlink", "replace"):
        setattr(os, name, counted(getattr(os, name)))


SAVING = """
import sys
import edfa
advisor = edfa.Advisor.load(sys.argv[1])
print("go", flush=True)
while True:
    advisor.save(sys.argv[2])
"""


@pytest.mark.long
def test_a_killed_save_leaves_an_advisor(saved, tmp_path):
    folder = tmp_path / "advisor"
    shutil.copytree(saved, folder)
    for wait in (0.0, 0.09):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVING, saved, folder], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "go\n"
        time.sleep(wait)
        process.kill()
        process.wait()
        process.stdout.close()
        assert Advisor.load(folder).fingerprint == german().fingerprint
