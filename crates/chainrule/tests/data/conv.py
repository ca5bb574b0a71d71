"""Writes conv.safetensors: PyTorch's convolutions, pooling and resampling in f64, with the
gradients of all inputs.

Each case is one call; its name says what is called. `NAME.xI` are the inputs, `NAME.y` the result,
`NAME.dout` the upstream gradient and `NAME.grad.xI` the gradients of `(y * dout).sum()`. The test
beside this folder repeats the calls.
"""

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(2147483647)
out = {}


def case(name, call, *inputs):
    inputs = [x.double().requires_grad_() for x in inputs]
    y = call(*inputs)
    dout = torch.randn_like(y)
    (y * dout).sum().backward()
    for i, x in enumerate(inputs):
        out[f"{name}.x{i}"] = x.detach()
        out[f"{name}.grad.x{i}"] = x.grad
    out[f"{name}.y"] = y.detach()
    out[f"{name}.dout"] = dout


def numbers(*shape):
    return torch.randn(*shape)


# Strides, paddings, dilations, groups of convolutions and of their reverse.
for i, (s, p, d, g) in enumerate([
    ((1, 1), (0, 0), (1, 1), 1), ((1, 1), (1, 1), (1, 1), 1), ((2, 2), (1, 1), (1, 1), 1), ((3, 1), (0, 2), (1, 1), 1),
    ((1, 1), (2, 2), (2, 2), 1), ((2, 3), (2, 1), (3, 2), 1), ((1, 1), (1, 1), (1, 1), 2), ((2, 1), (3, 0), (1, 2), 4),
]):
    case(f"conv2d_{i}", lambda x, w, b: F.conv2d(x, w, b, s, p, d, g), numbers(2, 4, 8, 9), numbers(8, 4 // g, 3, 3), numbers(8))
    case(f"conv_transpose2d_{i}", lambda x, w, b: F.conv_transpose2d(x, w, b, s, p, 0, g, d),
         numbers(2, 4, 5, 6), numbers(4, 8 // g, 3, 3), numbers(8 // g * g))
case("conv2d_same", lambda x, w: F.conv2d(x, w, padding="same", dilation=(1, 3)), numbers(1, 2, 5, 8), numbers(3, 2, 2, 4))
case("conv2d_wide", lambda x, w, b: F.conv2d(x, w, b, padding=1), numbers(1, 17, 6, 19), numbers(19, 17, 3, 3), numbers(19))
case("conv_transpose2d_longer", lambda x, w: F.conv_transpose2d(x, w, stride=(2, 3), padding=1, output_padding=(1, 2)),
     numbers(2, 2, 4, 3), numbers(2, 3, 3, 3))
case("conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 3), numbers(2, 6, 11), numbers(3, 2, 4), numbers(3))
case("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2, 2), numbers(2, 4, 5), numbers(4, 3, 4), numbers(6))

case("max_pool2d_plain", lambda x: F.max_pool2d(x, (2, 3)), numbers(2, 3, 7, 8))
case("max_pool2d_padded", lambda x: F.max_pool2d(x, 3, 2, 1), numbers(1, 2, 7, 6))
case("max_pool2d_dilated", lambda x: F.max_pool2d(x, (2, 3), (1, 2), (0, 1), (3, 2)), numbers(1, 2, 6, 9))
case("max_pool2d_ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), numbers(1, 2, 6, 8))
case("max_pool2d_ties", lambda x: F.max_pool2d(x, 2, 1), torch.randint(0, 3, (2, 2, 5, 5)))
case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1, 2), numbers(2, 3, 10))
case("avg_pool2d_plain", lambda x: F.avg_pool2d(x, (2, 3)), numbers(2, 3, 7, 8))
case("avg_pool2d_padded", lambda x: F.avg_pool2d(x, 3, 2, 1), numbers(1, 2, 7, 6))
case("avg_pool2d_uncounted", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), numbers(1, 2, 7, 6))
case("avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), numbers(1, 2, 6, 8))
case("avg_pool2d_ceil_uncounted", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), numbers(1, 2, 6, 8))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 4, 3, 2), numbers(2, 3, 10))
case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 5)), numbers(2, 2, 7, 4))
case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 4), numbers(2, 2, 7))
case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 5)), numbers(2, 2, 7, 4))
case("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 4), numbers(2, 2, 7))

for mode in ["nearest", "bilinear", "corners"]:
    keys = {"mode": "nearest"} if mode == "nearest" else {"mode": "bilinear", "align_corners": mode == "corners"}
    case(f"interpolate_{mode}_larger", lambda x: F.interpolate(x, (11, 6), **keys), numbers(1, 2, 4, 5))
    case(f"interpolate_{mode}_smaller", lambda x: F.interpolate(x, (3, 4), **keys), numbers(1, 2, 7, 9))
    case(f"interpolate_{mode}_by", lambda x: F.interpolate(x, scale_factor=(1.7, 0.6), **keys), numbers(1, 2, 7, 9))
case("interpolate_linear", lambda x: F.interpolate(x, 7, mode="linear"), numbers(2, 2, 4))

save_file({k: v.contiguous() for k, v in out.items()}, __file__.replace(".py", ".safetensors"))
