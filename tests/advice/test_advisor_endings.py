"""Three endings of an interview: interviews, files and replays tell the same, who goes on is promised
nothing, and nothing peeks.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from advisors import adults, begin, ending, part_way, walk, words
from effort import some
from hostile.folders import rehash

import edfa
from edfa import Overlay
from edfa.advice.assessment import Assessment
from edfa.advice.batch import advise
from edfa.advice.calibration_people import CalibrationPeople
from edfa.advice.evaluation import EXCESS
from edfa.advice.fitted import identify_advisor
from edfa.advice.promise import (
    OBSERVED,
    State,
    certify,
    certify_people,
    dry_run,
    dry_run_advisor,
    find_certificate,
    find_plans,
    is_stopped_before,
    observe,
    roll_out,
)
from edfa.advice.signals import find_signals
from edfa.certification.endings import ENDINGS, LOSS_OF, stop_endings
from edfa.certification.records import Records
from edfa.errors import UnreadableError
from edfa.people import People
from edfa.recourse.outlook import Outlook

NAN = np.float32(np.nan)
VERDICTS = {"granted", "nothing", "no_plan"}


@cache
def fitted():
    return ending().fitted


@cache
def rollout():
    """All test people, asked to the end."""
    return roll_out(fitted(), adults().test.X)


@cache
def ends():
    """How each of them ends."""
    taus = {name: made.tau for name, made in ending().endings.items()}
    return stop_endings(rollout().endings, taus)


def rows_of(person):
    """The rows of a test person's run."""
    return np.flatnonzero(rollout().endings["act"].person == person)


def path():
    """The questions in the policy's order, beyond the start set."""
    trajectory = rollout().trajectory
    return [fitted().schema.names[j] for j in trajectory.feature[rows_of(0)[1:]]]


# What is promised


def test_each_ending_has_a_certificate_at_a_third_of_delta():
    advisor, promise = ending(), fitted().promise
    assert [*advisor.endings] == [e.name for e in promise.endings] == [*ENDINGS]
    alphas = {"granted": 0.05, "act": 0.2, "nothing": 0.1}
    for name, made in advisor.endings.items():
        assert made.certified, name
        assert (made.alpha, made.loss, made.target) == (alphas[name], LOSS_OF[name], "early")
        assert made.delta == pytest.approx(0.05 / 3)
        assert made.family_delta == 0.05
        assert made.advisor == advisor.fingerprint
        assert made.tau <= promise.ceiling_of(name) == 0.5
    assert advisor.certificate is advisor.endings["act"]


def test_the_certificates_are_those_of_the_calibration_people():
    """Made again from the same people: a second certification is the first one."""
    again = edfa.Advisor(reference="trajectory_end")
    again.fitted_ = fitted()
    again.certify(adults().calibration)
    assert again.endings == ending().endings


# Interviews against replays


def standing_by_hand(held, row, over):
    """The standing of somebody on the policy's path, from the records of their run.

    ``row`` is that of the state, ``over`` the row at which they were told an ending before, or
    None.
    """
    records = rollout().endings
    name = next((n for n in ENDINGS if records[n].legal[row]), None)
    signal, certificate = records[name].signal[row], ending().endings[name]
    low, complete = signal <= certificate.tau, held.question is None
    if complete and name != "act":
        return "granted" if name == "granted" else "no_plan", name, False
    if over is not None:
        return "off_path" if name == "act" else "ask", name, False
    return (name if low else "unsure" if complete else "ask"), name, bool(low)


