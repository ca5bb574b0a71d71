//! Patterns in two gradients, for when nothing is known of the code that made the wrong one.

use std::fmt;

use super::evidence::{index_of, short, worst};
use super::numbers::{Closeness, agree, largest};
use super::other::fraction;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use chainrule_core::ops::sum_to;

/// A pattern in the numbers of a wrong gradient; `Display` says it with the numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reading {
    /// Every element is the right one times this number.
    Factor {
        /// The number.
        factor: f64,
        /// Words for the size in the shapes that equals the factor or its inverse; empty if none
        /// does.
        meaning: String,
        /// An element to compute it again from: index, given, right.
        example: (Vec<usize>, f64, f64),
    },
    /// Sums to the right one over the axes along which the tensor was stretched: the sum is
    /// missing.
    NotSummed,
    /// The transposed right one.
    Transposed,
    /// The right elements, read in the order of the transposed matrix: a view where a permute is
    /// due.
    ReadInWrongOrder,
    /// The right elements in another order.
    Permuted,
    /// The right magnitudes with some other signs.
    Signs,
    /// Cut off at this bound.
    Clipped(f64),
    /// The right one with some elements zeroed, and their share.
    Masked(f64),
    /// Rows (along the first axis) that are zero and should not be.
    ZeroRows(Vec<usize>),
    /// The right one, plus something where it has zeros.
    Leaking,
    /// Each row is the right one times a number of its own: these numbers.
    RowFactors(Vec<f64>),
    /// Each column is the right one times a number of its own: these numbers.
    ColumnFactors(Vec<f64>),
    /// A few elements are wrong, the others are right: their indices, and the numbers by which they
    /// are multiplied.
    Elements(Vec<(Vec<usize>, f64)>),
    /// The error is the same for all elements of a row.
    RowOffset,
    /// The error is the same for all elements of a column.
    ColumnOffset,
    /// The right rows sum to zero, these do not: the largest of their sums.
    RowsNotZero(f64),
    /// The right columns sum to zero, these do not: the largest of their sums.
    ColumnsNotZero(f64),
    /// Not finite where the right one is.
    NotFinite,
}

/// Reads the numbers of a wrong gradient beside the right one: the patterns that mistakes leave.
/// Empty if the gradients agree or no pattern fits.
///
/// Gradients of f64 agree to nine digits, others to about four. Errors if the shapes differ and
/// neither the transposed one nor a sum over stretched axes would make them equal.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::check::{Reading, read_numbers};
/// let right = Tensor::from([[1.0, -2.0, 4.0], [0.5, 3.0, -1.0]]);
/// let read = read_numbers(&right, &(&right * 3.0))?;
/// let Reading::Factor { factor, meaning, .. } = &read[0] else { panic!("{read:?}") };
/// assert!(*factor == 3.0 && meaning.contains("axis 1"));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn read_numbers(right: &Tensor, wrong: &Tensor) -> Result<Vec<Reading>> {
    let shape = right.shape();
    let r = right.to_f64_vec();
    let narrow = right.dtype() != wrong.dtype();
    let dtype = if narrow { chainrule_core::DType::F32 } else { right.dtype() };
    let close = Closeness::of(dtype, largest(&r));
    if wrong.shape() != shape {
        let same = |x: Result<Tensor>| x.is_ok_and(|x| close.same(&r, &x.to_f64_vec()));
        if wrong.shape().broadcast(&shape) == Some(wrong.shape()) {
            if same(sum_to(wrong, &shape)) {
                return Ok(vec![Reading::NotSummed]);
            }
        } else if wrong.rank() == 2 && wrong.try_t()?.shape() == shape {
            return Ok(if same(wrong.try_t()) { vec![Reading::Transposed] } else { Vec::new() });
        }
        let why = "the gradients have different shapes, and no sum or transpose makes them equal";
        return Err(Error::shape("read_numbers", &[&shape, &wrong.shape()], why));
    }
    Ok(read(&r, &wrong.to_f64_vec(), &shape, close, &sizes_of(&shape)))
}

