//! Normalisation: here batch normalisation, over the rows of a contiguous `[n, c]` array whose
//! columns are features; in [`layer`] the normalisations of each row by itself.

mod columns;
pub mod group;
pub mod layer;
#[cfg(test)]
mod tests;

pub use columns::Column;

use super::math::Real;
use super::simd::vectorized;
use columns::COLUMNS;

/// A group of neighbouring columns.
#[derive(Clone, Copy)]
struct ColumnGroup {
    first: usize,
    width: usize,
}

impl ColumnGroup {
    /// The group's part of one row of an array with c columns.
    #[inline(always)]
    fn of<T>(self, x: &[T], row: usize, c: usize) -> &[T] {
        &x[row * c + self.first..][..self.width]
    }

    /// The same, to be written.
    #[inline(always)]
    fn of_mut<T>(self, x: &mut [T], row: usize, c: usize) -> &mut [T] {
        &mut x[row * c + self.first..][..self.width]
    }
}

/// Groups that cover c columns.
fn groups(c: usize) -> impl Iterator<Item = ColumnGroup> {
    (0..c).step_by(COLUMNS).map(move |first| ColumnGroup { first, width: COLUMNS.min(c - first) })
}

#[inline(always)]
fn stats_body<const FMA: bool, T: Column>(
    x: &[T],
    n: usize,
    c: usize,
    correction: usize,
    mean: &mut [T],
    var: &mut [T],
) {
    assert_eq!(x.len(), n * c, "{n} rows of {c}");
    assert!(mean.len() == c && var.len() == c, "one mean and one variance a column");
    let divisor = n as f64 - correction as f64;
    let mut sums = [0.0; COLUMNS];
    for group in groups(c) {
        let sums = &mut sums[..group.width];
        let x = &x[group.first.min(x.len())..];
        T::column_sums(x, c, n, sums);
        for (mean, sum) in group.of_mut(mean, 0, c).iter_mut().zip(&*sums) {
            *mean = T::from_f64(sum / n as f64);
        }
        T::column_squares(x, c, n, group.of(mean, 0, c), sums);
        for (var, sum) in group.of_mut(var, 0, c).iter_mut().zip(&*sums) {
            *var = T::from_f64(sum / divisor);
        }
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
pub struct ColumnAffine<'a, T> {
    /// The mean, subtracted from each element.
    pub mean: &'a [T],
    /// Factor of the difference: 1 / sqrt(variance + eps).
    pub inv_std: &'a [T],
    /// The learned factor; none is 1.
    pub gain: Option<&'a [T]>,
    /// The learned offset; none is 0.
    pub bias: Option<&'a [T]>,
}

impl<T: Real> ColumnAffine<'_, T> {
    fn assert_width(&self, c: usize) {
        let fits = |v: Option<&[T]>| v.is_none_or(|v| v.len() == c);
        assert!(
            fits(Some(self.mean)) && fits(Some(self.inv_std)) && fits(self.gain) && fits(self.bias),
            "one number for each of {c} columns"
        );
    }
}

/// The group's part of an optional row, in an array whose rest is not used.
#[inline(always)]
fn part_or<T: Real>(x: Option<&[T]>, group: ColumnGroup, default: T) -> [T; COLUMNS] {
    let mut values = [default; COLUMNS];
    if let Some(x) = x {
        values[..group.width].copy_from_slice(group.of(x, 0, 0));
    }
    values
}

#[inline(always)]
fn apply_body<const FMA: bool, T: Column>(
    x: &[T],
    n: usize,
    c: usize,
    by: ColumnAffine<'_, T>,
    out: &mut [T],
    mut xhat: Option<&mut [T]>,
) {
    assert!(x.len() == n * c && out.len() == x.len(), "{n} rows of {c}");
    assert!(xhat.as_ref().is_none_or(|xhat| xhat.len() == x.len()), "{n} rows of {c}");
    by.assert_width(c);
    let mut scratch = [T::ZERO; COLUMNS];
    for group in groups(c) {
        let gain = &part_or(by.gain, group, T::ONE)[..group.width];
        let bias = &part_or(by.bias, group, T::ZERO)[..group.width];
        let (mean, inv_std) = (group.of(by.mean, 0, c), group.of(by.inv_std, 0, c));
        for row in 0..n {
            let hat = match &mut xhat {
                Some(xhat) => group.of_mut(xhat, row, c),
                None => &mut scratch[..group.width],
            };
            let out = group.of_mut(out, row, c);
            T::normalize::<FMA>(group.of(x, row, c), [mean, inv_std, gain, bias], hat, out);
        }
    }
}

