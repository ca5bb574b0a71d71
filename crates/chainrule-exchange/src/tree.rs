//! The order in which the parts of a sum are added.

use std::ops::Range;

/// A binary tree over a fixed number of parts.
///
/// Its leaves are the parts in order; the node of level `l` and index `i` is the sum of the parts
/// from `i * 2^l` up to `(i + 1) * 2^l` or the last, left half plus right half. So the total is one
/// formula of the parts, whoever evaluates it.
///
/// ```
/// use chainrule_exchange::SumTree;
/// let tree = SumTree::new(5); // ((a + b) + (c + d)) + e
/// let parts = ["a", "b", "c", "d", "e"].map(String::from);
/// let total = tree.add_up(0..5, &parts, |l, r| format!("({l}{r})"));
/// assert_eq!(total.last().unwrap().1, "(((ab)(cd))e)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumTree {
    parts: usize,
}

/// A node of a [`SumTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumNode {
    /// Height above the leaves.
    pub level: u32,
    /// Index among the nodes of its level.
    pub place: usize,
}

impl SumTree {
    /// A tree over this many parts.
    pub fn new(parts: usize) -> SumTree {
        SumTree { parts }
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The parts of a rank: a consecutive, balanced range.
    pub fn share(&self, rank: usize, size: usize) -> Range<usize> {
        let bound =
            |rank: usize| (self.parts as u128 * rank as u128 / size.max(1) as u128) as usize;
        bound(rank)..bound(rank + 1)
    }

    /// The fewest nodes that cover exactly these parts, in order.
    pub fn nodes(&self, parts: Range<usize>) -> Vec<SumNode> {
        let mut nodes = Vec::new();
        let (mut at, end) = (parts.start, parts.end.min(self.parts));
        while at < end {
            let mut level = 0;
            while self.covers(at, level + 1, end) {
                level += 1;
            }
            nodes.push(SumNode { level, place: at >> level });
            at += 1 << level;
        }
        nodes
    }

    /// Whether the node that begins at `at` on this level ends at `end` or before.
    fn covers(&self, at: usize, level: u32, end: usize) -> bool {
        // The level above the root's would repeat the root.
        if level > self.height() || !at.is_multiple_of(1 << level) {
            return false;
        }
        (at + (1usize << level)).min(self.parts) <= end
    }

    fn height(&self) -> u32 {
        self.parts.max(1).next_power_of_two().trailing_zeros()
    }

    /// Values of [`SumTree::nodes`] of a range, from the values of its parts.
    pub fn add_up<T: Clone>(
        &self,
        range: Range<usize>,
        parts: &[T],
        mut add: impl FnMut(T, T) -> T,
    ) -> Vec<(SumNode, T)> {
        let mut stack = Stack::new(*self, range.clone());
        for part in parts {
            stack.push(part.clone(), &mut add);
        }
        stack.nodes
    }

    /// The total, from the values of the nodes of all ranks in order.
    pub fn total<T>(
        &self,
        nodes: impl IntoIterator<Item = (SumNode, T)>,
        mut add: impl FnMut(T, T) -> T,
    ) -> Option<T> {
        let mut stack = Stack::new(*self, 0..self.parts);
        for (node, value) in nodes {
            stack.put(node, value, &mut add);
        }
        stack.nodes.pop().map(|(_, value)| value)
    }
}

/// Values of nodes from left to right, added as soon as both halves are known: of `n` parts at most
/// log n values are held.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    tree: SumTree,
    end: usize,
    next: usize,
    pub nodes: Vec<(SumNode, T)>,
}

impl<T> Stack<T> {
    pub fn new(tree: SumTree, range: Range<usize>) -> Stack<T> {
        Stack { tree, end: range.end, next: range.start, nodes: Vec::new() }
    }

    /// The value of the next part.
    pub fn push(&mut self, value: T, add: &mut impl FnMut(T, T) -> T) {
        let node = SumNode { level: 0, place: self.next };
        self.put(node, value, add);
    }

    /// The value of the next node.
    pub fn put(&mut self, mut node: SumNode, mut value: T, add: &mut impl FnMut(T, T) -> T) {
        self.next = ((node.place + 1) << node.level).min(self.tree.parts);
        loop {
            let begin = node.place << node.level;
            if node.place % 2 == 1
                && let Some((left, _)) = self.nodes.last()
                && (left.level, left.place + 1) == (node.level, node.place)
                && let Some((_, left)) = self.nodes.pop()
            {
                value = add(left, value);
            } else if !(node.place.is_multiple_of(2)
                && (node.place + 1) << node.level >= self.tree.parts
                && self.tree.covers(begin, node.level + 1, self.end))
            {
                // A right half without its left stays, as does a left half whose right is to come;
                // a node without a right half equals its left one.
                break;
            }
            node = SumNode { level: node.level + 1, place: node.place / 2 };
        }
        self.nodes.push((node, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(l: String, r: String) -> String {
        format!("({l}+{r})")
    }

    fn parts(n: usize) -> Vec<String> {
        (0..n).map(|i| i.to_string()).collect()
    }

    /// The formula by its definition, top down.
    fn defined(from: usize, level: u32, n: usize) -> String {
        if level == 0 {
            return from.to_string();
        }
        let half = 1 << (level - 1);
        let left = defined(from, level - 1, n);
        if from + half >= n { left } else { add(left, defined(from + half, level - 1, n)) }
    }

    #[test]
    fn the_total_is_one_formula_whatever_the_ranks() {
        for n in 1..40 {
            let (tree, all) = (SumTree::new(n), parts(n));
            let wanted = defined(0, tree.height(), n);
            for size in 1..=n {
                let nodes = (0..size).flat_map(|rank| {
                    let share = tree.share(rank, size);
                    tree.add_up(share.clone(), &all[share], add)
                });
                assert_eq!(tree.total(nodes, add).unwrap(), wanted, "{n} parts, {size} ranks");
            }
        }
    }

    #[test]
    fn nodes_are_those_that_adding_up_ends_with() {
        for n in 1..40 {
            let (tree, all) = (SumTree::new(n), parts(n));
            for begin in 0..n {
                for end in begin + 1..=n {
                    let sums = tree.add_up(begin..end, &all[begin..end], add);
                    let nodes: Vec<SumNode> = sums.iter().map(|s| s.0).collect();
                    assert_eq!(nodes, tree.nodes(begin..end), "{begin}..{end} of {n}");
                    assert!(nodes.len() <= 2 * tree.height().max(1) as usize);
                }
            }
        }
    }

    #[test]
    fn shares_are_all_parts_in_order() {
        for n in 0..30 {
            for size in 1..9 {
                let tree = SumTree::new(n);
                let shares: Vec<_> = (0..size).map(|rank| tree.share(rank, size)).collect();
                assert_eq!(shares[0].start, 0);
                assert_eq!(shares[size - 1].end, n);
                assert!(shares.windows(2).all(|s| s[0].end == s[1].start));
                assert!(shares.iter().all(|s| s.len().abs_diff(n / size) <= 1));
            }
        }
    }
}
