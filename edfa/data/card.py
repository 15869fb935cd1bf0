"""Cards as text: the TOML that a person reads and edits.

A new card is rendered from a schema. An existing one is updated in place, so that a person's
comments, their order of keys and their layout stay: tomlkit edits the sections whose values
changed, the others are not touched.
"""

import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import tomlkit
from tomlkit.items import Array

from edfa.data.rules import Rules

if TYPE_CHECKING:
    from edfa.data.schema import Feature, Schema

SectionPath = tuple[str, ...]
"""The keys that lead to a section: ``()`` the top of the card, ``("target",)``, ``("features",
"age")``.
"""


def render_card(schema: "Schema", remarks: Mapping[str, str]) -> str:
    """Write a new card.

    Parameters
    ----------
    schema
        What the card describes.
    remarks
        Comments by the name of the feature, or of the target, that they are about.

    Returns
    -------
    str
        The card: title and notes, the sections ``[target]`` and ``[rules]`` (if there are rules),
        and one section a feature. Keys at their default are left out, but for kind and cost.
    """
    top = {key: value for key, value in _top_values(schema).items() if value or value == 0}
    target = {key: value for key, value in _target_values(schema).items() if value}
    sections = [
        _fill(tomlkit.document(), top).as_string(),
        _render_section(("target",), target, remarks.get(schema.target, "")),
    ]
    if rules := _changes(vars(Rules()), vars(schema.rules)):
        sections.append(_render_section(("rules",), rules, ""))
    sections += [
        _render_feature(feature, remarks.get(feature.name, "")) for feature in schema.features
    ]
    return "\n".join(section for section in sections if section)


def update_card(text: str, old: "Schema", new: "Schema") -> str:
    """Change a card so that it describes another schema.

    Values that changed are written over in place, new features become sections at their position in
    ``new``. A feature that is gone takes along its section and the comments directly above it,
    nothing else.

    Parameters
    ----------
    text
        The card as it is.
    old
        The schema that it describes.
    new
        The schema that it is to describe.

    Returns
    -------
    str
        The changed card. Layouts that cannot be edited may come out wrong; ``Schema.update_toml``
        reads the result back and compares.
    """
    sections = _split(text)
    before = list(sections)
    moved: dict[SectionPath, str] = {}
    _edit(sections, (), _top_values(old), _top_values(new))
    _edit(sections, ("target",), _target_values(old), _target_values(new))
    if ("rules",) in sections:
        _edit(sections, ("rules",), vars(old.rules), vars(new.rules))
    elif rules := _changes(vars(old.rules), vars(new.rules)):
        moved["rules",] = _render_section(("rules",), rules, "")
    shared = _take_out_shared(sections, old, new)
    _drop_removed(sections, new)
    for feature in new.features:
        path = ("features", feature.name)
        if path in sections or feature.name in shared:
            _edit(sections, path, _feature_values(old[feature.name]), _feature_values(feature))
        if feature.name not in shared:
            moved[path] = sections.get(path) or _render_feature(feature)
    position = next((i for i, path in enumerate(sections) if len(path) == 2), len(sections))
    others = [(path, section) for path, section in sections.items() if path not in moved]
    return _join([*others[:position], *moved.items(), *others[position:]], before)


def comment(text: str) -> str:
    """``text`` as lines of TOML comment; characters that TOML forbids there are written as escapes.

    >>> comment("first line\\nsecond line")
    '# first line\\n# second line\\n'
    """
    safe = "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )
    return "".join(f"# {line}\n" for line in safe.split("\n")) if text else ""


def _top_values(schema: "Schema") -> dict[str, Any]:
    """What stands above the first section of a card."""
    plain = {key: getattr(schema, key) for key in ("title", "source", "notes", "missing")}
    if schema.effort_per_price != 1:
        plain["effort_per_price"] = schema.effort_per_price
    return plain | _by_language(schema)


def _target_values(schema: "Schema") -> dict[str, Any]:
    """What the ``[target]`` section says."""
    return {
        "name": schema.target,
        "favourable": schema.favourable,
        "classes": schema.classes,
        "merge": schema.merge,
        "words": schema.words,
        "guessed": schema.target_guessed,
    }


def _feature_values(feature: "Feature") -> dict[str, Any]:
    """Every key of a feature's section, those at their default too; a language is a key of its
    own.
    """
    plain = {key: v for key, v in vars(feature).items() if key not in ("name", "translations")}
    return plain | _by_language(feature)


def _by_language(noun: "Feature | Schema") -> dict[str, Any]:
    """The translations as a card has them: by language, without what is empty."""
    return {
        language: {key: words for key, words in vars(said).items() if words}
        for language, said in noun.translations.items()
    }


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of ``new`` whose values are not those of ``old``, with their values in ``new``."""
    return {key: value for key, value in new.items() if key not in old or value != old[key]}


def _render_feature(feature: "Feature", remark: str = "") -> str:
    """A feature's section: kind, cost and levels always, other keys where they differ from the
    default.
    """
    default = vars(type(feature)("", "continuous"))
    always = ("kind", "cost")
    values = _changes(
        {key: default[key] for key in default if key not in always}, _feature_values(feature)
    )
    return _render_section(("features", feature.name), values, remark)


def _render_section(path: SectionPath, values: Mapping[str, Any], remark: str) -> str:
    """``remark`` as comments, the header of a section, and its keys."""
    section = _fill(tomlkit.table(), values)
    for name in reversed(path[1:]):
        section = tomlkit.table(is_super_table=True).add(name, section)
    return comment(remark) + tomlkit.document().add(path[0], section).as_string()


def _fill(table: Any, values: Mapping[str, Any]) -> Any:
    """A document or table of tomlkit with these keys added."""
    for key, value in values.items():
        table.add(key, _item(value))
    return table


def _item(value: Any) -> Any:
    """A value as tomlkit writes it: whole numbers without a point, mappings on one line."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return _fill(tomlkit.inline_table(), value)
    if isinstance(value, list | tuple):
        return tomlkit.item([_item(entry) for entry in value])
    return tomlkit.item(int(value) if isinstance(value, float) and value.is_integer() else value)


