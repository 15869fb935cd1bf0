"""The loop that asks: it owns costs, budget, the start set, what is forbidden or declined, ties and the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.acquisition.base import Background, Policy, State, choose
from edfa.acquisition.trajectory import Trajectory
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import BudgetError, DataError, UnknownNameError
from edfa.explanation.necessity import sweep
from edfa.explanation.partition import members
from edfa.predictors.aligned import align
from edfa.predictors.base import Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Rules", "acquire", "money"]

SLACK = 1e-9  # prices are decimal fractions; their sums need not be


class Rules(TypedDict, total=False):
    """How people are asked, beyond policy and budget."""

    on_unaffordable: Literal["stop", "skip"]  # what to do when the chosen feature does not fit into the budget
    costs: npt.ArrayLike  # prices in place of the card's: one a feature, or a row of them a person
    forbidden: Sequence[str]  # features that are never asked
    declines: npt.ArrayLike  # which person will not tell which feature (people, features); found out by asking
    on_declined: Literal["skip", "stop"]  # whether a person who declined is asked for something else (the default)
    person: Sequence[int]  # who the rows are; their places when left out
    reference: Table  # the training people, where the rows are not a part of a table
    explain: bool  # whether the partition is worked out at every step
    progress: Callable[[int, int], None]  # told how many people are done, of how many


def acquire(
    table: Table | pd.DataFrame,
    policy: Policy,
    predictor: Predictor,
    budget: float | Literal["inf"] = 0.9,
    seed: int = 0,
    **rules: Unpack[Rules],
) -> Trajectory:
    """Ask everybody, one feature at a time, until the policy has no question or the budget no room.

    ``budget`` up to 1 is a share of what everything beyond the start set costs; above 1 it is an amount, ``"inf"`` is
    no limit. The start set is paid first. An unaffordable choice ends a person's run (line 22 of Algorithm 1), or with
    ``on_unaffordable="skip"`` the policy chooses among what can be afforded. What a person declines is never asked
    again; the policy plans around it.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> acquire(table.test, edfa.acquisition.Random(), model, budget=2)
    <Trajectory of 200 people: 407 steps, mean cost 1.46>
    """
    reference, truth = _people(table, rules.get("reference"))
    schema = reference.schema
    for name in policy.blanket.features if policy.blanket else ():
        schema.index(name)
    if policy.blanket is not None and policy.aligned:
        predictor = align(predictor, np.flatnonzero(members(schema.names, policy.blanket)).tolist())
    run = _Run(policy, Background(schema, predictor, reference.X), truth, seed, rules)
    limit = money(budget, run.costs, run.start)
    run.check_budget(limit)
    run.go(limit)
    return replace(run.trajectory(reference), made={"policy": policy, "costs": run.terms(budget)})


def money(budget: float | str, costs: Float64Array, start: BoolArray) -> Float64Array:
    """Everybody's budget as an amount."""
    try:
        amount = float(budget)
    except (TypeError, ValueError):
        raise BudgetError(f"a budget is a share up to 1, an amount, or 'inf', not {budget!r}") from None
    if not amount > 0:
        raise BudgetError(f"a budget is above zero, not {budget}")
    if amount <= 1:
        return np.asarray(costs @ start + amount * (costs @ ~start))
    return np.full(len(costs), amount)


def _people(table: Table | pd.DataFrame, reference: Table | None) -> tuple[Table, Float32Array]:
    """The training people, and the encoded facts of those who will be asked."""
    if isinstance(table, Table):
        return reference or table.reference, table.X
    if reference is None:
        raise DataError("rows alone do not say what they mean; pass reference=table.train, the people to learn from")
    if isinstance(table, pd.DataFrame):
        if missing := [n for n in reference.schema.names if n not in table.columns]:
            raise UnknownNameError("column", missing[0], table.columns)
        return reference, reference.encoder.encode(table)
    return reference, np.asarray(table, dtype=np.float32)


