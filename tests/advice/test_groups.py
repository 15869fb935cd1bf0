"""Groups: a certificate for each from its own people alone, none borrowed; and what holds where
none is known.
"""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from advisors import begin, promising, walk, words

import edfa
from edfa.advice.evaluation import AdvisorEvaluation, evaluate
from edfa.advice.fitted import NOT_RECORDED, Ending, Promise, label_groups
from edfa.advice.promise import certify_groups, dry_run, roll_out
from edfa.certification import RecourseCertifier
from edfa.certification.certificate import GroupCertificates
from edfa.certification.rcps import choose_anchor
from edfa.certification.records import Records
from edfa.errors import ColumnError, DataError, MismatchError, SettingError

LEVELS = {"alpha": 0.2, "delta": 0.05, "target": "early"}
RISK = {"calm": 0.4, "risky": 0.8}  # a plan made at signal u fails with this times u
TINY = 1e-18  # a survival below one half of which nobody is: the ceiling is 1
ANYBODY = Promise((Ending(signal="survival"),), min_survival=TINY)
POOLED = SimpleNamespace(promise=ANYBODY, rules=edfa.Rules(), user_model="")
BY_GROUP = SimpleNamespace(
    promise=replace(ANYBODY, groups="kind"), rules=edfa.Rules(), user_model=""
)


def draw(n, seed):
    """People of two kinds, half each; a signal that is uniform at the first step, and no plan to
    act on at the last.
    """
    random = np.random.default_rng(seed)
    kind = random.choice(list(RISK), n)
    signal = random.random(n)
    lost = random.random(n) < signal * np.array([RISK[name] for name in kind])
    return Records(
        person=np.repeat(np.arange(n), 2),
        seed=np.zeros(2 * n, dtype=int),
        step=np.tile([0, 1], n),
        spent=np.tile([0.0, 3.0], n),
        signal=np.column_stack([signal, np.full(n, 2.0)]).ravel(),
        loss=np.column_stack([lost, np.zeros(n)]).ravel(),
        legal=np.ones(2 * n, dtype=bool),
        group=np.repeat(kind, 2),
        loss_name="let_down",
    )


def certify_kinds(records, dry):
    """The certificates of each kind for being told to act, the only ending."""
    made = certify_groups(BY_GROUP, {"act": records}, {"act": dry})
    return {kind: parts["act"] for kind, parts in made.items()}


def true_risk(kind, tau):
    """Of people who act at a signal of at most tau: the mean of u over [0, tau] is tau / 2."""
    return RISK[kind] * min(tau, 1.0) / 2


@pytest.mark.long
def test_one_certificate_for_all_breaks_its_promise_to_a_group_and_one_each_keeps_it():
    dry, wrong = draw(1_000, 10_000), {"pooled": 0, "calm": 0, "risky": 0}
    for seed in range(60):
        records = draw(1_500, seed)
        pooled = certify_groups(POOLED, {"act": records}, {"act": dry})[None]["act"]
        assert pooled.certified
        wrong["pooled"] += true_risk("risky", pooled.tau) > 0.2
        own = certify_kinds(records, dry)
        for kind in RISK:
            wrong[kind] += own[kind].certified and true_risk(kind, own[kind].tau) > 0.2
        assert own["risky"].certified
        assert own["risky"].tau < pooled.tau < own["calm"].tau
    assert wrong["pooled"] >= 55
    assert (
        wrong["risky"] <= 7
    )  # 3 expected at most; more than 7 of 60 has a probability of 1 % at the level .05
    assert wrong["calm"] <= 7


def test_a_group_is_certified_from_its_own_people_and_its_own_anchor_alone():
    dry, records = draw(800, 1), draw(900, 2)
    certificates = certify_kinds(records, dry)
    anchors = set()
    for kind in RISK:
        theirs, tried = (
            records.take(records.group == kind),
            dry.take(dry.group == kind),
        )
        anchor = choose_anchor(tried, len(theirs.people), LEVELS["alpha"], ceiling=1.0)
        expected = RecourseCertifier(**LEVELS, anchor=anchor, ceiling=1.0).certificate_for(
            theirs, group=kind
        )
        assert certificates[kind] == expected
        assert certificates[kind].people == len(theirs.people)
        anchors.add(anchor)
    assert len(anchors) == 2


