"""A finding of the monitor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something that goes wrong in a training."""

    kind: str
    """Its name, such as `"rate_too_high"`."""
    place: str
    """The module or the parameters; empty for the whole."""
    since: int
    """The step since which it holds."""
    evidence: Mapping[str, float]
    """The numbers that show it."""
    consequence: str
    """The consequence for the training."""
    fix: str
    """The change that mends it."""
    confidence: float
    """Certainty from 0 to 1; a healthy training has no finding above one half."""
    line: str = ""
    """File and line of the user's call that it is about: of `backward` or `step`."""

    def __str__(self) -> str:
        at = f" at `{self.place}`" if self.place else ""
        shown = ", ".join(f"{name} {value:.4g}" for name, value in self.evidence.items())
        line = f" [{self.line}]" if self.line else ""
        text = f"{self.kind.replace('_', ' ')}{at} since step {self.since}: {self.consequence} ({shown})"
        return f"{text}; {self.fix} [{100 * self.confidence:.0f} % sure]{line}"
