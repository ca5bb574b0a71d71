"""Optimizers and learning-rate schedules, with PyTorch's names and defaults."""

from ._native import SGD, Adagrad, Adam, AdamW, Lion, Muon, RMSprop
from ._python import ASGD, Adadelta, Adamax, NAdam, RAdam, Rprop
from .lbfgs import LBFGS
from .optimizer import LIVE as LIVE
from .optimizer import Optimizer
from .optimizer import forget_gradient as forget_gradient

from . import lr_scheduler, optimizer, swa_utils  # isort: skip

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler", "optimizer", "swa_utils",
]
