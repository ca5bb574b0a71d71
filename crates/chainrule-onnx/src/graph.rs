//! Construction of a graph: nodes, constants, and the type of each value.

use std::collections::{HashMap, HashSet};

use chainrule_core::dtype::DType;
use prost::bytes::Bytes;

use crate::proto::*;

/// Largest inline constant, in elements: larger ones would be written out in full.
const MOST: i64 = 1 << 28;

/// A value of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<i64>,
    /// Whether it comes from a Python number, which adopts the dtype of its operand.
    pub weak: bool,
}

impl Array {
    pub fn rank(&self) -> i64 {
        self.dims.len() as i64
    }

    pub fn size(&self) -> i64 {
        self.dims.iter().product()
    }
}

/// An attribute.
pub(crate) enum Attr {
    Int(i64),
    Text(&'static str),
    Ints(Vec<i64>),
}

/// Nodes and constants so far.
#[derive(Default)]
pub(crate) struct Graph {
    pub nodes: Vec<NodeProto>,
    pub constants: Vec<TensorProto>,
    /// Names of constants by dtype, shape and elements.
    known: HashMap<(i32, Vec<i64>, Bytes), String>,
    names: HashSet<String>,
    /// The type of each value by its name.
    pub types: HashMap<String, (DType, Vec<i64>)>,
    /// Prefix of new nodes' names.
    pub scope: String,
}

/// ONNX's code of a dtype.
pub(crate) fn number(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::BF16 => 16,
    }
}

/// The declaration of a value.
pub(crate) fn declared(name: &str, dtype: DType, dims: Vec<DimProto>) -> ValueInfoProto {
    let shape = Some(ShapeProto { dim: dims });
    let tensor_type = Some(TensorTypeProto { elem_type: Some(number(dtype)), shape });
    ValueInfoProto { name: Some(name.to_string()), r#type: Some(TypeProto { tensor_type }) }
}

/// Sizes that are numbers.
pub(crate) fn fixed(dims: &[i64]) -> Vec<DimProto> {
    dims.iter().map(|&d| DimProto { dim_value: Some(d), dim_param: None }).collect()
}

impl Graph {
    /// A fresh name.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut n = 1;
        while !self.names.insert(name.clone()) {
            n += 1;
            name = format!("{wanted}.{n}");
        }
        name
    }

    /// Adds a node with one result, whose type the caller knows.
    pub fn node(
        &mut self,
        op: &str,
        inputs: &[&Array],
        attrs: Vec<(&str, Attr)>,
        dtype: DType,
        dims: Vec<i64>,
    ) -> Array {
        let names = inputs.iter().map(|a| a.name.clone()).collect();
        let out = self.fresh(&format!("{}/{op}", self.scope));
        self.nodes.push(NodeProto {
            input: names,
            output: vec![out.clone()],
            name: Some(out.clone()),
            op_type: Some(op.to_string()),
            attribute: attrs.into_iter().map(|(name, attr)| attribute(name, attr)).collect(),
            domain: None,
        });
        self.types.insert(out.clone(), (dtype, dims.clone()));
        Array { name: out, dtype, dims, weak: false }
    }

    /// Adds a result to the last node.
    pub fn beside(&mut self, dtype: DType, dims: Vec<i64>) -> Array {
        let name = self.fresh(&format!("{}/beside", self.scope));
        if let Some(node) = self.nodes.last_mut() {
            node.output.push(name.clone());
        }
        self.types.insert(name.clone(), (dtype, dims.clone()));
        Array { name, dtype, dims, weak: false }
    }

    /// A constant of these bytes, deduplicated.
    pub fn constant(&mut self, dtype: DType, dims: &[i64], bytes: Bytes) -> Array {
        let key = (number(dtype), dims.to_vec(), bytes.clone());
        let name = match self.known.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.fresh(&format!("constant_{}", self.constants.len()));
                self.types.insert(name.clone(), (dtype, dims.to_vec()));
                self.constants.push(TensorProto {
                    dims: dims.to_vec(),
                    data_type: Some(number(dtype)),
                    raw_data: Some(bytes),
                    name: Some(name.clone()),
                    ..TensorProto::default()
                });
                self.known.insert(key, name.clone());
                name
            }
        };
        Array { name, dtype, dims: dims.to_vec(), weak: false }
    }

    /// A vector of integers.
    pub fn ints(&mut self, values: &[i64]) -> Array {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(DType::I64, &[values.len() as i64], bytes)
    }

    /// A scalar.
    pub fn scalar(&mut self, dtype: DType, x: f64) -> Array {
        let bytes = match dtype {
            DType::F64 => x.to_le_bytes().to_vec(),
            DType::I64 => (x as i64).to_le_bytes().to_vec(),
            DType::Bool => vec![u8::from(x != 0.0)],
            _ => (x as f32).to_le_bytes().to_vec(),
        };
        self.constant(dtype, &[], bytes.into())
    }

    /// A constant fill.
    pub fn full(&mut self, dtype: DType, dims: &[i64], x: f64) -> Option<Array> {
        let size = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
        if size > MOST {
            return None;
        }
        let one = self.scalar(dtype, x);
        if dims.is_empty() {
            return Some(one);
        }
        let shape = self.ints(dims);
        Some(self.node("Expand", &[&one, &shape], vec![], dtype, dims.to_vec()))
    }

    /// Renames the result of a node made since `from`, if it is one.
    pub fn rename(&mut self, array: &mut Array, from: usize, wanted: &str) {
        let made = |n: &NodeProto| n.output.contains(&array.name);
        let Some(at) = self.nodes.iter().rposition(made).filter(|at| *at >= from) else { return };
        let name = self.fresh(wanted);
        let old = std::mem::replace(&mut array.name, name.clone());
        if let Some(kind) = self.types.remove(&old) {
            self.types.insert(name.clone(), kind);
        }
        let node = &mut self.nodes[at];
        node.output.iter_mut().filter(|o| **o == old).for_each(|o| o.clone_from(&name));
        for node in &mut self.nodes[at + 1..] {
            node.input.iter_mut().filter(|i| **i == old).for_each(|i| i.clone_from(&name));
        }
    }
}

fn attribute(name: &str, attr: Attr) -> AttributeProto {
    let empty = AttributeProto { name: Some(name.to_string()), ..AttributeProto::default() };
    match attr {
        Attr::Int(i) => AttributeProto { i: Some(i), r#type: Some(2), ..empty },
        Attr::Text(s) => AttributeProto { s: Some(s.into()), r#type: Some(3), ..empty },
        Attr::Ints(ints) => AttributeProto { ints, r#type: Some(7), ..empty },
    }
}
