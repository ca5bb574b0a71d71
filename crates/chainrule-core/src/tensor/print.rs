//! Printing, by the rules of NumPy 2.
//!
//! - The elements stand in nested brackets between `tensor(` and `)`, in columns, in lines of at
//!   most 75 characters. Above 1000 elements only the first and last 3 of each axis are shown, with
//!   `...` between.
//! - Floats have as few digits as distinguish the value from its neighbours, at most 8 after the
//!   point (`{:.3}` asks for at most 3), and their points are aligned. All are in scientific
//!   notation if the largest magnitude is 1e8 or more (1e6 for f32), the smallest other than 0 is
//!   below 1e-4, or one is over 1000 times the other.
//! - Then follow the shape, if elements are left out or there are none; the dtype, unless it is f32
//!   or the elements show that they are integers or bools; `op=` with the op that made the tensor
//!   if it is on the tape, or `requires_grad` for a leaf that has a gradient.

use std::fmt;

use half::{bf16, f16};

use super::Tensor;
use super::node::Source;
use super::value::Value;
use super::widen;
use crate::dtype::{DType, Stored};
use crate::shape::Shape;

const WIDTH: usize = 75;
const THRESHOLD: usize = 1000;
const EDGE: usize = 3;
const DIGITS: usize = 8;
const PREFIX: &str = "tensor(";

impl fmt::Display for Tensor {
    /// As NumPy prints arrays; a precision limits the digits after the point.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let t = Tensor::from([[1.0f32, -0.5], [100.0, 2.25]]);
    /// assert_eq!(t.to_string(), "tensor([[  1.  ,  -0.5 ],\n        [100.  ,   2.25]])");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value_ref();
        let digits = f.precision().unwrap_or(DIGITS);
        let mut text = String::from(PREFIX);
        text += &match value.dtype() {
            DType::F32 => elements(&value, |shown: &[f32]| floats(shown, digits)),
            DType::F64 => elements(&value, |shown: &[f64]| floats(shown, digits)),
            DType::I64 => elements(&value, |shown: &[i64]| integers(shown)),
            DType::Bool => elements(&value, |shown: &[u8]| bools(shown, value.shape())),
            DType::F16 => elements(&value, |shown: &[f16]| halves(shown, digits)),
            DType::BF16 => elements(&value, |shown: &[bf16]| halves(shown, digits)),
            DType::U64 => elements(&value, |shown: &[u64]| integers(shown)),
            _ => match widen::cast(&value, DType::I64) {
                Ok(wide) => elements(&wide, |shown: &[i64]| integers(shown)),
                Err(_) => return Err(fmt::Error),
            },
        };
        let extras = extras(self);
        if !extras.is_empty() {
            let last = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
            text.push(',');
            // The comma, a space, the extras and the closing bracket.
            if last + 1 + 1 + extras.len() + 1 > WIDTH {
                text.push('\n');
                text += &" ".repeat(PREFIX.len());
            } else {
                text.push(' ');
            }
            text += &extras;
        }
        text.push(')');
        f.write_str(&text)
    }
}

