"""Promises to people with wishes of their own: by hand, by resampling, never peeking, the same for
everybody.
"""

import json
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache, partial
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from advisors import begin, part_way, promising, seeing_all, surviving, walk, words
from effort import some

import edfa
from edfa import Overlay
from edfa.acquisition.loop import run_policy
from edfa.advice import promise as module
from edfa.advice.assessment import Assessment
from edfa.advice.batch import advise
from edfa.advice.fitted import NEVER_ACTS
from edfa.advice.promise import State, draw_judges, dry_run_advisor, find_certificate, observe
from edfa.advice.standing import find_standings, find_states
from edfa.certification import RecourseCertifier
from edfa.certification.certificate import GroupCertificates
from edfa.certification.rcps import choose_anchor
from edfa.certification.records import Records
from edfa.errors import DataError, SettingError, UnknownNameError

TABLE = edfa.load("german")
ALL = 10**6
COMPLETE = ("checking_status", "duration")
WISHES = {
    "everything is known": State(known=COMPLETE),
    "one declined": State(known=("duration",), declined=("checking_status",)),
    "locked": State(known=COMPLETE, overlay=Overlay(locked=("purpose",))),
    "start missing": State(known=COMPLETE, missing=("age",)),
    "prices": State(known=("checking_status",), overlay=Overlay(prices={"duration": 5.0})),
    "limits": State(known=COMPLETE, overlay=Overlay(locked=("duration",), max_changes=1)),
}


def silent(fitted, **changes):
    """The advisor with a certificate that lets nobody act on the policy's own path, so that its
    rule stops nobody on the way to any state.
    """
    own = {"reference": fitted.promise.reference, "advisor": fitted.fingerprint}
    made = replace(surviving().certificate, tau=-np.inf, **own, **changes)
    return promising(fitted, ending={"certificate": made, **changes})


@cache
def fitted(reference="retrained"):
    """The surviving advisor of German credit, promising against a reference."""
    return silent(promising(surviving().fitted, reference=reference))


@cache
def strict():
    """One whose promise can be broken, so that not everybody with a plan may act."""
    advisor = copy(seeing_all())
    advisor.fitted_ = silent(advisor.fitted)
    return advisor


def certificate_for(*parts):
    """The certificate of a state for being told to act."""
    return find_certificate(*parts)["act"]


def _by_hand(advisor, wishes, X):  # noqa: N803
    """Records of complete people in a state and at its end, one person at a time, with what each
    hides written out.
    """
    schema, judges = advisor.schema, advisor.judges
    known = ({*schema.start} | {*wishes.known}) - {*wishes.missing}
    hidden = [j for j, name in enumerate(schema.names) if name not in known]
    never = [j for j, n in enumerate(schema.names) if n in {*wishes.declined, *wishes.missing}]
    order = np.random.default_rng(0).permutation(len(X))
    judge = draw_judges(advisor, X[order])
    columns = {name: [] for name in ("person", "step", "signal", "loss", "legal")}

    def find(facts):
        return edfa.find_recourse(
            edfa.People(facts, advisor.background),
            advisor.searcher,
            rules=advisor.operator_rules.tighten(wishes.overlay),
            desired_class=advisor.favourable,
        )

    for number, i in enumerate(order):
        state, end = X[[i]].copy(), X[[i]].copy()
        state[:, hidden] = np.nan
        end[:, [*never, *np.flatnonzero(~advisor.relevant)]] = np.nan
        plans = find(state)
        loss = signal = np.nan
        if len(plans):
            signal = 1 - plans.survival[0]
            own = advisor.promise.reference == "trajectory_end"
            after = plans.make_changes(np.array([0]), end if own else X[[i]])
            by_judge = partial(judges.decide, int(judge[number]))
            decide = advisor.predictor.predict if own else by_judge
            loss = float(decide(after)[0] != advisor.favourable)
        later = bool(len(find(end)))  # nobody is told anything there
        rows = ((number, 0, signal, loss, bool(len(plans))), (number, 1, NEVER_ACTS, 0.0, later))
        for row in rows:
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    zeros = np.zeros(2 * len(X))
    return Records(seed=zeros, spent=zeros, signal_name="survival", **columns)


