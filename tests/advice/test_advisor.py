"""The advisor as a whole: fitted, certified, saved, loaded elsewhere, and asked about people it has
not met.
"""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from advisors import begin, german, part_way, surviving, walk, words
from effort import some
from scipy.stats import rankdata
from sklearn.base import clone

import edfa
from edfa.advice.assessment import Assessment
from edfa.advice.batch import advise
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.factory import new_predictor
from edfa.advice.promise import roll_out
from edfa.advice.standing import follow_policy
from edfa.certification.endings import stop_endings
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.predictors.base import UnfittedError
from edfa.recourse import find_recourse

# German has too few people for the promise of three endings.
SETS = {
    "german": ({}, {"loss": "let_down", "threshold": "balanced"}),
    "german lasting": ({}, {"loss": "let_down", "threshold": "balanced", "signal": "survival"}),
    "adult": ({"cap": 5_000}, {"threshold": "balanced"}),
    "heloc": ({"cap": 5_000}, {"threshold": "balanced"}),
}
ELSEWHERE = """
import json, sys
import edfa
advisor = edfa.Advisor.load(sys.argv[1])
for line in open(sys.argv[2]):
    facts = json.loads(line)
    interview = advisor.interview(facts.pop("start"))
    asked = []
    while (question := interview.question) is not None:
        asked.append(question.feature)
        interview.answer({question.feature: facts.get(question.feature)})
    print(json.dumps([asked, json.loads(interview.receipt(time="then").to_json())]))
"""


@pytest.mark.parametrize(
    "name",
    [
        "german lasting",
        *(pytest.param(n, marks=pytest.mark.long) for n in SETS if "lasting" not in n),
    ],
)
def test_from_table_to_interviews_elsewhere(name, load_real, tmp_path):
    options, settings = SETS[name]
    table = load_real(name.split()[0], **options)
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=40), **settings).fit(table)
    advisor.save(tmp_path / "advisor")

    certificate, evaluation = advisor.certificate, advisor.evaluation_
    assert certificate.certified
    assert evaluation.risk <= certificate.alpha + 3 * np.sqrt(
        certificate.alpha * (1 - certificate.alpha) / evaluation.n
    )

    people = words(table)[: some(200)]
    here = [_held(advisor, table, person) for person in people]
    _stops_as_certified(advisor, table, [stopped for stopped, _ in here])
    with (tmp_path / "people.jsonl").open("w") as file:
        for person in people:
            start = {n: person.get(n) for n in table.schema.start}
            file.write(json.dumps(person | {"start": start}) + "\n")
    command = [sys.executable, "-c", ELSEWHERE, tmp_path / "advisor", tmp_path / "people.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [told for _, told in here]


def _held(advisor, table, person):
    """One whole interview: at which step it ends and how, what was asked, and the receipt."""
    asked, stopped, step = [], None, 0
    for step, interview in enumerate(walk(begin(advisor, person), person)):
        question = interview.question
        asked += [question.feature] if question else []
        known = set(interview.log.facts)
        for plan in interview.plans():
            changed = {change.feature for change in plan.changes}
            assert changed <= known
            assert not changed & set(table.schema.sensitive)
            assert all(table.schema[feature].change != "frozen" for feature in changed)
            assert plan.reached == table.schema.favourable
        if stopped is None and interview.standing.promised:
            stopped = step, interview.standing.status
    return (stopped, step), [asked, json.loads(interview.receipt(time="then").to_json())]


def _stops_as_certified(advisor, table, stopped):
    """An interview tells an ending first exactly where the certified rules stop these people's runs
    early.
    """
    records = roll_out(advisor.fitted, table.test.X[: len(stopped)]).endings
    ends = stop_endings(records, {n: made.tau for n, made in advisor.endings.items()})
    early = [None if told is None or told[0] == last else told for told, last in stopped]
    expected = [
        (int(step), ending) if ending is not None and step < end else None
        for step, ending, (_, end) in zip(
            records["act"].step[ends.row], ends.ending, stopped, strict=True
        )
    ]
    assert early == expected
    assert any(early)


def test_measures_itself_as_one_would_by_hand():
    advisor, table = german(), edfa.load("german")
    evaluation = advisor.evaluation_
    whole = advisor.fitted.model.predict(table.test.X) == table.test.y
    assert evaluation.accuracy_all == whole.mean()
    blanket = [table.schema.index(n) for n in advisor.fitted.blanket.features]
    seen = np.full_like(table.test.X, np.nan)
    seen[:, blanket] = table.test.X[:, blanket]
    assert evaluation.accuracy_end == (advisor.fitted.model.predict(seen) == table.test.y).mean()
    assert evaluation.cost_all == sum(f.cost for f in table.schema)
    assert evaluation.cost_end == sum(table.schema[n].cost for n in advisor.fitted.blanket.features)
    assert evaluation.refused == (advisor.fitted.model.predict(seen) == 0).mean()
    good = table.test.y == 1
    assert evaluation.base_rate == max(good.mean(), 1 - good.mean())
    ranks = rankdata(advisor.fitted.model.predict_proba(seen)[:, 1])
    pairs = good.sum() * (~good).sum()
    assert evaluation.auroc == pytest.approx(
        (ranks[good].sum() - good.sum() * (good.sum() + 1) / 2) / pairs
    )
    told = f"{evaluation.balanced:.3f} when all is asked (0.5 knowing nothing), AUROC "
    assert f"{told}{evaluation.auroc:.3f}, " in str(evaluation)
    right = [(advisor.fitted.model.predict(seen) == code)[table.test.y == code] for code in (0, 1)]
    assert evaluation.balanced == pytest.approx(np.mean([part.mean() for part in right]))
    assert AdvisorEvaluation.from_json(evaluation.to_json()) == evaluation


def test_an_evaluation_of_an_older_version_is_read_and_told():
    record = json.loads(german().evaluation_.to_json())
    del record["base_rate"], record["auroc"]
    old = AdvisorEvaluation.from_json(json.dumps(record))
    assert (old.base_rate, old.auroc) == (None, None)
    assert "(0.5 knowing nothing), " in str(old)
    assert "AUROC" not in str(old)


def test_a_threshold_decides_and_is_told():
    table = edfa.load("german")
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=10), threshold=0.8).fit(table)
    for person in words(table)[:40]:
        decision = begin(advisor, person).decision
        assert decision.threshold == pytest.approx(0.8)
        assert decision.refused == (decision.probability < 0.8)
    assert german().interview({}).decision.threshold == pytest.approx(
        0.7
    )  # the share of good ones in training


