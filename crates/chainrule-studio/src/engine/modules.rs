//! The modules that the places of a tape belong to, from the calls that made them.

use std::collections::HashMap;

use chainrule_core::tensor::node::Source;

use super::session::Place;

/// A call of a module: its name, and the numbers on the tape before and behind.
type Call = (String, u64, u64);

/// Gives each operation the modules in whose calls it was made, outer ones first. A parameter or a
/// constant belongs to the innermost module that holds all its uses. Several calls of a module
/// within one call of another are numbered.
pub fn sort(places: &mut [Place], calls: &[Call]) {
    let mut calls: Vec<&Call> = calls.iter().collect();
    calls.sort_by_key(|(_, from, to)| (*from, std::cmp::Reverse(*to)));
    let open = around(places, &calls);
    let names = names(&open, &calls);
    for (place, open) in places.iter_mut().zip(&open) {
        place.module = open.iter().map(|call| names[call].clone()).collect();
    }
    let mut homes: HashMap<usize, Vec<String>> = HashMap::new();
    for place in places.iter() {
        for &input in &place.inputs {
            if matches!(places[input].source, Source::Node(_)) {
                continue;
            }
            let home = homes.entry(input).or_insert_with(|| place.module.clone());
            let same = home.iter().zip(&place.module).take_while(|(a, b)| a == b).count();
            home.truncate(same);
        }
    }
    for (place, home) in homes {
        places[place].module = home;
    }
}

/// The calls in which each operation was made, of calls in the order of their beginnings.
fn around(places: &[Place], calls: &[&Call]) -> Vec<Vec<usize>> {
    let mut next = 0;
    let mut open: Vec<usize> = Vec::new();
    let of = |place: &Place| {
        let Source::Node(node) = &place.source else { return Vec::new() };
        while let Some((_, from, _)) = calls.get(next).filter(|call| call.1 <= node.number) {
            open.retain(|&call| calls[call].2 > *from);
            open.push(next);
            next += 1;
        }
        open.retain(|&call| calls[call].2 > node.number);
        open.clone()
    };
    // Places are in the order of their numbers.
    places.iter().map(of).collect()
}

/// The name of each call that made something, within the one around it.
fn names(open: &[Vec<usize>], calls: &[&Call]) -> HashMap<usize, String> {
    let mut inner: HashMap<(Option<usize>, &str), Vec<usize>> = HashMap::new();
    for open in open {
        let outer = std::iter::once(None).chain(open.iter().copied().map(Some));
        for (outer, &call) in outer.zip(open) {
            let name = within(outer.map(|outer| calls[outer].0.as_str()), &calls[call].0);
            let alike = inner.entry((outer, name)).or_default();
            if !alike.contains(&call) {
                alike.push(call);
            }
        }
    }
    let numbered = inner.into_iter().flat_map(|((_, name), alike)| {
        let several = alike.len() > 1;
        alike.into_iter().enumerate().map(move |(i, call)| {
            (call, if several { format!("{name} {}", i + 1) } else { name.to_owned() })
        })
    });
    numbered.collect()
}

/// The name of a module as the module around it has it.
fn within<'a>(outer: Option<&str>, name: &'a str) -> &'a str {
    outer.and_then(|outer| name.strip_prefix(outer)?.strip_prefix('.')).unwrap_or(name)
}
