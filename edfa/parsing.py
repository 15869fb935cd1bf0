"""A mapping from outside (a TOML card, a JSON file) becomes a dataclass, or an error that teaches."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from edfa.errors import SchemaError, did_you_mean, hint

__all__ = ["checked"]

T = TypeVar("T")


@cache
def _adapter(cls: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter  # 0.3 s, so only when a card is read

    cls.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(cls)


def checked(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """An instance of the dataclass ``cls`` from ``values``; ``where`` names the place in error messages.

    Types are checked by pydantic from the annotations, so a card and a constructor call obey the same rules.

    >>> from edfa.data.schema import Feature
    >>> checked(Feature, {"name": "age", "kind": "continous"}, "features.age")
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: features.age.kind: 'continous' is not one of continuous, ordinal, categorical; \
did you mean 'continuous'?
    """
    from pydantic import ValidationError

    try:
        result: T = _adapter(cls).validate_python(dict(values))  # type: ignore[arg-type]
    except ValidationError as error:
        raise _teach(error.errors()[0], cls, where) from None
    return result


def _teach(problem: Any, cls: type[Any], where: str) -> SchemaError:
    place = ".".join([where, *(str(part) for part in problem["loc"])]).strip(".")
    kind, given = problem["type"], problem["input"]
    if kind == "value_error":
        return SchemaError(str(problem["ctx"]["error"]))
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        names = [f.name for f in fields(cls)]
        return SchemaError(f"{place}: no such key{hint(problem['loc'][-1], names, shown=20)}")
    if kind == "literal_error":
        options = [part.strip("' ") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")]
        return SchemaError(f"{place}: {given!r} is not one of {', '.join(options)}{did_you_mean(given, options)}")
    if kind == "missing":
        return SchemaError(f"{place}: is missing")
    return SchemaError(f"{place}: {problem['msg']}, not {given!r}")
