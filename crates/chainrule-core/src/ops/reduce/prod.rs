//! `prod`: the product over axes.

use super::cumprod::CumProd;
use crate::kernels::reduce::product::product;
use crate::kernels::scan::Direction;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Prod {
    axes: Axes,
    keepdim: bool,
}

impl Op for Prod {
    row!(prod);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.prod({0}, axis={axes}, keepdims={keepdim})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = infer_number_unary(self.name(), inputs)?;
        Ok(Meta::new(self.axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    /// The product of the others is that of those before times that of those behind: nothing is
    /// divided by, so that zeros do no harm.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let rows = Rows::new(&x.shape(), self.axes);
        let x = rows.of(&x)?;
        let others = |reverse| {
            let way = Direction { reverse, exclusive: true };
            apply(CumProd { axis: 1, way }, &[&x])
        };
        let others = others(false)?.try_mul(&others(true)?)?;
        let g = cotangent.try_reshape([rows.outer, 1])?;
        Ok(smallvec![Some(rows.back(&others.try_mul(&g)?)?)])
    }

    /// The product rule on halves, until one element is left.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let rows = Rows::new(&x.shape(), self.axes);
        let mut y = rows.of(&x)?;
        let mut dy = rows.of(tangents[0].as_ref().expect("the only tangent"))?;
        let shape = at.output_meta().shape;
        if rows.count == 0 {
            return Tensor::try_full(shape, 0.0, x.dtype());
        }
        let mut n = rows.count;
        while n > 1 {
            let half = n / 2;
            let part = |t: &Tensor, first, size| t.try_narrow(1, first, size);
            let (a, b) = (part(&y, 0, half)?, part(&y, half, half)?);
            let (da, db) = (part(&dy, 0, half)?, part(&dy, half, half)?);
            let (ab, dab) = (a.try_mul(&b)?, da.try_mul(&b)?.try_add(a.try_mul(&db)?)?);
            // An odd number leaves one over.
            let rest = n - 2 * half;
            y = Tensor::try_cat(&[&ab, &part(&y, 2 * half, rest)?], 1)?;
            dy = Tensor::try_cat(&[&dab, &part(&dy, 2 * half, rest)?], 1)?;
            n = half + rest;
        }
        dy.try_reshape(shape)
    }
}

/// A tensor as a matrix whose rows are what is reduced to one element, and the way back.
struct Rows {
    order: Vec<i64>,
    moved: Shape,
    outer: usize,
    count: usize,
}

impl Rows {
    fn new(shape: &Shape, axes: Axes) -> Rows {
        let kept = (0..shape.rank()).filter(|&a| !axes.contains(a));
        let order: Vec<usize> = kept.chain(axes.iter()).collect();
        let moved: Vec<usize> = order.iter().map(|&a| shape[a]).collect();
        let count = axes.count(shape);
        let outer = moved[..moved.len() - axes.len()].iter().product();
        let order = order.into_iter().map(|a| a as i64).collect();
        Rows { order, moved: Shape::new(&moved), outer, count }
    }

    fn of(&self, x: &Tensor) -> Result<Tensor> {
        x.try_permute(&self.order)?.try_reshape([self.outer, self.count])
    }

    fn back(&self, rows: &Tensor) -> Result<Tensor> {
        let mut inverse = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(i, &a)| inverse[a as usize] = i as i64);
        rows.try_reshape(self.moved)?.try_permute(&inverse)
    }
}

