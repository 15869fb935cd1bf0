"""Outlook: how partly known people will stand once everything is known, judged by the training
people who are like them.

Each training person who completes others has been looked at with everything known: are they
granted, refused with a plan, or refused without one, and how much effort does their plan take? That
is worked out once, by one search over all of them (``Outlook.of``).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from edfa.data.rules import Rules
from edfa.people import Background, People
from edfa.predictors.conditional import Neighbours
from edfa.recourse.find import find_recourse
from edfa.recourse.searcher import Searcher
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array


@dataclass(frozen=True, eq=False)
class Outlook:
    """How the training people who complete others stand when everything is known.

    Parameters
    ----------
    neighbours
        The training people.
    stuck
        Who of them is refused and has no plan, (training people,).
    effort
        The effort of each one's first plan, (training people,); 0 for who has none.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> searcher = edfa.SurvivalSearch(table.train)
    >>> background = edfa.Background.of(table.train, model, support=searcher.support_)
    >>> everything = np.ones(len(table.schema), dtype=bool)
    >>> near = searcher.completions_.neighbours
    >>> outlook = Outlook.of(near, searcher, background, everything, None, 1)
    >>> outlook.no_way(table.test.X[:20]).shape
    (20,)
    """

    neighbours: Neighbours
    stuck: BoolArray
    effort: Float64Array

    @classmethod
    def of(
        cls,
        neighbours: Neighbours,
        searcher: Searcher,
        background: Background,
        asked: BoolArray,
        rules: Rules | None,
        desired_class: int,
    ) -> Self:
        """Look for the plans of all training people with everything known.

        Parameters
        ----------
        neighbours
            The training people.
        searcher
            Where plans come from, fitted.
        background
            The model and the card.
        asked
            What may become known of anybody, (features,).
        rules
            What plans may change; None: what the card allows.
        desired_class
            The code of the class that plans lead to.
        """
        people = People(np.where(asked, neighbours.rows, NAN), background)
        plans = find_recourse(people, searcher, rules=rules, desired_class=desired_class)
        effort = np.zeros(len(people))
        effort[plans.legal] = plans.effort[plans.first[plans.legal]]
        stuck = (plans.decision != desired_class) & ~plans.legal
        return cls(neighbours, np.asarray(stuck), effort)

    def no_way(self, X: Float32Array) -> Float64Array:  # noqa: N803
        """The share of the training people nearest to each partly known person X (people, features)
        who are refused and have no plan when everything is known, (people,).
        """
        return np.asarray(self.stuck[self.neighbours.nearest(X)].mean(axis=1))
