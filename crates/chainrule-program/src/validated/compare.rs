//! Whether two runs agree up to the rounding that the plain one shows.

use std::sync::Arc;

use super::twin::{Twin, bits, numbers};
use crate::dtype::DType;
use crate::tensor::value::Value;

/// Bound of a program's error in f32 relative to the error of the plain one: both are known, and
/// luck within a factor of some size.
const SLACK_F32: f64 = 2.0;

/// Bound of a difference in f64 relative to how far roundings move the array, which is rather more
/// than its error is.
const SLACK_F64: f64 = 4.0;

/// Bound of the steps' share in f64, in roundings of the largest element of the array: a result of
/// rounding alone runs plain.
const STEPS: f64 = 12.0;

/// Roundings that count in any case, relative to the largest element of the array.
const ROUNDINGS: f64 = 16.0;

/// The same for all arrays of a phase together: whatever the plain program loses by its own steps,
/// a result that differs from it by more than what moved inputs make of the largest of them, and so
/// many roundings of it, is another.
const SLACK_OF_ALL: f64 = 12.0;
const ROUNDINGS_OF_ALL: f64 = 56.0;

/// A root beside that of the plain program, by the bound that it is closer to, or farther beyond.
pub(super) struct Apart {
    /// Number of the root.
    pub root: usize,
    pub by: f64,
    pub size: f64,
    pub allowed: f64,
}

impl Apart {
    fn parts(&self) -> bool {
        self.by > self.allowed
    }

    /// The share of what is allowed; a difference where none is allowed is beyond all others.
    fn share(&self) -> f64 {
        match self.parts() {
            true => self.by / self.allowed,
            // Nothing of nothing, or one infinity of another.
            false if self.by == 0.0 => 0.0,
            false => (self.by / self.allowed).min(1.0),
        }
    }
}

/// An array of the plain program: its size, and how far rounding moves it.
#[derive(Clone, Copy, Default)]
struct Reference {
    size: f64,
    unit: f64,
    /// Difference of the plain program from the one in f64.
    error: f64,
    /// The least of the differences of the runs on moved inputs.
    moved: f64,
    /// The largest of those with moved steps.
    stepped: f64,
}

impl Reference {
    fn of(root: usize, twin: &Twin) -> Reference {
        let plain = &twin.plain[root];
        let unit = unit(plain.dtype());
        if unit == 0.0 {
            return Reference::default();
        }
        let own = numbers(plain);
        let apart = |run: &Vec<Arc<Value>>| largest_difference(&numbers(&run[root]), &own);
        Reference {
            size: size(plain),
            unit,
            error: twin.wide.as_ref().map_or(0.0, apart),
            // One of them may be far off by bad luck, and that is no leave to be.
            moved: twin.moved.iter().map(apart).reduce(f64::min).unwrap_or(0.0),
            stepped: twin.stepped.iter().map(apart).fold(0.0, f64::max),
        }
    }

    /// Distance of the plain result from the true one. In f64, if the steps of the program round
    /// more than its inputs do, the larger difference from the runs that tell counts, within
    /// bounds.
    fn rounding(&self, is_known: bool) -> f64 {
        match is_known {
            true => self.error,
            false => self.moved.max(self.stepped.min(STEPS * self.unit * self.size)),
        }
    }
}

/// Whether all roots are within the roundings that count in any case. Then none parts, whatever
/// other runs of the plain program would show: in f32 the distance from the true result is at most
/// that of the plain one and these roundings.
pub(super) fn surely_agree(new: &[Arc<Value>], plain: &[Arc<Value>]) -> bool {
    // Less than what is allowed, so that no rounding here decides otherwise.
    const SURE: f64 = 0.99 * ROUNDINGS;
    new.iter().zip(plain).all(|(new, plain)| {
        let by = distance(new, plain);
        by == 0.0 || by <= SURE * unit(plain.dtype()) * size(plain)
    })
}

