import inspect
import json
import sys

import numpy as np

LIBRARY = sys.argv[1]


def given(x):
    """An array as the library has it."""
    if LIBRARY == "torch":
        return torch.from_numpy(np.array(x)) if x.ndim else torch.from_numpy(x.reshape(1))[0]
    return jnp.asarray(x) if LIBRARY == "jax" else x


def tensor(t):
    return np.array(t["data"], dtype=np.dtype(t["dtype"])).reshape(t["shape"])


def difference(got, want, tolerance):
    got = np.asarray(got)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype} {got.shape} for {want.dtype} {want.shape}"
    if want.dtype.kind in "ib":
        return None if np.array_equal(got, want) else f"{got.tolist()} for {want.tolist()}"
    odd = ~np.isfinite(want)
    same = np.array_equal(got[odd], want[odd], equal_nan=True) and np.isfinite(got[~odd]).all()
    g, w = got[~odd].astype(np.float64), want[~odd].astype(np.float64)
    error, norm = np.linalg.norm(g - w), np.linalg.norm(w)
    # A result that all but cancels has the rounding of the numbers of order one that it was made
    # of.
    if same and error <= tolerance * max(norm, 1e-3 if tolerance < 1e-8 else 5e-2):
        return None
    return f"error {error} at norm {norm}: {got.tolist()} for {want.tolist()}"[:300]


def check(case):
    space = {"__name__": "script"}
    exec(compile(case["script"], case["name"], "exec"), space)
    arguments = {k: given(tensor(t)) for k, t in case["arguments"].items()}
    if "rng" in inspect.signature(space["step"]).parameters:
        arguments["rng"] = np.random.default_rng(0)
        arguments["draws"] = {k: given(tensor(t)) for k, t in case["draws"].items()}
    outputs, new = space["step"](**arguments)
    if len(outputs) != len(case["outputs"]) or set(new) != set(case["new"]):
        return "other results"
    pairs = [(f"output {i}", g, w) for i, (g, w) in enumerate(zip(outputs, case["outputs"]))]
    pairs += [(name, new[name], want) for name, want in case["new"].items()]
    for what, got, want in pairs:
        why = difference(got, tensor(want), case["tolerance"])
        if why:
            return f"{what}: {why}"


np.seterr(all="ignore")
if LIBRARY == "torch":
    import torch

    torch.set_num_threads(1)
if LIBRARY == "jax":
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
for line in sys.stdin:
    case = json.loads(line)
    try:
        why = check(case)
    except Exception as e:
        why = f"{type(e).__name__}: {e}"
    if why:
        print(f"{case['name']}: {why}")
