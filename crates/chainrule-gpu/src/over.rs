//! New values that overwrite the old ones in memory.

use std::collections::HashMap;

use crate::dialect::Dialect;
use crate::graph::{Graph, ValueId};
use crate::group::Grouped;

/// Cells whose new value may be written over the old one: no kernel reads the old one later, and
/// the kernel that writes reads it at the same places by the same threads, or not at all.
pub(crate) fn overwritten(
    graph: &Graph,
    grouped: &Grouped,
    dialect: Dialect,
) -> Vec<(ValueId, ValueId)> {
    let mut writers: HashMap<ValueId, usize> = HashMap::new();
    let mut last: HashMap<ValueId, usize> = HashMap::new();
    for (i, (kernel, emitted)) in grouped.kernels.iter().enumerate() {
        writers.extend(kernel.members.iter().map(|&v| (v, i)));
        last.extend(emitted.reads.iter().map(|&v| (v, i)));
    }
    let pairs: Vec<(ValueId, ValueId)> =
        graph.states.iter().filter_map(|&(r, w)| Some((r, w?))).collect();
    let fits = |&&(read, write): &&(ValueId, ValueId)| {
        let (old, new) = (&graph.values[read], &graph.values[write]);
        let Some(&writer) = writers.get(&write) else { return false };
        let once = |v: ValueId| pairs.iter().filter(|p| p.1 == v).count();
        let given_back = graph.results.contains(&read) || graph.results.contains(&write);
        if given_back || once(write) != 1 || once(read) != 0 || old.dtype != new.dtype {
            return false;
        }
        match last.get(&read) {
            Some(&reader) if reader > writer => false,
            // WebGPU does not accept one memory twice in one kernel.
            Some(&reader) if reader == writer => {
                let touched = &grouped.kernels[writer].1.touched;
                let mut places = touched.iter().filter(|t| t.0 == read || t.0 == write);
                let Some((_, first)) = places.next() else { return false };
                dialect == Dialect::Cuda && places.all(|(_, place)| place == first)
            }
            _ => true,
        }
    };
    pairs.iter().filter(fits).copied().collect()
}
