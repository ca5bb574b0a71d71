//! Running a map: the operands are converted to rows that the kernel takes, whatever their shapes
//! and layouts.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::op::{Input, MapKernel, Output};
use super::run::{Values, output};
use super::value::{Layout, Meta, Value, ValueCow};
use crate::dtype::{DType, Stored};
use crate::error::Result;
use crate::kernels::map::{PIECE, Rows, SHARED};
use crate::kernels::{simd, threads};
use crate::shape::{MAX_RANK, Shape, Strides};

/// Computes a map, with a result of this shape and dtype.
pub(super) fn map(
    op: &'static str,
    kernel: &dyn MapKernel,
    values: &[Arc<Value>],
    meta: Meta,
) -> Result<Value> {
    let mut out = Value::uninit(op, meta)?;
    let numel = meta.shape.numel();
    if numel == 0 {
        return Ok(out);
    }
    let n = meta.shape.last().copied().unwrap_or(1);
    let mut windows: SmallVec<[RowWindow; 3]> = SmallVec::new();
    let mut whole = true;
    for v in values {
        let Some(window) = row_window(v, &meta.shape, n, numel / n) else {
            broadcast(kernel, values, &mut out)?;
            return Ok(out);
        };
        whole &= window.step == window.along * n;
        windows.push(window);
    }
    // If every operand is whole or a single element, all rows are one.
    let (rows, n) = if whole { (1, numel) } else { (numel / n, n) };
    if whole {
        windows.iter_mut().for_each(|w| w.step = 0);
    }
    if numel < SHARED {
        let mut inputs: SmallVec<[Input<'_>; 3]> = SmallVec::new();
        for (v, w) in values.iter().zip(&windows) {
            inputs.push(input(v, w, 0, 0, n));
        }
        kernel.tile(&inputs, n, output(&mut out));
    } else {
        run_rows(kernel, values, &windows, rows, n, &mut out, 0)?;
    }
    Ok(out)
}

/// The operand as rows of `n` elements, if it is contiguous and the same for all rows, whole, or
/// one element for each row.
fn row_window(v: &Value, shape: &Shape, n: usize, rows: usize) -> Option<RowWindow> {
    let own = v.shape();
    let (step, along) = if own == shape {
        (n, 1)
    } else if v.numel() == 1 {
        (0, 0)
    } else if v.numel() == n && own.last() == Some(&n) {
        (0, 1)
    } else if v.numel() == rows && own.rank() == shape.rank() && own.last() == Some(&1) {
        (1, 0)
    } else {
        return None;
    };
    v.is_contiguous().then(|| RowWindow { offset: v.start(), step, along })
}

/// The rows of one operand in the memory of its owner.
#[derive(Clone, Copy)]
struct RowWindow {
    /// Offset of the first element.
    offset: usize,
    /// From one row to the next.
    step: usize,
    /// From one element of a row to the next: 0 where a row is one element, repeated.
    along: usize,
}

impl RowWindow {
    /// `high` rows and `wide` columns from row `row` and column `first` on; copied if their
    /// elements are not contiguous.
    fn part<'v>(
        &self,
        value: &'v Arc<Value>,
        [row, first]: [usize; 2],
        [high, wide]: [usize; 2],
    ) -> Result<(ValueCow<'v>, RowWindow)> {
        let offset = self.offset + row * self.step + first * self.along;
        if self.along <= 1 {
            return Ok((ValueCow::Borrowed(value), RowWindow { offset, ..*self }));
        }
        let mut layout = Layout { offset, strides: [0; MAX_RANK] };
        layout.strides[..2].copy_from_slice(&[self.step as isize, self.along as isize]);
        let copy = Value::view(value, Shape::new(&[high, wide]), layout).copied()?;
        Ok((ValueCow::Owned(copy), RowWindow { offset: 0, step: wide, along: 1 }))
    }

    /// Row `r` alone.
    fn of_row(&self, r: usize) -> RowWindow {
        RowWindow { offset: self.offset + r * self.step, step: 0, along: self.along }
    }
}

/// Operands whose elements are not contiguous are copied as a whole if there are fewer rows or
/// columns than this, or if they are many smaller matrices. In tests everything but vectors counts
/// as large, so that the samples of every op go through tiles.
const FEW: usize = if cfg!(test) { 2 } else { 32 };
const SMALL: usize = if cfg!(test) { 4 } else { 1 << 12 };

/// Whether a map reads its operands where they lie, or tile by tile, rather than copies of them.
fn in_place(dims: &[usize], values: &[Arc<Value>]) -> bool {
    let [rows, n] = matrix(dims);
    let large = rows.min(n) >= FEW && (rows * n >= SMALL || dims.len() < 3);
    // A view that steps backward, or repeats an element, is left to the copy: not all kernels
    // accept an element in place of a row.
    let forward = |v: &Arc<Value>| {
        let mut axes = v.shape().iter().zip(v.layout().strides);
        axes.all(|(&d, stride)| d == 1 || stride > 0)
    };
    large && values.iter().all(forward)
}

