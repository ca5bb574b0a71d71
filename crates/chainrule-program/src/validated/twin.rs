//! A run of the plain program beside others, from which its rounding errors are read.

use std::sync::Arc;

use crate::Program;
use crate::dtype::DType;
use crate::error::Result;
use crate::ir::{Id, Info, Instruction, Origin};
use crate::place::Lifetimes;
use crate::tensor::Tensor;
use crate::tensor::node::lock;
use crate::tensor::op::Kernel;
use crate::tensor::run::compute_as;
use crate::tensor::value::{Meta, Value};

/// Perturbation of the inputs of a program in f64 where it is run again, in units of the relative
/// rounding error.
const MOVED: f64 = 4.0;

/// Perturbation of each step's result then. Conditioning alone does not tell what a program loses:
/// its own steps round too.
const STEP_MOVED: f64 = 1.0;

/// On how many moves of its inputs a program in f64 is run, and then on as many with its steps
/// moved too.
const MOVES: usize = 2;

/// The roots of a program: its outputs, and then the new values of its cells.
pub(super) struct Twin {
    pub plain: Vec<Arc<Value>>,
    /// The same in f64, or on inputs that were moved, once for each move.
    pub others: Vec<Vec<Arc<Value>>>,
    /// For a program in f64 the same with the result of each step moved, too.
    pub stepped: Vec<Vec<Arc<Value>>>,
}

/// The roots of a program, in the order of [`Twin`].
pub(super) fn roots(program: &Program) -> Vec<Id> {
    program.roots().collect()
}

/// Runs the program without changing anything but generators.
pub(super) fn run(program: &Program, arguments: &[&Tensor]) -> Result<Vec<Arc<Value>>> {
    Ok(Walk::new(program, arguments, 0)?.run(program)?.plain)
}

/// As [`run`], with the other runs beside it. Draws, and what is decided by comparisons, are those
/// of the first.
pub(super) fn run_twice(program: &Program, arguments: &[&Tensor]) -> Result<Twin> {
    let of = |info: &Info| match &info.from {
        Origin::Constant(_) | Origin::Result => false,
        Origin::Input(_) | Origin::Cell(_) => info.meta.dtype == DType::F64,
    };
    let moves = if program.values.iter().any(of) { 2 * MOVES } else { 1 };
    Walk::new(program, arguments, moves)?.run(program)
}

struct Walk {
    plain: Vec<Option<Arc<Value>>>,
    others: Vec<Vec<Option<Arc<Value>>>>,
}

impl Walk {
    fn new(program: &Program, arguments: &[&Tensor], others: usize) -> Result<Walk> {
        let mut walk = Walk { plain: Vec::new(), others: vec![Vec::new(); others] };
        for (i, info) in program.values.iter().enumerate() {
            let value = match &info.from {
                Origin::Input(i) => Some(arguments[*i].value()),
                Origin::Cell(i) => Some(lock(&program.cells[*i].leaf.value).clone()),
                Origin::Constant(value) => Some(value.clone()),
                Origin::Result => None,
            };
            let exact = matches!(info.from, Origin::Constant(_));
            for (run, other) in walk.others.iter_mut().enumerate() {
                let seed = (i * others + run) as u64;
                other.push(match &value {
                    Some(value) if value.dtype() == DType::F64 && !exact => {
                        Some(moved(value, seed, MOVED)?)
                    }
                    Some(value) => Some(wide(value)?),
                    None => None,
                });
            }
            walk.plain.push(value);
        }
        Ok(walk)
    }

    fn run(mut self, program: &Program) -> Result<Twin> {
        let lifetimes = Lifetimes::of(program);
        for (i, instruction) in program.instructions.iter().enumerate() {
            self.step(program, instruction)?;
            for id in &lifetimes.dropped[i] {
                self.plain[id.index()] = None;
                self.others.iter_mut().for_each(|other| other[id.index()] = None);
            }
        }
        let ids = roots(program);
        let of = |values: &[Option<Arc<Value>>]| -> Vec<Arc<Value>> {
            ids.iter().map(|id| values[id.index()].clone().expect("roots are kept")).collect()
        };
        let mut others: Vec<_> = self.others.iter().map(|other| of(other)).collect();
        let stepped = others.split_off(others.len().min(MOVES));
        Ok(Twin { plain: of(&self.plain), others, stepped })
    }

    fn step(&mut self, program: &Program, instruction: &Instruction) -> Result<()> {
        let take = |values: &[Option<Arc<Value>>]| -> Vec<Arc<Value>> {
            let ids = instruction.inputs.iter();
            ids.map(|id| values[id.index()].clone().expect("the check found it defined")).collect()
        };
        let meta = program.info(instruction.result()).meta;
        let outcome = compute_as(&*instruction.op, &take(&self.plain), meta)
            .map_err(|e| instruction.placed(e))?;
        let plain: Vec<Arc<Value>> = std::iter::once(outcome.value).chain(outcome.extra).collect();
        let runs = self.others.len();
        let rounds = !matches!(instruction.op.kernel(), Kernel::View(_));
        for (run, other) in self.others.iter_mut().enumerate() {
            let made = second(instruction, &take(other));
            for (k, id) in instruction.outputs.iter().enumerate() {
                let given = made.as_ref().and_then(|o| o.get(k));
                let fits =
                    given.filter(|o| plain[k].dtype().is_float() && o.shape() == plain[k].shape());
                let value = wide(fits.unwrap_or(&plain[k]))?;
                let seed = (id.index() * runs + run) as u64;
                let rounds = run >= MOVES && rounds && fits.is_some();
                other[id.index()] =
                    Some(if rounds { moved(&value, seed, STEP_MOVED)? } else { value });
            }
        }
        for (id, value) in instruction.outputs.iter().zip(plain) {
            self.plain[id.index()] = Some(value);
        }
        Ok(())
    }
}

/// The results of the instruction on the other values, where the op takes them; a draw is not
/// repeated.
fn second(instruction: &Instruction, inputs: &[Arc<Value>]) -> Option<Vec<Arc<Value>>> {
    if instruction.op.generator().is_some() {
        return None;
    }
    let metas: Vec<Meta> = inputs.iter().map(|v| v.meta).collect();
    let meta = instruction.op.infer(&metas).ok()?;
    // An op that insists on f32 has it among its parameters.
    if meta.dtype == DType::F32 {
        return None;
    }
    let outcome = compute_as(&*instruction.op, inputs, meta).ok()?;
    Some(std::iter::once(outcome.value).chain(outcome.extra).collect())
}

/// A value in f64, if it is one of f32.
fn wide(value: &Arc<Value>) -> Result<Arc<Value>> {
    match value.dtype() {
        DType::F32 => from_numbers(value, numbers(value)),
        _ => Ok(value.clone()),
    }
}

/// A value with each element moved by up to this many units in its last place.
fn moved(value: &Arc<Value>, seed: u64, units: f64) -> Result<Arc<Value>> {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut all = numbers(value);
    for v in &mut all {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let u = (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        *v *= 1.0 + units * f64::EPSILON * u;
    }
    from_numbers(value, all)
}

fn from_numbers(like: &Value, all: Vec<f64>) -> Result<Arc<Value>> {
    let made = Value::build::<f64>("validate", *like.shape(), |out| out.copy_from_slice(&all))?;
    Ok(Arc::new(made))
}

/// The elements of a float value in f64.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    crate::algebra::elements(value)
}
