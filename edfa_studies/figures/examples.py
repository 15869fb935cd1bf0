"""Examples as cards: before and after a fact is known (Figure 18), and one person under two
policies (Figure 19).
"""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import pandas as pd

from edfa.text import html
from edfa_studies.figures.style import GREY, RED
from edfa_studies.tables.examples import listed, steps_text
from edfa_studies.tables.labels import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_card",
    "draw_people",
    "draw_transitions",
    "people_html",
    "transition_lines",
    "transitions_html",
]

LETTERS = 40  # in a line of a card
MOST = 7  # facts listed on a card; the rest are counted
Block = tuple[str, list[str], str]  # heading, lines, colour of the heading


def transition_lines(row: "pd.Series[Any]") -> list[Block]:
    """Before and after as two blocks of lines."""
    facts = listed(row["known"])
    more = [f"and {len(facts) - MOST} more"] if len(facts) > MOST else []
    asked = f"{row['asked']}: {row['asked_value']} ({row['role']})"
    change = f"{row['feature']}: {row['from']} → {row['to']}"
    before = [*facts[:MOST], *more, f"Decision: {row['decision']}", *_sentence(row["before"])]
    after = [
        f"Asked: {asked}",
        f"Now decisive: {change}",
        f"Decision then: {row['reached']}",
        *_sentence(row["after"]),
    ]
    return [("Pre: only semifactuals", before, GREY), ("Post: a counterfactual", after, RED)]


def _sentence(text: Any) -> list[str]:
    """A sentence that a payload may have."""
    return [text] if isinstance(text, str) and text else []


def person_lines(rows: pd.DataFrame) -> list[Block]:
    """The policies of one example as blocks: steps, features outside the blanket in brackets, the
    plan in words.
    """
    blocks: list[Block] = []
    for _, row in rows.iterrows():
        facts = listed(row["asked"])
        asked = ", ".join(facts[:MOST]) + (
            f" and {len(facts) - MOST} more" if len(facts) > MOST else ""
        )
        lines = [
            f"Plan: {row['plan']}",
            f"Decision: {row['decision']}; after the plan: {row['reached']}",
        ]
        lines += [f"Asked: {asked}", f"Cost: {float(row['cost']):.0%} of everything"]
        blocks.append((steps_text(row), lines, RED if row["policy"] == "edfa" else GREY))
    return blocks


def draw_card(ax: "Axes", heading: str, blocks: list[Block], height: int) -> "Axes":
    """Draw a card: a heading and blocks of wrapped lines, ``height`` lines high."""
    from matplotlib.patches import FancyBboxPatch

    ax.set(xlim=(0, 1), ylim=(height, 0), xticks=[], yticks=[])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(fill(heading, LETTERS - 6), loc="left", fontweight="bold")
    y = 0.2
    for name, lines, colour in blocks:
        text = [fill(line, LETTERS, subsequent_indent="   ") for line in lines]
        rows = sum(part.count("\n") + 1 for part in text)
        box = FancyBboxPatch(
            (0.01, y), 0.98, rows + 1.6, boxstyle="round,pad=0,rounding_size=0.02", fc="#FAFAFA"
        )
        box.set(ec=colour, lw=1, mutation_aspect=height)
        ax.add_patch(box)
        ax.text(0.04, y + 0.95, name, color=colour, fontweight="bold", va="center")
        ax.text(0.04, y + 1.5, "\n".join(text), va="top", fontsize=7, linespacing=1.25)
        y += rows + 2.1
    return ax


def _height(cards: list[list[Block]]) -> int:
    """Lines that the longest card takes."""

    def rows(blocks: list[Block]) -> int:
        lines = [
            fill(line, LETTERS, subsequent_indent="   ").count("\n") + 1
            for _, part, _ in blocks
            for line in part
        ]
        return int(sum(lines) + 2.1 * len(blocks)) + 1

    return max(map(rows, cards), default=1)


def draw_transitions(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw a card for each transition, side by side."""
    cards = [transition_lines(row) for _, row in frame.iterrows()]
    axes: Any = figure.subplots(1, len(cards), squeeze=False)
    for ax, name, blocks in zip(axes[0], frame["data"], cards, strict=True):
        draw_card(ax, title("data", name), blocks, _height(cards))
    return figure


def transitions_size(frame: pd.DataFrame) -> tuple[float, float]:
    """Inches that the cards take."""
    cards = [transition_lines(row) for _, row in frame.iterrows()]
    return 2.6 * max(1, len(cards)), 0.4 + 0.138 * _height(cards)


def draw_people(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw a card for each person: the baseline above, EDFA below."""
    groups = _people(frame)
    cards = [person_lines(group) for group in groups]
    axes: Any = figure.subplots(1, len(cards), squeeze=False)
    for ax, group, blocks in zip(axes[0], groups, cards, strict=True):
        draw_card(ax, title("data", group["data"].iloc[0]), blocks, _height(cards))
    return figure


def _people(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of each example."""
    return [group for _, group in frame.groupby("example")] if len(frame) else []


def people_size(frame: pd.DataFrame) -> tuple[float, float]:
    """Inches that the cards take."""
    cards = [person_lines(group) for group in _people(frame)]
    return 2.6 * max(1, len(cards)), 0.4 + 0.138 * _height(cards)


def _cards_html(cards: list[tuple[str, list[Block]]]) -> html.Markup:
    parts = []
    for heading, blocks in cards:
        body = html.Markup().join(
            html.Markup('<div class="block"><strong>{}</strong>{}</div>').format(
                name, html.bullet_list(lines)
            )
            for name, lines, _ in blocks
        )
        parts.append(
            html.Markup('<div class="card">{}{}</div>').format(html.heading(heading, 4), body)
        )
    return html.Markup('<div class="cards">{}</div>').format(html.Markup().join(parts))


def transitions_html(frame: pd.DataFrame) -> html.Markup:
    """The transitions as text of a page."""
    cards = [(_where(row), transition_lines(row)) for _, row in frame.iterrows()]
    return _cards_html(cards)


def people_html(frame: pd.DataFrame) -> html.Markup:
    """The people under two policies as text of a page."""
    return _cards_html([(_where(group.iloc[0]), person_lines(group)) for group in _people(frame)])


def _where(row: "pd.Series[Any]") -> str:
    names = [title(kind, row[kind]) for kind in ("data", "predictor", "blanket", "searcher")]
    return f"{', '.join(names)}, person {row['person']}"
