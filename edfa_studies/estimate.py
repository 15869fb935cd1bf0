"""How long a study will take: an estimate, from times that were measured once, or better, from its
own cells so far.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edfa_studies.cells import Cell, Part
from edfa_studies.config import Study
from edfa_studies.expand import cells_of
from edfa_studies.parts import schema_of

if TYPE_CHECKING:
    import pandas as pd

    from edfa_studies.products import Product

__all__ = [
    "Estimate",
    "GridEstimate",
    "Measured",
    "Shared",
    "cell_seconds",
    "estimate",
    "measured_seconds",
]

Measured = Mapping[tuple[str, ...], float]
"""Mean seconds of cells that are done, by measure, data, predictor, policy and searcher."""
BASIS = ("measure", "data", "predictor", "policy", "searcher")

# Seconds of one processor core, measured on Adult, HELOC and Taiwan. Training: at least, and per
# 1,000 rows of 20 features.
FIT = {"xgb": (0.1, 0.0), "ftt": (4.0, 1.7), "mlp": (2.0, 0.6), "bn": (1.0, 0.5)}
LEARN = {"dime": (3.0, 6.0), "eddi": (1.0, 2.2), "gsmrl": (40.0, 0.5), "survival": (5.0, 0.5)}
GENERATE = (8.0, 1.5)  # the network behind generative plans, learnt by every cell
DISCOVER = {"eamb": 0.3, "hiton-mb": 0.3, "bamb": 0.03, "iamb": 0.1}  # per 1,000 rows
SUBSET_MODEL = 0.01  # one XGBoost for one set of known features, per 1,000 rows
# Milliseconds for one person at one step: where people share one path of questions, so that few
# sets of known features are met, and where everybody has a path of their own.
ASK = (0.3, 3.0)
SEARCH = {
    "xgb": {
        "nearest": (0.3, 45.0),
        "nice": (0.3, 25.0),
        "dice": (0.8, 25.0),
        "probe": (1.5, 40.0),
        "cvae": (1.5, 40.0),
        "survival": (0.6, 80.0),
    },
    "ftt": {
        "nearest": (4.5, 150.0),
        "nice": (1.2, 165.0),
        "dice": (6.0, 25.0),
        "probe": (60.0, 600.0),
        "cvae": (5.0, 150.0),
        "survival": (9.0, 300.0),
    },
}
SLOWER = {
    "ftt": ("ftt", 1.0),
    "mlp": ("ftt", 0.3),
    "bn": ("xgb", 4.0),
}  # as which of these, and by which factor
BLANKET_STEPS = 8  # questions within a blanket, at most
WANDERING = ("dime", "eddi", "gsmrl", "greedy", "random", "random-blanket")
WANDERED = 0.7  # of the features are asked for within the budget
REST = {
    "sets": 0.1,
    "growth": 2.0,
    "promise": 1.0,
    "examples": 0.5,
}  # reading, plausibility, certificates, writing
ROWS = {
    "german": 1_000,
    "adult": 48_842,
    "heloc": 10_459,
    "taiwan": 30_000,
    "acs_income": 200_000,
    "gmsc": 150_000,
    "diabetes130": 101_766,
}
OWN_ROWS = 20_000  # of a table of one's own, which is not opened to count


@dataclass(frozen=True)
class Shared:
    """Shared work of one kind: how many pieces of it, and the seconds of one core that they
    take.
    """

    kind: str
    count: int
    seconds: float


@dataclass(frozen=True)
class GridEstimate:
    """One grid: its cells, how many of them no grid before it has, and their seconds with the work
    that they share.
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
        open_cells = self.cells - self.done
        if self.measured == 0:
            return (
                "from times measured once on another machine, scaled by rows, people and questions"
            )
        rest = (
            ""
            if self.measured == open_cells
            else "; the others from times measured once on another machine"
        )
        return (
            f"{self.measured:,} of {open_cells:,} open cells from cells "
            f"like them that are done{rest}"
        )


def measured_seconds(status: "pd.DataFrame") -> Measured:
    """The mean seconds of cells that are done, from the status of a store."""
    done = status[status["status"] == "done"]
    means = done.groupby(list(BASIS))["seconds"].mean()
    return dict(zip(means.index.to_list(), means.to_list(), strict=True))


