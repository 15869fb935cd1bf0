"""Limits that people in a file have set themselves: a cell of JSON a person, read once for all who say the same."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.rules import check_rules
from edfa.data.constraints import Constraints
from edfa.errors import ColumnError, DataError, EdfaError, UnreadableError, hint
from edfa.reading import existing
from edfa.typing import IntArray

__all__ = ["PersonRules", "read_person_rules"]

KEYS = tuple(f.name for f in fields(Constraints))
WHOLE = "rules"  # the key, or column, that holds all of a person's rules as JSON


class PersonRules(NamedTuple):
    """The distinct ``constraints`` of some people, whose they are, ``which`` (people,), and errors by row number."""

    constraints: list[Constraints]
    which: IntArray
    errors: dict[int, str]

    @classmethod
    def of(cls, cells: pd.Series, fitted: FittedAdvisor) -> "PersonRules":
        """Read one cell a person: empty, or JSON such as ``{"locked": ["purpose"], "max_changes": 1}``.

        Rules that cannot be understood, do not fit the card or loosen the operator's are that person's error.
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
        errors = {row: messages[i] for row, i in zip(wrong.tolist(), index[wrong].tolist(), strict=True)}
        return cls(constraints, np.array(codes, dtype=np.intp)[index], errors)

    @classmethod
    def none(cls, people: int) -> "PersonRules":
        """Nobody has any."""
        return cls([Constraints()], np.zeros(people, dtype=np.intp), {})


def _text(cell: Any) -> str:
    """A cell as one text; a mapping comes from JSON lines, or from Parquet, which fills absent keys with nulls."""
    if isinstance(cell, Mapping):
        given = {key: value for key, value in cell.items() if value is not None}
        return json.dumps(given, sort_keys=True, default=list)
    return "" if cell is None or cell != cell else str(cell)


def _understand(text: str, fitted: FittedAdvisor) -> Constraints:
    """A person's limits from the text of a cell; an error unless they tighten what holds for everybody."""
    if not text.strip():
        return Constraints()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError(f"not JSON: {text[:40]!r}") from None
    if not isinstance(values, dict):
        raise UnreadableError(f'an object of keys and values such as {{"max_changes": 1}}, not {text[:40]!r}')
    own = Constraints.from_json(text) if "version" in values else Constraints.parse(values)
    check_rules(fitted.rules.for_person(own), fitted.schema, fitted.encoder)
    return own


def read_person_rules(path: str | Path) -> pd.Series:
    """The cells of rules in a file of their own, by row number: JSON lines or CSV with ``row`` and the rules.

    The rules are the other keys (in CSV each cell is JSON or a word), or JSON under ``rules``. A row is numbered as in
    the file of people, from 0, and has rules once.
    """
    source = existing(path)
    readers = {".jsonl": _json_lines, ".csv": _csv}
    if source.suffix.lower() not in readers:
        raise UnreadableError(f"{source.name}: a file of people's rules is a {' or '.join(readers)} file")
    rows: dict[int, str] = {}
    for line, entry in readers[source.suffix.lower()](source):
        row = entry.pop("row", None)
        if not isinstance(row, int) or isinstance(row, bool) or row < 0:
            raise DataError(f"{source.name}, line {line}: row is a whole number from 0, not {row!r}")
        if row in rows:
            raise DataError(f"{source.name}, line {line}: row {row} has rules already")
        rows[row] = _text(entry[WHOLE] if set(entry) == {WHOLE} else entry)
    return pd.Series(rows, dtype=object)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a JSON lines file as mappings, with their numbers from 1."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{path.name}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise UnreadableError(f"{path.name}, line {number}: not JSON") from None
        if not isinstance(entry, dict):
            raise UnreadableError(f"{path.name}, line {number}: an object of keys and values is needed")
        yield number, entry


def _csv(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a CSV file as mappings without empty cells, with their line numbers."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    known = ("row", WHOLE, *KEYS)
    if stray := [name for name in frame.columns if name not in known]:
        raise ColumnError(f"{path.name}: no rule is called {stray[0]!r}{hint(stray[0], known)}")
    if "row" not in frame.columns:
        raise ColumnError(f"{path.name} has no column 'row', the number of the person's row from 0")
    for number, cells in enumerate(frame.to_dict("records"), 2):
        entry: dict[str, Any] = {str(name): cell for name, cell in cells.items() if cell != ""}
        yield number, {name: cell if name == WHOLE else _json_or_word(cell) for name, cell in entry.items()}


def _json_or_word(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell
