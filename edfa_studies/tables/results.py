"""Results as tables and figures read them: rows with labels, one reading, one blanket a comparison,
means over seeds.

Nothing here raises because something is missing: a payload without rows or columns gives an empty
frame or NaN.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import pandas as pd

from edfa_studies.payload import LABELS, PARTS
from edfa_studies.tables.labels import ABLATIONS, ordered

__all__ = [
    "LABELS",
    "PARTS",
    "Results",
    "View",
    "compared",
    "growth_rows",
    "numeric_rows",
    "one_blanket",
    "one_searcher",
    "over_seeds",
    "preferred",
    "same_seeds",
    "text_rows",
]


class Results(Protocol):
    """What tables and figures are made from: the rows of a payload table of every cell, with its
    labels.
    """

    def frame(self, measure: str, table: str) -> pd.DataFrame:
        """All rows of this table, label columns first."""
        ...


class View:
    """The results of some cells of a store, each table read once.

    Parameters
    ----------
    store
        A ``Store``.
    keys
        The cells that count; None: all.
    """

    def __init__(self, store: Any, keys: Collection[str] | None = None) -> None:
        self._store, self._keys = store, None if keys is None else set(keys)
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}

    def frame(self, measure: str, table: str) -> pd.DataFrame:
        """All rows of this table, label columns first."""
        if (measure, table) not in self._frames:
            frame = self._store.frame(measure, table)
            if self._keys is not None and "cell" in frame:
                frame = frame[frame["cell"].isin(self._keys)].reset_index(drop=True)
            self._frames[measure, table] = frame
        return self._frames[measure, table]


def numeric_rows(
    results: Results, measure: str, table: str, columns: Iterable[str]
) -> pd.DataFrame:
    """Labels and these columns as numbers; what is not there, or is no number, is NaN."""
    columns = list(columns)
    frame = results.frame(measure, table).reindex(columns=[*LABELS, *columns])
    return frame.assign(
        **{name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in columns}
    )


def text_rows(results: Results, measure: str, table: str, columns: Iterable[str]) -> pd.DataFrame:
    """Labels and these columns as they are; what is not there is None."""
    return results.frame(measure, table).reindex(columns=[*LABELS, *columns])


def preferred(frame: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """The rows with this name; where no row has it, those with the first name there is, so that own
    studies show.
    """
    names = ordered(column, frame[column].dropna())
    if not names:
        return frame
    return frame[frame[column] == (name if name in names else names[0])]


def growth_rows(
    results: Results, table: str, columns: Iterable[str], reading: str = "paper"
) -> pd.DataFrame:
    """Rows of the measure "growth" in one reading, the paper's where there is one."""
    return preferred(numeric_rows(results, "growth", table, columns), "reading", reading)


def one_searcher(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one searcher: the paper's default, nearest plans, where there is one."""
    return preferred(frame, "searcher", "nearest")


def one_blanket(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one blanket for each data set and model, the one under which most policies were
    measured, on equal seeds.

    Policies are compared under the same blanket, since counts inside and outside it depend on it,
    and on the same people (see ``same_seeds``).
    """
    if frame.empty:
        return frame
    counts = (
        frame.groupby(["data", "predictor", "blanket"], observed=True)["policy"]
        .nunique()
        .reset_index(name="n")
    )
    names = ordered("blanket", counts["blanket"])
    counts["place"] = [names.index(name) for name in counts["blanket"]]
    best = counts.sort_values(["n", "place"], ascending=[False, True]).drop_duplicates(
        ["data", "predictor"]
    )
    chosen = set(zip(best["data"], best["predictor"], best["blanket"], strict=True))
    keys = zip(frame["data"], frame["predictor"], frame["blanket"], strict=True)
    return same_seeds(frame[[key in chosen for key in keys]])


def same_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the seeds that all policies of a data set, model and searcher have: other seeds draw
    other people.

    >>> frame = pd.DataFrame({"policy": ["edfa", "edfa", "dime"], "seed": [0, 1, 0]})
    >>> frame = frame.assign(data="german", predictor="xgb", searcher="nearest")
    >>> same_seeds(frame)["seed"].tolist()
    [0, 0]
    """
    cells = frame[["data", "predictor", "searcher", "policy", "seed"]].drop_duplicates()
    groups = cells.groupby(["data", "predictor", "searcher"], observed=True)
    counts = groups["policy"].transform("nunique")
    shared = cells.groupby(["data", "predictor", "searcher", "seed"], observed=True)[
        "policy"
    ].transform("nunique")
    kept = set(cells[shared == counts].itertuples(index=False, name=None))
    keys = frame[["data", "predictor", "searcher", "policy", "seed"]].itertuples(
        index=False, name=None
    )
    return frame[[key in kept for key in keys]]


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one searcher and blanket, for each data set and model with a policy beside EDFA and
    its variants.

    Where nothing was compared with EDFA at all, everything stays.
    """
    frame = one_blanket(one_searcher(frame))
    others = frame[~frame["policy"].isin(ABLATIONS)]
    if others.empty:
        return frame
    pairs = set(zip(others["data"], others["predictor"], strict=True))
    return frame[[pair in pairs for pair in zip(frame["data"], frame["predictor"], strict=True)]]


def over_seeds(frame: pd.DataFrame, by: Sequence[str], columns: Iterable[str]) -> pd.DataFrame:
    """Means over seeds, and how many ``seeds`` there are, one row for each combination of
    ``by``.
    """
    columns = list(columns)
    if frame.empty:
        return pd.DataFrame(columns=[*by, *columns, "seeds"])
    groups = frame.groupby(list(by), observed=True, sort=True)
    return groups[columns].mean().assign(seeds=groups["seed"].nunique()).reset_index()
