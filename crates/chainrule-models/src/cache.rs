//! The cache of keys and values.

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;

/// Keys and values of all earlier positions, per layer, so that a new token costs one position
/// instead of the whole text. Start a new one for each text; values have no gradients.
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
    len: usize,
}

impl KvCache {
    /// An empty cache.
    pub fn new() -> KvCache {
        KvCache::default()
    }

    /// The number of positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends keys and values of new positions, `[batch, heads, time, width]`, to those of a
    /// layer, and returns all.
    pub(crate) fn extend(
        &mut self,
        layer: usize,
        k: Tensor,
        v: Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let (k, v) = (k.detach(), v.detach());
        let all = match self.layers.get(layer) {
            None => (k, v),
            Some((keys, values)) => {
                (Tensor::try_cat(&[keys, &k], 2)?, Tensor::try_cat(&[values, &v], 2)?)
            }
        };
        match self.layers.get_mut(layer) {
            Some(place) => *place = all.clone(),
            None => self.layers.push(all.clone()),
        }
        Ok(all)
    }

    /// Advances by positions that all layers have appended.
    pub(crate) fn advance(&mut self, by: usize) {
        self.len += by;
    }
}
