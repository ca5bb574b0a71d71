//! The speed of single kernels beside plain hand-written loops, on one thread.
//!
//! `cargo bench -p chainrule --bench kernels` prints one JSON line for each kernel and size;
//! `kernels.py` beside this file runs it in turns with NumPy and PyTorch and writes the table of
//! the book. Times are nanoseconds, the best of many. The kernel's time is that of the whole op
//! less that of the same op on one element, which is what it costs to call.

use std::hint::black_box;
use std::time::Instant;

use chainrule::{DType, Generator, Tensor};

/// Columns of a row, where there are rows: no multiple of a vector.
const WIDTH: usize = 250;
/// Columns and rows of the table that rows are gathered from.
const TABLE: [usize; 2] = [64, 8192];

/// Defines a loop, compiled for the widest vectors that the processor has.
macro_rules! by_hand {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {$(
        fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn plain($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    )*};
}

by_hand! {
    fn copy(x: &[f32], out: &mut [f32]) {
        out.copy_from_slice(x);
    }

    fn add(a: &[f32], b: &[f32], out: &mut [f32]) {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = a + b;
        }
    }

    fn relu(x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = if *x > 0.0 { *x } else { 0.0 };
        }
    }

    fn exp(x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = exp_of(*x);
        }
    }

    fn sum(x: &[f32]) -> f32 {
        let mut lanes = [0f32; 64];
        let (chunks, rest) = x.as_chunks::<64>();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += x;
            }
        }
        lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
    }

    fn sum_rows(x: &[f32], out: &mut [f32]) {
        for (x, out) in x.chunks_exact(WIDTH).zip(out) {
            *out = lanes(x, |x| x);
        }
    }

    fn sum_columns(x: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for x in x.chunks_exact(WIDTH) {
            for (out, x) in out.iter_mut().zip(x) {
                *out += x;
            }
        }
    }

    fn softmax(x: &[f32], out: &mut [f32]) {
        for (x, out) in x.chunks_exact(WIDTH).zip(out.chunks_exact_mut(WIDTH)) {
            let mut most = [f32::NEG_INFINITY; 16];
            let (chunks, rest) = x.as_chunks::<16>();
            for chunk in chunks {
                for (most, x) in most.iter_mut().zip(chunk) {
                    *most = if *x > *most { *x } else { *most };
                }
            }
            let most = most.iter().chain(rest).fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
            for (out, x) in out.iter_mut().zip(x) {
                *out = exp_of(x - most);
            }
            let scale = 1.0 / lanes(out, |x| x);
            for out in out {
                *out *= scale;
            }
        }
    }

    fn layer_norm(x: &[f32], gain: &[f32], bias: &[f32], out: &mut [f32]) {
        for (x, out) in x.chunks_exact(WIDTH).zip(out.chunks_exact_mut(WIDTH)) {
            let mean = lanes(x, |x| x) / WIDTH as f32;
            let var = lanes(x, |x| (x - mean) * (x - mean)) / WIDTH as f32;
            let scale = 1.0 / (var + 1e-5).sqrt();
            for (((out, x), gain), bias) in out.iter_mut().zip(x).zip(gain).zip(bias) {
                *out = (x - mean) * scale * gain + bias;
            }
        }
    }

    fn gather(table: &[f32], index: &[i64], out: &mut [f32]) {
        for (out, i) in out.chunks_exact_mut(TABLE[0]).zip(index) {
            let from = *i as usize * TABLE[0];
            out.copy_from_slice(&table[from..from + TABLE[0]]);
        }
    }

    fn add_row(a: &[f32], row: &[f32], out: &mut [f32]) {
        for (out, a) in out.chunks_exact_mut(WIDTH).zip(a.chunks_exact(WIDTH)) {
            for ((out, a), b) in out.iter_mut().zip(a).zip(row) {
                *out = a + b;
            }
        }
    }

    fn add_column(a: &[f32], column: &[f32], out: &mut [f32]) {
        for ((out, a), b) in out.chunks_exact_mut(WIDTH).zip(a.chunks_exact(WIDTH)).zip(column) {
            for (out, a) in out.iter_mut().zip(a) {
                *out = a + b;
            }
        }
    }
}

/// The sum of `f` of the elements of a row, in lanes.
#[inline(always)]
fn lanes(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0f32; 32];
    let (chunks, rest) = x.as_chunks::<32>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += f(*x);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| f(*x)).sum::<f32>()
}

/// `exp(x)` for |x| below 80, to about 2 ulp: a power of two times a polynomial of the rest.
#[inline(always)]
fn exp_of(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * std::f32::consts::LN_2;
    let mut p = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * rest + c;
    }
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1f32.to_bits()))
}

/// The best time of one call, in nanoseconds: of many samples of at least 50 us each.
fn best(mut f: impl FnMut()) -> f64 {
    let mut sample = |count: usize| {
        let start = Instant::now();
        for _ in 0..count {
            f();
        }
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    };
    let mut count = 1;
    while sample(count) * (count as f64) < 5e4 {
        count *= 2;
    }
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut samples = 0;
    while samples < 7 || start.elapsed().as_millis() < 60 {
        best = best.min(sample(count));
        samples += 1;
    }
    best
}

