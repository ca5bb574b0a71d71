//! Points beside the given one, at which no element is special.

use super::level::Level;
use super::tape::is_float;
use crate::error::Result;
use crate::richardson::largest;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Distance from the given point, relative to the elements: far enough to see a gradient whose
/// error grows with the square of the distance, near enough that the function is still the same.
const BESIDE: f64 = 1.0 / 8.0;

/// Elements smaller than this share of the largest count as zeros, which have no size of their own.
const ZERO: f64 = 1e-3;

/// The smallest size that zeros count as.
const LEAST: f64 = 0.5;

/// Distance from a kink to a point that has none, relative to the largest element of an input.
const NUDGE: f64 = 1.0 / 64.0;

impl Level<'_> {
    /// Points beside the given one, in the order in which they are tried: the first at which the
    /// function can be evaluated will do. Elements move by a part of themselves and zeros by a part
    /// of the largest; then the same without a change of sign, for functions of positive numbers;
    /// then by little.
    pub fn beside(&self) -> Result<Vec<Vec<Tensor>>> {
        let moved = self.moved()?;
        let positive = |(x, y): (&Tensor, &Tensor)| -> Result<Tensor> {
            let negative = !is_float(x) || x.to_f64_vec().iter().any(|x| *x < 0.0);
            if negative { Ok(y.clone()) } else { y.try_abs() }
        };
        let positive: Vec<Tensor> =
            self.inputs.iter().zip(&moved).map(positive).collect::<Result<_>>()?;
        Ok(vec![moved, positive, self.nudged()?])
    }

    fn moved(&self) -> Result<Vec<Tensor>> {
        let generator = &mut Generator::manual_seed(self.first_seed ^ 0xbe51);
        let mut moved = |x: &Tensor| -> Result<Tensor> {
            if !is_float(x) {
                return Ok(x.clone());
            }
            let reach = largest(std::slice::from_ref(x)).max(LEAST);
            let size = |x: f64| if x.abs() < ZERO * reach { reach } else { x.abs() };
            let by = Tensor::try_randn(x.shape(), x.dtype(), generator)?.to_f64_vec();
            let all = x.to_f64_vec();
            let all: Vec<f64> =
                all.iter().zip(by).map(|(&x, by)| x + BESIDE * by * size(x)).collect();
            Tensor::try_from_slice(&all, x.shape())?.try_to_dtype(x.dtype())
        };
        self.inputs.iter().map(&mut moved).collect()
    }

    /// The inputs at a point a little beside the given one.
    pub fn nudged(&self) -> Result<Vec<Tensor>> {
        let generator = &mut Generator::manual_seed(self.first_seed ^ 0x2d6e);
        let nudged = |x: &Tensor| -> Result<Tensor> {
            if !is_float(x) {
                return Ok(x.clone());
            }
            let by = NUDGE * largest(std::slice::from_ref(x)).max(0.1);
            x.try_add(&Tensor::try_randn(x.shape(), x.dtype(), generator)?.try_mul(by)?)
        };
        self.inputs.iter().map(nudged).collect()
    }
}
