"""Bad downloads and bad caches of the paper's data sets: typed errors, and never a part in place of
a whole.
"""

import gzip
import threading
from http.client import IncompleteRead

import numpy as np
import pandas as pd
import pytest

import edfa
from edfa.data import catalog, openml
from edfa.errors import DataError, UnavailableError, UnreadableError

NAME = "gmsc"


def rows_of(schema, n=60):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({name: random.integers(1, 60, n) for name in schema.names})
    return frame.assign(**{schema.target: np.resize(["0", "1"], n)})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EDFA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EDFA_DATA", raising=False)
    return tmp_path / "cache"


def serve(monkeypatch, answer, calls=None):
    def fetch_openml(**_):
        if calls is not None:
            calls.append(1)
        if isinstance(answer, BaseException):
            raise answer
        return type("Bunch", (), {"frame": answer})()

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)


@pytest.mark.parametrize(
    "error",
    [
        EOFError("Compressed file ended before the end-of-stream marker was reached"),
        gzip.BadGzipFile("CRC check failed"),
        IncompleteRead(b"half"),
        ValueError("md5 checksum of local file does not match description"),
        KeyError("data"),
        OSError("no network"),
        TimeoutError("timed out"),
    ],
)
def test_a_download_that_fails_is_unavailable_and_leaves_nothing(error, cache, monkeypatch):
    serve(monkeypatch, error)
    with pytest.raises(UnavailableError, match="OpenML 45577 cannot be fetched"):
        edfa.load(NAME)
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.parametrize("frame", [None, pd.DataFrame(), pd.DataFrame({"x": [1, 2]})])
def test_another_table_is_refused_and_not_kept(frame, cache, monkeypatch):
    serve(monkeypatch, frame)
    with pytest.raises((UnavailableError, DataError)):
        edfa.load(NAME)
    assert not list(cache.rglob("*"))


@pytest.mark.parametrize(
    "damage", ["half", "empty", "swapped", "bit", "folder", "link to nowhere", "no checksum"]
)
def test_a_damaged_cache_is_fetched_anew(damage, cache, monkeypatch):
    schema, calls = catalog.load_schema(NAME), []
    serve(monkeypatch, rows_of(schema), calls)
    whole = openml.fetch(NAME, schema)
    path = cache / f"{NAME}.parquet"
    content = bytearray(path.read_bytes())
    if damage == "swapped":
        whole.iloc[::-1].to_parquet(path)
    elif damage in ("folder", "link to nowhere"):
        path.unlink()
        path.mkdir() if damage == "folder" else path.symlink_to(cache / "gone")
    elif damage == "no checksum":
        path.with_suffix(".sha256").unlink()
    else:
        content[len(content) // 2] ^= 4
        path.write_bytes({"half": content[:500], "empty": b"", "bit": content}[damage])
    if damage == "folder":  # what is no file of ours stays
        with pytest.raises(DataError):
            openml.fetch(NAME, schema)
    else:
        pd.testing.assert_frame_equal(openml.fetch(NAME, schema), whole)
    assert len(calls) == 2


def test_a_bomb_in_the_cache_is_not_read(cache, monkeypatch):
    schema, calls = catalog.load_schema(NAME), []
    serve(monkeypatch, rows_of(schema), calls)
    openml.fetch(NAME, schema)
    with (cache / f"{NAME}.parquet").open("ab") as file:
        file.truncate(2**40)  # a file of holes: a terabyte to whoever reads it
    assert len(openml.fetch(NAME, schema)) == 60
    assert len(calls) == 2


def test_two_at_once_fetch_once(cache, monkeypatch):
    schema, calls = catalog.load_schema(NAME), []
    serve(monkeypatch, rows_of(schema), calls)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(openml.fetch(NAME, schema)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert [len(frame) for frame in results] == [60] * 4
    assert sorted(path.name for path in cache.iterdir()) == [f"{NAME}.parquet", f"{NAME}.sha256"]


def test_a_file_of_ones_own_that_is_damaged_is_unreadable(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.parquet").write_bytes(b"PAR1 and no more")
    monkeypatch.setenv("EDFA_DATA", str(tmp_path))
    with pytest.raises(UnreadableError):
        edfa.load(NAME)