impl fmt::Debug for Tensor {
    /// The same as `Display`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text after the elements.
fn extras(tensor: &Tensor) -> String {
    let (shape, dtype) = (tensor.shape(), tensor.dtype());
    let numel = shape.numel();
    let mut extras = Vec::new();
    if numel > THRESHOLD || numel == 0 && shape != [0] {
        extras.push(format!("shape={shape}"));
    }
    if dtype == DType::F64 || dtype.is_widened() || numel == 0 && dtype != DType::F32 {
        extras.push(format!("dtype={dtype}"));
    }
    match tensor.source() {
        Source::Node(node) => extras.push(format!("op={}", node.op.name())),
        source if source.requires_grad() => extras.push("requires_grad".into()),
        _ => {}
    }
    extras.join(", ")
}

/// The nested brackets. `format` gives one word for each element that is shown, all of one width.
fn elements<T: Stored>(value: &Value, format: impl FnOnce(&[T]) -> Vec<String>) -> String {
    if value.numel() == 0 {
        return "[]".into();
    }
    let mut shown = Vec::new();
    let layout = value.layout();
    collect(value, value.strided(), 0, layout.offset as isize, &mut shown);
    let mut words = format(&shown).into_iter();
    let mut out = String::new();
    nest(value.shape(), value.numel(), 0, &mut words, &mut out);
    out
}

/// The indices of an axis that are shown, and whether some are left out after the first few.
fn shown_indices(size: usize, numel: usize) -> (impl Iterator<Item = usize>, bool) {
    let cut = numel > THRESHOLD && size > 2 * EDGE;
    let (head, tail) = if cut { (EDGE, size - EDGE) } else { (size, size) };
    ((0..head).chain(tail..size), cut)
}

/// Appends the elements that are shown, in row-major order.
fn collect<T: Stored>(value: &Value, all: &[T], axis: usize, offset: isize, out: &mut Vec<T>) {
    let shape = value.shape();
    if axis == shape.rank() {
        out.push(all[offset as usize]);
        return;
    }
    let stride = value.layout().strides[axis];
    for i in shown_indices(shape[axis], shape.numel()).0 {
        collect(value, all, axis + 1, offset + i as isize * stride, out);
    }
}

fn nest(
    shape: &Shape,
    numel: usize,
    axis: usize,
    words: &mut dyn Iterator<Item = String>,
    out: &mut String,
) {
    let left = shape.rank() - axis;
    if left == 0 {
        out.push_str(&words.next().expect("one word for each element"));
        return;
    }
    let (indices, cut) = shown_indices(shape[axis], numel);
    let indent = " ".repeat(PREFIX.len() + axis + 1);
    out.push('[');
    if left == 1 {
        let mut items: Vec<String> = indices.filter_map(|_| words.next()).collect();
        if cut {
            items.insert(EDGE, "...".into());
        }
        row(&items, axis, &indent, out);
    } else {
        let between = format!(",{}{indent}", "\n".repeat(left - 1));
        for (k, _) in indices.enumerate() {
            if k > 0 {
                out.push_str(&between);
            }
            if cut && k == EDGE {
                out.push_str("...");
                out.push_str(&between);
            }
            nest(shape, numel, axis + 1, words, out);
        }
    }
    out.push(']');
}

/// The items of a row with commas, in as many lines as needed. `axis` is the depth, whose brackets
/// must fit on the last line too.
fn row(items: &[String], axis: usize, indent: &str, out: &mut String) {
    // Space for the comma or bracket after the item, the brackets around the row, and the closing
    // bracket of the whole.
    let room = WIDTH - 2 - axis;
    let mut line = indent.len();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
            line += 2;
            if line + item.len() > room {
                out.push('\n');
                out.push_str(indent);
                line = indent.len();
            } else {
                out.push(' ');
            }
        }
        out.push_str(item);
        line += item.len();
    }
}

fn integers<T: ToString>(shown: &[T]) -> Vec<String> {
    align(shown.iter().map(T::to_string).collect())
}

fn bools(shown: &[u8], shape: &Shape) -> Vec<String> {
    let words: Vec<String> =
        shown.iter().map(|&b| if b != 0 { "True" } else { "False" }.into()).collect();
    if shape.rank() == 0 {
        return words;
    }
    words.iter().map(|w| format!("{w:>5}")).collect()
}

/// Padded on the left to one width.
fn align(words: Vec<String>) -> Vec<String> {
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.iter().map(|w| format!("{w:>width$}")).collect()
}

/// A float, as far as printing needs it.
trait Float: Copy + Into<f64> + fmt::Display + fmt::LowerExp {
    /// From this magnitude on numbers are printed in scientific notation.
    const LARGE: f64;
    /// Below this too.
    const SMALL: f64;
    /// `a / b` in this precision.
    fn ratio(a: f64, b: f64) -> f64;
}

