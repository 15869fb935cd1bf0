"""Fingerprints: one word for a model, a policy, a searcher or plans, from their settings and what
they have learnt.

Whatever can be part of an advisor says itself what it is: ``get_params`` gives its settings,
``learnt_state`` what it has learnt. Nothing else is looked at, so that two parts that act
differently differ in one of the two.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.blanket.units import Blanket
from edfa.errors import SettingError

if TYPE_CHECKING:
    from edfa.recourse.plans import Plans

HEX_DIGITS = 16  # hexadecimal digits


def fingerprint(**parts: str) -> str:
    """One word for several: any change of one of them changes it.

    >>> fingerprint(model="xgb:1", searcher="nearest") == fingerprint(searcher="nearest",
    ...     model="xgb:1")
    True
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:HEX_DIGITS]


def identify(plans: "Plans") -> str:
    """The fingerprint of the model, blanket, card, policy, prices and searcher that made these
    plans.

    Seeds are no part of it, for they vary by design. Unknown parts (the policy of people given
    without a trajectory) count as None.
    """
    background, p = plans.people.background, plans.provenance
    parts: dict[str, Any] = {
        "model": background.model,
        "aligned": background.visible.tolist(),
        "blanket": background.blanket,
        "card": canonical(background.schema),
        "policy": p.policy,
        "costs": p.costs,
        "searcher": [p.searcher, p.rules, p.desired_class, p.completions],
    }
    return fingerprint(**{name: digest(part) for name, part in parts.items()})


def canonical(noun: Any) -> str:
    """The JSON of an object after it was written and read once: 12 and 12.0 are the same limit.

    Parameters
    ----------
    noun
        An object with ``to_json`` and ``from_json``.

    Examples
    --------
    >>> from edfa import Rules
    >>> canonical(Rules(max_months=12)) == canonical(Rules(max_months=12.0))
    True
    """
    return str(type(noun).from_json(noun.to_json()).to_json())


def digest(part: Any) -> str:
    """The fingerprint of one part.

    Parameters
    ----------
    part
        A plain value, an array, a mapping or sequence of these, an object with ``to_json``, or an
        estimator with ``get_params`` and ``learnt_state``.

    Returns
    -------
    str
        16 hexadecimal digits, which depend on the type and the content of ``part`` alone.

    Raises
    ------
    SettingError
        If an object has neither ``learnt_state`` nor ``to_json``.

    Examples
    --------
    >>> digest({"a": np.arange(3), "b": None}) == digest({"b": None, "a": np.arange(3)})
    True
    >>> digest(np.arange(3)) == digest(np.arange(3.0))
    False
    """
    content = hashlib.sha256()
    for piece in _pieces(part):
        content.update(len(piece).to_bytes(8, "little") + piece)
    return content.hexdigest()[:HEX_DIGITS]


def _pieces(part: Any) -> Iterator[bytes]:
    """The part as a sequence of bytes, its type first; a mapping is its entries in the order of
    their names.

    What JSON does not tell apart is the same here: a number of numpy's and a plain one, a list and
    a tuple. An advisor that was saved and read has the fingerprint that it had.
    """
    part = part.item() if isinstance(part, np.generic) else part
    yield b"sequence" if isinstance(part, list | tuple) else type(part).__name__.encode()
    if part is None or isinstance(part, str | int | float):
        yield str(part).encode()
    elif isinstance(part, bytes):
        yield part
    elif isinstance(part, np.ndarray):
        yield f"{part.dtype} {part.shape}".encode()
        yield (
            repr(part.tolist()).encode()
            if part.dtype == object
            else np.ascontiguousarray(part).tobytes()
        )
    elif isinstance(part, Mapping):
        yield str(
            len(part)
        ).encode()  # what is inside ends somewhere: {a: {b: 1}, c: 2} is not {a: {b: 1, c: 2}}
        for name in sorted(part, key=str):
            yield str(name).encode()
            yield from _pieces(part[name])
    elif isinstance(part, list | tuple):
        yield str(len(part)).encode()
        for inner in part:
            yield from _pieces(inner)
    elif isinstance(part, Blanket):  # how it was found does not matter
        yield from _pieces([part.target, dict(part.units), part.unattached])
    else:
        yield from _pieces(_described(part))


def _settings(part: Any) -> dict[str, Any]:
    """All settings; of a part that is a setting itself (a policy's searcher) its name and
    settings.
    """
    inner = part.get_params(deep=False)
    return {
        name: [type(value).__name__, _settings(value)] if hasattr(value, "get_params") else value
        for name, value in inner.items()
    }


def _described(part: Any) -> Any:
    """The settings and learnt state of a part, or its JSON."""
    if hasattr(part, "get_params") and hasattr(part, "learnt_state"):
        return {"settings": _settings(part), "learnt": part.learnt_state()}
    if hasattr(part, "learnt_state"):
        return part.learnt_state()
    if hasattr(part, "to_json"):
        return canonical(part) if hasattr(part, "from_json") else part.to_json()
    raise SettingError(
        f"a {type(part).__name__} cannot be part of an advisor: it has neither "
        "learnt_state nor to_json"
    )
