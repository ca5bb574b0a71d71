"""The studio from Python: what its page is told over the socket."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import threading
import time
import urllib.parse
from typing import Any

import pytest

import chainrule as cr


class Client:
    """The page's side of the socket, in a few lines: text frames, masked as a browser's are."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc
        token = parts.fragment.split("&")[0].removeprefix("token=")
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /socket HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        assert b"101" in head.split(b"\r\n")[0], head
        self.events: list[Any] = []
        self.send({"token": token})

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        mask = os.urandom(4)
        head = bytes([0x81]) + (bytes([0x80 | len(body)]) if len(body) < 126 else bytes([0xFE]) + struct.pack(">H", len(body)))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body)))

    def exactly(self, n: int) -> bytes:
        out = b""
        while len(out) < n:
            part = self.socket.recv(n - len(out))
            assert part, "the socket was closed"
            out += part
        return out

    def read(self) -> Any:
        first, size = self.exactly(2)
        assert first == 0x81, first
        if size == 126:
            size = struct.unpack(">H", self.exactly(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.exactly(8))[0]
        return json.loads(self.exactly(size))

    def ask(self, call: str, **args: Any) -> Any:
        self.send({"id": 1, "call": call, "args": args})
        while True:
            answer = self.read()
            if "event" not in answer:
                return answer
            self.events.append(answer)

    def event(self, kind: str) -> Any:
        while True:
            for at, event in enumerate(self.events):
                if event["event"] == kind:
                    return self.events.pop(at)
            self.events.append(self.read())

    def newest(self) -> int:
        events = self.ask("live.history", run="live-0")["ok"]["events"]
        return events[-1]["step"] if events else 0


def test_a_loss_with_the_users_names_and_lines() -> None:
    x = cr.tensor([[1.0, 2.0], [3.0, -4.0]])
    weight = cr.tensor([[0.5], [-0.25]], requires_grad=True)
    hidden = (x @ weight).tanh()
    loss = (hidden * hidden).sum()
    page = cr.studio(loss, browse=False)
    client = Client(page.url)
    assert client.event("hello")["given"][0] == {"given": 0, "title": "test_studio.py", "source": None, "seed": 0, "hand": None}
    opened = client.ask("open", given=0)["ok"]
    lines = opened["sources"][0]["lines"]
    nodes = {node["name"]: node for node in opened["nodes"] if node["name"]}
    assert {"weight", "hidden", "loss"} <= nodes.keys()
    assert "hidden = (x @ weight).tanh()" in lines[nodes["hidden"]["source"]["line"] - 1]
    product = next(node for node in opened["nodes"] if node["op"] == "matmul")
    assert product["source"] == nodes["hidden"]["source"]
    steps = client.ask("backward", session=opened["session"])["ok"]["steps"]
    found = next(step for step in steps if step["node"] == nodes["weight"]["id"])["incoming"]["data"]
    assert weight.grad is None
    # By hand: dh = 2 h, and the slope of tanh is 1 - h^2.
    h = hidden.detach()
    right = x.T @ (2 * h * (1 - h * h))
    assert found == pytest.approx(right.flatten().tolist(), rel=1e-6)
    loss.backward()
    assert found == pytest.approx(weight.grad.flatten().tolist(), rel=1e-6)
    # The pass was walked when the page was made: it stays as it was then.
    with cr.no_grad():
        weight.zero_()
    opened = Client(page.url).ask("open", given=0)["ok"]
    leaf = next(node for node in opened["nodes"] if node["name"] == "weight")
    assert leaf["value"]["data"] == [0.5, -0.25]
    steps = client.ask("backward", session=client.ask("open", given=0)["ok"]["session"])["ok"]["steps"]
    assert next(step for step in steps if step["node"] == leaf["id"])["incoming"]["data"] == found
    # Nothing that a page sends is run.
    for call, args in (("eval", {"given": 0, "want": ["loss"]}), ("compare", {"given": 0, "backward": "dh = 1"}), ("open", {"source": "x = 1"})):
        assert "error" in client.ask(call, **args)


def test_gradients_by_hand_stand_beside_autograds() -> None:
    x = cr.tensor([[1.0, 2.0], [3.0, -4.0]])
    w = cr.tensor([[0.5], [-0.25]], requires_grad=True)
    h = (x @ w).tanh()
    loss = (h * h).sum()
    dh = 2 * h.detach()
    dw = x.T @ (dh * (1 - h.detach()))
    client = Client(cr.studio(loss, by_hand={"h": dh, "w": dw.numpy()}, browse=False).url)
    answer = client.ask("own", given=0)["ok"]
    assert {row["name"]: row["verdict"] for row in answer["rows"]} == {"h": "exact", "w": "wrong"}
    lines = client.ask("open", given=0)["ok"]["sources"][0]["lines"]
    assert lines[answer["finding"]["line"] - 1].strip().startswith("dw = x.T")
    # Numbers that a page sends are judged by the tape.
    right = x.T @ (dh * (1 - h.detach() ** 2))
    claims = {"w": {"shape": [2, 1], "dtype": "f32", "data": right.flatten().tolist()}}
    rows = client.ask("claims", given=0, claims=claims)["ok"]["rows"]
    assert {row["name"]: row["verdict"] for row in rows}["w"] in ("exact", "approximate")
    with pytest.raises(TypeError, match="by_hand"):
        cr.studio(cr.nn.Linear(1, 1), by_hand={"w": dw}, browse=False)


def test_parameters_have_the_names_of_their_modules() -> None:
    layer = cr.nn.Linear(2, 3)
    blocks = [cr.nn.Linear(3, 3), cr.nn.Linear(3, 1)]
    own = blocks[1].weight
    out = layer(cr.randn(4, 2))
    for block in blocks:
        out = block(out)
    client = Client(cr.studio(out.sum(), browse=False).url)
    names = {node["name"] for node in client.ask("open", given=0)["ok"]["nodes"]}
    assert {"layer.weight", "layer.bias", "blocks[0].weight", "blocks[0].bias", "own"} <= names
    assert "blocks[1].weight" not in names and own.grad is None


class _Block(cr.nn.Module):
    """Two products round a module that all blocks share."""

    def __init__(self, shared: cr.nn.Module) -> None:
        super().__init__()
        self.inner = cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.Tanh(), cr.nn.Linear(8, 4))
        self.gain = cr.nn.Parameter(cr.ones(4))
        self.shared = shared

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return x + self.shared(self.inner(x)) * self.gain


