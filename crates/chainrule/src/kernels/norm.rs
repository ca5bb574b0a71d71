//! Batch normalisation over the rows of a contiguous `[n, c]` array: each column is a feature.
//!
//! Columns are taken in tiles of 32, 16, 4 or 1 whose numbers stay in registers while the rows go by. The last tile of a width
//! reaches back over columns already done, so that no remainder is left to a scalar loop. A column's sum has a fixed order
//! whatever the tile and the vector instructions: 32 rows at a time, the parts added in f64.

use super::math::Real;
use super::simd::vectorized;

/// Rows summed in the type itself before the sum goes to f64.
const ROWS: usize = 32;

/// Calls a function for a tile, whose width is its first generic argument.
macro_rules! with_width {
    ($width:expr, $f:ident::<$($g:tt),*>($($arg:expr),*)) => {
        match $width {
            32 => $f::<32, $($g),*>($($arg),*),
            16 => $f::<16, $($g),*>($($arg),*),
            4 => $f::<4, $($g),*>($($arg),*),
            _ => $f::<1, $($g),*>($($arg),*),
        }
    };
}

/// The tiles that cover c columns: the first column and the width of each.
fn tiles(c: usize) -> impl Iterator<Item = (usize, usize)> {
    let least = match c {
        16.. => 16,
        4.. => 4,
        _ => 1,
    };
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == c {
            return None;
        }
        let width = if c - done >= 32 { 32 } else { least };
        // Back over columns already done if fewer are left than the tile is wide.
        let first = done.min(c - width);
        done = first + width;
        Some((first, width))
    })
}

/// The W elements from `at`.
#[inline(always)]
fn tile<const W: usize, T>(x: &[T], at: usize) -> &[T; W] {
    x[at..].first_chunk().expect("the tile lies within the row")
}

/// The same, to be written.
#[inline(always)]
fn tile_mut<const W: usize, T>(x: &mut [T], at: usize) -> &mut [T; W] {
    x[at..]
        .first_chunk_mut()
        .expect("the tile lies within the row")
}

/// Sums over the n rows of a tile: `add` adds a row, given by the index of its first element, to the running sums.
#[inline(always)]
fn column_sums<const W: usize, T: Real>(
    [n, c, first]: [usize; 3],
    add: impl Fn(&mut [T; W], usize),
) -> [f64; W] {
    let mut total = [0.0; W];
    for start in (0..n).step_by(ROWS) {
        let mut part = [T::ZERO; W];
        for row in start..n.min(start + ROWS) {
            add(&mut part, row * c + first);
        }
        for (total, part) in total.iter_mut().zip(part) {
            *total += part.to_f64();
        }
    }
    total
}

/// Mean and variance of one tile.
#[inline(always)]
fn stats_tile<const W: usize, T: Real>(
    x: &[T],
    at: [usize; 3],
    divisor: f64,
    mean: &mut [T],
    var: &mut [T],
) {
    let [n, _, first] = at;
    let sums = column_sums::<W, T>(at, |sum, at| {
        for (sum, &x) in sum.iter_mut().zip(tile::<W, T>(x, at)) {
            *sum += x;
        }
    });
    let means = sums.map(|sum| T::from_f64(sum / n as f64));
    let squares = column_sums::<W, T>(at, |sum, at| {
        for ((sum, &x), mean) in sum.iter_mut().zip(tile::<W, T>(x, at)).zip(means) {
            *sum += (x - mean) * (x - mean);
        }
    });
    *tile_mut(mean, first) = means;
    *tile_mut(var, first) = squares.map(|sum| T::from_f64(sum / divisor));
}

#[inline(always)]
fn stats_body<const FMA: bool, T: Real>(
    x: &[T],
    n: usize,
    c: usize,
    correction: usize,
    mean: &mut [T],
    var: &mut [T],
) {
    assert_eq!(x.len(), n * c, "{n} rows of {c}");
    assert!(
        mean.len() == c && var.len() == c,
        "one mean and one variance a column"
    );
    let divisor = n as f64 - correction as f64;
    for (first, width) in tiles(c) {
        with_width!(width, stats_tile::<T>(x, [n, c, first], divisor, mean, var));
    }
}

#[inline(always)]
fn inv_std_body<const FMA: bool, T: Real>(var: &[T], eps: T, out: &mut [T]) {
    assert_eq!(var.len(), out.len());
    for (out, &var) in out.iter_mut().zip(var) {
        *out = T::ONE / (var + eps).sqrt();
    }
}

/// The per-column numbers of an affine map, `(x - mean) * inv_std * gain + bias`.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a, T> {
    /// What is subtracted.
    pub mean: &'a [T],
    /// What the difference is multiplied by: 1 / sqrt(variance + eps).
    pub inv_std: &'a [T],
    /// The learned factor; none is 1.
    pub gain: Option<&'a [T]>,
    /// The learned offset; none is 0.
    pub bias: Option<&'a [T]>,
}

