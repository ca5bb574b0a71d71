//! Copies of cells for products, which read each element many times.

use crate::graph::{Graph, Step, Value};

/// Lets a copy of each cell be read in its place. It is stored, so that a block can keep what it
/// needs of it, where products read it; for others it is no more than the cell.
pub(crate) fn copied(graph: &mut Graph) {
    for i in 0..graph.states.len() {
        let v = graph.states[i].0;
        if graph.values[v].numel() < 2 {
            continue;
        }
        let wanted = format!("{}_copy", graph.values[v].name);
        let (mut name, mut n) = (wanted.clone(), 1);
        while !graph.names.insert(name.clone()) {
            n += 1;
            name = format!("{wanted}_{n}");
        }
        let cell = graph.values.len();
        let Value { dtype, dims, line, .. } = &graph.values[v];
        let (dtype, dims, line) = (*dtype, dims.clone(), line.clone());
        let step = std::mem::replace(&mut graph.values[v].step, Step::Map("Identity", vec![cell]));
        let name = std::mem::replace(&mut graph.values[v].name, name);
        graph.values.push(Value { name, dtype, dims, step, line });
        graph.states[i].0 = cell;
    }
}
