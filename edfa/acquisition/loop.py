"""The loop that asks: it owns prices, budget, the start set, what is forbidden or declined, and the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.acquisition.base import Policy, choose
from edfa.acquisition.trajectory import Trajectory
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import BudgetError, DataError, UnknownNameError
from edfa.people import Background, People, Provenance
from edfa.predictors.base import Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Budget", "acquire", "budget_amount", "next_question", "run_policy"]

Budget = float | Literal["inf"]
OnRefusal = Literal["stop", "skip"]
SLACK = 1e-9  # prices are decimal fractions; their sums need not be


def acquire(
    table: Table | pd.DataFrame | Float32Array,
    policy: Policy,
    predictor: Predictor,
    budget: Budget = 0.9,
    seed: int = 0,
    *,
    reference: Table | None = None,
    on_unaffordable: OnRefusal = "stop",
    costs: npt.ArrayLike | None = None,
    forbidden: Sequence[str] = (),
    declines: npt.ArrayLike | None = None,
    on_declined: OnRefusal = "skip",
    person: Sequence[int] | None = None,
    explain: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Ask everybody, one feature at a time, until the policy has no question or the budget no room.

    Parameters
    ----------
    table
        Whom to ask: a part of a table; or a frame or encoded rows (people, features), with a ``reference``.
    policy, predictor
        What to ask next, and the fitted model that decides.
    budget
        Up to 1 a share of what everything beyond the start set costs, on top of the start set; above 1 an amount;
        ``"inf"`` is no limit. The start set is paid first.
    seed
        For policies that draw.
    reference
        The training people, where the rows are not a part of a table.
    on_unaffordable
        Whether a choice that does not fit into the budget ends a person's run (``"stop"``, line 22 of Algorithm 1), or
        the policy chooses among what can be afforded (``"skip"``).
    costs
        Prices in place of the card's, (features,) or (people, features).
    forbidden
        Features that are never asked.
    declines
        Which person will not tell which feature, (people, features); the loop finds out by asking.
    on_declined
        Whether a person who declined is asked for something else (``"skip"``), or no more (``"stop"``).
    person
        A number for each row; its position unless given.
    explain
        Whether the partition is worked out at every step.
    progress
        Called with the numbers of people who are done, and of all.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> acquire(table.test, edfa.acquisition.Random(), model, budget=2)
    <Trajectory of 200 people: 407 steps, mean cost 1.46>
    """
    train, truth = _rows(table, reference)
    background = Background.of(train, predictor, policy.blanket, aligned=policy.aligned)
    run = _Run(policy, background, truth, seed, on_unaffordable, on_declined, explain)
    run.set_up(costs, forbidden, declines, person)
    return run.ask_everybody(budget, progress)


def run_policy(
    X: Float32Array,  # noqa: N803
    policy: Policy,
    background: Background,
    budget: Budget,
) -> Trajectory:
    """Ask everybody of encoded rows X (people, features) against a given background, without partitions."""
    run = _Run(policy, background, X, seed=0, on_unaffordable="stop", on_declined="skip", explain=False)
    run.set_up(None, (), None, None)
    return run.ask_everybody(budget, None)


def next_question(
    policy: Policy, people: People, limit: Float64Array, on_unaffordable: OnRefusal = "stop"
) -> tuple[IntArray, Float64Array]:
    """The feature to ask each person for, (people,), and the policy's scores, (people, features).

    -1: the policy has no question, or its choice does not fit into the ``limit`` (people,). Interviews, files and runs
    all ask what this says.
    """
    fits = people.spent[:, None] + people.costs <= limit[:, None] + SLACK
    if on_unaffordable == "skip":
        people = replace(people, askable=people.askable & fits)
    scores = policy.masked_score(people)
    chosen = choose(scores, people.costs, policy.per_cost)
    return np.where((chosen >= 0) & fits[np.arange(len(people)), chosen], chosen, -1), scores


