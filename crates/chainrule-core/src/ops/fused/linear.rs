//! `linear`: rows times a matrix of weights plus a bias, and the backward of it as one op.

use smallvec::SmallVec;

use crate::kernels::gemm::{Batch, Mat};
use crate::kernels::reduce;
use crate::ops::linalg::matmul::{product, product_bf16};
use crate::ops::prelude::*;
use crate::ops::reduce::sum::Sum;
use crate::tensor::node::{Mode, Source};
use crate::tensor::op::{Definition, Epilogue, Plus, ProductKernel, SeparateResult};
use crate::tensor::value::ValueCow;

/// On `[.., in]`; the further inputs are the weight, `[out, in]`, and the bias, `[out]`, if there
/// is one.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct LinearOp {
    bias: bool,
    /// Whether operands of f32 are rounded to bf16.
    bf16: bool,
}

impl Op for LinearOp {
    row!(linear);

    fn role(&self) -> Role {
        Role::LinearLayer
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(if self.bf16 { "_linear_bf16({*})" } else { "_linear({*})" }.into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        let out = numel(&outputs[0]);
        Some(2 * out * last(&inputs[0]) + if inputs.len() > 2 { out } else { 0 })
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let (x, weight) = (inputs[0].shape, inputs[1].shape);
        let error = |other: &Shape, why: String| Err(Error::shape(self.name(), &[&x, other], why));
        if weight.rank() != 2 || x.rank() == 0 {
            return error(&weight, "the input must be [.., in] and the weight [out, in]".into());
        }
        let (last, outputs, inner) = (x.rank() - 1, weight[0], weight[1]);
        if x[last] != inner {
            let why = format!(
                "the inner sizes {} and {inner} must be equal: the last axis of the input and that of the weight",
                x[last]
            );
            return error(&weight, why);
        }
        if self.bias && inputs[2].shape != [outputs] {
            let why = format!("the bias must have one element for each of the {outputs} outputs");
            return error(&inputs[2].shape, why);
        }
        Ok(Meta::new(x.without_axis(last).with_axis(self.name(), last, outputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, weight) = (at.input(0), at.input(1));
        let wants = [wanted.get(0), wanted.get(1), self.bias && wanted.get(2)];
        let op = LinearGrad { wants, x: x.shape(), weight: weight.shape(), bf16: self.bf16 };
        let (first, others) = apply_extra(op, &[cotangent, &x, &weight])?;
        let others = others.iter().map(|v| Tensor::from_parts(v.clone(), Source::None));
        let mut found = std::iter::once(first).chain(others);
        Ok(wants.iter().map(|wants| wants.then(|| found.next().expect("one each"))).collect())
    }

    /// The rule of the product: `dx W^T + x dW^T + db`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let _guard = Mode::get().rounding(self.bf16).enter();
        let by_x = tangents[0].as_ref().map(|dx| dx.try_matmul(&at.input(1).try_t()?));
        let by_weight = tangents[1].as_ref().map(|dw| at.input(0).try_matmul(&dw.try_t()?));
        let by_bias = tangents.get(2).and_then(Option::as_ref);
        let by_bias = by_bias.map(|db| db.try_expand(at.output_meta().shape));
        sum_of_parts([by_x, by_weight, by_bias])
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let y = {
                let _guard = Mode::get().rounding(self.bf16).enter();
                inputs[0].try_matmul(&inputs[1].try_t()?)?
            };
            if self.bias { y.try_add(&inputs[2]) } else { Ok(y) }
        }))
    }
}

impl WholeKernel for LinearOp {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        let inputs: SmallVec<[&Value; 3]> = inputs.iter().map(|input| &**input).collect();
        self.multiply(&inputs, Epilogue::default(), &mut value)?;
        Ok(value.into())
    }

    fn product(&self) -> Option<&dyn ProductKernel> {
        Some(self)
    }
}