/// Dependence of the ratio of a wrong gradient to the right one on the batch: `f` gives the right
/// and the wrong gradient for a batch of the size it is called with. The ratio at both sizes, if it
/// is constant over the elements; if it goes as `n` or `1 / n`, a division by the batch is missing
/// or too much.
///
/// ```
/// use chainrule::{Tensor, check::ratio_by_batch};
/// // The gradient of a mean, and of the sum that was taken for it.
/// let f = |n: usize| Ok((Tensor::ones([n]) / n as f64, Tensor::ones([n])));
/// let found = ratio_by_batch(f, 4, 8)?.unwrap();
/// assert_eq!((found.ratios, found.power), ([4.0, 8.0], Some(1)));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn ratio_by_batch(
    f: impl Fn(usize) -> Result<(Tensor, Tensor)>,
    first: usize,
    second: usize,
) -> Result<Option<BatchRatio>> {
    if first == 0 || second == 0 || first == second {
        return Err(Error::argument("ratio_by_batch", "needs two different sizes above 0"));
    }
    let mut ratios = [0.0; 2];
    for (ratio, n) in ratios.iter_mut().zip([first, second]) {
        let (right, wrong) = f(n)?;
        let read = read_numbers(&right, &wrong)?;
        *ratio = match read.first() {
            Some(Reading::Factor { factor, .. }) => *factor,
            None if right.shape() == wrong.shape() => 1.0,
            _ => return Ok(None),
        };
    }
    let measured = (ratios[1] / ratios[0]).abs().ln() / (second as f64 / first as f64).ln();
    let power = measured.round();
    let power = ((measured - power).abs() < 1e-3).then_some(power as i32);
    Ok(Some(BatchRatio { ratios, power }))
}

/// Result of [`ratio_by_batch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchRatio {
    /// Wrong over right, at the two sizes.
    pub ratios: [f64; 2],
    /// The power of the batch size by which the ratio goes: 1 for a missing 1/n, -1 for one too
    /// many, 0 for a constant.
    pub power: Option<i32>,
}

/// Sizes and what they mean.
pub(crate) type Sizes = Vec<(f64, String)>;

/// The sizes of a shape, in words.
pub(crate) fn sizes_of(shape: &Shape) -> Sizes {
    let mut sizes: Sizes = shape
        .iter()
        .enumerate()
        .map(|(i, &d)| (d as f64, format!("the size of axis {i}")))
        .collect();
    if shape.rank() > 1 {
        sizes.push((shape.numel() as f64, "the number of elements".to_string()));
    }
    sizes
}

/// The factor in terms of sizes.
pub(crate) fn meaning(factor: f64, sizes: &Sizes) -> String {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
    if near(factor, -1.0) {
        return "the sign is wrong".to_string();
    }
    for (n, words) in sizes.iter().filter(|(n, _)| *n > 1.0) {
        if near(factor, *n) {
            return format!("{n} is {words}: a division by it is missing");
        }
        if near(factor, 1.0 / n) {
            return format!(
                "{n} is {words}: it is divided by once too often, or a mean was taken where a sum is due"
            );
        }
        if near(factor, n / (n - 1.0)) {
            return format!("{n} / {} belongs to {words}: n - 1 was taken where n is due", n - 1.0);
        }
        if near(factor, (n - 1.0) / n) {
            return format!("{} / {n} belongs to {words}: n was taken where n - 1 is due", n - 1.0);
        }
    }
    match () {
        _ if near(factor, 2.0) => "a factor 2 too many".to_string(),
        _ if near(factor, 0.5) => "a factor 2 is lost".to_string(),
        _ if factor == 0.0 => "nothing is passed on".to_string(),
        _ => String::new(),
    }
}

/// All patterns, the strongest first.
pub(crate) fn read(
    right: &[f64],
    wrong: &[f64],
    shape: &Shape,
    close: Closeness,
    sizes: &Sizes,
) -> Vec<Reading> {
    if close.same(right, wrong) {
        return Vec::new();
    }
    if right.iter().zip(wrong).any(|(r, w)| r.is_finite() && !w.is_finite()) {
        return vec![Reading::NotFinite];
    }
    let allowed = close.allowed(right, wrong);
    if let Some(factor) = factor(right, wrong, allowed) {
        let at = worst(right, wrong);
        let example = (index_of(at, shape), wrong[at], right[at]);
        return vec![Reading::Factor { factor, meaning: meaning(factor, sizes), example }];
    }
    let mut out = Vec::new();
    whole(right, wrong, shape, close, &mut out);
    out.extend(few(right, wrong, shape, allowed));
    if let Some((rows, columns)) = matrix(shape) {
        by_rows(right, wrong, rows, columns, allowed, &mut out);
    }
    out
}