def states_of(assessment, rows):
    """The distinct states of some people, whose groups are what is known of them."""
    return find_states(assessment, rows, assessment.fitted.group_of(assessment.X))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        *zip(WISHES, ("retrained", "trajectory_end") * 3, strict=True),
        *(
            pytest.param(*other, marks=pytest.mark.long)
            for other in zip(WISHES, ("trajectory_end", "retrained") * 3, strict=True)
        ),
    ],
)
def test_a_certificate_for_wishes_is_the_certifiers_on_one_step_by_hand(name, reference):
    advisor, wishes = fitted(reference), WISHES[name]
    certificate = certificate_for(advisor, wishes)
    records = _by_hand(advisor, wishes, advisor.calibration)
    certifier = RecourseCertifier(0.2, 0.05, target="act", anchor=certificate.anchor, ceiling=0.5)
    expected = certifier.certificate_for(records)
    for part in (
        "status",
        "tau",
        "interval",
        "risk",
        "bound",
        "n",
        "people",
        "triggered",
        "complete",
        "n_more",
    ):
        assert getattr(certificate, part) == getattr(expected, part), part
    assert certificate.n >= 14
    assert (certificate.reference, certificate.loss, certificate.target) == (
        reference,
        "let_down",
        "act",
    )
    assert certificate.advisor == advisor.fingerprint
    tried, rows = dry_run_advisor(advisor, seed=0)
    dry = observe(tried, wishes, rows, module.OBSERVED_IN_TRAINING)["act"]
    anchor = choose_anchor(dry, len(records.people), 0.2, ceiling=0.5, target="act")
    assert certificate.anchor == anchor, "chosen on training people"


def test_wishes_differ_in_what_they_are_promised():
    made = {name: certificate_for(fitted(), wishes) for name, wishes in WISHES.items()}
    assert {certificate.status for certificate in made.values()} >= {"certified", "data_limited"}
    assert made["everything is known"].curve == made["locked"].curve, (
        "no plan would change the purpose anyway"
    )
    assert len({certificate.curve for certificate in made.values()}) == len(made) - 1


@pytest.mark.long
def test_the_promise_holds_over_samples_of_a_pool():
    """Calibration people drawn from a pool of people: the risk in the pool exceeds alpha in at most
    delta of draws.
    """
    advisor, wishes = fitted(), WISHES["prices"]
    people = np.concatenate([TABLE.test.X, TABLE.calibration.X])
    pool = observe(advisor, wishes, people, ALL)["act"]
    pool = pool.take(pool.step == 0)
    acting = pool.legal & (pool.signal <= 0.5)
    assert acting.sum() > 60
    alpha = (
        float(pool.loss[acting].mean()) * 0.98
    )  # the loosest rule breaks the promise, by a hair: the hardest case
    delta, draws, random = 0.1, 1000, np.random.default_rng(0)
    certifier = RecourseCertifier(alpha, delta, target="act", anchor=0.5, ceiling=0.5)
    broken = 0
    for _ in range(draws):
        rows = random.integers(len(pool), size=200)
        sample = pool.frame().iloc[rows].assign(person=np.arange(200))
        broken += certifier.search(Records.from_frame(sample)).passed > 0
    assert 0 < broken / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_a_sample_is_drawn_without_looking_at_what_becomes_of_plans():
    advisor, wishes = fitted(), WISHES["everything is known"]
    whole = observe(advisor, wishes, advisor.calibration, ALL)["act"]
    few = observe(advisor, wishes, advisor.calibration, 7)["act"]
    assert (len(whole.people), len(few.people)) == (len(advisor.calibration), 7)
    assert np.array_equal(few.signal, whole.signal[: len(few)])


