import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import Cube, random_mechanisms, random_network

from edfa.data.synthetic import credit_story
from edfa.errors import DataError, FactError, SettingError


def enumerate_posterior(network, row):
    """P(target | row) by summing the joint over every configuration of every node."""
    sizes = {n: len(network.levels[n]) for n in network.graph.nodes}
    known = dict(zip(network.features, row, strict=True))
    totals = np.zeros(sizes[network.target])
    for codes in itertools.product(*(range(s) for s in sizes.values())):
        world = dict(zip(sizes, codes, strict=True))
        if any(not np.isnan(v) and world[n] != v for n, v in known.items()):
            continue
        probability = 1.0
        for node, table in network.tables.items():
            probability *= table[tuple(world[p] for p in network.graph.parents[node])][world[node]]
        totals[world[network.target]] += probability
    return totals / totals.sum()


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_posteriors_are_those_of_enumeration(seed):
    network = random_network(6, seed=seed)
    random = np.random.default_rng(seed)
    rows = network.codes(network.sample(5, seed=seed))
    rows[random.random(rows.shape) < 0.5] = np.nan
    expected = np.stack([enumerate_posterior(network, row) for row in rows])
    np.testing.assert_allclose(network.posterior(rows), expected, atol=1e-12)


def test_samples_follow_the_posterior():
    network = random_network(10, seed=4)
    table = network.table(20_000)
    probabilities = network.posterior(network.codes(table.frame))[:, 1]
    # calibrated: among people with a probability of p, a share p has the outcome
    for low in np.arange(0, 1, 0.1):
        inside = (probabilities >= low) & (probabilities < low + 0.1)
        if inside.sum() > 50:
            spread = (
                np.sqrt((probabilities[inside] * (1 - probabilities[inside])).sum()) / inside.sum()
            )
            assert abs(table.y[inside].mean() - probabilities[inside].mean()) < 4.5 * spread + 1e-9


def test_only_the_blanket_matters():
    network = random_network(12, seed=7)
    blanket = network.graph.blanket(network.target)
    table = network.table(300)
    rows = network.codes(table.frame)
    np.testing.assert_array_equal(rows, table.X)
    outside = [i for i, f in enumerate(network.features) if f not in blanket]
    assert outside
    assert blanket
    less = rows.copy()
    less[:, outside] = np.nan
    np.testing.assert_allclose(network.posterior(rows), network.posterior(less), atol=1e-12)


def test_the_spouse_wakes_up_when_its_child_is_known():
    """Proposition 1 on the credit story, exactly."""
    story = credit_story()
    position = {name: i for i, name in enumerate(story.features)}

    def probability(**facts):
        row = np.full((1, len(position)), np.nan)
        for name, value in facts.items():
            row[0, position[name]] = value
        return story.posterior(row)[0, 1]

    assert story.graph.units("repays") == {"savings": (), "late_payment": ("wage_came_late",)}
    for savings in (0, 1):
        before = [probability(savings=savings, wage_came_late=w) for w in (0, 1)]
        assert before[0] == pytest.approx(before[1], abs=1e-15)
    after = [probability(savings=1, late_payment=1, wage_came_late=w) for w in (0, 1)]
    assert after[0] < 0.5 < after[1], (
        "a late wage explains the late payment, and turns the decision"
    )
    assert probability(savings=1, employment=0) == pytest.approx(
        probability(savings=1, employment=1)
    )
    assert probability(telephone=0) == pytest.approx(probability(telephone=1))


def test_any_node_can_be_asked_for():
    story = credit_story()
    late = story.posterior(np.full((1, 5), np.nan), target="late_payment")[0]
    assert late[1] == pytest.approx(
        story.sample(200_000)["late_payment"].eq("yes").mean(), abs=0.005
    )


def test_networks_are_the_same_for_the_same_seed():
    one, again, other = (random_network(9, seed=s).sample(50) for s in (3, 3, 4))
    assert one.equals(again)
    assert not one.equals(other)


def test_wrong_evidence_is_refused():
    story = credit_story()
    with pytest.raises(DataError, match="a matrix of 5 columns is needed"):
        story.posterior(np.zeros((1, 6)))
    with pytest.raises(FactError, match="employment: 7 is no level of 2"):
        story.posterior(np.array([[7, 0, 0, 0, 0]]))
    with pytest.raises(SettingError, match="the table of 'savings' must be probabilities"):
        type(story)(
            story.graph, story.levels, {**story.tables, "savings": np.ones((2, 2))}, "repays"
        )


@pytest.mark.parametrize("interactions", [0.0, 1.0])
def test_mechanisms_give_mixed_tables_with_calibrated_posteriors(interactions):
    world = random_mechanisms(12, seed=5, interactions=interactions, max_levels=3)
    frame = world.sample(20_000)
    kinds = [f.kind for f in world.schema()]
    assert kinds.count("continuous") == 6
    assert kinds.count("categorical") == 5
    probabilities = world.posterior(frame)
    classes = world.schema().classes
    for code, label in enumerate(classes):
        p, hit = probabilities[:, code], (frame[world.target] == label).to_numpy()
        for low in np.arange(0, 1, 0.1):
            inside = (p >= low) & (p < low + 0.1)
            if inside.sum() > 50:
                spread = np.sqrt((p[inside] * (1 - p[inside])).sum()) / inside.sum()
                assert abs(hit[inside].mean() - p[inside].mean()) < 4.5 * spread + 1e-9
    # and the posterior is worth more than the prior: the blanket does inform
    prior = frame[world.target].value_counts(normalize=True).max()
    assert (
        probabilities.argmax(axis=1)
        == frame[world.target].map({c: i for i, c in enumerate(classes)})
    ).mean() > prior


def test_a_mechanisms_posterior_needs_the_blanket_and_reads_nothing_else():
    world = random_mechanisms(10, seed=2)
    frame = world.sample(100)
    blanket = world.graph.blanket(world.target)
    np.testing.assert_array_equal(world.posterior(frame), world.posterior(frame[list(blanket)]))
    with pytest.raises(DataError, match=f"needs the whole blanket; '{blanket[0]}'"):
        world.posterior(frame.drop(columns=blanket[0]))
    table = world.table(200)
    assert set(table.schema.names) == set(world.features)


def test_a_mechanisms_target_is_categorical():
    world = random_mechanisms(10, seed=2)
    numbers = next(f.name for f in world.schema() if f.kind == "continuous")
    with pytest.raises(SettingError, match="the target must be categorical"):
        random_mechanisms(10, seed=2, target=numbers)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (random_network, {"nodes": 1}, "at least one feature, not 1 nodes"),
        (random_network, {"max_levels": 1}, "max_levels is between 2 and 16, not 1"),
        (random_network, {"max_levels": 17}, "max_levels is between 2 and 16, not 17"),
        (random_network, {"max_parents": -1}, "max_parents is zero or more, not -1"),
        (random_network, {"strength": 0.0}, "strength is a number above 0"),
        (random_mechanisms, {"nodes": 0}, "at least one feature, not 0 nodes"),
        (random_mechanisms, {"max_levels": 40}, "max_levels is between 2 and 16, not 40"),
        (random_mechanisms, {"interactions": 1.5}, "interactions is a share between 0 and 1"),
        (Cube, {"sigma": 0.0}, "sigma is a standard deviation above 0"),
    ],
)
def test_settings_of_generators_outside_their_range(make, settings, message):
    with pytest.raises(SettingError, match=message):
        make(**settings)
