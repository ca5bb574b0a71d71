//! The element of an input in which a wrong derivative is wrong.

use super::differences::Restriction;
use super::pair::Pair;
use super::products::product;
use super::report::{Blame, Worst};

use crate::compare::index_of;
use crate::error::Result;
use crate::tensor::Tensor;

/// Inputs with up to this many elements are examined element by element; in larger ones masked
/// probes find one.
const FEW: usize = 16;

/// Share of an error that may remain when one element is assumed to be the only wrong one.
const ALONE: f64 = 1e-3;

/// The derivative of an element or a part of the input, by each available path.
struct Ways {
    reverse: f64,
    other: f64,
}

impl Ways {
    /// Error of reverse mode: linear in the direction.
    fn off(&self) -> f64 {
        self.reverse - self.other
    }

    fn apart(&self) -> f64 {
        magnitude(self.off())
    }

    fn error(&self) -> f64 {
        let apart = self.apart();
        if apart == 0.0 { 0.0 } else { apart / self.reverse.abs().max(self.other.abs()) }
    }
}

/// Nothing is farther off than NaN.
fn magnitude(x: f64) -> f64 {
    if x.is_nan() { f64::INFINITY } else { x.abs() }
}

struct ElementSearch<'a> {
    pair: &'a Pair<'a>,
    line: Restriction<'a>,
    v: Tensor,
    gradient: Vec<f64>,
    direction: Vec<f64>,
    /// Whether to compare with forward mode rather than with differences.
    forward: bool,
}

/// The worst element that masked probes lead to, and which mode is wrong there. Three passes if
/// just one element is wrong, else about `log2(n)` for an input of `n` elements.
///
/// With one wrong element it finds that one; with many, one of the worst.
pub(super) fn worst(pair: &Pair<'_>, seed: u64, forward: bool) -> Result<(Option<Worst>, Blame)> {
    let probes = pair.level.probes(seed, &pair.recorded.plain)?;
    let (Some(v), Some(u)) = (probes.v[pair.o].clone(), &probes.u[pair.i]) else {
        return Ok((None, Blame::Unclear));
    };
    let gradient = pair.recorded.plain.reverse(pair.o, &v)?.swap_remove(pair.i);
    let direction = u.to_f64_vec();
    let gradient = gradient.map_or(vec![0.0; direction.len()], |g| g.to_f64_vec());
    let dense = |v: &Option<Tensor>| v.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
    let cotangents: Vec<Vec<f64>> = probes.v.iter().map(dense).collect();
    let line = pair.line.with(&cotangents);
    let search = ElementSearch { pair, line, v, gradient, direction, forward };
    let n = search.gradient.len();
    if n == 0 {
        return Ok((None, Blame::Unclear));
    }
    let (start, end) = search.narrow()?;
    let mut found: Option<(usize, Ways)> = None;
    for j in start..end {
        let ways = search.element(j, forward)?;
        let size = |w: &Ways| w.reverse.abs().max(w.other.abs());
        let worse = |(_, best): &(usize, Ways)| {
            // A distance below a millionth of the largest is noise beside it, however wrong
            // relatively.
            let counts = ways.apart() > 1e-6 * best.apart();
            counts && (ways.error(), size(&ways)) > (best.error(), size(best))
                || best.apart() < 1e-6 * ways.apart()
        };
        if found.as_ref().is_none_or(worse) {
            found = Some((j, ways));
        }
    }
    let (j, ways) = found.expect("at least one element is left");
    let difference = if forward { search.element(j, false)?.other } else { ways.other };
    let mode =
        if forward { Some(ways.other) } else { search.element(j, true).ok().map(|w| w.other) };
    pair.line.count(search.line.calls.get());
    let blame = match mode {
        Some(other) if forward => blame(ways.reverse, other, difference),
        _ => Blame::Both,
    };
    let (wrong, right) = match blame {
        Blame::Forward => (mode.unwrap_or(f64::NAN), difference),
        Blame::Unclear => (ways.reverse, ways.other),
        _ => (ways.reverse, if forward { ways.other } else { difference }),
    };
    let error = Ways { reverse: wrong, other: right }.error();
    let shape = pair.level.inputs[pair.i].shape();
    let index = index_of(j, &shape);
    Ok((Some(Worst { index, reverse: ways.reverse, forward: mode, difference, error }), blame))
}

