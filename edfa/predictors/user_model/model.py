"""A fitted user model as a predictor: it decides, and something else speaks while facts are
missing.

With everything known the answer is the model's own. It cannot answer from a part of the features,
and must never be handed "not asked yet" as if it were a missing value. What it would probably say
is worked out in one of two ways (``partial``): by a ``SubsetXGB`` that has learnt its
probabilities, or by asking it about likely completions. Whether a plan survives is always asked of
the model itself.
"""

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypedDict, Unpack, cast, get_args

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.data.table import Table
from edfa.errors import ModelError, UnreadableError, check_known
from edfa.predictors.base import Predictor, Progress, from_settings, spread
from edfa.predictors.conditional import Neighbours
from edfa.predictors.user_model.answers import Answers, Asked, RowLimit
from edfa.predictors.user_model.ask import FittedModel
from edfa.predictors.user_model.distil import distil
from edfa.predictors.user_model.given import Given
from edfa.predictors.user_model.source import Source
from edfa.predictors.user_model.usage import Usage, permutation_usage
from edfa.predictors.xgb import SubsetXGB
from edfa.reading import check_count, check_seed
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

Partial = Literal["distilled", "completed"]
PARTIAL = get_args(Partial)
# training people about whom the model is asked more than once; their answers tell it from another
# one
TRIED = 64
SAME = 1e-6  # how far apart two answers of one model about one person may be
VIEW = "view"  # the folder in a folder that has the distilled model
ARRAYS = "arrays.safetensors"
LEARNT = ("classes_", "prior_", "tried_", "answers_", "needed_", "fill_")
MANY_VALUES = 500  # of one feature: more are numbers
ROWS_PER_CALL = 20_000  # rows in one call
MAX_ROWS_PER_STEP = 500_000  # rows that one step of an interview may ask about
TIE = 0.25  # of a completion: as many for as against is no majority
COMPLETED = 1_000  # people completed at a time
COMPLETED_ROWS = 100_000  # asked about at once to decide by completions
BACKWARDS = 0.4  # an AUROC below which classes were probably named in the wrong order


