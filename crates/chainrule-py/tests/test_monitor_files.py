"""Files that a monitored loop writes, read back by others, and callbacks."""

import shutil
import subprocess

import chainrule as cr
import pytest
from monitored import blobs, library, net, seed


def watched(steps=60, lr=0.1):
    lib = library("chainrule")
    seed(lib)
    model = net(lib)
    optimizer = cr.optim.SGD(model.parameters(), lr=lr)
    x, y = blobs(lib)
    with cr.monitor(model, optimizer) as m:
        for i in range(steps):
            optimizer.zero_grad()
            loss = cr.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if i % 10 == 9:
                m.validated(loss.item() + 0.5)
    return model, m, (x, y)


def test_tensorboard_reads_the_events_back(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model, m, (x, y) = watched(lr=300.0)
    path = m.tensorboard(tmp_path, graph=cr.nn.functional.cross_entropy(model(x), y))
    assert path.parent == tmp_path
    events = accumulator.EventAccumulator(str(path), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    assert {"loss/training", "loss/validation", "lr", "gradients/norm"} <= set(tags["scalars"])
    rates = events.Scalars("lr")
    assert [e.step for e in rates] == list(range(1, 61)) and {e.value for e in rates} == {300.0}
    assert [e.step for e in events.Scalars("loss/validation")] == [10, 20, 30, 40, 50, 60]
    assert {"weights/0.weight", "gradients/2.bias", "outputs/1"} <= set(tags["histograms"])
    first = events.Histograms("weights/0.weight")[0].histogram_value
    assert first.num == 16 * 6 and sum(first.bucket) == first.num and first.min < 0 < first.max
    # Six uniform inputs: a bound of 1 / sqrt(6), and a variance of a third of its square.
    assert abs(first.sum_squares / first.num - 1 / 18) < 0.02
    assert any(tag.startswith("findings/") for tag in tags["tensors"])
    nodes = {node.name: node for node in events.Graph().node}
    assert any(node.op == "parameter" for node in nodes.values())
    assert all(of in nodes for node in nodes.values() for of in node.input)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    _, m, _ = watched(steps=3)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="."):
        m.tensorboard(tmp_path / "file")


def test_callbacks_are_called_in_lightnings_order():
    seen = []

    class Told(cr.train.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_") or name in ("setup", "teardown"):
                return lambda trainer, model, *args: seen.append((name, trainer.global_step)) and None
            return super().__getattribute__(name)

    class Stop(cr.train.Callback):
        def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
            assert outputs == trainer.callback_metrics["loss"] and len(batch) == 2
            trainer.should_stop = batch_idx == 3

    model = cr.nn.Linear(2, 1)
    x = cr.randn(40, 2)
    history = cr.train.fit(
        model, cr.nn.functional.mse_loss, cr.optim.SGD(model.parameters(), lr=0.1), cr.train.batches(x, x[:, :1], size=8),
        steps=10, evaluate=lambda: {"loss": 0.5}, evaluate_every=2, callbacks=[Told(), Stop()], progress=False,
    )  # fmt: skip
    assert history.stopped and len(history.losses) == 4
    step = ["on_train_batch_start", "on_train_batch_end"]
    validation = ["on_validation_start", "on_validation_end"]
    expected = ["setup", "on_fit_start", "on_train_start", *step, *step, *validation, *step, *step, *validation, "on_train_end", "on_fit_end", "teardown"]
    assert [name for name, _ in seen] == expected
    assert seen[3] == ("on_train_batch_start", 0) and seen[-1] == ("teardown", 4)


def test_an_exception_reaches_the_callbacks():
    seen = []

    class Told(cr.train.Callback):
        def on_train_batch_start(self, trainer, model, batch, batch_idx):
            if batch_idx == 2:
                raise ZeroDivisionError("planted")

        def on_exception(self, trainer, model, exception):
            seen.append(str(exception))

        def teardown(self, trainer, model, stage):
            seen.append(stage)

    model = cr.nn.Linear(2, 1)
    x = cr.randn(40, 2)
    data = cr.train.batches(x, x[:, :1], size=8)
    with pytest.raises(ZeroDivisionError, match="planted"):
        cr.train.fit(model, cr.nn.functional.mse_loss, cr.optim.SGD(model.parameters(), lr=0.1), data, steps=9, callbacks=[Told()], progress=False)
    assert seen == ["planted", "fit"]


def test_chromium_draws_the_report(tmp_path):
    browser = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium")
    _, m, _ = watched(steps=80, lr=0.1)
    path, picture = tmp_path / "report.html", tmp_path / "report.png"
    m.report(path, "Clouds")
    options = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,2000"]
    # The script marks what it draws, so a page that broke half-way shows less.
    dom = subprocess.run([*options, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "Nothing is known to be wrong." in dom and "80 steps, 4 parameters" in dom
    assert '<table id="confusion">' in dom and dom.count("<option") >= 4 + 4 + 6 and "red is exactly zero" in dom
    subprocess.run([*options, f"--screenshot={picture}", path.as_uri()], capture_output=True, timeout=120, check=True)
    # A blank page of this size is far below.
    assert picture.stat().st_size > 40_000
