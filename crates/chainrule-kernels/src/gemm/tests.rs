//! Every product here is compared with three plain loops in f64, under the law |error| <= k eps
//! sum |a||b|.

use super::tile::{GemmElement, GemmKernels};
use super::*;
use crate::simd::{Level, detected};
use crate::threads::with_num_threads;
use std::ops::AddAssign;

const SIZES: [usize; 15] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 128, 129];

/// A number type as the tests need it.
trait Number: GemmElement + Into<f64> + AddAssign {
    const EPS: f64;
    const NAN: Self;
    fn from(value: f64) -> Self;
    fn bits(self) -> u64;
}

impl Number for f32 {
    const EPS: f64 = f32::EPSILON as f64;
    const NAN: f32 = f32::NAN;
    fn from(value: f64) -> f32 {
        value as f32
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Number for f64 {
    const EPS: f64 = f64::EPSILON;
    const NAN: f64 = f64::NAN;
    fn from(value: f64) -> f64 {
        value
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Numbers between -1 and 1 that differ from seed to seed.
fn numbers<T: Number>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        <T as Number>::from((state >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
    };
    (0..len).map(|_| next()).collect()
}

/// The levels that this machine can run.
fn levels() -> impl Iterator<Item = Level> {
    [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|&level| level <= detected())
}

/// Compares `out` with the loops. The products of f32 are exact in f64; those of f64 add an error
/// of the same bound.
fn assert_product<T: Number>(
    what: &str,
    alpha: T,
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    old: Option<&[T]>,
    out: &[T],
) {
    let at = |m: &Mat<'_, T>, i: usize, j: usize| -> f64 {
        m.data[i * m.row_stride as usize + j * m.col_stride as usize].into()
    };
    for i in 0..a.rows {
        for j in 0..b.cols {
            let (mut sum, mut size) = (0.0, 0.0);
            for p in 0..a.cols {
                let term = at(&a, i, p) * at(&b, p, j);
                sum += term;
                size += term.abs();
            }
            let alpha: f64 = alpha.into();
            let old: f64 = old.map_or(0.0, |old| old[i * b.cols + j].into());
            let expected = alpha * sum + old;
            // Two more roundings: alpha, and the addition to what was there.
            let bound = (a.cols + 2) as f64 * T::EPS * (alpha.abs() * size + old.abs());
            let got: f64 = out[i * b.cols + j].into();
            assert!(
                (got - expected).abs() <= bound,
                "{what}: element ({i}, {j}) is {got}, not {expected} within {bound:e}"
            );
        }
    }
}

/// Replaces NaN, then adds with alpha, and checks both.
fn check_both<T: Number>(
    what: &str,
    kernels: &'static GemmKernels<T>,
    a: Mat<'_, T>,
    b: Mat<'_, T>,
) {
    let one = <T as Number>::from(1.0);
    let mut out = vec![T::NAN; a.rows * b.cols];
    float_products(kernels, one, a, b, Batch::ONE, Accum::Replace, &mut out);
    assert_product(what, one, a, b, None, &out);
    let old = out.clone();
    let alpha = <T as Number>::from(-0.75);
    float_products(kernels, alpha, a, b, Batch::ONE, Accum::Add, &mut out);
    assert_product(what, alpha, a, b, Some(&old), &out);
}

/// All forms of one product: each operand plain, transposed, with gaps, and broadcast along either
/// axis.
fn check_forms<T: Number>(level: Level, (m, k, n): (usize, usize, usize), forms: usize) {
    let kernels = T::kernels(level);
    let (a, b) = (numbers::<T>(3 * m * k + 7, 1), numbers::<T>(3 * k * n + 7, 2));
    let views = |data, rows: usize, cols: usize| {
        let mat = |row_stride: usize, col_stride: usize| Mat {
            data,
            rows,
            cols,
            row_stride: row_stride as isize,
            col_stride: col_stride as isize,
        };
        [
            mat(cols, 1),
            mat(1, rows),
            mat(3 * cols, 3),
            mat(0, 1),
            mat(1, 0),
            mat(cols + 2, 1),
            mat(2, 2 * rows),
        ]
    };
    for (i, a) in views(&a[..], m, k).into_iter().enumerate().take(forms) {
        for (j, b) in views(&b[..], k, n).into_iter().enumerate().take(forms) {
            check_both(&format!("{} {m}x{k}x{n}, forms {i} and {j}", level.name()), kernels, a, b);
        }
    }
}

#[test]
fn products_of_all_odd_sizes_in_both_orders_of_both_operands() {
    for level in levels() {
        for (x, &m) in SIZES.iter().enumerate() {
            for (y, &k) in SIZES.iter().enumerate() {
                for (z, &n) in SIZES.iter().enumerate() {
                    // All triples of small sizes, a spread of the large ones.
                    if m * k * n <= 17 * 17 * 17 || (x + 2 * y + 3 * z) % 11 == 0 {
                        check_forms::<f32>(level, (m, k, n), 2);
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_sliced_and_broadcast_operands() {
    let sizes = [0, 1, 2, 8, 9, 17, 33];
    for level in levels() {
        for m in sizes {
            for k in sizes {
                for n in sizes {
                    if (m + k + n) % 2 == 0 || m * k * n < 100 {
                        check_forms::<f32>(level, (m, k, n), 7);
                        check_forms::<f64>(level, (m, k, n), 7);
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_the_examples_and_beyond_the_block_sizes() {
    let small =
        [(32, 30, 200), (30, 32, 200), (32, 200, 30), (32, 200, 27), (200, 32, 27), (32, 27, 200)];
    let large = [
        (129, 128, 127),
        (97, 257, 193),
        (20, 513, 150),
        (9, 1100, 50),
        (1700, 17, 60),
        (17, 30, 1700),
        // B is packed on the way: from the least rows on, and with each width of a last panel.
        (17, 150, 113),
        (18, 129, 145),
        (25, 131, 161),
        (70, 140, 1151),
    ];
    for level in levels() {
        for size in small.into_iter().chain(large) {
            check_forms::<f32>(level, size, 2);
            check_forms::<f64>(level, size, 2);
        }
    }
}

#[test]
fn the_last_element_may_be_the_last_of_the_data_and_nothing_else_is_written() {
    for level in levels() {
        for n in [1, 2, 15, 16, 17, 47, 48, 49] {
            let (m, k) = (9, 33);
            let (a, b) = (numbers::<f32>(m * k, 3), numbers::<f32>(k * n, 4));
            let mut room = vec![5.0f32; m * n + 64];
            let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
            float_products(
                f32::kernels(level),
                1.0,
                a,
                b,
                Batch::ONE,
                Accum::Replace,
                &mut room[..m * n],
            );
            assert_product("exact length", 1.0, a, b, None, &room);
            assert!(room[m * n..].iter().all(|&x| x == 5.0));
        }
    }
}

#[test]
fn without_depth_replace_clears_and_add_leaves() {
    let mut out = [f32::NAN; 6];
    gemm_f32(1.0, Mat::new(&[], 2, 0), Mat::new(&[], 0, 3), Accum::Replace, &mut out);
    assert_eq!(out, [0.0; 6]);
    out = [7.0; 6];
    gemm_f32(1.0, Mat::new(&[], 2, 0), Mat::new(&[], 0, 3), Accum::Add, &mut out);
    assert_eq!(out, [7.0; 6]);
}

#[test]
fn not_a_number_and_infinity_pass_through() {
    let mut a = vec![1.0f32; 9 * 40];
    a[3 * 40 + 39] = f32::NAN;
    a[5 * 40] = f32::INFINITY;
    let b = vec![1.0f32; 40 * 50];
    let mut out = vec![0.0; 9 * 50];
    gemm_f32(1.0, Mat::new(&a, 9, 40), Mat::new(&b, 40, 50), Accum::Replace, &mut out);
    for (i, row) in out.chunks(50).enumerate() {
        let right = |x: &f32| match i {
            3 => x.is_nan(),
            5 => *x == f32::INFINITY,
            _ => *x == 40.0,
        };
        assert!(row.iter().all(right), "row {i}: {row:?}");
    }
}

/// Runs `f` in pools of 1, 2 and 4 threads, and outside of any; asserts the same bits.
fn same_bits<T: Number>(what: &str, f: impl Fn() -> Vec<T> + Sync) {
    let expected: Vec<u64> = f().into_iter().map(T::bits).collect();
    for threads in [1, 2, 4] {
        let got: Vec<u64> = with_num_threads(threads, &f).into_iter().map(T::bits).collect();
        assert!(got == expected, "{what}: other bits with {threads} threads");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    for (m, k, n) in [
        (300, 301, 302),
        (1030, 520, 70),
        (70, 1500, 700),
        (3000, 9, 600),
        (1700, 60, 330),
        (100, 500, 600),
        (1, 1500, 1500),
        (1500, 1500, 1),
    ] {
        let (a, b) = (numbers::<f32>(m * k, 5), numbers::<f32>(k * n, 6));
        for form in 0..4 {
            let a =
                if form & 1 == 0 { Mat::new(&a, m, k) } else { Mat::new(&a, k, m).transposed() };
            let b =
                if form & 2 == 0 { Mat::new(&b, k, n) } else { Mat::new(&b, n, k).transposed() };
            let work = || {
                let mut out = vec![f32::NAN; m * n];
                gemm_f32(0.5, a, b, Accum::Replace, &mut out);
                out
            };
            same_bits(&format!("{m}x{k}x{n}, form {form}"), work);
            assert_product(&format!("threaded, form {form}"), 0.5, a, b, None, &work());
        }
    }
}

#[test]
fn a_thread_does_not_take_what_it_has_packed_for_another_product() {
    // One shape for both, so that only the product itself tells the packed operands apart.
    let (m, k, n) = (400, 130, 200);
    let a = numbers::<f32>(m * k, 1);
    let product = |seed: u64| {
        let b = numbers::<f32>(k * n, seed);
        let mut out = vec![f32::NAN; m * n];
        gemm_f32(1.0, Mat::new(&a, m, k), Mat::new(&b, k, n), Accum::Replace, &mut out);
        out
    };
    let expected: Vec<_> = (0..4).map(product).collect();
    assert!(expected.windows(2).all(|pair| pair[0] != pair[1]));
    std::thread::scope(|scope| {
        for (seed, expected) in expected.iter().enumerate() {
            scope.spawn(move || (0..20).for_each(|_| assert!(product(seed as u64) == *expected)));
        }
    });
}

#[test]
fn the_bits_do_not_depend_on_the_path() {
    // The same rows and columns, alone and as parts of larger products that are packed and
    // threaded.
    let (m, k, n) = (200, 700, 150);
    let (a, b) = (numbers::<f32>(m * k, 7), numbers::<f32>(k * n, 8));
    let mut whole = vec![0.0; m * n];
    gemm_f32(1.0, Mat::new(&a, m, k), Mat::new(&b, k, n), Accum::Replace, &mut whole);
    for level in levels().filter(|&level| level > Level::Portable) {
        let mut out = vec![0.0; m * n];
        let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
        float_products(f32::kernels(level), 1.0, a, b, Batch::ONE, Accum::Replace, &mut out);
        if level < crate::simd::level() {
            // Both fuse, in the same order.
            assert_eq!(out, whole, "{}", level.name());
        }
    }
    for (row, rows, col, cols) in
        [(0, 2, 0, 150), (17, 13, 5, 20), (190, 10, 148, 2), (3, 40, 48, 50)]
    {
        let part = Mat { cols, row_stride: n as isize, ..Mat::new(&b[col..], k, cols) };
        let mut out = vec![0.0; rows * cols];
        gemm_f32(1.0, Mat::new(&a[row * k..], rows, k), part, Accum::Replace, &mut out);
        for i in 0..rows {
            assert_eq!(out[i * cols..(i + 1) * cols], whole[(row + i) * n + col..][..cols]);
        }
    }
}

/// Checks a batch against its products one by one.
fn check_batch(what: &str, a: Mat<'_, f32>, b: Mat<'_, f32>, batch: Batch<'_>) {
    let count: usize = batch.sizes.iter().product();
    let size = a.rows * b.cols;
    let work = || {
        let mut out = vec![f32::NAN; count * size];
        batched_f32(1.0, a, b, batch, Accum::Replace, &mut out);
        batched_f32(0.5, a, b, batch, Accum::Add, &mut out);
        out
    };
    let out = work();
    let mut index = vec![0; batch.sizes.len()];
    for t in 0..count {
        let offset = |strides: &[isize]| {
            index.iter().zip(strides).map(|(&i, &s)| i * s as usize).sum::<usize>()
        };
        let a = Mat { data: &a.data[offset(batch.a_strides)..], ..a };
        let b = Mat { data: &b.data[offset(batch.b_strides)..], ..b };
        assert_product(what, 1.5, a, b, None, &out[t * size..][..size]);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < batch.sizes[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    same_bits(what, work);
}

#[test]
fn batches() {
    let (data, more) = (numbers::<f32>(400_000, 9), numbers::<f32>(400_000, 10));
    let (a, b) = (&data[..], &more[..]);
    let batch = |sizes, a_strides, b_strides| Batch { sizes, a_strides, b_strides };
    check_batch("plain", Mat::new(a, 5, 7), Mat::new(b, 7, 9), batch(&[6], &[35], &[63]));
    check_batch(
        "one right operand",
        Mat::new(a, 5, 7),
        Mat::new(b, 7, 9),
        batch(&[2, 3], &[105, 35], &[0, 0]),
    );
    check_batch(
        "one right operand, left ones out of order",
        Mat::new(a, 5, 7),
        Mat::new(b, 7, 9),
        batch(&[2, 3], &[35, 70], &[0, 0]),
    );
    check_batch("one left operand", Mat::new(a, 5, 7), Mat::new(b, 7, 9), batch(&[6], &[0], &[63]));
    check_batch(
        "broadcast over one axis",
        Mat::new(a, 5, 7),
        Mat::new(b, 7, 9),
        batch(&[2, 3], &[35, 0], &[0, 63]),
    );
    // Attention: (batch, time, head, width) seen as (batch, head) times time by width; queries
    // times transposed keys.
    let heads = |data, time: usize, count: isize, width: usize| Mat {
        row_stride: count * width as isize,
        ..Mat::new(data, time, width)
    };
    let strides = [64 * 4 * 32, 32];
    check_batch(
        "heads",
        heads(a, 64, 4, 32),
        heads(b, 64, 4, 32).transposed(),
        batch(&[12, 4], &strides, &strides),
    );
    check_batch("no axes", Mat::new(a, 5, 7), Mat::new(b, 7, 9), batch(&[], &[], &[]));
    check_batch(
        "no products",
        Mat::new(a, 5, 7),
        Mat::new(b, 7, 9),
        batch(&[3, 0], &[1, 1], &[1, 1]),
    );
    check_batch(
        "large ones",
        Mat::new(a, 300, 300),
        Mat::new(b, 300, 300),
        batch(&[3], &[90_000], &[90_000]),
    );
}

#[test]
fn integers_wrap() {
    let a = [i64::MAX, 2, 3, 4];
    let b = [2, 0, 1, 5];
    let mut out = [9; 4];
    gemm_i64(1, Mat::new(&a, 2, 2), Mat::new(&b, 2, 2), Accum::Replace, &mut out);
    assert_eq!(out, [0, 10, 10, 20]);
    gemm_i64(-2, Mat::new(&a, 2, 2), Mat::new(&b, 2, 2).transposed(), Accum::Add, &mut out);
    assert_eq!(out, [4, -8, -2, -26]);
    let mut out = [9; 2];
    batched_i64(
        1,
        Mat::new(&[1, 2, 3, 4], 1, 2),
        Mat::new(&[5, 6], 2, 1),
        Batch { sizes: &[2], a_strides: &[2], b_strides: &[0] },
        Accum::Replace,
        &mut out,
    );
    assert_eq!(out, [17, 39]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = [0.0f32; 12];
    let refused = |a: Mat<'_, f32>, b: Mat<'_, f32>, out: usize| {
        let result =
            std::panic::catch_unwind(|| gemm_f32(1.0, a, b, Accum::Add, &mut vec![0.0; out]));
        let message = result.expect_err("must be refused");
        message.downcast_ref::<String>().expect("a formatted message").clone()
    };
    let mat = |rows, cols| Mat::new(&data[..], rows, cols);
    assert!(refused(mat(3, 4), mat(3, 4), 12).contains("3x4 times 3x4: inner sizes differ"));
    assert!(refused(mat(3, 4), mat(4, 3), 8).contains("the output holds 8 elements"));
    assert!(refused(mat(4, 4), mat(4, 3), 12).contains("the left operand, 4x4"));
    assert!(
        refused(mat(3, 4), Mat { row_stride: 4, ..mat(4, 3) }, 9)
            .contains("the right operand, 4x3")
    );
    let negative = Mat { row_stride: -1, ..mat(3, 4) };
    assert!(refused(negative, mat(4, 3), 9).contains("strides -1 and 1"));
    let huge = Mat { row_stride: isize::MAX, ..mat(3, 4) };
    assert!(refused(huge, mat(4, 3), 9).contains("reaches outside its 12 elements"));
}

/// A row added to every row, at sizes that take every way through the drive: one row, one column,
/// no depth, several depths, packing, threads.
#[test]
fn a_row_is_added_to_every_row() {
    let sizes = [
        (1, 5, 7),
        (1, 300, 129),
        (9, 5, 1),
        (3, 0, 4),
        (0, 3, 4),
        (8, 17, 48),
        (17, 1025, 50),
        (129, 300, 97),
        (200, 300, 300),
    ];
    for (m, k, n) in sizes {
        let (a, b, row) = (numbers::<f32>(m * k, 1), numbers::<f32>(n * k, 2), numbers(n, 3));
        let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, n, k).transposed());
        let mut out = vec![f32::NAN; m * n];
        affine_f32(a, b, &row, &mut out);
        let old: Vec<f32> = (0..m).flat_map(|_| row.iter().copied()).collect();
        assert_product("with a row", 1.0, a, b, Some(&old), &out);
        let wide = |m: Mat<'_, f32>| m.data.iter().map(|&x| x as f64).collect::<Vec<_>>();
        let (a, b) = (wide(a), wide(b));
        let row: Vec<f64> = row.iter().map(|&x| x as f64).collect();
        let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, n, k).transposed());
        let mut out = vec![f64::NAN; m * n];
        finished(1.0, (a, b), Batch::ONE, Plus::Row(&row), None, &mut out);
        let old: Vec<f64> = (0..m).flat_map(|_| row.iter().copied()).collect();
        assert_product("with a row", 1.0, a, b, Some(&old), &out);
    }
}

/// Each element is handed on once, when it is complete, on every way through the drive; what is
/// made of it stays.
#[test]
fn elements_are_handed_on_when_they_are_complete() {
    let sizes = [
        (1, 5, 7),
        (9, 5, 1),
        (3, 0, 4),
        (8, 17, 48),
        (17, 1025, 50),
        (129, 2100, 97),
        (200, 300, 1700),
    ];
    for (m, k, n) in sizes {
        for count in [1, 3] {
            let (a, b) = (numbers::<f32>(count * m * k, 1), numbers::<f32>(count * n * k, 2));
            let (a, b) = (&a[..], &b[..]);
            let first = (Mat::new(a, m, k), Mat::new(b, n, k).transposed());
            let sizes = [count];
            let (a_strides, b_strides) = ([(m * k) as isize], [(n * k) as isize]);
            let batch = Batch { sizes: &sizes, a_strides: &a_strides, b_strides: &b_strides };
            let mut want = numbers::<f32>(count * m * n, 3);
            let mut out = vec![0.0; want.len()];
            batched_f32(0.5, first.0, first.1, batch, Accum::Add, &mut want);
            let start = out.as_ptr().addr();
            let negate = |first: usize, at: *mut u8, count: usize| {
                assert_eq!(at.addr(), start + 4 * first);
                // SAFETY: the elements are those of the output, and nobody else has them.
                let part = unsafe { std::slice::from_raw_parts_mut(at.cast::<f32>(), count) };
                part.iter_mut().for_each(|x| *x = -*x);
            };
            for threads in [1, 3] {
                out.copy_from_slice(&numbers::<f32>(count * m * n, 3));
                with_num_threads(threads, || {
                    finished(0.5, first, batch, Plus::Output, Some(&negate), &mut out)
                });
                let same = out.iter().zip(&want).all(|(x, y)| x.to_bits() == (-y).to_bits());
                assert!(same, "{count} of {m}x{k}x{n}, {threads} threads");
            }
        }
    }
}
