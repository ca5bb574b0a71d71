//! Export of programs to models.

use std::collections::HashMap;
use std::sync::Arc;

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::tensor::node::Source;
use chainrule_core::tensor::op::GRADIENT;
use chainrule_core::tensor::role::Role;
use chainrule_core::tensor::value::Value;
use chainrule_program::{Id, Instruction, Origin, Phase, Program};
use prost::bytes::Bytes;

use crate::batch::Batch;
use crate::graph::{Array, Graph, declared, fixed};
use crate::interpret::Interpreter;
use crate::lower::Takes;
use crate::model::Model;
use crate::proto::*;
use crate::value::Val;

/// Limit on nested definitions.
const DEEPEST: usize = 8;

/// Opset of exported models.
const OPSET: i64 = 21;

/// Matching IR version of the file format.
const IR_VERSION: i64 = 10;

/// A program as a graph, with its inputs and outputs.
pub(crate) struct Built {
    pub graph: Graph,
    pub inputs: Vec<Array>,
    pub outputs: Vec<Array>,
    /// Names of persistent cells, with those of their new values.
    pub state: Vec<(String, Option<String>)>,
    /// Parameters and their gradients.
    gradients: Vec<(String, String)>,
    /// Values of persistent cells.
    stored: Vec<TensorProto>,
    steps: bool,
}

/// Exports a program as an ONNX model of opset 21, in standard ops.
///
/// The arguments are the inputs, the results the outputs. The model stores cells that the program
/// only reads (weights in an inference). If it writes any (a training step), every persistent cell
/// is an input with its current value as the default, and its new value is an output: a session
/// that feeds the new values back trains. The model's metadata name the pairs (`chainrule.state`)
/// and the gradient of each parameter (`chainrule.parameters`), both as JSON.
///
/// Names of nodes have their modules as scopes, such as `/blocks.0/norm/Sub`, if the program was
/// traced with [`with_scopes`](chainrule_nn::nn::with_scopes).
///
/// Random numbers are drawn by the runtime, with its own generator.
///
/// Errors for an op without a form, by its name.
///
/// ```
/// use chainrule::{Tensor, program::Program};
/// let w = Tensor::from([0.5f32, -1.0]).parameter().named("w");
/// let x = Tensor::from([1.0f32, 2.0]);
/// let y = |args: &[Tensor]| Ok(vec![(&args[0] * &w).sum_all().named("y")]);
/// let program = Program::trace([("x", &x)], y)?;
/// let model = chainrule_onnx::export(&program)?;
/// assert_eq!(model.ops(), ["Mul", "ReduceSum"]);
/// assert_eq!((model.inputs(), model.outputs()), (vec!["x"], vec!["y"]));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn export(program: &Program) -> Result<Model> {
    let built = build(program, None)?;
    let dims = |a: &Array| fixed(&a.dims);
    Ok(finish(built, &dims, &dims))
}

/// As [`export`], for a dynamic batch size: from two programs of the same function, traced for
/// different sizes of the first axis of their arguments. The model declares that size as `batch`.
///
/// Errors also where the programs differ in more than the sizes that follow from it.
pub fn export_batched(one: &Program, other: &Program) -> Result<Model> {
    let (mut a, b) = (build(one, None)?, build(other, None)?);
    let batch = Batch::merge(&mut a, &b)?;
    let (inputs, outputs) = (pairs(&a.inputs, &b.inputs), pairs(&a.outputs, &b.outputs));
    let find = |all: &HashMap<String, Vec<(i64, i64)>>, x: &Array| batch.declared(&all[&x.name]);
    Ok(finish(a, &|x| find(&inputs, x), &|x| find(&outputs, x)))
}

/// Sizes of each value in both programs.
fn pairs(a: &[Array], b: &[Array]) -> HashMap<String, Vec<(i64, i64)>> {
    let dims = |(a, b): (&Array, &Array)| {
        (a.name.clone(), a.dims.iter().copied().zip(b.dims.iter().copied()).collect())
    };
    a.iter().zip(b).map(dims).collect()
}

type Dims<'a> = dyn Fn(&Array) -> Vec<DimProto> + 'a;