class _Scaled(cr.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = cr.nn.Parameter(cr.ones(1))

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return (x * self.scale).tanh()


def test_operations_belong_to_the_modules_that_made_them() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.net = cr.nn.Sequential(*[_Block(shared) for _ in range(3)], cr.nn.Linear(4, 1))

        def loss(self) -> Any:
            self.net(cr.randn(2, 4)).sum().backward()
            with cr.no_grad():
                self.net(cr.randn(2, 4))
            return cr.studio(self.net(cr.randn(2, 4)).sum(), browse=False)

    shared = _Scaled()
    client = Client(Trainer().loss().url)
    nodes = client.ask("open", given=0)["ok"]["nodes"]
    of = {node["name"]: node["module"] for node in nodes if node["name"]}
    assert of["self.net.1.inner.0.weight"] == ["self.net", "1", "inner"]
    assert of["self.net.2.gain"] == ["self.net", "2"]
    # The last layer is a module of one operation; the shared weight belongs to none of the blocks.
    assert of["self.net.3.weight"] == ["self.net"]
    assert of["self.net.0.shared.scale"] == ["self.net"]
    for block in "012":
        inside = sorted(node["op"] for node in nodes if node["op"] and node["module"][:2] == ["self.net", block])
        assert inside == sorted(["linear", "tanh", "linear", "mul", "tanh", "mul", "add"]), inside
    assert [node["module"] for node in nodes if node["kind"] == "root"] == [[]]


def test_a_compiled_function_does_not_see_that_a_module_was_called() -> None:
    block = _Block(_Scaled())
    step = cr.compile(lambda x: block(x).sum())
    x = cr.randn(2, 4)
    first = step(x)
    block(x)
    assert step(x).item() == first.item()
    assert len(step._recent) == 1


def test_a_tensor_without_a_gradient_is_refused() -> None:
    with pytest.raises(ValueError, match="no backward pass"):
        cr.studio(cr.ones(3), browse=False)
    with pytest.raises(TypeError, match="optimizer"):
        cr.studio(cr.ones(3, requires_grad=True).sum(), object(), browse=False)


def _trained(page: bool) -> list[float]:
    cr.manual_seed(3)
    model = cr.nn.Sequential(cr.nn.Linear(3, 8), cr.nn.Tanh(), cr.nn.Linear(8, 1))
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    x = cr.randn(32, 3)
    y = x.sum(1, keepdim=True)
    losses = []

    def step() -> None:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))

    if page:
        with cr.studio(model, optimizer, browse=False):
            for _ in range(50):
                step()
    else:
        for _ in range(50):
            step()
    return losses


