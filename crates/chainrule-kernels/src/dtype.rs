//! The element types, and the one table of type promotion.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// True or false, a byte each.
    Bool,
    /// 64-bit signed integer.
    I64,
    /// 32-bit float, the default.
    F32,
    /// 64-bit float.
    F64,
}

use DType::{Bool, F32, F64, I64};

/// Type promotion: the common dtype of two operands, row and column in the order bool, i64, f32,
/// f64.
///
/// The kinds are ordered bool, integer, float, and the wider float wins. An integer with an f32
/// gives f32 (NumPy would give float64 here; as in PyTorch, integers never widen a float). A Rust
/// or Python scalar takes the tensor's dtype, except that a float scalar turns an integer or bool
/// tensor into the default float, f32.
const PROMOTION: [[DType; 4]; 4] =
    [[Bool, I64, F32, F64], [I64, I64, F32, F64], [F32, F32, F32, F64], [F64, F64, F64, F64]];

impl DType {
    /// The dtype that holds both, by the table of promotion.
    ///
    /// ```
    /// use chainrule::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), DType::F32);
    /// assert_eq!(DType::F32.promote(DType::F64), DType::F64);
    /// ```
    #[inline]
    pub fn promote(self, other: DType) -> DType {
        PROMOTION[self as usize][other as usize]
    }

    /// Whether gradients can flow through tensors of this dtype.
    #[inline]
    pub fn is_float(self) -> bool {
        matches!(self, F32 | F64)
    }

    /// The size of one element in bytes.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            Bool => 1,
            F32 => 4,
            I64 | F64 => 8,
        }
    }

    /// The name as printed: `bool`, `i64`, `f32`, `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I64 => "i64",
            F32 => "f32",
            F64 => "f64",
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
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
    impl Sealed for bool {}
    impl Sealed for i32 {}
    impl Sealed for usize {}
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
}

/// A number as it lies in a buffer: a bool is a byte, 0 or 1.
pub trait Stored: bytemuck::Pod + Default + PartialOrd + fmt::Debug + Send + Sync {
    /// The dtype that it stores.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident, $stored:ty, |$x:ident| $store:expr, |$y:ident| $load:expr;)*) => {$(
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
    f32, F32, f32, |x| x, |y| y;
    f64, F64, f64, |x| x, |y| y;
    i64, I64, i64, |x| x, |y| y;
    i32, I64, i64, |x| x as i64, |y| y as i32;
    usize, I64, i64, |x| x as i64, |y| y as usize;
    bool, Bool, u8, |x| x as u8, |y| y != 0;
}

impl Stored for f32 {
    const DTYPE: DType = F32;
}
impl Stored for f64 {
    const DTYPE: DType = F64;
}
impl Stored for i64 {
    const DTYPE: DType = I64;
}
impl Stored for u8 {
    const DTYPE: DType = Bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_a_join() {
        let all = [Bool, I64, F32, F64];
        for a in all {
            assert_eq!(a.promote(a), a);
            for b in all {
                assert_eq!(a.promote(b), b.promote(a));
                for c in all {
                    assert_eq!(a.promote(b).promote(c), a.promote(b.promote(c)));
                }
            }
        }
        assert_eq!(I64.promote(F32), F32);
        assert_eq!(F32.promote(F64), F64);
        assert_eq!(Bool.promote(I64), I64);
    }
}
