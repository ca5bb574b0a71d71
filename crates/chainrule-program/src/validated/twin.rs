//! A run of the plain program beside others, from which its rounding errors are read.

use std::ops::Range;
use std::sync::Arc;

use crate::Program;
use crate::dtype::DType;
use crate::error::Result;
use crate::ir::{Cell, Id, Instruction, Origin, Phase};
use crate::place::Lifetimes;
use crate::tensor::Tensor;
use crate::tensor::op::Kernel;
use crate::tensor::run::compute_as;
use crate::tensor::value::{Meta, Value};

/// Perturbation of the inputs where a program is run again, in units of the relative rounding
/// error.
const MOVED: f64 = 4.0;

/// Perturbation of each step's result, too, of a program in f64. Conditioning alone does not tell
/// what a program loses: its own steps round too.
const STEP_MOVED: f64 = 1.0;

/// On how many moves of its inputs a program in f64 is run, and then on as many with its steps
/// moved too.
const FEW_MOVES: u64 = 2;

/// On how many moves of its inputs a program is run before a difference that is more than roundings
/// of the results is put down to its inputs. A result that is rounding alone stays as it is in most
/// moves and is far off in some; one or two of these by chance are no conditioning.
const MOVES: u64 = 8;

/// The runs by which the roundings of a program are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Runs {
    /// The plain one alone.
    Plain,
    /// In f64 what is f32, and on moved inputs what is f64.
    Few,
    /// On more moved inputs, those of f32 too, and what is f64 with moved steps.
    All,
}

/// The roots of a program: its outputs, and then the new values of its cells.
#[derive(Clone, Default)]
pub(super) struct Twin {
    pub plain: Vec<Arc<Value>>,
    /// The phase in which each is computed; what no instruction computes counts as backward.
    pub phases: Vec<Phase>,
    /// The same with all that is f32 in f64; none in a program of f64.
    pub wide: Option<Vec<Arc<Value>>>,
    /// The same on inputs that were moved, once for each move.
    pub moved: Vec<Vec<Arc<Value>>>,
    /// For a program in f64 the same with the result of each step moved, too.
    pub stepped: Vec<Vec<Arc<Value>>>,
}

impl Twin {
    /// The roots but for these.
    pub fn without(self, gone: &Range<usize>) -> Twin {
        let values = |mut all: Vec<Arc<Value>>| {
            all.drain(gone.clone());
            all
        };
        let mut phases = self.phases;
        phases.drain(gone.clone());
        Twin {
            plain: values(self.plain),
            phases,
            wide: self.wide.map(values),
            moved: self.moved.into_iter().map(values).collect(),
            stepped: self.stepped.into_iter().map(values).collect(),
        }
    }
}

/// A further run beside the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Wide,
    /// With a seed of its own.
    Moved(u64),
    Stepped(u64),
}

/// Runs the program without changing anything but generators: its outputs, and then the new values
/// of the cells that are written in the list, which is that of another form of it. A cell that it
/// does not write keeps its value.
pub(super) fn run(
    program: &Program,
    cells: &[Cell],
    arguments: &[&Tensor],
) -> Result<Vec<Arc<Value>>> {
    let mut outputs = Walk::new(program, arguments, Vec::new())?.run(program)?.plain;
    let written = |cell: &&Cell| cell.write.is_some();
    let own = outputs.split_off(program.outputs.len());
    let own: Vec<_> = program.cells.iter().filter(written).zip(own).collect();
    let new = |cell: &Cell| {
        let found = own.iter().find(|(c, _)| Arc::ptr_eq(&c.leaf, &cell.leaf));
        found.map_or_else(|| cell.leaf.now(), |(_, value)| value.clone())
    };
    outputs.extend(cells.iter().filter(written).map(new));
    Ok(outputs)
}

/// As [`run`], with the other runs beside it. Draws, and what is decided by comparisons, are those
/// of the first.
pub(super) fn run_beside(program: &Program, arguments: &[&Tensor], how: Runs) -> Result<Twin> {
    let phases = phases(program);
    // The learning rate and the like are f64 in any program, and say nothing about it.
    let has = |dtype| {
        let all = program.roots().zip(&phases);
        let mut those = all.filter(|(id, _)| program.info(*id).meta.dtype == dtype);
        those.any(|(_, phase)| *phase != Phase::Update)
    };
    let mut runs = Vec::new();
    if has(DType::F32) {
        runs.push((Runs::Few, Run::Wide));
    }
    if has(DType::F64) {
        runs.extend((0..FEW_MOVES).map(|i| (Runs::Few, Run::Moved(i))));
        runs.extend((0..FEW_MOVES).map(|i| (Runs::All, Run::Stepped(i))));
    }
    let known = runs.iter().filter(|(_, run)| matches!(run, Run::Moved(_))).count() as u64;
    runs.extend((known..MOVES).map(|i| (Runs::All, Run::Moved(i))));
    let runs = runs.into_iter().filter(|(from, _)| *from <= how).map(|(_, run)| run).collect();
    Walk::new(program, arguments, runs)?.run(program)
}

/// The phase of each root, as [`Twin`] has them.
pub(super) fn phases(program: &Program) -> Vec<Phase> {
    let mut of = vec![Phase::Backward; program.values.len()];
    for instruction in &program.instructions {
        instruction.outputs.iter().for_each(|id| of[id.index()] = instruction.phase);
    }
    program.roots().map(|id| of[id.index()]).collect()
}

struct Walk {
    plain: Vec<Option<Arc<Value>>>,
    others: Vec<Other>,
}

