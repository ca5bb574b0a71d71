//! `matmul`: the matrix product, with every combination of ranks that NumPy has.

use crate::kernels::gemm::{self, Accum, Batch, Mat};
use crate::kernels::math::Real;
use crate::ops::prelude::*;
use crate::shape::Strides;
use crate::tensor::node::Mode;
use crate::tensor::op::{Epilogue, Plus, ProductKernel};
use crate::tensor::value::{Layout, ValueCow};

/// The product of matrices in the last two axes; the axes before them broadcast.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct MatMul {
    /// Whether each operand lies in memory column by column, as a transposed view does. Its
    /// gradient is then computed so too, and a transpose on the way back gives it in row-major
    /// order without a copy.
    by_columns: [bool; 2],
    /// Whether operands of f32 are rounded to bf16.
    bf16: bool,
}

impl MatMul {
    fn of(a: &Tensor, b: &Tensor) -> MatMul {
        let by_columns = |t: &Tensor| {
            let (value, rank) = (t.value_ref(), t.rank());
            let strides = value.layout().strides;
            strides[rank - 2] == 1 && strides[rank - 1] > 1
        };
        let bf16 = Mode::get().rounds(a.dtype());
        MatMul { by_columns: [by_columns(a), by_columns(b)], bf16 }
    }
}

impl Op for MatMul {
    row!(matmul);

    fn role(&self) -> Role {
        Role::Product
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(if self.bf16 { "_bf16({0}) @ _bf16({1})" } else { "{0} @ {1}" }.into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]) * last(&inputs[0]))
    }

    fn linear(&self) -> Linear {
        Linear::Each
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (a, b) = (inputs[0].shape, inputs[1].shape);
        let (ra, rb) = (a.rank(), b.rank());
        if a[ra - 1] != b[rb - 2] {
            let why = format!(
                "the inner sizes {} and {} must be equal: the last axis of the first and the next-to-last of the second",
                a[ra - 1],
                b[rb - 2]
            );
            return Err(Error::shape(self.name(), &[&a, &b], why));
        }
        if inputs[0].dtype == DType::Bool {
            return Err(Error::dtype(
                self.name(),
                &[DType::Bool; 2],
                "not defined for bools; convert with to_dtype first",
            ));
        }
        let (batch_a, batch_b) = (Shape::new(&a[..ra - 2]), Shape::new(&b[..rb - 2]));
        let Some(batch) = batch_a.broadcast(&batch_b) else {
            let why =
                format!("the axes before the last two, {batch_a} and {batch_b}, do not broadcast");
            return Err(Error::shape(self.name(), &[&a, &b], why));
        };
        let rank = batch.rank();
        let shape = batch.with_axis(self.name(), rank, a[ra - 2])?.with_axis(
            self.name(),
            rank + 1,
            b[rb - 1],
        )?;
        Ok(Meta::new(shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).when(wanted.get(0)).and(Saves::input(0).when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let _guard = Mode::get().rounding(self.bf16).enter();
        let g = cotangent;
        let [a_by_columns, b_by_columns] = self.by_columns;
        let da = wanted.get(0).then(|| match a_by_columns {
            false => g.try_matmul(&at.input(1).try_t()?),
            true => at.input(1).try_matmul(&g.try_t()?)?.try_t(),
        });
        let db = wanted.get(1).then(|| match b_by_columns {
            false => at.input(0).try_t()?.try_matmul(g),
            true => g.try_t()?.try_matmul(&at.input(0))?.try_t(),
        });
        Ok(smallvec![da.transpose()?, db.transpose()?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let _guard = Mode::get().rounding(self.bf16).enter();
        bilinear_tangent(at, tangents, |a, b| a.try_matmul(b))
    }
}

impl WholeKernel for MatMul {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        if out.dtype != DType::I64 {
            self.multiply(&[&inputs[0], &inputs[1]], Epilogue::default(), &mut value)?;
            return Ok(value.into());
        }
        let (a, b) = (ProductOperand::of(&inputs[0])?, ProductOperand::of(&inputs[1])?);
        let (a_strides, b_strides) = strides(&a, &b, &out.shape);
        let products = batch(&out.shape, &a_strides, &b_strides);
        let Output::I64(o) = output(&mut value) else { unreachable!("infer admits no bools") };
        gemm::batched_i64(1, a.matrix(), b.matrix(), products, Accum::Replace, o);
        Ok(value.into())
    }

    fn product(&self) -> Option<&dyn ProductKernel> {
        Some(self)
    }
}

impl ProductKernel for MatMul {
    fn multiply(&self, inputs: &[&Value], epilogue: Epilogue<'_>, out: &mut Value) -> Result<()> {
        let (a, b) = (ProductOperand::of(inputs[0])?, ProductOperand::of(inputs[1])?);
        let shape = *out.shape();
        let (a_strides, b_strides) = strides(&a, &b, &shape);
        let products = batch(&shape, &a_strides, &b_strides);
        match output(out) {
            Output::F32(o) if self.bf16 => {
                product_bf16((a.matrix(), b.matrix()), products, epilogue, o)
            }
            Output::F32(o) => product((a.matrix(), b.matrix()), products, epilogue, o),
            Output::F64(o) => product((a.matrix(), b.matrix()), products, epilogue, o),
            _ => unreachable!("a product of floats"),
        }
        Ok(())
    }

    fn adds_row(&self) -> bool {
        true
    }
}

/// The products of floats with their epilogue.
pub(in crate::ops) fn product<T: Real + Stored + gemm::GemmElement>(
    operands: (Mat<'_, T>, Mat<'_, T>),
    batch: Batch<'_>,
    epilogue: Epilogue<'_>,
    out: &mut [T],
) {
    let (alpha, plus) = scaled(&epilogue);
    gemm::finished(alpha, operands, batch, plus, epilogue.finish, out);
}

/// As [`product`], of operands rounded to bf16.
pub(in crate::ops) fn product_bf16(
    operands: (Mat<'_, f32>, Mat<'_, f32>),
    batch: Batch<'_>,
    epilogue: Epilogue<'_>,
    out: &mut [f32],
) {
    let (alpha, plus) = scaled(&epilogue);
    gemm::finished_bf16(alpha, operands, batch, plus, epilogue.finish, out);
}

/// The factor of a product, and what is added.
fn scaled<'a, T: Real + Stored>(epilogue: &Epilogue<'a>) -> (T, gemm::Plus<'a, T>) {
    match epilogue.plus {
        Plus::Nothing => (T::from_f64(1.0), gemm::Plus::Nothing),
        Plus::Row(row) => {
            (T::from_f64(1.0), gemm::Plus::Row(row.slice().expect("a row is contiguous")))
        }
        Plus::Output(times) => (T::from_f64(times), gemm::Plus::Output),
    }
}

/// An operand and how it lies.
struct ProductOperand<'a> {
    value: ValueCow<'a>,
    layout: Layout,
}