/// A map whose operands differ in shape or layout: brought to as few axes as possible, then run two
/// axes at a time.
fn broadcast(kernel: &dyn MapKernel, values: &[Arc<Value>], out: &mut Value) -> Result<()> {
    let shape = out.meta.shape;
    let mut values = Values::from(values);
    let (mut dims, mut strides) = collapse(&shape, &values);
    if !in_place(&dims, &values) {
        for v in &mut values {
            *v = v.contiguous()?;
        }
        (dims, strides) = collapse(&shape, &values);
    }
    let [rows, n] = matrix(&dims);
    let outer = &dims[..dims.len().saturating_sub(2)];
    let mut index = [0usize; MAX_RANK];
    for block in 0..outer.iter().product() {
        let window = |(v, s): (&Arc<Value>, &Strides)| RowWindow {
            offset: v.start() + (0..outer.len()).map(|a| index[a] * s[a] as usize).sum::<usize>(),
            step: if dims.len() > 1 { s[outer.len()] as usize } else { 0 },
            along: if n == 1 { 1 } else { s[dims.len() - 1] as usize },
        };
        let windows: SmallVec<[RowWindow; 3]> = values.iter().zip(&strides).map(window).collect();
        run_rows(kernel, &values, &windows, rows, n, out, block * rows * n)?;
        for a in (0..outer.len()).rev() {
            index[a] += 1;
            if index[a] < dims[a] {
                break;
            }
            index[a] = 0;
        }
    }
    Ok(())
}

/// The rows and columns of the last two axes.
fn matrix(dims: &[usize]) -> [usize; 2] {
    match *dims {
        [.., rows, n] => [rows, n],
        [n] => [1, n],
        [] => [1, 1],
    }
}

/// The strides of a value when it is stretched to the shape `to`.
fn stretched(value: &Value, to: &Shape) -> Strides {
    let own = value.layout().strides;
    let lead = to.rank() - value.shape().rank();
    let mut out = [0; MAX_RANK];
    for (i, &d) in value.shape().iter().enumerate() {
        out[lead + i] = if d == 1 { 0 } else { own[i] };
    }
    out
}

/// Merges neighbouring axes that all operands traverse as one, and drops those of size 1: the
/// remaining axes, and the strides of each operand.
fn collapse(
    shape: &Shape,
    values: &[Arc<Value>],
) -> (SmallVec<[usize; MAX_RANK]>, SmallVec<[Strides; 3]>) {
    let strides: SmallVec<[Strides; 3]> = values.iter().map(|v| stretched(v, shape)).collect();
    let mut dims: SmallVec<[usize; MAX_RANK]> = SmallVec::new();
    let mut out: SmallVec<[Strides; 3]> = strides.iter().map(|_| [0; MAX_RANK]).collect();
    for (a, &d) in shape.iter().enumerate() {
        if d == 1 {
            continue;
        }
        let last = dims.len().wrapping_sub(1);
        let merges =
            !dims.is_empty() && strides.iter().zip(&out).all(|(s, o)| o[last] == s[a] * d as isize);
        if merges {
            dims[last] *= d;
            for (o, s) in out.iter_mut().zip(&strides) {
                o[last] = s[a];
            }
        } else {
            for (o, s) in out.iter_mut().zip(&strides) {
                o[dims.len()] = s[a];
            }
            dims.push(d);
        }
    }
    if dims.is_empty() {
        dims.push(1);
    }
    (dims, out)
}

