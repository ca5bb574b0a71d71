//! Parts of a list that repeat, such as the layers of a model.

use std::ops::Range;

/// A stretch of a list, and how many times it comes again right after itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub range: Range<usize>,
    pub again: usize,
}

/// The smallest saving, in lines, that is worth a summary.
const LEAST: usize = 6;

/// The list as stretches that do not repeat, and first copies of those that do. The split that
/// leaves out more lines is taken.
pub(super) fn stretches<T: PartialEq>(items: &[T]) -> Vec<Stretch> {
    let mut out = Vec::new();
    let (mut i, mut plain) = (0, 0);
    while i < items.len() {
        let best = (1..=(items.len() - i) / 2).map(|p| (p, again(items, i, p)));
        let best = best.max_by_key(|(p, again)| (p * again, std::cmp::Reverse(*p)));
        // A longer one may begin a little later.
        match best.filter(|(p, again)| p * again >= LEAST && !later_is_better(items, i, p * again))
        {
            Some((p, again)) => {
                if plain < i {
                    out.push(Stretch { range: plain..i, again: 0 });
                }
                out.push(Stretch { range: i..i + p, again });
                i += p * (again + 1);
                plain = i;
            }
            None => i += 1,
        }
    }
    if plain < i {
        out.push(Stretch { range: plain..i, again: 0 });
    }
    out
}

/// Number of further copies of the `p` items from `i` on.
fn again<T: PartialEq>(items: &[T], i: usize, p: usize) -> usize {
    let same = (i + p..items.len()).take_while(|k| items[*k] == items[k - p]).count();
    same / p
}

/// Whether a repetition that begins within the next few lines saves more.
fn later_is_better<T: PartialEq>(items: &[T], i: usize, saved: usize) -> bool {
    (i + 1..items.len().min(i + 12))
        .any(|k| (1..=(items.len() - k) / 2).any(|p| p * again(items, k, p) > saved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, usize)> {
        let letters: Vec<char> = text.chars().collect();
        let out = stretches(&letters).into_iter();
        out.map(|s| (letters[s.range].iter().collect(), s.again)).collect()
    }

    #[test]
    fn repeated_parts_are_found() {
        let parts = read("xyabcabcabcabcz");
        assert_eq!(parts, [("xy".into(), 0), ("abc".into(), 3), ("z".into(), 0)]);
        assert_eq!(read("abcdef"), [("abcdef".into(), 0)]);
        assert_eq!(read("aaaaaaaaaa"), [("a".into(), 9)]);
        assert_eq!(read("ababc"), [("ababc".into(), 0)], "too little to be worth it");
        assert_eq!(read(""), []);
        // Lines before the layers do not hide the repetition.
        assert_eq!(read("aaabcdaabcdaabcd"), [("a".into(), 0), ("aabcd".into(), 2)]);
    }
}
