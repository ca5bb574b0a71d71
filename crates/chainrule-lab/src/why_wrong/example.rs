//! A mistake in numbers: planted in a small function, the right gradient beside the wrong one.

use crate::error::Result;
use crate::mistakes::{Planting, gradients};
use crate::rng::Generator;
use crate::shape::Shape;
use crate::tensor::node::Source;
use crate::tensor::{Tensor, record_all};
use chainrule_check::catalogue::{Fault, Unbroadcast, fault::entry};
use chainrule_check::verdict::tape::RecordedPass;
use chainrule_check::verdict::{index_of, read_numbers, worst};
use chainrule_core::DType;
use chainrule_core::ops::{Entry, Sample};

/// The samples and probes of all examples.
const SEED: u64 = 20;
/// Larger samples make poor tables.
const LARGEST: usize = 60;

/// One gradient, right and wrong.
pub(super) struct Example {
    /// The tensor of the gradient, in words.
    pub place: String,
    pub shape: Shape,
    pub right: Vec<f64>,
    pub wrong: Vec<f64>,
}

impl Example {
    /// The index of an element.
    pub fn index(&self, position: usize) -> Vec<usize> {
        index_of(position, &self.shape)
    }

    /// Right and wrong where they are farthest apart.
    pub fn worst(&self) -> [f64; 2] {
        let at = worst(&self.right, &self.wrong);
        [self.right[at], self.wrong[at]]
    }

    /// Patterns in the numbers themselves.
    pub fn readings(&self) -> Vec<String> {
        let tensor = |x: &[f64]| Tensor::try_from_slice(x, self.shape);
        let read = tensor(&self.right)
            .and_then(|right| read_numbers(&right, &tensor(&self.wrong)?))
            .unwrap_or_default();
        read.iter().map(ToString::to_string).collect()
    }

    fn differs(&self) -> bool {
        let size = self.right.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let near = |(r, w): (&f64, &f64)| (r - w).abs() <= 1e-6 * size;
        !self.right.iter().zip(&self.wrong).all(near)
    }
}

/// A mistake of an op's own list, in the first of its samples that shows it.
pub(super) fn of_op(op: &str, mistake: &str) -> Result<Option<Example>> {
    let Some(entry) = entry(op) else { return Ok(None) };
    let Some(mistake) = entry.mistakes.iter().find(|m| m.name == mistake) else { return Ok(None) };
    for sample in (entry.samples)(&mut Generator::manual_seed(SEED)) {
        let floats = sample.inputs.iter().filter(|x| x.dtype().is_float());
        let sizes: Vec<usize> = floats.map(Tensor::numel).collect();
        if sizes.is_empty() || sizes.iter().any(|n| !(1..=LARGEST).contains(n)) {
            continue;
        }
        // A rule may ask for shapes that are not there.
        let found = planted(&sample, entry, Fault::Rule(mistake)).unwrap_or_default();
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn planted(sample: &Sample, entry: &'static Entry, fault: Fault) -> Result<Option<Example>> {
    let inputs: Vec<Tensor> = sample
        .inputs
        .iter()
        .map(|x| if x.dtype() == DType::F64 { x.parameter() } else { x.clone() })
        .collect();
    let output = record_all(|| (sample.call)(&inputs))?;
    let leaves: Vec<Tensor> = inputs.into_iter().filter(Tensor::requires_grad).collect();
    if !output.requires_grad() {
        return Ok(None);
    }
    let upstream =
        Tensor::try_randn(output.shape(), output.dtype(), &mut Generator::manual_seed(SEED + 1))?;
    let tape = RecordedPass::record(&[(&output, upstream.clone())], &leaves)?;
    let mut places: Vec<u64> = tape.nodes.keys().copied().collect();
    places.sort_unstable();
    places.retain(|n| entry.is_of(&*tape.nodes[n].op));
    for place in places {
        let planting = Planting { place, fault };
        let what =
            |i: usize| format!("the gradient of input {i} in the sample \"{}\"", sample.note);
        let found = first_wrong(&output, &upstream, &leaves, &planting, what)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The first gradient that the mistake changes.
fn first_wrong(
    output: &Tensor,
    upstream: &Tensor,
    leaves: &[Tensor],
    planting: &Planting,
    place: impl Fn(usize) -> String,
) -> Result<Option<Example>> {
    let right = gradients(output, upstream, leaves, None)?;
    let wrong = gradients(output, upstream, leaves, Some(planting))?;
    for (i, (right, wrong)) in right.iter().zip(&wrong).enumerate() {
        let (shape, right, wrong) = (right.shape(), right.to_f64_vec(), wrong.to_f64_vec());
        let example = Example { place: place(i), shape, right, wrong };
        if example.differs() {
            return Ok(Some(example));
        }
    }
    Ok(None)
}

/// A mistake that can be made at any op, in `x * b + b`, where `b` is a row that is stretched and
/// used twice.
pub(super) fn of_general(name: &str) -> Result<Option<Example>> {
    let x = Tensor::from([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0], [2.0, 1.5, -0.5]]).parameter();
    let b = Tensor::from([0.5, -1.0, 2.0]).parameter();
    let product = x.try_mul(&b)?;
    let output = product.try_add(&b)?;
    let upstream = Tensor::from([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0], [2.5, 1.0, -2.0]]);
    let place = product.source().number();
    let (factor, unbroadcast) = (
        |factor: f64| Fault::Factor { input: 0, factor },
        |how: Unbroadcast| Fault::Unbroadcast { input: 1, how },
    );
    let all = [
        factor(-1.0),
        factor(2.0),
        factor(0.5),
        factor(0.0),
        factor(3.0),
        Fault::Clip { input: 0, bound: 2.0 },
        unbroadcast(Unbroadcast::Mean),
        unbroadcast(Unbroadcast::Slice),
        unbroadcast(Unbroadcast::WrongAxis),
        unbroadcast(Unbroadcast::Everything),
        Fault::Overwrite { kept: 1 },
    ];
    let Some(fault) = all.into_iter().find(|f| f.name() == name) else { return Ok(None) };
    let place = match (&fault, b.source()) {
        (Fault::Overwrite { .. }, Source::Leaf(_)) => b.source().number(),
        _ => place,
    };
    let name = |i: usize| format!("the gradient of `{}` in `x * b + b`", ["x", "b"][i]);
    first_wrong(&output, &upstream, &[x, b], &Planting { place, fault }, name)
}