def test_interviews_are_told_what_the_rules_of_all_endings_say():
    """Each is told an ending exactly where, and which, the replay says; before that nobody hears a
    verdict, and whoever goes on is promised nothing.
    """
    seen, advisor = Counter(), ending()
    for person, facts in enumerate(words(adults())[: some(200)]):
        rows, over = rows_of(person), None
        for step, held in enumerate(walk(begin(advisor, facts), facts)):
            standing, row = held.standing, rows[step]
            status, name, promised = standing_by_hand(held, row, over)
            assert (standing.status, standing.ending, standing.promised) == (status, name, promised)
            assert standing.complete == (held.question is None)
            assert standing.ends == (standing.promised or standing.complete)
            assert standing.may_act == (status == "act")
            assert standing.status not in VERDICTS or standing.ends
            expected = advisor.endings[name] if promised else None
            assert held.certificate is expected or held.certificate == expected
            assert (held.guarantee is None) == (not promised)
            if over is None:
                assert (standing.deviations, standing.since) == ((), None)
            elif not standing.complete or name == "act":
                assert (standing.deviations, standing.since) == (("passed",), over)
                assert standing.for_wishes
            if promised:
                assert standing.signal == rollout().endings[name].signal[row]
                assert standing.tau == advisor.endings[name].tau
                assert row == ends().row[person]
                assert ends().ending[person] == name
                over = step
            seen[status, over is None] += 1
        if over is None:  # a verdict after the last question is no promise
            assert ends().row[person] == rows[-1]
    assert min(seen[name, False] for name in ENDINGS) >= 5
    assert seen["off_path", False] >= 5
    assert seen["ask", True] >= 5


def test_files_are_told_what_interviews_are_told():
    """Of people on the policy's path the same; of others no more."""
    advisor, seen = ending(), Counter()
    facts = adults().test.X[: some(150)]
    known = rollout().trajectory.when[: len(facts)]
    for step in (0, 1, 2, len(path())):
        rows = np.where((known >= 0) & (known <= step), facts, NAN)
        frame = adults().encoder.decode(facts).astype(object).where(~np.isnan(rows), None)
        told = advise(advisor.fitted, frame)
        for status, person in zip(told["status"], frame.to_dict("records"), strict=True):
            if any(v is not None and v != v for v in person.values()):
                continue  # a gap that is told as such is no empty cell
            held = advisor.interview({k: v for k, v in person.items() if v is not None})
            assert status == held.standing.status, step
            seen[status] += 1
    assert min(seen[name] for name in (*ENDINGS, "ask", "no_plan")) >= 2


def test_a_file_of_people_anywhere_promises_no_more_than_interviews():
    advisor, rows = ending(), part_way(ending(), adults().test.X)[: some(100)]
    frame = adults().encoder.decode(adults().test.X[: len(rows)]).astype(object)
    frame = frame.where(~np.isnan(rows), None)
    told = advise(advisor.fitted, frame)
    for status, person in zip(told["status"], frame.to_dict("records"), strict=True):
        held = advisor.interview({k: v for k, v in person.items() if v is not None and v == v})
        if status != held.standing.status:
            assert status in ("off_path", "ask")
            assert {"start", "order"} & {*held.standing.deviations}


def test_a_glance_at_an_earlier_state_says_what_the_whole_search_says():
    """Whether somebody was stopped there is seen from one plan that is sure enough."""
    states, records = rollout().trajectory.people().take(np.arange(600)), rollout().endings
    for act, granted in ((0.1, 0.02), (0.3, 0.1), (0.5, np.nan), (np.nan, 0.2)):
        tau = {"granted": granted, "act": act, "nothing": 0.2}
        looked = Assessment.of(fitted(), states.X).stops(tau, 3)
        told = [part.legal & (part.signal <= tau[name]) for name, part in records.items()]
        np.testing.assert_array_equal(looked, np.logical_or.reduce(told)[:600])


# States of one's own


def states():
    """Some states off the policy's path."""
    first, second, third, *_ = path()
    return {
        "out of order": State(known=(second,)),
        "later": State(known=(first, third)),
        "declined": State(known=(second, third), declined=(first,)),
        "limits": State(known=(first,), overlay=Overlay(max_changes=1)),
        "at once": State(known=(), overlay=Overlay(max_changes=1)),
        "start missing": State(known=(first,), missing=(fitted().schema.start[0],)),
    }


