"""Settings and learnt state of every registered searcher: scikit-learn's contract, and fingerprints
made of the two.
"""

import inspect

import numpy as np
import pytest
from advisors import plain_german
from sklearn.base import clone

from edfa import SubsetXGB
from edfa.errors import SettingError, UnknownNameError
from edfa.fingerprint import digest
from edfa.people import Background, People
from edfa.predictors.base import ModelCache, UnfittedError
from edfa.predictors.committee import Committee
from edfa.recourse import SEARCHERS, DiCE, Nearest, SurvivalSearch, find_recourse
from edfa.recourse.searchers import cvae

TRAIN = plain_german().train
COMMITTEE = Committee.of(TRAIN.X, TRAIN.y, SubsetXGB(n_estimators=5).fit(TRAIN.X, TRAIN.y), 2)
OTHER = {  # every setting of every searcher, each at another value than its default
    "nearest": {"neighbours": 4, "farther": 20, "max_changes": 2, "keep_dominated": True},
    "survival": {
        "n_completions": 16,
        "n_candidates": 8,
        "neighbours": 4,
        "farther": 20,
        "max_changes": 2,
    }
    | {"committee": COMMITTEE, "all_features": True, "second_look": 8, "enough": 0.5},
    "nice": {
        "reward": "proximity",
        "justified": False,
        "neighbours": 9,
        "max_donors": 300,
        "literal": True,
    },
    "probe": {"rate": 0.3, "sigma": 0.1, "draws": 64, "steps": 20},
    "dice": {"method": "genetic", "plans": 2, "draws": 64, "generations": 4, "steps": 20},
    "cvae": {"draws": 16, "max_draws": 64, "seed": 1},
}
for settings in OTHER.values():
    settings |= {"holds_further": False, "min_support": 1}
IMPOSSIBLE = [
    *((name, {"min_support": -1}) for name in OTHER),
    ("nearest", {"neighbours": 0}),
    ("nearest", {"farther": 0}),
    ("nearest", {"max_changes": 0}),
    ("nearest", {"max_changes": 4}),
    ("survival", {"n_completions": 1}),
    ("survival", {"n_candidates": 1}),
    ("survival", {"enough": 0}),
    ("survival", {"enough": 1.1}),
    ("survival", {"max_changes": 4}),
    ("nice", {"neighbours": 0}),
    ("nice", {"max_donors": 0}),
    ("probe", {"rate": 0.0}),
    ("probe", {"rate": 1.0}),
    ("probe", {"sigma": 0.0}),
    ("probe", {"draws": 100}),
    ("probe", {"steps": 0}),
    ("dice", {"plans": 0}),
    ("dice", {"draws": 0}),
    ("dice", {"generations": 0}),
    ("dice", {"steps": 0}),
    ("cvae", {"draws": 0}),
    ("cvae", {"draws": 64, "max_draws": 32}),
]
COLUMNS = (
    "of to low high reached probability_before probability_after l0 l2 heom effort valid"
).split()

every_searcher = pytest.mark.parametrize("name", SEARCHERS)


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(cvae, "STEPS", 5)
    monkeypatch.setattr(cvae, "CHECKS", 1)


@pytest.fixture(scope="module")
def people(table, trees):
    rows = table.test.X[:8].copy()
    rows[::2, 12:] = np.nan
    return People(rows, Background.of(table.train, trees))


def test_every_searcher_is_here():
    assert set(OTHER) == set(SEARCHERS)


@every_searcher
def test_settings_are_stored_under_their_own_names(name):
    kind = SEARCHERS[name]
    parameters = inspect.signature(kind).parameters
    assert next(iter(parameters)) == "train"
    assert {p.kind for p in parameters.values()} <= {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }
    settings = set(parameters) - {"train"}
    assert set(OTHER[name]) == settings
    searcher = kind(**OTHER[name])
    assert searcher.get_params() == OTHER[name]
    assert {key: vars(searcher)[key] for key in settings} == OTHER[name]
    assert all(OTHER[name][key] != parameters[key].default for key in settings)


@every_searcher
def test_a_clone_has_the_settings_and_nothing_learnt(name, table):
    searcher = SEARCHERS[name](table.train, **OTHER[name])
    copy = clone(searcher)
    assert type(copy) is type(searcher)
    assert copy.get_params() == searcher.get_params() == OTHER[name]
    assert [key for key in vars(searcher) if key.endswith("_")]
    assert not [key for key in vars(copy) if key.endswith("_")]
    assert (
        copy.set_params(**SEARCHERS[name]().get_params()).get_params()
        == SEARCHERS[name]().get_params()
    )


@every_searcher
def test_what_is_shown_are_settings_and_no_data(name, table):
    kind = SEARCHERS[name]
    assert repr(kind(table.train)) == repr(kind()) == f"{kind.__name__}()"
    shown = repr(kind(table.train, **OTHER[name]))
    assert shown == repr(kind(**OTHER[name]))
    assert all(f"{key}={value!r}" in shown for key, value in OTHER[name].items())


