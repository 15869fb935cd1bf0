"""SubsetXGB: one XGBoost for each set of known features, trained when first needed and cached.

The paper's tree model. A model of its own for every subset is the best calibrated on small subsets;
policies that visit thousands of subsets use ``mode="nan"``, one model that has learnt from masked
copies of the rows. ``mode="mixed"`` has both: sets that are named have a model of their own, every
other set is answered by the one masked model.

Many decisions at once are taken from the leaves of a model's trees (``Forest``).
"""

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
import xgboost as xgb

from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.cache import Cache
from edfa.errors import DataError, SettingError, UnreadableError, check_known
from edfa.predictors.base import (
    ClassWeight,
    Predictor,
    Progress,
    class_probabilities,
    from_settings,
    inner_split,
    masked_copies,
    sample_weights,
    spread,
)
from edfa.predictors.booster_file import BoosterFile
from edfa.predictors.boosting import (
    Trees,
    TreeSettings,
    cached_booster,
    load_boosters,
    train_booster,
    weighted_rows,
)
from edfa.predictors.monotone import check_signs
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

Mode = Literal["per_subset", "nan", "mixed"]
MODES = get_args(Mode)
DECIDING = (
    "threshold",
    "favourable",
    "monotone",
)  # settings that no tree depends on, but by the directions' signs
TRAIN_FILE = "train.safetensors"
VERSION_KEY = "xgboost_version"  # of the models in a folder
MAX_MODELS = 512  # models held in memory


