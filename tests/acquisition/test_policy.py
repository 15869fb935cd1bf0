"""The contract of every policy: what may not be asked is never asked, and scikit-learn's rules for
settings hold.
"""

import numpy as np
import pytest
from sklearn.base import clone

import edfa
from edfa import (
    EDFA,
    Background,
    Blanket,
    Nearest,
    People,
    SubsetXGB,
    SurvivalPolicy,
    SurvivalSearch,
    acquire,
)
from edfa.acquisition import POLICIES, Greedy, Terms
from edfa.acquisition.base import Policy
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest
from edfa.predictors.base import UnfittedError

TABLE = edfa.load("german")
START = np.array([feature.start for feature in TABLE.schema])
BLANKET = Blanket("class", {"checking_status": ("savings_status",), "duration": ()})
MODEL = SubsetXGB("nan", n_estimators=10).fit(TABLE.train.X, TABLE.train.y)


class ScoresEverything(Policy):
    """A hostile policy: it likes best what may not be asked."""

    def __init__(self, closed=1e9):
        self.closed = closed

    def score(self, people):
        return np.where(people.askable, 1.0, self.closed)


hostile = pytest.mark.parametrize("closed", [1.0, 1e9, np.inf])


def half_known(n=30):
    """Rows of people of whom about half is known, and what may be asked of them: about two thirds
    of the rest.
    """
    random = np.random.default_rng(0)
    rows = np.where(
        random.random((n, len(TABLE.schema))) < 0.5, TABLE.test.X[:n], np.float32(np.nan)
    )
    rows[0] = TABLE.test.X[0]  # of whom everything is known
    return rows, np.isnan(rows) & (random.random(rows.shape) < 0.7)


@hostile
def test_next_asks_only_what_may_be_asked(closed):
    rows, askable = half_known()
    people = People(rows, Background.of(TABLE.train, MODEL), askable=askable)
    policy = ScoresEverything(closed)
    chosen = policy.next(people)
    assert chosen[0] == -1
    assert (chosen[1:] >= 0).all()
    assert askable[np.arange(1, len(rows)), chosen[1:]].all()
    assert np.array_equal(np.isnan(policy.masked_score(people)), ~askable)


@hostile
def test_a_known_fact_is_not_asked_even_if_the_batch_says_it_may_be(closed):
    rows, _ = half_known()
    people = People(
        rows, Background.of(TABLE.train, MODEL), askable=np.ones(rows.shape, dtype=bool)
    )
    chosen = ScoresEverything(closed).next(people)
    assert chosen[0] == -1
    assert np.isnan(rows[np.arange(1, len(rows)), chosen[1:]]).all()


@hostile
@pytest.mark.parametrize("on_unaffordable", ["stop", "skip"])
def test_the_loop_asks_only_what_may_be_asked(closed, on_unaffordable):
    declines = np.random.default_rng(1).random(TABLE.test.X.shape) < 0.3
    forbidden = ["duration", "housing"]
    run = acquire(
        TABLE.test,
        ScoresEverything(closed),
        MODEL,
        budget="inf",
        terms=Terms(forbidden=forbidden, declines=declines, on_unaffordable=on_unaffordable),
        explain=False,
    )
    closed_to_all = START | np.isin(TABLE.schema.names, forbidden)
    np.testing.assert_array_equal(run.when > 0, ~declines & ~closed_to_all)
    np.testing.assert_array_equal(run.declined, declines & ~closed_to_all)
    orders = [order for _, order in run]
    assert all(len(set(order)) == len(order) for order in orders)


@hostile
def test_an_interview_asks_only_what_may_be_asked(closed):
    advisor = edfa.Advisor(
        predictor=SubsetXGB("nan", n_estimators=10),
        policy=ScoresEverything(closed),
        searcher="nearest",
    ).fit(TABLE)
    assert advisor.fitted.policy.closed == closed
    person = TABLE.encoder.decode(TABLE.test.X[:1]).to_dict("records")[0]
    interview = advisor.interview({name: person[name] for name in TABLE.schema.start})
    asked = []
    while (question := interview.question) is not None:
        assert question.feature not in asked
        assert question.feature not in interview.log.facts
        asked.append(question.feature)
        interview = (
            interview.decline(question.feature)
            if len(asked) % 3 == 0
            else interview.answer({question.feature: person[question.feature]})
        )
    assert sorted(asked) == sorted(
        name for name in TABLE.schema.names if not TABLE.schema[name].start
    )


def test_scores_have_a_row_a_person_and_a_column_a_feature():
    class ScoresFeatures(Policy):
        def score(self, people):
            return np.ones(len(people.schema))

    people = People(TABLE.test.X[:20] * np.float32(np.nan), Background.of(TABLE.train, MODEL))
    with pytest.raises(DataError, match=r"ScoresFeatures.score .* \(20,\), not \(20, 20\)"):
        ScoresFeatures().next(people)


SETTINGS = {
    "edfa": {"blanket": BLANKET, "pc_first": False, "rank": "cost"},
    "random": {},
    "random-blanket": {"blanket": BLANKET, "aligned": False},
    "greedy": {"blanket": BLANKET, "model": SubsetXGB("nan", n_estimators=5)},
    "fixed": {"order": ["housing", "duration"]},
    "survival": {"blanket": BLANKET, "searcher": SurvivalSearch(n_completions=8), "n_people": 8},
    "dime": {"width": 8, "steps": 2, "pretrain": 1, "epochs": 1},
    "eddi": {"epochs": 1, "samples": 2, "reward": "label"},
    "gsmrl": {"pretrain": 1, "rounds": 1, "steps": 2},
}
every = pytest.mark.parametrize("name", POLICIES)


def make(name):
    return POLICIES[name](**SETTINGS[name])


