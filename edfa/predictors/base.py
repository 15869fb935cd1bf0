"""What every model shares: it answers from any subset of features, and NaN means "not acquired".

``Predictor`` is the contract, ``align`` makes a view of a model that is shown only some columns,
and ``ModelCache`` holds what is worked out once for a model and a set of known features.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import gen_batches
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from edfa.artifacts import Folder, folder_name
from edfa.cache import Cache
from edfa.errors import (
    DataError,
    EdfaError,
    EmptyTableError,
    SettingError,
    TargetError,
    UnreadableError,
)
from edfa.reading import check_seed
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

if TYPE_CHECKING:
    from edfa.data.table import Table
    from edfa.predictors.user_model.given import Given

MIN_INNER = 50  # fewer rows than this are not split for early stopping
COPIES = 10  # masked copies of each row
MAX_LARGE = 48  # results of a ``ModelCache`` that take megabytes
ROWS_PER_CALL = 200_000  # that a model is asked about at once
DRAWN = 256  # rows whose gaps are drawn at a time
GROUP = 16  # entries of which ``smallest`` looks at the least first
HASH_FROM_ENTRIES = 50_000  # entries from which on that is worth while
T = TypeVar("T")
Model = TypeVar("Model", bound="Predictor")
Estimator = TypeVar("Estimator", bound=BaseEstimator)
Progress = Callable[[int, int], None]
"""Called with the number of steps done and the number of all steps."""
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
"""As in scikit-learn: every row counts the same, every class counts the same, or a weight for each
class.
"""


class UnfittedError(EdfaError, NotFittedError):  # type: ignore[misc]
    """A model was used before it was fitted."""


class Predictor(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that answers from any subset of features; with nothing known it answers the
    prior.

    It keeps scikit-learn's contract: ``__init__`` stores settings and nothing else, ``fit`` learns,
    and what was learnt is in attributes that end with an underscore. A subclass learns in ``_fit``,
    answers in ``_answer`` and names in ``learnt_attributes`` what it has learnt. ``get_params()``
    and ``learnt_state()`` together decide every answer: fingerprints of advisors are made of these
    two.

    Parameters
    ----------
    threshold
        Decide for one class from this probability on, otherwise for the likeliest other one. None:
        decide for the likeliest class.
    favourable
        The position in ``classes_`` of the class that the threshold, and directions, are about;
        None: the second of two.
    """

    threshold: float | None = None
    favourable: int | None = None
    obeys_directions: ClassVar[bool] = False
    """Whether the setting ``monotone``, where there is one, is obeyed exactly and not merely in
    most places.
    """
    refits: ClassVar[bool] = True
    """Whether ``fit`` learns the model; a user model is never learnt again."""
    reads_given: bool = False
    """Whether it can be asked about a number as a person gave it, beyond all that encoding knows.
    """
    user_model_name: str = ""
    """The name of a user model and of what answers for it meanwhile; empty for any other model."""
    usage_: Any = None
    """What a user model uses (a ``Usage``); None for any other model."""
    learnt_attributes: ClassVar[tuple[str, ...]] = ("classes_", "prior_", "varies_")
    """Names of the attributes that ``learnt_state`` returns. A subclass adds its own to these."""

    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> Self:  # noqa: N803
        """Learn from encoded rows.

        Parameters
        ----------
        X
            (rows, features); NaN where a value is not known.
        y
            (rows,) the class of each row: numbers or words.
        progress
            Called with the number of steps done and of all steps: a step is an epoch, or the whole
            fit.
        """
        check_seed(getattr(self, "seed", 0))
        self._token: Hashable = object()
        matrix, classes = self._check_rows(X), self._check_classes(y)
        if len(classes) != len(matrix):
            raise DataError(
                f"one class a row is needed: {len(matrix)} rows, {len(classes)} classes"
            )
        if empty := [int(i) for i in np.flatnonzero(np.isnan(matrix).all(axis=0))]:
            raise DataError(f"column {empty[0]} of X has no value in any row")
        self.classes_, codes = np.unique(classes, return_inverse=True)
        if len(self.classes_) < 2:
            raise TargetError(f"y has one class only, {self.classes_[0]!r}; two are needed")
        if self.threshold is not None and not (
            isinstance(self.threshold, int | float) and 0 <= self.threshold <= 1
        ):
            raise SettingError(f"threshold: a probability, or None, not {self.threshold!r}")
        if self.favourable is not None and self.favourable not in range(len(self.classes_)):
            raise SettingError(
                f"favourable: a position from 0 to {len(self.classes_) - 1}, not "
                f"{self.favourable!r}"
            )
        self.n_features_in_ = matrix.shape[1]
        self.prior_ = np.bincount(codes) / len(codes)
        self.varies_: BoolArray = np.nanmin(matrix, axis=0) < np.nanmax(matrix, axis=0)
        self._fit(matrix, codes.astype(np.int64), progress)
        return self

    def fit_table(self, train: "Table", *, progress: Progress | None = None) -> Self:
        """Learn from the people of a table."""
        return self.fit(train.X, train.y, progress=progress)

    def learnt_state(self) -> Mapping[str, Any]:
        """Everything learnt that, with ``get_params()``, decides what the model answers.

        Two models that answer differently differ in one of the two. By default these are the
        attributes named in ``learnt_attributes``. Values are plain values, numpy arrays, bytes or
        mappings of these; a list or tuple becomes a mapping from positions. Caches are no part of
        it. Empty before ``fit``.
        """
        if not hasattr(self, "classes_"):
            return {}
        return {name: as_mappings(getattr(self, name)) for name in self.learnt_attributes}

    def directions(self) -> tuple[int, ...]:
        """The setting ``monotone`` of a fitted model, one sign a column, as it is for the second of
        two classes.
        """
        signs: tuple[int, ...] = getattr(self, "monotone", None) or (0,) * self.n_features_in_
        return tuple(-sign for sign in signs) if self.favourable == 0 else signs

    def predict_proba(self, X: Any) -> Float64Array:  # noqa: N803
        """Probabilities from what is known of each person.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        (people, classes); each row adds up to one.

        Raises
        ------
        DataError
            If ``X`` is no matrix of numbers with as many columns as in training.
        """
        self._check_fitted()
        matrix = self._check_rows(X, self.n_features_in_)
        probabilities = np.empty((len(matrix), len(self.classes_)))
        for mask, people in by_mask(matrix):
            known = matrix.take(people, axis=0).take(np.flatnonzero(mask), axis=1)
            probabilities[people] = self.predict_known(mask, known)
        return probabilities

    def predict_known(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Probabilities of people who know the same features.

        The answers are those of ``predict_proba``, without its checks, for callers that ask about
        many people at once.

        Parameters
        ----------
        mask
            Which features are known, (features,).
        known
            Their values, (people, known features).

        Returns
        -------
        (people, classes).
        """
        used = mask & self.varies_  # a column that never varied has taught nothing
        if not used.any():
            return np.tile(self.prior_, (len(known), 1))
        shown = known if (used == mask).all() else known.take(np.flatnonzero(used[mask]), axis=1)
        if len(shown) <= ROWS_PER_CALL:
            return self._answer(used, shown)
        parts = np.array_split(shown, -(-len(shown) // ROWS_PER_CALL))
        return np.concatenate([self._answer(used, part) for part in parts])

    def decide(self, probabilities: Float64Array) -> IntArray:
        """Decisions, by the threshold where there is one.

        Parameters
        ----------
        probabilities
            (people, classes).

        Returns
        -------
        The position in ``classes_`` of the decision for each row, (people,).
        """
        if self.threshold is None:
            return np.asarray(probabilities.argmax(axis=1))
        about = self._about(probabilities.shape[1])
        enough = probabilities[:, about] >= self.threshold
        if probabilities.shape[1] == 2:
            return np.asarray((enough == about).astype(np.intp))
        others = probabilities.copy()
        others[:, about] = -np.inf
        return np.where(enough, about, others.argmax(axis=1))

    def _about(self, classes: int) -> int:
        """The position of the class, one of this number of ``classes``, that the threshold and
        directions are about.
        """
        if self.favourable is None and classes != 2:
            raise DataError(
                f"a threshold decides between two classes, not {classes}; say for which: "
                "favourable=0, …"
            )
        return 1 if self.favourable is None else self.favourable

    def decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """Decisions about each person with one known value replaced, for each of several candidate
        values.

        The decisions are those of ``predict_known`` and ``decide`` for all these rows, found in a
        faster way.

        Parameters
        ----------
        mask, known
            As in ``predict_known``.
        column, value
            (candidates,) which column of ``known`` is replaced, and by which value.

        Returns
        -------
        (people, candidates) positions in ``classes_``; None if the model has no faster way than
        predicting every row.
        """
        used = mask & self.varies_
        used_columns = used[mask]
        if not used.any():
            return None
        candidates = np.flatnonzero(used_columns[column])
        positions = (np.cumsum(used_columns) - 1)[column[candidates]]
        decided = self._decide_tries(used, known[:, used_columns], positions, value[candidates])
        if decided is None or len(candidates) == len(column):
            return decided
        decisions = np.repeat(
            self.decide(self.predict_known(mask, known))[:, None], len(column), axis=1
        )
        decisions[:, candidates] = decided
        return decisions

    def cells(self, mask: BoolArray, feature: int) -> Float32Array | None:
        """The thresholds between which values of a feature make no difference to the model.

        Parameters
        ----------
        mask
            Which features are known, (features,).
        feature
            The position of the feature.

        Returns
        -------
        Ascending thresholds: a value x lies in the cell ``searchsorted(thresholds, x,
        side="right")``, and two values of one cell get the same answer. None if every value may
        make a difference.
        """
        return None

    @property
    def cache_key(self) -> Hashable:
        """A key for what is worked out from this fitted model's answers: another model, the same
        one fitted again, or one with another threshold has another key.
        """
        own = self.__dict__.setdefault("_token", object())  # unlike an id, never used again
        return own, self.threshold, self.favourable

    @property
    def needs(self) -> BoolArray:
        """Which features must be known for the model's final answer, (features,)."""
        return self.varies_

    def is_enough(self, known: BoolArray) -> Any:
        """Whether everything that the model uses is known.

        Parameters
        ----------
        known
            (features,) or (people, features).

        Returns
        -------
        One truth value, or one for each person.
        """
        return known[..., self.needs].all(axis=-1)

    def for_people(self, given: "tuple[Given, ...]" = (), count: int = 1) -> "Predictor":
        """The model as it is asked about ``count`` people of an interview or a file.

        ``given`` are numbers that all of them gave, beyond all that encoding can express. A model
        that has no use for them and no limit on what it may be asked returns itself.
        """
        return self

    def decides_by_completions(self, known: BoolArray) -> bool:
        """Whether people are decided about by most of their likely completions, because the model
        itself cannot be asked about them yet; ``known`` is (features,) or (people, features).
        """
        return False

    def over_completions(self, completions: Float32Array, favourable: int) -> "Predictor":
        """The model that decides about one person by most of their ``completions`` (k, features).

        ``favourable`` is the class that needs more than half of them. A model that answers from
        any subset returns itself.
        """
        return self

    @property
    def mixed(self) -> Any:
        """The ``SubsetXGB`` of mode "mixed" that the model is, or answers by while facts are
        missing; None: there is none.
        """
        return None

    def keeping(self, masks: Any) -> "Predictor":
        """The same with models of their own for these subsets (subsets, features), where that is
        possible (see ``SubsetXGB``).
        """
        return self

    def remember(self, X: Float32Array, frame: Any) -> None:  # noqa: N803
        """Take note of people as they were given, a frame, beside their encoded facts X (people,
        features).

        For a model that reads what encoding cannot express; any other has no use for it.
        """

    def _with(self, **attributes: Any) -> Self:
        """A model like this one in which some attributes have other values; both share everything
        else, caches included.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__ | attributes)
        return other

    @property
    def acquisition_model(self) -> "Predictor":
        """The model that questions are ordered by: this one, unless it is dear to ask."""
        return self

    def differentiable(self, mask: BoolArray) -> Callable[[Any], Any] | None:
        """The model as a function from tensors of known values (rows, known features) to logits
        (rows, classes).

        ``mask`` (features,) marks what is known. None if no gradient flows through it.
        """
        return None

    def predict(self, X: Any) -> AnyArray:  # noqa: N803
        """The class (people,) that ``decide`` chooses for each person of ``X`` (people,
        features).
        """
        decisions = self.decide(self.predict_proba(X))
        return np.asarray(self.classes_[decisions])

    @abstractmethod
    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        """Learn from a checked matrix (rows, features) and the position of each row's class in
        ``classes_`` (rows,).
        """

    @abstractmethod
    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """Probabilities (people, classes) from ``known`` (people, known features); every feature in
        ``mask`` varies.
        """

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """As ``decide_tries``, where every feature in ``mask`` varies; a subclass with a faster way
        overrides it.
        """
        return None

    def _settings(self) -> dict[str, Any]:
        """``get_params()`` in a form that JSON keeps: a mapping, whose keys may be numbers, becomes
        a list of pairs.
        """
        params = self.get_params(deep=False)
        return {
            name: list(v.items()) if isinstance(v, Mapping) else v for name, v in params.items()
        }

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise UnfittedError(
                f"this {type(self).__name__} has learnt nothing yet; call fit(X, y) first"
            )

    def _check_savable(self) -> None:
        """Raise if the model is not fitted or its classes are words, which the formats on disk do
        not hold.
        """
        self._check_fitted()
        if np.asarray(self.classes_).dtype.kind not in "iufb":
            raise DataError("classes must be numbers to be saved; use a Table's y")

    def _check_classes(self, y: Any) -> AnyArray:
        if y is None:
            raise TargetError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if np.asarray(y).dtype.kind == "f" and not np.isfinite(np.asarray(y)).all():
            raise TargetError("y does not name classes: it is NaN or infinite somewhere")
        try:
            check_classification_targets(y)
            return np.asarray(column_or_1d(y, warn=True))
        except ValueError as error:
            raise TargetError(f"y does not name classes: {error}") from None

    def _check_rows(self, X: Any, columns: int | None = None) -> Float32Array:  # noqa: N803
        """``X`` as a float32 matrix without infinities and, if given, with this number of
        ``columns``.

        Some messages use scikit-learn's words: its own checks look for them.
        """
        if hasattr(X, "toarray"):
            raise DataError(
                "a sparse matrix cannot tell a zero from what is not known; pass X.toarray()"
            )
        try:
            raw = np.asarray(X)
            if raw.dtype.kind == "c":
                raise DataError("Complex data not supported: X holds complex numbers")
            matrix = raw.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"X must be a matrix of numbers, as a Table's X is: {error}") from None
        if matrix.ndim != 2:
            raise DataError(
                f"X must be two-dimensional, not {matrix.shape}. Reshape your data: one "
                "person is (1, n)"
            )
        if columns is None and not len(matrix):
            raise EmptyTableError("X has no rows to learn from")
        if not matrix.shape[1]:
            raise DataError(
                f"X has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required."
            )
        if columns is not None and matrix.shape[1] != columns:
            name = type(self).__name__
            raise DataError(
                f"X has {matrix.shape[1]} features, but {name} is expecting {columns} "
                "features as input"
            )
        if np.isinf(matrix).any():
            row, column = np.argwhere(np.isinf(matrix))[0]
            raise DataError(f"X is infinite (inf) in row {row}, column {column}")
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def from_settings(
    kind: type[Estimator], settings: Mapping[str, Any], folder: str | Path | Folder
) -> Estimator:
    """Make an unfitted model or policy with settings that were saved.

    Parameters
    ----------
    kind
        Its class.
    settings
        Its settings by name, as JSON has them: a list stands for a tuple, and class weights may be
        a list of pairs.
    folder
        Where they were read, for messages.

    Raises
    ------
    UnreadableError
        If the class has no such setting.
    """
    if unknown := sorted(set(settings) - set(kind._get_param_names())):
        raise UnreadableError(
            f"{folder_name(folder)} was written by another edfa: {kind.__name__} has no setting "
            f"{unknown[0]!r}"
        )
    params = {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }
    if isinstance(params.get("class_weight"), tuple):
        params["class_weight"] = dict(params["class_weight"])
    estimator: Estimator = kind(**params)
    return estimator


def align(predictor: Model, columns: Iterable[int]) -> Model:
    """A view of a fitted predictor that is shown only some columns of what is known.

    Of a predictor that sees the blanket and nothing else (Assumption 3), "it does not matter" is
    true of everything else. The predictor itself is neither changed nor fitted again, and both
    share whatever is cached for them.

    Parameters
    ----------
    predictor
        The fitted predictor. Its threshold, and the class that is about, are those of the view.
    columns
        Positions of the columns that the view is shown.

    Returns
    -------
    A predictor of the same class, to which no other column varies. Fitting it learns from all
    columns again.

    Raises
    ------
    SettingError
        If there is no such column.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = align(edfa.SubsetXGB().fit(table.train.X, table.train.y), columns=[0, 1])
    >>> changed = table.test.X.copy()
    >>> changed[:, 2:] = 0
    >>> bool((model.predict_proba(table.test.X) == model.predict_proba(changed)).all())
    True
    """
    predictor._check_fitted()
    shown, width = tuple(sorted(columns)), len(predictor.varies_)
    if any(not 0 <= column < width for column in shown):
        raise SettingError(f"columns must be from 0 to {width - 1}, not {shown}")
    varies = predictor.varies_ & np.isin(np.arange(width), shown)
    return predictor._with(varies_=varies, _token=(predictor.cache_key, shown))


class ModelCache:
    """Results by model, set of known features and name; the least recently used ones leave first.
    Threads may share it.

    Models are told apart by their ``cache_key``: one that is fitted again is another one. A copy
    that is sent to another process is empty.

    Parameters
    ----------
    max_size
        The number of results held.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> model = edfa.SubsetXGB(n_estimators=5).fit(np.array([[0.0], [1.0]] * 9), [0, 1] * 9)
    >>> cache, mask = ModelCache(), np.array([True])
    >>> cache.get(model, mask, "grid", lambda: "made")
    'made'
    >>> cache.get(model, mask, "grid", lambda: "made again")
    'made'
    """

    def __init__(self, max_size: int = 1024) -> None:
        self.max_size = max_size
        self._results: dict[bool, Cache[Any]] = {
            large: Cache("model work", min(MAX_LARGE, max_size) if large else max_size)
            for large in (False, True)
        }

    def get(
        self,
        predictor: Predictor,
        mask: BoolArray,
        name: Hashable,
        make: Callable[[], T],
        *,
        large: bool = False,
    ) -> T:
        """The result called ``name`` for this model and these known features, made now where it is
        not there yet.

        ``mask`` is (features,). Of ``large`` results fewer are held.
        """
        result: T = self._results[large].get((predictor.cache_key, mask.tobytes(), name), make)
        return result

    def __len__(self) -> int:
        return sum(map(len, self._results.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size,)


def by_mask(matrix: Float32Array) -> Iterator[tuple[BoolArray, IntArray]]:
    """Group people who know the same features.

    Parameters
    ----------
    matrix
        Encoded people, (people, features); NaN where a value is not known.

    Yields
    ------
    Each mask of known features (features,) with the positions of its rows, in ascending order.
    """
    known = ~np.isnan(matrix)
    if len(known) == 1:
        yield known[0], np.zeros(1, dtype=np.intp)
        return
    words = np.zeros((len(known), -(-known.shape[1] // 64) * 8), dtype=np.uint8)
    words[:, : -(-known.shape[1] // 8)] = np.packbits(known, axis=1)
    order = np.lexsort(words.view(np.uint64).T)
    sorted_words = words.view(np.uint64)[order]
    ends = np.flatnonzero((sorted_words[1:] != sorted_words[:-1]).any(axis=1)) + 1
    for rows in np.split(order, ends) if len(order) else ():
        yield known[rows[0]], rows


def distinct_cases(facts: AnyArray) -> tuple[AnyArray, IntArray]:
    """The distinct rows of facts (people, known features), in ascending order, and the index among
    them of each row, (people,).

    >>> distinct_cases(np.array([[2, 1], [0, 5], [2, 1]]))
    (array([[0, 5],
           [2, 1]]), array([1, 0, 1]))
    """
    if len(facts) == 1 or not facts.shape[1]:
        return facts[:1], np.zeros(len(facts), dtype=np.intp)
    distinct, case = np.unique(facts, axis=0, return_inverse=True)
    return distinct, case.ravel()


def spread(known: Float32Array, mask: BoolArray) -> Float32Array:
    """Values of the known features (people, known features) as rows with all features in ``mask``'s
    places: (people, features), NaN elsewhere.

    >>> spread(np.array([[4.0, 2.0]], dtype=np.float32), np.array([True, False, True]))
    array([[ 4., nan,  2.]], dtype=float32)
    """
    rows = np.full((len(known), len(mask)), NAN)
    rows[:, mask] = known
    return rows


def smallest(distance: Float64Array, k: int) -> IntArray:
    """Columns of the k smallest entries in each row of ``distance`` (rows, columns): (rows, k), in
    no order.

    Long rows are first cut down to the entries no larger than the k-th smallest of all groups'
    minima: a few more than k of them.

    >>> np.sort(smallest(np.array([[5.0, 1.0, 4.0, 2.0], [0.0, 9.0, 8.0, 7.0]]), 2))
    array([[1, 3],
           [0, 3]])
    """
    rows, groups = len(distance), distance.shape[1] // GROUP
    if groups < 2 * k or distance.size < HASH_FROM_ENTRIES:
        return np.argpartition(distance, k - 1, axis=1)[:, :k]
    least = distance[:, : groups * GROUP].reshape(rows, GROUP, groups).min(axis=1)
    flat = np.flatnonzero(distance <= np.partition(least, k - 1, axis=1)[:, k - 1 : k])
    row, column = np.divmod(flat, distance.shape[1])
    count = np.bincount(row, minlength=rows)
    position = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    few, which = np.full((rows, count.max()), np.inf), np.zeros((rows, count.max()), dtype=np.intp)
    few[row, position], which[row, position] = distance[row, column], column
    return np.take_along_axis(which, np.argpartition(few, k - 1, axis=1)[:, :k], axis=1)


def class_probabilities(predictions: Any) -> Float64Array:
    """XGBoost's predictions as probabilities.

    Parameters
    ----------
    predictions
        (people,) probabilities of the second of two classes, or (people, classes).

    Returns
    -------
    (people, classes), in float64; each row adds up to one.
    """
    predicted = np.asarray(predictions)
    if predicted.ndim == 2:
        return np.asarray(predicted / predicted.sum(axis=1, keepdims=True, dtype=float))
    probabilities = np.empty((len(predicted), 2))
    probabilities[:, 1] = predicted
    np.subtract(1, probabilities[:, 1], out=probabilities[:, 0])
    return probabilities


def sample_weights(class_weight: ClassWeight, classes: AnyArray) -> Float32Array | None:
    """The weight of each row (rows,) given the class of each row; None if all rows count the same.

    >>> sample_weights("balanced", np.array(["yes", "no", "no", "no"]))
    array([2.       , 0.6666667, 0.6666667, 0.6666667], dtype=float32)
    """
    if class_weight is None:
        return None
    try:
        return np.asarray(compute_sample_weight(class_weight, classes), dtype=np.float32)
    except (TypeError, ValueError):
        message = (
            f"class_weight: 'balanced', a weight for every class, or None; not {class_weight!r}"
        )
        raise SettingError(message) from None


def inner_split(codes: Int64Array, seed: int) -> tuple[IntArray, IntArray]:
    """Split rows into those to learn from and a fifth of each class to stop early by.

    Parameters
    ----------
    codes
        The class of each row, (rows,).
    seed
        Decides which rows are held out.

    Returns
    -------
    Positions of the rows to learn from, and of those held out; with fewer than 50 rows, or fewer
    than five of a class, none are held out.
    """
    if len(codes) < MIN_INNER or np.bincount(codes).min() < 5:
        return np.arange(len(codes)), np.zeros(0, dtype=np.intp)
    random = np.random.default_rng(seed)
    shuffled = [random.permutation(np.flatnonzero(codes == c)) for c in range(int(codes.max()) + 1)]
    held_out = np.sort(np.concatenate([rows[: max(1, len(rows) // 5)] for rows in shuffled]))
    return np.setdiff1d(np.arange(len(codes)), held_out), held_out


def masked_copies(
    matrix: Float32Array, codes: Int64Array, seed: int
) -> tuple[Float32Array, Int64Array]:
    """Each row ten times, with a uniform number of its features known and NaN elsewhere.

    Parameters
    ----------
    matrix
        Encoded rows, (rows, features).
    codes
        A whole number for each row, (rows,), such as its class.
    seed
        Decides what is hidden.

    Returns
    -------
    The copies, (10 rows, features), and the number of each, (10 rows,).
    """
    random = np.random.default_rng(seed)
    copies = np.tile(matrix, (COPIES, 1))
    share_hidden = random.random((len(copies), 1))
    for part in gen_batches(len(copies), DRAWN):  # the same draws as all at once, in less memory
        some = copies[part]
        some[random.random(some.shape) < share_hidden[part]] = np.nan
    return copies, np.tile(codes, COPIES)


def as_mappings(value: Any) -> Any:
    """``value`` with lists and tuples, at any depth, as mappings from positions: the form of
    ``learnt_state``.

    >>> as_mappings({"knots": [1, (2, 3)]})
    {'knots': {'0': 1, '1': {'0': 2, '1': 3}}}
    """
    if isinstance(value, Mapping):
        return {str(key): as_mappings(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return {str(position): as_mappings(inner) for position, inner in enumerate(value)}
    return value
