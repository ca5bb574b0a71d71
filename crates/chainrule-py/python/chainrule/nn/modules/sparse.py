"""Tables of rows, under the name of PyTorch's module."""

from ..layers import Embedding
from ..volume_layers import EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
