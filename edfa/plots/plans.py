"""Plans side by side: what each changes, and what it takes and leads to."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.errors import DataError
from edfa.plots.axis import DARK, INK, PALE, drawing, label_of, say
from edfa.recourse.plans import Plan
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FactChanges", "PlanComparison", "compare_plans", "draw_plans"]

LABEL, CELL = 1.7, 1.4  # widths of the column of labels and of all others, in inches
LETTERS = {LABEL: 25, CELL: 19}  # on one line of them
LINE, PAD = 0.15, 0.16  # height of a line of text and of what is around it, in inches


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
    """Put plans of one person in one state of knowledge side by side, such as
    ``interview.plans()``.

    Facts are in the order of the card, in its words. DataError if there is no plan, or they are not
    all of one person.
    """
    if not plans:
        raise DataError("there is no plan to compare; interview.no_plan says why")
    if len({(plan.person, plan.seed, plan.step) for plan in plans}) > 1:
        raise DataError("these plans are of several people or steps; compare those of one")
    changes = [{change.feature: change for change in plan.changes} for plan in plans]
    facts = []
    for feature in schema:
        own = [of_plan.get(feature.name) for of_plan in changes]
        if some := [change for change in own if change is not None]:
            after = tuple(
                None if c is None else _value(feature, c.after, c.before, language) for c in own
            )
            today = _value(feature, some[0].before, some[0].before, language)
            facts.append(FactChanges(feature.name, label_of(feature, language), today, after))
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


def _value(feature: Feature, value: Any, before: Any, language: str) -> str:
    """A value in words; a number with a fraction is rounded the way that the change goes, so that
    it is enough.
    """
    number = (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and phrases.named(feature, value, language) is None
    )
    if number and not float(value).is_integer():
        way = 0 if value == before else 1 if value > before else -1
        low, high = feature.range or (-float("inf"), float("inf"))
        rounded = phrases.short(float(value), way)
        value = rounded if low <= rounded <= high else value
    return phrases.value(feature, value, language)


def draw_plans(comparison: PlanComparison, ax: "Axes | None" = None) -> "Axes":
    """Draw a column for today and for each plan: facts that change, then measures with a bar for
    each.
    """
    language = comparison.language
    rows = [*_fact_rows(comparison), *_measure_rows(comparison)]
    widths = [LABEL, *([CELL] * (1 + len(comparison.estimate)))]
    edges = [sum(widths[:i]) for i in range(len(widths) + 1)]
    heights = [
        PAD + LINE * max(len(_lines(t, w)) for t, w in zip(row.cells, widths, strict=True))
        for row in rows
    ]
    head = PAD + LINE
    total = head + sum(heights)
    with drawing(ax, (edges[-1], total)) as ax:
        names = [say("plans.plan", language, number=i + 1) for i in range(len(comparison.estimate))]
        for x, text in zip(edges[1:], [say("plans.today", language), *names], strict=False):
            ax.text(x, head / 2, text, va="center", fontsize=8, fontweight="bold")
        top = head
        for row, height in zip(rows, heights, strict=True):
            heavy = row.cells[0] == rows[len(comparison.facts)].cells[0] or top == head
            ax.plot([0, edges[-1]], [top, top], color=INK, linewidth=0.8 if heavy else 0.3)
            _draw_row(ax, row, edges, top, height)
            top += height
        ax.set(xlim=(0, edges[-1]), ylim=(total, 0))
        ax.set_axis_off()
    return ax


@dataclass(frozen=True)
class _Row:
    """The texts of one row, the label first; for measures, how full each bar is (None: no bar)."""

    cells: tuple[str, ...]
    bars: tuple[float | None, ...] = ()
    changed: tuple[bool, ...] = ()


def _fact_rows(comparison: PlanComparison) -> list[_Row]:
    rows = []
    for fact in comparison.facts:
        after = ["\N{EN DASH}" if words is None else f"→ {words}" for words in fact.after]
        changed = (False, False, *(words is not None for words in fact.after))
        rows.append(_Row((fact.label, fact.today, *after), changed=changed))
    return rows


def _measure_rows(comparison: PlanComparison) -> list[_Row]:
    """Rows of estimate, survival, time and effort; those that no plan has are left out."""
    language = comparison.language

    def name(key: str, **values: object) -> str:
        return say(f"plans.{key}", language, **values)

    def shares(values: Sequence[float | None]) -> list[str]:
        return [name("not_known") if v is None else phrases.in_hundred(v, language) for v in values]

    estimates = (comparison.estimate_today, *comparison.estimate)
    rows = [
        _Row((name("estimate", wanted=comparison.wanted), *shares(estimates)), (None, *estimates))
    ]
    if any(value is not None for value in comparison.survival):
        texts = [
            text if error is None else f"{text} ± {round(100 * error)}"
            for text, error in zip(
                shares(comparison.survival), comparison.survival_error, strict=True
            )
        ]
        rows.append(_Row((name("survival"), "", *texts), (None, None, *comparison.survival)))
    if any(comparison.months):
        times = [phrases.duration(m, language) if m else name("no_time") for m in comparison.months]
        rows.append(_Row((name("months"), "", *times), (None, None, *_filled(comparison.months))))
    efforts = [phrases.number(phrases.short(e), language) for e in comparison.effort]
    return [*rows, _Row((name("effort"), "", *efforts), (None, None, *_filled(comparison.effort)))]


def _filled(values: Sequence[float]) -> list[float | None]:
    """Each value as a share of the largest."""
    largest = max(values)
    return [value / largest if largest > 0 else 0.0 for value in values]


def _lines(text: str, width: float) -> list[str]:
    return wrap(text, LETTERS[width]) or [""]


def _draw_row(ax: "Axes", row: _Row, edges: Sequence[float], top: float, height: float) -> None:
    changed = row.changed or (False,) * len(row.cells)
    for x, end, text, is_changed in zip(edges, edges[1:], row.cells, changed, strict=False):
        lines, weight = (
            "\n".join(_lines(text, round(end - x, 6))),
            "bold" if is_changed else "normal",
        )
        colour = INK if is_changed or x == 0 or row.bars or x == edges[1] else "#888888"
        ax.text(
            x,
            top + height / 2 - (0.03 if row.bars else 0),
            lines,
            va="center",
            fontsize=7.5,
            color=colour,
        )
        ax.texts[-1].set_fontweight(weight)
    for x, filled in zip(edges, row.bars, strict=False):
        if filled is not None:
            bottom = top + height - 0.06
            ax.barh(bottom, 0.85 * CELL, 0.05, x, color=PALE)
            ax.barh(bottom, 0.85 * CELL * filled, 0.05, x, color=DARK)
