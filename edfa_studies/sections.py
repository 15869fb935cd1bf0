"""What a report shows, section by section: the paper's tables and figures under its numbers, then
comparisons that the paper does not make.

``sections`` is the entry; each section is one function from results to a ``Section``. Functions in
``tables`` and ``figures`` make the data and draw it; here are names, captions, sizes and decimals.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from edfa_studies.figures import examples as cards
from edfa_studies.figures import growth as curves
from edfa_studies.figures import promises as early
from edfa_studies.tables import acquired, checks, examples, growth, promises
from edfa_studies.tables.names import PAPER, ordered, title
from edfa_studies.tables.rows import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 10.4  # inches of a row of four panels
NARROW = 6.8  # inches that the legends take
BANDS = (
    "Lines are means over seeds, bands one standard deviation; cost is "
    "a share of the cost of everything."
)
MEASURED = "Ours first, the paper's in brackets."
DIGITS = dict.fromkeys(("n", "test n", "plans", "rank", "cells"), 0) | dict.fromkeys(
    ("accuracy", "mean accuracy", "accuracy at the end", "lift", "strictest risk"), 3
)
"""Decimals of columns, wherever a table does not say otherwise; 2 for others."""
FIGURES = PAPER["figures"]
Draw = Callable[..., "Figure"]
"""Draws on the figure that it is called with, and returns it."""


@dataclass(frozen=True)
class Exhibit:
    """A table, or a figure with its data.

    Parameters
    ----------
    name
        That of its files and LaTeX label; made safe for both.
    caption
        What stands above or below it.
    frame
        Its data.
    digits
        Decimals of the columns of a table where they are not 2.
    draw
        Puts a figure on a ``matplotlib.figure.Figure``; None for a table.
    size
        Inches of the figure.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    digits: Mapping[str, int] = field(default_factory=lambda: DIGITS)
    draw: Draw | None = None
    size: tuple[float, float] = (WIDTH, WIDTH)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", file_name(self.name))


@dataclass(frozen=True)
class Section:
    """A part of the report; exhibits without data are left out and named.

    Parameters
    ----------
    title
        Its heading.
    exhibits
        Its tables and figures, in order.
    text
        Words below the heading.
    """

    title: str
    exhibits: Sequence[Exhibit]
    text: str = ""

    @property
    def present(self) -> list[Exhibit]:
        """The exhibits that have data."""
        return [exhibit for exhibit in self.exhibits if len(exhibit.frame)]

    @property
    def left_out(self) -> list[str]:
        """The names of those that have none."""
        return [exhibit.name for exhibit in self.exhibits if not len(exhibit.frame)]


def file_name(name: str) -> str:
    """A name that is safe for files and LaTeX labels; what had to be changed is told apart by a
    digest.

    >>> file_name("figure_5_policies_adult"), file_name("figure_policies_../mine")
    ('figure_5_policies_adult', 'figure_policies_mine_a6bdc066')
    """
    safe = re.sub(r"[^A-Za-z0-9_-]+", "", name)
    return safe if safe == name else f"{safe[:80]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _claims(results: Results) -> Iterator[Exhibit]:
    """The claims of the paper and what was measured."""
    caption = "What must hold on the paper's grid, worked out from these results."
    yield Exhibit("must_hold", caption, checks.must_hold(results))


def _data(results: Results) -> Iterator[Exhibit]:
    """Table 1."""
    frame = acquired.sets(results)
    digits = dict.fromkeys(map(str, frame.columns), 0) | {"base rate": 2}
    caption = f"Table 1: the data sets, their split, and the size of each blanket. {MEASURED}"
    yield Exhibit("table_1_sets", caption, frame, digits)


def _frontier(results: Results) -> Iterator[Exhibit]:
    """Figures 3 and 4: a figure for each of the paper's numbers and each model, sets as rows."""
    lines = curves.blanket_lines(results)
    lines = lines[lines["predictor"] != "bn"]
    numbers = lines["data"].map(FIGURES["frontier"]).fillna(0)
    for number in (*sorted(set(FIGURES["frontier"].values())), 0):
        for predictor in ordered("predictor", lines["predictor"]) or ["xgb"]:
            rows = lines[(lines["predictor"] == predictor) & (numbers == number)]
            stem = f"figure_{number}_frontier" if number else "figure_frontier_more"
            more = "As Figures 3 and 4, on sets that the paper does not show"
            caption = (
                f"{f'Figure {number}' if number else more}: EDFA with "
                f"{title('predictor', predictor)} under each blanket (EAMB solid). {BANDS}"
            )
            if number or len(rows):
                yield _curves(f"{stem}_{predictor}", caption, rows, "data", curves.FRONTIER)


