"""What is measured in a cell: one measure a file."""

from pathlib import Path
from typing import Any

from edfa.settings import Registry
from edfa_studies.cells import Cell
from edfa_studies.products import Materials

__all__ = ["MEASURES", "Payload", "measure"]

Payload = dict[str, list[dict[str, Any]]]
"""A cell's result: named lists of rows, as JSON; a number that is not there is None."""

MEASURES: Registry[Any] = Registry(
    "measure",
    {
        "sets": "edfa_studies.measures.sets:measure_set",
        "growth": "edfa_studies.measures.growth:measure_growth",
        "promise": "edfa_studies.measures.promise:measure_promise",
        "examples": "edfa_studies.measures.examples:collect_examples",
    },
)
"""What study files call each measure; a new one is one file and one line here."""


def measure(cell: Cell, cache: str) -> Payload:
    """The result of a cell; shared work that the cache lacks is made first."""
    payload: Payload = MEASURES[cell.measure](Materials(cell, Path(cache)))
    return payload