def estimate(
    study: Study,
    measured: Measured | None = None,
    *,
    done: Collection[str] = (),
    made: Callable[[str, str], bool] | None = None,
    products: "Callable[[Cell], Sequence[Product]] | None" = None,
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
    products
        What a cell shares with others; by default ``edfa_studies.products.products``.
    """
    if products is None:
        from edfa_studies.products import products as default

        products = default
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
        known += sum(_basis(cell) in (measured or {}) for cell in left)
        for piece in (piece for cell in left for piece in products(cell)):
            if piece.key not in pieces and not (made and made(piece.kind, piece.key)):
                shared.setdefault(piece.kind, []).append(product_seconds(piece))
                seconds += shared[piece.kind][-1]
            pieces.add(piece.key)
        grids.append(GridEstimate(grid.title, grid.measure, len(every), len(new), seconds))
    work = tuple(Shared(kind, len(times), sum(times)) for kind, times in shared.items())
    finished = len(cells & set(done))
    return Estimate(
        tuple(grids), work, len(cells), finished, known, sum(grid.seconds for grid in grids)
    )


def _basis(cell: Cell) -> tuple[str, ...]:
    labels: dict[str, Any] = {"measure": cell.measure, **cell.labels}
    return tuple(labels[key] for key in BASIS)


def cell_seconds(cell: Cell, measured: Measured | None = None) -> float:
    """The seconds of one cell, without what it shares with others."""
    if measured and (known := measured.get(_basis(cell))) is not None:
        return known
    seconds = REST.get(cell.measure, 1.0)
    if cell.measure == "sets":
        return seconds
    if cell.searcher.of == "cvae":
        seconds += _linear(GENERATE, _thousands(cell))
    like, factor = SLOWER.get(cell.predictor.of, ("xgb", 1.0))
    milliseconds = (
        SEARCH[like].get(cell.searcher.of, SEARCH[like]["nearest"])[_wanders(cell)] * factor
    )
    return seconds + _people(cell) * (_steps(cell) + 1) * milliseconds / 1000


def product_seconds(product: "Product") -> float:
    """The seconds of one piece of shared work."""
    cell, thousands = product.cell, _thousands(product.cell)
    if product.kind == "blanket":
        return DISCOVER.get(cell.blanket.of, 0.2) * thousands
    if product.kind == "predictor":
        return _linear(FIT.get(cell.predictor.of, FIT["mlp"]), thousands)
    if product.kind == "policy":
        limit = (
            cell.policy.settings.get("train_rows", _rows(cell)) / 1000 * _features(cell.data) / 20
        )
        return _linear(LEARN.get(cell.policy.of, (0.0, 0.0)), min(thousands, limit))
    return _trajectory_seconds(cell, product.part)


def _trajectory_seconds(cell: Cell, part: str) -> float:
    """The seconds of asking the people of one part, and of the subset models that they meet."""
    people = int(cell.settings[part] if cell.measure == "promise" else cell.settings["people"])
    steps, model = _steps(cell), cell.predictor
    asked = people * (steps + 1) * ASK[_wanders(cell)] / 1000
    if model.of != "xgb" or model.settings.get("mode", "per_subset") != "per_subset":
        return asked
    met = min(people * steps / 2, 2**steps) if _wanders(cell) else 2 * steps
    return asked + met * SUBSET_MODEL * _thousands(cell)


def _linear(cost: tuple[float, float], thousands: float) -> float:
    """At least the first, plus the second for each thousand rows."""
    return cost[0] + cost[1] * thousands


def _wanders(cell: Cell) -> bool:
    """Whether people have paths of their own."""
    return cell.policy.of in WANDERING


def _thousands(cell: Cell) -> float:
    """Thousands of training rows, as many as would be the same work with 20 features."""
    return 0.6 * _rows(cell) / 1000 * _features(cell.data) / 20


def _people(cell: Cell) -> int:
    """The people that a cell is about."""
    names: Iterable[str] = ("calibration", "test") if cell.measure == "promise" else ("people",)
    rows = _rows(cell)
    return sum(min(int(cell.settings[name]), int(0.2 * rows)) for name in names)


def _rows(cell: Cell) -> int:
    """The rows of a cell's table, under its cap."""
    rows, cap = ROWS.get(cell.data.of, OWN_ROWS), int(cell.settings["cap"])
    return min(rows, cap) if cap else rows


def _features(data: Part) -> int:
    """The number of features on the card of a data set."""
    if data not in _counted:
        _counted[data] = len(schema_of(data))
    return _counted[data]


_counted: dict[Part, int] = {}


def _steps(cell: Cell) -> int:
    """The questions that a policy asks a person."""
    features = _features(cell.data)
    within = cell.policy.of == "random-blanket" or not _wanders(cell)
    return min(BLANKET_STEPS, features) if within else round(WANDERED * features)
