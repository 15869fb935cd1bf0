"""Make docs/gallery anew: run the blocks of docs/gallery.md and keep the picture that stands below
each.

    python tools/gallery.py

A block that is followed by an image ending in .svg leaves a matplotlib ``figure``; one that is
followed by a .png leaves ``shown``, an object that draws itself in notebooks. The latter needs the
extra ``test`` and a Chromium.
"""

import io
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from PIL import Image
from playwright.sync_api import sync_playwright

from edfa.plots.axis import STYLE
from edfa.text import html
from edfa_studies.figures.render import NO_METADATA, compact

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n!\[[^\]]*\]\((gallery/[^)]+)\))?", flags=re.S)
WIDTH = 720


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as compact SVG whose text stays text; the same figure gives the same bytes."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=NO_METADATA)
    path.write_text(compact(written.getvalue()), encoding="utf-8")


def save_sheet(shown: Any, path: Path) -> None:
    """Write what a notebook shows of an object as a picture of few colours."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 200})
        page.set_content(
            f"<style>body {{ margin: 12px; {html.PAGE_STYLE} }}</style>{shown._repr_html_()}"
        )
        picture = page.screenshot(full_page=True)
        browser.close()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def main() -> None:
    """Run the page in a folder of its own."""
    (DOCS / "gallery").mkdir(exist_ok=True)
    namespace: dict[str, Any] = {}
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        mpl.rc_context({"svg.hashsalt": "gallery"}, STYLE),
    ):
        os.chdir(folder)
        mpl.use("agg")
        for code, name in BLOCK.findall(text):
            exec(compile(code, "gallery.md", "exec"), namespace)  # noqa: S102
            if name.endswith(".svg"):
                save_figure(namespace["figure"], DOCS / name)
            elif name:
                save_sheet(namespace["shown"], DOCS / name)
            if name:
                print(name)


if __name__ == "__main__":
    main()
