"""Columns of numbers and codes as vectors that a network can learn from."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from edfa.typing import Float32Array

__all__ = ["Tokens", "find_knots", "one_thread", "place"]

MAX_LEVELS = 1000  # a column of at most so many whole numbers, seen often enough, has a knot for each of them
MIN_SEEN = 10  # how often such a number must be seen on average
KNOTS = 32  # of any other column


def find_knots(matrix: Float32Array) -> list[Float32Array]:
    """The knots of each column: all values where they are codes, seen often enough; else some of them."""
    knots: list[Float32Array] = []
    for column in matrix.T:
        known = column[~np.isnan(column)]
        found = np.unique(known)
        often = len(found) <= MAX_LEVELS and len(known) >= MIN_SEEN * len(found)
        if not (often and (found == np.round(found)).all()) and len(found) > KNOTS:
            # Half of them where the rows are, half where the values are: a column that is mostly zero has both.
            ranks = np.linspace(0, 1, KNOTS // 2)
            found = np.union1d(*(np.quantile(values, ranks, method="nearest") for values in (known, found)))
        knots.append(found.astype(np.float32))
    return knots


def place(rows: Float32Array, knots: Sequence[Float32Array]) -> Float32Array:
    """Where each value lies between the knots of its column; beyond them, at the last one; NaN at the first."""
    places = [np.interp(column, k, np.arange(len(k))) for column, k in zip(rows.T, knots, strict=True)]
    return np.nan_to_num(np.stack(places, axis=1).astype(np.float32), copy=False)


class Tokens(nn.Module):
    """Each known value as a vector: a column has a vector at each of its knots, and a straight line between them.

    Knots are all values of a column of few, quantiles of one of many. They start on a line, so that neighbours are
    alike until the data says otherwise; a code of a level has nothing between it and the next, and moves on its own.
    """

    def __init__(self, knots: list[int], width: int) -> None:
        super().__init__()
        self.register_buffer("first", torch.tensor([0, *np.cumsum(knots)[:-1].tolist()]), persistent=False)
        self.register_buffer("last", torch.tensor(knots) - 1, persistent=False)
        scale = width**-0.5
        rank = torch.cat([torch.linspace(-1.7, 1.7, size) if size > 1 else torch.zeros(1) for size in knots])
        column = torch.repeat_interleave(torch.arange(len(knots)), torch.tensor(knots))
        direction, bias = (torch.empty(len(knots), width).uniform_(-scale, scale) for _ in range(2))
        own = torch.empty(sum(knots), width).uniform_(-scale, scale) / 2
        self.vectors = nn.Parameter(rank[:, None] * direction[column] + bias[column] + own)

    def forward(self, places: Tensor, columns: Tensor) -> Tensor:
        """Places between knots (rows, k) of k columns to tokens (rows, k, width)."""
        first, last = self.get_buffer("first")[columns], self.get_buffer("last")[columns]
        below = places.long()
        share = (places - below)[..., None]
        low = torch.nn.functional.embedding(first + below, self.vectors)
        high = torch.nn.functional.embedding(first + torch.minimum(below + 1, last), self.vectors)
        return torch.lerp(low, high, share.to(low.dtype))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread a process: on shared cores, more of them wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
