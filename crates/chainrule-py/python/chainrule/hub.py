"""PyTorch's store of models, which is not there; each name says what to do."""

from __future__ import annotations

from .jit import _absent

INSTEAD = "download the file of weights, and model.load_state_dict(chainrule.load(path))"

load = _absent("load", INSTEAD, "hub")
load_state_dict_from_url = _absent("load_state_dict_from_url", INSTEAD, "hub")
download_url_to_file = _absent("download_url_to_file", "take urllib.request.urlretrieve(url, path)", "hub")
list = _absent("list", INSTEAD, "hub")  # noqa: A001
get_dir = _absent("get_dir", INSTEAD, "hub")
set_dir = _absent("set_dir", INSTEAD, "hub")
help = _absent("help", INSTEAD, "hub")  # noqa: A001

__all__ = ["download_url_to_file", "get_dir", "list", "load", "load_state_dict_from_url", "set_dir"]
