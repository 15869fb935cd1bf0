"""Three endings of an interview: what breaks each promise, by hand; whom they count, by
enumeration; how people end, by loops.
"""

from itertools import product

import numpy as np
import pytest
from effort import some
from eight_people import EVERYBODY, Judges, make_plans, points
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa.certification import NO_PLAN, Against, Records
from edfa.certification.endings import (
    ENDINGS,
    LOSS_OF,
    count_for_all,
    replay_endings,
    stop_endings,
)
from edfa.certification.records import Runs
from edfa.certification.replay import Decisions, in_vain, replay
from edfa.certification.risk_curve import trace

# What breaks a promise

GAP = 6  # every sixth row has no plan: somebody has none at the last step
JUDGE = np.arange(8) % 2  # of each person
REFERENCES = {
    "trajectory_end": (Against(), lambda person, facts: points(facts, "ab")),
    "all_features": (Against("all_features", EVERYBODY), lambda person, facts: points(facts)),
    "retrained": (
        Against("retrained", EVERYBODY, Judges(), JUDGE),
        lambda person, facts: int(Judges().decide(JUDGE[person], np.array([facts]))[0]),
    ),
}


def possible(plans):
    """A signal for each ending: a number where a person is in its state."""
    granted = plans.decision == 1
    states = {"granted": granted, "act": plans.legal & ~granted, "nothing": ~granted & ~plans.legal}
    rising = np.linspace(0, 0.5, len(plans.people))
    return {name: np.where(states[name], rising, np.nan) for name in ENDINGS}


def by_hand(plans, decide):
    """Each loss of every row from ``decide(person, facts)``, (rows,) by ending."""
    lost = {name: [] for name in ENDINGS}
    for row, person in enumerate(plans.people.person):
        facts = EVERYBODY[person]
        granted = decide(person, facts) == 1
        lost["granted"].append(not granted)
        lost["nothing"].append(granted or (3 * person + 2) % GAP != GAP - 1)  # a plan at the end
        if row % GAP == GAP - 1:
            lost["act"].append(np.nan)
            continue
        changed = facts.copy()
        changed[row % 2] = 1 - row % 2
        lost["act"].append(decide(person, changed) != 1 or points(facts, "ab") == 1)
    return {name: np.array(losses, dtype=float) for name, losses in lost.items()}


def replayed(reference):
    plans = make_plans(gap=GAP)
    against, decide = REFERENCES[reference]
    options = {"favourable": 1, "advisor": "points", "against": against}
    return plans, replay_endings(plans, possible(plans), **options), decide


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_breaks_each_promise_one_person_at_a_time(reference):
    """By the reference, or by the model that people meet: either breaks it."""
    plans, records, decide = replayed(reference)
    by_reference, by_model = by_hand(plans, decide), by_hand(plans, lambda _, f: points(f, "ab"))
    for name, part in records.items():
        broken = np.maximum(by_reference[name], by_model[name])
        np.testing.assert_array_equal(part.loss, broken)
        assert 0 < np.nanmean(part.loss) < 1, name
        np.testing.assert_array_equal(part.legal, ~np.isnan(possible(plans)[name]))
        assert (part.loss_name, part.signal_name) == (LOSS_OF[name], name)
        assert (part.reference, part.advisor) == (reference, "points")
        np.testing.assert_array_equal(part.refused, plans.people.decision != 1)
    today = [points(EVERYBODY[person], "ab") == 1 for person in plans.people.person]
    np.testing.assert_array_equal(records["act"].wasted, today)
    assert records["granted"].wasted is None


def test_the_model_that_people_meet_has_a_say_under_every_reference():
    """What it alone breaks is broken, and so is what the reference alone breaks."""
    for reference, names in (("all_features", ("nothing",)), ("retrained", ENDINGS)):
        plans, records, decide = replayed(reference)
        alone, today = by_hand(plans, decide), by_hand(plans, lambda _, f: points(f, "ab"))
        for name in names:
            assert ((records[name].loss == 1) & (alone[name] == 0)).any(), (reference, name)
            assert ((today[name] == 1) & (alone[name] == 0)).any()
        assert any((alone[name] > today[name]).any() for name in ENDINGS), reference


