"""Study files: which cells are measured, in TOML, checked as a whole before anything runs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from edfa.errors import SchemaError, UnknownNameError, hint
from edfa.reading import MEGABYTE, parse, read_text
from edfa.settings import LARGEST_SEED
from edfa_studies.cells import Part
from edfa_studies.parts import (
    SECTIONS,
    Parts,
    check_directions,
    check_promise,
    known_parts,
    name_place,
)

__all__ = ["MEASURES", "SHIPPED", "Grid", "Study", "parse_study", "read_study"]

CONFIG_LIMIT = 4 * MEGABYTE
MOST_SEEDS = 10_000
SHIPPED = ("smoke", "demo", "paper", "full")
LISTS = ("data", "predictor", "blanket", "policy", "searcher", "promise")
MEASURES: dict[str, tuple[str, ...]] = {
    "sets": ("data", "blanket"),
    "growth": ("data", "predictor", "blanket", "policy", "searcher"),
    "examples": ("data", "predictor", "blanket", "policy", "searcher"),
    "promise": LISTS,
}
"""What can be measured, and which lists each measure is the cross of."""


@dataclass(frozen=True)
class Grid:
    """Every combination of some lists, for one measure. Any of these but ``title`` may also stand
    at the top of a file, for all its grids.

    Parameters
    ----------
    measure
        ``"sets"`` (the data sets and their blankets), ``"growth"`` (recourse, accuracy and quality
        of plans while people are asked), ``"examples"`` (single people in words) or ``"promise"``
        (certificates).
    data, predictor, blanket, policy, searcher, promise
        Names of parts.
    seeds
        The number of draws of people: the seeds are 0, 1, ...
    people
        Test people drawn for each seed.
    calibration, promise_test
        For ``"promise"``: the largest number of calibration people, and of test people that
        certificates are held against.
    budget
        What may be spent on each person: a share up to 1 of the price of everything, or an amount.
    cap
        The largest number of rows of a data set; 0: all.
    split
        Seed of the split into training, calibration and test people, and of the rows that a cap
        keeps.
    delta
        The probability that a certificate is wrong.
    reading
        ``"paper"``: any other decision is recourse, everything in the blanket can be changed;
        ``"card"``: plans lead to the favourable class and obey the card's rules, models obey its
        directions.
    title
        What the grid is for.
    """

    measure: str
    data: tuple[str, ...]
    predictor: tuple[str, ...] = ("xgb",)
    blanket: tuple[str, ...] = ("eamb",)
    policy: tuple[str, ...] = ("edfa",)
    searcher: tuple[str, ...] = ("nearest",)
    promise: tuple[str, ...] = ("paper",)
    seeds: int = 1
    people: int = 100
    calibration: int = 1000
    promise_test: int = 1000
    budget: float = 0.9
    cap: int = 50_000
    split: int = 0
    delta: float = 0.05
    reading: Literal["paper", "card"] = "paper"
    title: str = ""


@dataclass(frozen=True)
class Study:
    """A study: its grids and the parts that they name.

    Parameters
    ----------
    name
        The name of its file, without ``.toml``.
    title
        What people read above its tables.
    grids
        What is measured; cells that occur in two grids are measured once.
    parts
        Every part that may be named, by kind (``"data"``, ``"predictor"``, ...) and name.
    text
        The file as it was read.
    """

    name: str
    title: str
    grids: tuple[Grid, ...]
    parts: Parts = field(repr=False)
    text: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        frozen = {kind: MappingProxyType(dict(parts)) for kind, parts in self.parts.items()}
        object.__setattr__(self, "parts", MappingProxyType(frozen))

    def part(self, kind: str, name: str) -> Part:
        """A part by its kind and name."""
        return self.parts[kind][name]


def read_study(name: str | Path) -> Study:
    """A study that ships with edfa, by its name, or one of your own, by the path of its TOML file.

    Examples
    --------
    >>> read_study("smoke").name
    'smoke'
    >>> read_study("smok")
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: no study named 'smok'; did you mean 'smoke'?
    """
    if str(name) in SHIPPED:
        path = Path(str(files("edfa_studies") / "configs" / f"{name}.toml"))
    elif (path := Path(name)).suffix != ".toml" and not path.is_file():
        raise UnknownNameError("study", name, SHIPPED)
    return parse_study(read_text(path, CONFIG_LIMIT), path)


def parse_study(text: str, path: Path) -> Study:
    """The study that a TOML text describes; ``path`` gives its name and the folder where its
    tables' paths start.

    Raises
    ------
    SchemaError
        If a key is unknown, missing or of the wrong type, or if settings contradict each other.
    UnknownNameError
        If a part is not known; the message has the nearest name.

    Examples
    --------
    >>> parse_study('[[grid]]\\nmeasure = "growth"\\ndata = ["german"]\\npolicy = ["edaf"]',
    ...     Path("my.toml"))
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: my.toml: grid 1.policy: no policy named 'edaf'; did you mean 'edfa'?
    """  # noqa: E501
    where = path.name
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise SchemaError(f"{where}: not a TOML file: {reason}") from None
    _check_top(values, where)
    parts = known_parts(values, path.parent, where)
    shared = {key: value for key, value in values.items() if key in _grid_keys()}
    grids = tuple(
        _grid(grid, shared, parts, f"{where}: grid {i}") for i, grid in enumerate(values["grid"], 1)
    )
    return Study(path.stem, values.get("title", path.stem), grids, parts, text)


def _grid_keys() -> list[str]:
    """The keys of a grid that may also stand at the top of a file."""
    return [f.name for f in fields(Grid) if f.name not in ("measure", "title")]


def _check_top(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys that no study has, and a study without grids."""
    known = ["title", *_grid_keys(), "grid", *SECTIONS.values()]
    for key in values:
        if key not in known:
            raise SchemaError(f"{where}: {key}: no such key{hint(key, known, shown=30)}")
    if isinstance(values.get("data"), dict):
        raise SchemaError(
            f"{where}: data: a list of names; a table of your own is described in [tables.NAME]"
        )
    if not isinstance(values.get("title", ""), str):
        raise SchemaError(f"{where}: title: a text, not {values['title']!r}")
    grids = values.get("grid")
    if (
        not isinstance(grids, list)
        or not grids
        or not all(isinstance(grid, dict) for grid in grids)
    ):
        raise SchemaError(f"{where}: grid: at least one [[grid]] says what is measured")


