"""A list of names as training examples: the letters before, and the letter that follows."""

from __future__ import annotations

import random
from pathlib import Path

LETTERS = ".abcdefghijklmnopqrstuvwxyz"
INDEX = {letter: i for i, letter in enumerate(LETTERS)}


def names(path: str | None = None) -> list[str]:
    """The names of a file, one a line; by default those that come with the library."""
    if path is None:
        path = str(Path(__file__).parents[2] / "chainrule-nn" / "src" / "data" / "names.txt")
    return Path(path).read_text().split()


def examples(words: list[str], block: int) -> tuple[list[list[int]], list[int]]:
    """`block` letters before each letter, as indices; a dot stands for the edge of a word."""
    xs, ys = [], []
    for word in words:
        context = [0] * block
        for letter in word + ".":
            xs.append(context)
            ys.append(INDEX[letter])
            context = context[1:] + [INDEX[letter]]
    return xs, ys


def split(words: list[str], seed: int = 42) -> tuple[list[str], list[str], list[str]]:
    """Shuffled, and cut into 80% to train, 10% to tune and 10% to test."""
    words = list(words)
    random.seed(seed)
    random.shuffle(words)
    a, b = int(0.8 * len(words)), int(0.9 * len(words))
    return words[:a], words[a:b], words[b:]
