"""EDFA (Algorithm 1): begin the unit that unlocks most per cost, its parent or child first, then
its spouses.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edfa.acquisition.base import choose
from edfa.acquisition.information import InformationPolicy, SamplerName
from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.errors import check_known
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.typing import BoolArray, Float64Array, IntArray


@dataclass(eq=False, repr=False)
class EDFA(InformationPolicy):
    """Explanation-driven acquisition: ask for what unlocks most recourse per unit of cost.

    Parameters
    ----------
    blanket
        The units: each parent or child of the outcome (the head) with the spouses behind it.
    pc_first
        Whether a unit's head is asked before its spouses, which it unlocks (Proposition 2).
    rank
        What spouses are ranked by: ``"information"`` per cost (line 16), or ``"cost"`` alone.
    sampler
        Where the likely values of an unknown spouse come from, to estimate I(Y; X_i | x_A) with:
        ``"knn"`` (the nearest training people), ``"bins"`` (a small network), ``"exact"`` (the
        model itself, a BayesNet), or a sampler.
    model
        A predictor to estimate information with, instead of the one that decides.
    aligned
        Whether the model is shown the blanket alone, so that what is outside it cannot matter.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> policy = EDFA(edfa.Blanket("class", {"checking_status": (),
    ...     "duration": ("credit_amount",)}))
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)

    The credit amount is known from the start, so its unit is begun and is completed first:

    >>> edfa.acquire(table.test, policy, model, budget=0.9).order(0)
    ('duration', 'checking_status')
    """

    blanket: Blanket = field()  # required, whatever the default of all policies
    pc_first: bool = True
    rank: Literal["information", "cost"] = "information"
    sampler: Sampler | SamplerName = "knn"
    model: Predictor | None = None
    aligned: bool = True
    takes = ("blanket",)

    def __post_init__(self) -> None:
        check_known("rank", self.rank, ("information", "cost"))

    def score(self, people: People) -> Float64Array:
        """Lines 5 to 17 for everybody at once: scores (people, features) of the candidates in each
        person's unit.
        """
        heads, members = self._units(people.schema)
        if not len(heads):
            return np.full(people.X.shape, np.nan)
        unit = self._choose_unit(people, heads, members)  # lines 5 to 12
        candidates = members[unit] & people.askable & (unit >= 0)[:, None]
        is_head = np.arange(candidates.shape[1]) == heads[unit][:, None]
        if self.pc_first:  # lines 13 to 14: nothing but the head while that can be asked
            candidates &= is_head | ~(candidates & is_head).any(axis=1, keepdims=True)
        if self.rank == "cost":
            return np.where(candidates, 1.0, np.nan)
        # A single candidate needs no comparison and no model call: a head scores the number of
        # features in its unit.
        scores = np.where(
            candidates, np.where(is_head, members.sum(axis=1)[unit][:, None], 1.0), np.nan
        )
        if (several := candidates.sum(axis=1) > 1).any():  # line 16
            information = self._information(people, candidates & several[:, None])
            scores = np.where(several[:, None], information, scores)
        return scores

    def _choose_unit(self, people: People, heads: IntArray, members: BoolArray) -> IntArray:
        """U*, (people,): a unit that is begun, else the one with the largest r(U); -1 if no unit
        can be asked about.
        """
        # DEVIATION: line 6 does not say which of several begun units; by r(U) too, then the
        # cheaper, then the schema.
        begun = (people.known @ members.T.astype(float)) > 0
        askable = (people.askable @ members.T.astype(float)) > 0
        eligible = askable & (begun | ~(begun & askable).any(axis=1, keepdims=True))
        # DEVIATION: Algorithm 1 knows no refusals. A unit whose head was declined unlocks nothing:
        # it comes last.
        head_refused = ~people.askable[:, heads] & ~people.known[:, heads]
        n_unlocked = np.where(head_refused, 0.0, members.sum(axis=1))
        return choose(np.where(eligible, n_unlocked, np.nan), people.costs[:, heads])

    def _units(self, schema: Schema) -> tuple[IntArray, BoolArray]:
        """The units in schema order: the index of each head, (units,), and who belongs, (units,
        features).
        """
        # DEVIATION: a member behind no child, which the paper does not foresee, is a unit of its
        # own.
        units = dict(self.blanket.units) | dict.fromkeys(self.blanket.unattached, ())
        ordered = sorted((schema.index(head), spouses) for head, spouses in units.items())
        members = np.zeros((len(ordered), len(schema)), dtype=bool)
        for row, (head, spouses) in enumerate(ordered):
            members[row, [head, *(schema.index(name) for name in spouses)]] = True
        return np.array([head for head, _ in ordered], dtype=np.intp), members
