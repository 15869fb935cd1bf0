"""The contract of a user model: it has the last word, nothing peeks, and nobody
changes it.

Public as ``edfa.testing.check_wrapped``.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.table import Table
from edfa.people import Background, People
from edfa.predictors.user_model.ask import FittedModel
from edfa.predictors.user_model.frames import cast_frame
from edfa.predictors.user_model.model import SAME, UserModel, wrap
from edfa.recourse.find import find_recourse
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import NAN, Float32Array, Float64Array

MAX_PEOPLE = 40  # test people at most, of whom a part is known
N_MASKS = 5  # sets of known features
# how far the sums of a steady model may move with the rows that it is asked about at once
LAST_BITS = 1e-14
SECOND_LOOK = 16  # completions on which the survival of plans is worked out again


def require(holds: Any, law: str) -> None:
    """Raise AssertionError with the law that is broken."""
    if not holds:
        raise AssertionError(f"broken: {law}")


def check_wrapped(model: Any, table: Table, **wrap_arguments: Any) -> None:
    """Whether advice about a user model is about that model.

    With everything known the answers are the model's own, but for last bits that the model itself
    moves from call to call; nothing peeks; the model is never given a missing value for what was
    not acquired; whether a plan survives is asked of the model itself; every call is counted; and
    the model answers in the end as it did before.

    Parameters
    ----------
    model
        A fitted model, as ``edfa.wrap`` takes it.
    table
        A whole table: the view of partial information is learnt from its training people, and its
        test people are asked about.
    **wrap_arguments
        Those of ``edfa.wrap``.

    Raises
    ------
    AssertionError
        With the law that is broken.
    """
    ready = wrap(model, **wrap_arguments)
    train, test = table.train, table.test
    frame = _as_asked(ready.own, test)
    before = ready.own.ask(frame)
    again = ready.own.ask(frame[::-1])[::-1]
    apart = LAST_BITS if np.abs(before - again).max(initial=0.0) <= LAST_BITS else SAME
    recorded = _Recorded(**vars(ready.own))
    wrapped = ready.set_params(own=recorded).fit_table(train)
    _check_last_word(wrapped, test, before[:, wrapped.source_.order], apart)
    # From here on every question goes through the recorded model, and answers kept so far are
    # forgotten.
    wrapped._use(replace(wrapped.source_, prepared=None))
    recorded.questions.clear()
    rows, partial = _partly_known(test.X)
    _check_peeking(wrapped, rows, partial)
    _check_survival(wrapped, train, partial)
    _check_questions(wrapped, recorded, train)
    require(
        np.abs(ready.own.ask(frame) - before).max() <= apart, "the model answers as it did before"
    )


def odd_gaps(X: Float32Array) -> Float32Array:  # noqa: N803
    """The same rows (people, features), with other bits in every NaN, which must not show."""
    bits, unknown = X.view(np.uint32).copy(), np.isnan(X)
    bits[unknown] = 0x7FC00000 | np.arange(1, unknown.sum() + 1, dtype=np.uint32)
    return bits.view(np.float32)


@dataclass(frozen=True, eq=False)
class _Recorded(FittedModel):
    """A model that keeps every question it is asked."""

    questions: list[Any] = field(default_factory=list, repr=False)

    def ask(self, people: Any) -> Float64Array:
        self.questions.append(people)
        return super().ask(people)


def _as_asked(own: FittedModel, people: Table) -> Any:
    """People as the model wants them: their frame as it was given, or encoded."""
    if isinstance(own.columns, str):
        return people.X
    own.check_columns(people.schema.names)
    return cast_frame(people.frame[list(own.columns)], own.dtypes)


def _partly_known(X: Float32Array) -> tuple[Float32Array, Float32Array]:  # noqa: N803
    """Some people, and the same with gaps where something is not known; both (people, features)."""
    random = np.random.default_rng(0)
    rows = X[random.permutation(len(X))[:MAX_PEOPLE]]
    masks = random.random((N_MASKS, X.shape[1])) < 0.6
    known = masks[random.integers(N_MASKS, size=len(rows))]
    return rows, np.where(known, rows, NAN)


def _check_last_word(wrapped: UserModel, test: Table, own: Float64Array, apart: float) -> None:
    """Check that answers about complete people are the model's ``own`` (people, classes), no
    further than ``apart`` from them, and decisions the same.
    """
    wrapped.remember(test.X, test.frame)
    # Of two people who are the same once they are encoded, one answer is kept.
    first = pd.DataFrame(wrapped._read(test.X)).drop_duplicates().index.to_numpy()
    given = wrapped.predict_proba(test.X[first])
    require(
        np.abs(given - own[first]).max() <= apart,
        "with everything known the answer is the model's own",
    )
    decided = wrapped.decide(own[first])
    require(
        np.array_equal(wrapped.predict(test.X[first]), wrapped.classes_[decided]),
        "and so is the decision",
    )


def _check_peeking(wrapped: UserModel, rows: Float32Array, partial: Float32Array) -> None:
    """Check that answers about ``partial`` people do not move with what is hidden of them, or with
    the other rows of a call; ``rows`` are the same people, complete.
    """
    answers = wrapped.predict_proba(partial)
    require(np.allclose(answers.sum(axis=1), 1), "probabilities add up to one")
    require(
        np.array_equal(wrapped.predict_proba(odd_gaps(partial)), answers),
        "nothing peeks at an unknown cell",
    )
    crowd = np.concatenate([rows, partial])
    require(
        np.abs(wrapped.predict_proba(crowd)[len(rows) :] - answers).max() <= SAME,
        "nor at other people's rows",
    )


def _check_survival(wrapped: UserModel, train: Table, partial: Float32Array) -> None:
    """Work out the survival of plans once more, by asking the model itself about every completion.

    Parameters
    ----------
    wrapped
        The fitted user model.
    train
        The training people, from whom partly known ones are completed.
    partial
        Partly known people, (people, features), for whom plans are sought.
    """
    searcher = SurvivalSearch(train, second_look=SECOND_LOOK)
    people = People(partial, Background.of(train, wrapped))
    favourable = train.schema.classes.index(train.schema.favourable)
    plans = find_recourse(people, searcher, desired_class=favourable, k=3)
    completions = searcher.completions_.farther(SECOND_LOOK)
    if completions is None or plans.survival is None or not len(plans):
        return
    everything = np.arange(partial.shape[1])
    for plan in range(len(plans)):
        person = partial[plans.of[plan]]
        filled = completions.neighbours.complete(person[None])[0]
        to = np.tile(plans.to[plan], (len(filled), 1))
        changed = np.where(np.isnan(to), filled, to)
        if plans.consequences is not None:
            changed = plans.consequences.apply(everything, filled, to)[0]
        decided = wrapped.decide(wrapped.source_.ask(changed))
        known = not np.isnan(person[wrapped.varies_]).any()
        expected = 1.0 if known else (decided == favourable).mean()
        wrapped._answers.count(1, len(changed))  # it was asked here, past the count
        require(
            np.isclose(plans.survival[plan], expected),
            "whether a plan survives is asked of the model itself",
        )


def _check_questions(wrapped: UserModel, recorded: _Recorded, train: Table) -> None:
    """Check that every call was counted, and that columns without gaps in training had none in any
    question.
    """
    asked = wrapped.asked_
    rows = sum(len(people) for people in recorded.questions)
    require(
        (asked.calls, asked.rows) == (len(recorded.questions), rows),
        f"every call is counted: {asked}",
    )
    complete = ~pd.DataFrame(_as_asked(recorded, train)).isna().any(axis=0).to_numpy()
    missing = [
        pd.DataFrame(people).isna().to_numpy()[:, complete].any() for people in recorded.questions
    ]
    require(not any(missing), "the model is never given a missing value for what was not acquired")
