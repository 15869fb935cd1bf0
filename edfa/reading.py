"""Read files, JSON, and mappings (of a TOML card, a JSON file) as dataclasses.

Sizes are bounded before memory is taken, whatever is wrong is one error that names it, and nothing
here runs code from what it reads. ``read_bytes`` and ``read_text`` read files,
``parse_json`` and ``parse_object`` texts, and ``parse`` makes a dataclass of a mapping.
``check_seed``, ``check_count`` and ``check_items`` look at single settings, before any work is
spent.

``read_resource`` and ``read_entries`` read files that ship with the packages: sentences, cards,
templates and tables of numbers. ``RESOURCES`` remembers what was made from them, and everything
else that is the same for the whole run of a program: compiled templates, validators of
dataclasses, the versions of libraries, the advisor that a cluster's worker works with.
"""

import hashlib
import json
import math
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from numbers import Integral
from pathlib import Path
from sys import float_info
from typing import Any, TypeVar

from edfa.cache import Cache
from edfa.errors import EdfaError, SchemaError, SettingError, UnreadableError, did_you_mean, hint

T = TypeVar("T")
LARGEST_SEED = 2**32 - 1  # what NumPy, scikit-learn, XGBoost and PyTorch all take
RESOURCES: Cache[Any] = Cache("resources", most=512)
MEGABYTE = 1 << 20
TEXT_LIMIT = 64 * MEGABYTE
DEEPEST = 40  # levels of nesting that an object from outside may have
MAX_MESSAGE_CHARACTERS = 600  # characters of an error message
MAX_CHARACTERS_SHOWN = 60  # characters of a wrong value that an error message shows


