"""Small discrete worlds in which every plan can be listed, and a model that is a table."""

from itertools import combinations, product

import numpy as np
import pandas as pd

from edfa import Feature, Schema, Table
from edfa.predictors.base import Predictor


class Lookup(Predictor):
    """Each value says something, each pair of values too; drawn by a seed. It answers from any
    subset.
    """

    def __init__(self, seed=0, classes=2):
        self.seed = seed
        self.classes = classes

    def _fit(self, matrix, codes, progress):
        self.random_ = np.random.default_rng(self.seed).normal(
            size=(matrix.shape[1], 6, matrix.shape[1], 6, 3)
        )

    def _answer(self, mask, known):
        features, levels = np.flatnonzero(mask), known.astype(int)
        scores = np.zeros((len(known), 3))
        for a, i in enumerate(features):
            for b, j in enumerate(features[: a + 1]):
                scores += self.random_[i, levels[:, a], j, levels[:, b]]
        odds = np.exp(scores[:, : len(self.classes_)] / max(1, len(features)))
        return odds / odds.sum(axis=1, keepdims=True)


def world(kinds, sizes, seed=0, classes=2, changes=None):
    """A table with every combination of levels, and a fitted Lookup."""
    features = tuple(
        Feature(
            f"f{j}",
            kind,
            levels=tuple(f"{v}" for v in range(size)),
            change=(changes or ["free"] * len(kinds))[j],
        )
        for j, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    )
    rows = np.array(list(product(*(range(size) for size in sizes))))
    frame = pd.DataFrame({f.name: rows[:, j].astype(str) for j, f in enumerate(features)})
    names = tuple(f"class {c}" for c in range(classes))
    frame["y"] = [names[i % classes] for i in range(len(frame))]
    whole = pd.concat([frame] * 3, ignore_index=True)
    table = Table.from_frame(
        whole, Schema(features, "y", names[-1], classes=names), shares=(1.0, 0.0, 0.0)
    )
    return table.train, Lookup(seed).fit(table.train.X, table.train.y)


def all_plans(
    model,
    row,
    free,
    values,
    ordered,
    most=3,
    desired_class=None,
    allowed=lambda j, own, value: True,
    dominated=False,
):
    """Every minimal change set of one person, by trying everything; without dominated ones, or with
    them.
    """
    decide = lambda changed: int(model.predict(np.asarray([changed], np.float32))[0])  # noqa: E731
    now = decide(row)
    good = lambda decided: (  # noqa: E731
        (decided != now) if desired_class is None else (decided == desired_class != now)
    )
    valid = set()
    for count in range(1, most + 1):
        for chosen in combinations(free, count):
            for new in product(*(values[j] for j in chosen)):
                plan = frozenset(zip(chosen, new, strict=True))
                if any(v == row[j] or not allowed(j, row[j], v) for j, v in plan):
                    continue
                if any(smaller < plan for smaller in valid):
                    continue
                changed = np.array(row)
                for j, v in plan:
                    changed[j] = v
                if good(decide(changed)):
                    valid.add(plan)
    if dominated:
        return valid
    return {
        p
        for p in valid
        if not any(q != p and nearer(dict(q), dict(p), row, ordered) for q in valid)
    }


def nearer(q, p, row, ordered):
    """Whether q changes the same features in the same directions, and none of them more."""
    return q.keys() == p.keys() and all(
        q[j] == p[j]
        or (
            ordered[j]
            and (q[j] - row[j]) * (p[j] - row[j]) > 0
            and abs(q[j] - row[j]) < abs(p[j] - row[j])
        )
        for j in p
    )


def as_sets(plans, row):
    """The plans of one row as sets of (feature, value)."""
    return [
        frozenset((int(j), float(v[j])) for j in np.flatnonzero(~np.isnan(v)))
        for v in plans.to[plans.of == row]
    ]


# A world in which every combination of these is as likely as any other, three training people each.
KINDS, SIZES = ("categorical", "ordinal", "categorical", "ordinal"), (3, 4, 2, 3)


def partly(train, mask, count=12, seed=0):
    """Some training people's facts, of which only these are known."""
    rows = np.unique(train.X, axis=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))[:count]]
    return np.where(mask, rows, np.float32(np.nan))


def matching(mask):
    """How many training people agree with anybody on what is known: every combination of the rest,
    three times.
    """
    return 3 * int(np.prod([size for size, known in zip(SIZES, mask, strict=True) if not known]))


def by_hand(model, train, row, to, desired_class=None):
    """The share of all training people with these facts for whom the plan works, asked one at a
    time.

    Where any other decision is recourse, today's must be theirs too.
    """
    known, now = ~np.isnan(row), model.predict(row[None])[0]
    stands = []
    for other in train.X[(train.X[:, known] == row[known]).all(axis=1)]:
        then = model.predict(np.where(np.isnan(to), other, to)[None])[0]
        good = then != now if desired_class is None else then == desired_class
        stands.append(good and (desired_class is not None or model.predict(other[None])[0] == now))
    return float(np.mean(stands))
