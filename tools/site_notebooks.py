"""Puts the notebooks, which are plain Python files, into the page of the site that lists them.

MkDocs calls ``on_page_markdown`` while it builds the documentation site. A line ``<!-- notebook
NAME -->`` stands for ``notebooks/NAME.py``: its text cells become prose, its code cells code.
"""

import re
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PLACE = re.compile(r"^<!-- notebook (\w+) -->$", flags=re.M)
CELL = re.compile(r"^# %%(.*)$", flags=re.M)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace each place with its notebook, one heading level down."""
    if page.file.src_uri != "notebooks.md":
        return markdown
    return PLACE.sub(
        lambda match: as_markdown((NOTEBOOKS / f"{match.group(1)}.py").read_text("utf-8")), markdown
    )


def as_markdown(text: str) -> str:
    """A notebook in the percent format as Markdown for a page of ``docs``.

    >>> print(as_markdown("# %% [markdown]\\n# # Sums\\n# [more](../docs/x.md)\\n\\n# %%\\n1 + 1\\n"))
    ## Sums
    [more](x.md)
    <BLANKLINE>
    ```python
    1 + 1
    ```
    """
    parts = CELL.split(text)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return "\n\n".join(
        _prose(source) if "[markdown]" in kind else _code(source) for kind, source in pairs
    )


def _prose(source: str) -> str:
    lines = [line.removeprefix("#").removeprefix(" ") for line in source.strip().splitlines()]
    lines = [f"#{line}" if line.startswith("#") else line for line in lines]
    return "\n".join(lines).replace("](../docs/", "](")


def _code(source: str) -> str:
    return f"```python\n{source.strip()}\n```"