def test_a_group_too_small_or_unknown_to_training_has_no_certificate():
    dry, records = draw(800, 1), draw(900, 2)
    few = records.take((records.group != "risky") | (records.person < 12))
    certificates = GroupCertificates(certify_kinds(few, dry))
    assert certificates["calm"].certified
    assert not certificates["risky"].certified
    assert "No certificate in group 'risky'" in certificates.sentence
    alone = certify_kinds(records, dry.take(dry.group == "calm"))
    assert (
        alone["risky"].anchor == 1.0
    )  # nobody to choose an anchor on: the loosest rule alone is tested, and fails
    assert not alone["risky"].certified


@cache
def by_telephone():
    """German credit with a certificate for people with a telephone, and one for people without."""
    settings = {"threshold": "balanced", "groups": "own_telephone", "reference": "trajectory_end"}
    model = edfa.SubsetXGB(n_estimators=30)
    return edfa.Advisor(predictor=model, loss="let_down", **settings).fit(edfa.load("german"))


def test_an_advisor_has_a_certificate_for_each_group_and_none_for_all():
    advisor, table = by_telephone(), edfa.load("german")
    assert not advisor.fitted.relevant[
        table.schema.index("own_telephone")
    ]  # the model does not see it
    assert set(advisor.certificates) == {"none", "yes"}
    counts = table.calibration.frame["own_telephone"].value_counts()
    assert {label: part.people for label, part in advisor.certificates.items()} == dict(counts)
    with pytest.raises(
        MismatchError, match="a certificate for each own_telephone; read certificates"
    ):
        _ = advisor.certificate
    fitted = advisor.fitted
    records = roll_out(fitted, table.calibration.X).records
    dry = dry_run(fitted, 0, 1)[fitted.promise.reference]["act"]
    theirs = records.take(
        np.isin(records.person, np.flatnonzero(table.calibration.frame["own_telephone"] == "yes"))
    )
    tried = dry.take(dry.group == "yes")
    anchor = choose_anchor(
        tried, len(theirs.people), LEVELS["alpha"], ceiling=fitted.promise.ceiling
    )
    certifier = RecourseCertifier(**LEVELS, anchor=anchor, ceiling=fitted.promise.ceiling)
    expected, made = certifier.certificate_for(theirs), advisor.certificates["yes"]
    assert (made.tau, made.risk, made.status) == (expected.tau, expected.risk, expected.status)


def test_the_evaluation_by_group_is_what_becomes_of_its_people_one_by_one():
    advisor, table = by_telephone(), edfa.load("german")
    rollout = roll_out(advisor.fitted, table.test.X)
    records, people = rollout.records, table.test.frame["own_telephone"].tolist()
    ran = {"none": [], "yes": []}
    for person, group in enumerate(people):
        certificate = advisor.certificates[group]
        rows = np.flatnonzero(records.person == person)
        low = [
            r
            for r in rows
            if certificate.certified and records.legal[r] and records.signal[r] <= certificate.tau
        ]
        ran[group].append((low[0] if low else None, rows[-1], records.legal[rows].any()))
    assert advisor.evaluation_.people == 200
    for group, runs in ran.items():
        measured, acting = (
            advisor.evaluation_.groups[group],
            [row for row, *_ in runs if row is not None],
        )
        assert measured.certified == advisor.certificates[group].certified
        assert (measured.people, measured.n) == (len(runs), len(acting))
        assert acting
        assert measured.risk == pytest.approx(records.loss[acting].mean())
        assert measured.wasted == pytest.approx(records.wasted[acting].mean())
        assert measured.changes == pytest.approx(
            rollout.plans.l0[rollout.plans.first[acting]].mean()
        )
        assert measured.effort == pytest.approx(
            rollout.plans.effort[rollout.plans.first[acting]].mean()
        )
        ended = [last if row is None else row for row, last, _ in runs]
        assert measured.cost == pytest.approx(records.spent[ended].mean())
        assert measured.acting == pytest.approx(len(acting) / sum(planned for *_, planned in runs))
        early = sum(row is not None and row != last for row, last, _ in runs)
        assert early
        assert measured.early == pytest.approx(early / sum(planned for *_, planned in runs))
        refused = [
            last
            for _, last, _ in runs
            if rollout.trajectory.decision[last] != advisor.fitted.favourable
        ]
        assert measured.refused == pytest.approx(len(refused) / len(runs))
        assert measured.coverage == pytest.approx(rollout.plans.legal[refused].mean())
        assert f"{group}: {len(runs)} people" in str(advisor.evaluation_)
    assert sum(group.n for group in advisor.evaluation_.groups.values()) == advisor.evaluation_.n
    assert AdvisorEvaluation.from_json(advisor.evaluation_.to_json()) == advisor.evaluation_


