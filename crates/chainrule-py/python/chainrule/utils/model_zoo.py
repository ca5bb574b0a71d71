"""PyTorch's store of models under its older name; it is not there."""

from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url

__all__ = ["load_state_dict_from_url", "load_url"]
