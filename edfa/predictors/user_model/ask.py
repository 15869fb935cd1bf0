"""A fitted user model, asked about complete people: whatever its library, one way to
ask it.

A model is never fitted, changed or copied here. It gets a frame with the columns it wants, in their
order and dtypes, and answers the probability of each of its classes. What it answers is checked
before anything relies on it.
"""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from edfa.errors import ColumnError, ModelError, SettingError, hint
from edfa.reading import check_items, short_message
from edfa.typing import Float64Array, IntArray

ENCODED = "encoded"  # columns of a model that was fitted on a table's X
BOOSTED = {  # the objectives that answer probabilities which add up to 1
    "xgboost": ("binary:logistic", "multi:softprob"),
    "lightgbm": ("binary", "multiclass", "cross_entropy"),
}
# a Booster answers labels; an XGBClassifier works out the probabilities all the same
SOFTMAX = "multi:softmax"
SUM = 1e-4  # how far from 1 a row of probabilities may add up: float32 models round
Kind = str
"""``"estimator"`` (has predict_proba), ``"booster"`` (XGBoost's or LightGBM's own), ``"torch"`` or
``"callable"``.
"""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model, with the columns it wants and the classes it knows.

    Parameters
    ----------
    model
        The model itself: never fitted again.
    kind
        How it is asked: see ``Kind``.
    columns
        The names of the columns it wants, in order; ``"encoded"``: the matrix of a table, all
        features in order.
    dtypes
        The dtype of each column where it is another than the table's: categories, for example.
    classes
        The classes in the order of its probabilities, as the card calls them; None: the card's
        order.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [5, 1, 4, 0]})
    >>> own = FittedModel.of(LogisticRegression().fit(frame, ["bad", "good", "bad", "good"]))
    >>> own.columns, own.classes
    (('age', 'debt'), ('bad', 'good'))
    >>> own.ask(frame).shape
    (4, 2)
    """

    model: Any = field(repr=False)
    kind: Kind
    columns: tuple[str, ...] | str
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[Any, ...] | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        columns: Sequence[str] | str | None = None,
        classes: Sequence[Any] | None = None,
        like: pd.DataFrame | None = None,
    ) -> Self:
        """Recognise a fitted model.

        Parameters
        ----------
        model
            The model, or the path or the content of an ONNX file.
        columns, classes, like
            As for ``edfa.wrap``; None where the model itself says it.

        Returns
        -------
        The model with its columns and classes, ready to be asked.

        Raises
        ------
        ModelError
            If it is not fitted, answers no probabilities or does not say which columns it wants.
        SettingError
            For ``columns``, ``classes`` or ``like`` that no model can have.
        ColumnError
            If ``like`` lacks a column that the model wants.
        """
        _check_settings(columns, classes, like)
        if isinstance(model, str | Path | bytes):
            from edfa.predictors.user_model.onnx import OnnxModel  # onnxruntime is optional

            model = OnnxModel.open(model)
        kind = _kind(model)
        if kind == "estimator":
            _check_fitted(model)
        _check_objective(model)
        names = _columns(model, columns, like)
        known = getattr(model, "classes_", None) if classes is None else classes
        dtypes = {} if like is None or isinstance(names, str) else _dtypes(like, names)
        return cls(
            model, kind, names, dtypes, None if known is None else tuple(np.asarray(known).tolist())
        )

    @property
    def name(self) -> str:
        """What the model is called in messages: its class, or the function's name."""
        return str(getattr(self.model, "__name__", type(self.model).__name__))

    def __sklearn_clone__(self) -> Self:
        return self

    def learnt_state(self) -> Mapping[str, Any]:
        """What fingerprints are made of: name, columns, data types and classes.

        What the model answers is added by the predictor that asks it (``UserModel.learnt_state``).
        """
        dtypes = {name: str(dtype) for name, dtype in self.dtypes.items()}
        return {
            "name": self.name,
            "columns": self.columns,
            "dtypes": dtypes,
            "classes": self.classes,
        }

    def order(self, classes: Sequence[str]) -> IntArray:
        """Which of the model's probabilities belongs to each class of the card.

        Parameters
        ----------
        classes
            The classes of the card.

        Returns
        -------
        Positions among the model's classes, (classes,); those of the card where the model names
        none.

        Raises
        ------
        ModelError
            If the model knows other classes. They are told apart by their text: 1, 1.0 and "1" are
            one class.
        """
        if self.classes is None:
            return np.arange(len(classes))
        theirs, ours = [_text(c) for c in self.classes], [_text(c) for c in classes]
        if sorted(theirs) == sorted(ours):
            return np.array([theirs.index(name) for name in ours], dtype=np.intp)
        both = f"the model's classes are {_list(self.classes)}, the card's {_list(classes)}"
        if len(theirs) != len(ours):
            lacks = [c for c, name in zip(classes, ours, strict=True) if name not in theirs]
            why = (
                f"the model lacks class {_list(lacks)}"
                if set(theirs) < set(ours)
                else "as many are needed"
            )
            raise ModelError(f"{both}; {why}")
        raise ModelError(
            f"{both}; say which is which, in the order of its probabilities: wrap(model, "
            f"classes={tuple(classes)!r})"
        )

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise ColumnError if the model wants a column that is none of these ``names``.

        A model of encoded people, ``columns="encoded"``, wants none by name.
        """
        if isinstance(self.columns, str):
            return
        if absent := [name for name in self.columns if name not in names]:
            raise ColumnError(
                f"the model wants a column {absent[0]!r}, which the card has "
                f"not{hint(absent[0], names)}"
            )

    def ask(self, people: Any) -> Float64Array:
        """Ask the model about complete people.

        Parameters
        ----------
        people
            A frame with the columns of the model in their order and data types, or a matrix
            (people, features) for a model of encoded people. It is copied first: models may write
            into it.

        Returns
        -------
        Probabilities (people, classes) in the model's own order.

        Raises
        ------
        ModelError
            If the model fails, or does not answer with probabilities.
        """
        return self.check(self._call(people), len(people))

    def _call(self, people: Any) -> Any:
        """What the model answers; it gets a copy, into which it may write."""
        is_frame = isinstance(people, pd.DataFrame)
        own = (
            people.copy(deep=False) if is_frame else np.array(people)
        )  # pandas copies what is written to
        try:
            return self._answer(own)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            raise ModelError(
                f"the model {self.name} failed on {len(people)} rows: "
                f"{type(error).__name__}: {short_message(error).rstrip('.')}"
                f"{self._hint(error, people)}"
            ) from error

    def _answer(self, people: Any) -> Any:
        """What the model answers, in whatever form its library has."""
        if self.kind == "estimator":
            return self.model.predict_proba(people)
        if self.kind == "callable":
            return self.model(people)
        if self.kind == "torch":
            return _ask_torch(self.model, people)
        if type(self.model).__module__.startswith("xgboost"):
            import xgboost as xgb

            people = xgb.DMatrix(people, enable_categorical=True, nthread=1)
        return self.model.predict(people)

    def _hint(self, error: Exception, people: Any) -> str:
        """What may help a model that failed on words: its own data types."""
        if (
            not self.dtypes
            and isinstance(people, pd.DataFrame)
            and isinstance(error, TypeError | ValueError)
            and any(pd.api.types.is_string_dtype(dtype) for dtype in people.dtypes)
        ):
            return "; show the frame it was fitted on: wrap(model, like=frame.head())"
        return ""

    def check(self, answer: Any, people: int) -> Float64Array:
        """An answer as probabilities.

        Parameters
        ----------
        answer
            What the model answered: (people, classes), or (people,) or (people, 1) for the second
            of two classes. Of one person it may be without the dimension of people.
        people
            The number of people that the model was asked about.

        Returns
        -------
        Probabilities (people, classes), which add up to one but for roundings of float32.

        Raises
        ------
        ModelError
            If there is another number of rows or classes, or a row does not have probabilities.
        """
        asked = (
            f"the model {self.name} was asked about {people} "
            f"{'person' if people == 1 else 'people'} and answered"
        )
        if answer is None:
            raise ModelError(f"{asked} None")
        try:
            table = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{asked} {type(answer).__name__}, not probabilities") from None
        if people == 1 and table.ndim < 2:
            table = table.reshape(1, -1)
        if table.ndim == 0:
            raise ModelError(f"{asked} one number, {table:.4g}")
        if len(table) != people:
            raise ModelError(f"{asked} {len(table)} row{'' if len(table) == 1 else 's'}")
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim == 2 and table.shape[1] == 1:
            table = np.concatenate([1 - table, table], axis=1)  # of two classes, the second one's
        classes = len(self.classes) if self.classes is not None else table.shape[-1]
        if table.shape != (people, classes):
            raise ModelError(
                f"{asked} an array of {table.shape}; one probability for each of "
                f"{classes} is needed"
            )
        _check_probabilities(table, self.name)
        return table


def _check_probabilities(table: Float64Array, name: str) -> None:
    """Raise ModelError, showing the worst row, unless each row of a table has probabilities.

    Parameters
    ----------
    table
        An answer, (people, classes).
    name
        What the message calls the model.
    """
    if not table.size:
        return
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise ModelError(
            f"the model {name} answers NaN or an infinite number in row {finite.argmin()}"
        )
    outside, apart = np.maximum(-table, table - 1).max(axis=1), np.abs(table.sum(axis=1) - 1)
    wrong = np.maximum(outside, apart)
    worst = int(wrong.argmax())
    if wrong[worst] > SUM:
        row = ", ".join(f"{value:.4g}" for value in table[worst])
        why = (
            f"which adds up to {table[worst].sum():.4g}"
            if apart[worst] > SUM
            else "which are not all from 0 to 1"
        )
        raise ModelError(
            f"the model {name} answers what are no probabilities: row {worst} is [{row}], {why}"
        )


def _ask_torch(model: Any, people: Any) -> Any:
    """A module's outputs are log odds: one a row, of the second of two classes, or one for each
    class.
    """
    import torch

    matrix = torch.as_tensor(np.asarray(people, dtype=np.float32))
    with torch.inference_mode():
        scores = model(matrix).double()
    if scores.ndim == 1 or scores.shape[1] == 1:
        return torch.sigmoid(scores).reshape(-1).numpy()
    return torch.softmax(scores, dim=1).numpy()


def _kind(model: Any) -> Kind:
    """How a model is asked.

    Returns
    -------
    One of the kinds that ``Kind`` lists; scikit-learn's way, ``predict_proba``, where a model has
    it.

    Raises
    ------
    ModelError
        If the model is a class, answers no probabilities, or is a torch module in training mode.
    """
    if inspect.isclass(model):
        raise ModelError(f"{model.__name__} is a class; wrap a fitted model of it")
    if callable(getattr(model, "predict_proba", None)):
        return "estimator"
    library = type(model).__module__.split(".")[0]
    if library in ("xgboost", "lightgbm") and type(model).__name__ == "Booster":
        return "booster"
    # whether it is a torch module, without loading torch to find out
    if any(
        c.__module__.startswith("torch.nn") and c.__name__ == "Module" for c in type(model).__mro__
    ):
        if model.training:
            raise ModelError(
                f"the model {type(model).__name__} is in training mode; call eval() on it first"
            )
        return "torch"
    if hasattr(model, "predict"):
        more = (
            "; calibrate it with CalibratedClassifierCV"
            if hasattr(model, "decision_function")
            else ""
        )
        raise ModelError(
            f"a {type(model).__name__} has no predict_proba, so that nothing can be said "
            f"of chances{more}"
        )
    if callable(model):
        return "callable"
    raise ModelError(
        f"a {type(model).__name__} is no model: one with predict_proba, an ONNX file or a "
        "function is needed"
    )


def _check_fitted(model: Any) -> None:
    """Raise ModelError for an estimator of scikit-learn that is not fitted."""
    try:
        if hasattr(model, "fit"):
            check_is_fitted(model)
    except NotFittedError:
        raise ModelError(
            f"this {type(model).__name__} is not fitted; edfa never fits a model of yours"
        ) from None
    except TypeError:  # no estimator in scikit-learn's sense: asking it will tell
        return


def _check_objective(model: Any) -> None:
    """Raise ModelError for boosted trees that were fitted to answer something else than
    probabilities.

    Labels are the danger: 0 and 1 look like probabilities.

    Parameters
    ----------
    model
        Any model. XGBoost's and LightGBM's trees are looked at, alone or as the last step of a
        Pipeline; all others pass.
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    libraries = {base.__module__.partition(".")[0] for base in type(last).__mro__} & {*BOOSTED}
    if not libraries:
        return
    library = libraries.pop()
    if library == "xgboost":
        booster = last.get_booster() if hasattr(last, "get_booster") else last
        objective = str(json.loads(booster.save_config())["learner"]["objective"]["name"])
        if objective == SOFTMAX and booster is not last:
            return
    else:
        text = getattr(last, "booster_", last).model_to_string(num_iteration=1)
        named = re.search(r"^objective=(\S+)", text, re.MULTILINE)
        objective = named[1] if named else "nothing that it names"
    if objective not in BOOSTED[library]:
        raise ModelError(
            f"this {type(last).__name__} was fitted for {objective}, which answers no "
            f"probabilities; {' or '.join(BOOSTED[library])} does"
        )


