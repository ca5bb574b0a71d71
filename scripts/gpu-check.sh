#!/bin/sh
# Checks of kernels and devices, on a machine with or without a GPU: writes one JSON to the file given,
# or to gpu-check.json. A check is true, false, or "skipped" where what it needs is not there:
#
# samples, random, long, steps   kernels of CUDA compiled as C++: g++
# persistent                     whole steps as one kernel, likewise
# products, attention            those that a library and units for matrices compute, likewise
# verbs                          calls of a device that notes them, and epilogues of products
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
    own=$(mktemp)
    if tested "$@" >"$own" 2>&1; then
        if grep -q "skipped: " "$own"; then echo '"skipped"'; else echo true; fi
    else
        tail -n 20 "$own" >&2
        echo false
    fi
    rm -f "$own"
}
# Checks run beside one another, each with a file for its result.
results=$(mktemp -d)
beside() {
    name=$1
    shift
    passes "$@" >"$results/$name" &
}
[ -n "${CHAINRULE_DEVICE_TEST:-}" ] || cargo test --release --all-features --test device --no-run -q
for name in cuda losses precisions; do
    echo '"skipped"' >"$results/$name"
done
if [ "$gpu" != none ]; then
    CHAINRULE_DEVICE=cuda:0 beside cuda on_device:: residents:: --skip a_device_trains
    CHAINRULE_DEVICE=cuda:0 CHAINRULE_GPT2=1 beside precisions precision:: --skip times_of
    CHAINRULE_DEVICE=cuda:0 CHAINRULE_MODELS=names,mnist,gpt-small beside losses a_device_trains
fi
beside samples ops_give_the_same
beside random random_programs_give
beside long long::
beside steps steps::
beside persistent persistent:: --skip ops_give --skip random_programs
beside products products::
beside attention attention:: --skip on_device::
beside wide wide::
beside nvrtc nvrtc
beside ptx ptx
beside verbs verbs:: epilogues::
CHAINRULE_DEVICE=wgpu:0 beside wgpu on_device:: residents::
# Nothing runs beside what is timed.
wait
bench=null
if [ "$gpu" != none ]; then
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
for name in samples random long steps persistent products verbs attention wide nvrtc ptx wgpu cuda losses precisions; do
    eval "$name=\$(cat $results/$name)"
done
rm -rf "$log" "$results"
cat >"$out" <<EOF
{"gpu": "$gpu", "samples": $samples, "random": $random, "long": $long, "steps": $steps, "persistent": $persistent, "products": $products, "verbs": $verbs, "attention": $attention, "wide": $wide, "nvrtc": $nvrtc, "ptx": $ptx,
 "wgpu": $wgpu, "cuda": $cuda, "losses": $losses, "precisions": $precisions, "bench": $bench}
EOF
cat "$out"
case "$samples$random$long$steps$persistent$products$verbs$attention$wide$nvrtc$ptx$wgpu$cuda$losses$precisions" in *false*) exit 1 ;; esac
