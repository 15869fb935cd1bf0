"""A folder of parts with a manifest: what kind of thing it is, what is said of it, and the hash of
every part.

``write_parts`` writes a fitted model and ``read_parts`` reads it; ``write_manifest`` and
``read_folder`` are what they, and saved advisors, are made of. Every file is read once, no more of
it than ``LIMIT``, and what was checked is what is parsed: a ``Folder`` holds it in memory. Reading
runs no code from what is read, and whatever is damaged is one error (``readable``).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from edfa.errors import MissingExtraError, ModelError, UnreadableError, UnwritableError
from edfa.reading import MEGABYTE, first_line, parse_json, read_bytes
from edfa.typing import AnyArray
from edfa.writing import list_files, read_settled, replace_folder

FORMAT = 1
MANIFEST = "manifest.json"
SEAL = "manifest_sha256"  # the entry that has the hash of all others
MAX_FOLDER_BYTES = 4096 * MEGABYTE
"""The largest size of all parts of a folder together, in bytes."""
MANIFEST_LIMIT = 64 * MEGABYTE
MOST_PARTS = 100_000


@dataclass(frozen=True)
class Folder:
    """A folder that was read into memory.

    Parameters
    ----------
    name
        What messages call it.
    files
        The content of its files, by their path in it.

    Examples
    --------
    >>> folder = Folder("advisor", {"model/manifest.json": b"{}"})
    >>> folder.under("model").files
    {'manifest.json': b'{}'}
    """

    name: str
    files: Mapping[str, bytes]

    def under(self, name: str) -> "Folder":
        """A folder in this one; one without files if there is none of this name."""
        start = f"{name}/"
        files = {
            path.removeprefix(start): content
            for path, content in self.files.items()
            if path.startswith(start)
        }
        return Folder(f"{self.name}/{name}", files)


def folder_name(folder: str | Path | Folder) -> str:
    """What messages call a folder."""
    return folder.name if isinstance(folder, Folder) else str(folder)


def write_parts(
    folder: str | Path, kind: str, settings: Mapping[str, Any], parts: Mapping[str, bytes]
) -> None:
    """Write a folder of parts, such as a fitted model.

    Parameters
    ----------
    folder
        Where to write. An existing folder is replaced when the new one is complete
        (``replace_folder``), and only if it is empty or holds something of the same kind.
    kind
        The class name that ``read_parts`` must be asked for.
    settings
        Settings that JSON can hold.
    parts
        The content of each file, by its name.

    Raises
    ------
    UnwritableError
        If the place cannot be written, or holds something else.
    """
    check_replaceable(folder, kind)
    with replace_folder(Path(folder)) as partial:
        check_replaceable(folder, kind, locked=True)
        for name, content in parts.items():
            (partial / name).write_bytes(content)
        write_manifest(partial, kind, {"settings": dict(settings)})


def write_manifest(folder: Path, kind: str, facts: Mapping[str, Any]) -> None:
    """Write the manifest of all files that are in a folder.

    Parameters
    ----------
    folder
        The folder.
    kind
        What the folder holds.
    facts
        Further entries of the manifest, which JSON can hold.
    """
    parts = {name: (folder / name).read_bytes() for name in list_files(folder)}
    text = make_manifest({"format": FORMAT, "kind": kind, **facts}, parts)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def make_manifest(facts: Mapping[str, Any], parts: Mapping[str, bytes]) -> str:
    """The text of a manifest, with the hashes of all parts and of itself."""
    hashes = {name: hashlib.sha256(parts[name]).hexdigest() for name in sorted(parts)}
    whole = {**facts, "sha256": hashes}
    return json.dumps(whole | {SEAL: seal(whole)}, indent=1, ensure_ascii=False, allow_nan=False)


def seal(manifest: Mapping[str, Any]) -> str:
    """The hash of a manifest without its own; a byte that is changed by accident is noticed."""
    rest = {name: value for name, value in manifest.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_replaceable(folder: str | Path, kind: str, *, locked: bool = False) -> None:
    """Check that writing to ``folder`` deletes nothing but a saved thing of the same kind.

    Parameters
    ----------
    folder
        The place, which need not be there.
    kind
        The kind of thing that is to be written.
    locked
        Whether the caller holds the folder's lock, as within ``replace_folder``: no other process
        writes there then.

    Raises
    ------
    UnwritableError
        If the place holds anything else.
    """
    place = Path(folder)
    replaceable = (
        _is_replaceable(place, kind)
        if locked
        else read_settled(place, lambda: _is_replaceable(place, kind))
    )
    if not replaceable:
        name = "advisor" if kind == "Advisor" else kind
        raise UnwritableError(
            f"{place} is there already and holds no {name}; choose another folder"
        )


def _is_replaceable(place: Path, kind: str) -> bool:
    with suppress(UnreadableError):
        if _manifest(read_bytes(place / MANIFEST, MANIFEST_LIMIT)).get("kind") == kind:
            return True
    return not place.exists() or (place.is_dir() and not any(place.iterdir()))


def read_parts(folder: str | Path | Folder, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read what ``write_parts`` wrote.

    Parameters
    ----------
    folder
        The folder, or one in memory.
    kind
        The class name that it was written with.

    Returns
    -------
    tuple[dict[str, Any], dict[str, bytes]]
        The settings, and the content of each part by file name, checked against its hash.

    Raises
    ------
    UnreadableError
        If it holds something else, is damaged, or is larger than ``LIMIT``.
    """
    manifest, parts = read_folder(folder, kind)
    with readable(parts.name):
        return dict(manifest["settings"]), dict(parts.files)


