"""The speed of two ranks of one thread beside one process with two threads, in turns.

    python scripts/ranks_speed.py PROGRAM [ROUNDS [MODEL ...]]

PROGRAM is a release build of `chainrule`. Each run is done for two numbers of steps; their difference
leaves out the start. The least time of each way counts, since others may use the machine too; beside it
stands the least time of all cores together.
"""

import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = {
    "mnist": "train digits --batch 512 --examples 4000 --accumulate 2 --eval-every 1000000 --quiet --steps",
    # Three million weights for few examples: the exchange is the larger part.
    "mnist-64": "train digits --batch 64 --examples 2000 --accumulate 2 --eval-every 1000000 --quiet --steps",
    "gpt-small": "train text --layers 4 --width 128 --context 64 --batch 16 --accumulate 2 --eval-every 1000000 --quiet --steps",
}
STEPS = {"mnist": (10, 40), "mnist-64": (20, 120), "gpt-small": (2, 12)}


def used() -> float:
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def seconds(program: str, words: str, steps: int, ranks: int) -> tuple[float, float]:
    """The time of a run, and that of all cores together."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = f"{words} {steps} --threads {2 // ranks} --out {Path(folder) / 'run'}"
        began, before = time.monotonic(), used()
        started = []
        for rank in range(ranks):
            own = {"WORLD_SIZE": str(ranks), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CHAINRULE_TOKEN": "speed"}
            env = {**os.environ, **(own if ranks > 1 else {})}
            started.append(subprocess.Popen([program, *words.split()], env=env, stdout=subprocess.DEVNULL))
        if any(rank.wait() for rank in started):
            raise SystemExit(f"{words}: a rank failed")
        return time.monotonic() - began, used() - before


def main() -> None:
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for name in sys.argv[3:] or RUNS:
        few, many = STEPS[name]
        least: dict[tuple[int, int], list[float]] = {}
        for _ in range(rounds):
            for ranks in (1, 2):
                for steps in (few, many):
                    took = seconds(program, RUNS[name], steps, ranks)
                    before = least.get((ranks, steps), took)
                    least[ranks, steps] = [min(pair) for pair in zip(took, before)]
        wall, cores = ({n: (least[n, many][i] - least[n, few][i]) / (many - few) * 1e3 for n in (1, 2)} for i in (0, 1))
        print(f"{name}: {wall[1]:.2f} ms a step in one process, {wall[2]:.2f} ms on two ranks: {wall[1] / wall[2]:.2f}", flush=True)
        print(f"    all cores: {cores[1]:.2f} ms, {cores[2]:.2f} ms: {cores[1] / cores[2]:.2f}", flush=True)


main()
