"""What an ONNX file says before it is run: whether it names other files, and the classes of its
label.

An ONNX file is a protocol buffer. Only the few fields that are needed are declared here; protobuf,
which onnxruntime brings along, passes over the others.
"""

from collections.abc import Iterator
from typing import Any

from edfa.errors import MissingExtraError, UnreadableError
from edfa.reading import RESOURCES

__all__ = ["find_classes", "read_nodes"]

# The fields of each message of ONNX that lead to tensors and nodes, or are needed themselves, with
# their numbers. All are declared as repeated: then nothing hides behind a second mention.
FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "Model": {"graph": (7, "Graph"), "training": (20, "Training"), "function": (25, "Function")},
    "Training": {"first": (1, "Graph"), "step": (2, "Graph")},
    "Graph": {"node": (1, "Node"), "tensor": (5, "Tensor"), "sparse": (15, "Sparse")},
    "Function": {"node": (7, "Node"), "attribute": (11, "Attribute")},
    "Node": {
        "input": (1, "bytes"),
        "output": (2, "bytes"),
        "operator": (4, "bytes"),
        "attribute": (5, "Attribute"),
    },
    "Attribute": {
        "name": (1, "bytes"),
        "tensor": (5, "Tensor"),
        "graph": (6, "Graph"),
        "number": (8, "int64"),
        "word": (9, "bytes"),
        "tensors": (10, "Tensor"),
        "graphs": (11, "Graph"),
        "sparse": (22, "Sparse"),
        "sparses": (23, "Sparse"),
    },
    "Sparse": {"values": (1, "Tensor"), "indices": (2, "Tensor")},
    "Tensor": {"external": (13, "bytes"), "location": (14, "int64")},
}
SAME_LABEL = (b"Identity", b"Cast", b"Reshape")  # nodes that hand a label on
Labels = tuple[int, ...] | tuple[str, ...]


def read_nodes(content: bytes, name: str) -> list[Any]:
    """The nodes of an ONNX file's main graph.

    Parameters
    ----------
    content, name
        The file, and what errors call it.

    Returns
    -------
    Messages of protobuf with the fields of ``"Node"`` in ``FIELDS``.

    Raises
    ------
    UnreadableError
        If the file is none, or keeps numbers in other files: reading those would be reading
        whatever file somebody names.
    MissingExtraError
        If protobuf is not installed; onnxruntime brings it along.
    """
    model = RESOURCES.get("ONNX messages", _model_class)()
    try:
        model.ParseFromString(content)
    except Exception:  # protobuf's errors have no base that is here without it
        raise UnreadableError(f"{name} is no ONNX file") from None
    for message in _within(model):
        if message.DESCRIPTOR.name == "Tensor" and (message.external or any(message.location)):
            raise UnreadableError(f"{name} keeps numbers in other files; save it as one file")
    return [node for graph in model.graph for node in graph.node]


def find_classes(nodes: list[Any], output: str) -> Labels | None:
    """The classes that the node behind an output is said to know.

    Nodes further inside may number the classes from 0, so that only the node that writes the output
    counts.

    Parameters
    ----------
    nodes
        The nodes of the main graph.
    output
        The name of the label of the graph, or of its probabilities by class (a ZipMap).

    Returns
    -------
    Whole numbers or words, in the order of the probabilities; None if the node does not say.
    """
    by_output = {out: node for node in nodes for out in node.output}
    wanted = output.encode()
    for _ in range(len(nodes)):
        node = by_output.get(wanted)
        if node is None or not node.operator or node.operator[0] not in SAME_LABEL:
            return None if node is None else _labels(node)
        wanted = node.input[0] if node.input else b""
    return None


def _labels(node: Any) -> Labels | None:
    """The classes in an attribute of a node; None if it has no such attribute."""
    for attribute in node.attribute:
        if attribute.name and attribute.name[0].startswith(b"classlabels_"):
            words = tuple(word.decode("utf-8", "replace") for word in attribute.word)
            if labels := words or tuple(attribute.number):
                return labels
    return None


def _within(message: Any) -> Iterator[Any]:
    """A message and all those within it."""
    yield message
    for field, values in message.ListFields():
        if field.message_type is not None:
            for value in values:
                yield from _within(value)


def _model_class() -> Any:
    """The class of ONNX's outermost message, with the fields above."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingExtraError("an ONNX model", "own") from None
    file = descriptor_pb2.FileDescriptorProto(name="edfa_onnx.proto", package="edfa_onnx")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in FIELDS.items():
        declared = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            added = declared.field.add(name=field, number=number, label=kinds.LABEL_REPEATED)
            if kind in FIELDS:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".edfa_onnx.{kind}"
            else:
                added.type = kinds.TYPE_BYTES if kind == "bytes" else kinds.TYPE_INT64
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("edfa_onnx.Model"))
