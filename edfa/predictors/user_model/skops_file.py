"""A scikit-learn model as a skops file: types by name and arrays, no code.

skops builds an object only of types that are trusted. It trusts scikit-learn's public estimators
and numpy's functions of numbers; ``TRUSTED`` adds what fitted models hold besides. It is a list in
code: what a file asks for is never trusted because it asks. A trusted type may still hold damaged
content, which is what ``try_in_child`` is for.
"""

import io
import json
import sys
import zipfile
import zlib
from typing import Any

from edfa.artifacts import readable
from edfa.errors import MissingExtraError, UnreadableError
from edfa.reading import MEGABYTE, parse_json

__all__ = ["SKOPS_LIMIT", "TRUSTED", "pack", "unpack"]

SKOPS_LIMIT = 1024 * MEGABYTE
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
# How skops builds the parts of the models above. Bound methods and operators are none of them.
LOADERS = frozenset(
    "BytearrayNode BytesNode CachedNode ConstructorFromReduceNode DTypeNode "
    "DefaultDictNode DictNode FunctionNode "
    "JsonNode ListNode LossNode NdArrayNode ObjectNode PartialNode RandomGeneratorNode "
    "RandomStateNode SetNode "
    "SliceNode TreeNode TupleNode TypeNode".split()
)


def pack(model: Any) -> bytes | None:
    """A model as a skops file that ``unpack`` reads; None if it holds what skops cannot write or
    edfa does not trust.

    The same model gives the same bytes: skops names its parts by where they lie in memory, here
    they are numbered.
    """
    sio = _skops()
    try:
        content = sio.dumps(model)
        if set(sio.get_untrusted_types(data=content)) - set(TRUSTED):
            return None
    except (
        Exception
    ):  # skops raises whatever the parts of a model raise when they are asked for their state
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(parts[SCHEMA])
    if not _loaders(schema) <= LOADERS:
        return None
    names = _number(schema)
    numbered = {names[name]: part for name, part in parts.items() if name in names}
    return _zip(numbered | {SCHEMA: json.dumps(schema).encode()}, zipfile.ZIP_DEFLATED)


def unpack(content: bytes, name: str) -> Any:
    """The model in a skops file.

    UnreadableError that begins with ``name`` if the file is damaged, unpacks to more than a model
    has, or asks for a type that is not trusted; nothing of it is built then.
    """
    sio = _skops()
    parts = _unzip(content, name)
    with readable(name):
        schema = parse_json(parts[SCHEMA].decode("utf-8"), f"{name}: {SCHEMA}")
        if other := sorted(_loaders(schema) - LOADERS):
            raise UnreadableError(
                f"{name} asks for {other[0][:80]!r}, which no classifier needs; it is not read"
            )
    stored = _zip(parts, zipfile.ZIP_STORED)
    try:
        if other := sorted(set(sio.get_untrusted_types(data=stored)) - set(TRUSTED)):
            raise UnreadableError(
                f"{name} asks for {other[0][:120]}, which is not trusted; it is not read"
            )
        return sio.loads(stored, trusted=list(TRUSTED))
    except UnreadableError:
        raise
    except Exception as error:  # as above; MemoryError too: arrays are as large as the file says
        raise UnreadableError(
            f"{name} is damaged: {type(error).__name__}: {_line(error)}"
        ) from None


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


def _unzip(content: bytes, name: str) -> dict[str, bytes]:
    """The entries of a zip file, none of them larger than it says."""
    if len(content) > SKOPS_LIMIT:
        raise UnreadableError(
            f"{name} has {len(content):,} bytes; at most {SKOPS_LIMIT:,} are read"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            entries = file.infolist()
            _check_sizes(entries, len(content), name)
            parts = {}
            for entry in entries:
                with file.open(entry) as part:
                    parts[entry.filename] = part.read(entry.file_size)
                    if part.read(1):
                        raise UnreadableError(
                            f"{name}: {entry.filename[:80]!r} is larger than it says"
                        )
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
    ) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"{name} is no skops file, or is damaged: {_line(error)}") from None
    if len(parts) < len(entries):
        raise UnreadableError(f"{name} has two parts of one name")
    if SCHEMA not in parts:
        raise UnreadableError(f"{name} is no skops file: it has no {SCHEMA}")
    return parts


def _check_sizes(entries: list[zipfile.ZipInfo], packed: int, name: str) -> None:
    """Raise UnreadableError by what the entries say of themselves, before anything is unpacked."""
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES:
        raise UnreadableError(
            f"{name} has {len(entries):,} parts; at most {MOST_ENTRIES:,} are read"
        )
    if total > UNPACKED_LIMIT:
        raise UnreadableError(
            f"{name} unpacks to {total:,} bytes; at most {UNPACKED_LIMIT:,} are read"
        )
    if total > MOST_RATIO * packed:
        raise UnreadableError(
            f"{name} unpacks to {total / packed:,.0f} times its size; no model does that"
        )
    if any(
        entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries
    ):
        raise UnreadableError(f"{name} is compressed in another way than skops does")


def _zip(parts: dict[str, bytes], compression: int) -> bytes:
    """A zip file without dates."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as file:
        for name, part in parts.items():
            file.writestr(zipfile.ZipInfo(name), part, compression)
    return target.getvalue()


def _loaders(schema: Any) -> set[str]:
    """Every way of building that a schema asks for."""
    ways, left = set(), [schema]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                ways.add(str(value["__loader__"]))
            left += value.values()
        elif isinstance(value, list):
            left += value
    return ways


def _number(schema: Any) -> dict[str, str]:
    """Number the objects and files of a schema in the order in which they come; the new name of
    each file.
    """
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    left = [schema]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += reversed(value)
        if not isinstance(value, dict):
            continue
        if isinstance(value.get("__id__"), int):
            value["__id__"] = numbers.setdefault(value["__id__"], len(numbers) + 1)
        if "__loader__" in value and isinstance(value.get("file"), str):
            suffix = value["file"].rpartition(".")[2]
            value["file"] = names.setdefault(value["file"], f"{len(names) + 1}.{suffix}")
        left += reversed(value.values())
    return names


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
