"""Surviving: ask next for what makes the advice most likely to last, per unit of cost.

The paper's order completes units; advice given on the way mostly does not hold in the end. Here a question is worth
what it adds to the survival of the best plan: because it tells what the model would say, and because a fact that is
known can be changed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from edfa.acquisition.base import Policy, Progress
from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.explanation.partition import members
from edfa.parallel import count_jobs, map_parallel
from edfa.people import Background, People
from edfa.predictors.base import Predictor, UnfittedError
from edfa.recourse.constraints import Constraints
from edfa.recourse.find import find_recourse
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["Step", "SurvivalPolicy", "expected_survival"]

LEAST = 1e-9  # what a question is worth at least, so that one without a gain is asked too, though last
ORDER = "order.json"


class Step(NamedTuple):
    """A question of the population's order: how often advice lasts before it, and after it, on average."""

    feature: str
    cost: float
    before: float
    after: float


@dataclass(eq=False, repr=False)
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
        Where plans come from; ``fit`` fits a clone of it on the training people, ``searcher_``.
    constraints, desired_class
        What may be proposed, and the code of the class to lead to, as plans will be looked for later. None: any other
        decision is recourse. With a class, whoever has it already counts as often as that decision lasts.
    personal
        Whether the question is chosen for each person; then no order is learnt.
    people, draws
        The numbers of training people the order is learnt from, and of values of an open feature that are tried.
    seed
        Of the choice of training people.
    aligned
        Whether the model is shown the blanket alone.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("savings_status",)})
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> policy = SurvivalPolicy(blanket, edfa.SurvivalSearch(), people=64).fit(table.train, model)
    >>> sorted(policy.order_) == sorted(n for n in blanket.features if not table.schema[n].start)
    True
    """

    blanket: Blanket = field()  # required, whatever the default of all policies
    searcher: SurvivalSearch = field()
    constraints: Constraints | None = None
    desired_class: int | None = None
    personal: bool = False
    people: int = 256
    draws: int = 4
    seed: int = 0
    aligned: bool = True
    steps_: tuple[Step, ...] = field(default=(), init=False)
    searcher_: SurvivalSearch = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.searcher, SurvivalSearch):
            raise SettingError(f"searcher: one that looks at survival, SurvivalSearch(), not {self.searcher!r}")
        if self.people < 2 or self.draws < 1:
            raise SettingError("people: at least 2; draws: at least 1")

    @classmethod
    def default(cls, blanket: Blanket, searcher: Searcher, desired_class: int) -> Self:
        """With everything of the advisor's."""
        return cls(blanket, searcher, desired_class=desired_class)

    @property
    def order_(self) -> tuple[str, ...]:
        """The features in the order learnt."""
        return tuple(step.feature for step in self.steps_)

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn the order; training people it is learnt from complete nobody meanwhile.

        ``n_jobs`` threads weigh questions. ``progress`` is called with the numbers of searches done and to do.
        """
        if predictor is None:
            raise SettingError("predictor: survival is a fact about a model; pass the fitted one")
        super().fit(train, predictor)
        self.searcher_ = clone(self.searcher).fit(train)
        if not self.personal:
            self.steps_ = tuple(self._learn_order(train, predictor, count_jobs(n_jobs), progress))
        return self

    def _learn_order(
        self, train: Table, predictor: Predictor, n_jobs: int, progress: Progress | None
    ) -> Iterator[Step]:
        schema, inside = train.schema, members(train.schema.names, self.blanket)
        chosen = np.random.default_rng(self.seed).permutation(len(train))[: min(self.people, len(train) // 2)]
        searcher = clone(self.searcher).fit_without(train, chosen)
        background = Background.of(
            train, predictor, self.blanket if self.aligned else None, aligned=self.aligned, support=searcher.support_
        )
        rows, known = train.X[np.sort(chosen)], background.start
        done, total = 0, _pairs(int((inside & ~known).sum()))

        def value(mask: BoolArray) -> float:
            people = People(np.where(mask, rows, np.float32(np.nan)), background)
            return float(expected_survival(people, searcher, self.constraints, self.desired_class).mean())

        now = value(known)
        while (left := np.flatnonzero(inside & ~known)).size:
            then = []
            masks = [known | (np.arange(len(known)) == feature) for feature in left]
            for survival in map_parallel(value, masks, n_jobs):
                then.append(survival)
                done += 1
                if progress:
                    progress(done, total)
            # Sorted by gain per cost, then the cheaper, then as the card has them.
            worth = np.maximum(np.array(then) - now, 0) / schema.costs[left]
            best = int(np.lexsort((schema.costs[left], -worth))[0])
            yield Step(schema.names[left[best]], float(schema.costs[left[best]]), now, then[best])
            known = known | (np.arange(len(known)) == left[best])
            now = then[best]

    def score(self, people: People) -> Float64Array:
        """What each open feature is worth, before its price, (people, features)."""
        asked = people.askable & members(people.schema.names, self.blanket)
        if self.personal:
            now, then = self.expected(people, asked)
            return np.where(asked, np.maximum(then - now[:, None], LEAST), np.nan)
        return np.where(asked, self._worth(people.schema), np.nan)

    def expected(self, people: People, asked: BoolArray) -> tuple[Float64Array, Float64Array]:
        """The expected survival of each person's advice now (people,), and once a feature is known (people, features).

        ``asked`` (people, features) says which features to weigh; NaN elsewhere.
        """
        if not hasattr(self, "searcher_"):
            raise UnfittedError("this SurvivalPolicy has seen no training people yet; call fit(train, predictor) first")
        background = people.background if self.aligned else replace(people.background, blanket=None)

        def survival(rows: Float32Array) -> Float64Array:
            return expected_survival(People(rows, background), self.searcher_, self.constraints, self.desired_class)

        now, then = survival(people.X), np.full(people.X.shape, np.nan)
        draw = self.searcher_.completions_.neighbours.given(people.X)
        for feature in np.flatnonzero(asked.any(axis=0)):
            who = np.flatnonzero(asked[:, feature])
            values = np.sort(draw(int(feature))[0][who], axis=1)
            # Evenly spaced among the sorted: each stands for as many neighbours as any other.
            some = values[:, ((np.arange(self.draws) + 0.5) / self.draws * values.shape[1]).astype(int)]
            rows = np.repeat(people.X[who], self.draws, axis=0)
            rows[:, feature] = some.ravel()
            then[who, feature] = survival(rows).reshape(len(who), self.draws).mean(axis=1)
        return now, then

    def _worth(self, schema: Schema) -> Float64Array:
        """By the card's prices the order learnt; who pays twice the price for a fact sees half its worth."""
        if not self.steps_:
            raise UnfittedError(
                "this Surviving has learnt no order yet; call fit(train, predictor) first, or use personal=True"
            )
        rates = [max((step.after - step.before) / step.cost, LEAST) for step in self.steps_]
        falling = np.minimum.accumulate(rates) * (1 - 1e-6) ** np.arange(len(rates))
        worth = np.full(len(schema), np.nan)
        places = [schema.index(name) for name in self.order_]
        worth[places] = falling * np.array([step.cost for step in self.steps_])
        return worth

    def learnt_state(self) -> dict[str, Any]:
        """The order learnt, and what plans are looked for among."""
        searcher = self.searcher_.learnt_state() if hasattr(self, "searcher_") else {}
        return {"steps": [step._asdict() for step in self.steps_], "searcher": searcher}

    def save_state(self, folder: Path) -> None:
        """Write the learned question order as JSON."""
        text = json.dumps([step._asdict() for step in self.steps_], ensure_ascii=False)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ORDER).write_text(text, encoding="utf-8")

    def load_state(self, folder: Path, train: Table) -> Self:
        """Read the learned question order; plans are looked for among ``train`` again."""
        steps = tuple(Step(**entry) for entry in json.loads((folder / ORDER).read_text(encoding="utf-8")))
        if unknown := [step.feature for step in steps if step.feature not in self.blanket]:
            raise DataError(f"the order asks for {unknown[0]!r}, which is not in the blanket")
        self.steps_, self.searcher_ = steps, clone(self.searcher).fit(train)
        return self


def expected_survival(
    people: People, searcher: SurvivalSearch, constraints: Constraints | None, desired_class: int | None
) -> Float64Array:
    """How often what can be said to each person lasts, (people,): their best plan, or the desired decision itself."""
    plans = find_recourse(people, searcher, constraints=constraints, desired_class=desired_class)
    survival = np.zeros(len(people))
    if plans.survival is not None:
        survival[plans.legal] = plans.survival[plans.first[plans.legal]]
    if desired_class is not None:
        there = np.flatnonzero(plans.decision == desired_class)
        decided = People(people.X[there], people.background, decided=plans.decision[there])
        survival[there] = searcher.completions_.decision_stability(decided)
    return survival


def _pairs(count: int) -> int:
    return count * (count + 1) // 2
