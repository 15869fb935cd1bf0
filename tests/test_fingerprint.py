"""Fingerprints: settings and what was learnt, and nothing that is found by looking inside."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

import edfa
from edfa.errors import SettingError
from edfa.fingerprint import digest
from edfa.predictors.bins import Bins
from edfa.predictors.conditional import Neighbours

TABLE = edfa.load("german")


def test_settings_count_and_caches_do_not():
    searcher = edfa.SurvivalSearch(TABLE.train)
    before = digest(searcher)
    model = edfa.SubsetXGB(n_estimators=10).fit(TABLE.train.X, TABLE.train.y)
    known = TABLE.test.X[:20].copy()
    known[:, 10:] = np.nan
    edfa.find_recourse(edfa.People(known, edfa.Background.of(TABLE.train, model)), searcher)
    assert len(searcher.cache_)
    assert digest(searcher) == before
    assert digest(clone(searcher).fit(TABLE.train)) == before
    for setting in (
        {"n_completions": 8},
        {"n_candidates": 8},
        {"neighbours": 3},
        {"farther": 9},
        {"max_changes": 2},
    ):
        assert digest(edfa.SurvivalSearch(TABLE.train, **setting)) != before
    assert digest(edfa.SurvivalSearch(TABLE.calibration)) != before
    assert digest(edfa.Nearest(TABLE.train)) != before


def test_a_setting_under_a_private_name_is_an_error():
    """Two searchers that differ in it would otherwise have one fingerprint."""

    class Hidden(edfa.Nearest):
        def __init__(self, train=None, *, secret=0):
            self._secret = secret
            super().__init__(train)

    with pytest.raises(AttributeError, match="secret"):
        digest(Hidden(TABLE.train, secret=1))


def test_a_part_that_says_nothing_of_itself_is_refused():
    with pytest.raises(SettingError, match="has neither learnt_state nor to_json"):
        digest(object())


def test_a_policy_is_its_settings_and_its_order():
    blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("credit_amount",)})
    model = edfa.SubsetXGB(n_estimators=10).fit(TABLE.train.X, TABLE.train.y)

    def fitted(**settings):
        policy = edfa.SurvivalPolicy(blanket, edfa.SurvivalSearch(), n_people=32, **settings)
        return digest(policy.fit(TABLE.train, model))

    assert fitted() == fitted()
    assert fitted() != fitted(n_draws=5)
    assert fitted() != digest(edfa.SurvivalPolicy(blanket, edfa.SurvivalSearch(), n_people=32))
    assert digest(edfa.EDFA(blanket)) != digest(edfa.EDFA(blanket, rank="cost"))


def test_how_a_blanket_was_found_does_not_matter():
    units = {"duration": ("credit_amount",)}
    found = edfa.discover(TABLE.train)
    assert digest(edfa.Blanket("class", found.units, found.unattached)) == digest(found)
    assert digest(edfa.Blanket("class", units)) != digest(found)


def test_plain_things():
    @dataclass(frozen=True)
    class Noun:
        text: str

        def to_json(self):
            return self.text

    assert digest(Noun("a")) != digest(Noun("b"))
    assert digest([1, 2]) == digest((1, 2)), (
        "JSON does not tell them apart, and an advisor is saved as JSON"
    )
    assert digest(np.float64(0.5)) == digest(0.5) != digest(np.float64(0.25))
    assert len({digest(nested) for nested in ([[1], 2], [[1, 2]], [1, [2]], [1, 2])}) == 4
    assert digest({"a": {"b": 1}, "c": 2}) != digest({"a": {"b": 1, "c": 2}})
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(np.arange(3)) != digest(np.arange(3, dtype=np.int32))
    assert digest(b"ab") != digest("ab")


def test_a_sampler_is_what_it_draws_from():
    """A policy with a sampler of its own can be part of an advisor, and another sampler makes
    another policy.
    """
    blanket = edfa.Blanket("class", {"duration": ("credit_amount", "age")})
    rows = TABLE.train.X
    samplers = [
        Neighbours.of(rows, ()),
        Neighbours.of(rows, ()),
        Neighbours.of(rows[:300], ()),
        Neighbours.of(rows, (), k=60),
    ]
    words = [digest(edfa.EDFA(blanket, sampler=sampler)) for sampler in samplers]
    assert words[0] == words[1]
    assert len(set(words)) == 3
    small = [Bins.of(rows[:100], seed=seed, epochs=1) for seed in (0, 0, 1)]
    assert digest(small[0]) == digest(small[1]) != digest(small[2])
    settings = {
        "predictor": edfa.SubsetXGB(n_estimators=10),
        "searcher": "nearest",
        "threshold": "balanced",
    }
    advisor = edfa.Advisor(policy=edfa.EDFA(blanket, sampler=samplers[0]), **settings).fit(TABLE)
    assert advisor.interview({"age": 35}).question is not None
