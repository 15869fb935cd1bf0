"""Names at the edge, objects inside: what an advisor is told to use becomes a fitted model, policy
and searcher.

``Advisor.fit`` calls these functions. Objects that are passed give their settings: each is cloned
and fitted on the training part, so that no calibration or test person takes part in anything that
is certified.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.acquisition.loop import Budget, run_policy
from edfa.acquisition.survival import SurvivalPolicy
from edfa.blanket.discovery import METHODS
from edfa.blanket.units import Blanket
from edfa.certification.records import REFERENCES, Loss
from edfa.certification.replay import OF_PLANS, SIGNALS
from edfa.data.rules import Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import SettingError, check_known
from edfa.people import Background
from edfa.predictors import PREDICTORS
from edfa.predictors.base import Predictor
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import signs
from edfa.predictors.user_model.usage import Usage
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch

Threshold = float | str | None
BY_NAME: dict[str, dict[str, Any]] = {"xgb": {"mode": "mixed"}}  # settings of models by name
PATH_PEOPLE = 1_000  # training people who show which sets of features lie on the policy's path
SECOND_LOOK = 64  # completions on which plans are looked at again, where a user model decides
PATH_SETS = 64  # sets that have a model of their own, those that most of them pass


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse names that nobody knows, and settings that contradict each other, before any work is
    spent.

    Parameters
    ----------
    settings
        The settings of an ``Advisor``, by name.

    Raises
    ------
    UnknownNameError
        For a name that nobody knows; the message has the nearest right one.
    SettingError
        For anything else that is wrong.
    """
    names: dict[str, tuple[Collection[str], type]] = {
        "blanket": (METHODS, Blanket),
        "predictor": (PREDICTORS, Predictor),
        "policy": (POLICIES, Policy),
        "searcher": (SEARCHERS, Searcher),
        "signal": (SIGNALS, str),
        "reference": (("auto", *REFERENCES), str),
    }
    for setting, (known, kind) in names.items():
        chosen, what = settings[setting], "method" if setting == "blanket" else setting
        if chosen is None and setting in ("policy", "signal"):
            continue
        if isinstance(chosen, str):
            check_known(what, chosen, known)
        elif not isinstance(chosen, kind):
            own = ", or a model of your own: edfa.wrap(model)" if kind is Predictor else ""
            raise SettingError(f"{what}: a name or a {kind.__name__}{own}; not {chosen!r:.200}")
    predictor, searcher = settings["predictor"], settings["searcher"]
    if settings["signal"] in OF_PLANS and "survival" not in policy_and_signal(searcher):
        raise SettingError(
            f"signal {settings['signal']!r} is known of plans of searcher='survival', not of "
            f"{searcher!r}"
        )
    reference, is_own = settings["reference"], not (isinstance(predictor, str) or predictor.refits)
    if is_own and reference not in ("auto", "all_features"):
        raise SettingError(
            f"reference={reference!r}: a promise about a model of your own is held against that "
            "model with everything known, reference='all_features'"
        )
    threshold = settings["threshold"]
    if threshold not in (None, "balanced") and (
        isinstance(threshold, str) or not 0 < float(threshold or 0) < 1
    ):
        raise SettingError(
            f"threshold: a probability between 0 and 1, or 'balanced', not {threshold!r}"
        )


def policy_and_signal(searcher: str | Searcher) -> tuple[str, str]:
    """The names of the policy and the signal that go with a searcher: for advice that survives, or
    the paper's.

    >>> policy_and_signal("survival"), policy_and_signal("nearest")
    (('survival', 'survival'), ('edfa', 'uncertainty'))
    """
    if searcher == "survival" or isinstance(searcher, SurvivalSearch):
        return "survival", "survival"
    return "edfa", "uncertainty"


