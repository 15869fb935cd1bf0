"""MaskedMLP: the small neural model, better and cheaper than a transformer where rows are few."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from edfa.predictors.neural import Neural
from edfa.predictors.tokens import Tokens

__all__ = ["MaskedMLP", "MaskedNet"]


class MaskedNet(nn.Module):
    """Two layers over the tokens of what is known and the mask."""

    def __init__(self, knots: list[int], outputs: int, width: int, token: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        self.tokens = Tokens(knots, token)
        self.shape = (len(knots), token)
        self.layers = nn.Sequential(
            nn.Linear(len(knots) * (token + 1), width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, outputs),
        )

    def forward(self, places: Tensor, columns: Tensor, mask: Tensor | None) -> Tensor:
        """Tokens of what is known in their places, zeros elsewhere, and the mask itself."""
        features, token = self.shape
        known = torch.ones_like(places) if mask is None else mask.to(places.dtype)
        full = places.new_zeros(len(places), features, token)
        full[:, columns] = self.tokens(places, columns) * known[..., None]
        seen = places.new_zeros(len(places), features)
        seen[:, columns] = known
        return torch.as_tensor(self.layers(torch.cat([full.flatten(1), seen], dim=1)))


class MaskedMLP(Neural):
    """A multilayer perceptron over tokens, trained on random masks.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> table = edfa.load("german")
    >>> model = MaskedMLP(epochs=5).fit(table.train.X, table.train.y)
    >>> model.predict_proba(np.full((1, 20), np.nan))
    array([[0.3, 0.7]])
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        width: int = 128,
        token: int = 8,
        dropout: float = 0.1,
        epochs: int = 200,
        batch: int = 256,
        rate: float = 1e-3,
        patience: int = 12,
        start: tuple[int, ...] = (),
        balanced: bool = False,
        calibrate: bool = False,
        threshold: float | None = None,
        device: str = "auto",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.seed = seed
        self.width = width
        self.token = token
        self.dropout = dropout
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.patience = patience
        self.start = start
        self.balanced = balanced
        self.calibrate = calibrate
        self.threshold = threshold
        self.device = device
        self.progress = progress

    def _network(self, knots: list[int], classes: int) -> nn.Module:
        return MaskedNet(knots, classes, self.width, self.token, self.dropout)