def _grid(values: Mapping[str, Any], shared: Mapping[str, Any], parts: Parts, where: str) -> Grid:
    """One grid, checked; ``shared`` are the keys at the top of the file."""
    measure = values.get("measure")
    if measure is None:
        raise SchemaError(f"{where}.measure: is missing; one of {', '.join(MEASURES)}")
    if measure not in MEASURES:
        raise name_place(UnknownNameError("measure", measure, MEASURES), f"{where}.measure")
    used = MEASURES[measure]
    for key in LISTS:
        if key in values and key not in used:
            raise SchemaError(
                f"{where}.{key}: the measure {measure!r} does not use it; it uses {', '.join(used)}"
            )
    both = {**shared, **values}
    lists = {
        key: [both[key]] for key in LISTS if isinstance(both.get(key), str)
    }  # one name is a list of one
    grid = parse(Grid, {**both, **lists}, where)
    _check_numbers(grid, where)
    for key in used:
        _check_names(grid, key, parts[key], f"{where}.{key}")
    if measure == "promise":
        _check_promises(grid, parts, where)
    if grid.reading == "card" and "predictor" in used:
        for name in grid.predictor:
            check_directions(
                parts["predictor"][name], [parts["data"][data] for data in grid.data], where
            )
    return grid


def _check_numbers(grid: Grid, where: str) -> None:
    """Refuse numbers outside their range."""
    least = {"seeds": 1, "people": 1, "calibration": 1, "promise_test": 1, "cap": 0, "split": 0}
    for key, value in least.items():
        if getattr(grid, key) < value:
            raise SchemaError(f"{where}.{key}: at least {value}, not {getattr(grid, key)}")
    for key, most in {"seeds": MOST_SEEDS, "split": LARGEST_SEED}.items():
        if getattr(grid, key) > most:
            raise SchemaError(f"{where}.{key}: at most {most}, not {getattr(grid, key)}")
    if not grid.budget > 0:
        raise SchemaError(
            f"{where}.budget: above zero, a share up to 1 or an amount, not {grid.budget:g}"
        )
    if not 0 < grid.delta < 1:
        raise SchemaError(f"{where}.delta: a probability between 0 and 1, not {grid.delta:g}")


def _check_names(grid: Grid, key: str, known: Mapping[str, Part], where: str) -> None:
    """Refuse names that nobody knows, and empty lists."""
    if not getattr(grid, key):
        raise SchemaError(f"{where}: an empty list; nothing would be measured")
    for name in getattr(grid, key):
        if name not in known:
            raise name_place(
                UnknownNameError("data set" if key == "data" else key, name, known), where
            )


def _check_promises(grid: Grid, parts: Parts, where: str) -> None:
    """Refuse promises that nobody could certify."""
    for name in grid.promise:
        promise = parts["promise"][name].settings
        check_promise(promise, grid.delta, f"{where}: promise {name}")
        if promise["target"] == "refused" and grid.reading != "card":
            raise SchemaError(
                f"{where}.reading: the promise {name!r} is about people who are refused, "
                "so that a class must be the "
                "favourable one: reading = 'card'"
            )
