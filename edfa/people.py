"""Partly known people, and what follows from what is known: the one batch that everything
downstream shares.

Policies, the partition, searchers, survival, certificates and interviews all take a ``People``.
Whatever is worked out about it (the model's probabilities, the decision, the sweep of single
changes, the partition) is worked out once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.encode import Encoder
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, MismatchError, UnknownNameError
from edfa.explanation.necessity import Support, Sweep, sweep
from edfa.explanation.partition import Partition, members
from edfa.predictors.base import Predictor, align
from edfa.predictors.conditional import MAX_TRAINING_PEOPLE, Neighbours, Sampler
from edfa.predictors.user_model.given import Given
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray


@dataclass(frozen=True, eq=False)
class Background:
    """What all people of a batch share: the features, the model that decides, and the training rows
    behind it.

    Parameters
    ----------
    schema, encoder
        The card, and how facts become numbers.
    model
        The fitted model. Plans that were read from a file have none.
    blanket
        Features outside it are never changed, and an ``aligned`` model never sees them. None: every
        feature counts.
    aligned
        Whether the model is shown the blanket alone (Assumption 3).
    rows
        Encoded training rows, (training people, features); needed by whatever looks at training
        values.
    shared_support
        The values among the training rows where a searcher has them already; else they are read off
        ``rows``.
    origin
        Another background of the same training rows, whose support, neighbours and bins are used.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> background = Background.of(table.train, model, edfa.Blanket("class", {"duration": ()}),
    ...     aligned=True)
    >>> int(background.visible.sum())
    1
    """

    schema: Schema
    encoder: Encoder
    model: Predictor | None = None
    blanket: Blanket | None = None
    aligned: bool = False
    rows: Float32Array | None = None
    shared_support: Support | None = field(default=None, repr=False)
    origin: "Background | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.schema.names != self.encoder.names:
            raise DataError("the schema and the encoder do not describe the same features")
        if self.model is not None:
            self.model._check_fitted()
            if not np.array_equal(self.model.classes_, np.arange(len(self.schema.classes))):
                raise MismatchError(
                    f"the model knows the classes {self.model.classes_.tolist()}; the card has "
                    f"{len(self.schema.classes)}, coded from 0: fit it on a table's y"
                )
        for name in self.blanket.features if self.blanket else ():
            self.schema.index(name)

    @classmethod
    def of(
        cls,
        train: Table,
        model: Predictor,
        blanket: Blanket | None = None,
        *,
        aligned: bool = False,
        support: Support | None = None,
    ) -> "Background":
        """The background of a training table and a fitted model.

        Parameters
        ----------
        train
            The training people, with the card and the encoder.
        model
            A fitted model whose classes are the card's, coded from 0.
        blanket, aligned, support
            As for ``Background``; ``support`` is ``shared_support``.
        """
        return cls(train.schema, train.encoder, model, blanket, aligned, train.X, support)

    def with_schema(self, schema: Schema) -> "Background":
        """The same with another card of the same features; what is worked out about the training
        rows is shared.
        """
        return replace(self, schema=schema, origin=self)

    def for_people(self, given: tuple[Given, ...] = (), count: int = 1) -> "Background":
        """The background of ``count`` people of an interview or a file, all of whom gave the
        numbers ``given``: with the model as it is asked about them (``Predictor.for_people``).
        """
        model = self.fitted_model.for_people(given, count)
        return self if model is self.model else replace(self, model=model, origin=self)

    @property
    def card(self) -> "Background":
        """The first background of this schema and blanket, which what depends on those alone is
        remembered by.
        """
        before = self.origin
        same = before and before.schema is self.schema and before.blanket is self.blanket
        return before.card if before is not None and same else self

    @cached_property
    def support(self) -> Support:
        """The values that training people have; all levels of a category count, whatever their
        number.
        """
        if self.shared_support is not None:
            return self.shared_support
        if self.origin is not None:
            return self.origin.support
        return Support.of(self._training_rows, self._categorical)

    @cached_property
    def visible(self) -> BoolArray:
        """Which features the model is shown, (features,)."""
        return members(self.schema.names, self.blanket if self.aligned else None)

    @property
    def fitted_model(self) -> Predictor:
        """The model as it was fitted, shown everything; an error where there is none."""
        if self.model is None:
            raise DataError("these people have no model; they were read from a file")
        return self.model

    @cached_property
    def predictor(self) -> Predictor:
        """The model as it is shown to the people: aligned with the blanket where that is asked
        for.
        """
        if self.blanket is None or not self.aligned:
            return self.fitted_model
        return align(self.fitted_model, np.flatnonzero(self.visible).tolist())

    @cached_property
    def unaligned(self) -> "Background":
        """The same with a model that is shown everything."""
        return replace(self, aligned=False, origin=self) if self.aligned else self

    @cached_property
    def costs(self) -> Float64Array:
        """The card's price of each feature, (features,)."""
        return self.schema.costs

    @cached_property
    def start(self) -> BoolArray:
        """Which features are known before the first question, (features,)."""
        return np.array([feature.start for feature in self.schema])

    @cached_property
    def neighbours(self) -> Neighbours:
        """Likely values of what is not known, from the most similar training people."""
        if self.origin is not None:
            return self.origin.neighbours
        return Neighbours.of(self._training_rows, self._categorical)

    @cached_property
    def bins(self) -> Sampler:
        """Likely values of what is not known, from a small network that is trained when first asked
        for.
        """
        if self.origin is not None:
            return self.origin.bins
        from edfa.predictors.bins import Bins  # torch is slow to load, and most runs do without

        rows = self._training_rows
        return Bins.of(rows[np.random.default_rng(0).permutation(len(rows))[:MAX_TRAINING_PEOPLE]])

    @property
    def _categorical(self) -> list[int]:
        """The indices of the features that are categories."""
        return np.flatnonzero(self.schema.categorical).tolist()

    @property
    def _training_rows(self) -> Float32Array:
        if self.rows is None:
            raise DataError(
                "these people come without training rows; make their background with "
                "Background.of(train)"
            )
        return self.rows

    def class_code(self, name: int | str | None) -> int | None:
        """The code of a class.

        Parameters
        ----------
        name
            Its name or its code; None stays None.

        Raises
        ------
        UnknownNameError
            If the card has no such class.
        """
        if name is None:
            return None
        classes = self.schema.classes
        known: Sequence[Any] = classes if isinstance(name, str) else range(len(classes))
        if name not in known:
            raise UnknownNameError("class", name, known)
        return known.index(name)


