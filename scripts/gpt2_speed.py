"""Tokens a second of GPT-2's size (124 million random weights): `chainrule text` beside PyTorch, one
token after the other with a key-value cache, both on the same number of threads.

    python scripts/gpt2_speed.py target/release/chainrule [--threads 1] [--tokens 64] [--rounds 3]

needs torch and transformers. The two take turns; each figure is the best of the rounds: the time
from a prompt of eight tokens to the last new one, and the processor's time for the tokens behind
the first, which other work on the machine disturbs less. A tokenizer of single bytes stands in.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("command")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    ours, theirs = [], []
    busy: dict[str, list[float]] = {"chainrule": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        # Tokens of one byte each, and names for the rest: a random model needs no words.
        alphabet = [chr(b) for b in range(33, 127)]
        vocab = {c: i for i, c in enumerate(alphabet)} | {f"<{i}>": i for i in range(len(alphabet), 50257)}
        Path(folder, "vocab.json").write_text(json.dumps(vocab))
        Path(folder, "merges.txt").write_text("#version: 0.2\n")
        prompt = "ABCDEFGH"
        ids = torch.tensor([[vocab[c] for c in prompt]])

        def run(tokens: int) -> tuple[dict, float]:
            words = [args.command, "text", "--model", folder, "--prompt", prompt, "--length", str(tokens), "--threads", str(args.threads), "--json"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        def torch_run(tokens: int) -> tuple[list[int], float, float]:
            how = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0, eos_token_id=None)
            start, cpu = time.perf_counter(), time.process_time()
            with torch.no_grad():
                new = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=how)[0, 8:].tolist()
            return new, time.perf_counter() - start, time.process_time() - cpu

        for _ in range(args.rounds):
            said, cpu = run(args.tokens)
            ours.append(said["seconds"])
            busy["chainrule"].append(cpu - run(1)[1])
            new, seconds, cpu = torch_run(args.tokens)
            theirs.append(seconds)
            busy["PyTorch"].append(cpu - torch_run(1)[2])
            assert said["tokens"] == new[: len(said["tokens"])], "other tokens than PyTorch"
            assert len(said["tokens"]) == args.tokens, "the model ended its text"
    for name, seconds in [("chainrule", ours), ("PyTorch", theirs)]:
        cpu = (args.tokens - 1) / min(busy[name])
        print(f"{name}: {args.tokens / min(seconds):.1f} tokens a second, {cpu:.1f} a second of the processor (best of {len(seconds)}, {args.threads} threads)")
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
