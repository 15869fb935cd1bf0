"""Examples in words (Figures 18 and 19), drawn as cards.

``transition_cards`` and ``people_cards`` make cards of the frames of
``edfa_studies.tables.examples``; ``draw_cards`` draws them side by side on a figure of
``cards_size``.
"""

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pandas as pd

from edfa_studies.figures.style import GREY, RED
from edfa_studies.tables.names import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS = 40  # in a line of a card
MOST_FACTS = 7  # listed on a card; the rest are counted
Block = tuple[str, str, str]
"""The heading of some lines on a card, the lines as one text, and their colour."""


@dataclass(frozen=True)
class Card:
    """Blocks of lines about one example.

    Parameters
    ----------
    data
        The title of the data set it is from.
    blocks
        For each block its heading, its lines as one text, and their colour.
    """

    data: str
    blocks: list[Block]

    @property
    def height(self) -> int:
        """The number of lines that the card takes."""
        return int(sum(text.count("\n") + 3.1 for _, text, _ in self.blocks)) + 1


def transition_cards(frame: pd.DataFrame) -> list[Card]:
    """Make a card of each transition: before and after one more fact.

    Parameters
    ----------
    frame
        Rows of ``edfa_studies.tables.examples.transitions``.
    """
    return [Card(title("data", row["data"]), _transition(row)) for _, row in frame.iterrows()]


def people_cards(frame: pd.DataFrame) -> list[Card]:
    """Make a card of each person, with a block for each policy.

    Parameters
    ----------
    frame
        Rows of ``edfa_studies.tables.examples.side_by_side``.
    """
    groups = [group for _, group in frame.groupby("example")] if len(frame) else []
    return [
        Card(title("data", group["data"].iloc[0]), [_person(row) for _, row in group.iterrows()])
        for group in groups
    ]


def _transition(row: "pd.Series[Any]") -> list[Block]:
    """The facts known and the decision before; the fact asked, and the change that works, after."""
    facts, more = _listed(row["known"])
    before = [*facts, *([more] if more else []), f"Decision: {row['decision']}"]
    after = [
        f"Asked: {row['asked']}: {row['asked_value']} ({row['role']})",
        f"Now decisive: {row['feature']}: {row['from']} → {row['to']}",
        f"Decision then: {row['reached']}",
    ]
    return [
        ("Pre: only semifactuals", _wrapped(before), GREY),
        ("Post: a counterfactual", _wrapped(after), RED),
    ]


def _person(row: "pd.Series[Any]") -> Block:
    """What one policy asked a person, its plan, and what it cost."""
    facts, more = _listed(row["asked"])
    lines = [
        f"Plan: {row['plan']}",
        f"Decision: {row['decision']}; after the plan: {row['reached']}",
        f"Asked: {', '.join(facts)} {more}".rstrip(),
        f"Cost: {float(row['cost']):.0%} of everything",
    ]
    # in brackets, as in the paper, how many of the facts lie outside the blanket
    steps = f"{title('policy', row['policy'])}: {int(row['steps'])} steps ({int(row['outside'])})"
    return steps, _wrapped(lines), RED if row["policy"] == "edfa" else GREY


def _wrapped(lines: list[str]) -> str:
    return "\n".join(fill(line, LETTERS, subsequent_indent="   ") for line in lines)


def _listed(facts: Any) -> tuple[list[str], str]:
    """The first facts of a list that a payload may hold, and a word on how many more there are."""
    facts = [str(fact) for fact in facts] if isinstance(facts, list | tuple) else []
    more = len(facts) - MOST_FACTS
    return facts[:MOST_FACTS], f"and {more} more" if more > 0 else ""


def cards_size(cards: list[Card]) -> tuple[float, float]:
    """Inches that cards take side by side."""
    height = max((card.height for card in cards), default=1)
    return 2.6 * max(1, len(cards)), 0.4 + 0.138 * height


def draw_cards(figure: "Figure", cards: list[Card]) -> "Figure":
    """Draw cards side by side.

    Parameters
    ----------
    figure
        The figure to draw on, best of ``cards_size``.
    cards
        At least one card; all are drawn as high as the highest.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
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
    for name, text, ink in card.blocks:
        rows = text.count("\n") + 1
        box = FancyBboxPatch(
            (0.01, y), 0.98, rows + 1.6, boxstyle="round,pad=0,rounding_size=0.02", fc="#FAFAFA"
        )
        box.set(ec=ink, lw=1, mutation_aspect=height)
        ax.add_patch(box)
        ax.text(0.04, y + 0.95, name, color=ink, fontweight="bold", va="center")
        ax.text(0.04, y + 1.5, text, va="top", fontsize=7, linespacing=1.25)
        y += rows + 2.1
