"""FTTransformer: the paper's primary model, a transformer over feature tokens that leaves out what
is not known.

Gorishniy, Rubachev, Khrulkov, Babenko (2021), Revisiting deep learning models for tabular data.
"""

from dataclasses import dataclass
from typing import Literal

from edfa.extras import extra

with extra("neural", "FTTransformer"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import relu, scaled_dot_product_attention

from edfa.errors import check_known
from edfa.predictors.neural import Neural
from edfa.predictors.tokens import Tokens

Size = Literal["small", "base", "paper"]
SIZES: dict[str, tuple[int, int, int]] = {
    "small": (32, 2, 4),
    "base": (64, 2, 8),
    "paper": (192, 3, 8),
}


class _Block(nn.Module):
    """Attention, then a gated feed-forward layer, each on normalised input and added to it."""

    def __init__(self, width: int, heads: int, dropout: float, first: bool) -> None:
        super().__init__()
        inner = int(width * 4 / 3)
        self.heads = heads
        self.before = nn.Identity() if first else nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 2 * inner), nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, allowed: Tensor | None, summary_only: bool) -> Tensor:
        """Tokens (rows, tokens, width) to tokens, or with ``summary_only`` to the first one of each
        row alone.

        ``allowed`` (rows, 1, 1, tokens) says which keys may be attended to; None: all.
        """
        normalised = self.before(tokens)
        queries = normalised[:, :1] if summary_only else normalised
        inputs = ((self.query, queries), (self.key, normalised), (self.value, normalised))
        q, k, v = (self._split(layer(x)) for layer, x in inputs)
        attended = (
            scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(1, 2).flatten(2)
        )
        tokens = (tokens[:, :1] if summary_only else tokens) + self.dropout(self.out(attended))
        gate, value = self.wide(self.between(tokens)).chunk(2, dim=-1)
        return torch.as_tensor(tokens + self.dropout(self.narrow(relu(gate) * value)))

    def _split(self, x: Tensor) -> Tensor:
        """(rows, tokens, width) to (rows, heads, tokens, width of a head)."""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


class _Network(nn.Module):
    """Feature tokens and a summary token through blocks of attention; logits from the summary."""

    def __init__(
        self, knots: list[int], classes: int, size: tuple[int, int, int], dropout: float
    ) -> None:
        super().__init__()
        width, blocks, heads = size
        self.tokens = Tokens(knots, width)
        self.summary = nn.Parameter(torch.empty(1, 1, width).uniform_(-(width**-0.5), width**-0.5))
        self.blocks = nn.ModuleList(
            _Block(width, heads, dropout, first=i == 0) for i in range(blocks)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, positions: Tensor, columns: Tensor, mask: Tensor | None) -> Tensor:
        """Logits (rows, classes) from knot positions (rows, k) of the k ``columns``.

        ``mask`` (rows, k) says which of them are known; None: all. Nothing attends to what is not
        known.
        """
        tokens = torch.cat(
            [self.summary.expand(len(positions), -1, -1), self.tokens(positions, columns)], dim=1
        )
        allowed = None
        if mask is not None:
            always = torch.ones(len(mask), 1, dtype=torch.bool, device=mask.device)
            allowed = torch.cat([always, mask], dim=1)[:, None, None, :]
        for i, block in enumerate(self.blocks):
            tokens = block(tokens, allowed, i + 1 == len(self.blocks))
        return torch.as_tensor(self.head(relu(self.norm(tokens[:, 0]))))


@dataclass(eq=False, repr=False)
class FTTransformer(Neural):
    """A feature-token transformer, trained on random masks.

    Parameters
    ----------
    size
        ``"small"`` (width 32, 2 blocks: minutes on a CPU), ``"base"`` (64), ``"paper"`` (192, 3
        blocks: a GPU). The other settings are those of ``Neural``.

    Examples
    --------
    >>> import edfa, numpy as np
    >>> table = edfa.load("german")
    >>> model = FTTransformer(epochs=1).fit(table.train.X, table.train.y)
    >>> model.predict_proba(np.full((1, 20), np.nan))
    array([[0.3, 0.7]])
    """

    size: Size = "small"

    def _new_network(self, knots: list[int]) -> nn.Module:
        check_known("size", self.size, SIZES)
        return _Network(knots, len(self.classes_), SIZES[self.size], self.dropout)
