//! The contents of a handle: its tensor, the memory that it shows, and the parts that few have.

use std::sync::Arc;

use chainrule::Tensor;
use pyo3::prelude::*;

use crate::alias::{Alias, Past, Shows};
use crate::tensor::PyTensor;
use crate::{places, session};

/// The contents of a handle: see [`crate::alias`]. Most hold a tensor only, and every op makes one.
pub struct Inner {
    pub tensor: Tensor,
    /// The memory it shows, if not its own.
    pub alias: Option<Box<Alias>>,
    pub rest: Option<Box<Rest>>,
}

/// The parts that few handles have.
#[derive(Default)]
pub struct Rest {
    /// The handle of its gradient, once somebody asked for it.
    pub grad: Option<Py<PyTensor>>,
    /// Whether its gradient is kept, though it is no leaf.
    pub retains: bool,
    /// The trace in which it was made.
    pub born: Option<Arc<()>>,
    /// Others that show its memory.
    pub outside: Option<Outside>,
    /// Whether its elements may lie in another order in PyTorch.
    pub loose: bool,
    /// Memory that it had, which views still show.
    pub past: Vec<Past>,
}

impl Inner {
    #[inline]
    pub fn new(tensor: Tensor, alias: Option<Box<Alias>>) -> Inner {
        places::note(&tensor);
        let rest = session::current()
            .map(|session| Box::new(Rest { born: Some(session), ..Rest::default() }));
        Inner { tensor, alias, rest }
    }

    pub fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }
}

/// Arrays of NumPy that show a tensor, or whose memory it has.
#[derive(Default)]
pub struct Outside {
    /// Those that `numpy()` made.
    pub shows: Shows,
    /// The array that the memory came from.
    pub array: Option<Py<PyAny>>,
}
