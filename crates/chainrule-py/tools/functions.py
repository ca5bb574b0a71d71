"""Writes the modules of `python/chainrule/_functions_of_one/`: the functions whose first argument is a tensor and that have a method of the same name.

Each line of the table is a signature without its first argument. The text of a function comes from the table of ops of the library.

    python tools/functions.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from chainrule import _chainrule

T = "Tensor"
PLAIN = """
abs acos acosh asin asinh atan atanh ceil cos cosh det erf erfc erfinv exp exp2 expm1 floor frac inverse isfinite isinf isnan log log10
log1p log2 logical_not bitwise_not neg reciprocal relu rsqrt selu sigmoid sign sin sinh sqrt square t tan tanh trace trunc cholesky
""".split()
TWO = """
atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq floor_divide fmod ge gt hypot le
logaddexp logical_and logical_or logical_xor lt matmul maximum minimum mul ne remainder
""".split()
REDUCE = "dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False"
ONE_AXIS = "dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False"
ELEMENTWISE = [f"{n}() -> Tensor" for n in PLAIN]
ARITHMETIC = [
    *(f"{n}(other: TensorLike) -> Tensor" for n in TWO),
    "add(other: TensorLike, *, alpha: Number = 1) -> Tensor",
    "sub(other: TensorLike, *, alpha: Number = 1) -> Tensor",
    "div(other: TensorLike, *, rounding_mode: str | None = None) -> Tensor",
    "pow(exponent: TensorLike) -> Tensor",
    "clamp(min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor",
    "clamp_min(min: TensorLike) -> Tensor",
    "clamp_max(max: TensorLike) -> Tensor",
    "round(*, decimals: int = 0) -> Tensor",
    "nan_to_num(nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor",
    "lerp(end: Tensor, weight: TensorLike) -> Tensor",
    "isclose(other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor",
    "allclose(other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool",
]
REDUCTIONS = [
    f"sum({REDUCE}, dtype: dtype | None = None) -> Tensor",
    f"mean({REDUCE}, dtype: dtype | None = None) -> Tensor",
    f"prod({REDUCE}, dtype: dtype | None = None) -> Tensor",
    *(f"{n}({REDUCE}) -> Tensor" for n in ("amax", "amin", "any", "all", "logsumexp")),
    f"argmax({ONE_AXIS}) -> Tensor",
    f"argmin({ONE_AXIS}) -> Tensor",
    f"max({ONE_AXIS.replace('int | None = None, k', 'Any = None, k', 1)}) -> Any",
    f"min({ONE_AXIS.replace('int | None = None, k', 'Any = None, k', 1)}) -> Any",
    *(
        f"{n}(dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor"
        for n in ("var", "std")
    ),
    "median(dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Any",
    "norm(p: float | str = 2.0, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None) -> Tensor",
    "count_nonzero(dim: Axes = None, *, axis: Axes = None) -> Tensor",
    "cumsum(dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor",
    "cumprod(dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor",
    "logcumsumexp(dim: int) -> Tensor",
    "cummax(dim: int) -> ValuesIndices",
    "cummin(dim: int) -> ValuesIndices",
    "sort(dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices",
    "argsort(dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor",
    "topk(k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices",
    "unique(sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any",
    "bincount(weights: Tensor | None = None, minlength: int = 0) -> Tensor",
    "nonzero(*, as_tuple: bool = False) -> Any",
    "softmax(dim: int, dtype: dtype | None = None) -> Tensor",
    "log_softmax(dim: int, dtype: dtype | None = None) -> Tensor",
]
SHAPES = [
    "reshape(shape: Shape) -> Tensor",
    "permute(dims: Sequence[int]) -> Tensor",
    "transpose(dim0: int, dim1: int) -> Tensor",
    "squeeze(dim: Axes = None) -> Tensor",
    "unsqueeze(dim: int) -> Tensor",
    "flatten(start_dim: int = 0, end_dim: int = -1) -> Tensor",
    "unflatten(dim: int, sizes: Sequence[int]) -> Tensor",
    "narrow(dim: int, start: int, length: int) -> Tensor",
    "split(split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]",
    "chunk(chunks: int, dim: int = 0) -> tuple[Tensor, ...]",
    "unbind(dim: int = 0) -> tuple[Tensor, ...]",
    "select(dim: int, index: int) -> Tensor",
    "movedim(source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor",
    "roll(shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor",
    "flip(dims: Sequence[int]) -> Tensor",
    "tile(dims: Sequence[int]) -> Tensor",
    "repeat_interleave(repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor",
    "diagonal(offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
    "diag(diagonal: int = 0) -> Tensor",
    "diag_embed(offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
    "tril(diagonal: int = 0) -> Tensor",
    "triu(diagonal: int = 0) -> Tensor",
]
INDEXING_AND_PRODUCTS = [
    "gather(dim: int, index: Tensor) -> Tensor",
    "index_select(dim: int, index: Tensor) -> Tensor",
    "take(index: Tensor) -> Tensor",
    "take_along_dim(indices: Tensor, dim: int | None = None) -> Tensor",
    "scatter(dim: int, index: Tensor, src: TensorLike) -> Tensor",
    "scatter_add(dim: int, index: Tensor, src: Tensor) -> Tensor",
    "index_add(dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor",
    "index_copy(dim: int, index: Tensor, source: Tensor) -> Tensor",
    "index_fill(dim: int, index: Tensor, value: TensorLike) -> Tensor",
    "masked_fill(mask: Tensor, value: TensorLike) -> Tensor",
    "masked_select(mask: Tensor) -> Tensor",
    "outer(vec2: Tensor) -> Tensor",
    "dot(tensor: Tensor) -> Tensor",
    "mv(vec: Tensor) -> Tensor",
    "kron(other: Tensor) -> Tensor",
    "addmm(mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor",
    "addcmul(tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor",
    "addcdiv(tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor",
    "multinomial(num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor",
]
GROUPS = {
    "elementwise": ELEMENTWISE, "arithmetic": ARITHMETIC, "reductions": REDUCTIONS, "shapes": SHAPES,
    "indexing_and_products": INDEXING_AND_PRODUCTS,
}
OTHER_NAMES = {
    "absolute": "abs", "negative": "neg", "multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub", "clip": "clamp",
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2",
    "fix": "trunc", "mm": "matmul", "bmm": "matmul", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne", "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "ravel": "flatten", "ger": "outer",
}
HEAD = '''"""Functions whose first argument is a tensor: {}. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._chainrule import Generator, Tensor, dtype
from .._methods import ValuesIndices
from .._types import Axes, Number, Shape, TensorLike, as_tensor as _t

