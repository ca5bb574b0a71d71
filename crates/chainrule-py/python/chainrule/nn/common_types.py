"""Types of sizes that are given once for all axes, or one by one."""

_size_any_t = int | tuple[int, ...]
_size_1_t = int | tuple[int]
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]
_size_4_t = int | tuple[int, int, int, int]
_size_6_t = int | tuple[int, int, int, int, int, int]
_size_any_opt_t = int | None | tuple[int | None, ...]
_size_2_opt_t = int | None | tuple[int | None, int | None]
_size_3_opt_t = int | None | tuple[int | None, int | None, int | None]

__all__ = ["_size_1_t", "_size_2_opt_t", "_size_2_t", "_size_3_opt_t", "_size_3_t", "_size_4_t", "_size_6_t", "_size_any_opt_t", "_size_any_t"]
