"""From a study to its cells, in one order, each once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from edfa.errors import SettingError, UnknownNameError
from edfa_studies.cells import Cell, Part
from edfa_studies.config import MEASURES, Grid, Study

__all__ = ["cells_of", "describe", "expand", "select"]

NONE = Part("-", "-")
PARTS = ("data", "predictor", "blanket", "policy", "searcher")
SELECTABLE = ("measure", *PARTS, "promise", "reading", "seed")


def expand(study: Study) -> tuple[Cell, ...]:
    """The cells of a study: those of the first seed first, grid by grid, so that an unfinished
    study is a smaller one.

    A cell that occurs twice, under whatever names, is there once, under the first.

    Examples
    --------
    >>> from edfa_studies.config import read_study
    >>> len(expand(read_study("smoke"))) > 10
    True
    """
    every = [cell for grid in study.grids for cell in cells_of(study, grid)]
    unique: dict[str, Cell] = {}
    for cell in sorted(every, key=lambda cell: cell.seed):
        unique.setdefault(cell.key, cell)
    return tuple(unique.values())


def cells_of(study: Study, grid: Grid) -> Iterator[Cell]:
    """The cells of one grid, seed by seed."""
    used = MEASURES[grid.measure]
    lists = [
        [study.part(kind, name) for name in getattr(grid, kind)] if kind in used else [NONE]
        for kind in PARTS
    ]
    promises = (
        [study.part("promise", name) for name in grid.promise] if "promise" in used else [NONE]
    )
    seeds = grid.seeds if "policy" in used else 1  # nothing is drawn where nobody is asked
    for seed in range(seeds):
        for data, predictor, blanket, policy, searcher, promise in product(*lists, promises):
            settings = _settings(grid, searcher, promise)
            yield Cell(grid.measure, data, predictor, blanket, policy, searcher, seed, settings)


def _settings(grid: Grid, searcher: Part, promise: Part) -> dict[str, Any]:
    """What the result of a cell depends on beside its parts."""
    settings: dict[str, Any] = {
        key: getattr(grid, key) for key in ("budget", "cap", "split", "reading")
    }
    if grid.measure in ("growth", "examples"):
        settings |= {"people": grid.people}
    elif grid.measure == "promise":
        chosen = {"name": promise.name, **promise.settings}
        if chosen["signal"] == "auto":  # the one that goes with the searcher, as in an advisor
            chosen["signal"] = "survival" if searcher.of == "survival" else "uncertainty"
        settings |= {
            "calibration": grid.calibration,
            "test": grid.promise_test,
            "delta": grid.delta,
        }
        settings |= {"promise": chosen}
    return settings


def select(cells: Sequence[Cell], only: str) -> tuple[Cell, ...]:
    """The cells that a text such as ``"data=german,policy=edfa"`` describes; a key that is repeated
    allows either.

    Raises
    ------
    SettingError
        If the text is not of that form.
    UnknownNameError
        If a key is none, or no cell has the value.

    Examples
    --------
    >>> from edfa_studies.config import read_study
    >>> cells = expand(read_study("smoke"))
    >>> {cell.data.name for cell in select(cells, "data=german,measure=growth")}
    {'german'}
    """
    wanted: dict[str, set[str]] = {}
    for pair in filter(None, (text.strip() for text in only.split(","))):
        key, equals, value = (text.strip() for text in pair.partition("="))
        if not equals:
            raise SettingError(f"only: pairs such as data=german,policy=edfa, not {pair!r}")
        if key not in SELECTABLE:
            raise UnknownNameError("key for --only", key, SELECTABLE)
        known = _values(cells, key)
        if value not in known:
            raise UnknownNameError(f"{key} in this study", value, known)
        wanted.setdefault(key, set()).add(value)
    chosen = tuple(
        c for c in cells if all(describe(c)[key] in values for key, values in wanted.items())
    )
    if not chosen:
        raise SettingError(f"--only: no cell of this study matches all of {only}")
    return chosen


def describe(cell: Cell) -> dict[str, str]:
    """What a cell can be selected by."""
    promise = cell.settings.get("promise", {}).get("name", "-")
    rest = {
        "measure": cell.measure,
        "promise": promise,
        "reading": cell.settings["reading"],
        "seed": str(cell.seed),
    }
    return cell.labels | rest


def _values(cells: Iterable[Cell], key: str) -> list[str]:
    """The values of a key, in the order of the cells."""
    return list(dict.fromkeys(describe(cell)[key] for cell in cells))
