import numpy as np
import pandas as pd
import pytest
from exact import ExactModel

import edfa
from edfa import EDFA, Blanket, SubsetXGB, acquire
from edfa.acquisition import Greedy, Random, RandomBlanket, Terms
from edfa.acquisition.base import Policy
from edfa.errors import BudgetError, DataError, UnknownNameError
from edfa.explanation.partition import members
from edfa.testing import check_policy

TABLE = edfa.load("german")
BLANKET = Blanket(
    "class",
    {
        "checking_status": ("savings_status", "employment"),
        "duration": ("credit_amount", "installment_commitment"),
    },
    unattached=("housing",),
)
MODEL = SubsetXGB("nan", n_estimators=30).fit(TABLE.train.X, TABLE.train.y)
POLICIES = {
    "edfa": EDFA(BLANKET),
    "not aligned": EDFA(BLANKET, aligned=False),
    "any first": EDFA(BLANKET, pc_first=False),
    "by cost": EDFA(BLANKET, rank="cost"),
    "random": Random(),
    "random blanket": RandomBlanket(BLANKET),
    "greedy": Greedy(),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_the_contract(policy):
    check_policy(policy, TABLE.test, MODEL, budget=6 if isinstance(policy, Greedy) else 0.7)


class Forgets(Policy):
    """Its answer depends on who else is in the batch."""

    def score(self, people):
        return np.where(people.askable, np.arange(20) * (1 if len(people) > 1 else -1), np.nan)


def test_the_contract_can_be_broken():
    class Sees(Policy):
        def score(self, people):
            hidden = seen[0][people.person]
            return np.where(people.askable, hidden, np.nan)

    seen = []
    original = acquire

    def spying(facts, *args, **options):
        if not seen or len(facts) == len(seen[0]):
            seen[:] = [np.asarray(facts)]
        return original(facts, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edfa.testing.acquire", spying)
        with pytest.raises(AssertionError, match="nothing peeks"):
            check_policy(Sees(), TABLE.test, MODEL)
    with pytest.raises(AssertionError, match="one person at a time"):
        check_policy(Forgets(), TABLE.test, MODEL)


def test_the_log_says_what_happened():
    run = acquire(TABLE.test, EDFA(BLANKET), MODEL, budget=12)
    frame = run.frame()
    assert frame.columns.tolist() == [
        *(
            "person",
            "seed",
            "step",
            "feature",
            "cost",
            "spent",
            "p_bad",
            "p_good",
            "prediction",
            "n_cf",
            "n_sf",
        )
    ]
    for person, rows in frame.groupby("person"):
        assert rows.step.tolist() == list(range(len(rows)))
        assert rows.feature.tolist() == ["", *run.order(person)]
        np.testing.assert_allclose(rows.spent, rows.cost.cumsum())
    assert frame.spent.max() <= 12
    assert (frame.n_cf + frame.n_sf == len(BLANKET)).all()
    inside = members(TABLE.schema.names, BLANKET)
    facts = np.where(inside, run.X, np.nan)
    np.testing.assert_allclose(run.probabilities, MODEL.predict_proba(facts), atol=1e-6)
    np.testing.assert_allclose(frame[["p_bad", "p_good"]], run.probabilities)
    scored = ~np.isnan(run.scores)
    chosen = run.feature[run.step > 0]
    assert scored[run.step > 0][np.arange(len(chosen)), chosen].all(), (
        "the scores of the candidates are kept"
    )
    several = scored.sum(axis=1) > 1
    assert several.any()
    assert (run.scores[several][scored[several]] >= 0).all()
    assert acquire(TABLE.test, EDFA(BLANKET), MODEL, budget=6, explain=False).necessity is None
    with pytest.raises(ValueError, match="explain=False"):
        _ = acquire(TABLE.test, EDFA(BLANKET), MODEL, budget=6, explain=False).partition


def test_budgets():
    costs, start = TABLE.schema.costs, np.array([f.start for f in TABLE.schema])
    total = costs[~start].sum()
    everything = acquire(TABLE.test, Random(), MODEL, budget="inf", explain=False)
    assert (everything.spent[everything.last] == total).all()
    share = acquire(TABLE.test, Random(), MODEL, budget=0.5, explain=False)
    assert (share.spent <= 0.5 * total).all()
    assert acquire(TABLE.test, Random(), MODEL, budget=1, explain=False).spent.max() == total
    for bad, message in (
        ("much", "a share up to 1, an amount, or 'inf', not 'much'"),
        (0, "above zero"),
        (-1, "above zero"),
        (float("nan"), "above zero"),
        (0.01, "buys nothing; the start set and one feature cost 1"),
    ):
        with pytest.raises(BudgetError, match=message):
            acquire(TABLE.test, Random(), MODEL, budget=bad)
    priced = np.where(start, 4.0, costs)
    with pytest.raises(BudgetError, match="the start set alone costs 12; the budget is 5"):
        acquire(TABLE.test, Random(), MODEL, budget=5, terms=Terms(costs=priced))
    paid = acquire(
        TABLE.test, Random(), MODEL, budget=0.5, terms=Terms(costs=priced), explain=False
    )
    assert (paid.spent[paid.step == 0] == 12).all(), "the start set is paid first"
    assert (paid.spent <= 12 + 0.5 * total).all(), "and the share comes on top"


def test_stop_or_skip_what_cannot_be_afforded():
    stop = acquire(TABLE.test, Random(), MODEL, budget=9, explain=False)
    skip = acquire(
        TABLE.test, Random(), MODEL, budget=9, terms=Terms(on_unaffordable="skip"), explain=False
    )
    longer = 0
    for person in range(len(TABLE.test)):
        first, second = stop.order(person), skip.order(person)
        assert second[: len(first)] == first, "they differ in the last steps only"
        longer += len(second) > len(first)
    assert longer > 20
    cheapest = TABLE.schema.costs[[not f.start for f in TABLE.schema]].min()
    assert (skip.spent[skip.last] + cheapest > 9).all(), "nothing more would have fitted"
    with pytest.raises(UnknownNameError, match="did you mean 'stop'"):
        Terms(on_unaffordable="stops")


def test_random_orders_are_uniform_and_depend_on_the_seed():
    people = np.arange(4000)
    rows = np.tile(TABLE.test.X[:1], (4000, 1))
    terms = Terms(costs=np.where(TABLE.schema.costs > 0, 1.0, 0.0), person=people)
    options = {"reference": TABLE.train, "explain": False, "terms": terms}
    world = ExactModel.of(
        type("Flat", (), {"posterior": lambda _, r: np.full((len(r), 2), 0.5)})(), 20, 2
    )
    run = acquire(rows, Random(), world, 1.5, 0, **options)
    first = run.feature[run.step == 1]
    counts = np.bincount(first, minlength=20)[TABLE.schema.costs > 0]
    assert counts.sum() == 4000
    expected = 4000 / 17
    assert ((counts - expected) ** 2 / expected).sum() < 40, (
        "chi-squared with 16 degrees of freedom"
    )
    other = acquire(rows, Random(), world, 1.5, 1, **options)
    assert (other.feature[other.step == 1] != first).mean() > 0.8


def test_rows_with_a_reference():
    frame = TABLE.test.frame.head(5)
    run = acquire(frame, EDFA(BLANKET), MODEL, 6, reference=TABLE.train)
    same = acquire(TABLE.test, EDFA(BLANKET), MODEL, 6)
    assert [run.order(i) for i in range(5)] == [same.order(i) for i in range(5)]
    with pytest.raises(DataError, match=r"pass reference=table\.train"):
        acquire(frame, EDFA(BLANKET), MODEL, 6)
    with pytest.raises(UnknownNameError, match="no column named 'duration'"):
        acquire(frame.drop(columns="duration"), EDFA(BLANKET), MODEL, 6, reference=TABLE.train)
    with pytest.raises(DataError, match="20 features are needed, not of 3"):
        acquire(np.zeros((2, 3)), EDFA(BLANKET), MODEL, 6, reference=TABLE.train)


def test_bad_rules_before_work_is_spent():
    bad = {
        "costs": (np.ones(3), "costs must be of shape"),
        "forbidden": (["age"], "age is known from the start"),
        "declines": (np.ones(3), "declines must be of shape"),
        "person": ([1, 1], "name each of the 200 rows once"),
    }
    for rule, (value, message) in bad.items():
        with pytest.raises(DataError, match=message):
            acquire(TABLE.test, Random(), MODEL, terms=Terms(**{rule: value}))
    for costs, message in (
        (np.full(20, -1.0), "zero or more"),
        (np.zeros(20), "costs nothing and is not in the start"),
    ):
        with pytest.raises(DataError, match=message):
            acquire(TABLE.test, Random(), MODEL, terms=Terms(costs=costs))
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        acquire(TABLE.test, EDFA(Blanket("class", {"durations": ()})), MODEL)
    with pytest.raises(UnknownNameError, match="did you mean 'housing'"):
        acquire(TABLE.test, Random(), MODEL, terms=Terms(forbidden=["housings"]))


def test_an_empty_blanket_asks_nothing():
    run = acquire(TABLE.test, EDFA(Blanket("class", {})), MODEL)
    assert (run.step == 0).all()
    assert run.frame().n_cf.eq(0).all()


def test_how_a_run_prints():
    run = acquire(TABLE.test, Random(), MODEL, 4, explain=False)
    assert "200 people" in repr(run)
    assert "<table" in run._repr_html_()
    assert len(pd.read_json(__import__("io").StringIO(run.to_json()))) == len(run)