/// Runs the kernel on `rows` rows of `n`, written from element `start` of `out` on; in pieces by
/// several threads when large.
fn run_rows(
    kernel: &dyn MapKernel,
    values: &[Arc<Value>],
    windows: &[RowWindow],
    rows: usize,
    n: usize,
    out: &mut Value,
    start: usize,
) -> Result<()> {
    let total = rows * n;
    let dtype = out.dtype();
    let close = |w: &RowWindow| w.along == 0 || (w.along == 1 && [0, n].contains(&w.step));
    let apart = !windows.iter().all(close);
    let failed = OnceLock::new();
    let tile = |first_row: usize, first: usize, n: usize, out: Output<'_>| {
        let inputs: SmallVec<[Input<'_>; 3]> =
            values.iter().zip(windows).map(|(v, w)| input(v, w, first_row, first, n)).collect();
        kernel.tile(&inputs, n, out);
    };
    macro_rules! run {
        ($ty:ty, $variant:ident) => {{
            let out = &mut out.elements_mut::<$ty>()[start..start + total];
            if apart {
                let high = TILE / wide(n);
                let bands = out.chunks_mut(high * n).enumerate();
                threads::for_each(total >= SHARED, bands, |(i, out)| {
                    let done = band(kernel, values, windows, i * high, n, out, |out| {
                        Output::$variant(out)
                    });
                    done.unwrap_or_else(|e| drop(failed.set(e)));
                });
            } else if total < SHARED {
                tile(0, 0, n, Output::$variant(out));
            } else if rows == 1 {
                threads::for_each(true, out.chunks_mut(PIECE).enumerate(), |(i, out)| {
                    tile(0, i * PIECE, out.len(), Output::$variant(out));
                });
            } else {
                let high = (PIECE / n).max(1);
                threads::for_each(true, out.chunks_mut(high * n).enumerate(), |(i, out)| {
                    tile(i * high, 0, n, Output::$variant(out));
                });
            }
        }};
    }
    match dtype {
        DType::F32 => run!(f32, F32),
        DType::F64 => run!(f64, F64),
        DType::I64 => run!(i64, I64),
        DType::Bool => run!(u8, Bool),
        other => unreachable!("{other} is widened before a kernel sees it"),
    }
    failed.into_inner().map_or(Ok(()), Err)
}

/// The elements of a tile, of which one thread takes a band; and its columns if rows are long.
const TILE: usize = 1 << 16;
const WIDE: usize = 256;

/// The columns of a tile: whole rows, if they are short.
fn wide(n: usize) -> usize {
    if n <= 2 * WIDE { n } else { WIDE }
}

/// Rows that a tile prefetches ahead: parts of rows are too short for the hardware prefetcher.
const AHEAD: usize = 2;

