"""Every searcher keeps the contract, and the contract catches those that do not."""

from functools import partial

import numpy as np
import pytest

from edfa.errors import SettingError
from edfa.people import Background, People
from edfa.predictors.base import align
from edfa.recourse import CVAE, NICE, PROBE, DiCE, Nearest, SurvivalSearch, find_recourse
from edfa.recourse.searcher import Candidates, Searcher
from edfa.recourse.searchers import cvae
from edfa.recourse.searchers.nice import REWARDS
from edfa.testing import check_searcher

VARIANTS = {
    "nearest": Nearest,
    "nearest, dominated": partial(Nearest, keep_dominated=True),
    "survival": SurvivalSearch,
    "probe": PROBE,
    "dice random": DiCE,
    "dice genetic": partial(DiCE, method="genetic", generations=8),
} | {f"nice {r}": partial(NICE, reward=r) for r in REWARDS}
NEURAL = {
    "nearest": Nearest,
    "survival": SurvivalSearch,
    "probe": partial(PROBE, steps=8, draws=32),
    "dice gradient": partial(DiCE, method="gradient", steps=8),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_searchers_keep_the_contract(name, german):
    check_searcher(VARIANTS[name], *german)


@pytest.mark.parametrize(
    "name",
    [
        "nearest",
        "dice gradient",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("survival", "probe")),
    ],
)
def test_searchers_keep_the_contract_with_a_neural_model(name, table, network):
    check_searcher(NEURAL[name], table, network)


@pytest.mark.parametrize("name", NEURAL)
def test_people_of_whom_the_model_sees_nothing(name, table, network):
    """The blanket is not known at all: there is no recourse, and no error."""
    rows = np.full((2, 20), np.nan, dtype=np.float32)
    rows[:, 0] = 1
    people = People(rows, Background.of(table.train, align(network, [1, 2])))
    plans = find_recourse(people, NEURAL[name](table.train))
    assert len(plans) == 0
    assert plans.reasons[0].reason == "more_information_needed"


def test_the_generative_searcher_keeps_the_contract(german, monkeypatch):
    monkeypatch.setattr(cvae, "STEPS", 20)
    monkeypatch.setattr(cvae, "CHECKS", 2)
    check_searcher(partial(CVAE, draws=16, max_draws=64), *german)


class Honest(Searcher):
    """Offers every donor's values, as far as they are permitted."""

    def search(self, problem):
        donors = self.rows_[:40][:, problem.features]
        to = np.full((len(problem), len(donors), len(problem.features)), np.nan, dtype=np.float32)
        to[:, :, problem.free] = donors[:, problem.free]
        for column in problem.free:
            feature = int(problem.features[column])
            fine = problem.actions.permits(feature, problem.facts[:, [column]], to[:, :, column])
            to[:, :, column] = np.where(fine, to[:, :, column], np.float32(np.nan))
        return Candidates(
            np.repeat(np.arange(len(problem)), len(donors)), to.reshape(-1, to.shape[2])
        )


class Unchecked(Honest):
    """Says that its proposals are plans."""

    finished = True

    def search(self, problem):
        candidates = super().search(problem)
        candidates = candidates.take((~np.isnan(candidates.to)).any(axis=1))
        case, to = candidates.case, candidates.to
        return Candidates(case, to, problem.predict(problem.apply(case, to)))


class Wasteful(Unchecked):
    """Valid, but with changes that are not needed."""

    def search(self, problem):
        candidates = super().search(problem)
        fine = problem.is_recourse(candidates.case, candidates.probabilities)
        fine &= problem.actions.allows(problem.mask, problem.facts[candidates.case], candidates.to)
        return candidates.take(fine)


class Lawless(Unchecked):
    """Changes whatever turns the decision by itself, sensitive or not."""

    def search(self, problem):
        cases, columns = np.divmod(np.arange(problem.facts.size), len(problem.features))
        parts = []
        for donor in self.rows_[:10]:
            to = np.full((len(cases), len(problem.features)), np.nan, dtype=np.float32)
            to[np.arange(len(cases)), columns] = donor[problem.features][columns]
            probabilities = problem.predict(problem.apply(cases, to))
            fine = problem.is_recourse(cases, probabilities)
            parts.append(Candidates(cases, to, probabilities).take(fine))
        return Candidates.join(*parts)


class Moody(Honest):
    """Draws anew at each call."""

    random = np.random.default_rng()

    def search(self, problem):
        candidates = super().search(problem)
        return candidates.take(self.random.random(len(candidates)) < 0.5)


class Crowded(Honest):
    """Tells people apart by who else is there."""

    def search(self, problem):
        return super().search(problem) if len(problem) > 1 else Candidates.none(problem)


def fitted(kind):
    """What makes a searcher of this kind from training people."""
    return lambda train: kind().fit(train)


def test_an_honest_searcher_passes(german):
    check_searcher(fitted(Honest), *german)


@pytest.mark.parametrize(
    ("bad", "law"),
    [
        (Unchecked, "valid under the predictor"),
        (Wasteful, "no proper subset"),
        (Lawless, "no rule is broken"),
        (Moody, "the same seed gives the same plans"),
        (Crowded, "one person at a time"),
    ],
)
def test_a_bad_searcher_is_caught(bad, law, german):
    with pytest.raises(AssertionError, match=law):
        check_searcher(fitted(bad), *german)


def test_a_slow_no_is_caught(german):
    with pytest.raises(AssertionError, match="after at most 0 rows"):
        check_searcher(fitted(Honest), *german, max_rows=0)


def test_shared_work_shows_progress_and_changes_nothing(german):
    """Several hundred people of four kinds of knowledge: all columns are equal, and progress ends
    where it should.
    """
    table, model = german
    rows = np.concatenate([table.test.X, table.calibration.X])
    rows[1::4, 9:], rows[2::4, :5], rows[3::4, 4:12] = np.nan, np.nan, np.nan
    people = People(rows, Background.of(table.train, model))
    steps = []
    alone = find_recourse(people, SurvivalSearch(table.train), k=3)
    shared = find_recourse(
        people,
        SurvivalSearch(table.train),
        k=3,
        n_jobs=4,
        progress=lambda *step: steps.append(step),
    )
    for name in ("of", "to", "probability_after", "effort", "survival", "low", "high"):
        assert np.array_equal(getattr(alone, name), getattr(shared, name), equal_nan=True)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert len(steps) >= 4
    assert steps[-1][0] == steps[-1][1]
    with pytest.raises(
        SettingError, match="n_jobs: a number of jobs, or -1 for one a processor, not 0"
    ):
        find_recourse(people, SurvivalSearch(table.train), n_jobs=0)


def test_a_searcher_shows_its_settings_in_a_notebook():
    shown = Nearest(neighbours=7)._repr_html_()
    assert "Nearest" in shown
    assert "7" in shown
