"""Folders that others damage, plant, link to or write at the same time: whole and ours, or one
clear error.
"""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import some
from hostile.folders import MANIFEST, ask_people, damages, rehash, tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

import edfa
from edfa import Advisor, BayesNet, FTTransformer, MaskedMLP, SubsetXGB
from edfa import artifacts as saved_module
from edfa.acquisition import DIME, GSMRL
from edfa.advice.persist import people_from_parquet, people_to_parquet
from edfa.artifacts import Folder, read_parts, write_parts
from edfa.data.synthetic import credit_story
from edfa.errors import EdfaError, UnreadableError, UnwritableError
from edfa.writing import list_files
from edfa_studies.products import ProductFolder

TABLE = credit_story().table(300)
X, Y = TABLE.train.X, TABLE.train.y
HOSTILE = settings(
    max_examples=some(40),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders") / "advisor"
    tiny().save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "advisor"))


def environment():
    return os.environ | {"PYTHONPATH": str(Path(edfa.__file__).parents[1])}


@pytest.mark.parametrize("fitting", [False, True], ids=["", "rehashed"])
def test_a_damaged_folder_is_refused_or_the_same(fitting, saved, tmp_path):
    """Also where all hashes were made to fit."""
    expected = ask_people(tiny(), 2)

    @HOSTILE
    @given(st.lists(damages(saved), min_size=1, max_size=2))
    def check(hurts):
        folder = tmp_path / "advisor"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(saved, folder)
        for hurt in hurts:
            hurt(folder)
        if fitting:
            rehash(folder)
        try:
            advisor = Advisor.load(folder)
        except UnreadableError:
            return
        assert advisor.fingerprint == tiny().fingerprint
        assert ask_people(advisor, 2) == expected

    check()


def test_what_is_not_in_the_manifest_is_not_read(copy):
    (copy / "monitor.json").write_text("{}")
    (copy / "groups.json").write_text("no JSON")
    (copy / "model" / "own_99.ubj").write_bytes(b"{")
    os.mkfifo(copy / "pipe")
    assert Advisor.load(copy).fingerprint == tiny().fingerprint


def test_a_file_is_read_once_so_that_nobody_swaps_it_after_it_was_checked(copy, monkeypatch):
    """Every file is replaced by rubbish right after it was read."""
    read, seen = saved_module.read_files, []

    def read_and_spoil(place, names):
        files = read(place, names)
        for name in names:
            seen.append(name)
            (place / name).write_bytes(b"rubbish")
        return files

    monkeypatch.setattr(saved_module, "read_files", read_and_spoil)
    assert ask_people(Advisor.load(copy), 2) == ask_people(tiny(), 2)
    assert sorted(seen) == [name for name in list_files(copy) if name != MANIFEST]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '"x"',
        "[" * 100_000,
        '{"format": 1, "format": 1}',
        '{"format": NaN}',
        "\0",
        "é" * 10,
    ],
    ids=range(10),
)
def test_manifests_that_are_none(text, copy):
    for manifest in (copy / MANIFEST, copy / "model" / MANIFEST):
        whole = manifest.read_bytes()
        manifest.write_text(text, encoding="latin-1")
        if manifest.parent != copy:
            rehash(copy)
        with pytest.raises(UnreadableError):
            Advisor.load(copy)
        manifest.write_bytes(whole)


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def test_any_entry_of_a_manifest_may_be_anything(saved, tmp_path):
    """Also one within another; hashes fit."""
    folder = Path(shutil.copytree(saved, tmp_path / "advisor"))
    whole = {
        name: (folder / name).read_bytes() for name in list_files(folder) if name.endswith(MANIFEST)
    }
    places = []
    for name, content in whole.items():
        for key, value in json.loads(content).items():
            places.append((name, (key,)))
            places += (
                [(name, (key, inner)) for inner in value]
                if isinstance(value, dict) and key != "sha256"
                else []
            )

    @HOSTILE
    @given(st.sampled_from(places), ODD)
    def check(place, value):
        name, keys = place
        manifest = json.loads(whole[name])
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        same, inner[keys[-1]] = inner[keys[-1]] == value, value
        (folder / name).write_text(json.dumps(manifest))
        try:
            rehash(folder)
            advisor = Advisor.load(folder)
        except UnreadableError:
            pass
        except (
            EdfaError
        ) as error:  # a setting that was written in another way: the advisor itself says so
            raise AssertionError(place, value) from error
        else:
            assert advisor.fingerprint == tiny().fingerprint or same
        finally:
            for part, content in whole.items():
                (folder / part).write_bytes(content)

    check()