def _check_settings(columns: Any, classes: Any, like: Any) -> None:
    """Raise SettingError for what can be no columns, classes or frame of a model."""
    if isinstance(columns, str) and columns != ENCODED:
        raise SettingError(
            f"columns: names, or {ENCODED!r} for a model of a table's X, not {columns!r}"
        )
    if columns is not None and not isinstance(columns, str):
        check_items("columns", columns, f"names in the model's order, or {ENCODED!r}", text=True)
    if classes is not None:
        labels = check_items(
            "classes", classes, "the outcomes in the order of the model's probabilities"
        )
        if len({_text(label) for label in labels}) < len(labels):
            raise SettingError(f"classes: each outcome once, not {_list(labels)}")
    if like is not None and not isinstance(like, pd.DataFrame):
        raise SettingError(
            "like: a data frame, a few rows that the model was fitted on, not "
            f"{type(like).__name__}"
        )


def _dtypes(like: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """The data types of a model's columns in a frame like its own, by name.

    ColumnError if the frame ``like`` lacks one of the columns ``names``.
    """
    known = {str(name): dtype for name, dtype in like.dtypes.items()}
    if absent := [name for name in names if name not in known]:
        raise ColumnError(
            f"like: there is no column {absent[0]!r}, which the model wants{hint(absent[0], known)}"
        )
    return {name: known[name] for name in names}


def _columns(model: Any, columns: Sequence[str] | str | None, like: Any) -> tuple[str, ...] | str:
    """The columns that a model wants, in order.

    Parameters
    ----------
    model
        The model, which is asked where neither of the others is given.
    columns
        Their names, or ``"encoded"``.
    like
        A frame like the one that the model was fitted on.

    Returns
    -------
    The names of the columns, or ``"encoded"``.

    Raises
    ------
    ModelError
        If nothing says which columns the model wants.
    """
    if columns is not None:
        return ENCODED if isinstance(columns, str) else tuple(columns)
    if like is not None:
        return tuple(str(name) for name in like.columns)
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        try:
            names = getattr(model, attribute, None)
            names = names() if callable(names) else names
        except (AttributeError, ValueError):  # XGBoost and LightGBM raise where there are no names
            continue
        if names is not None and len(names):
            return tuple(str(name) for name in names)
    raise ModelError(
        f"this {type(model).__name__} does not say which columns it wants; say it: "
        "wrap(model, columns=[...]), "
        f"or columns={ENCODED!r} if it was fitted on a table's X"
    )


def _text(label: Any) -> str:
    """A class as text, in which 1, 1.0, True and "1" are one."""
    if isinstance(label, bool | int | float | np.number) and float(label).is_integer():
        return str(int(label))
    return str(label)


def _list(labels: Sequence[Any]) -> str:
    """Classes as a message lists them."""
    return ", ".join(repr(label) for label in labels)
