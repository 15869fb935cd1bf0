"""The sections of a report that follow the paper: its tables and figures, under its numbers."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from edfa_studies import paper_numbers
from edfa_studies.exhibits import BANDS, WIDTH, FigureExhibit, Section, TableExhibit
from edfa_studies.figures import examples as cards
from edfa_studies.figures import growth as curves
from edfa_studies.figures import promises as early
from edfa_studies.tables import acquired, checks, examples, growth, promises
from edfa_studies.tables.labels import ordered, title
from edfa_studies.tables.results import Results

__all__ = ["paper_sections"]

ROW = 1.95
MEASURED = "Ours first, the paper's in brackets."


def paper_sections(results: Results) -> list[Section]:
    """Every table and figure of the paper, in its order, after what must hold."""
    return [
        _claims(results),
        _data(results),
        _frontier(results),
        _acquired(results),
        _policies(results),
        _early(results),
        _ablations(results),
        _examples(results),
        _bayes_net(results),
    ]


def _claims(results: Results) -> Section:
    caption = "What must hold on the paper's grid, worked out from these results."
    table = TableExhibit("must_hold", caption, checks.must_hold(results))
    return Section(
        "What must hold",
        "Each claim with what was measured, the sets where it fails, and yes or no.",
        (table,),
    )


def _data(results: Results) -> Section:
    frame = acquired.sets(results)
    whole = dict.fromkeys(map(str, frame.columns), 0) | {"base rate": 2}
    caption = f"Table 1: the data sets, their split, and the size of each blanket. {MEASURED}"
    return Section("Data sets", "", (TableExhibit("table_1_sets", caption, frame, whole),))


def _frontier(results: Results) -> Section:
    lines = curves.blanket_lines(results)
    lines = lines[lines["predictor"] != "bn"]
    numbers = paper_numbers.figure_numbers("frontier")
    exhibits = []
    for number in (*sorted(set(numbers.values())), 0):
        for predictor in ordered("predictor", lines["predictor"]) or ["xgb"]:
            rows = lines[
                (lines["predictor"] == predictor) & (lines["data"].map(numbers).fillna(0) == number)
            ]
            stem = f"figure_{number}_frontier" if number else "figure_frontier_more"
            what = (
                f"Figure {number}"
                if number
                else "As Figures 3 and 4, on sets that the paper does not show"
            )
            caption = (
                f"{what}: EDFA with {title('predictor', predictor)} under "
                f"each blanket (EAMB solid). {BANDS}"
            )
            if number or len(rows):
                exhibits.append(
                    _growth_figure(f"{stem}_{predictor}", caption, rows, "data", curves.FRONTIER)
                )
    text = (
        "Recourse options, semifactual features, accuracy and the active "
        "share of the blanket as EDFA asks on."
    )
    return Section("Recourse as EDFA asks on (Figures 3 and 4)", text, tuple(exhibits))


def _growth_figure(
    name: str,
    caption: str,
    lines: pd.DataFrame,
    by: str,
    measures: Sequence[str],
    width: float = WIDTH,
) -> FigureExhibit:
    """Rows of panels, one for each value of the column ``by``."""
    rows = [
        (curves.row_title(part), part)
        for part in (lines[lines[by] == x] for x in ordered(by, lines[by]))
    ]
    draw = partial(curves.draw_rows, rows=rows, measures=measures)
    return FigureExhibit(name, caption, lines, draw, (width, 0.65 + ROW * max(1, len(rows))))


def _acquired(results: Results) -> Section:
    features = acquired.features_acquired(results)
    digits = dict.fromkeys(map(str, features.columns), 1) | {"features": 0, "MB size": 1}
    table_2 = TableExhibit(
        "table_2_features_acquired",
        (
            f"Table 2: features acquired at the budget's end. {MEASURED} ≠: another order "
            "than in the paper."
        ),
        features,
        digits,
    )
    table_3 = TableExhibit(
        "table_3_quality",
        f"Table 3: quality of all counterfactuals at all steps. {MEASURED} ≠: another "
        "policy is best than in the "
        "paper. Real and shuffled: the share of real rows, and of rows with shuffled "
        "columns, that count as plausible.",
        acquired.quality(results),
        {"plans": 0, "L2": 3, "plausible": 3, "real": 3, "shuffled": 3},
    )
    return Section(
        "Features acquired, and how good the counterfactuals are (Tables 2 and 3)",
        "",
        (table_2, table_3),
    )


def _policies(results: Results) -> Section:
    lines = curves.policy_lines(results)
    lines = lines[~lines["predictor"].isin(["bn"])]
    numbers = paper_numbers.figure_numbers("policies")
    text = (
        "All policies under the same blanket: recourse options, accuracy, active "
        "share, features outside the blanket."
    )
    exhibits = tuple(_by_set(lines, numbers, "policies", "all policies", curves.POLICIES))
    return Section("All policies (Figures 5 to 10)", text, exhibits)


def _by_set(
    lines: pd.DataFrame, numbers: dict[str, int], family: str, what: str, measures: Sequence[str]
) -> Iterator[FigureExhibit]:
    """A figure for each set, rows are models; those of the paper under its number, others after
    them.
    """
    for data in sorted({*numbers, *lines["data"]}, key=lambda name: (numbers.get(name, 99), name)):
        rows = lines[lines["data"] == data]
        several = rows.groupby("predictor")["series"].transform("nunique") > 1
        rows = rows[several.astype(bool)]
        number = numbers.get(data)
        if number is None and rows.empty:
            continue
        stem = f"figure_{number}_{family}_{data}" if number else f"figure_{family}_{data}"
        head = f"Figure {number}" if number else "Not in the paper"
        yield _growth_figure(
            stem, f"{head}: {what} on {title('data', data)}. {BANDS}", rows, "predictor", measures
        )


def _early(results: Results) -> Section:
    frame = early.traces(results)
    numbers = paper_numbers.figure_numbers("promises")
    exhibits: list[FigureExhibit | TableExhibit] = []
    for predictor in sorted(
        {*numbers, *frame["predictor"]}, key=lambda name: (numbers.get(name, 99), name)
    ):
        rows = frame[frame["predictor"] == predictor]
        number = numbers.get(predictor)
        stem = f"figure_{number}_valid_{predictor}" if number else f"figure_valid_{predictor}"
        caption = (
            f"{f'Figure {number}' if number else 'Not in the paper'}: CF Valid@K with "
            f"{title('predictor', predictor)} "
            "under three stop rules: at the first plan, the certified rule, at the last "
            "step. The mark below each "
            "point is the bound that holds with 95 % confidence; the dotted line is 1 - alpha."
        )
        panels = -(-rows["data"].nunique() // 4) * max(1, rows["alpha"].nunique())
        size = (max(6.8, WIDTH * min(4, rows["data"].nunique()) / 4), 0.75 + 1.95 * max(1, panels))
        exhibits.append(
            FigureExhibit(stem, caption, rows, partial(early.draw_traces, frame=rows), size)
        )
    points = early.limits(results)
    caption = (
        "Figure 13: calibration people and observed risk of the strictest rule, by set "
        "(colour) and searcher (marker). "
        "Solid: people needed exactly; dotted: by the closed form; dashed: the floor. "
        "Red: a lower bound above alpha."
    )
    size = (WIDTH, 0.75 + 3.4 * max(1, points["predictor"].nunique()))
    number_13 = paper_numbers.figure_number("limits")
    draw = partial(early.draw_all_limits, frame=points)
    exhibits.append(FigureExhibit(f"figure_{number_13}_data_limits", caption, points, draw, size))
    rules = TableExhibit(
        "stop_rules",
        "The stop rules of Figures 11 and 12 in figures.",
        promises.stop_rules(results),
        {"n": 0},
    )
    return Section("Acting early (Figures 11 to 13)", "", (*exhibits, rules))


def _ablations(results: Results) -> Section:
    lines = curves.ablation_lines(results)
    numbers = paper_numbers.figure_numbers("ablations")
    figures = tuple(_by_set(lines, numbers, "ablations", "EDFA and its variants", curves.FRONTIER))
    caption = (
        "The variants of EDFA ranked by their mean recourse over the cost grid; "
        "accuracy over the grid and at the end."
    )
    table = TableExhibit(
        "ablation_ranks", caption, growth.ablations(results), {"rank": 0} | _accuracy_digits()
    )
    return Section("Ablations (Figures 14 to 17)", "", (*figures, table))


def _accuracy_digits() -> dict[str, int]:
    return {"mean accuracy": 3, "accuracy at the end": 3, "accuracy": 3}


def _examples(results: Results) -> Section:
    moves, people = examples.transitions(results), examples.side_by_side(results)
    first = FigureExhibit(
        f"figure_{paper_numbers.figure_number('transitions')}_transitions",
        "Figure 18: from semifactual to counterfactual. Before, nothing that is known can "
        "turn the decision; once one "
        "more fact is known, a change of another one can.",
        moves,
        partial(cards.draw_transitions, frame=moves),
        cards.transitions_size(moves),
        cards.transitions_html(moves),
    )
    second = FigureExhibit(
        f"figure_{paper_numbers.figure_number('side_by_side')}_side_by_side",
        "Figure 19: the same person under a baseline and under EDFA. Steps, and in "
        "brackets how many of the facts "
        "asked for lie outside the blanket.",
        people,
        partial(cards.draw_people, frame=people),
        cards.people_size(people),
        cards.people_html(people),
    )
    return Section("Examples in words (Figures 18 and 19)", "", (first, second))


def _bayes_net(results: Results) -> Section:
    lines = curves.model_lines(results, "bn")
    adult, rest = lines[lines["data"] == "adult"], lines[lines["data"] != "adult"]
    exhibits = (
        _growth_figure(
            "figure_bn_adult",
            f"EDFA with a Bayesian network on Adult Income. {BANDS}",
            adult,
            "data",
            curves.FRONTIER,
        ),
        _growth_figure(
            "figure_bn_all", f"The same on the other sets. {BANDS}", rest, "data", curves.FRONTIER
        ),
        TableExhibit(
            "models",
            "EDFA under every model and blanket, at the end.",
            growth.models(results),
            _accuracy_digits(),
        ),
    )
    return Section("A Bayesian network, the model that matches the blanket", "", exhibits)
