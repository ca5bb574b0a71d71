//! The comparisons `eq ne lt le gt ge`: bools, through which no gradient flows.

use crate::ops::prelude::*;

/// One of the six comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parameters)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    /// The other comparisons.
    pub fn others(self) -> impl Iterator<Item = Compare> {
        use Compare::*;
        [Ge, Gt, Le, Lt, Eq, Ne].into_iter().filter(move |c| *c != self)
    }
}

impl Op for Compare {
    fn name(&self) -> &'static str {
        match self {
            Compare::Eq => "eq",
            Compare::Ne => "ne",
            Compare::Lt => "lt",
            Compare::Le => "le",
            Compare::Gt => "gt",
            Compare::Ge => "ge",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::compare)
    }

    fn role(&self) -> Role {
        Role::Steps
    }

    fn reading(&self) -> Reading {
        match self {
            Compare::Eq => Reading::Equal,
            _ => Reading::Opaque,
        }
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Compare::Eq => "np.equal({0}, {1})",
            Compare::Ne => "np.not_equal({0}, {1})",
            Compare::Lt => "np.less({0}, {1})",
            Compare::Le => "np.less_equal({0}, {1})",
            Compare::Gt => "np.greater({0}, {1})",
            Compare::Ge => "np.greater_equal({0}, {1})",
        }))
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, DType::Bool))
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for Compare {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        macro_rules! compare {
            ($op:tt) => {
                tile!(inputs, n, out;
                    F32, F32 => Bool: |a, b| (a $op b) as u8;
                    F64, F64 => Bool: |a, b| (a $op b) as u8;
                    I64, I64 => Bool: |a, b| (a $op b) as u8;
                    Bool, Bool => Bool: |a, b| (a $op b) as u8;
                )
            };
        }
        match self {
            Compare::Eq => compare!(==),
            Compare::Ne => compare!(!=),
            Compare::Lt => compare!(<),
            Compare::Le => compare!(<=),
            Compare::Gt => compare!(>),
            Compare::Ge => compare!(>=),
        }
    }
}

methods! {
    /// The mask of `a == b`, a bool tensor. Broadcasts and promotes; NaN equals nothing. For all
    /// dtypes, bool too (false is below true).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 2.0]).eq(2.0).to_vec::<bool>(), [false, true]);
    /// ```
    pub fn eq / try_eq<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Eq, self, other)
    }

    /// The mask of `a != b`, a bool tensor. Broadcasts and promotes; NaN differs from everything,
    /// itself too.
    pub fn ne / try_ne<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Ne, self, other)
    }

    /// The mask of `a < b`, a bool tensor. Broadcasts and promotes.
    pub fn lt / try_lt<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Lt, self, other)
    }

    /// The mask of `a <= b`, a bool tensor. Broadcasts and promotes.
    pub fn le / try_le<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Le, self, other)
    }

    /// The mask of `a > b`, a bool tensor. Broadcasts and promotes.
    pub fn gt / try_gt<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Gt, self, other)
    }

    /// The mask of `a >= b`, a bool tensor. Broadcasts and promotes.
    pub fn ge / try_ge<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Compare::Ge, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "eq, ne, lt, le, gt, ge",
    family: Family::Binary,
    signature: "a.lt(&b)",
    python: &[
        Binding::two("eq", |a, b| a.try_eq(b)).formula("a = b, as a bool tensor"),
        Binding::two("ne", |a, b| a.try_ne(b))
            .also(&["not_equal"])
            .formula("a != b, as a bool tensor"),
        Binding::two("lt", |a, b| a.try_lt(b)).also(&["less"]).formula("a < b, as a bool tensor"),
        Binding::two("le", |a, b| a.try_le(b))
            .also(&["less_equal"])
            .formula("a <= b, as a bool tensor"),
        Binding::two("gt", |a, b| a.try_gt(b))
            .also(&["greater"])
            .formula("a > b, as a bool tensor"),
        Binding::two("ge", |a, b| a.try_ge(b))
            .also(&["greater_equal"])
            .formula("a >= b, as a bool tensor"),
    ],
    formula: "a < b, and so on, as a bool tensor",
    gradient: "",
    at_kinks: "no gradient flows through a comparison",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// `eq ne lt le gt ge` as bools.
    fn all(a: &Tensor, b: &Tensor) -> [Vec<bool>; 6] {
        [a.eq(b), a.ne(b), a.lt(b), a.le(b), a.gt(b), a.ge(b)].map(|t| t.to_vec())
    }

    #[test]
    fn comparisons_are_those_of_rust_in_every_dtype() {
        let floats = [0.0, -0.0, 1.0, f64::INFINITY, f64::NAN];
        for x in floats {
            for y in floats {
                let want = [x == y, x != y, x < y, x <= y, x > y, x >= y].map(|b| vec![b]);
                assert_eq!(all(&Tensor::from([x]), &Tensor::from([y])), want);
                let (x, y) = (Tensor::from([x as f32]), Tensor::from([y as f32]));
                assert_eq!(all(&x, &y), want);
            }
        }
        for (x, y) in [(i64::MAX, i64::MAX - 1), (-1, 1), (2, 2)] {
            let want = [x == y, x != y, x < y, x <= y, x > y, x >= y].map(|b| vec![b]);
            assert_eq!(all(&Tensor::from([x]), &Tensor::from([y])), want);
        }
        for (x, y) in [(false, true), (true, true), (true, false)] {
            let want = [x == y, x != y, !x & y, x <= y, x & !y, x >= y].map(|b| vec![b]);
            assert_eq!(all(&Tensor::from([x]), &Tensor::from([y])), want);
        }
    }

    #[test]
    fn comparisons_promote_broadcast_and_are_constants() {
        let x = Tensor::from([[1.0f32], [2.0]]).parameter();
        let y = x.ge(Tensor::from([1i64, 2]));
        assert_eq!(y.to_vec::<bool>(), [true, false, true, true]);
        assert!(!y.requires_grad());
        assert_eq!(Tensor::from([0i64, 1]).lt(0.5).to_vec::<bool>(), [true, false]);
    }
}