/// Rows from row `top` on, some columns at a time, and each row by itself where not all are one:
/// kernels take rows that follow each other. Elements that do not lie along the rows are copied,
/// and the copy is still near when it is used.
fn band<T>(
    kernel: &dyn MapKernel,
    values: &[Arc<Value>],
    windows: &[RowWindow],
    top: usize,
    n: usize,
    out: &mut [T],
    output: impl Fn(&mut [T]) -> Output<'_>,
) -> Result<()> {
    let rows = out.len() / n;
    for first in (0..n).step_by(wide(n)) {
        let wide = wide(n).min(n - first);
        let mut parts: SmallVec<[(ValueCow<'_>, RowWindow); 3]> = SmallVec::new();
        for (v, w) in values.iter().zip(windows) {
            parts.push(w.part(v, [top, first], [rows, wide])?);
        }
        let whole = wide == n && parts.iter().all(|(_, w)| w.along == 1 && w.step == n);
        let (rows, wide) = if whole { (1, rows * wide) } else { (rows, wide) };
        for row in 0..rows {
            let mut inputs: SmallVec<[Input<'_>; 3]> = SmallVec::new();
            for (v, w) in &parts {
                inputs.push(input(v, &w.of_row(row), 0, 0, wide));
            }
            if row + AHEAD < rows {
                for (v, w) in parts.iter().filter(|(_, w)| w.along == 1) {
                    ask_for(&input(v, &w.of_row(row + AHEAD), 0, 0, wide));
                }
                simd::ask_for(&out[(row + AHEAD) * n + first..][..wide]);
            }
            kernel.tile(&inputs, wide, output(&mut out[row * n + first..][..wide]));
        }
    }
    Ok(())
}

fn ask_for(row: &Input<'_>) {
    match row {
        Input::F32(x) => simd::ask_for(x.data),
        Input::F64(x) => simd::ask_for(x.data),
        Input::I64(x) => simd::ask_for(x.data),
        Input::Bool(x) => simd::ask_for(x.data),
    }
}

/// The operand from row `row` and element `first` of the row on. A single row of `n` elements is
/// cut to those: the kernels of unary maps take it whole.
#[inline]
fn input<'a>(value: &'a Value, w: &RowWindow, row: usize, first: usize, n: usize) -> Input<'a> {
    #[inline]
    fn rows<'a, T: Stored>(
        value: &'a Value,
        w: &RowWindow,
        row: usize,
        first: usize,
        n: usize,
    ) -> Rows<'a, T> {
        let splat = w.along == 0;
        let data = &value.strided::<T>()[w.offset + row * w.step + if splat { 0 } else { first }..];
        let whole = w.step == 0 && !splat;
        Rows { data: if whole { &data[..n] } else { data }, step: w.step, splat }
    }
    match value.dtype() {
        DType::F32 => Input::F32(rows(value, w, row, first, n)),
        DType::F64 => Input::F64(rows(value, w, row, first, n)),
        DType::I64 => Input::I64(rows(value, w, row, first, n)),
        DType::Bool => Input::Bool(rows(value, w, row, first, n)),
        other => unreachable!("{other} is widened before a kernel sees it"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Generator, Tensor};

    /// Rows and columns around the sizes of tiles, of bands and of parallel work.
    const SIZES: [[usize; 2]; 7] =
        [[1, 1], [3, 70], [33, 31], [31, 513], [130, 512], [300, 530], [1, 200_000]];

    /// `shape` filled with small whole numbers that differ from place to place.
    fn numbers(dtype: DType, shape: &[usize], scale: i64) -> Tensor {
        let count: usize = shape.iter().product();
        let all: Vec<i64> = (0..count as i64).map(|i| (i * scale) % 251 - 125).collect();
        Tensor::from_slice(&all, shape).to_dtype(dtype)
    }

    /// Views of `[rows, n]` whose elements lie in different ways.
    fn views(dtype: DType, size: [usize; 2]) -> Vec<(&'static str, Tensor)> {
        let [rows, n] = size;
        let numbers = |shape: &[usize], scale| numbers(dtype, shape, scale);
        let wide = numbers(&[rows + 3, 2 * n + 5], 7);
        let cut = |step| {
            let columns =
                crate::Slice::Range { start: Some(2), end: Some(2 + n as i64 * step), step };
            let rows = crate::Slice::Range { start: Some(1), end: Some(1 + rows as i64), step: 1 };
            wide.slice(&[rows, columns])
        };
        vec![
            ("a matrix", numbers(&[rows, n], 3)),
            ("transposed", numbers(&[n, rows], 5).t()),
            ("columns of a wider one", cut(1)),
            ("every second column", cut(2)),
            (
                "transposed and cut",
                numbers(&[n + 2, rows + 1], 11).t().narrow(0, 1, rows).narrow(1, 2, n),
            ),
            ("flipped", numbers(&[rows, n], 13).flip([1])),
            ("a row stretched", numbers(&[n], 29).expand(size)),
            ("a column stretched", numbers(&[rows, 1], 31).expand(size)),
            ("a number stretched", numbers(&[1], 37).expand(size)),
            ("one row", numbers(&[n], 17)),
            ("one column", numbers(&[rows, 1], 19)),
            ("a number of a longer row", numbers(&[9], 23).narrow(0, 4, 1)),
        ]
    }

    #[test]
    fn maps_read_every_layout_as_its_elements_in_order() {
        for size in SIZES {
            let views = views(DType::I64, size);
            for (one, a) in &views {
                let (plain, negated) = (a.to_vec::<i64>(), a.neg().to_vec::<i64>());
                assert!(plain.iter().map(|x| -x).eq(negated), "{one} {size:?}");
                let whole = a.expand(size).to_vec::<i64>();
                for (other, b) in &views {
                    let sum = (a + b).expand(size).to_vec::<i64>();
                    let pairs = whole.iter().zip(b.expand(size).to_vec::<i64>());
                    assert!(pairs.map(|(a, b)| a + b).eq(sum), "{one} and {other} {size:?}");
                }
            }
        }
    }

    /// The kernel of dropout takes both operands as one row.
    #[test]
    fn dropout_of_a_view_is_that_of_its_elements() {
        for size in SIZES {
            for (one, x) in views(DType::F32, size) {
                let drop = |x: &Tensor| {
                    x.dropout(0.5, true, &mut Generator::manual_seed(3)).to_vec::<f32>()
                };
                let copy = Tensor::from_slice(&x.to_vec::<f32>(), x.shape());
                assert!(drop(&x) == drop(&copy), "{one} {size:?}");
            }
        }
    }

    #[test]
    fn maps_read_permuted_axes_and_operands_of_several_dtypes() {
        for [d, e, f] in [[2, 3, 4], [3, 70, 65], [70, 3, 33], [5, 64, 600]] {
            let x = numbers(DType::I64, &[d, e, f], 7);
            let orders = [([0, 2, 1], [d, f, e]), ([1, 0, 2], [e, d, f]), ([2, 1, 0], [f, e, d])];
            for (order, shape) in orders {
                let view = numbers(DType::I64, &shape, 3).permute(&order);
                let row = numbers(DType::F32, &[f], 5);
                let picked = (view.gt(&x)).where_(&view.to_dtype(DType::F32), &row);
                let (view, x) = (view.to_vec::<i64>(), x.to_vec::<i64>());
                let row = row.to_vec::<f32>();
                let expected = (0..d * e * f)
                    .map(|i| if view[i] > x[i] { view[i] as f32 } else { row[i % f] });
                assert!(expected.eq(picked.to_vec::<f32>()), "{order:?} of {:?}", [d, e, f]);
            }
        }
    }
}
