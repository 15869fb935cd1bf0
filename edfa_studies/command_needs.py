"""What a study needs that may not be here: optional dependencies, data sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edfa.commands.common import Output

if TYPE_CHECKING:
    from edfa_studies.cells import Cell

__all__ = ["check_extras", "note_absent"]


def check_extras(cells: "Sequence[Cell]") -> None:
    """Refuse a study that needs what is not installed."""
    from importlib.util import find_spec

    from edfa.acquisition import POLICIES
    from edfa.errors import MissingExtraError
    from edfa.predictors import PREDICTORS
    from edfa.recourse import SEARCHERS

    registries: dict[str, Any] = {
        "predictor": PREDICTORS,
        "policy": POLICIES,
        "searcher": SEARCHERS,
    }
    for name, registry in registries.items():
        for part in sorted(
            {getattr(cell, name).of for cell in cells} & set(registry)
        ):  # some measures have none
            registry[part]  # its import says what is missing
    if any(cell.predictor.of == "bn" for cell in cells) and find_spec("pyagrum") is None:
        raise MissingExtraError("the predictor bn", "bn")


def note_absent(output: Output, cells: "Sequence[Cell]") -> None:
    """Say which data sets will be fetched from OpenML, since they are not on this machine."""
    from edfa.data.catalog import NAMES, where

    names = dict.fromkeys(cell.data.of for cell in cells if cell.data.of in NAMES)
    if absent := [name for name in names if where(name) == "OpenML"]:
        output.say(
            f"not on this machine, to be fetched from OpenML: {', '.join(absent)} "
            "(EDFA_DATA names a folder)"
        )