/// The number that all elements of `right` are multiplied by.
fn factor(right: &[f64], wrong: &[f64], allowed: f64) -> Option<f64> {
    let at = (0..right.len()).max_by(|&i, &j| right[i].abs().total_cmp(&right[j].abs()))?;
    let factor = wrong[at] / right[at];
    let fits = |(r, w): (&f64, &f64)| agree(r * factor, *w, allowed);
    (factor.is_finite() && right.iter().zip(wrong).all(fits)).then_some(factor)
}

/// Patterns of the whole tensor.
fn whole(right: &[f64], wrong: &[f64], shape: &Shape, close: Closeness, out: &mut Vec<Reading>) {
    let allowed = close.allowed(right, wrong);
    let pairs = || right.iter().zip(wrong);
    if let Some((rows, columns)) = matrix(shape) {
        let turned: Vec<f64> =
            (0..rows * columns).map(|i| right[(i % rows) * columns + i / rows]).collect();
        if rows > 1 && columns > 1 && close.same(&turned, wrong) {
            out.push(if rows == columns { Reading::Transposed } else { Reading::ReadInWrongOrder });
        }
    }
    let sorted = |x: &[f64]| {
        let mut x = x.to_vec();
        x.sort_by(f64::total_cmp);
        x
    };
    let some = right.iter().any(|x| x.abs() > allowed);
    if out.is_empty() && some && close.same(&sorted(right), &sorted(wrong)) {
        out.push(Reading::Permuted);
    }
    if pairs().all(|(r, w)| agree(r.abs(), w.abs(), allowed)) {
        out.push(Reading::Signs);
    }
    let bound = largest(wrong);
    let at_bound = wrong.iter().filter(|w| agree(w.abs(), bound, allowed)).count();
    if at_bound > 1 && pairs().all(|(r, w)| agree(r.clamp(-bound, bound), *w, allowed)) {
        out.push(Reading::Clipped(bound));
    }
    let lost = pairs().filter(|(r, w)| w.abs() <= allowed && r.abs() > allowed).count();
    let kept = |(r, w): (&f64, &f64)| w.abs() <= allowed || agree(*r, *w, allowed);
    if lost > 0 && pairs().all(kept) {
        out.push(Reading::Masked(lost as f64 / right.len() as f64));
    }
    let leak = |(r, w): (&f64, &f64)| r.abs() <= allowed || agree(*r, *w, allowed);
    if pairs().all(leak) && pairs().any(|(r, w)| r.abs() <= allowed && w.abs() > allowed) {
        out.push(Reading::Leaking);
    }
}

/// Patterns of rows and columns.
fn by_rows(
    right: &[f64],
    wrong: &[f64],
    rows: usize,
    columns: usize,
    allowed: f64,
    out: &mut Vec<Reading>,
) {
    let row = |x: &[f64], i: usize| x[i * columns..][..columns].to_vec();
    let column =
        |x: &[f64], j: usize| -> Vec<f64> { (0..rows).map(|i| x[i * columns + j]).collect() };
    let zero = |x: &[f64]| x.iter().all(|x| x.abs() <= allowed);
    let zero_rows: Vec<usize> =
        (0..rows).filter(|&i| zero(&row(wrong, i)) && !zero(&row(right, i))).collect();
    if rows > 1 && !zero_rows.is_empty() {
        out.push(Reading::ZeroRows(zero_rows));
    }
    // A row of zeros fits any factor.
    let own = |r: &[f64], w: &[f64]| match zero(r) && zero(w) {
        true => Some(1.0),
        false => factor(r, w, allowed),
    };
    let by_row = |i| own(&row(right, i), &row(wrong, i));
    if let (true, Some(factors)) = (columns > 1, (0..rows).map(by_row).collect()) {
        out.push(Reading::RowFactors(factors));
    }
    let by_column = |j| own(&column(right, j), &column(wrong, j));
    if let (true, Some(factors)) = (rows > 1, (0..columns).map(by_column).collect()) {
        out.push(Reading::ColumnFactors(factors));
    }
    let flat = |r: Vec<f64>, w: Vec<f64>| {
        r.iter().zip(&w).all(|(a, b)| agree(b - a, w[0] - r[0], 4.0 * allowed))
    };
    if columns > 1 && (0..rows).all(|i| flat(row(right, i), row(wrong, i))) {
        out.push(Reading::RowOffset);
    }
    if rows > 1 && (0..columns).all(|j| flat(column(right, j), column(wrong, j))) {
        out.push(Reading::ColumnOffset);
    }
    let most = |sums: Vec<f64>| {
        sums.into_iter().fold(0.0, |m: f64, s| if s.abs() > m.abs() { s } else { m })
    };
    let sum = |x: Vec<f64>| x.iter().sum::<f64>();
    let loose = 10.0 * allowed;
    let by_row = |x: &[f64]| most((0..rows).map(|i| sum(row(x, i))).collect());
    let by_column = |x: &[f64]| most((0..columns).map(|j| sum(column(x, j))).collect());
    if columns > 1 && by_row(right).abs() <= loose && by_row(wrong).abs() > loose {
        out.push(Reading::RowsNotZero(by_row(wrong)));
    }
    if rows > 1 && by_column(right).abs() <= loose && by_column(wrong).abs() > loose {
        out.push(Reading::ColumnsNotZero(by_column(wrong)));
    }
}

