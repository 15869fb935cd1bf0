import numpy as np
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import random_graph

from edfa.data.graph import Graph
from edfa.errors import SettingError, UnknownNameError

ASIA = Graph(
    {
        "asia": (),
        "smoke": (),
        "tub": ("asia",),
        "lung": ("smoke",),
        "bronc": ("smoke",),
        "either": ("tub", "lung"),
        "xray": ("either",),
        "dysp": ("bronc", "either"),
    }
)


def test_a_textbook_network():
    assert ASIA.units("lung") == {"smoke": (), "either": ("tub",)}
    assert ASIA.units("bronc") == {"smoke": (), "dysp": ("either",)}
    assert ASIA.blanket("tub") == ("asia", "lung", "either")
    assert ASIA.separated("asia", "lung", ())
    assert not ASIA.separated("asia", "lung", ("either",))
    assert not ASIA.separated("asia", "lung", ("xray",)), "a collider's descendant opens it too"
    assert not ASIA.separated("xray", "dysp", ())
    assert ASIA.separated("xray", "dysp", ("either",))


def test_a_spouse_that_is_also_a_parent_is_listed_once():
    graph = Graph({"a": (), "y": ("a",), "b": ("y", "a")})
    assert graph.units("y") == {"a": (), "b": ()}


def paths(graph, a, b):
    """Every simple path between two nodes of the skeleton."""
    near = {n: {*graph.parents[n], *graph.children(n)} for n in graph.nodes}

    def walk(path):
        if path[-1] == b:
            yield path
            return
        for node in near[path[-1]] - set(path):
            yield from walk([*path, node])

    return walk([a])


def blocked(graph, path, given):
    """Definition 2, node by node along one path."""
    for before, node, after in zip(path, path[1:], path[2:], strict=False):
        collider = before in graph.parents[node] and after in graph.parents[node]
        below = {n for n in graph.nodes if node in graph.ancestors([n])}
        if (collider and not below & given) or (not collider and node in given):
            return True
    return False


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=some(150), deadline=None)
def test_separation_is_what_every_path_says(seed, data):
    graph = random_graph(7, np.random.default_rng(seed))
    a, b, *rest = data.draw(st.permutations(graph.nodes))
    chosen = set(data.draw(st.lists(st.sampled_from(rest), unique=True, max_size=4)))
    assert graph.separated(a, b, chosen) == all(
        blocked(graph, p, chosen) for p in paths(graph, a, b)
    )


@given(st.integers(0, 10**6))
@settings(max_examples=some(100), deadline=None)
def test_the_blanket_shields_and_is_minimal(seed):
    graph = random_graph(8, np.random.default_rng(seed))
    for node in graph.nodes:
        blanket = set(graph.blanket(node))
        assert all(
            graph.separated(node, n, blanket) for n in graph.nodes if n != node and n not in blanket
        )
        assert not any(graph.separated(node, n, blanket - {n}) for n in blanket)
        units = graph.units(node)
        assert set(units) | {s for spouses in units.values() for s in spouses} == blanket


def test_graphs_that_are_none():
    with pytest.raises(SettingError, match="no cycle"):
        Graph({"a": ("b",), "b": ("a",)})
    with pytest.raises(UnknownNameError, match="no parent of 'a' named 'bb'; did you mean 'b'"):
        Graph({"a": ("bb",), "b": ()})