def stopped_by_hand(state, row):
    """Follow one person towards a state: whether a rule stops them at a state before it."""
    target, start = state.known_in(fitted()), fitted().background.start
    if (start & ~target).any():
        return False
    facts, stopped = np.where(start, row, NAN), False
    while not np.array_equal(~np.isnan(facts) & fitted().relevant, target):
        seen = Assessment.of(
            fitted(), facts[None], declined=~target[None]
        )  # asked towards it alone
        open_ = People(facts[None], fitted().background)  # anything might be asked next
        signals = find_signals(fitted(), find_plans(fitted(), open_))
        stopped |= any(signals[n][0] <= ending().endings[n].tau for n in ENDINGS)
        chosen = seen.next[0]
        if chosen < 0:
            break
        facts[chosen] = row[chosen]
    return stopped


@pytest.mark.parametrize("name", ["out of order", "later", "declined", "limits", "at once"])
def test_who_is_stopped_before_a_state_is_found_by_following_each(name):
    state, people = states()[name], fitted().calibration[: some(60)]
    expected = [stopped_by_hand(state, row) for row in people]
    assert is_stopped_before(fitted(), state, people).tolist() == expected
    assert any(expected) == (name != "at once")
    assert not all(expected)


def test_who_lacks_a_fact_of_the_start_set_was_stopped_nowhere():
    state, people = states()["start missing"], fitted().calibration[:50]
    assert not is_stopped_before(fitted(), state, people).any()


def observed_by_hand(state, row, number):
    """What one person could be told in a state, and what becomes of it, by ending; None: they
    cannot be told so.
    """
    advisor = fitted()
    known = state.known_in(advisor)
    never = [advisor.schema.index(n) for n in (*state.declined, *state.missing)]
    now, end = np.where(known, row, NAN), np.where(advisor.asked | known, row, NAN)
    end[never] = NAN
    plans, later = (
        find_plans(advisor, People(facts[None], advisor.background, overlay=state.overlay))
        for facts in (now, end)
    )
    signals = find_signals(advisor, plans)
    at_end = advisor.predictor.predict(end[None])[0] == advisor.favourable
    losses = {"granted": not at_end, "nothing": at_end or bool(later.legal[0]), "act": None}
    if plans.legal[0]:
        changed = plans.make_changes(np.array([0]), end[None])
        helps = advisor.predictor.predict(changed)[0] == advisor.favourable
        losses["act"] = at_end or not helps
    return {
        name: None if np.isnan(signal[0]) else (signal[0], float(losses[name]))
        for name, signal in signals.items()
    }


@pytest.mark.parametrize("name", ["out of order", "declined", "limits"])
def test_a_state_is_observed_among_those_who_were_not_stopped_before(name):
    state, people = states()[name], fitted().calibration
    records = observe(fitted(), state, people, 60)
    drawn = np.random.default_rng(0).permutation(len(people))[:60]
    left = drawn[~is_stopped_before(fitted(), state, people[drawn])]
    assert {len(part.people) for part in records.values()} == {len(left)}
    for number, i in enumerate(left):
        expected = observed_by_hand(state, people[i], number)
        for ending_name, part in records.items():
            here = (part.person == number) & part.legal
            found = [*zip(part.signal[here], part.loss[here], strict=True)]
            assert found == ([] if expected[ending_name] is None else [expected[ending_name]])
    assert sum(part.legal.sum() for part in records.values()) == len(left)


def test_a_state_has_certificates_of_its_own():
    """Those of the people observed there, whose tests begin where training people say."""
    state = states()["limits"]
    made = find_certificate(fitted(), state)
    dry, training = dry_run_advisor(replace(fitted(), judges=None), seed=0)
    tried = observe(dry, state, training, 400)
    records = observe(fitted(), state, fitted().calibration, OBSERVED)
    assert made == certify(fitted(), state, records, tried)
    assert [*made] == [*ENDINGS]
    drawn = np.random.default_rng(0).permutation(len(fitted().calibration))[:OBSERVED]
    stopped = is_stopped_before(fitted(), state, fitted().calibration[drawn])
    for name, certificate in made.items():
        assert certificate.people == (~stopped).sum() < len(drawn)
        assert (certificate.target, certificate.loss) == ("act", LOSS_OF[name])
        assert certificate.delta == pytest.approx(0.05 / 3)
        assert certificate.family_delta == 0.05
    assert any(certificate.certified for certificate in made.values())


