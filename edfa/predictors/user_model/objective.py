"""What boosted trees were fitted for: most objectives of XGBoost and LightGBM answer no
probabilities.
"""

import json
from typing import Any

from edfa.errors import ModelError

__all__ = ["BOOSTED", "check_booster_objective", "check_objective"]

BOOSTED = {  # the objectives that answer probabilities which add up to 1
    "XGBoost": ("binary:logistic", "multi:softprob"),
    "LightGBM": ("binary", "multiclass", "cross_entropy"),
}
# a Booster answers labels; an XGBClassifier works out the probabilities all the same
SOFTMAX = "multi:softmax"


def check_objective(model: Any) -> None:
    """Raise ModelError for XGBoost's or LightGBM's trees, or a Pipeline that ends with them, that
    answer otherwise.

    Labels are the danger: 0 and 1 look like probabilities. Any other model passes.
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    libraries = {base.__module__.partition(".")[0] for base in type(last).__mro__}
    if "xgboost" in libraries:
        classifier = hasattr(last, "get_booster")
        booster = last.get_booster() if classifier else last
        if not (classifier and _xgboost(booster) == SOFTMAX):
            check_booster_objective(booster, "XGBoost", f"this {type(last).__name__}")
    elif "lightgbm" in libraries:
        check_booster_objective(
            getattr(last, "booster_", last), "LightGBM", f"this {type(last).__name__}"
        )


def check_booster_objective(booster: Any, library: str, name: str) -> None:
    """Raise ModelError for a Booster that was fitted to answer something else than probabilities.

    ``library`` is "XGBoost" or "LightGBM"; the message begins with ``name``.
    """
    objective = _xgboost(booster) if library == "XGBoost" else _lightgbm(booster)
    if objective not in BOOSTED[library]:
        known = " or ".join(BOOSTED[library])
        raise ModelError(
            f"{name} was fitted for {objective}, which answers no probabilities; {known} does"
        )


def _xgboost(booster: Any) -> str:
    return str(json.loads(booster.save_config())["learner"]["objective"]["name"])


def _lightgbm(booster: Any) -> str:
    text = booster.model_to_string(num_iteration=1)
    lines = [line for line in text.splitlines() if line.startswith("objective=")]
    return (
        lines[0].removeprefix("objective=").partition(" ")[0] if lines else "nothing that it names"
    )
