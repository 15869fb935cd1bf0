"""Files that ship with the packages: sentences, cards, templates and tables of numbers.

``read_resource`` reads one as text and ``read_entries`` one of TOML. ``RESOURCES`` remembers what
was made from them, and everything else that is the same for the whole run of a program: compiled
templates, validators of dataclasses, the versions of libraries.
"""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from edfa.cache import Cache

__all__ = ["RESOURCES", "read_entries", "read_resource"]

RESOURCES: Cache[Any] = Cache("resources", most=512)


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

    def read() -> str:
        return (files(package) / path).read_text(encoding="utf-8")

    text: str = RESOURCES.get((package, path), read)
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

    def read() -> dict[str, Any]:
        return dict(_flatten(tomllib.loads(read_resource(package, path))))

    entries: dict[str, Any] = RESOURCES.get((package, path, "entries"), read)
    return entries


def _flatten(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in section.items():
        if isinstance(entry, dict):
            yield from _flatten(entry, f"{prefix}{name}.")
        else:
            yield prefix + name, entry