impl ReduceKernel for Prod {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => product(x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => product(x, count, inner, out),
            (Array::I64(x), Output::I64(out)) => product(x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The product over `axes` (a number, a list, or `..` for all). With `keepdim` the axes stay,
    /// with size 1.
    ///
    /// An empty product is 1; bools become i64; integers wrap around; products of f32 are taken in
    /// f64. Gradient: `dx` is `g` times the product of the other elements. Nothing is divided by,
    /// so it is right where one element is 0 or several are, also when it is differentiated again.
    /// Beside infinities and NaN it is what that product gives, also where PyTorch divides and has
    /// NaN.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([2.0f32, 0.0, 4.0]).parameter();
    /// let y = x.prod(0, false);
    /// assert_eq!(y.item(), 0.0);
    /// y.backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 8.0, 0.0]);
    /// ```
    pub fn prod / try_prod<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("prod", &self.shape())?;
        apply(Prod { axes, keepdim }, &[&self.try_to_dtype(self.dtype().of_sum())?])
    }

    /// The product of all elements, a 0-d tensor: [`Tensor::prod`] over all axes.
    pub fn prod_all / try_prod_all(&self) -> Tensor {
        self.try_prod(.., false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "prod",
    family: Family::Reduce,
    signature: "x.prod(axes, keepdim)",
    python: &[Binding::reduction("prod", |x, a| {
        let (x, axes, keepdim) = a.reduced(x)?;
        a.cast(2, &x.try_prod(axes, keepdim)?)
    })],
    formula: "product of x over the axes",
    gradient: "dx = g * the product of the other elements",
    at_kinks: "right with zeros; beside infinities and NaN what the product of the others gives",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_prod(axes, keepdim));
        let zeros = Tensor::from([[2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.5, -1.0, 2.0]]);
        out.push(Sample::new("zeros in rows", vec![zeros.clone()], |x| x[0].try_prod(1, false)));
        out.push(Sample::new("one zero in all", vec![zeros], |x| {
            x[0].try_narrow(1, 0, 2)?.try_narrow(0, 1, 2)?.try_prod(.., true)
        }));
        out.push(Sample::new("a product of nothing", vec![normal(g, [2, 0])], |x| {
            x[0].try_prod(1, false)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "divided by x",
            what: "the product of the others is taken as y / x, which is NaN where x is 0",
            rule: |op, at, g, _| {
                let x = at.input(0);
                let kept = of(op)?.axes.reduce(&x.shape(), true);
                let y = x.try_prod(of(op)?.axes, true)?;
                Ok(smallvec![Some(g.try_reshape(kept)?.try_mul(&y)?.try_div(&x)?)])
            },
        },
        Mistake {
            name: "gradient of a sum",
            what: "every element gets the gradient, without the product of the others",
            rule: |op, at, g, _| {
                let shape = at.input_shape(0);
                let kept = g.try_reshape(of(op)?.axes.reduce(&shape, true))?;
                Ok(smallvec![Some(kept.try_expand(shape)?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&Prod> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor, autograd};

    /// The values that PyTorch 2.15 gives; NaN stands for NaN.
    #[test]
    fn zeros_infinities_and_nan() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for (x, y, dx) in [
            ([2.0, 3.0, 4.0], 24.0, [12.0, 8.0, 6.0]),
            ([2.0, 0.0, 4.0], 0.0, [0.0, 8.0, 0.0]),
            ([0.0, 0.0, 4.0], 0.0, [0.0, 0.0, 0.0]),
            ([inf, 0.0, 1.0], nan, [0.0, inf, nan]),
            ([nan, 2.0, 0.0], nan, [0.0, nan, nan]),
        ] {
            let x = Tensor::from(x).parameter();
            let out = x.prod(0, false);
            let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
            assert!(same(out.item(), y));
            out.backward();
            let got = x.grad().unwrap().to_vec::<f64>();
            assert!(got.iter().zip(dx).all(|(&a, b)| same(a, b)), "{got:?} {dx:?}");
        }
    }

    /// The gradient of an infinite product is still the product of the others: PyTorch's formula
    /// divides and gives NaN.
    #[test]
    fn an_infinite_element_has_a_finite_gradient() {
        let x = Tensor::from([f64::INFINITY, 2.0, -3.0]).parameter();
        x.prod_all().backward();
        let want = [-6.0, f64::NEG_INFINITY, f64::INFINITY];
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), want);
    }

    /// The second derivatives of a product with a zero are the products of the others without two.
    #[test]
    fn the_second_derivative_is_right_at_zero() {
        let x = Tensor::from([2.0, 0.0, 0.0, 5.0]).parameter();
        let dx = autograd::grad_with(&x.prod_all(), &[&x], &autograd::GradOptions::create_graph())
            .unwrap()
            .remove(0)
            .unwrap();
        let second = autograd::grad(&dx.slice(&[crate::Slice::At(1)]), &[&x]).unwrap();
        assert_eq!(second[0].as_ref().unwrap().to_vec::<f64>(), [0.0, 0.0, 10.0, 0.0]);
    }

    #[test]
    fn dtypes_and_nothing() {
        let y = Tensor::from([true, false]).prod_all();
        assert_eq!((y.dtype(), y.item()), (DType::I64, 0.0));
        assert_eq!(Tensor::from([i64::MAX, 2]).prod_all().to_vec::<i64>(), [-2]);
        assert_eq!(Tensor::zeros([2, 0]).prod(1, false).to_vec::<f32>(), [1.0, 1.0]);
        assert_eq!(Tensor::zeros([0, 2]).prod(0, true).to_vec::<f32>(), [1.0, 1.0]);
    }
}
