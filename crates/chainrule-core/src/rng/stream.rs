//! The stream of bits behind a generator, and the numbers made of it.

use super::RngError;
use super::mt19937::Mt19937;
use super::normal::{self, BLOCK};

/// Position of a [`Generator`](super::Generator), and the draws from there. The methods are
/// described there.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    pub(super) seed: u64,
    pub(super) engine: Mt19937,
    /// The second number of the last pair that `fill_normal_*` made for fewer than 16 elements.
    /// f32 and f64 share it, as in PyTorch.
    pub(super) next_normal: Option<f64>,
}

impl Stream {
    pub fn of(seed: u64) -> Self {
        Self { seed, engine: Mt19937::from_word(seed as u32), next_normal: None }
    }

    #[inline]
    pub fn random_u32(&mut self) -> u32 {
        self.engine.next_u32()
    }

    #[inline]
    pub fn random_u64(&mut self) -> u64 {
        self.engine.next_u64()
    }

    #[inline]
    pub(super) fn uniform_f64(&mut self) -> f64 {
        (self.engine.next_u64() & ((1 << 53) - 1)) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    pub fn fill_uniform_f32(&mut self, out: &mut [f32]) {
        let low_bits = (1 << 24) - 1;
        // By way of i32, for which processors have a conversion.
        self.engine.fill_with(out, |w| (w & low_bits) as i32 as f32 * (1.0 / 16_777_216.0));
    }

    pub fn fill_uniform_f64(&mut self, out: &mut [f64]) {
        out.fill_with(|| self.uniform_f64());
    }

    pub fn fill_normal_f32(&mut self, out: &mut [f32]) {
        if out.len() < BLOCK {
            return out.fill_with(|| self.single_normal() as f32);
        }
        self.fill_uniform_f32(out);
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        normal::blocks_f32(blocks);
        if !rest.is_empty()
            && let Some(last) = out.last_chunk_mut::<BLOCK>()
        {
            self.fill_uniform_f32(last);
            normal::blocks_f32(std::slice::from_mut(last));
        }
    }

    pub fn fill_normal_f64(&mut self, out: &mut [f64]) {
        if out.len() < BLOCK {
            return out.fill_with(|| self.single_normal());
        }
        self.fill_uniform_f64(out);
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        normal::blocks_f64(blocks);
        if !rest.is_empty()
            && let Some(last) = out.last_chunk_mut::<BLOCK>()
        {
            self.fill_uniform_f64(last);
            normal::blocks_f64(std::slice::from_mut(last));
        }
    }

    fn single_normal(&mut self) -> f64 {
        // Adding the mean, 0, makes 0 of -0.
        self.next_normal.take().map(|kept| kept + 0.0).unwrap_or_else(|| {
            let (angle, radius) = (self.uniform_f64(), self.uniform_f64());
            let (now, later) = normal::pair(angle, radius);
            self.next_normal = Some(later);
            now
        })
    }

    pub fn fill_randint(&mut self, low: i64, high: i64, out: &mut [i64]) -> Result<(), RngError> {
        if low >= high {
            return Err(RngError::EmptyRange { low, high });
        }
        let width = high.wrapping_sub(low) as u64;
        if width >= 1 << 28 {
            out.fill_with(|| low.wrapping_add((self.engine.next_u64() % width) as i64));
        } else {
            let width = width as u32;
            self.engine.fill_with(out, |w| low + i64::from(w % width));
        }
        Ok(())
    }

    pub fn fill_bernoulli(&mut self, p: f64, out: &mut [u8]) {
        const AT_ONCE: usize = 256;
        // The low 53 bits of a draw are below this where their quotient by 2^53 is below p. Both
        // products are exact.
        let limit = (p * 9_007_199_254_740_992.0).ceil() as u64;
        let mut words = [0u32; 2 * AT_ONCE];
        for out in out.chunks_mut(AT_ONCE) {
            let words = &mut words[..2 * out.len()];
            self.engine.fill_with(words, |w| w);
            for (out, pair) in out.iter_mut().zip(words.as_chunks::<2>().0) {
                let bits = u64::from(pair[0] & 0x1f_ffff) << 32 | u64::from(pair[1]);
                *out = u8::from(bits < limit);
            }
        }
    }

    pub fn randperm(&mut self, n: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..n as i64).collect();
        if n < (u32::MAX / 20) as usize {
            for i in 0..n.saturating_sub(1) {
                let other = i + self.random_u32() as usize % (n - i);
                order.swap(i, other);
            }
        } else {
            self.shuffle_inside_out(&mut order);
        }
        order
    }

    /// The order in which PyTorch draws a permutation too long for 32-bit draws. `order` counts
    /// from 0, so that the swap leaves what an array filled on the way would hold.
    pub(super) fn shuffle_inside_out(&mut self, order: &mut [i64]) {
        for i in 0..order.len() {
            let other = (self.random_u64() % (i as u64 + 1)) as usize;
            order.swap(i, other);
        }
    }
}
