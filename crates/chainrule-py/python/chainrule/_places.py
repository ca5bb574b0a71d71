"""Texts of the library name places in its own source, which say nothing to somebody who writes
Python.
"""

from __future__ import annotations

import re

_PLACE = r"[\w./+-]*\w\.rs:\d+(?::\d+)?"
_ANY = re.compile(rf" \({_PLACE}\)|,? +{_PLACE}(?=\)|$)", re.MULTILINE)


def without_places(text: str) -> str:
    """The text without places in Rust files."""
    return _ANY.sub("", text)
