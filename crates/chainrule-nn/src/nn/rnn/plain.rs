//! The plain recurrent layer.

use super::{Recurrent, RecurrentStep};
use crate::error::Result;
use crate::tensor::Tensor;

/// The Elman network, as PyTorch defines it: `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with
/// [`Rnn::with_relu`] a ReLU.
///
/// ```
/// use chainrule::nn::Rnn;
/// use chainrule::{Generator, Tensor};
/// let rnn = Rnn::new(3, 5, &mut Generator::manual_seed(0));
/// let (y, [h]) = rnn.forward_from(&Tensor::zeros([2, 7, 3]), None);
/// assert_eq!((y.shape().to_vec(), h.shape().to_vec()), (vec![2, 7, 5], vec![1, 2, 5]));
/// ```
pub type Rnn = Recurrent<PlainStep, 1>;

/// The step of [`Rnn`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainStep {
    relu: bool,
}

impl Rnn {
    /// With a ReLU instead of the tanh.
    pub fn with_relu(mut self) -> Rnn {
        self.step.relu = true;
        self
    }
}

impl RecurrentStep<1> for PlainStep {
    const NAME: &'static str = "Rnn";
    const GATES: usize = 1;

    fn step(&self, sums: &Tensor, _: &[Tensor; 1]) -> Result<[Tensor; 1]> {
        Ok([if self.relu { sums.try_relu()? } else { sums.try_tanh()? }])
    }
}