fn finish(built: Built, inputs: &Dims<'_>, outputs: &Dims<'_>) -> Model {
    let Built { graph, inputs: takes, outputs: gives, state, gradients, stored, steps } = built;
    let mut initializer = graph.constants;
    initializer.extend(stored);
    let declare = |all: &[Array], dims: &Dims<'_>| {
        all.iter().map(|a| declared(&a.name, a.dtype, dims(a))).collect()
    };
    let mut graph = GraphProto {
        name: Some(if steps { "step" } else { "program" }.to_string()),
        node: graph.nodes,
        initializer,
        input: declare(&takes, inputs),
        output: declare(&gives, outputs),
        sparse_initializer: Vec::new(),
    };
    crate::prune::unused(&mut graph);
    let state = state.into_iter().filter_map(|(a, b)| Some((a, b?)));
    let entry = |key: &str, pairs: String| EntryProto {
        key: Some(format!("chainrule.{key}")),
        value: Some(pairs),
    };
    let metadata_props =
        vec![entry("state", json(state)), entry("parameters", json(gradients.into_iter()))];
    Model(ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: Some("chainrule".to_string()),
        producer_version: Some(env!("CARGO_PKG_VERSION").to_string()),
        graph: Some(graph),
        opset_import: vec![OperatorSetProto { domain: Some(String::new()), version: Some(OPSET) }],
        metadata_props,
        functions: Vec::new(),
    })
}

