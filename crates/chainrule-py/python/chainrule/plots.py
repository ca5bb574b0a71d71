"""Pictures with matplotlib: `pip install chainrule[plots]`. Each function gives the axes that it
drew on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._chainrule import Tensor


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def loss_curve(losses: Sequence[float] | Tensor, *, window: int = 1, log: bool = False, ax: Any = None) -> Any:
    """The loss by step; the mean of each `window` steps."""
    ax = _axes(ax)
    values = losses.tolist() if isinstance(losses, Tensor) else [float(x) for x in losses]
    means = [sum(part) / len(part) for i in range(0, len(values), window) if (part := values[i : i + window])]
    ax.plot([i * window for i in range(len(means))], means)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    if log:
        ax.set_yscale("log")
    return ax


def curves(runs: Sequence[tuple[str, Sequence[float]]], *, ax: Any = None) -> Any:
    """The losses of several runs by step, each with its name."""
    ax = _axes(ax)
    for name, losses in runs:
        ax.plot(range(len(losses)), list(losses), label=name)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend()
    return ax


def histograms(tensors: Mapping[str, Tensor], *, bins: int = 50, gradients: bool = False, ax: Any = None) -> Any:
    """Histogram of the elements of tensors, or of their gradients."""
    ax = _axes(ax)
    for name, t in tensors.items():
        shown = t.grad if gradients else t.detach()
        if shown is None:
            raise ValueError(f"histograms: '{name}' has no gradient")
        counts, edges = shown.detach().flatten()._histogram(bins, None)
        middle = (edges[:-1] + edges[1:]) / 2
        x = shown
        ax.plot(middle.tolist(), counts.tolist(), label=f"{name} (mean {float(x.mean()):.2g}, std {float(x.std()):.2g})")
    ax.legend()
    return ax


def heat_map(t: Tensor, *, gradient: bool = False, ax: Any = None) -> Any:
    """A matrix, or its gradient, as colours: blue below 0, red above."""
    ax = _axes(ax)
    shown = t.grad if gradient else t.detach()
    if shown is None:
        raise ValueError("heat_map: the tensor has no gradient")
    a = shown.detach().double().numpy()
    if a.ndim != 2:
        raise ValueError(f"heat_map: shape {tuple(a.shape)}: a matrix is needed")
    top = float(abs(a).max()) if a.size else 1.0
    ax.figure.colorbar(ax.imshow(a, cmap="bwr", vmin=-top, vmax=top, aspect="auto"), ax=ax)
    return ax


def graph(loss: Tensor, path: str | None = None) -> str:
    """The graph of the ops that made `loss` as the text of an SVG picture, written to a file if
    wanted.
    """
    svg = loss.graph_svg()
    if path is not None:
        with open(path, "w", encoding="utf-8") as f:
            f.write(svg)
    return svg