/// One kernel at one size.
struct Row {
    name: &'static str,
    elements: usize,
}

impl Row {
    /// Measures the op, the op on one element, and the loop, in turns, and prints the line.
    fn measure(&self, op: impl Fn() -> Tensor, one: impl Fn() -> Tensor, mut hand: impl FnMut()) {
        let mut times = [f64::INFINITY; 3];
        for _ in 0..3 {
            times[0] = times[0].min(best(|| drop(black_box(op()))));
            times[1] = times[1].min(best(|| drop(black_box(one()))));
            times[2] = times[2].min(best(&mut hand));
        }
        let [op, call, hand] = times;
        println!(
            r#"{{"kernel":"{}","elements":{},"op_ns":{op:.1},"call_ns":{call:.1},"hand_ns":{hand:.1}}}"#,
            self.name, self.elements
        );
    }
}

/// The numbers of a contiguous tensor.
fn numbers(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>()
}

fn at_size(elements: usize) {
    let g = &mut Generator::manual_seed(0);
    let rows = elements / WIDTH;
    let x = Tensor::randn([rows, WIDTH], DType::F32, g);
    let y = Tensor::randn([rows, WIDTH], DType::F32, g);
    let (row, column) =
        (Tensor::randn([WIDTH], DType::F32, g), Tensor::randn([rows, 1], DType::F32, g));
    let (a, b, r, c) = (numbers(&x), numbers(&y), numbers(&row), numbers(&column));
    let one = Tensor::randn([1, 1], DType::F32, g);
    let single = Tensor::randn([1], DType::F32, g);
    let mut out = vec![0f32; elements];
    let of = |name| Row { name, elements };

    of("copy").measure(
        || Tensor::cat(&[&x], 0),
        || Tensor::cat(&[&one], 0),
        || copy(black_box(&a), &mut out),
    );
    of("add").measure(|| x.add(&y), || one.add(&one), || add(black_box(&a), &b, &mut out));
    of("relu").measure(|| x.relu(), || one.relu(), || relu(black_box(&a), &mut out));
    of("exp").measure(|| x.exp(), || one.exp(), || exp(black_box(&a), &mut out));
    of("sum").measure(
        || x.sum_all(),
        || one.sum_all(),
        || {
            black_box(sum(black_box(&a)));
        },
    );
    let mut small = vec![0f32; rows.max(WIDTH)];
    of("sum of rows").measure(
        || x.sum(1, false),
        || one.sum(1, false),
        || sum_rows(black_box(&a), &mut small),
    );
    of("sum of columns").measure(
        || x.sum(0, false),
        || one.sum(0, false),
        || {
            sum_columns(black_box(&a), &mut small[..WIDTH]);
        },
    );
    of("softmax").measure(|| x.softmax(1), || one.softmax(1), || softmax(black_box(&a), &mut out));
    of("layer_norm").measure(
        || x.layer_norm(WIDTH, Some(&row), Some(&row), 1e-5),
        || one.layer_norm(1, Some(&single), Some(&single), 1e-5),
        || layer_norm(black_box(&a), &r, &r, &mut out),
    );
    of("add a row").measure(
        || x.add(&row),
        || one.add(&single),
        || add_row(black_box(&a), &r, &mut out),
    );
    of("add a column").measure(
        || x.add(&column),
        || one.add(&one),
        || {
            add_column(black_box(&a), &c, &mut out);
        },
    );
    gathered(elements, g);
    transposed(elements, g);
}

fn gathered(elements: usize, g: &mut Generator) {
    let count = elements / TABLE[0];
    let table = Tensor::randn([TABLE[1], TABLE[0]], DType::F32, g);
    let index = Tensor::randint(0, TABLE[1] as i64, [count], g);
    let (t, i) = (numbers(&table), index.to_vec::<i64>());
    let (small, first) = (Tensor::randn([1, 1], DType::F32, g), Tensor::from([0i64]));
    let mut out = vec![0f32; count * TABLE[0]];
    Row { name: "gather rows", elements: count * TABLE[0] }.measure(
        || table.index_select(0, &index),
        || small.index_select(0, &first),
        || gather(black_box(&t), &i, &mut out),
    );
}

/// A transposed view, copied and added; the loop beside them reads straight through, as fast as
/// memory goes.
fn transposed(elements: usize, g: &mut Generator) {
    let side = elements.isqrt();
    let (x, y) =
        (Tensor::randn([side, side], DType::F32, g), Tensor::randn([side, side], DType::F32, g));
    let (a, b) = (numbers(&x), numbers(&y));
    let one = Tensor::randn([1, 1], DType::F32, g);
    let (view, small) = (x.t(), one.t());
    let mut out = vec![0f32; side * side];
    let of = |name| Row { name, elements: side * side };
    of("copy a transposed view").measure(
        || view.reshape([-1]),
        || Tensor::cat(&[&one], 0),
        || copy(black_box(&a), &mut out),
    );
    of("add a transposed view").measure(
        || y.add(&view),
        || one.add(&small),
        || {
            add(black_box(&a), &b, &mut out);
        },
    );
}

fn main() {
    chainrule::set_num_threads(1);
    for elements in [1_000, 100_000, 10_000_000] {
        at_size(elements);
    }
}
