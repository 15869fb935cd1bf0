"""DiCE: draws are those of training people and independent, evolution improves, gradients lead
apart.
"""

import numpy as np
import pytest

from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.explanation.necessity import Support, sweep
from edfa.people import Background, People
from edfa.recourse import DiCE, Rules, find_recourse
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searcher import SearchProblem
from edfa.recourse.searchers.dice import Draws, _duplicates, draw_values


def problem_of(table, model, rows, **rules):
    people = People(rows, Background.of(table.train, model))
    actions = ActionSet.of(
        Rules(**rules), people.background, table.train.X, Support.of(table.train.X)
    )
    group = sweep(rows, model, actions.support, actions.free & False).groups[0]
    return SearchProblem(group, actions, people.background, None)


def test_draws_are_as_frequent_as_among_training_people(german):
    table, model = german
    problem = problem_of(table, model, table.test.X[:3])
    for name in ("purpose", "duration", "employment"):
        j = table.schema.index(name)
        drawn = draw_values(problem, j, np.arange(3), (np.arange(20_000) + 0.5) / 20_000)
        for case in range(3):
            own = problem.facts[case, j]
            values = problem.actions.values[j]
            values = values[values > own] if table.schema[name].change == "up" else values
            shares = np.array([(table.train.X[:, j] == v).mean() for v in values])
            frequency = np.array([(drawn[case] == v).mean() for v in values])
            if not len(values):
                assert np.isnan(drawn[case]).all()
                continue
            assert np.allclose(
                frequency[values != own], (shares / shares.sum())[values != own], atol=1e-3
            )
            assert np.isnan(drawn[case]).mean() == pytest.approx(
                (shares / shares.sum())[values == own].sum(), abs=1e-3
            )


def test_draws_of_different_features_are_independent_under_a_seed(german):
    table, model = german
    draws = Draws.of(problem_of(table, model, table.test.X[:1]), 4096)
    correlation = np.corrcoef(draws.uniform.T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.08
    assert (np.sort(draws.order, axis=1) == np.arange(draws.order.shape[1])).all()


def test_each_round_changes_one_more_feature(german):
    table, model = german
    draws = Draws.of(problem_of(table, model, table.test.X[:2], reading="paper"), 512)
    for size in (1, 2, 3):
        candidates = draws.candidates(np.arange(2), size)
        count = (~np.isnan(candidates.to)).sum(axis=1)
        assert count.max() == size  # fewer where one's own value was drawn
        assert count.mean() > 0.5 * size


def test_the_seed_matters_and_nothing_else(german):
    table, model = german
    people = People(table.test.X[:20], Background.of(table.train, model))
    one, same, other = (find_recourse(people, DiCE(table.train), seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.to, same.to, equal_nan=True)
    assert one.to.shape != other.to.shape or not np.array_equal(one.to, other.to, equal_nan=True)


def test_evolution_improves(german):
    table, model = german
    people = People(table.test.X[:30], Background.of(table.train, model))

    def fitness(generations):
        plans = find_recourse(
            people,
            DiCE(table.train, "genetic", generations=generations),
            rules=Rules(reading="paper"),
        )
        assert plans.legal.mean() > 0.9
        return (0.2 * plans.heom + 0.2 * plans.l0 / 17)[plans.first[plans.legal]].mean(), plans

    assert fitness(30)[0] < 0.8 * fitness(1)[0]


def test_equal_individuals_count_once():
    population = np.array(
        [[[1, np.nan], [2, 3], [1, np.nan], [1, 0]], [[2, 3], [2, 3], [2, 3], [np.nan, np.nan]]],
        np.float32,
    )
    duplicates = _duplicates(population)
    assert duplicates.sum(axis=1).tolist() == [1, 2]
    assert not duplicates[0, [1, 3]].any()
    assert not duplicates[1, 3]


def test_the_gradient_finds_different_plans(german, network):
    table, _ = german
    people = People(table.test.X[:30], Background.of(table.train, network))
    plans = find_recourse(
        people,
        DiCE(table.train, "gradient", plans=3, steps=60),
        rules=Rules(reading="paper"),
    )
    assert (network.predict(plans.rows()) != plans.decision[plans.of]).all()
    assert plans.legal.mean() > 0.8
    assert plans.count.max() == 3
    numbers = [j for j, f in enumerate(table.schema) if f.kind == "continuous"]
    assert (~np.isnan(plans.to[:, numbers])).any(axis=1).mean() > 0.3


def test_what_cannot_be_asked_for(german):
    table, model = german
    people = People(table.test.X[:2], Background.of(table.train, model))
    with pytest.raises(DataError, match="SubsetXGB has no gradient"):
        find_recourse(people, DiCE(table.train, "gradient"))
    with pytest.raises(UnknownNameError, match="did you mean 'genetic'"):
        DiCE(table.train, "gentic")
    with pytest.raises(SettingError):
        DiCE(table.train, plans=0)
    with pytest.raises(DataError, match="there are none"):
        DiCE(Empty())


class Empty:
    def __len__(self):
        return 0
