"""Tensors in notebooks."""

from __future__ import annotations

from html import escape

from . import _repr
from ._chainrule import Tensor

MOST = 64


def _cell(share: float) -> str:
    """A colour from blue through white to red."""
    rest = round(255 * (1 - min(abs(share), 1.0)))
    return f"rgb(255,{rest},{rest})" if share >= 0 else f"rgb({rest},{rest},255)"


def heat_map(t: Tensor) -> str:
    """A small table of colours for a tensor of one or two axes, blue below 0 and red above; cut at
    64 rows and columns.
    """
    a = t.detach().double().numpy()
    if a.ndim not in (1, 2) or a.size == 0:
        return ""
    a = a.reshape(1, -1) if a.ndim == 1 else a
    a = a[:MOST, :MOST]
    top = float(abs(a[abs(a) < float("inf")]).max(initial=0.0)) or 1.0
    cells = "".join(
        "<tr>" + "".join(f'<td title="{v:.6g}" style="width:9px;height:9px;padding:0;background:{_cell(v / top)}"></td>' for v in row) + "</tr>"
        for row in a.tolist()
    )
    return f'<table style="border-collapse:collapse;margin:2px 0">{cells}</table>'


def html(t: Tensor) -> str:
    """Shape, dtype, place in the graph, values; and a heat map of the gradient, if there is one."""
    place = f"made by <b>{escape(t._op)}</b>" if t._op else "parameter" if t.requires_grad else "constant"
    name = f"<b>{escape(t.name)}</b> · " if t.name else ""
    shape = " × ".join(map(str, t.shape)) or "one element"
    head = f"<div>{name}{shape} · {t.dtype.name} · {place}</div>"
    values = f"<pre style='margin:2px 0'>{escape(_repr.text(t))}</pre>"
    grad = t.grad
    tail = "" if grad is None else f"<div>gradient, largest {float(grad.abs().max()):.4g}{heat_map(grad)}</div>" if grad.numel() else ""
    return head + values + tail
