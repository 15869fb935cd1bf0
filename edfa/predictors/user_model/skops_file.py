"""A scikit-learn model as a skops file: types by name and arrays, no code.

skops builds an object only of types that are trusted. It trusts scikit-learn's public estimators
and numpy's functions of numbers; ``TRUSTED`` adds what fitted models hold besides. It is a list in
code: what a file asks for is never trusted because it asks. A trusted type may still hold damaged
content: ``check_nodes`` looks at what native code would index by, and what it does not know is
tried in another process by ``try_in_child``.
"""

import io
import sys
import zipfile
import zlib
from typing import Any

from edfa.artifacts import readable
from edfa.errors import MissingExtraError, UnreadableError
from edfa.predictors.user_model.check_nodes import check_nodes
from edfa.reading import MEGABYTE, parse_json, short_message

UNPACKED_LIMIT = 2048 * MEGABYTE
MOST_ENTRIES = 200_000  # a forest has five for each tree
MOST_RATIO = 200  # of the unpacked to the packed size; models have 4 to 20
SCHEMA = "schema.json"
NOT_NEEDED = tuple(
    f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")
)
TRUSTED = (
    "numpy.dtype",  # encoders
    "numpy.number",  # make_column_selector(dtype_include=np.number)
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.tree._tree.Tree",  # forests and trees
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    # HistGradientBoosting with categories: a FunctionTransformer of partial(check_array, ...).
    # Whatever function a partial holds has to be trusted too.
    "functools.partial",
    "sklearn.utils.validation.check_array",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.utils._bunch.Bunch",  # VotingClassifier and StackingClassifier
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    # The last step of a Pipeline.
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "collections.OrderedDict",
    "collections.defaultdict",
)
# Modules of which nothing is indexed in native code that ``check_nodes`` has not looked at. What is
# from elsewhere (neighbours' trees, sparse matrices, boosters) is read in another process first.
CHECKED = (
    "builtins.",
    "collections.",
    "functools.",
    "numpy.",
    "sklearn._loss.",
    "sklearn.calibration.",
    "sklearn.compose.",
    "sklearn.discriminant_analysis.",
    "sklearn.ensemble.",
    "sklearn.impute.",
    "sklearn.linear_model.",
    "sklearn.naive_bayes.",
    "sklearn.neural_network.",
    "sklearn.pipeline.",
    "sklearn.preprocessing.",
    "sklearn.svm.",
    "sklearn.tree.",
    "sklearn.utils.",
)
# How skops builds the parts of the models above. Bound methods and operators are none of them.
LOADERS = frozenset(
    "BytearrayNode BytesNode CachedNode ConstructorFromReduceNode DTypeNode "
    "DefaultDictNode DictNode FunctionNode "
    "JsonNode ListNode LossNode NdArrayNode ObjectNode PartialNode RandomGeneratorNode "
    "RandomStateNode SetNode "
    "SliceNode TreeNode TupleNode TypeNode".split()
)


def pack(model: Any) -> bytes | None:
    """A model as the content of a skops file.

    Parameters
    ----------
    model
        A fitted estimator of scikit-learn, or a Pipeline.

    Returns
    -------
    What ``unpack`` reads; None if the model holds what skops cannot write or edfa does not trust: a
    function, a class of the user's own.

    Raises
    ------
    MissingExtraError
        If skops is not installed.
    """
    sio = _skops()
    try:
        content: bytes = sio.dumps(model, compression=zipfile.ZIP_DEFLATED)
        _read_nodes(content, "the model")
        return None if set(sio.get_untrusted_types(data=content)) - set(TRUSTED) else content
    except Exception:  # skops raises whatever a model's parts raise when asked for their state
        return None


def needs_trial(content: bytes, name: str) -> bool:
    """Whether a skops file is to be read in a process of its own first.

    Parameters
    ----------
    content, name
        The file, and what errors call it.

    Returns
    -------
    True if it has a part that ``check_nodes`` cannot look through, such as a booster or a sparse
    matrix.

    Raises
    ------
    UnreadableError
        As for ``unpack``, by the sizes of its parts and the ways of building that it asks for.
    """
    modules = {
        str(node["__module__"]) for node in _read_nodes(content, name) if "__module__" in node
    }
    return not all(f"{module}.".startswith(CHECKED) for module in modules)


