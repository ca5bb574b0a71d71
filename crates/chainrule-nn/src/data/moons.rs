//! Two interleaved half circles.

use super::Batch;
use crate::error::Result;
use crate::rng::CounterRng;
use crate::tensor::Tensor;

/// `count` points on two half moons with Gaussian noise of this deviation, and the moon of each (0
/// or 1).
///
/// ```
/// let moons = chainrule::data::moons(200, 0.1, 7)?;
/// assert_eq!((moons.x.shape().to_vec(), moons.y.shape().to_vec()), (vec![200, 2], vec![200]));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn moons(count: usize, noise: f64, seed: u64) -> Result<Batch> {
    let rng = &mut CounterRng::new(seed, 0);
    let (mut points, mut labels) = (Vec::with_capacity(2 * count), Vec::with_capacity(count));
    for i in 0..count {
        let angle = std::f64::consts::PI * rng.uniform_f64();
        let (x, y) = match i % 2 {
            0 => (angle.cos(), angle.sin()),
            _ => (1.0 - angle.cos(), 0.5 - angle.sin()),
        };
        // Box-Muller transform.
        let size = noise * (-2.0 * (1.0 - rng.uniform_f64()).ln()).sqrt();
        let turn = std::f64::consts::TAU * rng.uniform_f64();
        points.extend([(x + size * turn.cos()) as f32, (y + size * turn.sin()) as f32]);
        labels.push((i % 2) as i64);
    }
    let (x, y) =
        (Tensor::try_from_slice(&points, [count, 2])?, Tensor::try_from_slice(&labels, [count])?);
    Ok(Batch { x, y })
}
