//! Key of everything that a program of a batch depends on.

use super::Fnv;
use crate::data::Batch;
use crate::nn::{Field, Module, Training};
use crate::tensor::{Tensor, autocast_dtype};

/// Training and evaluation modes of the model, on which a program depends.
pub(crate) struct ProgramKey<'e> {
    switches: Vec<&'e Training>,
}

impl<'e> ProgramKey<'e> {
    pub fn of(module: &'e dyn Module) -> ProgramKey<'e> {
        let inside = module.named_modules().into_iter().map(|(_, module)| module);
        let fields = std::iter::once(module).chain(inside).flat_map(|module| module.fields());
        let switch = |(_, field)| match field {
            Field::Training(switch) => Some(switch),
            _ => None,
        };
        ProgramKey { switches: fields.filter_map(switch).collect() }
    }

    /// Key of a batch like this one and these parameters.
    pub fn number(&self, parameters: &[Tensor], batch: &Batch, simplified: bool) -> u64 {
        let mut sum = Fnv::new();
        for tensor in [&batch.x, &batch.y] {
            sum.take(format!("{} {}", tensor.dtype(), tensor.shape()).as_bytes());
        }
        parameters.iter().for_each(|p| sum.take(&[u8::from(p.requires_grad())]));
        self.switches.iter().for_each(|switch| sum.take(&[u8::from(switch.is_on())]));
        // These may differ when a run resumes.
        sum.take(&[u8::from(simplified)]);
        sum.take(format!("{:?}", autocast_dtype()).as_bytes());
        sum.0
    }
}