def _split(text: str) -> dict[SectionPath, str]:
    """A card's text by section, in order; the comments directly above a header belong to its
    section.
    """
    sections: dict[SectionPath, str] = {(): ""}
    current: SectionPath = ()
    lines: list[str] = []
    for line in re.split(r"(?<=\n)", text):
        header = _header(line)
        path = (
            header[:2] if header[:1] == ("features",) else header[:1]
        )  # [features.age.codes] is part of age's
        if header and path != current and _parses(lines):
            above = len(lines)
            while (
                above and lines[above - 1].lstrip().startswith("#") and _parses(lines[: above - 1])
            ):
                above -= 1
            sections[current] += "".join(lines[:above])
            current, lines = path, lines[above:]
            sections.setdefault(current, "")
        lines.append(line)
    sections[current] += "".join(lines)
    return sections


def _header(line: str) -> SectionPath:
    """The path of a section's header line, empty if the line is none. Inside a list a line may look
    like one.
    """
    if not line.lstrip().startswith("["):
        return ()
    try:
        table = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path = []
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path)


def _parses(lines: Sequence[str]) -> bool:
    """Whether lines are whole statements, so that what follows is not inside a list or a text of
    several lines.
    """
    try:
        tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _cut(section: str) -> tuple[str, str]:
    """A section up to its last key (and comments right below it), and the blank lines and loose
    comments after it.
    """
    lines = re.split(r"(?<=\n)", section)
    end = len(lines)
    while end and not lines[end - 1].partition("#")[0].strip():
        end -= 1
    while not _parses(lines[:end]):  # that was the end of a text of several lines, no comment
        end += 1
    if end == 0:  # comments alone
        return section.rstrip(), "\n"
    while end < len(lines) and lines[end].strip():
        end += 1
    return "".join(lines[:end]), "".join(lines[end:])


def _edit(
    sections: dict[SectionPath, str],
    path: SectionPath,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> None:
    """Write the values that changed into the section of ``path``, or into the one above that has it
    inside.
    """
    changed = _changes(old, new) | {key: None for key in old if key not in new}
    if not changed:
        return
    home = path
    while home not in sections:
        home = home[:-1]
    body, rest = _cut(sections[home])
    document = tomlkit.parse(body if body.endswith("\n") or not body else body + "\n")
    table: Any = document
    for name in path:
        table = table[name]
    for key, value in changed.items():
        _set(table, key, value)
    sections[home] = document.as_string() + rest


def _set(table: Any, key: str, value: Any) -> None:
    """One key of a section. ``None`` removes it; of lists and mappings only the entries that differ
    are touched.
    """
    present = table.get(key)
    if value is None:
        table.pop(key, None)
    elif isinstance(present, Array) and len(value):
        _set_entries(present, [_item(entry) for entry in value])
    elif isinstance(present, MutableMapping):
        for name in [name for name in present if name not in value]:
            del present[name]
        for name, entry in value.items():
            if present.get(name) != entry:
                present[name] = _item(entry)
    else:
        table[key] = _item(value)


def _set_entries(array: Array, values: list[Any]) -> None:
    """Turn the list ``array`` into ``values`` by deleting and inserting; comments beside other
    entries stay.
    """
    steps = SequenceMatcher(None, list(array), values, autojunk=False).get_opcodes()
    for step, start, end, first, last in reversed(
        steps
    ):  # from the end, so that positions before it stay
        if step == "equal":
            continue
        for i in reversed(range(start, end)):
            del array[i]
        for value in reversed(values[first:last]):
            array.insert(start, value)


def _drop_removed(sections: dict[SectionPath, str], new: "Schema") -> None:
    """Take out the sections of features that are gone; loose comments after them stay, for what
    follows.
    """
    last: SectionPath = ()
    for path in list(sections):
        if len(path) == 2 and path[1] not in new.names:
            rest = _cut(sections.pop(path))[1]
            if "#" in rest:
                sections[last] = sections[last].rstrip() + "\n" + rest
        else:
            last = path


def _take_out_shared(sections: dict[SectionPath, str], old: "Schema", new: "Schema") -> list[str]:
    """Take out features that have no section of their own, such as
    ``age = { kind = "continuous" }`` under ``[features]``, for the caller to write as sections.

    Returns the names of those that stay there: all that are left if they come first in ``new``,
    else none.
    """
    inside = [name for name in old.names if ("features", name) not in sections]
    if not inside:
        return []
    home: SectionPath = ("features",) if ("features",) in sections else ()
    stay = [name for name in inside if name in new.names] if home else []
    stay = stay if stay == list(new.names[: len(stay)]) else []
    document: Any = tomlkit.parse(sections[home])
    for name in inside:
        if name not in stay:
            del document["features"][name]
    if (
        not home
    ):  # dotted keys or one mapping at the top of the card: sections cannot stand beside these
        del document["features"]
    sections[home] = document.as_string()
    return stay


def _join(sections: list[tuple[SectionPath, str]], before: list[SectionPath]) -> str:
    """Sections as one text, with a blank line between two that did not follow each other before."""
    followed = set(pairwise(before))
    last, text = sections[0]
    for path, section in sections[1:]:
        if text.strip() and (last, path) not in followed:
            text = text.rstrip() + "\n\n"
        text += section
        last = path
    return text if last == before[-1] else text.rstrip() + "\n"
