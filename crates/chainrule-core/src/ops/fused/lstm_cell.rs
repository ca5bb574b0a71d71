//! `lstm_cell`: a step of long short-term memory from the sums of its gates, and the backward of it
//! as one kernel.

use crate::kernels::lstm;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// The output and the new cell side by side, `[.., 2 * size]`, so that one op gives both.
#[derive(Clone, Copy, Debug, Parameters)]
struct LstmCell;

/// The sums of gate `k` of i, f, g, o.
fn gate(sums: &Tensor, k: usize) -> Result<Tensor> {
    let size = sums.shape()[sums.rank() - 1] / 4;
    sums.try_narrow(-1, k * size, size)
}

impl Op for LstmCell {
    row!(lstm_cell);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_lstm_cell({0}, {1})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(9 * numel(&inputs[1]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let (sums, cell) = (inputs[0].shape, inputs[1].shape);
        let mut shape = cell;
        let rank = shape.rank();
        let fits = rank > 0 && {
            shape.dims_mut()[rank - 1] = cell[rank - 1].saturating_mul(4);
            shape == sums
        };
        if !fits {
            let why =
                "the sums have the shape of the cell, with four times as many in the last axis";
            return Err(Error::shape(self.name(), &[&sums, &cell], why));
        }
        shape.dims_mut()[rank - 1] = 2 * cell[rank - 1];
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (sums, cell) = (at.input(0), at.input(1));
        let packed = apply(LstmCellGrad, &[&sums, &cell, cotangent])?;
        let (all, own) = (sums.numel(), cell.numel());
        let dsums = packed.try_narrow(0, 0, all)?.try_reshape(sums.shape())?;
        let dcell = packed.try_narrow(0, all, own)?.try_reshape(cell.shape())?;
        Ok(smallvec![Some(dsums), Some(dcell)])
    }

    /// By the rule of products, gate by gate.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (sums, cell) = (at.input(0), at.input(1));
        let open = |k: usize| gate(&sums, k)?.try_sigmoid();
        let (i, f, o, g) = (open(0)?, open(1)?, open(3)?, gate(&sums, 2)?.try_tanh()?);
        let t = f.try_mul(&cell)?.try_add(&i.try_mul(&g)?)?.try_tanh()?;
        let zero = cell.zeros_like();
        let moved = |k: usize| tangents[0].as_ref().map_or(Ok(zero.clone()), |d| gate(d, k));
        // The slope of a sigmoid is s (1 - s), that of tanh 1 - t^2.
        let opening = |k: usize, s: &Tensor| moved(k)?.try_mul(&s.try_sub(&s.try_square()?)?);
        let bend = |t: &Tensor| t.try_square()?.try_neg()?.try_add(1.0);
        let by_cell = f.try_mul(tangents[1].as_ref().unwrap_or(&zero))?;
        let by_kept = opening(1, &f)?.try_mul(&cell)?;
        let by_input =
            opening(0, &i)?.try_mul(&g)?.try_add(&moved(2)?.try_mul(&bend(&g)?)?.try_mul(&i)?)?;
        let dnew = by_cell.try_add(&by_kept)?.try_add(&by_input)?;
        let dh = opening(3, &o)?.try_mul(&t)?.try_add(&o.try_mul(&bend(&t)?)?.try_mul(&dnew)?)?;
        Tensor::try_cat(&[&dh, &dnew], -1)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let open = |k: usize| gate(&inputs[0], k)?.try_sigmoid();
            let added = open(0)?.try_mul(&gate(&inputs[0], 2)?.try_tanh()?)?;
            let new = open(1)?.try_mul(&inputs[1])?.try_add(&added)?;
            Tensor::try_cat(&[&open(3)?.try_mul(&new.try_tanh()?)?, &new], -1)
        }))
    }
}