def new_predictor(
    chosen: str | Predictor,
    table: Table,
    threshold: Threshold,
    seed: int,
    *,
    obey_directions: bool = True,
) -> Predictor:
    """The model, not fitted, with the advisor's threshold and the card's directions.

    Parameters
    ----------
    chosen
        A name of ``PREDICTORS``, or a model, which is cloned.
    table
        The whole table: its card and its training part are looked at.
    threshold
        The probability of the favourable class that is needed, ``"balanced"``, or None.
    seed
        The seed of a model that is given by its name.
    obey_directions
        Whether the model takes the card's directions; one with directions of its own keeps them.

    Raises
    ------
    SettingError
        If the card has directions and the model cannot obey any.
    """
    model: Predictor = (
        PREDICTORS[chosen](**BY_NAME.get(chosen, {})) if isinstance(chosen, str) else clone(chosen)
    )
    if isinstance(chosen, str) and "seed" in model.get_params():
        model.set_params(seed=seed)
    if obey_directions and model.refits:
        _tell_directions(model, table.schema)
    if threshold is not None:
        model.threshold = _threshold(threshold, table.train)
    if len(table.schema.classes) > 2:
        model.favourable = table.schema.classes.index(table.schema.favourable)
    return model


def _tell_directions(model: Predictor, schema: Schema) -> None:
    """Set the card's directions where the model has none of its own.

    Parameters
    ----------
    model
        A model, not fitted, which is changed.
    schema
        The card.

    Raises
    ------
    SettingError
        If the card has directions and the model cannot take any; the message names a model that
        can.
    """
    directions = signs(schema)
    if not any(directions):
        return
    first = next(feature.name for feature in schema if feature.monotone)
    why, classes = "", len(schema.classes)
    if "monotone" not in model.get_params(deep=False):
        why, other = "cannot obey it", "xgb"
    elif model.obeys_directions and classes > 2:
        why, other = f"obeys it between two classes, not {classes}", "mlp"
    if why:
        raise SettingError(
            f"{first}: the card says which way is good, and a {type(model).__name__} {why}; use "
            f"predictor={other!r}, or leave directions out: obey_directions=False"
        )
    if model.get_params(deep=False)["monotone"] is None:
        model.set_params(monotone=directions)


def _threshold(threshold: float | str, train: Table) -> float:
    """The probability from which on the second of two classes, or the favourable one of more, is
    decided.

    Parameters
    ----------
    threshold
        The probability of the favourable class that is needed; or ``"balanced"``, the share of the
        class that is decided among training people.
    train
        The training part.
    """
    classes = train.schema.classes
    second = 1 if len(classes) == 2 else classes.index(train.schema.favourable)
    if threshold == "balanced":
        # A calibrated model that decides for what is likelier than in general has the best mean
        # recall of the classes.
        return float((train.y == second).mean())
    needed = float(threshold)
    return (
        needed if classes[second] == train.schema.favourable else float(np.nextafter(1 - needed, 1))
    )


def new_policy(
    chosen: str | Policy,
    blanket: Blanket,
    searcher: Searcher,
    schema: Schema,
    rules: Rules | None = None,
    loss: Loss = "let_down",
) -> Policy:
    """The policy, not fitted.

    Parameters
    ----------
    chosen
        A name of ``POLICIES``, or a policy, which is cloned.
    blanket
        The features that it asks for, if it is given by its name.
    searcher
        The advisor's searcher, with which a policy plans that is given by its name.
    schema
        The card.
    rules
        The operator's rules, under which a policy plans.
    loss
        What the advisor promises about plans: with "in_vain", a policy that is given by its name
        asks for what ends interviews.
    """
    favourable = schema.classes.index(schema.favourable)
    if isinstance(chosen, str):
        policy: Policy = POLICIES[chosen].default(
            blanket=blanket, searcher=searcher, desired_class=favourable, rules=rules
        )
        if loss == "in_vain" and isinstance(policy, SurvivalPolicy):
            policy.set_params(aim="endings")
        return policy
    policy = clone(chosen)
    own = policy.get_params(deep=False)
    if rules is not None and "rules" in own:
        policy.set_params(rules=rules.tighten(own["rules"]))
    return policy


