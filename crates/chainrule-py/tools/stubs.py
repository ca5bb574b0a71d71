"""Writes the types of the native module, `_chainrule.pyi`, and of the functions from the table of
ops, `_ops.pyi` and `nn/_ops.pyi`.

The texts of ops are in the table of ops, and those of methods that are written in Python are there;
the tables here are for the rest.

    python tools/stubs.py            # writes them
    python tools/stubs.py --check    # fails where they differ
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import chainrule
from chainrule import _chainrule as native

PARAMETERS = {
    "other": "_TensorLike", "dim0": "int", "dim1": "int", "dim2": "int", "value": "_TensorLike", "condition": "Tensor", "name": "str", "library": "str",
    "retain_graph": "bool | None", "create_graph": "bool", "gradient": "Tensor | None", "requires_grad": "bool", "start_dim": "int",
    "end_dim": "int", "offset": "int", "tensor": "Tensor", "indices": "Any", "hook": "Callable[[Tensor], Any]", "seed": "int", "n": "int",
    "force": "bool", "resized": "Program | None", "dimension": "int", "size": "int", "step": "int", "start": "int", "length": "int",
}
RESULTS = {
    "_by_hand": "list[tuple[str, str, list[str], bool]]", "_bindings": "list[Any]", "_function_of": "Any",
    "shape": "Size", "dtype": "dtype", "ndim": "int", "dim": "int", "numel": "int", "nelement": "int", "element_size": "int", "itemsize": "int",
    "nbytes": "int", "is_floating_point": "bool", "is_complex": "bool", "is_contiguous": "bool", "stride": "tuple[int, ...]", "data_ptr": "int",
    "item": "Any", "tolist": "Any", "numpy": "Any", "requires_grad": "bool", "is_leaf": "bool", "grad": "Any", "name": "str | None",
    "backward": "None", "retain_grad": "None", "register_hook": "Handle", "trace_backward": "str", "trace_json": "str", "graph_json": "str", "contributions_json": "str", "to_json": "str", "graph_svg": "str",
    "graph_dot": "str", "first_non_finite": "str | None", "contributions": "list[tuple[str, int, Tensor]]", "_op": "str | None", "_is_laid": "bool",
    "_dims": "tuple[int, ...]", "_as_buffer": "None", "device": "str", "grad_fn": "str | None", "size": "Any", "initial_seed": "int", "remove": "None", "_base": "Any", "_is_view": "bool", "retains_grad": "bool", "to_sparse": "Any", "to_sparse_coo": "Any", "register_post_accumulate_grad_hook": "Any",
    "manual_seed": "Generator", "__len__": "int", "__hash__": "int", "__float__": "float", "__int__": "int", "__index__": "int", "__bool__": "bool",
    "__setitem__": "None", "__delitem__": "None", "__contains__": "bool", "__iter__": "Iterator[Tensor]", "__repr__": "str", "__str__": "str",
    "__format__": "str", "is_grad_enabled": "bool", "get_num_threads": "int", "set_num_threads": "None", "set_default_dtype": "None",
    "get_default_dtype": "dtype", "_dtype": "dtype", "_promoted": "dtype", "_set_grad_enabled": "bool", "_set_record_all": "bool", "_set_check_nan": "bool", "_leads_beside": "bool", "_set_autocast": "bool", "_is_autocast": "bool", "_manual_seed": "None",
    "_memory_trim": "None", "_memory_statistics": "list[tuple[str, int]]",
    "op_table": "list[tuple[str, str, str, str, str]]", "_safetensors_load": "list[tuple[str, Tensor]]", "_safetensors_save": "None",
    "_gradcheck": "tuple[bool, str, str]", "_explain": "tuple[bool, str, str | None, str]", "_compare": "tuple[bool, str, str | None, str]", "_named_behind": "list[Tensor | None]", "_verdict": "tuple[bool, str, str | None, str]",
    "_explain_opaque": "list[list[str]]", "_grad": "list[Any]", "_jvp": "tuple[Tensor, Tensor]", "_meshgrid": "list[Tensor]",
    "_broadcast_tensors": "list[Tensor]", "_batch_norm_train": "tuple[Tensor, Tensor, Tensor]", "step": "None", "zero_grad": "None",
    "load_state_dict": "None", "state_dict": "list[tuple[str, Tensor]]", "run": "list[Tensor]", "run_many": "list[Tensor]", "run_steps": "list[list[Tensor]]", "listing": "str", "to_python": "str", "to_cuda": "str", "to_wgsl": "str", "to_onnx": "tuple[list[str], list[str]]",
    "lines": "list[Any]", "_state": "list[int]", "_set_state": "None", "itemsize ": "int",
    "_is_new": "bool", "_used_up_as": "bool", "_is_same": "bool", "_shows_other": "bool", "_writes": "int", "_root_id": "int", "_as_leaf": "None", "_recast": "None",
    "_default_generator": "Generator", "_device": "str | None", "_devices_fetch": "None", "_first_not_finite": "tuple[builtins.int, builtins.int, builtins.float] | None", "_lose": "None", "_rng_state": "list[int]", "_set_rng_state": "None", "_session_begin": "bool", "_session_end": "tuple[Met, bool]", "_session_on": "bool",
    "_session_stepped": "None", "_session_walked": "bool", "_session_twins": "bool", "_uses_begin": "None", "_uses_end": "list[Tensor]", "holds": "bool", "knows": "bool",
    "has_custom": "bool", "left": "int", "stepped": "list[Any]", "fits_gradients": "bool", "is_steady": "bool", "warnings": "list[str]",
    "_shown": "tuple[Tensor, ViewPath | None]", "of": "Tensor", "begin": "None", "hold": "bool", "may_hold": "bool", "are_apart": "bool", "tensors": "list[Tensor] | None", "Conditions.run": "list[Tensor] | None",
    "_enter_scope": "None", "_leave_scope": "None", "_coming_number": "builtins.int", "_onnx_load": "tuple[OnnxModel, list[tuple[str, Tensor, bool]]]", "OnnxModel.inputs": "list[tuple[str, dtype | None, list[builtins.int | None] | None]]",
    "OnnxModel.outputs": "list[str]", "OnnxModel.ops": "list[str]", "OnnxModel.run": "list[Tensor]",
    "_weights_load": "tuple[list[tuple[str, Tensor]], Any]", "_causes": "list[tuple[str, str]]", "_prove": "tuple[str, str]", "_lstm_step": "tuple[Tensor, Tensor]",
    "TextModel.kind": "str", "TextModel.sizes": "tuple[int, int]", "TextModel.encode": "list[int]", "TextModel.prompt": "list[int]",
    "TextModel.decode": "str", "TextModel.generate": "list[int]", "TextModel.logits": "Tensor", "TextModel.loss": "Tensor",
    "TextModel.named_parameters": "list[tuple[str, Tensor]]", "TextModel.fine_tune": "list[float]", "TextModel.save": "None",
    "_names_mapped": "list[tuple[str, bool] | None]",
    "_exchange_join": "Exchange", "_exchange_over": "Exchange", "Exchange.rank": "int", "Exchange.size": "int", "Exchange.all_gather": "list[bytes]", "Exchange.barrier": "None",
    "Exchange.abort": "None", "Exchange.agree": "None", "Exchange.share": "tuple[int, int]", "Exchange.sum": "list[Tensor]",
    "Monitor.findings": "list[Any]", "Monitor.norm": "float", "html": "str", "is_due": "bool", "steps": "int", "output": "None", "clipped": "None", "updated": "None",
    "validated": "None", "Monitor.parameter": "None", "Monitor.end_step": "tuple[float | None, builtins.bool, builtins.bool]", "Monitor.before_step": "builtins.bool", "Monitor.begin_look": "None", "Monitor.see_results": "None", "Monitor.note_number": "None", "MonitorLook.renumbered": "MonitorLook", "UnwatchedRun.stop": "None", "CountedSteps.stop": "tuple[builtins.int, builtins.bool]", "CountedSteps.before": "None", "Monitor.steps_to_look": "builtins.int", "Monitor.sight": "Sight", "Monitor.whole_sight": "WholeSight", "Monitor.spent": "float", "Monitor.last_loss": "float | None",
    "Monitor.hold": "None", "Monitor.gradient_values": "list[Tensor | None]", "Monitor.measures": "dict[str, float]", "Monitor.passes_over_answer": "bool", "Monitor.hooks": "int", "Monitor.is_plain": "builtins.bool", "Monitor.looks": "builtins.int", "Monitor.looked": "builtins.int", "Monitor.begin_pass": "builtins.int", "Monitor.begin_step": "builtins.int", "Monitor.end_look": "tuple[builtins.bool, builtins.bool]", "WholeSight.rest": "None", "Monitor.hold_foreign": "None", "Monitor.note_foreign_loss": "builtins.bool", "Monitor.note_foreign_gradients": "builtins.bool", "Monitor.see_foreign": "builtins.bool", "Monitor.foreign_updated": "builtins.bool", "Monitor.foreign_sight": "ForeignSight", "Monitor.pass_over": "tuple[builtins.bool, builtins.bool]", "Monitor.rate": "float | None", "Monitor.stage": "builtins.int", "Monitor.look_at": "tuple[Tensor, builtins.bool, builtins.bool] | None", "_svd": "list[Tensor]", "_eigh": "list[Tensor]", "WholeSight.evaluates": "None", "WholeSight.inputs": "Any", "_studio_tensor": "Studio", "_studio_run": "Studio", "_studio_json": "str",
    "url": "str", "is_watched": "bool", "stepped": "None", "look": "None", "found": "None", "rate": "float | None", "Studio.wait": "None", "Studio.allow_branches": "None", "Studio.pass_over": "tuple[bool, bool, bool]", "Studio.by_hand": "None", "Studio.kept": "None", "Studio.go_back": "None", "Studio.text": "None",
    "Studio.take_branch": "tuple[int | None, float | None] | None", "wait": "None", "end": "None",
}
PAIRS = ["_max_axis", "_min_axis", "_median", "_histogram", "_qr", "_slogdet"]
LISTS = ["_split", "_split_size", "_chunk", "_nonzero_axes"]
OPERATORS = {"__eq__", "__ne__"}
HEAD = '''# Written by tools/stubs.py: change that.
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from ._methods import ValuesIndices
from ._size import Size
from ._results import SVD, Frexp, MinMax, Solution
from ._switches import Mode

_Axes = int | Sequence[int] | None
_TensorLike = Tensor | builtins.int | builtins.float | np.ndarray[Any, Any] | np.generic
_DTypeLike = dtype | builtins.str | builtins.type[Any] | np.dtype[Any]

__version__: str

class GradientError(RuntimeError): ...
class InternalError(RuntimeError): ...
'''


def plain(annotation: str) -> str:
    """Builtin types by their full name: `Tensor` has methods `int`, `float` and `bool`. Names that
    the module does not have are private here."""
    annotation = re.sub(r"\b(Axes|TensorLike)\b", r"_\1", annotation)
    return re.sub(r"(?<![\w.])(int|bool|float)\b", r"builtins.\1", annotation)


def result(name: str, annotation: Any, owner: str) -> str:
    """The type that a member gives."""
    return plain(_result(name, annotation, owner))


def _result(name: str, annotation: Any, owner: str) -> str:
    if owner == "dtype" and name in ("name",):
        return "str"
    found = RESULTS.get(f"{owner}.{name}", RESULTS.get(name))
    if found is not None:
        return found
    if name in PAIRS:
        return "tuple[Tensor, Tensor]"
    if name == "_unique":
        return "tuple[Tensor, Tensor, Tensor]"
    if name in LISTS:
        return "list[Tensor]"
    if isinstance(annotation, str) and annotation not in ("Any",):
        return annotation
    return "Tensor" if owner in ("Tensor", "") and annotation is inspect.Parameter.empty else "Any"


def parameter(p: inspect.Parameter, owner: str) -> str:
    """One parameter with its type."""
    known = PARAMETERS.get(p.name, "Any") if owner else "Any"
    annotation = p.annotation if isinstance(p.annotation, str) else known
    annotation = plain(annotation.replace("Any | None", "Any"))
    stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    if p.default is p.empty:
        return f"{stars}{p.name}: {annotation}"
    default = repr(p.default) if isinstance(p.default, (int, float, str, bool, type(None))) else "..."
    return f"{p.name}: {annotation} = {default}"


def signature(name: str, value: Any, owner: str, bound: bool) -> str:
    if owner == "dtype" and name in OPERATORS:
        return f"def {name}(self, value: object, /) -> builtins.bool: ..."
    if name == "__ipow__":
        return f"def {name}(self, value: Any, /) -> Tensor: ...  # type: ignore[misc, unused-ignore]"
    if name in ("__pow__", "__rpow__"):
        return f"def {name}(self, value: Any, mod: Any = None, /) -> Tensor: ...  # type: ignore[misc, unused-ignore]"
    try:
        s = inspect.signature(value)
    except (TypeError, ValueError):
        return f"def {name}(self, *args: Any, **kwargs: Any) -> {result(name, inspect.Parameter.empty, owner)}: ..."
    parts, star, slash = [], False, False
    items = list(s.parameters.values())
    for i, p in enumerate(items):
        if slash and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
            slash = False
        if p.kind is p.POSITIONAL_ONLY:
            slash = True
        if p.kind is p.VAR_POSITIONAL:
            star = True
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(p.name if bound and i == 0 else parameter(p, owner))
    if slash:
        parts.append("/")
    ignore = "  # type: ignore[override]" if name in OPERATORS else ""
    return f"def {name}({', '.join(parts)}) -> {result(name, s.return_annotation, owner)}: ...{ignore}"


SKIP = {
    "__module__", "__doc__", "__dict__", "__weakref__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__class__", "__dir__",
    "__init_subclass__", "__subclasshook__", "__sizeof__", "__reduce_ex__", "__getstate__", "__init__",
}


def of_class(name: str, cls: type) -> list[str]:
    lines = ["@final", f"class {name}:"]
    if name == "Tensor":
        lines += ["    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any: ...", "    __array_priority__: float", "    _is_parameter: bool", "    def __new__(cls, *data: Any) -> Tensor: ..."]
    elif name == "Optimizer":
        lines += ["    def __new__(cls, kind: str, parameters: Any, lr: float, options: dict[str, Any]) -> Optimizer: ..."]
    elif name == "Program":
        lines += ["    def __new__(cls, f: Any, names: list[str], inputs: list[Tensor], simplify: builtins.bool, fuse: builtins.bool, device: str | None, precision: str | None, compare_first: builtins.bool) -> Program: ..."]
    elif name in ("Monitor", "TextModel", "MonitorLook", "UnwatchedRun", "CountedSteps", "Watched", "Conditions"):
        lines += [f"    def __new__(cls, {', '.join(f'{p}: Any' if of.default is of.empty else f'{p}: Any = {of.default!r}' for p, of in inspect.signature(cls).parameters.items())}) -> {name}: ..."]
    elif name == "Generator":
        lines += ["    def __new__(cls, device: str | None = None) -> Generator: ..."]
    setters = {"requires_grad", "grad", "data"}
    for member, value in sorted(vars(cls).items()):
        if member in SKIP or member.startswith("__array_") and member != "__array__" and member != "__array_namespace__":
            continue
        if inspect.isgetsetdescriptor(value) or isinstance(value, property):
            kind = result(member, inspect.Parameter.empty, name)
            lines += ["    @property", f"    def {member}(self) -> {kind}: ..."]
            if name == "Tensor" and member in setters:
                lines += [f"    @{member}.setter", f"    def {member}(self, value: {kind}) -> None: ..."]
        elif name == "Tensor" and member in METHODS:
            lines.append(f"    def {member}{METHODS[member]}: ...")
        elif callable(value):
            lines.append("    " + signature(member, value, name, True))
    if len(lines) == 2:
        lines.append("    ...")
    return lines


def of_table() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Methods, functions and functions of `nn.functional` of the table of ops: their signatures and
    results by their names.
    """
    methods, functions, functional = {}, {}, {}
    for name, aliases, reason, gives, (method, in_place, function, of_networks) in native._bindings():
        for own in (name, *aliases):
            if reason is None:
                methods |= {own: f"{method} -> {gives}"} if method else {}
                methods |= {own + "_": f"{in_place} -> Tensor"} if in_place else {}
                functions |= {own: f"{function} -> {gives}"} if function else {}
                functional |= {own: f"{of_networks} -> {gives}"} if of_networks else {}
            elif function:
                functions[own] = of_method(own)
    # It has more arguments in `_shapes`.
    del functions["scatter"]
    for own in ("scatter", "scatter_"):
        methods[own] = methods[own].replace("src: _TensorLike", "src: _TensorLike | None = None, *, value: _TensorLike | None = None, reduce: str | None = None")
    methods["scatter"] = methods["scatter"].replace("self, /,", "input,")
    return methods, functions, functional