def test_the_loop_is_the_same_to_the_bit() -> None:
    assert _trained(True) == _trained(False)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_without_a_page_has_no_hooks(compiled: bool) -> None:
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.01)
    x, y = cr.randn(16, 3), cr.randn(16, 1)

    def step() -> cr.Tensor:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = cr.compile(step) if compiled else step
    backward, stepped = cr.Tensor.backward, cr.optim.SGD.step
    losses = []
    with cr.studio(model, optimizer, title="mine", browse=False) as s:
        losses += [float(run()) for _ in range(30)]
        assert (cr.Tensor.backward, cr.optim.SGD.step) == (backward, stepped)
        if not compiled:
            # A loop may make its optimizer anew.
            optimizer = cr.optim.SGD(model.parameters(), lr=0.02)
            losses += [float(run()) for _ in range(10)]
        client = Client(s.url)
        assert client.event("run")["title"] == "mine"
        losses.append(float(run()))
        assert cr.Tensor.backward is not backward
        for _ in range(200):
            run()
        events = client.ask("live.history", run="live-0")["ok"]["events"]
    assert (cr.Tensor.backward, cr.optim.SGD.step) == (backward, stepped)
    assert [event["loss"] for event in events][: len(losses)] == pytest.approx(losses, rel=1e-6)
    assert any(event["layers"] for event in events[-201:])


def test_a_loop_is_held_stepped_and_steered() -> None:
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.01)
    x, y = cr.randn(16, 3), cr.randn(16, 1)
    stop = threading.Event()
    s = cr.studio(model, optimizer, every=5, title="mine", browse=False)
    client = Client(s.url)
    problems: list[BaseException] = []

    def loop() -> None:
        try:
            with s:
                while not stop.is_set():
                    optimizer.zero_grad()
                    (model(x) - y).square().mean().backward()
                    optimizer.step()
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    def until(holds: Any) -> None:
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end and not problems, problems
            time.sleep(0.01)

    assert client.event("run")["title"] == "mine"
    # A failure must not leave a loop that the interpreter waits for.
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    until(lambda: client.newest() > 20)
    client.ask("live.control", run="live-0", action="pause")
    time.sleep(0.2)
    at = client.newest()
    time.sleep(0.2)
    assert client.newest() == at
    client.ask("live.control", run="live-0", action="rate", rate=0.002)
    client.ask("live.control", run="live-0", action="step")
    until(lambda: client.newest() == at + 1)
    client.ask("live.control", run="live-0", action="step")
    until(lambda: client.newest() == at + 2)
    events = client.ask("live.history", run="live-0")["ok"]["events"]
    assert events[-1]["rate"] == 0.002
    looked = [event for event in events if event["layers"]]
    assert sorted(layer["name"] for layer in looked[-1]["layers"]) == ["bias", "weight"]
    stop.set()
    client.ask("live.control", run="live-0", action="go")
    thread.join(30)
    assert not problems
    assert client.event("end")["why"] == "all steps are done"


def test_a_trace_and_a_graph_are_json() -> None:
    w = cr.tensor([2.0, -1.0], requires_grad=True)
    loss = (w * w).sum()
    steps = json.loads(loss.trace_json())["steps"]
    assert steps[0]["op"] == "sum" and steps[-1]["gradient"]["data"] == [4.0, -2.0]
    tensors = json.loads(loss.graph_json())["tensors"]
    assert tensors[0]["op"] == "sum" and sum(t["requires_grad"] for t in tensors) == len(tensors)


