"""What a shell offers for a half-typed name. Nothing heavy is imported: the shell waits at every
press of a key.
"""

from collections.abc import Callable
from pathlib import Path

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
