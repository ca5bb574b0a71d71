"""Modules, layers and losses."""

from . import functional, init, utils
from .attention import *  # noqa: F403
from .attention import __all__ as _attention
from .layers import *  # noqa: F403
from .layers import __all__ as _layers
from .module import Module, Parameter
from .more_layers import *  # noqa: F403
from .more_layers import __all__ as _more
from .rnn import *  # noqa: F403
from .rnn import __all__ as _recurrent
from .transformer import *  # noqa: F403
from .transformer import __all__ as _transformers
from .volume_layers import *  # noqa: F403
from .volume_layers import __all__ as _volumes

__all__ = [*_layers, *_more, *_volumes, *_recurrent, *_attention, *_transformers, "Module", "Parameter", "functional", "init", "utils"]
