//! `bitwise_and`, `bitwise_or`, `bitwise_xor` and the shifts `bitwise_left_shift`,
//! `bitwise_right_shift`: of the bits of integers.

use crate::ops::prelude::*;

/// One of the five.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parameters)]
pub(crate) enum Bitwise {
    And,
    Or,
    Xor,
    LeftShift,
    RightShift,
}

impl Bitwise {
    fn is_shift(self) -> bool {
        matches!(self, Bitwise::LeftShift | Bitwise::RightShift)
    }
}

impl Op for Bitwise {
    fn name(&self) -> &'static str {
        match self {
            Bitwise::And => "bitwise_and",
            Bitwise::Or => "bitwise_or",
            Bitwise::Xor => "bitwise_xor",
            Bitwise::LeftShift => "bitwise_left_shift",
            Bitwise::RightShift => "bitwise_right_shift",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::bitwise)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Bitwise::And => "{0} & {1}",
            Bitwise::Or => "{0} | {1}",
            Bitwise::Xor => "{0} ^ {1}",
            Bitwise::LeftShift => "{0} << {1}",
            Bitwise::RightShift => "{0} >> {1}",
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = broadcast_shapes(self.name(), inputs)?;
        let why = match inputs[0].dtype {
            dtype if dtype.is_integer() => return Ok(Meta::new(shape, dtype)),
            DType::Bool if !self.is_shift() => return Ok(Meta::new(shape, DType::Bool)),
            _ if self.is_shift() => "defined for i64; convert with to_dtype first",
            _ => "defined for i64 and bool; convert with to_dtype first",
        };
        Err(Error::dtype(self.name(), &[inputs[0].dtype, inputs[1].dtype], why))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for Bitwise {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        macro_rules! connect {
            ($op:tt) => {
                tile!(inputs, n, out;
                    I64, I64 => I64: |a, b| a $op b;
                    Bool, Bool => Bool: |a, b| a $op b;
                )
            };
        }
        match self {
            Bitwise::And => connect!(&),
            Bitwise::Or => connect!(|),
            Bitwise::Xor => connect!(^),
            Bitwise::LeftShift => tile!(inputs, n, out;
                I64, I64 => I64: |a, b| if (0..64).contains(&b) { a << b } else { 0 };
            ),
            Bitwise::RightShift => tile!(inputs, n, out;
                I64, I64 => I64: |a, b| a >> if (0..64).contains(&b) { b } else { 63 };
            ),
        }
    }
}

