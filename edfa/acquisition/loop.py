"""The loop that asks: it sees to prices, budget, the start set, what is forbidden or declined, and
the log.

``acquire`` is the entry for people whose facts are all in a table; ``run_policy`` is the same for
an advisor, and ``next_question`` is one step of either, which interviews take too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.acquisition.base import Policy, choose, never_asked
from edfa.acquisition.trajectory import Trajectory
from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.errors import BudgetError, DataError, UnknownNameError, check_known
from edfa.people import Background, People, Provenance
from edfa.predictors.base import Predictor
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, IntArray

Budget = float | Literal["inf"]
"""What asking may cost: a share up to 1, an amount above 1, or no limit."""
OnUnaffordable = Literal["stop", "skip"]
"""Whether a question that costs too much ends a person's run, or another is asked."""
SLACK = 1e-9  # sums of decimal fractions are not exact


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a run: what asking costs, and what people are not asked for or will not tell.

    Parameters
    ----------
    costs
        Prices in place of the card's, (features,) or (people, features).
    forbidden
        Features that are never asked, besides those of the card's rules.
    declines
        Which person will not tell which feature, (people, features); the loop finds out by asking,
        and a refusal costs nothing.
    on_unaffordable
        ``"stop"``: a choice that does not fit into the budget ends a person's run (line 22 of
        Algorithm 1); ``"skip"``: the policy chooses among the features that do.
    person
        A whole number for each row, (people,); the row's position unless given.
    """

    costs: npt.ArrayLike | None = None
    forbidden: Sequence[str] = ()
    declines: npt.ArrayLike | None = None
    on_unaffordable: OnUnaffordable = "stop"
    person: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        check_known("on_unaffordable", self.on_unaffordable, ("stop", "skip"))


def acquire(
    table: Table | pd.DataFrame | Float32Array,
    policy: Policy,
    predictor: Predictor,
    budget: Budget = 0.9,
    seed: int = 0,
    *,
    reference: Table | None = None,
    terms: Terms = Terms(),
    explain: bool = True,
) -> Trajectory:
    """Ask everybody, one feature at a time, until the policy has no question or the budget no room.

    Parameters
    ----------
    table
        Whom to ask: a part of a table; or a frame, or encoded rows (people, features), with a
        ``reference``. All facts are there, and are revealed as they are asked for.
    policy, predictor
        What chooses the next question, fitted if it learns, and the fitted model that decides.
    budget
        Up to 1, a share of what everything beyond the start set costs, on top of the start set;
        above 1, an amount; ``"inf"``: no limit. The start set is paid first.
    seed
        The random stream of policies that draw.
    reference
        The training people, if the rows are not a part of a table.
    terms
        Other prices than the card's, and what people are not asked for or will not tell.
    explain
        Whether the partition is worked out at every step.

    Returns
    -------
    Trajectory
        A row for every step of every person.

    Raises
    ------
    BudgetError
        If the budget is no number above zero, or buys nobody a single feature.
    DataError
        If the rows, the terms or the reference do not fit the card.

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
    forbidden = never_asked(train.schema)
    for name in terms.forbidden:
        forbidden[train.schema.index(name)] = True
        if train.schema[name].start:
            raise DataError(f"{name} is known from the start; it cannot be forbidden")
    run = _Run(policy, background, truth, forbidden, terms, seed, explain)
    run.check_budget(budget)
    return run.ask_everybody(budget)


def run_policy(
    X: Float32Array,  # noqa: N803
    policy: Policy,
    background: Background,
    budget: Budget,
    rules: Rules | None = None,
    *,
    known: BoolArray | None = None,
    declined: BoolArray | None = None,
    costs: Float64Array | None = None,
) -> Trajectory:
    """Ask everybody of encoded rows as ``acquire`` does, without partitions.

    Parameters
    ----------
    X
        Encoded facts, (people, features), all of them known.
    policy
        What chooses the next question.
    background
        The model, and the features it is shown.
    budget
        As in ``acquire``.
    rules
        Features that these or the card's rules exclude are not asked.
    known
        (features,) the features known and paid for at the first step, in place of the start set; a
        budget that buys nothing beyond that is then no error.
    declined
        (features,) features that are never asked.
    costs
        (features,) prices in place of the card's.

    Returns
    -------
    Trajectory
        A row for every step of every person.
    """
    never = never_asked(background.schema, rules)
    run = _Run(policy, background, X, never, Terms(costs))
    if declined is not None:
        run.declined |= declined
    if known is None:
        run.check_budget(budget)
    else:
        run.begin_with(known)
    return run.ask_everybody(budget)


