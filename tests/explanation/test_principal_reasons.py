"""Principal reasons against closed forms: additive scores, either of two facts, one fact, and any
order of columns.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa.errors import DataError
from edfa.explanation.principal_reasons import Effort, principal_reasons
from edfa.predictors.base import Predictor

NAN = np.nan


class Scored(Predictor):
    """A model whose log odds are a function of complete rows; what is not known counts as zero."""

    def __init__(self, score=None, features=3):
        self.score, self.features = score, features
        self.classes_ = np.array([0, 1])
        self.prior_ = np.array([0.5, 0.5])
        self.n_features_in_ = features
        self.varies_ = np.ones(features, dtype=bool)

    def _fit(self, matrix, codes, progress):
        raise NotImplementedError

    def _answer(self, mask, known):
        rows = np.zeros((len(known), self.features))
        rows[:, mask] = known
        granted = 1 / (1 + np.exp(-self.score(rows)))
        return np.column_stack([1 - granted, granted])


def people(seed, n, features):
    return np.random.default_rng(seed).normal(size=(n, features)).astype(np.float32)


def additive(weights):
    return lambda rows: rows @ np.asarray(weights)


@given(st.integers(0, 10_000), st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_on_an_additive_score_a_contribution_is_the_points_below_people_just_above_the_line(
    seed, features
):
    weights = np.random.default_rng(seed).normal(size=features)
    rows = people(seed + 1, 300, features)
    scores = rows.astype(float) @ weights
    x = rows[scores.argmin()]
    reasons = principal_reasons(x, Scored(additive(weights), features), rows, 1)
    nearest = np.argsort(np.where(scores > 0, scores, np.inf), kind="stable")[:64]
    expected = weights * (x.astype(float) - rows[nearest].astype(float).mean(axis=0))
    np.testing.assert_allclose(reasons.contributions, expected, atol=1e-9)


def test_what_is_good_of_a_person_is_no_reason():
    """Paying more than others lowers the score beside a debt only: at this person's low debt it is
    good of them, and never a reason, although its contribution is negative.
    """

    def paid(rows):
        """The second fact helps without the first, and tells against whoever has it otherwise."""
        return np.where(rows[:, 0] > 0, -2 * rows[:, 1], 1.5 * rows[:, 1]) + 4 * rows[:, 0] - 1

    rows = people(3, 4000, 2)
    model = Scored(paid, 2)
    for value in np.linspace(0.1, 0.9, 9):
        x = np.array([-1.0, value], dtype=np.float32)
        reasons = principal_reasons(x, model, rows, 1)
        compared = rows[reasons.compared]
        moved = np.column_stack([np.full(len(compared), x[0]), compared[:, 1]])
        lowers = paid(moved).mean() < paid(x[None])[0] - 1e-6
        assert reasons.unfavourable[1] == (not lowers)
        if lowers:
            assert all(1 not in reason.features for reason in reasons.ranked)
    assert reasons.contributions[1] < 0, "it is the law that keeps it out, not its contribution"
    assert lowers
    assert [reason.features for reason in reasons.ranked] == [(0,)]


def test_what_is_at_its_best_is_no_reason():
    weights = np.array([1.0, 1.0, 1.0])
    rows = people(5, 300, 3)
    x = np.array([-2, -1, 0], dtype=np.float32)
    plain = principal_reasons(x, Scored(additive(weights)), rows, 1)
    assert plain.ranked[0].features == (0,)
    best = np.array([True, False, False])
    spared = principal_reasons(x, Scored(additive(weights)), rows, 1, best=best)
    assert all(0 not in reason.features for reason in spared.ranked)
    np.testing.assert_array_equal(spared.contributions, plain.contributions)


def test_either_of_two_facts_that_refuse_alone_are_both_listed():
    either = lambda rows: np.where((rows[:, 0] < 0) | (rows[:, 1] < 0), -2.0, 1.0)  # noqa: E731
    rows = np.abs(people(0, 200, 3))
    reasons = principal_reasons(np.array([-1, -1, 5], dtype=np.float32), Scored(either), rows, 1)
    assert [reason.features for reason in reasons.principal()] == [(0,), (1,)]
    np.testing.assert_allclose(reasons.contributions, [-1.5, -1.5, 0], atol=1e-9)


def test_a_model_of_one_fact_lists_that_one_and_what_is_not_known_is_none():
    rows = people(1, 200, 3)
    x = np.array([4, -3, NAN], dtype=np.float32)
    reasons = principal_reasons(x, Scored(additive([0, 1, 0])), rows, 1)
    assert [reason.features for reason in reasons.principal()] == [(1,)]
    assert np.isnan(reasons.contributions[2])


def test_the_order_of_columns_does_not_matter():
    rows, weights = people(2, 300, 5), np.array([1.0, -2, 0.5, 0, 3])
    x = rows[(rows @ weights).argmin()]
    order = np.array([3, 0, 4, 2, 1])
    plain = principal_reasons(x, Scored(additive(weights), 5), rows, 1)
    moved = principal_reasons(x[order], Scored(additive(weights[order]), 5), rows[:, order], 1)
    np.testing.assert_allclose(plain.contributions[order], moved.contributions, atol=1e-12)


def test_facts_that_share_a_reason_are_added_up():
    rows, weights = people(3, 300, 3), np.array([1.0, 1.0, 1.1])
    x = np.array([-1, -1, -1], dtype=np.float32)
    apart = principal_reasons(x, Scored(additive(weights)), rows, 1)
    together = principal_reasons(x, Scored(additive(weights)), rows, 1, groups=[0, 0, 1])
    assert apart.ranked[0].features == (2,)
    assert together.ranked[0].features == (0, 1)
    assert together.ranked[0].contribution == pytest.approx(apart.contributions[:2].sum())


def test_many_facts_are_sampled_within_their_standard_errors():
    interplay = lambda rows: rows[:, 0] * rows[:, 1] + rows[:, 2] - 0.5 * rows[:, 3] ** 2  # noqa: E731
    rows = people(4, 400, 5)
    x = np.array([-1.5, 1.2, -1, 1, 0.3], dtype=np.float32)
    exact = principal_reasons(x, Scored(interplay, 5), rows, 1)
    drawn = principal_reasons(x, Scored(interplay, 5), rows, 1, effort=Effort(exact=2))
    assert drawn.errors.any(), "drawn, not enumerated"
    assert (np.abs(drawn.contributions - exact.contributions) <= 4 * drawn.errors + 1e-9).all()
    assert drawn.contributions.sum() == pytest.approx(exact.contributions.sum())
    assert (exact.errors == 0).all()


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_contributions_add_up_and_there_is_always_a_reason(seed):
    random = np.random.default_rng(seed)
    pairs = random.normal(size=(4, 4))
    score = lambda rows: np.einsum("ni,ij,nj->n", rows, pairs, rows) + rows.sum(axis=1)  # noqa: E731
    rows = people(seed, 200, 4)
    scores = score(rows.astype(float))
    if not (scores > 0).any() or not (scores < 0).any():
        return
    reasons = principal_reasons(rows[scores.argmin()], Scored(score, 4), rows, 1)
    assert np.nansum(reasons.contributions) == pytest.approx(reasons.margin - reasons.baseline)
    assert 1 <= len(reasons.principal()) <= 4


def test_a_threshold_moves_the_line():
    rows = people(5, 400, 2)
    x = np.array([0.2, 0.2], dtype=np.float32)
    model = Scored(additive([1, 1]), 2)
    with pytest.raises(DataError, match="is granted"):
        principal_reasons(x, model, rows, 1)
    assert principal_reasons(x, model, rows, 1, threshold=0.7).margin == pytest.approx(
        0.4 - np.log(0.7 / 0.3), abs=1e-6
    )


@pytest.mark.parametrize(
    ("x", "rows", "message"),
    [
        ([NAN, NAN], [[1, 1]], "nothing is known"),
        ([5, 5], [[1, 1]], "is granted"),
        ([-5, -5], [[-1, -1]], "nobody to compare with"),
    ],
)
def test_without_a_refusal_or_anybody_granted_there_is_no_reason(x, rows, message):
    with pytest.raises(DataError, match=message):
        principal_reasons(
            np.array(x, np.float32), Scored(additive([1, 1]), 2), np.array(rows, np.float32), 1
        )
