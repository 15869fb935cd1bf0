"""Examples in words (Figures 18 and 19) as cards: drawn for files, and as text for pages."""

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pandas as pd

from edfa.text import html
from edfa_studies.figures.style import GREY, RED
from edfa_studies.tables.names import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Card", "cards_html", "cards_size", "draw_cards", "people_cards", "transition_cards"]

LETTERS = 40  # in a line of a card
MOST_FACTS = 7  # listed on a card; the rest are counted


@dataclass(frozen=True)
class Card:
    """A card: the data set it is from, everything else that describes it, and blocks of lines,
    each with a heading and its colour.
    """

    data: str
    about: str
    blocks: list[tuple[str, list[str], str]]

    @property
    def wrapped(self) -> list[tuple[str, str, str]]:
        """The blocks with their lines wrapped, as one text each."""
        return [
            (name, "\n".join(fill(line, LETTERS, subsequent_indent="   ") for line in lines), ink)
            for name, lines, ink in self.blocks
        ]

    @property
    def height(self) -> int:
        """The number of lines that the card takes."""
        return int(sum(text.count("\n") + 3.1 for _, text, _ in self.wrapped)) + 1


def transition_cards(frame: pd.DataFrame) -> list[Card]:
    """A card for each row of ``tables.examples.transitions``: before and after one more fact."""
    return [_card(row, _transition(row)) for _, row in frame.iterrows()]


def people_cards(frame: pd.DataFrame) -> list[Card]:
    """A card for each example of ``tables.examples.side_by_side``, a block for each policy."""
    groups = [group for _, group in frame.groupby("example")] if len(frame) else []
    return [_card(group.iloc[0], [_person(row) for _, row in group.iterrows()]) for group in groups]


def _card(row: "pd.Series[Any]", blocks: list[tuple[str, list[str], str]]) -> Card:
    names = [title(kind, row[kind]) for kind in ("data", "predictor", "blanket", "searcher")]
    return Card(names[0], f"{', '.join(names)}, person {row['person']}", blocks)


def _transition(row: "pd.Series[Any]") -> list[tuple[str, list[str], str]]:
    facts, more = _listed(row["known"])
    before = [*facts, *([f"and {more} more"] if more else []), f"Decision: {row['decision']}"]
    after = [
        f"Asked: {row['asked']}: {row['asked_value']} ({row['role']})",
        f"Now decisive: {row['feature']}: {row['from']} → {row['to']}",
        f"Decision then: {row['reached']}",
    ]
    return [("Pre: only semifactuals", before, GREY), ("Post: a counterfactual", after, RED)]


def _person(row: "pd.Series[Any]") -> tuple[str, list[str], str]:
    facts, more = _listed(row["asked"])
    lines = [
        f"Plan: {row['plan']}",
        f"Decision: {row['decision']}; after the plan: {row['reached']}",
        f"Asked: {', '.join(facts)}" + (f" and {more} more" if more else ""),
        f"Cost: {float(row['cost']):.0%} of everything",
    ]
    # in brackets, as in the paper, how many of the facts lie outside the blanket
    steps = f"{title('policy', row['policy'])}: {int(row['steps'])} steps ({int(row['outside'])})"
    return steps, lines, RED if row["policy"] == "edfa" else GREY


def _listed(facts: Any) -> tuple[list[str], int]:
    """The first facts of a list that a payload may hold, and how many more there are."""
    facts = [str(fact) for fact in facts] if isinstance(facts, list | tuple) else []
    return facts[:MOST_FACTS], max(0, len(facts) - MOST_FACTS)


def cards_size(cards: list[Card]) -> tuple[float, float]:
    """Inches that cards take side by side."""
    height = max((card.height for card in cards), default=1)
    return 2.6 * max(1, len(cards)), 0.4 + 0.138 * height


def draw_cards(figure: "Figure", cards: list[Card]) -> "Figure":
    """Draw cards side by side."""
    axes: Any = figure.subplots(1, len(cards), squeeze=False)
    for ax, card in zip(axes[0], cards, strict=True):
        _draw_card(ax, card, max(card.height for card in cards))
    return figure


def _draw_card(ax: "Axes", card: Card, height: int) -> None:
    """Draw a heading and blocks of wrapped lines, ``height`` lines high."""
    from matplotlib.patches import FancyBboxPatch

    ax.set(xlim=(0, 1), ylim=(height, 0), xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set_title(fill(card.data, LETTERS - 6), loc="left", fontweight="bold")
    y = 0.2
    for name, text, ink in card.wrapped:
        rows = text.count("\n") + 1
        box = FancyBboxPatch(
            (0.01, y), 0.98, rows + 1.6, boxstyle="round,pad=0,rounding_size=0.02", fc="#FAFAFA"
        )
        box.set(ec=ink, lw=1, mutation_aspect=height)
        ax.add_patch(box)
        ax.text(0.04, y + 0.95, name, color=ink, fontweight="bold", va="center")
        ax.text(0.04, y + 1.5, text, va="top", fontsize=7, linespacing=1.25)
        y += rows + 2.1


def cards_html(cards: list[Card]) -> html.Markup:
    """The cards as text of a page."""
    block = html.Markup('<div class="block"><strong>{}</strong>{}</div>')
    shown = html.Markup().join(
        html.Markup('<div class="card">{}{}</div>').format(
            html.heading(card.about, 4),
            html.Markup().join(
                block.format(name, html.bullet_list(lines)) for name, lines, _ in card.blocks
            ),
        )
        for card in cards
    )
    return html.Markup('<div class="cards">{}</div>').format(shown)
