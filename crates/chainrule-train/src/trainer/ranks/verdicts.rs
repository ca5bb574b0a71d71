//! Verdicts on optimised programs. They are part of the training state: a resumed run would compare
//! on other numbers, and might decide otherwise.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// Whether the plain program runs, by key, where decided; the same on all ranks.
#[derive(Clone, Default)]
pub(crate) struct Verdicts(Rc<RefCell<BTreeMap<u64, bool>>>);

impl Verdicts {
    /// Whether the plain program runs, if decided.
    pub fn is_plain(&self, key: u64) -> Option<bool> {
        self.0.borrow().get(&key).copied()
    }

    pub fn extend(&self, more: impl IntoIterator<Item = (u64, bool)>) {
        self.0.borrow_mut().extend(more);
    }

    /// A number per key, 1 if the plain program runs.
    pub fn state_dict(&self) -> StateDict {
        let known = self.0.borrow();
        let row = |(key, plain): (&u64, &bool)| {
            (format!("{key:016x}"), Tensor::scalar(i64::from(*plain)))
        };
        known.iter().map(row).collect()
    }

    /// Loads [`Verdicts::state_dict`].
    pub fn load(&mut self, state: &StateDict) -> Result<()> {
        let mut known = BTreeMap::new();
        for (name, tensor) in state {
            let key = u64::from_str_radix(name, 16).ok().filter(|_| name.len() == 16);
            match (key, &tensor.to_f64_vec()[..]) {
                (Some(key), &[plain]) if plain == 0.0 || plain == 1.0 => {
                    known.insert(key, plain == 1.0);
                }
                _ => {
                    let why = format!("the state's `programs.{name}` is no verdict on a program");
                    return Err(Error::argument("Trainer", why));
                }
            }
        }
        *self.0.borrow_mut() = known;
        Ok(())
    }
}