def with_taus(**taus):
    """The advisor with other thresholds (None: not certified) of its two groups; anchors stay at
    0.
    """
    made = by_telephone()
    part = replace(next(iter(made.certificates.values())), status="certified", anchor=0.0)
    parts = {
        label: replace(part, group=label, tau=tau)
        if tau is not None
        else replace(part, status="data_limited", tau=None)
        for label, tau in taus.items()
    }
    return promising(made.fitted, ending={"certificate": GroupCertificates(parts)})


def test_who_relies_on_which_certificate():
    fitted = with_taus(none=0.3, yes=0.1)
    assert fitted.certificate_for("none").tau == 0.3
    assert fitted.certificate_for("yes").tau == 0.1
    unknown = fitted.certificate_for(None)
    assert (unknown.tau, unknown.group, unknown.delta) == (
        0.1,
        None,
        0.1,
    )  # both statements must hold: twice .05
    assert "probability at most 0.1 over" in unknown.sentence
    groups = np.array(["yes", None, "none", "yes"], dtype=object)
    assert fitted.tau_for(groups).tolist() == [0.1, 0.1, 0.3, 0.1]
    assert fitted.tau_for(groups[:0]).shape == (0,)
    assert fitted.certificate_for("elsewhere") is None


def test_a_group_without_a_certificate_borrows_none():
    fitted = with_taus(none=0.3, yes=None)
    assert fitted.certificate_for("yes") is None
    assert fitted.certificate_for(None) is None
    taus = fitted.tau_for(np.array(["none", "yes", None], dtype=object))
    assert taus[0] == 0.3
    assert np.isnan(taus[1:]).all()
    assert (
        with_taus(none=0.3).certificate_for(None) is None
    )  # training people with a telephone, no calibration people
    assert with_taus(none=0.3).certificate_for("yes") is None


def test_the_strictest_threshold_must_have_been_tested_in_every_group():
    fitted = with_taus(none=0.3, yes=0.1)
    late = replace(
        fitted.promise.certificates["none"], anchor=0.2
    )  # nothing below .2 was tested there
    parts = {"none": late, "yes": fitted.promise.certificates["yes"]}
    fitted = promising(fitted, ending={"certificate": GroupCertificates(parts)})
    assert fitted.certificate_for(None) is None
    assert fitted.certificate_for("none").tau == 0.3


def test_without_groups_everybody_has_the_same_certificate():
    fitted = promising(by_telephone().fitted, groups=None, ending={"certificate": None})
    assert fitted.certificate_for(None) is None
    certificate = replace(
        by_telephone().certificates["yes"], group=None, status="certified", tau=0.2
    )
    pooled = promising(fitted, ending={"certificate": certificate})
    assert pooled.certificate_for("yes") == pooled.certificate_for(None) == certificate
    assert pooled.tau_for(np.array(["yes", None], dtype=object)).tolist() == [0.2, 0.2]
    refused = promising(pooled, ending={"certificate": replace(certificate, status="risk_limited")})
    assert refused.certificate_for("yes") is None
    assert pooled.group_of(np.zeros((2, 20), dtype=np.float32)).tolist() == [None, None]


def test_labels_are_values_in_words_and_a_new_level_is_nobody_elses_group():
    table = edfa.load("german")
    fitted, position = by_telephone().fitted, table.schema.index("own_telephone")
    rows = table.test.X[:6].copy()
    rows[2, position] = np.nan
    expected = table.test.frame["own_telephone"].tolist()[:6]
    assert fitted.group_of(rows).tolist() == [*expected[:2], None, *expected[3:]]
    frame = table.test.frame.head(6).assign(own_telephone=["pager", *expected[1:]])
    assert fitted.group_of(replace(table.test, frame=frame)).tolist() == ["pager", *expected[1:]]
    feature = edfa.Feature("home", "categorical")
    schema = edfa.Schema((feature,), "y", "good")
    values = pd.DataFrame({"home": ["own", None, "rent"]})
    encoder = edfa.data.Encoder.fit(values, schema)
    codes = encoder.encode(values)[:, 0]
    assert label_groups(codes, encoder, "home").tolist() == ["own", NOT_RECORDED, "rent"]
    codes[0] = np.nan
    assert label_groups(codes, encoder, "home").tolist() == [None, NOT_RECORDED, "rent"]


