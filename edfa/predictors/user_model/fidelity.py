"""How far what is said before everything is known lies from what the model says in the end, on
people it never saw.
"""

from dataclasses import dataclass

import numpy as np

from edfa.predictors.user_model.model import UserModel
from edfa.text import html
from edfa.typing import NAN, Float32Array

N_MASKS = 16  # sets of known features that are drawn
MAX_STATES = 2_000  # partly known people at most


@dataclass(frozen=True)
class Fidelity:
    """The distance of a view of a model from the model, on held-out people.

    ``view`` is the way in which it answers (``partial``). ``rmse`` is the root mean square
    difference of the favourable or second class' probability before and after everything is known,
    ``same`` the share of decisions that are the same: over ``states`` partly known people, with
    features known at random. ``path_rmse`` and ``path_same`` are those on the way that the
    advisor's questions take; None without questions.

    Examples
    --------
    >>> print(Fidelity("distilled", 200, 0.11, 0.9, 0.05, 0.97))
    distilled: the model's own decision in 97.0% of people on the way of questions (RMSE 0.050), 90.0% at random (0.110)
    """  # noqa: E501

    view: str
    states: int
    rmse: float
    same: float
    path_rmse: float | None = None
    path_same: float | None = None

    def __str__(self) -> str:
        own = f"{self.view}: the model's own decision in"
        if self.path_same is None:
            return f"{own} {self.same:.1%} of people (RMSE {self.rmse:.3f})"
        return (
            f"{own} {self.path_same:.1%} of people on the way of questions "
            f"(RMSE {self.path_rmse:.3f}), {self.same:.1%} at random ({self.rmse:.3f})"
        )

    def _repr_html_(self) -> str:
        return html.fragment(html.paragraph(str(self)))


def measure_fidelity(
    model: UserModel,
    X: Float32Array,  # noqa: N803
    path: tuple[Float32Array, Float32Array],
) -> Fidelity:
    """Compare what ``model`` says of partly known people with what it says of them in the end.

    Parameters
    ----------
    model
        The fitted user model.
    X
        Complete encoded people whom neither the model nor its view has seen, (people, features).
    path
        Partly known people on the way of the advisor's questions (states, features), and everything
        that is known of them in the end (states, features).

    Returns
    -------
    The distances over at most 2,000 people with facts left out at random, and over as many states
    of the ``path``; both are drawn by a fixed seed.
    """
    random = np.random.default_rng(0)
    people = X[random.permutation(len(X))[:MAX_STATES]]
    masks = random.random((N_MASKS, X.shape[1])) < random.random((N_MASKS, 1))
    partial = np.where(masks[random.integers(N_MASKS, size=len(people))], people, NAN)
    at_random = _distance(model, partial, people)
    before, after = path
    if not len(before):
        return Fidelity(model.partial, len(people), *at_random)
    some = np.sort(random.permutation(len(before))[:MAX_STATES])
    on_path = _distance(model, before[some], after[some])
    return Fidelity(model.partial, len(people), *at_random, *on_path)


def _distance(model: UserModel, partial: Float32Array, whole: Float32Array) -> tuple[float, float]:
    """The root mean square difference of probabilities, and the share of equal decisions."""
    before, after = model.predict_proba(partial), model.ask(whole)
    about = 1 if model.favourable is None else model.favourable
    rmse = float(np.sqrt(((before - after)[:, about] ** 2).mean()))
    return rmse, float((model.decide(before) == model.decide(after)).mean())
