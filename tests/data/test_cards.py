"""The seven cards against the appendix table of the paper, copied here by hand, common sense, and
the data.
"""

import re
from importlib.resources import files

import pandas as pd
import pytest

import edfa
from edfa import Rules
from edfa.data.catalog import NAMES, load_schema
from edfa.data.formula import Formula
from edfa.data.rules import ANY_VALUE
from edfa.data.values import months_of

PAY = ["pay_2", "pay_3", "pay_4", "pay_5", "pay_6"]
OLD = [f"{kind}_amt{i}" for kind in ("bill", "pay") for i in range(2, 7)]
DRUGS = """metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide glyburide tolbutamide
    pioglitazone rosiglitazone acarbose miglitol troglitazone tolazamide insulin glyburide-metformin
    glipizide-metformin glimepiride-pioglitazone metformin-rosiglitazone metformin-pioglitazone""".split()

# name: number of features, start, {cost: features beyond the start set}, cost of the start set,
# sensitive
PAPER = {
    "german": (
        20,
        "age credit_amount purpose",
        {
            1: "employment other_parties residence_since housing job num_dependents own_telephone",
            2: """checking_status duration credit_history savings_status installment_commitment property_magnitude
                other_payment_plans existing_credits""",
            5: "personal_status foreign_worker",
        },
        0,
        "personal_status foreign_worker age",
    ),
    "adult": (
        13,
        "age education-num marital-status occupation",
        {
            1: "workclass education relationship native-country",
            2: "capital-gain capital-loss hours-per-week",
            5: "race sex",
        },
        0,
        "race sex native-country relationship marital-status",
    ),
    "heloc": (
        22,
        "ExternalRiskEstimate AverageMInFile NumTotalTrades",
        {
            1: "MSinceOldestTradeOpen MSinceMostRecentTradeOpen NumSatisfactoryTrades",
            2: """PercentTradesNeverDelq NumTradesOpeninLast12M PercentInstallTrades NetFractionRevolvingBurden
                NetFractionInstallBurden NumRevolvingTradesWBalance NumInstallTradesWBalance
                NumBank2NatlTradesWHighUtilization PercentTradesWBalance MSinceMostRecentInqexcl7days NumInqLast6M
                NumInqLast6Mexcl7days""",
            5: """NumTrades60Ever2DerogPubRec NumTrades90Ever2DerogPubRec MSinceMostRecentDelq
                MaxDelq2PublicRecLast12M""",
        },
        0,
        "",
    ),
    "taiwan": (
        23,
        "age sex education marriage",
        {2: "limit_bal pay_0 bill_amt1 pay_amt1", 5: " ".join(PAY + OLD)},
        1,
        "sex age marriage education",
    ),
    "acs_income": (
        10,
        "AGEP SEX RAC1P",
        {1: "MAR RELP", 2: "COW SCHL WKHP", 3: "OCCP POBP"},
        0,
        "SEX RAC1P AGEP MAR RELP",
    ),
    "gmsc": (
        10,
        "age NumberOfDependents",
        {
            2: """RevolvingUtilizationOfUnsecuredLines DebtRatio MonthlyIncome NumberOfOpenCreditLinesAndLoans
                NumberRealEstateLoansOrLines""",
            5: """NumberOfTime30-59DaysPastDueNotWorse NumberOfTime60-89DaysPastDueNotWorse
                NumberOfTimes90DaysLate""",
        },
        1,
        "age",
    ),
    "diabetes130": (
        39,
        "race gender age time_in_hospital number_outpatient number_emergency number_inpatient",
        {
            1: "admission_type_id discharge_disposition_id admission_source_id",
            2: f"""num_lab_procedures num_procedures num_medications number_diagnoses change diabetesMed
                {" ".join(DRUGS)}""",
            5: "max_glu_serum A1Cresult",
        },
        0,
        "race gender age",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_start_cost_and_sensitive_are_the_papers(name):
    count, start, priced, start_cost, sensitive = PAPER[name]
    schema = load_schema(name)
    assert len(schema) == count
    assert set(schema.start) == set(start.split())
    assert set(schema.sensitive) == set(sensitive.split())
    costs = {f: cost for cost, names in priced.items() for f in names.split()}
    costs |= dict.fromkeys(start.split(), start_cost)
    assert {f.name: f.cost for f in schema} == costs


# By common sense


AGES = {"age", "AGEP"}
PAST = (
    "PastDue",
    "90DaysLate",
    "DerogPubRec",
    "credit_history",
    "MaxDelq",
    "NeverDelq",
    "number_inpatient",
    "purpose",
)
SET_BY_OTHERS = (
    "ExternalRiskEstimate",
    "limit_bal",
    "num_dependents",
    "NumberOfDependents",
    "POBP",
    "capital-gain",
)


def reason(name, feature):
    """What the card says beside the key ``change`` of a feature; empty if nothing."""
    text = (files("edfa.data") / "cards" / f"{name}.toml").read_text(encoding="utf-8")
    section = text.split(f"[features.{feature}]\n")[1].split("\n[")[0]
    return re.search(r"(?m)^change = \S+(?:  # (.*))?$", section).group(1) or ""


@pytest.mark.parametrize("name", NAMES)
def test_directions_make_sense(name):
    schema = load_schema(name)
    for feature in schema:
        if feature.name in AGES:
            assert feature.change == "frozen", "nobody ages as a plan"
            assert feature.per_year == (feature.kind == "continuous"), "everybody ages by waiting"
        if feature.name in ("education", "education-num", "SCHL") and not feature.sensitive:
            assert feature.change == feature.monotone == "up", "schooling is not lost"
        if any(word in feature.name for word in (*PAST, *SET_BY_OTHERS)):
            assert feature.change == "frozen"
        if feature.sensitive:
            assert feature.change == "frozen"
    assert schema.title
    assert schema.source
    assert schema.notes


@pytest.mark.parametrize("name", NAMES)
def test_every_number_a_plan_may_move_has_one_direction_and_is_signed_or_says_why_not(name):
    for feature in load_schema(name):
        if feature.actionable and feature.kind != "categorical":
            assert feature.change in ("up", "down"), feature.name
            if feature.monotone is None:
                assert "unsigned" in reason(name, feature.name), feature.name
        if not feature.actionable:
            assert feature.monotone is None, "what nobody can change needs no direction"
            assert feature.sensitive or reason(name, feature.name), (
                f"{feature.name} is frozen without a reason"
            )


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_words_that_a_person_can_be_told(name):
    schema = load_schema(name)
    told = [schema.outcome(label) for label in schema.classes]
    assert len(set(told)) == len(schema.classes) == 2
    assert not set(told) & set(schema.classes)
    assert all(" " in words or words in ("refused", "granted") for words in told)


@pytest.mark.parametrize("name", NAMES)
def test_levels_in_card_and_rules_are_those_of_the_data(name, load_real):
    """Of a few thousand rows too: a rule about a rare level must not depend on whether somebody has
    it.
    """
    whole, few = load_real(name), load_real(name, cap=900)
    for feature in (f for f in whole.schema if f.levels):
        seen = set(whole.frame[feature.name].dropna())
        assert seen == set(feature.levels) or (seen < set(feature.levels) and not feature.words), (
            feature.name
        )
    rules = whole.schema.rules
    moves = [
        (feature, level)
        for feature, *levels in rules.forbidden
        for level in levels
        if level != ANY_VALUE
    ]
    for feature, level in moves + [
        (f, level) for f, levels in rules.levels.items() for level in levels
    ]:
        assert few.encoder[feature].encode_one(level) >= 0, (feature, level)


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_s_reading_still_lets_everything_change_but_what_is_sensitive(name):
    schema, paper = load_schema(name), Rules(reading="paper")
    paper.check(schema)
    assert [f.name for f in schema if not paper.may_change(f)] == [
        f.name for f in schema if f.sensitive
    ]


def test_what_takes_time():
    takes = {
        "german": {
            "checking_status": 3,
            "savings_status": 6,
            "employment": 36,
            "duration": 0,
            "credit_amount": 0,
        },
        "adult": {"education": 12, "occupation": 24, "hours-per-week": 3},
        "taiwan": {"pay_0": 1, "bill_amt1": 1, "pay_amt1": 1},
        "heloc": {"NetFractionRevolvingBurden": 1, "NumInqLast6M": 6, "NumTradesOpeninLast12M": 12},
        "acs_income": {"SCHL": 12},
        "gmsc": {"RevolvingUtilizationOfUnsecuredLines": 1},
    }
    for name, features in takes.items():
        schema = load_schema(name)
        assert {feature: months_of(schema[feature].takes) for feature in features} == features
    waiting = {f.name: f.per_year for f in load_schema("heloc") if f.per_year}
    assert set(waiting.values()) == {12}
    assert set(waiting) == {
        n for n in load_schema("heloc").names if n.startswith(("MSince", "AverageM"))
    }


def test_nobody_is_told_to_close_the_account_or_to_start_a_drug():
    german, diabetes = load_schema("german").rules, load_schema("diabetes130")
    assert ("checking_status", ANY_VALUE, "no checking") in german.forbidden
    assert ("savings_status", ANY_VALUE, "no known savings") in german.forbidden
    given = [f.name for f in diabetes if f.actionable and f.name in DRUGS]
    assert given
    for drug in given:
        assert {(drug, "No", ANY_VALUE), (drug, ANY_VALUE, "No")} <= set(diabetes.rules.forbidden)
    assert set(diabetes.rules.levels["discharge_disposition_id"]) == {"3", "6", "22"}
    assert any("hardly anybody has a plan" in note for note in diabetes.notes)


def test_adult_s_rank_of_schooling_follows_from_its_level():
    table = edfa.load("adult")
    schema = table.schema
    rank = {level: i for i, level in enumerate(schema["education"].levels, start=1)}
    formula = Formula.of(schema.rules.linked["education-num"])
    assert formula.names == ("education",)
    positions = table.frame["education"].map(rank).to_numpy(float)
    assert (formula({"education": positions}) == table.frame["education-num"]).all()


def test_the_favourable_class():
    favourable = {n: load_schema(n).favourable for n in NAMES}
    assert favourable == {
        "german": "good",
        "adult": ">50K",
        "heloc": "Good",
        "taiwan": "0",
        "acs_income": "1",
        "gmsc": "0",
        "diabetes130": "not readmitted",
    }


# rows, rows of the class that is rare or bad, as published
COUNTS = {
    "german": (1000, {"bad": 300}),
    "adult": (48842, {">50K": 11687}),
    "heloc": (10459, {"Good": 5000}),
    "taiwan": (30000, {"1": 6636}),
    "acs_income": (200000, {"1": 73750}),
    "gmsc": (150000, {"1": 10026}),
    "diabetes130": (101766, {"not readmitted": 54864}),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_real_data_fit_their_cards(name, load_real):
    table = load_real(name)
    rows, classes = COUNTS[name]
    counts = table.frame[table.schema.target].value_counts()
    assert len(table) == rows
    for label, count in classes.items():
        assert abs(counts[label] - count) <= (1 if name == "acs_income" else 0)


def test_special_codes_are_states_on_purpose(load_real):
    """HELOC's -9, -8, -7 and GMSC's 96, 98: listed in the card, no part of the scale, each a number
    of its own.
    """
    heloc, gmsc = load_real("heloc"), load_real("gmsc")
    late = [n for n in gmsc.schema.names if "Late" in n or "PastDue" in n]
    assert len(late) == 3
    cases = [(heloc, n, (-9, -8, -7)) for n in heloc.schema.names] + [
        (gmsc, n, (96, 98)) for n in late
    ]
    for table, name, codes in cases:
        values, encoded = table.train.frame[name], table.train.X[:, table.schema.index(name)]
        occurring = [code for code in codes if (values == code).any()]
        assert set(map(float, table.schema[name].codes)) >= set(occurring)
        numbers = [set(encoded[values == code]) for code in occurring]
        assert all(len(distinct) == 1 for distinct in numbers)
        assert len(set.union(*numbers)) == len(occurring)
        assert max(set.union(*numbers)) < encoded[~values.isin(codes)].min()
    assert any("-9" in note for note in heloc.schema.notes)
    assert any("96" in note for note in gmsc.schema.notes)
    assert any("patient" in note for note in load_schema("diabetes130").notes)


@pytest.mark.parametrize("name", ["german", "adult", "taiwan"])
def test_what_travels_equals_the_independent_copy(name, shared_data):
    ours = edfa.load(name).frame
    theirs = pd.read_parquet(shared_data / f"{name}.parquet")
    assert list(ours) == list(theirs)
    for column in ours:
        same = (
            ours[column].astype(object) == theirs[column].astype(ours[column].dtype).astype(object)
        ).to_numpy()
        both_null = (ours[column].isna() & theirs[column].isna()).to_numpy()
        assert (same | both_null).all(), column
