"""How a table is shown: HTML, Markdown, LaTeX with booktabs, CSV.

Names are escaped; numbers keep a fixed number of decimals.
"""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

from edfa.text import html
from edfa_studies.tables.acquired import PAPER

__all__ = ["latex_escaped", "markdown_escaped", "to_csv", "to_html", "to_latex", "to_markdown"]

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


def shown(frame: pd.DataFrame, digits: Mapping[str, int]) -> pd.DataFrame:
    """The frame as text; a column of the paper's numbers goes, in brackets, into the column before
    it.
    """
    columns: dict[str, list[str]] = {}
    for name in map(str, frame.columns):
        column = frame[name]
        before = name.removesuffix(PAPER)
        if name.endswith(PAPER) and before in columns:
            paper = ["" if pd.isna(value) else f" ({value:g})" for value in column]
            columns[before] = [
                ours + theirs for ours, theirs in zip(columns[before], paper, strict=True)
            ]
        else:
            columns[name] = [value_text(value, digits.get(name, 2)) for value in column.tolist()]
    return pd.DataFrame(columns)


def _is_number(frame: pd.DataFrame, name: str) -> bool:
    return pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(
        frame[name]
    )


def to_html(frame: pd.DataFrame, caption: str, digits: Mapping[str, int]) -> html.Markup:
    """The table as HTML, numbers to the right."""
    text = shown(frame, digits)
    names = [f">{name}" if _is_number(frame, name) else str(name) for name in text.columns]
    return html.table(names, text.itertuples(index=False), caption)


def to_latex(frame: pd.DataFrame, caption: str, name: str, digits: Mapping[str, int]) -> str:
    """The table as a LaTeX float with booktabs; ``name`` becomes its label."""
    text = shown(frame, digits)
    letters = "".join("r" if _is_number(frame, column) else "l" for column in text.columns)
    lines: list[Sequence[str]] = [list(text.columns), *text.itertuples(index=False, name=None)]
    header, *body = [
        " & ".join(latex_escaped(str(value)) for value in line) + r" \\" for line in lines
    ]
    head = [
        r"\begin{table}[htbp]",
        r"\centering",
        r"\small",
        rf"\begin{{tabular}}{{{letters}}}",
        r"\toprule",
    ]
    foot = [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{latex_escaped(caption)}}}",
        rf"\label{{tab:{name}}}",
    ]
    return "\n".join([*head, header, r"\midrule", *body, *foot, r"\end{table}"]) + "\n"


def to_markdown(frame: pd.DataFrame, digits: Mapping[str, int]) -> str:
    """The table as Markdown, numbers to the right.

    >>> print(to_markdown(pd.DataFrame({"set": ["a|b"], "n": [2]}), {}))
    | set | n |
    |---|---:|
    | a\\|b | 2 |
    """
    text = shown(frame, digits)
    marks = "|".join("---:" if _is_number(frame, name) else "---" for name in text.columns)
    lines = [list(text.columns), *text.itertuples(index=False, name=None)]
    header, *body = [f"| {' | '.join(_in_cell(str(value)) for value in line)} |" for line in lines]
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
