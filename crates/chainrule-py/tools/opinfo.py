"""A count of the ops of PyTorch's own test table that work here: values and first gradients of all
its sample
inputs.

    python tools/opinfo.py                  # all ops; a summary, and a line for each op that is not
    whole
    python tools/opinfo.py cat linalg.qr    # these ops, with each sample that differs
    python tools/opinfo.py --json FILE      # the outcomes as JSON

PyTorch is needed, so this is no test of the package. An op is *whole* where each sample of float64
and of
float32 gives PyTorch's values, shapes and dtypes, and PyTorch's gradients for random cotangents.
Ops with
several entries in the table count once, by their name. Ops of complex numbers, Fourier transforms
and sparse
tensors stand apart, as do those that have no public name or whose kernels are for graphics
processors.
"""

from __future__ import annotations

import json
import re
import sys
import types
import unittest
import warnings
from collections import Counter
from typing import Any

try:
    import expecttest  # noqa: F401
except ModuleNotFoundError:
    # PyTorch's table imports it for the base class of its own tests, of which none is run here.
    stand_in: Any = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase
    sys.modules["expecttest"] = stand_in

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import chainrule as cr

APART = re.compile(
    r"fft\.|sparse|stft|istft|complex|cdouble|cfloat|chalf|view_as_real|jiterator|_?scaled_mm|torch\.ops|torch\._"
    r"|linalg\.eig$|linalg\.eigvals$|^_|^polar$|^imag$|resolve_|^hash_tensor"
)
UNSET = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_", "resize_as_")
"""Ops whose elements do not matter: their shapes and dtypes are compared."""
DTYPES = {torch.float64: (1e-7, 1e-7), torch.float32: (2e-4, 2e-5)}
"""The dtypes, and how far values may be apart: relative and absolute."""


class Differs(Exception):
    """Something else than PyTorch's came out."""


def numbers(x: Any) -> Any:
    """A tensor of either library as an array; NumPy has no bfloat16."""
    x = x.float() if str(x.dtype).endswith("bfloat16") else x
    return x.numpy(force=True) if isinstance(x, torch.Tensor) else x.numpy()


