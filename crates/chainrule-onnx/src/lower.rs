//! Programs lowered to plain nodes with the type of every value, for other back ends.

use std::collections::HashMap;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_program::Program;

/// A named value with its type.
#[derive(Clone, Debug)]
pub struct Typed {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<i64>,
}

/// A node in ONNX's terms.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operator of opset 21.
    pub op: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<Typed>,
    pub ints: HashMap<String, Vec<i64>>,
    /// Whether its scatter accumulates.
    pub adds: bool,
}

/// A constant and its bytes, little-endian.
#[derive(Clone, Debug)]
pub struct Constant {
    pub value: Typed,
    pub bytes: Vec<u8>,
}

/// A lowered program, its nodes in order.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub nodes: Vec<Node>,
    pub constants: Vec<Constant>,
    pub arguments: Vec<Typed>,
    /// For each cell of the program its value at the start of a run, and that at the end if it
    /// differs.
    pub states: Vec<(Typed, Option<String>)>,
    /// The results, by their names in `nodes`.
    pub outputs: Vec<String>,
}

/// An attention that a device may support as one node.
pub struct Attended {
    /// Dtypes and shapes of queries, keys, values and the mask, if any.
    pub operands: Vec<(DType, Vec<i64>)>,
    /// Scale of the scores.
    pub scale: f64,
}

/// Whether a device supports an attention, and then its gradient, as one node.
pub type Takes = fn(&Attended) -> bool;

/// Lowers a program for a device, with some nodes beyond ONNX. Errors for an op without a form, by
/// its name.
///
/// `Attention` of queries, keys, values, the mask, if there is one, and the drawn seed of its
/// dropout gives the result and two numbers for each row; `AttentionGrad` of the upstream
/// gradient, both of these, and the same inputs their gradients. Their attributes are `causal`, the
/// bits of `scale`, and with dropout those of its probability, `dropout`, and the `seed`, if it is
/// not drawn. `KeepFactors` are the factors of a dropout, with the same attributes and inputs, and
/// `RandomSeed` draws a seed.
pub fn lower(program: &Program, takes: Takes) -> Result<Lowered> {
    let built = crate::export::build(program, Some(takes))?;
    let types = &built.graph.types;
    let typed = |name: &String| {
        let (dtype, dims) = types.get(name).cloned().unwrap_or((DType::F32, Vec::new()));
        Typed { name: name.clone(), dtype, dims }
    };
    let nodes = built.graph.nodes.iter().map(|n| {
        let ints = n.attribute.iter().map(|a| {
            let all = a.i.map_or_else(|| a.ints.clone(), |i| vec![i]);
            (a.name.clone().unwrap_or_default(), all)
        });
        Node {
            op: n.op_type.clone().unwrap_or_default(),
            inputs: n.input.clone(),
            outputs: n.output.iter().map(typed).collect(),
            ints: ints.collect(),
            adds: n.attribute.iter().any(|a| a.s.as_deref() == Some(b"add")),
        }
    });
    let constants = built.graph.constants.iter().map(|c| Constant {
        value: typed(&c.name.clone().unwrap_or_default()),
        bytes: c.raw_data.as_deref().unwrap_or_default().to_vec(),
    });
    let writes = built.state.iter().filter(|(_, write)| write.is_some()).count();
    let results = built.outputs.len() - writes;
    let arguments = program.arguments().len();
    Ok(Lowered {
        constants: constants.collect(),
        arguments: built.inputs[..arguments].iter().map(|a| typed(&a.name)).collect(),
        states: built.state.iter().map(|(read, write)| (typed(read), write.clone())).collect(),
        outputs: built.outputs[..results].iter().map(|a| a.name.clone()).collect(),
        nodes: nodes.collect(),
    })
}
