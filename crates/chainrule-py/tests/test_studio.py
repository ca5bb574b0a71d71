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
    # It is looked at alone: nothing that a page sends is run.
    for call, args in (("eval", {"given": 0, "want": ["loss"]}), ("program", {"given": 0}), ("open", {"source": "x = 1"})):
        assert "error" in client.ask(call, **args)


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
