"""Writes models that PyTorch exports into a folder: NAME.onnx, and NAME.safetensors with the
inputs, the results, and the gradients for a weighted sum of the results. See `torch_models.rs`."""

import logging
import os
import sys
import warnings

import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(3, 4, bidirectional=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.cell(x)[0])


class Block(nn.Module):
    """A block of a causal transformer, written out."""

    def __init__(self, size=8, heads=2, steps=5):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(size), nn.LayerNorm(size)
        self.inner, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 16), nn.GELU(), nn.Linear(16, size))
        self.embed = nn.Embedding(11, size)
        self.register_buffer("mask", torch.tril(torch.ones(steps, steps)).bool())

    def forward(self, tokens):
        x = self.embed(tokens)
        b, t, c = x.shape
        q, k, v = self.inner(self.first(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5
        weights = scores.masked_fill(~self.mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.second(x))


def cnn():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=2), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3),
    )


def encoder():
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.LogSoftmax(-1)), lambda: torch.randn(5, 4)),
    "cnn": (cnn, lambda: torch.randn(2, 2, 8, 8)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(4, 2, 3)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(4, 2, 3)),
    "transformer": (Block, lambda: torch.randint(0, 11, (2, 5))),
    "encoder": (encoder, lambda: torch.randn(2, 5, 8)),
}


def stored(parameters, initializers):
    """The gradients under the names of the file, NaN where an element is none of a parameter, and
    the parameters of which it lacks elements. An exporter transposes matrices, joins the weights of
    gates and puts these in another order; no two elements are equal, so that each is found."""
    floats = {name: has for name, has in initializers.items() if has.dtype == np.float32}
    places = {}
    for name, has in floats.items():
        for at, x in enumerate(has.ravel().tolist()):
            places.setdefault(x, []).append((name, at))
    found, missing = {}, []
    for key, parameter in parameters:
        pairs = zip(parameter.detach().ravel().tolist(), parameter.grad.ravel().tolist())
        for x, gradient in pairs:
            # An element in two places has a part of its gradient in each.
            if len(at := places.get(x, [])) != 1:
                missing.append(key)
                continue
            (name, i), = at
            found.setdefault(name, np.full(floats[name].shape, np.nan, np.float32)).flat[i] = gradient
    return found, sorted(set(missing))


def write(folder, name, made, example, dynamo):
    import onnx
    from safetensors.numpy import save_file

    model, x = made().eval(), example()
    for parameter in model.parameters():
        # No two of them are equal, so that each is found in the file by its elements.
        parameter.data += 0.1 * torch.randn_like(parameter)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1), module.running_var.uniform_(0.5, 2)
    path = os.path.join(folder, name + ".onnx")
    kind = {"dynamo": True, "verbose": False, "external_data": False} if dynamo else {"dynamo": False, "do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE}
    torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], **kind)
    proto = onnx.load(path)
    initializers = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    del proto.metadata_props[:]
    for node in proto.graph.node:
        # Places in the source of the one who exported.
        del node.metadata_props[:]
        node.doc_string = ""
    del proto.graph.value_info[:]
    onnx.save(proto, path)
    if x.is_floating_point():
        x.requires_grad_()
    y = model(x)
    upstream = torch.randn_like(y)
    (y * upstream).sum().backward()
    out = {"x": x, "y": y, "upstream": upstream}
    if x.grad is not None:
        out["gradient x"] = x.grad
    out = {key: value.detach().numpy() for key, value in out.items()}
    found, missing = stored(model.named_parameters(), initializers)
    out |= {f"gradient {k}": v for k, v in found.items()}
    print(f"{name}: {len(out) - 3} gradients; not in the file as they are: {', '.join(missing) or 'none'}")
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, os.path.join(folder, name + ".safetensors"))


torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
for name, (made, example) in MODELS.items():
    for dynamo in (False, True):
        try:
            write(sys.argv[1], f"{name}-{'dynamo' if dynamo else 'script'}", made, example, dynamo)
        except Exception as e:
            print(f"{name}, dynamo={dynamo}: not exported: {type(e).__name__}: {str(e).splitlines()[0][:200]}")
