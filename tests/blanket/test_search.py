"""The algorithms against the truth: with d-separation in place of a test they must find the exact
units.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
import reference
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import random_graph, random_mechanisms, random_network

from edfa.blanket import METHODS, CIResult, DataTester, Search, Tester, compare
from edfa.blanket.separation import subsets
from edfa.blanket.sources.open import open_source


class Oracle(Tester):
    """Answers by d-separation, and refuses a question that conditions on its own argument."""

    def __init__(self, graph):
        super().__init__(sorted(graph.nodes))
        self.graph = graph

    def run(self, x, y, given):
        assert x not in given
        assert y not in given
        apart = self.graph.separated(self.names[x], self.names[y], [self.names[g] for g in given])
        return CIResult(1.0, 0.0, 1.0, 0.0) if apart else CIResult(0.0, 10.0, 1.0, 0.1)


def units_of(tester, blanket):
    return {
        tester.names[c]: {tester.names[s] for s in spouses} for c, spouses in blanket.units.items()
    }


def truth_of(graph, target):
    return {c: set(spouses) for c, spouses in graph.units(target).items()}


SOUND = [("hiton-mb", "and"), ("bamb", "none"), ("eamb", "none"), ("iamb", "none")]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=some(60), deadline=None)
def test_exact_units_whatever_the_graph(seed):
    """No bound on the conditioning sets: exact on every node of any graph, here up to 3 parents
    among 8 nodes.
    """
    graph = random_graph(8, np.random.default_rng(seed), max_parents=3)
    oracle = Oracle(graph)
    for method, symmetry in SOUND:
        search = Search(method, symmetry=symmetry, max_condition=8)
        for target in graph.nodes:
            blanket = search.find(oracle, oracle.names.index(target))
            assert units_of(oracle, blanket) == truth_of(graph, target), method
            assert not blanket.unattached, method


@given(seed=st.integers(0, 10**6))
@settings(max_examples=some(60), deadline=None)
def test_exact_units_within_the_default_bound(seed):
    """With sets of at most 3: exact wherever sets of at most 3 can separate what is not
    adjacent.
    """
    graph = random_graph(10, np.random.default_rng(seed), max_parents=2)
    oracle = Oracle(graph)
    separable = {node: pc_separates(graph, node, 3) for node in graph.nodes}
    for target in graph.nodes:
        if within_reach(graph, target, 3, separable):
            for method, symmetry in SOUND:
                blanket = Search(method, symmetry=symmetry).find(oracle, oracle.names.index(target))
                assert units_of(oracle, blanket) == truth_of(graph, target), method


@given(seed=st.integers(0, 10**6))
@settings(max_examples=some(150), deadline=None)
def test_hiton_without_symmetry_is_exact_where_its_theory_reaches(seed):
    """Without the symmetry check a descendant may stay in PC that no subset of PC separates (Peña
    et al. 2007).
    """
    graph = random_graph(10, np.random.default_rng(seed), max_parents=2)
    oracle = Oracle(graph)
    separable = {node: pc_separates(graph, node, 3) for node in graph.nodes}
    for target in graph.nodes:
        if all(separable[node] for node in (target, *graph.units(target))):
            blanket = Search("hiton-mb").find(oracle, oracle.names.index(target))
            assert units_of(oracle, blanket) == truth_of(graph, target)


def pc_separates(graph, node, k):
    """Whether some small set of parents and children separates a node from each that is not
    adjacent.
    """
    pc = list(graph.units(node))
    others = [n for n in graph.nodes if n != node and n not in pc]
    sets = [s for size in range(k + 1) for s in itertools.combinations(pc, size)]
    return all(any(graph.separated(node, n, s) for s in sets) for n in others)


def within_reach(graph, target, k, separable):
    """Members of the blanket that are not adjacent to the target can be separated from it inside
    the blanket.

    ``separable``: what ``pc_separates`` says of each node.
    """
    blanket = graph.blanket(target)
    spouses = set(blanket) - set(graph.units(target))

    def reachable(s):
        rest = [m for m in blanket if m != s]
        return any(
            graph.separated(target, s, z)
            for i in range(k + 1)
            for z in itertools.combinations(rest, i)
        )

    return all(reachable(s) for s in spouses) and all(
        separable[n] for n in (target, *graph.units(target))
    )


def test_invariants_of_what_is_found():
    network = random_network(12, seed=3)
    source, target, _ = open_source(network.sample(3000), network.target, None, False)
    for method in METHODS:
        tester = Search(method).tester(source)
        blanket = Search(method).find(tester, tester.names.index(target))
        assert list(blanket.units) == blanket.pc
        spouses = {s for behind in blanket.units.values() for s in behind}
        assert not spouses & set(blanket.pc)
        assert tester.names.index(target) not in spouses | set(blanket.pc)


class Watched(DataTester):
    def run(self, x, y, given):
        assert x not in given
        assert y not in given
        return super().run(x, y, given)


@pytest.mark.parametrize("method", METHODS)
def test_no_test_conditions_on_its_own_arguments(method):
    for seed in range(5):
        network = random_network(10, seed=seed)
        source, _, _ = open_source(network.sample(800, seed=seed), network.target, None, False)
        tester = Watched(source)
        for target in range(len(tester.names)):
            Search(method).find(tester, target)


def test_subsets_come_in_the_agreed_order():
    assert list(subsets([4, 2, 9], 1, 2)) == [(2,), (4,), (9,), (2, 4), (2, 9), (4, 9)]
    assert list(subsets([], 0, 3)) == [()]
    assert list(subsets([1], 1, 3, containing=5)) == []


@pytest.mark.parametrize("n", [300, 1000, 5000])
@pytest.mark.parametrize("seed", range(8))
def test_parity_mode_is_the_authors_behaviour(seed, n):
    """Against a slow literal transcription, quirks included, kept in reference.py."""
    network = random_network(9, seed=seed, max_levels=4)
    frame = network.sample(n, seed=seed)
    frame = frame[[c for c in frame if len(frame[c].unique()) > 1]]
    names = list(frame)
    codes = np.stack([pd.factorize(frame[c])[0] for c in names], axis=1)
    source, _, _ = open_source(frame, names[0], None, True)
    levels = [c.n_codes(5) for c in source.columns]
    cache = {}

    def slow(x, y, chosen):
        key = (min(x, y), max(x, y), tuple(sorted(chosen)))
        if key not in cache:
            cache[key] = reference.g2(codes, levels, *key)
        return cache[key]

    searches = {m: Search(m, test="g2", parity=True, recover=0.25) for m in METHODS}
    testers = {m: s.tester(source) for m, s in searches.items()}
    p = len(names)
    for target in range(p):
        iamb_flat = reference.iamb(slow, p, target, 0.01)
        eamb_flat = reference.eamb(slow, p, target, 0.01, 0.25)
        hiton_pc, hiton_units = reference.hiton_mb(slow, p, target, 0.01, 3)
        bamb_pc, bamb_units = reference.bamb(slow, p, target, 0.01, 3)
        hiton = searches["hiton-mb"].find(testers["hiton-mb"], target)
        bamb = searches["bamb"].find(testers["bamb"], target)
        assert hiton.pc == hiton_pc
        assert {c: sorted(s) for c, s in hiton.units.items()} == {
            c: sorted(hiton_units.get(c, [])) for c in hiton_pc
        }
        assert sorted(bamb.pc) == sorted(bamb_pc)
        mine = {c: sorted(set(s) - set(bamb.pc)) for c, s in bamb.units.items()}
        assert mine == {c: sorted(bamb_units.get(c, [])) for c in bamb_pc}
        for method, flat in (("iamb", iamb_flat), ("eamb", eamb_flat)):
            blanket = searches[method].find(testers[method], target)
            members = {
                *blanket.pc,
                *blanket.unattached,
                *(s for behind in blanket.units.values() for s in behind),
            }
            assert members == set(flat), method


def test_order_of_rows_and_columns_changes_nothing():
    world = random_mechanisms(10, seed=4)
    frame = world.sample(6000, seed=1)
    frame["copy"] = frame[world.graph.blanket(world.target)[0]]
    expected = compare(frame, target=world.target).blankets
    random = np.random.default_rng(0)
    for _ in range(3):
        rows, columns = random.permutation(len(frame)), random.permutation(frame.columns)
        shuffled = compare(frame.iloc[rows][list(columns)], target=world.target).blankets
        for method in METHODS:
            first, again = expected[method], shuffled[method]
            assert again.units == first.units
            assert again.unattached == first.unattached
            assert pd.Series(
                {m: e.p for m, e in again.evidence.items()}
            ).to_numpy() == pytest.approx(
                [e.p for e in first.evidence.values()], rel=1e-6, abs=1e-12
            )