def next_question(
    policy: Policy, people: People, limit: Float64Array, on_unaffordable: OnUnaffordable = "stop"
) -> tuple[IntArray, Float64Array]:
    """Choose the next question of each person; interviews, files and runs all ask what this says.

    Parameters
    ----------
    policy
        What scores the features.
    people
        What is known of each person, what they have spent, and their prices.
    limit
        What each person may spend in all, (people,).
    on_unaffordable
        As in ``Terms``.

    Returns
    -------
    tuple of numpy.ndarray
        The index of the feature to ask each person for, (people,); -1 if the policy has no
        question, or if its choice does not fit into the limit. And the policy's scores, (people,
        features).
    """
    fits = people.spent[:, None] + people.costs <= limit[:, None] + SLACK
    if on_unaffordable == "skip":
        people = replace(people, askable=people.askable & fits)
    scores = policy.masked_score(people)
    chosen = choose(scores, people.costs, policy.per_cost)
    return np.where((chosen >= 0) & fits[np.arange(len(people)), chosen], chosen, -1), scores


def budget_amount(budget: Budget | str, costs: Float64Array, start: BoolArray) -> Float64Array:
    """What each person may spend in all.

    Parameters
    ----------
    budget
        Up to 1, a share of what everything beyond the start set costs, on top of the start set;
        above 1, an amount; ``"inf"``: no limit.
    costs
        Prices, (people, features).
    start
        Which features are known from the start, (features,).

    Returns
    -------
    numpy.ndarray
        (people,)
    """
    try:
        amount = float(budget)
    except (TypeError, ValueError):
        raise BudgetError(
            f"a budget is a share up to 1, an amount, or 'inf', not {budget!r}"
        ) from None
    if not amount > 0:
        raise BudgetError(f"a budget is above zero, not {budget}")
    if amount <= 1:
        return np.asarray(costs @ start + amount * (costs @ ~start))
    return np.full(len(costs), amount)


def _rows(
    table: Table | pd.DataFrame | Float32Array, reference: Table | None
) -> tuple[Table, Float32Array]:
    """The training people, and the encoded facts of the people to ask, (people, features)."""
    if isinstance(table, Table):
        return reference or table.reference, table.X
    if reference is None:
        raise DataError(
            "rows alone do not say what they mean; pass reference=table.train, the people "
            "to learn from"
        )
    if isinstance(table, pd.DataFrame):
        if missing := [name for name in reference.schema.names if name not in table.columns]:
            raise UnknownNameError("column", missing[0], table.columns)
        return reference, reference.encoder.encode(table)
    return reference, np.asarray(table, dtype=np.float32)


