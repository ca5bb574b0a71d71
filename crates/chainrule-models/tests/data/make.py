"""Makes the small models of this folder, and what `transformers` says of them: logits, tokens of
texts, and the tokens that follow when the likeliest is taken.

    python make.py [FOLDER]

needs torch, transformers and tokenizers. The weights are random, and larger than those that a
training starts with, so that the likeliest token stands out.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

TEXT = """The sea was grey, and the wind came from the north. "We'll wait," said the old man; he'd
seen 1,234 mornings like this, and it's never   over before noon. Ångström, naïve café, 你好, мир!
  for (i = 0; i < 10; i++) { total += x[i]; }
The boats weren't out. They're late, I'm told, and you've got 2 hours\tor 30 minutes.\n\n\n""" * 3
TEXTS = [
    "The sea was grey", "  it's   1234 naïve\n\n  cafés\t ", "you've  said: 你好 🙂!", "<|endoftext|>The end<|endoftext|>", "\n", " ", "x",
    "Don't STOP, we'LL 12345678 go\r\n next", "e\u0301a \u00a0b\u3000c", "</s> and <s> the sea",
]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def gpt2_tokenizer(folder):
    """`vocab.json` and `merges.txt`."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([TEXT], trainer)
    t.model.save(str(folder))
    t.add_special_tokens(["<|endoftext|>"])
    return t


def llama3_tokenizer(folder):
    """`tokenizer.json` over bytes, with a token before the text."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    split = pre_tokenizers.Split(__import__("tokenizers").Regex(LLAMA3), "isolated")
    t.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>"]
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=340, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", t.token_to_id("<|begin|>"))])
    t.save(str(folder / "tokenizer.json"))
    return t


def llama2_tokenizer(folder):
    """`tokenizer.json` over characters, unknown ones as bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"]
    plain = "".join(c for c in TEXT if c not in "你мир")
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=special + [f"<0x{b:02X}>" for b in range(256)])
    t.train_from_iterator([plain[i : i + 40] for i in range(0, len(plain), 40)], trainer)
    saved = json.loads(t.to_str())
    # The bytes are plain tokens that texts do not name.
    saved["added_tokens"] = [a for a in saved["added_tokens"] if a["content"] in special]
    t = Tokenizer.from_str(json.dumps(saved))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])
    t.save(str(folder / "tokenizer.json"))
    return t


def randomize(model, seed):
    """Weights of which no two models have the same, the norms' and the biases' too."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name or "ln_" in name:
                p.copy_((1.0 if name.endswith("weight") else 0.0) + 0.2 * torch.randn(p.shape, generator=g))
            else:
                p.copy_(0.25 * torch.randn(p.shape, generator=g))
    return model.eval()


def expected(model, tokenizer):
    """Answers of the model and of the tokenizer."""
    size = model.config.vocab_size
    tokens = [[(7 * i * i + 3 * i + 11 * row) % size for i in range(12)] for row in range(2)]
    with torch.no_grad():
        logits = model(torch.tensor(tokens)).logits
        prompt = tokenizer.encode(TEXTS[0]).ids
        config = transformers.GenerationConfig(max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0)
        greedy = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), generation_config=config)[0, len(prompt) :]
    texts = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        texts.append({"text": text, "tokens": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
    return {
        "tokens": tokens, "shape": list(logits.shape), "logits": [round(x, 7) for x in logits[:, -3:].flatten().tolist()],
        "prompt": TEXTS[0], "greedy": greedy.tolist(), "texts": texts,
    }


def save(folder, model, tokenizer, **how):
    model.save_pretrained(folder, **how)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "expected.json").write_text(json.dumps(expected(model, tokenizer), ensure_ascii=False) + "\n")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    for name in ["gpt2", "llama3", "llama2"]:
        (root / name).mkdir(parents=True, exist_ok=True)
    t = gpt2_tokenizer(root / "gpt2")
    config = GPT2Config(vocab_size=t.get_vocab_size(), n_positions=48, n_embd=12, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0)
    save(root / "gpt2", randomize(GPT2LMHeadModel(config), 1), t)

    t = llama3_tokenizer(root / "llama3")
    rope = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    config = LlamaConfig(
        vocab_size=t.get_vocab_size(), hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, rope_parameters=rope, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1,
    )
    save(root / "llama3", randomize(LlamaForCausalLM(config), 2), t)

    # Untied, in shards, with other widths of heads, biases and another base.
    t = llama2_tokenizer(root / "llama2")
    config = LlamaConfig(
        vocab_size=t.get_vocab_size(), hidden_size=12, intermediate_size=16, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
        head_dim=6, max_position_embeddings=64, attention_bias=True, mlp_bias=True, rope_parameters={"rope_type": "default", "rope_theta": 1234.0},
        bos_token_id=1, eos_token_id=2,
    )
    save(root / "llama2", randomize(LlamaForCausalLM(config), 3), t, max_shard_size="20KB")


if __name__ == "__main__":
    main()
