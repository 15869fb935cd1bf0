"""Parse a mapping from outside (a TOML card, a JSON file) into a dataclass, with errors that name
the wrong key.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from sys import float_info
from typing import Any, TypeVar

from edfa.errors import EdfaError, SchemaError, UnreadableError, did_you_mean, hint
from edfa.reading import parse_json

__all__ = ["is_unicode", "one_line", "parse", "parse_object"]

T = TypeVar("T")
DEEPEST = 40  # levels of nesting that an object from outside may have
LONGEST = 600  # characters of an error message
SHOWN = 60  # characters of a wrong value that an error message shows


@cache
def _adapter(cls: Any) -> Any:
    """Pydantic's validator of a dataclass, with unknown keys forbidden."""
    from pydantic import ConfigDict, TypeAdapter  # 0.3 s, so only when a card is read

    cls.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(cls)


def parse_object(text: str, name: str) -> dict[str, Any]:
    """The JSON object that a text holds, as plain data that can be written again as it is.

    UnreadableError, which begins with ``name``, for any other text: no JSON object, nested too
    deeply, a key that is there twice, a number beyond all floats, or characters that no file can
    hold.

    >>> parse_object('{"spent": 1e999}', "this receipt")
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: this receipt is not JSON: 1e999 is too large a number
    """
    content = parse_json(text, name) if isinstance(text, str) else text
    if not isinstance(text, str) or not isinstance(content, dict):
        raise UnreadableError(
            f"{name} is not a JSON object of names and values, but a {type(content).__name__}"
        )
    left: list[tuple[str, Any, int]] = [("", content, 0)]
    while left:
        where, value, depth = left.pop()
        if problem := _problem(value, depth):
            raise UnreadableError(f"{name}: {_name(where)} {problem}")
        if isinstance(value, Mapping):
            left += [("a key", key, depth) for key in value]
            left += [(str(key), part, depth + 1) for key, part in value.items()]
        elif isinstance(value, list):
            left += [(where, part, depth + 1) for part in value]
    return content


def _problem(value: Any, depth: int) -> str:
    """What is wrong with a part of an object from outside; its own parts are not looked at."""
    if depth > DEEPEST:
        return "is nested too deeply"
    if isinstance(value, int | float) and not abs(value) <= float_info.max:
        return "is not a finite number"
    return "holds half a character" if isinstance(value, str) and not is_unicode(value) else ""


def one_line(message: object) -> str:
    """A message in one line that can be printed, whatever names from outside it repeats."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message)[:LONGEST])


def is_unicode(text: str) -> bool:
    """Whether a text can be written to a file: no half of a surrogate pair is in it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def parse(
    cls: type[T], values: Mapping[str, Any], where: str, error: type[EdfaError] = SchemaError
) -> T:
    """Make an instance of the dataclass ``cls`` from ``values``, one entry a field.

    Types are checked by pydantic from the annotations, so a card and a constructor call obey the
    same rules.

    Parameters
    ----------
    cls
        The dataclass.
    values
        Field values by name; fields with a default may be left out, other keys are errors.
    where
        The path of ``values`` in its file, such as ``"features.age"``; error messages begin with
        it.
    error
        What to raise for the first key that is unknown, missing or of the wrong type.

    Examples
    --------
    >>> from edfa.data.schema import Feature
    >>> parse(Feature, {"name": "age", "kind": "continous"}, "features.age")
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: features.age.kind: 'continous' is not one of continuous, ordinal, categorical; \
did you mean 'continuous'?
    """  # noqa: E501
    from pydantic import ValidationError

    if not isinstance(values, Mapping):
        raise error(f"{where}: names and values are expected, not {_short(values)}")
    try:
        adapter = _adapter(cls)  # type: ignore[arg-type]
        result: T = adapter.validate_python({str(key): value for key, value in values.items()})
    except ValidationError as problems:
        raise error(one_line(_explain(problems.errors()[0], cls, where))) from None
    return result


def _short(value: Any) -> str:
    """A value as an error message shows it."""
    try:
        shown = repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # an integer of thousands of digits, or a list of lists of lists
        return f"such {type(value).__name__}"
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _name(key: Any) -> str:
    """A key, or a position in a list, as an error message names it, in one line."""
    name = str(key)
    return name if name.isprintable() and len(name) <= SHOWN else _short(name)


def _explain(problem: Any, cls: type[Any], where: str) -> str:
    """One of pydantic's problems in one line, with the nearest right key or value."""
    key = ".".join([where, *(_name(part) for part in problem["loc"])]).strip(".")
    kind, value = problem["type"], problem["input"]
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        names = [f.name for f in fields(cls)]
        return f"{key}: no such key{hint(problem['loc'][-1], names, shown=20)}"
    if kind == "literal_error":
        options = [
            part.strip("' ") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return (
            f"{key}: {_short(value)} is not one of "
            f"{', '.join(options)}{did_you_mean(value, options)}"
        )
    if kind == "missing":
        return f"{key}: is missing"
    return f"{key}: {problem['msg']}, not {_short(value)}"
