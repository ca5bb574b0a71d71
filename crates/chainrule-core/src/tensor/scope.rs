//! Names of the modules that are running on this thread, for the entries of a trace.

use std::cell::RefCell;
use std::sync::Arc;

/// A running module.
struct Level {
    /// Its whole name, joined by dots.
    name: String,
    /// The names of the modules around it and its own, each without the prefix of the one before:
    /// `blocks.0/norm`.
    path: Arc<str>,
}

thread_local! {
    static LEVELS: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
}

/// Enters the module with this name, which is the whole one, joined by dots; it runs until
/// [`leave`] is called.
#[cold]
pub fn enter(name: &str) {
    LEVELS.with_borrow_mut(|levels| {
        let path = match levels.last() {
            None => name.into(),
            Some(outer) => {
                let inner = name.strip_prefix(outer.name.as_str());
                let inner = inner.and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
                format!("{}/{inner}", outer.path).into()
            }
        };
        levels.push(Level { name: name.to_owned(), path });
    });
}

/// Leaves the module that was entered last.
#[cold]
pub fn leave() {
    LEVELS.with_borrow_mut(|levels| levels.pop());
}

/// The whole name of the running module.
pub fn name() -> Option<String> {
    LEVELS.with_borrow(|levels| levels.last().map(|level| level.name.clone()))
}

/// The path of the running module.
pub(crate) fn path() -> Option<Arc<str>> {
    LEVELS.with_borrow(|levels| levels.last().map(|level| level.path.clone()))
}