/// The few elements that are wrong where the others are right.
fn few(right: &[f64], wrong: &[f64], shape: &Shape, allowed: f64) -> Option<Reading> {
    let off: Vec<usize> =
        (0..right.len()).filter(|&i| !agree(right[i], wrong[i], allowed)).collect();
    let few = off.len() <= 4 && off.len() * 4 <= right.len();
    let by = |&i: &usize| (index_of(i, shape), wrong[i] / right[i]);
    let all: Vec<(Vec<usize>, f64)> = off.iter().map(by).collect();
    (few && all.iter().all(|(_, by)| by.is_finite())).then_some(Reading::Elements(all))
}

/// Factors one after the other, the first of many.
fn list(factors: &[f64]) -> String {
    let shown: Vec<String> = factors.iter().take(12).map(|x| fraction(*x)).collect();
    let rest = if factors.len() > 12 { ", ..." } else { "" };
    shown.join(", ") + rest
}

/// A tensor of two axes or more as a matrix: the last axis by all others.
fn matrix(shape: &Shape) -> Option<(usize, usize)> {
    let columns = *shape.last()?;
    let numel = shape.numel();
    (shape.rank() > 1 && numel > 0).then(|| (numel / columns, columns))
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reading::Factor { factor, meaning, example: (index, wrong, right) } => {
                write!(
                    f,
                    "at {index:?} {} is {} times the right {}",
                    short(*wrong),
                    fraction(*factor),
                    short(*right)
                )?;
                if meaning.is_empty() {
                    return write!(f, ", and so everywhere");
                }
                write!(f, ", and so everywhere: {meaning}")
            }
            Reading::NotSummed => {
                write!(f, "it is not summed over the axes along which the tensor was stretched")
            }
            Reading::Transposed => write!(f, "it is the transposed right one"),
            Reading::ReadInWrongOrder => {
                write!(
                    f,
                    "it has the elements of the transposed right one in this shape: a view where a permute is due"
                )
            }
            Reading::Permuted => write!(f, "it has the right elements in another order"),
            Reading::Signs => write!(f, "the magnitudes are right, some signs are wrong"),
            Reading::Clipped(bound) => {
                write!(f, "it is the right one cut off at {}", short(*bound))
            }
            Reading::Masked(share) => {
                write!(
                    f,
                    "{:.0}% of the elements are 0 and should not be, the others are right",
                    100.0 * share
                )
            }
            Reading::ZeroRows(rows) => write!(f, "rows {rows:?} are 0 and should not be"),
            Reading::Leaking => {
                write!(f, "it is not 0 where the right one is; elsewhere it is right")
            }
            Reading::RowFactors(all) => {
                write!(f, "each row is the right one times a number of its own: {}", list(all))
            }
            Reading::ColumnFactors(all) => {
                write!(f, "each column is the right one times a number of its own: {}", list(all))
            }
            Reading::Elements(all) => {
                let one = |(index, by): &(Vec<usize>, f64)| {
                    format!("at {index:?} it is {} times the right one", fraction(*by))
                };
                let all: Vec<String> = all.iter().map(one).collect();
                write!(f, "only a few elements are wrong: {}", all.join(", "))
            }
            Reading::RowOffset => write!(f, "what is missing is the same along each row"),
            Reading::ColumnOffset => write!(f, "what is missing is the same along each column"),
            Reading::RowsNotZero(sum) => {
                write!(f, "its rows should sum to 0, and one sums to {}", short(*sum))
            }
            Reading::ColumnsNotZero(sum) => {
                write!(f, "its columns should sum to 0, and one sums to {}", short(*sum))
            }
            Reading::NotFinite => write!(f, "it is not finite where the right one is"),
        }
    }
}