@dataclass
class _Run:
    """One run: who knows what, and the log of how they came to."""

    policy: Policy
    background: Background
    truth: Float32Array
    seed: int
    rules: Rules
    log: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        schema, (n, d) = self.background.schema, self.truth.shape
        if d != len(schema):
            raise DataError(f"rows of {len(schema)} features are needed, not of {d}")
        self.how = self.rules.get("on_unaffordable", "stop")
        if self.how not in ("stop", "skip"):
            raise UnknownNameError("on_unaffordable", self.how, ("stop", "skip"))
        self.declining = self.rules.get("on_declined", "skip")
        if self.declining not in ("stop", "skip"):
            raise UnknownNameError("on_declined", self.declining, ("stop", "skip"))
        self.start = np.array([f.start for f in schema])
        self.costs = _prices(self.rules.get("costs"), schema, (n, d), self.start)
        self.person = np.asarray(self.rules.get("person", np.arange(n)), dtype=np.int64)
        if self.person.shape != (n,) or len(np.unique(self.person)) != n:
            raise DataError(f"person must name each of the {n} rows once")
        self.barred = np.zeros(d, dtype=bool)
        self.barred[[schema.index(name) for name in self.rules.get("forbidden", ())]] = True
        if (self.barred & self.start).any():
            name = schema.names[int((self.barred & self.start).argmax())]
            raise DataError(f"{name} is known from the start; it cannot be forbidden")
        self.declines = np.asarray(self.rules.get("declines", np.zeros((n, d))), dtype=bool)
        if self.declines.shape != (n, d):
            raise DataError(f"declines must be of shape {(n, d)}, not {self.declines.shape}")
        self.declined = np.zeros((n, d), dtype=bool)
        self.when = np.where(self.start, 0, np.full((n, d), -1)).astype(np.int16)
        self.spent = self.costs @ self.start

    def check_budget(self, limit: Float64Array) -> None:
        """Nobody is asked for nothing: the budget must hold the start set and, of somebody, one feature more."""
        if len(limit) and (self.spent > limit + SLACK).all():
            raise BudgetError(f"the start set alone costs {self.spent.min():g}; the budget is {limit.max():g}")
        open_cost = np.where(self.start | self.barred, np.inf, self.costs)
        if len(limit) and np.isfinite(open_cost).any() and (open_cost.min(axis=1) + self.spent > limit + SLACK).all():
            cheapest = float(open_cost.min() + self.spent.min())
            raise BudgetError(
                f"a budget of {limit.max():g} buys nothing; the start set and one feature cost {cheapest:g}"
            )

    def terms(self, budget: float | str) -> dict[str, Any]:
        """What asking costs, and how far it goes."""
        same = bool(len(self.costs) and (self.costs == self.costs[0]).all())
        return {
            "prices": self.costs[0] if same else "each person's own",
            "budget": str(budget),
            "on_unaffordable": self.how,
            "forbidden": self.barred,
            "start": self.start,
        }

    def go(self, limit: Float64Array) -> None:
        """Ask until nobody has a next question."""
        n, progress = len(self.truth), self.rules.get("progress")
        self._note(np.arange(n), np.full(n, -1), np.full(self.truth.shape, np.nan), self.costs @ self.start)
        alive = np.arange(n)[self.spent <= limit + SLACK]
        while len(alive):
            fits = self.spent[alive, None] + self.costs[alive] <= limit[alive, None] + SLACK
            state = self._state(alive, fits if self.how == "skip" else np.ones_like(fits))
            scores = self.policy.score(state)
            chosen = choose(np.where(state.open, scores, np.nan), state.costs, self.policy.per_cost)
            goes = (chosen >= 0) & fits[np.arange(len(alive)), chosen]
            refuses = goes & self.declines[alive, chosen]
            self.declined[alive[refuses], chosen[refuses]] = True
            told = goes & ~refuses
            self._learn(alive[told], chosen[told], scores[told])
            alive = alive[goes if self.declining == "skip" else told]
            if progress:
                progress(n - len(alive), n)

    def _state(self, people: IntArray, fits: BoolArray) -> State:
        known = self.when[people] >= 0
        facts = np.where(known, self.truth[people], np.float32(np.nan))
        free = ~known & ~self.barred & ~self.declined[people] & fits
        return State(self.background, facts, free, self.costs[people], self.person[people], self.seed)

    def _learn(self, people: IntArray, chosen: IntArray, scores: Float64Array) -> None:
        if not len(people):
            return
        self.when[people, chosen] = np.maximum(self.when[people].max(axis=1), 0) + 1
        price = self.costs[people, chosen]
        self.spent[people] += price
        self._note(people, chosen, scores, price)

    def _note(self, people: IntArray, chosen: IntArray, scores: Float64Array, price: Float64Array) -> None:
        """Write down a step of some people, and what the model makes of it."""
        background, known = self.background, self.when[people] >= 0
        facts = np.where(known, self.truth[people], np.float32(np.nan))
        entry: dict[str, Any] = {"who": people, "step": np.maximum(self.when[people].max(axis=1), 0)}
        entry |= {"feature": chosen, "cost": price, "spent": self.spent[people].copy(), "scores": scores}
        if self.rules.get("explain", True):
            visible = members(background.schema.names, self.policy.blanket if self.policy.aligned else None)
            found = sweep(facts, background.predictor, background.support, visible)
            entry |= {"chances": found.chances, "decision": found.decision, "alpha": found.alpha}
        else:
            chances = background.predictor.predict_proba(facts)
            entry |= {"chances": chances, "decision": background.predictor.decide(chances)}
        self.log.append(entry)

    def trajectory(self, reference: Table) -> Trajectory:
        """The log, sorted by person and step."""
        whole = {key: np.concatenate([entry[key] for entry in self.log]) for key in self.log[0]}
        order = np.lexsort([whole["step"], whole["who"]])
        kinds = {"step": np.int16, "feature": np.int16, "scores": np.float32, "alpha": np.float32}
        columns: dict[str, Any] = {
            key: values[order].astype(kinds.get(key, values.dtype)) for key, values in whole.items()
        }
        background = self.background
        return Trajectory(
            schema=background.schema,
            encoder=reference.encoder,
            predictor=background.predictor,
            blanket=self.policy.blanket,
            person=self.person,
            seed=self.seed,
            values=np.where(self.when >= 0, self.truth, np.float32(np.nan)),
            when=self.when,
            declined=self.declined,
            **{"alpha": None, **columns},
        )


def _prices(costs: npt.ArrayLike | None, schema: Schema, shape: tuple[int, int], start: BoolArray) -> Float64Array:
    """A price for every person and feature."""
    found = np.asarray(schema.costs if costs is None else costs, dtype=float)
    if found.shape not in (shape, shape[1:]):
        raise DataError(f"costs must be of shape {shape[1:]} or {shape}, not {found.shape}")
    found = np.broadcast_to(found, shape)
    if not np.isfinite(found).all() or (found < 0).any():
        raise DataError("a price is a number, zero or more")
    free = (found == 0).any(axis=0) & ~start
    if free.any():
        name = schema.names[int(free.argmax())]
        raise DataError(f"{name} costs nothing and is not in the start set; what is free is known from the start")
    return found