def of_method(name: str) -> str:
    """The signature of a function that calls a method written by hand."""
    s = inspect.signature(getattr(chainrule.Tensor, name))
    parts, star = ["input: _TensorLike"], False
    for p in list(s.parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        text = parameter(p, "Tensor")
        parts.append(f"{p.name}: builtins.int | Sequence[builtins.int]" if p.kind is p.VAR_POSITIONAL else text)
    return f"({', '.join(parts)}) -> {result(name, s.return_annotation, 'Tensor')}"


METHODS, FUNCTIONS, FUNCTIONAL = of_table()
OPS = '''# Written by tools/stubs.py: change that, or the table of ops.
import builtins
from collections.abc import Sequence
from typing import Any

from {up}_chainrule import Tensor, _Axes, _DTypeLike, _TensorLike
from {up}_methods import ValuesIndices

'''


def of_functions(functions: dict[str, str], up: str) -> str:
    """The types of a module of functions."""
    lines = [f"def {name}{functions[name]}: ..." for name in sorted(functions)]
    body = "\n".join(lines)
    head = "\n".join(used(line, body) for line in OPS.format(up=up).splitlines())
    head = re.sub(r"\n{3,}", "\n\n", head)
    return f"{head}\n{body}\n\n__all__ = {sorted(functions)}\n"


def used(line: str, body: str) -> str:
    """A line of imports with those names only that the body has."""
    found = re.fullmatch(r"(from \S+ import )(.*)", line)
    if not found:
        return line
    names = [n for n in found[2].split(", ") if re.search(rf"\b{n}\b", body)]
    return found[1] + ", ".join(names) if names else ""


def of_native() -> str:
    """The types of the native module."""
    out = [HEAD]
    for name in ("dtype", "Handle", "Generator", "Optimizer", "Met", "ViewPath", "Program", "Exchange", "Monitor", "MonitorLook", "Sight", "WholeSight", "ForeignSight", "Studio", "UnwatchedRun", "CountedSteps", "OnnxModel", "TextModel", "Watched", "Conditions", "Tensor"):
        out += ["", *of_class(name, getattr(native, name))]
    out.append("")
    for name, value in sorted(vars(native).items()):
        if inspect.isbuiltin(value):
            out.append(signature(name, value, "", False))
    out += ["", "_functions: dict[str, Any]", "_functional: dict[str, Any]", "", f"__all__ = {native.__all__}"]
    return "\n".join(out) + "\n"


def stubs() -> dict[str, str]:
    """All files by their path in the package."""
    return {"_chainrule.pyi": of_native(), "_ops.pyi": of_functions(FUNCTIONS, "."), "nn/_ops.pyi": of_functions(FUNCTIONAL, "..")}


def main() -> None:
    package = Path(__file__).parent.parent / "python" / "chainrule"
    for name, text in stubs().items():
        path = package / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path}: not what the table of ops gives: run tools/stubs.py")


if __name__ == "__main__":
    main()