/// Whether no root differs by more than the roundings that all of a phase together may have, which
/// no further run of the plain program could put down to chance.
pub(super) fn agree_by_size(new: &[Arc<Value>], twin: &Twin) -> bool {
    let unmoved = Twin { moved: Vec::new(), ..twin.clone() };
    let known: Vec<Reference> = (0..new.len()).map(|i| Reference::of(i, &unmoved)).collect();
    let mut all = new.iter().zip(&twin.plain).enumerate();
    all.all(|(root, (new, plain))| distance(new, plain) <= of_all(root, &known, &unmoved))
}

/// The root that parts the most, if any does.
pub(super) fn apart(new: &[Arc<Value>], twin: &Twin) -> Option<Apart> {
    let parting = judged(new, twin).into_iter().filter(Apart::parts);
    parting.max_by(|a, b| a.share().total_cmp(&b.share()))
}

/// All roots, each beside what it may differ by.
///
/// In f32 the error of both programs is known, by the run in f64; in f64 the difference counts.
pub(super) fn judged(new: &[Arc<Value>], twin: &Twin) -> Vec<Apart> {
    let known: Vec<Reference> = (0..new.len()).map(|i| Reference::of(i, twin)).collect();
    let largest = known.iter().map(|k| k.size).fold(0.0, f64::max);
    let all = known.iter().enumerate().map(|(root, k)| {
        let plain = &twin.plain[root];
        let by = distance(&new[root], plain);
        // An array of zeros has no size of its own; one that is zero in every run is zero for a
        // reason.
        let own = match () {
            _ if k.size > 0.0 => ROUNDINGS * k.unit * k.size,
            _ if k.error.max(k.moved).max(k.stepped) > 0.0 => ROUNDINGS * k.unit * largest,
            _ => 0.0,
        };
        let of_all = of_all(root, &known, twin);
        let wide = twin.wide.as_ref().filter(|_| plain.dtype() == DType::F32);
        let (own_by, own_allowed) = match wide {
            Some(wide) => (distance(&new[root], &wide[root]), SLACK_F32 * k.rounding(true) + own),
            None => (by, SLACK_F64 * k.rounding(false) + own),
        };
        let of = |by, allowed| Apart { root, by, size: k.size, allowed };
        let (own, all) = (of(own_by, own_allowed), of(by, of_all));
        if all.share() > own.share() { all } else { own }
    });
    all.collect()
}

/// The bound for all arrays of the phase and dtype of a root.
fn of_all(root: usize, known: &[Reference], twin: &Twin) -> f64 {
    let kin =
        |i: &usize| twin.phases[*i] == twin.phases[root] && known[*i].unit == known[root].unit;
    let most = |f: fn(&Reference) -> f64| {
        (0..known.len()).filter(kin).map(|i| f(&known[i])).fold(0.0, f64::max)
    };
    SLACK_OF_ALL * most(|k| k.moved) + ROUNDINGS_OF_ALL * known[root].unit * most(|k| k.size)
}

/// The largest difference of elements that are finite in both.
fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Distance of the values at elements where the plain one is finite: an overflow is no reference.
fn distance(new: &Value, plain: &Value) -> f64 {
    if !plain.dtype().is_float() {
        return if bits(new) == bits(plain) { 0.0 } else { f64::INFINITY };
    }
    let (new, plain) = (numbers(new), numbers(plain));
    let lost = |(new, plain): (&f64, &f64)| plain.is_finite() && !new.is_finite();
    match new.iter().zip(&plain).any(lost) {
        true => f64::INFINITY,
        false => largest_difference(&new, &plain),
    }
}

/// The distance of neighbours near 1; 0 where all numbers are exact.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
        _ => 0.0,
    }
}

