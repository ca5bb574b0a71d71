//! The element types, and the one table of type promotion.
//!
//! A tensor holds any of them; four are computed with ([`DType::computing`]): bool, i64, f32 and
//! f64. The other dtypes are storage. Their elements are widened for a kernel, and its result is
//! brought back once: integers wrap around to the width of their dtype, halves are rounded from
//! f32. So a new dtype costs its conversions, and no kernel is compiled anew for it.

use std::fmt;

use half::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// True or false, a byte each.
    Bool,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit signed integer.
    I16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// 16-bit float of IEEE 754: eleven significant bits, up to 65504.
    F16,
    /// 16-bit float with the range of f32 and eight significant bits.
    BF16,
    /// 32-bit float, the default.
    F32,
    /// 64-bit float.
    F64,
}

use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

/// Type promotion: the common dtype of two operands, row and column in the order of [`DType::ALL`].
///
/// The kinds are ordered bool, integer, float, and within a kind the dtype that holds both wins:
/// f16 and bf16 give f32, a signed and an unsigned integer the smallest signed one for both, and
/// u64 with a signed one i64. An integer never widens a float, as in PyTorch (NumPy gives float64
/// for i64 with f32). A Rust or Python scalar takes the tensor's dtype, except that a float scalar
/// turns an integer or bool tensor into the default float, f32.
const PROMOTION: [[DType; DType::ALL.len()]; DType::ALL.len()] = {
    let mut table = [[Bool; DType::ALL.len()]; DType::ALL.len()];
    let mut i = 0;
    while i < table.len() {
        let mut j = 0;
        while j < table.len() {
            table[i][j] = DType::join(DType::ALL[i], DType::ALL[j]);
            j += 1;
        }
        i += 1;
    }
    table
};

impl DType {
    /// All dtypes.
    pub const ALL: [DType; 13] = [Bool, U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64];

    /// The rule of [`PROMOTION`].
    const fn join(a: DType, b: DType) -> DType {
        if a.is_float() || b.is_float() {
            return match (a.is_float(), b.is_float()) {
                (true, false) => a,
                (false, true) => b,
                _ if a as usize == b as usize => a,
                _ if a.size() == b.size() => F32,
                _ if a.size() > b.size() => a,
                _ => b,
            };
        }
        match (a, b) {
            (Bool, other) | (other, Bool) => other,
            _ if a.is_signed() == b.is_signed() => {
                if a.size() > b.size() {
                    a
                } else {
                    b
                }
            }
            _ => {
                let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
                let twice = 2 * unsigned.size();
                match if twice > signed.size() { twice } else { signed.size() } {
                    2 => I16,
                    4 => I32,
                    _ => I64,
                }
            }
        }
    }

    /// The dtype that holds both, by the table of promotion.
    ///
    /// ```
    /// use chainrule::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), DType::F32);
    /// assert_eq!(DType::F32.promote(DType::F64), DType::F64);
    /// assert_eq!(DType::U8.promote(DType::I8), DType::I16);
    /// assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
    /// ```
    #[inline]
    pub fn promote(self, other: DType) -> DType {
        PROMOTION[self as usize][other as usize]
    }

    /// The dtype itself if it is a float, else the default float, f32: that of a quotient, a mean,
    /// a logarithm.
    #[inline]
    pub const fn to_float(self) -> DType {
        if self.is_float() { self } else { F32 }
    }

    /// The dtype of a sum: i64 for bools and integers, else the dtype itself.
    #[inline]
    pub const fn of_sum(self) -> DType {
        if self.is_float() { self } else { I64 }
    }

    /// The dtype whose kernels compute this one: i64 for integers, f32 for f16 and bf16, else the
    /// dtype itself.
    #[inline]
    pub const fn computing(self) -> DType {
        match self {
            U8 | I8 | U16 | I16 | U32 | I32 | U64 => I64,
            F16 | BF16 => F32,
            Bool | I64 | F32 | F64 => self,
        }
    }

    /// Whether its elements are widened for kernels.
    #[inline]
    pub const fn is_widened(self) -> bool {
        !matches!(self, Bool | I64 | F32 | F64)
    }

    /// Whether gradients can flow through tensors of this dtype.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    /// Whether it is f16 or bf16.
    #[inline]
    pub const fn is_half(self) -> bool {
        matches!(self, F16 | BF16)
    }

