import shutil

import pandas as pd
import pytest

import edfa
from edfa.data import catalog, openml
from edfa.errors import DataError, UnavailableError, UnknownNameError, UnreadableError


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No folder, an empty cache, and an OpenML that does not answer."""
    monkeypatch.delenv("EDFA_DATA", raising=False)
    monkeypatch.setenv("EDFA_CACHE", str(tmp_path / "cache"))

    def fail(**_):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    return tmp_path / "cache"


def test_an_unknown_set_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="no data set named 'helok'; did you mean 'heloc'"):
        edfa.load("helok")


def test_three_sets_travel_with_the_package(offline):
    for name in catalog.BUNDLED:
        assert catalog.where(name) == "in the package"
        assert len(edfa.load(name, cap=100)) == 100


@pytest.mark.parametrize("name", ["heloc", "acs_income", "gmsc", "diabetes130"])
def test_a_set_that_is_not_here_says_both_ways(name, offline):
    assert catalog.where(name) == "OpenML"
    with pytest.raises(
        UnavailableError, match=r"name it in EDFA_DATA, or go online .*OpenML.*no route to host"
    ):
        edfa.load(name)


def test_a_damaged_bundle_is_noticed(monkeypatch, tmp_path):
    package = tmp_path / "data"
    shutil.copytree(catalog.files("edfa.data") / "cards", package / "cards")
    shutil.copytree(catalog.files("edfa.data") / "bundled", package / "bundled")
    path = package / "bundled" / "german.parquet"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(catalog, "files", lambda _: package)
    with pytest.raises(UnreadableError, match=r"german.parquet inside the package is damaged"):
        edfa.load("german")


def as_openml(name, frame):
    """The same rows as OpenML spells them."""
    frame = frame.copy()
    if name == "heloc":
        return frame.assign(
            RiskPerformance=(frame["RiskPerformance"] == "Good").astype(int).astype("category")
        )
    if name == "acs_income":
        codes = [c for c in frame if frame[c].dtype == "str"]
        return frame.assign(
            PINCP=frame["PINCP"] * 40_000.0 + 20_000, **{c: frame[c].astype(float) for c in codes}
        )
    if name == "gmsc":
        return frame.rename(columns=lambda c: c.replace("-", "_")).assign(id=range(len(frame)))
    gaps = frame.assign(race=frame["race"].fillna("?"), weight="?")
    return gaps.astype({c: "category" for c in gaps if gaps[c].dtype == "str"})


@pytest.mark.parametrize("name", ["heloc", "acs_income", "gmsc", "diabetes130"])
def test_openmls_spelling_becomes_the_cards(name, shared_data, offline, monkeypatch):
    rows = (
        pd.read_parquet(shared_data / f"{name}.parquet")
        .groupby(catalog.load_schema(name).target)
        .head(400)
    )
    calls = []

    def fetch_openml(data_id, **_):
        calls.append(data_id)
        return type("Bunch", (), {"frame": as_openml(name, rows)})()

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    fetched = edfa.load(name)
    direct = edfa.Table.from_frame(rows, catalog.load_schema(name))
    pd.testing.assert_frame_equal(fetched.frame, direct.frame, check_dtype=False)
    assert calls == [openml.SOURCES[name].data_id]
    pd.testing.assert_frame_equal(edfa.load(name).frame, fetched.frame)
    assert len(calls) == 1, "the second time it comes from the cache"
    damaged = offline / f"{name}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    pd.testing.assert_frame_equal(edfa.load(name).frame, fetched.frame)
    assert len(calls) == 2, "a damaged cache is fetched anew"


def test_a_copy_that_is_not_the_cards_is_an_error_and_not_cached(offline, monkeypatch):
    wrong = pd.DataFrame({"age": [1, 2], "SeriousDlqin2yrs": [0, 1]})
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml", lambda **_: type("Bunch", (), {"frame": wrong})()
    )
    with pytest.raises(
        DataError, match="OpenML 45577 has no column 'RevolvingUtilizationOfUnsecuredLines'"
    ):
        edfa.load("gmsc")
    assert not offline.exists()


def test_a_folder_of_ones_own(monkeypatch, tmp_path, shared_data):
    shutil.copy(shared_data / "heloc.parquet", tmp_path)
    monkeypatch.setenv("EDFA_DATA", str(tmp_path))
    assert catalog.where("heloc") == str(tmp_path / "heloc.parquet")
    assert len(edfa.load("heloc")) == 10459
    (tmp_path / "heloc.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnreadableError, match=r"heloc.parquet is not a whole Parquet file"):
        edfa.load("heloc")