'''


def doc(name: str, table: dict[str, tuple[str, str, str]]) -> str:
    if name not in table:
        return f"`input.{name}`, as in PyTorch."
    formula, gradient, kinks = table[name]
    lines = [formula.rstrip(".") + "."]
    if gradient:
        lines += ["", f"Gradient: {gradient}"]
    if kinks:
        lines += ["", f"At kinks: {kinks}"]
    return "\n    ".join(lines).replace("\n    \n", "\n\n").replace("\\", "\\\\") + ("\n    " if len(lines) > 1 else "")


def split_arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[(") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def function(row: str, table: dict[str, tuple[str, str, str]]) -> tuple[str, str]:
    """The name and the text of one function."""
    name, arguments, result = re.fullmatch(r"(\w+)\((.*)\) -> (.*)", row).groups()  # type: ignore[union-attr]
    call, keyword = [], False
    for a in split_arguments(arguments):
        if a == "*":
            keyword = True
            continue
        a = a.split(":")[0]
        call.append(f"{a}={a}" if keyword else a)
    head = f"input: TensorLike{', ' if arguments else ''}{arguments}"
    first = "_t(input, other)" if name in TWO else "_t(input)"
    return name, f'\n\ndef {name}({head}) -> {result}:\n    """{doc(name, table)}"""\n    return {first}.{name}({", ".join(call)})\n'


def used(head: str, body: str) -> str:
    """The head with those imports only that the body needs."""
    lines = []
    for line in head.splitlines():
        if found := re.fullmatch(r"(from \S+ import )(.*)", line):
            names = [n for n in found[2].split(", ") if n == "annotations" or re.search(rf"\b{n.split(' as ')[-1]}\b", body)]
            line = found[1] + ", ".join(names)
            if not names:
                continue
        lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).rstrip()) + "\n"


def wrapped(names: list[str]) -> str:
    """Names as lines of a list."""
    return "\n".join(textwrap.wrap(", ".join(sorted(names)) + ",", 140, initial_indent="    ", subsequent_indent="    ")) + "\n"


def main() -> None:
    table = {n: (f, g, k) for n, _, f, g, k in _chainrule.op_table()}
    folder = Path(__file__).parent.parent / "python" / "chainrule" / "_functions_of_one"
    folder.mkdir(exist_ok=True)
    init = ['"""Functions whose first argument is a tensor. Written by `tools/functions.py`: change that."""\n\n']
    every = []
    for group, rows in GROUPS.items():
        made = dict(function(row, table) for row in rows)
        others = {a: b for a, b in OTHER_NAMES.items() if b in made}
        body = "".join(made.values()) + "\n\n" * bool(others) + "".join(f"{a} = {b}\n" for a, b in others.items())
        names = [*made, *others]
        (folder / f"{group}.py").write_text(used(HEAD.format(group.replace("_", " ")), body) + body)
        init.append(f"from .{group} import (\n{wrapped(names)})\n")
        every += [f'"{n}"' for n in names]
    (folder / "__init__.py").write_text("".join(init) + f"\n__all__ = [\n{wrapped(every)}]\n")


if __name__ == "__main__":
    main()
