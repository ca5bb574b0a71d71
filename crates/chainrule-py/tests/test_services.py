"""The callbacks for services of experiments that the book has, in their modes without a network."""

import re
import sys
from pathlib import Path

import chainrule as cr
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "src" / "monitor.md"


def callbacks(**names):
    """The classes as they stand in the book."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (text,) = [block for block in blocks if "class Wandb" in block]
    scope = {"cr": cr, **names}
    exec(compile(text, str(PAGE), "exec"), scope)
    return scope


def trained(callback):
    """Twelve steps; their losses."""
    cr.manual_seed(0)
    x = cr.randn(96, 3)
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    history = cr.train.fit(model, cr.nn.functional.mse_loss, optimizer, cr.train.batches(x, x.sum(1, keepdim=True), size=8), steps=12, callbacks=[callback], progress=False)
    assert len(history.losses) == 12
    return history.losses


def records(log):
    """The records of a file of wandb, which are those of a log of LevelDB after seven bytes: blocks
    of 32 KiB with parts, each with a checksum, its length and whether it is whole, first or last.
    """
    at, begun = 7, b""
    while at + 7 <= len(log):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        begun += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield begun
            begun = b""


def test_wandb_offline_has_each_loss(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    from wandb.proto import wandb_internal_pb2

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    losses = trained(callbacks(wandb=wandb)["Wandb"]())
    # Its process has written all when it ends.
    wandb.teardown()
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    written = []
    for data in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        row = {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}
        written += [float(row["loss"])] if "loss" in row else []
    assert written == pytest.approx(losses)


@pytest.mark.parametrize("store", ["sqlite:///runs.db", "file"])
def test_mlflow_has_each_loss(tmp_path, monkeypatch, store):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    if store.startswith("sqlite"):
        pytest.importorskip("sqlalchemy", reason="MLflow's store in SQLite needs sqlalchemy, which is not installed")
    monkeypatch.chdir(tmp_path)
    # Newer versions keep the store in files for those who ask for it.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    if store == "file":
        store = (tmp_path / "runs").as_uri()
        given = mlflow.set_tracking_uri
        monkeypatch.setattr(mlflow, "set_tracking_uri", lambda _: given(store))
    losses = trained(callbacks(mlflow=mlflow)["Mlflow"]())
    client = mlflow.MlflowClient(store)
    (run,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    written = sorted(client.get_metric_history(run.info.run_id, "loss"), key=lambda metric: metric.step)
    assert [metric.step for metric in written] == list(range(12))
    assert [metric.value for metric in written] == pytest.approx(losses)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-rs"]))
