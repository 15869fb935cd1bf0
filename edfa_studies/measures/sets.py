"""The data sets and their blankets (Table 1 of the paper)."""

import numpy as np

from edfa_studies.measures import Payload
from edfa_studies.products import Materials

__all__ = ["measure_set"]


def measure_set(materials: Materials) -> Payload:
    """Rows, parts, features and classes of a data set, and the blanket among its training
    people.
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
