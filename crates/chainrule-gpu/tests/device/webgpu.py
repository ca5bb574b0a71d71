"""Runs kernels of WebGPU, on a software adapter too: `webgpu.py CASES OUT`.

CASES has a line of JSON for each case: buffers as hexadecimal bytes or a size, launches as text,
entry, blocks and buffers, and the buffers to read. OUT gets the bytes that were read. Without
files it says by its status whether there is an adapter.
"""

import json
import sys

import wgpu

adapter = wgpu.gpu.request_adapter_sync()
name = "max-storage-buffers-per-shader-stage"
device = adapter.request_device_sync(required_limits={name: adapter.limits[name]})


def run(case, out):
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers = []
    for b in case["buffers"]:
        data = bytes.fromhex(b) if isinstance(b, str) else b"\xff" * b
        data = data or b"\0" * 4
        buffers.append(device.create_buffer_with_data(data=data, usage=usage))
    encoder = device.create_command_encoder()
    for launch in case["launches"]:
        shader = device.create_shader_module(code=case["prelude"] + launch["text"])
        stage = {"module": shader, "entry_point": launch["name"]}
        pipeline = device.create_compute_pipeline(layout="auto", compute=stage)
        entries = [
            {"binding": i, "resource": {"buffer": buffers[b], "offset": 0, "size": buffers[b].size}}
            for i, b in enumerate(launch["arguments"])
        ]
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        blocks = launch["blocks"]
        work.dispatch_workgroups(min(blocks, 65535), -(-blocks // 65535), 1)
        work.end()
    device.queue.submit([encoder.finish()])
    for b, size in case["outputs"]:
        out.write(bytes(device.queue.read_buffer(buffers[b]))[:size])


if len(sys.argv) > 2:
    with open(sys.argv[1]) as cases, open(sys.argv[2], "wb") as out:
        for line in cases:
            case = json.loads(line)
            try:
                run(case, out)
            except Exception as e:
                sys.exit(f"{case['name']}: {e}")
