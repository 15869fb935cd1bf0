"""Run a notebook in the percent format as Jupyter would, in the current folder, and print what each
cell shows.

    python tests/notebooks/run_notebook.py notebooks/NAME.py

The cells share one fresh namespace; the last expression of a cell is displayed: the words of its
HTML, if it has any. Nothing may be fetched: every connection is refused.
"""

import ast
import html
import re
import socket
import sys
from pathlib import Path

CELL = re.compile(r"^# %%(.*)$", flags=re.M)


def cells(text):
    """The cells of a notebook as (kind, source); what stands before the first ``# %%`` is
    jupytext's header.
    """
    parts = CELL.split(text)
    return [
        ("markdown" if "[markdown]" in kind else "code", source.strip("\n"))
        for kind, source in zip(parts[1::2], parts[2::2], strict=True)
    ]


def run_cell(source, name, namespace):
    """Execute a cell; the value of its last expression, None if it does not end in one."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102
    return (
        None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307
    )


def shown(value):
    """The words that a notebook displays of a value."""
    if not hasattr(value, "_repr_html_"):
        return repr(value)
    words = re.sub(r"<(style|script|title)\b.*?</\1>|<[^>]*>", " ", value._repr_html_(), flags=re.S)
    return html.unescape(" ".join(words.split()))


def refuse(*_args, **_options):
    """In place of ``socket.connect`` and of name resolution."""
    raise OSError("a notebook may not use the network")


def main(path):
    socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
    namespace = {"__name__": "__main__"}
    for number, (kind, source) in enumerate(cells(path.read_text(encoding="utf-8")), 1):
        if kind == "code":
            print(f"--- cell {number}", flush=True)
            value = run_cell(source, f"{path.name}, cell {number}", namespace)
            if value is not None:
                print(shown(value), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