/// Pairs of names, which are identifiers, as JSON.
fn json(pairs: impl Iterator<Item = (String, String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(a, b)| format!("{a:?}: {b:?}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// The graph of a program: for a model, or for a device, which supports some attention as one node.
pub(crate) fn build(program: &Program, takes: Option<Takes>) -> Result<Built> {
    let program = &program.optimized();
    let news = program.states().enumerate().filter_map(|(cell, (read, write, _))| {
        Some((write?, format!("{}_new", leaf_name(program, cell, read))))
    });
    let news = news.collect();
    let at = Interpreter::new(&Program::numpy_functions());
    let mut exporter = Exporter { at, depth: 0, news };
    exporter.at.takes = takes;
    let steps = program.states().any(|(_, write, _)| write.is_some());
    let mut known: HashMap<Id, Array> = HashMap::new();
    let mut inputs = Vec::new();
    for &id in program.arguments() {
        inputs.push(exporter.define(program, id, &mut known));
    }
    let mut stored = Vec::new();
    let mut state = Vec::new();
    for (cell, (read, _, _)) in program.states().enumerate() {
        let name = leaf_name(program, cell, read);
        let array = exporter.define_as(&name, program, read, &mut known);
        stored.push(stored_as(&array.name, &plain(program.leaf(cell).value()))?);
        state.push((array.name.clone(), None));
        if steps {
            inputs.push(array);
        }
    }
    exporter.instructions(program, &mut known)?;
    let mut outputs = Vec::new();
    for (name, id) in program.named_results() {
        let array = exporter.value(program, id, &mut known)?;
        outputs.push(exporter.output(&array, name, &inputs, &outputs));
    }
    for (cell, (read, write, _)) in program.states().enumerate() {
        let name = leaf_name(program, cell, read);
        if let Some(id) = write {
            let array = exporter.value(program, id, &mut known)?;
            let out = exporter.output(&array, &format!("{name}_new"), &inputs, &outputs);
            state[cell].1 = Some(out.name.clone());
            outputs.push(out);
        }
    }
    let gradients = gradients(program, &known);
    Ok(Built { graph: exporter.at.graph, inputs, outputs, state, gradients, stored, steps })
}

/// Name of a persistent cell: dotted if it has a path, such as `blocks.0.weight`, which no value of
/// a program is called.
fn leaf_name(program: &Program, cell: usize, read: Id) -> String {
    let plain = |name: &String| {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !name.is_empty() && name.chars().all(known)
    };
    let given = Tensor::of_leaf(program.leaf(cell)).name().filter(plain);
    given.unwrap_or_else(|| program.infos()[read.index()].name.clone())
}

/// Scope of an instruction's nodes: its modules, below the phase unless that is forward. Outside of
/// all modules it is the value's name, if any.
fn scope(program: &Program, instruction: &Instruction) -> String {
    let phase = match instruction.phase {
        Phase::Forward => String::new(),
        phase => format!("/{}", phase.name()),
    };
    let info = &program.infos()[instruction.result().index()];
    match &instruction.scope {
        Some(scope) => format!("{phase}/{scope}"),
        None if info.given => format!("{phase}/{}", info.name),
        None => phase,
    }
}

/// Each parameter that an optimizer updates, with its gradient.
fn gradients(program: &Program, known: &HashMap<Id, Array>) -> Vec<(String, String)> {
    let updates = program.list().iter().filter(|i| i.op.replaces(0) == Some(0));
    let name = |id: Id| known.get(&id).map(|a| a.name.clone());
    updates.filter_map(|i| Some((name(i.inputs[0])?, name(*i.inputs.get(GRADIENT)?)?))).collect()
}

/// A value as a tensor.
fn plain(value: Arc<Value>) -> Tensor {
    Tensor::from_parts(value, Source::None)
}

/// A tensor as stored in the model.
fn stored_as(name: &str, t: &Tensor) -> Result<TensorProto> {
    Ok(TensorProto {
        dims: t.shape().iter().map(|d| *d as i64).collect(),
        data_type: Some(crate::graph::number(t.dtype())),
        name: Some(name.to_string()),
        raw_data: Some(bytes_of(t)?),
        ..TensorProto::default()
    })
}

/// The elements of a value, without a copy.
struct Elements(Arc<Value>);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The elements, little-endian, without a copy if they are contiguous.
fn bytes_of(t: &Tensor) -> Result<Bytes> {
    match cfg!(target_endian = "big") {
        true => Ok(t.try_to_bytes()?.into()),
        false => Ok(Bytes::from_owner(Elements(t.value().contiguous()?))),
    }
}

struct Exporter {
    at: Interpreter,
    depth: usize,
    /// Names of new values of persistent cells.
    news: HashMap<Id, String>,
}

impl Exporter {
    fn define(&mut self, program: &Program, id: Id, known: &mut HashMap<Id, Array>) -> Array {
        let name = program.infos()[id.index()].name.clone();
        self.define_as(&name, program, id, known)
    }

    fn define_as(
        &mut self,
        name: &str,
        program: &Program,
        id: Id,
        known: &mut HashMap<Id, Array>,
    ) -> Array {
        let info = &program.infos()[id.index()];
        let name = self.at.graph.fresh(name);
        let dims = info.meta.shape.iter().map(|d| *d as i64).collect();
        let array = Array { name, dtype: info.meta.dtype, dims, weak: false };
        let kind = (array.dtype, array.dims.clone());
        self.at.graph.types.insert(array.name.clone(), kind);
        known.insert(id, array.clone());
        array
    }

    /// A value that is already computed, or a constant.
    fn value(
        &mut self,
        program: &Program,
        id: Id,
        known: &mut HashMap<Id, Array>,
    ) -> Result<Array> {
        if let Some(array) = known.get(&id) {
            return Ok(array.clone());
        }
        let info = &program.infos()[id.index()];
        let array = match &info.from {
            Origin::Constant(value) => {
                let t = plain(value.clone());
                let dims: Vec<i64> = t.shape().iter().map(|d| *d as i64).collect();
                self.at.graph.constant(t.dtype(), &dims, bytes_of(&t)?)
            }
            _ => unreachable!("arguments, state and results are defined before they are used"),
        };
        known.insert(id, array.clone());
        Ok(array)
    }

    fn output(&mut self, a: &Array, name: &str, inputs: &[Array], outputs: &[Array]) -> Array {
        let graph = &mut self.at.graph;
        let made = graph.nodes.iter().any(|n| n.output.contains(&a.name));
        let taken = inputs.iter().chain(outputs).any(|o| o.name == a.name);
        if made && !taken {
            return a.clone();
        }
        graph.scope = "/outputs".to_string();
        let from = graph.nodes.len();
        let mut out = graph.unary("Identity", a);
        graph.rename(&mut out, from, name);
        out
    }

    fn instructions(&mut self, program: &Program, known: &mut HashMap<Id, Array>) -> Result<()> {
        for instruction in program.list() {
            let inputs = instruction.inputs.iter().map(|id| self.value(program, *id, known));
            let inputs = inputs.collect::<Result<Vec<Array>>>()?;
            // Nodes of a definition get the scope of the op.
            if self.depth == 0 {
                self.at.graph.scope = scope(program, instruction);
            }
            let from = self.at.graph.nodes.len();
            let made = match self.empty(program, instruction) {
                Some(made) => made,
                None if self.at.takes.is_some() && instruction.op.role() == Role::Seed => {
                    vec![self.at.graph.node("RandomSeed", &[], vec![], DType::I64, vec![])]
                }
                None => match self.form(program, instruction, &inputs) {
                    Some(made) => made,
                    None => vec![self.defined(instruction, &inputs)?],
                },
            };
            for (&id, array) in instruction.outputs.iter().zip(made) {
                let info = &program.infos()[id.index()];
                let mut array = self.at.graph.cast(&array, info.meta.dtype);
                array.weak = false;
                let new = self.news.get(&id).filter(|_| self.depth == 0);
                let name = new.unwrap_or(&info.name).clone();
                self.at.graph.rename(&mut array, from, &name);
                known.insert(id, array);
            }
        }
        Ok(())
    }

    /// Results without elements, which runtimes treat differently.
    fn empty(&mut self, program: &Program, instruction: &Instruction) -> Option<Vec<Array>> {
        let one = |id: &Id| {
            let meta = &program.infos()[id.index()].meta;
            let dims: Vec<i64> = meta.shape.iter().map(|d| *d as i64).collect();
            let is_empty = dims.contains(&0);
            is_empty.then(|| self.at.graph.constant(meta.dtype, &dims, Bytes::new()))
        };
        instruction.outputs.iter().map(one).collect()
    }

    /// The results by the NumPy form, if it is supported.
    fn form(
        &mut self,
        program: &Program,
        instruction: &Instruction,
        inputs: &[Array],
    ) -> Option<Vec<Array>> {
        let names: Vec<String> = (0..inputs.len()).map(|i| format!("input{i}")).collect();
        let form = program.numpy_form(instruction, &names)?;
        let values = inputs.iter().map(|a| Val::from(a.clone()));
        let scope = names.iter().cloned().zip(values).collect();
        let before = self.at.graph.nodes.len();
        let value = self.at.form(&form, &scope);
        let found = value.and_then(|v| self.results(program, instruction, v));
        if found.is_none() {
            self.at.graph.nodes.truncate(before);
        }
        found
    }

    /// The arrays of a value, if their shapes match the program's.
    fn results(
        &mut self,
        program: &Program,
        instruction: &Instruction,
        value: Val,
    ) -> Option<Vec<Array>> {
        let all = match value {
            Val::Row(all) => all,
            one => vec![one],
        };
        let mut out = Vec::new();
        for (v, id) in all.iter().zip(&instruction.outputs) {
            let meta = &program.infos()[id.index()].meta;
            let array = self.at.graph.array(v, Some(meta.dtype))?;
            let dims: Vec<i64> = meta.shape.iter().map(|d| *d as i64).collect();
            if array.dims != dims && array.size() != dims.iter().product::<i64>() {
                return None;
            }
            out.push(if array.dims == dims { array } else { self.at.graph.reshape(&array, &dims) });
        }
        (out.len() == instruction.outputs.len()).then_some(out)
    }

    /// The result by the definition in primitive ops.
    fn defined(&mut self, instruction: &Instruction, inputs: &[Array]) -> Result<Array> {
        let op = &*instruction.op;
        let why = || {
            let why = format!(
                "`{}` has no ONNX form and no definition in ops that have one; compute it outside \
                 the function that is exported, or from other ops",
                op.name()
            );
            instruction.placed(Error::argument("onnx", why))
        };
        let definition = op.definition().filter(|_| self.depth < DEEPEST).ok_or_else(why)?;
        if instruction.outputs.len() > 1 {
            return Err(why());
        }
        let samples: Vec<Tensor> = inputs
            .iter()
            .map(|a| {
                let dims: Vec<usize> = a.dims.iter().map(|d| *d as usize).collect();
                Tensor::zeros(dims.as_slice()).to_dtype(a.dtype)
            })
            .collect();
        let names: Vec<String> = (0..inputs.len()).map(|i| format!("input{i}")).collect();
        let pairs = names.iter().map(String::as_str).zip(&samples);
        let inner = Program::trace(pairs, |x| Ok(vec![definition(x)?]))?;
        let mut known = inner.arguments().iter().copied().zip(inputs.iter().cloned()).collect();
        self.depth += 1;
        self.instructions(&inner, &mut known)?;
        self.depth -= 1;
        let result = inner.results().next().ok_or_else(why)?;
        self.value(&inner, result, &mut known)
    }
}
