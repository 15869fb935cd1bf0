"""Boosters from outside, checked before XGBoost sees them: its reader trusts what it is given, and
may end the process.

A booster is UBJSON, read here by a small decoder that takes no more memory than the file has. What
is checked is all that XGBoost follows without looking: the numbers of features, classes, trees and
nodes, and every node's children and parent. Trees of one size are written alike, so that one of
them is decoded and all others are compared with it at once.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.errors import UnreadableError
from edfa.typing import AnyArray, BoolArray

__all__ = ["BoosterFile", "check_boosters"]

MAX_DEPTH = 16  # of objects within objects
NO_PARENT = 2**31 - 1
MOST_KNOWN = 500  # layouts of trees that are remembered
# the first bytes of a tree: an object whose first entry, base_weights, says its number of nodes
PREFIX = 35
MARKERS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
NUMBERS: dict[bytes, np.dtype[Any]] = {marker: np.dtype(name) for marker, name in MARKERS.items()}
FLOAT, INTEGER, BYTE = NUMBERS[b"d"], NUMBERS[b"l"], NUMBERS[b"U"]
NODES = {  # the arrays of a tree with an entry for each node, and their types
    "base_weights": FLOAT,
    "default_left": BYTE,
    "left_children": INTEGER,
    "loss_changes": FLOAT,
    "parents": INTEGER,
    "right_children": INTEGER,
    "split_conditions": FLOAT,
    "split_indices": INTEGER,
    "split_type": BYTE,
    "sum_hessian": FLOAT,
}
CATEGORIES = (
    "categories",
    "categories_nodes",
    "categories_segments",
    "categories_sizes",
)  # that no booster here has


class BoosterFile(NamedTuple):
    """The content of a booster's file, what to call it, and the numbers of features and classes
    that it must have.
    """

    name: str
    content: bytes
    features: int
    classes: int


def check_boosters(files: Sequence[BoosterFile]) -> list[tuple[int, ...]]:
    """Raise UnreadableError for a file that XGBoost cannot have written; return the version that
    wrote each file.

    Examples
    --------
    >>> check_boosters([BoosterFile("model.ubj", b"{", 3, 2)])
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: model.ubj is no booster as XGBoost writes it: it is cut off
    """
    with suppress(UnreadableError):
        return _check_all(files, _KNOWN)
    return _check_all(
        files, {}
    )  # a layout that is known from another file may not be that of these


def _check_all(files: Sequence[BoosterFile], known: "dict[Any, _Layout]") -> list[tuple[int, ...]]:
    """As ``check_boosters``; ``known`` are layouts of trees that were checked before, and takes up
    those of these.
    """
    layouts = {key: _Layout(layout.first, layout.spans) for key, layout in list(known.items())}
    versions = []
    for number, file in enumerate(files):
        try:
            versions.append(_check_file(file, number, layouts))
        except _DamageError as error:
            raise _unreadable(file, error) from None
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, struct.error):
            raise _unreadable(file, "it is damaged") from None
    used = {key: layout for key, layout in layouts.items() if layout.trees}
    for layout in used.values():
        for number, what in layout.damages(files):
            raise _unreadable(files[number], what)
    if len(known) < MOST_KNOWN:
        known |= {key: _Layout(layout.first, layout.spans) for key, layout in used.items()}
    return versions


class _DamageError(Exception):
    """What is wrong with a file."""


def _unreadable(file: BoosterFile, damage: object) -> UnreadableError:
    return UnreadableError(f"{file.name} is no booster as XGBoost writes it: {damage}")


def _require(holds: bool, damage: str) -> None:
    if not holds:
        raise _DamageError(damage)


class _Span(NamedTuple):
    """An array of one type: where it begins, its type, and how many entries it has."""

    start: int
    dtype: np.dtype[Any]
    entries: int


@dataclass
class _Layout:
    """How trees of one size are written: the bytes of one, where its arrays are, and all trees that
    look like it.

    ``trees`` are the file, the place in it, and the number
    of each tree.
    """

    first: bytes
    spans: dict[str, _Span]
    trees: list[tuple[int, int, int]] = field(default_factory=list)

    @cached_property
    def fixed(self) -> BoolArray:
        """Which bytes are the same in all of them."""
        mask = np.ones(len(self.first), dtype=bool)
        for span in self.spans.values():
            mask[span.start : span.start + span.entries * span.dtype.itemsize] = False
        return mask

    def damages(self, files: Sequence[BoosterFile]) -> Iterator[tuple[int, str]]:
        """For each kind of damage, the number of a file that has it, and a word for it."""
        size = len(self.first)
        joined = b"".join(
            [files[file].content[start : start + size] for file, start, _ in self.trees]
        )
        rows = np.frombuffer(joined, dtype=np.uint8).reshape(-1, size)
        alike = ((rows == np.frombuffer(self.first, np.uint8)) | ~self.fixed).all(axis=1)
        nodes = {name: self._array(rows, span) for name, span in self.spans.items()}
        same_id = nodes["id"][:, 0] == np.array([number for _, _, number in self.trees])
        features = np.array([files[file].features for file, _, _ in self.trees])
        numeric = ~nodes["split_type"].any(axis=1) & (nodes["default_left"] < 2).all(axis=1)
        split, condition = nodes["split_indices"], nodes["split_conditions"]
        # XGBoost from 3.4 on splits known from unknown values at an infinite condition; a leaf's
        # value, which is kept in the same array, is added up and must be finite.
        is_leaf = nodes["left_children"] == -1
        usable = np.where(is_leaf, np.isfinite(condition), ~np.isnan(condition)).all(axis=1)
        checks = {
            "a tree is damaged": alike
            & same_id
            & (nodes["num_feature"][:, 0] == features.astype(bytes)),
            "a node has no such parent or child": _is_tree(nodes),
            "a tree splits by a feature that is not there": (
                (split >= 0) & (split < features[:, None])
            ).all(axis=1),
            "a tree has a value that is no number": usable,
            "a tree has a kind of split that no model here has": numeric,
        }
        for damage, holds in checks.items():
            if not holds.all():
                yield self.trees[int(np.argmin(holds))][0], damage

    @staticmethod
    def _array(rows: npt.NDArray[np.uint8], span: _Span) -> AnyArray:
        """One array of all trees, (trees, entries)."""
        columns = rows[:, span.start : span.start + span.entries * span.dtype.itemsize]
        array = np.ascontiguousarray(columns).view(span.dtype).reshape(len(rows), span.entries)
        return array.astype(span.dtype.newbyteorder("="))


_KNOWN: dict[Any, _Layout] = {}


def _is_tree(nodes: dict[str, AnyArray]) -> BoolArray:
    """Whether the nodes of each tree, (trees, nodes), hang together: each but the root below its
    parent, and once.
    """
    left, right, parents = nodes["left_children"], nodes["right_children"], nodes["parents"]
    n = left.shape[1]
    inner = left != -1
    here = np.arange(n)
    children = np.stack(
        [left, right]
    )  # those of an inner node come after it, so that there is no way round
    in_order = np.where(inner, (children > here) & (children < n), children == -1).all(axis=(0, 2))
    clipped = np.clip(children, 0, n - 1)
    back = parents[np.arange(len(parents))[:, None], clipped]
    theirs = (~inner | (back == here)).all(axis=(0, 2)) & (~inner | (left != right)).all(axis=1)
    return np.asarray(
        in_order & theirs & (parents[:, 0] == NO_PARENT) & (2 * inner.sum(axis=1) + 1 == n)
    )


@dataclass
class _Reader:
    """A decoder of UBJSON as XGBoost writes it. Arrays of one type are left where they are; trees
    go to ``layouts``.
    """

    file: BoosterFile
    number: int
    layouts: dict[Any, _Layout]
    place: int = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start = self.place
        self.place = end = start + size
        if end > len(self.file.content):
            raise _DamageError("it is cut off")
        return self.file.content[start:end]

    def size(self) -> int:
        """A length, which is a marker and eight bytes."""
        head = self.take(9)
        if head[:1] != b"L":
            raise _DamageError("a length is missing")
        return int.from_bytes(head[1:], "big")  # one that is too long is cut off

    def value(self, depth: int = 0) -> Any:
        """The next value."""
        _require(depth <= MAX_DEPTH, "it is nested too deeply")
        marker = self.take(1)
        if marker == b"S":
            return self.take(self.size()).decode("utf-8")
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return {name: value for name, _, value in self.entries(depth)}
        dtype = NUMBERS[marker]
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def entries(self, depth: int) -> Iterator[tuple[str, int, Any]]:
        """The entries of an object, to its end: name, where the value begins, and the value."""
        names = set()
        while self.file.content[self.place : self.place + 1] != b"}":
            name = self.take(self.size()).decode("utf-8")
            _require(name not in names, f"{name!r} is there twice")
            names.add(name)
            yield name, self.place, self._trees() if name == "trees" else self.value(depth + 1)
        self.place += 1

    def _array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            dtype = NUMBERS[self.take(1)]
            _require(self.take(1) == b"#", "a length is missing")
            count = self.size()
            start = self.place
            self.take(count * dtype.itemsize)
            return _Span(start, dtype, count)
        _require(marker == b"#", "a length is missing")
        count = self.size()
        values: list[Any] = []
        while len(values) < count:
            values += self._run(count - len(values)) or [self.value(depth + 1)]
        return values

    def _run(self, most: int) -> list[int]:
        """Numbers of one type that follow each other, each with its marker; none if something else
        comes next.
        """
        marker = self.file.content[self.place : self.place + 1]
        if marker not in NUMBERS:
            return []
        cell = np.dtype([("marker", "u1"), ("value", NUMBERS[marker])])
        room = (len(self.file.content) - self.place) // cell.itemsize
        cells = np.frombuffer(self.file.content, cell, min(most, room), self.place)
        other = np.flatnonzero(cells["marker"] != marker[0])
        run = cells[: other[0]] if len(other) else cells
        self.place += len(run) * cell.itemsize
        numbers: list[int] = run["value"].tolist()
        return numbers

    def _trees(self) -> int:
        """Pass over the trees, each decoded or of a known layout; their number."""
        _require(self.take(2) == b"[#", "a length is missing")
        content, digits, count = self.file.content, len(str(self.file.features)), self.size()
        _require(count <= len(content), "it is cut off")
        for number in range(count):
            start = self.place
            key = (
                digits,
                content[start : start + PREFIX],
                number < 127,
                number < 32767,
            )  # longer ones are wider
            if (layout := self.layouts.get(key)) is None:
                layout = self.layouts[key] = self._tree()
            layout.trees.append((self.number, start, number))
            self.place = start + len(layout.first)
        _require(self.place <= len(content), "it is cut off")
        return count

    def _tree(self) -> _Layout:
        """The layout of the tree that comes next."""
        start, spans, entries = self.place, {}, {}
        _require(self.take(1) == b"{", "a tree is damaged")
        for name, begin, value in self.entries(2):
            entries[name] = value
            if isinstance(value, _Span):
                spans[name] = value._replace(start=value.start - start)
            elif name == "id":
                spans[name] = _Span(
                    begin + 1 - start, NUMBERS[self.file.content[begin : begin + 1]], 1
                )
        parameters = entries["tree_param"]
        nodes = _count(parameters["num_nodes"])
        _require(nodes > 0 and "id" in spans, "a tree is empty")
        for name, dtype in NODES.items():
            _require(spans[name][1:] == (dtype, nodes), f"a tree has not {nodes} of {name}")
        _require(
            not any(spans[name].entries for name in CATEGORIES if name in spans),
            "a tree has categories",
        )
        _require(_count(parameters["num_deleted"]) == 0, "a tree has nodes that are deleted")
        _require(_count(parameters["size_leaf_vector"]) <= 1, "a leaf has several values")
        content, digits = self.file.content[start : self.place], len(parameters["num_feature"])
        spans["num_feature"] = _Span(
            content.rindex(b"num_feature") + len("num_featureSL") + 8, np.dtype(f"S{digits}"), 1
        )
        return _Layout(content, spans)


def _check_file(file: BoosterFile, number: int, layouts: dict[Any, _Layout]) -> tuple[int, ...]:
    """Check all of a file but its trees, which go to ``layouts``; the version that wrote it."""
    reader = _Reader(file, number, layouts)
    whole = reader.value()
    _require(reader.place == len(file.content), "something follows it")
    learner = whole["learner"]
    outputs = 1 if file.classes == 2 else file.classes
    _check_learner(learner, file, outputs)
    booster = learner["gradient_booster"]
    _require(booster["name"] == "gbtree", "it is no boosted trees")
    model = booster["model"]
    trees = _count(model["gbtree_model_param"]["num_trees"])
    _require(
        _count(model["gbtree_model_param"]["num_parallel_tree"]) == 1,
        "it has several trees at once",
    )
    _require(
        0 < trees == model["trees"] and trees % outputs == 0,
        "it has another number of trees than it says",
    )
    _require(
        model["tree_info"] == list(range(outputs)) * (trees // outputs),
        "its trees are of other classes",
    )
    _require(
        model["iteration_indptr"] == list(range(0, trees + 1, outputs)),
        "its rounds are not those of its trees",
    )
    for value in model.get("cats", {}).values():
        _require(not (value.entries if isinstance(value, _Span) else value), "it has categories")
    version = tuple(whole["version"])
    _require(
        len(version) == 3 and all(isinstance(part, int) for part in version), "it names no version"
    )
    return version


def _check_learner(learner: dict[str, Any], file: BoosterFile, outputs: int) -> None:
    """The numbers of features and classes, the objective, and what is added to every sum."""
    _require(learner["feature_names"] == [] == learner["feature_types"], "its columns have names")
    parameters = learner["learner_model_param"]
    _require(
        _count(parameters["num_feature"]) == file.features, f"it is not of {file.features} features"
    )
    _require(
        _count(parameters["num_class"]) == (0 if outputs == 1 else outputs),
        f"it is not of {file.classes} classes",
    )
    _require(_count(parameters["num_target"]) == 1, "it has several outcomes")
    base = [float(score) for score in parameters["base_score"].strip("[]").split(",")]
    _require(len(base) in (1, outputs) and all(map(isfinite, base)), "its base score is no number")
    objective = learner["objective"]
    _require(
        objective["name"] == ("binary:logistic" if outputs == 1 else "multi:softprob"),
        "it has another objective",
    )
    if outputs == 1:
        _require(0 < base[0] < 1, "its base score is no probability")
        _require(
            float(objective["reg_loss_param"]["scale_pos_weight"]) == 1, "it weighs the classes"
        )
    else:
        _require(
            _count(objective["softmax_multiclass_param"]["num_class"]) == outputs,
            "it has other classes",
        )
    for name, text in learner["attributes"].items():
        _require(isinstance(text, str), f"its attribute {name} is no text")
    temperature = float(learner["attributes"].get("temperature", "1"))
    _require(0 < temperature < np.inf, "its temperature is no number above 0")


def _count(text: str) -> int:
    """A number without a sign, written in digits."""
    _require(text.isascii() and text.isdigit() and len(text) < 10, f"{text[:20]!r} is no number")
    return int(text)
