"""The kinds of pairs that functions give, under PyTorch's names."""

from ._later_names import Histogram as histogramdd
from ._methods import ValuesIndices
from ._results import SVD as svd
from ._results import Frexp as frexp
from ._results import MinMax as aminmax

cummax = cummin = kthvalue = max = median = min = mode = nanmedian = sort = topk = ValuesIndices

__all__ = ["aminmax", "cummax", "cummin", "frexp", "histogramdd", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "svd", "topk"]
