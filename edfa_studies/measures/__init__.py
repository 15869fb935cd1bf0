"""What is measured in a cell: one measure a file.

A measure is a function from ``Materials`` to a ``Payload``; ``measure`` calls that of a cell. Read
first ``sets.py``, the shortest; ``growth.py`` follows what is known question by question,
``promise.py`` certifies, ``examples.py`` collects transitions to show.
"""

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
    """Measure a cell.

    Parameters
    ----------
    cell
        The cell; UnknownNameError if there is no such measure.
    cache
        The folder of products. Shared work that it lacks is made first, and stays there.

    Returns
    -------
    dict of lists of rows
        Named tables, which depend on nothing but the cell.
    """
    payload: Payload = MEASURES[cell.measure](Materials(cell, Path(cache)))
    return payload
