"""Models that `transformers` wrote, from Python: what it says of them stands beside them."""

import json
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest

DATA = Path(__file__).parents[2] / "chainrule-models" / "tests" / "data"


@pytest.mark.parametrize(("name", "opened"), [("gpt2", cr.models.gpt2), ("llama3", cr.models.llama), ("llama2", cr.models.open)])
def test_logits_and_tokens_are_those_of_transformers(name, opened):
    model, want = opened(DATA / name), json.loads((DATA / name / "expected.json").read_text())
    logits = model(cr.tensor(want["tokens"])).detach().numpy()
    assert list(logits.shape) == want["shape"] and model.vocabulary == logits.shape[-1]
    np.testing.assert_allclose(logits[:, -3:].ravel(), want["logits"], rtol=1e-5, atol=1e-5)
    prompt = model.encode(want["prompt"])
    for cache in [True, False]:
        assert model.generate(prompt, len(want["greedy"]), cache=cache, stop=False) == want["greedy"]
    text = model.generate(want["prompt"], len(want["greedy"]), stop=False)
    assert want["prompt"] + text == model.decode(prompt + want["greedy"])


def test_a_model_trains_and_is_saved(tmp_path):
    model = cr.models.gpt2(DATA / "gpt2")
    text = "A quiet harbour. " * 20
    losses = model.fine_tune(text, steps=30, context=16, lr=1e-2)
    assert len(losses) == 30 and losses[-1] < losses[0] / 2
    rows = cr.tensor(model.encode(text)[:17]).reshape(1, 17)
    opt = cr.optim.SGD(list(model.parameters()), lr=0.1)
    before = model.loss(rows)
    before.backward()
    opt.step()
    after = model.loss(rows).item()
    assert after < before.item()
    model.save(tmp_path)
    assert cr.models.gpt2(tmp_path).loss(rows).item() == after


def test_a_folder_of_another_kind_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="kind 'llama'"):
        cr.models.gpt2(DATA / "llama3")
    with pytest.raises(FileNotFoundError):
        cr.models.gpt2(tmp_path / "none")
    with pytest.raises(ValueError, match="more than the model's 48"):
        cr.models.gpt2(DATA / "gpt2").generate("The sea", 100)


def test_names_that_do_not_fit_are_told():
    layer = cr.nn.Linear(3, 2)
    state = {"x.weight": cr.ones(2, 4), "x.more": cr.ones(1)}
    with pytest.raises(ValueError, match=r"missing: \['bias'\]; left over: \['more'\]"):
        cr.models.load_state_dict(layer, state, "prefix x.")
    fit = cr.models.load_state_dict(layer, state, "prefix x.", strict=False)
    assert fit == cr.models.Fit(["bias"], ["more"], [("weight", (2, 3), (2, 4))], 0)
    with pytest.raises(ValueError, match="line 1"):
        cr.models.load_state_dict(layer, state, "x. to y.")
