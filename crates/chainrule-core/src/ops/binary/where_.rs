//! `where`: one of two tensors, element by element, by a condition.

use crate::kernels::map;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Where;

impl Op for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::where_)
    }

    fn role(&self) -> Role {
        Role::Selects
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.where({0}, {1}, {2})".into())
    }

    fn linear(&self) -> Linear {
        Linear::From(1)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtypes: Vec<_> = inputs.iter().map(|m| m.dtype).collect();
        if dtypes[0] != DType::Bool {
            let why = "the condition must be bool; compare first, as in x.ne(0)";
            return Err(Error::dtype(self.name(), &dtypes, why));
        }
        if dtypes[1] != dtypes[2] {
            let why = "the two branches must have one dtype; convert with to_dtype";
            return Err(Error::dtype(self.name(), &dtypes, why));
        }
        let shape = broadcast_shapes(self.name(), inputs)?;
        Ok(Meta::new(shape, dtypes[1]))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (condition, zero) = (at.input(0), cotangent.like(0.0));
        let pick = |a: &Tensor, b: &Tensor| apply(Where, &[&condition, a, b]);
        let da = wanted.get(1).then(|| pick(cotangent, &zero)).transpose()?;
        let db = wanted.get(2).then(|| pick(&zero, cotangent)).transpose()?;
        Ok(smallvec![None, da, db])
    }

    /// By the opposite condition, the branches exchanged.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let Meta { shape, dtype } = at.output_meta();
        let tangent = |i: usize| match &tangents[i] {
            Some(tangent) => Ok(tangent.clone()),
            None => Tensor::try_full(Shape::SCALAR, 0.0, dtype),
        };
        let otherwise = at.input(0).try_eq(0)?;
        otherwise.try_where(&tangent(2)?, tangent(1)?)?.try_expand(shape)
    }
}

impl MapKernel for Where {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        let [Input::Bool(c), a, b] = inputs else { unreachable!("infer admits no other dtypes") };
        match (a, b, out) {
            (Input::F32(a), Input::F32(b), Output::F32(out)) => map::select(*c, *a, *b, n, out),
            (Input::F64(a), Input::F64(b), Output::F64(out)) => map::select(*c, *a, *b, n, out),
            (Input::I64(a), Input::I64(b), Output::I64(out)) => map::select(*c, *a, *b, n, out),
            (Input::Bool(a), Input::Bool(b), Output::Bool(out)) => map::select(*c, *a, *b, n, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// `a` where this bool tensor is true, else `b` (a tensor or a scalar), with broadcasting of
    /// all three. PyTorch's `where(condition, a, b)`.
    ///
    /// Different dtypes of `a` and `b` are promoted; a condition that is not bool is an error.
    /// Gradient: `da = g` where the condition is true, else 0, and `db` the other way round. The
    /// masked gradient is exactly 0, even if `g` is not finite.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, -2.0]);
    /// assert_eq!(x.gt(0).where_(&x, 0.5).to_vec::<f32>(), [1.0, 0.5]);
    /// ```
    pub fn where_ / try_where<T: IntoTensor>(&self, a: &Tensor, b: T) -> Tensor {
        let b = b.into_tensor(a)?;
        let dtype = a.dtype().promote(b.dtype());
        apply(Where, &[self, &a.try_to_dtype(dtype)?, &b.try_to_dtype(dtype)?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "where",
    family: Family::Binary,
    signature: "condition.where_(&a, &b)",
    python: &[Binding::by_hand(
        "where",
        "one argument or three; the method has the condition second",
    )
    .no_function()],
    formula: "a where the condition is true, else b",
    gradient: "da = g where the condition is true, else 0; db = 0 where the condition is true, else g",
    at_kinks: "the masked gradient is 0, whatever g is; none flows to the condition",
    samples: |g| {
        let shapes: [(&str, [&[usize]; 3]); 7] = [
            ("same shapes", [&[3, 4], &[3, 4], &[3, 4]]),
            ("a row as condition", [&[17], &[3, 17], &[3, 17]]),
            ("all three stretched", [&[2, 1, 1], &[3, 1], &[4]]),
            ("a 0-d branch", [&[3, 4], &[], &[3, 4]]),
            ("a 0-d condition", [&[], &[2, 3], &[3]]),
            ("0-d", [&[], &[], &[]]),
            ("empty", [&[0, 3], &[1, 3], &[3]]),
        ];
        let mut samples = Vec::new();
        for (note, [c, a, b]) in shapes {
            let inputs = vec![normal(g, c).gt(0.0), normal(g, a), normal(g, b)];
            let call = |x: &[Tensor]| x[0].try_where(&x[1], &x[2]);
            samples.push(Sample::new(note, inputs, call));
        }
        let twice = |x: &[Tensor]| {
            let square = x[0].try_mul(&x[0])?;
            x[0].try_gt(0.0)?.try_where(&square, &x[0])
        };
        let x = Tensor::from([-2.0f64, -0.5, 0.5, 2.0]);
        samples.push(Sample::new("a tensor in all three places", vec![x], twice));
        samples
    },
    mistakes: &[
        Mistake {
            name: "branches swapped",
            what: "each branch gets the gradient where the other one was taken",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads.swap(1, 2);
                Ok(grads)
            },
        },
        Mistake {
            name: "leak through the mask",
            what: "both branches get the whole gradient, also where the other one was taken",
            rule: |_, _, g, _| Ok(smallvec![None, Some(g.clone()), Some(g.clone())]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn a_masked_gradient_stays_out_even_if_it_is_not_finite() {
        // Values of PyTorch's where(c, a, b) with upstream [nan, inf, 5].
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let a = Tensor::from([1.0f32, nan, inf]).parameter();
        let b = Tensor::from([2.0f32, 3.0, 4.0]).parameter();
        let y = Tensor::from([true, false, false]).where_(&a, &b);
        assert_eq!(y.to_vec::<f32>(), [1.0, 3.0, 4.0]);
        let g = Tensor::from([nan, inf, 5.0]);
        y.backward_with().gradient(&g).run().unwrap();
        let da = a.grad().unwrap().to_vec::<f32>();
        assert!(da[0].is_nan() && da[1..] == [0.0, 0.0]);
        assert_eq!(b.grad().unwrap().to_vec::<f32>(), [0.0, inf, 5.0]);
    }

    #[test]
    fn branches_are_promoted_and_the_condition_is_bool() {
        let c = Tensor::from([true, false]);
        let y = c.where_(&Tensor::from([1i64, 2]), 0.5);
        assert_eq!((y.dtype(), y.to_f64_vec()), (DType::F32, vec![1.0, 0.5]));
        let y = c.where_(&c, Tensor::scalar(true));
        assert_eq!(y.to_vec::<bool>(), [true, true]);
        let y = c.where_(&Tensor::from([1i64, 2]), -7);
        assert_eq!(y.to_vec::<i64>(), [1, -7]);
        let error = y.try_where(&y, &y).unwrap_err().to_string();
        assert!(error.contains("where") && error.contains("i64"), "{error}");
        let wide = Tensor::zeros([3]);
        let error = c.try_where(&wide, &wide).unwrap_err().to_string();
        assert!(error.contains("[2]") && error.contains("[3]"), "{error}");
    }
}
