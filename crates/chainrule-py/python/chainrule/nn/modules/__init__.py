"""Layers under the names of PyTorch's modules of them."""

from . import (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, linear, loss, module, normalization,
    padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling, utils,
)
from ..layers import *  # noqa: F403
from ..layers import __all__ as _layers
from ..lazy_layers import *  # noqa: F403
from ..lazy_layers import __all__ as _lazy
from ..more_layers import *  # noqa: F403
from ..more_layers import __all__ as _more
from ..pad_layers import *  # noqa: F403
from ..pad_layers import __all__ as _pads
from ..volume_layers import *  # noqa: F403
from ..volume_layers import __all__ as _volume
from .activation import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .dropout import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .transformer import *  # noqa: F403

__all__ = [
    *_layers, *_lazy, *_more, *_pads, *_volume, *activation.__all__, *batchnorm.__all__, *container.__all__, *conv.__all__, *dropout.__all__, *linear.__all__,
    *loss.__all__, *module.__all__, *normalization.__all__, *pooling.__all__, *rnn.__all__, *transformer.__all__,
    "utils", "activation", "batchnorm", "container", "conv", "dropout", "linear", "loss", "module", "normalization", "pooling", "rnn", "transformer",
    "adaptive", "channelshuffle", "distance", "flatten", "fold", "instancenorm", "padding", "pixelshuffle", "sparse", "upsampling",
]
