"""Language models that others published, from their files: GPT-2, and decoders of Llama's shape."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from .io import load


class LanguageModel:
    """A model and its tokenizer, from a folder with `config.json`, `tokenizer.json` or `vocab.json`
    and `merges.txt`, and the weights: `model.safetensors` or `pytorch_model.bin`, also in shards.

    Called with int64 tokens `[batch, time]` it gives logits `[batch, time, vocabulary]`. Its
    parameters train with the optimizers of `cr.optim`; computation is in float32. With `mmap`
    weights of float32 share the pages of their files, as in `cr.load`.
    """

    def __init__(self, folder: str | os.PathLike[str], mmap: bool = False) -> None:
        self._model = _c.TextModel(os.fspath(folder), bool(mmap))

    @property
    def kind(self) -> str:
        """The kind in the configuration: `gpt2`, `llama`, `mistral`, `qwen2`."""
        return self._model.kind()

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return self._model.sizes()[0]

    @property
    def context(self) -> int:
        """Positions at most."""
        return self._model.sizes()[1]

    def __call__(self, tokens: Tensor) -> Tensor:
        return self._model.logits(tokens)

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean loss of expecting each next token of `[batch, time + 1]` tokens, in nats."""
        return self._model.loss(tokens)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters with their published names, without the prefix of the whole model."""
        yield from self._model.named_parameters()

    def parameters(self) -> Iterator[Tensor]:
        """The parameters, as an optimizer takes them."""
        for _, p in self._model.named_parameters():
            yield p

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The tokens of a text; with `special` those too that the tokenizer puts round a text."""
        return self._model.encode(text, special)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        return self._model.decode(list(tokens))

    def generate(
        self,
        prompt: str | Sequence[int] = "",
        length: int = 50,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int = 7,
        cache: bool = True,
        stop: bool = True,
    ) -> str | list[int]:
        """The text that follows a text, or the tokens that follow tokens: `length` tokens at most.

        A temperature of 0 takes the likeliest token each time; above, one is drawn, with `top_k`
        among that many of the likeliest. Without `cache` keys and values are computed again for
        every token. `stop` ends at the model's end of a text.
        """
        tokens = self._model.prompt(prompt) if isinstance(prompt, str) else list(prompt)
        new = self._model.generate(tokens, length, temperature, top_k, seed, cache, stop)
        if not isinstance(prompt, str):
            return new
        # Decoded together, since a decoder may join and strip.
        return self.decode([*tokens, *new])[len(self.decode(tokens)) :]

    def fine_tune(
        self,
        text: str,
        steps: int = 100,
        batch: int = 4,
        context: int = 64,
        lr: float = 5e-5,
        weight_decay: float = 0.01,
        clip: float = 1.0,
        seed: int = 7,
    ) -> list[float]:
        """Trains all weights on random pieces of a text by AdamW, whose learning rate falls to a
        tenth along a cosine. Gives the loss of every step."""
        return self._model.fine_tune(self.encode(text, special=False), steps, batch, context, lr, weight_decay, clip, seed)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder of the same form with the weights as they are now, in float32."""
        self._model.save(os.fspath(folder))


def _of_kind(folder: str | os.PathLike[str], name: str, kinds: tuple[str, ...]) -> LanguageModel:
    model = LanguageModel(folder)
    if model.kind not in kinds:
        raise ValueError(f"{name}: the folder holds a model of kind '{model.kind}'; `cr.models.open` reads every kind")
    return model


def gpt2(folder: str | os.PathLike[str]) -> LanguageModel:
    """GPT-2 from its published files."""
    return _of_kind(folder, "gpt2", ("gpt2",))


def llama(folder: str | os.PathLike[str]) -> LanguageModel:
    """A decoder of Llama's shape: Llama itself, and Mistral and Qwen2 without a sliding window."""
    return _of_kind(folder, "llama", ("llama", "mistral", "qwen2"))


def open(folder: str | os.PathLike[str]) -> LanguageModel:  # noqa: A001
    """A model of any kind that is known."""
    return LanguageModel(folder)


@dataclass
class Fit:
    """How a state fits a module."""

    missing: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    other_shape: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    """Names with the shape in the module and in the state."""
    loaded: int = 0


def load_state_dict(module: Any, state: Mapping[str, Tensor] | str | os.PathLike[str], rules: str = "", strict: bool = True) -> Fit:
    """Gives a module's parameters and buffers the tensors of a state, or of a file of weights,
    whose names `rules` turn into the module's. A rule is a line, tried in order:

    - `prefix TEXT`: names that begin so lose it;
    - `drop PATTERN`: names that fit are left out;
    - `PATTERN -> NAME`, with `transposed` behind it if the axes of the matrix change places.

    In a pattern `*` stands for characters without a dot, `**` for any, and `$1` in the new name
    for what the first of them stood for. Strict, anything that does not fit is an error and nothing
    is changed; else what fits is taken over, and the report tells the rest.

    ```
    layer = cr.nn.Linear(3, 2)
    state = {"dense.kernel": cr.ones(3, 2), "dense.bias": cr.zeros(2), "dense.steps": cr.ones(1)}
    rules = "dense.kernel -> weight transposed\\ndense.* -> $1"
    fit = cr.models.load_state_dict(layer, state, rules, strict=False)
    assert fit.loaded == 2 and fit.left_over == ["steps"]
    assert layer(cr.ones(3)).tolist() == [3.0, 3.0]
    ```
    """
    if not isinstance(state, Mapping):
        state = load(state)
        if not isinstance(state, Mapping):
            raise ValueError("load_state_dict: the file holds no tensors by name")
    state = {name: t for name, t in state.items() if isinstance(t, Tensor)}
    new: dict[str, Tensor] = {}
    for (name, t), to in zip(state.items(), _c._names_mapped(rules, list(state))):
        if to is None:
            continue
        if to[1] and len(t.shape) != 2:
            raise ValueError(f"load_state_dict: '{name}' is to be transposed, and has {len(t.shape)} axes")
        if to[0] in new:
            raise ValueError(f"load_state_dict: two tensors would be called '{to[0]}'; check the rules")
        new[to[0]] = t.T if to[1] else t
    own = module.state_dict()
    fit = Fit([name for name in own if name not in new], [name for name in new if name not in own])
    fitting = {}
    for name, t in own.items():
        if name not in new:
            continue
        if tuple(new[name].shape) == tuple(t.shape):
            fitting[name] = new[name]
        else:
            fit.other_shape.append((name, tuple(t.shape), tuple(new[name].shape)))
    if strict and (fit.missing or fit.left_over or fit.other_shape):
        raise ValueError(f"load_state_dict: missing: {fit.missing}; left over: {fit.left_over}; of another shape: {fit.other_shape}")
    module.load_state_dict(fitting, strict=False)
    fit.loaded = len(fitting)
    return fit


__all__ = ["Fit", "LanguageModel", "gpt2", "llama", "load_state_dict", "open"]
