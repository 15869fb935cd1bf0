"""Surviving: ask next for what makes the advice most likely to last, per unit of cost.

The paper's order completes units; advice given on the way mostly does not hold in the end. Here a question is worth
what it adds to the survival of the best plan: because it tells what the model would say, and because a fact that is
known can be changed.
"""

import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from edfa.acquisition.base import Policy, State
from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.errors import DataError, SettingError
from edfa.explanation.partition import members
from edfa.parallel import count_jobs, map_parallel
from edfa.people import People
from edfa.predictors.aligned import align
from edfa.predictors.base import Predictor, UnfittedError
from edfa.recourse.constraints import Constraints
from edfa.recourse.find import find_recourse
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.recourse.survival import Completions, Decided
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["Step", "SurvivalPolicy", "outlook"]

LEAST = 1e-9  # what a question is worth at least, so that one without a gain is asked too, though last


class Step(NamedTuple):
    """A question of the population's order: how often advice lasts before it, and after it, on average."""

    feature: str
    cost: float
    before: float
    after: float


@dataclass(eq=False)
class SurvivalPolicy(Policy):
    """The order in which advice comes to last soonest.

    ``fit`` learns one order for everybody by greedy search on training people, kept in ``steps_`` with its curve. With
    ``personal`` every question is weighed for the person: what it would add on average over the values it is likely to
    have. That takes a search for plans for every open feature and value, and a model for every set of features.

    Parameters
    ----------
    blanket
        Only its members are asked.
    searcher
        Where plans come from; the training people are its own.
    constraints, wanted
        What may be proposed, and the class to lead to, as plans will be looked for later. Without ``wanted``, any other
        decision is recourse. With it, whoever is there already counts as often as that decision lasts.
    personal
        Whether the question is chosen for each person; then nothing needs to be learnt.
    people, draws
        How many training people the order is learnt from, and how many values of an open feature are tried.
    aligned
        Whether the model is shown the blanket alone.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("savings_status",)})
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> policy = SurvivalPolicy(blanket, edfa.SurvivalSearch(table.train), people=64).fit(model)
    >>> sorted(policy.order_) == sorted(n for n in blanket.features if not table.schema[n].start)
    True
    """

    blanket: Blanket = field()  # required, whatever the default of all policies
    searcher: SurvivalSearch = field()
    constraints: Constraints | None = None
    wanted: int | None = None
    personal: bool = False
    people: int = 256
    draws: int = 4
    seed: int = 0
    aligned: bool = True
    steps_: tuple[Step, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.searcher, SurvivalSearch):
            raise SettingError(
                f"searcher: one that looks at survival, such as SurvivalSearch(train), not {self.searcher!r}"
            )
        if self.people < 2 or self.draws < 1:
            raise SettingError("people: at least 2; draws: at least 1")

    @property
    def order_(self) -> tuple[str, ...]:
        """The order learnt."""
        return tuple(step.feature for step in self.steps_)

    def fit(
        self, predictor: Predictor, *, progress: Callable[[int, int], None] | None = None, n_jobs: int | None = None
    ) -> Self:
        """Learn the order; training people the order is learnt from complete nobody meanwhile.

        So many ``n_jobs`` weigh questions at a time, or None: one a processor.
        """
        train = self.searcher.train
        schema = train.schema
        inside = members(schema.names, self.blanket)
        model = align(predictor, np.flatnonzero(inside).tolist()) if self.aligned else predictor
        chosen = np.random.default_rng(self.seed).permutation(len(train))[: min(self.people, len(train) // 2)]
        searcher = copy(self.searcher)
        searcher.completions = Completions.of(train, self.searcher.completions.neighbours.k, without=chosen.tolist())
        rows, known = train.X[np.sort(chosen)], np.array([f.start for f in schema])
        done, total = 0, _pairs(int((inside & ~known).sum()))

        def value(mask: BoolArray) -> float:
            facts = np.where(mask, rows, np.float32(np.nan))
            return float(outlook(self._people(facts, model), searcher, self.constraints, self.wanted).mean())

        now, steps = value(known), []
        while (left := np.flatnonzero(inside & ~known)).size:
            then = []
            tried = [known | (np.arange(len(known)) == feature) for feature in left]
            for found in map_parallel(value, tried, count_jobs(n_jobs)):
                then.append(found)
                done += 1
                if progress:
                    progress(done, total)
            # Sorted by gain per cost, then the cheaper, then as the card has them.
            worth = np.maximum(np.array(then) - now, 0) / schema.costs[left]
            best = int(np.lexsort((schema.costs[left], -worth))[0])
            steps.append(Step(schema.names[left[best]], float(schema.costs[left[best]]), now, then[best]))
            known = known | (np.arange(len(known)) == left[best])
            now = then[best]
        self.steps_ = tuple(steps)
        return self

    def score(self, state: State) -> Float64Array:
        """What each open feature is worth, before its price."""
        asked = state.open & members(state.schema.names, self.blanket)
        if self.personal:
            now, then = self.expected(state, asked)
            return np.where(asked, np.maximum(then - now[:, None], LEAST), np.nan)
        return np.where(asked, self._worth(state.schema), np.nan)

    def expected(self, state: State, asked: BoolArray) -> tuple[Float64Array, Float64Array]:
        """How often each person's advice lasts now, and on average once a feature is known (people, features)."""
        predictor = state.background.predictor
        now = outlook(self._people(state.X, predictor), self.searcher, self.constraints, self.wanted)
        then, draw = np.full(state.X.shape, np.nan), self.searcher.completions.neighbours.given(state.X)
        for feature in np.flatnonzero(asked.any(axis=0)):
            who = np.flatnonzero(asked[:, feature])
            values = np.sort(draw(int(feature))[0][who], axis=1)
            # Evenly spaced among the sorted: each stands for as many neighbours as any other.
            some = values[:, ((np.arange(self.draws) + 0.5) / self.draws * values.shape[1]).astype(int)]
            rows = np.repeat(state.X[who], self.draws, axis=0)
            rows[:, feature] = some.ravel()
            found = outlook(self._people(rows, predictor), self.searcher, self.constraints, self.wanted)
            then[who, feature] = found.reshape(len(who), self.draws).mean(axis=1)
        return now, then

    def _people(self, rows: Float32Array, predictor: Predictor) -> People:
        train = self.searcher.train
        return People(rows, train.schema, train.encoder, predictor, self.blanket if self.aligned else None)

    def _worth(self, schema: Schema) -> Float64Array:
        """By the card's prices the order learnt; who pays twice the price for a fact sees half its worth."""
        if not self.steps_:
            raise UnfittedError(
                "this Surviving has learnt no order yet; call fit(predictor) first, or use personal=True"
            )
        rates = [max((step.after - step.before) / step.cost, LEAST) for step in self.steps_]
        falling = np.minimum.accumulate(rates) * (1 - 1e-6) ** np.arange(len(rates))
        worth = np.full(len(schema), np.nan)
        places = [schema.index(name) for name in self.order_]
        worth[places] = falling * np.array([step.cost for step in self.steps_])
        return worth

    def to_json(self) -> str:
        """What was learnt."""
        return json.dumps([step._asdict() for step in self.steps_], ensure_ascii=False)

    def restore(self, text: str) -> Self:
        """Take up what ``to_json`` wrote."""
        steps = tuple(Step(**entry) for entry in json.loads(text))
        if unknown := [step.feature for step in steps if step.feature not in self.blanket]:
            raise DataError(f"the order asks for {unknown[0]!r}, which is not in the blanket")
        self.steps_ = steps
        return self


def outlook(
    people: People, searcher: SurvivalSearch, constraints: Constraints | None, wanted: int | None
) -> Float64Array:
    """How often what can be said to each person lasts: their best plan, or that they are where they want to be."""
    plans = find_recourse(people, searcher, constraints=constraints, wanted=wanted)
    found = np.zeros(len(people))
    if plans.survival is not None:
        found[plans.legal] = plans.survival[plans.first[plans.legal]]
    if wanted is not None and people.predictor is not None:
        there = np.flatnonzero(plans.decision == wanted)
        now = np.searchsorted(people.predictor.classes_, plans.decision[there])
        found[there] = searcher.completions.steady(Decided(people.X[there], now, people.predictor))
    return found


def _pairs(count: int) -> int:
    return count * (count + 1) // 2
