"""What `edfa fit` warns of: leaks, lopsided decisions, nothing to change, levels that occur
once.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import edfa
from edfa import Feature, Schema, Table
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.warnings import find_warnings
from edfa.blanket.units import Blanket

FINE = AdvisorEvaluation(
    people=200,
    accuracy=0.7,
    accuracy_end=0.7,
    accuracy_all=0.7,
    cost=1,
    cost_end=1,
    cost_all=2,
    n=100,
    risk=0.1,
    risk_error=0.01,
    early=0.5,
    refused=0.4,
    coverage=0.9,
)


def table(extra=None, kind="continuous", name="extra", n=600, target="y", **keys):
    """People with an income that says something, and one more column."""
    random = np.random.default_rng(0)
    income = random.normal(0, 1, n)
    y = random.random(n) < 1 / (1 + np.exp(-income))
    columns = {"income": income} | ({} if extra is None else {name: extra(y, random)})
    features = [Feature("income", "continuous")] + (
        [] if extra is None else [Feature(name, kind, **keys)]
    )
    frame = pd.DataFrame(columns | {target: np.where(y, "good", "bad")})
    return Table.from_frame(frame, Schema(tuple(features), target, "good"))


def warn(of, blanket=("income",), **evaluation):
    return find_warnings(of, Blanket("y", dict.fromkeys(blanket, ())), replace(FINE, **evaluation))


@pytest.mark.parametrize("name", ["german", "adult", "taiwan"])
def test_nothing_is_said_of_tables_in_order(name):
    of = edfa.load(name, cap=2000)
    blanket = tuple(f.name for f in of.schema if f.actionable)[:2]
    assert find_warnings(of, Blanket(of.schema.target, dict.fromkeys(blanket, ())), FINE) == ()


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("continuous", lambda y, random: y + random.normal(0, 0.05, len(y))),
        (
            "continuous",
            lambda y, random: np.where(
                y, random.uniform(-1, 1, len(y)), random.choice([-3, 3], len(y))
            ),
        ),
        ("categorical", lambda y, random: np.where(y, "open", "written off")),
        ("categorical", lambda y, random: np.where(y, random.choice(["a", "b"], len(y)), "c")),
        (
            "continuous",
            lambda y, random: np.where(y, np.nan, random.uniform(0, 9, len(y))),
        ),  # the gap itself tells
    ],
)
def test_a_feature_that_nearly_decides_the_outcome_is_a_leak(kind, extra):
    (warning,) = warn(table(extra, kind))
    assert warning.startswith("extra alone nearly decides y (AUROC ")
    assert warning.endswith("is it known before the outcome is?")


def test_a_level_a_person_is_no_leak_but_levels_that_occur_once():
    (warning,) = warn(
        table(lambda y, random: [f"street {i}" for i in range(len(y))], "categorical")
    )
    assert warning == "extra: 360 of 360 levels occur once; merge them, or leave it out"


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("y_date", "y", False),  # one letter tells nothing
        ("default_date", "default", True),
        ("paidAmount", "paid", True),
        ("amount", "paid", False),
        ("recoveries", "y", True),
        ("final_decision", "y", True),
        ("days_late_after", "y", True),
        ("finalised", "y", False),
    ],
)
def test_names_of_what_comes_after_the_outcome(name, target, said):
    found = warn(table(lambda y, random: random.normal(0, 1, len(y)), name=name, target=target))
    assert [w.split()[0] for w in found] == ([name] if said else [])


def test_a_blanket_of_one_that_is_nearly_always_right():
    (warning,) = warn(table(), accuracy_end=0.985)
    assert warning == (
        "income is all that matters, and right about 98.5%; is it the outcome under another name?"
    )
    assert warn(table(), accuracy_end=0.97) == ()
    two = table(lambda y, random: random.normal(0, 1, len(y)))
    assert warn(two, ("income", "extra"), accuracy_end=0.985) == ()


@pytest.mark.parametrize(
    ("people", "refused", "said"),
    [
        (200, 0.0, "nobody of 200 people would be refused"),
        (5000, 0.005, "only 25 of 5,000 people would be refused"),
        (200, 0.03, "only 6 of 200 people would be refused"),
        (200, 1.0, "nobody of 200 people would be granted"),
        (5000, 0.02, None),
        (200, 0.05, None),
    ],
)
def test_nobody_or_nearly_nobody_refused_or_granted(people, refused, said):
    found = warn(table(), people=people, refused=refused)
    assert len(found) == (said is not None)
    if said:
        assert found[0].startswith(said)
        assert "--threshold balanced" in found[0]
        assert "% of training people have 'good'" in found[0]


def test_nothing_to_change():
    frozen = table(lambda y, random: random.normal(0, 1, len(y)), change="frozen")
    assert warn(frozen, ("extra",)) == (
        "nothing that matters for y can be changed by the card, so nobody can have a plan",
    )
    assert warn(frozen, ("extra", "income")) == ()


def test_only_training_people_are_looked_at():
    of = table(lambda y, random: random.normal(0, 1, len(y)))
    leaky = of.frame.copy()
    others = ~leaky.index.isin(of._rows["train"])
    leaky.loc[others, "extra"] = np.where(of.y[others] == 1, 9.0, -9.0)
    assert warn(Table.from_frame(leaky, of.schema)) == ()
