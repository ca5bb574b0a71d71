"""Files: tensors, and nests of them, in the safetensors format."""

from __future__ import annotations

import base64
import functools
import json
import os
import pickle
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._dtype import ComplexDtype, named
from ._complex._tensor import ComplexTensor
from ._methods import _attributes as attributes
from ._size import Size

NEST = "chainrule.nest"
# Tensors that show the memory of another one: its name, the first element and the strides there.
SHARED = "chainrule.shared"
# A pickle of what is no nest of tensors, as the bytes of a tensor of this name.
OBJECTS = "chainrule.objects"


def save(obj: Any, f: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a tensor, tensors by name (a `state_dict`), any nest of dictionaries, lists and tuples
    of tensors, numbers, strings and None, or other objects, as a whole module.

    The file is in the safetensors format: one with tensors by name can be read by any program that
    knows it, and the nest stands in its metadata. It is written whole or not at all. `f` is a path,
    or a file that is open for writing bytes. Objects are pickled, by the names of their classes,
    and `load` reads them with `weights_only=False` alone.

    ```
    import io
    opt = cr.optim.Adam([cr.ones(2, requires_grad=True)])
    file = io.BytesIO()
    cr.save({"optimizer": opt.state_dict(), "epoch": 3}, file)
    file.seek(0)
    assert cr.load(file)["epoch"] == 3
    ```
    """
    tensors = _Found()
    more = dict(metadata or {})
    if isinstance(obj, Mapping) and obj and all(isinstance(k, str) and isinstance(v, Tensor) and not v.requires_grad for k, v in obj.items()):
        tensors.update(obj)
    else:
        try:
            more[NEST] = json.dumps(_taken(obj, "", tensors))
        except _NoNest as error:
            tensors = _Found()
            tensors[OBJECTS] = _pickled(obj, error, tensors)
    if shared := _shared(tensors):
        more[SHARED] = json.dumps(shared)
    if hasattr(f, "write"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tensors"
            _c._safetensors_save(str(path), list(tensors.items()), more)
            f.write(path.read_bytes())
        return
    _c._safetensors_save(os.fspath(f), list(tensors.items()), more)


class _Found(dict[str, Tensor]):
    """The tensors of a nest by the path to them, and the paths of those that were met."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.met: dict[int, str] = {}


def _shared(tensors: _Found) -> dict[str, tuple[str, int, list[int]]]:
    """The tensors that show a part, or all, of another one in the file."""
    roots: dict[int, list[tuple[str, Tensor, list[Any], Any]]] = {}
    for name, t in tensors.items():
        root, way = _owner(t)
        place: Any = root._shared_place()
        roots.setdefault(place[0] if place else id(root), []).append((name, root, way, place))
    out: dict[str, tuple[str, int, list[int]]] = {}
    for group in roots.values():
        memory = group[0][3][1] if group[0][3] else group[0][1]
        if len(group) == 1 or not memory.numel():
            continue
        numbers = _c._arange(0, memory.numel(), 1, "int64").reshape(tuple(memory.shape))
        shown = {name: _places(numbers, *at) for name, *at in group}
        first = {name: int(at.reshape(-1)[0]) for name, at in shown.items() if at.numel()}
        whole = [name for name, at in shown.items() if at.numel() == memory.numel() and at.is_contiguous() and first[name] == 0]
        for name, at in shown.items():
            strides = list(at.stride())
            if whole and name != whole[0] and name in first and numbers.as_strided(tuple(at.shape), strides, first[name]).equal(at):
                out[name] = (whole[0], first[name], strides)
    return out


def _owner(t: Tensor) -> tuple[Tensor, list[Any]]:
    """The tensor whose memory another one shows, and the paths from there."""
    way: list[Any] = []
    while (shown := t._shown())[0] is not t:
        t, path = shown
        way = way if path is None else [path, *way]
    return t, way


def _places(numbers: Tensor, root: Tensor, way: list[Any], place: Any) -> Tensor:
    """Numbers of those elements of the memory that a tensor shows."""
    own = numbers if place is None else numbers.as_strided(tuple(root.shape), place[3], place[2])
    return functools.reduce(lambda at, path: path.of(at), way, own)


def _is_parameter(x: Tensor) -> bool:
    return bool(getattr(x, "_is_parameter", False))


def _parameter(x: Tensor, requires_grad: bool) -> Any:
    from .nn import Parameter

    return Parameter(x, requires_grad)


# Kinds of a nest, and what makes them of their parts.
READ: dict[str, Any] = {"bytes": base64.b64decode, "number": lambda parts: complex(*parts), "set": set, "size": Size}


class _NoNest(TypeError):
    """Something in a nest that is no part of one."""


class _Pickler(pickle.Pickler):
    """Leaves tensors out of the pickle, so that they share their memory as in a nest."""

    def __init__(self, file: Any, tensors: _Found) -> None:
        super().__init__(file)
        self.tensors, self.known = tensors, dict[int, Any]()

    def persistent_id(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return None
        if id(x) not in self.known:
            piece = _taken(x, f"object.{len(self.known)}", self.tensors)
            # The tensor itself stays with it, so that no other one has its number.
            self.known[id(x)] = json.dumps(piece), attributes(x), x
        return self.known[id(x)][:2]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, tensors: dict[str, Tensor]) -> None:
        super().__init__(file)
        self.tensors, self.made = tensors, dict[str, Tensor]()

    def persistent_load(self, pid: Any) -> Any:
        piece, own = pid
        if piece not in self.made:
            self.made[piece] = _put_back(json.loads(piece), self.tensors)
            self.made[piece].__dict__.update(own)
        return self.made[piece]


def _pickled(obj: Any, error: _NoNest, tensors: _Found) -> Tensor:
    """The bytes of the object's pickle, whose tensors go into the dictionary."""
    file = BytesIO()
    try:
        _Pickler(file, tensors).dump(obj)
    except (pickle.PicklingError, AttributeError, TypeError) as why:
        raise TypeError(f"{error}, and it cannot be pickled: {why}") from why
    return _c.tensor(np.frombuffer(file.getvalue(), np.uint8))


def _unpickled(tensors: dict[str, Tensor], weights_only: bool | None) -> Any:
    if weights_only is not False:
        raise pickle.UnpicklingError("load: the file has objects besides tensors, and reading them can run code of the file: say weights_only=False if you trust it")
    return _Unpickler(BytesIO(tensors.pop(OBJECTS).numpy().tobytes()), tensors).load()


def _taken(x: Any, name: str, tensors: _Found) -> Any:
    """The nest as JSON; tensors go into the dictionary, by the path to them."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or type(x) in (bool, int, str):
        return x
    if type(x) is float:
        return x if np.isfinite(x) else {"float": repr(x)}
    if isinstance(x, ComplexTensor):
        return {"complex": _taken(x._data, name, tensors)}
    if isinstance(x, (Tensor, np.ndarray)):
        key = name or "tensor"
        while key in tensors:
            key += "'"
        if isinstance(x, Tensor):
            key = tensors.met.setdefault(id(x), key)
            tensors[key] = x.detach()
            return {"parameter": [key, x.requires_grad]} if _is_parameter(x) else {"leaf" if x.requires_grad else "tensor": key}
        if x.dtype.kind not in "biuf":
            raise _NoNest(f"save: '{name}' is an array of {x.dtype}, and of numbers only can be saved")
        tensors[key] = _c.tensor(x)
        return {"array": [key, x.dtype.str]}
    if isinstance(x, (_c.dtype, ComplexDtype)):
        return {"dtype": x.name}
    if isinstance(x, (bytes, bytearray)):
        return {"bytes": base64.b64encode(x).decode()}
    if isinstance(x, complex):
        return {"number": [_taken(x.real, name, tensors), _taken(x.imag, name, tensors)]}
    if isinstance(x, (set, frozenset)):
        return {"set": [_taken(v, name, tensors) for v in x]}
    if isinstance(x, Size):
        return {"size": list(x)}
    if isinstance(x, Mapping):
        return {"ordered" if isinstance(x, OrderedDict) else "dict": [[_key(k, name), _taken(v, f"{name}.{k}" if name else str(k), tensors)] for k, v in x.items()]}
    if isinstance(x, (list, tuple)):
        parts = [_taken(v, f"{name}.{i}" if name else str(i), tensors) for i, v in enumerate(x)]
        return parts if isinstance(x, list) else {"tuple": parts}
    hint = "; save its state_dict()" if hasattr(x, "state_dict") else ""
    raise _NoNest(f"save: '{name}' is no tensor but {type(x).__name__}{hint}" if name else f"save: {type(x).__name__} is no tensor and no nest of them{hint}")


def _key(k: Any, name: str) -> Any:
    if isinstance(k, (str, int)):
        return k
    if isinstance(k, tuple) and all(isinstance(p, (str, int)) for p in k):
        return {"tuple": list(k)}
    raise _NoNest(f"save: a key of '{name}' is {type(k).__name__}; keys are strings and integers")


def load(f: Any, map_location: Any = None, weights_only: bool | None = None, mmap: bool | None = None) -> Any:
    """Reads what `save` wrote, the tensors of any safetensors file by name, or a file of another
    program: `.pt` and `.pth` of PyTorch as the nest that was saved, arrays of `.npz` and `.npy`,
    GGUF, and the shards that a `.index.json` names. No code of the file is run: a pickle that names
    more than tensors, numbers, texts and containers is an error with that name. Only
    `weights_only=False` reads the objects that `save` pickled, of a file that is trusted.

    `map_location` may name the processor, the one device. With `mmap` tensors share the pages of
    the file, which come from the disk when they are first used; deflated, swapped and quantised
    elements and bools are read. A change of such a tensor stays in this process. The file is to
    stay as it is meanwhile: with one that another program cuts off, the process ends at the next
    use.
    """
    if map_location is not None and not callable(map_location) and not isinstance(map_location, Mapping):
        from ._devices import device

        device(map_location)
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tensors"
            path.write_bytes(f.read())
            return load(str(path), weights_only=weights_only)
    # `open` would take an integer for a descriptor, and close it.
    path = os.fspath(f)
    if not _is_safetensors(path):
        named, tree = _c._weights_load(path, bool(mmap))
        return dict(named) if tree is None else _placed(tree, [t for _, t in named])
    tensors = dict(_c._weights_load(path, True)[0] if mmap else _c._safetensors_load(path))
    more = _metadata(path)
    for name, (base, start, strides) in json.loads(more.get(SHARED, "{}")).items():
        own, memory = tensors[name], tensors[base]
        whole = start == 0 and own.shape == memory.shape and tuple(strides) == tuple(memory.stride())
        tensors[name] = memory.detach() if whole else memory.as_strided(tuple(own.shape), strides, start)
    if OBJECTS in tensors:
        return _unpickled(tensors, weights_only)
    nest = more.get(NEST)
    return tensors if nest is None else _put_back(json.loads(nest), tensors)


def _is_safetensors(path: Any) -> bool:
    """Whether a file begins as no other known format does; what cannot be opened is left to the
    reader, which says why."""
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        head = file.read(16)
    # The magic number of PyTorch's earlier format, of the protocol 4 in a frame of its own.
    magic = head[:1] == b"\x80" and b"\x8a\x0a\x6c\xfc" in (head[2:6], head[11:15])
    known = head[:2] == b"PK" or head[:4] == b"GGUF" or head[:6] == b"\x93NUMPY" or magic
    return not known and not str(path).endswith(".json")


def _placed(x: Any, tensors: list[Tensor]) -> Any:
    """The nest with tensors in the place of sets of their numbers."""
    if isinstance(x, set):
        return tensors[x.pop()]
    if isinstance(x, dict):
        return {k: _placed(v, tensors) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_placed(v, tensors) for v in x)
    return x


def _metadata(path: Any) -> dict[str, str]:
    """The texts at the beginning of a file that has been read, and is sound."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    return dict(header.get("__metadata__") or {})


def _put_back(x: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(x, list):
        return [_put_back(v, tensors) for v in x]
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "array":
        return tensors[value[0]].numpy().astype(value[1])
    if kind == "leaf":
        return tensors[value].requires_grad_()
    if kind == "parameter":
        name, requires_grad = value
        if not _is_parameter(tensors[name]):
            tensors[name] = _parameter(tensors[name], requires_grad)
        return tensors[name]
    if kind in READ:
        return READ[kind]([_put_back(v, tensors) for v in value] if isinstance(value, list) else value)
    if kind == "tuple":
        return tuple(_put_back(v, tensors) for v in value)
    if kind == "complex":
        return ComplexTensor(_put_back(value, tensors))
    if kind in ("dict", "ordered"):
        found = {_put_back(k, tensors): _put_back(v, tensors) for k, v in value}
        return OrderedDict(found) if kind == "ordered" else found
    return (named(value) or _c._dtype(value)) if kind == "dtype" else float(value)


def from_torch(state_dict: Mapping[str, Any]) -> dict[str, Tensor]:
    """PyTorch's `state_dict` as ours."""
    return {name: of_torch(t) for name, t in state_dict.items()}


def of_torch(t: Any) -> Tensor:
    """A tensor of PyTorch's elements, in its dtype."""
    t = t.detach().cpu().resolve_neg()
    # PyTorch gives NumPy no bfloat16, of which NumPy has none of its own.
    if str(t.dtype) == "torch.bfloat16":
        return _c._from_dlpack(t, None).clone()
    return _c.tensor(t.numpy(), None, False)


def to_torch(state_dict: Mapping[str, Tensor]) -> dict[str, Any]:
    """Our `state_dict` as PyTorch's."""
    import torch

    def theirs(t: Tensor) -> Any:
        if t.dtype.name == "bfloat16":
            return torch.from_dlpack(t.detach()).clone()  # type: ignore[attr-defined, unused-ignore]
        return torch.from_numpy(t.detach().numpy().copy())

    return {name: theirs(t) for name, t in state_dict.items()}
