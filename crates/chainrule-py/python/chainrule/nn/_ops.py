"""Functions of neural networks from the table of ops. Their types are in the stub beside, which
`tools/stubs.py` writes.
"""

from .. import _chainrule as _c

globals().update(_c._functional)

__all__ = sorted(_c._functional)
