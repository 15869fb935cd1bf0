"""What one person said where their encoded facts cannot express it: a number beyond all that
training people showed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from edfa.data.encode import Encoder, Flag
from edfa.data.values import as_number

__all__ = ["Given", "numbers_given"]


class Given(NamedTuple):
    """The number ``value`` that a person gave for the feature at ``position``, which is encoded as
    ``code``.
    """

    position: int
    code: float
    value: float


def numbers_given(flags: Iterable[Flag], encoder: Encoder) -> tuple[Given, ...]:
    """The numbers that were moved to the edge of what was seen, of the flags of one person.

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