@dataclass(eq=False, repr=False)
class UserModel(Predictor):
    """A fitted user model, which is never fitted again; ``edfa.wrap`` makes one.

    Parameters
    ----------
    own
        The model with its columns and classes.
    partial
        Who answers while facts are missing: ``"distilled"`` or ``"completed"``; see ``wrap``.
    n_completions, n_hybrids
        Completions a person for ``"completed"``; hybrids a training person for ``"distilled"``.
    batch_rows, max_rows
        The most rows in one call, and in one step of an interview (None: no limit).
    seed
        Decides hybrids and what the distilled model draws.
    threshold, favourable
        As for every predictor: when the model decides for a class.

    Attributes
    ----------
    source_
        How encoded people become what the model is asked about.
    view_
        What answers while facts are missing: a ``SubsetXGB`` that was distilled, or the
        ``Neighbours`` from whom people are completed.
    tried_, answers_
        Some training people (64, features), encoded, and what the model said of them (64, classes).
    cover_
        Training people (n, features) among whom every level of every feature occurs.
    usage_
        Which features the model uses, by permutation on training people.
    needed_, fill_
        Which features must be known for the model itself to answer, (features,): those that it
        uses. For others, which made no difference to anybody, it is given those of one training
        person (features,).

    Examples
    --------
    >>> import edfa
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> table = edfa.load("german")
    >>> mine = HistGradientBoostingClassifier(max_iter=20).fit(table.train.X, table.train.y)
    >>> model = wrap(mine, columns="encoded", classes=table.schema.classes).fit_table(table.train)
    >>> bool((model.predict_proba(table.test.X) == mine.predict_proba(table.test.X)).all())
    True
    """

    refits: ClassVar[bool] = False
    learnt_attributes: ClassVar[tuple[str, ...]] = (*LEARNT, "varies_")
    _table = cast("Table | None", None)
    given = cast("tuple[Given, ...] | None", None)  # None: it is asked about people of a table
    _limit = cast("RowLimit | None", None)
    _completions = cast("Float32Array | None", None)
    _decider = cast("UserModel", None)  # whose decisions over the completions are counted

    own: FittedModel
    partial: Partial = "distilled"
    _: KW_ONLY
    n_completions: int = 32
    n_hybrids: int = 4
    batch_rows: int = ROWS_PER_CALL
    max_rows: int | None = MAX_ROWS_PER_STEP
    seed: int = 0
    threshold: float | None = None
    favourable: int | None = None

    def fit_table(self, train: Table, *, progress: Progress | None = None) -> Self:
        """Get to know the training people of a table; the model itself stays as it is.

        Parameters
        ----------
        train
            The training part of a table, with the card and the encoder.
        progress
            Called once, at the end.

        Raises
        ------
        ColumnError
            If the model wants a column that the card has not.
        ModelError
            If it knows other classes, fails, or answers one question in two ways.
        """
        self._table = train
        try:
            return self.fit(train.X, train.y, progress=progress)
        finally:
            del self._table

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        self._check_settings()
        if self._table is not None:
            source = Source.of_table(self.own, self._table)
        else:
            source = Source.of_matrix(self.own, self.classes_, matrix.shape[1])
        self._use(source.with_prepared(matrix))
        chances = self.ask(matrix)
        self._check_steady(matrix, chances)
        self._warn_of_order(chances, codes)
        self.prior_ = chances.mean(axis=0)
        self.usage_ = permutation_usage(self.ask, self.decide, matrix, self.seed)
        self.needed_: BoolArray = source.reads & self.usage_.used
        self.fill_ = matrix[0]
        self.cover_ = matrix[_covering(matrix)]
        categorical, k = source.categorical, self.n_completions
        self.view_: SubsetXGB | Neighbours = (
            Neighbours.of(matrix, categorical, k=k)
            if self.partial == "completed"
            else distil(
                self.ask, matrix, codes, categorical, k=k, n_hybrids=self.n_hybrids, seed=self.seed
            )
        )
        if progress:
            progress(1, 1)

    def _check_settings(self) -> None:
        check_known("partial", self.partial, PARTIAL)
        for name, least in (("n_completions", 2), ("n_hybrids", 0), ("batch_rows", 1)):
            check_count(name, getattr(self, name), least)
        check_count("max_rows", self.max_rows, 1, optional=True)
        check_seed(self.seed)

    def _use(self, source: Source) -> None:
        """Ask by a source from here on; nothing that was answered before is remembered."""
        self.source_, self.varies_ = source, source.reads
        self._answers = Answers(source.ask, self.batch_rows)

    @property
    def reads_given(self) -> bool:  # type: ignore[override]
        """Whether the model is asked about frames, which hold any number, and not about encoded
        rows.
        """
        return self.source_.frames is not None

    @property
    def user_model_name(self) -> str:  # type: ignore[override]
        """What receipts and certificates call the model, and what answers for it meanwhile."""
        return f"{self.own.name}, {self.partial}"

    @property
    def cache_key(self) -> Hashable:
        """As for every predictor; who gave other numbers, or is decided about by their own
        completions, gets other answers.
        """
        own = None if self._completions is None else self._completions.tobytes()
        return super().cache_key, self.given or (), own

    @property
    def needs(self) -> BoolArray:
        """The features that the model uses, (features,)."""
        return self.needed_

    def for_people(self, given: tuple[Given, ...] = (), count: int = 1) -> Self:
        """The model as it is asked about ``count`` people of an interview or a file: with the
        numbers that they gave, and about at most ``max_rows`` rows for each of them.
        """
        limit = None if self.max_rows is None else RowLimit(self.max_rows * max(1, count))
        return self._with(given=given, _limit=limit)

    def decides_by_completions(self, known: BoolArray) -> bool:
        """Whether something is missing, of anybody, that the model uses."""
        return not self.is_enough(known).all()

    def over_completions(self, completions: Float32Array, favourable: int) -> Self:
        """The model that decides about one person by most of their likely completions.

        It answers, about the person with some known facts replaced, the share of completions in
        which this model decides for each class. What is not known stays as it is in the
        completions.

        Parameters
        ----------
        completions
            The person, completed in several ways, (k, features).
        favourable
            The position of the class that needs more than half of them.
        """
        return self._with(
            _completions=completions, _decider=self, threshold=0.5, favourable=favourable
        )

    @property
    def asked_(self) -> Asked:
        """What was asked of the model so far."""
        return self._answers.asked

    def ask(self, rows: Float32Array) -> Float64Array:
        """The model's own answers, remembered by row.

        Parameters
        ----------
        rows
            Complete encoded people, (n, features). What the model does not read makes no
            difference.

        Returns
        -------
        Probabilities (n, classes) in the order of the card's classes.

        Raises
        ------
        ModelError
            If the model fails, or a step asks about more than ``max_rows`` rows.
        """
        read = self._read(np.asarray(rows, dtype=np.float32))
        return self._answers(read, self.given, self._limit)

    def _read(self, rows: Float32Array) -> Float32Array:
        """Rows (n, features) with zeros where the model does not look."""
        return (
            rows if self.source_.reads.all() else np.where(self.source_.reads, rows, np.float32(0))
        )

    def remember(self, X: Float32Array, frame: pd.DataFrame) -> None:  # noqa: N803
        """Set what the model says of people as they were given, where encoding cannot express all
        of it.

        A level that training never showed, or a number out of range, is another one once it is
        encoded.

        Parameters
        ----------
        X
            The encoded people of ``frame``, complete, (people, features).
        frame
            The people as they were given.
        """
        rows, answers = self.source_.ask_given(X, frame)
        self._answers.count(int(len(rows) > 0), len(rows))
        self._answers.pin(self._read(X[rows]), answers)

    def _check_steady(self, matrix: Float32Array, chances: Float64Array) -> None:
        """Ask again about some people, in another order: ModelError if the model decides
        otherwise.
        """
        some = np.random.default_rng(self.seed).permutation(len(matrix))[:TRIED]
        again = self.source_.ask(matrix[some])
        apart = np.abs(again - chances[some]).max(initial=0.0)
        if apart > SAME or (self.decide(again) != self.decide(chances[some])).any():
            raise ModelError(
                f"the model {self.own.name} answers one person in two ways, {apart:.2g} "
                "apart: it must answer by the "
                "person alone, the same whenever it is asked"
            )
        self.tried_, self.answers_ = matrix[some], chances[some]

    def _warn_of_order(self, chances: Float64Array, codes: Int64Array) -> None:
        """Warn if the probabilities run against the outcomes: the classes were probably named in
        the wrong order.
        """
        if len(self.classes_) != 2:
            return
        area = float(roc_auc_score(codes, chances[:, 1]))
        if area < BACKWARDS:
            warnings.warn(
                f"the model {self.own.name} ranks training people against their outcomes "
                f"(AUROC {area:.2f}); are its "
                "classes in the right order?",
                stacklevel=2,
            )

    def to_folder(self, folder: str | Path) -> None:
        """Write the model where it has a safe file, and what was learnt beside it; no pickle.

        A function or a torch module is in no file, and is passed again to ``from_folder``.

        Parameters
        ----------
        folder
            A new folder, or one that holds a ``UserModel``, which is replaced.

        Raises
        ------
        ModelError
            If the model answers otherwise than it did when it was wrapped.
        """
        self._check_savable()
        if apart := self._count_otherwise():
            raise ModelError(
                f"the model {self.own.name} has changed since the advisor was fitted: about "
                f"{apart} of {len(self.tried_)} people it answers otherwise"
            )
        parts, has_model = self.source_.to_parts()
        if not has_model:
            warnings.warn(
                f"the model {self.own.name} cannot be kept in a safe file; pass it again "
                "when this is read: "
                "Advisor.load(folder, model=...)",
                stacklevel=2,
            )
        arrays = {name: getattr(self, name) for name in (*LEARNT, "cover_")} | self.usage_._asdict()
        if isinstance(self.view_, Neighbours):
            arrays["near"] = self.view_.rows
        parts[ARRAYS] = save_arrays(arrays)
        settings = {name: value for name, value in self._settings().items() if name != "own"}
        write_parts(folder, "UserModel", settings, parts)
        if isinstance(self.view_, SubsetXGB):
            self.view_.to_folder(Path(folder) / VIEW)

    @classmethod
    def from_folder(cls, folder: str | Path | Folder, model: Any = None) -> Self:
        """Read what ``to_folder`` wrote.

        Parameters
        ----------
        folder
            A folder on disk, or one that was read into memory.
        model
            The model, where it is in no file; else None.

        Raises
        ------
        UnreadableError
            If the folder is damaged, or its model is another one.
        ModelError
            If the ``model`` is missing, or answers otherwise than the one that was wrapped.
        """
        with open_parts(folder, "UserModel") as (settings, parts):
            arrays = load_arrays(parts[ARRAYS], ARRAYS)
            (people, width), classes = arrays["tried_"].shape, arrays["answers_"].shape[-1]
            shapes = {
                "tried_": ("f", people, width),
                "answers_": ("f", people, classes),
                "needed_": ("b", width),
                "fill_": ("f", width),
                "cover_": ("f", None, width),
                "prior_": ("f", classes),
                "classes_": ("iufb", classes),
                "turned": ("f", width),
                "moved": ("f", width),
            }
            check_arrays(arrays, shapes, ARRAYS)
            source = Source.from_parts(parts, model, arrays["tried_"])
            wrapped = from_settings(cls, settings | {"own": source.own}, folder)
            wrapped._check_settings()
            for name in (*LEARNT, "cover_"):
                setattr(wrapped, name, arrays[name])
            wrapped.n_features_in_ = width
            wrapped.usage_ = Usage(arrays["turned"], arrays["moved"])
            wrapped._use(source.with_prepared(np.concatenate([wrapped.cover_, wrapped.tried_])))
            if apart := wrapped._count_otherwise():
                other = f"another one: about {apart} of {people} people it answers otherwise"
                if model is None:
                    raise UnreadableError(f"the model in the file is {other}")
                raise ModelError(f"the model {source.own.name} that was passed is {other}")
            if "near" in arrays:
                check_arrays(arrays, {"near": ("f", None, width)}, ARRAYS)
                wrapped.view_ = Neighbours.among(
                    arrays["near"], source.categorical, wrapped.n_completions
                )
            else:
                inner = folder.under(VIEW) if isinstance(folder, Folder) else Path(folder) / VIEW
                wrapped.view_ = SubsetXGB.from_folder(inner)
        return wrapped

    def _count_otherwise(self) -> int:
        """About how many of the people who were tried the model answers otherwise than it did."""
        apart = np.abs(self.source_.ask(self.tried_) - self.answers_).max(axis=1)
        return int((~(apart <= SAME)).sum())

    def learnt_state(self) -> Mapping[str, Any]:
        """What the model said of some training people, which tells it from any other, and what was
        learnt beside it.
        """
        if not (state := super().learnt_state()):
            return state
        view = self.view_.learnt_state()
        return {**state, "view_": {"near": view} if self.mixed is None else view}

    @property
    def mixed(self) -> SubsetXGB | None:
        """The distilled model; None where completions are asked about."""
        return self.view_ if isinstance(self.view_, SubsetXGB) else None

    def keeping(self, masks: Any) -> Self:
        """The same with models of their own for these subsets (subsets, features), if it is
        ``"distilled"``.
        """
        if self.mixed is None:
            return self
        return self._with(view_=self.mixed.keeping(masks), _token=object())

    @property
    def acquisition_model(self) -> Predictor:
        """Who says, while questions are ordered, what the model would say: the distilled model, if
        there is one.
        """
        if self.mixed is None:
            return self
        view = self.mixed.keeping(self.source_.reads[None])
        view.threshold, view.favourable = self.threshold, self.favourable
        return view

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        if self._completions is not None:
            return self._share_of_completions(mask, known)
        if self.is_enough(mask):
            rows = np.tile(self._read(self.fill_), (len(known), 1))
            rows[:, mask] = known
            return self._answers(rows, self.given, self._limit)
        if isinstance(self.view_, SubsetXGB):
            return self.view_.predict_known(mask, known)
        parts = []
        for part in np.array_split(known, max(1, -(-len(known) // COMPLETED))):
            completions = self.view_.complete(spread(part, mask))
            parts.append(self._ask_each(completions).mean(axis=1))
        return np.concatenate(parts)

    def _ask_each(self, rows: Float32Array) -> Float64Array:
        """Probabilities (people, completions, classes) of complete people (people, completions,
        features).
        """
        people, completions, features = rows.shape
        return self.ask(rows.reshape(-1, features)).reshape(people, completions, -1)

    def _share_of_completions(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """The share of the person's completions decided for each class (n, classes), drawn a
        little towards one half so that log odds are finite.
        """
        completions, favourable = self._completions, self._about(len(self.classes_))
        assert completions is not None  # noqa: S101 - who calls it has looked
        count, at_once = len(completions), max(1, COMPLETED_ROWS // len(completions))
        parts = [np.zeros((0, len(self.classes_)))]
        for first in range(0, len(known), at_once):
            part = known[first : first + at_once]
            rows = np.tile(completions, (len(part), 1, 1))
            rows[:, :, mask] = part[:, None]
            answers = self._ask_each(rows).reshape(-1, len(self.classes_))
            decided = self._decider.decide(answers).reshape(len(part), count, 1)
            shares = (decided == np.arange(len(self.classes_))).sum(axis=1) + TIE
            share = shares[:, favourable] / (count + 1)
            shares[:, favourable] = 0
            shares *= ((1 - share) / shares.sum(axis=1))[:, None]
            shares[:, favourable] = share
            parts.append(shares)
        return np.concatenate(parts)

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        if (view := self._distilled_for(mask)) is None:
            return None
        view.threshold, view.favourable = self.threshold, self.favourable
        return view.decide_tries(mask, known, column, value)

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """The thresholds of the distilled model while facts are missing; None: every value may
        make a difference to the model itself.
        """
        view = self._distilled_for(mask)
        return None if view is None else view.cells(mask, feature)

    def _distilled_for(self, mask: BoolArray) -> SubsetXGB | None:
        """The distilled model, if it answers for people who know the features in ``mask``
        (features,); None where the model itself is asked.
        """
        return None if self._completions is not None or self.is_enough(mask) else self.mixed

    def differentiable(self, mask: BoolArray) -> Callable[[Any], Any] | None:
        """The logits of a torch module of encoded people, as a function through which gradients
        flow.

        Parameters
        ----------
        mask
            Which features are known, (features,).

        Returns
        -------
        A function from rows (n, features) to logits (n, classes); None for any other model, or
        where something is not known.
        """
        if self.own.kind != "torch" or self.source_.frames is not None or not mask.all():
            return None
        module = self.own.model

        def logits(known: Any) -> Any:
            scores = module(known.float()).double().reshape(len(known), -1)
            if scores.shape[1] == 1:
                import torch

                scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
            return scores[:, self.source_.order.tolist()]

        return logits


def _covering(matrix: Float32Array) -> IntArray:
    """Rows of a matrix (rows, columns), few of them, among which every value occurs; of many
    values, the two ends.
    """
    rows: set[int] = set()
    for column in matrix.T:
        values, first = np.unique(column, return_index=True)
        rows |= set((first if len(values) <= MANY_VALUES else first[[0, -1]]).tolist())
    return np.array(sorted(rows), dtype=np.intp)


class WrapSettings(TypedDict, total=False):
    """The settings of a ``UserModel`` that ``wrap`` hands on."""

    n_completions: int
    n_hybrids: int
    batch_rows: int
    max_rows: int | None
    threshold: float | None
    seed: int


def wrap(
    model: Any,
    partial: Partial = "distilled",
    *,
    columns: Sequence[str] | str | None = None,
    classes: Sequence[Any] | None = None,
    like: pd.DataFrame | None = None,
    **settings: Unpack[WrapSettings],
) -> UserModel:
    """A fitted model of your own, to give advice about: ``Advisor(predictor=wrap(model))`` never
    fits it again.

    Parameters
    ----------
    model
        A classifier or Pipeline of scikit-learn, an XGBoost, LightGBM or CatBoost model, a torch
        module (in ``eval`` mode, of encoded people, which answers log odds), the path of an ONNX
        file, or a function from a frame to probabilities: (people, classes), or (people,) for the
        second of two classes.
    partial
        What the model says before everything is known. ``"distilled"``: a ``SubsetXGB`` that has
        learnt the model's probabilities of training people and of hybrids of them. ``"completed"``:
        the mean over likely completions, closer to the model and far more calls of it. Whether a
        plan survives, the chance that a person is shown, and the last word are the model's own in
        both.
    columns
        The columns that the model wants, in order, where it does not say so itself; ``"encoded"``
        if it was fitted on a table's ``X``.
    classes
        The classes in the order of its probabilities, as the card calls them, where it has other
        names for them.
    like
        A few rows of the frame that the model was fitted on, where dtypes matter: categories, for
        example.
    **settings
        ``n_completions``, ``n_hybrids``, ``batch_rows``, ``max_rows``, ``threshold`` and ``seed``
        of ``UserModel``.

    Examples
    --------
    >>> import edfa
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> table = edfa.load("german")
    >>> people = table.train.frame[["duration", "checking_status"]]
    >>> mine = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(20))
    >>> mine = mine.fit(people, table.train.frame["class"])
    >>> model = wrap(mine).fit_table(table.train)
    >>> np.array(table.schema.names)[model.varies_].tolist()
    ['checking_status', 'duration']
    """
    own = FittedModel.of(model, columns=columns, classes=classes, like=like)
    wrapped = UserModel(own, partial, **settings)
    wrapped._check_settings()
    return wrapped
