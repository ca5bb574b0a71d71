"""The tests that the ONNX project has for its ops, as a list of files in one: see `nodes.rs`."""

import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")

# Dtypes that tensors of chainrule have.
KNOWN = {
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16,
    TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
}


def types(graph):
    """All types of values that a graph declares, and those of the graphs in it."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        yield value.type
    for tensor in graph.initializer:
        yield onnx.helper.make_tensor_type_proto(tensor.data_type, [])
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "output_dtype") and attribute.i:
                yield onnx.helper.make_tensor_type_proto(attribute.i, [])
            if attribute.HasField("t"):
                yield onnx.helper.make_tensor_type_proto(attribute.t.data_type, [])
            if attribute.HasField("g"):
                yield from types(attribute.g)


def beyond(graph):
    """The reason why no tensor of chainrule holds the values of a graph, or nothing."""
    for kind in types(graph):
        if kind.WhichOneof("value") not in ("tensor_type", None):
            return kind.WhichOneof("value").removesuffix("_type")
        if kind.HasField("tensor_type") and kind.tensor_type.elem_type not in KNOWN:
            return TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    return ""


def message(value, name):
    """A value as a tensor of ONNX; nothing for an input that is left out."""
    if value is None:
        return b""
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


with open(sys.argv[1], "wb") as out:
    def put(data):
        data = data if isinstance(data, bytes) else str(data).encode()
        out.write(len(data).to_bytes(4, "little") + data)

    for case in collect_testcases(None):
        why = beyond(case.model.graph)
        sets = [] if why else case.data_sets
        put(case.name)
        put(why)
        put(f"{case.rtol} {case.atol} {len(sets)}")
        put(case.model.SerializeToString() if not why else b"")
        for inputs, outputs in sets:
            put(f"{len(inputs)} {len(outputs)}")
            names = [i.name for i in case.model.graph.input]
            assert len(names) == len(inputs), case.name
            for name, value in zip(names, inputs):
                put(name)
                put(message(value, name))
            for value in outputs:
                put(message(value, ""))