@dataclass(eq=False, repr=False)
class SubsetXGB(Predictor):
    """XGBoost that answers from any subset of features.

    Parameters
    ----------
    mode
        ``"per_subset"``: one model for each subset; ``"nan"``: one model for all, trained on masked
        copies of the rows; ``"mixed"``: one model for each of the subsets that ``keeping`` names,
        and for all others together one that is trained on masked copies. Until some are named,
        every subset has its own.
    seed
        Decides the rows held out for early stopping and XGBoost's own draws.
    n_estimators, max_depth, learning_rate
        Largest number of trees, their depth and the learning rate. Rows held out for the purpose
        stop training earlier.
    class_weight
        None: every row counts the same; ``"balanced"``: every class counts the same; a mapping: the
        weight of each class.
    threshold, favourable
        The probability from which on one class is decided for, and the position of that class in
        ``classes_`` (None: the second of two); without a threshold, the likeliest class.
    monotone
        For each column 1, -1 or 0: whether a higher value never lowers, never raises, or may do
        both to the probability of the ``favourable`` one of two classes, whatever else is known. It
        holds exactly. None: all are free.

    Attributes
    ----------
    rows_, codes_, soft_labels_
        The training rows (rows, features), the positions of their classes in ``classes_`` (rows,)
        and, if it learns from those, another model's probabilities (rows, classes), from which the
        model for a subset is trained when it is first needed.
    inner_split_, held_out_
        Positions of the rows that are learnt from, and of those held out; and the latter again if
        they were not drawn.
    kept_
        The subsets that have a model of their own, (subsets, features): none in mode ``"nan"``;
        None: every subset has, for in mode ``"mixed"`` none are named yet.
    training_hash_
        SHA-256 of ``rows_``, ``codes_``, ``soft_labels_`` and ``held_out_``.
    xgboost_version_
        The XGBoost that trains the models, or has trained those that are part of what was learnt.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = SubsetXGB(seed=0).fit(table.train.X, table.train.y)
    >>> nothing_known = np.full((1, 20), np.nan)
    >>> model.predict_proba(nothing_known)
    array([[0.3, 0.7]])
    """

    learnt_attributes: ClassVar[tuple[str, ...]] = (
        *Predictor.learnt_attributes,
        "training_hash_",
        "xgboost_version_",
    )
    obeys_directions: ClassVar[bool] = True
    _max_models = MAX_MODELS
    _cache_folder = cast("Path | None", None)

    mode: Mode = "per_subset"
    _: KW_ONLY
    seed: int = 0
    n_estimators: int = 300
    max_depth: int = 4
    learning_rate: float = 0.1
    class_weight: ClassWeight = None
    threshold: float | None = None
    favourable: int | None = None
    monotone: tuple[int, ...] | None = None

    def cache_in(self, folder: str | Path | None = None, max_models: int = MAX_MODELS) -> Self:
        """Choose where trained models are cached, before or after ``fit``; no answer depends on it.

        Parameters
        ----------
        folder
            Where models are also written, for other processes and later runs; None: in memory
            alone. Models of other rows, settings and versions of XGBoost may share the folder.
        max_models
            Number of models held in memory; the one that was not used for the longest time is
            dropped first. Models that are part of what was learnt (see ``learnt_state``) are all
            held.

        Examples
        --------
        >>> rows, classes = np.arange(40.0).reshape(20, 2), [0, 1] * 10
        >>> model = SubsetXGB(n_estimators=5).cache_in(max_models=2).fit(rows, classes)
        >>> model.predict_proba([[1, 2], [1, np.nan], [np.nan, 2]]).shape
        (3, 2)
        """
        if max_models < 1:
            raise SettingError(f"max_models: at least 1, not {max_models}")
        self._cache_folder = None if folder is None else Path(folder)
        self._max_models = max_models
        if hasattr(self, "_models"):
            self._models.bound(self._most)
        return self

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        progress: Progress | None = None,
        soft_labels: Any = None,
        held_out: Any = None,
    ) -> Self:
        """Learn from encoded rows, as every predictor does, or from what another model says of them
        (distillation).

        ``soft_labels`` (rows, classes) are another model's probabilities of the classes, in
        ascending order; the rows' own classes then decide nothing but which rows are held out. The
        prior is the mean of ``soft_labels``. ``held_out`` (n,) are the rows that stop training
        early; None: a fifth of each class is drawn. Rows that are made of one another must be on
        one side.
        """
        self._given = (
            None if soft_labels is None else np.asarray(soft_labels, dtype=np.float32),
            held_out,
        )
        try:
            super().fit(X, y, progress=progress)
        finally:
            del self._given
        return self

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        check_known("mode", self.mode, MODES)
        if self.n_estimators < 1 or self.max_depth < 1 or not self.learning_rate > 0:
            raise SettingError(
                "n_estimators and max_depth are at least 1 and learning_rate is above 0"
            )
        if any(check_signs(self.monotone, matrix.shape[1])) and len(self.classes_) > 2:
            # XGBoost would hold every class' score to the same direction, which says nothing of the
            # probabilities.
            raise SettingError(
                "monotone: SubsetXGB obeys directions between two classes, not "
                f"{len(self.classes_)}"
            )
        # an error now rather than at the first question
        sample_weights(self.class_weight, self.classes_[codes])
        self.rows_, self.codes_ = matrix, codes
        self.soft_labels_, self.held_out_ = self._given
        if self.soft_labels_ is not None:
            self._check_soft_labels(self.soft_labels_)
            self.prior_ = self.soft_labels_.mean(axis=0, dtype=float)
        self.inner_split_ = inner_split(codes, self.seed)
        if self.held_out_ is not None:
            self.held_out_ = _check_held_out(self.held_out_, len(matrix))
            learnt = np.setdiff1d(np.arange(len(matrix)), self.held_out_)
            self.inner_split_ = learnt, self.held_out_
        self.training_hash_ = _hash(matrix, codes, self.soft_labels_, self.held_out_)
        self.xgboost_version_: str = xgb.__version__
        self.kept_: BoolArray | None = None
        if self.mode == "nan":
            self.kept_ = np.zeros((0, matrix.shape[1]), dtype=bool)
        self._hold({})
        if progress:
            progress(1, 1)

    def _check_soft_labels(self, soft_labels: Float32Array) -> None:
        """Raise unless the other model's probabilities can be learnt from.

        Parameters
        ----------
        soft_labels
            (rows, classes), each row adding up to one.
        """
        shape = len(self.rows_), len(self.classes_)
        if soft_labels.shape != shape or not np.allclose(soft_labels.sum(axis=1), 1, atol=1e-3):
            raise DataError(
                f"soft_labels: {shape[0]} rows of {shape[1]} probabilities, "
                f"not of {soft_labels.shape}"
            )
        if self.class_weight is not None:
            raise SettingError("class_weight is about outcomes; soft_labels are learnt as they are")

    def _hold(self, models: Mapping[Hashable, Trees]) -> None:
        """Hold these models, by subset, and no others; other subsets may have been named before."""
        self._own_keys = None if self.kept_ is None else frozenset(map(_key, self.kept_))
        self._models: Cache[Trees] = Cache("model work", self._most)
        self._models.keep(models)

    @property
    def _most(self) -> int:
        """How many models are held: all that are part of what was learnt, however many."""
        return max(self._max_models, len(self._definite()))

    def keeping(self, masks: Any) -> Self:
        """A model like this one in which just these subsets have models of their own (mode
        ``"mixed"`` alone).

        It is another model, of other answers and another ``learnt_state``; this one stays as it is.
        Which subsets have their own never depends on what was asked before.

        Parameters
        ----------
        masks
            The subsets, (subsets, features); a view of ``align`` asks for those within its columns.
            Nothing known needs none: the answer is the prior.

        Raises
        ------
        SettingError
            For a model of another mode.

        Examples
        --------
        >>> rows, classes = np.arange(40.0).reshape(20, 2), [0, 1] * 10
        >>> model = SubsetXGB("mixed", n_estimators=5).fit(rows, classes).keeping([[True, True]])
        >>> everything = model.booster(np.array([True, True]))
        >>> first = model.booster(np.array([True, False]))
        >>> everything is first, first is model.booster(np.array([False, True]))
        (False, True)
        """
        self._check_fitted()
        if self.mode != "mixed":
            raise SettingError(
                f"subsets are named for a SubsetXGB of mode 'mixed', not {self.mode!r}"
            )
        sets = np.asarray(masks, dtype=bool).reshape(-1, self.n_features_in_) & self.varies_
        model = self._with(kept_=np.unique(sets[sets.any(axis=1)], axis=0), _token=object())
        model._hold(self._models.find(map(_key, model._definite().values())))
        return model

    @property
    def mixed(self) -> "SubsetXGB | None":
        """Itself, if subsets can be named."""
        return self if self.mode == "mixed" else None

    def learnt_state(self) -> Mapping[str, Any]:
        """Everything learnt that decides the answers; the subsets that were named are part of it.

        Where there is a definite set of models (mode ``"nan"``, or ``"mixed"`` once subsets are
        named) it has the SHA-256 of each, and those that are missing are trained now. Other models
        are trained from the rows, the settings and the version that are part of it, whenever they
        are needed.
        """
        if not (state := super().learnt_state()):
            return state
        named = {} if self.kept_ is None else {"kept_": self.kept_}
        definite = self._definite().items()
        hashes = {name: self._trees(mask).hash for name, mask in definite}
        return {**state, **named, "boosters_": hashes}

    def _definite(self) -> dict[str, BoolArray | None]:
        """The subsets whose models are part of what was learnt, by name; None: the masked model.

        Empty if every model is trained when it is needed.
        """
        if self.kept_ is None or not self.varies_.any():
            return {}
        return {f"own_{number}": mask for number, mask in enumerate(self.kept_)} | {"masked": None}

    def _has_own(self, mask: BoolArray) -> bool:
        """Whether the features ``mask`` (features,), which all vary, have a model of their own."""
        return self._own_keys is None or _key(mask) in self._own_keys

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        booster = self.booster(mask)
        if not self._has_own(mask):
            known = spread(known, mask)
        return class_probabilities(booster.inplace_predict(np.ascontiguousarray(known)))

    def booster(self, mask: BoolArray) -> xgb.Booster:
        """The model for the known features ``mask`` (features,): from memory, from disk, or trained
        now.
        """
        return self._trees_for(mask).booster

    def _trees_for(self, mask: BoolArray) -> Trees:
        """The model for the known features ``mask`` (features,), with its leaves."""
        self._check_fitted()
        mask = mask & self.varies_
        return self._trees(mask if self._has_own(mask) else None)

    def _trees(self, mask: BoolArray | None) -> Trees:
        """The model of its own of a subset, or with None the masked one."""
        return self._models.get(_key(mask), lambda: Trees(self._read_or_train(mask)))

    def cells(self, mask: BoolArray, feature: int) -> Float32Array:
        """The trees' split thresholds of a feature in the model for ``mask`` (features,), in
        ascending order.

        Values between two neighbouring thresholds get the same answer: a value x lies in the cell
        ``searchsorted(thresholds, x, side="right")``.
        """
        mask = mask & self.varies_
        if not mask[feature]:
            return np.zeros(0, dtype=np.float32)
        column = int(np.count_nonzero(mask[:feature])) if self._has_own(mask) else feature
        return self._trees_for(mask).forest.thresholds[column]

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """From sums over leaves; what lies too near to the threshold is predicted by the booster
        itself.
        """
        decidable = self.threshold is None or (
            0 < self.threshold < 1 and self.favourable in (None, 1)
        )
        if len(self.classes_) > 2 or not decidable or not self._has_own(mask):
            return None
        model, threshold = self._trees_for(mask), 0.5 if self.threshold is None else self.threshold
        forest = model.forest
        if not model.forest_agrees:
            return None
        log_odds = np.log(threshold / (1 - threshold))
        excess = forest.margins(known, column, value) - np.float32(log_odds)
        decisions = (excess > 0).astype(np.intp)
        # Probabilities are rounded too, the more in terms of log odds the nearer they are to 0 or
        # 1.
        rounding = 16 * np.finfo(np.float32).eps * (2 + 2 * np.cosh(log_odds))
        person, candidate = np.nonzero(np.abs(excess) <= forest.tolerance + rounding)
        rows = known[person]
        rows[np.arange(len(person)), column[candidate]] = value[candidate]
        decisions[person, candidate] = self.decide(self._answer(mask, rows)) if len(person) else 0
        return decisions

    def to_folder(self, folder: str | Path) -> None:
        """Write the training rows and the models that are part of what was learnt, as safetensors
        and UBJSON.

        Models that are trained when they are needed are trained again: nothing in the folder
        decides an answer that ``learnt_state`` does not speak of.
        """
        self._check_savable()
        learnt = {
            "rows": self.rows_,
            "codes": self.codes_,
            "classes": np.asarray(self.classes_),
            "soft_labels": self.soft_labels_,
            "held_out": self.held_out_,
        }
        arrays = {name: array for name, array in learnt.items() if array is not None}
        if self.mode == "mixed" and self.kept_ is not None:
            arrays["kept"] = self.kept_.astype(np.uint8)
        parts = {
            f"{name}.ubj": self._trees(mask).content for name, mask in self._definite().items()
        }
        settings = {**self._settings(), VERSION_KEY: self.xgboost_version_}
        write_parts(folder, "SubsetXGB", settings, {TRAIN_FILE: save_arrays(arrays)} | parts)

    @classmethod
    def from_folder(cls, folder: str | Path | Folder) -> Self:
        """Read what ``to_folder`` wrote; every part is checked against its hash, every model before
        XGBoost sees it.

        Parameters
        ----------
        folder
            A folder on disk, or one that was read into memory.

        Raises
        ------
        UnreadableError
            If it holds something else, is damaged, or has other models than its settings name.
        """
        with open_parts(folder, "SubsetXGB") as (settings, parts):
            version = str(settings.pop(VERSION_KEY))
            arrays = load_arrays(parts.pop(TRAIN_FILE), TRAIN_FILE)
            rows, width = arrays["rows"].shape
            check_arrays(arrays, {"codes": ("i", rows), "classes": ("iufb", None)}, TRAIN_FILE)
            outcomes = arrays["classes"][arrays["codes"]]
            soft_labels, held_out = arrays.get("soft_labels"), arrays.get("held_out")
            model = from_settings(cls, settings, folder)
            model.fit(arrays["rows"], outcomes, soft_labels=soft_labels, held_out=held_out)
            if "kept" in arrays:
                check_arrays(arrays, {"kept": ("u", None, width)}, TRAIN_FILE)
                model = model.keeping(arrays["kept"])
            model._take(parts, version)
        return model

    def _take(self, parts: Mapping[str, bytes], version: str) -> None:
        """Take over the saved models, which this ``version`` of XGBoost trained."""
        definite = {f"{name}.ubj": mask for name, mask in self._definite().items()}
        if set(parts) != set(definite):
            raise UnreadableError(
                f"the models are {len(parts)} others than the {len(definite)} that are named"
            )
        files = [
            BoosterFile(name, parts[name], len(self._shown(mask)), len(self.classes_))
            for name, mask in definite.items()
        ]
        for mask, trees in zip(definite.values(), load_boosters(files), strict=True):
            self._models.keep({_key(mask): trees})
        if definite:
            self.xgboost_version_ = version

    def _shown(self, mask: BoolArray | None) -> IntArray:
        """The positions of the columns that the model of a subset is shown; None: the masked one,
        which is shown all of them.
        """
        return np.arange(self.n_features_in_) if mask is None else np.flatnonzero(mask)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: the models as they are, without what is worked out from them."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_models" in state:
            state["_models"] = self._models.held()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        models = state.pop("_models", None)
        super().__setstate__(state)
        if models is not None:
            self._hold(models)

    def _train(self, mask: BoolArray | None) -> xgb.Booster:
        """The model of its own of a subset, or with None the masked one."""
        train, held_out = self.inner_split_
        signs = np.array(self.directions())
        settings = TreeSettings(
            self.n_estimators,
            self.max_depth,
            self.learning_rate,
            self.seed,
            signs[self._shown(mask)].tolist() if signs.any() else (),
        )
        check = self._data(held_out, mask) if len(held_out) else None
        return train_booster(self._data(train, mask), check, len(self.classes_), settings)

    def _data(self, rows: IntArray, mask: BoolArray | None) -> xgb.DMatrix:
        """Training rows at these positions: the columns in ``mask``, or masked copies with all
        columns.
        """
        matrix = self.rows_[rows].take(self._shown(mask), axis=1)
        if mask is None:
            matrix, rows = masked_copies(matrix, rows, self.seed)
        if self.soft_labels_ is not None:
            return _of_soft_labels(matrix, self.soft_labels_[rows])
        return weighted_rows(self, matrix, self.codes_[rows])

    def _read_or_train(self, mask: BoolArray | None) -> xgb.Booster:
        """The model of a subset, from the folder where models are cached, or trained."""
        if self._cache_folder is None:
            return self._train(mask)
        key = _key(mask)
        settings = {name: value for name, value in self._settings().items() if name not in DECIDING}
        described = [settings, self.directions(), self.training_hash_, xgb.__version__]
        source = json.dumps(described).encode()
        folder, name = (hashlib.sha256(part).hexdigest() for part in (source, key))
        path = self._cache_folder / folder[:16] / f"{name[:32]}.ubj"
        shape = len(self._shown(mask)), len(self.classes_)
        return cached_booster(path, source + key, shape, lambda: self._train(mask))


