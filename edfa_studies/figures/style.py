"""One look for every figure: a name has the same colour, line and marker everywhere, those of
``names.toml``; panels stand in rows under one legend.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edfa_studies.tables.names import NAMES, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RED, BLACK, GREY = "#D55E00", "#000000", "#767676"
SPARE = ("#56B4E9", "#999933", "#882255", "#E69F00", GREY)  # for names of the user's own
DOTTED = [1, 1.3]
COLUMNS = 4  # panels in a row
COST = "cost (share of everything)"


def look(kind: str, name: str) -> dict[str, Any]:
    """How a name is drawn.

    Parameters
    ----------
    kind, name
        What it names, such as ``"policy"``, and the name as the study calls it. A name that
        ``names.toml`` does not have gets a colour that follows from its letters, and dots.

    Returns
    -------
    dict
        Colour, line style, width and layer, as keyword arguments of ``Axes.plot``.
    """
    own = {"colour": SPARE[sum(map(ord, name)) % len(SPARE)], "dashes": DOTTED}
    known = NAMES.get(kind, {}).get(name, {})
    drawn = known if "colour" in known else own
    bold = "bold" in known
    return {
        "color": drawn["colour"],
        "linestyle": (0, tuple(drawn["dashes"])) if "dashes" in drawn else "-",
        "linewidth": 2.2 if bold else 1.3,
        "zorder": 2 if bold else 3,  # thin lines stay visible on it
    }


def colour(kind: str, name: str) -> str:
    """The colour of a name."""
    return str(look(kind, name)["color"])


def marker(kind: str, name: str) -> str:
    """The marker of a name; a cross for names of the user's own."""
    return str(NAMES.get(kind, {}).get(name, {}).get("marker", "X"))


def handle(label: str, **style: Any) -> Any:
    """An entry of a legend that is drawn like a line with these keyword arguments."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def marks(kind: str, names: Iterable[str], **style: Any) -> list[Any]:
    """Entries of a legend: the marker of each name in its colour.

    ``style`` has keyword arguments of ``matplotlib.lines.Line2D`` that replace these.
    """
    return [
        handle(
            title(kind, name),
            **{"ls": "none", "marker": marker(kind, name), "color": colour(kind, name)} | style,
        )
        for name in names
    ]


def head(ax: "Axes", text: str) -> None:
    """Put a bold title above the left edge of a panel."""
    ax.set_title(text, loc="left", fontweight="bold")


def legend(figure: "Figure", kind: str, names: Sequence[str], extra: Iterable[Any] = ()) -> None:
    """Put one legend above all panels.

    Parameters
    ----------
    figure
        The figure.
    kind, names
        What the lines are, and the names of those that are shown, in order.
    extra
        Entries that follow them, as of ``marks`` and ``handle``.
    """
    handles = [*(handle(title(kind, name), **look(kind, name)) for name in names), *extra]
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=max(1, min(len(handles), 6 if len(handles) > 7 else 7)),
        handlelength=2.6,
        columnspacing=1.4,
    )


def panels(
    figure: "Figure", names: Sequence[str], blocks: int = 1, **options: Any
) -> Iterator[list["Axes"]]:
    """Make an axis for each name, in rows of four.

    Parameters
    ----------
    figure
        The figure.
    names
        What the panels are about, one after the other.
    blocks
        How often there is a panel for each name; blocks stand one below another.
    options
        Keyword arguments of ``Figure.subplots``, such as ``sharex``.

    Yields
    ------
    list of matplotlib.axes.Axes
        The axes of a block, one for each name; what is left of its last row is hidden.
    """
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    axes: Any = figure.subplots(rows * blocks, columns, squeeze=False, **options)
    for block in range(blocks):
        of_block = axes[block * rows : (block + 1) * rows].ravel()
        for ax in of_block[len(names) :]:
            ax.set_visible(False)
        yield list(of_block[: len(names)])
