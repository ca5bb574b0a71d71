//! Nodes and constants that nothing needs.

use std::collections::HashSet;

use crate::proto::GraphProto;

/// Leaves out what no output needs.
pub(crate) fn unused(graph: &mut GraphProto) {
    let mut needed: HashSet<String> = graph.output.iter().filter_map(|o| o.name.clone()).collect();
    let mut keep = vec![false; graph.node.len()];
    for (node, keep) in graph.node.iter().zip(&mut keep).rev() {
        *keep = node.output.iter().any(|o| needed.contains(o));
        if *keep {
            needed.extend(node.input.iter().cloned());
        }
    }
    let mut keep = keep.into_iter();
    graph.node.retain(|_| keep.next().unwrap_or(true));
    needed.extend(graph.input.iter().filter_map(|i| i.name.clone()));
    graph.initializer.retain(|t| t.name.as_ref().is_some_and(|n| needed.contains(n)));
}
