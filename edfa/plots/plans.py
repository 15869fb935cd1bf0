"""Plans side by side: what each changes, and what it takes and leads to."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from textwrap import wrap
from typing import TYPE_CHECKING

from edfa.data.schema import Feature, Schema
from edfa.errors import DataError
from edfa.plots.axis import DARK, INK, PALE, drawing, label_of, say
from edfa.recourse.plans import Change, Plan
from edfa.text import phrases
from edfa.text.steps import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FactChanges", "PlanComparison", "compare_plans", "draw_plans"]

LABEL, CELL = 1.7, 1.4  # widths of the column of labels and of all others, in inches
LETTERS = {LABEL: 25, CELL: 19}  # on one line of them
LINE, PAD = 0.15, 0.16  # height of a line of text and of what is around it, in inches
UNCHANGED = "\N{EN DASH}"
Row = tuple[list[str], list[float | None]]
"""The texts of one row, the label first, and how full the bar below each is (None: no bar)."""


@dataclass(frozen=True)
class FactChanges:
    """One fact that a plan changes: its value today, and what each plan makes of it; None: it
    stays.
    """

    feature: str
    label: str
    today: str
    after: tuple[str | None, ...]


@dataclass(frozen=True)
class PlanComparison:
    """The plans of one person; tuples have one entry for each plan.

    ``estimate`` and ``estimate_today`` are probabilities of the outcome ``wanted``, ``survival``
    that of each plan to hold when everything is known, with its standard error (None: not
    estimated).
    """

    facts: tuple[FactChanges, ...]
    estimate_today: float
    estimate: tuple[float, ...]
    survival: tuple[float | None, ...]
    survival_error: tuple[float | None, ...]
    months: tuple[float, ...]
    effort: tuple[float, ...]
    wanted: str
    language: str = "en"


def compare_plans(plans: Sequence[Plan], schema: Schema, language: str = "en") -> PlanComparison:
    """Put plans of one person in one state of knowledge side by side.

    Parameters
    ----------
    plans
        Such as ``interview.plans()``.
    schema
        The card: facts are in its order, in its words.
    language
        Of the words.

    Raises
    ------
    DataError
        If there is no plan, or they are not all of one person.
    """
    if not plans:
        raise DataError("there is no plan to compare; interview.no_plan says why")
    if len({(plan.person, plan.seed, plan.step) for plan in plans}) > 1:
        raise DataError("these plans are of several people or steps; compare those of one")
    changes = [{change.feature: change for change in plan.changes} for plan in plans]

    def said(feature: Feature, value: object, way: int = 0) -> str:
        return phrases.value(feature, shortened(feature, value, way), language)

    facts = []
    for feature in schema:
        own = [of_plan.get(feature.name) for of_plan in changes]
        if some := [change for change in own if change is not None]:
            after = tuple(None if c is None else said(feature, c.after, _way(c)) for c in own)
            label, today = label_of(feature, language), said(feature, some[0].before)
            facts.append(FactChanges(feature.name, label, today, after))
    return PlanComparison(
        tuple(facts),
        plans[0].probability_before,
        tuple(plan.probability_after for plan in plans),
        tuple(plan.survival for plan in plans),
        tuple(plan.survival_error for plan in plans),
        tuple(plan.months for plan in plans),
        tuple(plan.effort for plan in plans),
        phrases.plain(schema.outcome(plans[0].reached, language)),
        language,
    )


def _way(change: Change) -> int:
    """The way that a number is rounded so that it is still enough: 1 up, -1 down."""
    numbers = isinstance(change.before, Real) and isinstance(change.after, Real)
    return (1 if change.after > change.before else -1) if numbers else 0


def draw_plans(comparison: PlanComparison, ax: "Axes | None" = None) -> "Axes":
    """Draw a column for today and for each plan: facts that change, then measures with a bar for
    each.
    """
    columns = 1 + len(comparison.estimate)
    words = [say("plans.plan", comparison.language, number=i) for i in range(1, columns)]
    head: Row = (["", say("plans.today", comparison.language), *words], [])
    facts, measures = _fact_rows(comparison), _measure_rows(comparison)
    rows = [head, *facts, *measures]
    widths = [LABEL, *([CELL] * columns)]
    edges = [sum(widths[:i]) for i in range(columns + 2)]
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


def _fact_rows(comparison: PlanComparison) -> list[Row]:
    return [
        ([fact.label, fact.today, *(f"→ {to}" if to else UNCHANGED for to in fact.after)], [])
        for fact in comparison.facts
    ]


def _measure_rows(comparison: PlanComparison) -> list[Row]:
    """Rows of estimate, survival, time and effort; those that no plan has are left out."""
    language = comparison.language

    def name(key: str, **values: object) -> str:
        return say(f"plans.{key}", language, **values)

    def share(value: float | None, error: float | None = None) -> str:
        if value is None:
            return name("not_known")
        text = phrases.in_hundred(value, language)
        return text if error is None else f"{text} ± {round(100 * error)}"

    estimates = [comparison.estimate_today, *comparison.estimate]
    label = name("estimate", wanted=comparison.wanted)
    rows: list[Row] = [([label, *map(share, estimates)], [*estimates])]
    if any(value is not None for value in comparison.survival):
        shares = map(share, comparison.survival, comparison.survival_error)
        rows.append(([name("survival"), "", *shares], [None, *comparison.survival]))
    if any(comparison.months):
        times = [phrases.duration(m, language) if m else name("no_time") for m in comparison.months]
        rows.append(([name("months"), "", *times], [None, *_filled(comparison.months)]))
    efforts = [phrases.number(phrases.short(e), language) for e in comparison.effort]
    return [*rows, ([name("effort"), "", *efforts], [None, *_filled(comparison.effort)])]


def _filled(values: Sequence[float]) -> list[float]:
    """Each value as a share of the largest."""
    largest = max(values)
    return [value / largest if largest > 0 else 0.0 for value in values]
