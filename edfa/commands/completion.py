"""What a shell offers for a half-typed name. Nothing heavy is imported: the shell waits at every
press of a key.
"""

from collections.abc import Callable
from pathlib import Path

__all__ = ["METHODS", "complete", "data_sets", "policies", "predictors", "searchers"]

METHODS = ("hiton-mb", "bamb", "eamb", "iamb")


def complete(*words: str) -> Callable[[str], list[str]]:
    """A completer that knows these words.

    >>> complete("us", "eu")("e")
    ['eu']
    """

    def matching(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return matching


def data_sets(incomplete: str) -> list[str]:
    """The data sets of the paper: each has a card. The shell itself completes names of files.

    >>> data_sets("g")
    ['german', 'gmsc']
    """
    cards = Path(__file__).parents[1] / "data" / "cards"
    return complete(*sorted(card.stem for card in cards.glob("*.toml")))(incomplete)


def predictors(incomplete: str) -> list[str]:
    """The predictors that have a name."""
    from edfa.predictors import PREDICTORS

    return complete(*PREDICTORS)(incomplete)


def policies(incomplete: str) -> list[str]:
    """The policies that have a name, but for ``fixed``, which needs an order that a name cannot
    give.
    """
    from edfa.acquisition import POLICIES

    return complete(*(name for name in POLICIES if name != "fixed"))(incomplete)


def searchers(incomplete: str) -> list[str]:
    """The searchers that have a name."""
    from edfa.recourse import SEARCHERS

    return complete(*SEARCHERS)(incomplete)