class HasBackground:
    """Whatever is about a ``background``: its features, their encoding and its model."""

    background: Background

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema

    @property
    def encoder(self) -> Encoder:
        """How facts become numbers."""
        return self.background.encoder

    @property
    def predictor(self) -> Predictor:
        """The model, shown what it may see."""
        return self.background.predictor


@dataclass(frozen=True, eq=False)
class Provenance:
    """What brought people or plans about; a certificate holds for the same alone.

    Parameters
    ----------
    policy, searcher, rules
        The objects that were used; None: not known.
    costs
        The prices and the budget.
    desired_class
        The code of the class that plans lead to.
    completions
        What survival was estimated from.
    """

    policy: Any = None
    costs: Mapping[str, Any] | None = None
    searcher: Any = None
    rules: Any = None
    desired_class: int | None = None
    completions: Any = None


@dataclass(frozen=True, eq=False)
class People(HasBackground):
    """A batch of partly known people, a row each.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not acquired.
    background
        The features, the model and the training rows that all of them share.
    person, seed, step
        Whole numbers that come back with plans, (people,) or one for all; a person is numbered by
        row unless given.
    spent
        What each person has paid so far, (people,) or one for all.
    overlay
        The prices, locks and limits that all of these people have set themselves.
    costs
        What each feature costs each person, (people, features) or (features,); by default the
        card's prices, with those of the overlay in their places.
    askable
        Which features may be asked for, (people, features); by default all that are not known. What
        is known, and what the overlay says is never asked, is not.
    swept, predicted, decided
        The sweep of single changes (see ``with_sweep``), the probabilities (people, classes) and
        the decision (people,), where they are worked out already.
    provenance
        What brought them here.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:3], Background.of(table.train, model))
    >>> people.person, people.step
    (array([0, 1, 2]), array([0, 0, 0]))
    >>> people.probabilities.shape
    (3, 2)
    """

    X: Float32Array
    background: Background
    person: Int64Array = None  # type: ignore[assignment]
    seed: Int64Array = 0  # type: ignore[assignment]
    step: Int64Array = 0  # type: ignore[assignment]
    spent: Float64Array = 0.0  # type: ignore[assignment]
    overlay: Overlay = NO_OVERLAY
    costs: Float64Array = None  # type: ignore[assignment]
    askable: BoolArray = None  # type: ignore[assignment]
    swept: Sweep | None = field(default=None, repr=False)
    predicted: Float64Array | None = field(default=None, repr=False)
    decided: IntArray | None = field(default=None, repr=False)
    provenance: Provenance = field(default_factory=Provenance, repr=False)

    def __post_init__(self) -> None:
        rows, width = np.asarray(self.X, dtype=np.float32), len(self.encoder.columns)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise DataError(f"people are rows of {width} features; X has the shape {rows.shape}")
        if np.isinf(rows).any():
            raise DataError("X is infinite somewhere; NaN means that a fact is not known")
        object.__setattr__(self, "X", rows)
        for name in ("person", "seed", "step", "spent"):
            given = getattr(self, name)
            numbers = np.arange(len(rows)) if given is None and name == "person" else given
            column = np.asarray(numbers, dtype=float if name == "spent" else np.int64)
            if column.ndim and column.shape != (len(rows),):
                raise DataError(f"{name} has {column.size} numbers for {len(rows)} people")
            object.__setattr__(self, name, column if column.ndim else np.full(len(rows), column))
        prices = self.background.costs if self.costs is None else self.costs
        if self.costs is None and self.overlay.prices:
            prices = self.overlay.prices_in(self.schema)
        costs = np.asarray(prices, dtype=float)
        object.__setattr__(self, "costs", np.broadcast_to(costs, rows.shape))
        unknown = np.isnan(rows)
        askable = unknown if self.askable is None else np.asarray(self.askable, dtype=bool)
        if askable.shape != rows.shape:
            raise DataError(f"askable must be of shape {rows.shape}, not {askable.shape}")
        askable = unknown & askable
        if self.overlay.never_ask:
            askable &= ~np.isin(self.schema.names, self.overlay.never_ask)
        object.__setattr__(self, "askable", askable)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def blanket(self) -> Blanket | None:
        """The features that count; None: all of them."""
        return self.background.blanket

    @cached_property
    def known(self) -> BoolArray:
        """Which features are known, (people, features)."""
        return ~np.isnan(self.X)

    @cached_property
    def sweep(self) -> Sweep:
        """What the model would say after every single change of every visible known fact."""
        if self.swept is not None:
            return self.swept
        return sweep(self.X, self.predictor, self.background.support, self.background.visible)

    def with_sweep(self) -> "People":
        """The same people with their sweep worked out.

        Of a few people one model call then answers everything: probabilities, decision, partition,
        single changes. Of many, it takes memory for every candidate value of every person.
        """
        return self if self.swept is not None else replace(self, swept=self.sweep)

    @cached_property
    def probabilities(self) -> Float64Array:
        """What the model says now, (people, classes)."""
        if self.predicted is not None:
            return self.predicted
        return (
            self.predictor.predict_proba(self.X) if self.swept is None else self.swept.probabilities
        )

    @cached_property
    def decision(self) -> IntArray:
        """The code of the class that is decided for each person, (people,)."""
        if self.decided is not None:
            return self.decided
        return (
            self.predictor.decide(self.probabilities) if self.swept is None else self.swept.decision
        )

    @cached_property
    def partition(self) -> Partition:
        """What can turn each person's decision, what cannot yet, what never will."""
        return Partition(self.schema.names, self.blanket, self.known, self.sweep.necessity)

    def take(self, rows: IntArray) -> "People":
        """Some of the people.

        Parameters
        ----------
        rows
            Their rows in this batch, (n,), in the order in which they are wanted.

        Returns
        -------
        People
            With what has been worked out for them already.
        """
        columns = "X", "person", "seed", "step", "spent", "costs", "askable", "predicted", "decided"
        given = {name: getattr(self, name) for name in columns}
        taken: dict[str, Any] = {
            name: None if part is None else part[rows] for name, part in given.items()
        }
        swept = None if self.swept is None else self.swept.take(rows, self.background.visible)
        return replace(self, swept=swept, **taken)

    def people(self) -> "People":
        """Itself: whatever ``find_recourse`` takes has its people here, as a trajectory does."""
        return self


class HasPeople(Protocol):
    """Whatever holds a batch of people: ``People`` itself, or a trajectory with everybody at every
    step.
    """

    def people(self) -> People:
        """The people."""