@contextmanager
def open_parts(
    folder: str | Path | Folder, kind: str
) -> Iterator[tuple[dict[str, Any], dict[str, bytes]]]:
    """Give what ``read_parts`` reads to a block that makes something of it.

    Raises
    ------
    UnreadableError
        As ``read_parts`` does, or if the block stumbles over what was read (see ``readable``).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_parts(f"{place}/model", "Model", {"seed": 3}, {"words": b"yes no"})
    ...     with open_parts(f"{place}/model", "Model") as (settings, parts):
    ...         settings["seed"], parts["words"].split()
    (3, [b'yes', b'no'])
    """
    settings, parts = read_parts(folder, kind)
    with readable(folder_name(folder)):
        yield settings, parts


def read_folder(folder: str | Path | Folder, kind: str) -> tuple[dict[str, Any], Folder]:
    """Read a folder with a manifest.

    Parameters
    ----------
    folder
        The folder, or one in memory.
    kind
        The kind of thing that it must hold.

    Returns
    -------
    tuple[dict[str, Any], Folder]
        The manifest, and the parts that it names, each checked against its hash; other files are
        left alone.

    Raises
    ------
    UnreadableError
        If it holds something else, is damaged, or is larger than ``LIMIT``.
    """
    name = folder_name(folder)
    if isinstance(folder, Folder):
        files = folder.files
        manifest = _check_manifest(name, files.get(MANIFEST, b""), kind)
    else:
        manifest, files = read_settled(folder, lambda: _read_place(Path(folder), kind))
    for part, expected in manifest["sha256"].items():
        if part not in files:
            raise UnreadableError(f"{name}: the part {part} is missing")
        if hashlib.sha256(files[part]).hexdigest() != expected:
            raise UnreadableError(f"{name}: the part {part} has been changed since it was written")
    return manifest, Folder(name, {part: files[part] for part in manifest["sha256"]})


def _read_place(place: Path, kind: str) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    try:
        content = read_bytes(place / MANIFEST, MANIFEST_LIMIT)
    except UnreadableError:
        content = b""
    manifest = _check_manifest(str(place), content, kind)
    return manifest, read_files(place, list(manifest["sha256"]))


def _check_manifest(name: str, content: bytes, kind: str) -> dict[str, Any]:
    """A manifest, if it is one of this kind."""
    noun = "advisor" if kind == "Advisor" else "model"
    try:
        manifest = _manifest(content)
        written, written_kind, hashes = (manifest[n] for n in ("format", "kind", "sha256"))
    except (UnreadableError, KeyError):
        raise UnreadableError(
            f"{name} is not a saved {noun}: its {MANIFEST} is missing or damaged"
        ) from None
    if written_kind != kind:
        wanted = f"an {noun}" if kind == "Advisor" else f"a {kind}"
        raise UnreadableError(f"{name} holds a {written_kind}, not {wanted}")
    if type(written) is not int or written != FORMAT:
        raise UnreadableError(
            f"{name} was written by another edfa (format {written}, this one reads {FORMAT})"
        )
    if not isinstance(hashes, dict) or not all(isinstance(value, str) for value in hashes.values()):
        raise UnreadableError(f"{name} is not a saved {noun}: its {MANIFEST} has no hashes")
    if manifest.get(SEAL) != seal(manifest):
        raise UnreadableError(f"{name}: its {MANIFEST} has been changed since it was written")
    return manifest