@pytest.mark.parametrize("advisor", [german, surviving], ids=lambda made: made.__name__)
def test_a_batch_says_what_interviews_say(advisor):
    advisor, table = advisor(), edfa.load("german")
    everybody = np.concatenate([table.test.X, table.calibration.X])
    rows = part_way(advisor, everybody)
    frame = (
        edfa.data.Encoder.decode(table.encoder, everybody)
        .astype(object)
        .where(~np.isnan(rows), None)
    )
    told = advise(advisor.fitted, frame)
    assert told["error"].isna().all()
    assert set(told["status"]) >= (
        {"granted", "act", "off_path"} if advisor.certificate.certified else {"granted"}
    )
    for row, person in list(zip(told.to_dict("records"), frame.to_dict("records"), strict=True))[
        :: len(frame) // some(200)
    ]:
        interview = advisor.interview({k: v for k, v in person.items() if v is not None and v == v})
        assert row["outcome"] == interview.decision.outcome
        assert row["probability"] == interview.decision.probability
        assert (row["question"] if row["question"] == row["question"] else None) == (
            interview.question.feature if interview.question else None
        )
        assert row["status"] in (interview.standing.status, "off_path"), (
            "an interview may tell more"
        )
        assert row["status"] == interview.standing.status or {"start", "order"} & {
            *interview.standing.deviations
        }
        assert [
            {c["feature"]: c["after"] for c in plan["changes"]} for plan in json.loads(row["plans"])
        ] == [{c.feature: c.after for c in plan.changes} for plan in interview.plans()]
        if row["status"] == "no_plan":
            assert row["reason"] == interview.no_plan.reason


@pytest.mark.parametrize("searcher", ["nearest", pytest.param("survival", marks=pytest.mark.long)])
def test_who_could_have_acted_before_is_found_at_whatever_step(searcher):
    """On paths of several questions, against looking at every state on the way."""
    table = edfa.load("german")
    units = {
        "checking_status": (),
        "duration": ("credit_amount",),
        "savings_status": ("age",),
        "purpose": (),
    }
    made = edfa.Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20),
        blanket=edfa.Blanket("class", units),
        searcher=searcher,
        threshold="balanced",
    ).fit(table)
    assess = partial(Assessment.of, made.fitted)
    facts = np.where(made.fitted.relevant, table.test.X, np.float32(np.nan))
    path = follow_policy(assess(facts), np.arange(len(facts)), assess)
    assert path.on_path.all()
    assert np.bincount(path.person).max() > 2
    earlier = np.append(path.person[1:] == path.person[:-1], False)
    each, person = assess(path.X[earlier]), path.person[earlier]
    signals = each.signals(3)
    assert [*signals] == ["granted", "act", "nothing"]
    distinct = {n: np.unique(signal[~np.isnan(signal)]) for n, signal in signals.items()}
    found, asked = set(), np.arange(len(facts)) % 3 > 0
    for rank in (0, 1, 5, -2):
        tau = {n: levels[min(rank, len(levels) - 1)] for n, levels in distinct.items()}
        for names in (["granted"], ["act"], ["nothing"], [*signals]):
            levels = {n: tau[n] if n in names else np.nan for n in signals}
            stops = np.zeros(len(facts), dtype=bool)
            for name in names:
                stops[person[signals[name] <= tau[name]]] = True
            everybodys = {n: np.full(len(facts), level) for n, level in levels.items()}
            assert np.array_equal(path.passed(everybodys, 3, asked, assess), stops & asked)
            found.add((*names, int(stops.sum())))

    assert len(found) > 8