@every_searcher
def test_an_unfitted_searcher_says_so(name, people):
    searcher = SEARCHERS[name]()
    for use in (
        lambda: find_recourse(people, searcher),
        searcher.learnt_state,
        lambda: digest(searcher),
    ):
        with pytest.raises(
            UnfittedError, match=rf"this {type(searcher).__name__} has seen no training people"
        ):
            use()


def same_plans(one, other):
    return all(np.array_equal(getattr(one, c), getattr(other, c), equal_nan=True) for c in COLUMNS)


@every_searcher
def test_training_people_in_the_constructor_are_short_for_fit(name, table, people):
    kind = SEARCHERS[name]
    short, long = kind(table.train, **OTHER[name]), kind(**OTHER[name])
    assert long.fit(table.train) is long
    again = kind(table.calibration, **OTHER[name]).fit(table.train)
    plans = find_recourse(people, short)
    assert len(plans)
    assert same_plans(plans, find_recourse(people, long))
    assert same_plans(plans, find_recourse(people, again)), (
        "a second fit leaves nothing of the first"
    )
    assert digest(short) == digest(long) == digest(again)


@every_searcher
def test_a_fingerprint_is_made_of_settings_and_training_people(name, table):
    kind, settings = SEARCHERS[name], SEARCHERS[name]().get_params()
    usual = digest(kind(table.train))
    assert digest(kind(table.train)) == usual == digest(clone(kind(table.train)).fit(table.train))
    for key, value in OTHER[name].items():
        changed = settings | {key: value} | ({"draws": 64} if key == "max_draws" else {})
        assert digest(kind(table.train, **changed)) != usual, key
    assert digest(kind(table.calibration)) != usual


@every_searcher
def test_a_search_is_no_part_of_a_fingerprint(name, table, people):
    searcher = SEARCHERS[name](table.train, **OTHER[name])
    before = digest(searcher)
    find_recourse(people, searcher)
    assert len(searcher.cache_)
    assert digest(searcher) == before


def test_searchers_of_another_kind_have_another_fingerprint(table):
    assert len({digest(SEARCHERS[name](table.train)) for name in SEARCHERS}) == len(SEARCHERS)


def test_who_completes_nobody_is_part_of_a_fingerprint(table):
    """Two searchers with the same settings and training people that answer differently."""
    usual, *without = (SurvivalSearch(n_completions=8) for _ in range(3))
    usual.fit(table.train)
    rows = [np.arange(100, dtype=np.intp), np.arange(50, dtype=np.intp)]
    for searcher, left_out in zip(without, rows, strict=True):
        searcher.fit_without(table.train, left_out)
    assert len({digest(s) for s in (usual, *without)}) == 3
    again = SurvivalSearch(n_completions=8).fit_without(table.train, rows[0][::-1])
    assert digest(again) == digest(without[0])
    assert digest(again.fit(table.train)) == digest(usual)


class Secretive(Nearest):
    """Keeps a setting under another name than its own."""

    def __init__(self, train=None, *, luck=0):
        self._luck = luck
        super().__init__(train)


def test_a_setting_under_a_private_name_is_refused(table):
    """Two that differ in it would share a fingerprint."""
    for luck in (0, 1):
        searcher = Secretive(table.train, luck=luck)
        for use in (searcher.get_params, lambda s=searcher: digest(s), lambda s=searcher: clone(s)):
            with pytest.raises(AttributeError, match="luck"):
                use()


@pytest.mark.parametrize(("name", "settings"), IMPOSSIBLE)
def test_settings_outside_their_range(name, settings):
    with pytest.raises(SettingError):
        SEARCHERS[name](**settings)


@pytest.mark.parametrize(("name", "setting"), [("nice", "reward"), ("dice", "method")])
def test_a_setting_that_nobody_knows(name, setting):
    with pytest.raises(UnknownNameError, match=f"no {setting} named 'nothing'"):
        SEARCHERS[name](**{setting: "nothing"})


def caches(part, seen):
    """Every cache that can be reached from an object of this library, through attributes and
    containers.
    """
    if id(part) in seen:
        return []
    seen[id(part)] = part
    if isinstance(part, ModelCache):
        return [part]
    if isinstance(part, dict):
        inner = [*part.values()]
    elif isinstance(part, list | tuple):
        inner = [*part]
    else:
        inner = [*vars(part).values()] if type(part).__module__.startswith("edfa.") else []
    return [cache for one in inner for cache in caches(one, seen)]


@pytest.mark.parametrize("method", [*SEARCHERS, "dice gradient"])
def test_a_searcher_has_one_cache(method, table, network, people):
    """Whatever it works out for a model is held in one place, that of the searchers it consists of
    included.
    """
    gradient = DiCE(table.train, "gradient", plans=2, steps=2)
    searcher = (
        gradient if method == "dice gradient" else SEARCHERS[method](table.train, **OTHER[method])
    )
    model = network if method == "dice gradient" else people.predictor
    find_recourse(People(people.X, Background.of(table.train, model)), searcher)
    assert caches(searcher, {}) == [searcher.cache_]
    assert len(searcher.cache_)
