"""Columns of numbers and codes as vectors that a network can learn from.

The modules that need this one have imported torch under ``extra`` before.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from edfa.typing import Float32Array

# a column of at most this many whole numbers, seen often enough, has a knot at each of them
MAX_LEVELS = 1000
MIN_SEEN = 10  # how often such a number must be seen on average
KNOTS = 32  # number of knots of any other column


def find_knots(matrix: Float32Array) -> list[Float32Array]:
    """The knots of each column of ``matrix`` (rows, columns), ascending: all its values if they are
    frequent codes.

    Otherwise at most 32 of its values.
    """
    knots: list[Float32Array] = []
    for column in matrix.T:
        known = column[~np.isnan(column)]
        values = np.unique(known)
        frequent = len(values) <= MAX_LEVELS and len(known) >= MIN_SEEN * len(values)
        if not (frequent and (values == np.round(values)).all()) and len(values) > KNOTS:
            # Half of them where the rows are, half where the values are: a column that is mostly
            # zero has both.
            ranks = np.linspace(0, 1, KNOTS // 2)
            values = np.union1d(
                *(np.quantile(of, ranks, method="nearest") for of in (known, values))
            )
        knots.append(values.astype(np.float32))
    return knots


def knot_positions(rows: Float32Array, knots: Sequence[Float32Array]) -> Float32Array:
    """The position of each value of ``rows`` (rows, columns) among the knots of its column.

    1.5 is halfway from the second knot to the third. Values beyond the knots are at the first or
    last one, NaN is at the first.

    >>> knot_positions(np.array([[2.5], [9.0]], dtype=np.float32), [np.array([0, 1, 4],
    ...     dtype=np.float32)])
    array([[1.5],
           [2. ]], dtype=float32)
    """
    positions = [
        np.interp(column, k, np.arange(len(k))) for column, k in zip(rows.T, knots, strict=True)
    ]
    return np.nan_to_num(np.stack(positions, axis=1).astype(np.float32), copy=False)


class Tokens(nn.Module):
    """Each known value as a vector: a column has a vector at each of its knots, and a straight line
    between them.

    Knots are all values of a column of few, quantiles of one of many. They start on a line, so that
    neighbours are alike until the data says otherwise; a code of a level has nothing between it and
    the next, and moves on its own.

    Parameters
    ----------
    knots
        Number of knots of each column.
    width
        Length of the vectors.
    """

    def __init__(self, knots: list[int], width: int) -> None:
        super().__init__()
        self.register_buffer(
            "first", torch.tensor([0, *np.cumsum(knots)[:-1].tolist()]), persistent=False
        )
        self.register_buffer("last", torch.tensor(knots) - 1, persistent=False)
        scale = width**-0.5
        rank = torch.cat(
            [torch.linspace(-1.7, 1.7, size) if size > 1 else torch.zeros(1) for size in knots]
        )
        column = torch.tensor(np.repeat(np.arange(len(knots)), knots))
        direction, bias = (torch.empty(len(knots), width).uniform_(-scale, scale) for _ in range(2))
        own = torch.empty(sum(knots), width).uniform_(-scale, scale) / 2
        self.vectors = nn.Parameter(rank[:, None] * direction[column] + bias[column] + own)

    def forward(self, positions: Tensor, columns: Tensor) -> Tensor:
        """Tokens (rows, k, width) of knot positions (rows, k); ``columns`` (k,) says of which
        columns they are.
        """
        first, last = self.get_buffer("first")[columns], self.get_buffer("last")[columns]
        below = positions.long()
        share = (positions - below)[..., None]
        low = torch.nn.functional.embedding(first + below, self.vectors)
        high = torch.nn.functional.embedding(first + torch.minimum(below + 1, last), self.vectors)
        return torch.lerp(low, high, share.to(low.dtype))


def answer(network: nn.Module, positions: Tensor, mask: Tensor) -> Tensor:
    """Ask a network over tokens.

    Parameters
    ----------
    network
        Takes knot positions, the columns they are of, and a mask.
    positions, mask
        The knot positions of all features, and which of them are known, both (rows, features).

    Returns
    -------
    torch.Tensor
        (rows, outputs)
    """
    columns = torch.arange(positions.shape[1], device=positions.device)
    return torch.as_tensor(network(positions, columns, mask))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread in the block: on shared cores, more of them wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch use one thread, and random numbers that begin with ``seed``, in the block.

    Afterwards its random numbers go on where they were before, on every device.
    """
    with one_thread(), torch.random.fork_rng(range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