@pytest.mark.parametrize("name", ["one declined", "prices", "start missing"])
def test_what_is_hidden_changes_no_plan_and_no_signal(name):
    """Everything that is not known in the state is another person's: who is refused, plans and
    signals stay.
    """
    advisor, wishes = fitted(), WISHES[name]
    hidden = ~wishes.known_in(advisor)
    others = advisor.calibration.copy()
    others[:, hidden] = advisor.calibration[np.random.default_rng(3).permutation(len(others))][
        :, hidden
    ]
    ours, theirs = (observe(advisor, wishes, X, ALL)["act"] for X in (advisor.calibration, others))
    now = ours.step == 0
    assert np.array_equal(ours.legal[now], theirs.legal[now])
    assert np.array_equal(ours.signal, theirs.signal)
    assert not np.array_equal(ours.loss, theirs.loss, equal_nan=True), (
        "what becomes of them is another matter"
    )


def test_wishes_of_people_are_read_off_their_assessment():
    own = Overlay(max_changes=2, never_ask=("duration",), locked=("purpose",))
    facts = np.where(fitted().relevant, TABLE.test.X[:3], np.float32(np.nan))
    facts[:, TABLE.schema.index("duration")] = np.nan
    facts[1, TABLE.schema.index("age")] = np.nan
    costs = np.broadcast_to(fitted().background.costs, facts.shape).copy()
    costs[2, TABLE.schema.index("job")] = 9
    assessment = Assessment.of(fitted(), facts, overlay=own)
    assessment = replace(assessment, people=replace(assessment.people, costs=costs))
    distinct, which = states_of(assessment, np.arange(3))
    limits = Overlay(locked=("purpose",), max_changes=2)
    common = {"known": ("checking_status",), "declined": ("duration",)}
    assert distinct[which[0]] == State(**common, overlay=limits)
    assert distinct[which[1]] == State(**common, overlay=limits, missing=("age",))
    assert distinct[which[2]] == State(**common, overlay=replace(limits, prices={"job": 9.0}))
    empty, _ = states_of(Assessment.of(fitted(), facts, overlay=Overlay()), np.array([0]))
    assert empty == [State(known=("checking_status",))]


def test_wishes_in_another_order_are_the_same():
    one = State(
        known=("duration", "checking_status"), overlay=Overlay(prices={"job": 1.0, "housing": 2.0})
    )
    other = State(
        known=("checking_status", "duration"), overlay=Overlay(prices={"housing": 2.0, "job": 1.0})
    )
    assert one.key == other.key
    assert find_certificate(fitted(), one) is find_certificate(fitted(), other)
    different = (
        State(known=COMPLETE, missing=("age",)),
        State(known=COMPLETE, declined=("job",)),
        WISHES["locked"],
    )
    assert len({w.key for w in (one, *different)}) == 4


def test_certificates_are_made_once_and_shared(monkeypatch):
    module.CERTIFICATES.forget()
    advisor = surviving().fitted
    made = []
    each = module._certify_state
    monkeypatch.setattr(module, "_certify_state", lambda *parts: made.append(parts) or each(*parts))
    own = Overlay(max_effort=50.0)
    held = [edfa.Interview(advisor, overlay=own).begin(person) for person in words(TABLE)[:40]]
    held = [interview for interview in held if interview.plans()]
    statuses = {interview.standing.status for interview in held}
    assert len(made) == 1, "everything is known of everybody"
    people = pd.DataFrame([dict(interview.log.facts) for interview in held])
    advise(advisor, people, overlays=pd.Series([json.dumps(own.to_dict())] * len(people)))
    held[0].receipt()
    assert len(made) == 1
    assert statuses <= {"act", "unsure", "off_path"}
    with ThreadPoolExecutor(4) as pool:
        certificates = list(
            pool.map(lambda _: find_certificate(advisor, WISHES["locked"]), range(4))
        )
    assert len(made) == 2
    assert all(certificate is certificates[0] for certificate in certificates)
    again = pickle.loads(pickle.dumps(advisor))  # noqa: S301
    assert find_certificate(again, WISHES["locked"]) is certificates[0], "the same advisor"
    monkeypatch.setattr(module.CERTIFICATES, "most", 1)
    for wishes in (WISHES["limits"], WISHES["locked"]):
        find_certificate(advisor, wishes)
    assert len(made) == 4, "what was not asked for lately is forgotten"
    assert len(module.CERTIFICATES) == 1
    stricter = silent(advisor, alpha=0.1)
    assert certificate_for(stricter, WISHES["locked"]).alpha == 0.1