impl<T: Real> Columns<'_, T> {
    fn assert_width(&self, c: usize) {
        let fits = |v: Option<&[T]>| v.is_none_or(|v| v.len() == c);
        assert!(
            fits(Some(self.mean)) && fits(Some(self.inv_std)) && fits(self.gain) && fits(self.bias),
            "one number for each of {c} columns"
        );
    }
}

/// A tile of an optional row.
#[inline(always)]
fn tile_or<const W: usize, T: Copy>(x: Option<&[T]>, at: usize, default: T) -> [T; W] {
    x.map_or([default; W], |x| *tile(x, at))
}

/// Normalises one tile.
#[inline(always)]
fn apply_tile<const W: usize, const FMA: bool, T: Real>(
    x: &[T],
    [n, c, first]: [usize; 3],
    by: Columns<'_, T>,
    out: &mut [T],
    mut xhat: Option<&mut [T]>,
) {
    let mean = *tile::<W, T>(by.mean, first);
    let inv_std = *tile::<W, T>(by.inv_std, first);
    let gain = tile_or::<W, T>(by.gain, first, T::ONE);
    let bias = tile_or::<W, T>(by.bias, first, T::ZERO);
    for row in 0..n {
        let at = row * c + first;
        let mut y = *tile::<W, T>(x, at);
        for ((y, mean), inv_std) in y.iter_mut().zip(mean).zip(inv_std) {
            *y = (*y - mean) * inv_std;
        }
        if let Some(xhat) = &mut xhat {
            *tile_mut(xhat, at) = y;
        }
        for ((y, gain), bias) in y.iter_mut().zip(gain).zip(bias) {
            *y = y.mul_add::<FMA>(gain, bias);
        }
        *tile_mut(out, at) = y;
    }
}

#[inline(always)]
fn apply_body<const FMA: bool, T: Real>(
    x: &[T],
    n: usize,
    c: usize,
    by: Columns<'_, T>,
    out: &mut [T],
    mut xhat: Option<&mut [T]>,
) {
    assert!(x.len() == n * c && out.len() == x.len(), "{n} rows of {c}");
    assert!(
        xhat.as_ref().is_none_or(|xhat| xhat.len() == x.len()),
        "{n} rows of {c}"
    );
    by.assert_width(c);
    for (first, width) in tiles(c) {
        let at = [n, c, first];
        with_width!(
            width,
            apply_tile::<FMA, T>(x, at, by, out, xhat.as_deref_mut())
        );
    }
}

/// What the backward pass of batch statistics reads.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a, T> {
    /// The gradient of the output, `[n, c]`.
    pub g: &'a [T],
    /// The normalised input, `[n, c]`.
    pub xhat: &'a [T],
    /// 1 / sqrt(variance + eps), a number a column.
    pub inv_std: &'a [T],
    /// The learned factor; none is 1.
    pub gain: Option<&'a [T]>,
    /// What the variance was divided by is n less this: 0 or 1.
    pub correction: usize,
}

/// The gradients of one tile.
#[inline(always)]
fn grad_tile<const W: usize, const FMA: bool, T: Real>(
    up: Upstream<'_, T>,
    at: [usize; 3],
    dx: &mut [T],
    dgain: &mut [T],
    dbias: &mut [T],
) {
    let [n, c, first] = at;
    let g_sums = column_sums::<W, T>(at, |sum, at| {
        for (sum, &g) in sum.iter_mut().zip(tile::<W, T>(up.g, at)) {
            *sum += g;
        }
    });
    let products = column_sums::<W, T>(at, |sum, at| {
        let pairs = tile::<W, T>(up.g, at).iter().zip(tile::<W, T>(up.xhat, at));
        for (sum, (&g, &xhat)) in sum.iter_mut().zip(pairs) {
            *sum = g.mul_add::<FMA>(xhat, *sum);
        }
    });
    *tile_mut(dbias, first) = g_sums.map(T::from_f64);
    *tile_mut(dgain, first) = products.map(T::from_f64);
    // dx = gain inv_std (g - mean(g) - xhat sum(g xhat) / (n - correction)).
    let divisor = n as f64 - up.correction as f64;
    let mean = g_sums.map(|sum| T::from_f64(sum / n as f64));
    let slope = products.map(|sum| T::from_f64(-sum / divisor));
    let mut factor = tile_or::<W, T>(up.gain, first, T::ONE);
    for (factor, &inv_std) in factor.iter_mut().zip(tile::<W, T>(up.inv_std, first)) {
        *factor *= inv_std;
    }
    for row in 0..n {
        let at = row * c + first;
        let mut y = *tile::<W, T>(up.g, at);
        for (y, mean) in y.iter_mut().zip(mean) {
            *y -= mean;
        }
        for ((y, &xhat), slope) in y.iter_mut().zip(tile::<W, T>(up.xhat, at)).zip(slope) {
            *y = xhat.mul_add::<FMA>(slope, *y);
        }
        for (y, factor) in y.iter_mut().zip(factor) {
            *y *= factor;
        }
        *tile_mut(dx, at) = y;
    }
}

