//! Muon: orthogonalised momentum.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative};
use crate::dtype::Stored;
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, power_sum, update0, update1};
use crate::tensor::value::Value;
use crate::tensor::{Tensor, no_grad};

/// Options of [`Muon`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct MuonOptions {
    /// Decay rate of the momentum; 0.95.
    pub momentum: f64,
    /// Nesterov momentum (Nesterov 1983); on.
    pub nesterov: bool,
    /// Steps of the Newton-Schulz iteration; 5.
    pub steps: usize,
    /// Decoupled weight decay: each step subtracts `lr * weight_decay` times the parameter; 0.
    pub weight_decay: f64,
}

impl Default for MuonOptions {
    fn default() -> Self {
        MuonOptions { momentum: 0.95, nesterov: true, steps: 5, weight_decay: 0.0 }
    }
}

/// Muon (Keller Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"), for
/// matrices `[out, in]`:
///
/// `b = momentum * b + g`; `d = g + momentum * b` (Nesterov; else `d = b`);
/// `p -= lr * sqrt(max(1, out / in)) * orthogonal(d)`, with weight decay as in
/// [`AdamW`](super::AdamW).
///
/// `orthogonal` brings all singular values near 1 (between about 0.7 and 1.2) and keeps the
/// singular vectors: from `x = d / |d|`, five times `x = a x + (b A + c A A) x` with `A = x x^T`
/// and `(a, b, c) = (3.4445, -4.7750, 2.0315)`, in the dtype of the parameter. A usual learning
/// rate is 0.02.
///
/// It is meant for the matrices inside a network. Parameters with another number of axes are an
/// error: give those, the embedding and the last layer to AdamW, as [`Descent::and`] does.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Muon, Optimizer};
/// let w = Tensor::from([[2.0f64, 0.0], [0.0, 1.0]]).parameter();
/// let mut muon = Muon::new(vec![w.clone()], 0.02);
/// (&w * &w).sum_all().backward();
/// muon.step().unwrap();
/// assert!((w.at::<f64>(&[0, 0]) - 1.98).abs() < 0.01);
/// ```
pub type Muon = Descent<MuonOptions>;

/// The coefficients of the iteration, chosen by its authors for a steep start.
const COEFFICIENTS: [f64; 3] = [3.4445, -4.7750, 2.0315];

/// Guards the division by the norm of a zero gradient.
const EPS: f64 = 1e-7;

impl Rule for MuonOptions {
    const NAME: &'static str = "Muon";
    const NUMPY: &'static str = "_muon({update}, momentum={momentum}, nesterov={nesterov}, steps={steps}, weight_decay={weight_decay})";
    const STEPS: u64 = 0;

    fn check(&self) -> Result<()> {
        not_negative(Self::NAME, "momentum", self.momentum)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        smallvec![("momentum_buffer", 0.0)]
    }

    fn accept(&self, parameter: &Tensor) -> Result<()> {
        if parameter.rank() == 2 {
            return Ok(());
        }
        let why = "only matrices have directions to make equal; give parameters with another number of axes to an AdamW";
        Err(Error::shape(Self::NAME, &[&parameter.shape()], why))
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        let momentum = T::from_f64(self.momentum);
        let nesterov = self.nesterov;
        let direction = Value::build::<T>(Self::NAME, at.shape, |d| {
            in_pieces(d, g, state, |d, g, state| {
                let [b] = state else { unreachable!("it keeps one array") };
                update1(d, g, b, |_, g, b| {
                    let b = momentum * b + g;
                    (if nesterov { g + momentum * b } else { b }, b)
                });
            });
        })?;
        let norm = power_sum(direction.slice::<T>().expect("just made"), 2.0).sqrt();
        let direction = no_grad(|| orthogonal(&Tensor::constant(direction), norm, self.steps))?;
        let tall = at.shape[0] as f64 / at.shape[1].max(1) as f64;
        let [size, keep] =
            [at.lr * tall.max(1.0).sqrt(), 1.0 - at.lr * self.weight_decay].map(T::from_f64);
        let direction = direction.value_ref().contiguous()?;
        let direction = direction.slice::<T>().expect("made contiguous");
        in_pieces(p, direction, &mut [], |p, d, _| update0(p, d, |p, d| p * keep - size * d));
        Ok(())
    }

    erased!();
}

/// The matrix of norm `norm` with its singular values near 1.
fn orthogonal(x: &Tensor, norm: f64, steps: usize) -> Result<Tensor> {
    let [a, b, c] = COEFFICIENTS;
    let shape = x.shape();
    // Gram matrices of the shorter side.
    let tall = shape[0] > shape[1];
    let mut x = x.try_mul(1.0 / (norm + EPS))?;
    if tall {
        x = x.try_t()?;
    }
    for _ in 0..steps {
        let square = x.try_matmul(&x.try_t()?)?;
        let fourth = square.try_matmul(&square)?;
        let both = square.try_mul(b)?.try_add(&fourth.try_mul(c)?)?;
        x = x.try_mul(a)?.try_add(&both.try_matmul(&x)?)?;
    }
    if tall { x.try_t() } else { Ok(x) }
}
