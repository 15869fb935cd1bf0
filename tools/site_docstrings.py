"""Docstrings as the site shows them: examples outside a section of examples are code, shared
parameters are parted.

The documentation site's reference reads docstrings through this extension of Griffe.
"""

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(Examples|Notes)\n-{3,}$", flags=re.M)
TOGETHER = re.compile(r"^(?P<names>\w+(?:, \w+)+)\n(?P<body>(?: {4}.*(?:\n|\Z))+)", flags=re.M)
DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", flags=re.M)


def fenced(text: str) -> str:
    """The text with a fence around every example before its section of examples, which Griffe reads
    by itself.
    """
    section = SECTION.search(text)
    end = section.start() if section else len(text)
    return DOCTEST.sub(lambda match: f"```pycon\n{match.group()}\n```", text[:end]) + text[end:]


def apart(text: str) -> str:
    """The text with parameters that share a description one after the other, since each has its own
    default.
    """
    return TOGETHER.sub(_one_by_one, text)


def _one_by_one(match: re.Match[str]) -> str:
    first, *others = match["names"].split(", ")
    return f"{first}\n{match['body'].rstrip()}\n" + "".join(
        f"{name}\n    See ``{first}``.\n" for name in others
    )


class Markdown(griffe.Extension):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = apart(fenced(obj.docstring.value))
