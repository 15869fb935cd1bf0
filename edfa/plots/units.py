"""The units of a blanket: the outcome, its parents and children, and the spouses that stand behind
each.
"""

from dataclasses import dataclass
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, Literal

from edfa.plots.axis import GREY, INK, LIGHT, PALE, drawing, label_of
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.blanket.units import Blanket
    from edfa.data.schema import Schema

__all__ = ["UnitDiagram", "UnitNode", "draw_units", "lay_out_units"]

Role = Literal["outcome", "parent or child", "unattached", "spouse"]
COLUMNS: dict[Role, int] = {"outcome": 0, "parent or child": 1, "unattached": 1, "spouse": 2}
FILLS: dict[Role, str] = {
    "outcome": LIGHT,
    "parent or child": PALE,
    "unattached": "white",
    "spouse": "white",
}
LETTERS = 27  # on one line of a box, of which there are two
WIDTH, HEIGHT = 0.78, 0.72  # of a box, where columns and rows are 1 apart
ROW = 0.4  # inches


@dataclass(frozen=True)
class UnitNode:
    """One box: a feature (the outcome has the target's name), its label, its role, and its place.

    ``row`` counts from the top; boxes with several behind them stand beside the middle of these.
    ``parent`` is the position of the node that it is joined with; None for the outcome. A spouse of
    several children stands behind each.
    """

    name: str
    label: str
    role: Role
    row: float
    parent: int | None = None


@dataclass(frozen=True)
class UnitDiagram:
    """Where everything stands: the nodes, the outcome first, and the number of rows."""

    nodes: tuple[UnitNode, ...]
    rows: int


def lay_out_units(
    blanket: "Blanket", schema: "Schema | None" = None, language: str = "en"
) -> UnitDiagram:
    """Lay out a blanket as a tree; with a ``schema`` its labels stand in the boxes instead of the
    columns' names.

    Examples
    --------
    >>> from edfa.blanket.units import Blanket
    >>> diagram = lay_out_units(Blanket("repays", {"savings": (),
    ...     "late_payment": ("wage_came_late", "illness")}))
    >>> [(node.name, node.row) for node in diagram.nodes]
    [('repays', 0.75), ('savings', 0.0), ('late_payment', 1.5), ('wage_came_late', 1.0), ('illness', 2.0)]
    """  # noqa: E501

    def label(name: str) -> str:
        return phrases.plain(name) if schema is None else label_of(schema[name], language)

    nodes: list[UnitNode] = []
    row = 0
    for head, behind in [*blanket.units.items(), *((name, ()) for name in blanket.unattached)]:
        height = max(len(behind), 1)
        role: Role = "unattached" if head in blanket.unattached else "parent or child"
        nodes.append(UnitNode(head, label(head), role, row + (height - 1) / 2, 0))
        place = len(nodes)  # of the head, behind the outcome
        nodes += [
            UnitNode(name, label(name), "spouse", float(row + i), place)
            for i, name in enumerate(behind)
        ]
        row += height
    heads = [node.row for node in nodes if node.parent == 0]
    middle = (heads[0] + heads[-1]) / 2 if heads else 0.0
    outcome = blanket.target if schema is None else schema.outcome(schema.favourable, language)
    return UnitDiagram(
        (UnitNode(blanket.target, phrases.plain(outcome), "outcome", middle), *nodes), max(row, 1)
    )


def draw_units(diagram: UnitDiagram, ax: "Axes | None" = None) -> "Axes":
    """Draw a box for each node and a line to what it is joined with: dashed to spouses, dotted to
    unattached ones.
    """
    nodes = diagram.nodes
    words = ["outcome", "parents and children", "spouses"]
    if any(node.role == "unattached" for node in nodes):
        words[1] += " (dotted: behind no child)"
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    columns = {COLUMNS[node.role] for node in nodes}
    with drawing(ax, (6.4, 0.5 + ROW * diagram.rows)) as ax:
        for node in nodes:
            column = COLUMNS[node.role]
            if node.parent is not None:
                other = nodes[node.parent]
                style = {"spouse": (0, (4, 2)), "unattached": (0, (1, 1.5))}.get(node.role, "-")
                ends, heights = [COLUMNS[other.role] + WIDTH, column], [other.row, node.row]
                ax.plot(ends, heights, color=INK, linewidth=0.9, linestyle=style, zorder=1)
            box: dict[str, Any] = {"color": FILLS[node.role], "edgecolor": INK, "linewidth": 0.8}
            ax.barh(node.row, WIDTH, HEIGHT, column, zorder=2, **box)
            lines = wrap(shorten(node.label, 2 * LETTERS - 4, placeholder=" …"), LETTERS)[:2]
            text = "\n".join(lines) or node.label[:LETTERS]
            ax.text(column + WIDTH / 2, node.row, text, fontsize=7, zorder=3, **centred)
        for column in sorted(columns):
            ax.text(column + WIDTH / 2, -0.75, words[column], fontsize=7.5, color=GREY, **centred)
        ax.set(xlim=(-0.03, max(columns) + WIDTH + 0.03), ylim=(diagram.rows - 0.5, -1.05))
        ax.set_axis_off()
    return ax
