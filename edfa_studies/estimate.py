"""How long a study will take: an estimate, from times that were measured once, or better, from its
own cells so far.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edfa.reading import read_resource
from edfa_studies.cells import Cell
from edfa_studies.config import Study, cells_of

if TYPE_CHECKING:
    import pandas as pd

    from edfa_studies.products import Product

Measured = Mapping[tuple[str, ...], float]
"""Mean seconds of cells that are done, by measure, data, predictor, policy and searcher."""
BASIS = ("measure", "data", "predictor", "policy", "searcher")
SECONDS: dict[str, dict[str, Any]] = tomllib.loads(read_resource("edfa_studies", "seconds.toml"))
ASK = (0.3, 3.0)  # milliseconds a person and step, on one path for all and on paths of their own
SUBSET_MODEL = 0.01  # one XGBoost for one set of known features, per 1,000 rows
BLANKET_STEPS = 8  # questions within a blanket, at most
WANDERING = ("dime", "eddi", "gsmrl", "greedy", "random", "random-blanket")
WANDERED = 0.7  # of the features are asked for within the budget
OWN_TABLE = (20_000, 20)  # rows and features of a table of one's own, which is not opened to count


@dataclass(frozen=True)
class Shared:
    """Shared work of one kind.

    Parameters
    ----------
    kind
        The kind of the products: "blanket", "predictor", "policy" or "trajectory".
    count, seconds
        How many of them are left to make, and the seconds of one core that they take together.
    """

    kind: str
    count: int
    seconds: float


@dataclass(frozen=True)
class GridEstimate:
    """What is left of one grid.

    Parameters
    ----------
    title, measure
        Those of the grid.
    cells, new
        The number of its cells, and of those that are in no grid before it.
    seconds
        Seconds of one core for the new cells that are not done, with the shared work that no grid
        before it needs.
    """

    title: str
    measure: str
    cells: int
    new: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What is left of a study, in seconds of one core.

    Parameters
    ----------
    grids
        By grid; a cell, or a piece of shared work, counts for the first grid that needs it.
    shared
        The shared work, which is done once.
    cells, done
        The number of cells in all, and of those that are done already.
    measured
        The number of open cells whose time is known from cells like them.
    seconds
        Everything that is left.
    """

    grids: tuple[GridEstimate, ...]
    shared: tuple[Shared, ...]
    cells: int
    done: int
    measured: int
    seconds: float

    @property
    def basis(self) -> str:
        """In words, what the estimate is made of."""
        left, once = self.cells - self.done, "from times measured once on another machine"
        if self.measured == 0:
            return f"{once}, scaled by rows, people and questions"
        rest = "" if self.measured == left else f"; the others {once}"
        return f"{self.measured:,} of {left:,} open cells from cells like them that are done{rest}"


def measured_seconds(status: "pd.DataFrame") -> Measured:
    """The mean seconds of cells that are done.

    Parameters
    ----------
    status
        One row a cell, as ``Store.status`` gives it.

    Returns
    -------
    dict
        Seconds by measure, data, predictor, policy and searcher, for ``estimate``.
    """
    done = status[status["status"] == "done"]
    means = done.groupby(list(BASIS))["seconds"].mean()
    return dict(zip(means.index.to_list(), means.to_list(), strict=True))