def test_whether_the_rule_stops_is_worked_out_once(monkeypatch):
    """However often a state on the way is asked about, plans are looked for once, and seen plans
    are used.
    """
    calls = []
    monkeypatch.setattr(
        "edfa.advice.assessment.find_recourse",
        lambda *a, **k: calls.append(a) or find_recourse(*a, **k),
    )
    fitted, rows = surviving().fitted, edfa.load("german").test.X[:30]
    facts = np.where(fitted.relevant, rows, np.float32(np.nan))
    facts[::2, ~fitted.background.start] = np.nan
    look, seen = Assessment.of(fitted, facts), Assessment.of(fitted, facts)
    stops = [look.stops({"act": 0.5}, 3) for _ in range(3)]
    assert len(calls) == 1
    seen.plans(3)
    assert np.array_equal(seen.stops({"act": 0.5}, 3), stops[0])
    assert len(calls) == 2
    assert stops[0].any()


def test_a_bad_row_is_an_error_of_its_own():
    advisor, table = german(), edfa.load("german")
    frame = table.test.frame.head(4).astype(object)
    frame.loc[1, "checking_status"] = "lots"
    frame.loc[2, "duration"] = 900
    told = advise(advisor.fitted, frame)
    assert told["error"].isna().tolist() == [True, False, False, True]
    for row in (1, 2):
        with pytest.raises(edfa.errors.FactError) as strict:
            advisor.fitted.encoder.encode_person(
                {n: frame.loc[row, n] for n in ("checking_status", "duration")}
            )
        assert told.loc[row, "error"] == str(strict.value)
        assert told.loc[row, ["outcome", "question", "plans"]].isna().all()


def test_wrong_settings_are_refused_before_any_work():
    table = edfa.load("german")
    with pytest.raises(SettingError, match="alpha"):
        edfa.Advisor(alpha=2)
    for settings, message in (
        ({"predictor": "xgbb"}, "no predictor named 'xgbb'; did you mean 'xgb'"),
        ({"policy": "edffa"}, "no policy named 'edffa'; did you mean 'edfa'"),
        ({"searcher": "nearst"}, "no searcher named 'nearst'; did you mean 'nearest'"),
        ({"blanket": "hiton"}, "no method named 'hiton'; did you mean 'hiton-mb'"),
        ({"signal": "certainty"}, "no signal named 'certainty'; did you mean 'uncertainty'"),
    ):
        with pytest.raises(UnknownNameError) as error:
            edfa.Advisor(**settings)
        assert message in str(error.value)
    with pytest.raises(SettingError, match="threshold"):
        edfa.Advisor(threshold=1.5)
    with pytest.raises(DataError, match="train part"):
        edfa.Advisor().fit(table.train)
    with pytest.raises(UnfittedError):
        edfa.Advisor().interview({})


def test_objects_do_as_well_as_names():
    table = edfa.load("german")
    blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("credit_amount",)})
    searcher = edfa.recourse.NICE(table.train)
    advisor = edfa.Advisor(
        policy=edfa.EDFA(blanket, rank="cost"), searcher=searcher, threshold="balanced"
    ).fit(table)
    assert advisor.fitted.blanket == blanket
    assert isinstance(advisor.fitted.searcher, edfa.recourse.NICE)
    assert advisor.fitted.searcher.train_ is table.train
    interview = begin(advisor, words(table)[0])
    assert interview.question.unit == "duration"  # its spouse is known from the start
    waits = interview.partition.semifactual.get("credit_amount") == "not_decisive"
    assert interview.question.unlocks == (("credit_amount",) if waits else ())


def test_certifying_again_needs_complete_people_and_no_outcome():
    advisor, table = (
        edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20), threshold="balanced"),
        edfa.load("german"),
    )
    advisor.fit(table)
    before = advisor.certificate
    people = table.calibration.frame.drop(columns="class")
    assert advisor.certify(people) == before
    with pytest.raises(DataError, match="row 3: duration is empty"):
        advisor.certify(
            people.astype({"duration": float}).assign(
                duration=lambda f: f["duration"].where(f.index != 3)
            )
        )
    early = edfa.Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20), threshold="balanced", target="early"
    ).fit(table)
    assert early.certificate.target == "early"
    assert early.certificate.anchor is not None


