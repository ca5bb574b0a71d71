//! The gated recurrent unit.

use super::{Recurrent, Step, gate};
use crate::error::Result;
use crate::tensor::Tensor;

/// The gated recurrent unit (Cho et al. 2014), as PyTorch defines it:
///
/// `r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)`; `z` likewise; `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))`;
/// `h' = (1 - z) * n + z * h`. The rows of the weights are those of `r`, `z` and `n`, in this order.
///
/// ```
/// use chainrule::nn::Gru;
/// use chainrule::{Generator, Tensor};
/// let gru = Gru::new(3, 5, &mut Generator::manual_seed(0));
/// let (y, last) = gru.run(&Tensor::zeros([2, 7, 3]), None);
/// let (more, _) = gru.run(&Tensor::zeros([2, 1, 3]), Some(&last));
/// assert_eq!((y.shape().to_vec(), more.shape().to_vec()), (vec![2, 7, 5], vec![2, 1, 5]));
/// ```
pub type Gru = Recurrent<GruStep, 1>;

/// The step of [`Gru`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GruStep;

impl Step<1> for GruStep {
    const NAME: &'static str = "Gru";
    const GATES: usize = 3;
    // The reset gate comes between the biases of `n`.
    const BIASES_ADD: bool = false;

    fn step(&self, x: &Tensor, h: &Tensor, [state]: &[Tensor; 1]) -> Result<[Tensor; 1]> {
        let both = |i| gate(x, i, 3)?.try_add(&gate(h, i, 3)?)?.try_sigmoid();
        let (r, z) = (both(0)?, both(1)?);
        let n = gate(x, 2, 3)?.try_add(&r.try_mul(&gate(h, 2, 3)?)?)?.try_tanh()?;
        // (1 - z) n + z h, with one product less.
        Ok([n.try_add(&z.try_mul(&state.try_sub(&n)?)?)?])
    }
}
