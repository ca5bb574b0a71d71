//! Names that reports show for nameless tensors: those of a user's variables, during one call.

use std::cell::RefCell;
use std::collections::HashMap;

use super::node::Source;

thread_local! {
    static NAMES: RefCell<HashMap<u64, String>> = RefCell::default();
}

/// Runs `f`; its reports call nameless tensors by these names, which are keyed by the number of the
/// tensor's [`Source`].
pub fn with_shown_names<R>(names: HashMap<u64, String>, f: impl FnOnce() -> R) -> R {
    struct NamesBefore(HashMap<u64, String>);
    impl Drop for NamesBefore {
        fn drop(&mut self) {
            NAMES.set(std::mem::take(&mut self.0));
        }
    }
    let _before = NamesBefore(NAMES.replace(names));
    f()
}

impl Source {
    /// The name, or else the one that [`with_shown_names`] provides.
    pub fn shown_name(&self) -> Option<String> {
        self.name().or_else(|| NAMES.with_borrow(|names| names.get(&self.number()).cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn reports_name_what_has_no_name() {
        let (w, b) = (Tensor::from([2.0f32]).parameter(), Tensor::from([0.0f32]).parameter());
        b.named("given");
        let loss = (&w.log() + &b).sum_all();
        let names = [(&w, "first.weight"), (&b, "other")];
        let names = names.map(|(t, name)| (t.source().number(), name.to_string()));
        let trace = || loss.try_trace().unwrap().to_string();
        let named = with_shown_names(names.into(), trace);
        assert!(named.contains("first.weight") && named.contains("given"), "{named}");
        assert!(!named.contains("other") && !named.contains("parameter 1"), "{named}");
        assert!(!trace().contains("first.weight") && w.name().is_none());
    }
}
