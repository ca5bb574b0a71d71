"""Scripts that the studio runs: their first backward pass, their training, and refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from test_studio import Client

TRAINING = """
    import chainrule as cr
    from chainrule import nn

    cr.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = cr.optim.SGD(model.parameters(), lr=0.05)
    x, y = cr.randn(8, 3), cr.randint(0, 2, (8,))

    def step():
        optimizer.zero_grad()
        shifted = model(x) + 0.5
        loss = nn.functional.cross_entropy(shifted, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    print("before")
    for i in range(40):
        last = step()
    print("losses end at", round(last, 4))
"""


def written(folder: Path, text: str) -> str:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def run(path: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "chainrule._studio_file", path, *words], capture_output=True, text=True, timeout=120)


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def shown(path: str) -> Any:
    done = run(path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_script_is_shown_at_its_first_backward_pass(tmp_path: Path) -> None:
    done = run(written(tmp_path, TRAINING), "--json")
    assert done.returncode == 0 and "before" in done.stderr and "losses" not in done.stderr
    page = json.loads(done.stdout)
    nodes = {node["name"]: node for node in page["graph"]["nodes"] if node["name"]}
    assert {"model.0.weight", "model.2.bias", "shifted", "loss", "y"} <= nodes.keys()
    lines = page["graph"]["sources"][0]["lines"]
    assert "shifted = model(x)" in lines[nodes["shifted"]["source"]["line"] - 1]
    # Intermediate values are kept, so that the whole program is known.
    program = page["program"]
    assert program["unknown"] == [] and program["fused"]["difference"]["parts"] is False
    assert any(line["phase"] == "backward" for line in program["before"]["lines"])
    script = written(tmp_path, TRAINING.replace("for i in range(40):", "for i in range(1):") + "\n    print([p.grad.norm().item() for p in model.parameters()])\n")
    due = eval(subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()[-1])
    names = ["model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]
    steps = {step["node"]: step["incoming"]["data"] for step in page["steps"]}
    found = [sum(x * x for x in steps[nodes[name]["id"]]) ** 0.5 for name in names]
    assert found == pytest.approx(due, rel=1e-5)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_training_goes_on_beside_its_page(tmp_path: Path, is_compiled: bool) -> None:
    text = TRAINING.replace("\n    print(\"before\")", "\n    step = cr.compile(step)" if is_compiled else "")
    text = text.replace("return loss.item()", "return loss").replace("round(last, 4)", "round(last.item(), 4)")
    path = written(tmp_path, text)
    alone = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=True).stdout
    command = [sys.executable, "-u", "-m", "chainrule._studio_file", path, "--no-open"]
    # Jobs in the background of a shell ignore Ctrl-C, and so would the script.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            url = process.stdout.readline().removeprefix("the studio is at ").strip()
            assert url.startswith("http://127.0.0.1:"), url
            # The losses are those of the script alone.
            assert process.stdout.readline() == alone
            assert "Ctrl-C" in process.stderr.readline()
            client = Client(url)
            assert client.event("hello")["given"][0]["title"] == "train.py"
            assert client.event("run")["title"] == "train.py"
            assert len(client.ask("live.history", run="live-0")["ok"]["events"]) == 40
            opened = client.ask("open", given=0)["ok"]
            assert any(node["name"] == "shifted" for node in opened["nodes"])
            # The gradients are those of the first step, whatever the training did since.
            values = client.ask("values", given=0)["ok"]["values"]
            assert values["model_2_bias"]["shape"] == [2] and values["x"]["shape"] == [8, 3]
            assert "ok" in client.ask("algebra", given=0)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                status = process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert status == 0


def test_a_result_without_a_backward_pass_is_shown(tmp_path: Path) -> None:
    page = shown(written(tmp_path, "import chainrule as cr\nw = cr.ones(3, requires_grad=True)\nloss = (w * 2).sum()\nother = w + 1\n"))
    assert page["graph"]["nodes"][page["graph"]["root"]]["name"] == "loss"
    page = shown(written(tmp_path, "import chainrule as cr\nw = cr.ones(3, requires_grad=True)\nfirst = w * 2\nlast = first.sum()\n"))
    assert page["graph"]["nodes"][page["graph"]["root"]]["name"] == "last"


def test_what_cannot_be_shown_is_said_in_a_line(tmp_path: Path) -> None:
    done = run(written(tmp_path, "import chainrule\nx = 1\n"), "--json")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "no backward pass" in done.stderr
    done = run(str(tmp_path / "none.py"))
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "No such file" in done.stderr
    assert run("--port", "x", "a.py").returncode == 2
    # The script's own fault is told as Python tells it, with the script's lines alone.
    done = run(written(tmp_path, "import chainrule\ndef f():\n    raise ValueError('mine')\nf()\n"), "--no-open")
    assert done.returncode == 1 and "ValueError: mine" in done.stderr and "_studio_file" not in done.stderr
    assert run(written(tmp_path, "import sys\nsys.exit(3)\n")).returncode == 3
    done = run(written(tmp_path, "def f(:\n"))
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "_studio_file" not in done.stderr


def test_arguments_and_neighbours_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("scale = 3.0\n")
    text = """
        import chainrule as cr
        import mine, os, sys
        assert __name__ == "__main__" and os.path.basename(sys.argv[0]) == "train.py" == os.path.basename(__file__)
        class Net(cr.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = cr.nn.Parameter(cr.ones(2))
            def forward(self, x):
                return self.w * x * mine.scale
        net = Net()
        net(cr.ones(2)).sum().backward()
    """
    page = shown(written(tmp_path, text))
    assert any(node["name"] == "net.w" for node in page["graph"]["nodes"])
    assert os.path.basename(page["graph"]["sources"][0]["file"]) == "train.py"
