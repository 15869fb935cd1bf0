"""Which fact to ask next. A new policy is one file, and one line in ``POLICIES``."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["POLICIES"]


def _late(file: str, name: str) -> Callable[[], Any]:
    """The class, imported when it is asked for: some of them need torch."""
    return lambda: getattr(import_module(f"edfa.acquisition.{file}"), name)


POLICIES: dict[str, Callable[[], Any]] = {
    "edfa": _late("edfa", "EDFA"),
    "random": _late("random", "Random"),
    "random-blanket": _late("random", "RandomBlanket"),
    "greedy": _late("greedy", "Greedy"),
    "fixed": _late("fixed", "Fixed"),
    "surviving": _late("surviving", "Surviving"),
    "dime": _late("dime", "DIME"),
    "eddi": _late("eddi", "EDDI"),
    "gsmrl": _late("gsmrl", "GSMRL"),
}
