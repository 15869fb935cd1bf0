"""What one person said where their encoded facts cannot express it: a number beyond all that
training people showed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from edfa.data.encode import Encoder, Flag
from edfa.data.values import as_number


class Given(NamedTuple):
    """A number that encoding cannot express, because it lies beyond all that training people
    showed.

    Parameters
    ----------
    position
        The position of the feature.
    code
        The code that stands for it in an encoded row: that of the nearest number that was seen.
    value
        The number as the person gave it.
    """

    position: int
    code: float
    value: float


def numbers_given(flags: Iterable[Flag], encoder: Encoder) -> tuple[Given, ...]:
    """The numbers that were moved to the edge of what was seen.

    Parameters
    ----------
    flags
        What encoding remarked about the facts of one person.
    encoder
        The encoder that made the flags.

    Returns
    -------
    One entry a number; words, and facts that were left out, have none.

    Examples
    --------
    >>> import edfa
    >>> encoder = edfa.load("german").encoder
    >>> numbers_given([Flag("age", "above", 80, 75)], encoder)[0].value
    80.0
    """
    moved = []
    for flag in flags:
        number = None if flag.kind == "left_out" else as_number(flag.told, flag.feature)
        if number is not None:
            code = float(encoder[flag.feature].encode_fact(flag.taken))
            moved.append(Given(encoder.names.index(flag.feature), code, float(number)))
    return tuple(moved)
