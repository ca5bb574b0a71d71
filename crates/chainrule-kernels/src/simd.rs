//! Instruction set of this process, and the macro that compiles a loop once for each.
//!
//! One binary runs everywhere: the level is chosen at run time, once. The variable `CHAINRULE_SIMD`
//! (`avx512`, `avx2` or `portable`) lowers it, which is how the tests reach the paths that the
//! machine would not take by itself.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of vector instructions, from the plainest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Baseline of the target.
    Portable = 1,
    /// AVX2 with FMA.
    Avx2 = 2,
    /// AVX-512 (F, BW, DQ, VL) with FMA.
    Avx512 = 3,
}

impl Level {
    /// The name that `CHAINRULE_SIMD` takes.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in use: what the processor has, or less if `CHAINRULE_SIMD` says so.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Portable,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Level {
    let wanted = match std::env::var("CHAINRULE_SIMD").as_deref() {
        Ok("portable") => Level::Portable,
        Ok("avx2") => Level::Avx2,
        _ => Level::Avx512,
    };
    #[cfg(unoptimised)]
    warn_of_an_unoptimised_build();
    let level = wanted.min(detected());
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// Warns once of an unoptimised build: cargo's dev profile compiles dependencies so without saying
/// it.
#[cfg(unoptimised)]
fn warn_of_an_unoptimised_build() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        eprintln!(
            "chainrule is compiled without optimisation and many times slower than it could be: \
             build with --release, or put [profile.dev.package.\"*\"] opt-level = 2 into Cargo.toml"
        );
    });
}

/// Instruction set of the processor.
#[cfg(target_arch = "x86_64")]
pub fn detected() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

/// Instruction set of the processor: the target's own vectors.
#[cfg(not(target_arch = "x86_64"))]
pub fn detected() -> Level {
    Level::Portable
}

/// Prefetches the cache line at an address, which may be any.
#[inline(always)]
pub(crate) fn prefetch<T>(_at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it, and it reads nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_at.cast());
    }
}

/// Prefetch distance of a loop over rows, in bytes.
const AHEAD: usize = 4096;

/// Prefetches what lies one prefetch distance past these rows. A loop that goes over each row
/// several times does not touch memory evenly enough for the hardware prefetcher; rows longer than
/// a page do without.
#[inline(always)]
pub(crate) fn look_ahead<T>(rows: &[T]) {
    let len = size_of_val(rows);
    if len <= AHEAD {
        prefetch_lines(rows.as_ptr().cast::<u8>().wrapping_add(AHEAD), len);
    }
}

/// Prefetches all of a row.
#[inline(always)]
pub fn ask_for<T>(row: &[T]) {
    prefetch_lines(row.as_ptr().cast(), size_of_val(row));
}

#[inline(always)]
fn prefetch_lines(from: *const u8, len: usize) {
    (0..len).step_by(64).for_each(|at| prefetch(from.wrapping_add(at)));
}

/// The array of `f(0)`, `f(1)` and so on.
///
/// For inner loops: `std::array::from_fn` and `map` reach `f` by calls that are not always inlined,
/// and then the vectors are lost.
#[inline(always)]
pub(crate) fn array<T: Copy, const N: usize>(mut f: impl FnMut(usize) -> T) -> [T; N] {
    const { assert!(N > 0) };
    let mut out = [f(0); N];
    let mut i = 1;
    while i < N {
        out[i] = f(i);
        i += 1;
    }
    out
}

/// Defines a function that runs `body` compiled for the level in use.
///
/// `body` is an `#[inline(always)]` function whose first generic parameter is `const FMA: bool`
/// (true where a fused multiply-add is one instruction; elsewhere `mul_add` would be a library
/// call). The other generics follow in the same order. The body must contain the whole loop: a call
/// that is not inlined into the wrapper loses the vectors.
///
/// ```ignore
/// vectorized! {
///     /// Adds `b` to `a`.
///     pub fn add_to[T](a: &mut [T], b: &[T])
///         where [T: Copy + std::ops::Add<Output = T>] = add_to_body
/// }
/// ```
#[macro_export]
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($g:ident),*])? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?
        $(where [$($bound:tt)*])? = $body:ident) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        #[inline]
        $vis fn $name $(<$($g),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bound)*)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[allow(clippy::too_many_arguments)]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
                fn avx512 $(<$($g),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bound)*)? {
                    $body::<true $($(, $g)*)?>($($arg),*)
                }
                #[allow(clippy::too_many_arguments)]
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2 $(<$($g),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bound)*)? {
                    $body::<true $($(, $g)*)?>($($arg),*)
                }
                match $crate::simd::level() {
                    // SAFETY: `level()` never exceeds what the processor was found to have.
                    $crate::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Level::Portable => {}
                }
            }
            $body::<{ cfg!(target_arch = "aarch64") } $($(, $g)*)?>($($arg),*)
        }
    };
}
pub use vectorized;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_calls_once_for_each_place() {
        let mut calls = Vec::new();
        let squares: [usize; 5] = array(|i| {
            calls.push(i);
            i * i
        });
        assert_eq!(squares, [0, 1, 4, 9, 16]);
        assert_eq!(calls, [0, 1, 2, 3, 4]);
        assert_eq!(array::<_, 1>(|i| i + 7), [7]);
    }

    #[test]
    fn the_level_is_one_the_processor_has() {
        assert!(level() <= detected());
    }
}
