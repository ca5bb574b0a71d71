//! Rounding of each gradient: the backward pass is run again with every number in it changed in its
//! last bits.
//!
//! Two right ways to write a backward pass round differently at each step. Their distance depends
//! on what cancels on the way, so no fixed tolerance fits. The spread of a few such runs is that
//! distance, element by element, in the dtype that the pass runs in.

mod graph;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::rng::Generator;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, SavedValues, Source, lock};
use crate::tensor::op::{Grads, Op, Saved, Wanted, shown};
use crate::tensor::value::Value;

pub(crate) use graph::LossGraph;
pub use graph::Use;

/// Number of runs, and of those for an element that may have moved little by chance.
const RUNS: u64 = 4;
const MORE: u64 = 32;

/// Largest change of a number, in units in the last place, in either direction; for halves, whose
/// few digits eight units would wipe out.
const UNITS: f64 = 8.0;
const HALF_UNITS: f64 = 2.0;

/// Factor by which values are moved farther to see whether a rule is continuous. A rule that picks
/// a maximum by comparing is not, and is left alone.
const FAR: f64 = 16.0;
const BROKEN: f64 = 1.0 / 1024.0;

/// Allowed multiple of the spread.
const ALLOWED: f64 = 4.0;

/// The known values of a forward pass, by address: each is changed in the same way wherever a rule
/// saved it.
///
/// A value is as inexact as the operands it was made from: `x - mean` has the rounding of `x`,
/// however small the difference. Rounding of its elementwise operands moves it by `|d value / d
/// operand| |operand|`, by the op's own rule.
struct ForwardValues(HashMap<*const Value, (u64, Option<Vec<f64>>)>);

impl ForwardValues {
    fn of(tape: &LossGraph) -> ForwardValues {
        let mut values: HashMap<u64, Arc<Value>> = tape.leaves().collect();
        for node in tape.nodes() {
            let saved = lock(&node.saved);
            for (source, value) in node.inputs.iter().zip(&saved.inputs) {
                if let (true, Some(value)) = (source.number() != 0, value) {
                    values.entry(source.number()).or_insert_with(|| value.clone());
                }
            }
            if let Some(value) = &saved.output {
                values.entry(node.number).or_insert_with(|| value.clone());
            }
        }
        let mut known = HashMap::new();
        for (place, node) in tape.nodes().iter().enumerate() {
            if let Some(value) = values.get(&node.number) {
                let size = operands(node, &values).ok().flatten();
                known.insert(Arc::as_ptr(value), (place as u64, size));
            }
        }
        ForwardValues(known)
    }

    /// The place on the tape of the node that gave a value, and the sizes by which its elements are
    /// changed.
    fn of_value(&self, value: &Arc<Value>) -> (u64, Option<&Vec<f64>>) {
        self.0.get(&Arc::as_ptr(value)).map_or((0, None), |(place, sizes)| (*place, sizes.as_ref()))
    }
}

/// The size of each element of a node's value by its elementwise operands, as far as those are
/// known.
fn operands(node: &Arc<Node>, values: &HashMap<u64, Arc<Value>>) -> Result<Option<Vec<f64>>> {
    let saved = lock(&node.saved).clone();
    let ones = shown(&*node.op, Tensor::try_full(node.meta.shape, 1.0, node.meta.dtype)?)?;
    let slopes = node.op.vjp(&Saved::new(node, &saved, false), &ones, node.wanted())?;
    let mut sizes: Option<Vec<f64>> = None;
    for (source, slope) in node.inputs.iter().zip(slopes) {
        let (Some(value), Some(slope)) = (values.get(&source.number()), slope) else { continue };
        if slope.shape() != node.meta.shape {
            continue;
        }
        let value = Tensor::from_parts(value.clone(), Source::None);
        let value = value.try_expand(node.meta.shape)?.to_f64_vec();
        let sizes = sizes.get_or_insert_with(|| vec![0.0; value.len()]);
        for ((size, value), slope) in sizes.iter_mut().zip(value).zip(slope.to_f64_vec()) {
            *size = size.max((value * slope).abs());
        }
    }
    Ok(sizes)
}

/// Rounding of each element of each gradient: of the gradients of `wanted`; where `given` has a
/// gradient, the pass goes on with that instead.
pub(crate) struct Noise<'a> {
    tape: &'a LossGraph,
    loss: (&'a Tensor, &'a Tensor),
    wanted: &'a HashSet<u64>,
    given: &'a HashMap<u64, Tensor>,
    known: ForwardValues,
    places: HashMap<u64, u64>,
    still: HashMap<u64, (Shape, Vec<f64>)>,
    moved: RefCell<Moved>,
}

/// The largest distance that each element moved, and the number of runs.
#[derive(Default)]
struct Moved {
    runs: u64,
    by: HashMap<u64, Vec<f64>>,
}