def add_committee(
    searcher: Searcher,
    policy: Policy,
    train: Table,
    model: Predictor,
    n_models: int,
    *,
    all_features: bool,
    seed: int,
) -> None:
    """Let models learnt again take part in survival: of a ``SurvivalSearch``, and of the policy
    that learns by one.

    Of a user model nothing is learnt again: it is asked alone, and a second time about the plan
    that is chosen.

    Parameters
    ----------
    searcher, policy
        What takes the committee; neither is fitted yet. A searcher that has one keeps it.
    train, model
        The training people, and the fitted model.
    n_models
        The number of models in the committee; 0: there is none.
    all_features
        Whether its members see everything, or what the policy shows to the model.
    seed
        The seed of the samples that the members learn from.
    """
    if not isinstance(searcher, SurvivalSearch):
        return
    own: Any = {
        name: part
        for name, part in policy.get_params(deep=False).items()
        if isinstance(part, SurvivalSearch)
    }
    if not model.refits:
        # Questions are ordered by first looks.
        policy.set_params(**{name: clone(part) for name, part in own.items()})
        searcher.set_params(second_look=searcher.second_look or SECOND_LOOK)
        return
    shown = Background.of(
        train, model, policy.blanket, aligned=policy.aligned and not all_features
    ).predictor
    committee = Committee.of(train.X, train.y, shown, n_models, seed=seed) if n_models else None
    for part in (searcher, *own.values()):
        part.set_params(all_features=all_features)
        if part.committee is None:
            part.set_params(committee=committee)


def keep_path(
    model: Predictor,
    policy: Policy,
    searcher: Searcher,
    budget: Budget,
    rules: Rules | None,
    seed: int,
) -> Predictor:
    """The model, in which the sets of known features on the policy's path have models of their own.

    Other sets, of people who know something else, are then answered by one masked model. It is for
    a ``SubsetXGB`` of mode "mixed", or one that was distilled from a user model; any
    other model is returned as it is. The path is that of some training people, asked to the end: no
    calibration or test person has a say.

    Parameters
    ----------
    model, policy, searcher
        The parts of the advisor, fitted.
    budget
        What one interview may cost.
    rules
        The operator's rules, on what is asked.
    seed
        The seed by which the training people are drawn.
    """
    if model.mixed is None:
        return model
    train = searcher.train_
    some = np.sort(np.random.default_rng(seed).permutation(len(train))[:PATH_PEOPLE])
    # A policy that chooses for each person may pass any set: the masked model shows the way without
    # training for it.
    masked = model.keeping(np.ones((1, len(train.schema)), dtype=bool))
    background = Background.of(
        train, masked, policy.blanket, aligned=policy.aligned, support=searcher.support_
    )
    walked = run_policy(train.X[some], policy, background, budget, rules)
    shown = walked.people().known & background.visible
    passed, count = np.unique(shown, axis=0, return_counts=True)
    most = passed[np.argsort(-count, kind="stable")[:PATH_SETS]]
    always = np.array(
        [background.visible, background.start & background.visible, np.ones_like(background.start)]
    )
    masked.mixed.booster(~always[2])  # trained now, so that a saved advisor has it
    return masked.keeping([*most, *always])


def blanket_of_model(usage: Usage, outcome: Blanket, schema: Schema) -> Blanket:
    """The features that a user model uses, in the units of the outcome's blanket where they are
    members of it.

    The model is never cut to a blanket, so that every feature that it uses may be asked for. Those
    that say nothing about the outcome are units of their own.

    Parameters
    ----------
    usage
        Which features the model uses.
    outcome
        The blanket of the outcome.
    schema
        The card.
    """
    used = [name for name, uses in zip(schema.names, usage.used, strict=True) if uses]
    units = {
        head: tuple(name for name in spouses if name in used)
        for head, spouses in outcome.units.items()
        if head in used
    }
    inside = {*units, *(name for spouses in units.values() for name in spouses)}
    rest = tuple(name for name in used if name not in inside)
    return Blanket(schema.target, units, unattached=rest, method="what the model uses")
