"""The monitor on loops with planted mistakes and on right ones, of both libraries."""

import re
import subprocess
import sys

import chainrule as cr
import pytest
from monitored import HEALTHY, PLANTED, blobs, library, net, seed
from planted_mistakes import FURTHER, FURTHER_HEALTHY, language_model, recurrent_model, sums, tokens, with_norm_and_dropout
from rarer_loops import RARER, RARER_HEALTHY
from unusual_loops import UNUSUAL, UNUSUAL_HEALTHY

PLANTED, HEALTHY = {**PLANTED, **FURTHER, **RARER, **UNUSUAL}, {**HEALTHY, **FURTHER_HEALTHY, **RARER_HEALTHY}

LIBRARIES = ["chainrule", "torch"]


@pytest.fixture(params=LIBRARIES)
def lib(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return library(request.param)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_named(lib, name):
    run, kinds = PLANTED[name]
    seed(lib)
    found = run(lib)
    assert found, "silent"
    assert found[0].confidence >= 0.5 and any(f.kind in kinds for f in found[:2]), [str(f) for f in found]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_right_loop_has_no_alarm(lib, name):
    seed(lib)
    alarms = [str(f) for f in HEALTHY[name](lib) if f.confidence > 0.5]
    assert not alarms


@pytest.mark.parametrize("name", UNUSUAL_HEALTHY)
def test_nothing_is_said_of_a_right_loop_whose_loss_does_not_simply_fall(lib, name):
    seed(lib)
    assert [str(f) for f in UNUSUAL_HEALTHY[name](lib)] == []


def trained(compiled: bool, monitored: bool, every: int = 3):
    seed(library("chainrule"))
    model = cr.nn.Sequential(cr.nn.Linear(6, 16), cr.nn.BatchNorm1d(16), cr.nn.ReLU(), cr.nn.Dropout(0.2), cr.nn.Linear(16, 3))
    optimizer = cr.optim.Adam(model.parameters(), lr=0.01)
    x, y = blobs(library("chainrule"))

    def step(x, y):
        optimizer.zero_grad()
        loss = cr.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run, losses, findings = cr.compile(step) if compiled else step, [], None

    def all_steps():
        for i in range(40):
            losses.append(run(x[32 * (i % 3) :][:32], y[32 * (i % 3) :][:32]).item())

    if monitored:
        with cr.monitor(model, optimizer, every=every) as m:
            all_steps()
        findings = m
    else:
        all_steps()
    state = {name: t.tolist() for name, t in model.state_dict().items()}
    return losses, state, findings


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_monitored_run_has_the_same_bits(compiled, every):
    plain, watched = trained(compiled, False), trained(compiled, True, every)
    assert plain[:2] == watched[:2]
    # Looks at a program are those of a program.
    assert [beside.is_usable for beside in watched[2]._beside.values()] == [True] * compiled
    assert watched[2].steps == 40 and not [f for f in watched[2].findings() if f.confidence > 0.5]


def seen_of(compiled: bool):
    """The report's data of a run that was looked at in each step."""
    import json

    seed(library("chainrule"))
    model, (x, y) = net(library("chainrule")), blobs(library("chainrule"))
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = cr.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        cr.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    run = cr.compile(step) if compiled else step
    with cr.monitor(model, optimizer, every=1) as m:
        for i in range(30):
            run(x[32 * (i % 3) :][:32], y[32 * (i % 3) :][:32])
    page = m._native.html("seen")
    return json.JSONDecoder().raw_decode(page, page.index("{", page.index("const D = ")))[0]


def numbers(x, path=""):
    """All numbers of a nest by their path."""
    if isinstance(x, dict):
        return [pair for key, value in x.items() for pair in numbers(value, f"{path}/{key}")]
    if isinstance(x, list):
        return [pair for i, value in enumerate(x) for pair in numbers(value, f"{path}/{i}")]
    return [(path, x)] if isinstance(x, (int, float)) and not isinstance(x, bool) else []


def test_a_look_at_a_program_sees_what_one_op_by_op_does():
    eager, compiled = (dict(numbers(seen_of(on))) for on in (False, True))
    # Times and memory are those of each run, and rounding may put a number into the next bin.
    both = [key for key in eager.keys() | compiled.keys() if not key.startswith("/measures") and "/histograms" not in key]
    assert len(both) > 1000 and any(key.startswith("/norms") for key in both)
    for key in both:
        # Written with four digits.
        assert compiled[key] == pytest.approx(eager[key], rel=3e-3, abs=1e-3), key


MEASURED = """
import chainrule as cr
w = cr.tensor([1.0, 1.0], requires_grad=True)
optimizer = cr.optim.SGD([w], lr=0.01)
with cr.monitor([w], optimizer, every=1) as m:
    for _ in range(40):
        optimizer.zero_grad()
        (cr.tensor([1.5, 0.25]) * w * w).sum().backward()
        optimizer.step()
print(m.measures["curvature"], m.measures["stable_curvature"], m.measures.get("noise_scale", 0.0))
"""


def test_curvature_and_noise_are_measured():
    # In a process of its own: hooks of other tests would hear of its passes, so it takes none.
    said = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    curvature, stable, noise = map(float, said.stdout.split())
    # The Hessian has 3 and 0.5 on its diagonal; gradients have no noise.
    assert curvature == pytest.approx(3.0, rel=1e-3)
    assert stable == pytest.approx(200.0)
    assert noise < 0.01


def test_hooks_of_the_user_are_called_by_their_own_passes_alone():
    w = cr.tensor([1.0, 1.0], requires_grad=True)
    calls = []
    handle = w.register_hook(lambda g: calls.append(1))
    optimizer = cr.optim.SGD([w], lr=0.01)
    with cr.monitor([w], optimizer, every=1) as m:
        for _ in range(40):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
    handle.remove()
    assert len(calls) == 40 and "curvature" not in m.measures


MODELS = {
    "text": (lambda lib: language_model(lib, causal=True), tokens),
    "recurrent": (recurrent_model, sums),
    "norm and dropout": (with_norm_and_dropout, blobs),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_monitored_loop_has_the_same_bits(lib, name):
    make, data = MODELS[name]

    def trained(monitored):
        seed(lib)
        model, (x, y) = make(lib), data(lib)
        optimizer = lib.optim.Adam(model.parameters(), lr=0.01)
        losses = []

        def all_steps():
            for i in range(25):
                optimizer.zero_grad()
                at = slice(16 * (i % 4), 16 * (i % 4) + 16)
                out, target = model(x[at]), y[at]
                loss = lib.F.mse_loss(out, target) if target.is_floating_point() else lib.F.cross_entropy(out.reshape(-1, out.shape[-1]), target.reshape(-1))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())

        if monitored:
            with lib.monitor(model, optimizer, every=1):
                all_steps()
        else:
            all_steps()
        # The random numbers that follow are the same, too.
        return losses, {key: t.tolist() for key, t in model.state_dict().items()}, lib.t.rand(3).tolist()

    assert trained(True) == trained(False)


def test_a_compiled_loop_is_watched():
    lib = library("chainrule")
    seed(lib)
    model = net(lib)
    optimizer = cr.optim.SGD(model.parameters(), lr=200.0)
    x, y = blobs(lib)

    @cr.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = cr.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    with cr.monitor(model, optimizer) as m:
        for _ in range(40):
            step(x, y)
    assert m.findings()[0].kind in ("rate_too_high", "not_finite")


def test_findings_name_variables_and_lines():
    a = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    forgotten = cr.tensor([0.5, 0.5], requires_grad=True)
    optimizer = cr.optim.SGD([a], lr=1e-3)
    with cr.monitor([a, forgotten], optimizer) as m:
        for _ in range(20):
            optimizer.zero_grad()
            (a.square().mean() + 100 * forgotten.square().mean()).backward()
            optimizer.step()
    first = m.findings()[0]
    assert (first.kind, first.place) == ("not_updated", "forgotten")
    assert re.search(r"test_monitor\.py:\d+$", first.line) and "forgotten" in str(first)


def test_all_is_as_before_after_the_block():
    model = cr.nn.Linear(2, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    backward = cr.Tensor.backward
    with cr.monitor(model, optimizer):
        assert cr.Tensor.backward is not backward
    assert cr.Tensor.backward is backward and "step" not in vars(optimizer) and not model._hooks


def test_the_report_is_one_small_file(tmp_path):
    lib = library("chainrule")
    seed(lib)
    model = net(lib)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    x, y = blobs(lib)
    with cr.monitor(model, optimizer) as m:
        for i in range(60):
            optimizer.zero_grad()
            cr.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            m.validated(1.0)
    path = tmp_path / "report.html"
    m.report(path, "a </script> title")
    text = path.read_text(encoding="utf-8")
    assert len(text) < 1_000_000 and text.count("</script>") == 1 and "0.weight" in text


def test_the_origin_of_a_nan_needs_no_record():
    x = cr.tensor([0.0, 4.0], requires_grad=True)
    # A forward value: the logarithm of 0, and what comes of it.
    text = ((x + x).log() * 0.0).sum().first_non_finite()
    assert "`log`" in text and "input 0 is 0" in text and "gradient" not in text
    # Finite values, whose backward multiplies 0 with the infinite slope of the root.
    text = cr.where(x > 1.0, x.sqrt(), x).sum().first_non_finite()
    assert "the gradient of `sqrt`" in text and "NaN" in text and "input 0, `x`, is 0" in text
    text = (x - x.detach()).square().sum().sqrt().first_non_finite()
    assert "the gradient of `sqrt`" in text and "inf" in text
    assert x.square().sum().first_non_finite() is None and x.grad is None


def test_the_norm_of_gradients_is_that_of_python():
    monitor = cr._chainrule.Monitor(1)
    parts = [cr.tensor([[3.0, 0.0], [0.0, 0.0]]).t(), cr.tensor([4.0]), cr.tensor([12.0], dtype=cr.float64)]
    assert monitor.norm(parts) == 13.0 and monitor.norm([]) == 0.0


def test_the_first_looks_are_counted_by_the_processor(monkeypatch):
    """On a busy machine a look waits for its turn, which is no reason to see less."""
    import time
    from types import SimpleNamespace

    def looks(wait: float) -> int:
        clock = SimpleNamespace(perf_counter=lambda: wait * time.perf_counter(), thread_time=time.thread_time)
        monkeypatch.setattr("chainrule._monitor.time", clock)
        lib = library("chainrule")
        seed(lib)
        model, (x, y) = net(lib), blobs(lib)
        optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
        with cr.monitor(model, optimizer) as m:
            for _ in range(60):
                optimizer.zero_grad()
                cr.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return m._native.looks()

    assert looks(100.0) >= 0.8 * looks(1.0)
