"""How a table is shown: HTML, Markdown, LaTeX with booktabs, CSV.

Names are escaped; numbers keep a fixed number of decimals. ``as_text`` is what ``to_html``,
``to_latex`` and ``to_markdown`` are made of; ``to_csv`` writes six significant digits.
"""

import math
import re
from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd
from markupsafe import Markup

from edfa.text import html
from edfa_studies.tables.acquired import IN_PAPER

MISSING = "-"
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≠": r"$\neq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{EN DASH}": "--",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
PATTERN = re.compile("|".join(map(re.escape, SPECIAL)))
LATEX = r"""\begin{{table}}[htbp]
\centering
\small
\begin{{tabular}}{{{letters}}}
\toprule
{header}
\midrule
{body}
\bottomrule
\end{{tabular}}
\caption{{{caption}}}
\label{{tab:{name}}}
\end{{table}}
"""


def latex_escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> latex_escaped("edfa_random 5 %")
    'edfa\\_random 5 \\%'
    """
    return PATTERN.sub(lambda match: SPECIAL[match.group()], text)


def value_text(value: object, digits: int) -> str:
    """One value as text: numbers with their decimals, yes or no, and a dash for what is not there.

    >>> [value_text(value, 2) for value in (1.5, 3, True, None, float("nan"), "x")]
    ['1.50', '3', 'yes', '-', '-', 'x']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return MISSING if math.isnan(value) else f"{value:,.{digits}f}"
    if value is None or value is pd.NA:
        return MISSING
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def as_text(frame: pd.DataFrame, digits: Mapping[str, int]) -> tuple[list[list[str]], list[bool]]:
    """A table as text.

    A column of the paper's numbers goes, in brackets, into the column before it.

    Parameters
    ----------
    frame
        The table.
    digits
        Decimals of the columns that do not have 2.

    Returns
    -------
    lines : list of list of str
        The names of the columns, then the rows.
    numeric : list of bool
        Which columns are numbers.
    """
    columns: dict[str, list[str]] = {}
    for name in map(str, frame.columns):
        values, before = frame[name].tolist(), name.removesuffix(IN_PAPER)
        if name.endswith(IN_PAPER) and before in columns:
            paper = ["" if pd.isna(value) else f" ({value:g})" for value in values]
            columns[before] = [a + b for a, b in zip(columns[before], paper, strict=True)]
        else:
            columns[name] = [value_text(value, digits.get(name, 2)) for value in values]
    numeric = [frame[name].dtype.kind in "iuf" for name in columns]
    return [list(columns), *map(list, zip(*columns.values(), strict=True))], numeric


def to_html(frame: pd.DataFrame, caption: str, digits: Mapping[str, int]) -> Markup:
    """A table as HTML, numbers to the right.

    Parameters
    ----------
    frame, caption
        The table, and what stands above it.
    digits
        Decimals of the columns that do not have 2.
    """
    (names, *lines), numeric = as_text(frame, digits)
    header = [f">{name}" if right else name for name, right in zip(names, numeric, strict=True)]
    return html.table(header, lines, caption)


def to_latex(frame: pd.DataFrame, caption: str, name: str, digits: Mapping[str, int]) -> str:
    """A table as a LaTeX float with booktabs.

    Parameters
    ----------
    frame, caption
        The table, and what stands below it.
    name
        Its label is ``tab:`` and this.
    digits
        Decimals of the columns that do not have 2.
    """
    lines, numeric = as_text(frame, digits)
    header, *body = [" & ".join(map(latex_escaped, line)) + r" \\" for line in lines]
    return LATEX.format(
        letters="".join("r" if right else "l" for right in numeric),
        header=header,
        body="\n".join(body),
        caption=latex_escaped(caption),
        name=name,
    )


def to_markdown(frame: pd.DataFrame, digits: Mapping[str, int]) -> str:
    r"""A table as Markdown, numbers to the right.

    Parameters
    ----------
    frame
        The table.
    digits
        Decimals of the columns that do not have 2.

    Examples
    --------
    >>> print(to_markdown(pd.DataFrame({"set": ["a|b"], "n": [2]}), {}))
    | set | n |
    |---|---:|
    | a\|b | 2 |
    """
    lines, numeric = as_text(frame, digits)
    marks = "|".join("---:" if right else "---" for right in numeric)
    header, *body = [f"| {' | '.join(map(_in_cell, line))} |" for line in lines]
    return "\n".join([header, f"|{marks}|", *body])


def markdown_escaped(text: str) -> str:
    """Text that is no markup.

    >>> markdown_escaped("EDFA's <b>")
    "EDFA's &lt;b&gt;"
    """
    return escape(text, quote=False)


def _in_cell(text: str) -> str:
    """Text that is no markup and stays in its cell."""
    return markdown_escaped(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def to_csv(frame: pd.DataFrame) -> str:
    """The table as CSV with full numbers, six significant digits."""
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
