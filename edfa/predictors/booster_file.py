"""XGBoost's own file format: the one place that reads it, and checks it before XGBoost does.

XGBoost's reader trusts what it is given: a node, a class or a length out of range writes outside
its memory. Files are JSON or UBJSON. ``decode`` turns either into plain values without taking more
memory than the file has; ``check_user_booster`` checks a classifier of any kind that somebody else
trained; ``check_boosters`` checks those of a ``SubsetXGB``, which are many and all alike, quickly.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.errors import ModelError, UnreadableError
from edfa.typing import AnyArray, BoolArray

__all__ = [
    "OBJECTIVES",
    "BoosterFile",
    "check_boosters",
    "check_user_booster",
    "decode",
    "join_trees",
    "trees_of",
]

OBJECTIVES = ("binary:logistic", "multi:softprob")
"""The objectives whose answers are probabilities."""
MAX_NESTING = 16  # of objects within objects
MAX_CATEGORY = 2**24  # beyond it XGBoost takes a category for missing
NO_PARENT = 2**31 - 1
NO_CHILD = -1
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
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
DECODING_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)


class BoosterFile(NamedTuple):
    """The content of a booster's file, what to call it, and the numbers of features and classes
    that it must have.
    """

    name: str
    content: bytes
    features: int
    classes: int


def decode(content: bytes) -> Any:
    """The values in a file of XGBoost's: mappings, lists, numpy arrays, texts and numbers.

    Raises ValueError, or whatever else decoding stumbles over, for a file that is damaged; an entry
    that occurs twice is damage, because readers differ in which one they take.
    """
    if content[1:2] in (b'"', b"}") or content[1:2].isspace():
        return json.loads(content, object_pairs_hook=_distinct)
    reader = _Reader(content)
    value = reader.value()
    _require(reader.place == len(content), "something follows it")
    return value


def trees_of(learner: Mapping[str, Any]) -> Any:
    """The part of a decoded learner that has its trees, or the weights of a linear booster."""
    booster = learner["gradient_booster"]
    return booster.get("gbtree", booster)["model"]


def join_trees(trees: Sequence[Mapping[str, Any]], name: str, kind: type) -> AnyArray:
    """One array of all trees' nodes, (nodes of all trees,), of the decoded array ``name``."""
    return np.concatenate([np.asarray(tree[name], dtype=kind) for tree in trees])


def check_user_booster(content: bytes, name: str) -> None:
    """Check a classifier that somebody else trained, before XGBoost reads it.

    Parameters
    ----------
    content
        A file of XGBoost's in JSON or UBJSON, or what pickling a ``Booster`` holds.
    name
        What errors call it.

    Raises
    ------
    UnreadableError
        If XGBoost cannot have written it: it would follow a number in it out of its memory.
    ModelError
        If it answers something else than probabilities.
    """
    try:
        whole = decode(content)
        learner = whole.get("Model", whole)["learner"]
        _check_user_learner(learner)
        objective = learner["objective"]["name"]
    except _DamageError as error:
        raise _unreadable(name, error) from None
    except DECODING_ERRORS:
        raise _unreadable(name, "it is damaged") from None
    if objective not in (*OBJECTIVES, "multi:softmax"):
        raise ModelError(
            f"{name} was fitted for {objective}, which answers no probabilities; "
            f"{' or '.join(OBJECTIVES)} does"
        )