def test_a_calibration_can_be_made_elsewhere_and_is_found_later():
    module.CERTIFICATES.forget()
    advisor, left = strict(), []
    room = lambda task: left.append(task) or True  # noqa: E731
    person = next(
        p
        for p in words(TABLE)
        if advisor.interview(p, overlay=Overlay(locked=("purpose",))).plans()
    )
    module.CERTIFICATES.forget()
    held = edfa.Interview(
        advisor.fitted, overlay=Overlay(locked=("purpose",)), certify_later=room
    ).begin(person)
    assert (held.standing.status, held.certificate, held.guarantee) == ("pending", None, None)
    other = edfa.Interview(
        advisor.fitted, overlay=Overlay(locked=("purpose",)), certify_later=room
    ).begin(person)
    assert other.standing.status == "pending"
    assert not held.standing.may_act
    assert len(left) == 1, "one calibration for both"
    left.pop()()
    at_once = advisor.interview(person, overlay=Overlay(locked=("purpose",)))
    assert held.standing == other.standing == at_once.standing
    assert held.certificate == at_once.certificate
    assert not left


def test_where_there_is_no_room_a_calibration_is_asked_for_again():
    module.CERTIFICATES.forget()
    full = lambda task: False  # noqa: E731
    for _ in range(2):
        assert find_certificate(fitted(), WISHES["locked"], full) is None
    assert not len(module.CERTIFICATES)
    assert certificate_for(fitted(), WISHES["locked"]).n > 0
    assert certificate_for(fitted(), WISHES["locked"], full).n > 0, "found, not made"


def test_an_error_is_not_kept(monkeypatch):
    advisor, calls = surviving().fitted, []
    module.CERTIFICATES.forget()

    def fails(*parts):
        calls.append(parts)
        raise DataError("once")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_certify_state", fails)
        with pytest.raises(DataError, match="once"):
            find_certificate(advisor, WISHES["locked"])
    assert certificate_for(advisor, WISHES["locked"]).n > 0


def test_progress_is_told_and_changes_nothing(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "PEOPLE_AT_A_TIME", 10)
    module.CERTIFICATES.forget()
    made = find_certificate(fitted(), WISHES["locked"], progress=lambda *done: calls.append(done))
    assert len(calls) > 3
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert {total for _, total in calls} == {len(fitted().calibration)}
    module.CERTIFICATES.forget()
    assert made == find_certificate(fitted(), WISHES["locked"])


def test_wishes_that_make_no_sense_are_errors():
    for wishes, error, message in (
        (State(known=("duraton",)), UnknownNameError, "did you mean 'duration'"),
        (State(declined=("duraton",)), UnknownNameError, "did you mean 'duration'"),
        (
            State(overlay=Overlay(prices={"duraton": 1.0})),
            UnknownNameError,
            "did you mean 'duration'",
        ),
    ):
        with pytest.raises(error, match=message):
            find_certificate(fitted("trajectory_end"), wishes)
    with pytest.raises(DataError, match="no certificate yet"):
        find_certificate(promising(fitted(), ending={"certificate": None}), State(()))


def test_where_nobody_is_refused_nothing_is_promised():
    granted = fitted().calibration[
        fitted().predictor.predict(fitted().calibration) == fitted().favourable
    ]
    module.CERTIFICATES.forget()
    certificate = certificate_for(
        replace(fitted(), calibration=granted), WISHES["everything is known"]
    )
    module.CERTIFICATES.forget()
    assert (certificate.status, certificate.n) == ("undefined", 0)


@cache
def grouped():
    """The advisor with a promise to each group of a feature that the model does not see; one of
    them has none.
    """
    own = fitted().promise.certificates[None]
    parts = {
        "yes": replace(own, group="yes"),
        "none": replace(own, group="none", status="data_limited"),
    }
    return promising(
        fitted(), groups="own_telephone", ending={"certificate": GroupCertificates(parts)}
    )


