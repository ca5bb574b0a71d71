//! Parameter groups with their own settings.

use crate::tensor::Tensor;

/// Parameters that share settings; the optimizer's apply where none are given.
///
/// `R` is the options of the optimizer that takes the group.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Group, Optimizer, Sgd, SgdOptions};
/// let (w, b) = (Tensor::from([1.0f32]).parameter(), Tensor::from([1.0f32]).parameter());
/// let groups = [Group::new(vec![w.clone()]), Group::new(vec![b.clone()]).lr(0.01)];
/// let mut sgd = Sgd::try_with_groups(groups, 0.1, SgdOptions::default())?;
/// (&w + &b).sum_all().backward();
/// sgd.step()?;
/// assert_eq!((w.item(), b.item()), (0.9f32 as f64, 0.99f32 as f64));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Group<R> {
    pub(super) parameters: Vec<Tensor>,
    pub(super) lr: Option<f64>,
    pub(super) weight_decay: Option<f64>,
    pub(super) options: Option<R>,
}

impl<R> Group<R> {
    /// A group with the optimizer's settings.
    pub fn new(parameters: Vec<Tensor>) -> Group<R> {
        Group { parameters, lr: None, weight_decay: None, options: None }
    }

    /// With its own learning rate, which [`set_lr`](super::Optimizer::set_lr) scales in proportion.
    pub fn lr(mut self, lr: f64) -> Group<R> {
        self.lr = Some(lr);
        self
    }

    /// With its own weight decay.
    pub fn weight_decay(mut self, weight_decay: f64) -> Group<R> {
        self.weight_decay = Some(weight_decay);
        self
    }

    /// With its own options. A weight decay of the group overrides that of the options.
    pub fn options(mut self, options: R) -> Group<R> {
        self.options = Some(options);
        self
    }
}
