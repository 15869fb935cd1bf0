"""NICE against a slow transcription, one person and one hybrid at a time."""

import numpy as np
import pytest
from advisors import plain_german
from discrete import world

import edfa
from edfa.errors import UnknownNameError
from edfa.people import Background, People
from edfa.recourse import NICE, Rules, find_recourse


def transcription(model, train, row, free, reward, desired_class=None):
    """The algorithm as the paper tells it, for permitted values; HEOM is a sum."""
    known = np.flatnonzero(~np.isnan(row))
    predict = lambda rows: model.predict(np.asarray(rows, np.float32))  # noqa: E731
    probabilities = lambda changed: model.predict_proba(np.asarray([changed], np.float32))[0]  # noqa: E731
    seen = np.full_like(train.X, np.nan)
    seen[:, known] = train.X[:, known]
    now, decided = predict([row])[0], predict(seen)
    good = lambda c: (c != now) if desired_class is None else (c == desired_class)  # noqa: E731
    spread = np.ptp(train.X, axis=0)
    words = [f.kind == "categorical" for f in train.schema]

    def score(changed):
        by_class = probabilities(changed)
        return 1 - by_class[now] if desired_class is None else by_class[desired_class]

    def heom(a, b, j):
        return float(a[j] != b[j]) if words[j] else abs(a[j] - b[j]) / spread[j]

    donors = [i for i in range(len(train)) if good(decided[i]) and decided[i] == train.y[i]]
    donors.sort(key=lambda i: (round(sum(heom(row, train.X[i], j) for j in known), 6), i))
    for donor in donors[:50]:
        target = row.copy()
        target[free] = train.X[donor][free]
        if not good(predict([target])[0]):
            continue
        if reward == "none":
            return target
        current = row.copy()
        while not good(predict([current])[0]):
            left = [j for j in free if current[j] != target[j]]
            tries = []
            for j in left:
                hybrid = current.copy()
                hybrid[j] = target[j]
                gain = score(hybrid) - score(current)
                tries.append(gain if reward == "sparsity" else gain / heom(row, hybrid, j))
            j = left[int(np.argmax(tries))]
            current[j] = target[j]
        return current
    return None


@pytest.mark.parametrize("reward", ["none", "sparsity", "proximity"])
@pytest.mark.parametrize("desired_class", [None, 1])
def test_native_nice_agrees_with_a_slow_transcription(reward, desired_class):
    table = plain_german()
    model = edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)
    rows = table.test.X[:40].copy()
    rows[::2, 12:] = np.nan
    plans = find_recourse(
        People(rows, Background.of(table.train, model)),
        NICE(table.train, reward, literal=True),
        rules=Rules(reading="paper"),
        desired_class=desired_class,
    )
    changed, compared = plans.rows(), 0
    for i, row in enumerate(rows):
        free = [j for j, f in enumerate(table.schema) if not f.sensitive and not np.isnan(row[j])]
        done = desired_class is not None and model.predict(row[None])[0] == desired_class
        truth = (
            None if done else transcription(model, table.train, row, free, reward, desired_class)
        )
        mine = changed[plans.of == i]
        assert len(mine) == (truth is not None)
        if truth is not None:
            assert np.array_equal(mine[0], truth, equal_nan=True)
            compared += 1
    assert compared > (30 if desired_class is None else 5)


def test_three_classes_and_the_reward_of_likeness():
    train, model = world(
        ["ordinal", "categorical", "categorical", "ordinal"], [4, 3, 3, 4], seed=3, classes=3
    )
    people = People(train.X[::7], Background.of(train, model))
    for reward in ("sparsity", "plausibility"):
        plans = find_recourse(people, NICE(train, reward, justified=False))
        assert plans.legal.all()
        assert (model.predict(plans.rows()) != plans.decision[plans.of]).all()


def test_the_reward_of_likeness_leads_to_people_like_those_of_training():
    table = plain_german()
    model = edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)
    people = People(table.test.X, Background.of(table.train, model))
    gaps = {}
    for reward in ("sparsity", "plausibility"):
        searcher = NICE(table.train, reward, literal=True)
        plans = find_recourse(people, searcher, rules=Rules(reading="paper"))
        scale, words = (
            np.ptp(table.train.X, axis=0),
            [f.kind == "categorical" for f in table.schema],
        )
        gap = np.where(
            words,
            plans.rows()[:, None] != table.train.X,
            (plans.rows()[:, None] - table.train.X) / scale,
        )
        gaps[reward] = np.sqrt((gap**2).sum(axis=2)).min(axis=1).mean()
    assert gaps["plausibility"] < 0.99 * gaps["sparsity"]


def test_an_unknown_reward():
    with pytest.raises(UnknownNameError, match="did you mean 'sparsity'"):
        NICE(plain_german().train, "sparcity")
