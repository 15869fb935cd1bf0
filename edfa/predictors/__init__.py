"""A model that answers from any subset. A new model is one file, and one line in ``PREDICTORS``."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["PREDICTORS"]


def _late(file: str, name: str) -> Callable[[], Any]:
    """The class, imported when it is asked for: some of them need torch."""
    return lambda: getattr(import_module(f"edfa.predictors.{file}"), name)


PREDICTORS: dict[str, Callable[[], Any]] = {
    "xgb": _late("xgb", "SubsetXGB"),
    "ftt": _late("ftt", "FTTransformer"),
    "mlp": _late("mlp", "MaskedMLP"),
    "bn": _late("bn", "BayesNet"),
}
"""What the command line and study files call each model."""