/// The largest finite element.
fn size(value: &Value) -> f64 {
    if !value.dtype().is_float() {
        return 0.0;
    }
    numbers(value).into_iter().map(f64::abs).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Phase;
    use chainrule_core::Tensor;

    fn one(by: f64) -> Vec<Arc<Value>> {
        vec![Tensor::from([1.0 + by * f64::EPSILON, 0.5]).value()]
    }

    /// Whether a number that is off by this many roundings parts, where moved inputs and the steps
    /// of the plain program move it by so many.
    fn parts(off: f64, moved: f64, stepped: &[f64]) -> bool {
        let stepped = stepped.iter().map(|by| one(*by)).collect();
        let phases = vec![Phase::Backward];
        let moved = vec![one(moved); 2];
        let twin = Twin { plain: one(0.0), phases, wide: None, moved, stepped };
        apart(&one(off), &twin).is_some()
    }

    /// A gradient that is exactly zero stays so: an optimizer may divide by its size.
    #[test]
    fn zeros_in_every_run_stay_zeros() {
        let values = |x: f64| vec![Tensor::from([1.0, 2.0]).value(), Tensor::from([x]).value()];
        let phases = vec![Phase::Backward; 2];
        let twin = |x| Twin {
            plain: values(0.0),
            phases: phases.clone(),
            moved: vec![values(x); 2],
            ..Twin::default()
        };
        assert_eq!(apart(&values(1e-18), &twin(0.0)).map(|apart| apart.root), Some(1));
        assert!(apart(&values(0.0), &twin(0.0)).is_none());
        assert!(apart(&values(1e-18), &twin(1e-18)).is_none());
    }

    /// A result that one move changes and another does not is rounding alone: what roundings of
    /// all results explain is allowed, and no more.
    #[test]
    fn one_move_by_chance_is_no_conditioning() {
        let twin = |moves: &[f64]| Twin {
            plain: one(0.0),
            phases: vec![Phase::Backward],
            moved: moves.iter().map(|by| one(*by)).collect(),
            ..Twin::default()
        };
        assert!(!agree_by_size(&one(60.0), &twin(&[100.0])));
        assert!(agree_by_size(&one(50.0), &twin(&[0.0])));
        assert!(apart(&one(60.0), &twin(&[100.0, 100.0])).is_none());
        assert!(apart(&one(60.0), &twin(&[100.0, 100.0, 0.0])).is_some());
    }

    #[test]
    fn the_rounding_of_steps_counts_within_bounds() {
        assert!(!parts(15.0, 0.0, &[]) && parts(17.0, 0.0, &[]));
        assert!(!parts(30.0, 0.0, &[1.0, 5.0]) && parts(40.0, 0.0, &[1.0, 5.0]));
        // No more of them than all arrays together may have.
        assert!(!parts(55.0, 0.0, &[1e6, 1e9]) && parts(57.0, 0.0, &[1e6, 1e9]));
        assert!(!parts(400.0, 100.0, &[]) && parts(450.0, 100.0, &[]));
        assert!(parts(f64::NAN, 100.0, &[1e6, 1e9]));
    }

    /// In f32 the result in f64 is the judge: a program may be far from the plain one where that
    /// is far from the truth, as far as the conditioning of the inputs goes, and never much
    /// farther from the truth than the plain one.
    #[test]
    fn in_f32_the_truth_is_the_judge() {
        let one = |by: f64| vec![Tensor::from([1.0 + by * f64::from(f32::EPSILON), 0.5])];
        let narrow = |by: f64| one(by).iter().map(|x| x.to_dtype(DType::F32).value()).collect();
        let twin = |error: f64, moved: f64| Twin {
            plain: narrow(0.0),
            phases: vec![Phase::Backward],
            wide: Some(one(error).iter().map(Tensor::value).collect()),
            moved: vec![narrow(moved)],
            ..Twin::default()
        };
        let parts =
            |off: f64, error: f64, moved: f64| apart(&narrow(off), &twin(error, moved)).is_some();
        // Eager is 100 roundings off, and its inputs explain as much.
        assert!(!parts(100.0, 100.0, 100.0) && !parts(250.0, 100.0, 100.0));
        // Three times as far from the truth, on the other side.
        assert!(parts(-220.0, 100.0, 100.0) && parts(320.0, 100.0, 100.0));
        // Inputs that move nothing: the two should not be apart.
        assert!(!parts(50.0, 50.0, 0.0) && parts(100.0, 100.0, 0.0));
    }
}
