#!/bin/sh
# Checks of the kernels, on a machine with or without a GPU: writes one JSON to the file given, or
# to gpu-check.json. The GPU is named where `nvidia-smi` knows one; no kernel is launched on it yet.
set -u
cd "$(dirname "$0")/.."
out=${1:-gpu-check.json}
log=$(mktemp)
gpu=none
if command -v nvidia-smi >/dev/null 2>&1; then
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
    [ -n "$gpu" ] || gpu=none
fi
passes() {
    if cargo test --release --all-features -p chainrule-gpu --test device -- --nocapture "$1" >"$log" 2>&1
    then
        if grep -q "^skipped:" "$log"; then echo '"skipped"'; else echo true; fi
    else
        tail -n 20 "$log" >&2
        echo false
    fi
}
samples=$(passes samples)
random=$(passes random)
steps=$(passes steps)
nvrtc=$(passes nvrtc)
webgpu=$(passes webgpu)
rm -f "$log"
cat >"$out" <<EOF
{"gpu": "$gpu", "samples": $samples, "random": $random, "steps": $steps, "nvrtc": $nvrtc, "webgpu": $webgpu}
EOF
cat "$out"
case "$samples$random$steps$nvrtc$webgpu" in *false*) exit 1 ;; esac
