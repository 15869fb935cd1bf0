"""Overlays of people in a file: a cell of JSON a person, read once for all who say the same.

``read_overlays`` reads the cells from a file of their own, ``Overlays.of`` understands them.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.fitted import FittedAdvisor
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.errors import ColumnError, DataError, EdfaError, UnreadableError, hint
from edfa.reading import MEGABYTE, existing, parse_json, read_text
from edfa.typing import IntArray

KEYS = tuple(f.name for f in fields(Overlay))
MAX_BYTES = 1024 * MEGABYTE  # of a file of overlays
MAX_ROWS = 1 << 62  # of a file of people
WHOLE = "overlay"  # the key, or column, that holds a whole overlay as JSON


class Overlays(NamedTuple):
    """The overlays of a batch of people.

    Attributes
    ----------
    distinct
        The different ones.
    which
        The position of each person's among them, (people,).
    errors
        Why an overlay cannot be used, by row number; such a person counts as one without.
    """

    distinct: list[Overlay]
    which: IntArray
    errors: dict[int, str]

    @classmethod
    def of(cls, cells: pd.Series, fitted: FittedAdvisor) -> "Overlays":
        """Read the overlays of people, each text once.

        Parameters
        ----------
        cells
            A cell per person, (people,): empty, or JSON such as ``{"locked": ["purpose"],
            "max_changes": 1}``. One that cannot be understood, does not fit the card or loosens the
            operator's rules is that person's error.
        fitted
            The advisor.
        """
        said, texts = pd.factorize(cells.map(_text).to_numpy(dtype=object))
        overlays = []
        messages: dict[int, str] = {}
        for number, text in enumerate(texts):
            try:
                overlays.append(_understand(text, fitted))
            except EdfaError as error:
                messages[number] = f"overlay: {str(error).removeprefix('overlay.')}"
                overlays.append(NO_OVERLAY)
        contents = np.array([overlay.to_json() for overlay in overlays], dtype=object)
        places, _ = pd.factorize(contents)
        distinct = dict(zip(contents, overlays, strict=True))
        errors = {row: messages[i] for row, i in enumerate(said.tolist()) if i in messages}
        return cls([*distinct.values()], places[said], errors)


def _text(cell: Any) -> str:
    """A cell as one text, empty for an empty cell.

    A mapping comes from JSON lines, or from Parquet, which fills absent keys with nulls: it becomes
    JSON without these.
    """
    if isinstance(cell, Mapping):
        given = {str(key): value for key, value in cell.items() if value is not None}
        try:
            return json.dumps(given, sort_keys=True, default=_plain)
        except (
            RecursionError,
            ValueError,
        ):  # too deep, or within itself: that is no JSON, as its reader will say
            return "{ nested too deeply"
    return "" if pd.api.types.is_scalar(cell) and pd.isna(cell) else str(cell)


def _plain(value: Any) -> Any:
    """What JSON has no word for: an array as a list, anything else as text."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _understand(text: str, fitted: FittedAdvisor) -> Overlay:
    """The overlay in the text of a cell.

    Raises
    ------
    UnreadableError
        If the text is no JSON object.
    SchemaError, SettingError, UnknownNameError
        If it is no overlay for this card, or loosens the rules of everybody.
    """
    if not text.strip():
        return NO_OVERLAY
    try:
        values = parse_json(text, "it")
    except UnreadableError as error:
        raise UnreadableError(
            f"{str(error).removeprefix('it is ').removeprefix('it: ')}: {text[:40]!r}"
        ) from None
    if not isinstance(values, dict):
        raise UnreadableError(
            f'an object of keys and values such as {{"max_changes": 1}}, not {text[:40]!r}'
        )
    overlay = Overlay.from_dict(values) if "version" in values else Overlay.parse(values)
    overlay.check(fitted.rules, fitted.schema, fitted.encoder)
    return overlay


def read_overlays(path: str | Path) -> pd.Series:
    """The cells of overlays in a file of their own.

    Parameters
    ----------
    path
        JSON lines or CSV with ``row`` and the settings of an overlay as the other keys (in CSV each
        cell is JSON or a word), or as JSON under ``overlay``. A row is numbered as in the file of
        people, from 0, and is there once.

    Returns
    -------
    pandas.Series
        Cells for ``Overlays.of`` by row number.

    Raises
    ------
    UnreadableError
        If the file or a line of it cannot be read.
    ColumnError
        If a column of CSV is no setting of an overlay, or is there twice.
    DataError
        If a row number is wrong or there twice.
    """
    source = existing(path)
    readers = {".jsonl": _json_lines, ".csv": _csv}
    if source.suffix.lower() not in readers:
        raise UnreadableError(f"{source.name}: a file of overlays is a {' or '.join(readers)} file")
    rows: dict[int, str] = {}
    for line, entry in readers[source.suffix.lower()](read_text(source, MAX_BYTES), source.name):
        row = entry.pop("row", None)
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < MAX_ROWS:
            raise DataError(
                f"{source.name}, line {line}: row is a whole number from 0, not {str(row)[:40]!r}"
            )
        if row in rows:
            raise DataError(f"{source.name}, line {line}: row {row} has an overlay already")
        rows[row] = _text(entry[WHOLE] if set(entry) == {WHOLE} else entry)
    return pd.Series(rows, dtype=object)


def _json_lines(text: str, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of JSON lines as mappings, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        entry = parse_json(line, f"{name}, line {number},")
        if not isinstance(entry, dict):
            raise UnreadableError(f"{name}, line {number}: an object of keys and values is needed")
        yield number, entry


def _csv(text: str, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of CSV as mappings without empty cells, with their line numbers."""
    lines = csv.DictReader(StringIO(text, newline=""), strict=True)
    try:
        header = [*(lines.fieldnames or ())]
        _check_header(header, name)
        for row in lines:
            cells = [cell for cell in row.values() if isinstance(cell, str)]
            if None in row or len(cells) < len(header):
                count = len(cells) + len(row.get(None, ()))
                raise UnreadableError(
                    f"{name}, line {lines.line_num} has {count} cells, and the first line "
                    f"{len(header)}"
                )
            entry = {key: cell for key, cell in row.items() if cell}
            if entry:
                yield (
                    lines.line_num,
                    {k: cell if k == WHOLE else _json_or_word(cell) for k, cell in entry.items()},
                )
    except csv.Error as error:
        raise UnreadableError(f"{name}, line {lines.line_num}, cannot be read: {error}") from None


def _check_header(header: list[str], name: str) -> None:
    """Refuse a header of a CSV file of overlays with a column that is unknown, or there twice, or
    without the row number.
    """
    known = ("row", WHOLE, *KEYS)
    if not header:
        raise UnreadableError(f"{name} cannot be read: it is empty")
    for key in header:
        if key not in known:
            raise ColumnError(
                f"{name}: no setting of an overlay is called {key[:40]!r}{hint(key, known)}"
            )
        if header.count(key) > 1:
            raise ColumnError(f"{name}: the column {key!r} is there twice")
    if "row" not in header:
        raise ColumnError(f"{name} has no column 'row', the number of the person's row from 0")


def _json_or_word(cell: str) -> Any:
    """A cell as JSON, or as the word that it is; whether that makes a setting is seen later."""
    try:
        return parse_json(cell, "it")
    except UnreadableError:
        return cell
