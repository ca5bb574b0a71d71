//! From the log of a trace to a program.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use super::Program;
use super::ir::{Cell, Id, Info, Instruction, Maker, Origin, Out, Phase};
use super::names::Names;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::log::{self, Address, Cause, Held, TraceLog};
use crate::tensor::node::{Leaf, lock};
use crate::tensor::place::Script;
use crate::tensor::value::{Meta, Value};

impl Program {
    /// Runs `f` once on these arguments and returns what it did as a program: every op that was
    /// applied, also those of a backward pass and of an optimizer's step. The tensors that `f`
    /// returns are the outputs. Parameters and other leaves that `f` uses or changes are read and
    /// written by each run.
    ///
    /// The arguments' values serve only to run `f`; another run may have others of the same shape
    /// and dtype. Nothing is changed by the trace. Dead code and common subexpressions are still
    /// there: see [`Program::optimized`].
    ///
    /// Errors as `f` does, and where the elements of a value that depends on the arguments are read
    /// (`item`, `to_vec`, ...): a program cannot follow that.
    pub fn trace<'a>(
        arguments: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Program> {
        Program::trace_as(None, arguments, f)
    }

    /// As [`Program::trace`], for a function that is written in another language: the program names
    /// its lines and variables.
    pub fn trace_script<'a>(
        script: Script,
        arguments: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Program> {
        Program::trace_as(Some(script), arguments, f)
    }

    /// As [`Program::trace_script`], for a language whose users expect that gradients outlast a
    /// run: the results of the program are those of `f` and then those gradients that
    /// [`Graded::after`] says. The caller keeps them.
    pub fn trace_graded<'a>(
        script: Script,
        arguments: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
        mut f: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<(Program, Vec<Graded>)> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let mut graded = Vec::new();
        let program = Program::of_call(Some(script), &arguments, &mut |x| {
            let mut results = f(x)?;
            graded = log::touched(|touched, now, written| {
                let leaf = Tensor::of_leaf(&touched.leaf);
                let after = match now {
                    None if leaf.has_lost_grad() => Remains::Lost,
                    None => Remains::Nothing,
                    Some(_) if written && !touched.reads => Remains::Lost,
                    Some(gradient) => {
                        results.push(gradient);
                        Remains::Result(results.len() - 1)
                    }
                };
                let had = touched.reads.then_some(touched.before.is_some());
                let lost = touched.reads && touched.lost;
                Graded { leaf, had, lost, entry: touched.entry.clone(), after }
            });
            Ok(results)
        })?;
        Ok((program, graded))
    }

    fn trace_as<'a>(
        script: Option<Script>,
        arguments: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Program> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let mut f = Some(f);
        Program::of_call(script, &arguments, &mut |x| f.take().expect("it is called once")(x))
    }

    /// The part that is the same for all functions, so that it is compiled once.
    fn of_call(
        script: Option<Script>,
        arguments: &[(&str, &Tensor)],
        f: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Program> {
        let mut builder = Builder::default();
        let mut given = Vec::new();
        for (i, (name, argument)) in arguments.iter().enumerate() {
            let value = argument.value();
            // A value of its own, so that it is not mistaken for a constant that `f` captured.
            let own = Arc::new(Value::view(&value, *value.shape(), value.layout()));
            let id = builder.define((Arc::as_ptr(&own), own.meta), Some(name), Origin::Input(i));
            builder.program.inputs.push(id);
            given.push(own);
        }
        let tensors: Vec<Tensor> = given
            .iter()
            .map(|v| Tensor::from_parts(v.clone(), crate::tensor::node::Source::None))
            .collect();
        let run = || {
            let results = f(&tensors)?;
            // Leaves are resolved while their stand-ins are in place.
            Ok(results.into_iter().map(|t| (t.value(), t.name())).collect::<Vec<_>>())
        };
        let (results, log) = log::keep(&given, script, run)?;
        builder.build(&log, &results)
    }
}

