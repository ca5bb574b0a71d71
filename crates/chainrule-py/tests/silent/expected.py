"""Writes `expected.json`: what PyTorch gives for the programs of this folder. Run it where torch is
installed.
"""

import json

import torch
from running import HERE, outcome, programs

found = {name: outcome(program, torch, lambda f: f) for name, program in programs()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
(HERE / "expected.json").write_text("{\n" + lines + "\n}\n")
