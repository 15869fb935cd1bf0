"""Eight people of three facts, whom a model that adds points decides about, and their plans."""

from itertools import product

import numpy as np
import pandas as pd
from exact import ExactModel

import edfa
from edfa import Feature, Schema
from edfa.people import Background, People, Provenance
from edfa.recourse.plans import Plans

NAMES = ("a", "b", "c")
WEIGHTS = np.array([2.0, -2.0, -2.0])  # granted from 1 on; what is not known counts as 0
BLANKET = edfa.Blanket("y", {"a": ("b",)})
EVERYBODY = np.array(list(product([0, 1], repeat=3)), dtype=np.float32)
KNOWN = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)  # at each step


class Points:
    """The posterior of a model that adds points."""

    def posterior(self, rows):
        granted = np.nansum(rows * WEIGHTS, axis=1) >= 1
        return np.where(granted[:, None], [0.2, 0.8], [0.8, 0.2])


class Judges:
    """Two members: one asks for a, the other for neither b nor c."""

    columns = np.ones(3, dtype=bool)

    def __len__(self):
        return 2

    def decide(self, member, rows):
        return (rows[:, 0] == 1 if member == 0 else rows[:, 1] + rows[:, 2] == 0).astype(int)


def make_plans(steps=3, gap=5, **provenance):
    """Everybody after each question, with the plan "a becomes 1" at even rows, "b becomes 0" at odd
    ones; every fifth row (every ``gap``-th) has none.
    """
    features = tuple(Feature(name, "ordinal", levels=("0", "1")) for name in NAMES)
    frame = pd.DataFrame(np.tile(EVERYBODY, (4, 1)).astype(int).astype(str), columns=NAMES)
    frame["y"] = np.where(np.arange(32) % 2, "yes", "no")
    train = edfa.Table.from_frame(
        frame, Schema(features, "y", "yes", ("no", "yes")), shares=(1.0, 0.0, 0.0)
    ).train
    background = Background.of(train, ExactModel.of(Points(), 3, 2), BLANKET, aligned=True)
    person, step = (axis.ravel() for axis in np.indices((8, steps)))
    facts = np.where(KNOWN[step], EVERYBODY[person], np.float32(np.nan))
    people = People(facts, background, person=person, step=step, spent=1.0 * step)
    of = np.flatnonzero(np.arange(len(people)) % gap != gap - 1)
    to = np.full((len(of), 3), np.nan, dtype=np.float32)
    to[of % 2 == 0, 0], to[of % 2 == 1, 1] = 1, 0
    one, none = np.ones(len(of)), np.full((len(of), 3), np.nan, dtype=np.float32)
    return Plans(
        people=people,
        decision=people.decision,
        of=of,
        to=to,
        low=none[:, 0],
        high=none[:, 0],
        reached=one.astype(int),
        probability_before=0.2 * one,
        probability_after=0.8 * one,
        l0=one.astype(int),
        l2=one,
        heom=one,
        effort=one,
        valid=one.astype(bool),
        reasons={},
        provenance=Provenance(desired_class=1, **provenance),
    )


def points(facts, seen="abc"):
    return int(
        sum(w * v for w, v, name in zip(WEIGHTS, facts, NAMES, strict=True) if name in seen) >= 1
    )
