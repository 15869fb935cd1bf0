"""Cells: the units of a study. Each is measured on its own; its results depend on nothing but what
it says.

A ``Cell`` has a ``Part`` of each kind, a seed and settings; its ``key`` is a digest of all of them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

PARTS = ("data", "predictor", "blanket", "policy", "searcher")
"""The kinds of parts that a cell is made of, in the order of its labels."""
DIGEST_LENGTH = 16  # hexadecimal digits of a key


@dataclass(frozen=True)
class Part:
    """One choice of a cell: a data set, a predictor, a blanket, a policy, a searcher or a promise.

    Parameters
    ----------
    name
        What the study calls it, and what tables and figures show.
    of
        What it is: a name that edfa knows, such as ``"xgb"``; for data, also the path of a file.
    settings
        Its settings, as JSON: ``{"mode": "nan"}``.

    Examples
    --------
    >>> Part("xgb-masked", "xgb", {"mode": "nan"}).content
    {'of': 'xgb', 'settings': {'mode': 'nan'}}
    """

    name: str
    of: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> dict[str, Any]:
        """What it is, whatever it is called."""
        return {"of": self.of, "settings": self.settings}


@dataclass(frozen=True)
class Cell:
    """One measurement: these people, this model, this policy, this searcher, one seed.

    Parameters
    ----------
    measure
        What is measured: a name in ``edfa_studies.measures.MEASURES``.
    data, predictor, blanket, policy, searcher
        What it is measured with.
    seed
        Which draw of people, and of whatever else is random.
    settings
        Everything else that the result depends on, as JSON: ``people``, ``budget``, ``cap``,
        ``reading``, ``promise`` and so on.

    Examples
    --------
    >>> parts = [Part(name, name) for name in ("german", "xgb", "hiton-mb", "edfa", "nearest")]
    >>> cell = Cell("growth", *parts, seed=0, settings={"people": 20})
    >>> cell.key == Cell.from_json(cell.to_json()).key
    True
    >>> cell
    <Cell growth: german, xgb, hiton-mb, edfa, nearest, seed 0>
    """

    measure: str
    data: Part
    predictor: Part
    blanket: Part
    policy: Part
    searcher: Part
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Cell {self.measure}: {', '.join(self.labels.values())}, seed {self.seed}>"

    @property
    def people(self) -> dict[str, int]:
        """The largest number of people whom the cell asks, by part of the table: ``"test"``, and
        for certificates also ``"calibration"``.
        """
        if self.measure == "promise":
            return {part: self.settings[part] for part in ("calibration", "test")}
        return {"test": self.settings["people"]}

    @property
    def labels(self) -> dict[str, str]:
        """The name of each part, as tables show them."""
        return {kind: getattr(self, kind).name for kind in PARTS}

    @property
    def description(self) -> dict[str, str]:
        """Everything that tells the cells of a study apart, in words.

        The names of its parts, the measure, the promise and the reading (empty where there is
        none), and the seed: what ``--only`` selects by, and what the store writes beside the
        results.
        """
        promise = self.settings.get("promise", {}).get("name", "")
        reading = str(self.settings.get("reading", ""))
        rest = {"measure": self.measure, "promise": promise, "reading": reading}
        return self.labels | rest | {"seed": str(self.seed)}

    @property
    def key(self) -> str:
        """The identity of the cell: a digest of all that its result depends on; what its parts are
        called is not.
        """
        parts = {kind: getattr(self, kind).content for kind in PARTS}
        rest = {"measure": self.measure, "seed": self.seed, "settings": self.settings}
        return hash_json(parts | rest)

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        values = json.loads(text)
        return cls(**values | {kind: Part(**values[kind]) for kind in PARTS})


def hash_json(value: Any) -> str:
    """Digest a value that JSON can hold.

    Parameters
    ----------
    value
        Numbers, texts, lists and mappings; the order of keys does not matter.

    Returns
    -------
    str
        The first 16 hexadecimal digits of the SHA-256 of its JSON, with sorted keys and without
        spaces.

    Examples
    --------
    >>> hash_json({"b": 1, "a": [1.5]}) == hash_json({"a": [1.5], "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
