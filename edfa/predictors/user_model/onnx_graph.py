"""What an ONNX file says before it is run: whether it names other files, and the classes of its
label.

An ONNX file is a protocol buffer. Only the few fields that are needed are looked at; the others are
passed over.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from edfa.errors import UnreadableError

__all__ = ["Node", "find_classes", "read_nodes"]

MAX_DEPTH = 32  # of graphs within nodes within graphs
# The messages within each kind of message, by field number, as far as they lead to tensors and
# nodes.
WITHIN = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
EXTERNAL = (13, 14)  # the fields of a tensor that say where else its values are
SAME_LABEL = ("Identity", "Cast", "Reshape")  # nodes that hand a label on
Labels = tuple[int, ...] | tuple[str, ...]
Value = int | memoryview


@dataclass(frozen=True)
class Node:
    """A node of the main graph: its operator, what goes in and comes out, and the classes that it
    is said to know.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    labels: Labels | None


@dataclass(frozen=True)
class _Message:
    """A message of one kind, and how many others it lies in."""

    kind: str
    content: memoryview
    depth: int


def read_nodes(content: bytes, name: str) -> list[Node]:
    """The nodes of an ONNX file's main graph.

    UnreadableError that begins with ``name`` if the file is none, or keeps numbers in other files:
    reading those would be reading whatever file somebody names.
    """
    try:
        return _visit(_Message("model", memoryview(content), 0))
    except _DamageError as error:
        raise UnreadableError(f"{name} {error}") from None
    except (IndexError, UnicodeDecodeError, OverflowError):
        raise UnreadableError(f"{name} is no ONNX file") from None


def find_classes(nodes: list[Node], output: str) -> Labels | None:
    """The classes that the node behind ``output`` is said to know; None if it does not say.

    ``output``: the label of the graph, or its probabilities by class (a ZipMap). Nodes further
    inside may number the classes from 0, so that only the node that writes the output counts.
    """
    by_output = {out: node for node in nodes for out in node.outputs}
    for _ in range(len(nodes)):
        node = by_output.get(output)
        if node is None or node.operator not in SAME_LABEL:
            return None if node is None else node.labels
        output = node.inputs[0] if node.inputs else ""
    return None


class _DamageError(Exception):
    """What is wrong with a file, after its name."""


def _visit(message: _Message) -> list[Node]:
    """Look through a message and those within it; the nodes of the main graph."""
    if message.depth > MAX_DEPTH:
        raise _DamageError("is nested too deeply")
    inner = WITHIN.get(message.kind, {})
    nodes: list[Node] = []
    for number, value in _fields(message.content):
        if message.kind == "tensor":
            if number in EXTERNAL and value != 0:
                raise _DamageError("keeps numbers in other files; save it as one file")
        elif number in inner:
            if isinstance(value, int):
                raise _DamageError("is no ONNX file")
            child = _Message(inner[number], value, message.depth + 1)
            nodes += _visit(child)
            if child.kind == "node" and message.depth == 1:
                nodes.append(_node(child.content))
    return nodes if message.depth <= 1 else []


def _node(content: memoryview) -> Node:
    inputs, outputs, operator, labels = [], [], "", None
    for number, value in _fields(content):
        if isinstance(value, int):
            continue
        if number == 1:
            inputs.append(_text(value))
        elif number == 2:
            outputs.append(_text(value))
        elif number == 4:
            operator = _text(value)
        elif number == 5:
            labels = _labels(value) or labels
    return Node(operator, tuple(inputs), tuple(outputs), labels)


def _labels(content: memoryview) -> Labels | None:
    """The classes in an attribute ``classlabels_...``; None if it is another attribute, or has
    none.
    """
    numbers: list[int] = []
    words: list[str] = []
    name = ""
    for number, value in _fields(content):
        if number == 1 and not isinstance(value, int):
            name = _text(value)
            if not name.startswith("classlabels_"):
                return None
        elif number == 8:
            numbers += [_signed(n) for n in ([value] if isinstance(value, int) else _packed(value))]
        elif number == 9 and not isinstance(value, int):
            words.append(_text(value))
    return (tuple(words) or tuple(numbers) or None) if name else None


def _fields(content: memoryview) -> Iterator[tuple[int, Value]]:
    """The fields of a message: number and value; those of fixed width have the value 0, nothing
    here needs them.
    """
    place, end = 0, len(content)
    while place < end:
        tag, place = _varint(content, place)
        number, wire = tag >> 3, tag & 7
        value: Value = 0
        if wire == 0:
            value, place = _varint(content, place)
        elif wire == 2:
            size, place = _varint(content, place)
            if size > end - place:
                raise _DamageError("is cut off")
            value = content[place : place + size]
            place += size
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise _DamageError("is no ONNX file")
        if number == 0 or place > end:
            raise _DamageError("is no ONNX file")
        yield number, value


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place after it."""
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise _DamageError("is no ONNX file")


def _packed(content: memoryview) -> Iterator[int]:
    place = 0
    while place < len(content):
        number, place = _varint(content, place)
        yield number


def _text(content: memoryview) -> str:
    return str(content, "utf-8")


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number
