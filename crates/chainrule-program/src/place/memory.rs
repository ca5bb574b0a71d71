//! Places in memory for values that are not all wanted at the same time.

/// Something that needs room from one step to another, both included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub size: usize,
    pub from: usize,
    pub to: usize,
}

/// Layout of the arena.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Offset of each block.
    pub starts: Vec<usize>,
    /// Size of the arena.
    pub size: usize,
    /// Largest sum of bytes live at one step: no layout needs less.
    pub lower_bound: usize,
}

/// Lays out the largest first, each at the lowest place that is free all the while; of those of one
/// size the longest-lived first.
pub(super) fn lay_out(needs: &[Need]) -> Layout {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    let key = |&i: &usize| {
        let Need { size, from, to } = needs[i];
        (std::cmp::Reverse((size, to - from)), from, i)
    };
    order.sort_by_key(key);
    let mut starts = vec![0; needs.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut size = 0;
    for i in order {
        let need = needs[i];
        if need.size == 0 {
            continue;
        }
        let meets = |&&j: &&usize| needs[j].from <= need.to && need.from <= needs[j].to;
        let mut taken: Vec<(usize, usize)> =
            placed.iter().filter(meets).map(|&j| (starts[j], starts[j] + needs[j].size)).collect();
        taken.sort_unstable();
        let mut start = 0;
        for (first, end) in taken {
            if first >= start + need.size {
                break;
            }
            start = start.max(end);
        }
        starts[i] = start;
        size = size.max(start + need.size);
        placed.push(i);
    }
    Layout { starts, size, lower_bound: most_at_once(needs) }
}

fn most_at_once(needs: &[Need]) -> usize {
    let steps = needs.iter().map(|n| n.to + 1).max().unwrap_or(0);
    let mut change = vec![0isize; steps + 1];
    for need in needs {
        change[need.from] += need.size as isize;
        change[need.to + 1] -= need.size as isize;
    }
    let sums = change.into_iter().scan(0, |sum, change| {
        *sum += change;
        Some(*sum)
    });
    sums.max().unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::Generator;

    #[test]
    fn nothing_overlaps_and_little_is_wasted() {
        let g = &mut Generator::manual_seed(3);
        for _ in 0..200 {
            let mut below = |n: u32| (g.random_u32() % n) as usize;
            let needs: Vec<Need> = (0..1 + below(40))
                .map(|_| {
                    let from = below(50);
                    Need { size: below(9) * 64, from, to: from + below(12) }
                })
                .collect();
            let layout = lay_out(&needs);
            assert!(layout.lower_bound <= layout.size);
            for (i, a) in needs.iter().enumerate() {
                for (j, b) in needs.iter().enumerate().skip(i + 1) {
                    let together = a.from <= b.to && b.from <= a.to;
                    let (s, t) = (layout.starts[i], layout.starts[j]);
                    let apart = s + a.size <= t || t + b.size <= s || a.size * b.size == 0;
                    assert!(!together || apart, "{a:?} at {s}, {b:?} at {t}");
                }
            }
        }
    }

    #[test]
    fn a_chain_needs_two() {
        let needs: Vec<Need> = (0..10).map(|i| Need { size: 100, from: i, to: i + 1 }).collect();
        let layout = lay_out(&needs);
        assert_eq!((layout.size, layout.lower_bound), (200, 200));
        assert_eq!(lay_out(&[]).size, 0);
    }
}
