"""XGBoost's own file format: the one place that reads it, and checks it before XGBoost does.

XGBoost's reader trusts what it is given: a node, a class or a length out of range makes it read and
write outside its memory. Files are JSON or UBJSON. ``decode`` turns either into plain values;
``check_user_booster`` checks a classifier of any kind that somebody else trained, and
``check_boosters`` those of a ``SubsetXGB``, of which more is known.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from edfa.errors import ModelError, UnreadableError
from edfa.typing import AnyArray

OBJECTIVES = ("binary:logistic", "multi:softprob")
"""The objectives whose answers are probabilities."""
MAX_NESTING = 16  # of objects within objects
MAX_CATEGORY = 2**24  # beyond it XGBoost takes a category for missing
NO_PARENT = 2**31 - 1
NO_CHILD = -1
MARKERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
NUMBERS: dict[bytes, np.dtype[Any]] = {m.encode(): np.dtype(name) for m, name in MARKERS.items()}
NODES: dict[
    str, np.dtype[Any]
] = {  # the arrays of a tree with an entry for each node, and their types
    "base_weights": np.dtype("f4"),
    "default_left": np.dtype("u1"),
    "left_children": np.dtype("i4"),
    "loss_changes": np.dtype("f4"),
    "parents": np.dtype("i4"),
    "right_children": np.dtype("i4"),
    "split_conditions": np.dtype("f4"),
    "split_indices": np.dtype("i4"),
    "split_type": np.dtype("u1"),
    "sum_hessian": np.dtype("f4"),
}
LENGTH = struct.Struct(">cQ")
CLOSING = ord("}")
PREFIX = 35  # bytes in which a tree's first array, and so its number of nodes, is named
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


class BoosterFile(NamedTuple):
    """The content of a booster's file, and what it must be about.

    Parameters
    ----------
    name
        What errors call the file.
    content
        The file, JSON or UBJSON.
    features
        The number of columns that the booster must want.
    classes
        The number of classes that it must tell apart.
    """

    name: str
    content: bytes
    features: int
    classes: int


def decode(content: bytes, examples: "dict[bytes, _Example] | None" = None) -> Any:
    """The values in a file of XGBoost's.

    Parameters
    ----------
    content
        The file. A UBJSON file is read by ``_Reader``, a JSON file by Python's own reader.
    examples
        Objects that were read from other files before, by their first bytes: a tree that is written
        like one of them is read faster. New ones are added. None: there are none yet.

    Returns
    -------
    Mappings, lists, numpy arrays, texts and numbers, nested as in the file.

    Raises
    ------
    ValueError
        If the file is damaged; so do whatever other errors decoding stumbles over. An entry that
        occurs twice is damage, because readers differ in which one they take.
    """
    if content[1:2] in (b'"', b"}") or content[1:2].isspace():
        return json.loads(content, object_pairs_hook=_distinct)
    reader = _Reader(content, {} if examples is None else examples)
    value = reader.value()
    _require(reader.place == len(content), "something follows it")
    return value


def trees_of(learner: Mapping[str, Any]) -> Any:
    """The part of a decoded learner that has its trees, or the weights of a linear booster.

    Parameters
    ----------
    learner
        The entry ``"learner"`` of what ``decode`` gives.

    Returns
    -------
    The entry ``"model"`` of boosted trees, DART or a linear booster; a mapping.
    """
    booster = learner["gradient_booster"]
    return booster.get("gbtree", booster)["model"]


def join_trees(trees: Sequence[Mapping[str, Any]], name: str) -> AnyArray:
    """One array of the nodes of all trees.

    Parameters
    ----------
    trees
        Decoded trees, the entry ``"trees"`` of ``trees_of``.
    name
        The name of an array in ``NODES``.

    Returns
    -------
    The array, (nodes of all trees,), in its type by ``NODES``.

    Raises
    ------
    ValueError
        If a number is out of the range of that type, which would make another number of it.
    """
    joined, kind = np.concatenate([tree[name] for tree in trees]), NODES[name]
    _require(joined.ndim == 1, f"{name} is no list of numbers")
    if kind.kind in "iu":  # no number may become another one
        limits = np.iinfo(kind)
        whole = (
            joined.dtype.kind in "iu" and limits.min <= joined.min() <= joined.max() <= limits.max
        )
        _require(whole, f"a number of {name} is out of range")
    return joined.astype(kind)


def base_scores(learner: Mapping[str, Any]) -> list[float]:
    """The score that the sums of leaves begin with.

    Parameters
    ----------
    learner
        The entry ``"learner"`` of what ``decode`` gives.

    Returns
    -------
    One number, or from XGBoost 3.1 on one for each output; a probability where the objective is
    logistic.
    """
    text = str(learner["learner_model_param"]["base_score"])
    return [float(score) for score in text.strip("[]").split(",")]


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
    with _damage_of(name):
        whole = decode(content)
        learner = whole.get("Model", whole)["learner"]
        _check_learner(learner)
        objective = learner["objective"]["name"]
    if objective not in (*OBJECTIVES, "multi:softmax"):
        raise ModelError(
            f"{name} was fitted for {objective}, which answers no probabilities; "
            f"{' or '.join(OBJECTIVES)} does"
        )


def check_boosters(files: Sequence[BoosterFile]) -> list[tuple[int, ...]]:
    """Check the boosters of a ``SubsetXGB`` or a committee before XGBoost reads them.

    Parameters
    ----------
    files
        The boosters, each with the numbers of features and classes that it must have.

    Returns
    -------
    The version of XGBoost that wrote each file, three numbers.

    Raises
    ------
    UnreadableError
        For the first file that XGBoost cannot have written for such a model.

    Examples
    --------
    >>> check_boosters([BoosterFile("model.ubj", b"{", 3, 2)])
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: model.ubj is no booster as XGBoost writes it: it is damaged
    """
    versions = []
    examples: dict[bytes, _Example] = {}
    for file in files:
        with _damage_of(file.name):
            whole = decode(file.content, examples)
            _check_learner(whole["learner"])
            _check_own_learner(whole["learner"], file)
            version = tuple(whole["version"])
            _require([type(part) for part in version] == [int] * 3, "it names no version")
        versions.append(version)
    return versions


class _DamageError(ValueError):
    """What is wrong with a file."""


@contextmanager
def _damage_of(name: str) -> Iterator[None]:
    """What a block finds wrong with a file, or stumbles over in it, as UnreadableError."""
    try:
        yield
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
        struct.error,
    ) as error:
        damage = error if isinstance(error, _DamageError) else "it is damaged"
        raise UnreadableError(f"{name} is no booster as XGBoost writes it: {damage}") from None


def _require(holds: Any, damage: str) -> None:
    if not holds:
        raise _DamageError(damage)


def _require_all(checks: Mapping[str, Any]) -> None:
    for damage, holds in checks.items():
        _require(holds, damage)


def _distinct(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """The entries of a JSON object, none of which may occur twice."""
    _require(len(entries) == len(names := dict(entries)), "an entry is there twice")
    return names


def _count(text: str) -> int:
    """A number without a sign, written in digits."""
    _require(text.isascii() and text.isdigit() and len(text) < 10, f"{text[:20]!r} is no number")
    return int(text)


def _rises(numbers: AnyArray, first: int, last: int) -> bool:
    """Whether whole numbers never fall on their way from ``first`` to ``last``."""
    return bool(
        numbers.dtype.kind in "iu"
        and (numbers[0], numbers[-1]) == (first, last)
        and (np.diff(numbers) >= 0).all()
    )


def _check_learner(learner: Mapping[str, Any]) -> None:
    """Check every number by which XGBoost finds its way through a booster of any kind.

    The counts of features, classes, trees and rounds must agree with the arrays that they are
    about, whether the booster has trees (``gbtree``, ``dart``) or weights (``gblinear``).

    Parameters
    ----------
    learner
        The entry ``"learner"`` of what ``decode`` gives.

    Raises
    ------
    _DamageError
        With a few words about what is wrong.
    """
    parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
    features = _count(parameters["num_feature"])
    groups = max(1, _count(parameters["num_class"])) * _count(parameters.get("num_target", "1"))
    base = base_scores(learner)
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
        and ((group >= 0) & (group < groups)).all(),
        "its trees are of other classes",
    )
    rounds = np.asarray(model.get("iteration_indptr", [0, count]))
    _require(_rises(rounds, 0, count), "its rounds are not those of its trees")
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == count, "it has not a weight for each tree")
    _check_names_of_categories(model.get("cats", {}), features)
    _check_trees(trees, features)


def _check_own_learner(learner: Mapping[str, Any], file: BoosterFile) -> None:
    """Check that a booster is one of those that this package trains.

    It has an objective of ``OBJECTIVES`` for its number of classes, one tree a round and output,
    and no categories, no names of columns and no deleted nodes. ``_check_learner`` has passed
    before.

    Parameters
    ----------
    learner
        The entry ``"learner"`` of what ``decode`` gives.
    file
        The numbers of features and classes that the booster must have.
    """
    outputs = 1 if file.classes == 2 else file.classes
    parameters, model = learner["learner_model_param"], trees_of(learner)
    objective, attributes = learner["objective"], learner["attributes"]
    counts = {"feature": file.features, "class": 0 if outputs == 1 else outputs, "target": 1}
    for name, count in counts.items():
        _require(_count(parameters[f"num_{name}"]) == count, f"it has another number of num_{name}")
    if outputs == 1:
        same_classes = float(objective["reg_loss_param"]["scale_pos_weight"]) == 1
    else:
        same_classes = _count(objective["softmax_multiclass_param"]["num_class"]) == outputs
    trees, names = model["trees"], (learner["feature_names"], learner["feature_types"])
    categories = [*model.get("cats", {}).values(), *(t[n] for t in trees for n in CATEGORIES)]
    checks = {
        "it is no boosted trees": learner["gradient_booster"]["name"] == "gbtree",
        "its columns have names": not any(map(len, names)),
        "it has another objective": objective["name"] == OBJECTIVES[outputs > 1],
        "it has other classes": same_classes,
        "its base score is no probability": outputs > 1 or 0 < base_scores(learner)[0] < 1,
        "it has several trees at once": model["gbtree_model_param"]["num_parallel_tree"] == "1",
        "its trees are of other classes": np.array_equal(
            model["tree_info"], np.arange(len(trees)) % outputs
        ),
        "its rounds are not those of its trees": np.array_equal(
            model["iteration_indptr"], np.arange(0, len(trees) + 1, outputs)
        ),
        "it has categories": not any(map(len, categories)),
        "a tree has nodes that are deleted": all(
            tree["tree_param"]["num_deleted"] == "0" for tree in trees
        ),
        "an attribute of it is no text": all(isinstance(text, str) for text in attributes.values()),
    }
    _require_all(checks)


def _check_trees(trees: Sequence[Mapping[str, Any]], features: int) -> None:
    """Check all decoded trees at once, node by node; they may split by categories.

    Every inner node leads to two nodes of its own tree, each node but the first has one parent,
    every split is by a feature that is there, and every leaf has a finite value.

    Parameters
    ----------
    trees
        The decoded trees.
    features
        The number of columns that the booster wants.
    """
    parameters = [tree["tree_param"] for tree in trees]
    sizes = [_count(each["num_nodes"]) for each in parameters]
    lengths = {name: [len(tree[name]) for tree in trees] for name in (*NODES, *CATEGORIES)}
    checks = {
        "a tree is empty": min(sizes) > 0,
        "its trees are out of order": [tree["id"] for tree in trees] == list(range(len(trees))),
        "a tree is of other features": {_count(each["num_feature"]) for each in parameters}
        == {features},
        "a leaf has several values": all(_count(p["size_leaf_vector"]) <= 1 for p in parameters),
        "a tree has another number of nodes": all(lengths[name] == sizes for name in NODES),
    }
    _require_all(checks)
    joined = {name: join_trees(trees, name) for name in NODES}
    left, right, parent = (joined[n] for n in ("left_children", "right_children", "parents"))
    split, condition, kind = (
        joined[n] for n in ("split_indices", "split_conditions", "split_type")
    )
    size = np.repeat(sizes, sizes)  # of the tree of each node
    root = np.repeat(np.cumsum(sizes) - sizes, sizes)  # where that tree begins
    node = np.arange(len(root)) - root
    leaf, children = left == NO_CHILD, np.stack([left, right])
    # Every child has one parent, and the root has none, so that every way down ends.
    within = np.where(leaf, children == NO_CHILD, (children >= 0) & (children < size))
    theirs = leaf | ((parent[root + np.clip(children, 0, size - 1)] == node) & (left != right))
    # XGBoost from 3.4 on splits known from unknown values at an infinite condition; a leaf's
    # value, which is kept in the same array, is added up and must be finite.
    usable = np.where(leaf, np.isfinite(condition), ~np.isnan(condition))
    holds: dict[str, Any] = {
        "a node has no such parent or child": (within & theirs).all()
        and (parent[node == 0] == NO_PARENT).all(),
        "a tree splits by a feature that is not there": (
            leaf | ((split >= 0) & (split < features))
        ).all(),
        "a tree has a value that is no number": usable.all(),
        "a node sends what is missing nowhere": (joined["default_left"] < 2).all(),
        "a tree has another kind of split": (kind < 2).all(),
    }
    _require_all(holds)
    if kind.any() or any(map(any, (lengths[name] for name in CATEGORIES))):
        for tree in trees:
            _check_categories(tree)


def _check_categories(tree: Mapping[str, Any]) -> None:
    """Check the sets of categories by which one decoded tree splits.

    Each split by categories has one set, a stretch of the array ``categories``; a category is a
    code that XGBoost can hold.
    """
    entries, node, start, size = (np.asarray(tree[name], dtype=np.int64) for name in CATEGORIES)
    categorical = np.flatnonzero(np.asarray(tree["split_type"]) == 1)
    _require(
        np.array_equal(node, categorical) and len(node) == len(start) == len(size),
        "a tree's categories are damaged",
    )
    _require(
        ((start >= 0) & (size > 0) & (start + size <= len(entries))).all(),
        "a set of categories is cut off",
    )
    _require(((entries >= 0) & (entries < MAX_CATEGORY)).all(), "a category is out of range")


def _check_names_of_categories(cats: Mapping[str, Any], features: int) -> None:
    """Check the names of categories, which XGBoost writes from 3.1 on.

    Parameters
    ----------
    cats
        The entry ``"cats"`` of a model: for each feature the names of its categories (texts end to
        end, or numbers) and their order. Empty for a model without any.
    features
        The number of columns that the booster wants.
    """
    damage = "its categories are damaged"
    if not cats or not len(cats["feature_segments"]):
        _require(not any(len(part) for part in cats.values()), damage)
        return
    ends = np.asarray(cats["feature_segments"], dtype=np.int64)
    sizes = []
    for names in cats["enc"]:
        count = len(names["values"])
        if "offsets" in names:
            offsets = np.asarray(names["offsets"], dtype=np.int64)
            _require(not len(offsets) or _rises(offsets, 0, count), damage)
            count = max(0, len(offsets) - 1)
        sizes.append(count)
    order = np.asarray(cats["sorted_idx"], dtype=np.int64)
    _require(
        len(sizes) == features
        and np.array_equal(ends, np.cumsum([0, *sizes]))
        and len(order) == ends[-1]
        and all(
            np.array_equal(np.sort(order[start:end]), np.arange(end - start))
            for start, end in pairwise(ends.tolist())
        ),
        damage,
    )


@dataclass
class _Example:
    """An object of numbers, and where they are in it: others differ from it in these alone.

    Parameters
    ----------
    content
        The object as it is written.
    value
        The object as it was decoded.
    numbers
        For each entry that is a number or an array of numbers, where its bytes begin and end in
        ``content``, and their type.
    """

    content: bytes
    value: dict[str, Any]
    numbers: dict[str, tuple[int, int, np.dtype[Any]]] = field(default_factory=dict)

    @cached_property
    def same(self) -> list[tuple[int, int]]:
        """The stretches between its numbers."""
        ends = [end for _, end, _ in self.numbers.values()]
        starts = [start for start, _, _ in self.numbers.values()]
        return list(zip([0, *ends], [*starts, len(self.content)], strict=True))

    def read(self, content: bytes, place: int) -> dict[str, Any] | None:
        """Read an object that is written like this one.

        Parameters
        ----------
        content
            The whole file.
        place
            Where the object begins in it.

        Returns
        -------
        The decoded object; None if it is not written like this one.
        """
        for start, end in self.same:
            if content[place + start : place + end] != self.content[start:end]:
                return None
        values = self.value.copy()
        for name, (start, end, dtype) in self.numbers.items():
            count = (end - start) // dtype.itemsize
            array = np.frombuffer(content, dtype, count, place + start)
            is_array = isinstance(values[name], np.ndarray)
            values[name] = array if is_array else array[0].item()
        return values


class _Reader:
    """A decoder of UBJSON as XGBoost writes it.

    ``place`` is that of the next byte. Trees of one size are written alike: ``examples`` has one of
    each, by its first bytes, and the others are read like it, which is several times faster.
    """

    def __init__(self, content: bytes, examples: dict[bytes, _Example]) -> None:
        self.content = content
        self.place = 0
        self.examples = examples
        self.numbers: dict[str, tuple[int, int, np.dtype[Any]]] = {}  # of the last object

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start = self.place
        self.place = end = start + size
        if end > len(self.content):
            raise _DamageError("it is cut off")
        return self.content[start:end]

    def length(self) -> int:
        """A length, which is a marker and eight bytes."""
        marker, size = LENGTH.unpack_from(self.content, self.place)
        if marker != b"L":
            raise _DamageError("a length is missing")
        self.place += LENGTH.size
        return int(size)

    def value(self, depth: int = 0) -> Any:
        """The next value."""
        _require(depth <= MAX_NESTING, "it is nested too deeply")
        marker = self.take(1)
        if marker == b"[":
            return self._array(depth)
        if marker == b"S":
            return self.take(self.length()).decode()
        if marker == b"{":
            return self._object(depth)
        if marker in b"TFZ":
            return {b"T": True, b"F": False, b"Z": None}[marker]
        dtype = NUMBERS[marker]
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def _object(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        numbers = {}
        begin = self.place - 1
        while self.content[self.place] != CLOSING:
            name = self.take(self.length()).decode()
            if name in entries:
                raise _DamageError("an entry is there twice")
            kind = NUMBERS.get(self.content[self.place : self.place + 1])
            entries[name] = value = self.value(depth + 1)
            if (dtype := getattr(value, "dtype", kind)) is not None:
                end = self.place - begin
                numbers[name] = end - getattr(value, "nbytes", dtype.itemsize), end, dtype
        self.place += 1
        self.numbers = numbers
        return entries

    def _array(self, depth: int) -> Any:
        """An array of numbers of one type, or a list of anything."""
        marker = self.take(1)
        if marker == b"#":
            return [self._item(depth + 1) for _ in range(self.length())]
        dtype = NUMBERS[self.take(1)]
        _require(marker + self.take(1) == b"$#", "a length is missing")
        return np.frombuffer(self.take(self.length() * dtype.itemsize), dtype)

    def _item(self, depth: int) -> Any:
        """The next value of a list."""
        start = self.place
        prefix = self.content[start : start + PREFIX]
        example = self.examples.get(prefix)
        if example is not None and (alike := example.read(self.content, start)) is not None:
            self.place += len(example.content)
            return alike
        value = self.value(depth)
        if isinstance(value, dict):
            content = self.content[start : self.place]
            self.examples[prefix] = _Example(content, value, self.numbers)
        return value