def plain(params):
    """Settings that can be compared: of a part, its own."""
    return {
        name: plain(value.get_params()) if hasattr(value, "get_params") else value
        for name, value in params.items()
    }


def learnt(policy):
    """The names of what was learnt: all attributes that end in an underscore."""
    return [name for name in vars(policy) if name.endswith("_")]


@every
def test_settings_are_stored_as_given(name):
    policy = make(name)
    params = policy.get_params(deep=False)
    for setting, value in SETTINGS[name].items():
        assert params[setting] is value
        assert getattr(policy, setting) is value
    assert not learnt(policy)


@every
def test_a_clone_has_the_settings_and_nothing_that_was_learnt(name):
    policy = make(name).fit(TABLE.train, MODEL)
    assert bool(learnt(policy)) == (name in ("greedy", "survival", "dime", "eddi", "gsmrl"))
    for setting, value in SETTINGS[name].items():
        assert getattr(policy, setting) is value, "fitting changes no setting"
    copy = clone(policy)
    assert type(copy) is type(policy)
    assert plain(copy.get_params(deep=False)) == plain(policy.get_params(deep=False))
    assert not learnt(copy)


@every
def test_a_policy_shows_itself_by_its_settings(name):
    policy = make(name)
    text = repr(policy)
    assert text.startswith(f"{type(policy).__name__}(")
    assert " at 0x" not in text
    for setting in SETTINGS[name]:
        assert f"{setting}=" in text
    assert repr(policy.fit(TABLE.train, MODEL)) == text, "not by what it has learnt"


@every
def test_settings_are_read_and_set_by_name(name):
    policy, other = make(name), object()
    for setting in policy.get_params(deep=False):
        value = getattr(policy, setting)
        assert policy.set_params(**{setting: value}) is policy
        assert getattr(policy, setting) is value
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        policy.set_params(colour=other)


def test_settings_that_are_set_later_are_checked_too():
    with pytest.raises(UnknownNameError, match="did you mean 'cost'"):
        EDFA(BLANKET).set_params(rank="costs")
    with pytest.raises(SettingError, match="at least 2"):
        SurvivalPolicy(BLANKET, SurvivalSearch()).set_params(n_people=1)
    with pytest.raises(SettingError, match="SurvivalSearch"):
        SurvivalPolicy(BLANKET, SurvivalSearch()).set_params(searcher=Nearest())
    policy = SurvivalPolicy(BLANKET, SurvivalSearch()).set_params(searcher__n_completions=4)
    assert policy.searcher.n_completions == 4


@pytest.mark.parametrize("name", ["edfa", "random-blanket", "survival"])
def test_a_policy_of_a_blanket_needs_one(name):
    settings = {setting: value for setting, value in SETTINGS[name].items() if setting != "blanket"}
    with pytest.raises(TypeError, match="blanket"):
        POLICIES[name](**settings)
    unknown = POLICIES[name](Blanket("class", {"durations": ()}), **settings)
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        unknown.fit(TABLE.train, MODEL)


@pytest.mark.parametrize("personal", [False, True])
def test_a_survival_policy_must_be_fitted(personal, tmp_path):
    policy = SurvivalPolicy(BLANKET, SurvivalSearch(), personal=personal)
    people = People(
        TABLE.test.X[:2] * np.float32(np.nan),
        Background.of(TABLE.train, MODEL, BLANKET, aligned=True),
    )
    for use in (
        lambda: policy.next(people),
        lambda: acquire(TABLE.test, policy, MODEL),
        lambda: policy.order_,
        lambda: policy.save_state(tmp_path),
    ):
        with pytest.raises(UnfittedError, match=r"call fit\(train, predictor\) first"):
            use()
    assert policy.learnt_state() == {}


@pytest.mark.parametrize("name", ["dime", "eddi", "gsmrl"])
def test_a_learned_policy_must_be_fitted(name):
    with pytest.raises(UnfittedError, match="call fit"):
        acquire(TABLE.test, make(name), MODEL)


@pytest.mark.parametrize("kind", [EDFA, Greedy])
def test_a_model_for_information_is_fitted_with_its_policy(kind):
    """An advisor clones what it is given, so that a policy's own model must be fitted again."""
    settings = (
        {"pc_first": False} if kind is EDFA else {}
    )  # so that EDFA compares a head with its spouses
    policy = kind(BLANKET, model=SubsetXGB("nan", n_estimators=5, seed=3), **settings)
    people = People(
        TABLE.test.X[:9] * np.float32(np.nan),
        Background.of(TABLE.train, MODEL, BLANKET, aligned=True),
    )
    fitted = clone(policy).fit(TABLE.train, MODEL)
    own = kind(BLANKET, model=clone(policy.model).fit(TABLE.train.X, TABLE.train.y), **settings)
    np.testing.assert_array_equal(fitted.masked_score(people), own.masked_score(people))
    assert not hasattr(fitted.model, "classes_"), "the setting stays as it was given"
    assert fitted.learnt_state()["model"] is fitted.model_
    assert policy.learnt_state() == {}
    assert own.learnt_state()["model"] is own.model
    assert len({digest(part) for part in (fitted, policy, own)}) == 2, (
        "a fitted model counts, whoever fitted it"
    )
    advisor = edfa.Advisor(
        predictor=SubsetXGB("nan", n_estimators=10), policy=policy, searcher="nearest"
    ).fit(TABLE)
    assert advisor.interview({"age": 35}).question.feature in BLANKET


def test_a_fixed_order_cannot_be_guessed():
    with pytest.raises(SettingError, match="needs an order"):
        edfa.Advisor(
            predictor=SubsetXGB("nan", n_estimators=5), policy="fixed", searcher="nearest"
        ).fit(TABLE)