/// Changes that a traced script made to the gradient of a leaf that is older than the trace.
pub struct Graded {
    /// The leaf.
    pub leaf: Tensor,
    /// Whether it had a gradient before, which must be so in each run; none where the gradient was
    /// set or forgotten at first.
    pub had: Option<bool>,
    /// Whether a program had used it up before, which must be so in each run: what is added to it
    /// stays unknown.
    pub lost: bool,
    /// The leaf in which the program finds the gradient from before, to be set before a run.
    pub entry: Option<Tensor>,
    /// The gradient after a run.
    pub after: Remains,
}

/// The gradient of a leaf after a run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// There is none.
    Nothing,
    /// The result with this number.
    Result(usize),
    /// It was used up by an update of the leaf, and is not given back: most do not look at it, and
    /// it need not be stored.
    Lost,
}

/// A program in the making.
struct Builder {
    program: Program,
    known: HashMap<Address, Id>,
    names: Names,
    /// Names that the user gave, by the address of the value.
    wanted: HashMap<Address, String>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            program: Program {
                values: Vec::new(),
                instructions: Vec::new(),
                inputs: Vec::new(),
                cells: Vec::new(),
                outputs: Vec::new(),
                fresh: Vec::new(),
                groups: Vec::new(),
                is_planned: false,
                is_seen: false,
                lifetimes: OnceLock::new(),
                scratch: Mutex::default(),
                placement: OnceLock::new(),
                machine: Mutex::default(),
            },
            known: HashMap::new(),
            names: Names::default(),
            wanted: HashMap::new(),
        }
    }
}

impl Builder {
    fn build(
        mut self,
        log: &TraceLog,
        results: &[(Arc<Value>, Option<String>)],
    ) -> Result<Program> {
        self.read_cells(log);
        self.name_all(log, results);
        for entry in &log.entries {
            let outputs = &entry.outputs;
            // A function that passes on a known value, as a custom op does, is no instruction.
            if self.known.contains_key(&outputs[0].address()) {
                for extra in &outputs[1..] {
                    self.held(extra);
                }
                continue;
            }
            let inputs: SmallVec<[Id; 2]> = entry.inputs.iter().map(|v| self.held(v)).collect();
            let (phase, made_by) = match entry.cause {
                Cause::Forward => (Phase::Forward, Maker::User),
                Cause::Rule { op, .. } => (Phase::Backward, Maker::Rule(op)),
                Cause::Walk => (Phase::Backward, Maker::Sum),
                Cause::Update => (Phase::Update, Maker::Optimizer),
            };
            let mut ids = SmallVec::new();
            for (i, value) in outputs.iter().enumerate() {
                let stem = match i {
                    0 => entry.op.name().to_string(),
                    i => format!("{}_{i}", entry.op.name()),
                };
                ids.push(self.result(value, &stem));
            }
            let op = entry.op.clone();
            self.program.instructions.push(Instruction {
                op,
                inputs,
                outputs: ids,
                phase,
                made_by,
                location: log.place(entry),
                scope: entry.scope.clone(),
            });
        }
        self.write_cells(log);
        self.program.fresh = log.generators.iter().filter(|d| d.fresh).cloned().collect();
        for (i, (value, name)) in results.iter().enumerate() {
            let id = self.id(value);
            let name = match name {
                Some(name) => name.clone(),
                None if self.program.info(id).given => self.program.name(id).to_string(),
                None => format!("output_{i}"),
            };
            self.program.outputs.push(Out { name, id });
        }
        if let Some(small) = self.program.values.iter().find(|v| v.meta.dtype.is_widened()) {
            let why = format!(
                "{} is of a dtype that programs do not have: they compute in bool, i64, f32 and \
                 f64; convert with to_dtype before the program, or run the function as it is",
                small.name
            );
            return Err(Error::dtype("program", &[small.meta.dtype], why));
        }
        self.program.check()?;
        Ok(self.program)
    }

