//! Printing.

use std::fmt;

use super::Tensor;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor({:?}, {})", self.to_f64_vec(), self.shape())
    }
}
