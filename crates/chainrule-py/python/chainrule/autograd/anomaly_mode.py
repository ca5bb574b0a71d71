"""The search for NaN under the name of PyTorch's module."""

from . import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
