"""What cells share: blankets, fitted models, learnt policies and trajectories, in a folder on disk.

A product's key is a digest of all that it is made from, so that two cells that need the same
product name the same key, in any study, process and order. ``products`` lists what a cell needs,
``ProductFolder`` holds what was made, and ``Materials`` gives a cell its products, from the folder
or made now.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
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

PartName = Literal["calibration", "test"]
Hashes = dict[str, str | None]
"""The SHA-256 of the files behind data sets, by the digest of what a cell says about them; None for
one that comes from OpenML."""
T = TypeVar("T")
RECIPE = 1  # raised when a product of the same description is made in another way
SUBSET_MODELS = 64  # subset models in memory, for each model
UNFINISHED = ".unfinished"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
COLUMNS = (
    "person values when declined "
    "who step feature cost spent scores probabilities decision necessity"
).split()
TRAJECTORY_FILE = "trajectory.safetensors"


@dataclass(frozen=True)
class ProductFolder:
    """Products on disk, an entry for each at ``root/KIND/KEY``.

    An entry is a folder that is whole or not there; what is in it is written with hashes, and made
    anew where they do not fit. Deleting the folder loses time alone.

    Parameters
    ----------
    root
        The folder; made with the first entry.

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

        If another process has made the entry meanwhile, that one stays: both are made from the same
        things.
        """
        place = self.folder(kind, key)
        with self._unfinished() as partial:
            partial.mkdir()
            yield partial
            place.parent.mkdir(parents=True, exist_ok=True)
            while partial.is_dir() and not place.is_dir():
                # again, if another process has dropped its entry meanwhile
                try:
                    partial.rename(place)
                except OSError as error:
                    if error.errno not in TAKEN:
                        raise

    def drop(self, kind: str, key: str) -> None:
        """Remove an entry that turned out to be damaged, all of it at once."""
        # it is not there if another process has found out, too
        with self._unfinished() as gone, suppress(FileNotFoundError):
            self.folder(kind, key).rename(gone)

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        """Yield a path that nothing else has; what is there when the block ends is deleted."""
        folder = self.root / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as mine:
            yield Path(mine) / "entry"


@dataclass(frozen=True)
class Product:
    """One piece of work that cells share.

    Parameters
    ----------
    kind
        ``"blanket"``, ``"predictor"``, ``"policy"`` or ``"trajectory"``.
    key
        Digest of all that it is made from.
    needs
        The keys of the products that it is made from.
    cell
        A cell that needs it, and so describes it.
    part
        Of a trajectory: the part of the table whose people are asked, ``"calibration"`` or
        ``"test"``; else empty.
    """

    kind: str
    key: str
    needs: tuple[str, ...]
    cell: Cell
    part: str = ""


def products(cell: Cell, hashes: Hashes | None = None) -> tuple[Product, ...]:
    """List what a cell needs and may share with others, each after what it needs itself.

    Parameters
    ----------
    cell
        The cell.
    hashes
        Filled with the hashes of data sets; given again, it saves reading their files.

    Returns
    -------
    tuple of Product
        The blanket; unless the measure is "sets", also the model, the policy if it learns anything,
        and a trajectory for each part of the table whose people the cell asks.
    """
    data = data_key(cell, {} if hashes is None else hashes)
    blanket = Product("blanket", hash_json([data, cell.blanket.content]), (), cell)
    if cell.measure == "sets":
        return (blanket,)
    reading, kind = cell.settings["reading"], POLICIES[cell.policy.of]
    model = Product("predictor", hash_json([data, cell.predictor.content, reading]), (), cell)
    learns = kind.save_state is not Policy.save_state
    made_of = [
        blanket.key if "blanket" in kind.takes else None,
        [model.key, reading] if learns and kind.asks_model else None,
    ]
    key = hash_json([data, cell.policy.content, *made_of])
    policy = Product("policy", key, (blanket.key, model.key), cell)
    made = [blanket, model, policy] if learns else [blanket, model]
    needs = tuple(product.key for product in made)
    for part, count in cell.people.items():
        asked = [policy.key, model.key, part, count, cell.seed, cell.settings["budget"]]
        key = hash_json([*asked, _explains(cell), reading])
        made.append(Product("trajectory", key, needs, cell, part))
    return tuple(made)


def make(product: Product, folder: str) -> None:
    """Make a product, unless the folder of products has it.

    Parameters
    ----------
    product
        What is made, of one of the cells that need it.
    folder
        The folder of products, as text, since this is called on workers.
    """
    if not ProductFolder(Path(folder)).has(product.kind, product.key):
        materials: Any = Materials(product.cell, Path(folder))
        if product.part:
            materials.trajectory(product.part)
        else:
            getattr(materials, product.kind)


def data_key(cell: Cell, hashes: Hashes) -> str:
    """The digest of a cell's table: its content, cap and split, and the version of edfa.

    ``hashes`` has the hashes of data sets that are known; that of the cell is added.
    """
    data, settings, said = cell.data, cell.settings, hash_json(cell.data.content)
    if said not in hashes:
        hashes[said] = _content_hash(data)
    content = [data.content, hashes[said], settings["cap"], settings["split"]]
    return hash_json([*content, edfa.__version__, RECIPE])


def _explains(cell: Cell) -> bool:
    """Whether trajectories have necessities; certificates do without."""
    return cell.measure != "promise"


def _content_hash(data: Part) -> str | None:
    if (card := data.settings.get("card")) is not None:
        return sha256_of(Path(data.of)) + sha256_of(Path(card))
    if data.of in catalog.BUNDLED:
        return catalog.BUNDLED[data.of]
    where = Path(catalog.where(data.of))
    return sha256_of(where) if where.is_file() else None


@dataclass(frozen=True)
class Materials:
    """Everything a cell works with, from the folder of products or made now; each once.

    Parameters
    ----------
    cell
        The cell.
    root
        The folder of products; see ``ProductFolder``.
    hashes
        Hashes of data sets that are known already; see ``products``.

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
    hashes: Hashes = field(default_factory=dict, repr=False)

    @cached_property
    def products(self) -> dict[str, Product]:
        """The cell's products by kind; trajectories by the part of the table."""
        made = products(self.cell, self.hashes)
        return {product.part or product.kind: product for product in made}

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
            content = {"blanket.json": blanket.to_json().encode()}
            write_parts(folder / "blanket", "Blanket", {}, content)
            return blanket

        def read(folder: Path) -> Blanket:
            _, parts = read_parts(folder / "blanket", "Blanket")
            with readable(str(folder)):
                return Blanket.from_json(parts["blanket.json"].decode())

        return self._get("blanket", find, read)

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
            model: Predictor = self._share(new.fit(table.train.X, table.train.y))
            model.to_folder(folder / "model")
            return model

        def read(folder: Path) -> Predictor:
            model: Predictor = self._share(kind.from_folder(folder / "model"))
            model.threshold = new.threshold
            return model

        return self._get("predictor", fit, read)

    def judge(self) -> SubsetXGB:
        """A model of everything, from the calibration people alone, that took no part in making
        plans.
        """
        calibration = self.table.calibration
        return self._share(SubsetXGB(seed=1).fit(calibration.X, calibration.y))

    def _share(self, model: T) -> T:
        """The model, whose subset models all processes share if it is an XGBoost."""
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
        if "policy" not in self.products:  # it learns nothing
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

        return self._get("policy", learn, read)

    @cached_property
    def searcher(self) -> Searcher:
        """The searcher, fitted on the training people."""
        part = self.cell.searcher
        return SEARCHERS[part.of](**part.settings).fit(self.table.train)

    def people(self, part: PartName) -> Int64Array:
        """The people that the cell is about.

        They depend on the data and the seed alone, so that every policy meets the same people.

        Parameters
        ----------
        part
            Which people: ``"calibration"`` or ``"test"``.

        Returns
        -------
        array of shape (people,)
            Their rows in this part of the table, ascending.
        """
        drawn_for = [data_key(self.cell, self.hashes), part, self.cell.seed]
        random = np.random.default_rng(int(hash_json(drawn_for), 16))
        drawn = random.permutation(len(getattr(self.table, part)))[: self.cell.people[part]]
        return np.sort(drawn).astype(np.int64)

    def trajectory(self, part: PartName) -> Trajectory:
        """The people of a part, asked by the policy until the budget is spent.

        Parameters
        ----------
        part
            Which people: ``"calibration"`` or ``"test"``.

        Returns
        -------
        Trajectory
            Their runs; without necessities where the cell is about certificates.
        """

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
                explain=_explains(self.cell),
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

        return self._get(part, ask, read)

    def plans(self, trajectory: Trajectory) -> Plans:
        """The plans at every step of a trajectory, as the cell's reading asks for.

        Parameters
        ----------
        trajectory
            People of the cell, as of ``trajectory``.

        Returns
        -------
        Plans
            Those that the cell's searcher found.
        """
        return find_recourse(
            trajectory,
            self.searcher,
            rules=self.rules,
            desired_class=self.desired_class,
            seed=self.cell.seed,
        )

    def _get(self, name: str, make: Callable[[Path], T], read: Callable[[Path], T]) -> T:
        """A product, from its folder by ``read``, or made now and written there by ``make``.

        A damaged entry is made anew.
        """
        folder, product = ProductFolder(self.root), self.products[name]
        kind, key = product.kind, product.key
        if folder.has(kind, key):
            try:
                return read(folder.folder(kind, key))
            except UnreadableError:
                folder.drop(kind, key)
        with folder.fill(kind, key) as entry:
            return make(entry)
