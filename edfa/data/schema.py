"""The schema of a table: its features with their kinds, prices and directions of change
(``Feature``), and its outcome.

A schema is read from and written to a *card*, a TOML file that a person can read and edit.
"""

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from edfa.data.rules import NO_RULES, Rules
from edfa.data.values import LARGEST_NUMBER, months_of
from edfa.errors import (
    SchemaError,
    SettingError,
    UnknownNameError,
    UnreadableError,
    did_you_mean,
    hint,
)
from edfa.reading import parse, read_text
from edfa.typing import BoolArray, Float64Array
from edfa.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["continuous", "ordinal", "categorical"]
Change = Literal["frozen", "up", "down", "free"]
Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
LANGUAGE = re.compile(r"[a-z]{2}")
OPTIONAL_WORDS = ("reason", "source", "ask", "hint", "translations")
OPTIONAL = (*OPTIONAL_WORDS, "takes_per_unit", "max_step", "max_ratio")
"""Keys of a feature that are not written to JSON where they are empty."""


@dataclass(frozen=True)
class FeatureWords:
    """What is said about a feature in one language; what is empty is said as the card says it
    otherwise.

    Parameters
    ----------
    label, unit, reason, ask, hint
        As in ``Feature``.
    levels, codes
        Words for single levels and codes.
    """

    label: str = ""
    unit: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    ask: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Feature:
    """One fact about a person.

    Parameters
    ----------
    name, kind
        The column, and whether it is ``"continuous"``, ``"ordinal"`` (levels in order) or
        ``"categorical"``.
    cost, start
        The price of asking (zero or more), and whether the fact is known before the first question.
    sensitive
        Never offered as something to change; it may still inform a decision.
    change
        How a person can change it: ``"frozen"`` (not at all), only ``"up"``, only ``"down"``, or
        ``"free"``.
    range
        The lowest and highest value a plan may propose; ``inf`` leaves an end open, None both.
    effort
        What one unit of change costs the person (one level of an ordinal feature, one switch of a
        categorical one). If None, a continuous feature's effort is one per standard deviation (per
        year, if it grows by itself), any other's is one.
    label, unit
        Its name and unit for people; an empty label stands for the column's name.
    levels
        The values in order. Needed for an ordinal feature of words, optional otherwise.
    codes
        Numbers that are not measurements, with their meaning: ``{"-9": "no bureau record"}``.
    monotone
        The direction that is good for the person: ``"up"`` if more never lowers the chance of the
        favourable class, ``"down"`` if less never does; None says nothing. A model obeys it, and no
        plan goes the other way.
    per_year
        By how much a number grows by itself in a year: 1 for an age in years, 12 for a duration in
        months.
    takes
        How long a change takes, as in ``"24 months"``; of an ordinal feature, each level of it.
        Empty: no time.
    takes_per_unit
        How long each unit of a change of a continuous feature takes, on top of ``takes``: the
        larger the change, the longer. Empty: no time.
    max_step
        The largest change of its value that a plan may make, in its units, of an ordinal feature
        in levels; None: no limit.
    max_ratio
        The largest number by which a plan may multiply or divide a continuous feature, above 1: 2
        halves or doubles at most. Values of 0 or less then neither change nor are proposed. None:
        no limit.
    guessed
        Whether the draft of the card guessed something here that nobody has confirmed.
    reason
        What a letter says where this fact is a principal reason of a refusal; facts with the same
        words are one reason. Empty: its label.
    source
        Where the fact comes from, if not from the person: ``"bureau"``, a credit bureau, ``"bureau
        score"``, a score that it has made, or words of your own.
    ask, hint
        The question as it is put to a person, and a line of help below it; empty: its label, and
        nothing.
    translations
        What is said in other languages (or in nicer words in this one), by language: ``de.label =
        "Alter"`` in a card.

    Raises
    ------
    SchemaError
        If two of these contradict each other, or one is outside its range.

    Examples
    --------
    >>> Feature("savings", "continuous", cost=2, change="up", unit="EUR").actionable
    True
    """

    name: str
    kind: Kind
    cost: float = 1.0
    start: bool = False
    sensitive: bool = False
    change: Change = "free"
    range: tuple[float, float] | None = None
    effort: float | None = None
    label: str = ""
    unit: str = ""
    levels: tuple[str | bool | int | float, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    monotone: Direction | None = None
    per_year: float = 0.0
    takes: str = ""
    takes_per_unit: str = ""
    max_step: float | None = None
    max_ratio: float | None = None
    guessed: bool = False
    reason: str = ""
    source: str = ""
    ask: str = ""
    hint: str = ""
    translations: Mapping[str, FeatureWords] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise SchemaError(f"features.{self.name}.{problem}")
        for key in ("takes", "takes_per_unit"):
            months_of(getattr(self, key), f"features.{self.name}.{key}")

    def _problems(self) -> Iterator[str]:
        """What is wrong with it, each problem after its key."""
        yield from self._problems_of_translations()
        for key, value, known in (
            ("kind", self.kind, get_args(Kind)),
            ("change", self.change, get_args(Change)),
        ):
            if value not in known:
                yield f"{key}: {value!r} is not one of {', '.join(known)}{hint(value, known)}"
        if not 0 <= self.cost < math.inf:
            yield f"cost: a price is zero or more, not {self.cost}"
        if self.effort is not None and not 0 < self.effort < math.inf:
            yield f"effort: effort is a positive number, not {self.effort}"
        if self.range is not None:
            yield from self._problems_of_range(*self.range)
        yield from self._problems_of_levels()
        if self.kind == "categorical" and self.change in DIRECTIONS:
            yield f"change: {self.change!r} needs an order; make it ordinal, or say free or frozen"
        yield from self._problems_of_codes()
        if self.monotone is not None:
            yield from self._problems_of_direction(self.monotone)
        if not math.isfinite(self.per_year) or (self.per_year and self.kind != "continuous"):
            yield f"per_year: a continuous feature grows by a number a year, not {self.per_year}"
        yield from self._problems_of_size()

    def _problems_of_translations(self) -> Iterator[str]:
        """Translations are by language, of levels and codes that the feature has."""
        for language, words in self.translations.items():
            if not LANGUAGE.fullmatch(language):
                yield f"{language}: a language is two letters, such as de"
            for key, known in (("levels", [*map(str, self.levels)]), ("codes", [*self.codes])):
                for name in getattr(words, key):
                    if known and name not in known:
                        yield f"{language}.{key}: no {key[:-1]} {name!r}{hint(name, known)}"

    def _problems_of_range(self, low: float, high: float) -> Iterator[str]:
        """It is a range of numbers."""
        if self.kind == "categorical":
            yield "range: a categorical feature has levels, not a range"
        if self.words:
            yield "range: its levels are words; list the levels a plan may use instead"
        if not low < high:
            yield f"range: the first number must be below the second, not [{low}, {high}]"
        for end in (low, high):
            if LARGEST_NUMBER < abs(end) < math.inf:
                yield f"range: {end:g} is no measurement; write inf for an open end"

    def _problems_of_levels(self) -> Iterator[str]:
        """Levels differ, as texts if they are words, and numbers among them are measurements."""
        for level in self.levels:
            if isinstance(level, bool):
                text = str(level).lower()
                yield f"levels: write {text} as a text, as it stands in the table"
            elif isinstance(level, int | float) and not abs(level) <= LARGEST_NUMBER:
                yield f"levels: a number is beyond {LARGEST_NUMBER:g}"
        same = Counter(str(level) if self.words else repr(float(level)) for level in self.levels)
        for level, times in same.items():
            if times > 1:
                yield f"levels: {level!r} is listed twice"
        if "" in same:
            yield "levels: an empty text is no level, it means not recorded"

    def _problems_of_codes(self) -> Iterator[str]:
        """Every code is a number, and the feature's values are numbers too."""
        if self.codes and self.words:
            yield "codes: only numbers can be codes; here every value is a level of its own"
        for code in self.codes:
            try:
                number = float(code)
            except ValueError:
                yield f"codes: {code!r} is not a number"
            else:
                if not abs(number) <= LARGEST_NUMBER:
                    yield f"codes: {code!r} is not a number within {LARGEST_NUMBER:g}"

    def _problems_of_size(self) -> Iterator[str]:
        """What depends on how large a change is has a size to look at."""
        if self.max_step is not None:
            if self.kind == "categorical":
                yield "max_step: a change of category has no size; list forbidden moves in [rules]"
            if not 0 < self.max_step < math.inf:
                yield f"max_step: the largest change is a positive number, not {self.max_step}"
        if self.max_ratio is not None:
            if self.kind != "continuous":
                yield "max_ratio: only a continuous feature is multiplied; say max_step"
            if not 1 < self.max_ratio < math.inf:
                yield f"max_ratio: a number above 1 (2: at most doubled), not {self.max_ratio}"
        if self.takes_per_unit and self.kind != "continuous":
            yield "takes_per_unit: only a continuous feature has units; say takes"

    def _problems_of_direction(self, way: Direction) -> Iterator[str]:
        """The good direction is one that the feature has, and may be moved in."""
        if way not in DIRECTIONS:
            yield f"monotone: up or down, not {way!r}"
        if self.kind == "categorical":
            yield f"monotone: {way!r} needs an order; make it ordinal and list its levels"
        if self.change in DIRECTIONS and self.change != way:
            yield (
                f"monotone: {way!r} is good, but it may only change {self.change!r}; no plan could "
                "use it, so say change = 'frozen'"
            )

    @property
    def words(self) -> bool:
        """Whether its values are strings rather than numbers."""
        return self.kind == "categorical" or any(isinstance(level, str) for level in self.levels)

    @property
    def actionable(self) -> bool:
        """Whether a plan may ever change it."""
        return self.change != "frozen" and not self.sensitive

    @property
    def title(self) -> str:
        """Its name for people: the label, else the column's name with spaces."""
        return self.label or self.name.replace("_", " ").replace("-", " ")

    def said(self, language: str) -> FeatureWords:
        """Everything that is said about the feature in a language.

        Parameters
        ----------
        language
            Two letters, such as ``"de"``.

        Returns
        -------
        FeatureWords
            The translation; what is not translated is as the card says it.

        Examples
        --------
        >>> age = Feature("age", "continuous", unit="years",
        ...     translations={"de": FeatureWords(label="Alter")})
        >>> age.said("de").label, age.said("de").unit, age.said("en").label
        ('Alter', 'years', 'age')
        """
        own = self.translations.get(language, FeatureWords())
        return FeatureWords(
            label=own.label or self.title,
            unit=own.unit or self.unit,
            levels=own.levels,
            codes={**self.codes, **own.codes},
            reason=own.reason or self.reason or own.label or self.title,
            ask=own.ask or self.ask,
            hint=own.hint or self.hint,
        )


@dataclass(frozen=True)
class SchemaWords:
    """What is said about a table in one language.

    Parameters
    ----------
    title
        The title; empty: the card's own.
    words
        What people are told that a class means, by class.
    """

    title: str = ""
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """The ``[target]`` section of a card: ``name``, ``classes``, ``merge``, ``words`` and
    ``favourable`` are ``target``, ``classes``, ``merge``, ``words`` and ``favourable`` of
    ``Schema`` as a person may write them; ``guessed`` is ``target_guessed``.
    """

    name: str
    favourable: str | int | float | bool
    classes: tuple[str | int | float | bool, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False


@dataclass(frozen=True)
class Schema:
    """The features of a table, its outcome, and which outcome is favourable.

    Parameters
    ----------
    features
        The features in the order of the encoded matrix' columns.
    target, favourable
        The outcome's column, and the class a person would want.
    classes
        The classes in the order of their codes. If empty, a Table takes the two that occur, sorted.
    merge
        Raw label to class, for outcomes with several labels a class; every label that occurs must
        be in it.
    words
        What people are told that a class means, by class: ``{"1": "refused", "0": "granted"}``.
    missing
        Strings that mean "not recorded", such as ``("?", "NA")``.
    rules
        What may not be proposed to anybody, beyond what the features say: the operator's rules.
    effort_per_price
        What one unit of effort is worth in units of price: nobody is told to act while the
        questions left are expected to save more effort than they cost. 0: effort has no price.
    target_guessed
        Whether the draft of the card guessed something about the outcome that nobody has confirmed.
    title, source, notes
        For people: the name of the data set, where it comes from, and what to know about it.
    translations
        The title and the words for classes in other languages, by language: ``de.title = "…"`` at
        the top of a card.

    Raises
    ------
    SchemaError
        If two of these contradict each other.

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
    words: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    rules: Rules = field(default_factory=Rules)
    effort_per_price: float = 1.0
    target_guessed: bool = False
    title: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    translations: Mapping[str, SchemaWords] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise SchemaError(problem)
        if not 0 <= self.effort_per_price < float("inf"):
            raise SchemaError(
                f"effort_per_price: an amount of 0 or more, not {self.effort_per_price!r}"
            )
        try:
            self.rules.check(self)
            self.rules.check_leaves_something(self)
        except (SchemaError, SettingError, UnknownNameError) as error:
            raise SchemaError(f"rules.{error}") from None

    def _problems(self) -> Iterator[str]:
        """What is wrong with the features and the target, each problem after its key."""
        if not self.features:
            yield "features: a schema needs at least one"
        for name, times in sorted(Counter(self.names).items()):
            if times > 1:
                yield f"features.{name}: is described twice"
        if self.target in self.names:
            yield f"target.name: {self.target!r} is also a feature"
        classes = self.classes or tuple(dict.fromkeys(self.merge.values()))
        if classes and self.favourable not in classes:
            near = hint(self.favourable, classes)
            yield f"target.favourable: no class {self.favourable!r}{near}"
        if self.classes and len(set(self.classes)) < max(2, len(self.classes)):
            shown = list(self.classes)
            yield f"target.classes: two or more different classes are needed, not {shown}"
        for key, named in (("merge", self.merge.values()), ("words", self.words)):
            for name in named:
                if classes and name not in classes:
                    yield f"target.{key}: {name!r} is not among the classes{hint(name, classes)}"

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def index(self, name: str) -> int:
        """The position of a feature, which is its column in the encoded matrix.

        Raises
        ------
        UnknownNameError
            If there is no feature of this name; the message has the nearest one.
        """
        try:
            return self._positions[name]
        except KeyError:
            raise UnknownNameError("feature", name, self.names) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(f.name for f in self.features)

    @property
    def start(self) -> tuple[str, ...]:
        """The names of the features that are known before the first question."""
        return tuple(f.name for f in self.features if f.start)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of the features that must never be offered as a change."""
        return tuple(f.name for f in self.features if f.sensitive)

    @property
    def guessed(self) -> tuple[str, ...]:
        """The names of the features, and of the outcome, with a guess that nobody has confirmed."""
        names = [f.name for f in self.features if f.guessed]
        return (self.target, *names) if self.target_guessed else tuple(names)

    def rules_with(self, rules: Rules | None) -> Rules:
        """The rules that hold where ``rules`` are given as well.

        Parameters
        ----------
        rules
            Further rules; None: none.

        Returns
        -------
        Rules
            The card's rules tightened by ``rules``; in the paper's reading ``rules`` alone.
        """
        given = rules or NO_RULES
        return given if given.reading == "paper" else self.rules.tighten(given)

    def outcome(self, class_name: str, language: str = "en") -> str:
        """What people are told that a class means.

        Parameters
        ----------
        class_name
            One of ``classes``.
        language
            Two letters.

        Returns
        -------
        str
            The card's words in this language, else its words for the class, else the class's name.
        """
        own = self.translations.get(language, SchemaWords()).words
        return own.get(class_name) or self.words.get(class_name, class_name)

    def title_in(self, language: str) -> str:
        """The title in a language, else as the card says it."""
        return self.translations.get(language, SchemaWords()).title or self.title

    @property
    def costs(self) -> Float64Array:
        """The price of each feature, (features,)."""
        return np.array([f.cost for f in self.features], dtype=float)

    @property
    def categorical(self) -> BoolArray:
        """Which features are categorical, (features,)."""
        return np.array([f.kind == "categorical" for f in self.features], dtype=bool)

    def frame(self) -> "pd.DataFrame":
        """The schema as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row a feature, indexed by name, and its keys as columns; levels, codes and what is
            said in questions and letters are left out.
        """
        import pandas as pd

        rows = pd.DataFrame([vars(f) | {"label": f.title} for f in self.features])
        return rows.drop(columns=["levels", "codes", *OPTIONAL_WORDS]).set_index("name")

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(na_rep=""))

    def to_json(self) -> str:
        """The schema as JSON; ``from_json`` makes an equal one of it."""
        content = asdict(self)
        content["features"] = [
            {key: value for key, value in feature.items() if value or key not in OPTIONAL}
            for feature in content["features"]
        ]
        if not self.translations:
            del content["translations"]
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """Read what ``to_json`` wrote.

        Raises
        ------
        SchemaError, SettingError
            If a key, or one of the rules, is unknown, missing or wrong, or two contradict each
            other.
        """
        values = json.loads(text)
        features = tuple(
            parse(Feature, f, f"features.{i}") for i, f in enumerate(values.pop("features"))
        )
        rules = Rules.parse(values.pop("rules", {}))
        return parse(cls, values | {"features": features, "rules": rules}, "schema")

    def to_toml(self, remarks: Mapping[str, str] | None = None) -> str:
        """Write a new card.

        Parameters
        ----------
        remarks
            Comments by the name of the feature, or of the target, above whose section they are
            written.

        Returns
        -------
        str
            The text of the card; ``from_toml`` makes an equal schema of it.
        """
        from edfa.data.card import render_card  # tomlkit is needed only where a card is written

        return render_card(self, remarks or {})

    def update_toml(self, text: str) -> str:
        """The text of an existing card, changed to describe this schema; comments, order and layout
        are kept.

        Parameters
        ----------
        text
            The card as it is. Its features are matched by name: those that are not in this schema
            are taken out together with the comments directly above them, new ones become sections
            at their position.

        Raises
        ------
        SchemaError
            If ``text`` is not a valid card.

        Examples
        --------
        >>> card = '''
        ... [target]
        ... name = "class"
        ... favourable = "good"
        ...
        ... [features.age]
        ... kind = "continuous"
        ... cost = 2  # agreed in May
        ... '''
        >>> from dataclasses import replace
        >>> schema = Schema.from_toml(card)
        >>> changed = replace(schema, features=(replace(schema["age"], cost=3),))
        >>> changed.update_toml(card).splitlines()[-1]
        'cost = 3  # agreed in May'
        """
        from tomlkit.exceptions import TOMLKitError

        from edfa.data.card import update_card

        old = Schema.from_toml(text)
        with suppress(SchemaError, TOMLKitError):
            updated = update_card(text, old, self)
            if Schema.from_toml(updated) == self:
                return updated
        raise SchemaError("the layout of this card cannot be kept; to_toml writes a new one")

    @classmethod
    def from_toml(cls, text: str, where: str = "") -> "Schema":
        """Read the text of a card.

        Parameters
        ----------
        text
            TOML.
        where
            The name of its file, with which error messages begin.

        Raises
        ------
        SchemaError
            If the text is no TOML, or a key is unknown, missing or wrong; the message names the
            key.
        """
        prefix = f"{where}: " if where else ""
        try:
            card = tomllib.loads(text)
            target = parse(Target, _section(card, "target"), "target")
            sections = _section(card, "features")
            features = tuple(
                parse(
                    Feature,
                    _by_language(_section(sections, name, "features.")) | {"name": name},
                    f"features.{name}",
                )
                for name in sections
            )
            values = {
                "target": target.name,
                "favourable": str(target.favourable),
                "classes": tuple(str(c) for c in target.classes),
                "merge": target.merge,
                "words": target.words,
                "target_guessed": target.guessed,
                "rules": Rules.parse(_section(card, "rules") if "rules" in card else {}),
            }
            return parse(cls, _by_language(card) | values | {"features": features}, "")
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise SchemaError(f"{prefix}not a TOML file: {error}") from None
        except (SchemaError, SettingError) as error:
            raise SchemaError(f"{prefix}{error}") from None

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Read a card.

        Parameters
        ----------
        path
            A TOML file in UTF-8.

        Raises
        ------
        UnreadableError
            If the file cannot be read.
        SchemaError
            If it is no card; the message names the file and the key.
        """
        return cls.from_toml(read_text(path), where=Path(path).name)

    def write(self, path: str | Path) -> None:
        """Write the card to a file, whole or not at all.

        Parameters
        ----------
        path
            The file. If it is a card already it is updated as by ``update_toml``: its comments,
            order and layout are kept. Any other file is replaced.

        Raises
        ------
        UnwritableError
            If the place cannot be written.
        """
        path = Path(path)
        try:
            text = self.update_toml(read_text(path))
        except (UnreadableError, SchemaError):  # there is no file, or it is no card
            text = self.to_toml()
        write_text(path, text)


def _by_language(section: Mapping[str, Any]) -> dict[str, Any]:
    """A section with its languages (``de.label = …``) under the key ``translations``."""
    spoken = {
        key: value
        for key, value in section.items()
        if LANGUAGE.fullmatch(key) and isinstance(value, Mapping)
    }
    rest = {key: value for key, value in section.items() if key not in spoken}
    return rest | ({"translations": spoken} if spoken else {})


def _section(card: Mapping[str, Any], name: str, prefix: str = "") -> Mapping[str, Any]:
    """The mapping under ``name``; ``prefix`` is the path of ``card`` in the file, for error
    messages.
    """
    if name not in card:
        raise SchemaError(f"{name}: the card has no [{name}] section{did_you_mean(name, card)}")
    section = card[name]
    if not isinstance(section, Mapping):
        raise SchemaError(f"{prefix}{name}: must be a section of keys, not {section!r}")
    return section
