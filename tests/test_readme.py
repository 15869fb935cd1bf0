"""The examples of README.md, of the tour and of the guides are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from edfa.acquisition import POLICIES
from edfa.recourse import SEARCHERS

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": 6, "docs/tour.md": 15}  # with the number of results that each claims
BLOCKS = {
    page: re.findall(r"```(\w+)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
    for page in PAGES
}
SHELL = [text for blocks in BLOCKS.values() for language, text in blocks if language == "sh"]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_run_in_order_and_say_what_they_claim(page):
    namespace: dict[str, object] = {}
    claims = 0
    for language, text in BLOCKS[page]:
        if language != "python":
            continue
        exec(compile(text, page, "exec"), namespace)  # noqa: S102
        for line in text.splitlines():
            code, _, claim = line.partition("# -> ")
            if claim:
                told = eval(claim.split("; ")[0], {})  # noqa: S307
                assert eval(code, namespace) == told, line  # noqa: S307
                claims += 1
    assert claims == PAGES[page]


@pytest.mark.long
@pytest.mark.parametrize("text", SHELL, ids=[t.split("\n")[0] for t in SHELL])
def test_the_shell_blocks_run(text, tmp_path):
    """Blocks that call ./run do so in the repository, where `./run test` only collects; the others
    in a new folder.
    """
    inside = "./run" in text
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTEST_ADDOPTS": "--collect-only -q"}
    done = subprocess.run(
        ["sh", "-eu", "-c", text],
        cwd=ROOT if inside else tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_card_in_the_tour_is_one():
    from edfa import Schema

    (card,) = [text for language, text in BLOCKS["docs/tour.md"] if language == "toml"]
    assert Schema.from_toml(card)["savings"].effort == 1.5


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


ELSEWHERE = {
    "guide.md",
    "own-model.md",
    "tutorial.md",
    "tour.md",
    "certification.md",
    "recourse.md",
}  # run once, by tests that also check what they print
LONG = {"gallery.md", "blanket.md", "extending.md", "lasting.md", "commands.md", "index.md"}
GUIDES = sorted({path.name for path in (ROOT / "docs").glob("*.md")} - ELSEWHERE)


@pytest.mark.parametrize(
    "guide",
    [pytest.param(g, marks=pytest.mark.long if g in LONG else ()) for g in GUIDES],
)
def test_the_python_blocks_of_a_guide_run_in_order(guide, tmp_path, monkeypatch):
    """Those marked no-run need what a test cannot have, such as a cluster: they are only
    compiled.
    """
    monkeypatch.chdir(tmp_path)
    for registry in (POLICIES, SEARCHERS):  # what a guide registers is gone afterwards
        monkeypatch.setattr(registry, "data", dict(registry.data))
    namespace: dict[str, object] = {}
    text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    for mark, block in re.findall(r"```python( no-run)?\n(.*?)```", text, flags=re.S):
        code = compile(block, guide, "exec")
        if not mark:
            exec(code, namespace)  # noqa: S102
