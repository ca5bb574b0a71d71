"""Things that people look at: pictures, notebooks, progress."""

import chainrule as cr
import pytest


def trained():
    w = cr.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True).named("w")
    loss = (w * w).sum()
    loss.backward()
    return w, loss


def test_pictures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    w, _ = trained()
    drawn = [
        cr.plots.loss_curve([3.0, 2.0, 1.5, 1.2], window=2, log=True),
        cr.plots.histograms({"w": w}, bins=5),
        cr.plots.histograms({"w": w}, gradients=True, ax=plt.subplots()[1]),
        cr.plots.heat_map(w, gradient=True),
    ]
    for i, ax in enumerate(drawn):
        ax.figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="gradient"):
        cr.plots.heat_map(cr.zeros(2, 2), gradient=True)
    plt.close("all")


def test_the_graph(tmp_path):
    w = cr.tensor([1.0], requires_grad=True)
    svg = cr.plots.graph((w * 2).sum(), str(tmp_path / "graph.svg"))
    assert svg.startswith("<svg") and (tmp_path / "graph.svg").read_text() == svg


def test_notebooks():
    w, _ = trained()
    shown = w._repr_html_()
    assert "<b>w</b>" in shown and "2 × 2" in shown and "float32" in shown and "parameter" in shown
    assert "gradient, largest 6" in shown and "rgb(" in shown
    assert "made by <b>mul</b>" in (w * 2)._repr_html_()
    assert "one element" in cr.tensor(1.0)._repr_html_()


def test_progress(capsys):
    seen = []
    for i in (bar := cr.progress.track(range(5))):
        bar.show(loss=1.0 / (i + 1))
        seen.append(i)
    assert seen == list(range(5))