def test_promises_to_a_group_come_from_its_people_alone():
    advisor, wishes = grouped(), State(known=COMPLETE, group="yes")
    certificate = certificate_for(advisor, wishes)
    theirs = advisor.calibration[advisor.group_of(advisor.calibration) == "yes"]
    assert 0 < len(theirs) < len(advisor.calibration)
    certifier = RecourseCertifier(0.2, 0.05, target="act", anchor=certificate.anchor, ceiling=0.5)
    expected = certifier.certificate_for(_by_hand(advisor, wishes, theirs), group="yes")
    for part in ("status", "tau", "risk", "bound", "n", "people", "group"):
        assert getattr(certificate, part) == getattr(expected, part), part
    for group, error in (("maybe", DataError), (None, SettingError)):
        with pytest.raises(error, match="group"):
            find_certificate(advisor, State(known=COMPLETE, group=group))
    with pytest.raises(SettingError, match="group"):
        find_certificate(fitted(), wishes)


def test_people_are_under_the_certificate_of_their_group():
    advisor, seen = grouped(), Counter()
    people = words(TABLE)[:80]
    result = advise(advisor, pd.DataFrame(people))
    for status, person in zip(result["status"], people, strict=True):
        held = edfa.Interview(advisor).begin(person)
        assert status == held.standing.status
        if held.plans():
            group = person["own_telephone"]
            seen[group, status] += 1
            assert (status == "not_certified") == (group == "none")
            assert held.certificate is None or held.certificate.group == group
        unknown = edfa.Interview(advisor).begin(
            {k: v for k, v in person.items() if k != "own_telephone"}
        )
        assert unknown.standing.status in ("granted", "no_plan", "not_certified"), (
            "one of the groups has no promise"
        )
    assert seen["none", "not_certified"] > 5
    assert sum(count for (group, _), count in seen.items() if group == "yes") > 5


def _people(advisor, **own):
    """Complete interviews of people with plans, with wishes of their own, one by one."""
    held = (advisor.interview(person, **own) for person in words(TABLE)[:100])
    return (interview for interview in held if interview.plans())


OWN = {
    "locked": {"overlay": Overlay(locked=("purpose",))},
    "prices": {"overlay": Overlay(prices={"duration": 3})},
    "limits": {"overlay": Overlay(max_effort=50)},
}


@pytest.mark.parametrize("deviation", OWN)
def test_who_has_wishes_may_act_under_a_certificate_of_their_own(deviation):
    advisor = strict()
    held = list(_people(advisor, **OWN[deviation]))
    (wishes,), _ = states_of(held[0].assessment, np.arange(1))
    wishes = replace(wishes, at_once=True)  # they tell everything to begin with
    certificate = certificate_for(advisor.fitted, wishes)
    assert certificate.certified
    for interview in held:
        standing = interview.standing
        assert (standing.for_wishes, standing.deviations[-1:]) == (
            True,
            (deviation.replace("locked", "limits"),),
        )
        low = standing.signal <= certificate.tau
        assert standing.status == ("act" if low else "unsure")
        assert interview.certificate is (certificate if low else None)
        assert (interview.guarantee or "").endswith(
            "with your wishes to be like everybody else otherwise."
        ) == low
    assert {interview.standing.status for interview in held} == {"act", "unsure"}
    first = next(interview for interview in held if interview.standing.may_act)
    german = advisor.interview(dict(first.log.facts), **OWN[deviation], language="de").guarantee
    assert german.endswith(
        "Die Prüfung nimmt an, dass Menschen mit Ihren Wünschen sonst wie alle anderen sind."
    )
    assert f" {round(certificate.n * certificate.triggered)} " in german


