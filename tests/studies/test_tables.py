"""Tables and the data of figures: laws on small results that are written down here."""

import numpy as np
import pandas as pd
import pytest
from synthetic_results import SETS, Synthetic, labels, synthetic_results

from edfa_studies.figures import growth as curves
from edfa_studies.figures import promises as early
from edfa_studies.tables import acquired, checks, examples, growth, promises
from edfa_studies.tables.names import PAPER as PRINTED
from edfa_studies.tables.names import ordered, title
from edfa_studies.tables.render import as_text, latex_escaped, to_csv, to_latex
from edfa_studies.tables.rows import View, one_blanket

PAPER = ("edfa", "dime", "eddi", "gsmrl")
EVERYTHING = [
    acquired.sets,
    acquired.features_acquired,
    acquired.quality,
    growth.equal_cost,
    growth.first_recourse,
    growth.ablations,
    growth.models,
    growth.thresholds,
    growth.outcome_lift,
    promises.certified_costs,
    promises.certified_summary,
    promises.stop_rules,
    promises.groups,
    examples.transitions,
    examples.side_by_side,
    checks.must_hold,
    curves.blanket_lines,
    curves.policy_lines,
    curves.ablation_lines,
    curves.model_lines,
    early.traces,
    early.limits,
    early.certified_points,
    curves.first_costs,
    curves.lifts,
]


@pytest.fixture(scope="module")
def results():
    return View(synthetic_results(sets=("adult", "gmsc"), predictors=("xgb",), seeds=2))


def growth_results(table, rows):
    """Results with one table of the measure growth: pairs of labels and values."""
    return Synthetic(
        {("growth", table): [labels("growth", **label) | values for label, values in rows]}
    )


def acquired_results(data, counts, seeds=1):
    sizes = {"blanket_size": 4, "n_features": 13}
    rows = [
        ({"data": data, "policy": policy, "seed": seed}, {"features": count} | sizes)
        for policy, count in counts.items()
        for seed in range(seeds)
    ]
    return growth_results("end", rows)


def quality_results(data, values):
    rows = [
        ({"data": data, "policy": policy}, {"plans": 10} | row) for policy, row in values.items()
    ]
    return growth_results("quality", rows)


@pytest.mark.parametrize("function", EVERYTHING)
def test_everything_has_rows_and_nothing_raises_without_results(results, function):
    assert len(function(results))
    assert len(function(Synthetic({}))) == 0


@pytest.mark.parametrize("function", EVERYTHING)
def test_columns_that_no_cell_has_do_not_raise(results, function):
    bare = {
        (measure, table): [labels(measure, "adult", promise="paper") | {"other": 1}]
        for measure, tables in {
            "growth": ("step", "cost", "end", "quality"),
            "promise": ("certificate", "rule", "group"),
            "examples": ("transition", "person"),
            "sets": ("set", "blanket"),
        }.items()
        for table in tables
    }
    function(Synthetic(bare))


def test_the_paper_s_numbers_are_those_that_it_prints():
    features = PRINTED["features_acquired"]
    assert [features["diabetes130"][name] for name in PAPER] == [10, 29, 29.6, 29.2]
    assert set(features) == set(SETS) == set(PRINTED["sets"])
    assert list(PRINTED["quality"]["adult"]["edfa"].values()) == [1.58, 0.191, 0.794]
    assert PRINTED["quality"]["gmsc"]["edfa"] is None
    assert PRINTED["figures"]["policies"]["taiwan"] == 9


@pytest.mark.parametrize(
    ("counts", "sign"),
    [
        ((3, 8, 8, 7.6), ""),
        ((5, 9, 9.5, 8), ""),  # DIME and EDDI tie in the paper
        ((5, 9, 9, 10), "≠ order"),
        ((9, 8, 8, 7.6), "≠ least"),
        ((7.6, 8, 8, 7.6), ""),  # a tie with the paper's least is no other order
    ],
)
def test_table_2_has_a_sign_exactly_where_the_order_differs(counts, sign):
    table = acquired.features_acquired(
        acquired_results("adult", dict(zip(PAPER, counts, strict=True)))
    )
    assert table["differs"].tolist() == [sign]
    assert table["EDFA (paper)"].tolist() == [3]
    assert table["GSMRL"].tolist() == [counts[3]]


