"""Outlook: how partly known people will stand once everything is known.

``Outlook`` judges by the training people who are like them: which of them are refused and have no
plan when everything is known? That is worked out once, by one search over all of them
(``Outlook.of``). ``effort_when_complete`` looks at the people themselves: it fills in what is not
known of them, and searches for the plans that they would have then.
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

COMPLETIONS = 8  # of each person, that are searched for plans


@dataclass(frozen=True, eq=False)
class Outlook:
    """How the training people who complete others stand when everything is known.

    Parameters
    ----------
    neighbours
        The training people.
    stuck
        Who of them is refused and has no plan, (training people,).

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
        return cls(neighbours, np.asarray((plans.decision != desired_class) & ~plans.legal))

    def no_way(self, X: Float32Array) -> Float64Array:  # noqa: N803
        """The share of the training people nearest to each partly known person X (people, features)
        who are refused and have no plan when everything is known, (people,).
        """
        return np.asarray(self.stuck[self.neighbours.nearest(X)].mean(axis=1))


def effort_when_complete(
    people: People,
    neighbours: Neighbours,
    searcher: Searcher,
    asked: BoolArray,
    rules: Rules | None,
    desired_class: int,
) -> Float64Array:
    """The effort of each person's first plan in some of their completions.

    Parameters
    ----------
    people
        Partly known people, with their limits.
    neighbours
        The training people who complete them.
    searcher, asked, rules, desired_class
        As for ``Outlook.of``.

    Returns
    -------
    numpy.ndarray
        (people, completions): 0 where the person is granted without a plan, infinite where they are
        refused and have none.
    """
    near = neighbours.nearest(people.X)
    near = near[:, :: max(near.shape[1] // COMPLETIONS, 1)]
    X = people.X[:, None, :]  # noqa: N806
    rows = np.where(np.isnan(X), neighbours.rows[near], X).reshape(-1, X.shape[2])
    completed = People(np.where(asked, rows, NAN), people.background, overlay=people.overlay)
    plans = find_recourse(completed, searcher, rules=rules, desired_class=desired_class)
    effort = np.where(plans.decision == desired_class, 0.0, np.inf)
    effort[plans.legal] = plans.effort[plans.first[plans.legal]]
    return effort.reshape(near.shape)