def test_all_that_can_be_decided_about_a_plan():
    """Sixteen people, one for each set of decisions: only who is refused, and granted by both
    models with the plan, did not act in vain.
    """
    cells = np.array(list(product([0, 1], repeat=4)))
    decided, today = (
        Decisions(np.zeros((16, 2)), cells[:, 0], cells[:, i], cells[:, i + 1]) for i in (0, 2)
    )
    helped = (cells[:, 1] == 1) & (cells[:, 3] == 1) & (cells[:, 2] == 0)
    np.testing.assert_array_equal(in_vain(decided, today, 1), ~helped)
    assert helped.sum() == 2, "what the reference says of them as they are makes no difference"
    none = Decisions(np.zeros((1, 2)), *np.zeros((2, 1), dtype=int), np.array([NO_PLAN]))
    assert np.isnan(in_vain(none, none, 1)).all()


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_replay_of_plans_alone_says_who_acts_in_vain(reference):
    plans, records, _ = replayed(reference)
    against = REFERENCES[reference][0]
    alone = replay(plans, loss="in_vain", favourable=1, advisor="points", against=against)
    np.testing.assert_array_equal(alone.loss, records["act"].loss)
    np.testing.assert_array_equal(alone.wasted, records["act"].wasted)
    let_down = replay(plans, loss="let_down", favourable=1, advisor="points", against=against)
    assert (alone.loss >= let_down.loss)[plans.legal].all()
    wasted = plans.legal & records["act"].wasted
    assert (alone.loss[wasted] == 1).all(), "who would be granted anyway acts in vain"
    assert (let_down.loss[wasted] == 0).any(), "and is not let down"


def test_without_a_signal_an_ending_has_no_records():
    plans = make_plans(gap=GAP)
    only = {"nothing": possible(plans)["nothing"]}
    assert [*replay_endings(plans, only, favourable=1, advisor="a")] == ["nothing"]


# Whom each ending counts, and how people end

LEVELS = [-np.inf, 0.0, 0.25, 0.5, 0.75]


@st.composite
def random_endings(draw, most=6):
    """Ragged runs whose every step is in one state, or in none; rows in any order, ties, and any
    losses.
    """
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most))
    size = sum(lengths)
    person = np.repeat(np.arange(len(lengths)), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    cells = st.tuples(
        st.sampled_from([*ENDINGS, None]), st.integers(0, 3), *[st.integers(0, 1)] * 3
    )
    rows = draw(st.lists(cells, min_size=size, max_size=size))
    order = draw(st.permutations(range(size)))
    person, step = person[order], step[order]
    return {
        name: Records(
            person=person,
            seed=0 * person,
            step=step,
            spent=1.0 * step,
            signal=np.array([signal / 4 for _, signal, *_ in rows]),
            loss=np.array([row[2 + i] for row in rows]),
            legal=np.array([state == name for state, *_ in rows]),
            signal_name=name,
            loss_name=LOSS_OF[name],
        )
        for i, name in enumerate(ENDINGS)
    }


def ends_of(records, tau):
    """How each run ends, one step at a time: its row, and what the person is told."""
    first, ends = records["act"], []
    for code in range(len(first.people)):
        rows = sorted(np.flatnonzero(first.code == code), key=lambda row: first.step[row])
        told = [
            (row, name)
            for row in rows
            for name, part in records.items()
            if part.legal[row] and part.signal[row] <= tau.get(name, np.nan)
        ]
        ends.append(told[0] if told else (rows[-1], None))
    return ends


thresholds = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(ENDINGS, st.sampled_from([*LEVELS, np.nan, np.inf]))
)


@settings(max_examples=some(300), deadline=None)
@given(random_endings(), thresholds)
def test_how_people_end_against_a_loop(records, tau):
    ends = stop_endings(records, tau)
    assert list(zip(ends.row.tolist(), ends.ending, strict=True)) == ends_of(records, tau)


