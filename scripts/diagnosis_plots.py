"""Pictures and figures of the page on diagnosis: trainings with one planted cause each.

    python scripts/diagnosis_plots.py [FOLDER [REPORTS [MENDED]]]

Runs `cr.diagnose` on each, checks that the first cause is the planted one, and writes into the folder (docs/src/images) the
loss as it is beside the loss with the edits, as `cause-KIND.svg`. Prints a line of figures for each.

With REPORTS, a file of last lines of `chainrule diagnose PROGRAM.json --json`, the pictures are those of described programs
(`PROGRAMS` below, of crates/chainrule-diagnose/programs), and nothing else is run. MENDED are the same of `--fix`, for `MENDED`
below: causes that no single change of a training mends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np

nn = cr.nn
WIDE, HIGH, EDGE = 420, 180, 34
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)).astype("float32")
Z = (X[:, 0] - X[:, 1] + 0.3 * X[:, 2]).astype("float32")
CLASSES = (Z > 0).astype("int64") + (Z > 1)
RING = (np.square(X[:, :2]).sum(1) > 1.2).astype("float32")[:, None]


def net(outputs: int, *end: Any, inputs: int = 4) -> Any:
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs), *end)


def equal() -> Any:
    model = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
    with cr.no_grad():
        for p in model.parameters():
            p.fill_(0.1)
    return model


def deep() -> Any:
    layers = [layer for _ in range(9) for layer in (nn.Linear(8, 8), nn.Sigmoid())]
    return nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), *layers, nn.Linear(8, 3))


def narrow(width: int = 1) -> Any:
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))


def adam(lr: float = 0.01) -> Any:
    return lambda p: cr.optim.Adam(p, lr=lr)


def sgd(lr: float) -> Any:
    return lambda p: cr.optim.SGD(p, lr=lr)


def squares(out: Any, target: Any) -> Any:
    return ((out - target) ** 2).mean()


YES = (Z > 0).astype("float32")[:, None]
PLANTED: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "output_activation": (lambda: net(1, nn.Softmax(-1)), (X, YES), F.binary_cross_entropy, adam(), {}),
    "loss_broadcast": (lambda: net(1), (X, Z), squares, adam(), {}),
    "lr_high": (lambda: net(1), (X, Z[:, None]), F.mse_loss, sgd(3.0), {}),
    "lr_low": (lambda: net(3), (X, CLASSES), F.cross_entropy, adam(1e-6), {}),
    "input_scale": (lambda: net(3), (2000 + 300 * X, CLASSES), F.cross_entropy, adam(), {}),
    "target_scale": (lambda: net(1), (X, 5000 + 900 * Z[:, None]), F.mse_loss, adam(), {}),
    "init_constant": (equal, (X[:, :2], RING), F.binary_cross_entropy_with_logits, adam(0.02), {}),
    "hidden_activation": (deep, (X, CLASSES), F.cross_entropy, adam(), {}),
    "capacity": (narrow, (X[:, :2], RING), F.binary_cross_entropy_with_logits, adam(0.02), {}),
    "clipping": (lambda: net(3), (X, CLASSES), F.cross_entropy, sgd(0.3), {"clip": 1e-5}),
    "labels": (lambda: net(3), (X, RNG.permutation(CLASSES)), F.cross_entropy, adam(), {"runs": 25}),
}


# Causes that a described program shows better.
PROGRAMS = {
    "init_scale": "wave-huge-init",
    "lr_decay": "rings-decay",
    "lr_sign": "rings-uphill",
    "optimizer": "wave-betas",
    "regularisation": "bits-l2",
    "epochs_few": "bars-once",
    "loss": "blobs-mae-softmax",
    "output_units": "blobs-one-number",
    "loss_reduction": "sine-sum",
    "loss_numerics": "moons-raw-log",
    "axis": "blobs-axis",
    "batch_size": "moons-one-row",
    "architecture": "sine-dropout-end",
    "overfitting": "noise-by-heart",
    "data_order": "blobs-sorted",
}
# Causes of which the picture is of the program as it is, and with the edits of its own `fix`, if it has one.
MENDED = {
    "data": "noise-targets",
    "validation": "blobs-leak",
    "unbalanced": "rare-class",
    "plateau": "sine-plateau",
}


def smooth(losses: list[float]) -> list[float]:
    """Means of at most 120 parts."""
    parts = np.array_split(np.asarray(losses), min(120, len(losses)))
    return [float(np.mean(p)) for p in parts]


def drawn(curves: list[tuple[str, list[float], str]], title: str) -> str:
    """The curves as SVG; a logarithmic scale where losses differ a hundred times."""
    known = np.concatenate([np.asarray(c[1]) for c in curves])
    known = known[np.isfinite(known)]
    low, high = float(known.min()), float(known.max())
    log = low > 0 and high > 100 * low
    scale = (lambda v: np.log(np.maximum(v, low))) if log else (lambda v: np.asarray(v, dtype="float64"))
    bottom, top = float(scale(low)), float(scale(high)) + 1e-12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" font-family="sans-serif" font-size="11">']
    out.append(f'<rect width="{WIDE}" height="{HIGH}" fill="white"/><text x="{EDGE}" y="14" fill="#333">{title}</text>')
    out.append(f'<path d="M{EDGE} 22V{HIGH - 22}H{WIDE - 8}" fill="none" stroke="#999"/>')
    out.append(f'<text x="2" y="30" fill="#333">{high:.3g}</text><text x="2" y="{HIGH - 24}" fill="#333">{low:.2g}</text>')
    for i, (name, losses, colour) in enumerate(curves):
        at = [(EDGE + (WIDE - EDGE - 10) * k / max(len(losses) - 1, 1), v) for k, v in enumerate(losses) if np.isfinite(v)]
        points = " ".join(f"{x:.1f},{HIGH - 22 - (HIGH - 46) * (float(scale(v)) - bottom) / (top - bottom):.1f}" for x, v in at)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        out.append(f'<text x="{EDGE + 8 + 190 * i}" y="{HIGH - 6}" fill="{colour}">{name}</text>')
    return "\n".join([*out, "</svg>\n"])


def read(reports: Path) -> dict[str, Any]:
    return {r["id"]: r for r in map(json.loads, reports.read_text(encoding="utf-8").splitlines())}


def of_mended(folder: Path, reports: Path, mended: Path) -> None:
    """The pictures of programs beside those with their own edits."""
    known, again = read(reports), read(mended)
    for kind, name in MENDED.items():
        both = [known[name], *([again[name]] if name in again else [])]
        first = both[0]["causes"][0] if both[0]["causes"] else {"kind": "nothing", "evidence": ""}
        print(f"{kind}: {name}: skills {[round(r['skill'], 2) for r in both]}; {first['kind']}: {first['evidence']}")
        lines = [(text, smooth(r["curves"][0]["losses"]), c) for r, text, c in zip(both, ("as it is", "mended"), ("#d62728", "#1f77b4"))]
        (folder / f"cause-{kind}.svg").write_text(drawn(lines, f"loss by step: {kind}"), encoding="utf-8")


def of_programs(folder: Path, reports: Path) -> None:
    """The pictures of described programs, from their reports."""
    known = read(reports)
    for kind, name in PROGRAMS.items():
        if name not in known:
            continue
        report = known[name]
        first = report["causes"][0]
        print(f"{kind}: {name}: skill {report['skill']:.2f}, after {report['after']:.2f}; {first['kind']}: {first['evidence']}")
        if first["kind"] != kind:
            raise SystemExit(f"{name}: the report names {first['kind']} first, not {kind}")
        chosen = report["curves"][:2]
        lines = [(c["text"] or "as it is", c["losses"], "#1f77b4" if c["changes"] else "#d62728") for c in chosen]
        losses = [[np.nan if v is None else v for v in c[1]] for c in lines]
        lines = [(c[0], v, c[2]) for c, v in zip(lines, losses, strict=True)]
        (folder / f"cause-{kind}.svg").write_text(drawn(lines, f"loss by step: {kind}"), encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/src/images")
    if len(sys.argv) > 2:
        of_programs(folder, Path(sys.argv[2]))
        if len(sys.argv) > 3:
            of_mended(folder, Path(sys.argv[2]), Path(sys.argv[3]))
        return
    for kind, (make, data, loss, optimizer, more) in PLANTED.items():
        report = cr.diagnose(make, data, loss, optimizer, seconds=300, **more)
        first = report.causes[0] if report.causes else None
        print(f"{kind}: skill {report.skill:.2f}, after {report.after:.2f}, {report.runs} runs; {first.evidence if first else report}")
        print(f"    edit: {'; '.join(first.edit) if first else ''}")
        if first is None or first.kind != kind:
            raise SystemExit(f"{kind}: the report names {first.kind if first else 'nothing'} first")
        chosen = [c for c in report.curves if not c.changes or sorted(c.changes) == sorted(report.changes)]
        if kind == "labels":
            chosen = [c for c in report.curves if c.changes in ([], ["shuffled_targets"])]
        lines = [(c.text or "as it is", smooth(c.losses), "#1f77b4" if c.changes else "#d62728") for c in chosen]
        (folder / f"cause-{kind}.svg").write_text(drawn(lines, f"loss by step: {kind}"), encoding="utf-8")


if __name__ == "__main__":
    main()
