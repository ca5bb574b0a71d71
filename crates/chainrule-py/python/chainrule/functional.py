"""Functions under the name of PyTorch's older module of them."""

from ._functions import *  # noqa: F403
from ._ops import *  # noqa: F403
from ._products import *  # noqa: F403
from ._shapes import *  # noqa: F403
from ._stft import *  # noqa: F403
from ._aliases import *  # noqa: F403