def test_a_small_file_that_unpacks_to_many_bytes_is_refused_before_memory_is_taken():
    content = people_to_parquet(TABLE.train.frame)
    assert people_from_parquet(content, "x").equals(TABLE.train.frame)
    with pytest.raises(UnreadableError, match=r"x unpacks to [\d,]+ bytes; at most 1,000 are read"):
        people_from_parquet(content, "x", limit=1000)
    sink = pa.BufferOutputStream()
    word = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(10_000, dtype=np.int32)), pa.array(["x" * 1_000_000])
    )
    pq.write_table(
        pa.table({"a": word}), sink, store_schema=False, compression="zstd", row_group_size=10_000
    )
    bomb = sink.getvalue().to_pybytes()
    assert len(bomb) < 1000
    with pytest.raises(
        UnreadableError, match=r"unpacks to 10,000,000,000 bytes; at most 4,294,967,296 are read"
    ):
        people_from_parquet(bomb, "train.parquet")


@given(st.data())
@HOSTILE
def test_damaged_parquet_is_one_error(data):
    content = bytearray(people_to_parquet(TABLE.train.frame))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content) * 2)) :]
    with suppress(UnreadableError):
        people_from_parquet(bytes(content), "train.parquet")


LEARNT = {
    "mlp": (lambda: MaskedMLP(epochs=1, width=4, token=2).fit(X, Y), "model.safetensors"),
    "ftt": (lambda: FTTransformer(epochs=1).fit(X, Y), "model.safetensors"),
    "bn": (lambda: BayesNet().fit(X, Y), "network.safetensors"),
    "xgb": (lambda: SubsetXGB("nan", n_estimators=2).fit(X, Y), "train.safetensors"),
    "dime": (lambda: DIME(pretrain=1, epochs=1, width=4).fit(TABLE.train), "policy.safetensors"),
    "gsmrl": (lambda: GSMRL(rounds=1, episodes=2).fit(TABLE.train), "policy.safetensors"),
}


@pytest.mark.parametrize("name", LEARNT)
def test_arrays_of_wrong_shapes_names_and_numbers_are_one_error(name, tmp_path):
    make, file = LEARNT[name]
    model = make()
    model.to_folder(tmp_path / "model")
    manifest, parts = read_parts(tmp_path / "model", type(model).__name__)
    arrays = load(parts[file])
    whole = json.loads((tmp_path / "model" / MANIFEST).read_text())

    def check(content, settings=manifest):
        files = {**parts, file: content}
        hashes = {part: hashlib.sha256(bytes(c)).hexdigest() for part, c in files.items()}
        changed = whole | {"settings": settings, "sha256": hashes}
        folder = Folder("model", files | {MANIFEST: json.dumps(changed).encode()})
        return type(model).from_folder(folder)

    check(save(arrays))
    every = max(1, len(arrays) // 6)
    for array_name, array in list(arrays.items())[::every]:
        wrong = {
            "longer": np.concatenate([array, array]),
            "flat": array.reshape(-1)[:1].reshape(1, 1, 1, 1),
            "words": array.astype(np.int8) if array.dtype.kind == "f" else array.astype(np.float16),
            "empty": array[:0],
        }
        if array.dtype.kind == "f":
            wrong["nan"] = np.full_like(array, np.nan)
        for way, other in wrong.items():
            if (name, array_name, way) == ("xgb", "rows", "nan"):
                continue  # what is not known
            try:
                check(save(arrays | {array_name: other}))
            except UnreadableError:
                continue
            assert (way, array_name) in HARMLESS, (way, array_name)
        with pytest.raises(UnreadableError):
            check(save({n: a for n, a in arrays.items() if n != array_name}))
    content = save(arrays)
    for damaged in (
        b"",
        content[:7],
        content[:100],
        b"\xff" * 8 + content[8:],
        (2**40).to_bytes(8, "little") + b"{}",
    ):
        with pytest.raises(UnreadableError):
            check(damaged)
    huge = {"mlp": {"width": 10**9}, "dime": {"width": 10**9}, "ftt": {"size": "paper"}}.get(name)
    if huge:
        with pytest.raises(UnreadableError):
            check(content, manifest | huge)


HARMLESS = {("words", "rows"), ("longer", "classes"), ("words", "classes"), ("words", "codes")}


SAVERS = """
import sys
from pathlib import Path
from edfa import Advisor
own = Advisor.load(sys.argv[1])
print("go", flush=True)
for _ in range(int(sys.argv[3])):
    own.save(sys.argv[2])
"""


@pytest.mark.long
def test_two_who_save_to_one_folder_never_mix(saved, tmp_path):
    other = Advisor(predictor=SubsetXGB("nan", n_estimators=2), searcher="nearest").fit(
        TABLE, n_jobs=1
    )
    other.save(tmp_path / "other")
    place = tmp_path / "place"
    pipes = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": environment(),
    }
    commands = [
        [sys.executable, "-c", SAVERS, str(own), str(place), "15"]
        for own in (saved, tmp_path / "other")
    ]
    writers = [subprocess.Popen(command, **pipes) for command in commands]
    known, read = {tiny().fingerprint, other.fingerprint}, []
    assert all(writer.stdout.readline() == "go\n" for writer in writers)
    while any(writer.poll() is None for writer in writers):
        if place.exists():
            read.append(Advisor.load(place).fingerprint)
    for writer in writers:
        output, errors = writer.communicate()
        assert (writer.returncode, errors) == (0, ""), output
    assert set(read) <= known
    assert Advisor.load(place).fingerprint in known
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "place"]