def _check_user_learner(learner: Mapping[str, Any]) -> None:
    parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
    features = _count(parameters["num_feature"])
    groups = max(1, _count(parameters["num_class"])) * _count(parameters.get("num_target", "1"))
    base = [float(score) for score in str(parameters["base_score"]).strip("[]").split(",")]
    _require(len(base) in (1, groups) and all(map(isfinite, base)), "its base score is no number")
    for names in ("feature_names", "feature_types"):
        texts = learner.get(names, ())
        _require(len(texts) in (0, features), "it names other features than it has")
        _require(all(isinstance(text, str) for text in texts), "a name is no text")
    model = trees_of(learner)
    if booster["name"] == "gblinear":
        _require(len(model["weights"]) == (features + 1) * groups, "it has other weights")
        return
    _require(booster["name"] in ("gbtree", "dart"), "it is no boosted trees")
    trees = model["trees"]
    count = _count(model["gbtree_model_param"]["num_trees"])
    _require(0 < count == len(trees), "it has another number of trees than it says")
    _require(0 < groups <= count, "it has not a tree for each class")
    group = np.asarray(model["tree_info"])
    _require(
        group.dtype.kind in "iu"
        and group.shape == (count,)
        and bool(((group >= 0) & (group < groups)).all()),
        "its trees are of other classes",
    )
    rounds = np.asarray(model.get("iteration_indptr", [0, count]))
    _require(
        rounds.dtype.kind in "iu"
        and (rounds[0], rounds[-1]) == (0, count)
        and bool((np.diff(rounds) >= 0).all()),
        "its rounds are not those of its trees",
    )
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == count, "it has not a weight for each tree")
    _check_names_of_categories(model.get("cats", {}), features)
    for number, tree in enumerate(trees):
        _require(tree["id"] == number, "its trees are out of order")
        _check_user_tree(tree, features)


def _check_user_tree(tree: Mapping[str, Any], features: int) -> None:
    """Check one decoded tree, which may split by categories."""
    parameters = tree["tree_param"]
    nodes = _count(parameters["num_nodes"])
    _require(nodes > 0, "a tree is empty")
    _require(_count(parameters["num_feature"]) == features, "a tree is of other features")
    _require(_count(parameters["size_leaf_vector"]) <= 1, "a leaf has several values")
    arrays = {name: np.asarray(tree[name], dtype=kind)[None] for name, kind in NODES.items()}
    for name, array in arrays.items():
        _require(array.shape == (1, nodes), f"a tree has not {nodes} of {name}")
    for damage, holds in _find_damage(arrays, np.array([features])).items():
        _require(bool(holds.all()), damage)
    categorical = arrays["split_type"][0] == 1
    _require(bool((arrays["split_type"] <= 1).all()), "a tree has another kind of split")
    entries, node, start, size = (np.asarray(tree[name], dtype=np.int64) for name in CATEGORIES)
    _require(np.array_equal(node, np.flatnonzero(categorical)), "a tree's categories are damaged")
    _require(len(node) == len(start) == len(size), "a tree's categories are damaged")
    _require(
        bool((start >= 0).all() and (size > 0).all() and (start + size <= len(entries)).all()),
        "a set of categories is cut off",
    )
    _require(bool(((entries >= 0) & (entries < MAX_CATEGORY)).all()), "a category is out of range")


def _check_names_of_categories(cats: Mapping[str, Any], features: int) -> None:
    """Check the names of categories, which XGBoost keeps from 3.1 on: texts end to end, or
    numbers, of each feature.
    """
    if not cats or not len(cats["feature_segments"]):
        _require(not any(len(part) for part in cats.values()), "its categories are damaged")
        return
    ends = np.asarray(cats["feature_segments"], dtype=np.int64)
    sizes = []
    for names in cats["enc"]:
        offsets = np.asarray(names.get("offsets", ()), dtype=np.int64)
        if "offsets" in names and len(offsets):
            within = offsets[0] == 0 and offsets[-1] == len(names["values"])
            _require(within and bool((np.diff(offsets) >= 0).all()), "its categories are damaged")
        sizes.append(max(0, len(offsets) - 1) if "offsets" in names else len(names["values"]))
    order = np.asarray(cats["sorted_idx"], dtype=np.int64)
    _require(
        len(sizes) == features
        and np.array_equal(ends, np.cumsum([0, *sizes]))
        and len(order) == ends[-1]
        and all(
            np.array_equal(np.sort(order[start:end]), np.arange(end - start))
            for start, end in pairwise(ends.tolist())
        ),
        "its categories are damaged",
    )


