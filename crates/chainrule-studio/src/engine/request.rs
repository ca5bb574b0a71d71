//! The arguments of a request, and things that are kept between requests by number.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::language::fault::{Fault, Outcome};

/// The most sessions, planted mistakes and runs of training that are kept; the oldest are dropped.
const KEPT: u64 = 12;

/// Things that the page names by numbers.
pub struct Kept<T> {
    kind: &'static str,
    pub all: HashMap<u64, T>,
    next: u64,
}

impl<T> Kept<T> {
    pub fn new(kind: &'static str) -> Kept<T> {
        Kept { kind, all: HashMap::new(), next: 0 }
    }

    /// Keeps a thing; its number.
    pub fn keep(&mut self, thing: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.all.insert(number, thing);
        self.all.retain(|&kept, _| kept + KEPT > number);
        number
    }

    pub fn get(&mut self, number: u64) -> Outcome<&mut T> {
        let kind = self.kind;
        let gone = || Fault::request(format!("{kind} {number} is gone; begin it again"));
        self.all.get_mut(&number).ok_or_else(gone)
    }
}

/// The arguments of a call.
pub struct Args<'a>(pub &'a Map<String, Value>);

impl Args<'_> {
    pub fn text(&self, name: &str) -> Outcome<&str> {
        let missing = || Fault::request(format!("the argument `{name}` must be a text"));
        self.0.get(name).and_then(Value::as_str).ok_or_else(missing)
    }

    pub fn maybe_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub fn integer(&self, name: &str) -> Outcome<u64> {
        let missing = || Fault::request(format!("the argument `{name}` must be a whole number"));
        self.0.get(name).and_then(Value::as_u64).ok_or_else(missing)
    }

    pub fn object(&self, name: &str) -> Outcome<&Map<String, Value>> {
        let missing = || Fault::request(format!("the argument `{name}` must be an object"));
        self.0.get(name).and_then(Value::as_object).ok_or_else(missing)
    }

    pub fn sizes(&self, name: &str) -> Outcome<Vec<usize>> {
        let missing = || Fault::request(format!("the argument `{name}` must be a list of sizes"));
        let list = self.0.get(name).and_then(Value::as_array).ok_or_else(missing)?;
        let sizes = list.iter().map(|n| n.as_u64().map(|n| n as usize));
        sizes.collect::<Option<_>>().ok_or_else(missing)
    }

    pub fn texts(&self, name: &str) -> Outcome<Vec<&str>> {
        let missing = || Fault::request(format!("the argument `{name}` must be a list of texts"));
        let list = self.0.get(name).and_then(Value::as_array).ok_or_else(missing)?;
        list.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(missing)
    }
}

/// The elements of a tensor that come with it.
pub fn most(args: &Args<'_>) -> usize {
    args.integer("most").map_or(chainrule::json::INLINE, |most| most as usize)
}

/// The number of the session that the arguments name.
pub fn session(args: &Args<'_>) -> Outcome<u64> {
    args.integer("session").map_err(|_| {
        Fault::request("a request names its program: source, example, given or session")
    })
}
