//! Losses that are quadratic in small differences and linear in large ones: the base of `huber`
//! and `smooth_l1`, which is the same divided by the bound.

use super::pointwise::{Pointwise, difference};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// `d^2 / 2` where `|d|` is within the bound, `bound (|d| - bound / 2)` beyond it, with
/// `d = x - target`. `RELATIVE` divides it by the bound, which is above 0.
#[derive(Clone, Copy, Debug, Parameters)]
pub(super) struct Bounded<const RELATIVE: bool> {
    pub bound: f64,
}

impl<const RELATIVE: bool> Bounded<RELATIVE> {
    /// The difference on the scale of the slope, and the largest slope.
    fn scaled_difference(self, x: &Tensor, t: &Tensor) -> Result<(Tensor, f64)> {
        let d = x.try_sub(t)?;
        if RELATIVE { Ok((d.try_div(self.bound)?, 1.0)) } else { Ok((d, self.bound)) }
    }
}

impl<const RELATIVE: bool> Pointwise for Bounded<RELATIVE> {
    const ID: OpId = if RELATIVE { OpId::smooth_l1 } else { OpId::huber };
    const NAME: &'static str = if RELATIVE { "smooth_l1" } else { "huber" };
    const GRAD: &'static str = if RELATIVE { "smooth_l1_grad" } else { "huber_grad" };
    const NUMPY: [&'static str; 3] = if RELATIVE {
        [
            "_smooth_l1({0}, {1}, {bound})",
            "np.clip(({0} - {1}) / {bound}, -1, 1)",
            "np.clip(({1} - {0}) / {bound}, -1, 1)",
        ]
    } else {
        [
            "_huber({0}, {1}, {bound})",
            "np.clip({0} - {1}, -{bound}, {bound})",
            "np.clip({1} - {0}, -{bound}, {bound})",
        ]
    };

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let (bound, half) = (T::from_f64(self.bound), T::from_f64(0.5));
        let size = (x - t).abs();
        let (near, far) = (half * size * size, size - half * bound);
        match RELATIVE {
            true => {
                if size < bound {
                    near / bound
                } else {
                    far
                }
            }
            false => {
                if size <= bound {
                    near
                } else {
                    bound * far
                }
            }
        }
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let bound = T::from_f64(self.bound);
        let (d, most) = if RELATIVE { ((x - t) / bound, T::ONE) } else { (x - t, bound) };
        let upper = if most < d { most } else { d };
        if d < -most { -most } else { upper }
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let d = x.try_sub(t)?;
        let size = d.try_abs()?;
        let (near, far) = (d.try_mul(&d)?, size.try_sub(0.5 * self.bound)?);
        if RELATIVE {
            return size.try_lt(self.bound)?.try_where(&near.try_mul(0.5 / self.bound)?, &far);
        }
        size.try_le(self.bound)?.try_where(&near.try_mul(0.5)?, &far.try_mul(self.bound)?)
    }

    /// The difference, clipped at both ends.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (d, most) = self.scaled_difference(x, t)?;
        let cut = d.try_maximum(-most)?.try_neg()?.try_maximum(-most)?.try_neg()?;
        cut.try_mul(&difference(dx, dt)?)
    }
}

/// A prediction and a target whose differences keep away from the bounds 0 and `bound`, on both
/// sides of it.
pub(super) fn around(g: &mut Generator, shape: &[usize], bound: f64) -> (Tensor, Tensor) {
    let x = normal(g, shape);
    let size = between(g, 0.1 * bound, 0.8 * bound, shape);
    let beyond = between(g, 0.0, 1.0, shape).gt(0.6);
    let size = beyond.where_(&(&size + 1.1 * bound), &size);
    let d = between(g, 0.0, 1.0, shape).gt(0.5).where_(&size, -&size);
    (&x + d, x)
}
