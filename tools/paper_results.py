"""Put the report of the paper's study under docs/results/paper: Markdown, figures, tables, and its
configuration.

EDFA_DATA=... edfa study run paper --out out/paper
python tools/paper_results.py out/paper
"""

import shutil
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from edfa_studies.config import read_study
from edfa_studies.report import write_report
from edfa_studies.store import Store

PLACE = Path(__file__).parents[1] / "docs" / "results" / "paper"


def main(folder: Path) -> None:
    """Write the report of the store in ``folder``; the README beside it is written by hand and
    stays.
    """
    with TemporaryDirectory() as temporary:
        report = Path(temporary)
        write_report(Store.open(folder / "study.sqlite"), read_study("paper"), report)
        for name in ("svg", "csv"):
            shutil.rmtree(PLACE / name, ignore_errors=True)
            (PLACE / name).mkdir(parents=True)
        for path in (report / "svg").iterdir():
            shutil.copy(path, PLACE / "svg")
        for path in (report / "csv").iterdir():
            if not path.name.startswith(
                "figure_"
            ):  # a figure's data is in the report that everybody can make
                shutil.copy(path, PLACE / "csv")
        shutil.copy(report / "report.md", PLACE)
    (PLACE / "paper.toml").write_bytes(
        (files("edfa_studies") / "configs" / "paper.toml").read_bytes()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