#[inline(always)]
fn grad_body<const FMA: bool, T: Real>(
    up: Upstream<'_, T>,
    n: usize,
    c: usize,
    dx: &mut [T],
    dgain: &mut [T],
    dbias: &mut [T],
) {
    assert!(
        [up.g.len(), up.xhat.len(), dx.len()] == [n * c; 3],
        "{n} rows of {c}"
    );
    assert!(
        [up.inv_std.len(), dgain.len(), dbias.len()] == [c; 3],
        "{c} columns"
    );
    assert!(up.gain.is_none_or(|gain| gain.len() == c), "{c} columns");
    for (first, width) in tiles(c) {
        with_width!(
            width,
            grad_tile::<FMA, T>(up, [n, c, first], dx, dgain, dbias)
        );
    }
}

vectorized! {
    /// The mean and the variance of each column, in two passes. The variance is divided by `n - correction`: correction 0 is
    /// the biased variance by which batch normalisation divides, 1 the unbiased one of its running statistics.
    pub fn batch_norm_stats[T](x: &[T], n: usize, c: usize, correction: usize, mean: &mut [T], var: &mut [T])
        where [T: Real] = stats_body
}
vectorized! {
    /// `out = 1 / sqrt(var + eps)`.
    pub fn inv_std[T](var: &[T], eps: T, out: &mut [T]) where [T: Real] = inv_std_body
}
vectorized! {
    /// `xhat = (x - mean) * inv_std` and `out = gain * xhat + bias`. The backward pass needs `xhat`; evaluation does not.
    pub fn batch_norm_apply[T](x: &[T], n: usize, c: usize, by: Columns<'_, T>, out: &mut [T], xhat: Option<&mut [T]>)
        where [T: Real] = apply_body
}
vectorized! {
    /// The gradients of a normalisation by the batch's own statistics:
    /// `dbias = sum(g)`, `dgain = sum(g * xhat)` and
    /// `dx = gain * inv_std * (g - dbias / n - xhat * dgain / (n - correction))`.
    pub fn batch_norm_grad[T](up: Upstream<'_, T>, n: usize, c: usize, dx: &mut [T], dgain: &mut [T], dbias: &mut [T])
        where [T: Real] = grad_body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::math::tests::{SIZES, noise};

    /// What a column should give, in f64 from the definition.
    struct Truth {
        mean: f64,
        var: f64,
        xhat: Vec<f64>,
        dx: Vec<f64>,
        dgain: f64,
        dbias: f64,
    }

    const EPS: f64 = 1e-5;

    /// The chain rule in single steps, as one writes it by hand: no collapsed formula.
    fn truth(x: &[f64], g: &[f64], gain: f64, correction: usize) -> Truth {
        let n = x.len() as f64;
        let divisor = n - correction as f64;
        let mean = x.iter().sum::<f64>() / n;
        let diff: Vec<f64> = x.iter().map(|x| x - mean).collect();
        let var = diff.iter().map(|d| d * d).sum::<f64>() / divisor;
        let inv_std = (var + EPS).powf(-0.5);
        let xhat: Vec<f64> = diff.iter().map(|d| d * inv_std).collect();
        let dgain = g.iter().zip(&xhat).map(|(g, h)| g * h).sum();
        let dinv_std: f64 = g.iter().zip(&diff).map(|(g, d)| g * gain * d).sum();
        let dvar = -0.5 * (var + EPS).powf(-1.5) * dinv_std;
        let through = |(g, d): (&f64, &f64)| g * gain * inv_std + dvar * 2.0 * d / divisor;
        let ddiff: Vec<f64> = g.iter().zip(&diff).map(through).collect();
        let dmean = -ddiff.iter().sum::<f64>();
        let dx = ddiff.iter().map(|d| d + dmean / n).collect();
        Truth {
            mean,
            var,
            xhat,
            dx,
            dgain,
            dbias: g.iter().sum(),
        }
    }

    fn close(name: &str, got: f64, truth: f64, tolerance: f64) {
        assert!(
            (got - truth).abs() <= tolerance * (1.0 + truth.abs()),
            "{name}: {got} not {truth}"
        );
    }

    fn check<T: Real>(n: usize, c: usize, correction: usize, affine: bool, tolerance: f64) {
        let real = |v: Vec<f64>, k: f64, plus: f64| -> Vec<T> {
            v.iter().map(|v| T::from_f64(v * k + plus)).collect()
        };
        let x = real(noise(n * c, 1), 3.0, 2.0);
        let g = real(noise(n * c, 2), 1.0, 0.1);
        let (gain, bias) = (real(noise(c, 3), 1.0, 1.5), real(noise(c, 4), 1.0, 0.0));
        let (gain_used, bias_used) = (affine.then_some(&gain[..]), affine.then_some(&bias[..]));
        let zeros = |len| vec![T::ZERO; len];
        let (mut mean, mut var, mut inv) = (zeros(c), zeros(c), zeros(c));
        batch_norm_stats(&x, n, c, correction, &mut mean, &mut var);
        inv_std(&var, T::from_f64(EPS), &mut inv);
        let (mut out, mut plain, mut xhat) = (zeros(n * c), zeros(n * c), zeros(n * c));
        let by = Columns {
            mean: &mean,
            inv_std: &inv,
            gain: gain_used,
            bias: bias_used,
        };
        batch_norm_apply(&x, n, c, by, &mut out, Some(&mut xhat));
        batch_norm_apply(&x, n, c, by, &mut plain, None);
        assert_eq!(out, plain);
        let (mut dx, mut dgain, mut dbias) = (zeros(n * c), zeros(c), zeros(c));
        let up = Upstream {
            g: &g,
            xhat: &xhat,
            inv_std: &inv,
            gain: gain_used,
            correction,
        };
        batch_norm_grad(up, n, c, &mut dx, &mut dgain, &mut dbias);
        for j in 0..c {
            let column = |v: &[T]| (0..n).map(|i| v[i * c + j].to_f64()).collect::<Vec<_>>();
            let gain = if affine { gain[j].to_f64() } else { 1.0 };
            let bias = if affine { bias[j].to_f64() } else { 0.0 };
            let t = truth(&column(&x), &column(&g), gain, correction);
            close("mean", mean[j].to_f64(), t.mean, tolerance);
            close("var", var[j].to_f64(), t.var, tolerance);
            close("dgain", dgain[j].to_f64(), t.dgain, tolerance * n as f64);
            close("dbias", dbias[j].to_f64(), t.dbias, tolerance * n as f64);
            for i in 0..n {
                close("xhat", xhat[i * c + j].to_f64(), t.xhat[i], tolerance * 4.0);
                let y = t.xhat[i] * gain + bias;
                close("out", out[i * c + j].to_f64(), y, tolerance * 8.0);
                close("dx", dx[i * c + j].to_f64(), t.dx[i], tolerance * 8.0);
            }
        }
    }

    #[test]
    fn statistics_values_and_gradients() {
        let widths = SIZES
            .into_iter()
            .chain([2, 3, 4, 5, 10, 31, 32, 33, 47, 200]);
        for c in widths.filter(|&c| c <= 200) {
            for n in [3, 32, 33, 70] {
                for (correction, affine) in [(0, true), (1, true), (1, false)] {
                    check::<f32>(n, c, correction, affine, 1e-6);
                    check::<f64>(n, c, correction, affine, 1e-14);
                }
            }
        }
    }

    /// 200,000 rows far from zero: a single f32 sum, or E[x^2] - E[x]^2, would fail.
    #[test]
    fn many_rows_keep_their_accuracy() {
        let n = 200_000;
        let x: Vec<f32> = noise(n, 5).iter().map(|v| (v + 1000.0) as f32).collect();
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
        let var = x
            .iter()
            .map(|&x| (f64::from(x) - mean).powi(2))
            .sum::<f64>()
            / n as f64;
        let (mut m, mut v) = ([0.0f32], [0.0f32]);
        batch_norm_stats(&x, n, 1, 0, &mut m, &mut v);
        assert!(
            (f64::from(m[0]) - mean).abs() <= 6e-8 * mean,
            "{} not {mean}",
            m[0]
        );
        assert!(
            (f64::from(v[0]) - var).abs() <= 2e-6 * var,
            "{} not {var}",
            v[0]
        );
    }

    /// A column's bits depend neither on its neighbours nor on the tile it falls into.
    #[test]
    fn a_column_alone_gives_the_same_bits() {
        let (n, c) = (70, 57);
        let x: Vec<f32> = noise(n * c, 6).iter().map(|&v| v as f32).collect();
        let (mut mean, mut var) = (vec![0.0; c], vec![0.0; c]);
        batch_norm_stats(&x, n, c, 1, &mut mean, &mut var);
        for j in 0..c {
            let column: Vec<f32> = (0..n).map(|i| x[i * c + j]).collect();
            let (mut m, mut v) = ([0.0], [0.0]);
            batch_norm_stats(&column, n, 1, 1, &mut m, &mut v);
            assert_eq!(
                [m[0].to_bits(), v[0].to_bits()],
                [mean[j].to_bits(), var[j].to_bits()]
            );
        }
    }
}
