"""One look for every figure: a colour that colour-blind readers can tell apart and a line style for
each name.

The colours are those of Okabe and Ito, and two of Paul Tol's; a name has the same look in every
figure.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from edfa_studies.tables.labels import title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["MARKERS", "ZONES", "legend", "look"]

RED, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY, WINE, OLIVE = (
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#767676",
    "#882255",
    "#999933",
)
Dashes = str | tuple[int, tuple[float, ...]]
DASHED, DOTTED, DASHDOT = (0, (4, 1.6)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5))
LOOKS: dict[tuple[str, str], tuple[str, Dashes]] = {
    ("policy", "edfa"): (RED, "-"),
    ("policy", "edfa generative"): (RED, DASHED),
    ("policy", "edfa-random"): (ORANGE, DASHDOT),
    ("policy", "edfa-no-pc-priority"): (WINE, DASHED),
    ("policy", "edfa-structural"): (SKY, DOTTED),
    ("policy", "survival"): (BLACK, DASHED),
    ("policy", "dime"): (BLUE, "-"),
    ("policy", "eddi"): (GREEN, DASHED),
    ("policy", "gsmrl"): (PURPLE, DASHDOT),
    ("policy", "greedy"): (OLIVE, DASHED),
    ("policy", "random"): (GREY, DOTTED),
    ("blanket", "eamb"): (RED, "-"),
    ("blanket", "hiton-mb"): (BLUE, DOTTED),
    ("blanket", "bamb"): (GREEN, (0, (1, 2.6))),
    ("blanket", "iamb"): (GREY, DASHDOT),
    ("predictor", "xgb"): (BLUE, "-"),
    ("predictor", "ftt"): (ORANGE, DASHED),
    ("predictor", "bn"): (BLACK, DASHDOT),
    ("predictor", "mlp"): (PURPLE, DOTTED),
    ("searcher", "nearest"): (RED, "-"),
    ("searcher", "generative"): (BLUE, DASHED),
    ("searcher", "dice"): (GREEN, DASHDOT),
    ("searcher", "nice"): (BLACK, DOTTED),
    ("searcher", "probe"): (PURPLE, (0, (6, 1.2))),
    ("searcher", "survival"): (OLIVE, DASHED),
    ("method", "paper"): (BLACK, "-"),
    ("method", "cp"): (BLUE, "-"),
    ("method", "wsr"): (ORANGE, "-"),
    ("method", "hb"): (GREY, "-"),
    ("data", "german"): (RED, "-"),
    ("data", "adult"): (BLUE, "-"),
    ("data", "heloc"): (GREEN, "-"),
    ("data", "taiwan"): (PURPLE, "-"),
    ("data", "acs_income"): (SKY, "-"),
    ("data", "gmsc"): (BLACK, "-"),
    ("data", "diabetes130"): (WINE, "-"),
}
SPARE = (SKY, OLIVE, WINE, ORANGE, GREY)  # for names of the user's own
EMPHASISED = {("policy", "edfa"), ("blanket", "eamb")}
MARKERS = {
    "nearest": "o",
    "generative": "s",
    "dice": "^",
    "nice": "D",
    "probe": "v",
    "survival": "P",
    "paper": "o",
    "cp": "s",
    "wsr": "^",
    "hb": "D",
}
ZONES = {"certified": "#DDEFE3", "data_limited": "#FBF1D3", "risk_limited": "#F6DCD5"}


def look(kind: str, name: str) -> dict[str, Any]:
    """Colour, line style, width and layer of a name, as keyword arguments of ``Axes.plot``."""
    spare = SPARE[sum(map(ord, name)) % len(SPARE)]
    colour, style = LOOKS.get((kind, name), (spare, DOTTED))
    bold = (kind, name) in EMPHASISED
    return {
        "color": colour,
        "linestyle": style,
        "linewidth": 2.2 if bold else 1.3,
        "zorder": 2 if bold else 3,
    }  # thin lines stay visible on it


def legend(
    figure: "Figure", kind: str, names: Sequence[str], extra: Iterable["Line2D"] = ()
) -> None:
    """One legend above all panels: each name once, in this order, then whatever is ``extra``."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=series_name(kind, name), **look(kind, name)) for name in names]
    handles += list(extra)
    columns = min(len(handles), 6 if len(handles) > 7 else 7)
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=max(1, columns),
        handlelength=2.6,
        columnspacing=1.4,
    )


def series_name(kind: str, name: str) -> str:
    """What a series is called: "edfa generative" is EDFA with the generative searcher."""
    first, _, rest = name.partition(" ")
    return (
        f"{title(kind, first)} {title('searcher', rest)}".strip()
        if kind == "policy"
        else title(kind, name)
    )
