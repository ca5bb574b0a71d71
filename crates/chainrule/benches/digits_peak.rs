//! Share of the processor's multiply-adds that a training step of the digits net uses: the step and
//! a probe in turn, so that both meet the same machine.
//!
//! `cargo bench -p chainrule --bench digits_peak [-- THREADS]` prints a line a round and the
//! median.

use std::time::Instant;

use chainrule::nn::{Layer, Linear, Module, Relu, Sequential};
use chainrule::optim::{Optimizer, Sgd};
use chainrule::program::Program;
use chainrule::{DType, Generator, Result, SimdLevel, Tensor};

const BATCH: usize = 512;
const WIDTHS: [usize; 5] = [784, 1024, 1024, 1024, 10];
const ROUNDS: usize = 15;

/// The multiplications and additions of a step's products: forward, for the weights, and for the
/// input of every layer but the first.
fn operations() -> f64 {
    let layers = WIDTHS.windows(2).map(|w| 2.0 * (BATCH * w[0] * w[1]) as f64);
    layers.enumerate().map(|(i, ops)| if i == 0 { 2.0 * ops } else { 3.0 * ops }).sum()
}

/// Multiply-adds in registers, on independent numbers: enough of them to fill the pipelines.
/// Returns the operations done.
///
/// # Safety
///
/// The processor must have the instructions named.
#[cfg(target_arch = "x86_64")]
macro_rules! probe {
    ($name:ident, $features:literal, $vector:ty, $set:ident, $fma:ident, $ways:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(times: usize) -> f64 {
            use std::arch::x86_64::*;
            let (by, plus) = ($set(std::hint::black_box(0.999)), $set(std::hint::black_box(1e-3)));
            let mut sums = [$set(0.5); $ways];
            for _ in 0..times {
                for sum in &mut sums {
                    *sum = $fma(*sum, by, plus);
                }
            }
            std::hint::black_box(sums);
            (times * $ways * 2 * size_of::<$vector>() / size_of::<f32>()) as f64
        }
    };
}
#[cfg(target_arch = "x86_64")]
probe!(avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 12);
#[cfg(target_arch = "x86_64")]
probe!(avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 24);

#[cfg(target_arch = "x86_64")]
fn burst(times: usize) -> Option<f64> {
    match chainrule::simd_level() {
        // SAFETY: the level in use is one that the processor has.
        SimdLevel::Avx512 => Some(unsafe { avx512(times) }),
        // SAFETY: as above.
        SimdLevel::Avx2 => Some(unsafe { avx2(times) }),
        SimdLevel::Portable => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn burst(_: usize) -> Option<f64> {
    None
}

/// Operations a second on all threads at once.
fn peak(threads: usize) -> Option<f64> {
    let began = Instant::now();
    let done: Option<Vec<f64>> = std::thread::scope(|scope| {
        let work: Vec<_> = (0..threads).map(|_| scope.spawn(|| burst(20_000_000))).collect();
        work.into_iter().map(|thread| thread.join().expect("it only multiplies")).collect()
    });
    Some(done?.iter().sum::<f64>() / began.elapsed().as_secs_f64())
}

fn step() -> Result<(Program, Tensor, Tensor)> {
    let g = &mut Generator::manual_seed(1);
    let x = Tensor::try_rand([BATCH, WIDTHS[0]], DType::F32, g)?;
    let y = Tensor::try_randint(0, 10, [BATCH], g)?;
    let mut net = Sequential::new();
    for (i, w) in WIDTHS.windows(2).enumerate() {
        if i > 0 {
            net = net.with(Relu);
        }
        net = net.with(Linear::try_new(w[0], w[1], g)?);
    }
    let mut sgd = Sgd::new(net.parameters(), 0.01);
    let program = Program::trace([("x", &x), ("y", &y)], |batch| {
        let loss = net.try_forward(&batch[0])?.try_cross_entropy(&batch[1])?;
        loss.try_backward()?;
        sgd.step()?;
        Ok(vec![loss])
    })?;
    Ok((program.simplified()?.program.fused(), x, y))
}

fn main() -> Result<()> {
    let threads = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(2);
    chainrule::set_num_threads(threads);
    let (program, x, y) = step()?;
    let mut results = Vec::new();
    for _ in 0..5 {
        program.run_into(&[&x, &y], &mut results)?;
    }
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let Some(peak) = peak(threads) else {
            println!("there is no probe for this processor");
            return Ok(());
        };
        let began = Instant::now();
        for _ in 0..3 {
            program.run_into(&[&x, &y], &mut results)?;
        }
        let seconds = began.elapsed().as_secs_f64() / 3.0;
        let share = operations() / seconds / peak;
        println!(
            "peak {:.0} GFLOP/s, step {:.1} ms: {:.0} GFLOP/s, {:.0} %",
            peak / 1e9,
            seconds * 1e3,
            operations() / seconds / 1e9,
            share * 100.0
        );
        shares.push(share);
    }
    shares.sort_by(f64::total_cmp);
    println!("median {:.0} % of the peak on {threads} thread(s)", shares[ROUNDS / 2] * 100.0);
    Ok(())
}
