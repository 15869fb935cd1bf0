"""Small pieces of HTML and SVG: everything is escaped, nothing is fetched, and nothing is said by colour alone."""

import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Html",
    "box",
    "cell",
    "figure",
    "grid",
    "line",
    "list_of",
    "page",
    "pairs",
    "paragraph",
    "shown",
    "svg",
    "word",
]

STYLE = (
    ".edfa{font:14px/1.45 system-ui,sans-serif;color:#1b1b1b;background:#fff;max-width:60rem}"
    ".edfa table{border-collapse:collapse;margin:.4em 0;font-size:inherit;color:inherit}"
    ".edfa caption{text-align:left;font-weight:600;padding:.2em 0}"
    ".edfa th,.edfa td{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:1px solid #ccc}"
    ".edfa th{font-weight:600;color:#444}"
    ".edfa td.n,.edfa th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".edfa p{margin:.4em 0}.edfa svg{max-width:100%;height:auto}"
)
PAGE = (
    "body{margin:2rem auto;padding:0 1rem;max-width:60rem;background:#fff}"
    "h1{font:600 1.6rem/1.2 system-ui,sans-serif}h2{font:600 1.15rem/1.3 system-ui,sans-serif;margin-top:2rem}"
    "pre{font:13px/1.4 ui-monospace,monospace;background:#f5f5f5;padding:.8em;overflow-x:auto}"
)
INK, PALE = "#1b1b1b", "#767676"
BOX = 160  # the width of a box
CUT = 22  # letters that fit into a box


class Html(str):
    """Text that is HTML already; everything else is escaped where it is put."""

    __slots__ = ()


def cell(value: object) -> Html:
    """A value as HTML."""
    return value if isinstance(value, Html) else Html(escape("" if value is None else str(value)))


def shown(*parts: Html) -> Html:
    """What an object shows of itself: its parts in one look."""
    return Html(f'<div class="edfa"><style>{STYLE}</style>{"".join(parts)}</div>')


def paragraph(*texts: object) -> Html:
    """One paragraph."""
    return Html(f"<p>{' '.join(map(cell, texts))}</p>")


def list_of(items: Iterable[object]) -> Html:
    """A list; nothing where there is nothing."""
    inner = "".join(f"<li>{cell(item)}</li>" for item in items)
    return Html(f"<ul>{inner}</ul>" if inner else "")


def grid(head: Sequence[str], rows: Iterable[Sequence[object]], caption: object = "") -> Html:
    """A table with a row of names. ">" before a name right-aligns its column, as numbers are read."""
    kind = [' class="n"' if name.startswith(">") else "" for name in head]
    names = "".join(f'<th scope="col"{k}>{cell(n.lstrip(">"))}</th>' for n, k in zip(head, kind, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{k}>{cell(value)}</td>' for value, k in zip(row, kind, strict=True))}</tr>" for row in rows
    )
    title = f"<caption>{cell(caption)}</caption>" if caption else ""
    return Html(f"<table>{title}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>")


def pairs(rows: Iterable[tuple[object, object]], caption: object = "") -> Html:
    """A table of names and values."""
    body = "".join(f'<tr><th scope="row">{cell(name)}</th><td>{cell(value)}</td></tr>' for name, value in rows)
    title = f"<caption>{cell(caption)}</caption>" if caption else ""
    return Html(f"<table>{title}<tbody>{body}</tbody></table>")


def page(title: str, *parts: Html, language: str = "en") -> str:
    """A whole document that needs nothing else; its policy forbids it to run or fetch anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{cell(title)}</title><style>{PAGE}{STYLE}</style>'
    )
    body = f'<main class="edfa"><h1>{cell(title)}</h1>{"".join(parts)}</main>'
    return f'<!doctype html><html lang="{cell(language)}"><head>{head}</head><body>{body}</body></html>\n'


def svg(width: float, height: float, title: object, *parts: str) -> Html:
    """A drawing that says what it is."""
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    look = 'role="img" font-family="system-ui,sans-serif" font-size="11"'
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}><title>{cell(title)}</title>{"".join(parts)}</svg>'
    )


def word(x: float, y: float, text: object, anchor: str = "start", fill: str = INK) -> Html:
    """Text in a drawing."""
    return Html(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{cell(text)}</text>')


def line(x1: float, y1: float, x2: float, y2: float, dash: str = "", ink: str = PALE) -> Html:
    """A straight line in a drawing."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return Html(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}"{dashed}/>')


def box(x: float, y: float, text: str, fill: str = "#fff") -> Html:
    """A name in a box whose left edge and middle are given; a long name is cut, and whole on hovering."""
    cut = text if len(text) <= CUT else text[: CUT - 1] + "…"
    shape = f'<rect x="{x:g}" y="{y - 11:g}" width="{BOX}" height="22" rx="6" fill="{fill}" stroke="{PALE}"/>'
    return Html(f"<g><title>{cell(text)}</title>{shape}{word(x + BOX / 2, y + 4, cut, 'middle')}</g>")


def figure(draw: Callable[["Axes"], object], title: object, size: tuple[float, float] = (6.4, 3.2)) -> Html:
    """What ``draw`` puts on an axis as an inline drawing; its text stays text. The same drawing has the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    text = {"svg.fonttype": "none", "svg.hashsalt": str(title), "font.size": 9, "text.parse_math": False}
    settings: Any = text | {"axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(settings):
        drawing = Figure(figsize=size, layout="constrained")
        draw(drawing.add_subplot())
        written = io.StringIO()
        drawing.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    _, start, rest = written.getvalue().partition("<svg ")
    opening, end, inner = rest.partition(">")
    return Html(f'{start}role="img" {opening}{end}<title>{cell(title)}</title>{inner}'.rstrip())
