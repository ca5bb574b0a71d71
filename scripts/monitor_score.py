"""Counts how `chainrule.torch.monitor` does on described programs, each written as a model and a loop of PyTorch.

    python scripts/monitor_score.py FOLDER [--only ID,ID] [--jobs N] [--seeds 1,2] [--out FILE] [--from FILE]

FOLDER is one that `diagnosis_score.py` reads, with a `run.py` above it that knows the data, the first weights, the losses and the
scores of descriptions. Each program is trained as it is and, where it has a fix, with the fix applied; the loop is watched by hooks
and tells the monitor of its validation, if it has one. The loop is cut after 4,000 steps, as the known skills were measured.

Counted are programs that fail: those of which something is said, whose first finding names a known fault, and one of whose first
three does. Programs that work, as they are or with their fix, ought to have no finding. The skill that a run reached stands beside
each: 0 is that of the best constant answer, 1 is perfect.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from diagnosis_score import agrees, runner
from torch import nn

import chainrule as cr

Description = dict[str, Any]
STEPS = 4000

# Faults that a finding names, by its kind and by the change that it tells to make, where that is no fault's name itself.
NAMES = {
    "log_forgotten": {"loss", "output_activation"},
    "dependence": {"axis"},
    "labels": {"labels", "data"},
    "data_order": {"data_order", "validation"},
    "rate_too_high": {"lr_high"},
    "plateau": {"lr_high", "capacity"},
    "rate_too_low": {"lr_low"},
    "rate_decays": {"lr_low"},
    "too_few_steps": {"epochs_few"},
    "wrong_sign": {"lr_sign"},
    "optimizer_setting": {"optimizer"},
    "symmetric_init": {"init_constant"},
    "saturated_units": {"hidden_activation", "init_scale", "input_scale"},
    "vanishing_gradient": {"hidden_activation", "init_scale"},
    "exploding_gradient": {"init_scale"},
    # Dead units, zero weights.
    "constant_output": {"hidden_activation", "init_scale"},
    # A lower rate, other first weights, leaky ReLU.
    "dead_units": {"lr_high", "init_scale", "hidden_activation"},
    # A lower rate, or a guarded logarithm.
    "not_finite": {"lr_high", "loss_numerics"},
    "loss_rises": {"lr_high"},
    "dropout": {"regularisation"},
    "weights_vanish": {"regularisation"},
    "overfitting": {"overfitting", "regularisation"},
}

ACTIVATIONS: dict[str, Any] = {
    "relu": nn.ReLU,
    "leaky_relu": lambda: nn.LeakyReLU(0.3),
    "elu": nn.ELU,
    "selu": nn.SELU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}


class Reorder(nn.Module):
    """Channels to the front of the places, or back."""

    def __init__(self, to_front: bool) -> None:
        super().__init__()
        self.ends = (-1, 1) if to_front else (1, -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.movedim(*self.ends)


def activation(name: str | None, is_front: bool) -> list[nn.Module]:
    if name in (None, "linear"):
        return []
    return [nn.Softmax(1 if is_front else -1) if name == "softmax" else ACTIVATIONS[str(name)]()]


def placed(run: Any, layer: nn.Module, weight: torch.Tensor, spec: Description) -> nn.Module:
    with torch.no_grad():
        layer.weight.copy_(weight)  # type: ignore[operator,union-attr]
        if layer.bias is not None:
            layer.bias.copy_(run.make(layer.bias.shape, 1, 1, spec.get("bias_init", "zeros"), None))  # type: ignore[operator,union-attr]
    return layer


def model(run: Any, program: Description, seed: int) -> tuple[nn.Sequential, list[tuple[float, nn.Parameter]]]:
    """The model with its first weights, and the matrices that are held small."""
    draws = torch.Generator().manual_seed(1000 + seed)
    all: list[nn.Module] = []
    penalties: list[tuple[float, nn.Parameter]] = []
    shape, is_front = list(program["input"]), False
    for spec in program["layers"]:
        kind = spec["type"]
        axes = len(shape) - 1
        wants_front = kind in ("conv1d", "conv2d", "maxpool1d", "maxpool2d", "global_avg_pool1d")
        if axes and (wants_front or kind in ("dense", "flatten")) and wants_front != is_front:
            all.append(Reorder(wants_front))
            is_front = wants_front
        if kind == "dense":
            units = spec["units"]
            weight = run.make((shape[-1], units), shape[-1], units, spec["init"], draws)
            layer = placed(run, nn.Linear(shape[-1], units, spec.get("bias", True)), weight.T, spec)
            layer.requires_grad_(spec.get("trainable", True))
            shape[-1] = units
        elif kind in ("conv1d", "conv2d"):
            size, filters, channels = spec["kernel"], spec["filters"], shape[-1]
            area = size**axes
            weight = run.make((filters, channels, *[size] * axes), channels * area, filters * area, spec["init"], draws)
            is_same = spec["padding"] == "same"
            if is_same:
                ends = ((size - 1) // 2, size // 2) * axes
                all.append(nn.ConstantPad1d(ends, 0.0) if axes == 1 else nn.ZeroPad2d(ends))  # type: ignore[arg-type]
            convolution = nn.Conv1d if axes == 1 else nn.Conv2d
            stride = spec.get("stride", 1)
            layer = placed(run, convolution(channels, filters, size, stride), weight, spec)
            shape = [-(-(s if is_same else s - size + 1) // stride) for s in shape[:-1]] + [filters]
        elif kind in ("maxpool1d", "maxpool2d"):
            size, stride, is_same = spec["size"], spec["stride"], spec.get("padding") == "same"
            layer = (nn.MaxPool1d if axes == 1 else nn.MaxPool2d)(size, stride, ceil_mode=is_same)
            shape = [-(-s // stride) if is_same else (s - size) // stride + 1 for s in shape[:-1]] + [shape[-1]]
        elif kind == "global_avg_pool1d":
            layer = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten())
            shape, is_front = [shape[-1]], False
        elif kind == "flatten":
            layer, shape = nn.Flatten(), [math.prod(shape)]
        elif kind == "dropout":
            layer = nn.Dropout(spec["rate"])
        elif kind == "batchnorm":
            norm = nn.BatchNorm2d if axes == 2 else nn.BatchNorm1d
            layer = norm(shape[-1], eps=spec["eps"], momentum=1 - spec["momentum"])
        else:
            layer = nn.Identity()
        if kind != "activation":
            all.append(layer)
        if spec.get("l2"):
            penalties.append((spec["l2"], layer.weight))  # type: ignore[arg-type]
        all += activation(spec.get("activation"), is_front)
    return nn.Sequential(*all), penalties


def optimizer(spec: Description, parameters: Any) -> torch.optim.Optimizer:
    name, lr = spec["name"], spec["lr"]
    if name == "sgd":
        momentum = spec.get("momentum", 0.0)
        return torch.optim.SGD(parameters, lr, momentum, nesterov=bool(momentum and spec.get("nesterov")))
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, lr, spec["rho"], spec["eps"])
    kind = torch.optim.NAdam if name == "nadam" else torch.optim.Adam
    betas = (spec["beta1"], spec["beta2"])
    # A rate below zero is refused when it is given, and not when it is set.
    made = kind(parameters, abs(lr), betas, spec["eps"])
    made.param_groups[0]["lr"] = lr
    return made


def batches(n: int, size: int, epochs: int, is_shuffled: bool, seed: int) -> Iterator[tuple[int, torch.Tensor]]:
    draws = torch.Generator().manual_seed(7 + seed)
    for epoch in range(epochs):
        order = torch.randperm(n, generator=draws) if is_shuffled else torch.arange(n)
        for part in order.split(size):
            yield epoch, part


def watched(run: Any, program: Description, seed: int) -> Description:
    """Trains under the monitor: what it says, and the skill."""
    torch.manual_seed(seed)
    x, y, xv, yv = run.raw(program["data"]["numpy"], seed)
    truth = run.raw(program["score_data"], seed)[:2] if program.get("score_data") else (x, y)

    def tensors(x: Any, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = run.prep(program, x, y)
        return torch.tensor(x, dtype=torch.float32), run.tens(y)

    (x, y), (xs, ys) = tensors(x, y), tensors(*truth)
    held = None if xv is None else tensors(xv, yv)
    net, penalties = model(run, program, seed)
    steps = optimizer(program["optimizer"], net.parameters())
    decay = program["optimizer"].get("decay", 0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(steps, lambda step: 1 / (1 + decay * step)) if decay else None
    name, began, done, last = program["loss"]["name"], time.monotonic(), 0, 0
    with cr.torch.monitor(net, steps) as m:
        for epoch, part in batches(len(x), program["batch"], program["epochs"], program.get("shuffle", True), seed):
            if epoch != last and held is not None:
                m.validated(validation(run, name, net, held))
            last = epoch
            steps.zero_grad()
            loss = run.loss_fn(name, net(x[part]), y[part])
            for weight, matrix in penalties:
                loss = loss + weight * (matrix * matrix).sum()
            loss.backward()
            steps.step()
            if schedule is not None:
                schedule.step()
            done += 1
            if done == STEPS or (done > 4 and not math.isfinite(loss.item())):
                break
        if held is not None:
            m.validated(validation(run, name, net, held))
    net.eval()
    with torch.no_grad():
        outputs = torch.cat([net(part) for part in xs.split(500)])
    found = [{"kind": f.kind, "place": f.place, "confidence": f.confidence, "evidence": f.evidence} for f in m.findings()]
    skill = run.score(program, outputs, ys)[1]
    return {"skill": skill, "steps": done, "seconds": round(time.monotonic() - began, 2), "found": found}


def validation(run: Any, name: str, net: nn.Module, held: tuple[torch.Tensor, torch.Tensor]) -> float:
    net.eval()
    with torch.no_grad():
        loss = run.loss_fn(name, net(held[0]), held[1]).item()
    net.train()
    return float(loss)


def task(folder: Path, stem: str, is_fixed: bool, seed: int) -> Description:
    """One run in a process of the pool."""
    torch.set_num_threads(1)
    run: Any = runner(folder)
    program = json.loads((folder / f"{stem}.json").read_text())
    if is_fixed:
        program = run.apply(program, program["fix"])
    try:
        out = watched(run, program, seed)
    except Exception as error:  # noqa: BLE001 -- one that does not run is told, and the others go on
        out = {"error": repr(error)[:200], "found": [], "skill": math.nan, "steps": 0, "seconds": 0.0}
    return {"id": stem, "fixed": is_fixed, "seed": seed, **out}


def report(programs: dict[str, Description], runs: list[Description]) -> None:
    n = flagged = first = three = right = alarms = sure = 0
    for one in sorted(runs, key=lambda one: (one["fixed"], one["id"], one["seed"])):
        program, found = programs[one["id"]], one["found"]
        said = " ".join(f"{f['kind']} {f['confidence']:.2f}" for f in found[:3]) or "nothing"
        head = f"{one['id']:<22} {one['seed']:>3} skill {one['skill']:5.2f} {one['steps']:>5} steps"
        if one["fixed"] or program["effect"] != "effective":
            right += 1
            alarms += bool(found)
            sure += any(f["confidence"] > 0.5 for f in found)
            if found or "error" in one:
                which = "with its fix" if one["fixed"] else program["effect"]
                print(f"{head} ALARM ({which}): {said} {one.get('error', '')}")
            continue
        faults = [f["kind"] for f in program["faults"]]
        hits = [any(agrees(kind, faults) for kind in NAMES.get(f["kind"], {f["kind"]})) for f in found]
        n += 1
        flagged += bool(found)
        first += any(hits[:1])
        three += any(hits[:3])
        rank = "first" if any(hits[:1]) else "three" if any(hits[:3]) else "flagged" if found else "MISSED"
        print(f"{head} {rank:<8}: {said} | faults {' '.join(faults)} {one.get('error', '')}")
    of = [f"{count} ({100 * count / max(n, 1):.0f} %)" for count in (flagged, first, three)]
    print(f"of {n} runs that fail flagged {of[0]}, the first cause right {of[1]}, one of three {of[2]}")
    print(f"of {right} that work alarms {alarms} ({100 * alarms / max(right, 1):.0f} %), above one half {sure}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--out", type=Path, help="a line of JSON for each run")
    parser.add_argument("--from", dest="known", type=Path, help="count the runs of this file")
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    paths = [p for p in sorted(args.folder.glob("*.json")) if not only or p.stem in only]
    programs = {p.stem: json.loads(p.read_text()) for p in paths}
    if args.known:
        lines = map(json.loads, filter(str.strip, args.known.read_text().splitlines()))
        runs = [line for line in lines if line["id"] in programs]
    else:
        seeds = [int(seed) for seed in args.seeds.split(",")]
        whats = [(stem, is_fixed) for is_fixed in (False, True) for stem in programs if not is_fixed or programs[stem].get("fix")]
        with ProcessPoolExecutor(args.jobs) as pool:
            runs = [job.result() for job in [pool.submit(task, args.folder, *what, seed) for what in whats for seed in seeds]]
    if args.out:
        args.out.write_text("".join(json.dumps(one) + "\n" for one in runs))
    report(programs, runs)


if __name__ == "__main__":
    sys.exit(main())