impl<'a> ProductOperand<'a> {
    /// The value, copied if it steps backward along an axis: products take strides from 0 up.
    fn of(value: &'a Value) -> Result<Self> {
        let layout = value.layout();
        if layout.strides.iter().all(|&s| s >= 0) {
            return Ok(ProductOperand { value: ValueCow::Borrowed(value), layout });
        }
        let copy = value.copied()?;
        Ok(ProductOperand { layout: copy.layout(), value: ValueCow::Owned(copy) })
    }

    /// The first matrix.
    fn matrix<T: Stored>(&self) -> Mat<'_, T> {
        let (shape, strides) = (self.value.shape(), &self.layout.strides);
        let rank = shape.rank();
        let data = match shape.numel() {
            0 => &[],
            _ => &self.value.strided()[self.layout.offset..],
        };
        Mat {
            data,
            rows: shape[rank - 2],
            cols: shape[rank - 1],
            row_stride: strides[rank - 2],
            col_stride: strides[rank - 1],
        }
    }

    /// The strides of the axes before the last two, aligned with the `batch` axes of the result; 0
    /// where they are stretched.
    fn batch_strides(&self, batch: usize) -> Strides {
        let (shape, mut out) = (self.value.shape(), [0; MAX_RANK]);
        let own = shape.rank() - 2;
        for i in 0..own {
            out[batch - own + i] = if shape[i] == 1 { 0 } else { self.layout.strides[i] };
        }
        out
    }
}

/// The strides of the batch axes of both operands.
fn strides(a: &ProductOperand<'_>, b: &ProductOperand<'_>, out: &Shape) -> (Strides, Strides) {
    let batch = out.rank() - 2;
    (a.batch_strides(batch), b.batch_strides(batch))
}

fn batch<'a>(out: &'a Shape, a_strides: &'a Strides, b_strides: &'a Strides) -> Batch<'a> {
    let batch = out.rank() - 2;
    Batch { sizes: &out[..batch], a_strides: &a_strides[..batch], b_strides: &b_strides[..batch] }
}