    /// Leaves that were met, by their stand-ins.
    fn read_cells(&mut self, log: &TraceLog) {
        for (i, met) in log.leaves.iter().enumerate() {
            let name = leaf_name(&met.leaf);
            let name = name.as_deref().or(log.names.get(&Arc::as_ptr(&met.stand_in)).map(|n| &**n));
            let stand_in = (Arc::as_ptr(&met.stand_in), met.stand_in.meta);
            let read = self.define(stand_in, Some(name.unwrap_or("leaf")), Origin::Cell(i));
            self.program.values[read.index()].given = name.is_some();
            let trained = met.leaf.requires_grad.load(Ordering::Relaxed);
            self.program.cells.push(Cell { leaf: met.leaf.clone(), trained, read, write: None });
        }
    }

    fn write_cells(&mut self, log: &TraceLog) {
        for (i, met) in log.leaves.iter().enumerate() {
            if !Arc::ptr_eq(&met.stand_in, &met.after) {
                let id = self.id(&met.after);
                self.program.cells[i].write = Some(id);
            }
        }
    }

    /// The names of all values that have one: given by the user, or `d_x` for the gradient of `x`,
    /// or that of the output.
    fn name_all(&mut self, log: &TraceLog, results: &[(Arc<Value>, Option<String>)]) {
        for (address, name) in &log.names {
            self.wanted.insert(*address, name.clone());
        }
        for (value, name) in results {
            if let Some(name) = name {
                self.wanted.entry(Arc::as_ptr(value)).or_insert_with(|| name.clone());
            }
        }
        super::names::from_source(log, &mut self.wanted);
        for met in &log.leaves {
            if let Some(name) = leaf_name(&met.leaf) {
                self.wanted.insert(Arc::as_ptr(&met.stand_in), name.clone());
                if !Arc::ptr_eq(&met.stand_in, &met.after) {
                    self.wanted.insert(Arc::as_ptr(&met.after), format!("{name}_new"));
                }
            }
        }
        for (gradient, of) in &log.gradients {
            if let Some(name) = log.numbers.get(of).and_then(|a| self.wanted.get(a)) {
                let name = format!("d_{name}");
                self.wanted.entry(gradient.as_ptr()).or_insert(name);
            }
        }
    }

    /// As [`Builder::id`], of a value that the log holds.
    fn held(&mut self, value: &Held) -> Id {
        match value {
            Held::Given(value) => self.id(value),
            Held::Made { .. } => self.known[&value.address()],
        }
    }

    /// The id of a value that some op takes: what is not known by now was there before the trace or
    /// came from nothing.
    fn id(&mut self, value: &Arc<Value>) -> Id {
        match self.known.get(&Arc::as_ptr(value)) {
            Some(&id) => id,
            None => {
                let name = self.wanted.get(&Arc::as_ptr(value)).cloned();
                let given = name.is_some();
                let id = self.define(
                    (Arc::as_ptr(value), value.meta),
                    Some(name.as_deref().unwrap_or("c")),
                    Origin::Constant(value.clone()),
                );
                self.program.values[id.index()].given = given;
                id
            }
        }
    }

    fn result(&mut self, value: &Held, stem: &str) -> Id {
        let name = self.wanted.get(&value.address()).cloned();
        let value = (value.address(), value.meta());
        let id = self.define(value, Some(name.as_deref().unwrap_or(stem)), Origin::Result);
        self.program.values[id.index()].given = name.is_some();
        id
    }

    /// Addresses identify values, so each value must live as long as this: the log and the caller
    /// see to it.
    fn define(&mut self, (address, meta): (Address, Meta), name: Option<&str>, from: Origin) -> Id {
        let id = Id(self.program.values.len() as u32);
        let name = self.names.unique(name.unwrap_or("t"));
        self.program.values.push(Info { meta, name, given: true, from });
        self.known.insert(address, id);
        id
    }
}

/// The name that the user gave a leaf.
fn leaf_name(leaf: &Leaf) -> Option<String> {
    lock(&leaf.notes).as_ref()?.name.clone()
}

/// The error for a name that a program does not know.
pub(super) fn unknown(program: &Program, name: &str) -> Error {
    let near: Vec<&str> =
        program.values.iter().filter(|v| v.given).map(|v| v.name.as_str()).take(40).collect();
    Error::argument(
        "program",
        format!("there is no value `{name}`; the named ones are {}", near.join(", ")),
    )
}
