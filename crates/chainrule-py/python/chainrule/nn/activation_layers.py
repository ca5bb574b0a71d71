"""Layers of activations."""

from __future__ import annotations

from .._chainrule import Tensor
from . import functional as F
from .module import Module


class _Options(Module):
    """A layer whose options are its attributes."""

    def extra_repr(self) -> str:
        kept = {k: v for k, v in vars(self).items() if k[0] != "_" and k != "training"}
        return ", ".join(f"{k}={v!r}" for k, v in kept.items() if k != "inplace" or v)


class ReLU(_Options):
    """`max(x, 0)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.relu(input, self.inplace)


class ReLU6(_Options):
    """`min(max(x, 0), 6)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.relu6(input, self.inplace)


class LeakyReLU(_Options):
    """`x` above 0, `negative_slope * x` below."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Options):
    """`x` above 0, `alpha (exp(x) - 1)` below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Options):
    """`x` above 0, `alpha (exp(x / alpha) - 1)` below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(_Options):
    """`scale * elu(x, alpha)`, with the numbers that keep mean 0 and variance 1 through layers."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.selu(input, self.inplace)


class GELU(_Options):
    """`x` times the normal distribution's probability below `x`; `approximate='tanh'` takes
    the formula with tanh.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.gelu(input, self.approximate)


class SiLU(_Options):
    """`x * sigmoid(x)`, also known as swish."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.silu(input, self.inplace)


class Mish(_Options):
    """`x * tanh(softplus(x))`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.mish(input, self.inplace)


class Softplus(_Options):
    """`log(1 + exp(beta x)) / beta`; `x` where `beta x` is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.softplus(input, self.beta, self.threshold)


class Softsign(_Options):
    """`x / (1 + |x|)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.softsign(input)


class Hardtanh(_Options):
    """`x` within two bounds, the bound beyond."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Hardsigmoid(_Options):
    """`min(max(x / 6 + 1/2, 0), 1)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_Options):
    """`x * hardsigmoid(x)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.hardswish(input, self.inplace)


class Sigmoid(_Options):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.sigmoid(input)


class Tanh(_Options):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.tanh(input)


class LogSigmoid(_Options):
    """`log(sigmoid(x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.logsigmoid(input)


class Softmax(_Options):
    """`exp(x)` divided by its sum along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.softmax(input, self.dim)


class LogSoftmax(_Options):
    """The logarithm of `softmax` along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.log_softmax(input, self.dim)


class Softmin(_Options):
    """`softmax(-x)` along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.softmin(input, self.dim)


class GLU(_Options):
    """The first half of an axis times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.glu(input, self.dim)


class Threshold(_Options):
    """`x` above the threshold, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Hardshrink(_Options):
    """`x` beyond `lambd` on either side, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Options):
    """`x` moved towards 0 by `lambd`, and 0 within it."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.softshrink(input, self.lambd)


class Tanhshrink(_Options):
    """`x - tanh(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.tanhshrink(input)


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]
