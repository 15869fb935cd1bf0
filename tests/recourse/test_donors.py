"""Donors against a plain loop: the distance is HEOM, and of equal ones the first is taken, whatever the batch."""

import numpy as np
import pytest
from discrete import world

from edfa.explanation.necessity import sweep
from edfa.people import Background, People
from edfa.predictors.cache import ModelCache
from edfa.recourse._search.donors import Donors, Side
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searcher import SearchProblem


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_the_nearest_are_those_of_a_loop(metric):
    train, model = world(["categorical", "ordinal", "ordinal", "categorical"], [3, 5, 4, 2], seed=2)
    rows = train.X[::9].copy()
    rows[:, 2] = np.nan
    people = People(rows, Background.of(train, model))
    actions = ActionSet.of(None, people.background, train.X)
    group = sweep(rows, model, actions.support, actions.free & False).groups[0]
    problem = SearchProblem(group, actions, people.background, None)
    pool = Donors(train.X, actions.ordered, ModelCache(), metric)
    donors = np.arange(1, len(train), 2)
    side, case = Side(donors), np.arange(len(problem))
    found = pool.nearest(problem, case, side, 7)
    for i in case:
        own = dict(zip(problem.features, problem.facts[i], strict=True))
        gaps = []
        for d in donors:
            parts = [
                abs(own[j] - train.X[d, j]) / np.ptp(train.X[:, j])
                if actions.ordered[j]
                else float(own[j] != train.X[d, j])
                for j in problem.features
            ]
            gaps.append(round(sum(p**2 for p in parts) if metric == "euclidean" else sum(parts), 6))
        truth = sorted(range(len(donors)), key=lambda d, gaps=gaps: (gaps[d], d))[:7]
        assert found[i].tolist() == donors[truth].tolist()
        assert np.array_equal(pool.nearest(problem, case[[i]], side, 7)[0], found[i])
    decided = pool.decided(problem)
    seen = np.where(problem.mask, train.X, np.float32(np.nan))
    assert np.array_equal(model.predict(seen), decided)
    assert pool.nearest(problem, case, Side(donors[:0]), 5).shape == (len(case), 0)
