"""Correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _making as _m
from .. import special
from .._chainrule import Tensor
from ..autograd import no_grad
from .distribution import Distribution, eps_of, together
from .gamma import Beta, lgamma


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices, whose density is in proportion to
    `det(L L^T)^(concentration - 1)` among correlation matrices: with concentration 1 all are alike,
    and a larger one draws them to the identity.

    The shape of a draw is `(*sample_shape, *concentration.shape, dim, dim)`, its dtype that of the
    concentration.

    ```
    d = cr.distributions.LKJCholesky(3, 0.5)
    L = d.sample()
    assert L.shape == (3, 3) and (L @ L.T).diagonal().allclose(cr.ones(3))
    ```
    """

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be 2 or more, it is {dim}")
        self.dim = dim
        (self.concentration,) = together(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)
        self._require(self.concentration > 0, "concentration must be above 0")
        # The squared length of row i is drawn from a beta law, its direction from the sphere.
        before = _m.arange(dim, dtype=self.concentration.dtype).sub(1).clamp(min=0)
        above = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before
        self._lengths = Beta(before + 0.5, above, validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        with no_grad():
            lengths = self._lengths.sample(sample_shape).unsqueeze(-1)
            normal = _m.randn(shape, dtype=self.concentration.dtype).tril(-1)
            # The first row has no elements left of the diagonal, and no direction.
            long = normal.norm(dim=-1, keepdim=True)
            rows = lengths.sqrt() * (normal / long.where(long > 0, 1.0))
            rest = (1 - rows.square().sum(-1)).clamp(min=eps_of(rows.dtype)).sqrt()
            return rows + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        n, k = self.dim, self.concentration
        powers = 2 * (k - 1).unsqueeze(-1) + n - _m.arange(2, n + 1, dtype=k.dtype)
        density = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        half = k + 0.5 * (n - 1)
        whole = 0.5 * (n - 1) * math.log(math.pi) + special.multigammaln(half - 0.5, n - 1) - (n - 1) * lgamma(half)
        return density - whole

    def _text(self) -> dict[str, Any]:
        return {"dim": self.dim, "concentration": self.concentration}