@pytest.mark.parametrize("levels", [(1000001.0, 1000002.0), (0.1234561, 0.1234562)])
def test_groups_whose_numbers_look_alike_are_told_apart(levels):
    schema = edfa.Schema((edfa.Feature("code", "ordinal", levels=levels),), "y", "good")
    values = pd.DataFrame({"code": [*levels, *levels]})
    encoder = edfa.data.Encoder.fit(values, schema)
    labels = label_groups(encoder.encode(values)[:, 0], encoder, "code").tolist()
    assert labels == [str(levels[0]).removesuffix(".0"), str(levels[1]).removesuffix(".0")] * 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "own_telefone",
            (
                "groups: no categorical or ordinal feature named 'own_telefone'; did you mean "
                "'own_telephone'?"
            ),
        ),
        (
            "duration",
            "groups: duration is continuous; a categorical or ordinal feature makes groups",
        ),
        (
            "class",
            "groups: no categorical or ordinal feature named 'class'; known: checking_status",
        ),
    ],
)
def test_a_feature_that_makes_no_groups_is_an_error_before_any_work(name, message, monkeypatch):
    monkeypatch.setattr(
        "edfa.advice.advisor.discover", lambda *a, **k: pytest.fail("work was spent")
    )
    with pytest.raises(SettingError) as error:
        edfa.Advisor(groups=name).fit(edfa.load("german"))
    assert message in str(error.value)


def test_no_plan_leads_out_of_a_group():
    """Plans for German credit change the checking account, unless that makes the groups."""
    table, settings = (
        edfa.load("german"),
        {"predictor": edfa.SubsetXGB(n_estimators=30), "threshold": "balanced"},
    )
    account, changed = table.schema.index("checking_status"), {}
    for groups in (None, "checking_status"):
        advisor = edfa.Advisor(**settings, groups=groups).fit(table)
        plans = roll_out(advisor.fitted, table.test.X).plans
        changed[groups] = int((~np.isnan(plans.to[:, account])).sum())
        assert len(plans)
    assert changed[None] > 0
    assert changed["checking_status"] == 0
    assert advisor.fitted.operator_rules.locked == ("checking_status",)


def test_people_to_certify_on_need_their_group(tmp_path):
    by_telephone().save(tmp_path / "advisor")
    advisor = edfa.Advisor.load(tmp_path / "advisor")
    frame = edfa.load("german").calibration.frame.drop(columns="class")
    assert advisor.certify(frame) == by_telephone().certificates
    with pytest.raises(
        ColumnError,
        match=r"no column 'own_telephone'.*; a certificate for each group needs own_tele",
    ):
        advisor.certify(frame.drop(columns="own_telephone"))
    with pytest.raises(
        DataError,
        match="row 3: own_telephone is empty; a certificate for each group needs own_teleph",
    ):
        advisor.certify(
            frame.assign(
                own_telephone=[*frame["own_telephone"][:3], None, *frame["own_telephone"][4:]]
            )
        )
    rows = edfa.load("german").calibration.X.copy()
    rows[5, edfa.load("german").schema.index("own_telephone")] = np.nan
    with pytest.raises(
        DataError, match="row 5: own_telephone is empty; a certificate for each group"
    ):
        advisor.certify(rows)


def test_what_is_loaded_has_the_same_groups(tmp_path):
    by_telephone().save(tmp_path / "advisor")
    loaded = edfa.Advisor.load(tmp_path / "advisor")
    assert (loaded.groups, loaded.fitted.promise.groups) == ("own_telephone", "own_telephone")
    assert loaded.certificates == by_telephone().certificates
    assert loaded.evaluation_ == by_telephone().evaluation_
    assert loaded.certificates == by_telephone().certificates
    table = edfa.load("german")
    assert (
        evaluate(loaded.fitted, table.test, roll_out(loaded.fitted, table.test.X))
        == loaded.evaluation_
    )
    written = json.loads((tmp_path / "advisor" / "evaluation.json").read_text())
    assert set(written["groups"]) == {"none", "yes"}


def test_who_is_told_to_act_is_told_what_is_promised():
    """An interview that knows of no group relies on what holds in all of them, or tells nobody to
    act.
    """
    table = edfa.load("german")
    certified = edfa.Advisor(**{"groups": "own_telephone"})
    certified.fitted_ = with_taus(none=0.3, yes=0.2)
    acting = 0
    for person in words(table)[:20]:
        for interview in walk(begin(certified, person), person):
            acting += interview.standing.may_act
            assert (interview.guarantee is not None) == interview.standing.may_act
            assert not interview.standing.may_act or interview.certificate.tau == 0.2
    assert acting
    certified.fitted_ = with_taus(none=0.3, yes=None)
    statuses = {begin(certified, person).standing.status for person in words(table)[:40]}
    statuses |= {
        held.standing.status
        for person in words(table)[:20]
        for held in walk(begin(certified, person), person)
    }
    assert "not_certified" in statuses
    assert "act" not in statuses
