"""A network that tells, for every feature at once, in which of its bins an unknown value is likely
to lie.

``Bins.of`` trains one on encoded rows, and ``Bins.given`` asks it. It is equal in quality to
``Neighbours`` and faster where all features are scored; it costs one small training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.extras import extra

with extra("neural", "Bins"):
    import torch
    from torch import Tensor, nn

from edfa.errors import DataError
from edfa.predictors.bn import bin_codes, typical_values
from edfa.predictors.conditional import Draw
from edfa.predictors.neural import dense, descend, weights_of
from edfa.predictors.tokens import one_thread, seeded
from edfa.typing import Float32Array, Float64Array, Int64Array

MAX_BINS = 16  # a column with more values than this is cut into this many bins
WIDTH = 192  # of the hidden layers
BATCH = 256  # rows in a step of training


@dataclass(frozen=True, eq=False)
class Bins:
    """P(X_i | x_A) in bins, for any set of known features.

    Parameters
    ----------
    cuts
        For each column, the values at which the second and later bins begin.
    typical
        For each column, the median of each bin, which stands for it.
    network
        From the bins of known values, one-hot, to logits of all bins of all columns.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> first = random.integers(0, 2, 2000)
    >>> rows = np.column_stack([first, np.where(random.random(2000) < 0.9, first,
    ...     1 - first)]).astype(np.float32)
    >>> draw = Bins.of(rows).given(np.array([[1, np.nan]], dtype=np.float32))
    >>> values, weights = draw(1)
    >>> values[0], weights[0].round(1)
    (array([0., 1.], dtype=float32), array([0.1, 0.9]))
    """

    cuts: tuple[Float32Array, ...]
    typical: tuple[Float32Array, ...]
    network: nn.Module

    def __post_init__(self) -> None:
        if any(
            len(c) != len(t) - 1 or (np.diff(c) <= 0).any()
            for c, t in zip(self.cuts, self.typical, strict=True)
        ):
            raise DataError(
                "each bin has a typical value, and between two bins is a cut, in ascending order"
            )

    def learnt_state(self) -> dict[str, Any]:
        """What decides its draws, for fingerprints."""
        weights = weights_of(self.network)
        return {"cuts": list(self.cuts), "typical": list(self.typical), "weights": weights}

    @classmethod
    def of(
        cls,
        rows: Float32Array,
        *,
        seed: int = 0,
        epochs: int = 30,
    ) -> "Bins":
        """Learn from training rows, under masks with a uniform number of known features.

        Parameters
        ----------
        rows
            Complete encoded training people, (rows, features).
        seed
            Decides the first weights, the order of rows and the masks.
        epochs
            Number of passes over the rows.

        Raises
        ------
        DataError
            If there are no rows, or a value in them is not known.
        """
        if not len(rows) or np.isnan(rows).any():
            raise DataError(
                "bins are learnt from complete training rows; there must be some, without NaN"
            )
        columns = np.asarray(rows, dtype=np.float32).T
        cuts, typical = zip(*map(_bins, columns), strict=True)
        with seeded(seed):
            bins = cls(cuts, typical, bin_network(typical))
            bins._learn(bins.codes(rows), epochs)
        return bins

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """What unknown features may be, given what is known of each person.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        A function from the position of a feature to the medians of its bins and the probabilities
        of the bins, both (people, bins). The network is asked once for all features.
        """
        known = ~np.isnan(X)
        with one_thread(), torch.no_grad():
            logits = self.network(
                self.one_hot(torch.from_numpy(self.codes(X)), torch.from_numpy(known))
            )
            parts = [
                part.double().softmax(dim=1).numpy()
                for part in torch.split(logits, self._sizes, dim=1)
            ]

        def draw(feature: int) -> tuple[Float32Array, Float64Array]:
            return np.tile(self.typical[feature], (len(X), 1)), parts[feature]

        return draw

    @property
    def _sizes(self) -> list[int]:
        return [len(t) for t in self.typical]

    def codes(self, rows: Float32Array) -> Int64Array:
        """The bins of values.

        Parameters
        ----------
        rows
            Encoded people, (rows, features).

        Returns
        -------
        The position of the bin of each value in its column, (rows, features); that of NaN has no
        meaning.
        """
        return bin_codes(rows, self.cuts)

    def one_hot(self, codes: Tensor, known: Tensor) -> Tensor:
        """The input of the network.

        Parameters
        ----------
        codes
            The bin of each value, (rows, features).
        known
            Which values are known, (rows, features).

        Returns
        -------
        One column for each bin of each feature, (rows, all bins): 1 where a known value lies in it,
        else 0.
        """
        sizes = torch.tensor(self._sizes, device=codes.device)
        columns = torch.minimum(codes, sizes - 1) + torch.cumsum(sizes, 0) - sizes
        encoded = torch.zeros(len(codes), sum(self._sizes), device=codes.device)
        return encoded.scatter_(1, columns, known.float())

    def _learn(self, codes: Int64Array, epochs: int) -> None:
        """Train the network to tell the bins of hidden values from those of known ones; ``codes``
        (rows, features) are the bins of the training rows.
        """
        rows, sizes = torch.from_numpy(codes), self._sizes
        optimiser = torch.optim.Adam(self.network.parameters(), lr=2e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
        for _ in range(epochs):
            for batch in torch.split(rows[torch.randperm(len(rows))], BATCH):
                known = torch.rand(batch.shape) >= torch.rand(len(batch), 1)
                logits = torch.split(self.network(self.one_hot(batch, known)), sizes, dim=1)
                losses = [
                    nn.functional.cross_entropy(p, t, reduction="none")
                    for p, t in zip(logits, batch.T, strict=True)
                ]
                hidden = (~known).float()
                loss = (torch.stack(losses, dim=1) * hidden).sum() / hidden.sum().clamp(min=1)
                descend(optimiser, loss)
            schedule.step()


def bin_network(typical: Sequence[Float32Array]) -> nn.Sequential:
    """A network with fresh weights from and to the bins of all columns; ``typical`` has one value
    for each bin.
    """
    width = sum(len(t) for t in typical)
    return dense(width, WIDTH, WIDTH, width)


def _bins(column: Float32Array) -> tuple[Float32Array, Float32Array]:
    """The cuts between the bins of a column (rows,), and the median of each bin."""
    values = np.unique(column)
    if len(values) > MAX_BINS:
        values = np.unique(np.quantile(column, np.arange(MAX_BINS) / MAX_BINS, method="lower"))
    cuts = values[1:].astype(np.float32)
    return cuts, typical_values(column, cuts)