def read_files(place: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read files of a folder, each once.

    Parameters
    ----------
    place
        The folder.
    names
        Paths in the folder, relative and without ``..``.

    Returns
    -------
    dict[str, bytes]
        The content of each file by its path.

    Raises
    ------
    UnreadableError
        If a file is missing, a path leads out of the folder, or there is more than ``LIMIT``.
    """
    files: dict[str, bytes] = {}
    left = MAX_FOLDER_BYTES
    if len(names) > MOST_PARTS:
        raise UnreadableError(f"{place}: {len(names):,} parts are too many")
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or str(path) != name or "\\" in name:
            raise UnreadableError(
                f"{place}: {name!r} is no name of a part"
            )  # it lies in the folder, whatever is said
        try:
            files[name] = read_bytes(place / name, left)
        except UnreadableError as error:
            raise UnreadableError(
                f"{place}: the part {name} is missing or has been changed ({error})"
            ) from None
        left -= len(files[name])
    return files


def _manifest(content: bytes) -> dict[str, Any]:
    try:
        manifest = parse_json(content.decode("utf-8"), MANIFEST)
    except UnicodeDecodeError:
        raise UnreadableError(f"{MANIFEST} is not UTF-8") from None
    if not isinstance(manifest, dict):
        raise UnreadableError(f"{MANIFEST} is no JSON object")
    return manifest


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Whatever a block stumbles over in what it reads, as UnreadableError: ``name`` is damaged.

    Examples
    --------
    >>> with readable("model"):
    ...     {}["weights"]
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: model is damaged: 'weights' is missing
    """
    try:
        yield
    except (UnreadableError, MissingExtraError, ModelError):
        raise
    except KeyError as error:
        raise UnreadableError(f"{name} is damaged: {error} is missing") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
        EOFError,
    ) as error:
        raise UnreadableError(f"{name} is damaged: {first_line(error)}") from None


def save_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Write named arrays as the content of a safetensors file; ``load_arrays`` reads it back.

    A list or a mapping of arrays is written under its name, a dot, and the position or key of each.

    safetensors writes an array's memory as it lies, so that arrays in Fortran order or with gaps
    between their rows would come back with their values in other places. They are copied first.

    Examples
    --------
    >>> rows = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
    >>> load_arrays(save_arrays({"rows": rows}), "rows")["rows"].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    >>> sorted(load_arrays(save_arrays({"knots": [rows[0], rows[1]]}), "knots"))
    ['knots.0', 'knots.1']
    """
    from safetensors.numpy import save

    flat: dict[str, AnyArray] = {}
    for name, value in arrays.items():
        if isinstance(value, list | tuple):
            value = dict(enumerate(value))
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": array for key, array in value.items()}
        else:
            flat[name] = value
    content: bytes = save({name: np.asarray(array, order="C") for name, array in flat.items()})
    return content


def load_arrays(content: bytes, name: str) -> dict[str, AnyArray]:
    """The arrays of a safetensors file; UnreadableError that begins with ``name`` if it is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with readable(name):
        try:
            arrays: dict[str, AnyArray] = load(content)
        except (SafetensorError, OSError) as error:
            raise UnreadableError(f"{name} is damaged: {error}") from None
    return arrays


def check_arrays(
    arrays: Mapping[str, AnyArray], expected: Mapping[str, tuple[Any, ...]], name: str
) -> None:
    """Check arrays that were read from a file.

    Parameters
    ----------
    arrays
        Arrays by name, as ``load_arrays`` reads them.
    expected
        For each array that must be there, by name: the kinds of numbers (numpy's letters, such as
        "f" or "iu") and then the shape, None where any size will do.
    name
        What is read, with which an error message begins.

    Raises
    ------
    UnreadableError
        If an array is missing, of another kind or shape, or has NaN or infinities.

    Examples
    --------
    >>> check_arrays({"prior": np.zeros(3)}, {"prior": ("f", 2)}, "model")
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: model is damaged: 'prior' is float64 of shape (3,), not f of (2,)
    """
    for array_name, (kinds, *shape) in expected.items():
        if array_name not in arrays:
            raise UnreadableError(f"{name} is damaged: {array_name!r} is missing")
        array = arrays[array_name]
        same = len(array.shape) == len(shape) and all(
            n in (None, m) for n, m in zip(shape, array.shape, strict=True)
        )
        if array.dtype.kind not in kinds or not same:
            wanted = f"{kinds} of {tuple(shape)}"
            what = f"{array_name!r} is {array.dtype} of shape {array.shape}, not {wanted}"
            raise UnreadableError(f"{name} is damaged: {what}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UnreadableError(
                f"{name} is damaged: {array_name!r} has values that are no numbers"
            )
