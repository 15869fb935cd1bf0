"""What cells share: blankets, fitted models, learnt policies and trajectories, each under a key of
its own.

A product's key is a digest of all that it is made from, so that two cells that need the same
product name the same key, in any study, process and order.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np

import edfa
from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.acquisition.loop import acquire
from edfa.acquisition.trajectory import Trajectory
from edfa.advice.factory import new_predictor
from edfa.artifacts import read_parts, readable, write_parts
from edfa.blanket.discovery import discover
from edfa.blanket.units import Blanket
from edfa.data import catalog
from edfa.data.read import read_frame
from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.errors import UnreadableError
from edfa.predictors import PREDICTORS
from edfa.predictors.base import Predictor
from edfa.predictors.xgb import SubsetXGB
from edfa.reading import sha256_of
from edfa.recourse import SEARCHERS
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import Int64Array
from edfa_studies import trajectories
from edfa_studies.cache import Cache
from edfa_studies.cells import Cell, hash_json

__all__ = ["Materials", "PartName", "Product", "make", "products"]

Kind = Literal["blanket", "predictor", "policy", "trajectory"]
PartName = Literal["calibration", "test"]
T = TypeVar("T")
Model = TypeVar("Model", bound=Predictor)
RECIPE = 1  # raised when a product of the same description is made in another way
MODELS = 64  # subset models held in memory by one process, for each of the models below
HELD = 6  # products of each kind held in memory by one process


@dataclass(frozen=True)
class Product:
    """One piece of shared work: what it is, its key, the keys of what it needs, and a cell that
    describes it.

    ``part`` is the part of the table whose people a trajectory asks.
    """

    kind: Kind
    key: str
    needs: tuple[str, ...]
    cell: Cell
    part: PartName = "test"


def products(cell: Cell) -> tuple[Product, ...]:
    """What a cell needs and may share with others, each after what it needs itself."""
    keys = _Keys(cell)
    if cell.measure == "sets":
        return (Product("blanket", keys.blanket, (), cell),)
    made = [
        Product("blanket", keys.blanket, (), cell),
        Product("predictor", keys.predictor, (), cell),
    ]
    if keys.learns:
        made.append(Product("policy", keys.policy, (keys.blanket, keys.predictor), cell))
    needs = tuple(product.key for product in made)
    parts: tuple[PartName, ...] = (
        ("calibration", "test") if cell.measure == "promise" else ("test",)
    )
    made += [Product("trajectory", keys.trajectory(part), needs, cell, part) for part in parts]
    return tuple(made)


def make(product: Product, cache: str) -> None:
    """Make a product, unless the cache has it."""
    if not Cache(Path(cache)).has(product.kind, product.key):
        materials = Materials(product.cell, Path(cache))
        getattr(materials, product.kind) if product.kind != "trajectory" else materials.trajectory(
            product.part
        )


@dataclass(frozen=True)
class _Keys:
    """The keys of a cell's products."""

    cell: Cell

    @cached_property
    def data(self) -> str:
        settings = self.cell.settings
        made = [
            self.cell.data.content,
            _content_hash(self.cell.data.of, self.cell.data.settings.get("card")),
        ]
        return hash_json([*made, settings["cap"], settings["split"], edfa.__version__, RECIPE])

    @cached_property
    def blanket(self) -> str:
        return hash_json([self.data, self.cell.blanket.content])

    @cached_property
    def predictor(self) -> str:
        return hash_json([self.data, self.cell.predictor.content, self.cell.settings["reading"]])

    @cached_property
    def policy_class(self) -> type[Policy]:
        return POLICIES[self.cell.policy.of]

    @property
    def learns(self) -> bool:
        """Whether the policy learns anything."""
        return self.policy_class.save_state is not Policy.save_state

    @cached_property
    def policy(self) -> str:
        settings: Any = fields(self.policy_class) if is_dataclass(self.policy_class) else ()
        has_blanket = any(
            setting.name == "blanket" and setting.default is MISSING for setting in settings
        )
        asks_model = self.learns and self.policy_class.asks_model
        made = [self.data, self.cell.policy.content, self.blanket if has_blanket else None]
        return hash_json(
            [*made, [self.predictor, self.cell.settings["reading"]] if asks_model else None]
        )

    def trajectory(self, part: PartName) -> str:
        settings = self.cell.settings
        made = [
            self.policy,
            self.predictor,
            part,
            people_wanted(self.cell, part),
            self.cell.seed,
            settings["budget"],
        ]
        return hash_json([*made, explains(self.cell), settings["reading"]])