def test_table_2_means_over_seeds_and_says_how_many():
    results = growth_results(
        "end",
        [({"data": "adult", "policy": p, "seed": s}, {"features": f}) for p, s, f in
         [("edfa", 0, 2), ("edfa", 1, 4), ("dime", 0, 9), ("dime", 1, 9)]],
    )  # fmt: skip
    table = acquired.features_acquired(results)
    assert table[["EDFA", "seeds"]].to_numpy().tolist() == [[3.0, 2]]


def test_table_3_has_a_sign_exactly_where_another_policy_is_best():
    same = PRINTED["quality"]["adult"]
    assert set(acquired.quality(quality_results("adult", same))["differs"]) == {""}
    other = same | {
        "dime": same["dime"] | {"l2": 0.1},
        "survival": {"l0": 0.5, "l2": 0.01, "plausible": 1.0},
    }
    table = acquired.quality(quality_results("adult", other))
    assert table["differs"].tolist() == ["≠ L2", "", "", "", ""], (
        "a policy that the paper lacks does not count"
    )
    assert table.loc[table["policy"] == "survival", "L0 (paper)"].isna().all()


def test_table_3_without_the_paper_s_edfa_compares_the_others():
    ours = PRINTED["quality"]["gmsc"] | {"edfa": {"l0": 1.0, "l2": 0.01, "plausible": 1.0}}
    assert set(acquired.quality(quality_results("gmsc", ours))["differs"]) == {""}


def test_bands_are_numpy_s_standard_deviation_over_seeds():
    random = np.random.default_rng(0)
    values, costs = random.random((4, 3)), random.random((4, 3)).cumsum(axis=1)
    rows = [
        (
            {"data": "adult", "seed": seed},
            {"step": k, "cost": costs[seed, k], "recourse": values[seed, k]},
        )
        for seed in range(4)
        for k in range(3)
    ]
    lines = curves.blanket_lines(growth_results("step", rows)).query("measure == 'recourse'")
    np.testing.assert_allclose(lines["mean"], values.mean(axis=0))
    np.testing.assert_allclose(lines["std"], np.std(values, axis=0))
    np.testing.assert_allclose(lines["cost"], costs.mean(axis=0))
    assert set(lines["seeds"]) == {4}


def test_a_seed_that_ends_early_stays_at_its_last_step():
    steps = {0: [1.0, 2.0, 3.0], 1: [1.0, 2.0]}
    rows = [
        ({"data": "adult", "seed": seed}, {"step": k, "cost": k / 2, "recourse": value})
        for seed, values in steps.items()
        for k, value in enumerate(values)
    ]
    lines = curves.blanket_lines(growth_results("step", rows)).query("measure == 'recourse'")
    assert lines["mean"].tolist() == [1.0, 2.0, 2.5]
    assert lines["cost"].tolist() == [0.0, 0.5, 0.75]


def test_policies_are_compared_under_one_blanket_and_one_searcher(results):
    lines = curves.policy_lines(results)
    assert set(lines["blanket"]) == {"eamb"}, "three blankets have EDFA, one has everybody"
    assert "edfa generative" in set(lines["series"])
    assert not {"edfa-structural", "edfa-no-pc-priority"} & set(lines["series"])
    assert set(curves.blanket_lines(results)["series"]) == {"eamb", "hiton-mb", "bamb"}


def test_a_model_with_ablations_alone_is_in_no_comparison():
    rows = [
        ({"data": "adult", "policy": p, "predictor": "xgb"}, {"features": 3})
        for p in ("edfa", "edfa-random")
    ]
    rows += [
        ({"data": "adult", "policy": p, "predictor": "xgb-masked"}, {"features": 3})
        for p in ("edfa", "dime")
    ]
    table = acquired.features_acquired(growth_results("end", rows))
    assert table["predictor"].tolist() == ["XGB masked"]


