"""Docstrings as Markdown: examples that stand outside a section "Examples" become code blocks.

The documentation site's reference reads docstrings through this extension of Griffe.
"""

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(Examples|Notes)\n-{3,}$", flags=re.M)
DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", flags=re.M)


def fenced(text: str) -> str:
    """The text with a fence around every example before its section of examples, which Griffe reads by itself.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    section = SECTION.search(text)
    end = section.start() if section else len(text)
    return DOCTEST.sub(lambda match: f"```pycon\n{match.group()}\n```", text[:end]) + text[end:]


class FenceExamples(griffe.Extension):
    """Puts fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
