//! The points at which ops are tried: their samples with other numbers, random shapes, and kinks.

use super::trial::Bench;
use super::{Subject, Table, models};
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::DType;
use chainrule_core::ops::{Entry, Family, Sample};

/// Random shapes for an elementwise op.
const SHAPES: usize = 4;
/// Larger samples are left to the tests of speed.
const LARGEST: usize = 3000;

/// The subjects of one op: its samples, those at kinks too, and random shapes.
pub(super) fn of_op(entry: &'static Entry, g: &mut Generator) -> Result<Vec<Subject>> {
    let samples = (entry.samples)(g);
    let mut out = Vec::new();
    let pool = elementwise(entry, &samples);
    for sample in samples.iter().filter(|s| usable(s)) {
        out.extend(subject(entry, sample));
    }
    if let Some(sample) = pool {
        for _ in 0..SHAPES {
            let mut shaped = reshaped(entry, &samples, sample, false, g);
            shaped.name = format!("{}, random shapes", entry.name);
            out.push(shaped);
        }
    }
    Ok(out)
}

fn usable(sample: &Sample) -> bool {
    let mut floats = sample.inputs.iter().filter(|x| x.dtype().is_float()).peekable();
    floats.peek().is_some()
        && floats.all(|x| x.dtype() == DType::F64 && (1..=LARGEST).contains(&x.numel()))
}

/// The index of the sample whose call takes any shapes, if the op is elementwise.
fn elementwise(entry: &Entry, samples: &[Sample]) -> Option<usize> {
    if !matches!(entry.family, Family::Unary | Family::Binary) {
        return None;
    }
    samples.iter().position(|s| {
        let one_shape = s.inputs.windows(2).all(|x| x[0].shape() == x[1].shape());
        let floats = s.inputs.iter().all(|x| x.dtype() == DType::F64);
        usable(s)
            && floats
            && one_shape
            && !s.kink
            && !s.note.contains("view")
            && s.inputs.len() <= 2
    })
}

/// A sample as a function of its floats alone.
fn subject(entry: &Entry, sample: &Sample) -> Option<Subject> {
    // The call is borrowed by a closure that outlives the list of samples, so it is shared.
    let call = sample.call.clone();
    let all = sample.inputs.clone();
    let inputs = all.iter().filter(|x| x.dtype().is_float()).cloned().collect();
    let f = move |floats: &[Tensor]| {
        let mut floats = floats.iter();
        let pick = |x: &Tensor| match x.dtype().is_float() {
            true => floats.next().expect("one for each float input").clone(),
            false => x.clone(),
        };
        call(&all.iter().map(pick).collect::<Vec<_>>())
    };
    let name = format!("{}, {}", entry.name, sample.note);
    Some(Subject { name, f: Box::new(f), inputs, is_model: false })
}

/// The call of an elementwise sample on random shapes that broadcast, with elements out of the
/// samples'.
fn reshaped(
    entry: &Entry,
    samples: &[Sample],
    which: usize,
    kinks: bool,
    g: &mut Generator,
) -> Subject {
    let count = samples[which].inputs.len();
    let full: Vec<usize> =
        (0..models::between(1, 3, g)).map(|_| models::between(2, 6, g)).collect();
    let mut inputs = Vec::new();
    for i in 0..count {
        let admitted = |s: &&Sample| {
            (kinks || !s.kink) && s.inputs.len() == count && s.inputs[i].dtype() == DType::F64
        };
        let pool: Vec<f64> =
            samples.iter().filter(admitted).flat_map(|s| s.inputs[i].to_f64_vec()).collect();
        let mut shape = full.clone();
        if i > 0 || models::between(0, 3, g) == 0 {
            let axis = models::between(0, full.len() - 1, g);
            match models::between(0, 2, g) {
                0 => shape[axis] = 1,
                1 => drop(shape.drain(..axis)),
                _ => {}
            }
        }
        let n = shape.iter().product();
        let draw = |g: &mut Generator| pool[models::between(0, pool.len() - 1, g)];
        let elements: Vec<f64> = (0..n).map(|_| draw(g)).collect();
        inputs.push(Tensor::from_slice(&elements, shape.as_slice()));
    }
    let call = samples[which].call.clone();
    let name = format!("{}, random shapes", entry.name);
    Subject { name, f: Box::new(move |x: &[Tensor]| call(x)), inputs, is_model: false }
}

/// Points without a mistake, of which many are kinks: no check may raise an alarm.
pub(super) fn quiet(
    entries: &[&'static Entry],
    points: usize,
    g: &mut Generator,
    table: &mut Table,
) -> Result<()> {
    let mut done = 0;
    while done < points {
        let before = done;
        for entry in entries.iter().filter(|e| !e.gradient.is_empty()) {
            let samples = (entry.samples)(g);
            let mut subjects: Vec<Subject> =
                samples.iter().filter(|s| usable(s)).filter_map(|s| subject(entry, s)).collect();
            if let Some(which) = elementwise(entry, &samples) {
                subjects.extend((0..SHAPES).map(|_| reshaped(entry, &samples, which, true, g)));
            }
            for subject in subjects {
                done += usize::from(done < points && listen(&subject, g, table)?);
            }
        }
        for subject in models::all(g)? {
            done += usize::from(done < points && listen(&subject, g, table)?);
        }
        if done == before {
            break;
        }
    }
    Ok(())
}

fn listen(subject: &Subject, g: &mut Generator, table: &mut Table) -> Result<bool> {
    let Some(bench) = Bench::new(subject, g)? else { return Ok(false) };
    table.untouched(subject, bench.alarm(bench.right()));
    Ok(true)
}
