"""What was found, as text."""

from __future__ import annotations
from dataclasses import dataclass
from typing import Any

@dataclass
class Followed:
    text: str

def follow(*a: Any) -> Any: ...
