"""Writing TOML, which the standard library only reads."""

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["toml_item", "toml_key"]


def toml_item(key: str, value: Any) -> str:
    """One ``key = value`` line of TOML.

    >>> toml_item("range", (0.0, float("inf")))
    'range = [0, inf]'
    """
    return f"{toml_key(key)} = {_value(value)}"


def toml_key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_value(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, float) and not math.isnan(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
