import numpy as np
import pandas as pd
import polars as pl
import pytest

from edfa.data import clean, summarise
from edfa.errors import ColumnError, DataError


def diabetes_like(n=2000):
    """The faults of the raw Diabetes130 table, in the shares its authors report."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "encounter_id": np.arange(n) + 2278392,
            "patient_nbr": random.choice(10 * n, size=n, replace=True),
            "weight": np.where(random.random(n) < 0.97, None, "[75-100)"),
            "payer_code": np.where(random.random(n) < 0.40, None, "MC"),
            "diag_1": [f"{code}" for code in random.integers(0, 717, n)],
            "examide": "No",
            "admission_type_id": random.integers(1, 9, n),
            "num_medications": random.integers(1, 81, n),
            "A1Cresult": random.choice(["None", ">7", ">8"], n),
            "race": random.choice(["Caucasian", "Other"], n),
            "readmitted": random.choice(["NO", "<30"], n),
        }
    )


def test_the_papers_choices_with_a_reason_for_each():
    rest, report = clean(diabetes_like(), keep=["readmitted"])
    reasons = report.dropped
    assert list(rest) == ["admission_type_id", "num_medications", "A1Cresult", "race", "readmitted"]
    assert "identifier" in reasons["encounter_id"]
    assert "identifier" in reasons["patient_nbr"]
    assert "97% of its values are missing" in reasons["weight"]
    assert "are missing" in reasons["payer_code"]
    assert "levels (more than 600)" in reasons["diag_1"]
    assert reasons["examide"] == "constant"
    assert report.kept == tuple(rest)
    assert "kept 5 columns, dropped 6" in str(report)
    assert "diag_1" in report._repr_html_()


def test_what_is_to_be_kept_stays():
    rest, _ = clean(diabetes_like(), keep=["readmitted", "examide"])
    assert "examide" in rest
    assert "weight" not in rest


def test_amounts_are_no_identifiers():
    frame = pd.DataFrame(
        {"credit_amount": np.arange(100) * 37, "ratio": np.linspace(0, 1, 100), "y": [0, 1] * 50}
    )
    assert not clean(frame)[1].dropped


def test_cleaning_refuses_nonsense():
    with pytest.raises(ColumnError, match="did you mean 'readmitted'"):
        clean(diabetes_like(50), keep=["readmited"])


def test_many_measurements_become_one_row():
    visits = pd.DataFrame(
        {
            "id": [7, 7, 7, 3],
            "day": [2, 1, 3, 5],
            "pulse": [70.0, 90.0, np.nan, 60.0],
            "ward": ["a", "b", "a", "c"],
        }
    )
    wide = summarise(visits, person="id", time="day")
    assert wide["id"].tolist() == [3, 7]
    assert wide.loc[1, ["pulse_mean", "pulse_min", "pulse_max", "pulse_last"]].tolist() == [
        80,
        70,
        90,
        70,
    ]
    shuffled = summarise(
        visits.sample(frac=1, random_state=1), person="id", time="day", values=["pulse"]
    )
    pd.testing.assert_frame_equal(shuffled, wide)
    pd.testing.assert_frame_equal(summarise(pl.from_pandas(visits), person="id", time="day"), wide)


def test_measurements_without_a_person_or_a_time():
    visits = pd.DataFrame({"id": [1.0, None], "day": [1, 2], "pulse": [70, 80]})
    with pytest.raises(DataError, match="1 measurements have no 'id' or no 'day'"):
        summarise(visits, person="id", time="day")
    with pytest.raises(ColumnError, match="no column 'time'"):
        summarise(visits, person="id", time="time")
    with pytest.raises(DataError, match="no numeric column"):
        summarise(visits.fillna(1).drop(columns="pulse"), person="id", time="day")