def _curves(
    name: str, caption: str, lines: pd.DataFrame, by: str, measures: Sequence[str]
) -> Exhibit:
    """A figure of curves, with a row of panels for each value of a column.

    Parameters
    ----------
    name, caption
        Those of the exhibit.
    lines
        Curves, see ``edfa_studies.figures.growth``.
    by
        The column whose values become rows.
    measures
        The measures that become columns.
    """
    parts = [lines[lines[by] == value] for value in ordered(by, lines[by])]
    rows = [(curves.row_title(part), part) for part in parts]
    draw = partial(curves.draw_rows, rows=rows, measures=measures)
    size = (WIDTH, 0.65 + 1.95 * max(1, len(rows)))
    return Exhibit(name, caption, lines, draw=draw, size=size)


def _figure(
    name: str, caption: str, frame: pd.DataFrame, draw: Draw, size: tuple[float, float]
) -> Exhibit:
    """A figure that ``draw`` makes of the frame."""
    return Exhibit(name, caption, frame, draw=partial(draw, frame=frame), size=size)


def _acquired(results: Results) -> Iterator[Exhibit]:
    """Tables 2 and 3."""
    features = acquired.features_acquired(results)
    digits = dict.fromkeys(map(str, features.columns), 1) | {"features": 0}
    caption = (
        f"Table 2: features acquired at the budget's end. {MEASURED} ≠: another order "
        "than in the paper."
    )
    yield Exhibit("table_2_features_acquired", caption, features, digits)
    caption = (
        f"Table 3: quality of all counterfactuals at all steps. {MEASURED} ≠: another "
        "policy is best than in the paper. Real and shuffled: the share of real rows, and of "
        "rows with shuffled columns, that count as plausible."
    )
    digits = DIGITS | dict.fromkeys(("L2", "plausible", "real", "shuffled"), 3)
    yield Exhibit("table_3_quality", caption, acquired.quality(results), digits)


def _policies(results: Results) -> Iterator[Exhibit]:
    """Figures 5 to 10."""
    lines = curves.policy_lines(results)
    lines = lines[lines["predictor"] != "bn"]
    yield from _by_set(lines, "policies", "all policies", curves.POLICIES)


def _by_set(
    lines: pd.DataFrame, family: str, what: str, measures: Sequence[str]
) -> Iterator[Exhibit]:
    """A figure for each data set, with models as rows.

    The sets of the paper come under their numbers, others after them.

    Parameters
    ----------
    lines
        Curves of all sets, see ``edfa_studies.figures.growth``.
    family
        The paper's figures: "policies" or "ablations".
    what
        What the series are, for captions.
    measures
        The measures that become columns.
    """
    for data, stem, head in _numbered(family, lines["data"]):
        rows = curves.with_several(lines[lines["data"] == data], ["predictor"])
        if data in FIGURES[family] or len(rows):
            caption = f"{head}: {what} on {title('data', data)}. {BANDS}"
            yield _curves(f"{stem}_{family}_{data}", caption, rows, "predictor", measures)


