//! Rounding of each gradient: the backward pass is run again with every number in it changed in its
//! last bits.
//!
//! Two right ways to write a backward pass round differently at each step. Their distance depends
//! on what cancels on the way, so no fixed tolerance fits. The spread of a few such runs is that
//! distance, element by element, in the dtype that the pass runs in.

mod graph;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, SavedValues, Source, lock};
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use crate::tensor::value::Value;

pub(crate) use graph::LossGraph;
pub use graph::Use;

/// Number of runs.
const RUNS: u64 = 4;

/// Largest change of a number, in units in the last place, in either direction.
const UNITS: f64 = 8.0;

/// Factor by which the values are moved farther to see whether a rule is continuous: one that picks
/// a maximum by comparing is not, and is left as it is.
const FAR: f64 = 16.0;
const BROKEN: f64 = 1.0 / 1024.0;

/// Allowed multiple of the spread.
const ALLOWED: f64 = 4.0;

/// The values that are known of a forward pass, by where they lie: each is changed in the same way
/// wherever a rule saved it.
///
/// A value is as inexact as the operands that it was made from: in `x - mean` that is the rounding
/// of `x`, however small the difference. Rounding of its elementwise operands moves it by
/// `|d value / d operand| |operand|`, by the op's own rule.
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
    let ones = Tensor::try_full(node.meta.shape, 1.0, node.meta.dtype)?;
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

/// Rounding of each element of each gradient.
pub(crate) struct Noise(HashMap<u64, Vec<f64>>);

impl Noise {
    /// The noise of the gradients of `wanted`; where `given` has a gradient, the pass goes on with
    /// that instead.
    pub fn of(
        tape: &LossGraph,
        loss: (&Tensor, &Tensor),
        wanted: &HashSet<u64>,
        given: &HashMap<u64, Tensor>,
    ) -> Result<Noise> {
        let still = tape.gradients((loss.0, loss.1.clone()), wanted, given)?;
        let still: HashMap<u64, Vec<f64>> =
            still.into_iter().map(|(n, g)| (n, g.to_f64_vec())).collect();
        let mut noise: HashMap<u64, Vec<f64>> =
            still.iter().map(|(&n, g)| (n, vec![0.0; g.len()])).collect();
        let known = ForwardValues::of(tape);
        let places = tape.nodes().iter().zip(0..).map(|(node, i)| (node.number, i)).collect();
        for run in 0..RUNS {
            let rule =
                |node: &Arc<Node>, op: &dyn Op, at: &Saved<'_>, gradient: &Tensor, wanted| {
                    let gradient = given.get(&node.number).unwrap_or(gradient);
                    let run = ShakenRun { known: &known, places: &places, run };
                    let found = run.shaken_rule(node, op, at, gradient, wanted);
                    Some(found.map_err(|e| e.at(node.location)))
                };
            let moved = tape.gradients_by((loss.0, loss.1.clone()), wanted, &rule)?;
            for (number, moved) in moved {
                let (Some(still), Some(noise)) = (still.get(&number), noise.get_mut(&number))
                else {
                    continue;
                };
                for ((noise, still), moved) in noise.iter_mut().zip(still).zip(moved.to_f64_vec()) {
                    *noise = noise.max((moved - still).abs());
                }
            }
        }
        Ok(Noise(noise))
    }

    /// Whether two gradients of this source are the same but for rounding. An element may be off by
    /// its own noise or by that of the whole in the mean.
    pub fn covers(&self, number: u64, a: &[f64], b: &[f64]) -> bool {
        let Some(noise) = self.0.get(&number) else { return a == b };
        let mean = noise.iter().map(|x| x * x).sum::<f64>() / noise.len().max(1) as f64;
        let mean = mean.sqrt();
        let near = |((a, b), noise): ((&f64, &f64), &f64)| {
            let allowed = ALLOWED * noise.max(mean);
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed
        };
        a.len() == b.len() && a.iter().zip(b).zip(noise).all(near)
    }
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
    /// Random numbers of their own for the rule of a node, and for the values that were saved of
    /// it.
    fn generator(&self, place: u64, of: u64) -> Generator {
        Generator::manual_seed((place * RUNS + self.run) * 2 + of)
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
        let gradient = shaken(gradient, None, UNITS, generator)?;
        let mut plain = op.vjp(at, &gradient, wanted)?;
        let saved = lock(&node.saved).clone();
        let moved = |units: f64| -> Result<Grads> {
            let values = self.shaken_values(node, &saved, units)?;
            op.vjp(&Saved::new(node, &values, false), &gradient, wanted)
        };
        if let (Ok(near), Ok(far)) = (moved(UNITS), moved(FAR * UNITS))
            && !is_broken(&plain, &near, &far)
        {
            plain = near;
        }
        for grad in plain.iter_mut().flatten() {
            *grad = shaken(grad, None, UNITS, generator)?;
        }
        Ok(plain)
    }

    /// The values that a node saved, changed; constants are what they are: an exponent of 2 has no
    /// rounding.
    fn shaken_values(
        &self,
        node: &Arc<Node>,
        saved: &SavedValues,
        units: f64,
    ) -> Result<SavedValues> {
        let mut values = saved.clone();
        let shake = |value: &mut Arc<Value>| -> Result<()> {
            let (place, sizes) = self.known.of_value(value);
            let generator = &mut self.generator(place, 1);
            let tensor = Tensor::from_parts(value.clone(), Source::None);
            *value = shaken(&tensor, sizes.map(Vec::as_slice), units, generator)?.value();
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

/// Each element of a float tensor, changed by up to some units in the last place, of itself or of
/// its size if that is larger.
fn shaken(
    x: &Tensor,
    sizes: Option<&[f64]>,
    units: f64,
    generator: &mut Generator,
) -> Result<Tensor> {
    let unit = match x.dtype() {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
        _ => return Ok(x.clone()),
    };
    let by = Tensor::try_rand(x.shape(), DType::F64, generator)?.to_f64_vec();
    let mut all = x.to_f64_vec();
    for (j, (x, by)) in all.iter_mut().zip(by).enumerate() {
        let size = sizes.and_then(|sizes| sizes.get(j)).map_or(x.abs(), |size| size.max(x.abs()));
        *x += (2.0 * by - 1.0) * units * unit * size;
    }
    Tensor::try_from_slice(&all, x.shape())?.try_to_dtype(x.dtype())
}
