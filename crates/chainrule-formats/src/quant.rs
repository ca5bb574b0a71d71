//! Quantised blocks of GGUF files.

use half::f16;

use crate::source::Outcome;

/// Supported block formats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quant {
    /// 32 elements of 8 bits with one scale.
    Q8_0,
    /// 32 elements of 4 bits with one scale.
    Q4_0,
    /// 256 elements of 4 bits; eight scales and offsets of 6 bits.
    Q4K,
    /// 256 elements of 6 bits; sixteen scales of 8 bits.
    Q6K,
}

impl Quant {
    /// Elements and bytes of a block.
    pub fn block(self) -> (usize, usize) {
        match self {
            Quant::Q8_0 => (32, 34),
            Quant::Q4_0 => (32, 18),
            Quant::Q4K => (256, 144),
            Quant::Q6K => (256, 210),
        }
    }

    /// Size of a tensor in bytes; its rows are whole blocks.
    pub fn bytes(self, shape: &[usize], numel: u64) -> Outcome<u64> {
        let (count, size) = self.block();
        let row = shape.last().copied().unwrap_or(1);
        match row.is_multiple_of(count) {
            true => Ok(numel / count as u64 * size as u64),
            false => Err(format!("rows of {row} numbers are not whole blocks of {count}")),
        }
    }

    /// Dequantises a block.
    pub fn expand(self, block: &[u8], out: &mut [f32]) {
        match self {
            Quant::Q8_0 => {
                let d = half(block, 0);
                for (o, &q) in out.iter_mut().zip(&block[2..]) {
                    *o = f32::from(q as i8) * d;
                }
            }
            Quant::Q4_0 => {
                let d = half(block, 0);
                for (i, &q) in block[2..18].iter().enumerate() {
                    out[i] = (f32::from(q & 15) - 8.0) * d;
                    out[i + 16] = (f32::from(q >> 4) - 8.0) * d;
                }
            }
            Quant::Q4K => expand_q4k(block, out),
            Quant::Q6K => expand_q6k(block, out),
        }
    }
}

fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn expand_q4k(block: &[u8], out: &mut [f32]) {
    let (d, least) = (half(block, 0), half(block, 2));
    let scales = &block[4..16];
    // Six bits each: the first four have their own bytes, whose high bits belong to the others.
    let pair = |j: usize| match j < 4 {
        true => (scales[j] & 63, scales[j + 4] & 63),
        false => (
            (scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4),
            (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4),
        ),
    };
    for j in 0..8 {
        let (scale, offset) = pair(j);
        let (scale, offset) = (d * f32::from(scale), least * f32::from(offset));
        let nibbles = &block[16 + j / 2 * 32..][..32];
        for (o, &q) in out[j * 32..][..32].iter_mut().zip(nibbles) {
            let q = if j % 2 == 0 { q & 15 } else { q >> 4 };
            *o = scale * f32::from(q) - offset;
        }
    }
}

fn expand_q6k(block: &[u8], out: &mut [f32]) {
    let d = half(block, 208);
    for (i, o) in out.iter_mut().enumerate() {
        // Two halves of 128 elements, each in four quarters of 32.
        let (part, quarter, l) = (i / 128, i / 32 % 4, i % 32);
        let low = block[part * 64 + quarter % 2 * 32 + l];
        let low = if quarter < 2 { low & 15 } else { low >> 4 };
        let high = block[128 + part * 32 + l] >> (2 * quarter) & 3;
        let q = f32::from(low | high << 4) - 32.0;
        *o = d * f32::from(block[192 + i / 16] as i8) * q;
    }
}