@settings(max_examples=some(100), deadline=None)
@given(random_endings(), st.data())
def test_everybody_may_have_thresholds_of_their_own(records, data):
    size = len(records["act"].people)
    tau = {n: np.array(data.draw(st.tuples(*[st.sampled_from(LEVELS)] * size))) for n in ENDINGS}
    ends = stop_endings(records, tau)
    for code in range(size):
        alone = ends_of(records, {name: level[code] for name, level in tau.items()})
        assert (ends.row[code], ends.ending[code]) == alone[code]


def wrong_and_told(records, name, tau, target):
    """How many people the rules of all endings tell one of them, wrongly and at all."""
    part, wrong, told = records[name], 0, 0
    for row, ending in ends_of(records, tau):
        last = part.step[row] == part.step[part.code == part.code[row]].max()
        if ending == name and not (target == "early" and last):
            wrong, told = wrong + part.loss[row], told + 1
    return wrong, told


def wrong_and_counted(records, name, loosest, tau, target):
    """The same of those who are counted when that ending alone stops people."""
    curve = trace(Runs.from_records(count_for_all(records, name, loosest)), target)
    if curve is None:
        return 0, 0
    at = curve.index(tau)
    return curve.lost[at], curve.eligible[at]


@settings(max_examples=some(100), deadline=None)
@given(
    random_endings(),
    st.sampled_from(ENDINGS),
    st.sampled_from(["early", "act"]),
    st.tuples(*[st.sampled_from(LEVELS)] * 2),
)
def test_the_risk_of_an_ending_holds_whatever_the_others_turn_out_to_be(
    records, name, target, loosest
):
    """Of those who are told so, no larger share is told wrongly than of those who are counted: for
    every threshold, and all thresholds of the others up to the loosest.
    """
    others = [other for other in ENDINGS if other != name]
    limits = dict(zip(others, loosest, strict=True))
    for tau in LEVELS[1:]:
        wrong, counted = wrong_and_counted(records, name, limits, tau, target)
        for levels in product(*([t for t in LEVELS if t <= limits[other]] for other in others)):
            told_wrong, told = wrong_and_told(
                records, name, {name: tau, **dict(zip(others, levels, strict=True))}, target
            )
            assert told_wrong <= wrong
            assert told_wrong * counted <= wrong * told or counted == told_wrong == 0


@settings(max_examples=some(50), deadline=None)
@given(random_endings(), st.sampled_from(ENDINGS))
def test_where_no_other_ending_stops_anybody_all_are_counted(records, name):
    assert count_for_all(records, name, {}).counts.all()
    for tau in LEVELS:
        for target in ("early", "act"):
            alone = wrong_and_told(records, name, {name: tau}, target)
            assert wrong_and_counted(records, name, {}, tau, target) == alone


def two_kinds(n=400, wrong=20):
    """Nearly all are granted at once, rightly, and would have a good plan later; the others have
    only the plan, which is followed in vain.
    """
    person, step = (axis.ravel() for axis in np.indices((n, 3)))
    bad = person < wrong
    common = {"person": person, "seed": 0 * person, "step": step, "spent": 1.0 * step}
    granted = Records(
        **common,
        signal=np.where(bad, 0.4, 0.01),
        loss=np.where(bad, 1.0, 0.0),
        legal=step == 0,
        signal_name="granted",
        loss_name="overturned",
    )
    act = Records(
        **common,
        signal=np.full(len(person), 0.1),
        loss=np.where(bad, 1.0, 0.0),
        legal=step == 1,
        signal_name="act",
        loss_name="in_vain",
    )
    return {"granted": granted, "act": act}


def test_who_is_told_something_else_first_is_not_counted_as_told_rightly():
    """Alone the rule looks fine: 5 % act in vain. Beside the other one all do."""
    records = two_kinds()
    for loosest, share in ((-np.inf, 0.05), (0.005, 0.05), (0.01, 1.0), (0.3, 1.0)):
        wrong, counted = wrong_and_counted(records, "act", {"granted": loosest}, 0.1, "early")
        assert wrong / counted == share
    ends = stop_endings(records, {"granted": 0.02, "act": 0.1})
    told = ends.ending == "act"
    assert records["act"].loss[ends.row[told]].mean() == 1.0
    assert (ends.ending == "granted").sum() == 380