impl Float for f32 {
    const LARGE: f64 = 1e6;
    const SMALL: f64 = 1e-4f32 as f64;
    fn ratio(a: f64, b: f64) -> f64 {
        (a as f32 / b as f32) as f64
    }
}

impl Float for f64 {
    const LARGE: f64 = 1e8;
    const SMALL: f64 = 1e-4;
    fn ratio(a: f64, b: f64) -> f64 {
        a / b
    }
}

/// A half, printed in the fewest digits that are rounded to it.
#[derive(Clone, Copy)]
struct Shortest<H>(H);

impl<H: Copy + Into<f32>> From<Shortest<H>> for f64 {
    fn from(x: Shortest<H>) -> f64 {
        x.0.into().into()
    }
}

impl<H: Half> Shortest<H> {
    /// In scientific notation. Five digits after the first distinguish all halves.
    fn digits(self) -> String {
        let x: f32 = self.0.into();
        let mut texts = (0..6).map(|digits| format!("{x:.digits$e}"));
        let same = |text: &String| text.parse().is_ok_and(|read| H::round(read) == self.0);
        texts.find(same).unwrap_or_else(|| format!("{x:e}"))
    }
}

/// A 16-bit float.
trait Half: Copy + Into<f32> + PartialEq {
    /// The nearest to a number.
    fn round(x: f32) -> Self;
}

impl Half for f16 {
    fn round(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Half for bf16 {
    fn round(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

impl<H: Half> fmt::LowerExp for Shortest<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.precision() {
            Some(_) => fmt::LowerExp::fmt(&self.0.into(), f),
            None => f.write_str(&self.digits()),
        }
    }
}

impl<H: Half> fmt::Display for Shortest<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.precision(), self.digits().parse::<f64>()) {
            (None, Ok(short)) => write!(f, "{short}"),
            _ => fmt::Display::fmt(&self.0.into(), f),
        }
    }
}

impl<H: Half> Float for Shortest<H> {
    const LARGE: f64 = 1e3;
    const SMALL: f64 = 1e-4;
    fn ratio(a: f64, b: f64) -> f64 {
        a / b
    }
}

fn halves<H: Half>(shown: &[H], digits: usize) -> Vec<String> {
    let shown: Vec<Shortest<H>> = shown.iter().map(|&x| Shortest(x)).collect();
    floats(&shown, digits)
}

/// A number cut in its parts: sign and digits before the point, those after it, and the exponent.
struct Parts {
    whole: String,
    fraction: String,
    /// Empty for a plain number.
    exponent: String,
}

