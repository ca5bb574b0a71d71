"""Runs models on the samples of ops and compares; the last line counts."""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)
KINDS = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "bool": np.bool_}


def array(row):
    kind, shape, data = row
    data = [float(x) for x in data] if kind != "i64" else data
    return np.array(data).astype(KINDS[kind]).reshape(shape)


bad, seen, missing = [], {}, set()
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    name = f"{row['name']}: {row['note']}"
    try:
        model = onnx.load_from_string(bytes.fromhex(row["model"]))
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        session = ort.InferenceSession(model.SerializeToString())
        feeds = {i.name: array(x) for i, x in zip(session.get_inputs(), map(list, row["inputs"]))}
        taken = {f"x{i}": array(x) for i, x in enumerate(row["inputs"])}
        out = session.run(None, {k: taken[k] for k in feeds})
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e):
            missing.add(row["name"] + ": " + str(e).split("Could not find an implementation for")[-1][:60])
            continue
        bad.append(f"{name}: {type(e).__name__}: {str(e)[:300]}")
        continue
    assert len(out) == len(row["want"]), name
    seen[row["name"]] = seen.get(row["name"], 0) + 1
    for i, (got, want) in enumerate(zip(out, map(array, row["want"]))):
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0) if want.dtype.kind == "f" else 1
        if got.shape != want.shape or got.dtype != want.dtype:
            bad.append(f"{name}: output {i} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}")
        elif not np.allclose(got, want, rtol=1e-5, atol=1e-5 * scale, equal_nan=True):
            off = np.max(np.abs(got.astype(float) - want.astype(float)), initial=0)
            bad.append(f"{name}: output {i} is off by {off:.3g}: {got.ravel()[:4]} for {want.ravel()[:4]}")
print("\n".join(bad))
print("\n".join(f"not in this runtime: {m}" for m in sorted(missing)))
forward = [n for n in seen if not n.endswith(" backward")]
print(f"{len(forward)} ops run forward, {len(seen) - len(forward)} backward, {sum(seen.values())} samples; {len(bad)} differ")
sys.exit(1 if bad else 0)