def test_one_blanket_prefers_the_one_with_most_policies():
    frame = pd.DataFrame([labels("growth", "adult", blanket=b, policy=p) for b, p in
                          [("eamb", "edfa"), ("bamb", "edfa"), ("bamb", "dime")]])  # fmt: skip
    assert set(one_blanket(frame)["blanket"]) == {"bamb"}


def test_equal_cost_is_the_area_under_the_curve():
    grid = np.linspace(0, 1, 21)
    rows = [
        ({"data": "adult", "policy": policy}, {"cost": c, "recourse": c * slope, "accuracy": 0.5})
        for policy, slope in (("edfa", 2.0), ("dime", 4.0))
        for c in grid
    ]
    table = growth.equal_cost(growth_results("cost", rows))
    assert table["policy"].tolist() == ["DIME", "EDFA"]
    np.testing.assert_allclose(table["mean recourse"], [2.0, 1.0])
    np.testing.assert_allclose(table[["at 25%", "at 50%", "at 75%"]], [[1, 2, 3], [0.5, 1, 1.5]])
    assert table["rank"].tolist() == [1, 2]


def test_what_must_hold_is_worked_out_from_the_results():
    counts = {"edfa": 3, "dime": 3, "eddi": 9}
    assert checks.must_hold(acquired_results("adult", counts))["holds"].tolist() == [True]
    table = checks.must_hold(acquired_results("adult", counts | {"random": 2}))
    assert table["holds"].tolist() == [False]
    assert table["not on"].tolist() == ["Adult Income"]
    assert "6 of the paper's sets not measured" in table["measured"].iloc[0]
    assert checks.must_hold(acquired_results("adult", counts | {"survival": 2}))["holds"].all(), (
        "no baseline"
    )
    worse = checks.must_hold(quality_results("adult", {"edfa": {"l0": 2.0}, "dime": {"l0": 1.0}}))
    assert worse["holds"].tolist() == [False], "one of seven may fail, but not one of one"


def test_accuracy_may_lie_two_points_below_the_best_baseline_and_fail_twice():
    def result(edfa):
        rows = [({"data": name, "policy": "dime"}, {"accuracy": 0.80}) for name in SETS]
        rows += [
            ({"data": name, "policy": "edfa"}, {"accuracy": value})
            for name, value in zip(SETS, edfa, strict=True)
        ]
        return checks.must_hold(growth_results("end", rows)).iloc[0]

    assert result([0.78] * 7)["measured"].startswith("7 of 7")
    assert result([0.70] * 2 + [0.9] * 5)["holds"]
    assert not result([0.70] * 3 + [0.9] * 4)["holds"]


@pytest.mark.parametrize(("kept", "holds"), [(19, True), (18, False)])
def test_certificates_must_be_kept_in_95_of_100(kept, holds):
    row = {"alpha": 0.2, "method": "cp", "status": "certified", "upper": 0.2, "test_n": 100}
    rows = [
        labels("promise", "adult", seed=i, promise="paper")
        | row
        | {"test_risk": 0.1 if i < kept else 0.3}
        for i in range(20)
    ]
    rows.append(
        labels("promise", "adult", seed=99) | row | {"status": "data_limited", "test_risk": 0.9}
    )
    table = checks.must_hold(Synthetic({("promise", "certificate"): rows}))
    assert table["holds"].tolist() == [holds, holds]
    assert table["measured"].iloc[0].startswith(f"{kept} of 20")


@pytest.mark.parametrize(("level", "verdicts"), [(0.5, [True, True]), (1.2, [False, True])])
def test_ablations_are_held_against_the_paper_s_text(level, verdicts):
    rows = [
        ({"data": "taiwan", "policy": policy}, {"cost": cost, "recourse": value, "accuracy": 0.5})
        for policy, value in (("edfa", 1.0), ("edfa-random", level), ("edfa-structural", 1.04))
        for cost in (0.0, 1.0)
    ]
    table = checks.must_hold(growth_results("cost", rows)).set_index("claim")["holds"]
    assert table.filter(like="less recourse").tolist() == verdicts[:1]
    assert table.filter(like="structural tracks").tolist() == verdicts[1:]
    assert not table.filter(like="noPC").size, "a variant that was not measured is not judged"


