"""Plots: their data against what is worked out by hand, and what stands on the axis."""

import json
import subprocess
import sys
from string import Formatter
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from advisors import begin, german, surviving, words
from matplotlib.figure import Figure
from scipy.stats import binomtest

import edfa
from edfa import plots
from edfa.advice.evaluation import AdvisorEvaluation, GroupEvaluation
from edfa.advice.promise import roll_out
from edfa.blanket.units import Blanket
from edfa.data.schema import FeatureWords
from edfa.errors import DataError, MissingExtraError, SettingError
from edfa.plots.axis import drawing, share_interval
from edfa.plots.reliability import bin_survival
from edfa.plots.units import lay_out
from edfa.predictors.base import Predictor
from edfa.recourse.plans import Change, Plan
from edfa.text import phrases

MINUS = "\N{MINUS SIGN}"
SCHEMA = edfa.Schema(
    (
        edfa.Feature("dur", "continuous", label="duration of the loan", unit="months"),
        edfa.Feature("rate", "continuous", label="rate $of$ interest", unit="%", range=(0, 9)),
        edfa.Feature("age", "continuous", sensitive=True, label="age"),
        edfa.Feature(
            "home",
            "categorical",
            levels=("own", "rent"),
            label="housing",
            translations={
                "en": FeatureWords(levels={"own": "own home"}),
                "de": FeatureWords(label="Wohnung"),
            },
        ),
    ),
    "class",
    "good",
    ("bad", "good"),
    words={"good": "granted", "bad": "refused"},
)


@pytest.fixture
def ax():
    return Figure(figsize=(6, 4), layout="constrained").add_subplot()


def texts(ax):
    return [text.get_text() for text in ax.texts]


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# What all plots share


@pytest.mark.parametrize(("count", "n"), [(0, 7), (3, 7), (7, 7), (1, 1), (12, 200)])
def test_intervals_are_those_of_clopper_and_pearson(count, n):
    exact = binomtest(count, n).proportion_ci(0.95, "exact")
    assert share_interval(count / n, n) == pytest.approx((exact.low, exact.high))


