//! The vectors that the kernels of this folder are written in: one trait, and one type for each
//! instruction set.
//!
//! The methods bear no `#[target_feature]` of their own. They are inlined into functions that do,
//! which is where the instructions come from; called elsewhere they would be slow, and without the
//! processor's support undefined.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::simd::array;

/// A register of `LANES` numbers.
///
/// # Safety
///
/// Every method may only run where the processor has the instructions of the type. A `load` reads
/// `LANES` numbers and a `store` writes them; with a mask of `n`, only the first `n` are touched,
/// and the other lanes of a load are zero.
pub(crate) trait Vector: Copy {
    /// Type of a lane.
    type Elem: Copy;
    /// Says which lanes of the last vector of a row count.
    type Mask: Copy;
    /// Number of lanes.
    const LANES: usize;
    /// Vectors in the width of a full panel, and rows of as many sums that stay in the registers,
    /// beside the operands and a mask.
    const WIDE: usize;
    /// See `WIDE`.
    const ROWS: usize;

    unsafe fn zero() -> Self;
    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn mask(lanes: usize) -> Self::Mask;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn load_part(from: *const Self::Elem, mask: Self::Mask) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    unsafe fn store_part(self, to: *mut Self::Elem, mask: Self::Mask);
    /// `self * by + plus`, rounded once where the processor can.
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self;
    unsafe fn mul(self, by: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// One step of a sum of products: `mul_add`, unless a lane holds several factors.
    #[inline(always)]
    unsafe fn dot_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.mul_add(by, plus) }
    }
}

/// Eight lanes of ones, then eight of zeros: a window into it is a mask of AVX2.
#[cfg(target_arch = "x86_64")]
static LANES_ON: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The AVX2 mask of the first `n` words of 4 bytes: the sign bits of whole lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn lanes_on(words: usize) -> __m256i {
    debug_assert!(words <= 8);
    // SAFETY: the caller vouches for the instruction; the window is within the table.
    unsafe { _mm256_loadu_si256(LANES_ON.as_ptr().add(8 - words).cast()) }
}

