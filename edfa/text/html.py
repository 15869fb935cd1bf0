"""Pieces of HTML and SVG for notebooks and reports.

Every piece is ``markupsafe.Markup``: text put into one is escaped, markup is not escaped again.
Documents (``fragment``, ``page``) are plain strings. Nothing is fetched, and nothing is expressed
by colour alone. A fragment has the colours of the notebook around it, be that light or dark: text
and lines have its text colour, tints are translucent, and nothing has a background of its own.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from edfa.errors import MissingExtraError
from edfa.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = Markup(
    ".edfa{font:14px/1.45 system-ui,sans-serif;max-width:60rem}"
    ".edfa table{border-collapse:collapse;margin:.4em 0;font-size:inherit;color:inherit}"
    ".edfa caption{text-align:left;font-weight:600;padding:.2em 0}"
    ".edfa th,.edfa td{text-align:left;vertical-align:top;padding:.2em .8em .2em "
    "0;border-bottom:1px solid #8886;"
    "overflow-wrap:break-word;hyphens:auto}"
    "@media(max-width:480px){.edfa table{font-size:12px}.edfa th,.edfa td{padding-right:.4em}}"
    "@media(max-width:400px){.edfa th,.edfa td{overflow-wrap:anywhere}}"
    ".edfa th{font-weight:600}.edfa "
    "pre{margin:0;color:inherit;background:none;white-space:pre-wrap}"
    ".edfa td.n,.edfa th.n{text-align:right;font-variant-numeric:tabular-nums}.edfa "
    "td.n{white-space:nowrap}"
    ".edfa p{margin:.4em 0}.edfa svg{max-width:100%;height:auto}"
)
PAGE_STYLE = Markup(
    "body{margin:2rem auto;padding:0 1rem;max-width:60rem;color:#1b1b1b;background:#fff}"
    "h1{font:600 1.6rem/1.2 system-ui,sans-serif}h2{font:600 1.15rem/1.3 "
    "system-ui,sans-serif;margin-top:2rem}"
    "main pre{font:13px/1.4 "
    "ui-monospace,monospace;background:#f5f5f5;padding:.8em;white-space:pre-wrap;"
    "overflow-wrap:anywhere}"
)
SECURITY_POLICY = Markup("default-src 'none'; style-src 'unsafe-inline'")
NUMERIC = Markup(' class="n"')  # right-aligned column
PAINT = re.compile(
    r"\b(fill|stroke): (#000000|#ffffff)\b(?=[^<>]*>)"
)  # in a style, never in a text
REPAINTED = {"#000000": "currentColor", "#ffffff": "none"}


def escaped(value: object) -> Markup:
    """A value as HTML: markup stays as it is, None becomes empty, anything else is escaped."""
    return Markup() if value is None else escape(value)


def fragment(*parts: Markup) -> str:
    """The HTML a ``_repr_html_`` returns: the parts in one ``<div>`` with the house style."""
    return str(Markup('<div class="edfa"><style>{}</style>{}</div>').format(STYLE, _joined(parts)))


def page(title: str, *parts: Markup, language: str = "en") -> str:
    """A complete HTML document that loads nothing.

    Its security policy forbids scripts and network requests.

    Parameters
    ----------
    title
        The title, which is also the first heading.
    parts
        What follows, as from the other functions of this module.
    language
        The document's language, such as "en".

    Returns
    -------
    str
        The document, which ends with a line break.
    """
    head = Markup(
        '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{}">'
        '<meta name="viewport" content="width=device-width"><title>{}</title><style>{}{}</style>'
    ).format(SECURITY_POLICY, title, PAGE_STYLE, STYLE)
    body = Markup('<main class="edfa"><h1>{}</h1>{}</main>').format(title, _joined(parts))
    document = Markup('<!doctype html><html lang="{}"><head>{}</head><body>{}</body></html>\n')
    return str(document.format(language, head, body))


def heading(text: object, level: int) -> Markup:
    """A heading of level 1 to 6.

    >>> heading("Plans & people", 3)
    Markup('<h3>Plans &amp; people</h3>')
    """
    return Markup("<h{0}>{1}</h{0}>").format(level, text)


def paragraph(*texts: object) -> Markup:
    """One paragraph; the texts are separated by a space.

    >>> paragraph("You may act.", Markup("<b>Now.</b>"))
    Markup('<p>You may act. <b>Now.</b></p>')
    """
    return Markup("<p>{}</p>").format(Markup(" ").join(map(escaped, texts)))


def bullet_list(items: Iterable[object]) -> Markup:
    """A bullet list; without items, nothing.

    >>> bullet_list(["a", "b"]), bullet_list([])
    (Markup('<ul><li>a</li><li>b</li></ul>'), Markup(''))
    """
    entries = _joined(Markup("<li>{}</li>").format(item) for item in items)
    return Markup("<ul>{}</ul>").format(entries) if entries else Markup()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: object = "") -> Markup:
    """A table with a header row.

    Parameters
    ----------
    columns
        The names of the columns. ">" before a name right-aligns the column, for numbers.
    rows
        The rows, each with a value for every column; None gives an empty cell.
    caption
        What stands above the table; empty: nothing.
    """
    classes = [NUMERIC if name.startswith(">") else "" for name in columns]
    names = [name.lstrip(">") for name in columns]
    header = _table_row(Markup('<th scope="col"{}>{}</th>'), names, classes)
    body = _joined(_table_row(Markup("<td{}>{}</td>"), row, classes) for row in rows)
    template = Markup("<table>{}<thead>{}</thead><tbody>{}</tbody></table>")
    return template.format(_caption(caption), header, body)


def _table_row(cell: Markup, values: Sequence[object], classes: Sequence[str]) -> Markup:
    """A row of a table; ``cell`` is the template of one, with places for its class and value."""
    pairs = zip(classes, values, strict=True)
    cells = _joined(cell.format(css_class, escaped(value)) for css_class, value in pairs)
    return Markup("<tr>{}</tr>").format(cells)


def definition_table(rows: Iterable[tuple[object, object]], caption: object = "") -> Markup:
    """A table of two columns, names and their values, without a header row.

    Parameters
    ----------
    rows
        Pairs of a name and a value; None gives an empty cell.
    caption
        What stands above the table; empty: nothing.
    """
    template = Markup('<tr><th scope="row">{}</th><td>{}</td></tr>')
    body = _joined(template.format(name, escaped(value)) for name, value in rows)
    return Markup("<table>{}<tbody>{}</tbody></table>").format(_caption(caption), body)


def _caption(text: object) -> Markup:
    return Markup("<caption>{}</caption>").format(text) if text else Markup()


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup().join(parts)


def figure(draw: Callable[["Axes"], object], title: object) -> Markup:
    """What ``draw`` plots on a matplotlib axis, as inline SVG.

    The same drawing under the same title gives the same bytes. What is drawn in black has the
    colour of the text around the figure; what is white is transparent, the background too.

    Parameters
    ----------
    draw
        A function that draws on an axis.
    title
        What the drawing shows, for those who cannot see it.

    Returns
    -------
    Markup
        The drawing; without matplotlib, a line that says how to get it.
    """
    try:
        return draw_svg(draw, title, (6.4, 3.2))
    except MissingExtraError:
        return Markup("<p>{}: <code>pip install 'edfa[plots]'</code></p>").format(title)


def draw_svg(draw: Callable[["Axes"], object], title: object, size: tuple[float, float]) -> Markup:
    """What ``draw`` plots on a matplotlib axis, as inline SVG whose text stays text.

    Parameters
    ----------
    draw, title
        As in ``figure``.
    size
        Width and height in inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    with extra("plots", "a drawing"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    text = {
        "svg.fonttype": "none",
        "svg.hashsalt": str(title),
        "font.size": 9,
        "text.parse_math": False,
    }
    settings: Any = text | {"axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(settings):
        drawing = Figure(figsize=size, layout="constrained")
        draw(drawing.add_subplot())
        written = io.StringIO()
        unnamed = {"Date": None, "Creator": None, "Format": None, "Type": None}
        drawing.savefig(written, format="svg", metadata=unnamed, transparent=True)
    _, _, document = written.getvalue().partition("<svg ")  # without the XML declaration
    attributes, _, inner = document.partition(">")
    inner = PAINT.sub(lambda match: f"{match[1]}: {REPAINTED[match[2]]}", inner.rstrip())
    trusted = [Markup(part) for part in (attributes, inner)]  # noqa: S704 - matplotlib escapes its text
    # What matplotlib paints black without saying so has the fill of the whole drawing.
    template = Markup('<svg role="img" fill="currentColor" {}><title>{}</title>{}')
    return template.format(trusted[0], title, trusted[1])
