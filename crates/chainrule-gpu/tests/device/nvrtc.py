"""Compiles CUDA sources for sm_80 and sm_90 with NVRTC of the wheel nvidia-cuda-nvrtc: no GPU is
needed.

Without files it says by its status whether NVRTC is there.
"""

import ctypes
import glob
import os
import site
import sys


def library():
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so*"))):
            return ctypes.CDLL(path)
    return None


def compiled(nvrtc, path, architecture):
    """The size of the cubin, or the log of the compiler."""
    program = ctypes.c_void_p()
    with open(path, "rb") as file:
        text = file.read()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"step.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    status = nvrtc.nvrtcCompileProgram(program, 1, options)
    size = ctypes.c_size_t()
    if status == 0:
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        return size.value, ""
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return 0, log.value.decode()


nvrtc = library()
if nvrtc is None:
    sys.exit("there is no NVRTC; pip install nvidia-cuda-nvrtc")
for path in sys.argv[1:]:
    for architecture in ("sm_80", "sm_90"):
        size, log = compiled(nvrtc, path, architecture)
        if not size:
            sys.exit(print(log[:4000]) or 1)
        print(f"{size} bytes for {architecture}")
