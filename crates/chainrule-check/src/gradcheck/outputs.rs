//! Return types of a function under check.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The value of a function of tensors: one tensor or several, or a result of those.
pub trait Outputs {
    /// The tensors, in order.
    fn into_tensors(self) -> Result<Vec<Tensor>>;
}

impl Outputs for Tensor {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}

impl Outputs for Vec<Tensor> {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self)
    }
}

impl<const N: usize> Outputs for [Tensor; N] {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self.into())
    }
}

impl Outputs for (Tensor, Tensor) {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0, self.1])
    }
}

impl Outputs for (Tensor, Tensor, Tensor) {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0, self.1, self.2])
    }
}

impl<O: Outputs> Outputs for Result<O, Error> {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        self?.into_tensors()
    }
}
