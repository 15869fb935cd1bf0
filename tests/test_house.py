"""The tool that holds the size of the packages sees what it says it sees."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tools" / "house.py"


@pytest.fixture(scope="module")
def house():
    spec = importlib.util.spec_from_file_location("house", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["house"]


@pytest.fixture
def source(house):
    def make(text, path="edfa/some.py"):
        return house.Source(path, text, ast.parse(text))

    return make


def test_comments_and_docstrings_are_free(house, source):
    bare = source("def add(a, b):\n    return a + b\n")
    said = source(
        '"""Sums.\n\nOf two."""\n\n\n# why\ndef add(a, b):\n    """The sum."""\n    return a + b\n'
    )
    assert house.count_tokens(bare) == house.count_tokens(said) == 12
    assert house.count_docstring_lines(said) == 4
    assert house.count_code_lines(bare) == 2


def test_arguments_are_counted_without_self_and_constructors(house, source):
    names = ", ".join("abcdefghi")
    text = f"class A:\n    def __init__(self, {names}): ...\n    def few(self, {names[:-3]}): ...\n"
    assert not [*house.long_signatures(source(text), 8)]
    (line,) = house.long_signatures(source(text + f"    def many(self, {names}): ...\n"), 8)
    assert "many takes 9" in line


def test_class_checks_are_found_in_unions_and_tuples(house, source):
    text = (
        "isinstance(a, UserModel)\nisinstance(a, (int, UserModel))\nisinstance(a, B | UserModel)\n"
    )
    assert len([*house.class_checks(source(text), ["UserModel"])]) == 3
    assert not [*house.class_checks(source("isinstance(a, int)\nUserModel()\n"), ["UserModel"])]


def test_every_kind_of_cache_is_counted(house, source):
    text = (
        "import functools\nA = Cache('a', 3)\n@functools.lru_cache(8)\ndef b(): ...\n"
        "@cache\ndef c(): ...\n@cached_property\ndef d(self): ...\n"
    )
    assert len([*house.find_caches(source(text))]) == 3
    for memory in (
        "a = OrderedDict()\n",
        "a = collections.OrderedDict()\n",
        "a = WeakKeyDictionary()\n",
        "a = lru_cache(3)(b)\n",
        "class A(dict[str, int]):\n    def __setitem__(self, key, value): ...\n",
        "A = {}\ndef b(key):\n    A[key] = 1\n",
        "A: dict[str, int] = {}\ndef b(key):\n    return A.setdefault(key, 1)\n",
        "def b(self, key):\n    self.a[key] = 1\n    self.a.popitem()\n",
        "def b(self, key):\n    del self.a[next(iter(self.a))]\n    self.a[key] = 1\n",
    ):
        assert len([*house.find_caches(source(memory))]) == 1, memory
    for other in (
        "def b(self, key):\n    self.a[key] = 1\n",
        "def b():\n    a = {}\n    a[1] = 2\n",
    ):
        assert not [*house.find_caches(source(other))], other


def test_caches_of_one_name_are_one_kind(house, source):
    text = "A = Cache('a', 3)\nB = Cache('a', most=4)\nC = Cache(name, 3)\nD = Cache(name, 3)\n"
    assert len({kind for kind, _ in house.find_caches(source(text))}) == 3


def test_the_kinds_are_those_that_the_cache_says(house):
    text = (ROOT / "edfa" / "cache.py").read_text(encoding="utf-8")
    said = re.findall(r'^- "(.+)":', text, flags=re.MULTILINE)
    sources = [
        house.Source.read(file)
        for package in ("edfa", "edfa_serve", "edfa_studies")
        for file in (ROOT / package).rglob("*.py")
        if file != ROOT / "edfa_serve" / "security.py"
    ]
    assert {kind for each in sources for kind, _ in house.find_caches(each)} == {*said}


def test_a_trace_counts_modules_whose_functions_run(house):
    from edfa.errors import hint

    trace = house.Trace(["edfa"])
    with trace.on() as found:
        hint("ab", ["abc"])
    assert [*found] == ["edfa.errors"]
    hint("ab", ["abc"])
    assert [*found] == ["edfa.errors"]


def test_what_is_above_its_bar_may_not_grow(house):
    assert house.judge(9, bar=10, so_far=10) == ("", False)
    verdict, fails = house.judge(12, bar=10, so_far=12)
    assert "above the bar" in verdict
    assert not fails
    assert house.judge(13, bar=10, so_far=12)[1]
    assert house.judge(11, bar=10, so_far=10)[1]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_the_modules_that_a_page_names_are_there(page):
    folders = (ROOT, ROOT / "edfa")
    start = r"(?:edfa|edfa_serve|edfa_studies|tests|tools|benchmarks)/"
    if page.name == "architecture.md":  # says all paths below edfa/ without it
        start = ""
    found = re.findall(rf"`({start}[\w/*.]+\.(?:py|pyi|toml))`", page.read_text(encoding="utf-8"))
    own = {  # what a guide has its reader write
        "edfa/acquisition/cheapest.py",
        "edfa_studies/measures/questions.py",
    }
    missing = [name for name in found if not any([*folder.glob(name)] for folder in folders)]
    assert {*missing} <= own


@pytest.mark.parametrize(
    "folder",
    [
        file.parent
        for package in ("edfa", "edfa_serve", "edfa_studies")
        for file in sorted((ROOT / package).rglob("__init__.py"))
    ],
    ids=lambda folder: folder.relative_to(ROOT).as_posix(),
)
def test_a_folder_says_in_some_lines_what_lives_there_and_names_files_that_are_there(folder):
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert 3 <= len(said.splitlines()) <= 10
    named = re.findall(r"``(\w+\.(?:py|pyi))``", said)
    assert named
    assert not [name for name in named if not (folder / name).is_file()]


def test_no_module_class_or_constant_has_a_name_that_says_nothing():
    """Words that need the caller to be understood, and constants that do not say what they limit."""
    vague = {"kept", "told", "whoever", "whom", "crew"}
    constants = {"ROWS", "FEW", "MANY", "MOST", "LIMIT", "BLOCK", "ENOUGH", "LARGEST", "LONGEST"}
    found = []
    for package in ("edfa", "edfa_serve", "edfa_studies"):
        for file in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            classes = [n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
            words = {w.lower() for c in classes for w in re.findall("[A-Z][a-z]+", c)}
            names = {
                name.id
                for node in tree.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
            wrong = vague & (words | {*file.stem.split("_")}) | constants & names
            found += [f"{file.relative_to(ROOT)}: {word}" for word in sorted(wrong)]
    assert not found
