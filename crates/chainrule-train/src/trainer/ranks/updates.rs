//! The update as a program: the last part of a step that is cut at its phases.
//!
//! Each rank traces the update of the parameters that it owns. The program stays as traced, without
//! any pass that changes rounding, so that its bits are those of the eager update, and do not
//! depend on which parameters a rank owns.

use crate::error::Result;
use crate::optim::Optimizer;
use crate::program::{Passes, Program, Validated};
use crate::tensor::Tensor;

/// Update programs of a rank, one per set of parameters that have a gradient.
#[derive(Default)]
pub(super) struct Updates {
    made: Vec<(Vec<usize>, Validated)>,
    /// Whether the update is eager, as for an optimizer that reads values.
    is_left: bool,
}

impl Updates {
    /// One step of the optimizer with the current gradients.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, parameters: &[Tensor]) -> Result<()> {
        let graded = parameters.iter().enumerate().filter_map(|(i, p)| Some((i, p.grad()?)));
        let (places, gradients): (Vec<usize>, Vec<Tensor>) = graded.unzip();
        if self.is_left || places.is_empty() {
            return optimizer.step();
        }
        let given: Vec<&Tensor> = gradients.iter().collect();
        let fits = |(of, program): &(Vec<usize>, Validated)| {
            *of == places && program.program().mismatch(&given).is_none()
        };
        let at = match self.made.iter().position(fits) {
            Some(at) => at,
            None => {
                let trained: Vec<&Tensor> = places.iter().map(|&i| &parameters[i]).collect();
                let traced = traced(optimizer, &trained, &given);
                for (p, gradient) in trained.iter().zip(&gradients) {
                    p.set_grad(Some(gradient.clone()))?;
                }
                let Ok(program) = traced else {
                    self.is_left = true;
                    return optimizer.step();
                };
                let passes = Passes { simplification: false, fusion: false };
                self.made.push((places, program.validated(passes)));
                self.made.len() - 1
            }
        };
        self.made[at].1.run(&given).map(drop)
    }
}

/// The update of these parameters with gradients as arguments.
fn traced(
    optimizer: &mut dyn Optimizer,
    trained: &[&Tensor],
    gradients: &[&Tensor],
) -> Result<Program> {
    let names: Vec<String> = trained
        .iter()
        .enumerate()
        .map(|(i, p)| format!("d_{}", p.name().unwrap_or_else(|| i.to_string())))
        .collect();
    let named = names.iter().map(|name| &name[..]).zip(gradients.iter().copied());
    Program::trace(named, |gradients| {
        for (p, gradient) in trained.iter().zip(gradients) {
            p.set_grad(Some(gradient.clone()))?;
        }
        optimizer.step()?;
        Ok(Vec::new())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::StateDict;
    use crate::optim::{AdamW, Muon, Sgd, SgdOptions};

    fn parameters() -> Vec<Tensor> {
        let of = |i: usize| {
            let numbers: Vec<f32> = (0..6).map(|k| ((i * 7 + k * 5) as f32).sin()).collect();
            Tensor::try_from_slice(&numbers, [2, 3]).unwrap().parameter()
        };
        (0..3).map(of).collect()
    }

    /// Parameters have gradients in alternate steps; returns the bits of all of them at the end.
    fn ended(optimizer: &mut dyn Optimizer, mut updates: Option<&mut Updates>) -> Vec<Vec<f32>> {
        let parameters = optimizer.parameters().to_vec();
        for step in 0..9 {
            optimizer.set_lr(0.1 / (1 + step) as f64).unwrap();
            for (i, p) in parameters.iter().enumerate() {
                let gradient = p.detach().sin().mul(0.5 + step as f64);
                p.set_grad((step % 4 != i).then_some(gradient)).unwrap();
            }
            match &mut updates {
                Some(updates) => updates.step(optimizer, &parameters).unwrap(),
                None => optimizer.step().unwrap(),
            }
        }
        parameters.iter().map(Tensor::to_vec).collect()
    }

    #[test]
    fn a_program_has_the_bits_of_the_steps_of_an_optimizer() {
        let momentum = || SgdOptions { momentum: 0.9, ..SgdOptions::default() };
        let made: [&dyn Fn() -> Box<dyn Optimizer>; 4] = [
            &|| Box::new(AdamW::new(parameters(), 0.1)),
            &|| Box::new(Sgd::with_options(parameters(), 0.1, momentum())),
            &|| Box::new(Muon::new(parameters(), 0.1)),
            &|| Box::new(Reading(Sgd::new(parameters(), 0.1))),
        ];
        for (i, make) in made.into_iter().enumerate() {
            let mut updates = Updates::default();
            let wanted = ended(&mut *make(), None);
            assert_eq!(ended(&mut *make(), Some(&mut updates)), wanted);
            // One program per set of parameters; the last optimizer is eager.
            assert_eq!((updates.made.len(), updates.is_left), [(4, false), (0, true)][i / 3]);
        }
    }

    /// An optimizer that reads its gradients, which no program can.
    struct Reading(Sgd);

    impl Optimizer for Reading {
        fn step(&mut self) -> Result<()> {
            for p in self.0.parameters() {
                let largest = p.grad().map(|grad| grad.abs().max_all().try_item()).transpose()?;
                if largest.is_some_and(|x: f64| x > 1.0) {
                    p.set_grad(p.grad().map(|grad| grad.mul(0.5)))?;
                }
            }
            self.0.step()
        }

        fn parameters(&self) -> &[Tensor] {
            self.0.parameters()
        }

        fn lr(&self) -> f64 {
            self.0.lr()
        }

        fn set_lr(&mut self, lr: f64) -> Result<()> {
            self.0.set_lr(lr)
        }

        fn state_dict(&self) -> StateDict {
            self.0.state_dict()
        }

        fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
            self.0.load_state_dict(state)
        }
    }
}
