"""SurvivalPolicy: ask next for what makes the advice most likely to survive, per unit of cost.

The paper's order completes units; plans that are found on the way mostly fail once everything is
known. Here a question is worth what it adds to the survival of a person's best plan. It adds in two
ways: it tells more about what the model will say in the end, and a fact that is known can be
changed. With ``aim="endings"`` it is worth what it adds to the probability of the ending that the
person can be told: that they are granted, a plan that helps, or that nothing does.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from edfa.acquisition.base import Policy, never_asked
from edfa.artifacts import Folder, folder_name, open_parts, write_parts
from edfa.blanket.units import Blanket
from edfa.data.rules import Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import SettingError, UnreadableError, check_known
from edfa.explanation.partition import members
from edfa.parallel import count_jobs, map_parallel
from edfa.people import Background, People
from edfa.predictors.base import Predictor, Progress, UnfittedError
from edfa.reading import parse_json
from edfa.recourse.find import find_recourse
from edfa.recourse.outlook import Outlook
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array

MIN_WORTH = 1e-9  # of a question without a gain, so that it is asked too, though last
ORDER = "order.json"
# The probabilities at which endings are told, about: thresholds come from calibration people, of
# whom the order must not know.
GRANTED, ACT, NOTHING = 0.9, 0.6, 0.7


class Step(NamedTuple):
    """One question of the order learnt.

    Parameters
    ----------
    feature, cost
        What is asked, and its price on the card.
    before, after
        What the order is learnt for, on average over training people, before the question and
        after it: the survival of their advice, or how sure one is of their endings.
    """

    feature: str
    cost: float
    before: float
    after: float


@dataclass(eq=False, repr=False)
class SurvivalPolicy(Policy):
    """The order of questions in which advice comes to survive soonest.

    ``fit`` learns one order for everybody, by greedy search on training people. With ``personal``,
    questions are chosen for each person instead: each is worth what it would add to that person's
    survival, on average over its likely values. That takes a search for plans for every open
    feature and value, and a model for every set of features.

    Parameters
    ----------
    blanket
        Only its members are asked.
    searcher
        Where plans come from; ``fit`` fits a clone of it on the training people, ``searcher_``.
    rules, desired_class
        What plans may change and what is never asked, and the code of the class that plans lead to,
        as they will be looked for later. None: any other decision is recourse. With a class, people
        who have it already count as often as that decision stays.
    aim
        What a question is worth: ``"survival"`` of advice; or ``"endings"``, which needs a desired
        class and learns one order for everybody.
    personal
        Whether questions are chosen for each person; then no order is learnt.
    n_people
        The number of training people that the order is learnt from.
    n_draws
        The number of values that are tried for an unknown feature of a person (``personal`` alone).
    seed
        Decides which training people the order is learnt from.
    aligned
        Whether the model is shown the blanket alone.

    Attributes
    ----------
    steps_
        The order learnt, a ``Step`` for each question; empty if ``personal``.
    searcher_
        The fitted searcher.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("savings_status",)})
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> policy = SurvivalPolicy(blanket, edfa.SurvivalSearch(), n_people=64).fit(table.train, model)
    >>> sorted(policy.order_) == sorted(n for n in blanket.features if not table.schema[n].start)
    True
    """

    blanket: Blanket = field()  # required, whatever the default of all policies
    searcher: SurvivalSearch = field()
    rules: Rules | None = None
    desired_class: int | None = None
    aim: Literal["survival", "endings"] = "survival"
    personal: bool = False
    n_people: int = 256
    n_draws: int = 4
    seed: int = 0
    aligned: bool = True
    takes = ("blanket", "searcher", "rules", "desired_class")
    steps_: tuple[Step, ...] = field(init=False)
    searcher_: SurvivalSearch = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.searcher, SurvivalSearch):
            raise SettingError(
                f"searcher: one that looks at survival, SurvivalSearch(), not {self.searcher!r}"
            )
        if self.n_people < 2 or self.n_draws < 1:
            raise SettingError("n_people: at least 2; n_draws: at least 1")
        check_known("aim", self.aim, ("survival", "endings"))
        if self.aim == "endings" and self.personal:
            raise SettingError("aim='endings' learns one order for everybody: personal=False")

    @property
    def order_(self) -> tuple[str, ...]:
        """The names of the features in the order learnt."""
        self._check_fitted()
        return tuple(step.feature for step in self.steps_)

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the searcher, and learn the order unless it is ``personal``.

        ``predictor`` is the fitted model that decides. ``n_jobs`` threads share the searches for
        plans. ``progress`` is called with the number of searches done, and of all.
        """
        if predictor is None:
            raise SettingError("predictor: survival is a fact about a model; pass the fitted one")
        super().fit(train, predictor)
        self.searcher_ = clone(self.searcher).fit(train)
        self.steps_ = ()
        if not self.personal:
            self.steps_ = tuple(self._learn_order(train, predictor, count_jobs(n_jobs), progress))
        return self

    def _learn_order(
        self, train: Table, predictor: Predictor, n_jobs: int, progress: Progress | None
    ) -> Iterator[Step]:
        """Greedy search: from the start set on, always the question that adds most per cost to
        what the order is learnt for.
        """
        schema, inside = train.schema, self._asked(train.schema)
        n_people = min(self.n_people, len(train) // 2)
        chosen = np.random.default_rng(self.seed).permutation(len(train))[:n_people]
        # The people that the order is learnt from complete nobody meanwhile: they would complete
        # themselves.
        searcher = clone(self.searcher).fit_without(train, chosen)
        blanket = self.blanket if self.aligned else None
        background = Background.of(
            train, predictor, blanket, aligned=self.aligned, support=searcher.support_
        )
        rows, known = train.X[np.sort(chosen)], background.start
        n_unknown = int((inside & ~known).sum())
        done, total = 0, n_unknown * (n_unknown + 1) // 2
        outlook = None
        if self.aim == "endings" and self.desired_class is not None:
            neighbours, asked = searcher.completions_.neighbours, inside | known
            settings = (self.rules, self.desired_class)
            outlook = Outlook.of(neighbours, searcher, background, asked, *settings)

        def value(mask: BoolArray) -> Float64Array:
            people = People(np.where(mask, rows, NAN), background)
            if outlook is not None:
                return sureness(people, searcher, self.rules, self.desired_class or 0, outlook)
            return expected_survival(people, searcher, self.rules, self.desired_class)

        now = value(known)
        while (unknown := np.flatnonzero(inside & ~known)).size:
            then = []
            masks = [known | one for one in np.eye(len(known), dtype=bool)[unknown]]
            for each in map_parallel(value, masks, n_jobs):
                # whose interview has ended is asked nothing more
                then.append(np.where(now >= 1, 1.0, each) if outlook is not None else each)
                done += 1
                if progress:
                    progress(done, total)
            # The largest gain per cost; among equals the cheapest, then the first of the card.
            costs, after = schema.costs[unknown], np.array([each.mean() for each in then])
            before = float(now.mean())
            worth = np.maximum(after - before, 0) / costs
            best = int(np.lexsort((costs, -worth))[0])
            name, cost = schema.names[unknown[best]], float(costs[best])
            yield Step(name, cost, before, float(after[best]))
            known, now = masks[best], then[best]

    def score(self, people: People) -> Float64Array:
        """What each member that may be asked is worth before its price, (people, features); NaN
        elsewhere.
        """
        self._check_fitted()
        asked = people.askable & self._asked(people.schema)
        if self.personal:
            now, then = self.expected(people, asked)
            return np.where(asked, np.maximum(then - now[:, None], MIN_WORTH), np.nan)
        return np.where(asked, self._learnt_worth(people.schema), np.nan)

    def expected(self, people: People, asked: BoolArray) -> tuple[Float64Array, Float64Array]:
        """The expected survival of each person's advice, now and once a feature is known.

        Parameters
        ----------
        people
            What is known of each person.
        asked
            Which features to weigh, (people, features).

        Returns
        -------
        tuple of numpy.ndarray
            The survival now, (people,), and with each feature, on average over its likely values,
            (people, features); NaN for what was not asked about.
        """
        self._check_fitted()
        background = people.background if self.aligned else replace(people.background, blanket=None)

        def survival(rows: Float32Array) -> Float64Array:
            return expected_survival(
                People(rows, background), self.searcher_, self.rules, self.desired_class
            )

        now, then = survival(people.X), np.full(people.X.shape, np.nan)
        draw = self.searcher_.completions_.neighbours.given(people.X)
        for feature in np.flatnonzero(asked.any(axis=0)):
            rows = np.flatnonzero(asked[:, feature])
            values = np.sort(draw(int(feature))[0][rows], axis=1)
            # Evenly spaced among the sorted values: each stands for the same number of neighbours.
            shares = (np.arange(self.n_draws) + 0.5) / self.n_draws
            positions = (shares * values.shape[1]).astype(int)
            supposed = np.repeat(people.X[rows], self.n_draws, axis=0)
            supposed[:, feature] = values[:, positions].ravel()
            then[rows, feature] = survival(supposed).reshape(len(rows), self.n_draws).mean(axis=1)
        return now, then

    def _learnt_worth(self, schema: Schema) -> Float64Array:
        """What each feature is worth before its price, (features,): scores that give the order
        learnt at card prices.

        A person who pays twice the card's price for a feature sees half its worth per cost.
        """
        asked = self._asked(schema) & ~np.array([feature.start for feature in schema])
        features = [schema.index(name) for name in self.order_]
        if not set(np.flatnonzero(asked)) <= set(features):
            raise UnfittedError(
                "this SurvivalPolicy has learnt no order yet; call fit(train, predictor) "
                "first, or use personal=True"
            )
        rates = [max((step.after - step.before) / step.cost, MIN_WORTH) for step in self.steps_]
        # Falling, however little, so that no later question overtakes an earlier one.
        falling = np.minimum.accumulate(rates) * (1 - 1e-6) ** np.arange(len(rates))
        worth = np.full(len(schema), np.nan)
        worth[features] = falling * np.array([step.cost for step in self.steps_])
        return worth

    def _asked(self, schema: Schema) -> BoolArray:
        """The members that may be asked for, (features,)."""
        return members(schema.names, self.blanket) & ~never_asked(schema, self.rules)

    def _check_fitted(self) -> None:
        if not hasattr(self, "searcher_"):
            raise UnfittedError(
                "this SurvivalPolicy has seen no training people yet; call fit(train, "
                "predictor) first"
            )

    def learnt_state(self) -> dict[str, Any]:
        """The order learnt, and what the searcher has learnt; nothing before ``fit``."""
        if not hasattr(self, "searcher_"):
            return {}
        return {
            "steps": [step._asdict() for step in self.steps_],
            "searcher": self.searcher_.learnt_state(),
        }

    def save_state(self, folder: Path) -> None:
        """Write the order learnt, as JSON."""
        self._check_fitted()
        text = json.dumps([step._asdict() for step in self.steps_], ensure_ascii=False)
        write_parts(folder, type(self).__name__, {}, {ORDER: text.encode()})

    def load_state(self, folder: Path | Folder, train: Table) -> Self:
        """Read the order learnt, and fit the searcher on ``train`` again."""
        with open_parts(folder, type(self).__name__) as (_, parts):
            content = parts.get(ORDER, b"").decode("utf-8")
            steps = tuple(Step(**entry) for entry in parse_json(content, ORDER))
            numbers = np.array([step[1:] for step in steps], dtype=float).reshape(-1, 3)
        if not np.isfinite(numbers).all() or (numbers[:, 0] <= 0).any():
            raise UnreadableError(
                f"{folder_name(folder)} is damaged: an order has costs above 0, and survivals"
            )
        if unknown := [step.feature for step in steps if step.feature not in self.blanket]:
            raise UnreadableError(f"the order asks for {unknown[0]!r}, which is not in the blanket")
        self.steps_, self.searcher_ = steps, clone(self.searcher).fit(train)
        return self


def sureness(
    people: People,
    searcher: SurvivalSearch,
    rules: Rules | None,
    desired_class: int,
    outlook: Outlook,
) -> Float64Array:
    """How sure one is of the ending of each person's interview, as a share of what it takes to tell
    it, at most 1; (people,).

    Parameters
    ----------
    people
        What is known of each person.
    searcher
        Where plans come from, fitted.
    rules
        What plans may change; None: what the card allows.
    desired_class
        The code of the class that plans lead to. Of who has that decision it is the probability
        that it stays, of who has a plan that it helps, and of who has none that there is none in
        the end.
    outlook
        How training people stand in the end.
    """
    plans = find_recourse(people, searcher, rules=rules, desired_class=desired_class)
    granted = plans.decision == desired_class
    without = ~granted & ~plans.legal
    sure = np.zeros(len(people))
    sure[granted] = searcher.chance(people.take(np.flatnonzero(granted)), desired_class) / GRANTED
    sure[without] = outlook.no_way(people.X[without]) / NOTHING
    if plans.help is not None:
        sure[plans.legal] = plans.help[plans.first[plans.legal]] / ACT
    return np.minimum(sure, 1.0)


def expected_survival(
    people: People,
    searcher: SurvivalSearch,
    rules: Rules | None,
    desired_class: int | None,
) -> Float64Array:
    """The probability that each person's advice still holds when everything is known.

    The advice is the best surviving plan.

    Parameters
    ----------
    people
        What is known of each person.
    searcher
        Where plans come from, fitted.
    rules
        What plans may change; None: what the card allows.
    desired_class
        The code of the class that plans lead to; None: any other decision is recourse. A person who
        has that decision already is advised nothing, and counts with the probability that the
        decision stays.

    Returns
    -------
    numpy.ndarray
        (people,); 0 for a person without a plan.
    """
    plans = find_recourse(people, searcher, rules=rules, desired_class=desired_class)
    survival = np.zeros(len(people))
    if plans.survival is not None:
        survival[plans.legal] = plans.survival[plans.first[plans.legal]]
    if desired_class is not None:
        rows = np.flatnonzero(plans.decision == desired_class)
        decided = People(people.X[rows], people.background, decided=plans.decision[rows])
        survival[rows] = searcher.completions_.decision_stability(decided)
    return survival
