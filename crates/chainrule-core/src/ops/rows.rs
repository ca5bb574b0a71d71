//! The rows of the table as they are built.
//!
//! Samples and wrong rules serve checks alone, and names in Python the Python package. If the
//! features `samples` and `bindings` are off, a row is its entry without them: the compiler then
//! makes no code of them, and the file of an op need not know.

use super::{Entry, Mistake, Sample};
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::op::{Grads, Op, Saved, Wanted};

const SAMPLES: bool = cfg!(any(test, feature = "samples"));
const BINDINGS: bool = cfg!(any(test, feature = "bindings"));

/// The row of an entry; `listed` are its mistakes by name alone.
pub(super) const fn row(entry: Entry, listed: &'static [Mistake]) -> Entry {
    let entry =
        if SAMPLES { entry } else { Entry { samples: no_samples, mistakes: listed, ..entry } };
    if BINDINGS { entry } else { Entry { python: &[], ..entry } }
}

/// The mistakes of an entry by name alone, which is what the reference page shows.
pub(super) const fn listed<const N: usize>(mistakes: &[Mistake]) -> [Mistake; N] {
    const NONE: Mistake = Mistake { name: "", what: "", rule: right };
    let mut out = [NONE; N];
    let mut i = 0;
    while i < N {
        out[i].name = mistakes[i].name;
        out[i].what = mistakes[i].what;
        i += 1;
    }
    out
}

fn no_samples(_: &mut Generator) -> Vec<Sample> {
    Vec::new()
}

/// The rule of the op.
fn right(op: &dyn Op, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
    op.vjp(at, cotangent, wanted)
}
