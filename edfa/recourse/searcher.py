"""What every searcher shares: the problem it is given, the candidates it returns, and its
contract.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from edfa.data.rules import NO_RULES, Rules
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.explanation.necessity import Support, SweepGroup
from edfa.fingerprint import canonical
from edfa.people import Background, People
from edfa.predictors.base import ModelCache, Predictor, UnfittedError
from edfa.recourse.action_set import ActionSet
from edfa.recourse.sense import Crowd, Sense
from edfa.recourse.survival import Completions, PlannedChanges, Survival
from edfa.typing import BoolArray, Float32Array, Float64Array, Int8Array, IntArray

__all__ = ["Candidates", "SearchProblem", "Searcher"]

ROWS = 200_000  # in one model call at most


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """People who know the same features: their facts, what may be changed, and what counts as
    recourse.

    The columns of all rows here are the known features alone, in order. People with the same facts
    are one *case*.

    Parameters
    ----------
    group
        The people, and what single changes of their facts do.
    actions
        Which values may be proposed.
    background
        The features, the model and the training rows.
    desired_class
        A class code; None: any other decision is recourse.
    seed
        Of ``random``.
    enough_survival
        A searcher that ranks by survival need not look for a better plan once one survives that
        often.
    sense
        What else is asked of plans; None: nothing.
    """

    group: SweepGroup
    actions: ActionSet
    background: Background
    desired_class: int | None
    seed: int = 0
    enough_survival: float = 1.0
    sense: Sense | None = None

    @property
    def predictor(self) -> Predictor:
        """The model, shown what it may see."""
        return self.background.predictor

    @cached_property
    def cases(self) -> People:
        """The cases as a batch of people, with all features as columns."""
        rows = np.full((len(self), len(self.mask)), np.nan, dtype=np.float32)
        rows[:, self.features] = self.facts
        return People(rows, self.background, decided=self.group.decision)

    @property
    def mask(self) -> BoolArray:
        """Which features are known, (features,)."""
        return self.group.mask

    @property
    def facts(self) -> Float32Array:
        """The known facts, (cases, known features)."""
        return self.group.facts

    def __len__(self) -> int:
        return len(self.group.facts)

    @cached_property
    def features(self) -> IntArray:
        """The feature index of each column, (known features,)."""
        return np.flatnonzero(self.mask)

    @cached_property
    def free(self) -> IntArray:
        """The columns that may change, (free features,)."""
        return np.flatnonzero(self.actions.free[self.features])

    @cached_property
    def innermost(self) -> tuple[Any, BoolArray]:
        """The model behind all views of it, and which known features it sees through them,
        (features,).
        """
        model: Any = self.predictor
        seen = self.mask & model.varies_
        while hasattr(model, "predictor_"):  # a view of another
            model = model.predictor_
            seen = seen & model.varies_
        return model, seen

    @cached_property
    def obeyed_directions(self) -> Int8Array | None:
        """The way in which each feature never lowers the probability of the desired class,
        (features,): 1, -1, or 0.

        None if the model promises nothing, or if any other decision is recourse.
        """
        model = self.innermost[0]
        if not model.obeys_directions or self.desired_class is None:
            return None
        return np.array(model.directions(), dtype=np.int8) * np.int8(
            1 if self.desired_class == 1 else -1
        )

    @cached_property
    def runs(self) -> tuple[IntArray, IntArray]:
        """The first and the last candidate value of the run of recourse around each, (cases,
        candidate values) each.

        A run stays within one feature. What is no recourse itself has no run: its first is after
        its last.
        """
        grid, index = self.group.grid, np.arange(len(self.group.grid))
        fails = ~self.single_recourse
        first = np.maximum.accumulate(np.where(fails, index, -1), axis=1) + 1
        last = (
            np.minimum.accumulate(np.where(fails, index, len(grid))[:, ::-1], axis=1)[:, ::-1] - 1
        )
        start, end = grid.starts[grid.owner], grid.starts[grid.owner + 1] - 1
        return np.maximum(first, start), np.minimum(last, end)

    @cached_property
    def differentiable(self) -> bool:
        """Whether gradients flow through the model to something that it sees."""
        model, seen = self.innermost
        return bool(seen.any()) and model.differentiable(seen) is not None

    @cached_property
    def random(self) -> np.random.Generator:
        """A random stream that depends on the seed and the known features alone, not on who else is
        in the batch.
        """
        return np.random.default_rng([self.seed, *np.packbits(self.mask).tolist()])

    def predict(self, rows: Float32Array) -> Float64Array:
        """Probabilities (rows, classes) of rows of known features."""
        if not len(rows):
            return np.zeros((0, self.group.probabilities.shape[1]))
        if len(rows) <= ROWS:
            return self.predictor.predict_known(self.mask, rows)
        parts = np.array_split(rows, -(-len(rows) // ROWS))
        return np.concatenate([self.predictor.predict_known(self.mask, part) for part in parts])

    def is_recourse(self, case: IntArray, probabilities: Float64Array) -> BoolArray:
        """Whether these probabilities, (rows, classes) or (rows, candidates, classes), are recourse
        for these cases.
        """
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        decided = self.predictor.decide(flat).reshape(probabilities.shape[:-1])
        turned = self._turned(case, decided)
        return turned & self._likely(decided, probabilities) if self._least else turned

    @cached_property
    def single_recourse(self) -> BoolArray:
        """Which candidate values of the sweep are recourse by themselves, (cases, candidate
        values).
        """
        turned = self._turned(np.arange(len(self)), self.group.candidate_decisions)
        if not self._least:
            return turned
        return turned & self._likely(
            self.group.candidate_decisions, self.group.candidate_probabilities
        )

    @property
    def _least(self) -> float:
        """The probability that a plan must reach; only if above 0 are the candidates' probabilities
        needed.
        """
        return self.actions.rules.min_probability

    def _turned(self, case: IntArray, decided: IntArray) -> BoolArray:
        """Whether decisions differ from today's, and are the desired one."""
        own = self.group.decision[case].reshape(-1, *(1,) * (decided.ndim - 1))
        turned = np.asarray(decided != own)
        return turned if self.desired_class is None else turned & (decided == self.desired_class)

    def _likely(self, decided: IntArray, probabilities: Float64Array) -> BoolArray:
        """Whether what is decided is as probable as the rules ask."""
        return np.asarray(
            np.take_along_axis(probabilities, decided[..., None], axis=-1)[..., 0] >= self._least
        )

    def score(self, case: IntArray, probabilities: Float64Array) -> Float64Array:
        """The probability of the desired class, or of any but today's; (rows, ...) without the last
        axis.

        ``probabilities`` are (rows, classes) or (rows, candidates, classes), ``case`` (rows,).
        """
        if self.desired_class is not None:
            return np.asarray(probabilities[..., self.desired_class])
        own = self.group.decision[case].reshape(-1, *(1,) * (probabilities.ndim - 1))
        own = np.broadcast_to(own, (*probabilities.shape[:-1], 1))
        return np.asarray(1 - np.take_along_axis(probabilities, own, axis=-1)[..., 0])

    def apply(self, case: IntArray, to: Float32Array) -> Float32Array:
        """The facts of ``case`` (rows,) with the changes ``to``, and what follows from them, made.

        ``to`` (NaN: unchanged) and the result are (rows, known features).
        """
        return self.actions.consequences.apply(self.features, self.facts[case], to)[0]

    def is_sensible(self, case: IntArray, to: Float32Array) -> BoolArray:
        """Which change sets ``to`` (rows, known features) hold further along and lead where people
        are, (rows,).
        """
        return (
            np.ones(len(case), dtype=bool)
            if self.sense is None
            else self.sense.accepts(self, case, to)
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """Change sets that a searcher proposes.

    Parameters
    ----------
    case
        The case that each is for, (candidates,).
    to
        The new values, (candidates, known features); NaN: unchanged.
    donor
        The training row that the values come from, -1 if they are nobody's, (candidates,).
    probabilities
        What the model says after the changes, (candidates, classes); None if the searcher has not
        asked.
    """

    case: IntArray
    to: Float32Array
    donor: IntArray
    probabilities: Float64Array | None = None

    def __len__(self) -> int:
        return len(self.case)

    @classmethod
    def none(cls, problem: SearchProblem) -> "Candidates":
        """No candidates."""
        none = np.zeros(0, dtype=np.intp)
        empty = np.zeros((0, len(problem.features)), dtype=np.float32)
        return cls(none, empty, none, problem.predict(problem.facts[:0]))

    @classmethod
    def of(
        cls, case: IntArray, to: Float32Array, probabilities: Float64Array | None = None
    ) -> "Candidates":
        """Change sets that come from no training person."""
        return cls(case, to, np.full(len(case), -1, dtype=np.intp), probabilities)

    def take(self, rows: IntArray | BoolArray) -> "Candidates":
        """Some of them, by index or mask."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Candidates(self.case[rows], self.to[rows], self.donor[rows], probabilities)

    @classmethod
    def join(cls, *parts: "Candidates") -> "Candidates":
        """All parts in one; with probabilities only if all parts have them."""
        probabilities = [part.probabilities for part in parts if part.probabilities is not None]
        return cls(
            np.concatenate([part.case for part in parts]),
            np.concatenate([part.to for part in parts]),
            np.concatenate([part.donor for part in parts]),
            np.concatenate(probabilities) if len(probabilities) == len(parts) else None,
        )


class Searcher(BaseEstimator, ABC):  # type: ignore[misc]
    """Looks for plans among training people; scikit-learn's contract.

    ``__init__`` holds settings, each stored under its own name. ``fit(train)`` keeps what is learnt
    from training people in attributes that end in an underscore: ``train_``, ``rows_`` (training
    people, features), ``support_`` (their values), ``cache_`` (what is worked out once for a model
    and a set of known features), and whatever a subclass learns in ``_learn``. ``Nearest(train)``
    is short for ``Nearest().fit(train)``.

    A subclass proposes change sets in ``search``. ``find_recourse`` keeps those that the model
    confirms and the action set allows, and takes out changes that are not needed (unless
    ``minimal`` is false). A searcher whose candidates are confirmed and minimal already says so
    with ``finished``: then they are kept as they are, and the probabilities that come with them
    must be the model's (``edfa.testing.check_searcher`` asks it again). One with a stricter notion
    of a good plan says so in ``keeps``. ``uses_sweep`` asks for the sweep of single changes.

    Every searcher has two settings: ``holds_further``, whether a plan must hold as far again as it
    goes, and ``min_support``, how many training people must be where it leads (None: 30, or a
    hundredth of a small table; 0: no matter). Neither is asked in the paper's reading. Where plans
    are ranked by survival, those that survive in a share ``enough`` of cases are all as good.
    """

    holds_further: bool = True
    min_support: int | None = None

    enough: float = 1.0

    uses_sweep = False
    finished = False
    minimal = True

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The settings: the training people who may be passed to the constructor are none."""
        names: list[str] = super()._get_param_names()
        return [name for name in names if name != "train"]

    def _set_sense(self, holds_further: bool, min_support: int | None) -> None:
        """Store the two settings that all searchers have."""
        if min_support is not None and min_support < 0:
            raise SettingError(f"min_support: a number of people, 0 or more, not {min_support}")
        self.holds_further = holds_further
        self.min_support = min_support

    def fit(self, train: Table) -> Self:
        """Learn from training people."""
        if not len(train):
            raise DataError("a searcher looks among training people; there are none")
        self.train_ = train
        self.rows_: Float32Array = train.X
        self.cache_ = ModelCache()
        categorical = [j for j, feature in enumerate(train.schema) if feature.kind == "categorical"]
        self.support_ = Support.of(self.rows_, categorical, cache=self.cache_)
        self.crowd_ = Crowd(
            self.rows_, train.y == train.schema.classes.index(train.schema.favourable)
        )
        self._learn(train)
        return self

    def _learn(self, train: Table) -> None:
        """Learn what only this searcher needs."""

    def learnt_state(self) -> dict[str, Any]:
        """What was learnt, for fingerprints: everything follows from the settings and the training
        people.
        """
        self._check_fitted()
        return {"X": self.rows_, "y": self.train_.y, "schema": canonical(self.train_.schema)}

    def _check_fitted(self) -> None:
        if not hasattr(self, "train_"):
            raise UnfittedError(
                f"this {type(self).__name__} has seen no training people yet; call fit(train) first"
            )

    def action_set(
        self, rules: Rules | None, people: People, desired_class: int | None = None
    ) -> ActionSet:
        """What card and rules let these people change; cached, since the next person often
        has the same.

        ``desired_class`` is the code of the class that plans lead to; None: any other decision.
        """

        def make() -> ActionSet:
            return ActionSet.of(
                rules, people.background, self.rows_, self.support_, towards=desired_class
            )

        self._check_fitted()
        name = (
            "action set",
            (rules or NO_RULES).to_json(),
            people.background.card,
            desired_class,
        )
        return self.cache_.get(people.predictor, people.background.visible, name, make)

    def sense(self, actions: ActionSet) -> Sense | None:
        """What is asked of plans besides turning the decision; None in the paper's reading, or if
        nothing is.
        """
        if actions.rules.reading == "paper" or not (self.holds_further or self.min_support != 0):
            return None
        return Sense(self.crowd_, self.holds_further, self.min_support)

    @abstractmethod
    def search(self, problem: SearchProblem) -> Candidates:
        """Candidates for every case of the problem; a case may have none."""

    def keeps(
        self, problem: SearchProblem, case: IntArray, to: Float32Array, probabilities: Float64Array
    ) -> BoolArray:
        """Which change sets are good enough, (candidates,): those that are recourse, and sensible.

        ``case`` is (candidates,), ``to`` (candidates, known features), ``probabilities``
        (candidates, classes).
        """
        kept = problem.is_recourse(case, probabilities)
        rows = np.flatnonzero(kept)
        kept[rows] = problem.is_sensible(case[rows], to[rows])
        return kept

    def invalidation(self, problem: SearchProblem, candidates: Candidates) -> Float64Array | None:
        """The probability that each plan fails if its numbers are met only roughly, (candidates,);
        None: not asked.
        """
        return None

    def survival(
        self,
        problem: SearchProblem,
        candidates: Candidates,
        keys: tuple[Float64Array | IntArray, ...] | None,
    ) -> Survival | None:
        """The probability that each plan holds when everything is known; None: not asked.

        ``keys`` (candidates,) rank the candidates, by the last key first, as ``np.lexsort`` does:
        then a plan that cannot survive better than an earlier one may be left NaN. Without keys
        every plan is asked about.
        """
        return None

    def completions(self, problem: SearchProblem) -> Completions:
        """What completes people where a user model is asked about them."""
        return Completions(problem.background.neighbours)

    def decided_shares(self, problem: SearchProblem) -> Float64Array | None:
        """The share of completions in which a user model decides for the desired
        class, (cases,).

        None for other models, where all that it uses is known, and where any other decision is
        recourse.
        """
        by_completions = problem.predictor.decides_by_completions(problem.mask)
        if problem.desired_class is None or not by_completions:
            return None
        return self.completions(problem).decided_share(problem.cases, problem.desired_class)

    def look_again(self, problem: SearchProblem, candidates: Candidates) -> Survival | None:
        """The survival of plans once they are chosen, estimated anew; None: that of the search
        stands.

        A searcher that does not ask about survival asks a user model here: it has seen
        what stands for it.
        """
        if problem.predictor.refits:
            return None
        return self.completions(problem).survival(self._planned(problem, candidates))

    def _planned(self, problem: SearchProblem, candidates: Candidates) -> PlannedChanges:
        """Candidates as changes of the people that are the problem's cases."""
        follows, to = problem.actions.consequences, candidates.to
        return PlannedChanges(
            problem.cases, candidates.case, to, problem.desired_class, follows, problem.features
        )
