"""The rules of an advisor: the card's and the operator's together, checked before they are used,
told in short.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from edfa.data.constraints import ANY, Constraints
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import EdfaError, FactError, SettingError, UnreadableError

__all__ = ["check_operator_rules", "check_rules", "describe_rules", "read_overlay"]


SHOWN = 2  # moves or pairs; more are only counted


def check_rules(rules: Constraints, schema: Schema, encoder: Encoder) -> None:
    """Raise unless the rules fit the card, and every value that they name is one that training
    people may have.
    """
    rules.check(schema)
    named = [
        (f"levels.{name}", name, level) for name, levels in rules.levels.items() for level in levels
    ]
    named += [
        (f"forbidden.{name}", name, end)
        for name, *ends in rules.forbidden
        for end in ends
        if end != ANY
    ]
    for where, name, value in named:
        try:
            encoder[name].encode_one(value)
        except FactError as error:
            raise SettingError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None
        except OverflowError:  # an integer beyond all floats
            raise SettingError(f"{where}: no number is as large") from None


def check_operator_rules(rules: Constraints, schema: Schema, encoder: Encoder) -> None:
    """``check_rules``; and rules for everybody leave somebody something to change."""
    check_rules(rules, schema, encoder)
    rules.check_leaves_something(schema)


def read_overlay(content: Mapping[str, Any] | None) -> Constraints | None:
    """A person's own limits from the plain data of an interview or a receipt."""
    if content is None:
        return None
    try:
        return Constraints.from_json(json.dumps(content))
    except (
        RecursionError,
        MemoryError,
        OverflowError,
        ValueError,
    ) as error:  # a formula of a thousand brackets
        if isinstance(error, EdfaError):
            raise
        raise UnreadableError(f"these limits cannot be read: {type(error).__name__}") from None


def describe_rules(rules: Constraints) -> tuple[str, ...]:
    """Every rule that says something, in short.

    >>> describe_rules(Constraints(locked=("purpose",), max_changes=2,
    ...     directions={"duration": "down"}))
    ('locked: purpose', 'directions.duration = down', 'max_changes = 2')
    """
    nothing = Constraints()
    values = ((f.name, getattr(rules, f.name)) for f in fields(Constraints))
    return tuple(
        line
        for name, value in values
        if value != getattr(nothing, name)
        for line in _lines(name, value)
    )


def _lines(name: str, value: Any) -> Iterator[str]:
    """One setting in lines: each entry of a mapping, or all names of a list together."""
    if isinstance(value, Mapping):
        yield from (f"{name}.{key} = {_text(entry)}" for key, entry in value.items())
    elif isinstance(value, tuple) and len(value) > SHOWN and isinstance(value[0], tuple):
        yield f"{name}: {len(value)} of them"
    elif isinstance(value, tuple):
        yield f"{name}: {_text(value) or 'nothing'}"
    else:
        yield f"{name} = {_text(value)}"


def _text(value: Any) -> str:
    """A value, a list of names, or a list of moves and pairs."""
    if not isinstance(value, tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return ", ".join(
        f"({_text(part)})" if isinstance(part, tuple) else _text(part) for part in value
    )
