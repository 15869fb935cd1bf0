"""The folder of a saved advisor as bytes: its manifest, its parts, and the table of training
people.

Every file is read once and checked against its hash; what was checked is what is parsed afterwards.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from edfa.artifacts import LIMIT, MANIFEST, Folder, read_files, readable
from edfa.errors import UnreadableError, did_you_mean
from edfa.reading import parse_json, read_text
from edfa.writing import read_settled

__all__ = [
    "FORMAT",
    "KIND",
    "finish_manifest",
    "people_from_parquet",
    "people_to_parquet",
    "read_saved",
]

FORMAT = 1
KIND = "Advisor"
SEAL = "manifest_sha256"
NEEDED = (
    "schema.json",
    "encoder.json",
    "blanket.json",
    "rules.json",
    "train.parquet",
    "calibration.safetensors",
    "model/manifest.json",
)


def finish_manifest(manifest: Mapping[str, Any], parts: Mapping[str, bytes]) -> str:
    """The text of a manifest, with the hashes of all parts and of itself."""
    hashes = {name: hashlib.sha256(parts[name]).hexdigest() for name in sorted(parts)}
    whole = {**manifest, "sha256": hashes}
    return json.dumps(whole | {SEAL: _seal(whole)}, indent=1, ensure_ascii=False, allow_nan=False)


def _seal(manifest: Mapping[str, Any]) -> str:
    """The hash of a manifest without its own; a byte that is changed by accident is noticed."""
    rest = {name: value for name, value in manifest.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_saved(root: Path) -> tuple[dict[str, Any], Folder]:
    """The manifest of a saved advisor and its parts, each checked against its hash.

    Files that the manifest does not name (such as ``monitor.json``) are left alone.
    """
    return read_settled(root, lambda: _read(root))


def _read(root: Path) -> tuple[dict[str, Any], Folder]:
    if not root.is_dir():
        beside = (
            [p.name for p in root.absolute().parent.iterdir()]
            if root.absolute().parent.is_dir()
            else []
        )
        raise UnreadableError(f"there is no folder {root}{did_you_mean(root.name, beside)}")
    manifest = _check_manifest(root)
    hashes = manifest["sha256"]
    for name in NEEDED:
        if name not in hashes:
            raise UnreadableError(f"{root}: the part {name} is missing")
    files = read_files(root, list(hashes))
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != hashes[name]:
            raise UnreadableError(f"{root}: the part {name} has been changed since it was written")
    return manifest, Folder(str(root), files)


def _check_manifest(root: Path) -> dict[str, Any]:
    try:
        manifest: Any = parse_json(read_text(root / MANIFEST), MANIFEST)
        written, kind, hashes = manifest["format"], manifest["kind"], manifest["sha256"]
    except (UnreadableError, KeyError, TypeError):
        raise UnreadableError(
            f"{root} is not a saved advisor: its {MANIFEST} is missing or damaged"
        ) from None
    if kind != KIND:
        raise UnreadableError(f"{root} holds a {kind}, not an {KIND.lower()}")
    if type(written) is not int or written != FORMAT:
        raise UnreadableError(
            f"{root} was written by another edfa (format {written}, this one reads {FORMAT})"
        )
    if not isinstance(hashes, dict) or not all(isinstance(value, str) for value in hashes.values()):
        raise UnreadableError(f"{root} is not a saved advisor: its {MANIFEST} has no hashes")
    if manifest.get(SEAL) != _seal(manifest):
        raise UnreadableError(f"{root}: its {MANIFEST} has been changed since it was written")
    return dict(manifest)


def people_to_parquet(frame: pd.DataFrame) -> bytes:
    """The rows of a table as Parquet."""
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def people_from_parquet(content: bytes, name: str, limit: int = LIMIT) -> pd.DataFrame:
    """The rows that ``people_to_parquet`` wrote; UnreadableError if they would take more than
    ``limit`` bytes.

    The size is worked out before any memory is taken for it: a small file may unpack to any number
    of rows, and a word that is written once may stand in every one of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with readable(name):
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
            columns, rows = file.schema_arrow, file.metadata.num_rows
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            _bound(
                max(sum(group.total_byte_size for group in groups), rows * len(columns) * 8),
                name,
                limit,
            )
            if any(pa.types.is_nested(field.type) for field in columns):
                raise UnreadableError(
                    f"{name} is damaged: its columns hold more than one value a row"
                )
            if (
                sum(group.total_byte_size * group.num_rows for group in groups) > limit
            ):  # if one word fills them all
                words = [
                    f.name
                    for f in columns
                    if pa.types.is_large_string(f.type) or pa.types.is_string(f.type)
                ]
                coded = pq.read_table(
                    pa.BufferReader(content), columns=words, read_dictionary=words
                )
                _bound(sum(_expanded(coded[word]) for word in words), name, limit)
            return pd.read_parquet(io.BytesIO(content))
        except (pa.ArrowException, OSError, MemoryError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnreadableError(f"{name} is damaged: {first}") from None


def _bound(size: int, name: str, limit: int) -> None:
    if size > limit:
        raise UnreadableError(f"{name} unpacks to {size:,} bytes; at most {limit:,} are read")


def _expanded(column: Any) -> int:
    """The bytes that a column of words takes once every row has its own, at least."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for chunk in column.chunks:
        if not isinstance(chunk, pa.DictionaryArray):
            size += chunk.nbytes
            continue
        counts = pc.value_counts(chunk.indices)
        lengths = pc.binary_length(chunk.dictionary.cast(pa.large_string()))
        used = counts.field("values")
        each = pc.multiply(
            lengths.take(used.cast(pa.int64())).cast(pa.int64()), counts.field("counts")
        )
        size += pc.sum(each).as_py() or 0
    return size