def test_all_that_is_told_of_a_backward_pass_is_json() -> None:
    x = cr.tensor([1.0, -2.0], requires_grad=True).named("x")
    y = (x * x).named("y")
    loss = (y * y).sum()
    parts = json.loads(loss.contributions_json(x))
    assert [part["op"] for part in parts] == ["mul", "mul"]
    assert [part["position"] for part in parts] == [0, 1] or [part["position"] for part in parts] == [1, 0]
    right = {"x": 4 * x.detach() ** 3, "y": 2 * y.detach()}
    report = json.loads(cr.check.compare(loss, right).to_json())
    assert report["passed"] and report["outcome"] == "right" and report["verdict"] is None
    assert {row["name"]: row["standing"] for row in report["comparison"]["rows"]} == {"x": "right", "y": "right"}
    report = json.loads(cr.check.compare(loss, right | {"x": 2 * x.detach() ** 3}).to_json())
    rows = {row["name"]: row for row in report["comparison"]["rows"]}
    assert not report["passed"] and rows["x"]["standing"] == "first" and rows["x"]["difference"]["exact"] is False
    report = json.loads(cr.check.verdict(loss, [(x, 2 * x.detach() ** 3)]).to_json())
    assert report["verdict"]["right"] is False and report["verdict"]["wrong"][0]["tensor"] == "x"
    report = json.loads(cr.check.gradcheck(lambda x: x.exp(), [x.double()]).to_json())
    assert report == {"passed": True, "outcome": "right", "text": report["text"], "mistakes": [], "verdict": None, "comparison": None}
    program = cr.compile(lambda x: (x * x).sum())
    program(x.detach())
    assert json.loads(program.to_json())["lines"][-1]["op"] == "sum"


def test_a_wrong_line_is_json() -> None:
    def forward(x: cr.Tensor) -> cr.Tensor:
        return x.tanh()

    def backward(gradient: cr.Tensor, x: cr.Tensor) -> cr.Tensor:
        y = x.tanh()
        return gradient * (1 - y)

    report = json.loads(cr.check.backward(forward, [cr.randn(4, dtype=cr.float64)], backward).to_json())
    (mistake,) = report["mistakes"]
    assert mistake["source"] == "return gradient * (1 - y)" and "y * y" in mistake["corrected"].replace("y**2", "y * y")
    assert os.path.basename(mistake["file"]) == "test_studio.py" and mistake["why"] and not report["passed"]


def test_a_loop_goes_back_to_a_kept_state() -> None:
    cr.manual_seed(5)
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = cr.randn(16, 3)
    y = x.sum(1, keepdim=True)
    page = cr.studio(model, optimizer, browse=False, title="loop")
    told: list[float] = []
    ended = threading.Event()
    problems: list[BaseException] = []

    def loop() -> None:
        try:
            with page:
                while not ended.is_set():
                    optimizer.zero_grad()
                    loss = (model(x) - y).square().mean()
                    loss.backward()
                    told.append(float(loss))
                    optimizer.step()
                    time.sleep(0.001)
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    def until(holds: Any) -> None:
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end and not problems, problems
            time.sleep(0.005)

    client = Client(page.url)
    assert client.event("run")["branches"]
    # A held loop that a failure leaves must not keep the interpreter.
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()

    def rows(run: str) -> list[Any]:
        return client.ask("live.history", run=run).get("ok", {}).get("events", [])  # type: ignore[no-any-return]

    until(lambda: len(rows("live-0")) > 3)
    client.ask("live.control", run="live-0", action="pause")
    time.sleep(0.1)
    at = len(rows("live-0"))
    assert at == len(told), "it waits in the step"
    client.ask("live.control", run="live-0", action="checkpoint")
    assert client.event("checkpoints")["checkpoints"][0]["step"] == at
    # The steps behind it, and the same ones again from the kept state: the same losses, to the bit.
    client.ask("live.control", run="live-0", action="go")
    until(lambda: len(rows("live-0")) > at + 6)
    first = [row["loss"] for row in rows("live-0")[at : at + 5]]
    client.ask("live.control", run="live-0", action="fork", checkpoint=0)
    until(lambda: len(rows("live-1")) > 6)
    assert client.ask("live.history", run="live-0")["ok"]["ended"] == f"gone back to step {at}"
    again = client.ask("live.history", run="live-1")["ok"]
    assert again["events"][0]["step"] == at + 1 and again["checkpoints"][0]["step"] == at
    assert [row["loss"] for row in again["events"][:5]] == first
    # With another rate the first loss is the same, and those after it are not.
    client.ask("live.control", run="live-1", action="fork", checkpoint=0, rate=0.05)
    until(lambda: len(rows("live-2")) > 3)
    other = rows("live-2")
    assert other[0]["rate"] == 0.05 and other[0]["step"] == at + 1
    assert other[0]["loss"] == first[0] and other[1]["loss"] != first[1]
    ended.set()
    thread.join(30)
    assert not problems and not thread.is_alive()
