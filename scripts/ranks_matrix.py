"""The same bits on 1, 2, 3, 4 and 6 ranks, in every training and with every optimizer.

    python scripts/ranks_matrix.py PROGRAM [MODEL ...]

PROGRAM is a release build of `chainrule`. Each training has an average, clipping and 12 micro-batches a
step; it is run whole on every number of ranks, and once more with a stop in the middle, after which
another number of ranks goes on. A line tells of each training; the exit status is 1 if any bit differs.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (1, 2, 3, 4, 6)
MODELS = {
    "names": "train names --hidden 100 --batch 8",
    "names-transformer": "train names --model transformer --batch 4",
    "digits": "train digits --batch 8 --examples 400",
    "digits-cnn": "train digits --model cnn --batch 4 --examples 200",
    # The size of `bench gpt-small`.
    "gpt-small": "train text --layers 4 --width 128 --context 64 --batch 4 --dropout 0.1",
    "moons": "train moons --batch 16",
}
OPTIMIZERS = (
    "sgd --momentum 0.9 --lr 0.01",
    "adamw --lr 0.003",
    "adam --lr 0.003",
    "rmsprop --lr 0.001",
    "adagrad --lr 0.01",
    "lion --lr 0.0003",
)
# Bits of rounded products and those op by op are others, and the same on all ranks, too.
MORE = ("adamw --lr 0.003 --eager", "sgd --momentum 0.9 --lr 0.01 --autocast bf16")


def run(program: str, words: str, ranks: int, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(ranks):
        own = {"WORLD_SIZE": str(ranks), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CHAINRULE_TOKEN": "matrix"}
        env = {**os.environ, **(own if ranks > 1 else {})}
        started.append(subprocess.Popen([program, *words.split()], cwd=folder, env=env, stdout=subprocess.DEVNULL))
    if any([rank.wait() for rank in started]):
        raise SystemExit(f"{words}: a rank of {ranks} failed")


def bits(run_folder: Path) -> str:
    """The weights, and all else that a checkpoint holds of the state."""
    digest = hashlib.sha256((run_folder / "model.safetensors").read_bytes())
    whole = (run_folder / "last.ckpt").read_bytes()
    head = len(b"chainrule checkpoint 1\n")
    text = int.from_bytes(whole[head : head + 8], "little")
    state = whole[head + 20 + text :]
    # The order of the tensors depends on who had them: by name.
    length = int.from_bytes(state[:8], "little")
    for name, about in sorted(json.loads(state[8 : 8 + length]).items()):
        first, end = about["data_offsets"]
        digest.update(f"{name} {about['dtype']} {about['shape']}".encode())
        digest.update(state[8 + length + first : 8 + length + end])
    return digest.hexdigest()


def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    failed = 0
    for name in sys.argv[2:] or MODELS:
        for optimizer in OPTIMIZERS + MORE:
            began = time.monotonic()
            words = f"{MODELS[name]} --optimizer {optimizer} --accumulate 12 --clip 0.5 --ema 0.9 --schedule constant --eval-every 2 --quiet"
            kind = words.split()[1]
            folder = Path(tempfile.mkdtemp())
            try:
                wanted, differ = None, []
                for i, ranks in enumerate(SIZES):
                    run(program, f"{words} --steps 4 --out of{ranks}", ranks, folder)
                    got = bits(folder / f"of{ranks}")
                    wanted = wanted or got
                    if got != wanted:
                        differ.append(f"{ranks} ranks")
                    following = SIZES[-1 - i] if ranks != 3 else 2
                    run(program, f"{words} --steps 2 --out half{ranks}", ranks, folder)
                    run(program, f"train {kind} --resume half{ranks} --steps 4 --quiet", following, folder)
                    if bits(folder / f"half{ranks}") != wanted:
                        differ.append(f"{ranks}, then {following}")
            finally:
                shutil.rmtree(folder)
            failed += bool(differ)
            print(f"{name}, {optimizer}: {', '.join(differ) or 'the same bits'} ({time.monotonic() - began:.0f} s)", flush=True)
    sys.exit(failed > 0)


main()
