//! `logical_and`, `logical_or`, `logical_xor`: of the truth of elements, where anything but 0 is
//! true.

use crate::ops::prelude::*;

/// One of the three connectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parameters)]
pub(crate) enum Logical {
    And,
    Or,
    Xor,
}

impl Op for Logical {
    fn name(&self) -> &'static str {
        match self {
            Logical::And => "logical_and",
            Logical::Or => "logical_or",
            Logical::Xor => "logical_xor",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::logical)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Logical::And => "np.logical_and({0}, {1})",
            Logical::Or => "np.logical_or({0}, {1})",
            Logical::Xor => "np.logical_xor({0}, {1})",
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, DType::Bool))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for Logical {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        macro_rules! connect {
            ($op:tt) => {
                tile!(inputs, n, out;
                    F32, F32 => Bool: |a, b| (a != 0.0) as u8 $op (b != 0.0) as u8;
                    F64, F64 => Bool: |a, b| (a != 0.0) as u8 $op (b != 0.0) as u8;
                    I64, I64 => Bool: |a, b| (a != 0) as u8 $op (b != 0) as u8;
                    Bool, Bool => Bool: |a, b| a $op b;
                )
            };
        }
        match self {
            Logical::And => connect!(&),
            Logical::Or => connect!(|),
            Logical::Xor => connect!(^),
        }
    }
}

methods! {
    /// The mask of elements true in both `a` and `b`, a bool tensor. Anything but 0 is true, NaN
    /// too. Broadcasts; for all dtypes.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([-1.0f32, 0.5, 2.0]);
    /// assert_eq!(x.gt(0).logical_and(x.lt(1)).to_vec::<bool>(), [false, true, false]);
    /// ```
    pub fn logical_and / try_logical_and<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Logical::And, self, other)
    }

    /// The mask of elements true in `a` or `b` or both, a bool tensor. Anything but 0 is true, NaN
    /// too. Broadcasts; for all dtypes.
    pub fn logical_or / try_logical_or<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Logical::Or, self, other)
    }

    /// The mask of elements true in just one of `a` and `b`, a bool tensor. Anything but 0 is true,
    /// NaN too. Broadcasts; for all dtypes.
    pub fn logical_xor / try_logical_xor<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Logical::Xor, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logical_and, logical_or, logical_xor",
    family: Family::Binary,
    signature: "a.logical_and(&b)",
    python: &[
        Binding::two("logical_and", |a, b| a.try_logical_and(b))
            .formula("a != 0 and b != 0, as a bool tensor"),
        Binding::two("logical_or", |a, b| a.try_logical_or(b))
            .formula("a != 0 or b != 0, as a bool tensor"),
        Binding::two("logical_xor", |a, b| a.try_logical_xor(b))
            .formula("either a != 0 or b != 0, as a bool tensor"),
    ],
    formula: "a != 0 and b != 0, and so on, as a bool tensor",
    gradient: "",
    at_kinks: "NaN is true; no gradient flows",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// `and or xor` as bools.
    fn all(a: &Tensor, b: &Tensor) -> [Vec<bool>; 3] {
        [a.logical_and(b), a.logical_or(b), a.logical_xor(b)].map(|t| t.to_vec())
    }

    #[test]
    fn truth_is_that_of_pytorch_in_every_dtype() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let a = [0.0, -0.0, 2.0, nan, inf];
        let b = [inf, nan, 2.0, -0.0, 0.0];
        let want = [
            vec![false, false, true, false, false],
            vec![true; 5],
            vec![true, true, false, true, true],
        ];
        assert_eq!(all(&Tensor::from(a), &Tensor::from(b)), want);
        let narrow = |x: [f64; 5]| Tensor::from(x.map(|x| x as f32));
        assert_eq!(all(&narrow(a), &narrow(b)), want);
        let (a, b) = (Tensor::from([0i64, -3, 0, 2]), Tensor::from([0i64, 5, 1, 0]));
        let want = [
            vec![false, true, false, false],
            vec![false, true, true, true],
            vec![false, false, true, true],
        ];
        assert_eq!(all(&a, &b), want);
        assert_eq!(all(&a.ne(0), &b.ne(0)), want);
    }

    #[test]
    fn dtypes_mix_and_shapes_broadcast() {
        let a = Tensor::from([[0i64], [3]]);
        let b = Tensor::from([0.5f32, 0.0]);
        assert_eq!(a.logical_and(&b).to_vec::<bool>(), [false, false, true, false]);
        assert_eq!(Tensor::from([true, false]).logical_xor(2).to_vec::<bool>(), [false, true]);
        assert_eq!(a.logical_or(0.5).to_vec::<bool>(), [true, true]);
        assert!(!a.logical_or(b.parameter()).requires_grad());
        let error = b.try_logical_and(Tensor::zeros([3])).unwrap_err().to_string();
        assert!(error.contains("logical_and") && error.contains("[3]"), "{error}");
    }
}
