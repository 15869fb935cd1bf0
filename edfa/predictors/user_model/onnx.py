"""A model in an ONNX file, run by onnxruntime.

An ONNX file is a protocol buffer. What it says before it is run is read first: whether it names
other files, which is refused, and the classes of its label. Only the few fields that are needed are
declared here; protobuf, which onnxruntime brings along, passes over the others.

Nothing is converted here: what a converter made of a model is another model. It computes in
float32, and a HistGradientBoostingClassifier with categories is converted silently wrong by
skl2onnx (20 to 40 % of decisions); ask ``compare_answers`` about rows that neither was fitted on.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from edfa.errors import MissingExtraError, ModelError, UnreadableError
from edfa.reading import MEGABYTE, RESOURCES, read_bytes, short_message
from edfa.typing import AnyArray, Float64Array

ONNX_LIMIT = 1024 * MEGABYTE
NUMBERS = {  # numpy's types of the graph's inputs
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
FLOATS = ("tensor(float)", "tensor(double)")
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
NAMES = ("probabilities", "probability", "output_probability")  # what converters call them


class OnnxModel:
    """A classifier in an ONNX file; asked like one of scikit-learn.

    The graph has one input of numbers, (people, columns), or one input for each column, (people,
    1), of numbers or words. Its answer is a tensor of probabilities, or a list of dictionaries by
    class (a ZipMap).

    Parameters
    ----------
    content
        The file.
    name
        What errors call it.

    Attributes
    ----------
    content : bytes
        The file.
    classes_ : ndarray
        The classes in the order of the probabilities, where the graph says them; else there is no
        such attribute.
    feature_names_in_ : ndarray
        The names of the inputs, where each column has its own; else there is no such attribute.
    """

    def __init__(self, content: bytes, name: str = "the ONNX model") -> None:
        nodes = _read_nodes(content, name)
        self.content = content
        self._session = _open_session(content, name)
        self._inputs = self._session.get_inputs()
        outputs = self._session.get_outputs()
        self._output = _probabilities(outputs)
        self._matrix = len(self._inputs) == 1
        for given in self._inputs:
            self._check_input(given)
        if not self._matrix:
            self.feature_names_in_ = np.array([given.name for given in self._inputs], dtype=object)
        classes = _find_classes(nodes, self._output.name if self._by_class else _label(outputs))
        if classes is not None:
            self.classes_ = np.array(
                classes, dtype=object if isinstance(classes[0], str) else np.int64
            )

    @classmethod
    def open(cls, source: str | Path | bytes) -> Self:
        """A model from a file, or from its content.

        Raises
        ------
        UnreadableError
            If the file is no ONNX file, too large, or keeps numbers in other files.
        ModelError
            If its graph has other inputs than people's columns, or no probabilities.
        MissingExtraError
            If onnxruntime is not installed.
        """
        if isinstance(source, bytes):
            return cls(source)
        return cls(read_bytes(source, ONNX_LIMIT), Path(source).name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes]]:
        return type(self), (self.content,)

    def predict_proba(self, people: Any) -> Float64Array:
        """Ask the graph about complete people.

        Parameters
        ----------
        people
            A frame with a column for each input, or a matrix (people, columns). Columns go to the
            inputs of their names; where the names are others, to the inputs in order.

        Returns
        -------
        Probabilities (people, classes).

        Raises
        ------
        ModelError
            If there is another number of columns, or a value that the input cannot hold.
        """
        frame = people if isinstance(people, pd.DataFrame) else pd.DataFrame(np.asarray(people))
        answer = self._session.run([self._output.name], self._feed(frame))[0]
        if not self._by_class:
            return np.asarray(answer, dtype=float)
        labels = getattr(self, "classes_", sorted(answer[0]) if answer else ())
        return np.array([[row[label] for label in labels] for row in answer], dtype=float)

    @property
    def _by_class(self) -> bool:
        """Whether the answer is a list of dictionaries from class to probability."""
        return str(self._output.type).startswith("seq(map")

    def _check_input(self, given: Any) -> None:
        """Raise ModelError for an input that is neither a column nor a matrix of numbers."""
        width = given.shape[1] if len(given.shape) == 2 else None
        known = given.type in NUMBERS or (given.type == "tensor(string)" and not self._matrix)
        if (
            not known
            or len(given.shape) != 2
            or (not self._matrix and isinstance(width, int) and width != 1)
        ):
            raise ModelError(
                f"the graph's input {given.name!r} is {given.type} of {given.shape}; one "
                "input of numbers (people, "
                "columns) is needed, or one of (people, 1) for each column"
            )

    def _feed(self, frame: pd.DataFrame) -> dict[str, AnyArray]:
        """The columns of a frame by the inputs that they go to."""
        inputs = self._inputs
        wanted = inputs[0].shape[1] if self._matrix else len(inputs)
        if isinstance(wanted, int) and wanted != frame.shape[1]:
            raise ModelError(f"the graph wants {wanted} columns, not {frame.shape[1]}")
        if self._matrix:
            columns = [_column(column, inputs[0].type) for _, column in frame.items()]
            return {inputs[0].name: np.concatenate(columns, axis=1)}
        if {given.name for given in inputs} == set(frame.columns):
            frame = frame[[given.name for given in inputs]]
        return {
            given.name: _column(column, given.type)
            for given, (_, column) in zip(inputs, frame.items(), strict=True)
        }


def _open_session(content: bytes, name: str) -> Any:
    """A session of one thread that writes nothing to the screen.

    Parameters
    ----------
    content, name
        The file, and what errors call it.

    Raises
    ------
    UnreadableError
        If the file cannot be run.
    MissingExtraError
        If onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("an ONNX model", "own") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions have no common base
        raise UnreadableError(f"{name} cannot be run: {short_message(error)}") from None