def test_transitions_come_from_different_sets_and_prefer_people_without_recourse():
    row = {"step": 1, "cost": 0.1, "known": [], "role": "spouse"}
    people = [(1, True, "spouse"), (2, False, "parent or child"), (3, False, "spouse")]
    rows = [
        labels("examples", data) | row | {"person": person, "had_recourse": had, "role": role}
        for data in ("heloc", "adult")
        for person, had, role in people
    ]
    table = examples.transitions(Synthetic({("examples", "transition"): rows}))
    assert list(zip(table["data"], table["person"], strict=True)) == [
        ("adult", 3),
        ("heloc", 3),
        ("adult", 2),
        ("heloc", 2),
    ]


def test_side_by_side_is_the_same_person_under_both(results):
    table = examples.side_by_side(results)
    for _, pair in table.groupby("example"):
        assert pair["policy"].tolist()[1] == "edfa"
        assert pair["person"].nunique() == pair["data"].nunique() == 1
        assert pair["plan"].all()
    assert table["data"].nunique() == table["example"].nunique()


def test_zones_of_the_data_limits_are_those_of_the_certificates(results):
    frame = early.limits(results)
    assert set(frame["zone"]) <= {"certified", "data_limited", "risk_limited"}
    assert (
        frame.loc[frame["zone"] == "certified", "risk"]
        < frame.loc[frame["zone"] == "certified", "alpha"]
    ).all()
    assert len(frame) == 2 * 2 * 5, "sets, alphas, searchers"


def test_certified_cost_is_of_certified_seeds_only():
    row = {"alpha": 0.2, "method": "cp", "full_cost": 0.9}
    status = [("certified", 0.4), ("certified", 0.6), ("data_limited", 0.9)]
    rows = [
        labels("promise", "adult", seed=i, promise="paper") | row | {"status": name, "cost": cost}
        for i, (name, cost) in enumerate(status)
    ]
    table = promises.certified_costs(Synthetic({("promise", "certificate"): rows}))
    assert table["Clopper-Pearson"].tolist() == [0.5]
    whole = promises.certified_summary(Synthetic({("promise", "certificate"): rows}))
    assert whole["certified"].round(3).tolist() == [0.667]


def test_rows_that_are_missing_are_left_out(results):
    fewer = synthetic_results(sets=("adult", "heloc"), predictors=("xgb",), seeds=1).without(
        data="adult", policy="dime"
    )
    table = acquired.features_acquired(fewer).query("predictor == 'XGB'").set_index("data")
    assert np.isnan(table.loc["Adult Income", "DIME"])
    assert not np.isnan(table.loc["HELOC", "DIME"])
    assert "gmsc" not in set(curves.policy_lines(fewer)["data"])


def test_names_are_shown_in_the_paper_s_order():
    assert ordered("data", ["zebra", "gmsc", "german", "apple"]) == [
        "german",
        "gmsc",
        "apple",
        "zebra",
    ]
    assert title("predictor", "xgb-masked-balanced") == "XGB masked balanced"
    assert title("predictor", "mine-own") == "mine-own"


def test_latex_escapes_and_uses_booktabs():
    frame = pd.DataFrame({"a_name": ["5 % & more", "x_1 ≠ y"], "n": [1.0, np.nan]})
    text = to_latex(frame, "100 % of #1", "t", {"n": 0})
    assert r"a\_name & n \\" in text
    assert r"5 \% \& more & 1 \\" in text
    assert r"x\_1 $\neq$ y & - \\" in text
    assert r"\caption{100 \% of \#1}" in text
    assert all(
        rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\begin{tabular}{lr}")
    )
    assert latex_escaped("\\{~^}") == r"\textbackslash{}\{\textasciitilde{}\textasciicircum{}\}"


def test_the_paper_s_numbers_stand_in_brackets_beside_ours_but_alone_in_csv():
    frame = pd.DataFrame({"L0": [1.234, 2.0], "L0 (paper)": [1.5, np.nan]})
    assert as_text(frame, {"L0": 1})[0] == [["L0"], ["1.2 (1.5)"], ["2.0"]]
    assert to_csv(frame) == "L0,L0 (paper)\n1.234,1.5\n2,\n"
