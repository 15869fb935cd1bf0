"""What an advisor does otherwise where a user model decides.

The model is never cut to a blanket, so that every feature it uses may be asked for; whether a plan
survives, and what every promise is held against, is the model itself with everything known; nothing
is learnt again.
"""

from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.errors import SettingError
from edfa.predictors.base import Predictor
from edfa.predictors.user_model.usage import Usage

__all__ = ["blanket_of_model", "check_reference"]


def check_reference(predictor: str | Predictor, reference: str) -> None:
    """Raise SettingError for a promise that cannot be made about a user model."""
    if not (not isinstance(predictor, Predictor) or predictor.refits) and reference not in (
        "auto",
        "all_features",
    ):
        raise SettingError(
            f"reference={reference!r}: a promise about a model of your own is held against that "
            "model with everything known, reference='all_features'"
        )


def blanket_of_model(usage: Usage, outcome: Blanket, schema: Schema) -> Blanket:
    """The features that a model uses, in the units of the outcome's blanket where they are members
    of it.

    Features that the model uses and that say nothing about the outcome are units of their own.
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
