//! Negative indices, as an op: so that an index which is another in each run of a program is counted from the end in each.

use super::expect_indices;
use crate::kernels::gather::first_outside;
use crate::ops::prelude::*;
use crate::tensor::log;

/// The indices with negative ones counted from the end of something of this size; an error for those outside.
#[derive(Clone, Debug, Parameters)]
struct Wrap {
    /// The op that they are for.
    op: &'static str,
    size: usize,
    /// The thing that has that size.
    what: String,
}

/// As [`Wrap`] says: at once, and in a trace as an instruction.
#[track_caller]
pub(super) fn wrapped(
    op: &'static str,
    indices: &Tensor,
    size: usize,
    what: impl Into<String>,
) -> Result<Tensor> {
    expect_indices(op, &indices.meta())?;
    let wrap = Wrap { op, size, what: what.into() };
    if log::is_on() {
        return apply(wrap, &[indices]);
    }
    let value = indices.value().contiguous()?;
    let list: &[i64] = value.slice().expect("made contiguous");
    if first_outside(list, size).is_none() {
        return Ok(indices.clone());
    }
    Ok(Tensor::constant(wrap.value(list, indices.shape())?))
}

impl Wrap {
    fn value(&self, list: &[i64], shape: Shape) -> Result<Value> {
        let n = self.size as i64;
        let outside = |i: &i64| !(-n..n).contains(i);
        if let Some(at) = list.iter().position(outside) {
            let range = match n {
                0 => "it is empty".to_string(),
                _ => format!("indices run from {} to {}", -n, n - 1),
            };
            let (index, what) = (list[at], &self.what);
            let why =
                format!("index {index} at position {at} is outside {what} of size {n}; {range}");
            return Err(Error::argument(self.op, why));
        }
        let wrap = |(out, &i): (&mut i64, &i64)| *out = if i < 0 { i + n } else { i };
        Value::build(self.op, shape, |out| out.iter_mut().zip(list).for_each(wrap))
    }
}

impl Op for Wrap {
    fn name(&self) -> &'static str {
        "wrap"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.where({0} < 0, {0} + {size}, {0})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        expect_indices(self.op, &inputs[0])?;
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, _: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![None])
    }

    fn jvp(&self, _: &Saved<'_>, _: &[Option<Tensor>]) -> Result<Tensor> {
        Err(Error::gradient(self.op, "an index has no derivative"))
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for Wrap {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let value = inputs[0].contiguous()?;
        let list: &[i64] = value.slice().expect("made contiguous");
        Ok(self.value(list, *inputs[0].shape())?.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::index::index::ix;
    use crate::program::Program;
    use crate::{DType, Generator, Tensor};

    /// The program is traced on one set of indices and run on others, negative and repeated ones among them.
    #[test]
    fn arguments_can_be_indices() {
        let g = &mut Generator::manual_seed(3);
        let w = Tensor::randn([4, 5], DType::F64, g).parameter().named("w");
        type Loss = fn(&Tensor, &Tensor) -> Tensor;
        let losses: [(&str, Loss); 6] = [
            ("rows", |w, i| w.index(ix![i]).tanh().sum_all()),
            ("columns", |w, i| w.index(ix![.., i]).tanh().sum_all()),
            ("both", |w, i| w.index(ix![&Tensor::arange(0, 3), i]).tanh().sum_all()),
            ("apart", |w, i| {
                w.reshape([2, 2, 5]).index(ix![&i.remainder(2), .., i]).tanh().sum_all()
            }),
            ("put", |w, i| (w.index_put(ix![i], w.index(ix![i]).square(), false) * w).sum_all()),
            ("added", |w, i| (w.index_put(ix![i], 2.0, true) * w).sum_all()),
        ];
        for (name, loss) in losses {
            let step = |i: &Tensor| {
                w.zero_grad();
                let loss = loss(&w, i);
                loss.backward();
                vec![loss, w.grad().unwrap()]
            };
            let first = Tensor::from([0i64, 1, 2]);
            let program = Program::trace([("i", &first)], |x| Ok(step(&x[0]))).unwrap();
            for i in [[0i64, 1, 2], [3, 3, 3], [-1, 0, -1], [1, -4, 2]] {
                let i = Tensor::from(i);
                let want = step(&i);
                for program in [program.clone(), program.simplified().unwrap().program.fused()] {
                    for (a, b) in program.run(&[&i]).unwrap().iter().zip(&want) {
                        let apart = (a - b).abs().max_all().item();
                        assert!(apart < 1e-14, "{name}: {apart}\n{program}");
                    }
                }
            }
            let outside = program.run(&[&Tensor::from([0i64, 7, 1])]).unwrap_err().to_string();
            assert!(outside.contains("index 7 at position 1"), "{name}: {outside}");
        }
    }
}
