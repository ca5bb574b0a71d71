//! Elements of tensors to be reduced.

/// The elements of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Values::F32(x) => size_of_val(&x[..]),
            Values::F64(x) => size_of_val(&x[..]),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes());
        match self {
            Values::F32(x) => write_blocks(x, out, f32::to_le_bytes),
            Values::F64(x) => write_blocks(x, out, f64::to_le_bytes),
        }
    }

    /// Dtype and count.
    pub fn layout(&self) -> ValuesLayout {
        match self {
            Values::F32(x) => ValuesLayout::F32(x.len()),
            Values::F64(x) => ValuesLayout::F64(x.len()),
        }
    }

    /// The elementwise sum of two of one layout.
    pub(crate) fn plus(mut self, right: Values) -> Values {
        match (&mut self, &right) {
            (Values::F32(x), Values::F32(y)) => x.iter_mut().zip(y).for_each(|(x, y)| *x += y),
            (Values::F64(x), Values::F64(y)) => x.iter_mut().zip(y).for_each(|(x, y)| *x += y),
            _ => {}
        }
        self
    }

    /// Replaces each element by `of(own, sent)`.
    fn with(&mut self, sent: &[u8], of32: fn(f32, f32) -> f32, of64: fn(f64, f64) -> f64) {
        match self {
            Values::F32(x) => {
                let sent = sent.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
                x.iter_mut().zip(sent).for_each(|(x, y)| *x = of32(*x, y));
            }
            Values::F64(x) => {
                let sent = sent.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b));
                x.iter_mut().zip(sent).for_each(|(x, y)| *x = of64(*x, y));
            }
        }
    }
}

/// Elements to be reduced: of this rank, or received from another one.
pub(crate) enum Operand<'b> {
    Own(Values),
    Sent(ValuesLayout, &'b [u8]),
}

impl Operand<'_> {
    /// The elementwise sum of two of one layout, left plus right, in the memory of either.
    pub fn plus(self, right: Self) -> Self {
        Operand::Own(match (self, right) {
            (Operand::Own(left), Operand::Own(right)) => left.plus(right),
            (Operand::Sent(_, left), Operand::Own(mut right)) => {
                right.with(left, |own, sent| sent + own, |own, sent| sent + own);
                right
            }
            (left, Operand::Sent(_, right)) => {
                let mut left = left.into_values();
                left.with(right, |own, sent| own + sent, |own, sent| own + sent);
                left
            }
        })
    }

    pub fn into_values(self) -> Values {
        match self {
            Operand::Own(values) => values,
            Operand::Sent(layout, bytes) => layout.values(bytes),
        }
    }
}

/// Encodes elements by way of a block that stays in cache, which avoids zeroing the target first.
fn write_blocks<T: Copy, const N: usize>(x: &[T], out: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; N]) {
    const BLOCK: usize = 512;
    let mut block = [[0; N]; BLOCK];
    for x in x.chunks(BLOCK) {
        block.iter_mut().zip(x).for_each(|(b, x)| *b = bytes(*x));
        out.extend_from_slice(block[..x.len()].as_flattened());
    }
}

/// Dtype and count of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuesLayout {
    /// Single precision, and the count.
    F32(usize),
    /// Double precision, and the count.
    F64(usize),
}

impl ValuesLayout {
    /// The number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            ValuesLayout::F32(n) => n.saturating_mul(4),
            ValuesLayout::F64(n) => n.saturating_mul(8),
        }
    }

    /// Zeros.
    pub fn zeros(self) -> Values {
        match self {
            ValuesLayout::F32(n) => Values::F32(vec![0.0; n]),
            ValuesLayout::F64(n) => Values::F64(vec![0.0; n]),
        }
    }

    /// Decodes elements of this layout from the start of the bytes.
    #[doc(hidden)]
    pub fn read(self, bytes: &mut &[u8]) -> Option<Values> {
        self.split_off(bytes).map(|own| self.values(own))
    }

    /// The first of the bytes, as many as elements of this layout have.
    pub(crate) fn split_off<'b>(self, bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
        let (own, rest) = bytes.split_at_checked(self.bytes())?;
        *bytes = rest;
        Some(own)
    }

    /// The elements in these bytes, which are as many as this layout has.
    fn values(self, bytes: &[u8]) -> Values {
        match self {
            ValuesLayout::F32(_) => {
                let numbers = bytes.as_chunks().0.iter();
                Values::F32(numbers.map(|&b| f32::from_le_bytes(b)).collect())
            }
            ValuesLayout::F64(_) => {
                let numbers = bytes.as_chunks().0.iter();
                Values::F64(numbers.map(|&b| f64::from_le_bytes(b)).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_the_same_whoever_has_its_operands() {
        let of = |k: f32| Values::F32((0..1000).map(|i| (k * i as f32).sin() * 1e3).collect());
        let (left, right) = (of(0.1), of(0.7));
        let bytes = [&left, &right].map(|values| {
            let mut bytes = Vec::new();
            values.write(&mut bytes);
            bytes
        });
        let sent = |i: usize| Operand::Sent(left.layout(), &bytes[i]);
        let want = left.clone().plus(right.clone());
        let sums = [
            Operand::Own(left.clone()).plus(Operand::Own(right.clone())),
            Operand::Own(left.clone()).plus(sent(1)),
            sent(0).plus(Operand::Own(right)),
            sent(0).plus(sent(1)),
        ];
        assert!(sums.into_iter().all(|sum| sum.into_values() == want));
    }
}