def unpack(content: bytes, name: str) -> Any:
    """The model in a skops file.

    Parameters
    ----------
    content, name
        The file, and what errors call it.

    Returns
    -------
    The model, through which ``check_nodes`` has looked.

    Raises
    ------
    UnreadableError
        If the file is damaged, unpacks to more than a model has, or asks for a type that is not
        trusted; nothing of it is built then.
    MissingExtraError
        If skops is not installed.
    """
    sio = _skops()
    _read_nodes(content, name)
    try:
        if other := sorted(set(sio.get_untrusted_types(data=content)) - set(TRUSTED)):
            raise UnreadableError(f"it asks for {other[0][:120]}, which is not trusted")
        model = sio.loads(content, trusted=list(TRUSTED))
        check_nodes(model)
    except Exception as error:  # as above; MemoryError too: arrays are as large as the file says
        kind = "" if isinstance(error, UnreadableError) else f"{type(error).__name__}: "
        raise UnreadableError(f"{name} is damaged: {kind}{short_message(error)}") from None
    return model


def _skops() -> Any:
    """skops, without torch, dask and cupy.

    skops lists scikit-learn's estimators when it is imported, and with them every module of it, of
    which some import these for nothing: two seconds. They are named as absent while it looks.
    """
    absent = [name for name in NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError("a scikit-learn model in a file", "own") from None
    finally:
        for name in absent:
            sys.modules.pop(name, None)
    return skops.io


def _read_nodes(content: bytes, name: str) -> list[dict[str, Any]]:
    """Every mapping in the schema of a skops file; the schema says how each part is built.

    Parameters
    ----------
    content, name
        The file, and what errors call it.

    Raises
    ------
    UnreadableError
        If its sizes or its ways of building are not those of a model.
    """
    try:
        with readable(name), zipfile.ZipFile(io.BytesIO(content)) as file:
            _check_sizes(file.infolist(), len(content), name)
            schema = parse_json(file.read(SCHEMA).decode("utf-8"), f"{name}: {SCHEMA}")
    except (zipfile.BadZipFile, zlib.error, OSError) as error:
        raise UnreadableError(
            f"{name} is no skops file, or is damaged: {short_message(error)}"
        ) from None
    nodes, left = [], [schema]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            nodes.append(value)
            left += value.values()
        elif isinstance(value, list):
            left += value
    ways = {str(node["__loader__"]) for node in nodes if "__loader__" in node}
    if other := sorted(ways - LOADERS):
        raise UnreadableError(
            f"{name} asks for {other[0][:80]!r}, which no classifier needs; it is not read"
        )
    return nodes


def _check_sizes(entries: list[zipfile.ZipInfo], packed: int, name: str) -> None:
    """Check what the entries of an archive say of themselves, before anything is unpacked.

    No more than that is ever read of them.

    Parameters
    ----------
    entries
        The entries of the archive.
    packed
        The size of the whole archive in bytes.
    name
        What errors call it.
    """
    total = sum(entry.file_size for entry in entries)
    plain = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    checks = {
        f"has {len(entries):,} parts; at most {MOST_ENTRIES:,} are read": (
            len(entries) <= MOST_ENTRIES
        ),
        f"unpacks to {total:,} bytes; at most {UNPACKED_LIMIT:,} are read": total <= UNPACKED_LIMIT,
        f"unpacks to {total / packed:,.0f} times its size; no model does that": (
            total <= MOST_RATIO * packed
        ),
        "is compressed in another way than skops does": all(
            entry.compress_type in plain for entry in entries
        ),
        "has two parts of one name": len({entry.filename for entry in entries}) == len(entries),
    }
    for damage, holds in checks.items():
        if not holds:
            raise UnreadableError(f"{name} {damage}")
