"""What a policy is asked, and what it answers: people who know some things, and a score for each thing to ask next."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.explanation.support import Support
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import LIMIT, Neighbours, Sampler
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Background", "Policy", "State", "choose"]


@dataclass(frozen=True, eq=False)
class Background:
    """What stays the same while people are asked: the features, the model, and the people it was trained on."""

    schema: Schema
    predictor: Predictor
    rows: Float32Array

    @cached_property
    def support(self) -> Support:
        """Which values training people have."""
        return Support.of(self.rows)

    @cached_property
    def neighbours(self) -> Neighbours:
        """What the unknown is likely to be, from similar training people."""
        words = [i for i, f in enumerate(self.schema) if f.kind == "categorical"]
        return Neighbours.of(self.rows, words)

    @cached_property
    def bins(self) -> Sampler:
        """The same from a small network, trained when first asked for."""
        from edfa.predictors.bins import Bins  # torch is slow to load, and most runs do without

        return Bins.of(self.rows[np.random.default_rng(0).permutation(len(self.rows))[:LIMIT]])


@dataclass(frozen=True, eq=False)
class State:
    """A batch of people in the middle of being asked.

    ``X`` holds what is known, NaN elsewhere: a policy cannot see more. ``open`` says what may be asked of whom: not
    known yet, not forbidden, not declined. ``costs`` are each person's prices, ``person`` who they are.
    """

    background: Background
    X: Float32Array
    open: BoolArray
    costs: Float64Array
    person: Int64Array
    seed: int = 0

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def known(self) -> BoolArray:
        """What is known of whom."""
        return ~np.isnan(self.X)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema


class Policy(ABC):
    """Which feature to ask next, for a batch of people at once.

    A subclass gives ``score``. With ``per_cost`` the loop divides scores by each person's prices. A policy with a
    ``blanket`` asks only for its members; ``aligned`` says that the model is shown nothing else either.
    """

    blanket: Blanket | None = None
    aligned: bool = False
    per_cost: bool = True

    @abstractmethod
    def score(self, state: State) -> Float64Array:
        """What each open feature is worth (people, features), before its price; NaN: it is not to be asked now."""

    def next(self, state: State) -> IntArray:
        """The feature to ask each person, or -1: nothing more."""
        return choose(self.score(state), state.costs, self.per_cost)


def choose(scores: Float64Array, costs: Float64Array, per_cost: bool = True) -> IntArray:
    """The column of the best score in each row, by price; among equals the cheapest, then the first. -1: all NaN.

    >>> choose(np.array([[2.0, 1.0, np.nan], [np.nan, np.nan, np.nan]]), np.array([[2.0, 1.0, 1.0]] * 2))
    array([ 1, -1])
    """
    asked = ~np.isnan(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(costs > 0, scores / costs, np.where(scores > 0, np.inf, scores)) if per_cost else scores
    worth = np.where(asked, worth, -np.inf)
    tied = asked & (worth == worth.max(axis=1, keepdims=True, initial=-np.inf))
    best = np.where(tied, costs, np.inf).argmin(axis=1)
    return np.where(asked.any(axis=1), best, -1)