/// Decides which of two values is wrong, by a third that is right to a few digits.
fn blame(reverse: f64, forward: f64, difference: f64) -> Blame {
    let (r, f) = ((reverse - difference).abs(), (forward - difference).abs());
    match () {
        _ if f < 0.1 * r || (f.is_finite() && !r.is_finite()) => Blame::Reverse,
        _ if r < 0.1 * f || (r.is_finite() && !f.is_finite()) => Blame::Forward,
        _ => Blame::Unclear,
    }
}

impl ElementSearch<'_> {
    /// The elements to examine: all if they are few, else the one that masked probes lead to.
    fn narrow(&self) -> Result<(usize, usize)> {
        let n = self.gradient.len();
        if n <= FEW {
            return Ok((0, n));
        }
        let whole = self.along(self.direction.clone(), self.forward)?.off();
        let found = match self.only_one(whole)? {
            Some(j) => j,
            None => self.halve(whole)?,
        };
        Ok((found, found + 1))
    }

    /// The wrong element if there is just one: a probe weighted by position is then off by its
    /// position times as much as the plain one.
    fn only_one(&self, whole: f64) -> Result<Option<usize>> {
        let n = self.gradient.len() as f64;
        let weighted = self.direction.iter().enumerate().map(|(j, u)| u * ((j + 1) as f64 / n));
        let position = self.along(weighted.collect(), self.forward)?.off() / whole * n - 1.0;
        let near = (position - position.round()).abs() < 0.1;
        if !near || !(0.0..n).contains(&position.round()) {
            return Ok(None);
        }
        let j = position.round() as usize;
        let own = self.along(self.masked(j, j + 1), self.forward)?.off();
        Ok(((own - whole).abs() <= ALONE * whole.abs()).then_some(j))
    }

    /// Halves the range of elements again and again, following the half with the larger error.
    fn halve(&self, whole: f64) -> Result<usize> {
        let (mut start, mut end, mut whole) = (0, self.gradient.len(), whole);
        while end - start > 1 {
            let middle = start + (end - start) / 2;
            let left = self.along(self.masked(start, middle), self.forward)?.off();
            if magnitude(left) >= magnitude(whole - left) {
                (end, whole) = (middle, left);
            } else {
                (start, whole) = (middle, whole - left);
            }
        }
        Ok(start)
    }

    fn masked(&self, start: usize, end: usize) -> Vec<f64> {
        let mut masked = vec![0.0; self.direction.len()];
        masked[start..end].copy_from_slice(&self.direction[start..end]);
        masked
    }

    fn element(&self, j: usize, forward: bool) -> Result<Ways> {
        let mut one_hot = vec![0.0; self.direction.len()];
        one_hot[j] = 1.0;
        self.along(one_hot, forward)
    }

    fn along(&self, direction: Vec<f64>, forward: bool) -> Result<Ways> {
        let Pair { level, recorded, o, i, .. } = *self.pair;
        let reverse = product(&self.gradient, &direction).sum;
        let u = Tensor::try_from_slice(&direction, level.inputs[i].shape())?;
        let other = if forward {
            let tangent = recorded.full.forward(i, &u)?.swap_remove(o);
            product(&tangent.to_f64_vec(), &self.v.to_f64_vec()).sum
        } else {
            let sizes = vec![f64::INFINITY; self.line.probes.len()];
            self.line.along(i, &u, &sizes)?[o].value
        };
        Ok(Ways { reverse, other })
    }
}
