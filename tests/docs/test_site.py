"""The documentation site: strict, no broken link, nothing fetched from elsewhere, nothing public
left out.
"""

import ast
import functools
import http.server
import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import edfa

ROOT = Path(__file__).parents[2]
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
}


class Page(HTMLParser):
    """The anchors, links and resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.resources: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if FETCHED.get(tag) in values:
            self.resources.add(values[FETCHED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning of MkDocs, such as one about a broken link, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """Each page, but for the one that a server shows where there is none."""
    paths = sorted(set(site.rglob("*.html")) - {site / "404.html"})
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


@pytest.mark.long
def test_every_link_and_anchor_leads_somewhere(site, pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links | page.resources:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link}")
            elif (
                target in pages
                and parts.fragment
                and unquote(parts.fragment) not in pages[target].ids
            ):
                wrong.append(f"{path.relative_to(site)}: {link} (no such anchor)")
    assert not wrong
    assert sum(len(page.links) for page in pages.values()) > 1000


@pytest.mark.long
def test_nothing_is_fetched_from_elsewhere(site, pages):
    foreign = {
        f"{path.name}: {r}"
        for path, page in pages.items()
        for r in page.resources
        if urlsplit(r).netloc
    }
    assert not foreign
    for path in site.rglob("*.css"):
        assert not re.search(
            r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")
        ), path


def documented_packages():
    return [
        name for _, name, is_package in pkgutil.iter_modules(edfa.__path__, "edfa.") if is_package
    ]


@pytest.mark.long
def test_every_public_name_is_in_the_reference(pages):
    ids = {
        anchor
        for path, page in pages.items()
        if path.parent.name == "reference"
        for anchor in page.ids
    }
    missing = []
    for package in documented_packages():
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            defined = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
            if not hasattr(value, "__path__") and not ids & {f"{package}.{name}", defined}:
                missing.append(f"{package}.{name}")
    assert not missing


def undocumented(tree, name):
    """The public classes, functions and methods below a node that have no docstring, and the node
    itself.
    """
    if not ast.get_docstring(tree):
        yield name
    for node in tree.body:
        if getattr(node, "name", "_").startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node, f"{name}.{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not ast.get_docstring(
            node
        ):
            yield f"{name}.{node.name}"


def test_everything_public_has_a_docstring():
    files = sorted((ROOT / "edfa").rglob("*.py"))
    missing = [
        name for path in files for name in undocumented(ast.parse(path.read_text()), str(path))
    ]
    assert not missing
    assert list(undocumented(ast.parse('"""A."""\ndef f(): ...\nclass _C: ...'), "m")) == ["m.f"]


def test_the_names_beside_the_papers_notation_exist():
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    names = sorted(set(re.findall(r"`(edfa(?:\.\w+)+)", text)))
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    assert len(names) > 15


def test_docstrings_are_shown_as_they_are_meant():
    tools = runpy.run_path(str(ROOT / "tools" / "site_docstrings.py"))
    assert (
        tools["fenced"]("Adds.\n\n>>> 1 + 1\n2\n\nMore.")
        == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    )
    section = "Adds.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert tools["fenced"](section) == section
    shared = "alpha, delta\n    The promise,\n    in two lines.\nn\n    People.\n"
    parted = (
        "alpha\n    The promise,\n    in two lines.\ndelta\n    See ``alpha``.\nn\n    People.\n"
    )
    assert tools["apart"](shared) == parted


def test_every_picture_of_the_gallery_is_drawn_by_a_block():
    drawn = re.findall(
        r"```\n\n!\[[^\]]+\]\(gallery/([^)]+)\)", (ROOT / "docs" / "gallery.md").read_text()
    )
    assert sorted(drawn) == sorted(path.name for path in (ROOT / "docs" / "gallery").iterdir())


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(600)


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_look_as_they_should_in_a_browser(scheme, address, chromium, tmp_path):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
    page, requests, errors = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in ("index", "tutorial", "gallery", "reference/advice"):
        page.goto(f"{address}/{name}.html")
        page.wait_for_load_state("networkidle")
        broken = page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
        assert not broken
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=tmp_path / f"{scheme}-{name.replace('/', '-')}.png", full_page=True)
    shade = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    )
    assert (shade < 100) == (scheme == "dark")
    page.click(".md-search__input")
    page.keyboard.type("semifactual")
    page.wait_for_selector(".md-search-result__item")
    context.close()
    assert not errors
    assert all(url.startswith((address, "data:", "blob:")) for url in requests)
