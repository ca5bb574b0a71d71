//! Long short-term memory.

use super::{Recurrent, RecurrentStep, gate};
use crate::error::Result;
use crate::tensor::Tensor;

/// Long short-term memory (Hochreiter and Schmidhuber 1997), as PyTorch defines it:
///
/// `i = sigmoid(W_ii x + b_ii + W_hi h + b_hi)`, `f` and `o` likewise, `g` likewise with tanh;
/// `c' = f * c + i * g`; `h' = o * tanh(c')`. The rows of the weights are those of `i`, `f`, `g`
/// and `o`, in this order. The state is `[h, c]`.
///
/// ```
/// use chainrule::nn::Lstm;
/// use chainrule::{Generator, Tensor};
/// let lstm = Lstm::new(3, 5, &mut Generator::manual_seed(0));
/// let (y, [h, c]) = lstm.forward_from(&Tensor::zeros([2, 7, 3]), None);
/// assert_eq!((y.shape().to_vec(), h.shape()), (vec![2, 7, 5], c.shape()));
/// ```
pub type Lstm = Recurrent<LstmStep, 2>;

/// The step of [`Lstm`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LstmStep;

impl RecurrentStep<2> for LstmStep {
    const NAME: &'static str = "Lstm";
    const GATES: usize = 4;

    fn step(&self, sums: &Tensor, [_, c]: &[Tensor; 2]) -> Result<[Tensor; 2]> {
        let open = |i| gate(sums, i, 4)?.try_sigmoid();
        let (i, f, o) = (open(0)?, open(1)?, open(3)?);
        let g = gate(sums, 2, 4)?.try_tanh()?;
        let c = f.try_mul(c)?.try_add(&i.try_mul(&g)?)?;
        Ok([o.try_mul(&c.try_tanh()?)?, c])
    }
}