def people_wanted(cell: Cell, part: PartName) -> int:
    """The largest number of people of a part that a cell is about."""
    name = (
        "people"
        if cell.measure != "promise"
        else {"calibration": "calibration", "test": "test"}[part]
    )
    return int(cell.settings[name])


def explains(cell: Cell) -> bool:
    """Whether the trajectory of a cell needs partitions."""
    return cell.measure != "promise"


@lru_cache(maxsize=64)
def _content_hash(of: str, card: str | None) -> str | None:
    """The SHA-256 of the files behind a data set; None for one that comes from OpenML."""
    if card is not None:
        return sha256_of(Path(of)) + sha256_of(Path(card))
    if of in catalog.BUNDLED:
        return catalog.BUNDLED[of]
    where = Path(catalog.where(of))
    return sha256_of(where) if where.is_file() else None


@lru_cache(maxsize=3)
def _table(of: str, card: str | None, cap: int, split: int) -> Table:
    if card is None:
        return catalog.load(of, seed=split, cap=cap or None)
    return Table.from_frame(
        read_frame(of, card), card, name=Path(of).stem, seed=split, cap=cap or None
    )


_held: dict[tuple[str, str], dict[str, Any]] = {}


@dataclass(frozen=True)
class Materials:
    """Everything a cell works with, from the cache or made now.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edfa_studies.cells import Part
    >>> parts = [Part(name, name) for name in ("german", "xgb", "hiton-mb", "edfa", "nearest")]
    >>> settings = {"people": 5, "budget": 0.9, "cap": 0, "split": 0, "reading": "paper"}
    >>> with TemporaryDirectory() as folder:
    ...     Materials(Cell("growth", *parts, settings=settings), Path(folder)).trajectory("test")
    <Trajectory of 5 people: 15 steps, mean cost 4>
    """

    cell: Cell
    root: Path

    @property
    def keys(self) -> _Keys:
        """The keys of the cell's products."""
        return _Keys(self.cell)

    @property
    def table(self) -> Table:
        """The table, with the study's cap and split."""
        data, settings = self.cell.data, self.cell.settings
        return _table(data.of, data.settings.get("card"), settings["cap"], settings["split"])

    @property
    def rules(self) -> Rules:
        """What plans obey: in the paper's reading, nothing but that sensitive features stay."""
        return Rules(reading=self.cell.settings["reading"])

    @property
    def desired_class(self) -> int | None:
        """The code of the class that plans lead to; None in the paper's reading: any other
        decision.
        """
        schema = self.table.schema
        return (
            None
            if self.cell.settings["reading"] == "paper"
            else schema.classes.index(schema.favourable)
        )

    @property
    def blanket(self) -> Blanket:
        """The Markov blanket of the outcome among the training people."""
        part = self.cell.blanket

        def find(folder: Path) -> Blanket:
            blanket = discover(self.table.train, method=cast(Any, part.of), **part.settings)
            write_parts(
                folder / "blanket", "Blanket", {}, {"blanket.json": blanket.to_json().encode()}
            )
            return blanket

        def read(folder: Path) -> Blanket:
            with readable(str(folder)):
                return Blanket.from_json(
                    read_parts(folder / "blanket", "Blanket")[1]["blanket.json"].decode()
                )

        return self._get("blanket", self.keys.blanket, find, read)

    @property
    def predictor(self) -> Predictor:
        """The model, fitted on the training people; it obeys the card's directions in the card's
        reading alone.
        """
        part, table = self.cell.predictor, self.table
        settings = dict(part.settings)
        threshold = settings.pop("threshold", None)
        kind: Any = PREDICTORS[part.of]

        def fit(folder: Path) -> Predictor:
            obey = self.cell.settings["reading"] == "card"
            model = new_predictor(kind(**settings), table, threshold, 0, obey_directions=obey)
            model = self._share(model.fit(table.train.X, table.train.y))
            model.to_folder(folder / "model")
            return model

        def read(folder: Path) -> Predictor:
            model: Predictor = kind.from_folder(folder / "model")
            if threshold is not None:
                model.threshold = new_predictor(
                    kind(**settings), table, threshold, 0, obey_directions=False
                ).threshold
            return self._share(model)

        return self._get("predictor", self.keys.predictor, fit, read)

    def judge(self) -> SubsetXGB:
        """A model of everything, from the calibration people alone, that took no part in making
        plans.
        """
        calibration = self.table.calibration
        return self._share(SubsetXGB(seed=1).fit(calibration.X, calibration.y))

    def _share(self, model: Model) -> Model:
        """Let all processes share the subset models of an XGBoost."""
        if isinstance(model, SubsetXGB):
            model.cache_in(self.root / "subsets", MODELS)
        return model

    @property
    def policy(self) -> Policy:
        """The policy, on the cell's blanket, with what it has learnt."""
        if not self.keys.learns:
            return self._new_policy().fit(self.table.train, None)

        def learn(folder: Path) -> Policy:
            policy, train, limit = (
                self._new_policy(),
                self.table.train,
                self.cell.policy.settings.get("train_rows"),
            )
            if limit is None:
                policy.fit(train, self.predictor)
            else:
                some = np.random.default_rng(0).permutation(len(train))[: int(limit)]
                cast(Any, policy).fit_rows(train.X[some], train.y[some], train.schema)
            policy.save_state(folder / "policy")
            return policy

        def read(folder: Path) -> Policy:
            return self._new_policy().load_state(folder / "policy", self.table.train)

        return self._get("policy", self.keys.policy, learn, read)

    def _new_policy(self) -> Policy:
        part = self.cell.policy
        # A policy that plans does so with its own searcher, so that one trajectory serves all
        # searchers.
        policy = POLICIES[part.of].default(
            self.blanket,
            SurvivalSearch(),
            self.desired_class,  # type: ignore[arg-type]
            self.rules,
        )
        return policy.set_params(
            **{name: value for name, value in part.settings.items() if name != "train_rows"}
        )

    @property
    def searcher(self) -> Searcher:
        """The searcher, fitted on the training people."""
        part, kind = self.cell.searcher, SEARCHERS[self.cell.searcher.of]
        held = _held.setdefault((str(self.root), "searcher"), {})
        key = hash_json(["searcher", self.keys.data, part.content])
        if key not in held:
            _hold(held, key, kind(**part.settings).fit(self.table.train))
        searcher: Searcher = held[key]
        return searcher

    def people(self, part: PartName) -> Int64Array:
        """The rows, in their part of the table, of the people that the cell is about, ascending.

        They depend on the data and the seed alone, so that every policy meets the same people.
        """
        size = len(getattr(self.table, part))
        random = np.random.default_rng(int(hash_json([self.keys.data, part, self.cell.seed]), 16))
        return np.sort(random.permutation(size)[: people_wanted(self.cell, part)]).astype(np.int64)

    def trajectory(self, part: PartName) -> Trajectory:
        """The people of a part, asked by the policy until the budget is spent."""

        def ask(folder: Path) -> Trajectory:
            who = self.people(part)
            rows = getattr(self.table, part).X[who]
            trajectory = acquire(
                rows,
                self.policy,
                self.predictor,
                self.cell.settings["budget"],
                seed=self.cell.seed,
                reference=self.table.train,
                person=who.tolist(),
                explain=explains(self.cell),
            )
            trajectories.write(trajectory, folder)
            return trajectory

        def read(folder: Path) -> Trajectory:
            return trajectories.read(folder, self.table.train, self.predictor, self.policy)

        return self._get("trajectory", self.keys.trajectory(part), ask, read)

    def plans(self, part: PartName) -> Plans:
        """The plans of everybody in a part, at every step of their trajectory, as the cell's
        reading asks for.
        """
        return find_recourse(
            self.trajectory(part),
            self.searcher,
            rules=self.rules,
            desired_class=self.desired_class,
            seed=self.cell.seed,
        )

    def _get(self, kind: Kind, key: str, make: Callable[[Path], T], read: Callable[[Path], T]) -> T:
        """A product: from memory, from the cache, or made now. A damaged entry is made anew."""
        held = _held.setdefault((str(self.root), kind), {})
        if key in held:
            value: T = held[key]
            return value
        cache = Cache(self.root)
        if cache.has(kind, key):
            try:
                return _hold(held, key, read(cache.folder(kind, key)))
            except UnreadableError:
                cache.drop(kind, key)
        with cache.fill(kind, key) as folder:
            made = make(folder)
        return _hold(held, key, made)


def _hold(held: dict[str, Any], key: str, value: T) -> T:
    """Keep a product in memory; the oldest goes."""
    if len(held) >= HELD:
        held.pop(next(iter(held)))
    held[key] = value
    return value
