//! The learned parameters of a normalisation: a gain and a bias for each channel, if it has them.

use smallvec::SmallVec;

use crate::ops::prelude::*;

/// Whether there are a gain and a bias. They are the further inputs of the op, in this order.
#[derive(Clone, Copy, Debug, Parameters)]
pub(crate) struct Learned {
    pub gain: bool,
    pub bias: bool,
}

impl Learned {
    pub fn of(gain: Option<&Tensor>, bias: Option<&Tensor>) -> Learned {
        Learned { gain: gain.is_some(), bias: bias.is_some() }
    }

    /// Splits the items that belong to the inputs into gain and bias.
    pub fn split<X>(self, inputs: &[X]) -> (Option<&X>, Option<&X>) {
        let gain = self.gain.then(|| &inputs[1]);
        let bias = self.bias.then(|| &inputs[1 + usize::from(self.gain)]);
        (gain, bias)
    }

    /// Whether the gradients of gain and bias are wanted.
    pub fn wanted(self, wanted: Wanted) -> [bool; 2] {
        let bias_at = 1 + usize::from(self.gain);
        [self.gain && wanted.get(1), self.bias && wanted.get(bias_at)]
    }

    /// The gradients of all inputs.
    pub fn grads(self, dx: Tensor, dgain: Option<Tensor>, dbias: Option<Tensor>) -> Grads {
        let mut out: Grads = smallvec![Some(dx)];
        out.extend(self.gain.then_some(dgain));
        out.extend(self.bias.then_some(dbias));
        out
    }

    /// The tangent of `hat * gain + bias`, from that of `hat` if it has one. `fit` brings gain and
    /// bias to a shape that broadcasts.
    pub fn tangent(
        self,
        at: &Saved<'_>,
        tangents: &[Option<Tensor>],
        hat: &Tensor,
        dhat: Option<Tensor>,
        fit: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let inputs = at.inputs();
        let (gain, _) = self.split(&inputs);
        let (dgain, dbias) = self.split(tangents);
        let by_hat = dhat.map(|dhat| match gain {
            Some(gain) => dhat.try_mul(&fit(gain)?),
            None => Ok(dhat),
        });
        let by_gain = dgain.and_then(Option::as_ref).map(|dgain| hat.try_mul(&fit(dgain)?));
        let by_bias = dbias.and_then(Option::as_ref);
        let by_bias = by_bias.map(|dbias| fit(dbias)?.try_expand(hat.shape()));
        sum_of_parts([by_hat, by_gain, by_bias])
    }
}

/// `hat * gain + bias`.
#[track_caller]
pub(super) fn affine(hat: Tensor, gain: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
    let scaled = match gain {
        Some(gain) => hat.try_mul(gain)?,
        None => hat,
    };
    match bias {
        Some(bias) => scaled.try_add(bias),
        None => Ok(scaled),
    }
}

/// The input, and gain and bias as far as they are there, as the inputs of an op.
pub(super) fn with_learned<'a>(
    x: &'a Tensor,
    gain: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
) -> SmallVec<[&'a Tensor; 3]> {
    [Some(x), gain, bias].into_iter().flatten().collect()
}

/// The elements of a value that is fresh or was made contiguous.
pub(super) fn elements<T: Stored>(value: &Value) -> &[T] {
    value.slice().expect("fresh or made contiguous")
}