def check_boosters(files: Sequence[BoosterFile]) -> list[tuple[int, ...]]:
    """Check the boosters of a ``SubsetXGB``; return the version of XGBoost that wrote each file.

    Trees of one size are written alike, so that one of them is decoded and all others are compared
    with it at once. UnreadableError for a file that XGBoost cannot have written for such a model.

    Examples
    --------
    >>> check_boosters([BoosterFile("model.ubj", b"{", 3, 2)])
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: model.ubj is no booster as XGBoost writes it: it is cut off
    """
    layouts: dict[Any, _Layout] = {}
    versions = []
    for number, file in enumerate(files):
        try:
            versions.append(_check_file(file, number, layouts))
        except _DamageError as error:
            raise _unreadable(file.name, error) from None
        except DECODING_ERRORS:
            raise _unreadable(file.name, "it is damaged") from None
    for layout in layouts.values():
        for number, what in layout.damages(files):
            raise _unreadable(files[number].name, what)
    return versions


class _DamageError(ValueError):
    """What is wrong with a file."""


def _unreadable(name: str, damage: object) -> UnreadableError:
    return UnreadableError(f"{name} is no booster as XGBoost writes it: {damage}")


def _require(holds: bool, damage: str) -> None:
    if not holds:
        raise _DamageError(damage)


