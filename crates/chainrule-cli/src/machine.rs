//! The machine: its threads, how fast it is at the moment, and how much of it this process got.

use std::time::Instant;

use anyhow::Result;
use chainrule::{DType, Generator, Tensor};

/// Sets how many threads large operations use: one a core without `threads`.
pub fn use_threads(threads: Option<usize>) {
    chainrule::set_num_threads(threads.unwrap_or(0));
}

/// The rows and columns of the product that probes the machine: its three matrices fit into the L2
/// cache of one core.
const PROBE: usize = 256;

/// Speed of one matrix product after the other, in GFLOP/s: the best of a few, on the threads that
/// there are. Compared with what the machine can do, it tells a slow moment of the machine.
pub fn probe_gflops() -> Result<f64> {
    let generator = &mut Generator::manual_seed(1);
    let a = Tensor::try_randn([PROBE, PROBE], DType::F32, generator)?;
    let b = Tensor::try_randn([PROBE, PROBE], DType::F32, generator)?;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let began = Instant::now();
        std::hint::black_box(a.try_matmul(&b)?);
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(2.0 * (PROBE as f64).powi(3) / best / 1e9)
}

/// A stopwatch for the clock and for the processor time of all threads of this process.
pub struct Stopwatch {
    began: Instant,
    cpu: Option<f64>,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Stopwatch {
        Stopwatch { began: Instant::now(), cpu: cpu_seconds() }
    }

    /// The seconds on the clock, and those of the processor where the system tells them.
    pub fn read(&self) -> (f64, Option<f64>) {
        let wall = self.began.elapsed().as_secs_f64();
        (wall, cpu_seconds().zip(self.cpu).map(|(now, then)| now - then))
    }
}

/// The processor time of this process so far, as Linux tells it, in steps of a hundredth second.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold blanks; the fields after it are numbers.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// The most memory that this process has had at a time, in MiB, where the system tells it.
pub fn peak_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib / 102.4).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_of_memory_covers_what_was_taken() {
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_mib().is_some_and(|mib| mib >= 64.0));
        drop(taken);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_passes_while_working() {
        let watch = Stopwatch::start();
        let mut x = 0u64;
        while watch.began.elapsed().as_secs_f64() < 0.1 {
            x = std::hint::black_box(x + 1);
        }
        let (wall, cpu) = watch.read();
        // Other tests run in this process too, so there is no upper bound worth a check.
        assert!(wall >= 0.1 && cpu.is_some_and(|cpu| cpu > 0.0), "{wall} {cpu:?}");
    }

    #[test]
    fn the_probe_is_a_speed() {
        let speed = probe_gflops().unwrap();
        assert!(speed.is_finite() && speed > 0.01, "{speed}");
    }
}
