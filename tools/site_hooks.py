"""What mkdocs.yml leaves to code: the pages of results in the navigation, the public names of
packages, code fences.

MkDocs calls the ``on_`` functions while it builds the documentation site.
"""

import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
DIRECTIVE = re.compile(r"^::: (edfa[\w.]*)$", flags=re.M)
NO_RUN = re.compile(r"^(\s*```)python no-run$", flags=re.M)
HEADING = re.compile(r"^# (.+)$", flags=re.M)


def on_config(config: Any) -> Any:
    """Put pages that mkdocs.yml does not name into the navigation: results by heading, guides after
    the others.
    """
    pages = {_heading(path): f"results/{path.name}" for path in (DOCS / "results").glob("*.md")}
    pages.pop(_heading(DOCS / "results" / "index.md"))
    paper = {
        "The paper's tables and figures": [
            {"Overview": "results/paper/README.md"},
            "results/paper/report.md",
        ]
    }
    (results,) = [entry["Results"] for entry in config.nav if "Results" in entry]
    results += [paper, *({title: pages[title]} for title in sorted(pages))]
    (guides,) = [entry["Guides"] for entry in config.nav if "Guides" in entry]
    guides += sorted({path.name for path in DOCS.glob("*.md")} - set(_listed(config.nav)))
    return config


def _listed(entries: Any) -> list[str]:
    """The pages that a part of the navigation names."""
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    return [page for part in parts for page in _listed(part)]


def _heading(path: Path) -> str:
    """The first heading of a page."""
    match = HEADING.search(path.read_text(encoding="utf-8"))
    return match.group(1) if match else path.stem


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Spell out packages of the reference, and show blocks that are not run by the tests as
    ordinary code.
    """
    if page.file.src_uri.startswith("reference/"):
        markdown = DIRECTIVE.sub(lambda match: _names(match.group(1)), markdown)
        if page.file.src_uri == "reference/index.md":
            markdown += _public_names()
    return NO_RUN.sub(r"\1python", markdown)


def _names(name: str) -> str:
    """The directive of a module; that of a package becomes one for each public name that it
    defines.
    """
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        return f"::: {name}"  # read, not imported: it may need what is not installed
    module = importlib.import_module(name)
    public = [other for other in sorted(module.__all__) if _belongs(getattr(module, other), name)]
    return "\n\n".join(f"::: {name}.{other}" for other in public)


def _belongs(value: object, package: str) -> bool:
    """Whether a public name is documented with a package: not a module, and not lent by another
    package.
    """
    if inspect.ismodule(value):
        return False
    return not (inspect.isclass(value) or inspect.isfunction(value)) or value.__module__.startswith(
        package
    )


def _public_names() -> str:
    """A table of the names that ``import edfa`` gives, each with the first line of its
    docstring.
    """
    import edfa

    rows = ["", "", "| name | |", "|---|---|"]
    for name in sorted(set(edfa.__all__) - {"__version__"}):
        value = getattr(edfa, name)
        summary = (value.__doc__ or "").strip().split("\n")[0].replace("|", "\\|")
        place = (
            f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else None
        )
        page = f"[`edfa.{name}`][{place}]" if place else f"[`edfa.{name}`]({name}.md)"
        rows.append(f"| {page} | {summary} |")
    return "\n".join(rows) + "\n"