def ours_of(x: Any, leaves: list[Any]) -> Any:
    """An argument of PyTorch as ours; tensors that need a gradient are added to the leaves."""
    if isinstance(x, torch.Tensor):
        t = cr.tensor(numbers(x.detach().contiguous()), dtype=getattr(cr, str(x.dtype)[6:]))
        if x.requires_grad:
            t.requires_grad_()
            leaves.append((x, t))
        return t
    if isinstance(x, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(cr, str(x)[6:])
    if isinstance(x, torch.device):
        return cr.device(str(x))
    if isinstance(x, torch.Size):
        return tuple(x)
    if callable(x) and (getattr(x, "__module__", None) or "").startswith("torch."):
        return getattr(cr.nn.functional, getattr(x, "__name__", ""), None) or getattr(cr.nn, type(x).__name__, lambda: rebuilt(x))()
    if isinstance(x, dict):
        return {k: ours_of(v, leaves) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        items = [ours_of(v, leaves) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def seeded(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A random op after the seed that PyTorch's table takes."""
    cr.manual_seed(42)
    return f(*args, **kwargs)


def rebuilt(f: Any) -> Any:
    """A function of the table with our package in the place of PyTorch."""
    if not isinstance(f, types.FunctionType):
        return f
    cells = tuple(types.CellType(rebuilt(c.cell_contents)) for c in f.__closure__ or ())
    put = {"torch": cr, "F": cr.nn.functional, "wrapper_set_seed": seeded}
    names = {**f.__globals__, **{k: v for k, v in put.items() if k in f.__globals__}}
    new = types.FunctionType(f.__code__, names, f.__name__, f.__defaults__, cells)
    new.__kwdefaults__ = f.__kwdefaults__
    return new


def found(op: Any) -> Any:
    """Our function of an op, or None."""
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing"):
        return rebuilt(op.op)
    for place in (cr, cr.Tensor):
        value: Any = place
        for part in op.name.split("."):
            value = getattr(value, part, None)
        if callable(value):
            return value
    return None


def tensors(x: Any) -> list[Any]:
    """The tensors and numbers of a result, in order."""
    if isinstance(x, (tuple, list)) and not type(x).__name__ == "Size":
        return [t for item in x for t in tensors(item)]
    return [] if x is None else [x]


def dtype_name(x: Any) -> str:
    name = str(x.dtype).split(".")[-1].strip("')>")
    return {"int32": "int64"}.get(name, name)


def compare(what: str, theirs: Any, ours: Any, tolerance: tuple[float, float], only_form: bool = False) -> None:
    """An error where a value is not PyTorch's."""
    if not isinstance(theirs, torch.Tensor):
        if not isinstance(theirs, (int, float, bool)) or isinstance(ours, cr.Tensor):
            if str(theirs).replace("torch.", "") != str(ours).replace("chainrule.", ""):
                raise Differs(f"{what}: {theirs!r} in PyTorch, {ours!r} here")
            return
        theirs, ours = torch.tensor(theirs), cr.tensor(ours)
    if not isinstance(ours, cr.Tensor):
        raise Differs(f"{what}: a tensor in PyTorch, {type(ours).__name__} here")
    if tuple(theirs.shape) != tuple(ours.shape):
        raise Differs(f"{what}: shape {tuple(theirs.shape)} in PyTorch, {tuple(ours.shape)} here")
    if dtype_name(theirs) != dtype_name(ours):
        raise Differs(f"{what}: {theirs.dtype} in PyTorch, {ours.dtype} here")
    if only_form:
        return
    a, b = numbers(theirs.detach().resolve_conj().clone()), numbers(ours.detach())
    relative, absolute = max(tolerance, DTYPES.get(theirs.dtype, tolerance))
    size = float(np.max(np.abs(a), where=np.isfinite(a), initial=1.0)) if a.dtype.kind == "f" else 1.0
    if not np.allclose(a, b, relative, absolute * size, equal_nan=True):
        far = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
        raise Differs(f"{what}: up to {np.nanmax(far):.3g} apart")


def compare_gradients(outs: Any, leaves: list[Any], tolerance: tuple[float, float]) -> None:
    pairs = [(t, o) for t, o in outs if isinstance(t, torch.Tensor) and t.requires_grad]
    if not pairs or not leaves:
        return
    cotangents = [torch.randn_like(t) for t, _ in pairs]
    theirs_in, ours_in = [t for t, _ in leaves], [o for _, o in leaves]
    wanted = torch.autograd.grad([t for t, _ in pairs], theirs_in, cotangents, allow_unused=True)
    live = [(o, cr.tensor(numbers(c), dtype=o.dtype)) for c, (_, o) in zip(cotangents, pairs) if o.requires_grad]
    given = cr.autograd.grad([o for o, _ in live], ours_in, [c for _, c in live], allow_unused=True) if live else [None] * len(ours_in)
    for i, (t, o) in enumerate(zip(wanted, given)):
        # A gradient that is not there and one of zeros say the same.
        if t is None or o is None:
            other = o if t is None else t
            if other is not None and bool((other != 0).any()):
                raise Differs(f"gradient {i}: {'none' if t is None else 'one'} in PyTorch, the reverse here")
            continue
        compare(f"gradient {i}", t, o, tolerance)


def run_sample(op: Any, f: Any, sample: Any, dtype: Any) -> None:
    """An error where a sample gives something else than in PyTorch."""
    tolerance = DTYPES[dtype]
    leaves: list[Any] = []
    args, kwargs = ours_of((sample.input, *sample.args), leaves), ours_of(sample.kwargs, leaves)
    torch.manual_seed(1)
    theirs = op.op(sample.input, *sample.args, **sample.kwargs)
    cr.manual_seed(1)
    ours = f(*args, **kwargs)
    theirs, ours = sample.output_process_fn_grad(theirs), rebuilt(sample.output_process_fn_grad)(ours)
    outs = tensors(theirs), tensors(ours)
    if len(outs[0]) != len(outs[1]):
        raise Differs(f"{len(outs[0])} results in PyTorch, {len(outs[1])} here")
    for i, (t, o) in enumerate(zip(*outs)):
        compare(f"result {i}", t, o, tolerance, op.name in UNSET)
    if op.supports_autograd and op.name not in UNSET:
        compare_gradients(list(zip(*outs)), leaves, tolerance)


def told(sample: Any) -> str:
    def short(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype)[6:]}{list(x.shape)}"
        if isinstance(x, (tuple, list)):
            return "(" + ", ".join(map(short, x)) + ")"
        return repr(x)

    given = [short(a) for a in (sample.input, *sample.args)]
    return ", ".join(given + [f"{k}={short(v)}" for k, v in sample.kwargs.items()])


def run_op(op: Any) -> tuple[int, list[tuple[str, str]]] | None:
    """The number of samples, and those that differ with the reason; None for an op that is
    missing.
    """
    f = found(op)
    if f is None:
        return None
    count, bad = 0, []
    for dtype in DTYPES:
        if dtype not in op.dtypes:
            continue
        for sample in op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd):
            count += 1
            try:
                run_sample(op, f, sample, dtype)
            except Exception as error:  # noqa: BLE001: any error is an outcome
                bad.append((told(sample), f"{type(error).__name__}: {error}".split("\n")[0]))
    return count, bad


def run_all(names: list[str]) -> dict[str, Any]:
    outcomes: dict[str, Any] = {}
    for op in op_db:
        if names and op.name not in names or not set(DTYPES) & set(op.dtypes):
            continue
        one = outcomes.setdefault(op.name, {"samples": 0, "bad": [], "missing": False})
        torch.manual_seed(0)
        outcome = run_op(op)
        if outcome is None:
            one["missing"] = True
        else:
            one["samples"] += outcome[0]
            one["bad"] += outcome[1]
    return outcomes


def kind(name: str, one: dict[str, Any]) -> str:
    missing = one["missing"] or one["bad"] and all("has no attribute" in why for _, why in one["bad"])
    return "missing" if missing else "in part" if one["bad"] else "whole"


def main(args: list[str]) -> None:
    path = args.pop(args.index("--json") + 1) if "--json" in args else None
    names = [a for a in args if a != "--json"]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    outcomes = run_all(names)
    counts: Counter[tuple[bool, str]] = Counter()
    for name, one in outcomes.items():
        what, apart = kind(name, one), bool(APART.search(name))
        counts[apart, what] += 1
        if what != "whole" and not apart:
            reasons = Counter(why for _, why in one["bad"])
            print(f"{what:8} {name:44} {len(one['bad'])}/{one['samples']} {reasons.most_common(1)[0] if reasons else ''}")
        for sample, why in one["bad"] if names else ():
            print(f"    {sample}\n        {why}")
    for apart in (False, True):
        line = ", ".join(f"{n} {what}" for (a, what), n in sorted(counts.items()) if a == apart)
        print(f"{'apart' if apart else 'counted'}: {sum(n for (a, _), n in counts.items() if a == apart)} ops: {line}")
    if path:
        with open(path, "w") as file:
            json.dump(outcomes, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
