"""What boosted trees were fitted for: most objectives of XGBoost and LightGBM answer no
probabilities.
"""

import json
import re
from typing import Any

from edfa.errors import ModelError

__all__ = ["check_objective"]

BOOSTED = {  # the objectives that answer probabilities which add up to 1
    "xgboost": ("binary:logistic", "multi:softprob"),
    "lightgbm": ("binary", "multiclass", "cross_entropy"),
}
# a Booster answers labels; an XGBClassifier works out the probabilities all the same
SOFTMAX = "multi:softmax"


def check_objective(model: Any) -> None:
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