@dataclass
class _Run:
    """State of an acquisition run.

    Parameters
    ----------
    policy, background, terms, seed, explain
        As in ``acquire``.
    truth
        All facts, encoded, (people, features).
    forbidden
        Features that are never asked, (features,).

    Attributes
    ----------
    costs
        The price of every feature for every person, (people, features).
    declines, declined
        Answers that will be refused, and those refused so far, (people, features).
    when
        The step at which a feature became known, (people, features); 0: from the start, -1: not
        yet.
    person, spent, step
        Each person's number, what they have paid, and how many answers they gave, (people,).
    log
        What happened at each step, an entry for each round of questions.
    """

    policy: Policy
    background: Background
    truth: Float32Array
    forbidden: BoolArray
    terms: Terms
    seed: int = 0
    explain: bool = False

    def __post_init__(self) -> None:
        schema, shape = self.background.schema, self.truth.shape
        if shape[1] != len(schema):
            raise DataError(f"rows of {len(schema)} features are needed, not of {shape[1]}")
        self.log: list[dict[str, Any]] = []
        self.costs = _prices(self.terms.costs, self.background, shape)
        person, declines = self.terms.person, self.terms.declines
        self.person = np.asarray(range(shape[0]) if person is None else person, dtype=np.int64)
        if self.person.shape != shape[:1] or len(np.unique(self.person)) != shape[0]:
            raise DataError(f"person must name each of the {shape[0]} rows once")
        self.declined = np.zeros(shape, dtype=bool)
        self.declines = self.declined.copy() if declines is None else np.asarray(declines, bool)
        if self.declines.shape != shape:
            raise DataError(f"declines must be of shape {shape}, not {self.declines.shape}")
        self.step = np.zeros(shape[0], dtype=np.int16)
        self.begin_with(self.background.start)

    def begin_with(self, known: BoolArray) -> None:
        """Let everybody begin with the features ``known`` (features,), which they have paid for."""
        self.when = np.where(known, 0, np.full(self.truth.shape, -1)).astype(np.int16)
        self.spent = self.costs @ known

    def check_budget(self, budget: Budget) -> None:
        """BudgetError if a budget buys no one a feature beyond the start set."""
        limit = budget_amount(budget, self.costs, self.background.start)
        if not len(limit):
            return
        if (self.spent > limit + SLACK).all():
            raise BudgetError(
                f"the start set alone costs {self.spent.min():g}; the budget is {limit.max():g}"
            )
        price = np.where(self.background.start | self.forbidden, np.inf, self.costs)
        if np.isfinite(price).any() and (price.min(axis=1) + self.spent > limit + SLACK).all():
            raise BudgetError(
                f"a budget of {limit.max():g} buys nothing; the start set and one feature "
                f"cost {price.min() + self.spent.min():g}"
            )

    def ask_everybody(self, budget: Budget) -> Trajectory:
        """Ask one question a person and round until no questions are left."""
        n, limit = len(self.truth), budget_amount(budget, self.costs, self.background.start)
        self._log_step(np.arange(n), np.full(n, -1), np.full(self.truth.shape, np.nan))
        active = np.flatnonzero(self.spent <= limit + SLACK)
        while len(active):
            chosen, scores = next_question(
                self.policy, self._people(active), limit[active], self.terms.on_unaffordable
            )
            asked = chosen >= 0
            active, chosen, scores = active[asked], chosen[asked], scores[asked]
            refuses = self.declines[active, chosen]
            self.declined[active[refuses], chosen[refuses]] = True
            if not refuses.all():
                told, chosen = active[~refuses], chosen[~refuses]
                self.step[told] += 1
                self.when[told, chosen] = self.step[told]
                self.spent[told] += self.costs[told, chosen]
                self._log_step(told, chosen, scores[~refuses])
        return self._trajectory(budget)

    def _people(self, rows: IntArray) -> People:
        """Some people, by row, with what is known of them now."""
        known = self.when[rows] >= 0
        return People(
            np.where(known, self.truth[rows], NAN),
            self.background,
            person=self.person[rows],
            seed=np.full(len(rows), self.seed),
            spent=self.spent[rows],
            costs=self.costs[rows],
            askable=~known & ~self.forbidden & ~self.declined[rows],
        )

    def _log_step(self, rows: IntArray, chosen: IntArray, scores: Float64Array) -> None:
        """Log a step of some people: what was asked, and what the model says now."""
        people = self._people(rows)
        people = people.with_sweep() if self.explain else people
        entry: dict[str, Any] = {
            "who": rows,
            "step": self.step[rows],
            "feature": chosen,
            "spent": people.spent,
            "scores": scores.astype(np.float32),  # now: they are the largest part of a log
            "probabilities": people.probabilities,
            "decision": people.decision,
        }
        if self.explain:
            entry["necessity"] = people.sweep.necessity.astype(np.float32)
        self.log.append(entry)

    def _trajectory(self, budget: Budget) -> Trajectory:
        """The log as a trajectory, sorted by person and step."""
        step, who = (
            np.concatenate([entry[name] for entry in self.log]) for name in ("step", "who")
        )
        order = np.lexsort([step, who])
        columns: dict[str, Any] = {"necessity": None}
        for name in list(self.log[0]):  # one after the other: never is the log there twice
            columns[name] = np.concatenate([entry.pop(name) for entry in self.log])[order]
        price = self.costs[columns["who"], columns["feature"]]
        columns["cost"] = np.where(columns["step"] > 0, price, columns["spent"])
        narrow = np.int16 if self.truth.shape[1] < 1 << 15 else np.int32
        columns["feature"] = columns["feature"].astype(narrow)
        same_prices = bool(len(self.costs) and (self.costs == self.costs[0]).all())
        costs = {
            "prices": self.costs[0] if same_prices else "each person's own",
            "budget": str(budget),
            "on_unaffordable": self.terms.on_unaffordable,
            "forbidden": self.forbidden,
            "start": self.background.start,
        }
        return Trajectory(
            background=self.background,
            person=self.person,
            seed=self.seed,
            values=np.where(self.when >= 0, self.truth, NAN),
            when=self.when,
            declined=self.declined,
            provenance=Provenance(policy=self.policy, costs=costs),
            **columns,
        )


def _prices(
    costs: npt.ArrayLike | None, background: Background, shape: tuple[int, ...]
) -> Float64Array:
    """The price of every feature for every person, checked, (people, features): ``costs``, or the
    card's.
    """
    prices = np.asarray(background.costs if costs is None else costs, dtype=float)
    if prices.shape not in (shape, shape[1:]):
        raise DataError(f"costs must be of shape {shape[1:]} or {shape}, not {prices.shape}")
    prices = np.broadcast_to(prices, shape)
    if not np.isfinite(prices).all() or (prices < 0).any():
        raise DataError("a price is a number, zero or more")
    free = (prices == 0).any(axis=0) & ~background.start
    if free.any():
        name = background.schema.names[int(free.argmax())]
        raise DataError(
            f"{name} costs nothing and is not in the start set; what is free is known "
            "from the start"
        )
    return prices
