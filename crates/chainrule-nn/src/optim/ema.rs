//! Exponential moving average of weights.

use super::descent::state;
use super::{share, unique};
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update0};
use crate::nn::StateDict;
use crate::tensor::{Tensor, log};

/// The exponential moving average of parameters (Polyak and Juditsky 1992): `average = decay *
/// average + (1 - decay) * p` after every step, initialised to the parameters. Averaged weights
/// often generalise better than the last ones.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::Ema;
/// let w = Tensor::from([0.0f64]).parameter();
/// let mut ema = Ema::new(vec![w.clone()], 0.75)?;
/// w.set(&Tensor::from([8.0f64]));
/// ema.update()?;
/// assert_eq!(ema.averaged(|| w.item())?, 2.0); // evaluated with the average
/// assert_eq!(w.item(), 8.0); // trained on with the weights
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug)]
pub struct Ema {
    parameters: Vec<Tensor>,
    /// Leaves, which a program shares with this.
    averages: Vec<Tensor>,
    decay: f64,
    warm_up: bool,
    /// Number of updates; one i64.
    updates: Tensor,
}

impl Ema {
    /// Averages that start as the parameters. Errors unless `decay` is from 0 up and below 1, and
    /// for tensors that are no float leaves. Running statistics (buffers) may be averaged too.
    pub fn new(parameters: Vec<Tensor>, decay: f64) -> Result<Ema> {
        share("Ema", "decay", decay)?;
        let good = |p: &Tensor| p.is_leaf() && p.source().number() != 0 && p.dtype().is_float();
        if let Some(i) = parameters.iter().position(|p| !good(p)) {
            let why = format!("tensor {i} is no float leaf; make it with parameter() or buffer()");
            return Err(Error::argument("Ema", why));
        }
        let parameters = unique(parameters);
        let averages = parameters.iter().map(|p| p.detach().buffer()).collect();
        let updates = Tensor::scalar(0i64).buffer();
        Ok(Ema { parameters, averages, decay, warm_up: false, updates })
    }

    /// Lowers the decay at first, to `(1 + n) / (10 + n)` at update `n` while that is less, so that
    /// a long average soon forgets the random start.
    pub fn warm_up(mut self) -> Ema {
        self.warm_up = true;
        self
    }

    /// Updates the averages; call it after each step. One pass over each. Inside a trace it becomes
    /// instructions, with the same bits.
    pub fn update(&mut self) -> Result<()> {
        if log::is_on() {
            return self.update_in_trace();
        }
        let updates = self.count() + 1;
        let n = updates as f64;
        let decay = match self.warm_up {
            true => self.decay.min((1.0 + n) / (10.0 + n)),
            false => self.decay,
        };
        for (p, average) in self.parameters.iter().zip(&self.averages) {
            match p.dtype() {
                DType::F32 => blend::<f32>(average, p, 1.0 - decay)?,
                half if half.is_half() => {
                    let wide = |t: &Tensor| t.detach().try_to_dtype(DType::F32);
                    let blended = wide(average)?.buffer();
                    blend::<f32>(&blended, &wide(p)?, 1.0 - decay)?;
                    average.try_set(&blended.detach().try_to_dtype(half)?)?;
                }
                _ => blend::<f64>(average, p, 1.0 - decay)?,
            }
        }
        self.updates.try_set(&Tensor::scalar(updates))
    }

    fn count(&self) -> i64 {
        self.updates.value_ref().first()
    }

    fn update_in_trace(&mut self) -> Result<()> {
        let _cause = log::enter(log::Cause::Update);
        self.name_all();
        let [average, updates] = [&self.averages[..], std::slice::from_ref(&self.updates)];
        average.iter().chain(updates).for_each(log::lasting);
        let n = self.updates.detach().try_add(1i64)?;
        let share = match self.warm_up {
            true => {
                let n = n.try_to_dtype(DType::F64)?;
                let early = n.try_add(1.0)?.try_div(&n.try_add(10.0)?)?;
                Tensor::scalar(1.0).try_sub(&early.try_minimum(self.decay)?)?
            }
            false => Tensor::scalar(1.0 - self.decay),
        };
        for (p, average) in self.parameters.iter().zip(&self.averages) {
            let old = average.detach();
            let apart = p.detach().try_sub(&old)?;
            let moved = apart.try_mul(&share.try_to_dtype(p.dtype())?)?;
            average.try_set(&old.try_add(&moved)?)?;
        }
        self.updates.try_set(&n)
    }

    /// Names for listings of unnamed leaves.
    fn name_all(&self) {
        if self.updates.name().is_none() {
            self.updates.named("ema_updates");
        }
        for (i, (p, average)) in self.parameters.iter().zip(&self.averages).enumerate() {
            if average.name().is_none() {
                let of = p.name().unwrap_or_else(|| format!("p{i}"));
                average.named(&format!("average_{of}"));
            }
        }
    }

    /// Swaps the weights and their averages; a second call swaps them back. No elements are copied.
    pub fn swap(&mut self) -> Result<()> {
        for (p, average) in self.parameters.iter().zip(&self.averages) {
            let (weights, averaged) = (p.detach(), average.detach());
            p.try_set(&averaged)?;
            average.try_set(&weights)?;
        }
        Ok(())
    }