def _of_soft_labels(matrix: Float32Array, soft_labels: Float32Array) -> xgb.DMatrix:
    """Rows to learn probabilities from; of more than two classes each row is there once a class,
    weighted by it.
    """
    if soft_labels.shape[1] == 2:
        return xgb.DMatrix(matrix, label=soft_labels[:, 1], nthread=1)
    classes = soft_labels.shape[1]
    label, each = np.tile(np.arange(classes), len(matrix)), np.repeat(matrix, classes, axis=0)
    return xgb.DMatrix(each, label=label, weight=soft_labels.ravel(), nthread=1)


def _check_held_out(held_out: Any, rows: int) -> Int64Array:
    """Positions of rows, (n,), ascending; DataError if they are none."""
    positions = np.asarray(held_out)
    distinct = np.unique(positions)
    if positions.size and (
        positions.dtype.kind not in "iu"
        or positions.shape != distinct.shape
        or distinct[0] < 0
        or distinct[-1] >= rows
        or len(distinct) == rows
    ):
        raise DataError(
            f"held_out: distinct positions from 0 to {rows - 1} are needed, and not all of them"
        )
    return distinct.astype(np.int64)


def _key(mask: BoolArray | None) -> bytes:
    """What the model of a subset (features,) is stored under; None: the masked model."""
    return b"masked" if mask is None else np.packbits(mask).tobytes()


def _hash(*arrays: AnyArray | None) -> str:
    """SHA-256 of the bytes of those arrays that are there, in hexadecimal."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
