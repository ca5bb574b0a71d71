"""`compare` with the code that computes the gradients: the wrong line, and the corrected one."""

import chainrule as cr
import numpy as np
import pytest

F64 = cr.float64


def net(seed=0):
    r = np.random.default_rng(seed)
    x, y = cr.tensor(r.standard_normal((6, 3))), cr.tensor(r.standard_normal((6, 2)))
    w1, b1, w2 = (cr.tensor(r.standard_normal(s), requires_grad=True).named(n) for n, s in (("w1", (3, 4)), ("b1", (4,)), ("w2", (4, 2))))
    z = (x @ w1 + b1).named("z")
    h = z.tanh().named("h")
    out = (h @ w2).named("out")
    loss = ((out - y) ** 2).mean()
    return x, y, w1, b1, w2, z, h, out, loss


X, Y, W1, B1, W2, Z, H, OUT, LOSS = net()


def right():
    dout = 2 * (OUT - Y) / OUT.numel()
    dw2 = H.T @ dout
    dh = dout @ W2.T
    dz = dh * (1 - H * H)
    return {"out": dout, "w2": dw2, "h": dh, "z": dz, "w1": X.T @ dz, "b1": dz.sum(0)}


def another_stage():
    dout = 2 * (OUT - Y) / OUT.numel()
    dw2 = H.T @ dout
    dh = dout @ W2.T
    dz = dh * (1 - H * H)
    dw1 = X.T @ dh
    return {"out": dout, "w2": dw2, "h": dh, "z": dz, "w1": dw1, "b1": dz.sum(0)}


def input_for_output():
    dout = 2 * (OUT - Y) / OUT.numel()
    dz = (dout @ W2.T) * (1 - Z * Z)
    return {"w2": H.T @ dout, "w1": X.T @ dz, "b1": dz.sum(0)}


def an_update_too_early():
    dout = 2 * (OUT - Y) / OUT.numel()
    dw2 = H.T @ dout
    w2 = W2 - 0.1 * dw2
    dh = dout @ w2.T
    dz = dh * (1 - H * H)
    return {"w2": dw2, "w1": X.T @ dz, "b1": dz.sum(0)}


def test_right_code_is_right():
    report = cr.check.compare(LOSS, right)
    assert report.passed and str(report) == str(cr.check.compare(LOSS, right()))


@pytest.mark.parametrize(
    "code, there, due",
    [
        (another_stage, "dw1 = X.T @ dh", "dw1 = X.T @ dz"),
        (input_for_output, "(1 - Z * Z)", "(1 - H * H)"),
        (an_update_too_early, "dh = dout @ w2.T", "dh = dout @ W2.T"),
    ],
)
def test_the_line_of_the_code(code, there, due):
    report = cr.check.compare(LOSS, code)
    text = str(report)
    assert not report and "test_compare_code.py:" in text.splitlines()[0] and there in text.splitlines()[0], text
    corrected = next(row for row in text.splitlines() if row.startswith("corrected"))
    assert due in corrected and "all else of the backward is right" in corrected, text
    assert report.pictures and report.pictures[0].startswith("<svg")
    assert str(cr.check.compare(LOSS, code())) in text


PICKED = np.array([1, 0, 1, 1, 0, 0])
SHARES = np.random.default_rng(4).random((6, 2))
SCORES = {kind: cr.tensor(SHARES) for kind in ("kept", "spare")}
MIXED = cr.nn.functional.cross_entropy(OUT, cr.tensor(PICKED)) + (OUT * SCORES["kept"]).sum()


def data_at_hand():
    e = np.exp(OUT.detach().numpy())
    dout = e
    dout[np.arange(6), PICKED] -= 1
    dout = dout / 6 + SHARES
    dw2 = H.detach().numpy().T @ dout
    dz = (dout @ W2.detach().numpy().T) * (1 - H.detach().numpy() ** 2)
    db1 = dz.sum(0)
    return {"out": dout, "w2": dw2, "z": dz, "b1": db1}


def test_data_that_the_code_reads_stay_as_they_are():
    """An edited line may write where no line of the user's does."""
    before = [SHARES.copy(), PICKED.copy(), OUT.detach().numpy().copy(), SCORES["kept"].numpy().copy()]
    node = OUT._op
    assert not cr.check.compare(MIXED, data_at_hand)
    after = [SHARES, PICKED, OUT.detach().numpy(), SCORES["kept"].numpy()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after)) and OUT._op == node


def test_code_that_fails_raises_its_own_error():
    with pytest.raises(ZeroDivisionError):
        cr.check.compare(LOSS, lambda: {"w1": 1 / 0})


def test_a_name_that_is_not_there_is_no_line():
    report = cr.check.compare(LOSS, lambda: {"w9": X})
    assert not report and "corrected" not in str(report)


GAIN = {"gain": cr.tensor(np.linspace(0.5, 2, 4), requires_grad=True).named("gain")}
SCALED = (H * GAIN["gain"]).named("scaled")
SCALED_LOSS = (SCALED**2).sum()


def reads_another_value():
    dout = 2 * (OUT - Y) / OUT.numel()
    return {"out": dout, "w2": Z.T @ dout}


def forgets_a_gain():
    dscaled = 2 * SCALED
    dh = dscaled
    return {"scaled": dscaled, "h": dh}


@pytest.mark.parametrize("loss, code, due", [(LOSS, reads_another_value, "H.T @ dout"), (SCALED_LOSS, forgets_a_gain, 'GAIN["gain"] * dscaled')])
def test_a_value_that_no_line_reads_yet(loss, code, due):
    """It stands in the module, as a variable or in a dictionary."""
    report = cr.check.compare(loss, code)
    assert not report.passed and any(row.startswith("corrected") and due in row for row in str(report).splitlines()), report
