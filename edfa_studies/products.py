"""What cells share: blankets, fitted models, learnt policies and trajectories, in a folder on disk.

A product's key is a digest of all that it is made from, so that two cells that need the same
product name the same key, in any study, process and order. ``ProductFolder`` keeps what was made;
``Materials`` gives a cell its products, from the folder or made now.
"""

import errno
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np

import edfa
from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.acquisition.loop import Terms, acquire
from edfa.acquisition.trajectory import Trajectory
from edfa.advice.factory import new_predictor
from edfa.artifacts import load_arrays, read_parts, readable, save_arrays, write_parts
from edfa.blanket.discovery import discover
from edfa.blanket.units import Blanket
from edfa.data import catalog
from edfa.data.read import read_frame
from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.errors import UnreadableError
from edfa.people import Background, Provenance
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
from edfa_studies.cells import Cell, Part, hash_json

__all__ = ["Materials", "PartName", "Product", "ProductFolder", "make", "products"]

Kind = Literal["blanket", "predictor", "policy", "trajectory"]
PartName = Literal["calibration", "test"]
Hashes = dict[Part, str | None]
"""The SHA-256 of the files behind data sets; None for one that comes from OpenML."""
T = TypeVar("T")
Model = TypeVar("Model", bound=Predictor)
RECIPE = 1  # raised when a product of the same description is made in another way
SUBSET_MODELS = 64  # subset models in memory, for each model
UNFINISHED = ".unfinished"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
COLUMNS = (
    "person values when declined "
    "who step feature cost spent scores probabilities decision necessity"
).split()
BLANKET_FILE, TRAJECTORY_FILE = "blanket.json", "trajectory.safetensors"


@dataclass(frozen=True)
class ProductFolder:
    """Products on disk, an entry for each at ``root/KIND/KEY``.

    An entry is a folder that is whole or not there; what is in it is written with hashes, and made
    anew where they do not fit. Deleting the folder loses time alone.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     products = ProductFolder(Path(folder))
    ...     with products.fill("blanket", "0123") as entry:
    ...         _ = (entry / "blanket.json").write_text("{}", encoding="utf-8")
    ...     products.has("blanket", "0123"), products.has("blanket", "4567")
    (True, False)
    """

    root: Path

    def folder(self, kind: str, key: str) -> Path:
        """Where an entry is, or would be."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Whether an entry is there."""
        return self.folder(kind, key).is_dir()

    @contextmanager
    def fill(self, kind: str, key: str) -> Iterator[Path]:
        """Yield a new folder to write into, which becomes the entry when the block ends without an
        error.

        If somebody else has made the entry meanwhile, theirs stays: both are made from the same
        things.
        """
        partial, place = self.root / UNFINISHED / uuid.uuid4().hex, self.folder(kind, key)
        partial.mkdir(parents=True)
        try:
            yield partial
            place.parent.mkdir(parents=True, exist_ok=True)
            while partial.is_dir() and not place.is_dir():
                # again, if somebody's entry was dropped meanwhile
                try:
                    partial.rename(place)
                except OSError as error:
                    if error.errno not in TAKEN:
                        raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def drop(self, kind: str, key: str) -> None:
        """Remove an entry, as one that turned out to be damaged; nobody sees half of it."""
        gone = self.root / UNFINISHED / uuid.uuid4().hex
        gone.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.folder(kind, key).rename(gone)
        except FileNotFoundError:  # somebody else has found out, too
            return
        shutil.rmtree(gone, ignore_errors=True)


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


def products(cell: Cell, hashes: Hashes | None = None) -> tuple[Product, ...]:
    """What a cell needs and may share with others, each after what it needs itself.

    ``hashes`` is filled with the hashes of data sets; given again, it saves reading their files.
    """
    keys = product_keys(cell, {} if hashes is None else hashes)
    made = [Product("blanket", keys["blanket"], (), cell)]
    if cell.measure == "sets":
        return tuple(made)
    made.append(Product("predictor", keys["predictor"], (), cell))
    if _learns(cell):
        made.append(Product("policy", keys["policy"], (keys["blanket"], keys["predictor"]), cell))
    needs = tuple(product.key for product in made)
    made += [Product("trajectory", keys[part], needs, cell, part) for part in _parts(cell)]
    return tuple(made)


def make(product: Product, folder: str) -> None:
    """Make a product, unless the folder of products has it."""
    if not ProductFolder(Path(folder)).has(product.kind, product.key):
        materials = Materials(product.cell, Path(folder))
        if product.kind == "trajectory":
            materials.trajectory(product.part)
        else:
            getattr(materials, product.kind)


