"""MaskedMLP: the small neural model, better and cheaper than a transformer where rows are few."""

from dataclasses import dataclass

from edfa.extras import extra

with extra("neural", "MaskedMLP"):
    import torch
    from torch import Tensor, nn

from edfa.predictors.neural import Neural
from edfa.predictors.tokens import Tokens


class MaskedNet(nn.Module):
    """Two hidden layers over the tokens of what is known and the mask.

    Parameters
    ----------
    knots
        Number of knots of each column.
    outputs
        Number of outputs.
    width, token
        Length of the hidden layers and of the tokens.
    dropout
        The share of activations left out in training.
    """

    def __init__(
        self, knots: list[int], outputs: int, width: int, token: int = 8, dropout: float = 0.1
    ) -> None:
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

    def forward(self, positions: Tensor, columns: Tensor, mask: Tensor | None) -> Tensor:
        """Outputs (rows, outputs) from knot positions (rows, k) of the k ``columns``.

        ``mask`` (rows, k) says which of them are known; None: all. The layers see tokens of what is
        known, zeros elsewhere, and the mask itself.
        """
        features, token = self.shape
        known = torch.ones_like(positions) if mask is None else mask.to(positions.dtype)
        tokens = positions.new_zeros(len(positions), features, token)
        tokens[:, columns] = self.tokens(positions, columns) * known[..., None]
        full_mask = positions.new_zeros(len(positions), features)
        full_mask[:, columns] = known
        return torch.as_tensor(self.layers(torch.cat([tokens.flatten(1), full_mask], dim=1)))


@dataclass(kw_only=True, eq=False, repr=False)
class MaskedMLP(Neural):
    """A multilayer perceptron over tokens, trained on random masks.

    Parameters
    ----------
    width, token
        Length of the hidden layers and of the tokens. The other settings are those of ``Neural``.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> table = edfa.load("german")
    >>> model = MaskedMLP(epochs=5).fit(table.train.X, table.train.y)
    >>> model.predict_proba(np.full((1, 20), np.nan))
    array([[0.3, 0.7]])
    """

    width: int = 128
    token: int = 8
    epochs: int = 200
    patience: int = 12

    def _new_network(self, knots: list[int]) -> nn.Module:
        return MaskedNet(knots, len(self.classes_), self.width, self.token, self.dropout)