impl<'a> Noise<'a> {
    pub fn of(
        tape: &'a LossGraph,
        loss: (&'a Tensor, &'a Tensor),
        wanted: &'a HashSet<u64>,
        given: &'a HashMap<u64, Tensor>,
    ) -> Result<Noise<'a>> {
        let still = tape.gradients((loss.0, loss.1.clone()), wanted, given)?;
        let still: HashMap<u64, (Shape, Vec<f64>)> =
            still.into_iter().map(|(n, g)| (n, (g.shape(), g.to_f64_vec()))).collect();
        let by = still.iter().map(|(&n, (_, g))| (n, vec![0.0; g.len()])).collect();
        let places = tape.nodes().iter().zip(0..).map(|(node, i)| (node.number, i)).collect();
        let known = ForwardValues::of(tape);
        let moved = RefCell::new(Moved { runs: 0, by });
        let noise = Noise { tape, loss, wanted, given, known, places, still, moved };
        noise.run_until(RUNS)?;
        Ok(noise)
    }

    /// Runs the pass until that number of runs is reached.
    fn run_until(&self, runs: u64) -> Result<()> {
        let mut all = self.moved.borrow_mut();
        for run in all.runs..runs {
            let rule =
                |node: &Arc<Node>, op: &dyn Op, at: &Saved<'_>, gradient: &Tensor, wanted| {
                    let run = ShakenRun { known: &self.known, places: &self.places, run };
                    let found = match self.given.get(&node.number) {
                        Some(given) => shown(op, given.clone())
                            .and_then(|given| run.shaken_rule(node, op, at, &given, wanted)),
                        None => run.shaken_rule(node, op, at, gradient, wanted),
                    };
                    Some(found.map_err(|e| e.at(node.location)))
                };
            let loss = (self.loss.0, self.loss.1.clone());
            for (number, moved) in self.tape.gradients_by(loss, self.wanted, &rule)? {
                let (Some((_, still)), Some(by)) =
                    (self.still.get(&number), all.by.get_mut(&number))
                else {
                    continue;
                };
                for ((by, still), moved) in by.iter_mut().zip(still).zip(moved.to_f64_vec()) {
                    *by = by.max((moved - still).abs());
                }
            }
        }
        all.runs = all.runs.max(runs);
        Ok(())
    }

    /// Tolerance of the product of a source's gradient with a direction.
    pub fn along(&self, number: u64, direction: &[f64]) -> f64 {
        let moved = self.moved.borrow();
        let by = moved.by.get(&number).into_iter().flatten();
        ALLOWED * by.zip(direction).map(|(by, u)| (by * u).abs()).sum::<f64>()
    }

    /// Whether two gradients of this source are equal up to rounding. Each element may be off by
    /// its own noise, or by `relative` of itself: a small row beside a large one has none of the
    /// large one's rounding. `coarser` is the rounding of the numbers beside that of the pass.
    pub fn covers(
        &self,
        number: u64,
        (a, b): (&[f64], &[f64]),
        relative: f64,
        coarser: f64,
    ) -> bool {
        let Some((shape, _)) = self.still.get(&number) else { return a == b };
        if a.len() != b.len() {
            return false;
        }
        let open = |open: Vec<usize>, size: &dyn Fn(usize) -> f64| -> Vec<usize> {
            let near = |j: usize| {
                let allowed = (ALLOWED * coarser * size(j)).max(relative * b[j].abs());
                a[j] == b[j] || (a[j].is_nan() && b[j].is_nan()) || (a[j] - b[j]).abs() <= allowed
            };
            open.into_iter().filter(|&j| !near(j)).collect()
        };
        let own = |from: Vec<usize>| {
            let moved = self.moved.borrow();
            open(from, &|j| moved.by[&number][j])
        };
        let left = own((0..a.len()).collect());
        let mean = mean_square(self.moved.borrow().by[&number].iter()).sqrt();
        if left.is_empty() || !open(left.clone(), &|_| mean).is_empty() {
            return left.is_empty();
        }
        // The noise of an element may be small by chance: more runs decide.
        let left = if self.run_until(MORE).is_ok() { own(left) } else { left };
        let moved = self.moved.borrow();
        let noise = &moved.by[&number];
        left.iter().all(|&j| noise[j] == 0.0) && open(left, &|j| around(noise, shape, j)).is_empty()
    }
}

fn mean_square<'a>(all: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let n = all.len().max(1) as f64;
    all.map(|x| x * x).sum::<f64>() / n
}

/// For an element without noise, the mean noise of its neighbours along the axis where that is
/// least: a zero has no size of its own.
fn around(noise: &[f64], shape: &Shape, at: usize) -> f64 {
    let mut stride = noise.len();
    let mut least = f64::INFINITY;
    for &size in shape.iter() {
        stride /= size.max(1);
        let first = at - at / stride % size * stride;
        let line: Vec<f64> = (0..size).map(|k| noise[first + k * stride]).collect();
        least = least.min(mean_square(line.iter()).sqrt());
    }
    if least.is_finite() { least } else { 0.0 }
}