methods! {
    /// The bits set in both `a` and `b`; of bools, the logical "and". Broadcasts; for i64 and bool,
    /// a float is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([12i64, -1]).bitwise_and(10).to_vec::<i64>(), [8, 10]);
    /// ```
    pub fn bitwise_and / try_bitwise_and<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Bitwise::And, self, other)
    }

    /// The bits set in `a` or `b` or both; of bools, the logical "or". Broadcasts; for i64 and
    /// bool, a float is an error.
    pub fn bitwise_or / try_bitwise_or<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Bitwise::Or, self, other)
    }

    /// The bits set in just one of `a` and `b`; of bools, where they differ. Broadcasts; for i64
    /// and bool, a float is an error.
    pub fn bitwise_xor / try_bitwise_xor<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Bitwise::Xor, self, other)
    }

    /// The bits of `a` moved up by `b` places: `a * 2^b`, without what leaves the 64 bits.
    /// Broadcasts; for i64.
    ///
    /// A count that is negative or 64 and more gives 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([3i64, -9]).bitwise_left_shift(2).to_vec::<i64>(), [12, -36]);
    /// ```
    pub fn bitwise_left_shift / try_bitwise_left_shift<T: IntoTensor>(&self, places: T) -> Tensor {
        apply_promoted(Bitwise::LeftShift, self, places)
    }

    /// The bits of `a` moved down by `b` places, the sign filled in: `a / 2^b` rounded down.
    /// Broadcasts; for i64.
    ///
    /// A count that is negative or 64 and more leaves nothing but the sign: 0 or -1, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([13i64, -9]).bitwise_right_shift(2).to_vec::<i64>(), [3, -3]);
    /// ```
    pub fn bitwise_right_shift / try_bitwise_right_shift<T: IntoTensor>(&self, places: T) -> Tensor {
        let places = places.into_tensor(self)?;
        if self.dtype().promote(places.dtype()) != DType::U64 {
            return apply_promoted(Bitwise::RightShift, self, &places);
        }
        // Kernels shift the sign of an i64 in; after the first place there is none.
        let x = self.try_to_dtype(DType::U64)?;
        let first = apply_promoted(Bitwise::RightShift, &x, 1)?.try_bitwise_and(i64::MAX)?;
        let rest = apply_promoted(Bitwise::RightShift, &first, &places.try_sub(1)?)?;
        places.try_eq(0)?.try_where(&x, &rest)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift",
    family: Family::Binary,
    signature: "a.bitwise_and(&b)",
    python: &[
        Binding::two("bitwise_and", |a, b| a.try_bitwise_and(b)).formula("a & b, bit by bit"),
        Binding::two("bitwise_or", |a, b| a.try_bitwise_or(b)).formula("a | b, bit by bit"),
        Binding::two("bitwise_xor", |a, b| a.try_bitwise_xor(b)).formula("a ^ b, bit by bit"),
        Binding::two("bitwise_left_shift", |a, b| a.try_bitwise_left_shift(b)).formula("a << b"),
        Binding::two("bitwise_right_shift", |a, b| a.try_bitwise_right_shift(b)).formula("a >> b"),
    ],
    formula: "a & b, a | b, a ^ b, a << b, a >> b, bit by bit",
    gradient: "",
    at_kinks: "a shift by a negative count or by 64 and more leaves 0, to the right of a negative number -1",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn bits_are_those_of_pytorch() {
        let (a, b) = (Tensor::from([12i64, -1, 5]), Tensor::from([10i64, 7, -8]));
        assert_eq!(a.bitwise_and(&b).to_vec::<i64>(), [8, 7, 0]);
        assert_eq!(a.bitwise_or(&b).to_vec::<i64>(), [14, -1, -3]);
        assert_eq!(a.bitwise_xor(&b).to_vec::<i64>(), [6, -8, -3]);
        let (a, b) =
            (Tensor::from([true, true, false, false]), Tensor::from([true, false, true, false]));
        assert_eq!(a.bitwise_and(&b).to_vec::<bool>(), [true, false, false, false]);
        assert_eq!(a.bitwise_or(&b).to_vec::<bool>(), [true, true, true, false]);
        assert_eq!(a.bitwise_xor(&b).to_vec::<bool>(), [false, true, true, false]);
    }

    #[test]
    fn shifts_are_those_of_pytorch() {
        let a = Tensor::from([1i64, 1, 1, -1, -8, 5, 3, 1, -1]);
        let b = Tensor::from([0i64, 62, 63, 1, 1, 64, -1, 65, -5]);
        let left = [1, 1 << 62, i64::MIN, -2, -16, 0, 0, 0, 0];
        assert_eq!(a.bitwise_left_shift(&b).to_vec::<i64>(), left);
        assert_eq!(a.bitwise_right_shift(&b).to_vec::<i64>(), [1, 0, 0, -1, -4, 0, 0, 0, -1]);
    }

    #[test]
    fn bools_meet_integers_and_floats_are_an_error() {
        let t = Tensor::from([true, false]);
        let x = t.bitwise_or(Tensor::from([2i64, 3]));
        assert_eq!((x.dtype(), x.to_vec::<i64>()), (DType::I64, vec![3, 3]));
        assert_eq!(t.bitwise_left_shift(2).to_vec::<i64>(), [4, 0]);
        assert!(t.try_bitwise_left_shift(&t).is_err());
        let error = Tensor::from([1.0f32]).try_bitwise_and(2).unwrap_err().to_string();
        assert!(error.contains("bitwise_and") && error.contains("f32"), "{error}");
    }
}