impl ProductKernel for LinearOp {
    fn multiply(&self, inputs: &[&Value], epilogue: Epilogue<'_>, out: &mut Value) -> Result<()> {
        let (x, weight) = (rows(inputs[0])?, rows(inputs[1])?);
        let bias = if self.bias { Some(inputs[2].row_major()?) } else { None };
        let epilogue = match &bias {
            Some(bias) => Epilogue { plus: Plus::Row(bias), ..epilogue },
            None => epilogue,
        };
        match output(out) {
            Output::F32(o) if self.bf16 => {
                product_bf16((x.mat(), weight.mat().transposed()), Batch::ONE, epilogue, o)
            }
            Output::F32(o) => {
                product((x.mat(), weight.mat().transposed()), Batch::ONE, epilogue, o)
            }
            Output::F64(o) => {
                product((x.mat(), weight.mat().transposed()), Batch::ONE, epilogue, o)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(())
    }

    fn adds_row(&self) -> bool {
        !self.bias
    }
}

/// A value as a matrix: the axes before the last are its rows.
struct MatrixOf<'a> {
    value: ValueCow<'a>,
    rows: usize,
    row_stride: isize,
}

/// The value as a matrix; copied unless its rows follow each other in even steps forward.
fn rows(value: &Value) -> Result<MatrixOf<'_>> {
    let (shape, strides) = (*value.shape(), value.layout().strides);
    let last = shape.rank() - 1;
    let rows = shape[..last].iter().product();
    let (mut stride, mut next, mut even) = (0, None, strides[last] >= 0);
    for axis in (0..last).rev().filter(|&axis| shape[axis] != 1) {
        match next {
            None => stride = strides[axis],
            Some(next) => even &= next == strides[axis],
        }
        next = Some(strides[axis] * shape[axis] as isize);
    }
    let ready = even && stride >= 0;
    let row_stride = if ready { stride } else { shape[last] as isize };
    Ok(MatrixOf { value: value.copied_unless(ready)?, rows, row_stride })
}

impl MatrixOf<'_> {
    fn mat<T: Stored>(&self) -> Mat<'_, T> {
        let (shape, layout) = (self.value.shape(), self.value.layout());
        let last = shape.rank() - 1;
        let data = match shape.numel() {
            0 => &[],
            _ => &self.value.strided()[layout.offset..],
        };
        let (row_stride, col_stride) = (self.row_stride, layout.strides[last]);
        Mat { data, rows: self.rows, cols: shape[last], row_stride, col_stride }
    }
}

/// The backward from the upstream gradient, the input and the weight: the wanted gradients of
/// input, weight and bias in this order, the first as the result and the others beside it.
#[derive(Debug, Parameters)]
struct LinearGrad {
    wants: [bool; 3],
    x: Shape,
    weight: Shape,
    bf16: bool,
}

impl Op for LinearGrad {
    fn name(&self) -> &'static str {
        "linear_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        let bf16 = if self.bf16 { "_bf16" } else { "" };
        Some(format!("_linear_grad{bf16}({{*}}, {{wants}})").into())
    }

    /// Two products, as far as they are wanted, and the sum of the rows.
    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        let g = numel(&inputs[0]);
        let matrices = outputs.iter().filter(|shape| shape.rank() > 1).count() as u64;
        let bias = outputs.iter().any(|shape| shape.rank() == 1);
        Some(matrices * 2 * g * last(&inputs[1]) + if bias { g } else { 0 })
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shapes = [self.x, self.weight, Shape::new(&[self.weight[0]])];
        let first = self.wants.iter().position(|&wants| wants);
        Ok(Meta::new(shapes[first.unwrap_or(0)], dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn parts(&self) -> SmallVec<[SeparateResult; 3]> {
        let product = |i: usize| {
            let mut wants = [false; 3];
            wants[i] = true;
            let op = Arc::new(LinearGrad { wants, ..*self });
            SeparateResult { op, inputs: smallvec![0, 1, 2] }
        };
        let wanted = (0..3).filter(|&i| self.wants[i]);
        let part = |i: usize| match i {
            2 => {
                let last = self.x.rank() - 1;
                let axes = Axes::of(
                    &Axes::all(&self.x)
                        .iter()
                        .filter(|&a| a < last)
                        .collect::<SmallVec<[usize; 8]>>(),
                );
                SeparateResult { op: Arc::new(Sum { axes, keepdim: false }), inputs: smallvec![0] }
            }
            _ => product(i),
        };
        wanted.map(part).collect()
    }
}

impl WholeKernel for LinearGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let fresh = |shape| Value::uninit(self.name(), Meta::new(shape, out.dtype));
        let operands: SmallVec<[&Value; 3]> = inputs.iter().map(|input| &**input).collect();
        let mut found: SmallVec<[Arc<Value>; 3]> = SmallVec::new();
        for (wants, shape) in [(0, self.x), (1, self.weight)] {
            if self.wants[wants] {
                let mut value = fresh(shape)?;
                self.gradient(wants, &operands, Epilogue::default(), &mut value)?;
                found.push(value.share());
            }
        }
        if self.wants[2] {
            let outputs = self.weight[0];
            let g = inputs[0].contiguous()?;
            let count = rows(&g)?.rows;
            let mut value = fresh(Shape::new(&[outputs]))?;
            by_dtype!(g.dtype(), [F32, F64], |T| reduce::sum(
                g.elements::<T>(),
                count,
                outputs,
                value.elements_mut()
            ));
            found.push(value.share());
        }
        let mut found = found.into_iter();
        let value = found.next().expect("a gradient is wanted");
        Ok(Outcome { value, extra: found.collect() })
    }

    fn product(&self) -> Option<&dyn ProductKernel> {
        matches!(self.wants, [true, false, false] | [false, true, false])
            .then_some(self as &dyn ProductKernel)
    }
}

