"""The units of a blanket: the outcome, its parents and children, and the spouses that stand behind
each.

``lay_out`` places a box for each, and ``draw_units`` draws the boxes and the lines between them.
"""

from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from edfa.plots.axis import GREY, INK, LIGHT, PALE, drawing, label_of
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.blanket.units import Blanket
    from edfa.data.schema import Schema

Role = Literal["outcome", "parent or child", "unattached", "spouse"]
COLUMNS: dict[Role, int] = {"outcome": 0, "parent or child": 1, "unattached": 1, "spouse": 2}
FILLS: dict[Role, str] = {"outcome": LIGHT, "parent or child": PALE}
LINES: dict[Role, Any] = {"spouse": (0, (4, 2)), "unattached": (0, (1, 1.5))}
LETTERS = 27  # on one line of a box, of which there are two
WIDTH, HEIGHT = 0.78, 0.72  # of a box, where columns and rows are 1 apart
ROW = 0.4  # inches


class Box(NamedTuple):
    """One box of the drawing: a feature, its role and its place.

    Parameters
    ----------
    name
        The name of the feature; of the outcome, that of the target.
    role
        The column that the box stands in, and its look. A spouse of several children has a box
        behind each.
    row
        Its place from the top, where rows are 1 apart.
    parent
        The position, in the list of boxes, of the one that it is joined with; None for the outcome.
    """

    name: str
    role: Role
    row: float
    parent: int | None = None


def lay_out(blanket: "Blanket") -> list[Box]:
    """The boxes of a blanket, the outcome first; one with several behind it stands beside the
    middle of these.

    Parameters
    ----------
    blanket
        The blanket. Its unattached features stand below its units.

    Examples
    --------
    >>> from edfa.blanket.units import Blanket
    >>> units = {"savings": (), "late_payment": ("wage_came_late", "illness")}
    >>> boxes = lay_out(Blanket("repays", units))
    >>> [(box.name, box.row) for box in boxes[:3]]
    [('repays', 0.75), ('savings', 0.0), ('late_payment', 1.5)]
    >>> [(box.name, box.row, box.parent) for box in boxes[3:]]
    [('wage_came_late', 1, 2), ('illness', 2, 2)]
    """
    boxes: list[Box] = []
    row = 0
    for head, behind in [*blanket.units.items(), *((name, ()) for name in blanket.unattached)]:
        height = max(len(behind), 1)
        role: Role = "unattached" if head in blanket.unattached else "parent or child"
        boxes.append(Box(head, role, row + (height - 1) / 2, 0))
        place = len(boxes)  # of the head, behind the outcome
        boxes += [Box(name, "spouse", row + i, place) for i, name in enumerate(behind)]
        row += height
    heads = [box.row for box in boxes if box.parent == 0]
    middle = (heads[0] + heads[-1]) / 2 if heads else 0.0
    return [Box(blanket.target, "outcome", middle), *boxes]


def draw_units(
    blanket: "Blanket",
    schema: "Schema | None" = None,
    language: str = "en",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a box for the outcome and for each feature of a blanket, with a line to what it is
    joined with: dashed to spouses, dotted to unattached features.

    Parameters
    ----------
    blanket
        Such as ``edfa.discover(table.train)``.
    schema
        The card, whose labels stand in the boxes; None: the columns' names do.
    language
        Of the labels.
    ax
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axis that was drawn on.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """

    def label(box: Box) -> str:
        if schema is None:
            return phrases.plain(box.name)
        if box.role == "outcome":
            return phrases.plain(schema.outcome(schema.favourable, language))
        return label_of(schema[box.name], language)

    boxes = lay_out(blanket)
    rows = int(max(box.row for box in boxes)) + 1
    words = ["outcome", "parents and children", "spouses"]
    if blanket.unattached:
        words[1] += " (dotted: behind no child)"
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    columns = sorted({COLUMNS[box.role] for box in boxes})
    with drawing(ax, (6.4, 0.5 + ROW * rows)) as ax:
        for box in boxes:
            column = COLUMNS[box.role]
            if box.parent is not None:
                other = boxes[box.parent]
                ends, heights = [COLUMNS[other.role] + WIDTH, column], [other.row, box.row]
                style = LINES.get(box.role, "-")
                ax.plot(ends, heights, color=INK, linewidth=0.9, linestyle=style, zorder=1)
            look: dict[str, Any] = {"color": FILLS.get(box.role, "white"), "edgecolor": INK}
            ax.barh(box.row, WIDTH, HEIGHT, column, zorder=2, linewidth=0.8, **look)
            text = label(box)
            lines = wrap(shorten(text, 2 * LETTERS - 4, placeholder=" …"), LETTERS)[:2]
            text = "\n".join(lines) or text[:LETTERS]
            ax.text(column + WIDTH / 2, box.row, text, fontsize=7, zorder=3, **centred)
        for column in columns:
            ax.text(column + WIDTH / 2, -0.75, words[column], fontsize=7.5, color=GREY, **centred)
        ax.set(xlim=(-0.03, columns[-1] + WIDTH + 0.03), ylim=(rows - 0.5, -1.05))
        ax.set_axis_off()
    return ax