def product_keys(cell: Cell, hashes: Hashes) -> dict[str, str]:
    """The key of everything that a cell may need, by kind; of a trajectory, by its part."""
    settings = cell.settings
    if cell.data not in hashes:
        hashes[cell.data] = _content_hash(cell.data)
    made = [cell.data.content, hashes[cell.data], settings["cap"], settings["split"]]
    data = hash_json([*made, edfa.__version__, RECIPE])
    keys = {"data": data, "blanket": hash_json([data, cell.blanket.content])}
    if cell.measure == "sets":
        return keys
    reading, kind = settings["reading"], POLICIES[cell.policy.of]
    keys["predictor"] = hash_json([data, cell.predictor.content, reading])
    own = fields(cast(Any, kind)) if is_dataclass(kind) else ()
    has_blanket = any(one.name == "blanket" and one.default is MISSING for one in own)
    blanket = keys["blanket"] if has_blanket else None
    model = [keys["predictor"], reading] if _learns(cell) and kind.asks_model else None
    keys["policy"] = hash_json([data, cell.policy.content, blanket, model])
    for part in _parts(cell):
        asked = [keys["policy"], keys["predictor"], part, _people_wanted(cell, part), cell.seed]
        keys[part] = hash_json([*asked, settings["budget"], not _certifies(cell), reading])
    return keys


def _learns(cell: Cell) -> bool:
    """Whether the policy of a cell learns anything."""
    return POLICIES[cell.policy.of].save_state is not Policy.save_state


def _certifies(cell: Cell) -> bool:
    """Whether a cell is about certificates: calibration people are asked too, nothing explained."""
    return cell.measure == "promise"


def _parts(cell: Cell) -> tuple[PartName, ...]:
    """The parts of the table whose people are asked."""
    return ("calibration", "test") if _certifies(cell) else ("test",)


def _people_wanted(cell: Cell, part: PartName) -> int:
    """The largest number of people of a part that a cell is about."""
    return int(cell.settings[part if _certifies(cell) else "people"])


def _content_hash(data: Part) -> str | None:
    card = data.settings.get("card")
    if card is not None:
        return sha256_of(Path(data.of)) + sha256_of(Path(card))
    if data.of in catalog.BUNDLED:
        return catalog.BUNDLED[data.of]
    where = Path(catalog.where(data.of))
    return sha256_of(where) if where.is_file() else None