/// One run of the backward pass with numbers changed in their last bits.
struct ShakenRun<'a> {
    known: &'a ForwardValues,
    /// Positions of the nodes on the tape. The seeds come from them, and must not depend on what
    /// was computed before.
    places: &'a HashMap<u64, u64>,
    run: u64,
}

impl ShakenRun<'_> {
    /// Random numbers for the rule of a node, and separate ones for each value that it saved.
    fn generator(&self, place: u64, of: u64) -> Generator {
        Generator::manual_seed((place * MORE + self.run) * 2 + of)
    }

    /// The results of a rule when the gradient that it is handed, the values that it saved and its
    /// results change in their last bits.
    fn shaken_rule(
        &self,
        node: &Arc<Node>,
        op: &dyn Op,
        at: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Result<Grads> {
        let generator = &mut self.generator(self.places[&node.number], 0);
        let gradient = shaken(gradient, node.meta.dtype, None, 1.0, generator)?;
        let mut plain = op.vjp(at, &gradient, wanted)?;
        let saved = lock(&node.saved).clone();
        let moved = |times: f64| -> Result<Grads> {
            let values = self.shaken_values(node, &saved, times)?;
            op.vjp(&Saved::new(node, &values, false), &gradient, wanted)
        };
        if let (Ok(near), Ok(far)) = (moved(1.0), moved(FAR))
            && !is_broken(&plain, &near, &far)
        {
            plain = near;
        }
        for (grad, input) in plain.iter_mut().zip(&node.inputs) {
            let Some(grad) = grad else { continue };
            let dtype = input.meta().map_or(grad.dtype(), |meta| meta.dtype);
            *grad = shaken(grad, dtype, None, 1.0, generator)?;
        }
        Ok(plain)
    }

    /// The values that a node saved, changed; constants stay as they are: an exponent of 2 has no
    /// rounding.
    fn shaken_values(
        &self,
        node: &Arc<Node>,
        saved: &SavedValues,
        times: f64,
    ) -> Result<SavedValues> {
        let mut values = saved.clone();
        let shake = |value: &mut Arc<Value>| -> Result<()> {
            let (place, sizes) = self.known.of_value(value);
            let generator = &mut self.generator(place, 1);
            let tensor = Tensor::from_parts(value.clone(), Source::None);
            let sizes = sizes.map(Vec::as_slice);
            *value = shaken(&tensor, tensor.dtype(), sizes, times, generator)?.value();
            Ok(())
        };
        for (value, source) in values.inputs.iter_mut().zip(&node.inputs) {
            if let (Some(value), false) = (value, matches!(source, Source::None)) {
                shake(value)?;
            }
        }
        values.output.iter_mut().try_for_each(shake)?;
        values.extra.iter_mut().try_for_each(shake)?;
        Ok(values)
    }
}

/// Whether a rule is not continuous in the values that it saved: then a small change of those does
/// as much as a large one, or leaves the rule's domain.
fn is_broken(plain: &Grads, near: &Grads, far: &Grads) -> bool {
    plain.iter().zip(near).zip(far).any(|((plain, near), far)| {
        let numbers = |g: &Option<Tensor>| g.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
        let (plain, near, far) = (numbers(plain), numbers(near), numbers(far));
        let size = plain.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let apart = |moved: &[f64]| {
            plain.iter().zip(moved).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
        };
        let outside = plain.iter().zip(&near).any(|(a, b)| a.is_finite() && !b.is_finite());
        let near = apart(&near);
        outside || (near > BROKEN * size && near > 4.0 / FAR * apart(&far))
    })
}

/// The change of a number of 1 in this dtype, the least size that a number has there for it, and
/// nothing where numbers do not round.
fn change(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((UNITS * f64::EPSILON, f64::MIN_POSITIVE)),
        DType::F32 => Some((UNITS * f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE))),
        DType::BF16 => Some((HALF_UNITS / f64::from(1 << 7), f64::from(f32::MIN_POSITIVE))),
        DType::F16 => Some((HALF_UNITS / f64::from(1 << 10), 1.0 / f64::from(1 << 14))),
        _ => None,
    }
}

/// Each element of a float tensor, changed by up to some units in the last place of `dtype`, of
/// itself or of its size if that is larger.
fn shaken(
    x: &Tensor,
    dtype: DType,
    sizes: Option<&[f64]>,
    times: f64,
    generator: &mut Generator,
) -> Result<Tensor> {
    let Some((unit, least)) = change(dtype).filter(|_| x.dtype().is_float()) else {
        return Ok(x.clone());
    };
    let by = Tensor::try_rand(x.shape(), DType::F64, generator)?.to_f64_vec();
    let mut all = x.to_f64_vec();
    for (j, (x, by)) in all.iter_mut().zip(by).enumerate() {
        let own = if *x == 0.0 { 0.0 } else { x.abs().max(least) };
        let size = sizes.and_then(|sizes| sizes.get(j)).map_or(own, |size| size.max(own));
        *x += (2.0 * by - 1.0) * times * unit * size;
    }
    Tensor::try_from_slice(&all, x.shape())?.try_to_dtype(x.dtype())
}