def test_receipts_of_wishes_hold_wherever_they_are_replayed(tmp_path):
    advisor = strict()
    advisor.save(tmp_path / "advisor")
    loaded = edfa.Advisor.load(tmp_path / "advisor")
    acting = [
        next(held for held in _people(advisor, **own) if held.standing.may_act)
        for own in OWN.values()
    ]
    others = (advisor.interview({**person, "age": None}) for person in words(TABLE))
    acting.append(next(held for held in others if held.standing.may_act))
    for interview in acting:
        receipt = interview.receipt(time="then")
        assert "like everybody else otherwise" in receipt.certificate
        assert receipt.standing["for_wishes"]
        assert loaded.verify(receipt.to_json()).holds
        other = replace(receipt, certificate=strict().certificate.sentence)
        assert [d.part for d in loaded.verify(other).differences] == ["certificate"]
    assert all(
        loaded.verify(held.receipt()).holds
        for held in islice(_people(advisor, overlay=Overlay(locked=("duration",))), 3)
    )


def test_who_declines_is_certified_for_what_is_known():
    """Whatever was told before or after counts as known; the certificate is that of the state they
    are in.
    """
    advisor, seen = surviving(), Counter()
    for person in words(TABLE)[:60]:
        held = begin(advisor, person)
        held.decline(held.question.feature)
        for state in walk(held, person):
            standing = state.standing
            seen[standing.status] += 1
            if standing.signal is None or standing.signal > 0.5:
                assert standing.status in (
                    "granted",
                    "no_plan",
                    "ask" if state.question else "unsure",
                )
                continue
            (wishes,), _ = states_of(state.assessment, np.arange(1))
            assert "declined" in standing.deviations
            assert set(wishes.known) == {*state.log.facts} - {*advisor.schema.start}
            assert set(wishes.declined) == {*state.log.declined}
            certificate = certificate_for(advisor.fitted, wishes)
            allowed = certificate.certified and standing.signal <= certificate.tau
            assert (standing.status == "act") == allowed
            assert (standing.status == "off_path") == (not certificate.certified)
    assert seen["off_path"] + seen["act"] > 5


def test_above_the_ceiling_no_certificate_is_needed(monkeypatch):
    advisor = surviving()
    late = []
    for person in words(TABLE):
        *_, held = walk((first := begin(advisor, person)).decline(first.question.feature), person)
        late += [held] if (held.standing.signal or 0) > 0.5 else []
    assert len(late) > 5
    monkeypatch.setattr(
        "edfa.advice.standing.find_certificate", lambda *_: pytest.fail("nobody may act there")
    )
    for held in late:
        assert (held.standing.status, held.standing.tau) == ("unsure", 0.5)


def test_without_a_certificate_for_them_people_are_told_that_nothing_is_promised():
    advisor = strict()
    never = replace(advisor.fitted, calibration=advisor.fitted.calibration[:0])
    for fitted_advisor, locked in ((never, "purpose"), (advisor.fitted, "duration")):
        own, seen = Overlay(locked=(locked,)), 0
        for person in words(TABLE)[:40]:
            held = edfa.Interview(fitted_advisor, overlay=own).begin(person)
            if held.standing.ending is None or held.standing.signal > 0.5:
                continue
            seen += 1
            assert held.standing.status == "off_path"
            nothing = (held.certificate, held.guarantee, held.receipt().certificate)
            assert nothing == (None, None, "")
        assert seen


def test_a_file_says_of_complete_people_what_interviews_say():
    """Who would have been told to act on the way is under the certificate of people of whom
    everything is known, all others are under the advisor's own; who went that way and on is
    promised nothing.
    """
    advisor, people = surviving(), words(TABLE)
    result = advise(advisor.fitted, pd.DataFrame(people))
    tau, counts = advisor.certificate.tau, Counter()
    order = advisor.fitted.policy.order_
    known = certificate_for(advisor.fitted, State(known=order, at_once=True))
    for status, person in zip(result["status"], people, strict=True):
        held = advisor.interview(person)
        assert status == held.standing.status
        if held.plans():
            walked = begin(advisor, person)
            *before, last = [state.standing.signal for state in walk(walked, person)]
            stopped = any(signal is not None and signal <= tau for signal in before)
            assert walked.standing.status == "off_path" or not stopped
            level = known.tau if stopped else tau
            if stopped and not known.certified:
                assert status == "off_path"
            else:
                assert status == ("act" if last <= level else "unsure")
            assert held.standing.deviations == (("at_once",) if stopped else ())
            counts[status, stopped] += 1
    assert min(counts["act", False], counts["act", True]) > 5


