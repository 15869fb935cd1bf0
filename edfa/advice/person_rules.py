"""Limits that people in a file have set themselves: a cell of JSON a person, read once for all who
say the same.
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
from edfa.advice.rules import check_rules
from edfa.data.constraints import Constraints
from edfa.errors import ColumnError, DataError, EdfaError, UnreadableError, hint
from edfa.reading import MEGABYTE, existing, parse_json, read_text
from edfa.typing import IntArray

__all__ = ["PersonRules", "read_person_rules"]

KEYS = tuple(f.name for f in fields(Constraints))
LIMIT = 1024 * MEGABYTE  # of a file of rules
MOST = 1 << 62  # rows of a file
WHOLE = "rules"  # the key, or column, that holds all of a person's rules as JSON


class PersonRules(NamedTuple):
    """The distinct ``constraints`` of some people, whose they are, ``which`` (people,), and errors
    by row number.
    """

    constraints: list[Constraints]
    which: IntArray
    errors: dict[int, str]

    @classmethod
    def of(cls, cells: pd.Series, fitted: FittedAdvisor) -> "PersonRules":
        """Read one cell a person: empty, or JSON such as ``{"locked": ["purpose"], "max_changes":
        1}``.

        Rules that cannot be understood, do not fit the card or loosen the operator's are that
        person's error.
        """
        index, distinct = pd.factorize(cells.map(_text).to_numpy(dtype=object))
        numbers: dict[str, int] = {}
        constraints: list[Constraints] = []
        codes: list[int] = []
        messages: dict[int, str] = {}
        for i, text in enumerate(distinct):
            try:
                own = _understand(text, fitted)
            except EdfaError as error:
                own, messages[i] = Constraints(), f"rules: {str(error).removeprefix('rules.')}"
            codes.append(numbers.setdefault(own.to_json(), len(numbers)))
            constraints += [own] if codes[-1] == len(constraints) else []
        wrong = np.flatnonzero(np.isin(index, list(messages)))
        errors = {
            row: messages[i] for row, i in zip(wrong.tolist(), index[wrong].tolist(), strict=True)
        }
        return cls(constraints, np.array(codes, dtype=np.intp)[index], errors)

    @classmethod
    def none(cls, people: int) -> "PersonRules":
        """Nobody has any."""
        return cls([Constraints()], np.zeros(people, dtype=np.intp), {})


def _text(cell: Any) -> str:
    """A cell as one text; a mapping comes from JSON lines, or from Parquet, which fills absent keys
    with nulls.
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


def _understand(text: str, fitted: FittedAdvisor) -> Constraints:
    """A person's limits from the text of a cell; an error unless they tighten what holds for
    everybody.
    """
    if not text.strip():
        return Constraints()
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
    own = Constraints.from_json(text) if "version" in values else Constraints.parse(values)
    check_rules(fitted.rules.for_person(own), fitted.schema, fitted.encoder)
    return own


def read_person_rules(path: str | Path) -> pd.Series:
    """The cells of rules in a file of their own, by row number: JSON lines or CSV with ``row`` and
    the rules.

    The rules are the other keys (in CSV each cell is JSON or a word), or JSON under ``rules``. A
    row is numbered as in the file of people, from 0, and has rules once.
    """
    source = existing(path)
    readers = {".jsonl": _json_lines, ".csv": _csv}
    if source.suffix.lower() not in readers:
        raise UnreadableError(
            f"{source.name}: a file of people's rules is a {' or '.join(readers)} file"
        )
    rows: dict[int, str] = {}
    for line, entry in readers[source.suffix.lower()](read_text(source, LIMIT), source.name):
        row = entry.pop("row", None)
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < MOST:
            raise DataError(
                f"{source.name}, line {line}: row is a whole number from 0, not {str(row)[:40]!r}"
            )
        if row in rows:
            raise DataError(f"{source.name}, line {line}: row {row} has rules already")
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
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(lines, [])
        _check_header(header, name)
        for cells in lines:
            if cells and len(cells) != len(header):
                counts = f"{len(cells)} cells, and the first line {len(header)}"
                raise UnreadableError(f"{name}, line {lines.line_num} has {counts}")
            entry = {key: cell for key, cell in zip(header, cells, strict=False) if cell != ""}
            if entry:
                yield (
                    lines.line_num,
                    {
                        key: cell if key == WHOLE else _json_or_word(cell)
                        for key, cell in entry.items()
                    },
                )
    except csv.Error as error:
        raise UnreadableError(f"{name}, line {lines.line_num}, cannot be read: {error}") from None


def _check_header(header: list[str], name: str) -> None:
    known = ("row", WHOLE, *KEYS)
    if not header:
        raise UnreadableError(f"{name} cannot be read: it is empty")
    if stray := [key for key in header if key not in known]:
        raise ColumnError(f"{name}: no rule is called {stray[0][:40]!r}{hint(stray[0], known)}")
    if doubled := [key for key in header if header.count(key) > 1]:
        raise ColumnError(f"{name}: the column {doubled[0]!r} is there twice")
    if "row" not in header:
        raise ColumnError(f"{name} has no column 'row', the number of the person's row from 0")


def _json_or_word(cell: str) -> Any:
    """A cell as JSON, or as the word that it is; whether that makes a rule is seen later."""
    try:
        return parse_json(cell, "it")
    except UnreadableError:
        return cell
