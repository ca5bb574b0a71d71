"""The curvature of a loss."""

from __future__ import annotations

import math
from typing import Any

from .autograd import grad

# Products with the Hessian in a search for its largest curvature.
_PRODUCTS = 4


def largest_curvature(loss: Any, parameters: list[Any], grad: Any = grad) -> float | None:
    """The largest curvature that a few powers of the Hessian find from the gradient on. `grad` is
    that of the library whose tensors these are.
    """
    slopes = grad(loss, parameters, create_graph=True, allow_unused=True)
    known = [(p, g) for p, g in zip(parameters, slopes) if g is not None]
    along = [g.detach() for _, g in known]
    largest: float | None = None
    for _ in range(_PRODUCTS):
        norm = math.sqrt(sum(float(v.square().sum().item()) for v in along))
        if not (0.0 < norm < math.inf):
            break
        along = [v / norm for v in along]
        total = sum((g * v).sum() for (_, g), v in zip(known, along))
        if not getattr(total, "requires_grad", False):
            break
        found = grad(total, [p for p, _ in known], retain_graph=True, allow_unused=True)
        products = [v * 0.0 if h is None else h.detach() for h, v in zip(found, along)]
        quotient = sum(float((h * v).sum().item()) for h, v in zip(products, along))
        if math.isfinite(quotient):
            largest = quotient if largest is None else max(largest, quotient)
        along = products
    return largest