methods! {
    /// The matrix product, `c[i, j] = sum over k of a[i, k] * b[k, j]`.
    ///
    /// Ranks as in NumPy: two vectors give their dot product; a vector on the left is a row, on the
    /// right a column, and that axis goes again; with more than two axes the last two are matrices
    /// and the others broadcast. 0-d is an error, different dtypes are promoted. Gradient:
    /// `da = g @ b^T`, `db = a^T @ g`, summed over broadcast axes.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let x = Tensor::from([1.0f32, -1.0]);
    /// assert_eq!(a.matmul(&x).to_vec::<f32>(), [-1.0, -1.0]);
    /// ```
    pub fn matmul / try_matmul(&self, other: &Tensor) -> Tensor {
        self.catch_up()?;
        other.catch_up()?;
        if self.dtype() == other.dtype() && self.rank() == 2 && other.rank() == 2 {
            return apply(MatMul::of(self, other), &[self, other]);
        }
        let dtype = self.dtype().promote(other.dtype());
        let (a, b) = (self.try_to_dtype(dtype)?, other.try_to_dtype(dtype)?);
        let (sa, sb) = (a.shape(), b.shape());
        match (sa.rank(), sb.rank()) {
            (0, _) | (_, 0) => {
                let why = "a 0-d tensor is no matrix; multiply with `*`";
                Err(Error::shape("matmul", &[&sa, &sb], why))
            }
            (1, 1) => matmul_as(&a.try_reshape([1, sa[0]])?, &b.try_reshape([sb[0], 1])?, &sa, &sb)?.try_reshape(()),
            (1, _) => {
                let out = matmul_as(&a.try_reshape([1, sa[0]])?, &b, &sa, &sb)?;
                let rank = out.rank();
                out.try_reshape(out.shape().without_axis(rank - 2))
            }
            (_, 1) => {
                let out = matmul_as(&a, &b.try_reshape([sb[0], 1])?, &sa, &sb)?;
                let rank = out.rank();
                out.try_reshape(out.shape().without_axis(rank - 1))
            }
            (ra, 2) if ra > 2 && sa[ra - 1] == sb[0] && !sa.contains(&0) => {
                // One product of many rows instead of many products, and one for the gradient of
                // the matrix.
                let mut shape = sa;
                shape.dims_mut()[ra - 1] = sb[1];
                {
                    let rows = a.try_reshape([-1, sa[ra - 1] as i64])?;
                    apply(MatMul::of(&rows, &b), &[&rows, &b])?.try_reshape(shape)
                }
            }
            _ => apply(MatMul::of(&a, &b), &[&a, &b]),
        }
    }
}

/// The product of operands that were given as vectors: an error shows the shapes that the caller
/// knows.
#[track_caller]
fn matmul_as(a: &Tensor, b: &Tensor, sa: &Shape, sb: &Shape) -> Result<Tensor> {
    let (inner_a, inner_b) = (sa[sa.rank() - 1], sb[sb.rank().saturating_sub(2)]);
    if inner_a != inner_b {
        let why = format!("the inner sizes {inner_a} and {inner_b} must be equal");
        return Err(Error::shape("matmul", &[sa, sb], why));
    }
    if a.rank() > 2 { a.try_matmul(b) } else { apply(MatMul::of(a, b), &[a, b]) }
}

pub(super) const ENTRY: Entry = Entry {
    name: "matmul",
    family: Family::Linalg,
    signature: "a.matmul(&b)",
    python: &[
        Binding::with("matmul", &[Parameter::operand("other")], |x, a| x.try_matmul(&a.alone(0)))
            .also(&["mm", "bmm"]),
        Binding::by_hand("addmm", "a sum with a product").formula("beta * x + alpha * mat1 @ mat2"),
    ],
    formula: "c[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]",
    gradient: "da = g @ b^T; db = a^T @ g",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 12] = [
            ("matrices", &[3, 4], &[4, 5]),
            ("square matrices", &[3, 3], &[3, 3]),
            ("vectors", &[4], &[4]),
            ("row times matrix", &[4], &[4, 3]),
            ("matrix times column", &[3, 4], &[4]),
            ("batch", &[2, 3, 4], &[2, 4, 2]),
            ("batch times a matrix", &[2, 3, 4], &[4, 5]),
            ("matrix times a batch", &[3, 4], &[2, 4, 5]),
            ("batches that broadcast", &[2, 1, 2, 3], &[3, 3, 2]),
            ("vector times a batch", &[4], &[2, 4, 3]),
            ("no inner elements", &[2, 0], &[0, 3]),
            ("no rows", &[0, 3], &[3, 2]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, a, b)| {
                Sample::new(note, vec![normal(g, a), normal(g, b)], |x| x[0].try_matmul(&x[1]))
            })
            .collect();
        out.push(Sample::new("an operand used twice, transposed", vec![normal(g, [3, 4])], |x| {
            x[0].try_matmul(&x[0].try_t()?)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "transposed product",
            what: "the gradient of the first operand is (b @ g^T) reshaped instead of g @ b^T",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                if let Some(da) = grads[0].take() {
                    grads[0] = Some(da.try_t()?.try_reshape(da.shape())?);
                }
                Ok(grads)
            },
        },
        Mistake {
            name: "second operand not transposed",
            what: "the gradient of the first operand is g @ b instead of g @ b^T, which fits a square b",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = Some(g.try_matmul(&at.input(1))?);
                Ok(grads)
            },
        },
        Mistake {
            name: "first operand not transposed",
            what: "the gradient of the second operand is a @ g instead of a^T @ g, which fits a square a",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = Some(at.input(0).try_matmul(g)?);
                Ok(grads)
            },
        },
        Mistake {
            name: "operands swapped",
            what: "the gradient of the second operand is g^T @ a instead of a^T @ g, read in its shape",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                if let Some(db) = grads[1].take() {
                    grads[1] = Some(db.try_t()?.try_reshape(db.shape())?);
                }
                Ok(grads)
            },
        },
    ],
};
