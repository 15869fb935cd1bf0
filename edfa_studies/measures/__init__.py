"""What is measured in a cell: one measure a file."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from edfa.errors import UnknownNameError
from edfa_studies.cells import Cell
from edfa_studies.products import Materials

__all__ = ["MEASURES", "Payload", "measure"]

Payload = dict[str, list[dict[str, Any]]]
"""A cell's result: named lists of rows, as JSON; a number that is not there is None."""

MEASURES = {
    "sets": "edfa_studies.measures.sets:measure_set",
    "growth": "edfa_studies.measures.growth:measure_growth",
    "promise": "edfa_studies.measures.promise:measure_promise",
    "examples": "edfa_studies.measures.examples:collect_examples",
}
"""What study files call each measure; a new one is one file and one line here."""


def measure(cell: Cell, cache: str) -> Payload:
    """The result of a cell; shared work that the cache lacks is made first."""
    if cell.measure not in MEASURES:
        raise UnknownNameError("measure", cell.measure, MEASURES)
    module, _, name = MEASURES[cell.measure].partition(":")
    function: Callable[[Materials], Payload] = getattr(import_module(module), name)
    return function(Materials(cell, Path(cache)))