    /// Whether it is an integer; bool is none.
    #[inline]
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Bool)
    }

    /// Whether it holds negative numbers.
    #[inline]
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8 | U16 | U32 | U64)
    }

    /// The size of one element in bytes.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            U16 | I16 | F16 | BF16 => 2,
            U32 | I32 | F32 => 4,
            U64 | I64 | F64 => 8,
        }
    }

    /// The name as printed: `bool`, `i64`, `f32`, `bf16`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "u8",
            I8 => "i8",
            U16 => "u16",
            I16 => "i16",
            U32 => "u32",
            I32 => "i32",
            U64 => "u64",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// The name that NumPy and PyTorch have for it: `bool`, `int64`, `float32`, `bfloat16`, ...
    pub const fn numpy_name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            U16 => "uint16",
            I16 => "int16",
            U32 => "uint32",
            I32 => "int32",
            U64 => "uint64",
            I64 => "int64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that a tensor can be made from or read as.
pub trait Element: Copy + fmt::Debug + sealed::Sealed + 'static {
    /// The dtype that holds it.
    const DTYPE: DType;
    /// The representation in memory.
    type Stored: Stored;
    /// To memory.
    fn store(self) -> Self::Stored;
    /// From memory.
    fn load(stored: Self::Stored) -> Self;
    /// Whether tensors of the dtype are read as it: beside its own dtype, those of all integers as
    /// an i32, i64 or usize.
    #[inline]
    fn reads(dtype: DType) -> bool {
        dtype == Self::DTYPE || Self::DTYPE == I64 && dtype.is_integer()
    }
}

/// A number as it lies in a buffer: a bool is a byte, 0 or 1.
pub trait Stored: bytemuck::Pod + Default + PartialOrd + fmt::Debug + Send + Sync {
    /// The dtype that it stores.
    const DTYPE: DType;

    /// Whether buffers of this dtype are read as it. Unsigned integers read the bits of every dtype
    /// of their size, for copies.
    #[inline]
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident, $stored:ty, |$x:ident| $store:expr, |$y:ident| $load:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Stored = $stored;
            #[inline]
            fn store(self) -> $stored { let $x = self; $store }
            #[inline]
            fn load($y: $stored) -> Self { $load }
        }
    )*};
}
elements! {
    f16, F16, f16, |x| x, |y| y;
    bf16, BF16, bf16, |x| x, |y| y;
    f32, F32, f32, |x| x, |y| y;
    f64, F64, f64, |x| x, |y| y;
    i8, I8, i8, |x| x, |y| y;
    i16, I16, i16, |x| x, |y| y;
    // An integer literal is an i32, and an i64 in a tensor.
    i32, I64, i64, |x| x as i64, |y| y as i32;
    i64, I64, i64, |x| x, |y| y;
    u8, U8, u8, |x| x, |y| y;
    u16, U16, u16, |x| x, |y| y;
    u32, U32, u32, |x| x, |y| y;
    u64, U64, u64, |x| x, |y| y;
    usize, I64, i64, |x| x as i64, |y| y as usize;
    bool, Bool, u8, |x| x as u8, |y| y != 0;
}

macro_rules! stored {
    ($($ty:ty, $dtype:ident;)*) => {$(
        impl Stored for $ty {
            const DTYPE: DType = $dtype;
        }
    )*};
    (bits: $($ty:ty, $dtype:ident;)*) => {$(
        impl Stored for $ty {
            const DTYPE: DType = $dtype;
            #[inline]
            fn stores(dtype: DType) -> bool {
                dtype.size() == size_of::<$ty>()
            }
        }
    )*};
}
stored! { i8, I8; i16, I16; i32, I32; i64, I64; f16, F16; bf16, BF16; f32, F32; f64, F64; }
stored! { bits: u8, Bool; u16, U16; u32, U32; u64, U64; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_a_join() {
        for (i, a) in DType::ALL.into_iter().enumerate() {
            assert_eq!(a as usize, i);
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                for c in DType::ALL {
                    assert_eq!(a.promote(b).promote(c), a.promote(b.promote(c)), "{a} {b} {c}");
                }
            }
        }
        assert_eq!(I64.promote(F32), F32);
        assert_eq!(F32.promote(F64), F64);
        assert_eq!(Bool.promote(I64), I64);
    }
}
