"""Figures as bytes: compact SVG whose text stays text, and PNG. The same figure gives the same bytes."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from edfa.studies.figures.style import RC
from edfa.text.html import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline", "to_png", "to_svg"]

Draw = Callable[["Figure"], object]
DPI = 110
TAG = re.compile(r"<[a-zA-Z][^>]*>")
NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def to_svg(draw: Draw, name: str, size: tuple[float, float]) -> str:
    """An SVG document of what ``draw`` puts on a figure; ``size`` is in inches, ``name`` keeps its ids apart."""
    written = io.StringIO()
    _save(draw, name, size, lambda figure: figure.savefig(written, format="svg", metadata=NO_METADATA))
    return compact(written.getvalue())


def to_png(draw: Draw, name: str, size: tuple[float, float]) -> bytes:
    """The same as PNG."""
    written = io.BytesIO()
    _save(draw, name, size, lambda figure: figure.savefig(written, format="png", dpi=DPI, metadata={"Software": None}))
    return written.getvalue()


def _save(draw: Draw, name: str, size: tuple[float, float], save: "Callable[[Figure], object]") -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(RC | {"svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        save(figure)


def compact(document: str) -> str:
    """The document with coordinates to a hundredth of a point, and without ids that nothing refers to."""
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', document))

    def short(match: re.Match[str]) -> str:
        tag = NUMBER.sub(lambda number: f"{float(number.group()):.2f}".rstrip("0").rstrip("."), match.group())
        return re.sub(r' id="([^"]*)"', lambda id_: id_.group() if id_.group(1) in used else "", tag)

    _, _, rest = document.partition("<svg ")  # without the XML declaration and the address of its grammar
    return '<?xml version="1.0" encoding="utf-8"?>\n' + re.sub(r"\n\s*", "\n", TAG.sub(short, "<svg " + rest))


def inline(document: str, title: str) -> Markup:
    """An SVG document of ``to_svg`` as a part of a page, with a title for screen readers."""
    _, _, rest = document.partition("<svg ")
    attributes, _, inner = rest.partition(">")
    trusted = [Markup(part) for part in (attributes, inner.rstrip())]  # noqa: S704 - matplotlib escapes its text
    return Markup('<svg role="img" {}><title>{}</title>{}').format(trusted[0], title, trusted[1])
