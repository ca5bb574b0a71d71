//! The gated recurrent unit.

use super::{Recurrent, RecurrentStep, gate};
use crate::error::Result;
use crate::tensor::Tensor;

/// The gated recurrent unit (Cho et al. 2014), as PyTorch defines it:
///
/// `r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)`; `z` likewise;
/// `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))`; `h' = (1 - z) * n + z * h`. The rows of the
/// weights are those of `r`, `z` and `n`, in this order.
///
/// ```
/// use chainrule::nn::Gru;
/// use chainrule::{Generator, Tensor};
/// let gru = Gru::new(3, 5, &mut Generator::manual_seed(0));
/// let (y, last) = gru.forward_from(&Tensor::zeros([2, 7, 3]), None);
/// let (more, _) = gru.forward_from(&Tensor::zeros([2, 1, 3]), Some(&last));
/// assert_eq!((y.shape().to_vec(), more.shape().to_vec()), (vec![2, 7, 5], vec![2, 1, 5]));
/// ```
pub type Gru = Recurrent<GruStep, 1>;

/// The step of [`Gru`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GruStep;

impl RecurrentStep<1> for GruStep {
    const NAME: &'static str = "Gru";
    const GATES: usize = 3;

    /// Four blocks: `r`, `z`, and the two terms of `n`, which the reset gate needs apart.
    fn join(&self, input: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let n = hidden.shape()[0];
        let columns = |w: &Tensor, start, count| w.try_narrow(1, start * n, count * n);
        let zeros = |w: &Tensor| Tensor::try_full([w.shape()[0], n], 0.0, w.dtype());
        let upper = Tensor::try_cat(&[input, &zeros(input)?], 1)?;
        let (both, of_state) = (columns(hidden, 0, 2)?, columns(hidden, 2, 1)?);
        let lower = Tensor::try_cat(&[&both, &zeros(hidden)?, &of_state], 1)?;
        Tensor::try_cat(&[&upper, &lower], 0)
    }

    fn join_biases(&self, input: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let n = input.numel() / 3;
        let both = input.try_narrow(0, 0, 2 * n)?.try_add(&hidden.try_narrow(0, 0, 2 * n)?)?;
        let (of_input, of_state) = (gate(input, 2, 3)?, gate(hidden, 2, 3)?);
        Tensor::try_cat(&[&both, &of_input, &of_state], 0)
    }

    fn step(&self, sums: &Tensor, [state]: &[Tensor; 1]) -> Result<[Tensor; 1]> {
        let (r, z) = (gate(sums, 0, 4)?.try_sigmoid()?, gate(sums, 1, 4)?.try_sigmoid()?);
        let n = gate(sums, 2, 4)?.try_add(&r.try_mul(&gate(sums, 3, 4)?)?)?.try_tanh()?;
        // (1 - z) n + z h, with one product less.
        Ok([n.try_add(&z.try_mul(&state.try_sub(&n)?)?)?])
    }
}