def _probabilities(outputs: Sequence[Any]) -> Any:
    """The output that has the probabilities.

    Parameters
    ----------
    outputs
        The outputs of a graph, as onnxruntime describes them.

    Returns
    -------
    The only output of floats or of dictionaries by class; of several, the one with a name that
    converters use.

    Raises
    ------
    ModelError
        If there is none, or which of several it is cannot be told.
    """
    able = [out for out in outputs if out.type in FLOATS or str(out.type).startswith("seq(map")]
    named = [out for out in able if out.name in NAMES]
    chosen = named if len(named) == 1 else able
    if len(chosen) != 1:
        has = ", ".join(f"{out.name} ({out.type})" for out in outputs)
        many = "several that may be them" if able else "none"
        raise ModelError(
            f"a graph's output must be probabilities; of {has} there is {many}; from "
            "scikit-learn, convert with "
            "options={'zipmap': False}"
        )
    return chosen[0]


def _label(outputs: Sequence[Any]) -> str:
    """The name of the output that has the decided class; empty if there is none."""
    labels = [str(out.name) for out in outputs if out.type in ("tensor(string)", "tensor(int64)")]
    return labels[0] if len(labels) == 1 else ""


def _column(column: "pd.Series[Any]", kind: str) -> AnyArray:
    """A column as the graph's input wants it.

    Parameters
    ----------
    column
        The values of a column, (people,).
    kind
        The type of the input, as onnxruntime writes it.

    Returns
    -------
    An array (people, 1).

    Raises
    ------
    ModelError
        If something would be lost: a gap among words, a fraction in an input of whole numbers.
    """
    if kind == "tensor(string)":
        if column.isna().any():
            raise ModelError(
                f"{column.name!r} has a gap, and the graph's input of words has no word for it"
            )
        return column.astype(str).to_numpy(dtype=object).reshape(-1, 1)
    try:
        values = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise ModelError(
            f"{column.name!r} has values that are no numbers, which the graph wants"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        made: AnyArray = values.astype(NUMBERS[kind])
    if made.dtype.kind != "f" and not np.array_equal(made.astype(float), values):
        raise ModelError(f"{column.name!r} has gaps or fractions, and the graph wants {kind}")
    return made.reshape(-1, 1)


def _read_nodes(content: bytes, name: str) -> list[Any]:
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


def _find_classes(nodes: list[Any], output: str) -> Labels | None:
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
