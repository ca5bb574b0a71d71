"""Functions whose first argument is a tensor, from the table of ops. Their types are in the stub
beside, which `tools/stubs.py` writes.
"""

from __future__ import annotations

import inspect
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor


def _of_method(name: str) -> Any:
    """The function that calls a method which is written by hand, with the signature of that."""
    signature = inspect.signature(getattr(Tensor, name))
    own, *others = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    rest = next((p.name for p in others if p.kind is p.VAR_POSITIONAL), None)
    # A method may take sizes one by one, the function takes them as one.
    others = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.name == rest else p for p in others]
    first = own.replace(name="input", kind=own.POSITIONAL_OR_KEYWORD)
    text = str(inspect.Signature([first, *others])).replace("=Ellipsis", "=...")
    return _c._function_of(name, text, rest)


FUNCTIONS: dict[str, Any] = dict(_c._functions)
for _name, _, _aliases, _ in _c._by_hand(functions=True):
    FUNCTIONS |= dict.fromkeys((_name, *_aliases), _of_method(_name))
# It has more arguments in `_shapes`.
del FUNCTIONS["scatter"]
globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)