def _numbered(family: str, names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Names of a family of figures, in the order of the paper, those that it lacks last.

    Yields
    ------
    name, stem, head : str
        What the figure shows, the beginning of its file name, and of its caption.
    """
    numbers = FIGURES[family]
    for name in sorted({*numbers, *names}, key=lambda name: (numbers.get(name, 99), name)):
        if number := numbers.get(name):
            yield name, f"figure_{number}", f"Figure {number}"
        else:
            yield name, "figure", "Not in the paper"


def _early(results: Results) -> Iterator[Exhibit]:
    """Figures 11 to 13, and the stop rules as a table."""
    frame = early.traces(results)
    for predictor, stem, head in _numbered("promises", frame["predictor"]):
        rows = frame[frame["predictor"] == predictor]
        caption = (
            f"{head}: CF Valid@K with {title('predictor', predictor)} under three stop rules: at "
            "the first plan, the certified rule, at the last step. The mark below each point is "
            "the bound that holds with 95 % confidence; the dotted line is 1 - alpha."
        )
        size = _panel_size(rows, 1.95 * max(1, rows["alpha"].nunique()), head=0.75)
        yield _figure(f"{stem}_valid_{predictor}", caption, rows, early.draw_traces, size)
    points = early.limits(results)
    caption = (
        "Figure 13: calibration people and observed risk of the strictest rule, by set "
        "(colour) and searcher (marker). Solid: people needed exactly; dotted: by the closed "
        "form; dashed: the floor. Red: a lower bound above alpha."
    )
    size = (WIDTH, 0.75 + 3.4 * max(1, points["predictor"].nunique()))
    name = f"figure_{FIGURES['limits']}_data_limits"
    yield _figure(name, caption, points, early.draw_all_limits, size)
    caption = "The stop rules of Figures 11 and 12 in figures."
    yield Exhibit("stop_rules", caption, promises.stop_rules(results))


def _panel_size(frame: pd.DataFrame, height: float, head: float = 0.65) -> tuple[float, float]:
    """Inches of a figure with a panel for each set, four in a row.

    ``height`` is that of a row of panels, ``head`` what legend and labels take.
    """
    sets = frame["data"].nunique()
    return max(NARROW, WIDTH * min(4, sets) / 4), head + height * max(1, -(-sets // 4))


def _ablations(results: Results) -> Iterator[Exhibit]:
    """Figures 14 to 17, and the variants of EDFA ranked."""
    lines = curves.ablation_lines(results)
    yield from _by_set(lines, "ablations", "EDFA and its variants", curves.FRONTIER)
    caption = (
        "The variants of EDFA ranked by their mean recourse over the cost grid; "
        "accuracy over the grid and at the end."
    )
    yield Exhibit("ablation_ranks", caption, growth.ablations(results))


def _examples(results: Results) -> Iterator[Exhibit]:
    """Figures 18 and 19."""
    moves, people = examples.transitions(results), examples.side_by_side(results)
    caption = (
        "Figure 18: from semifactual to counterfactual. Before, nothing that is known can "
        "turn the decision; once one more fact is known, a change of another one can."
    )
    yield _cards("transitions", caption, moves, cards.transition_cards(moves))
    caption = (
        "Figure 19: the same person under a baseline and under EDFA. Steps, and in "
        "brackets how many of the facts asked for lie outside the blanket."
    )
    yield _cards("side_by_side", caption, people, cards.people_cards(people))


def _cards(name: str, caption: str, frame: pd.DataFrame, shown: list[cards.Card]) -> Exhibit:
    """A figure of cards, made of the rows of ``frame``."""
    name, draw = f"figure_{FIGURES[name]}_{name}", partial(cards.draw_cards, cards=shown)
    return Exhibit(name, caption, frame, draw=draw, size=cards.cards_size(shown))


def _bayes_net(results: Results) -> Iterator[Exhibit]:
    """EDFA with a Bayesian network, and under every model."""
    lines = curves.model_lines(results)
    of_adult = lines["data"] == "adult"
    caption = f"EDFA with a Bayesian network on Adult Income. {BANDS}"
    yield _curves("figure_bn_adult", caption, lines[of_adult], "data", curves.FRONTIER)
    caption = f"The same on the other sets. {BANDS}"
    yield _curves("figure_bn_all", caption, lines[~of_adult], "data", curves.FRONTIER)
    caption = "EDFA under every model and blanket, at the end."
    yield Exhibit("models", caption, growth.models(results))


def _equal_cost(results: Results) -> Iterator[Exhibit]:
    """Policies that have spent the same."""
    lines = curves.policy_lines(results, "cost")
    lines = lines[lines["measure"] == "recourse"]
    for predictor in ordered("predictor", lines["predictor"]) or ["xgb"]:
        rows = curves.with_several(lines[lines["predictor"] == predictor], ["data"])
        caption = f"Recourse options at equal cost with {title('predictor', predictor)}. {BANDS}"
        if len(rows) or predictor == "xgb":
            name, size = f"figure_equal_cost_{predictor}", _panel_size(rows, 2)
            yield _figure(name, caption, rows, curves.draw_sets, size)
    caption = (
        "Policies at equal cost: mean recourse over the cost grid, and at 25, "
        "50 and 75 % of the cost of everything."
    )
    yield Exhibit("equal_cost", caption, growth.equal_cost(results))


def _first(results: Results) -> Iterator[Exhibit]:
    """The cost to the first recourse, as a figure and a table."""
    caption = (
        "What the first recourse costs, mean and standard deviation over "
        "seeds, for people who ever have one."
    )
    label = "cost to the first recourse (share of everything)"
    yield _dots("figure_first_recourse", caption, curves.first_costs(results), label)
    caption = "The first recourse in figures."
    yield Exhibit("first_recourse", caption, growth.first_recourse(results))


def _dots(name: str, caption: str, frame: pd.DataFrame, label: str) -> Exhibit:
    """A dot plot with a row for each set."""
    size = (WIDTH, 1.2 + 0.62 * max(1, frame["data"].nunique()))
    return _figure(name, caption, frame, partial(curves.draw_dots, label=label), size)


def _certified(results: Results) -> Iterator[Exhibit]:
    """What acting early costs: a figure for each promise, model and alpha, and two tables."""
    frame = early.certified_points(results)
    for key, rows in frame.groupby(["promise", "predictor", "alpha"]):
        promise, predictor, alpha = (str(name) for name in key)
        caption = (
            f"Certified cost of acting early with {title('predictor', predictor)} at "
            f"alpha = {float(alpha):g} under {title('promise', promise)}. A filled mark: every "
            "seed certified; a cross: none. Dashed: the cost of going to the last step."
        )
        name = f"figure_certified_cost_{promise}_{predictor}_{round(100 * float(alpha))}"
        size = _panel_size(rows, 0.6 + 0.27 * rows["searcher"].nunique())
        yield _figure(name, caption, rows, early.draw_certified, size)
    caption = (
        "Over all sets: the share of cells certified, their cost, share of "
        "the full cost saved, promises kept."
    )
    yield Exhibit("certified_summary", caption, promises.certified_summary(results))
    caption = "Certified cost by promise, policy, searcher and bound; a dash: nothing certified."
    yield Exhibit("certified_cost", caption, promises.certified_costs(results))


def _lift(results: Results) -> Iterator[Exhibit]:
    """The outcome lift of plans, as a figure and a table."""
    caption = (
        "Outcome lift: by how much first plans change the probability of the class they "
        "lead to, as seen by a model that took no part and knows everything. Mean and standard "
        "deviation over seeds."
    )
    label = "lift (change of the probability of the class reached)"
    yield _dots("figure_outcome_lift", caption, curves.lifts(results), label)
    caption = "Outcome lift in figures, by reading."
    yield Exhibit("outcome_lift", caption, growth.outcome_lift(results))


def _rest(results: Results) -> Iterator[Exhibit]:
    """Decision thresholds, and certificates by group."""
    caption = (
        "Sets with a rare class through a decision threshold: the same model by majority "
        "and balanced."
    )
    yield Exhibit("thresholds", caption, growth.thresholds(results))
    digits = DIGITS | dict.fromkeys(("risk", "bound", "test risk"), 3)
    yield Exhibit("groups", "Certificates by group.", promises.groups(results), digits)


SECTIONS: tuple[tuple[Callable[[Results], Iterator[Exhibit]], str, str], ...] = (
    (
        _claims,
        "What must hold",
        "Each claim with what was measured, the sets where it fails, and yes or no.",
    ),
    (_data, "Data sets", ""),
    (
        _frontier,
        "Recourse as EDFA asks on (Figures 3 and 4)",
        "Recourse options, semifactual features, accuracy and the active "
        "share of the blanket as EDFA asks on.",
    ),
    (_acquired, "Features acquired, and how good the counterfactuals are (Tables 2 and 3)", ""),
    (
        _policies,
        "All policies (Figures 5 to 10)",
        "All policies under the same blanket: recourse options, accuracy, active "
        "share, features outside the blanket.",
    ),
    (_early, "Acting early (Figures 11 to 13)", ""),
    (_ablations, "Ablations (Figures 14 to 17)", ""),
    (_examples, "Examples in words (Figures 18 and 19)", ""),
    (_bayes_net, "A Bayesian network, the model that matches the blanket", ""),
    (
        _equal_cost,
        "Policies at equal cost",
        "At the budget's end a policy that buys more has more; here "
        "every policy has spent the same.",
    ),
    (_first, "The cost to the first recourse", ""),
    (
        _certified,
        "Certified cost by bound, policy and searcher",
        "What acting early costs where it is certified: under the paper's loss, "
        "and under the advisor's own promise.",
    ),
    (_lift, "Outcome lift of plans", ""),
    (_rest, "Decision thresholds, and certificates by group", ""),
)
"""What makes the exhibits of each section, its title, and the words below it: first the paper's,
then those beyond it."""


def sections(results: Results) -> list[Section]:
    """Everything that a report shows, in its order.

    Parameters
    ----------
    results
        The results of a study, best a ``View``: several sections read the same table.

    Returns
    -------
    list of Section
        All sections, also those without any data.

    Examples
    --------
    >>> class Nothing:
    ...     def frame(self, measure, table):
    ...         return pd.DataFrame()
    >>> parts = sections(Nothing())
    >>> parts[1].title, parts[1].present, parts[1].left_out
    ('Data sets', [], ['table_1_sets'])
    """
    return [Section(name, [*make(results)], text) for make, name, text in SECTIONS]