@dataclass(frozen=True)
class Materials:
    """Everything a cell works with, from the folder of products or made now; each once.

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

    @cached_property
    def keys(self) -> dict[str, str]:
        """The keys of the cell's products."""
        return product_keys(self.cell, {})

    @cached_property
    def table(self) -> Table:
        """The table, with the study's cap and split."""
        of, card = self.cell.data.of, self.cell.data.settings.get("card")
        cap, split = self.cell.settings["cap"] or None, self.cell.settings["split"]
        if card is None:
            return catalog.load(of, seed=split, cap=cap)
        name = Path(of).stem
        return Table.from_frame(read_frame(of, card), card, name=name, seed=split, cap=cap)

    @property
    def rules(self) -> Rules:
        """What plans obey: in the paper's reading, nothing but that sensitive features stay."""
        return Rules(reading=self.cell.settings["reading"])

    @property
    def desired_class(self) -> int | None:
        """The code of the class that plans lead to; None in the paper's reading: any other
        decision.
        """
        if self.cell.settings["reading"] == "paper":
            return None
        return self.table.schema.classes.index(self.table.schema.favourable)

    @cached_property
    def blanket(self) -> Blanket:
        """The Markov blanket of the outcome among the training people."""
        part = self.cell.blanket

        def find(folder: Path) -> Blanket:
            blanket = discover(self.table.train, method=cast(Any, part.of), **part.settings)
            content = blanket.to_json().encode()
            write_parts(folder / "blanket", "Blanket", {}, {BLANKET_FILE: content})
            return blanket

        def read(folder: Path) -> Blanket:
            _, parts = read_parts(folder / "blanket", "Blanket")
            with readable(str(folder)):
                return Blanket.from_json(parts[BLANKET_FILE].decode())

        return self._get("blanket", self.keys["blanket"], find, read)

    @cached_property
    def predictor(self) -> Predictor:
        """The model, fitted on the training people; it obeys the card's directions in the card's
        reading alone.
        """
        table, settings = self.table, dict(self.cell.predictor.settings)
        threshold = settings.pop("threshold", None)
        kind: Any = PREDICTORS[self.cell.predictor.of]
        obey = self.cell.settings["reading"] == "card"
        new = new_predictor(kind(**settings), table, threshold, 0, obey_directions=obey)

        def fit(folder: Path) -> Predictor:
            model = self._share(new.fit(table.train.X, table.train.y))
            model.to_folder(folder / "model")
            return model

        def read(folder: Path) -> Predictor:
            model: Predictor = kind.from_folder(folder / "model")
            model.threshold = new.threshold
            return self._share(model)

        return self._get("predictor", self.keys["predictor"], fit, read)

    def judge(self) -> SubsetXGB:
        """A model of everything, from the calibration people alone, that took no part in making
        plans.
        """
        calibration = self.table.calibration
        return self._share(SubsetXGB(seed=1).fit(calibration.X, calibration.y))

    def _share(self, model: Model) -> Model:
        """Let all processes share the subset models of an XGBoost."""
        if isinstance(model, SubsetXGB):
            model.cache_in(self.root / "subsets", SUBSET_MODELS)
        return model

    @cached_property
    def policy(self) -> Policy:
        """The policy, on the cell's blanket, with what it has learnt."""
        part, train = self.cell.policy, self.table.train
        settings = dict(part.settings)
        limit = settings.pop("train_rows", None)
        # A policy that plans does so with its own searcher, so that one trajectory serves all
        # searchers.
        policy = POLICIES[part.of].default(
            blanket=self.blanket,
            searcher=SurvivalSearch(),
            desired_class=self.desired_class,
            rules=self.rules,
        )
        policy.set_params(**settings)
        if not _learns(self.cell):
            return policy.fit(train, None)

        def learn(folder: Path) -> Policy:
            people = train
            if limit is not None:
                some = np.random.default_rng(0).permutation(len(train))[: int(limit)]
                people = replace(train, frame=train.frame.iloc[some])
            policy.fit(people, self.predictor)
            policy.save_state(folder / "policy")
            return policy

        def read(folder: Path) -> Policy:
            return policy.load_state(folder / "policy", train)

        return self._get("policy", self.keys["policy"], learn, read)

    @cached_property
    def searcher(self) -> Searcher:
        """The searcher, fitted on the training people."""
        part = self.cell.searcher
        return SEARCHERS[part.of](**part.settings).fit(self.table.train)

    def people(self, part: PartName) -> Int64Array:
        """The rows, in their part of the table, of the people that the cell is about, ascending.

        They depend on the data and the seed alone, so that every policy meets the same people.
        """
        size = len(getattr(self.table, part))
        random = np.random.default_rng(
            int(hash_json([self.keys["data"], part, self.cell.seed]), 16)
        )
        return np.sort(random.permutation(size)[: _people_wanted(self.cell, part)]).astype(np.int64)

    def trajectory(self, part: PartName) -> Trajectory:
        """The people of a part, asked by the policy until the budget is spent."""

        def ask(folder: Path) -> Trajectory:
            who = self.people(part)
            trajectory = acquire(
                getattr(self.table, part).X[who],
                self.policy,
                self.predictor,
                self.cell.settings["budget"],
                seed=self.cell.seed,
                reference=self.table.train,
                terms=Terms(person=who),
                explain=not _certifies(self.cell),
            )
            columns = {name: getattr(trajectory, name) for name in COLUMNS}
            known = {name: column for name, column in columns.items() if column is not None}
            write_parts(
                folder / "trajectory", "Trajectory", {}, {TRAJECTORY_FILE: save_arrays(known)}
            )
            return trajectory

        def read(folder: Path) -> Trajectory:
            _, parts = read_parts(folder / "trajectory", "Trajectory")
            policy = self.policy
            with readable(str(folder)):
                columns: Any = load_arrays(parts[TRAJECTORY_FILE], TRAJECTORY_FILE)
                return Trajectory(
                    background=Background.of(
                        self.table.train, self.predictor, policy.blanket, aligned=policy.aligned
                    ),
                    seed=self.cell.seed,
                    provenance=Provenance(policy=policy),
                    **{"necessity": None, **columns},
                )

        return self._get("trajectory", self.keys[part], ask, read)

    def plans(self, trajectory: Trajectory) -> Plans:
        """The plans at every step of a trajectory, as the cell's reading asks for."""
        return find_recourse(
            trajectory,
            self.searcher,
            rules=self.rules,
            desired_class=self.desired_class,
            seed=self.cell.seed,
        )

    def _get(self, kind: Kind, key: str, make: Callable[[Path], T], read: Callable[[Path], T]) -> T:
        """A product, from the folder or made now. A damaged entry is made anew."""
        folder = ProductFolder(self.root)
        if folder.has(kind, key):
            try:
                return read(folder.folder(kind, key))
            except UnreadableError:
                folder.drop(kind, key)
        with folder.fill(kind, key) as entry:
            return make(entry)
