"""Plans to choose from: different ways, the easiest right after the first, none farther than
needed.
"""

import numpy as np
import pytest

import edfa
from edfa.people import Background, People
from edfa.recourse import SurvivalSearch, find_recourse
from edfa.recourse.find import LASTS


class Watched(SurvivalSearch):
    """Remembers what it was asked and what it proposed."""

    def search(self, problem):
        self.problem, self.candidates = problem, super().search(problem)
        return self.candidates


@pytest.fixture(scope="module")
def menus():
    """Of people one at a time: the searcher and what it has seen, and up to four plans."""
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=40).fit(table.train.X, table.train.y)
    rows = table.test.X[model.predict(table.test.X) == 0][:40].copy()
    rows[:, 12:] = np.nan
    searcher, background = Watched(table.train), Background.of(table.train, model)
    found = []
    for row in rows:
        plans = find_recourse(People(row[None], background), searcher, desired_class=1, k=4)
        if len(plans) > 1:
            found.append((plans, searcher.problem, searcher.candidates))
    assert len(found) > 10
    return searcher, found


def test_after_the_first_the_easiest_comes_first(menus):
    for plans, *_ in menus[1]:
        effort = np.round(plans.effort[1:], 9)
        assert (np.diff(effort) >= 0).all()
        assert plans.survival[0] >= plans.survival.max() - 0.02 - 1e-9, "the first lasts the best"
        assert (plans.survival >= min(LASTS, plans.survival[0]) - 1e-9).all()


def test_no_two_go_the_same_way(menus):
    """Neither the same features the same way, nor all that an earlier plan changes and more."""
    for plans, *_ in menus[1]:
        ways = np.nan_to_num(np.sign(plans.to - plans.people.X[plans.of]))
        categorical = plans.people.schema.categorical & ~np.isnan(plans.to)
        ways[categorical] = plans.to[categorical] + 2
        for i in range(len(plans)):
            for earlier in range(i):
                shared = ways[earlier] != 0
                assert (ways[i] != ways[earlier])[shared].any()


def test_another_way_goes_no_farther_than_it_has_to(menus):
    """The easiest of the same changes is offered, if it lasts; otherwise the one that brings the
    model farthest.
    """
    searcher, found = menus
    easiest = farther = 0
    for plans, problem, candidates in found:
        size = problem.lengths(candidates.case, candidates.to)
        survival = searcher.survival(problem, candidates, None).probability
        score = problem.score(candidates.case, candidates.probabilities)
        for i in range(1, len(plans)):
            mine = np.isnan(plans.to[i, problem.features])
            same = np.flatnonzero((np.isnan(candidates.to) == mine).all(axis=1))
            least = same[np.lexsort([key[same] for key in size.keys])[0]]
            if survival[least] >= min(LASTS, plans.survival[0]):
                assert np.array_equal(
                    candidates.to[least], plans.to[i, problem.features], equal_nan=True
                )
                easiest += 1
            else:
                assert score[same].max() == pytest.approx(plans.probability_after[i], abs=1e-6)
                farther += 1
    assert easiest > 5
    assert farther