@pytest.mark.long
def test_kill_at_any_moment_leaves_an_advisor_and_no_rubbish_after_the_next(saved, copy, tmp_path):
    for wait in (0.0, 0.02, 0.05):
        arguments = [sys.executable, "-c", SAVERS, str(saved), str(copy), "1000"]
        writer = subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE, text=True)
        assert writer.stdout.readline() == "go\n"
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert Advisor.load(copy).fingerprint == tiny().fingerprint
    tiny().save(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["advisor"]


def test_a_link_stays_and_what_it_points_to_is_replaced(copy, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(copy, target_is_directory=True)
    other = Advisor(predictor=SubsetXGB("nan", n_estimators=2), searcher="nearest").fit(
        TABLE, n_jobs=1
    )
    other.save(link)
    assert link.is_symlink()
    assert Advisor.load(copy).fingerprint == Advisor.load(link).fingerprint == other.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["advisor", "current"]


def test_an_old_folder_that_somebody_left_does_not_come_back(copy, tmp_path):
    copy.rename(tmp_path / ".advisor.old")
    with pytest.raises(UnreadableError, match="there is no folder"):
        Advisor.load(copy)
    with pytest.raises(UnreadableError):
        read_parts(copy / "model", "SubsetXGB")
    tiny().save(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["advisor"]


@pytest.mark.parametrize(
    "content", [{}, {"letter.txt": "dear"}, {MANIFEST: '{"kind": "Committee"}'}, {MANIFEST: "{"}]
)
def test_nothing_but_its_own_kind_is_replaced(content, tmp_path):
    precious = tmp_path / "precious"
    model = SubsetXGB("nan", n_estimators=2).fit(X, Y)
    for write in (model.to_folder, tiny().save, lambda f: write_parts(f, "Thing", {}, {})):
        shutil.rmtree(precious, ignore_errors=True)
        precious.mkdir()
        for name, text in content.items():
            (precious / name).write_text(text)
        if not content:
            write(precious)
            continue
        with pytest.raises(UnwritableError, match="holds no"):
            write(precious)
        assert {path.name: path.read_text() for path in precious.iterdir()} == content
    (tmp_path / "file").write_text("dear")
    with pytest.raises(UnwritableError):
        model.to_folder(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "dear"


def test_an_entry_made_and_dropped_by_somebody_else_is_made_again(tmp_path, monkeypatch):
    cache, rename, tries = ProductFolder(tmp_path), Path.rename, []

    def taken_once(self, target):
        tries.append(target)
        if len(tries) == 1:  # somebody's entry is there, and gone when it is looked for
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", taken_once)
    with cache.fill("thing", "key") as entry:
        (entry / "a").write_text("mine")
    assert (cache.folder("thing", "key") / "a").read_text() == "mine"
    assert len(tries) == 2


def test_many_may_drop_and_fill_one_entry_of_a_studys_cache(tmp_path):
    cache = ProductFolder(tmp_path)

    def work(number):
        if number % 3 == 0:
            cache.drop("thing", "key")
        else:
            with cache.fill("thing", "key") as entry:
                write_parts(entry / "part", "Part", {"number": number}, {"a": b"x" * 100})
        try:
            return read_parts(cache.folder("thing", "key") / "part", "Part")[1]["a"]
        except UnreadableError:
            return None

    with ThreadPoolExecutor(4) as pool:
        read = set(pool.map(work, range(40)))
    assert read <= {b"x" * 100, None}
    assert not list((tmp_path / ".unfinished").iterdir())