def test_who_has_wishes_is_under_the_certificates_of_their_state():
    """Who wants one change at most, before and after the first question; and who tells something
    else first.
    """
    first, second, *_ = path()
    limits, seen = states()["limits"].overlay, Counter()
    for person in words(adults())[:70]:
        if first not in person or second not in person:
            continue
        limited = begin(ending(), person, overlay=limits)
        for name, deviation, held in (
            ("at once", "limits", limited),
            ("limits", "limits", limited.copy().answer({first: person[first]})),
            ("out of order", "order", begin(ending(), person).answer({second: person[second]})),
        ):
            standing = held.standing
            assert (standing.deviations, standing.for_wishes) == ((deviation,), True)
            certificate = find_certificate(fitted(), states()[name])[standing.ending]
            low = certificate.certified and standing.signal <= certificate.tau
            assert standing.promised == low
            assert held.certificate == (certificate if low else None)
            if low:
                assert standing.status == standing.ending
            else:
                assert standing.status in ("ask", "off_path")
            seen[name, standing.status] += 1
    assert seen["at once", "granted"]
    assert seen["at once", "nothing"]
    assert seen["limits", "act"]
    assert seen["out of order", "ask"]


# Groups


@cache
def by_sex():
    """The same advisor with a promise to each sex: certificates from its own people."""
    made = replace(fitted(), promise=replace(fitted().promise, groups="sex"))
    made = replace(made, fingerprint=identify_advisor(made))
    people = CalibrationPeople.of(adults().calibration, made)
    records = roll_out(made, people.X).endings
    dry = dry_run(made, 0, -1, ["trajectory_end"])["trajectory_end"]
    return certify_people(made, people, records, dry), people, records, dry


def test_every_group_has_certificates_of_each_ending_from_its_own_people():
    made, people, records, dry = by_sex()
    labels = made.group_of(adults().calibration)
    assert {*labels} == {"Female", "Male"}
    for label in ("Female", "Male"):
        parts = {
            name: part.take(np.isin(part.person, np.flatnonzero(labels == label)))
            for name, part in records.items()
        }
        tried = {name: part.take(part.group == label) for name, part in dry.items()}
        alone = certify(made, State(group=label), parts, tried)
        for name in ENDINGS:
            certificate = made.promise[name].certificates[label]
            about = ("tau", "status", "risk", "bound", "n", "people", "anchor", "alpha", "delta")
            assert [getattr(certificate, a) for a in about] == [
                getattr(alone[name], a) for a in about
            ]
            assert certificate.people == (labels == label).sum() == (people.group == label).sum()
            found = made.certificate_for(label, name)
            assert found is (certificate if certificate.certified else None)
    assert made.certificate_for("Male", "granted").group == "Male"


def test_whose_group_is_not_known_is_under_what_holds_in_every_group():
    made = by_sex()[0]
    for name in ENDINGS:
        groups = [made.certificate_for(label, name) for label in ("Female", "Male")]
        unknown = made.certificate_for(None, name)
        tau = made.tau_for(np.array([None], dtype=object), name)[0]
        if None in groups:
            assert unknown is None
            assert np.isnan(tau)
        elif unknown is not None:
            assert unknown.tau == tau == min(part.tau for part in groups)
            assert unknown.delta == pytest.approx(2 * 0.05 / 3)
            assert unknown.family_delta == pytest.approx(0.1)


# What becomes of people