def estimate(
    study: Study,
    measured: Measured | None = None,
    *,
    done: Collection[str] = (),
    made: Callable[[str, str], bool] = lambda kind, key: False,
) -> Estimate:
    """Estimate what is left of a study.

    Parameters
    ----------
    study
        The study.
    measured
        Seconds of cells that are done; see ``measured_seconds``.
    done
        Keys of the cells that are done.
    made
        Whether the cache has a product, by kind and key.

    Returns
    -------
    Estimate
        Seconds by grid, by kind of shared work, and in all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from edfa_studies.config import parse_study
    >>> study = parse_study('''
    ...     data = ["german"]
    ...     seeds = 2
    ...     [[grid]]
    ...     measure = "growth"
    ... ''', Path("mine.toml"))
    >>> result = estimate(study)
    >>> result.cells, [(shared.kind, shared.count) for shared in result.shared]
    (2, [('blanket', 1), ('predictor', 1), ('trajectory', 2)])
    """
    from edfa_studies.products import Hashes, products

    measured = measured or {}
    hashes: Hashes = {}
    shared: dict[str, list[float]] = {}
    cells: set[str] = set()
    pieces: set[str] = set()
    known = 0
    grids = []
    for grid in study.grids:
        every = list(cells_of(study, grid))
        new = {cell.key: cell for cell in every if cell.key not in cells}
        cells |= new.keys()
        left = [cell for key, cell in new.items() if key not in done]
        seconds = sum(cell_seconds(cell, measured) for cell in left)
        known += sum(_basis(cell) in measured for cell in left)
        for piece in (piece for cell in left for piece in products(cell, hashes)):
            if piece.key not in pieces and not made(piece.kind, piece.key):
                shared.setdefault(piece.kind, []).append(product_seconds(piece))
                seconds += shared[piece.kind][-1]
            pieces.add(piece.key)
        grids.append(GridEstimate(grid.title, grid.measure, len(every), len(new), seconds))
    work = tuple(Shared(kind, len(times), sum(times)) for kind, times in shared.items())
    seconds = sum(grid.seconds for grid in grids)
    return Estimate(tuple(grids), work, len(cells), len(cells & set(done)), known, seconds)


def _basis(cell: Cell) -> tuple[str, ...]:
    return tuple(cell.description[key] for key in BASIS)


def cell_seconds(cell: Cell, measured: Measured | None = None) -> float:
    """The seconds of one core that a cell takes, without what it shares with others.

    Times of cells like it are taken from ``measured``; without any, they follow from the rows, the
    people and the questions.
    """
    if (known := (measured or {}).get(_basis(cell))) is not None:
        return known
    seconds = float(SECONDS["rest"].get(cell.measure, 1.0))
    if cell.measure == "sets":
        return seconds
    seconds += _linear("generate", cell.searcher.of, _thousands(cell))
    like, factor = SECONDS["like"].get(cell.predictor.of, ("xgb", 1.0))
    times = SECONDS["search"][like]
    milliseconds: float = times.get(cell.searcher.of, times["nearest"])[_wanders(cell)] * factor
    most = int(0.2 * _size(cell)[0])
    people = sum(min(count, most) for count in cell.people.values())
    return seconds + people * (_steps(cell) + 1) * milliseconds / 1000


def product_seconds(product: "Product") -> float:
    """The seconds of one core that a piece of shared work takes."""
    cell, thousands = product.cell, _thousands(product.cell)
    if product.kind == "blanket":
        return float(SECONDS["discover"].get(cell.blanket.of, 0.2) * thousands)
    if product.kind == "predictor":
        return _linear("fit", cell.predictor.of, thousands)
    if product.kind == "policy":
        rows, features = _size(cell)
        limit = cell.policy.settings.get("train_rows", rows) / 1000 * features / 20
        return _linear("learn", cell.policy.of, min(thousands, limit))
    people, steps, model = cell.people[product.part], _steps(cell), cell.predictor
    asked: float = people * (steps + 1) * ASK[_wanders(cell)] / 1000
    if model.of != "xgb" or model.settings.get("mode", "per_subset") != "per_subset":
        return asked
    met = min(people * steps / 2, 2**steps) if _wanders(cell) else 2 * steps
    return float(asked + met * SUBSET_MODEL * thousands)


def _linear(kind: str, of: str, thousands: float) -> float:
    """At least the first of two times, plus the second for each thousand rows; 0 if unknown."""
    least, each = SECONDS[kind].get(of, (0.0, 0.0))
    return float(least + each * thousands)


def _wanders(cell: Cell) -> bool:
    """Whether people have paths of their own."""
    return cell.policy.of in WANDERING


def _size(cell: Cell) -> tuple[int, int]:
    """Rows, under the cap, and features of a cell's table."""
    rows, features = SECONDS["sets"].get(cell.data.of, OWN_TABLE)
    return min(rows, cell.settings["cap"] or rows), features


def _thousands(cell: Cell) -> float:
    """Thousands of training rows, as many as would be the same work with 20 features."""
    rows, features = _size(cell)
    return 0.6 * rows / 1000 * features / 20


def _steps(cell: Cell) -> int:
    """The questions that a policy asks a person."""
    _, features = _size(cell)
    within = cell.policy.of == "random-blanket" or not _wanders(cell)
    return min(BLANKET_STEPS, features) if within else round(WANDERED * features)
