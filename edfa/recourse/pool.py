"""Training people as donors of values: what the current view decides about them, and which are nearest."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from edfa.explanation.support import Support
from edfa.predictors.base import Floats
from edfa.recourse.base import Codes, Task, View
from edfa.recourse.rules import Reals

__all__ = ["LIMIT", "Pool"]

Metric = Literal["euclidean", "cityblock"]
T = TypeVar("T")
LIMIT = 10_000  # donors
KEPT = 24  # acquired sets, and sides of them, whose donors are held in memory
BLOCK = 2_000_000  # distances at a time


class Pool:
    """Donors for people who know any set of features; at most ``limit`` training people, drawn once.

    The distance is HEOM: numbers in units of their training range, a different category counts one; as a root of
    squares (``"euclidean"``) or a sum (``"cityblock"``, NICE's). Equal distances go by the order of the donors.
    """

    def __init__(
        self, rows: Floats, ordered: npt.NDArray[np.bool_], metric: Metric = "euclidean", limit: int = LIMIT
    ) -> None:
        self.number = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
        self.rows = np.ascontiguousarray(rows[self.number])
        self.ordered, self.metric = ordered, metric
        self.support = Support.of(rows)
        self.scale = [float(np.ptp(values)) or 1.0 for values in self.support.values]
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def decided(self, task: Task) -> Codes:
        """What the task's view decides about every donor."""

        def decide() -> tuple[Codes, View]:
            return task.predictor.decide(task.ask(np.ascontiguousarray(self.rows[:, task.features]))), task.view

        return self._keep(task.view.key, decide)[0]

    def nearest(self, task: Task, case: Codes, donors: Codes, k: int) -> Codes:
        """The k nearest of these donors to each of these cases, nearest first; fewer where there are fewer."""
        k = min(k, len(donors))
        if not k or not len(case):
            return np.zeros((len(case), k), dtype=np.intp)
        key = (task.mask.tobytes(), donors.tobytes())
        theirs, norms = self._keep(key, lambda: self._space(task, donors))
        found = np.empty((len(case), k), dtype=np.intp)
        for part in np.array_split(np.arange(len(case)), -(-len(case) * len(donors) // BLOCK)):
            ours = self._place(task, task.facts[case[part]])
            ours[:, -1] = 0
            # What is the same for all donors of one case is left out: it does not change their order.
            near = cdist(ours, theirs, "cityblock") if self.metric == "cityblock" else norms - 2 * ours @ theirs.T
            found[part] = _smallest(near, k)
        return donors[found]

    def gap(self, task: Task, rows: Floats) -> Reals:
        """How far rows are from the nearest donor of all (a root of squares)."""
        everyone = np.arange(len(self.rows))
        theirs, norms = self._keep((task.mask.tobytes(), "all"), lambda: self._space(task, everyone))
        found = np.empty(len(rows))
        for part in np.array_split(np.arange(len(rows)), max(1, -(-len(rows) * len(norms) // BLOCK))):
            ours = self._place(task, rows[part])
            ours[:, -1] = 0
            found[part] = (norms - 2 * ours @ theirs.T).min(axis=1) + np.einsum("ij,ij->i", ours, ours)
        return np.sqrt(np.maximum(np.round(found, 6), 0))

    def _space(self, task: Task, donors: Codes) -> tuple[Reals, Reals]:
        """Where donors lie, and how far from the origin, squared."""
        places = self._place(task, self.rows[donors][:, task.features])
        return places, np.einsum("ij,ij->i", places, places)

    def _place(self, task: Task, known: Floats) -> Reals:
        """Where rows lie; the last column parts donors at the same distance by their order, whatever the batch."""
        half = np.sqrt(0.5) if self.metric == "euclidean" else 0.5
        parts = [
            (known[:, [c]] / self.scale[f]) if self.ordered[f] else (known[:, [c]] == self.support.values[f]) * half
            for c, f in enumerate(task.features)
        ]
        order = 1e-9 * np.arange(len(known))[:, None]
        return np.concatenate([*parts, np.sqrt(order) if self.metric == "euclidean" else order], axis=1, dtype=float)

    def _keep(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        found: T = self._kept[key]
        return found


def _smallest(distance: Reals, k: int) -> Codes:
    """The places of the k smallest of each row, in order."""
    near = np.argpartition(distance, k - 1, axis=1)[:, :k]
    order = np.take_along_axis(distance, near, axis=1).argsort(axis=1)
    return np.take_along_axis(near, order, axis=1)
