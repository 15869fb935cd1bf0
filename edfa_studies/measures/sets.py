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
        "train": len(table.train),
        "calibration": len(table.calibration),
        "test": len(table.test),
        "features": len(schema),
        "start": sum(feature.start for feature in schema),
        "sensitive": sum(feature.sensitive for feature in schema),
        "target": schema.target,
        "favourable": schema.favourable,
        "classes": len(schema.classes),
        "base_rate": float(np.bincount(table.train.y).max() / len(table.train)),
    }
    units = [{"head": head, "spouses": list(spouses)} for head, spouses in blanket.units.items()]
    members = {
        "size": len(blanket),
        "pc": len(blanket.pc),
        "spouses": len(blanket.spouses),
        "features": list(blanket.features),
        "units": units,
    }
    return {"set": [about], "blanket": [members]}