fn floats<T: Float>(shown: &[T], digits: usize) -> Vec<String> {
    let finite: Vec<T> = shown.iter().copied().filter(|&x| x.into().is_finite()).collect();
    let scientific = is_scientific(&finite);
    let parts = |x: T| match scientific {
        true => scientific_parts(x, digits),
        false => plain_parts(x, digits),
    };
    let all: Vec<Parts> = finite.iter().map(|&x| parts(x)).collect();
    let decimals = all.iter().map(|p| p.fraction.len()).max().unwrap_or(0);
    let exponent_digits = |p: &Parts| p.exponent.trim_start_matches('-').len();
    let wide = all.iter().map(exponent_digits).max().unwrap_or(0).max(2);
    let word = |x: &T| {
        let as_f64: f64 = (*x).into();
        if !as_f64.is_finite() {
            return match as_f64 {
                _ if as_f64.is_nan() => "nan".into(),
                f64::INFINITY => "inf".into(),
                _ => "-inf".into(),
            };
        }
        if !scientific {
            let Parts { whole, fraction, .. } = plain_parts(*x, digits);
            return format!("{whole}.{fraction:<decimals$}");
        }
        // The longest needs this number of digits; shorter ones are padded with further digits of
        // their own.
        let text = format!("{x:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if decimals == 0 { "." } else { "" };
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{mantissa}{point}e{sign}{exponent:0>wide$}")
    };
    align(shown.iter().map(word).collect())
}

fn is_scientific<T: Float>(finite: &[T]) -> bool {
    let magnitudes = || finite.iter().map(|&x| x.into().abs()).filter(|&x| x != 0.0);
    let largest = magnitudes().fold(0.0, f64::max);
    let smallest = magnitudes().fold(f64::INFINITY, f64::min);
    largest != 0.0
        && (largest >= T::LARGE || smallest < T::SMALL || T::ratio(largest, smallest) > 1000.0)
}

fn plain_parts<T: Float>(x: T, digits: usize) -> Parts {
    let shortest = x.to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    if fraction.len() <= digits {
        return Parts { whole: whole.into(), fraction: fraction.into(), exponent: String::new() };
    }
    let rounded = format!("{x:.digits$}");
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    Parts {
        whole: whole.into(),
        fraction: fraction.trim_end_matches('0').into(),
        exponent: String::new(),
    }
}

fn scientific_parts<T: Float>(x: T, digits: usize) -> Parts {
    let split = |text: &str| {
        let (mantissa, exponent) = text.split_once('e').expect("LowerExp writes an exponent");
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Parts { whole: whole.into(), fraction: fraction.into(), exponent: exponent.into() }
    };
    let mut parts = split(&format!("{x:e}"));
    if parts.fraction.len() > digits {
        parts = split(&format!("{x:.digits$e}"));
        parts.fraction.truncate(parts.fraction.trim_end_matches('0').len());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_grad;

    /// NumPy 2.4's print of the same array, `array` replaced by `tensor`.
    #[test]
    fn as_numpy_prints() {
        let inf = f32::INFINITY;
        let cases = [
            (Tensor::scalar(24.7041f32), "tensor(24.7041)"),
            (Tensor::scalar(1e-5f32), "tensor(1.e-05)"),
            (Tensor::from([1.0f32, 2.0, 3.0]), "tensor([1., 2., 3.])"),
            (Tensor::from([1.5f32, -2.25, 3.0]), "tensor([ 1.5 , -2.25,  3.  ])"),
            (Tensor::from([1e7f32, 1.5]), "tensor([1.0e+07, 1.5e+00])"),
            (Tensor::from([1e-8f32, 1.0]), "tensor([1.e-08, 1.e+00])"),
            (Tensor::from([0.0001f32, 0.0001]), "tensor([0.0001, 0.0001])"),
            (Tensor::from([f32::NAN, inf, -1.0]), "tensor([nan, inf, -1.])"),
            (Tensor::from([f32::NAN, inf, -inf]), "tensor([ nan,  inf, -inf])"),
            (Tensor::from([inf, 1e-9f32]), "tensor([   inf, 1.e-09])"),
            (Tensor::from([-0.0f32, 0.0]), "tensor([-0.,  0.])"),
            (
                Tensor::from([1.0f32 / 3.0, 2.0 / 3.0, 1e-3]),
                "tensor([0.33333334, 0.6666667 , 0.001     ])",
            ),
            (
                Tensor::from([7.458564e-7f32, 1142.5181, 2.0]),
                "tensor([7.4585643e-07, 1.1425181e+03, 2.0000000e+00])",
            ),
            (
                Tensor::from([0.1f64 + 0.2, 1.0 / 3.0]),
                "tensor([0.3       , 0.33333333], dtype=f64)",
            ),
            (Tensor::from([1e300f64, 1e-300]), "tensor([1.e+300, 1.e-300], dtype=f64)"),
            (Tensor::from([1i64, -200, 3]), "tensor([   1, -200,    3])"),
            (
                Tensor::from([[true, false], [false, true]]),
                "tensor([[ True, False],\n        [False,  True]])",
            ),
            (Tensor::scalar(true), "tensor(True)"),
        ];
        for (tensor, text) in cases {
            assert_eq!(tensor.to_string(), text);
            assert_eq!(format!("{tensor:?}"), text);
        }
    }

    #[test]
    fn more_axes_and_longer_rows() {
        let cube = Tensor::arange(0, 24).reshape([2, 3, 4]);
        let text = "tensor([[[ 0,  1,  2,  3],
         [ 4,  5,  6,  7],
         [ 8,  9, 10, 11]],

        [[12, 13, 14, 15],
         [16, 17, 18, 19],
         [20, 21, 22, 23]]])";
        assert_eq!(cube.to_string(), text);
        let row: Vec<f32> = (0..9).map(|i| i as f32 / 8.0).collect();
        let text = "tensor([0.   , 0.125, 0.25 , 0.375, 0.5  , 0.625, 0.75 , 0.875, 1.   ])";
        assert_eq!(Tensor::from(row).to_string(), text);
        let row: Vec<f32> = (0..12).map(|i| i as f32 / 8.0).collect();
        let text = "tensor([0.   , 0.125, 0.25 , 0.375, 0.5  , 0.625, 0.75 , 0.875, 1.   ,
        1.125, 1.25 , 1.375])";
        assert_eq!(Tensor::from(row).to_string(), text);
        // A view that does not lie in order.
        let columns = Tensor::from([[1i64, 2, 3], [4, 5, 6]]).t();
        let text = "tensor([[1, 4],\n        [2, 5],\n        [3, 6]])";
        assert_eq!(columns.to_string(), text);
    }

    #[test]
    fn large_ones_are_summarised() {
        let thousand = Tensor::arange(0, 1000).to_string();
        assert!(!thousand.contains("..."));
        let text = "tensor([   0,    1,    2, ..., 1998, 1999, 2000], shape=[2001])";
        assert_eq!(Tensor::arange(0, 2001).to_string(), text);
        let matrix = Tensor::arange(0, 1050).reshape([7, 150]).to_string();
        let text = "tensor([[   0,    1,    2, ...,  147,  148,  149],
        [ 150,  151,  152, ...,  297,  298,  299],
        [ 300,  301,  302, ...,  447,  448,  449],
        ...,
        [ 600,  601,  602, ...,  747,  748,  749],
        [ 750,  751,  752, ...,  897,  898,  899],
        [ 900,  901,  902, ..., 1047, 1048, 1049]], shape=[7, 150])";
        assert_eq!(matrix, text);
    }

    #[test]
    fn what_follows_the_elements() {
        assert_eq!(Tensor::zeros([0]).to_string(), "tensor([])");
        assert_eq!(Tensor::zeros([0, 3]).to_string(), "tensor([], shape=[0, 3])");
        let none = Tensor::from(Vec::<i64>::new());
        assert_eq!(none.to_string(), "tensor([], dtype=i64)");
        let x = Tensor::from([0.5f64]).parameter();
        assert_eq!(x.to_string(), "tensor([0.5], dtype=f64, requires_grad)");
        let y = (&x * 2.0).sum_all();
        assert_eq!(y.to_string(), "tensor(1., dtype=f64, op=sum)");
        assert_eq!(no_grad(|| &x * 3.0).to_string(), "tensor([1.5], dtype=f64)");
        // No room on the line: 75 characters are the limit.
        let long = Tensor::from([0.123456f32; 7]).parameter();
        let text = "tensor([0.123456, 0.123456, 0.123456, 0.123456, 0.123456, 0.123456,
        0.123456], requires_grad)";
        assert_eq!(long.to_string(), text);
        let six = Tensor::from([0.123456f32; 6]).parameter();
        let text = "tensor([0.123456, 0.123456, 0.123456, 0.123456, 0.123456, 0.123456],
       requires_grad)";
        assert_eq!(six.to_string(), text);
    }

    #[test]
    fn a_precision_limits_the_digits() {
        let t = Tensor::from([1.0f32 / 3.0, 2.0]);
        assert_eq!(format!("{t:.3}"), "tensor([0.333, 2.   ])");
        assert_eq!(format!("{t:.0}"), "tensor([0., 2.])");
        let t = Tensor::from([1.0f64 / 3e9]);
        assert_eq!(format!("{t:.2}"), "tensor([3.33e-10], dtype=f64)");
    }
}
