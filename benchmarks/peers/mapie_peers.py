"""MAPIE's Hoeffding-Bentkus p-values for given risks, in an environment made from benchmarks/peers.txt.

    python mapie_peers.py CASES.json OUT.json

CASES holds "risk" and "n", equally long, and "mu", a list; OUT gets one row a case and one column a mu.
"""

import json
import sys
from pathlib import Path

import numpy as np
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value


def main(cases: Path, out: Path) -> None:
    told = json.loads(cases.read_text())
    risk, n, mu = (np.array(told[name], dtype=float) for name in ("risk", "n", "mu"))
    with np.errstate(all="ignore"):
        found = compute_hoeffding_bentkus_p_value(risk, n, mu)
    out.write_text(json.dumps(found.tolist()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
