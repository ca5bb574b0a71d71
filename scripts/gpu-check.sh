#!/bin/sh
# Checks of kernels and devices, on a machine with or without a GPU: writes one JSON to the file given,
# or to gpu-check.json. A check is true, false, or "skipped" where what it needs is not there:
#
# samples, random, long, steps   kernels of CUDA compiled as C++: g++
# products, attention            those that a library and units for matrices compute, likewise
# wide                           those whose threads compute several neighbours each, likewise
# nvrtc, ptx                     kernels compiled for GPUs: NVRTC of Python's wheel, of the system
# wgpu                           all tests of devices by WebGPU: Vulkan, also lavapipe
# cuda                           the same on a GPU by NVIDIA, with equal bits of two runs
# losses                         200 steps of names, mnist and gpt-small there, beside the processor's
# precisions                     200 steps of gpt-small in TF32 and bf16, five of GPT-2 in bf16, beside f32
# bench                          time of a step there, in microseconds; gpt2 is the one of 124M
#
# On a machine that cannot build, CHAINRULE_DEVICE_TEST names the test binary `device` and CHAINRULE_BIN
# the command, which were built elsewhere.
set -u
cd "$(dirname "$0")/.."
root=$PWD
out=${1:-gpu-check.json}
log=$(mktemp)
gpu=none
if command -v nvidia-smi >/dev/null 2>&1; then
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    [ -n "$gpu" ] || gpu=none
fi
[ "$gpu" != none ] || echo "there is no GPU by NVIDIA here: cuda, losses and bench are skipped" >&2
tested() {
    if [ -n "${CHAINRULE_DEVICE_TEST:-}" ]; then
        (cd "$root/crates/chainrule-gpu" && "$CHAINRULE_DEVICE_TEST" --nocapture "$@")
    else
        cargo test --release --all-features --test device -- --nocapture "$@"
    fi
}
passes() {
    if tested "$@" >"$log" 2>&1; then
        if grep -q "skipped: " "$log"; then echo '"skipped"'; else echo true; fi
    else
        tail -n 20 "$log" >&2
        echo false
    fi
}
samples=$(passes ops_give_the_same)
random=$(passes random_programs_give)
long=$(passes long::)
steps=$(passes steps::)
products=$(passes products::)
attention=$(passes attention::)
wide=$(passes wide::)
nvrtc=$(passes nvrtc)
ptx=$(passes ptx)
wgpu=$(CHAINRULE_DEVICE=wgpu:0 passes on_device::)
cuda='"skipped"'
losses='"skipped"'
precisions='"skipped"'
bench=null
if [ "$gpu" != none ]; then
    cuda=$(CHAINRULE_DEVICE=cuda:0 passes on_device::)
    precisions=$(CHAINRULE_DEVICE=cuda:0 CHAINRULE_GPT2=1 passes precision::)
    losses=$(CHAINRULE_DEVICE=cuda:0 CHAINRULE_MODELS=names,mnist,gpt-small passes a_device_trains)
    command=${CHAINRULE_BIN:-target/release/chainrule}
    [ -n "${CHAINRULE_BIN:-}" ] || cargo build --release --all-features -q
    bench=""
    for workload in names mnist gpt-small gpt-medium gpt2; do
        for precision in f32 tf32 bf16; do
            line=$("$command" bench $workload --mode compiled --device cuda:0 --precision $precision --json 2>>"$log")
            [ -n "$line" ] || line=null
            bench="$bench${bench:+, }\"$workload $precision\": $line"
        done
    done
    bench="{$bench}"
fi
rm -f "$log"
cat >"$out" <<EOF
{"gpu": "$gpu", "samples": $samples, "random": $random, "long": $long, "steps": $steps, "products": $products, "attention": $attention, "wide": $wide, "nvrtc": $nvrtc, "ptx": $ptx,
 "wgpu": $wgpu, "cuda": $cuda, "losses": $losses, "precisions": $precisions, "bench": $bench}
EOF
cat "$out"
case "$samples$random$long$steps$products$attention$wide$nvrtc$ptx$wgpu$cuda$losses$precisions" in *false*) exit 1 ;; esac
