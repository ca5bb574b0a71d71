//! `embedding`: the rows of a table that indices of any shape name, and its backward.

use super::{expect_indices, expect_inside, last_of_each};
use crate::kernels::gather;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Embedding {
    /// The row that gets no gradient.
    padding: Option<usize>,
}

impl Op for Embedding {
    row!(embedding);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0}[{1}]".into())
    }

    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        inputs[0].first().copied().filter(|_| input == 1)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (weight, indices) = (inputs[0], inputs[1]);
        expect_indices(self.name(), &indices)?;
        if weight.shape.rank() != 2 {
            let why = "the table must be a matrix, one row for each index";
            return Err(Error::shape(self.name(), &[&weight.shape], why));
        }
        if let Some(row) = self.padding.filter(|&row| row >= weight.shape[0]) {
            let why = format!("the table has no row {row} for the padding");
            return Err(Error::shape(self.name(), &[&weight.shape], why));
        }
        let rank = indices.shape.rank();
        let shape = indices.shape.with_axis(self.name(), rank, weight.shape[1])?;
        Ok(Meta::new(shape, weight.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let spread = EmbeddingGrad { rows: at.input_shape(0)[0], padding: self.padding };
        let dw = apply(spread, &[cotangent, &at.input(1)])?;
        Ok(smallvec![Some(dw), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dw = tangents[0].as_ref().expect("only the table has a tangent");
        rows_without(dw, &at.input(1), self.padding)
    }
}

/// The rows of `x` that the indices name, with zeros where they name the padding.
fn rows_without(x: &Tensor, indices: &Tensor, padding: Option<usize>) -> Result<Tensor> {
    let rows = x.try_embedding(indices)?;
    let Some(padding) = padding else {
        return Ok(rows);
    };
    let kept = indices.try_ne(padding)?.try_to_dtype(rows.dtype())?;
    let column = kept.shape().with_axis("embedding", indices.rank(), 1)?;
    rows.try_mul(&kept.try_reshape(column)?)
}

impl WholeKernel for Embedding {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (weight, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let indices: &[i64] = indices.slice().expect("made contiguous");
        let (rows, dim) = (weight.shape()[0], weight.shape()[1]);
        expect_inside(self.name(), indices, rows, format_args!("a table"))?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(weight.dtype(), [F32, F64, I64, Bool], |T| gather::take_rows(
            weight.elements::<T>(),
            rows,
            dim,
            indices,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The reverse: rows added to a table of zeros at their indices.
#[derive(Debug, Parameters)]
struct EmbeddingGrad {
    rows: usize,
    padding: Option<usize>,
}

impl Op for EmbeddingGrad {
    fn name(&self) -> &'static str {
        "embedding_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_embedding_grad({0}, {1}, {rows}, {padding})".into())
    }

    fn picks_below(&self, input: usize, _: &[Shape]) -> Option<usize> {
        (input == 1).then_some(self.rows)
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let g = inputs[0];
        let dim = g.shape[g.shape.rank() - 1];
        let dtype = float_inputs(self.name(), &inputs[..1])?;
        Ok(Meta::new(Shape::new(&[self.rows, dim]), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let dg = rows_without(cotangent, &at.input(1), self.padding)?;
        Ok(smallvec![Some(dg), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dg = tangents[0].as_ref().expect("only the rows have a tangent");
        let same = EmbeddingGrad { rows: self.rows, padding: self.padding };
        apply(same, &[dg, &at.input(1)])
    }
}

impl WholeKernel for EmbeddingGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (g, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let indices: &[i64] = indices.slice().expect("made contiguous");
        expect_inside(self.name(), indices, self.rows, format_args!("a table"))?;
        let (dim, skip) = (out.shape[1], self.padding.map(|row| row as i64));
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(g.dtype(), [F32, F64], |T| gather::add_rows(
            g.elements::<T>(),
            self.rows,
            dim,
            indices,
            skip,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The rows of this table that `indices` names: shape `[.., dim]` for a table `[rows, dim]` and
    /// indices `[..]`.
    ///
    /// `indices` is i64 of any shape; an index outside the table is an error. Gradient: each row of
    /// `g` is added to the row of the table that it came from, in the order of the indices.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let table = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let y = table.embedding(&Tensor::from([[1i64, 0, 1]]));
    /// assert_eq!(y.shape(), [1, 3, 2]);
    /// assert_eq!(y.to_vec::<f32>(), [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// ```
    pub fn embedding / try_embedding(&self, indices: &Tensor) -> Tensor {
        apply(Embedding { padding: None }, &[self, indices])
    }

    /// As [`Tensor::embedding`], but the row `padding` gets no gradient: it stands for places
    /// without a token.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let table = Tensor::from([[0.0f32], [3.0]]).parameter();
    /// table.embedding_padded(&Tensor::from([0i64, 1, 0]), 0).sum_all().backward();
    /// assert_eq!(table.grad().unwrap().to_vec::<f32>(), [0.0, 1.0]);
    /// ```
    pub fn embedding_padded / try_embedding_padded(&self, indices: &Tensor, padding: usize) -> Tensor {
        apply(Embedding { padding: Some(padding) }, &[self, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "embedding",
    family: Family::Index,
    signature: "table.embedding(&indices), table.embedding_padded(&indices, padding)",
    python: &[Binding::with(
        "embedding",
        &[Parameter::tensor("weight"), Parameter::int("padding_idx").or_none()],
        |indices, a| {
            let weight = a.tensor(0);
            let rows = weight.shape().first().map_or(0, |&n| n as i64);
            let Some(padding) = a.maybe_int(1) else { return weight.try_embedding(indices) };
            match usize::try_from(if padding < 0 { padding + rows } else { padding }) {
                Ok(padding) => weight.try_embedding_padded(indices, padding),
                Err(_) => Err(Error::argument(
                    "embedding",
                    format!("padding_idx {padding} is out of range for {rows} rows"),
                )),
            }
        },
    )
    .only_functional()],
    formula: "y[.., j] = table[indices[..], j]",
    gradient: "dtable[indices[..], j] += g[.., j]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], Tensor, Option<usize>); 6] = [
            (
                "a matrix of indices, some repeated",
                &[5, 3],
                Tensor::from([[4i64, 0, 4], [1, 4, 0]]),
                None,
            ),
            ("one index", &[3, 17], Tensor::scalar(1i64), None),
            ("a vector", &[4, 2], Tensor::from([3i64, 3]), None),
            ("no indices", &[4, 2], Tensor::from(Vec::<i64>::new()), None),
            ("rows of no elements", &[4, 0], Tensor::from([1i64]), None),
            ("padding", &[4, 3], Tensor::from([[0i64, 2, 2], [1, 0, 2]]), Some(0)),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, indices, padding)| {
                let sample = Sample::new(note, vec![normal(g, shape)], move |x| match padding {
                    Some(padding) => x[0].try_embedding_padded(&indices, padding),
                    None => x[0].try_embedding(&indices),
                });
                match padding {
                    Some(_) => {
                        sample.by_design("the row of the padding is a constant, as in PyTorch")
                    }
                    None => sample,
                }
            })
            .collect();
        out.push(Sample::new("a transposed table", vec![normal(g, [2, 4])], |x| {
            let indices = Tensor::from([[3i64], [1], [3]]);
            x[0].try_t()?.try_embedding(&indices.try_t()?)
        }));
        out
    },
    mistakes: &[Mistake {
        name: "overwritten instead of accumulated",
        what: "of the gradients of a row that is looked up several times only the last is kept",
        rule: |op, at, g, wanted| {
            let indices = at.input(1);
            let last = Tensor::from(last_of_each(&indices.to_vec::<usize>()));
            let column = indices.shape().with_axis("embedding", indices.rank(), 1)?;
            let last = last.try_reshape(column)?.try_to_dtype(g.dtype())?;
            op.vjp(at, &g.try_mul(&last)?, wanted)
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::{GradOptions, grad, grad_with};

    #[test]
    fn errors() {
        let table = Tensor::zeros([3, 2]);
        let error = table.try_embedding(&Tensor::from([[0i64, 1], [-1, 5]])).unwrap_err();
        assert_eq!(
            error.kind().to_string(),
            "embedding: index -1 at position 2 is outside a table of size 3; indices run from 0 to 2"
        );
        assert!(table.try_embedding(&Tensor::from([0.0f32])).is_err());
        let vector = Tensor::zeros([3]);
        assert!(vector.try_embedding(&Tensor::from([0i64])).is_err());
        let one = Tensor::from([0i64]);
        assert!(table.try_embedding_padded(&one, 3).is_err());
    }

    /// The case of the reference file: `nn.Embedding(7, 4, padding_idx=0)` on these indices. There
    /// the gradient of a row is the sum of the upstream rows at its indices, and nothing for row 0:
    /// exact numbers here.
    #[test]
    fn padding_gets_no_gradient() {
        let table = Tensor::arange(0, 14).to_dtype(DType::F32).reshape([7, 2]).parameter();
        let y = table.embedding_padded(&Tensor::from([[1i64, 2, 2], [0, 6, 2]]), 0);
        assert_eq!(
            y.to_vec::<f32>(),
            [2.0, 3.0, 4.0, 5.0, 4.0, 5.0, 0.0, 1.0, 12.0, 13.0, 4.0, 5.0]
        );
        let g = Tensor::arange(1, 13).to_dtype(DType::F32).reshape([2, 3, 2]);
        (&y * &g).sum_all().backward();
        let expected = [
            0.0,
            0.0,
            1.0,
            2.0,
            3.0 + 5.0 + 11.0,
            4.0 + 6.0 + 12.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            9.0,
            10.0,
        ];
        assert_eq!(table.grad().unwrap().to_vec::<f32>(), expected);
    }

    /// The gradient of `sum(y^2)` is 2 x times the number of look-ups, and its derivative that
    /// number twice: not for the padding.
    #[test]
    fn second_derivatives() {
        for (padding, expected) in [(None, [4.0, 2.0, 0.0]), (Some(0), [0.0, 2.0, 0.0])] {
            let x = Tensor::from([[1.0f64], [5.0], [7.0]]).parameter();
            let indices = Tensor::from([0i64, 1, 0]);
            let y = apply(Embedding { padding }, &[&x, &indices]).unwrap();
            let dx = grad_with(&(&y * &y).sum_all(), &[&x], &GradOptions::create_graph()).unwrap();
            let dx = dx[0].as_ref().unwrap();
            let ddx = grad(&dx.sum_all(), &[&x]).unwrap();
            assert_eq!(ddx[0].as_ref().unwrap().to_vec::<f64>(), expected);
        }
    }
}