def test_a_file_does_not_depend_on_how_it_is_split():
    advisor = surviving()
    count = some(120)
    rows = part_way(advisor, TABLE.test.X)[:count]
    frame = TABLE.encoder.decode(TABLE.test.X[:count]).astype(object).where(~np.isnan(rows), None)
    limits = [None, '{"locked": ["purpose"]}', '{"max_effort": 50}'] * (count // 3)
    whole = advise(advisor.fitted, frame, overlays=pd.Series(limits))
    seen = set()
    for row, person in frame.iterrows():
        alone = advise(
            advisor.fitted,
            frame.iloc[[row]].reset_index(drop=True),
            overlays=pd.Series(limits[row : row + 1]),
        )
        status = alone["status"][0]
        assert whole["status"][row] == status
        own = Overlay.parse(json.loads(limits[row])) if limits[row] else None
        held = advisor.interview(
            {k: v for k, v in person.items() if v is not None and v == v}, overlay=own
        )
        assert status == held.standing.status or status == "off_path", "an interview may tell more"
        if status == "off_path" != held.standing.status:
            assert {"start", "order"} & {*held.standing.deviations}
        seen |= {status, *held.standing.deviations}
    assert seen >= {"act", "off_path", "granted", "at_once"}


def test_a_file_makes_certificates_only_where_the_policy_would_be(monkeypatch):
    made = []
    monkeypatch.setattr(
        "edfa.advice.standing.find_certificate",
        lambda *parts: made.append(parts[1]) or find_certificate(*parts),
    )
    fitted_advisor, random = surviving().fitted, np.random.default_rng(0)
    facts = np.where(fitted_advisor.relevant, TABLE.test.X, np.float32(np.nan))
    facts[random.random(facts.shape) < 0.4] = np.nan
    assessment, assess = (
        Assessment.of(fitted_advisor, facts),
        partial(Assessment.of, fitted_advisor),
    )
    group = fitted_advisor.group_of(facts)
    standings = find_standings(assessment, 3, assess, group)
    assert not [wishes for wishes in made if wishes.missing or wishes.declined]
    off = standings.path.missing_start | standings.path.other_order
    assert off.sum() > 10
    assert set(standings.status[standings.looked_at[off]]) <= {"off_path", "ask", "unsure"}
    few = len(made)
    find_standings(assessment, 3, assess, group, visited=facts[:0])
    assert len(made) > few


@pytest.mark.parametrize("budget", ["inf", 4.0])
def test_a_run_with_wishes_asks_what_an_interview_with_wishes_asks(budget):
    """From what is known on, at these prices, without what was declined: the same questions in the
    same order.
    """
    policy = edfa.acquisition.Greedy().fit(
        TABLE.train, surviving().fitted.model
    )  # it looks at prices
    made = replace(surviving().fitted, policy=policy, budget=budget)
    names = np.array(made.schema.names)
    known = made.background.start | (names == "housing")
    declined = names == "checking_status"
    overlay = Overlay(prices={"duration": 0.5, "savings_status": 9.0})
    costs = overlay.prices_in(made.schema)
    rows = TABLE.test.X[:5]
    run = run_policy(
        rows, made.policy, made.background, made.budget, known=known, declined=declined, costs=costs
    )
    assert (run.spent[run.at(0)] == costs[known].sum()).all()
    for i, row in enumerate(rows):
        state, asked = np.where(known, row, np.float32(np.nan))[None], []
        while (
            chosen := int(
                Assessment.of(made, state, overlay=overlay, declined=declined[None]).next[0]
            )
        ) >= 0:
            asked.append(names[chosen])
            state[0, chosen] = row[chosen]
        assert run.order(i) == tuple(asked)
        assert "checking_status" not in asked
        assert "housing" not in asked
        assert len(asked) > 1


def test_a_budget_that_is_spent_ends_the_run_where_it_begins():
    made = fitted()
    everything = made.relevant
    run = run_policy(TABLE.test.X[:4], made.policy, made.background, 1.5, known=everything)
    assert len(run) == 4
    assert (run.known == everything).all()