    /// Runs `f` with the averages as weights, and restores the weights afterwards, even if `f`
    /// panics.
    pub fn averaged<R>(&mut self, f: impl FnOnce() -> R) -> Result<R> {
        struct Back<'a>(&'a mut Ema);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                // Tensors that were swapped once have matching shapes and dtypes.
                let _ = self.0.swap();
            }
        }
        self.swap()?;
        let _back = Back(self);
        Ok(f())
    }

    /// The averages, in the order of the parameters.
    pub fn averages(&self) -> &[Tensor] {
        &self.averages
    }

    /// The averages and the number of updates, as values: `average.{i}` and `updates`.
    pub fn state_dict(&self) -> StateDict {
        let averages = self.averages.iter().enumerate();
        let mut out: StateDict =
            averages.map(|(i, t)| (format!("average.{i}"), t.detach())).collect();
        out.insert("updates".into(), self.updates.detach());
        out
    }

    /// Loads [`Ema::state_dict`]. Errors for other names, shapes or dtypes; then nothing is
    /// changed.
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let updates: i64 = state::scalar("Ema", "updates", state.get("updates"))?;
        if updates < 0 || state.len() != self.averages.len() + 1 {
            let why = format!(
                "the state holds {} averages after {updates} updates; there are {} parameters",
                state.len() - 1,
                self.averages.len()
            );
            return Err(Error::argument("Ema", why));
        }
        let one = |(i, p): (usize, &Tensor)| match state.get(&format!("average.{i}")) {
            Some(t) if t.meta() == p.meta() => Ok(t.detach()),
            _ => {
                let why = format!(
                    "the state's `average.{i}` is missing or not {} {}",
                    p.dtype(),
                    p.shape()
                );
                Err(Error::argument("Ema", why))
            }
        };
        let new = self.parameters.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
        for (average, new) in self.averages.iter().zip(new) {
            average.try_set(&new)?;
        }
        self.updates.try_set(&Tensor::scalar(updates))
    }
}

/// `average += share * (p - average)`, in place where the average is unshared.
fn blend<T: Real + Stored>(average: &Tensor, p: &Tensor, share: f64) -> Result<()> {
    let p = p.value_ref().contiguous()?;
    let p = p.slice::<T>().expect("made contiguous");
    let mut held = average.hold("Ema")?;
    let share = T::from_f64(share);
    in_pieces(held.elements(), p, &mut [], |a, p, _| update0(a, p, |a, p| a + share * (p - a)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_follow_the_formula_and_states_come_back() {
        let w = Tensor::from([1.0f64, -2.0]).parameter();
        let mut ema = Ema::new(vec![w.clone(), w.clone()], 0.9).unwrap();
        let mut want = [1.0, -2.0];
        for i in 0..5 {
            w.set(&Tensor::from([f64::from(i), 0.5]));
            ema.update().unwrap();
            want = [0.9 * want[0] + 0.1 * f64::from(i), 0.9 * want[1] + 0.1 * 0.5];
        }
        let close =
            |t: &Tensor| t.to_vec::<f64>().iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(&ema.averages()[0]) && ema.averages().len() == 1);
        let mut other = Ema::new(vec![w.clone()], 0.9).unwrap();
        other.load_state_dict(&ema.state_dict()).unwrap();
        ema.update().unwrap();
        assert!(close(&other.averages()[0]), "what was handed over does not change");
        other.update().unwrap();
        assert_eq!(other.averages()[0].to_vec::<f64>(), ema.averages()[0].to_vec::<f64>());
        let mut bad = ema.state_dict();
        bad.insert("average.0".into(), Tensor::from([1.0f32, 2.0]));
        assert!(other.load_state_dict(&bad).is_err());
    }

    #[test]
    fn weights_come_back_after_a_panic() {
        let w = Tensor::from([1.0f32]).parameter();
        let mut ema = Ema::new(vec![w.clone()], 0.5).unwrap();
        w.set(&Tensor::from([3.0f32]));
        let run =
            std::panic::AssertUnwindSafe(|| ema.averaged(|| -> f64 { panic!("{}", w.item()) }));
        assert_eq!(*std::panic::catch_unwind(run).unwrap_err().downcast::<String>().unwrap(), "1");
        assert_eq!(w.item(), 3.0);
    }

    #[test]
    fn a_warm_up_forgets_the_start() {
        let w = Tensor::from([0.0f64]).parameter();
        let mut ema = Ema::new(vec![w.clone()], 0.999).unwrap().warm_up();
        w.set(&Tensor::from([11.0f64]));
        ema.update().unwrap();
        assert!((ema.averages()[0].item() - 9.0).abs() < 1e-12);
        assert!(Ema::new(vec![w.clone()], 1.0).is_err());
        assert!(Ema::new(vec![Tensor::from([1.0f32])], 0.5).is_err());
        assert!(Ema::new(vec![Tensor::from([1i64]).buffer()], 0.5).is_err());
    }
}
