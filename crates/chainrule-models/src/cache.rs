//! Keys and values of the positions that were seen.

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;

/// Keys and values of all earlier positions, a pair a layer, so that a new token costs one position
/// and not the whole text again. New and empty for each text; values without gradients.
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

    /// Whether no position was seen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the keys and values of new positions, `[batch, heads, time, width]`, to those of a
    /// layer, and gives all.
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

    /// Counts positions that all layers have taken.
    pub(crate) fn advance(&mut self, by: usize) {
        self.len += by;
    }
}
