"""The softmax of many classes that are not equally frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from . import functional as F
from .container_layers import ModuleList, Sequential
from .layers import Linear
from .module import Module


class _AdaptiveOutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax of many classes, sorted by how often they occur, in clusters: a head chooses one of
    the first `cutoffs[0]` classes or a cluster of rarer ones, and a tail of smaller width the class
    in there.

    `log p(class) = head[class]` of the frequent ones, else
    `head[cluster] + log_softmax(tail(x))[class]`. The tail of cluster i has
    `in_features // div_value^(i + 1)` features. An input is `(n, in_features)` with `n` classes as
    its target, or `(in_features,)` with one. A call gives `output`, the logarithm of the
    probability of each target, and `loss`, the negative of their mean.

    ```
    layer = cr.nn.AdaptiveLogSoftmaxWithLoss(8, 100, [10, 40], div_value=2.0)
    x, y = cr.randn(5, 8), cr.tensor([0, 9, 12, 99, 50])
    output, loss = layer(x, y)
    assert output.allclose(layer.log_prob(x)[range(5), y], atol=1e-5)
    ```
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        rising = all(a < b for a, b in zip(cutoffs, cutoffs[1:]))
        if not cutoffs or not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ArgumentError(f"AdaptiveLogSoftmaxWithLoss: cutoffs rise from 1 or more to {n_classes - 1} or less, without repeats; they are {cutoffs}")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, self.cutoffs[i + 1] - self.cutoffs[i], bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """`output` and `loss`."""
        is_batched = input.ndim == 2
        if input.ndim != target.ndim + 1 or input.ndim not in (1, 2) or input.shape[:-1] != target.shape:
            raise ArgumentError(
                f"AdaptiveLogSoftmaxWithLoss: shapes {tuple(input.shape)} and {tuple(target.shape)}: an input (n, {self.in_features}) has a target (n,), and "
                f"({self.in_features},) has ()"
            )
        x, y = (input, target) if is_batched else (input.unsqueeze(0), target.unsqueeze(0))
        traced = _c._session_on()
        if not traced and y.numel() and not 0 <= int(y.min()) <= int(y.max()) < self.n_classes:
            raise ArgumentError(f"AdaptiveLogSoftmaxWithLoss: targets are from 0 to {self.n_classes - 1}; they are from {int(y.min())} to {int(y.max())}")
        head = self.head(x).log_softmax(1)
        output = head.gather(1, y.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            mask = (y >= low).logical_and(y < high)
            # A program does not know how many rows there are, and takes all.
            rows = _m.arange(y.shape[0]) if traced else mask.nonzero().squeeze(1)
            if not rows.numel():
                continue
            place = (y[rows] - low).clamp(0, high - low - 1).unsqueeze(1)
            found = head[rows, self.shortlist_size + i] + tail(x[rows]).log_softmax(1).gather(1, place).squeeze(1)
            output = found.where(mask, output) if traced else output.index_copy(0, rows, found)
        output = output if is_batched else output.squeeze(0)
        return _AdaptiveOutput(output, (-output).mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, `(n, n_classes)`."""
        head = self.head(input).log_softmax(1)
        parts = [head[:, : self.shortlist_size]]
        parts += [head[:, self.shortlist_size + i, None] + tail(input).log_softmax(1) for i, tail in enumerate(self.tail)]
        return _f.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, n_classes={self.n_classes}, cutoffs={self.cutoffs[:-1]}, div_value={self.div_value}"


class _FractionalMaxPool(Module):
    function: Any

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(f"{type(self).__name__}: give output_size or output_ratio, one of them")
        if output_ratio is not None:
            ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,)
            if not all(0 < ratio < 1 for ratio in ratios):
                raise ArgumentError(f"{type(self).__name__}: output_ratio must be between 0 and 1, it is {output_ratio}")
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """The largest elements, and with `return_indices` their positions."""
        return type(self).function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, output_size={self.output_size}, output_ratio={self.output_ratio}"


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at random distances, `output_size` of them or `output_ratio`
    of the input.

    ```
    pool = cr.nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.75))
    assert pool(cr.randn(1, 3, 8, 8)).shape == (1, 3, 4, 6)
    ```
    """

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """As `FractionalMaxPool2d` over three axes."""

    function = staticmethod(F.fractional_max_pool3d)


__all__ = ["AdaptiveLogSoftmaxWithLoss", "FractionalMaxPool2d", "FractionalMaxPool3d"]