def test_a_searcher_of_other_people_is_fitted_anew_on_the_training_part():
    """Whoever passes a searcher that has seen calibration people gets its settings, not its
    people.
    """
    table = edfa.load("german")
    settings = {"predictor": edfa.SubsetXGB(n_estimators=20), "threshold": "balanced"}
    peeked = edfa.Advisor(searcher=edfa.Nearest(table.calibration, neighbours=7), **settings).fit(
        table
    )
    honest = edfa.Advisor(searcher=edfa.Nearest(table.train, neighbours=7), **settings).fit(table)
    assert peeked.fitted.searcher.train_ is table.train
    assert peeked.fitted.searcher.neighbours == 7
    assert peeked.fingerprint == honest.fingerprint
    assert peeked.certificate == honest.certificate


def test_a_policy_of_other_people_is_fitted_anew_on_the_training_part():
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    blanket = edfa.Blanket("class", {"checking_status": (), "duration": ("credit_amount",)})
    policy = edfa.SurvivalPolicy(
        blanket, edfa.SurvivalSearch(table.calibration), n_people=32, desired_class=1
    )
    advisor = edfa.Advisor(policy=policy.fit(table.calibration, model), threshold="balanced").fit(
        table
    )
    assert advisor.fitted.policy is not policy
    assert advisor.fitted.policy.searcher_.train_ is table.train


def test_settings_stay_as_they_were_given():
    """What is not given is resolved when fitting, not written over the parameter."""
    advisor = edfa.Advisor()
    assert (advisor.policy, advisor.signal, advisor.searcher) == (None, None, "survival")
    nearest = clone(advisor).set_params(searcher="nearest")
    assert (nearest.policy, nearest.signal) == (None, None)
    fitted = (
        clone(nearest)
        .set_params(predictor=edfa.SubsetXGB(n_estimators=10))
        .fit(edfa.load("german"))
        .fitted
    )
    assert isinstance(fitted.policy, edfa.EDFA)
    assert fitted.promise.ending.signal == "uncertainty"
    with pytest.raises(SettingError, match="signal 'survival'"):
        edfa.Advisor(searcher="nearest", signal="survival")


def test_an_advisor_is_an_estimator_like_its_parts():
    model = edfa.SubsetXGB(n_estimators=10)
    advisor = edfa.Advisor(predictor=model, alpha=0.3, rules=edfa.Rules(max_changes=1))
    again = clone(advisor)
    assert again.predictor is not model
    assert again.predictor.get_params() == model.get_params()
    plain = dict(again.get_params(deep=False))
    assert plain | {"predictor": model} == advisor.get_params(deep=False)
    assert advisor.get_params()["predictor__n_estimators"] == 10
    assert not hasattr(clone(german()), "fitted_"), "what was learnt is no setting"
    again.set_params(alpha=7, predictor__n_estimators=5)
    assert again.predictor.n_estimators == 5
    with pytest.raises(SettingError, match="alpha"):
        again.fit(edfa.load("german"))


def test_any_change_of_a_setting_changes_the_fingerprint():
    table = edfa.load("german", cap=300)
    settings = {
        "predictor": edfa.SubsetXGB(n_estimators=10),
        "threshold": "balanced",
        "searcher": edfa.Nearest(),
    }
    changes = {
        "nothing": {},
        "searcher": {"searcher": edfa.Nearest(neighbours=9)},
        "model": {"predictor": edfa.SubsetXGB(n_estimators=11)},
        "policy": {"policy": "random-blanket"},
        "signal": {"signal": "plan"},
        "threshold": {"threshold": None},
    }
    words = {
        name: edfa.Advisor(**settings | change).fit(table).fingerprint
        for name, change in changes.items()
    }
    assert edfa.Advisor(**settings).fit(table).fingerprint == words["nothing"]
    assert len(set(words.values())) == len(words)


def test_advisors_and_receipts_show_themselves():
    new = edfa.Advisor(searcher="nearest")
    assert repr(new) == "Advisor(searcher='nearest')"
    assert "Not fitted yet" in new._repr_html_()
    fitted = german()
    assert fitted.fingerprint in fitted._repr_html_()
    assert fitted.certificate.sentence.split(",")[0] in fitted._repr_html_()
    receipt = fitted.interview({"age": 35}).receipt(time="then")
    assert repr(receipt) == "<Receipt of then: good, 0 plans, not signed>"
    assert "<div" in receipt._repr_html_()


@pytest.mark.parametrize("name", ["xgb", "bn"])
def test_a_model_by_name_takes_the_seed_where_it_has_one(name):
    table = edfa.load("german")
    model = new_predictor(name, table, "balanced", seed=3, obey_directions=name != "bn")
    model.fit_table(table.train)
    assert model.get_params().get("seed", 3) == 3
    assert model.threshold == pytest.approx(0.7)
    assert model.predict_proba(table.test.X[:5]).shape == (5, 2)
