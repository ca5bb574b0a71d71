"""Lists and dictionaries among the arguments of a compiled function, which the function changes."""

import chainrule as cr
import pytest


def both(program):
    """The results of a program, eager and compiled."""
    return [program(compile) for compile in (lambda f: f, cr.compile)]


def grown(compile):
    seen = []
    f = compile(lambda seen, x: seen.append(x * 2) or x)
    for k in (1.0, 2.0):
        f(seen, cr.full((1,), k))
    return [t.tolist() for t in seen]


def entries(compile):
    def f(batch):
        batch["x"] = batch["x"] * 2 + batch["k"]
        batch["n"] += 1
        batch.setdefault("sums", []).append(batch["x"].sum())

    f, batch = compile(f), {"x": cr.ones(2), "n": 0, "k": cr.ones(2)}
    first = batch["x"]
    for _ in range(3):
        f(batch)
    return batch["x"].tolist(), batch["n"], [t.item() for t in batch["sums"]], first.tolist()


def queue(compile):
    def f(q, x):
        oldest = q.pop(0)
        q.append(x)
        return oldest + x

    f, q = compile(f), [cr.full((1,), float(k)) for k in range(3)]
    return [f(q, cr.full((1,), 10.0 + k)).item() for k in range(4)], [t.item() for t in q]


def inside_of_others(compile):
    def f(state, x):
        state[0][1], state[0][0] = state[0][0], x + 1
        state.pop()
        state.append(x)

    f, state = compile(f), [[cr.zeros(1), cr.ones(1)], cr.ones(3)]
    inner = state[0]
    for k in (1.0, 5.0):
        f(state, cr.full((1,), k))
    return [t.item() for t in inner], state[1].item(), inner is state[0]


def aliases(compile):
    def f(q, x):
        q += [q[0][0], x]
        x.add_(1)

    f, q, x = compile(f), [cr.zeros(2, 2)], cr.ones(2)
    f(q, x)
    q[1].fill_(7)
    q[2].add_(1)
    return q[0].tolist(), x.tolist(), q[2] is x


def by_keyword(compile):
    f, told = compile(lambda x, told=None: told.update(seen=x * 2)), {}
    for k in (1.0, 2.0):
        f(cr.full((1,), k), told=told)
    return told["seen"].item()


def gradients(compile):
    w = cr.ones(2, requires_grad=True)
    f, losses = compile(lambda x, losses: losses.append((w * x).sum())), []
    for k in (1.0, 2.0):
        f(cr.full((2,), k), losses)
    sum(losses).backward()
    return w.grad.tolist()


@pytest.mark.parametrize("program", [grown, entries, queue, inside_of_others, aliases, by_keyword, gradients])
def test_arguments_that_hold_tensors_are_changed(program):
    eager, compiled = both(program)
    assert eager == compiled


def test_an_object_in_an_argument_is_an_error():
    step = cr.compile(lambda x, told: told.update(made=Exception()))
    told = {}
    with pytest.raises(cr.GradientError, match="Exception into one of its arguments"):
        step(cr.ones(1), told)
    assert told == {}
