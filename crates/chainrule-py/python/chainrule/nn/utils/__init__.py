"""Gradients and parameters of a model together, its weights in other coordinates, and sequences of
different lengths.
"""

from . import parametrizations, parametrize, prune, rnn
from .fusion import fuse_conv_bn_eval, fuse_linear_bn_eval, skip_init
from .gradients import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm, parameters_to_vector, vector_to_parameters
from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

from . import stateless as stateless  # isort: skip

clip_grad_norm = clip_grad_norm_

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_linear_bn_eval", "get_total_norm", "parameters_to_vector", "parametrizations",
    "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "vector_to_parameters", "weight_norm",
]