def test_the_evaluation_is_what_becomes_of_people_one_by_one():
    evaluation, records = ending().evaluation_, rollout().endings
    plans, last = rollout().plans, rollout().trajectory.last
    wrong, early, told, dear, costs = {}, {}, Counter(), [], []
    for person, (row, name) in enumerate(zip(ends().row, ends().ending, strict=True)):
        costs.append(records["act"].spent[row])
        if name is None:
            continue
        told[name] += 1
        if row == last[person]:
            continue
        wrong.setdefault(name, []).append(records[name].loss[row])
        early[name] = early.get(name, 0) + 1
        if name == "act" and plans.legal[last[person]]:
            now, then = (plans.effort[plans.first[r]] for r in (row, last[person]))
            dear.append(now > EXCESS * then)
    size = len(adults().test)
    for name in ENDINGS:
        found = evaluation.endings[name]
        assert (found.n, found.early) == (told[name], early[name])
        assert found.share == told[name] / size
        assert found.wrong == pytest.approx(np.mean(wrong[name]))
        assert 0 < found.early <= found.n
        share = np.mean(wrong[name])
        assert found.wrong_error == pytest.approx(np.sqrt(share * (1 - share) / early[name]))
    assert evaluation.cost == pytest.approx(np.mean(costs))
    assert evaluation.excess == pytest.approx(np.mean(dear))
    assert evaluation.n == told["act"]
    assert evaluation.loss == "in_vain"
    assert evaluation.broken == "in vain"
    acting = ends().row[ends().ending == "act"]
    assert evaluation.risk == pytest.approx(records["act"].loss[acting].mean())
    assert evaluation.wasted == pytest.approx(records["act"].wasted[acting].mean())
    accuracy = (rollout().trajectory.decision[ends().row] == adults().test.y).mean()
    assert evaluation.accuracy == pytest.approx(accuracy)
    for name in ENDINGS:  # of other people than it was promised on, with room for chance
        found, alpha = evaluation.endings[name], ending().endings[name].alpha
        assert found.wrong <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / found.early)


# Saved


@pytest.fixture
def folder(tmp_path):
    ending().save(tmp_path / "advisor")
    return tmp_path / "advisor"


def test_what_is_loaded_promises_the_same(folder):
    loaded = edfa.Advisor.load(folder)
    assert loaded.endings == ending().endings
    assert loaded.evaluation_ == ending().evaluation_
    assert loaded.fingerprint == ending().fingerprint
    ours, theirs = (advisor.fitted.outlook for advisor in (ending(), loaded))
    np.testing.assert_array_equal(ours.stuck, theirs.stuck)
    assert 0 < ours.stuck.mean() < 1
    states = part_way(ending(), adults().test.X)[:30]
    np.testing.assert_array_equal(ours.no_way(states), theirs.no_way(states))


def test_the_outlook_that_is_saved_is_that_of_the_training_people(folder):
    advisor = edfa.Advisor.load(folder).fitted
    again = Outlook.of(
        advisor.completions.neighbours,
        advisor.searcher,
        advisor.background,
        advisor.asked,
        advisor.operator_rules,
        advisor.favourable,
    )
    np.testing.assert_array_equal(again.stuck, advisor.outlook.stuck)


def spoil_outlook(folder, name, change):
    from safetensors.numpy import load_file, save_file

    arrays = load_file(folder / "outlook.safetensors")
    arrays[name] = change(arrays[name])
    save_file(arrays, folder / "outlook.safetensors")


TAMPERED = {
    "somebody is stuck": lambda f: spoil_outlook(f, "stuck", lambda a: 1 - a),
    "somebody is left out": lambda f: spoil_outlook(f, "stuck", lambda a: a[:-1]),
    "no outlook": lambda f: (f / "outlook.safetensors").unlink(),
    **{
        f"the certificate of {name}": lambda f, name=name: edit(f / f"{file_of(name)}.json")
        for name in ENDINGS
    },
    "certificates change places": lambda f: shutil.copy(
        f / "certificate_nothing.json", f / "certificate_granted.json"
    ),
}


