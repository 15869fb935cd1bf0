"""Donors against a plain loop: the distance is HEOM, and of equal ones the first is taken, whatever
the batch.
"""

import numpy as np
import pytest
from discrete import world

from edfa.explanation.necessity import Support, sweep
from edfa.people import Background, People
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searcher import SearchProblem
from edfa.recourse.searchers.nearest import Donors, Side


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_the_nearest_are_those_of_a_loop(metric):
    train, model = world(["categorical", "ordinal", "ordinal", "categorical"], [3, 5, 4, 2], seed=2)
    rows = train.X[::9].copy()
    rows[:, 2] = np.nan
    people = People(rows, Background.of(train, model))
    actions = ActionSet.of(None, people.background, train.X, Support.of(train.X))
    group = sweep(rows, model, actions.support, actions.free & False).groups[0]
    problem = SearchProblem(group, actions, people.background, None)
    donors = Donors(train.X, actions.ordered, actions.support, metric)
    every_second = np.arange(1, len(train), 2)
    side, case = Side(every_second), np.arange(len(problem))
    nearest = donors.nearest(problem, case, side, 7)
    for i in case:
        own = dict(zip(problem.features, problem.facts[i], strict=True))
        gaps = []
        for d in every_second:
            parts = [
                abs(own[j] - train.X[d, j]) / np.ptp(train.X[:, j])
                if actions.ordered[j]
                else float(own[j] != train.X[d, j])
                for j in problem.features
            ]
            gaps.append(round(sum(p**2 for p in parts) if metric == "euclidean" else sum(parts), 6))
        truth = sorted(range(len(every_second)), key=lambda d, gaps=gaps: (gaps[d], d))[:7]
        assert nearest[i].tolist() == every_second[truth].tolist()
        assert np.array_equal(donors.nearest(problem, case[[i]], side, 7)[0], nearest[i])
    seen = np.where(problem.mask, train.X, np.float32(np.nan))
    assert np.array_equal(model.predict(seen), donors.decisions(problem))
    assert donors.nearest(problem, case, Side(every_second[:0]), 5).shape == (len(case), 0)