def _distinct(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """The entries of a JSON object, none of which may occur twice."""
    _require(len(entries) == len(names := dict(entries)), "an entry is there twice")
    return names


class _Span(NamedTuple):
    """An array of one type in a file: where it begins, its type, and how many entries it has."""

    start: int
    dtype: np.dtype[Any]
    entries: int


@dataclass
class _Layout:
    """How trees of one size are written: the bytes of one, where its arrays are, and all trees that
    look like it.

    ``trees`` are the file, the place in it, and the number of each tree.
    """

    first: bytes
    spans: dict[str, _Span]
    trees: list[tuple[int, int, int]] = field(default_factory=list)

    @cached_property
    def fixed(self) -> BoolArray:
        """Which bytes are the same in all trees: all but those of arrays."""
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
        same_features = nodes["num_feature"][:, 0] == features.astype(bytes)
        checks = {
            "a tree is damaged": alike & same_id & same_features,
            "a tree has a kind of split that no model here has": ~nodes["split_type"].any(axis=1),
        }
        for damage, holds in (checks | _find_damage(nodes, features)).items():
            if not holds.all():
                yield self.trees[int(np.argmin(holds))][0], damage

    @staticmethod
    def _array(rows: npt.NDArray[np.uint8], span: _Span) -> AnyArray:
        """One array of all trees, (trees, entries)."""
        columns = rows[:, span.start : span.start + span.entries * span.dtype.itemsize]
        array = np.ascontiguousarray(columns).view(span.dtype).reshape(len(rows), span.entries)
        return array.astype(span.dtype.newbyteorder("="))


def _find_damage(nodes: Mapping[str, AnyArray], features: AnyArray) -> dict[str, BoolArray]:
    """For each kind of damage, which trees are free of it, (trees,).

    ``nodes`` are the arrays of trees of one size, (trees, nodes) each; ``features`` (trees,) are
    the numbers of their columns.
    """
    is_leaf = nodes["left_children"] == NO_CHILD
    split, condition = nodes["split_indices"], nodes["split_conditions"]
    # XGBoost from 3.4 on splits known from unknown values at an infinite condition; a leaf's
    # value, which is kept in the same array, is added up and must be finite.
    usable = np.where(is_leaf, np.isfinite(condition), ~np.isnan(condition))
    inside = is_leaf | ((split >= 0) & (split < features[:, None]))
    return {
        "a node has no such parent or child": _is_tree(nodes),
        "a tree splits by a feature that is not there": inside.all(axis=1),
        "a tree has a value that is no number": usable.all(axis=1),
        "a node sends what is missing nowhere": (nodes["default_left"] < 2).all(axis=1),
    }


def _is_tree(nodes: Mapping[str, AnyArray]) -> BoolArray:
    """Whether the nodes of each tree, (trees, nodes), hang together: every child has one parent,
    the root none, so that every way down ends.
    """
    left, right, parents = nodes["left_children"], nodes["right_children"], nodes["parents"]
    n = left.shape[1]
    inner = left != NO_CHILD
    children = np.stack([left, right])
    within = np.where(inner, (children >= 0) & (children < n), children == NO_CHILD)
    clipped = np.clip(children, 0, n - 1)
    back = parents[np.arange(len(parents))[:, None], clipped]
    theirs = (~inner | (back == np.arange(n))).all(axis=(0, 2))
    apart = (~inner | (left != right)).all(axis=1)
    return np.asarray(within.all(axis=(0, 2)) & theirs & apart & (parents[:, 0] == NO_PARENT))


@dataclass
class _Reader:
    """A decoder of UBJSON as XGBoost writes it.

    With ``layouts``, trees are passed over and noted there under the file's ``number``, and arrays
    of one type are left where they are, as ``_Span``; else everything is decoded.
    """

    content: bytes
    layouts: dict[Any, _Layout] | None = None
    number: int = 0
    features: int = 0
    place: int = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start = self.place
        self.place = end = start + size
        _require(end <= len(self.content), "it is cut off")
        return self.content[start:end]

    def size(self) -> int:
        """A length, which is a marker and eight bytes."""
        head = self.take(9)
        _require(head[:1] == b"L", "a length is missing")
        return int.from_bytes(head[1:], "big")  # one that is too long is cut off

    def value(self, depth: int = 0) -> Any:
        """The next value."""
        _require(depth <= MAX_NESTING, "it is nested too deeply")
        marker = self.take(1)
        if marker == b"S":
            return self.take(self.size()).decode("utf-8")
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return {name: value for name, _, value in self.entries(depth)}
        if marker in b"TFZ":
            return {b"T": True, b"F": False, b"Z": None}[marker]
        dtype = NUMBERS[marker]
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def entries(self, depth: int) -> Iterator[tuple[str, int, Any]]:
        """The entries of an object, to its end: name, where the value begins, and the value."""
        names = set()
        while self.content[self.place : self.place + 1] != b"}":
            name = self.take(self.size()).decode("utf-8")
            _require(name not in names, f"{name!r} is there twice")
            names.add(name)
            start = self.place
            passed = name == "trees" and self.layouts is not None
            yield name, start, self._pass_trees() if passed else self.value(depth + 1)
        self.place += 1

    def _array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            dtype = NUMBERS[self.take(1)]
            _require(self.take(1) == b"#", "a length is missing")
            span = _Span(self.place + 9, dtype, self.size())
            content = self.take(span.entries * dtype.itemsize)
            return span if self.layouts is not None else np.frombuffer(content, dtype)
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
        marker = self.content[self.place : self.place + 1]
        if marker not in NUMBERS:
            return []
        cell = np.dtype([("marker", "u1"), ("value", NUMBERS[marker])])
        room = (len(self.content) - self.place) // cell.itemsize
        cells = np.frombuffer(self.content, cell, min(most, room), self.place)
        other = np.flatnonzero(cells["marker"] != marker[0])
        run = cells[: other[0]] if len(other) else cells
        self.place += len(run) * cell.itemsize
        numbers: list[int] = run["value"].tolist()
        return numbers

    def _pass_trees(self) -> int:
        """Pass over the trees, each decoded or of a known layout; their number."""
        _require(self.take(2) == b"[#", "a length is missing")
        content, digits, count = self.content, len(str(self.features)), self.size()
        layouts = {} if self.layouts is None else self.layouts
        _require(count <= len(content), "it is cut off")
        for number in range(count):
            start = self.place
            prefix = content[start : start + PREFIX]
            key = (digits, prefix, number < 127, number < 32767)  # longer numbers are wider
            if (layout := layouts.get(key)) is None:
                layout = layouts[key] = self._layout()
            layout.trees.append((self.number, start, number))
            self.place = start + len(layout.first)
        _require(self.place <= len(content), "it is cut off")
        return count

    def _layout(self) -> _Layout:
        """The layout of the tree that comes next."""
        start, spans, entries = self.place, {}, {}
        _require(self.take(1) == b"{", "a tree is damaged")
        for name, begin, value in self.entries(2):
            entries[name] = value
            if isinstance(value, _Span):
                spans[name] = value._replace(start=value.start - start)
            elif name == "id":
                dtype = NUMBERS[self.content[begin : begin + 1]]
                spans[name] = _Span(begin + 1 - start, dtype, 1)
        parameters = entries["tree_param"]
        nodes = _count(parameters["num_nodes"])
        _require(nodes > 0 and "id" in spans, "a tree is empty")
        for name, dtype in NODES.items():
            _require(spans[name][1:] == (dtype, nodes), f"a tree has not {nodes} of {name}")
        _require(
            not any(spans[n].entries for n in CATEGORIES if n in spans), "a tree has categories"
        )
        _require(_count(parameters["num_deleted"]) == 0, "a tree has nodes that are deleted")
        _require(_count(parameters["size_leaf_vector"]) <= 1, "a leaf has several values")
        content, digits = self.content[start : self.place], len(parameters["num_feature"])
        spans["num_feature"] = _Span(
            content.rindex(b"num_feature") + len("num_featureSL") + 8, np.dtype(f"S{digits}"), 1
        )
        return _Layout(content, spans)


def _check_file(file: BoosterFile, number: int, layouts: dict[Any, _Layout]) -> tuple[int, ...]:
    """Check all of a file but its trees, which go to ``layouts``; the version that wrote it."""
    reader = _Reader(file.content, layouts, number, file.features)
    whole = reader.value()
    _require(reader.place == len(file.content), "something follows it")
    learner = whole["learner"]
    outputs = 1 if file.classes == 2 else file.classes
    _check_learner(learner, file, outputs)
    booster = learner["gradient_booster"]
    _require(booster["name"] == "gbtree", "it is no boosted trees")
    model = booster["model"]
    parameters = model["gbtree_model_param"]
    trees = _count(parameters["num_trees"])
    _require(_count(parameters["num_parallel_tree"]) == 1, "it has several trees at once")
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
    several = 0 if outputs == 1 else outputs
    for name, count in (("feature", file.features), ("class", several), ("target", 1)):
        _require(_count(parameters[f"num_{name}"]) == count, f"it has another number of num_{name}")
    base = [float(score) for score in parameters["base_score"].strip("[]").split(",")]
    _require(len(base) in (1, outputs) and all(map(isfinite, base)), "its base score is no number")
    objective = learner["objective"]
    _require(objective["name"] == OBJECTIVES[int(outputs > 1)], "it has another objective")
    if outputs == 1:
        _require(0 < base[0] < 1, "its base score is no probability")
        weight = objective["reg_loss_param"]["scale_pos_weight"]
        _require(float(weight) == 1, "it weighs the classes")
    else:
        classes = objective["softmax_multiclass_param"]["num_class"]
        _require(_count(classes) == outputs, "it has other classes")
    for name, text in learner["attributes"].items():
        _require(isinstance(text, str), f"its attribute {name} is no text")
    temperature = float(learner["attributes"].get("temperature", "1"))
    _require(0 < temperature < np.inf, "its temperature is no number above 0")


def _count(text: str) -> int:
    """A number without a sign, written in digits."""
    _require(text.isascii() and text.isdigit() and len(text) < 10, f"{text[:20]!r} is no number")
    return int(text)
