"""Figures as bytes: compact SVG whose text stays text, and PNG. The same figure gives the same
bytes.
"""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from markupsafe import Markup

from edfa.extras import extra
from edfa.plots.axis import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[["Figure"], object]
DPI = 110
FONTS = "DejaVu Sans,Verdana,sans-serif"
TAG = re.compile(r"<[a-zA-Z][^>]*>")
NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
NEEDLESS = re.compile(r"font-family: [^;\"]*; ?| transform=\"rotate\(-0 [^\"]*\"")
GROUP = re.compile(r"<g(?=[\s>/])[^>]*>\n?|</g>\n?")
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def render(draw: Draw, name: str, size: tuple[float, float]) -> tuple[str, bytes]:
    """Draw a figure and write it twice.

    Parameters
    ----------
    draw
        Called with an empty ``matplotlib.figure.Figure`` to draw on.
    name
        Seeds the ids in the SVG, so that those of several figures on one page differ.
    size
        Width and height in inches.

    Returns
    -------
    svg : str
        A compact SVG document.
    png : bytes
        The same figure as PNG, 110 dots per inch.
    """
    with extra("plots", "a figure"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    svg, png = io.StringIO(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}, fname=STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, so that both files look alike
        figure.savefig(svg, format="svg", metadata=NO_METADATA)
        figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    return compact(svg.getvalue()), png.getvalue()


def compact(document: str) -> str:
    """Make an SVG document of matplotlib smaller without changing what is seen.

    Coordinates keep one decimal, numbers below 1 two; all texts have one font; ids that nothing
    refers to and groups without attributes are left out.

    Examples
    --------
    >>> compact('<svg a="1.23456"><g><path d="M 0.12345 12.3456"/></g></svg>').splitlines()[1][-37:]
    'a="1.2"><path d="M 0.12 12.3"/></svg>'
    """
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', document))

    def short(match: re.Match[str]) -> str:
        tag = NUMBER.sub(
            lambda number: _rounded(float(number.group())), NEEDLESS.sub("", match.group())
        )
        tag = re.sub(r' id="([^"]*)"', lambda id_: id_.group() if id_.group(1) in used else "", tag)
        return re.sub(r"\s*\n\s*", "", tag)

    document = re.sub(r"\n\s+", "\n", document)
    _, _, rest = document.partition(
        "<svg "
    )  # without the XML declaration and the address of its grammar
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<svg font-family="{FONTS}" '
    return _without_empty_groups(head + TAG.sub(short, f"<svg {rest}")[5:])


def _rounded(number: float) -> str:
    """A coordinate; numbers below 1 are widths and shares and keep more."""
    return f"{number:.{1 if abs(number) >= 1 else 2}f}".rstrip("0").rstrip(".") or "0"


def _without_empty_groups(document: str) -> str:
    """The document without groups that have no attribute."""
    kept: list[bool] = []

    def decide(match: re.Match[str]) -> str:
        if match.group().startswith("</"):
            return match.group() if kept.pop() else ""
        if match.group().rstrip().endswith("/>"):
            return ""  # a group of nothing
        kept.append(match.group().strip() != "<g>")
        return match.group() if kept[-1] else ""

    return GROUP.sub(decide, document)


def inline(document: str, title: str) -> Markup:
    """An SVG document of ``render`` as a part of a page.

    ``title`` is what screen readers say about it.
    """
    _, _, rest = document.partition("<svg ")
    attributes, _, inner = rest.partition(">")
    # matplotlib escapes its text
    trusted = [Markup(part) for part in (attributes, inner.rstrip())]  # noqa: S704
    return Markup('<svg role="img" {}><title>{}</title>{}').format(trusted[0], title, trusted[1])
