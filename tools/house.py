"""Print how big the house is, and fail where it is bigger than ``tools/house.toml`` allows.

    python tools/house.py [--modules] [--no-trace]

``tools/house.toml`` has the bars, and under ``so_far`` where the house still stands above one of
them: there it may only become smaller.

Held: tokens of the packages (comments and docstrings are free), arguments of a function
(constructors and commands aside), ``isinstance`` on user models outside their folder, the kinds of
caches, and how many modules run on the way of one applicant. A module runs where one of its
functions is called; importing it does not count.
"""

import argparse
import ast
import io
import sys
import tempfile
import threading
import tokenize
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
FREE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MEMORIES = ("OrderedDict", "WeakKeyDictionary", "WeakValueDictionary")
DECORATORS = ("cache", "lru_cache")
DICTIONARIES = ("dict", "UserDict", "OrderedDict", "Cache")
APPLICANT = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}


@dataclass(frozen=True)
class Source:
    """One module: its path from the root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, file: Path) -> "Source":
        text = file.read_text(encoding="utf-8")
        return cls(file.relative_to(ROOT).as_posix(), text, ast.parse(text))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def count_tokens(source: Source) -> int:
    """Tokens that are neither comments, docstrings nor white space."""
    free: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            free.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    return sum(token.type not in FREE and token.start[0] not in free for token in tokens)


def count_docstring_lines(source: Source) -> int:
    """Lines of docstrings."""
    strings = [
        ast.get_docstring(node) for node in ast.walk(source.tree) if isinstance(node, DOCUMENTED)
    ]
    return sum(len(text.splitlines()) for text in strings if text)


def count_code_lines(source: Source) -> int:
    """Lines that have at least one counted token."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in FREE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines) - count_docstring_lines(source)


def long_signatures(source: Source, most: int) -> Iterator[str]:
    """Functions with more arguments than ``most``, constructors aside."""
    for node in source.functions():
        named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len(named) - (named[:1] in (["self"], ["cls"]))
        if count > most and node.name != "__init__":
            yield f"{source.path}:{node.lineno} {node.name} takes {count} arguments"


def class_checks(source: Source, names: list[str]) -> Iterator[str]:
    """``isinstance`` and ``issubclass`` that name one of these classes."""
    for node in ast.walk(source.tree):
        is_check = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_check and node.func.id in ("isinstance", "issubclass"):  # type: ignore[attr-defined]
            named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if named & {*names}:
                yield f"{source.path}:{node.lineno} asks for {min(named & {*names})}"


def find_caches(source: Source) -> Iterator[tuple[str, str]]:
    """The memories of results that a module makes, each as its kind and its place.

    A ``Cache`` is of the kind that its name says, however many there are of it. Each other memory
    is a kind of its own: a dictionary that forgets (``MEMORIES``, ``functools.cache``, a class
    derived from a dictionary with its own ``__setitem__``), one that a function both fills and
    empties, and one of a module that functions fill.
    """
    if source.path == "edfa/cache.py":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _name(node.func) == "Cache":
            place = f"{source.path}:{node.lineno}"
            name = node.args[0] if node.args else None
            yield (str(name.value) if isinstance(name, ast.Constant) else place), place
    for line, what in sorted(_other_memories(source)):
        yield f"{source.path}:{line} {what}", f"{source.path}:{line}"