def test_data_need_no_matplotlib_and_a_drawing_says_what_it_needs():
    code = (
        "import sys, json, edfa; sys.modules['matplotlib'] = None\n"
        "from edfa.blanket.units import Blanket\n"
        "names = [edfa.plots.__dict__.get(n) or getattr(edfa.plots, n) for n in "
        "edfa.plots.__all__]\n"
        "try: edfa.plots.draw_units(Blanket('y', {'a': ()}))\n"
        "except edfa.errors.MissingExtraError as error: print(json.dumps([len(names), str(error)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, message = json.loads(done.stdout)
    assert count == len(plots.__all__) > 8
    assert message == "a plot needs an optional dependency: pip install 'edfa[plots]'"
    assert issubclass(MissingExtraError, ImportError)


def test_without_an_axis_there_is_a_new_figure_and_settings_stay_as_they_are():
    import matplotlib.pyplot as plt

    before, open_before = dict(mpl.rcParams), len(plt.get_fignums())
    ax = plots.draw_units(Blanket("y", {"a": ()}))
    assert len(plt.get_fignums()) == open_before + 1
    assert dict(mpl.rcParams) == before
    plt.close(ax.figure)


def test_an_error_inside_is_not_taken_for_a_missing_extra():
    with pytest.raises(ModuleNotFoundError, match="other"), drawing(Figure().add_subplot(), (1, 1)):
        raise ModuleNotFoundError("other", name="other")


def test_both_languages_say_the_same_things():
    english, german_words = (phrases.table(language, "plots") for language in phrases.LANGUAGES)
    assert english.keys() == german_words.keys()
    for key, text in english.items():
        holes = [
            {name for _, name, _, _ in Formatter().parse(t) if name}
            for t in (text, german_words[key])
        ]
        assert holes[0] == holes[1], key


# What holds a decision back


class Additive(Predictor):
    """Log odds that are a weighted sum of the features; what is not known counts as zero."""

    def __init__(self, weights=(1.0, 1.0, 1.0, 1.0)):
        self.weights = weights
        self.classes_, self.prior_ = np.array([0, 1]), np.array([0.5, 0.5])
        self.n_features_in_, self.varies_ = len(weights), np.ones(len(weights), dtype=bool)

    def _fit(self, matrix, codes, progress):
        raise NotImplementedError

    def _answer(self, mask, known):
        granted = 1 / (1 + np.exp(-known @ np.asarray(self.weights)[mask]))
        return np.column_stack([1 - granted, granted])


def refused_person(x, weights, rows, relevant=(True, True, True, True), language="en"):
    """An interview with just what the plot reads."""
    row = np.array([x], dtype=np.float32)
    facts = {
        name: float(value) for name, value in zip(SCHEMA.names, x, strict=True) if value == value
    }
    fitted = SimpleNamespace(
        schema=SCHEMA,
        predictor=Additive(weights),
        train=SimpleNamespace(X=rows),
        favourable=1,
        threshold=None,
        relevant=np.array(relevant),
    )
    shown = np.where(fitted.relevant, row, np.float32(np.nan))
    assessment = SimpleNamespace(
        fitted=fitted, X=shown, given=(), shares=None, majority=lambda: fitted.predictor
    )
    return SimpleNamespace(
        fitted=fitted, assessment=assessment, log=SimpleNamespace(facts=facts), language=language
    )


ROWS = np.array([[0, 0, 1, 1], [1, 1, 1, 1], [0, 2, 0, 0]], dtype=np.float32)


def test_contributions_are_the_points_below_people_just_granted():
    weights = (-1.0, 2.0, 0.5, 0.0)
    refusal = plots.explain_refusal(refused_person([3.0, 1.0, -4.0, np.nan], weights, ROWS))
    # the others have the scores 0.5, 1.5 and 4, so that all are granted; their means:
    # dur 1/3, rate 1, age 2/3; the score of the person is -3 + 2 - 2 = -3
    expected = {"dur": -(3 - 1 / 3), "rate": 0.0, "age": 0.5 * (-4 - 2 / 3)}
    assert {part.feature: part.amount for part in refusal.contributions} == pytest.approx(
        expected, abs=1e-6
    )
    assert [part.feature for part in refusal.contributions] == ["dur", "age", "rate"]
    assert refusal.margin == pytest.approx(-3, abs=1e-6)
    assert sum(part.amount for part in refusal.contributions) == pytest.approx(
        refusal.margin - refusal.baseline
    )
    assert refusal.people == 3
    assert [part.principal for part in refusal.contributions] == [True, True, False]
    assert [part.sensitive for part in refusal.contributions] == [False, True, False]
    first = refusal.contributions[0]
    assert (first.label, first.value) == ("duration of the loan", "3 months")


def test_what_the_model_is_not_shown_is_no_fact_of_the_refusal():
    person = refused_person(
        [3.0, 1.0, -4.0, 0.0], (-1.0, 2.0, 0.5, 1.0), ROWS, (True, False, True, False)
    )
    assert {part.feature for part in plots.explain_refusal(person).contributions} == {"dur", "age"}


def test_bars_stand_for_facts_and_the_smallest_share_one(ax, monkeypatch):
    monkeypatch.setattr("edfa.plots.refusal.MAX_BARS", 4)
    parts = [("a", -3.0), ("b", -1.0), ("c", -0.2), ("d", 0.1), ("e", 0.5)]
    contributions = tuple(
        plots.Contribution(
            name, f"label {name}", f"value {name}", amount, 0.1, principal=name == "a"
        )
        for name, amount in parts
    )
    refusal = plots.Refusal(contributions, -3.1, 0.5, 64)
    plots.draw_refusal(refusal, ax)
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    assert [widths[i] for i in range(4)] == pytest.approx([-3.0, -1.0, 0.5, -0.1])
    assert sum(widths.values()) == pytest.approx(sum(amount for _, amount in parts))
    assert names(ax.yaxis) == [
        "label a: value a",
        "label b: value b",
        "label e: value e",
        "2 other facts",
    ]
    assert legend(ax) == ["principal reason", "against", "in favour"]
    assert texts(ax) == [f"{MINUS}3", f"{MINUS}1", "+0.5", f"{MINUS}0.1"]
    assert "64 people" in ax.get_xlabel()


def test_an_interview_with_a_real_advisor_in_both_languages(ax):
    advisor = german()
    refused = (
        begin(advisor, person).answer({"duration": 48, "checking_status": "<0"})
        for person in words(edfa.load("german"))[:20]
    )
    interview = next(one for one in refused if one.decision.refused)
    refusal = plots.explain_refusal(interview)
    assert sum(part.amount for part in refusal.contributions) == pytest.approx(
        refusal.margin - refusal.baseline
    )
    plots.draw_refusal(plots.explain_refusal(interview.copy(language="de")), ax)
    assert any(name.startswith("Laufzeit des Kredits: 48 Monate") for name in names(ax.yaxis))
    assert not set(advisor.schema.names) & {part.label for part in refusal.contributions}
    with pytest.raises(DataError, match="granted"):
        plots.explain_refusal(
            begin(advisor, words(edfa.load("german"))[0]).answer(
                {"duration": 4, "checking_status": "no checking"}
            )
        )


# Plans side by side


def plan(number, changes, after, survival, months, effort, person=0):
    numbers = {"l0": len(changes), "l2": 0.0, "heom": 0.0, "effort": effort, "valid": True}
    extra = {"inlier": None, "inlier_base": None, "invalidation": None, "unknown": ()}
    error = None if survival is None else 0.1
    return Plan(
        f"p{number}", tuple(changes), "good", 0.4, after, person=person, number=number,
        survival=survival, survival_error=error, months=months, **numbers, **extra,
    )  # fmt: skip


PLANS = (
    plan(0, [Change("dur", 36, 9), Change("rate", 7.0, 6.12345)], 0.75, 0.8, 3.0, 2.5),
    plan(1, [Change("home", "rent", "own")], 0.7, None, 0.0, 5.0),
)


def rows_of(ax):
    """The texts of a comparison by row, the label of each first."""
    rows = {}
    for text in ax.texts:
        rows.setdefault(text.get_position()[1], []).append(text.get_text().replace("\n", " "))
    return {label: rest for label, *rest in rows.values()}


def test_a_comparison_has_each_changed_fact_once_and_what_each_plan_makes_of_it(ax):
    plots.draw_plans(PLANS, SCHEMA, ax=ax)
    rows = rows_of(ax)
    stays = "\N{EN DASH}"
    assert list(rows)[1:4] == ["duration of the loan", "rate $of$ interest", "housing"]
    assert rows["duration of the loan"] == ["36 months", "→ 9 months", stays]
    assert rows["rate $of$ interest"] == ["7 %", "→ 6.12 %", stays], "down: still enough"
    assert rows["housing"] == ["“rent”", stays, "→ “own home”"]
    assert rows["estimate for “granted”, of 100"] == ["40", "75", "70"]
    assert rows["holds when all is known, of 100"] == ["", "80 ± 10", "not estimated"]
    assert rows["time"] == ["", "3 months", "none"]
    assert rows["effort"] == ["", "2.5", "5"]


@pytest.mark.parametrize(
    ("schema", "change", "shown"),
    [
        (SCHEMA, Change("rate", 1.0, 6.12345), "6.13 %"),
        (SCHEMA, Change("rate", 1.0, 8.9999), "9 %"),
        (
            edfa.Schema(
                (edfa.Feature("x", "continuous", range=(0, 8.9999)),),
                "class",
                "good",
                ("bad", "good"),
            ),
            Change("x", 1.0, 8.9999),
            "8.9999",
        ),
    ],
)
def test_numbers_are_rounded_so_that_they_are_still_enough(ax, schema, change, shown):
    plots.draw_plans([plan(0, [change], 0.7, None, 0, 1)], schema, ax=ax)
    assert f"→ {shown}" in texts(ax)


def test_the_drawing_has_a_column_for_each_plan_and_bars_as_long_as_their_measures(ax):
    plots.draw_plans(PLANS, SCHEMA, ax=ax)
    shown = texts(ax)
    for text in (
        "today",
        "plan 1",
        "plan 2",
        "→ 9 months",
        "→ “own home”",
        "80 ± 10",
        "not estimated",
        "none",
        "40",
    ):
        assert text in shown
    assert shown.count("\N{EN DASH}") == 3
    full = [bar.get_width() for bars in ax.containers[::2] for bar in bars]
    filled = [bar.get_width() for bars in ax.containers[1::2] for bar in bars]
    shares = [part / whole for part, whole in zip(filled, full, strict=True)]
    assert shares == pytest.approx(
        [0.4, 0.75, 0.7, 0.8, 1.0, 0.0, 0.5, 1.0]
    )  # estimates, survival, time, effort


def test_measures_that_no_plan_has_are_left_out(ax):
    plots.draw_plans(PLANS[1:], SCHEMA, "de", ax)
    assert "Wohnung" in texts(ax)
    assert not {"Zeit", "nicht geschätzt"} & set(texts(ax))


def test_only_plans_of_one_person_are_compared():
    with pytest.raises(DataError, match="no plan to compare"):
        plots.draw_plans([], SCHEMA)
    with pytest.raises(DataError, match="several people"):
        plots.draw_plans(
            [PLANS[0], plan(0, [Change("dur", 1, 2)], 0.7, None, 0, 1, person=1)], SCHEMA
        )


# The units of a blanket

BLANKET = Blanket("class", {"dur": (), "rate": ("age", "home")}, unattached=("age",))


def test_a_unit_stands_beside_the_middle_of_its_spouses(ax):
    assert lay_out(BLANKET) == [
        ("class", "outcome", 1.5, None),
        ("dur", "parent or child", 0.0, 0),
        ("rate", "parent or child", 1.5, 0),
        ("age", "spouse", 1.0, 2),
        ("home", "spouse", 2.0, 2),
        ("age", "unattached", 3.0, 0),
    ]
    plots.draw_units(BLANKET, SCHEMA, "de", ax)
    assert ax.get_ylim()[0] == 3.5, "four rows"
    assert texts(ax)[0] == "granted"
    assert texts(ax)[4] == "Wohnung"


def test_each_node_is_a_box_joined_with_its_parent(ax):
    plots.draw_units(BLANKET, SCHEMA, ax=ax)
    assert len(ax.patches) == 6
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-", "--", "--", "--"]
    assert {"granted", "rate $of$ interest", "outcome", "spouses"} < set(texts(ax))
    assert not any(text.get_parse_math() for text in ax.texts)


def test_an_empty_blanket_is_the_outcome_alone(ax):
    plots.draw_units(Blanket("y", {}), ax=ax)
    assert texts(ax) == ["y", "outcome"]


# Reliability of survival


def error_of(bins):
    """The mean distance between prediction and observation, weighted by plans."""
    return np.average((bins["predicted"] - bins["held"]).abs(), weights=bins["plans"])


def test_bins_hold_what_is_counted_by_hand():
    predicted = np.array([0.1, 0.3, 0.6, 0.7, 0.8, 1.0, 1.0])
    held = np.array([0, 0, 1, 0, 1, 1, 1], dtype=bool)
    person = np.array([0, 0, 1, 1, 2, 3, 4])
    bins = bin_survival(predicted, held, person, 2)
    low, high = bins.itertuples()
    assert (low.start, low.end, low.plans, low.people, low.held) == (0.0, 0.5, 2, 1, 0.0)
    assert (high.plans, high.people, high.held) == (5, 4, 0.8)
    assert (low.predicted, high.predicted) == pytest.approx((0.2, 4.1 / 5))
    assert (high.low, high.high) == share_interval(0.8, 4)  # people, not plans
    assert error_of(bins) == pytest.approx((2 * 0.2 + 5 * 0.02) / 7)


def test_a_value_on_an_edge_belongs_to_the_bin_it_begins():
    grid = np.arange(11) / 10
    bins = bin_survival(grid, np.ones(11, dtype=bool), np.arange(11))
    assert bins["plans"].tolist() == [1] * 9 + [2]


def test_true_probabilities_are_reliable():
    random = np.random.default_rng(0)
    predicted = random.random(20_000)
    bins = bin_survival(predicted, random.random(20_000) < predicted, np.arange(20_000))
    assert error_of(bins) < 0.02
    assert bins["predicted"].between(bins["low"], bins["high"]).sum() >= 8
    wrong = bin_survival(predicted, random.random(20_000) < predicted**2, np.arange(20_000))
    assert error_of(wrong) > 0.1


def small_rollout(survival=(0.9, 0.5, 0.7, 0.2)):
    """Two people, two steps each; the first person has no plan at first, the second has one more at
    the last.
    """
    plans = SimpleNamespace(
        survival=None if survival is None else np.array([*survival]),
        legal=np.array([False, True, True, True]),
        first=np.array([-1, 0, 1, 2]),
    )
    records = SimpleNamespace(loss=np.array([np.nan, 0.0, 1.0, 0.0]), code=np.array([0, 0, 1, 1]))
    return SimpleNamespace(plans=plans, records=records)


def test_the_first_plan_of_each_step_is_held_against_its_loss():
    (every,) = plots.measure_reliability(small_rollout(), 1).itertuples()
    assert (every.plans, every.predicted, every.held) == (3, *map(pytest.approx, (0.7, 2 / 3)))
    with pytest.raises(DataError, match="carry no survival"):
        plots.measure_reliability(small_rollout(None))
    with pytest.raises(SettingError, match="bins"):
        plots.measure_reliability(small_rollout(), 0)
    with pytest.raises(DataError, match="no plan"):
        bin_survival(np.array([]), np.array([], dtype=bool), np.array([]))


def test_of_a_real_advisor_every_step_with_a_plan_is_counted_once(ax):
    advisor = surviving()
    rollout = roll_out(advisor.fitted, edfa.load("german").test.X[:60], n_jobs=1)
    every = plots.measure_reliability(rollout, 5)
    assert every["plans"].sum() == rollout.plans.legal.sum()
    assert every["people"].max() <= len(np.unique(rollout.records.code[rollout.plans.legal]))
    plots.draw_reliability(every, ax)
    marks = next(line for line in ax.lines if line.get_marker() == "o").get_xydata()
    np.testing.assert_allclose(marks, every[["predicted", "held"]])
    assert texts(ax) == every["people"].astype(str).tolist()
    assert names(ax.yaxis)[0] == "people"
    assert legend(ax) == ["as predicted", "observed, with 95% interval"]


# Groups side by side


def evaluation():
    own = GroupEvaluation(
        certified=True,
        people=60,
        cost=5.0,
        refused=0.5,
        coverage=0.9,
        n=20,
        risk=0.1,
        risk_error=0.067,
        early=0.5,
    )
    rent = GroupEvaluation(
        certified=False,
        people=40,
        cost=8.0,
        refused=0.0,
        coverage=None,
        n=0,
        risk=None,
        risk_error=None,
        early=None,
    )
    shared = {
        "accuracy": 0.7,
        "accuracy_end": 0.7,
        "accuracy_all": 0.7,
        "cost_end": 9.0,
        "cost_all": 12.0,
        "early": 0.4,
    }
    whole = {
        "people": 100,
        "cost": 6.2,
        "n": 20,
        "risk": 0.1,
        "risk_error": 0.067,
        "refused": 0.3,
        "coverage": 0.9,
    }
    return AdvisorEvaluation(**shared, **whole, groups={"own": own, "rent": rent})


def test_groups_have_the_cards_words_and_exact_intervals(ax):
    plots.draw_groups(evaluation(), SCHEMA["home"], alpha=0.2, ax=ax)
    risk, cost, coverage = ax.child_axes

    def spans(panel):
        lines = [path for bars in panel.collections for path in bars.get_segments()]
        return [tuple(line[:, 0]) for line in lines]

    assert spans(risk) == [pytest.approx(share_interval(0.1, 20))] * 2
    assert spans(risk)[1] == pytest.approx((0.012349, 0.316983), abs=1e-6)
    assert spans(coverage) == [pytest.approx(share_interval(0.9, 30))] * 2
    assert [np.ptp(span) for span in spans(cost)] == [0, 0, 0]
    with pytest.raises(DataError, match="no groups"):
        plots.draw_groups(AdvisorEvaluation(**{**vars(evaluation()), "groups": {}}), SCHEMA["home"])


def test_three_panels_with_a_mark_for_each_group(ax):
    plots.draw_groups(evaluation(), SCHEMA["home"], alpha=0.2, ax=ax)
    risk, cost, coverage = ax.child_axes
    assert names(risk.yaxis) == ["everybody (100)", "own home (60)", "rent (40)"]
    assert risk.get_ylabel() == "housing"

    def marks(panel):
        return [tuple(line.get_xydata()[0]) for line in panel.lines if line.get_marker() == "o"]

    assert marks(risk) == [(0.1, 0), (0.1, 1)]
    assert marks(cost) == [(6.2, 0), (5.0, 1), (8.0, 2)]
    assert marks(coverage) == [(0.9, 0), (0.9, 1)]
    assert texts(risk) == ["2 of 20", "2 of 20", "no certificate"]
    assert texts(coverage) == ["27 of 30", "27 of 30", "nobody is refused"]
    assert risk.get_title(loc="left") == "dotted: allowed, 0.2"
