"""The data sets and their blankets (Table 1 of the paper)."""

import numpy as np

from edfa_studies.measures import Payload
from edfa_studies.products import Materials


def measure_set(materials: Materials) -> Payload:
    """Describe a data set and the blanket among its training people.

    Parameters
    ----------
    materials
        Those of a cell with a data set and a blanket.

    Returns
    -------
    dict of lists of rows
        ``set``: one row with the numbers of rows, features and start features, the sizes of its
        parts, its target and the share of the largest class. ``blanket``: one row with the members
        of the blanket and its units.
    """
    table, blanket = materials.table, materials.blanket
    schema = table.schema
    about = {
        "rows": len(table),
        **{part: len(getattr(table, part)) for part in ("train", "calibration", "test")},
        "features": len(schema),
        "start": sum(feature.start for feature in schema),
        "target": schema.target,
        "favourable": schema.favourable,
        "base_rate": float(np.bincount(table.train.y).max() / len(table.train)),
    }
    units = [{"head": head, "spouses": list(spouses)} for head, spouses in blanket.units.items()]
    members = {"size": len(blanket), "features": list(blanket.features), "units": units}
    return {"set": [about], "blanket": [members]}
