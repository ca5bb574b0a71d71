//! A wrapped optimizer, which can be stepped by itself.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Result;
use crate::nn::StateDict;
use crate::optim::Optimizer;
use crate::tensor::Tensor;

/// The optimizer inside a clipping one: if ranks have clipped the gradients together, it steps
/// alone.
#[derive(Clone)]
pub(super) struct Inner {
    parameters: Vec<Tensor>,
    optimizer: Rc<RefCell<Box<dyn Optimizer>>>,
}

impl Inner {
    pub fn new(optimizer: Box<dyn Optimizer>) -> Inner {
        let parameters = optimizer.parameters().to_vec();
        Inner { parameters, optimizer: Rc::new(RefCell::new(optimizer)) }
    }
}

impl Optimizer for Inner {
    fn step(&mut self) -> Result<()> {
        self.optimizer.borrow_mut().step()
    }

    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    fn lr(&self) -> f64 {
        self.optimizer.borrow().lr()
    }

    fn set_lr(&mut self, lr: f64) -> Result<()> {
        self.optimizer.borrow_mut().set_lr(lr)
    }

    fn group_lrs(&self) -> Vec<f64> {
        self.optimizer.borrow().group_lrs()
    }

    fn state_dict(&self) -> StateDict {
        self.optimizer.borrow().state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.optimizer.borrow_mut().load_state_dict(state)
    }
}