def file_of(name):
    return "certificate" if name == "act" else f"certificate_{name}"


def edit(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    content["advisor"] = "0123456789abcdef"
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_tampered_with_is_refused(what, folder):
    TAMPERED[what](folder)
    with pytest.raises(UnreadableError):
        edfa.Advisor.load(folder)
    rehash(folder)
    with pytest.raises(UnreadableError, match="holds no whole advisor"):
        edfa.Advisor.load(folder)


def test_an_advisor_without_certificates_promises_nothing(folder):
    for name in ENDINGS:
        (folder / f"{file_of(name)}.json").unlink()
    rehash(folder)
    loaded = edfa.Advisor.load(folder)
    assert loaded.fitted.promise.certificate_id == ""
    for person in words(adults())[:10]:
        for held in walk(begin(loaded, person), person):
            assert not held.standing.promised
            assert held.certificate is None
            assert held.standing.status not in VERDICTS or held.standing.complete


# Nothing peeks


@pytest.mark.parametrize("step", [0, 1, 2])
def test_what_is_not_asked_yet_changes_nothing(step):
    """Every cell that is unknown at a step is another person's: what is watched up to there, where
    people end and how, stays to the bit.
    """
    X = adults().test.X[: some(150)]  # noqa: N806
    honest = roll_out(fitted(), X)
    when = honest.trajectory.when
    unknown = (when < 0) | (when > step)
    others = X[np.random.default_rng(step).permutation(len(X))]
    spoilt = roll_out(fitted(), np.where(unknown, others, X))
    taus = {name: made.tau for name, made in ending().endings.items()}
    differs = False
    for name in ENDINGS:
        ours, theirs = honest.endings[name], spoilt.endings[name]
        here, there = ours.step <= step, theirs.step <= step
        np.testing.assert_array_equal(ours.legal[here], theirs.legal[there])
        np.testing.assert_array_equal(ours.signal[here], theirs.signal[there])
        differs |= not np.array_equal(ours.loss[here], theirs.loss[there], equal_nan=True)
    assert differs, "what becomes of them is another matter"
    first, second = (stop_endings(each.endings, taus) for each in (honest, spoilt))
    by_then = honest.endings["act"].step[first.row] <= step
    np.testing.assert_array_equal(first.ending[by_then], second.ending[by_then])


@pytest.mark.parametrize("name", ["declined", "limits"])
def test_what_is_hidden_in_a_state_changes_nothing(name):
    state, people = states()[name], fitted().calibration[: some(150)]
    hidden = ~state.known_in(fitted())
    others = np.where(hidden, people[np.random.default_rng(1).permutation(len(people))], people)
    stopped = [is_stopped_before(fitted(), state, X) for X in (people, others)]
    np.testing.assert_array_equal(*stopped)
    ours, theirs = (observe(fitted(), state, X, len(people)) for X in (people, others))
    for ending_name in ENDINGS:
        one, other = ours[ending_name], theirs[ending_name]
        np.testing.assert_array_equal(one.legal, other.legal)
        np.testing.assert_array_equal(one.signal, other.signal)


# With one ending


def test_with_a_promise_about_plans_alone_nobody_is_told_anything_else():
    from advisors import surviving

    assert [*surviving().endings] == ["act"]
    assert surviving().fitted.outlook is None
    assert surviving().certificate.family_delta is None
    assert surviving().certificate.delta == 0.05


def test_records_of_all_endings_have_the_same_rows():
    parts = rollout().endings
    for name, part in parts.items():
        assert isinstance(part, Records)
        np.testing.assert_array_equal(part.person, parts["act"].person)
        np.testing.assert_array_equal(part.step, parts["act"].step)
        assert part.signal_name == fitted().promise[name].signal
    possible = np.column_stack([part.legal for part in parts.values()])
    assert (possible.sum(axis=1) == 1).all(), "at each step just one ending is possible"
    frame = pd.DataFrame({name: part.legal for name, part in parts.items()})
    assert (frame.mean() > 0.05).all()