/// The values of a further run.
struct Other {
    run: Run,
    values: Vec<Option<Arc<Value>>>,
}

impl Walk {
    fn new(program: &Program, arguments: &[&Tensor], runs: Vec<Run>) -> Result<Walk> {
        let others = runs.into_iter().map(|run| Other { run, values: Vec::new() });
        let mut walk = Walk { plain: Vec::new(), others: others.collect() };
        for (i, info) in program.values.iter().enumerate() {
            let value = match &info.from {
                Origin::Input(i) => Some(arguments[*i].value()),
                Origin::Cell(i) => Some(program.cells[*i].leaf.now()),
                Origin::Constant(value) => Some(value.clone()),
                Origin::Result => None,
            };
            let exact = matches!(info.from, Origin::Constant(_));
            for other in &mut walk.others {
                let given = |value: &Arc<Value>| match other.run {
                    Run::Wide => wide(value),
                    Run::Moved(seed) | Run::Stepped(seed) if !exact => {
                        moved(value, seed_of(i, seed), MOVED)
                    }
                    _ => Ok(value.clone()),
                };
                other.values.push(value.as_ref().map(given).transpose()?);
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
                self.others.iter_mut().for_each(|other| other.values[id.index()] = None);
            }
        }
        let ids: Vec<Id> = program.roots().collect();
        let of = |values: &[Option<Arc<Value>>]| -> Vec<Arc<Value>> {
            ids.iter().map(|id| values[id.index()].clone().expect("roots are kept")).collect()
        };
        let mut twin = Twin { plain: of(&self.plain), phases: phases(program), ..Twin::default() };
        for other in &self.others {
            match other.run {
                Run::Wide => twin.wide = Some(of(&other.values)),
                Run::Moved(_) => twin.moved.push(of(&other.values)),
                Run::Stepped(_) => twin.stepped.push(of(&other.values)),
            }
        }
        Ok(twin)
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
        let rounds = !matches!(instruction.op.kernel(), Kernel::View(_));
        for other in &mut self.others {
            let is_wide = other.run == Run::Wide;
            let made = second(instruction, &take(&other.values), is_wide);
            for (k, id) in instruction.outputs.iter().enumerate() {
                let given = made.as_ref().and_then(|o| o.get(k));
                let fits =
                    given.filter(|o| plain[k].dtype().is_float() && o.shape() == plain[k].shape());
                let value = fits.unwrap_or(&plain[k]);
                other.values[id.index()] = Some(match other.run {
                    Run::Wide => wide(value)?,
                    Run::Stepped(seed) if rounds && fits.is_some() => {
                        moved(value, seed_of(id.index(), seed), STEP_MOVED)?
                    }
                    _ => value.clone(),
                });
            }
        }
        for (id, value) in instruction.outputs.iter().zip(plain) {
            self.plain[id.index()] = Some(value);
        }
        Ok(())
    }
}

fn seed_of(value: usize, run: u64) -> u64 {
    (value as u64) << 8 | run
}

/// The results of the instruction on the other values, where the op takes them; a draw is not
/// repeated.
fn second(
    instruction: &Instruction,
    inputs: &[Arc<Value>],
    is_wide: bool,
) -> Option<Vec<Arc<Value>>> {
    if instruction.op.generator().is_some() {
        return None;
    }
    let metas: Vec<Meta> = inputs.iter().map(|v| v.meta).collect();
    let meta = instruction.op.infer(&metas).ok()?;
    // An op that insists on f32 has it among its parameters.
    if is_wide && meta.dtype == DType::F32 {
        return None;
    }
    let outcome = compute_as(&*instruction.op, inputs, meta).ok()?;
    Some(std::iter::once(outcome.value).chain(outcome.extra).collect())
}

/// A value in f64, if it is one of f32.
fn wide(value: &Arc<Value>) -> Result<Arc<Value>> {
    match value.dtype() {
        DType::F32 => from_numbers(value, DType::F64, &numbers(value)),
        _ => Ok(value.clone()),
    }
}

/// A value with each element moved by up to this many units in its last place, if it is a float.
fn moved(value: &Arc<Value>, seed: u64, units: f64) -> Result<Arc<Value>> {
    let epsilon = match value.dtype() {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
        _ => return Ok(value.clone()),
    };
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut all = numbers(value);
    for v in &mut all {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let u = (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        *v *= 1.0 + units * epsilon * u;
    }
    from_numbers(value, value.dtype(), &all)
}

fn from_numbers(like: &Value, dtype: DType, all: &[f64]) -> Result<Arc<Value>> {
    let shape = *like.shape();
    let made = match dtype {
        DType::F32 => Value::build::<f32>("validate", shape, |out| {
            out.iter_mut().zip(all).for_each(|(y, x)| *y = *x as f32);
        }),
        _ => Value::build::<f64>("validate", shape, |out| out.copy_from_slice(all)),
    };
    Ok(Arc::new(made?))
}

/// The elements of a float value in f64.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    crate::algebra::elements(value)
}

/// The elements in their bits.
pub(super) fn bits(value: &Value) -> Vec<u64> {
    macro_rules! all {
        ($ty:ty, $f:expr) => {{
            let mut out = vec![<$ty>::default(); value.numel()];
            value.copy_to(&mut out);
            out.into_iter().map($f).collect()
        }};
    }
    match value.dtype() {
        DType::F32 => all!(f32, |x: f32| u64::from(x.to_bits())),
        DType::I64 => all!(i64, |x: i64| x as u64),
        DType::Bool => all!(u8, u64::from),
        _ => numbers(value).into_iter().map(f64::to_bits).collect(),
    }
}