def _other_memories(source: Source) -> set[tuple[int, str]]:
    """Where a memory is made that is no ``Cache``, or is filled; the line, and what it is."""
    found = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _name(node.func) in (*MEMORIES, *DECORATORS):
            found.add((node.lineno, _name(node.func)))
        if isinstance(node, ast.ClassDef):
            methods = {getattr(part, "name", "") for part in node.body}
            if "__setitem__" in methods and {_name(base) for base in node.bases} & {*DICTIONARIES}:
                found.add((node.lineno, node.name))
    own = {
        ast.unparse(target)
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for function in source.functions():
        if any(_name(decorator) in DECORATORS for decorator in function.decorator_list):
            found.add((function.lineno, function.name))
        filled, emptied = _filled(function), _emptied(function)
        for name in filled & (own | {name for name in emptied if "." in name}):
            found.add((function.lineno, f"{function.name} fills {name}"))
    return found


def _filled(function: ast.AST) -> set[str]:
    """The dictionaries that a function puts something into."""
    return {
        ast.unparse(node.value if isinstance(node, ast.Subscript) else node.func.value)
        for node in ast.walk(function)
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
        or _calls(node, "setdefault")
    }


def _emptied(function: ast.AST) -> set[str]:
    """The dictionaries that a function takes something out of, whatever it is."""
    gone = {
        ast.unparse(node.func.value)
        for node in ast.walk(function)
        if _calls(node, "popitem", "clear")
    }
    return gone | {
        ast.unparse(node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del)
    }


def _calls(node: ast.AST, *methods: str) -> bool:
    """Whether this is a call of one of these methods."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
    )


def _name(node: ast.expr) -> str:
    """The last part of a dotted name, without what is in brackets behind it."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class Trace:
    """The modules that run while it is on, in all threads, in the order of their first call."""

    def __init__(self, packages: list[str]) -> None:
        self.folders = tuple(f"{ROOT / package}/" for package in packages)
        self.modules: dict[str, None] | None = None

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if self.modules is None or event != "call" or not file.startswith(self.folders):
            return
        if frame.f_code.co_name != "<module>":
            path = Path(file).relative_to(ROOT).with_suffix("")
            self.modules.setdefault(".".join(path.parts).removesuffix(".__init__"))

    @contextmanager
    def on(self) -> Iterator[dict[str, None]]:
        """Count what runs inside."""
        self.modules = found = {}
        sys.setprofile(self)
        try:
            yield found
        finally:
            sys.setprofile(None)
            self.modules = None


def walk_applicant(trace: Trace, folder: Path) -> dict[str, list[str]]:
    """Modules that run from a table to a receipt (fitting aside), for a plan, and for one POST."""
    import edfa
    from edfa.data.schema import Schema

    source = edfa.load("german")
    csv, card = folder / "people.csv", folder / "card.toml"
    source.frame.to_csv(csv, index=False)
    card.write_text(source.schema.to_toml(), encoding="utf-8")
    with trace.on() as reading:
        table = edfa.Table.from_csv(csv, Schema.from_toml(card.read_text(encoding="utf-8")))
        _ = table.train.X, table.test.X
    advisor = edfa.Advisor(threshold="balanced").fit(table, n_jobs=1)
    with trace.on() as asking:
        interview = advisor.interview(APPLICANT)
        _ = interview.question, interview.answer(checking_status="<0").answer(duration=48).decision
    with trace.on() as planning:
        _ = interview.plans()
    with trace.on() as ending:
        _ = interview.standing, interview.receipt().to_json()
    posting = _post(trace, advisor, folder)
    return {
        "table to receipt": [*(reading | asking | planning | ending)],
        "a plan": [*planning],
        "one POST": [*posting],
    }


def _post(trace: Trace, advisor: Any, folder: Path) -> dict[str, None]:
    """Modules that one answer over the API runs, of a person who is then refused."""
    from starlette.testclient import TestClient

    from edfa_serve.app import create_app
    from edfa_serve.service import Service
    from edfa_serve.settings import WebSettings
    from edfa_serve.store import InterviewStore

    threading.setprofile(trace)  # of the threads that start from now on
    try:
        with InterviewStore.open(folder / "interviews.sqlite") as store:
            app = create_app(Service(advisor, store), WebSettings(secure=False))
            with TestClient(app) as client:
                begun = client.post("/api/v1/interviews", json={"facts": APPLICANT}).json()
                headers = {"Authorization": f"Bearer {begun['token']}"}
                path = "/api/v1/interviews/current/answers"
                client.post(path, json={"facts": {"checking_status": "<0"}}, headers=headers)
                with trace.on() as posting:
                    answer = client.post(path, json={"facts": {"duration": 48}}, headers=headers)
                assert answer.status_code == 200, answer.text
    finally:
        threading.setprofile(None)
    return posting


def judge(count: int, bar: int, so_far: int) -> tuple[str, bool]:
    """What is said of a count, and whether it fails.

    Above its bar a count may be no larger than it is ``so_far``; what has become smaller is to be
    written down, so that it stays so.
    """
    if count <= bar:
        return "", False
    if count > so_far:
        return "  TOO MANY", True
    return f"  (above the bar; may not grow beyond {so_far:,})", False


def main() -> int:
    """Print the counts; 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", action="store_true", help="name the modules that run")
    parser.add_argument("--no-trace", action="store_true", help="count what needs no run alone")
    asked = parser.parse_args()
    limits = tomllib.loads((ROOT / "tools" / "house.toml").read_text(encoding="utf-8"))
    sources = [
        Source.read(file)
        for package in limits["packages"]
        for file in sorted((ROOT / package).rglob("*.py"))
    ]
    broken = False

    def hold(what: str, count: int, bar: int, places: list[str] | None = None) -> None:
        nonlocal broken
        verdict, fails = judge(count, bar, limits["so_far"].get(what, bar))
        broken |= fails
        print(f"{what:34} {count:8,}  of {bar:,}{verdict}")
        for place in (places or []) if count > bar else []:
            print(f"    {place}")

    code = sum(map(count_code_lines, sources))
    shown = sum(map(count_docstring_lines, sources)) / code
    print(f"{'modules':34} {len(sources):8,}")
    print(f"{'code lines':34} {code:8,}  ({shown:.2f} lines of docstring for each)")
    hold("tokens", sum(map(count_tokens, sources)), limits["tokens"])
    commands = tuple(limits["arguments"]["commands"])
    plain = [source for source in sources if not source.path.startswith(commands)]
    long = [line for s in plain for line in long_signatures(s, limits["arguments"]["most"])]
    hold("functions above eight arguments", len(long), 0, long)
    folder, names = limits["user_models"]["folder"], limits["user_models"]["names"]
    outside = [source for source in sources if not source.path.startswith(folder)]
    checks = [line for source in outside for line in class_checks(source, names)]
    hold("isinstance on user models", len(checks), 0, checks)
    caches: dict[str, list[str]] = {}
    for source in sources:
        if source.path not in limits["caches"]["no_results"]:
            for kind, place in find_caches(source):
                caches.setdefault(kind, []).append(place)
    places = [f"{kind}: {', '.join(made)}" for kind, made in caches.items()]
    hold("caches", len(caches), limits["caches"]["most"], places)
    if not asked.no_trace:
        with tempfile.TemporaryDirectory() as place:
            ways = walk_applicant(Trace(limits["packages"]), Path(place))
        for way, modules in ways.items():
            hold(f"modules: {way}", len(modules), limits["modules"][way])
            if asked.modules:
                print("   ", " ".join(modules))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