/// Defines a vector of AVX2 or AVX-512. Their masks differ, lanes and bits, and so does where a
/// masked load takes them.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_vector {
    ($name:ident($reg:ty) of $lanes:literal $elem:ty, $wide:literal by $rows:literal;
     mask |$n:ident| $ones:expr => $mask:ty;
     load_part |$from:ident, $part:ident| $load_part:expr;
     $zero:ident $splat:ident $load:ident $store:ident $store_part:ident
     $fma:ident $mul:ident $add:ident) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name($reg);

        // SAFETY: (all methods) the caller vouches for the instructions and the memory, as the
        // trait demands.
        #[allow(unsafe_op_in_unsafe_fn)]
        impl Vector for $name {
            type Elem = $elem;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const WIDE: usize = $wide;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn zero() -> Self {
                Self($zero())
            }
            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                Self($splat(value))
            }
            #[inline(always)]
            unsafe fn mask($n: usize) -> $mask {
                $ones
            }
            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                Self($load(from))
            }
            #[inline(always)]
            unsafe fn load_part($from: *const $elem, $part: $mask) -> Self {
                Self($load_part)
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                $store(to, self.0)
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $elem, mask: $mask) {
                $store_part(to, mask, self.0)
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                Self($fma(self.0, by.0, plus.0))
            }
            #[inline(always)]
            unsafe fn mul(self, by: Self) -> Self {
                Self($mul(self.0, by.0))
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Self($add(self.0, other.0))
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_vector! {
    F32x16(__m512) of 16 f32, 3 by 8;
    mask |lanes| ((1u32 << lanes) - 1) as __mmask16 => __mmask16;
    load_part |from, mask| _mm512_maskz_loadu_ps(mask, from);
    _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_mask_storeu_ps
    _mm512_fmadd_ps _mm512_mul_ps _mm512_add_ps
}
#[cfg(target_arch = "x86_64")]
x86_vector! {
    F64x8(__m512d) of 8 f64, 3 by 8;
    mask |lanes| ((1u32 << lanes) - 1) as __mmask8 => __mmask8;
    load_part |from, mask| _mm512_maskz_loadu_pd(mask, from);
    _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_mask_storeu_pd
    _mm512_fmadd_pd _mm512_mul_pd _mm512_add_pd
}
#[cfg(target_arch = "x86_64")]
x86_vector! {
    F32x8(__m256) of 8 f32, 2 by 6;
    mask |lanes| lanes_on(lanes) => __m256i;
    load_part |from, mask| _mm256_maskload_ps(from, mask);
    _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_maskstore_ps
    _mm256_fmadd_ps _mm256_mul_ps _mm256_add_ps
}
#[cfg(target_arch = "x86_64")]
x86_vector! {
    F64x4(__m256d) of 4 f64, 2 by 6;
    mask |lanes| lanes_on(2 * lanes) => __m256i;
    load_part |from, mask| _mm256_maskload_pd(from, mask);
    _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_maskstore_pd
    _mm256_fmadd_pd _mm256_mul_pd _mm256_add_pd
}

/// Sixteen lanes that hold an f32 or a pair of bf16: `dot_add` takes pairs and adds both products.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Pairs16(F32x16);

// SAFETY: (all methods) as `F32x16`, and the caller vouches for AVX512-BF16.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_op_in_unsafe_fn)]
impl Vector for Pairs16 {
    type Elem = f32;
    type Mask = __mmask16;
    const LANES: usize = F32x16::LANES;
    const WIDE: usize = F32x16::WIDE;
    const ROWS: usize = F32x16::ROWS;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(F32x16::zero())
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self(F32x16::splat(value))
    }
    #[inline(always)]
    unsafe fn mask(lanes: usize) -> __mmask16 {
        F32x16::mask(lanes)
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(F32x16::load(from))
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, mask: __mmask16) -> Self {
        Self(F32x16::load_part(from, mask))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        self.0.store(to)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, mask: __mmask16) {
        self.0.store_part(to, mask)
    }
    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        Self(self.0.mul_add(by.0, plus.0))
    }
    #[inline(always)]
    unsafe fn mul(self, by: Self) -> Self {
        Self(self.0.mul(by.0))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0))
    }
    #[inline(always)]
    unsafe fn dot_add(self, by: Self, plus: Self) -> Self {
        let pairs = |v: F32x16| std::mem::transmute::<__m512, __m512bh>(v.0);
        Self(F32x16(_mm512_dpbf16_ps(plus.0.0, pairs(self.0), pairs(by.0))))
    }
}

/// A plain array, for the compiler to put into whatever 16-byte registers the target has.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T, const N: usize>([T; N]);

macro_rules! plain_vector {
    ($elem:ty, $lanes:literal) => {
        // SAFETY: (all methods) needs no instruction; the caller vouches for the memory.
        #[allow(unsafe_op_in_unsafe_fn)]
        impl Vector for Plain<$elem, $lanes> {
            type Elem = $elem;
            type Mask = usize;
            const LANES: usize = $lanes;
            const WIDE: usize = if cfg!(target_arch = "aarch64") { 3 } else { 2 };
            const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

            #[inline(always)]
            unsafe fn zero() -> Self {
                Self([0.0; $lanes])
            }
            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                Self([value; $lanes])
            }
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> usize {
                lanes
            }
            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                Self(from.cast::<[$elem; $lanes]>().read_unaligned())
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $elem, mask: usize) -> Self {
                Self(array(|i| if i < mask { *from.add(i) } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                to.cast::<[$elem; $lanes]>().write_unaligned(self.0)
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $elem, mask: usize) {
                for i in 0..mask {
                    *to.add(i) = self.0[i];
                }
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                // Without the instruction, `f32::mul_add` is a call into the library.
                Self(array(|i| {
                    if cfg!(target_arch = "aarch64") {
                        self.0[i].mul_add(by.0[i], plus.0[i])
                    } else {
                        self.0[i] * by.0[i] + plus.0[i]
                    }
                }))
            }
            #[inline(always)]
            unsafe fn mul(self, by: Self) -> Self {
                Self(array(|i| self.0[i] * by.0[i]))
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Self(array(|i| self.0[i] + other.0[i]))
            }
        }
    };
}

plain_vector!(f32, 4);
plain_vector!(f64, 2);
