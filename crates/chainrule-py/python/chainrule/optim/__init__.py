"""Optimizers and learning-rate schedules, with PyTorch's names and defaults."""

from ._native import SGD, Adagrad, Adam, AdamW, Lion, Muon, RMSprop
from ._python import ASGD, Adadelta, Adafactor, Adamax, NAdam, RAdam, Rprop, SparseAdam
from .lbfgs import LBFGS
from .optimizer import LIVE as LIVE
from .optimizer import Optimizer
from .optimizer import forget_gradient as forget_gradient

from . import adadelta, adagrad, adam, adamax, adamw, asgd, lr_scheduler, nadam, optimizer, radam, rmsprop, rprop, sgd, swa_utils  # isort: skip

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "optimizer", "swa_utils",
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
]
