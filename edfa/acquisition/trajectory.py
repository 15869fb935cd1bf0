"""What was asked of whom, in which order, what it cost, and what was known and decided after every answer."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.errors import DataError
from edfa.explanation.partition import Partition
from edfa.people import Background, People, Provenance
from edfa.predictors.base import Predictor
from edfa.text import html
from edfa.text.figures import draw_steps
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Trajectory"]

SHOWN = 20  # people in a notebook


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A row for every step of every person, sorted by person; step 0 is what was known from the start.

    ``values`` and ``when`` have a row a person: what they were found to be (NaN: never asked), and at which step (-1:
    never). All other arrays have a row a step: ``who`` is the place of the person in ``person``. ``provenance``
    is the policy, the prices and the budget behind it all.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> trajectory = edfa.acquire(table.test, edfa.acquisition.Random(), model, budget=3)
    >>> trajectory.frame().columns.tolist()[:6]
    ['person', 'seed', 'step', 'feature', 'cost', 'spent']
    """

    background: Background
    person: Int64Array
    seed: int
    values: Float32Array
    when: npt.NDArray[np.int16]
    declined: BoolArray
    who: IntArray
    step: npt.NDArray[np.int16]
    feature: npt.NDArray[np.int16]
    cost: Float64Array
    spent: Float64Array
    scores: Float32Array
    probabilities: Float64Array
    decision: IntArray
    necessity: Float32Array | None
    provenance: Provenance = field(default_factory=Provenance, repr=False)

    def __len__(self) -> int:
        """The number of steps, everybody's together."""
        return len(self.who)

    def __repr__(self) -> str:
        people = "1 person" if len(self.person) == 1 else f"{len(self.person):,} people"
        return f"<Trajectory of {people}: {len(self):,} steps, mean cost {self.mean_cost:.3g}>"

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema

    @property
    def predictor(self) -> Predictor:
        """The model as the policy showed it."""
        return self.background.predictor

    @property
    def blanket(self) -> Blanket | None:
        """The blanket that was asked for; None: all features were."""
        return self.background.blanket

    @property
    def mean_cost(self) -> float:
        """What a person costs in the end, on average."""
        return float(self.spent[self.last].mean()) if len(self.person) else 0.0

    @cached_property
    def last(self) -> IntArray:
        """The row of everybody's last step."""
        return np.flatnonzero(np.append(self.who[1:] != self.who[:-1], True)) if len(self) else np.zeros(0, np.intp)

    @cached_property
    def known(self) -> BoolArray:
        """What was known at every step (steps, features)."""
        when = self.when[self.who]
        return (when >= 0) & (when <= self.step[:, None])

    @property
    def X(self) -> Float32Array:  # noqa: N802
        """The facts at every step (steps, features); NaN: not known then."""
        return np.where(self.known, self.values[self.who], np.float32(np.nan))

    @cached_property
    def partition(self) -> Partition:
        """The tripartite partition at every step."""
        if self.necessity is None:
            raise DataError("this run was made with explain=False; run it again to have partitions")
        return Partition(self.schema.names, self.blanket, self.known, self.necessity.astype(float))

    def people(self) -> People:
        """Everybody at every step, as a batch that plans can be found for."""
        who = self.person[self.who]
        steps = self.step.astype(np.int64)
        return People(
            self.X,
            self.background,
            person=who,
            seed=np.full(len(self), self.seed),
            step=steps,
            spent=self.spent,
            decided=self.decision,
            provenance=self.provenance,
        )

    def order(self, person: int) -> tuple[str, ...]:
        """What was asked of the person at this place, in order."""
        first, end = np.searchsorted(self.who, [person, person + 1])
        return tuple(self.schema.names[feature] for feature in self.feature[first + 1 : end])

    def at(self, step: int) -> IntArray:
        """The row of everybody at a step; those who ended before are at their last."""
        first = np.searchsorted(self.who, np.arange(len(self.person)))
        return np.minimum(first + step, self.last)

    def frame(self) -> pd.DataFrame:
        """One row a step; ``n_cf`` and ``n_sf`` are the sizes of C(A) and S(A)."""
        names = np.array([*self.schema.names, ""])
        columns: dict[str, Any] = {
            "person": self.person[self.who],
            "seed": self.seed,
            "step": self.step,
            "feature": names[self.feature],
            "cost": self.cost,
            "spent": self.spent,
        }
        columns |= {f"p_{name}": self.probabilities[:, c] for c, name in enumerate(self.schema.classes)}
        columns["prediction"] = np.array(self.schema.classes)[self.decision]
        if self.necessity is not None:
            columns["n_cf"] = self.partition.counterfactual.sum(axis=1)
            columns["n_sf"] = self.partition.semifactual.sum(axis=1)
        return pd.DataFrame(columns)

    def draw(self, ax: "Axes", person: int = 0) -> "Axes":
        """The timeline of the person at this place: the chance of the favourable class against what was spent."""
        first, end = np.searchsorted(self.who, [person, person + 1])
        chance = self.probabilities[first:end, self.schema.classes.index(self.schema.favourable)]
        axes = ("spent", f"chance of {self.schema.favourable!r}")
        return draw_steps(ax, self.spent[first:end], chance, ("start", *self.order(person)), axes)

    def _repr_html_(self) -> str:
        """Everybody's questions in order, and what they changed; of one person, the timeline too."""
        favourable = self.schema.classes.index(self.schema.favourable)
        first = np.searchsorted(self.who, np.arange(len(self.person)))
        rows = [
            [
                int(self.person[i]),
                " → ".join(self.order(i)) or "nothing",
                f"{self.spent[self.last[i]]:g}",
                f"{self.probabilities[first[i], favourable]:.0%} → {self.probabilities[self.last[i], favourable]:.0%}",
                self.schema.classes[self.decision[self.last[i]]],
            ]
            for i in range(min(len(self.person), SHOWN))
        ]
        head = [">person", "asked, in order", ">spent", f">chance of {self.schema.favourable}", "decision"]
        more = f", of which {SHOWN} are shown" if len(self.person) > SHOWN else ""
        line = [html.figure(self.draw, "What each answer changed")] if len(self.person) == 1 else []
        return html.fragment(*line, html.table(head, rows, f"{repr(self)[1:-1]}{more}"))

    def to_json(self) -> str:
        """The frame as JSON, a record a step."""
        return str(self.frame().to_json(orient="records", force_ascii=False))

    def __iter__(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Everybody with what they were asked."""
        return ((int(p), self.order(i)) for i, p in enumerate(self.person))
