"""EDFA (Algorithm 1): open the unit that unlocks most per cost, its parent or child first, then its spouses."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from edfa.acquisition.base import Policy, choose
from edfa.acquisition.information import Name, information
from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.errors import UnknownNameError
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.recourse.searcher import Searcher
from edfa.typing import BoolArray, Float64Array, IntArray

__all__ = ["EDFA"]


class _Units(NamedTuple):
    """Heads in the order of the schema; which features belong to the unit of each (units, features)."""

    heads: IntArray
    members: BoolArray


@dataclass(eq=False, repr=False)
class EDFA(Policy):
    """Explanation-driven acquisition: ask for what opens most recourse per unit of cost.

    Parameters
    ----------
    blanket
        The units: each parent or child of the outcome with the spouses behind it.
    pc_first
        Whether a unit's parent or child comes before its spouses, which it unlocks (Proposition 2).
    rank
        Spouses by ``"information"`` per cost (line 16), or by ``"cost"`` alone.
    sampler
        Where the likely values of an unknown spouse come from: ``"knn"`` (similar training people), ``"bins"`` (a small
        network), ``"exact"`` (a BayesNet in use), or a sampler.
    model
        Another predictor to estimate information with.
    aligned
        Whether the model is shown the blanket alone, so that what is outside it cannot matter.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> policy = EDFA(edfa.Blanket("class", {"checking_status": (), "duration": ("credit_amount",)}))
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)

    The credit amount is known from the start, so its unit is begun and is completed first:

    >>> edfa.acquire(table.test, policy, model, budget=0.9).order(0)
    ('duration', 'checking_status')
    """

    blanket: Blanket
    pc_first: bool = True
    rank: Literal["information", "cost"] = "information"
    sampler: Sampler | Name = "knn"
    model: Predictor | None = None
    aligned: bool = True

    @classmethod
    def default(cls, blanket: Blanket, searcher: Searcher, desired_class: int) -> Self:
        """EDFA on the advisor's blanket."""
        return cls(blanket)

    def __post_init__(self) -> None:
        if self.rank not in ("information", "cost"):
            raise UnknownNameError("rank", self.rank, ("information", "cost"))

    def score(self, people: People) -> Float64Array:
        """Lines 5 to 17 for everybody at once."""
        heads, members = self._units(people.schema)
        if not len(heads):
            return np.full(people.X.shape, np.nan)
        unit = self._unit(people, heads, members)
        asked = members[unit] & people.askable & (unit >= 0)[:, None]
        is_head = np.arange(asked.shape[1]) == heads[unit][:, None]
        if self.pc_first:
            asked &= is_head | ~(asked & is_head).any(axis=1, keepdims=True)
        if self.rank == "cost":
            return np.where(asked, 1.0, np.nan)
        # One candidate needs no comparison and no model call: a head tells how many features it opens.
        scores = np.where(asked, np.where(is_head, members.sum(axis=1)[unit][:, None], 1.0), np.nan)
        if (several := asked.sum(axis=1) > 1).any():
            told = information(people, asked & several[:, None], self.sampler, self.model)
            scores = np.where(several[:, None], told, scores)
        return scores

    def _unit(self, people: People, heads: IntArray, members: BoolArray) -> IntArray:
        """U*: a unit that is begun, else the one with the largest r(U); -1 where none has anything to ask."""
        # DEVIATION: line 6 does not say which of several begun units; by r(U) too, then the cheaper, then the schema.
        begun = (people.known @ members.T.astype(float)) > 0
        askable = (people.askable @ members.T.astype(float)) > 0
        eligible = askable & (begun | ~(begun & askable).any(axis=1, keepdims=True))
        # DEVIATION: Algorithm 1 knows no refusals. A unit whose head was declined unlocks nothing: it comes last.
        dead = ~people.askable[:, heads] & ~people.known[:, heads]
        unlocked = np.where(dead, 0.0, members.sum(axis=1))
        return choose(np.where(eligible, unlocked, np.nan), people.costs[:, heads])

    def _units(self, schema: Schema) -> _Units:
        # DEVIATION: a member behind no child, which the paper does not foresee, is a unit of its own.
        units = dict(self.blanket.units) | dict.fromkeys(self.blanket.unattached, ())
        ordered = sorted((schema.index(head), behind) for head, behind in units.items())
        members = np.zeros((len(ordered), len(schema)), dtype=bool)
        for row, (head, behind) in enumerate(ordered):
            members[row, [head, *(schema.index(name) for name in behind)]] = True
        return _Units(np.array([head for head, _ in ordered], dtype=np.intp), members)