/// Inputs of the backward pass of batch statistics.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormUpstream<'a, T> {
    /// The gradient of the output, `[n, c]`.
    pub g: &'a [T],
    /// The normalised input, `[n, c]`.
    pub xhat: &'a [T],
    /// 1 / sqrt(variance + eps), one number for each column.
    pub inv_std: &'a [T],
    /// The learned factor; none is 1.
    pub gain: Option<&'a [T]>,
    /// Correction of the variance: its divisor is n less this, 0 or 1.
    pub correction: usize,
}

#[inline(always)]
fn grad_body<const FMA: bool, T: Column>(
    up: BatchNormUpstream<'_, T>,
    n: usize,
    c: usize,
    dx: &mut [T],
    dgain: &mut [T],
    dbias: &mut [T],
) {
    assert!([up.g.len(), up.xhat.len(), dx.len()] == [n * c; 3], "{n} rows of {c}");
    assert!([up.inv_std.len(), dgain.len(), dbias.len()] == [c; 3], "{c} columns");
    assert!(up.gain.is_none_or(|gain| gain.len() == c), "{c} columns");
    let divisor = n as f64 - up.correction as f64;
    let (mut sums, mut products) = ([0.0; COLUMNS], [0.0; COLUMNS]);
    let (mut mean, mut slope) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    for group in groups(c) {
        let ColumnGroup { first, width } = group;
        let start = first.min(up.g.len());
        T::column_sums(&up.g[start..], c, n, &mut sums[..width]);
        T::column_products(&up.g[start..], &up.xhat[start..], c, n, &mut products[..width]);
        // dx = gain inv_std (g - mean(g) - xhat sum(g xhat) / (n - correction)).
        let mut factor = part_or(up.gain, group, T::ONE);
        for i in 0..width {
            dbias[first + i] = T::from_f64(sums[i]);
            dgain[first + i] = T::from_f64(products[i]);
            factor[i] *= up.inv_std[first + i];
            mean[i] = T::from_f64(sums[i] / n as f64);
            slope[i] = T::from_f64(-products[i] / divisor);
        }
        let by = [&mean[..width], &slope[..width], &factor[..width]];
        for row in 0..n {
            let (g, xhat) = (group.of(up.g, row, c), group.of(up.xhat, row, c));
            T::normalize_grad::<FMA>(g, xhat, by, group.of_mut(dx, row, c));
        }
    }
}

vectorized! {
    /// The mean and the variance of each column, in two passes. The variance is divided by
    /// `n - correction`: correction 0 is the biased variance by which batch normalisation divides,
    /// 1 the unbiased one of its running statistics.
    pub fn batch_norm_stats[T](x: &[T], n: usize, c: usize, correction: usize, mean: &mut [T], var: &mut [T])
        where [T: Column] = stats_body
}
vectorized! {
    /// `out = 1 / sqrt(var + eps)`.
    pub fn inv_std[T](var: &[T], eps: T, out: &mut [T]) where [T: Real] = inv_std_body
}
vectorized! {
    /// `xhat = (x - mean) * inv_std` and `out = gain * xhat + bias`. The backward pass needs
    /// `xhat`; evaluation does not.
    pub fn batch_norm_apply[T](x: &[T], n: usize, c: usize, by: ColumnAffine<'_, T>, out: &mut [T], xhat: Option<&mut [T]>)
        where [T: Column] = apply_body
}
vectorized! {
    /// The gradients of a normalisation by the batch's own statistics:
    /// `dbias = sum(g)`, `dgain = sum(g * xhat)` and
    /// `dx = gain * inv_std * (g - dbias / n - xhat * dgain / (n - correction))`.
    pub fn batch_norm_grad[T](up: BatchNormUpstream<'_, T>, n: usize, c: usize, dx: &mut [T], dgain: &mut [T], dbias: &mut [T])
        where [T: Column] = grad_body
}
