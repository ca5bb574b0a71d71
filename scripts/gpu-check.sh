#!/bin/sh
# Checks of kernels and devices, on a machine with or without a GPU: writes one JSON to the file given,
# or to gpu-check.json. A check is true, false, or "skipped" where what it needs is not there:
#
# samples, random, long, steps   kernels of CUDA compiled as C++: g++
# products, attention            those that a library and units for matrices compute, likewise
# nvrtc, ptx                     kernels compiled for GPUs: NVRTC of Python's wheel, of the system
# wgpu                           all tests of devices by WebGPU: Vulkan, also lavapipe
# cuda                           the same on a GPU by NVIDIA, with equal bits of two runs
# losses                         200 steps of names, mnist and gpt-small there, beside the processor's
# bench                          time of a step there, in microseconds; gpt2 is the one of 124M
set -u
cd "$(dirname "$0")/.."
out=${1:-gpu-check.json}
log=$(mktemp)
gpu=none
if command -v nvidia-smi >/dev/null 2>&1; then
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    [ -n "$gpu" ] || gpu=none
fi
[ "$gpu" != none ] || echo "there is no GPU by NVIDIA here: cuda, losses and bench are skipped" >&2
passes() {
    if cargo test --release --all-features --test device -- --nocapture "$@" >"$log" 2>&1; then
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
nvrtc=$(passes nvrtc)
ptx=$(passes ptx)
wgpu=$(CHAINRULE_DEVICE=wgpu:0 passes on_device::)
cuda='"skipped"'
losses='"skipped"'
bench=null
if [ "$gpu" != none ]; then
    cuda=$(CHAINRULE_DEVICE=cuda:0 passes on_device::)
    losses=$(CHAINRULE_DEVICE=cuda:0 CHAINRULE_MODELS=names,mnist,gpt-small passes a_device_trains)
    cargo build --release --all-features -q
    bench=""
    for workload in names mnist gpt-small gpt-medium gpt2; do
        for precision in f32 tf32 bf16; do
            line=$(cargo run --release --all-features -q -- bench $workload --mode compiled --device cuda:0 \
                --precision $precision --json 2>>"$log")
            [ -n "$line" ] || line=null
            bench="$bench${bench:+, }\"$workload $precision\": $line"
        done
    done
    bench="{$bench}"
fi
rm -f "$log"
cat >"$out" <<EOF
{"gpu": "$gpu", "samples": $samples, "random": $random, "long": $long, "steps": $steps, "products": $products, "attention": $attention, "nvrtc": $nvrtc, "ptx": $ptx,
 "wgpu": $wgpu, "cuda": $cuda, "losses": $losses, "bench": $bench}
EOF
cat "$out"
case "$samples$random$long$steps$products$attention$nvrtc$ptx$wgpu$cuda$losses" in *false*) exit 1 ;; esac
