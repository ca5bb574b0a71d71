"""Spectra of short pieces of a signal, and the windows for them, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from . import fft as _fft
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from .signal import windows as _w


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`(1 - cos(2 pi n / N)) / 2`, N the length, or with `periodic=False` one less."""
    return _w.hann(window_length, sym=not periodic, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - beta cos(2 pi n / N)`, N as for `hann_window`."""
    return _w.general_cosine(window_length, a=[alpha, beta], sym=not periodic, dtype=dtype, device=device, requires_grad=requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)`, N as for `hann_window`."""
    return _w.blackman(window_length, sym=not periodic, dtype=dtype, device=device, requires_grad=requires_grad)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A triangle from 0 up to 1 and down again."""
    return _w.bartlett(window_length, sym=not periodic, dtype=dtype, device=device, requires_grad=requires_grad)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`I0(beta sqrt(1 - (2n / N - 1)^2)) / I0(beta)`, N as for `hann_window`."""
    return _w.kaiser(window_length, beta=beta, sym=not periodic, dtype=dtype, device=device, requires_grad=requires_grad)


def _window(op: str, window: Tensor | None, length: int, n_fft: int, dtype: Any) -> Tensor:
    """The window of `n_fft` samples, with zeros on both sides of a shorter one."""
    if not 0 < length <= n_fft:
        raise ArgumentError(f"{op}: win_length is from 1 to n_fft = {n_fft}, got {length}")
    if window is None:
        window = _c._full((length,), 1.0, dtype)
    elif tuple(window.shape) != (length,):
        raise ArgumentError(f"{op}: a window of shape {tuple(window.shape)}; {length} samples are needed")
    before = (n_fft - length) // 2
    if length < n_fft:
        from .nn.functional import pad

        window = pad(window, (before, n_fft - length - before))
    return window


def _hop(op: str, n_fft: int, hop_length: int | None) -> int:
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft < 1 or hop < 1:
        raise ArgumentError(f"{op}: n_fft and hop_length are positive, got {n_fft} and {hop}")
    return hop


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The Fourier transforms of pieces of `n_fft` samples, one at each `hop_length`, times the
    window: `[..., frequencies, pieces]`, complex, or pairs with `return_complex=False`.

    With `center` piece t is around sample `t * hop_length`, and the signal is padded for it. A real
    signal has the `n_fft // 2 + 1` frequencies from 0 up, or all with `onesided=False`.

    ```
    x = cr.sin(cr.arange(64) * 0.5)
    X = cr.stft(x, 16, window=cr.hann_window(16), return_complex=True)
    assert X.shape == (9, 17)
    assert cr.istft(X, 16, window=cr.hann_window(16), length=64).allclose(x, atol=1e-5)
    ```
    """
    hop, length = _hop("stft", n_fft, hop_length), n_fft if win_length is None else win_length
    if align_to_window is not None and center:
        raise ArgumentError("stft: align_to_window is for center=False")
    is_complex = isinstance(input, ComplexTensor)
    if not is_complex and not input.is_floating_point():
        raise TypeError(f"stft: a signal of floats is needed, not of {input.dtype}")
    if return_complex is None and not is_complex and not isinstance(window, ComplexTensor):
        raise ArgumentError("stft: give return_complex=True, or False for pairs of real numbers")
    if input.ndim not in (1, 2):
        raise ArgumentError(f"stft: shape {tuple(input.shape)}: a signal or a batch of signals is needed")
    if is_complex and onesided:
        raise ArgumentError("stft: onesided is for real signals; a complex one has all frequencies")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = _padded(x, n_fft // 2, pad_mode, is_complex)
    if x.shape[-1] < n_fft:
        raise ArgumentError(f"stft: {x.shape[-1]} samples are less than n_fft = {n_fft}")
    real = x.dtype if not is_complex else x.real.dtype
    count = 1 + (x.shape[-1] - n_fft) // hop
    at = (_c._arange(0, count, 1, "int64") * hop).unsqueeze(1) + _c._arange(0, n_fft, 1, "int64")
    pieces = x[:, at] * _window("stft", window, length, n_fft, real)
    norm = "ortho" if normalized else "backward"
    found: Any = _fft.fft(pieces, norm=norm) if is_complex or onesided is False else _fft.rfft(pieces, norm=norm)
    found = found.transpose(1, 2)
    found = found if input.ndim == 2 else found.squeeze(0)
    if return_complex is False:
        from ._complex import view_as_real

        return view_as_real(found)
    return found


def _padded(x: Any, size: int, mode: str, is_complex: bool) -> Any:
    from .nn.functional import pad

    if is_complex:
        from ._complex import complex as together

        return together(_padded(x.real, size, mode, False), _padded(x.imag, size, mode, False))
    return pad(x.unsqueeze(1), (size, size), mode=mode).squeeze(1)


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Any:
    """The signal of which `stft` with these arguments made `input`: the pieces times the window
    again, added up, and divided by the sum of the squared windows. `length` cuts it, or fills it up
    with zeros.
    """
    hop, size = _hop("istft", n_fft, hop_length), n_fft if win_length is None else win_length
    if not isinstance(input, ComplexTensor):
        raise TypeError("istft: a complex tensor is needed, as stft(..., return_complex=True) gives it; of pairs view_as_complex makes one")
    if input.ndim not in (2, 3):
        raise ArgumentError(f"istft: shape {tuple(input.shape)}: frequencies and pieces are needed, or a batch of them")
    bins = input.shape[-2]
    half = bins != n_fft if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if half else n_fft):
        raise ArgumentError(f"istft: {bins} frequencies; with n_fft = {n_fft} and onesided={half} there are {n_fft // 2 + 1 if half else n_fft}")
    if return_complex and half:
        raise ArgumentError("istft: return_complex=True is for onesided=False")
    X: Any = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    pieces: Any = _fft.irfft(X, n_fft, norm=norm) if half else _fft.ifft(X, norm=norm)
    if not half and not return_complex:
        pieces = pieces.real
    own = _window("istft", window, size, n_fft, pieces.real.dtype if return_complex else pieces.dtype)
    pieces, count = pieces * own, X.shape[1]
    start, end = (n_fft // 2 if center else 0), n_fft + hop * (count - 1)
    end = start + length if length is not None else end - (n_fft // 2 if center else 0)
    weight = _added((own * own).expand(1, count, n_fft), hop, start, end)
    if bool((weight.abs() < 1e-11).any()):
        raise RuntimeError("istft: the windows do not cover the signal: the sum of their squares is 0 somewhere")
    parts = [_added(p, hop, start, end) / weight for p in ((pieces.real, pieces.imag) if return_complex else (pieces,))]
    if length is not None and parts[0].shape[-1] < length:
        from .nn.functional import pad

        parts = [pad(p, (0, length - p.shape[-1])) for p in parts]
    if input.ndim == 2:
        parts = [p.squeeze(0) for p in parts]
    if return_complex:
        from ._complex import complex as together

        return together(*parts)
    return parts[0]


def _added(pieces: Any, hop: int, start: int, end: int) -> Any:
    """The pieces one `hop` after the other, added up where they overlap, from `start` to `end`."""
    batch, count, size = pieces.shape
    at = ((_c._arange(0, count, 1, "int64") * hop).unsqueeze(1) + _c._arange(0, size, 1, "int64")).reshape(-1)
    whole = _c._full((batch, size + hop * (count - 1)), 0.0, pieces.dtype).index_add(1, at, pieces.reshape(batch, -1))
    return whole[:, start : min(end, whole.shape[1])]


METHODS = {"stft": stft, "istft": istft}

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window", "stft"]
