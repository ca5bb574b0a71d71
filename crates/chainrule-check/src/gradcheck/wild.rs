//! Slopes at kinks. At a kink there is no derivative and the slope given there is a choice, but
//! only among the slopes on its sides and those between them.
//!
//! The function's own gradients at points around the kink show which slopes these are. If they take
//! two values, there is one kink, and a slope outside the two is wrong. If they take several, kinks
//! add up, and the sum of usual choices may lie somewhat outside of the slopes that were seen: a
//! slope is then wrong only if it is farther off than those are apart.

use super::kinks::BESIDE;
use super::pair::Pair;
use super::report::Worst;
use super::tape::{Tape, is_float};
use crate::compare::index_of;
use crate::error::Result;
use crate::richardson::largest;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Points looked at around the kink.
const POINTS: u64 = 12;

/// Gradients that differ by less than this, relative to the largest, are the same.
const SAME: f64 = 1e-4;

/// The element whose slope is outside of those around the point, if there is one.
pub(super) fn wild(pair: &Pair<'_>, seed: u64) -> Result<Option<Worst>> {
    let probes = pair.level.probes(seed, &pair.recorded.plain)?;
    let Some(v) = &probes.v[pair.o] else { return Ok(None) };
    let of = |tape: &Tape| -> Result<Option<Vec<f64>>> {
        let found = tape.reverse(pair.o, v)?.swap_remove(pair.i);
        Ok(found.map(|g| g.to_f64_vec()).filter(|g| g.iter().all(|x| x.is_finite())))
    };
    let Some(here) = of(&pair.recorded.plain)? else { return Ok(None) };
    let mut around: Vec<Vec<f64>> = Vec::new();
    for k in 0..POINTS {
        // A side on which the function fails is beyond the edge of its domain.
        let tape = moved(&pair.level.inputs, seed ^ (0x5eed + k))
            .and_then(|inputs| Tape::record(pair.level.f, &inputs, false));
        let Ok(tape) = tape else { continue };
        pair.line.count(1);
        if tape.outputs.get(pair.o).is_some_and(|y| y.shape() == v.shape())
            && let Ok(Some(g)) = of(&tape)
        {
            around.push(g);
        }
    }
    if around.len() < POINTS as usize / 2 {
        return Ok(None);
    }
    let size = around.iter().flatten().chain(&here).fold(0.0, |m: f64, x| m.max(x.abs()));
    let near = SAME.max(16.0 * pair.lawful.unit) * size;
    let mut found: Option<(f64, usize, f64)> = None;
    for (j, &own) in here.iter().enumerate() {
        let mut all: Vec<f64> = around.iter().map(|g| g[j]).collect();
        all.sort_by(f64::total_cmp);
        let (low, high) = (all[0], all[all.len() - 1]);
        let steps = all.windows(2).filter(|w| w[1] - w[0] > near).count();
        let slack = near + if steps > 1 { high - low } else { 0.0 };
        let outside = (low - slack - own).max(own - high - slack);
        if outside > 0.0 && found.is_none_or(|f| outside > f.0) {
            found = Some((outside, j, if own < low { low } else { high }));
        }
    }
    Ok(found.map(|(_, j, nearest)| {
        let error = (here[j] - nearest).abs() / here[j].abs().max(nearest.abs());
        let index = index_of(j, &pair.level.inputs[pair.i].shape());
        Worst { index, reverse: here[j], forward: None, difference: nearest, error }
    }))
}

/// All floats moved a little, each in its own direction.
fn moved(inputs: &[Tensor], seed: u64) -> Result<Vec<Tensor>> {
    let generator = &mut Generator::manual_seed(seed);
    let draw = |x: &Tensor| -> Result<Tensor> {
        if !is_float(x) {
            return Ok(x.clone());
        }
        let reach = 16.0 * BESIDE * largest(std::slice::from_ref(x)).max(0.1);
        let u = Tensor::try_randn(x.shape(), x.dtype(), generator)?;
        x.try_add(&u.try_mul(reach)?)
    };
    inputs.iter().map(draw).collect()
}
