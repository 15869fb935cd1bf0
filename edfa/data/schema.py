"""What is known about each feature: its kind, its price, and how a person can change it.

A schema is read from and written to a *card*, a TOML file that a person can read and edit.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.data.feature import Feature
from edfa.data.toml import toml_item, toml_key
from edfa.errors import SchemaError, UnknownNameError, UnreadableError, did_you_mean, hint
from edfa.parsing import checked

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Feature", "Schema"]


@dataclass(frozen=True)
class Target:
    """The ``[target]`` section of a card: which column is the outcome, and which class a person would want."""

    name: str
    favourable: str | int | float | bool
    classes: tuple[str | int | float | bool, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Schema:
    """The features of a table, its outcome, and which outcome is favourable.

    ``classes`` gives the order of the class codes (left out: two classes in sorted order); ``merge`` renames raw
    labels, several to one class if need be; ``missing`` lists words that mean "not recorded".

    Examples
    --------
    >>> schema = Schema((Feature("age", "continuous", cost=0, start=True),), "class", "good")
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    """

    features: tuple[Feature, ...]
    target: str
    favourable: str
    classes: tuple[str, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    title: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.features:
            raise SchemaError("features: a schema needs at least one")
        names = [f.name for f in self.features]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise SchemaError(f"features.{twice[0]}: is described twice")
        if self.target in names:
            raise SchemaError(f"target.name: {self.target!r} is also a feature")
        known = self.classes or tuple(dict.fromkeys(self.merge.values()))
        if known and self.favourable not in known:
            raise SchemaError(f"target.favourable: no class {self.favourable!r}{hint(self.favourable, known)}")
        if self.classes and len(set(self.classes)) < max(2, len(self.classes)):
            raise SchemaError(f"target.classes: two or more different classes are needed, not {list(self.classes)}")
        if stray := [c for c in self.merge.values() if self.classes and c not in self.classes]:
            raise SchemaError(f"target.merge: {stray[0]!r} is not among the classes{hint(stray[0], self.classes)}")

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def index(self, name: str) -> int:
        """The column of a feature."""
        try:
            return self._positions[name]
        except KeyError:
            raise UnknownNameError("feature", name, self.names) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features' names, in order."""
        return tuple(f.name for f in self.features)

    @property
    def start(self) -> tuple[str, ...]:
        """What is known before the first question."""
        return tuple(f.name for f in self.features if f.start)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """What must never be offered as a change."""
        return tuple(f.name for f in self.features if f.sensitive)

    @property
    def costs(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The price of each feature, in order."""
        return np.array([f.cost for f in self.features])

    def with_classes(self, classes: tuple[str, ...]) -> "Schema":
        """The same schema with its classes spelled out."""
        return replace(self, classes=classes)

    def frame(self) -> "pd.DataFrame":
        """One row a feature, as a table."""
        import pandas as pd

        keys = [f.name for f in fields(Feature) if f.name not in ("levels", "codes")]
        rows = [{k: getattr(f, k) for k in keys} | {"label": f.title} for f in self.features]
        return pd.DataFrame(rows, columns=keys).set_index("name")

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(na_rep=""))

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """Read what ``to_json`` wrote."""
        values = json.loads(text)
        features = tuple(checked(Feature, f, f"features.{i}") for i, f in enumerate(values.pop("features")))
        return checked(cls, values | {"features": features}, "schema")

    def to_toml(self, remarks: Mapping[str, str] | None = None) -> str:
        """As a card. ``remarks`` are written as comments above the feature they are keyed by."""
        head = {"title": self.title, "source": self.source, "notes": self.notes, "missing": self.missing}
        lines = [toml_item(key, value) for key, value in head.items() if value]
        outcome = {
            "name": self.target,
            "favourable": self.favourable,
            "classes": self.classes,
            "merge": self.merge,
        }
        lines += ["", "[target]", *_remark(remarks, self.target)]
        lines += [toml_item(key, value) for key, value in outcome.items() if value]
        for feature in self.features:
            lines += ["", *_remark(remarks, feature.name), f"[features.{toml_key(feature.name)}]"]
            lines += [toml_item(k, v) for k, v in _said(feature).items()]
        return "\n".join(lines).lstrip("\n") + "\n"

    @classmethod
    def from_toml(cls, text: str, where: str = "") -> "Schema":
        """Read a card. Errors name the key, prefixed by ``where``."""
        prefix = f"{where}: " if where else ""
        try:
            card = tomllib.loads(text)
            target = checked(Target, _section(card, "target"), "target")
            sections = _section(card, "features")
            features = tuple(
                checked(Feature, {**_section(sections, name, "features."), "name": name}, f"features.{name}")
                for name in sections
            )
            outcome = {
                "target": target.name,
                "favourable": str(target.favourable),
                "classes": tuple(str(c) for c in target.classes),
                "merge": target.merge,
            }
            rest = {key: value for key, value in card.items() if key not in ("target", "features")}
            return checked(cls, rest | outcome | {"features": features}, "")
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{prefix}not a TOML file: {error}") from None
        except SchemaError as error:
            raise SchemaError(f"{prefix}{error}") from None

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Read a card from a file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableError(f"cannot read the card {path}: {error}") from None
        return cls.from_toml(text, where=Path(path).name)

    def write(self, path: str | Path) -> None:
        """Write the card to a file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")


def _said(feature: Feature) -> dict[str, Any]:
    """What a card needs to say: kind and cost always, the rest where it differs from the default."""
    plain = Feature(feature.name, feature.kind, levels=feature.levels)
    values = {f.name: getattr(feature, f.name) for f in fields(Feature) if f.name not in ("name",)}
    always = ("kind", "cost", "levels") if feature.levels else ("kind", "cost")
    return {k: v for k, v in values.items() if k in always or v != getattr(plain, k)}


def _remark(remarks: Mapping[str, str] | None, name: str) -> list[str]:
    return [f"# {line}" for line in (remarks or {}).get(name, "").splitlines()]


def _section(card: Mapping[str, Any], name: str, prefix: str = "") -> Mapping[str, Any]:
    if name not in card:
        raise SchemaError(f"{name}: the card has no [{name}] section{did_you_mean(name, card)}")
    section = card[name]
    if not isinstance(section, Mapping):
        raise SchemaError(f"{prefix}{name}: must be a section of keys, not {section!r}")
    return section
