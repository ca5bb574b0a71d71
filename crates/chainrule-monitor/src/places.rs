//! Positions of names in a list.

use std::collections::HashMap;

/// The numbers of names. Names usually come in one order or its reverse, so the neighbours of the
/// last one found are compared before anything is hashed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    last: usize,
}

impl Places {
    /// The number of a name, if it has one.
    pub fn find(&mut self, name: &str) -> Option<usize> {
        let next = if self.last + 1 < self.names.len() { self.last + 1 } else { 0 };
        let near = [next, self.last, self.last.wrapping_sub(1)];
        let is_it = |at: &usize| self.names.get(*at).is_some_and(|known| known == name);
        let at = near.into_iter().find(is_it).or_else(|| self.numbers.get(name).copied())?;
        self.last = at;
        Some(at)
    }

    /// The number of a name, which is the next one if it has none.
    pub fn add(&mut self, name: &str) -> usize {
        if let Some(at) = self.find(name) {
            return at;
        }
        self.last = self.names.len();
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.last);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_order() {
        let mut places = Places::default();
        let names: Vec<String> = (0..20).map(|i| format!("layer {i}")).collect();
        assert_eq!(places.find("layer 0"), None);
        for (at, name) in names.iter().enumerate() {
            assert_eq!((places.add(name), places.add(name)), (at, at));
        }
        for step in [1, 3, 7, 19] {
            for i in 0..40 {
                let at = i * step % 20;
                assert_eq!(places.find(&names[at]), Some(at));
            }
        }
        assert_eq!((places.find("layer 20"), places.find("")), (None, None));
    }
}