impl LinearGrad {
    /// The gradient of the input, 0, or of the weight, 1.
    fn gradient(
        &self,
        of: usize,
        inputs: &[&Value],
        epilogue: Epilogue<'_>,
        out: &mut Value,
    ) -> Result<()> {
        let g = inputs[0].row_major()?;
        let (g, other) = (rows(&g)?, rows(inputs[2 - of])?);
        macro_rules! product {
            ($product:ident, $o:expr) => {{
                let g = if of == 0 { g.mat() } else { g.mat().transposed() };
                $product((g, other.mat()), Batch::ONE, epilogue, $o)
            }};
        }
        match output(out) {
            Output::F32(o) if self.bf16 => product!(product_bf16, o),
            Output::F32(o) => product!(product, o),
            Output::F64(o) => product!(product, o),
            _ => unreachable!("a gradient has the dtype of its tensor"),
        }
        Ok(())
    }
}

impl ProductKernel for LinearGrad {
    fn multiply(&self, inputs: &[&Value], epilogue: Epilogue<'_>, out: &mut Value) -> Result<()> {
        self.gradient(if self.wants[0] { 0 } else { 1 }, inputs, epilogue, out)
    }

    fn adds_row(&self) -> bool {
        true
    }
}

methods! {
    /// Rows times a matrix of weights plus a bias, `y = x W^T + b`, as PyTorch's `linear`: `self`
    /// is `[.., in]`, the weight `[out, in]`, the bias `[out]`, the result `[.., out]`. For f32 and
    /// f64; different dtypes are promoted.
    ///
    /// The bias is added as the product is written, and the axes before the last are rows of one
    /// product. Gradients: `dx = g W`, `dW = g^T x` and `db = sum(g)`, over all rows. Errors if the
    /// sizes do not fit.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (x, w) =
    ///     (Tensor::from([1.0f32, 2.0]), Tensor::from([[1.0f32, 0.0], [1.0, 1.0], [0.0, -1.0]]));
    /// let b = Tensor::from([0.5f32, 0.0, 0.0]);
    /// assert_eq!(x.linear(&w, Some(&b)).to_vec::<f32>(), [1.5, 3.0, -2.0]);
    /// ```
    pub fn linear / try_linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![self, weight];
        inputs.extend(bias);
        let dtype = inputs[1..].iter().fold(self.dtype(), |d, t| d.promote(t.dtype()));
        let op = LinearOp { bias: bias.is_some(), bf16: Mode::get().rounds(dtype) };
        if inputs.iter().all(|t| t.dtype() == dtype) {
            return apply(op, &inputs);
        }
        let inputs = inputs.iter().map(|t| t.try_to_dtype(dtype)).collect::<Result<Vec<_>>>()?;
        apply(op, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>())
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "linear",
    family: Family::Fused,
    signature: "x.linear(&weight, bias)",
    python: &[Binding::with(
        "linear",
        &[Parameter::tensor("weight"), Parameter::tensor("bias").or_none()],
        |x, a| {
            if a.tensor(0).rank() != 1 {
                return x.try_linear(a.tensor(0), a.maybe_tensor(1));
            }
            let out = x.try_matmul(a.tensor(0))?;
            a.maybe_tensor(1).map_or(Ok(out.clone()), |bias| out.try_add(bias))
        },
    )
    .only_functional()],
    formula: "y[.., j] = sum over k of x[.., k] * w[j, k], plus b[j]",
    gradient: "dx = g @ w; dw = g^T @ x; db = sum(g), over all rows",
    at_kinks: "",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let cases: [(&str, &[usize], usize); 9] = [
        ("rows", &[4, 3], 2),
        ("a vector", &[3], 4),
        ("three axes", &[2, 3, 5], 4),
        ("one row", &[1, 5], 3),
        ("one output", &[4, 3], 1),
        ("33 rows of 17", &[33, 17], 9),
        ("no rows", &[0, 3], 2),
        ("no inputs", &[3, 0], 2),
        ("no outputs", &[3, 2], 0),
    ];
    let mut out = Vec::new();
    for (note, shape, outputs) in cases {
        let inner = shape[shape.len() - 1];
        let inputs = vec![normal(g, shape), normal(g, [outputs, inner]), normal(g, [outputs])];
        out.push(Sample::new(note, inputs, |x| x[0].try_linear(&x[1], Some(&x[2]))));
    }
    let plain = vec![normal(g, [2, 4, 5]), normal(g, [3, 5])];
    out.push(Sample::new("without a bias", plain, |x| x[0].try_linear(&x[1], None)));
    let swapped = vec![normal(g, [4, 2, 5]), normal(g, [5, 3]), normal(g, [3])];
    out.push(Sample::new("transposed views", swapped, |x| {
        x[0].try_transpose(0, 1)?.try_linear(&x[1].try_t()?, Some(&x[2]))
    }));
    out.push(Sample::new("an operand used twice", vec![normal(g, [3, 3])], |x| {
        x[0].try_linear(&x[0], None)
    }));
    out
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "transposed product",
        what: "the gradient of the weight is x^T @ g, read as [out, in], instead of g^T @ x",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            if let Some(dw) = grads[1].take() {
                grads[1] = Some(dw.try_t()?.try_reshape(dw.shape())?);
            }
            Ok(grads)
        },
    },
    Mistake {
        name: "weight not transposed back",
        what: "the gradient of the input goes through the weight's rows in the wrong order: g @ w^T, read as w",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let w = at.input(1);
            grads[0] = Some(g.try_matmul(&w.try_t()?.try_reshape(w.shape())?)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "mean where a sum is due",
        what: "the gradient of the bias is averaged over the rows instead of summed",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let meta = at.output_meta().shape;
            let rows: usize = meta[..meta.rank() - 1].iter().product();
            if let Some(Some(db)) = grads.get(2) {
                grads[2] = Some(db.try_mul(1.0 / rows as f64)?);
            }
            Ok(grads)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_shapes() {
        let (x, b) = (Tensor::zeros([2, 3]), Tensor::zeros(4));
        let text = |w: Tensor| x.try_linear(&w, Some(&b)).unwrap_err().to_string();
        assert!(text(Tensor::zeros([4, 2])).contains("the inner sizes 3 and 2"));
        assert!(text(Tensor::zeros([5, 3])).contains("each of the 5 outputs"));
        assert!(text(Tensor::zeros(3)).contains("[out, in]"));
        let scalar = Tensor::scalar(1.0f32);
        assert!(scalar.try_linear(&Tensor::zeros([4, 3]), None).is_err());
        let ints = Tensor::arange(0, 3);
        assert!(ints.try_linear(&Tensor::arange(0, 3).reshape([1, 3]), None).is_err());
    }

    #[test]
    fn only_wanted_gradients_are_computed_and_dtypes_are_promoted() {
        let (x, w) = (Tensor::ones([2, 3]), Tensor::ones([4, 3]));
        let b = Tensor::zeros(4).parameter();
        x.linear(&w, Some(&b)).sum_all().backward();
        assert_eq!(b.grad().unwrap().to_vec::<f32>(), [2.0; 4]);
        let w = w.to_dtype(DType::F64).parameter();
        let y = x.linear(&w, Some(&b));
        assert_eq!(y.dtype(), DType::F64);
        y.sum_all().backward();
        assert_eq!(w.grad().unwrap().to_vec::<f64>(), [2.0; 12]);
    }

    #[test]
    fn views_of_even_rows_are_not_copied() {
        let x = Tensor::arange(0, 24).to_dtype(DType::F32).reshape([2, 3, 4]);
        for view in [x.narrow(2, 1, 2), x.transpose(1, 2).narrow(0, 0, 1), x.narrow(0, 1, 1)] {
            assert!(matches!(rows(&view.value()).unwrap().value, ValueCow::Borrowed(_)));
        }
        let uneven = x.narrow(1, 0, 2);
        assert!(matches!(rows(&uneven.value()).unwrap().value, ValueCow::Owned(_)));
    }
}
