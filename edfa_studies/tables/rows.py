"""Results as tables and figures read them: rows with labels, one reading, one blanket a comparison,
means over seeds.

Nothing here raises because something is missing: a payload without rows or columns gives an empty
frame or NaN.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pandas as pd

from edfa_studies.store import LABELS
from edfa_studies.tables.names import ABLATIONS, NAMES, in_order, ordered, title


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
        self._store, self._keys = store, keys
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}

    def frame(self, measure: str, table: str) -> pd.DataFrame:
        """All rows of a table, label columns first; not to be changed."""
        if (measure, table) not in self._frames:
            self._frames[measure, table] = self._store.frame(measure, table, self._keys)
        return self._frames[measure, table]


def rows_of(
    results: Results, measure: str, table: str, numbers: Iterable[str], words: Iterable[str] = ()
) -> pd.DataFrame:
    """Read some columns of a payload table.

    Parameters
    ----------
    results
        The results of a study.
    measure, table
        Which table, such as ``"growth"``, ``"step"``.
    numbers
        Columns to be read as floats; what is no number is NaN.
    words
        Columns to be read as they are.

    Returns
    -------
    pandas.DataFrame
        The labels, then ``numbers`` and ``words``; a column that no cell has is NaN.
    """
    numbers = list(numbers)
    frame = results.frame(measure, table).reindex(columns=[*LABELS, *numbers, *words])
    as_numbers = frame[numbers].apply(pd.to_numeric, errors="coerce").astype(float)
    return frame.assign(**as_numbers)


def growth_rows(results: Results, table: str, columns: Iterable[str]) -> pd.DataFrame:
    """Rows of a table of the measure "growth" in one reading, the paper's where there is one."""
    return preferred(rows_of(results, "growth", table, columns), "reading", "paper")


def preferred(frame: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """The rows with this name in a column; where no row has it, those with the first name there is,
    so that own studies show.
    """
    names = ordered(column, frame[column].dropna())
    if not names:
        return frame
    return frame[frame[column] == (name if name in names else names[0])]


def matching(frame: pd.DataFrame, by: Sequence[str], other: pd.DataFrame) -> pd.DataFrame:
    """The rows of a frame that have a partner in another.

    Parameters
    ----------
    frame, other
        Two frames with the columns ``by``.
    by
        Columns; a row stays if its values in them occur together in a row of ``other``.
    """
    keys, wanted = (pd.MultiIndex.from_frame(rows[list(by)]) for rows in (frame, other))
    return frame[keys.isin(wanted)]


def one_searcher(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one searcher: the paper's default, nearest plans, where there is one."""
    return preferred(frame, "searcher", "nearest")


def one_blanket(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one blanket for each data set and model, the one under which most policies were
    measured, on equal seeds.

    Policies are compared under the same blanket, since counts inside and outside it depend on it,
    and on the same people.
    """
    by = ["data", "predictor"]
    counts = frame.groupby([*by, "blanket"])["policy"].nunique().mul(-1).reset_index(name="most")
    best = in_order(counts, ["most", "blanket"]).drop_duplicates(by)
    return _same_seeds(matching(frame, [*by, "blanket"], best))


def _same_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the seeds that all policies of a data set, model and searcher have: other seeds draw
    other people.

    >>> frame = pd.DataFrame({"policy": ["edfa", "edfa", "dime"], "seed": [0, 1, 0]})
    >>> frame = frame.assign(data="german", predictor="xgb", searcher="nearest")
    >>> _same_seeds(frame)["seed"].tolist()
    [0, 0]
    """
    by = ["data", "predictor", "searcher"]
    cells = frame[[*by, "policy", "seed"]].drop_duplicates()
    policies = cells.groupby(by)["policy"].transform("nunique")
    shared = cells.groupby([*by, "seed"])["policy"].transform("nunique")
    return matching(frame, [*by, "policy", "seed"], cells[shared == policies])


def comparable(frame: pd.DataFrame, policies: Collection[str]) -> pd.DataFrame:
    """Rows of these policies that may be compared: of one searcher, of one blanket for each data
    set and model, and of the seeds that all of them have.
    """
    return one_blanket(one_searcher(frame[frame["policy"].isin(list(policies))]))


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one searcher and blanket, for each data set and model with a policy beside EDFA and
    its variants.

    Where nothing was compared with EDFA at all, everything stays.
    """
    frame = one_blanket(one_searcher(frame))
    others = frame[~frame["policy"].isin(ABLATIONS)]
    return frame if others.empty else matching(frame, ["data", "predictor"], others)


def without_variants(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of all policies but the variants of EDFA that are there for the ablations."""
    return frame[~frame["policy"].isin(ABLATIONS[1:])]


def over_seeds(frame: pd.DataFrame, by: Sequence[str], columns: Iterable[str]) -> pd.DataFrame:
    """Means over seeds.

    Parameters
    ----------
    frame
        Rows with a column ``seed``.
    by
        Columns whose combinations become rows, sorted.
    columns
        Columns of numbers to be averaged; NaN does not count.

    Returns
    -------
    pandas.DataFrame
        The columns ``by``, the means, and ``seeds``: how many there are.
    """
    columns = list(columns)
    if frame.empty:
        return pd.DataFrame(columns=[*by, *columns, "seeds"])
    groups = frame.groupby(list(by))
    return groups[columns].mean().assign(seeds=groups["seed"].nunique()).reset_index()


def shown(
    table: pd.DataFrame, order: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """A table as readers see it.

    Parameters
    ----------
    table
        Rows with names of parts as the study calls them.
    order
        Columns to sort by, names in the order of the paper.
    names
        New names of columns.

    Returns
    -------
    pandas.DataFrame
        The sorted rows, with the titles of data sets, models and so on for their names.
    """
    if table.empty:
        return table
    table = in_order(table, order) if order else table
    titles = {kind: [title(kind, name) for name in table[kind]] for kind in NAMES if kind in table}
    return table.assign(**titles).rename(columns=dict(names or {}))


def summary(
    rows: pd.DataFrame,
    by: Sequence[str],
    columns: Iterable[str],
    *,
    order: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Means over seeds as readers see them, sorted by ``order`` or else by ``by``.

    See ``over_seeds`` and ``shown``.
    """
    return shown(over_seeds(rows, by, columns), order or by, names)