def budget_amount(budget: Budget | str, costs: Float64Array, start: BoolArray) -> Float64Array:
    """Everybody's budget as an amount, (people,); ``costs`` is (people, features), ``start`` (features,)."""
    try:
        amount = float(budget)
    except (TypeError, ValueError):
        raise BudgetError(f"a budget is a share up to 1, an amount, or 'inf', not {budget!r}") from None
    if not amount > 0:
        raise BudgetError(f"a budget is above zero, not {budget}")
    if amount <= 1:
        return np.asarray(costs @ start + amount * (costs @ ~start))
    return np.full(len(costs), amount)


def _rows(table: Table | pd.DataFrame | Float32Array, reference: Table | None) -> tuple[Table, Float32Array]:
    """The training people, and the encoded facts of those who will be asked, (people, features)."""
    if isinstance(table, Table):
        return reference or table.reference, table.X
    if reference is None:
        raise DataError("rows alone do not say what they mean; pass reference=table.train, the people to learn from")
    if isinstance(table, pd.DataFrame):
        if missing := [name for name in reference.schema.names if name not in table.columns]:
            raise UnknownNameError("column", missing[0], table.columns)
        return reference, reference.encoder.encode(table)
    return reference, np.asarray(table, dtype=np.float32)


@dataclass
class _Run:
    """One run: who knows what, and the log of how they came to know it."""

    policy: Policy
    background: Background
    truth: Float32Array
    seed: int
    on_unaffordable: OnRefusal
    on_declined: OnRefusal
    explain: bool
    log: list[dict[str, Any]] = field(default_factory=list)

    def set_up(
        self,
        costs: npt.ArrayLike | None,
        forbidden: Sequence[str],
        declines: npt.ArrayLike | None,
        person: Sequence[int] | None,
    ) -> None:
        """Check what was passed, and begin with the start set."""
        schema, start, shape = self.background.schema, self.background.start, self.truth.shape
        if shape[1] != len(schema):
            raise DataError(f"rows of {len(schema)} features are needed, not of {shape[1]}")
        for name in ("on_unaffordable", "on_declined"):
            if getattr(self, name) not in ("stop", "skip"):
                raise UnknownNameError(name, getattr(self, name), ("stop", "skip"))
        self.costs = _prices(costs, schema, shape, start)
        self.person = np.arange(shape[0]) if person is None else np.asarray(person, dtype=np.int64)
        if self.person.shape != shape[:1] or len(np.unique(self.person)) != shape[0]:
            raise DataError(f"person must name each of the {shape[0]} rows once")
        self.forbidden = np.zeros(shape[1], dtype=bool)
        self.forbidden[[schema.index(name) for name in forbidden]] = True
        if (self.forbidden & start).any():
            name = schema.names[int((self.forbidden & start).argmax())]
            raise DataError(f"{name} is known from the start; it cannot be forbidden")
        self.declines = np.zeros(shape, dtype=bool) if declines is None else np.asarray(declines, dtype=bool)
        if self.declines.shape != shape:
            raise DataError(f"declines must be of shape {shape}, not {self.declines.shape}")
        self.declined = np.zeros(shape, dtype=bool)
        self.when = np.where(start, 0, np.full(shape, -1)).astype(np.int16)
        self.spent = self.costs @ start

    def check_budget(self, limit: Float64Array) -> None:
        """Refuse a budget that buys nobody anything beyond the start set."""
        if len(limit) and (self.spent > limit + SLACK).all():
            raise BudgetError(f"the start set alone costs {self.spent.min():g}; the budget is {limit.max():g}")
        price = np.where(self.background.start | self.forbidden, np.inf, self.costs)
        if len(limit) and np.isfinite(price).any() and (price.min(axis=1) + self.spent > limit + SLACK).all():
            cheapest = float(price.min() + self.spent.min())
            raise BudgetError(
                f"a budget of {limit.max():g} buys nothing; the start set and one feature cost {cheapest:g}"
            )

    def terms(self, budget: Budget) -> dict[str, Any]:
        """What asking costs, and how far it goes."""
        same = bool(len(self.costs) and (self.costs == self.costs[0]).all())
        return {
            "prices": self.costs[0] if same else "each person's own",
            "budget": str(budget),
            "on_unaffordable": self.on_unaffordable,
            "forbidden": self.forbidden,
            "start": self.background.start,
        }

    def ask_everybody(self, budget: Budget, progress: Callable[[int, int], None] | None) -> Trajectory:
        """Ask until nobody has a next question."""
        n, limit = len(self.truth), budget_amount(budget, self.costs, self.background.start)
        self.check_budget(limit)
        self._note(np.arange(n), np.full(n, -1), np.full(self.truth.shape, np.nan), self.spent)
        alive = np.flatnonzero(self.spent <= limit + SLACK)
        while len(alive):
            chosen, scores = next_question(self.policy, self._people(alive), limit[alive], self.on_unaffordable)
            asked = chosen >= 0
            refuses = asked & self.declines[alive, chosen]
            self.declined[alive[refuses], chosen[refuses]] = True
            answers = asked & ~refuses
            self._learn(alive[answers], chosen[answers], scores[answers])
            alive = alive[asked if self.on_declined == "skip" else answers]
            if progress:
                progress(n - len(alive), n)
        provenance = Provenance(policy=self.policy, costs=self.terms(budget))
        return replace(self.trajectory(), provenance=provenance)

    def _people(self, rows: IntArray) -> People:
        """Some people as they are now."""
        known = self.when[rows] >= 0
        return People(
            np.where(known, self.truth[rows], np.float32(np.nan)),
            self.background,
            person=self.person[rows],
            seed=np.full(len(rows), self.seed),
            spent=self.spent[rows],
            costs=self.costs[rows],
            askable=~known & ~self.forbidden & ~self.declined[rows],
        )

    def _learn(self, rows: IntArray, chosen: IntArray, scores: Float64Array) -> None:
        """One more answer of each of these people."""
        if not len(rows):
            return
        self.when[rows, chosen] = np.maximum(self.when[rows].max(axis=1), 0) + 1
        price = self.costs[rows, chosen]
        self.spent[rows] += price
        self._note(rows, chosen, scores, price)

    def _note(self, rows: IntArray, chosen: IntArray, scores: Float64Array, price: Float64Array) -> None:
        """Log a step of some people, and what the model makes of it."""
        people = self._people(rows)
        people = people.with_sweep() if self.explain else people
        entry: dict[str, Any] = {"who": rows, "step": np.maximum(self.when[rows].max(axis=1), 0)}
        entry |= {"feature": chosen, "cost": price.copy(), "spent": self.spent[rows].copy(), "scores": scores}
        entry |= {"probabilities": people.probabilities, "decision": people.decision}
        if self.explain:
            entry["necessity"] = people.sweep.necessity
        self.log.append(entry)

    def trajectory(self) -> Trajectory:
        """The log, sorted by person and step."""
        whole = {name: np.concatenate([entry[name] for entry in self.log]) for name in self.log[0]}
        order = np.lexsort([whole["step"], whole["who"]])
        kinds = {"step": np.int16, "feature": np.int16, "scores": np.float32, "necessity": np.float32}
        columns: dict[str, Any] = {
            name: values[order].astype(kinds.get(name, values.dtype)) for name, values in whole.items()
        }
        return Trajectory(
            background=self.background,
            person=self.person,
            seed=self.seed,
            values=np.where(self.when >= 0, self.truth, np.float32(np.nan)),
            when=self.when,
            declined=self.declined,
            **{"necessity": None, **columns},
        )


def _prices(costs: npt.ArrayLike | None, schema: Schema, shape: tuple[int, ...], start: BoolArray) -> Float64Array:
    """A price for every person and feature, (people, features)."""
    prices = np.asarray(schema.costs if costs is None else costs, dtype=float)
    if prices.shape not in (shape, shape[1:]):
        raise DataError(f"costs must be of shape {shape[1:]} or {shape}, not {prices.shape}")
    prices = np.broadcast_to(prices, shape)
    if not np.isfinite(prices).all() or (prices < 0).any():
        raise DataError("a price is a number, zero or more")
    free = (prices == 0).any(axis=0) & ~start
    if free.any():
        name = schema.names[int(free.argmax())]
        raise DataError(f"{name} costs nothing and is not in the start set; what is free is known from the start")
    return prices
