"""Parse a mapping from outside (a TOML card, a JSON file) into a dataclass, with errors that name the wrong key."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from edfa.errors import SchemaError, did_you_mean, hint

__all__ = ["parse"]

T = TypeVar("T")


@cache
def _adapter(cls: Any) -> Any:
    """Pydantic's validator of a dataclass, with unknown keys forbidden."""
    from pydantic import ConfigDict, TypeAdapter  # 0.3 s, so only when a card is read

    cls.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(cls)


def parse(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make an instance of the dataclass ``cls`` from ``values``, one entry a field.

    Types are checked by pydantic from the annotations, so a card and a constructor call obey the same rules.

    Parameters
    ----------
    cls
        The dataclass.
    values
        Field values by name; fields with a default may be left out, other keys are errors.
    where
        The path of ``values`` in its file, such as ``"features.age"``; error messages begin with it.

    Raises
    ------
    SchemaError
        For the first key that is unknown, missing or of the wrong type.

    Examples
    --------
    >>> from edfa.data.schema import Feature
    >>> parse(Feature, {"name": "age", "kind": "continous"}, "features.age")
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: features.age.kind: 'continous' is not one of continuous, ordinal, categorical; \
did you mean 'continuous'?
    """
    from pydantic import ValidationError

    try:
        result: T = _adapter(cls).validate_python(dict(values))  # type: ignore[arg-type]
    except ValidationError as error:
        raise _explain(error.errors()[0], cls, where) from None
    return result


def _explain(problem: Any, cls: type[Any], where: str) -> SchemaError:
    """One of pydantic's problems as a one-line error with the nearest right key or value."""
    key = ".".join([where, *(str(part) for part in problem["loc"])]).strip(".")
    kind, value = problem["type"], problem["input"]
    if kind == "value_error":
        return SchemaError(str(problem["ctx"]["error"]))
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        names = [f.name for f in fields(cls)]
        return SchemaError(f"{key}: no such key{hint(problem['loc'][-1], names, shown=20)}")
    if kind == "literal_error":
        options = [part.strip("' ") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")]
        return SchemaError(f"{key}: {value!r} is not one of {', '.join(options)}{did_you_mean(value, options)}")
    if kind == "missing":
        return SchemaError(f"{key}: is missing")
    return SchemaError(f"{key}: {problem['msg']}, not {value!r}")