def existing(path: str | Path) -> Path:
    """Check that there is a file at ``path``.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    UnreadableError
        If there is no such file, with the most similar name in its folder; or if it is a folder.
    """
    path = Path(path)
    try:
        if path.is_file():
            return path
        beside = (
            [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        )
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero byte
        raise UnreadableError(
            f"cannot look for {str(path)[:80]!r}: {getattr(error, 'strerror', error)}"
        ) from None
    if path.exists():
        raise UnreadableError(f"{path} is not a file")
    raise UnreadableError(f"there is no file {path}{did_you_mean(path.name, beside)}")


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read a whole file.

    Parameters
    ----------
    path
        The file.
    limit
        The largest size in bytes. A larger file is not read at all, nor is a pipe or a device.

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    UnreadableError
        If the file is missing, too large, no plain file, or written to while it was read.
    """
    path = existing(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError(f"{path} is not a plain file")
            content = b"" if status.st_size > limit else file.read(status.st_size + 1)
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    size = max(status.st_size, len(content))
    if size > limit:
        raise UnreadableError(f"{path} has {size:,} bytes; at most {limit:,} are read")
    if len(content) > status.st_size:
        raise UnreadableError(f"{path} was written to while it was read")
    return content


def read_text(path: str | Path, limit: int = TEXT_LIMIT) -> str:
    """Read a whole text file in UTF-8.

    Parameters
    ----------
    path
        The file.
    limit
        The largest size in bytes.

    Returns
    -------
    str
        The content without a byte order mark.

    Raises
    ------
    UnreadableError
        As in ``read_bytes``, and if the file is not UTF-8.
    """
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{Path(path).name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8"
        ) from None


def parse_json(text: str, name: str) -> Any:
    """Read a JSON text.

    A key that is written twice is an error: which of the two counts would depend on the reader. So
    is ``NaN``, which is no JSON.

    Parameters
    ----------
    text
        The text.
    name
        What the text is, such as a file's name; error messages begin with it.

    Returns
    -------
    Any
        Its content as plain data.

    Raises
    ------
    UnreadableError
        If the text is no JSON, or is nested too deeply.

    Examples
    --------
    >>> parse_json('{"age": 3, "age": 4}', "answers.json")
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: answers.json: the key 'age' is there twice
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _unique(pairs, name),
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(f"{name} is not JSON: {error}") from None


def parse_toml(text: str, name: str, error: type[EdfaError] = SchemaError) -> dict[str, Any]:
    """Read a TOML text.

    Parameters
    ----------
    text
        The text.
    name
        What the text is, such as a file's name; error messages begin with it.
    error
        What to raise if the text is no TOML.

    Returns
    -------
    dict[str, Any]
        Its tables as plain data.

    Examples
    --------
    >>> parse_toml("alpha = ", "advisor.toml")
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: advisor.toml: not a TOML file: Invalid value (at end of document)
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
        raise error(f"{name}: not a TOML file: {reason}") from None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unique(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise UnreadableError(
            f"{name}: the key {next(k for k in keys if keys.count(k) > 1)!r} is there twice"
        )
    return content


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def parse_object(text: str, name: str) -> dict[str, Any]:
    """Read a JSON object from outside, as plain data that can be written again as it is.

    Parameters
    ----------
    text
        The text.
    name
        What the text is; error messages begin with it.

    Returns
    -------
    dict[str, Any]
        The object.

    Raises
    ------
    UnreadableError
        If the text is no JSON object, is nested more than 40 levels deep, has a key twice, a number
        beyond all floats, or characters that no file can hold.

    Examples
    --------
    >>> parse_object('{"spent": 1e999}', "this receipt")
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: this receipt is not JSON: 1e999 is too large a number
    """
    content = parse_json(text, name) if isinstance(text, str) else text
    if not isinstance(text, str) or not isinstance(content, dict):
        raise UnreadableError(
            f"{name} is not a JSON object of names and values, but a {type(content).__name__}"
        )
    _check_part(content, "", name)
    return content


def _check_part(value: Any, where: str, name: str, depth: int = 0) -> None:
    """Raise UnreadableError, which begins with ``name``, unless the part of an object from outside
    that stands under the key ``where`` can be written again as it is.
    """
    problem = ""
    if depth > DEEPEST:
        problem = "is nested too deeply"
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_part(key, "a key", name, depth)
            _check_part(part, key, name, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_part(part, where, name, depth + 1)
    elif isinstance(value, int | float) and not abs(value) <= float_info.max:
        problem = "is not a finite number"
    elif isinstance(value, str) and not is_unicode(value):
        problem = "holds half a character"
    if problem:
        raise UnreadableError(f"{name}: {_name(where)} {problem}")


def one_line(message: object) -> str:
    """A message in one line that can be printed, whatever names from outside it repeats."""
    return "".join(
        c if c.isprintable() else repr(c)[1:-1] for c in str(message)[:MAX_MESSAGE_CHARACTERS]
    )


def first_line(error: BaseException | None) -> str:
    """The first line of what an error of another library says, else the name of its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def short_message(error: BaseException) -> str:
    """What an error says, in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def check_seed(seed: Any) -> int:
    """Check a seed.

    Parameters
    ----------
    seed
        A whole number from 0 to 4,294,967,295, of Python or numpy.

    Returns
    -------
    int
        The seed.

    Raises
    ------
    SettingError
        If it is anything else.

    Examples
    --------
    >>> check_seed(7)
    7
    >>> check_seed(-1)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: seed: a whole number from 0 to 4294967295, not -1
    """
    if (
        isinstance(seed, bool)
        or not isinstance(seed, Integral)
        or not 0 <= int(seed) <= LARGEST_SEED
    ):
        raise SettingError(f"seed: a whole number from 0 to {LARGEST_SEED}, not {str(seed)[:40]}")
    return int(seed)


def check_count(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Check a setting that counts something.

    Parameters
    ----------
    name
        The setting, with which an error message begins.
    value
        What was given.
    least
        The smallest number that is allowed.
    optional
        Whether None is allowed too.

    Raises
    ------
    SettingError
        If ``value`` is no whole number of at least ``least``.

    Examples
    --------
    >>> check_count("n_completions", 2.5, 2)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: n_completions: a whole number of at least 2, not 2.5
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        more = ", or None" if optional else ""
        raise SettingError(
            f"{name}: a whole number of at least {least}{more}, not {repr(value)[:40]}"
        )


def check_items(name: str, values: Any, what: str, *, text: bool = False) -> list[Any]:
    """Check a setting that takes a list.

    Parameters
    ----------
    name
        The setting, with which an error message begins.
    values
        A list, tuple or array. One text is no list of its letters, and a set has no order.
    what
        What the setting takes, in words, for the error message.
    text
        Whether all items must be texts.

    Returns
    -------
    list
        The items.

    Raises
    ------
    SettingError
        If ``values`` is no list, or an empty one, or has an item that is no text where it must be.

    Examples
    --------
    >>> check_items("classes", "good", "the outcomes in order")
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: classes: a list of the outcomes in order, not 'good'
    """
    listed = values.tolist() if hasattr(values, "tolist") else values  # of numpy and pandas
    items = (
        list(listed) if isinstance(listed, Sequence) and not isinstance(listed, str | bytes) else []
    )
    if not items or (text and not all(isinstance(item, str) for item in items)):
        raise SettingError(f"{name}: a list of {what}, not {repr(values)[:40]}")
    return items


def is_unicode(text: str) -> bool:
    """Whether a text can be written to a file: no half of a surrogate pair is in it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def parse(
    cls: type[T], values: Mapping[str, Any], where: str, error: type[EdfaError] = SchemaError
) -> T:
    """Make an instance of the dataclass ``cls`` from ``values``, one entry a field.

    Types are checked by pydantic from the annotations, so a card and a constructor call obey the
    same rules.

    Parameters
    ----------
    cls
        The dataclass.
    values
        Field values by name; fields with a default may be left out, other keys are errors.
    where
        The path of ``values`` in its file, such as ``"features.age"``; error messages begin with
        it.
    error
        What to raise for the first key that is unknown, missing or of the wrong type.

    Examples
    --------
    >>> from edfa.data.schema import Feature
    >>> parse(Feature, {"name": "age", "kind": "continous"}, "features.age")
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: features.age.kind: 'continous' is not one of continuous, ordinal, categorical; \
did you mean 'continuous'?
    """  # noqa: E501
    from pydantic import ValidationError

    if not isinstance(values, Mapping):
        raise error(f"{where}: names and values are expected, not {shorten(values)}")
    try:
        adapter = RESOURCES.get(("validator", cls), lambda: _validator(cls))
        result: T = adapter.validate_python({str(key): value for key, value in values.items()})
    except ValidationError as problems:
        raise error(one_line(_explain(problems.errors()[0], cls, where))) from None
    return result


def _validator(cls: Any) -> Any:
    """Pydantic's validator of a dataclass, with unknown keys forbidden."""
    from pydantic import ConfigDict, TypeAdapter  # 0.3 s, so only when a card is read

    cls.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(cls)


def shorten(value: Any) -> str:
    """A value as an error message shows it: on one line, of about ``SHOWN`` characters at most.

    >>> shorten("x"), shorten(10**300), shorten([1] * 100)[-5:]
    ("'x'", 'a whole number of about 301 digits', ', 1,…')
    """
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a whole number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    if getattr(value, "ndim", 0):  # an array or a column
        return f"a {type(value).__name__}"
    try:
        text = repr(value[:MAX_CHARACTERS_SHOWN] if isinstance(value, str | bytes) else value)
    except (ValueError, RecursionError):  # an endless number, or a list in itself
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARACTERS_SHOWN + 2 else text[:MAX_CHARACTERS_SHOWN] + "…"


def _name(key: Any) -> str:
    """A key, or a position in a list, as an error message names it, in one line."""
    name = str(key)
    return name if name.isprintable() and len(name) <= MAX_CHARACTERS_SHOWN else shorten(name)


def _explain(problem: Any, cls: type[Any], where: str) -> str:
    """One of pydantic's problems in one line, with the nearest right key or value."""
    key = ".".join([where, *(_name(part) for part in problem["loc"])]).strip(".")
    kind, value = problem["type"], problem["input"]
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        names = [f.name for f in fields(cls)]
        return f"{key}: no such key{hint(problem['loc'][-1], names, shown=20)}"
    if kind == "literal_error":
        options = [
            part.strip("' ") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return (
            f"{key}: {shorten(value)} is not one of "
            f"{', '.join(options)}{did_you_mean(value, options)}"
        )
    if kind == "missing":
        return f"{key}: is missing"
    return f"{key}: {problem['msg']}, not {shorten(value)}"


def read_resource(package: str, path: str) -> str:
    """Read a UTF-8 text file of a package; it is read once.

    Parameters
    ----------
    package
        The name of an importable package, such as ``"edfa.data"``.
    path
        The file's path in the package's folder, such as ``"cards/german.toml"``.

    Returns
    -------
    str
        The content of the file.

    Examples
    --------
    >>> read_resource("edfa.data", "cards/german.toml").splitlines()[0][:21]
    '# German credit: may '
    """

    text: str = RESOURCES.get(
        (package, path), lambda: (files(package) / path).read_text(encoding="utf-8")
    )
    return text


def read_entries(package: str, path: str) -> Mapping[str, Any]:
    """Read the entries of a TOML file of a package, nested tables under dotted keys.

    Parameters
    ----------
    package, path
        As for ``read_resource``.

    Returns
    -------
    Mapping[str, Any]
        The entries by ``section.name``.

    Examples
    --------
    >>> read_entries("edfa.text", "sentences/en.toml")["units.years.other"]
    'years'
    """

    entries: dict[str, Any] = RESOURCES.get(
        (package, path, "entries"),
        lambda: dict(_flatten(tomllib.loads(read_resource(package, path)))),
    )
    return entries


def _flatten(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in section.items():
        if isinstance(entry, dict):
            yield from _flatten(entry, f"{prefix}{name}.")
        else:
            yield prefix + name, entry
