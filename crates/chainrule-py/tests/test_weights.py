"""Files of PyTorch and NumPy, read by `cr.load` and held against what was written, bit by bit."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import chainrule as cr
import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_nest_of_pytorch_comes_back(tmp_path: Path, zipped: bool, protocol: int) -> None:
    base = torch.randn(6, 4)
    state = OrderedDict(w=torch.nn.Parameter(base), t=base.t()[1:3], half=base[0].half(), long=torch.tensor([-5, 7]), scalar=torch.tensor(2.5).double())
    state["noted"] = base[1].clone()
    state["noted"].note = "an attribute of its own"
    nest = {"model": state, "epoch": 3, "more": [0.5, None, (True, "x")], "large": [2**127, -(2**64), 2**63]}
    torch.save(nest, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
    got = cr.load(tmp_path / "x.pt")
    assert got["epoch"] == 3 and got["more"] == [0.5, None, (True, "x")] and got["large"] == nest["large"]
    assert list(got["model"]) == list(state)
    for name, t in state.items():
        want = t.detach().numpy()
        array = got["model"][name].numpy()
        assert (array.dtype, array.shape, array.tobytes()) == (want.dtype, want.shape, want.tobytes()), name


def test_a_module_takes_the_state_of_pytorch(tmp_path: Path) -> None:
    theirs, ours = torch.nn.Linear(3, 2), cr.nn.Linear(3, 2)
    torch.save(theirs.state_dict(), tmp_path / "x.pth")
    ours.load_state_dict(cr.load(tmp_path / "x.pth"))
    x = np.ones((4, 3), np.float32)
    np.testing.assert_allclose(ours(cr.tensor(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), rtol=1e-6)


def test_a_negated_view_is_refused(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(3, dtype=torch.complex64).conj().imag}, tmp_path / "x.pt")
    with pytest.raises(OSError, match="resolve_neg"):
        cr.load(tmp_path / "x.pt")


def rows(t: cr.Tensor) -> bytes:
    return t.float().numpy().tobytes()



@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_mapped_tensors_are_those_that_are_read(tmp_path: Path, name: str) -> None:
    """The file stays as it was, whatever is done with its tensors."""
    path = tmp_path / name
    state = {"w": torch.randn(64, 33), "half": torch.randn(7).bfloat16(), "flag": torch.tensor([True, False]), "n": torch.arange(5), "one": torch.tensor(2.5)}
    if name.endswith("pt"):
        torch.save({**state, "turned": state["w"].t()[3:]}, path)
    else:
        cr.save({k: cr.tensor(v.tolist(), dtype=getattr(cr, str(v.dtype).split(".")[1])) for k, v in state.items()}, path)
    before = path.read_bytes()
    read, mapped = cr.load(path), cr.load(path, mmap=True)
    assert list(read) == list(mapped)
    for key, t in mapped.items():
        assert (t.dtype, t.shape) == (read[key].dtype, read[key].shape) and rows(t) == rows(read[key]), key
    mapped["w"].add_(1)
    read["w"].add_(1)
    mapped["n"][1] = 9
    p = cr.nn.Parameter(mapped["half"].float())
    (p * 3.0).sum().backward()
    cr.optim.SGD([p], lr=0.1).step()
    assert rows(mapped["w"]) == rows(read["w"]) and mapped["n"].tolist() == [0, 9, 2, 3, 4]
    assert path.read_bytes() == before
    path.unlink()
    assert rows(mapped["half"]) == rows(read["half"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back(tmp_path: Path, save: Any) -> None:
    arrays = {"w": np.random.default_rng(1).normal(size=(3, 5)), "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "big": np.arange(3, dtype=">i4")}
    save(tmp_path / "x.npz", **arrays)
    got = cr.load(tmp_path / "x.npz")
    for name, want in arrays.items():
        assert np.array_equal(got[name].numpy(), want) and got[name].shape == want.shape


class Harmful:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("harmed"),))


def test_no_code_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Harmful()}, "x.pt")
    with pytest.raises(OSError, match="not called here"):
        cr.load("x.pt")
    assert not Path("harmed").exists()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int64", "uint8", "bool"])
def test_states_go_there_and_back_in_their_dtype(dtype: str) -> None:
    theirs = torch.tensor([[1.5, -2.25, 0.0], [3e4, 1.0, 7.0]]).abs().clamp(max=200).to(getattr(torch, dtype)).t()
    (ours,) = cr.io.from_torch({"x": theirs}).values()
    assert ours.dtype.name == dtype and ours.shape == tuple(theirs.shape)
    assert ours.double().tolist() == theirs.double().tolist()
    (back,) = cr.io.to_torch({"x": ours}).values()
    assert back.dtype == theirs.dtype and torch.equal(back, theirs)
    back.zero_()
    assert ours.double().sum().item() == theirs.double().sum().item(), "memory of its own"


def test_a_module_takes_bfloat16_weights() -> None:
    theirs, ours = torch.nn.Linear(3, 2).bfloat16(), cr.nn.Linear(3, 2)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.dtype == cr.float32
    assert ours.weight.tolist() == theirs.weight.float().tolist()
