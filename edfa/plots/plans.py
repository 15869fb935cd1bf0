"""Plans side by side: what each changes, and what it takes and leads to.

``draw_plans`` makes a table: a row for each fact that some plan changes, then a row for each
measure, with a column for today and one for each plan.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from edfa.data.schema import Schema
from edfa.errors import DataError
from edfa.plots.axis import DARK, INK, PALE, drawing, label_of, say
from edfa.recourse.plans import Plan
from edfa.text import phrases
from edfa.text.steps import told, way_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL, CELL = 1.7, 1.4  # widths of the column of labels and of all others, in inches
LETTERS = {LABEL: 25, CELL: 19}  # on one line of them
LINE, PAD = 0.15, 0.16  # height of a line of text and of what is around it, in inches
UNCHANGED = "\N{EN DASH}"
Row = tuple[list[str], list[float | None]]
"""The texts of one row, the label first, and how full the bar below each is (None: no bar)."""


def draw_plans(
    plans: Sequence[Plan], schema: Schema, language: str = "en", ax: "Axes | None" = None
) -> "Axes":
    """Draw a column for today and for each plan: facts that change, then measures with a bar for
    each.

    Parameters
    ----------
    plans
        Plans of one person in one state of knowledge, such as ``interview.plans()``.
    schema
        The card: facts are in its order, in its words.
    language
        Of the words.
    ax
        Where to draw; None: on a new figure, as large as the table needs.

    Returns
    -------
    matplotlib.axes.Axes
        The axis that was drawn on.

    Raises
    ------
    DataError
        If there is no plan, or they are not all of one person.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not plans:
        raise DataError("there is no plan to compare; interview.no_plan says why")
    if len({(plan.person, plan.seed, plan.step) for plan in plans}) > 1:
        raise DataError("these plans are of several people or steps; compare those of one")
    words = [say("plans.plan", language, number=i) for i in range(1, len(plans) + 1)]
    head: Row = (["", say("plans.today", language), *words], [])
    facts = _fact_rows(plans, schema, language)
    rows = [head, *facts, *_measure_rows(plans, schema, language)]
    widths = [LABEL, *([CELL] * (1 + len(plans)))]
    edges = [sum(widths[:i]) for i in range(len(widths) + 1)]
    cells = [
        ["\n".join(wrap(text, LETTERS[width])) for text, width in zip(texts, widths, strict=True)]
        for texts, _ in rows
    ]
    heights = [PAD + LINE * max(text.count("\n") + 1 for text in texts) for texts in cells]
    with drawing(ax, (edges[-1], sum(heights))) as ax:
        top = 0.0
        for i, ((_, bars), texts, height) in enumerate(zip(rows, cells, heights, strict=True)):
            if i:
                width = 0.8 if i in (1, 1 + len(facts)) else 0.3
                ax.plot([0, edges[-1]], [top, top], color=INK, linewidth=width)
            for x, text in zip(edges, texts, strict=False):
                ax.text(
                    x,
                    top + height / 2 - (0.03 if bars else 0),
                    text,
                    va="center",
                    fontsize=7.5 if i else 8,
                    color="#888888" if text == UNCHANGED else INK,
                    fontweight="bold" if not i or text.startswith("→") else "normal",
                )
            top += height
            for x, filled in zip(edges[1:], bars, strict=False):
                if filled is not None:
                    ax.barh(top - 0.06, 0.85 * CELL, 0.05, x, color=PALE)
                    ax.barh(top - 0.06, 0.85 * CELL * filled, 0.05, x, color=DARK)
        ax.set(xlim=(0, edges[-1]), ylim=(top, 0))
        ax.set_axis_off()
    return ax


def _fact_rows(plans: Sequence[Plan], schema: Schema, language: str) -> list[Row]:
    """Each fact that a plan changes: its value today, and what each plan makes of it.

    Facts are in the order of the card. A plan that leaves a fact as it is has a dash there.
    """
    by_feature = [{change.feature: change for change in plan.changes} for plan in plans]
    rows: list[Row] = []
    for feature in schema:
        changes = [of_plan.get(feature.name) for of_plan in by_feature]
        if some := [change for change in changes if change is not None]:
            after = [
                UNCHANGED
                if change is None
                else f"→ {told(feature, change.after, way_of(change), language)}"
                for change in changes
            ]
            today = told(feature, some[0].before, 0, language)
            rows.append(([label_of(feature, language), today, *after], []))
    return rows


def _measure_rows(plans: Sequence[Plan], schema: Schema, language: str) -> list[Row]:
    """Rows of estimate, survival, time and effort; those that no plan has are left out.

    The bar below an estimate or a survival is as full as the probability, that below a time or an
    effort is its share of the largest among the plans.
    """

    def name(key: str, **values: object) -> str:
        return say(f"plans.{key}", language, **values)

    def share(value: float | None, error: float | None = None) -> str:
        if value is None:
            return name("not_known")
        text = phrases.in_hundred(value, language)
        return text if error is None else f"{text} ± {round(100 * error)}"

    wanted = phrases.plain(schema.outcome(plans[0].reached, language))
    estimates = [plans[0].probability_before, *(plan.probability_after for plan in plans)]
    label = name("estimate", wanted=wanted)
    rows: list[Row] = [([label, *map(share, estimates)], [*estimates])]
    survival = [plan.survival for plan in plans]
    if any(value is not None for value in survival):
        shares = map(share, survival, [plan.survival_error for plan in plans])
        rows.append(([name("survival"), "", *shares], [None, *survival]))
    months = [plan.months for plan in plans]
    if any(months):
        times = [phrases.duration(m, language) if m else name("no_time") for m in months]
        rows.append(([name("months"), "", *times], [None, *_filled(months)]))
    effort = [plan.effort for plan in plans]
    words = [phrases.number(phrases.short(value), language) for value in effort]
    return [*rows, ([name("effort"), "", *words], [None, *_filled(effort)])]


def _filled(values: Sequence[float]) -> list[float]:
    """Each value as a share of the largest."""
    largest = max(values)
    return [value / largest if largest > 0 else 0.0 for value in values]
