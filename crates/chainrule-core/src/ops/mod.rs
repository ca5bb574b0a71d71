//! The op table: one file per op, in families, and this list of all of them.
//!
//! A file holds everything there is to know of its op: the `impl Tensor` method and its `try_`
//! twin, shape and dtype inference, the kernel, what backward needs, the reverse rule and the
//! forward rule (written independently), its behaviour at kinks, sample inputs, and the classic
//! wrong versions of its backward rule. From the table come the reference page, the checks that
//! every op goes through, and the catalogue of mistakes.
//!
//! To add an op: copy the nearest file of the family, change it, and add its `mod` line to the
//! family's `mod.rs`. The tests generated from the table then check it.

/// The table of a family and its ids, from the names of its ops. `build.rs` calls it with every
/// module of the family's `mod.rs` whose file has an `ENTRY`; the `mod` lines themselves stand in
/// the source, where rustfmt follows them.
macro_rules! family {
    ($family:ident: $($(#[$meta:meta])* $op:ident)*) => {
        pub(super) const TABLE: &[&super::Entry] = &[$($(#[$meta])* {
            const ENTRY: super::Entry = $op::ENTRY;
            const LISTED: [super::Mistake; ENTRY.mistakes.len()] =
                super::rows::listed(ENTRY.mistakes);
            &const { super::rows::row(ENTRY, &LISTED) }
        }),*];

        /// The places in the table.
        #[allow(non_camel_case_types, reason = "the names are those of the files")]
        enum Places { $($(#[$meta])* $op),* }

        #[allow(
            missing_docs,
            non_upper_case_globals,
            dead_code,
            reason = "the names are those of the files"
        )]
        impl super::OpId {
            $($(#[$meta])*
            pub const $op: super::OpId =
                super::OpId { family: super::Family::$family, place: Places::$op as u8 };)*
        }
    };
}

mod binary;
#[doc(hidden)]
pub mod binding;
mod conv;
mod create;
mod fused;
#[allow(missing_docs, reason = "for the layers above alone")]
mod id;
mod index;
mod linalg;
#[doc(hidden)]
pub mod make;
mod prelude;
mod reduce;
mod rows;
mod shape;
#[doc(hidden)]
pub mod twins;
mod unary;

#[doc(hidden)]
pub use binary::add_values;
pub use conv::{AvgPool, Conv, ConvTranspose, Interpolation, MaxPool, Padding};
pub use fused::{
    Attention, Bce, BceWithLogits, CosineEmbedding, CrossEntropy, HingeEmbedding, Huber, KlDiv,
    NllLoss, Reduction, SmoothL1,
};
#[doc(hidden)]
pub use id::{Name, OpId};
pub use index::index::Index;
pub use reduce::recurrence::Recurrence;
#[doc(hidden)]
pub use reduce::sum::sum_to;
pub use shape::meshgrid::Indexing;
pub use shape::pad::PadMode;
pub use shape::slice::Slice;
pub(crate) use shape::slice::{SliceOp, join};

use std::rc::Rc;

use self::binding::Binding;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::op::{Grads, Op, Saved, Wanted};

/// One row of the op table.
pub struct Entry {
    /// The op's name, as errors and listings use it.
    pub name: &'static str,
    /// The family, which is the folder of its file.
    pub family: Family,
    /// A call of the op.
    pub signature: &'static str,
    /// Its names in the Python package; none unless that is built (feature `bindings`).
    #[doc(hidden)]
    pub python: &'static [Binding],
    /// The value as a formula.
    pub formula: &'static str,
    /// The reverse rule as a formula; empty for an op without gradients.
    pub gradient: &'static str,
    /// The gradient at points without derivative, and the value at the edge of the domain.
    pub at_kinks: &'static str,
    /// Inputs to check it on; the first argument draws the random ones. None unless checks are
    /// built (feature `samples`).
    #[doc(hidden)]
    pub samples: fn(&mut Generator) -> Vec<Sample>,
    /// The classic wrong versions of its reverse rule; without checks, their names with the right
    /// rule.
    #[doc(hidden)]
    pub mistakes: &'static [Mistake],
}

impl Entry {
    /// Whether the op is one of this row.
    #[doc(hidden)]
    pub fn is_of(&self, op: &dyn Op) -> bool {
        op.entry().is_some_and(|own| std::ptr::eq(own, self))
    }

    /// The classic wrong versions of the reverse rule: each with its name and what was done wrong.
    pub fn classic_mistakes(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.mistakes.iter().map(|m| (m.name, m.what))
    }
}

/// The families of ops, which are the folders under `ops/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// One tensor in, elementwise.
    Unary,
    /// Two or three tensors in, elementwise with broadcasting.
    Binary,
    /// Axes become one element.
    Reduce,
    /// Products.
    Linalg,
    /// Elements keep their values and move.
    Shape,
    /// Elements are picked by index.
    Index,
    /// Convolution, pooling, resampling.
    Conv,
    /// Several steps as one kernel, with a definition in primitive ops.
    Fused,
}

impl Family {
    /// All of them, in the order of the table.
    pub const ALL: [Family; 8] = [
        Family::Unary,
        Family::Binary,
        Family::Reduce,
        Family::Linalg,
        Family::Shape,
        Family::Index,
        Family::Conv,
        Family::Fused,
    ];
}

/// A call of an op on its inputs.
type SampleCall = dyn Fn(&[Tensor]) -> Result<Tensor>;

/// Inputs of an op and the call on them, in f64.
#[doc(hidden)]
pub struct Sample {
    /// Note on its particular.
    pub note: &'static str,
    pub inputs: Vec<Tensor>,
    pub call: Rc<SampleCall>,
    /// Whether it lies on a kink: then differences do not apply and only the documented value is
    /// checked, by the op's own test.
    pub kink: bool,
    /// Whether second derivatives exist there.
    pub twice: bool,
    /// Why the gradient is by design not the derivative, if so. Forward mode must leave out the
    /// same.
    pub by_design: Option<&'static str>,
    /// Why it is marked as a kink though the function is smooth there, if so.
    pub smooth: Option<&'static str>,
}

impl Sample {
    /// A sample at a point where the op is smooth.
    pub fn new(
        note: &'static str,
        inputs: Vec<Tensor>,
        call: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    ) -> Sample {
        Sample::smooth(note, inputs, Rc::new(call))
    }

    fn smooth(note: &'static str, inputs: Vec<Tensor>, call: Rc<SampleCall>) -> Sample {
        Sample { note, inputs, call, kink: false, twice: true, by_design: None, smooth: None }
    }

    /// The same, at a kink.
    pub fn at_kink(mut self) -> Sample {
        self.kink = true;
        self
    }

    /// The same, where the gradient is by design not the derivative.
    pub fn by_design(mut self, why: &'static str) -> Sample {
        self.by_design = Some(why);
        self
    }

    /// The same, marked as a kink though the function is smooth there.
    pub fn smooth_at_kink(mut self, why: &'static str) -> Sample {
        self.kink = true;
        self.smooth = Some(why);
        self
    }

    /// The inputs that gradients can be asked of.
    pub fn floats(&self) -> Vec<Tensor> {
        let float = |x: &&Tensor| x.dtype().is_float();
        self.inputs.iter().filter(float).cloned().collect()
    }

    /// The call with other float inputs; integers and bools stay.
    pub fn try_on(&self, floats: &[Tensor]) -> Result<Tensor> {
        let mut floats = floats.iter();
        let pick = |x: &Tensor| match x.dtype().is_float() {
            true => floats.next().expect("one for each float input").clone(),
            false => x.clone(),
        };
        let inputs: Vec<Tensor> = self.inputs.iter().map(pick).collect();
        (self.call)(&inputs)
    }
}

/// A wrong reverse rule that people write, to be planted in a replay of the backward pass.
#[doc(hidden)]
pub struct Mistake {
    /// A short name: "sign", "missing factor", "transposed operand".
    pub name: &'static str,
    /// The mistake in words: the wrong step, and the right one.
    pub what: &'static str,
    /// The wrong rule.
    pub rule: fn(&dyn Op, &Saved<'_>, &Tensor, Wanted) -> Result<Grads>,
}

/// The rows of each family, in the order of [`Family::ALL`].
static FAMILIES: [&[&Entry]; 8] = [
    unary::TABLE,
    binary::TABLE,
    reduce::TABLE,
    linalg::TABLE,
    shape::TABLE,
    index::TABLE,
    conv::TABLE,
    fused::TABLE,
];

/// All ops, in the order of the families.
pub fn table() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.into_iter().flatten().copied()
}

/// The name and the row of an op whose file has its name, in its `impl Op`.
macro_rules! row {
    ($op:ident) => {
        fn name(&self) -> &'static str {
            stringify!($op)
        }

        fn id(&self) -> Option<$crate::ops::OpId> {
            Some($crate::ops::OpId::$op)
        }
    };
}
pub(crate) use row;

/// As [`row!`], of an elementwise op: with its kernel, which is its `impl MapKernel` or its
/// `impl Function`, and the function that infers its result. With `scaled` the reverse rule is its
/// `impl Slope` at the input.
macro_rules! elementwise {
    ($op:ident, $infer:path, $scaled:path) => {
        $crate::ops::elementwise!($op, $infer);

        fn vjp(
            &self,
            at: &$crate::tensor::op::Saved<'_>,
            cotangent: &$crate::tensor::Tensor,
            _: $crate::tensor::op::Wanted,
        ) -> $crate::error::Result<$crate::tensor::op::Grads> {
            Ok(smallvec::smallvec![Some($scaled(*self, &at.input(0), cotangent)?)])
        }
    };
    ($op:ident, $infer:path) => {
        $crate::ops::row!($op);

        fn infer(
            &self,
            inputs: &[$crate::tensor::value::Meta],
        ) -> $crate::error::Result<$crate::tensor::value::Meta> {
            $infer(self.name(), inputs)
        }

        fn kernel(&self) -> $crate::tensor::op::Kernel<'_> {
            $crate::tensor::op::Kernel::Map(self)
        }
    };
}
pub(crate) use elementwise;

/// Defines methods of [`Tensor`] in pairs: one that panics with the error's text at the caller's
/// line, and a `try_` twin that returns the error.
macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident / $try_name:ident $(<$g:ident : $bound:path>)? (&$this:ident $(, $arg:ident : $ty:ty)* $(,)?) -> $ret:ty $body:block
    )*) => {
        impl $crate::tensor::Tensor {$(
            $(#[$doc])*
            #[track_caller]
            #[inline]
            pub fn $name $(<$g: $bound>)? (&$this $(, $arg: $ty)*) -> $ret {
                match $this.$try_name($($arg),*) {
                    Ok(out) => out,
                    Err(error) => $crate::error::raise(error),
                }
            }

            #[doc = concat!("Like [`Tensor::", stringify!($name), "`], but returns the error instead of panicking.")]
            #[track_caller]
            pub fn $try_name $(<$g: $bound>)? (&$this $(, $arg: $ty)*) -> $crate::error::Result<$ret> $body
        )*}
    };
}
pub(crate) use methods;
