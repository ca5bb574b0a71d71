//! Update rules, implemented by the options of optimizers, and their type-erased form.
//!
//! A rule's loops are compiled in this crate. The loop over parameters takes [`AnyRule`], so that a
//! program that uses an optimizer compiles neither again.

use std::fmt;

use smallvec::SmallVec;

use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::param::Parameters;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Update rule of an optimizer; its options implement it.
pub trait Rule: Parameters + Clone + fmt::Debug + Default + Send + Sync + 'static {
    /// The optimizer's name, for errors.
    const NAME: &'static str;

    /// The update in NumPy, as a form of [`crate::program`]'s scripts.
    #[doc(hidden)]
    const NUMPY: &'static str;

    /// Operations per element of a parameter.
    #[doc(hidden)]
    const STEPS: u64;

    /// An error for an option out of its range.
    fn check(&self) -> Result<()>;

    /// The weight decay, which a group may override; `None` if the formula has none.
    fn weight_decay(&mut self) -> Option<&mut f64>;

    /// State arrays of a parameter, of its shape, with their initial values.
    fn slots(&self) -> Slots;

    /// Whether the update only subtracts the gradient times the learning rate, without state.
    fn is_plain(&self) -> bool {
        false
    }

    /// An error for a parameter that this optimizer rejects.
    fn accept(&self, _parameter: &Tensor) -> Result<()> {
        Ok(())
    }

    /// The update of parameter `p` with gradient `g` and the arrays of [`Rule::slots`].
    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()>;

    /// The type-erased rule, implemented by `erased!()`.
    fn erased(self) -> Box<dyn AnyRule>;
}

/// The body of [`Rule::erased`], expanded in the file of each rule: a default of the trait would be
/// compiled, with all loops of the rule, where an optimizer is used.
macro_rules! erased {
    () => {
        #[inline(never)]
        fn erased(self) -> Box<dyn $crate::optim::rule::AnyRule> {
            Box::new(self)
        }
    };
}
pub(super) use erased;

/// Names of state arrays, as in PyTorch, and their initial values.
pub type Slots = SmallVec<[(&'static str, f64); 3]>;

/// Context of an update.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The learning rate of the group.
    pub lr: f64,
    /// Number of updates of the parameter, this one included.
    pub step: u64,
    /// The parameter's shape.
    pub shape: Shape,
}

/// A type-erased [`Rule`].
pub trait AnyRule: Parameters + fmt::Debug + Send + Sync {
    /// [`Rule::NAME`].
    fn name(&self) -> &'static str;
    /// [`Rule::NUMPY`].
    fn numpy(&self) -> &'static str;
    /// [`Rule::STEPS`].
    fn steps(&self) -> u64;
    fn check(&self) -> Result<()>;
    fn weight_decay(&mut self) -> Option<&mut f64>;
    fn slots(&self) -> Slots;
    fn is_plain(&self) -> bool;
    fn accept(&self, parameter: &Tensor) -> Result<()>;
    fn update_f32(&self, at: At, p: &mut [f32], g: &[f32], state: &mut [&mut [f32]]) -> Result<()>;
    fn update_f64(&self, at: At, p: &mut [f64], g: &[f64], state: &mut [&mut [f64]]) -> Result<()>;
}

impl<R: Rule> AnyRule for R {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn numpy(&self) -> &'static str {
        R::NUMPY
    }

    fn steps(&self) -> u64 {
        R::STEPS
    }

    fn check(&self) -> Result<()> {
        Rule::check(self)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Rule::weight_decay(self)
    }

    fn slots(&self) -> Slots {
        Rule::slots(self)
    }

    fn is_plain(&self) -> bool {
        Rule::is_plain(self)
    }

    fn accept(&self, parameter: &Tensor) -> Result<()> {
        Rule::accept(self, parameter)
    }

    fn update_f32(&self, at: At, p: &mut [f32], g: &[f32], state: &mut [&mut [f32]]) -> Result<()> {
        self.update(at, p, g, state)
    }

    fn update_f64(&self, at: At, p: &mut [f64], g: &[f64], state: &mut [&mut [f64]]) -> Result<()> {
        self.update(at, p, g, state)
    }
}

/// An element type in which parameters are updated.
pub trait Updated: Real + Stored {
    /// The update by a type-erased rule.
    fn update(
        rule: &dyn AnyRule,
        at: At,
        p: &mut [Self],
        g: &[Self],
        state: &mut [&mut [Self]],
    ) -> Result<()>;
}

impl Updated for f32 {
    fn update(
        rule: &dyn AnyRule,
        at: At,
        p: &mut [f32],
        g: &[f32],
        state: &mut [&mut [f32]],
    ) -> Result<()> {
        rule.update_f32(at, p, g, state)
    }
}

impl Updated for f64 {
    fn update(
        rule: &dyn AnyRule,
        at: At,
        p: &mut [f64],
        g: &[f64],
        state: &mut [&mut [f64]],
    ) -> Result<()> {
        rule.update_f64(at, p, g, state)
    }
}
