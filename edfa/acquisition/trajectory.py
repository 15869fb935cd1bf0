"""The log of an acquisition run: the questions of each person in order, their costs, and the known
features and the decision after every answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.blanket.units import Blanket
from edfa.errors import DataError
from edfa.explanation.partition import Partition
from edfa.people import Background, HasBackground, People, Provenance
from edfa.text import html
from edfa.text.figures import draw_steps
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PEOPLE_SHOWN = 20  # people in a notebook


@dataclass(frozen=True, eq=False)
class Trajectory(HasBackground):
    """A row for every step of every person, sorted by person and step; step 0 is what was known
    from the start.

    Parameters
    ----------
    background
        The features, the model and the training rows that all people share.
    person
        A whole number for each person, (people,).
    seed
        The random stream of the run.
    values
        What was learnt of each person, encoded, (people, features); NaN: it never became known.
    when
        The step at which each feature became known, (people, features); 0: from the start, -1:
        never.
    declined
        What each person refused to tell, (people, features).
    who
        The position in ``person`` of each step's person, (steps,).
    step
        The number of each step within its person, (steps,).
    feature
        The index of the feature that was asked, (steps,); -1 at step 0.
    cost, spent
        What the step cost, and what the person has paid by then, (steps,).
    scores
        What the policy said each feature was worth, (steps, features); NaN: it could not be asked.
    probabilities, decision
        What the model says after the step, (steps, classes), and the class code that it decides
        for, (steps,).
    necessity
        The necessity of each known feature after the step, (steps, features); None for runs with
        ``explain=False``.
    provenance
        The policy, the prices and the budget behind it all.

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
        """The number of steps of all people together."""
        return len(self.who)

    def __repr__(self) -> str:
        people = "1 person" if len(self.person) == 1 else f"{len(self.person):,} people"
        cost = self.spent[self.last].mean() if len(self.person) else 0.0
        return f"<Trajectory of {people}: {len(self):,} steps, mean cost {cost:.3g}>"

    @property
    def blanket(self) -> Blanket | None:
        """The blanket that the policy kept to; None: it asked for any feature."""
        return self.background.blanket

    @cached_property
    def first(self) -> IntArray:
        """The row of each person's step 0, (people,)."""
        return np.flatnonzero(self.step == 0)

    @cached_property
    def last(self) -> IntArray:
        """The row of each person's last step, (people,)."""
        return np.append(self.first, len(self))[1:] - 1

    @cached_property
    def known(self) -> BoolArray:
        """Which features were known at every step, (steps, features)."""
        when = self.when[self.who]
        return (when >= 0) & (when <= self.step[:, None])

    @property
    def X(self) -> Float32Array:  # noqa: N802
        """The encoded facts at every step, (steps, features); NaN: not known then."""
        return np.where(self.known, self.values[self.who], NAN)

    @cached_property
    def partition(self) -> Partition:
        """The partition at every step: what can turn the decision, what cannot yet, what the model
        leaves out.
        """
        if self.necessity is None:
            raise DataError("this run was made with explain=False; run it again to have partitions")
        return Partition(self.schema.names, self.blanket, self.known, self.necessity.astype(float))

    def people(self) -> People:
        """Everybody at every step, as a batch of (steps,) people that plans can be found for."""
        return People(
            self.X,
            self.background,
            person=self.person[self.who],
            seed=np.full(len(self), self.seed),
            step=self.step.astype(np.int64),
            spent=self.spent,
            decided=self.decision,
            provenance=self.provenance,
        )

    def order(self, person: int) -> tuple[str, ...]:
        """The features that the person at this position was asked for and told, in order."""
        asked = self.feature[self.first[person] + 1 : self.last[person] + 1]
        return tuple(self.schema.names[feature] for feature in asked)

    def at(self, step: int) -> IntArray:
        """The row of each person at a step, (people,); those who ended before are at their last."""
        return np.minimum(self.first + step, self.last)

    def frame(self) -> pd.DataFrame:
        """A data frame with a row for every step; ``n_cf`` and ``n_sf`` are the sizes of C(A) and
        S(A).
        """
        classes, names = self.schema.classes, np.array([*self.schema.names, ""])
        columns: dict[str, Any] = {
            "person": self.person[self.who],
            "seed": self.seed,
            "step": self.step,
            "feature": names[self.feature],
            "cost": self.cost,
            "spent": self.spent,
            **{f"p_{name}": self.probabilities[:, c] for c, name in enumerate(classes)},
            "prediction": np.array(classes)[self.decision],
        }
        if self.necessity is not None:
            columns["n_cf"] = self.partition.counterfactual.sum(axis=1)
            columns["n_sf"] = self.partition.semifactual.sum(axis=1)
        return pd.DataFrame(columns)

    def draw(self, ax: "Axes", person: int = 0) -> "Axes":
        """Draw the probability of the favourable class against what a person had spent.

        Parameters
        ----------
        ax
            Where to draw.
        person
            The position of the person.

        Returns
        -------
        matplotlib.axes.Axes
            The same ``ax``.
        """
        rows = slice(self.first[person], self.last[person] + 1)
        axes = ("spent", f"chance of {self.schema.favourable!r}")
        steps = ("start", *self.order(person))
        return draw_steps(ax, self.spent[rows], self._favourable[rows], steps, axes)

    @property
    def _favourable(self) -> Float64Array:
        """The probability of the favourable class after every step, (steps,)."""
        return self.probabilities[:, self.schema.classes.index(self.schema.favourable)]

    def _repr_html_(self) -> str:
        """A table of each person's questions and what they changed; for a single person a figure,
        too.
        """
        people, favourable = len(self.person), self.schema.favourable
        rows = []
        for i, (first, last) in enumerate(zip(self.first[:PEOPLE_SHOWN], self.last, strict=False)):
            before, after = self._favourable[[first, last]]
            decision, asked = self.schema.classes[self.decision[last]], " → ".join(self.order(i))
            chances = f"{before:.0%} → {after:.0%}"
            spent = f"{self.spent[last]:g}"
            rows.append([int(self.person[i]), asked or "nothing", spent, chances, decision])
        head = [">person", "asked, in order", ">spent", f">chance of {favourable}", "decision"]
        more = f", of which {PEOPLE_SHOWN} are shown" if people > PEOPLE_SHOWN else ""
        figure = [html.figure(self.draw, "What each answer changed")] if people == 1 else []
        return html.fragment(*figure, html.table(head, rows, f"{repr(self)[1:-1]}{more}"))

    def to_json(self) -> str:
        """``frame()`` as JSON, a record for every step."""
        return str(self.frame().to_json(orient="records", force_ascii=False))

    def __iter__(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Each person's number with the features that they were asked for and told, in order."""
        return ((int(p), self.order(i)) for i, p in enumerate(self.person))