impl WholeKernel for LstmCell {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (sums, cell) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let size = out.shape[out.shape.rank() - 1] / 2;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(sums.dtype(), [F32, F64], |T| lstm::step(
            sums.elements::<T>(),
            cell.elements(),
            size,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The backward: the gradients of the sums, then those of the cell, in one row.
#[derive(Clone, Copy, Debug, Parameters)]
struct LstmCellGrad;

impl Op for LstmCellGrad {
    fn name(&self) -> &'static str {
        "lstm_cell_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_lstm_cell_grad({0}, {1}, {2})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(25 * numel(&inputs[1]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(Shape::new(&[5 * inputs[1].shape.numel()]), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for LstmCellGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let [sums, cell, g] = [&inputs[0], &inputs[1], &inputs[2]].map(Value::contiguous);
        let (sums, cell, g) = (sums?, cell?, g?);
        let size = cell.shape()[cell.shape().rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(sums.dtype(), [F32, F64], |T| {
            let (dsums, dcell) = value.elements_mut::<T>().split_at_mut(sums.numel());
            lstm::back(sums.elements::<T>(), cell.elements(), g.elements(), size, dsums, dcell)
        });
        Ok(value.into())
    }
}

methods! {
    /// One step of long short-term memory from the sums of its gates i, f, g and o,
    /// `[.., 4 * size]`, and the cell, `[.., size]`: the output `h = sigmoid(o) * tanh(c')` and the
    /// new cell `c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`. For f32 and f64.
    ///
    /// The sums are `W x + b + V h + d`, as in PyTorch. Gradient: with `t = tanh(c')` and
    /// `dc = g_c + g_h sigmoid(o) (1 - t^2)`, that of the cell is `dc sigmoid(f)`, and a gate gets
    /// its slope times its factor.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (h, c) = Tensor::zeros([2, 12]).lstm_cell(&Tensor::ones([2, 3]));
    /// assert_eq!(c.to_vec::<f32>(), [0.5; 6]);
    /// assert!((h.to_vec::<f32>()[0] - 0.5 * 0.5f32.tanh()).abs() < 1e-6);
    /// ```
    pub fn lstm_cell / try_lstm_cell(&self, cell: &Tensor) -> (Tensor, Tensor) {
        let both = apply(LstmCell, &[self, cell])?;
        let size = both.shape()[both.rank() - 1] / 2;
        Ok((both.try_narrow(-1, 0, size)?, both.try_narrow(-1, size, size)?))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "lstm_cell",
    family: Family::Fused,
    signature: "sums.lstm_cell(&cell)",
    python: &[Binding::by_hand("lstm_cell", "nn.LSTM and nn.LSTMCell call it")
        .no_method()
        .no_function()],
    formula: "c' = sigmoid(f) * c + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c'), with the sums i, f, g, o",
    gradient: "with t = tanh(c') and dc = g_c + g_h * sigmoid(o) * (1 - t^2): dc * sigmoid(f) for the cell, and for a gate its slope times what it is multiplied with",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 4] = [
            ("rows", &[3, 8], &[3, 2]),
            ("one row", &[20], &[5]),
            ("odd sizes", &[2, 3, 68], &[2, 3, 17]),
            ("no rows", &[0, 8], &[0, 2]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, sums, cell)| {
                Sample::new(note, vec![normal(g, sums), normal(g, cell)], |x| {
                    let (h, c) = x[0].try_lstm_cell(&x[1])?;
                    Tensor::try_cat(&[&h, &c], -1)
                })
            })
            .collect();
        out.push(Sample::new(
            "the output alone",
            vec![normal(g, [2, 12]), normal(g, [2, 3])],
            |x| Ok(x[0].try_lstm_cell(&x[1])?.0),
        ));
        out
    },
    mistakes: &[
        Mistake {
            name: "cell behind the output forgotten",
            what: "the gradient of the output does not go on through the new cell",
            rule: |op, at, g, wanted| {
                let size = g.shape()[g.rank() - 1] / 2;
                let (gh, gc) = (g.try_narrow(-1, 0, size)?, g.try_narrow(-1, size, size)?);
                let only =
                    |gh: &Tensor, gc: &Tensor| op.vjp(at, &Tensor::try_cat(&[gh, gc], -1)?, wanted);
                let zero = gh.zeros_like();
                let (through, by_cell) = (only(&gh, &zero)?, only(&zero, &gc)?);
                // The gate o alone takes the gradient by way of the output.
                let output = through[0].as_ref().expect("a gradient of the sums");
                let others = output.try_narrow(-1, 0, 3 * size)?.zeros_like();
                let kept = Tensor::try_cat(&[&others, &gate(output, 3)?], -1)?;
                let dsums = by_cell[0].as_ref().expect("a gradient of the sums").try_add(&kept)?;
                Ok(smallvec![Some(dsums), by_cell[1].clone()])
            },
        },
        Mistake {
            name: "forget gate forgotten",
            what: "the gradient of the cell is not multiplied by the gate f",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                let f = gate(&at.input(0), 1)?.try_sigmoid()?;
                grads[1] = grads[1].take().map(|dc| dc.try_div(&f)).transpose()?;
                Ok(grads)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_must_fit() {
        let error = |sums: &[usize], cell: &[usize]| {
            Tensor::zeros(sums).try_lstm_cell(&Tensor::zeros(cell)).unwrap_err().to_string()
        };
        assert!(error(&[2, 8], &[2, 3]).contains("four times as many"));
        assert!(error(&[], &[]).contains("four times as many"));
        assert!(error(&[3, 8], &[2, 2]).contains("lstm_cell"));
    }
}
