"""Modules, layers and losses."""

from . import functional, grad, init, parameter, utils
from .activation_layers import *  # noqa: F403
from .activation_layers import __all__ as _activations
from .adaptive_layers import *  # noqa: F403
from .adaptive_layers import __all__ as _adaptive
from ._multihead import *  # noqa: F403
from ._multihead import __all__ as _attention
from .container_layers import *  # noqa: F403
from .container_layers import __all__ as _containers
from .lazy_layers import *  # noqa: F403
from .lazy_layers import __all__ as _lazy
from .layers import *  # noqa: F403
from .layers import __all__ as _layers
from .loss_layers import *  # noqa: F403
from .loss_layers import __all__ as _losses_
from .module import Buffer, Module, Parameter, UninitializedParameter
from .more_layers import *  # noqa: F403
from .more_layers import __all__ as _more
from .pad_layers import *  # noqa: F403
from .pad_layers import __all__ as _pads
from .pooling_layers import *  # noqa: F403
from .pooling_layers import __all__ as _pools
from .rnn import *  # noqa: F403
from .rnn import __all__ as _recurrent
from .sync_layers import *  # noqa: F403
from .sync_layers import __all__ as _sync
from .transformer import *  # noqa: F403
from .transformer import __all__ as _transformers
from .volume_layers import *  # noqa: F403
from .volume_layers import __all__ as _volume

__all__ = [
    *_activations, *_adaptive, *_attention, *_containers, *_layers, *_lazy, *_losses_, *_more, *_pads, *_pools, *_recurrent, *_sync, *_transformers, *_volume,
    "Buffer", "Module", "Parameter", "UninitializedParameter", "functional", "grad", "init", "parameter", "utils",
]

from . import attention as attention  # noqa: E402
from . import common_types as common_types  # noqa: E402
from . import modules as modules  # noqa: E402
from . import parallel as parallel  # noqa: E402
