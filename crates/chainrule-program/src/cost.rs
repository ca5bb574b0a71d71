//! Cost of a program: operations and bytes.

use smallvec::SmallVec;

use super::Program;
use super::ir::{Id, Instruction, Phase};
use crate::shape::Shape;
use crate::tensor::op::Kernel;

/// Cost of a program, counted by the rules of [`Program::cost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of instructions.
    pub instructions: usize,
    /// Operations on numbers.
    pub flops: u64,
    /// Bytes that the instructions read and write.
    pub bytes: u64,
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            instructions: self.instructions + other.instructions,
            flops: self.flops + other.flops,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Program {
    /// The cost of the program.
    ///
    /// - A product of matrices `[m, k]` and `[k, n]` is `2 m n k` operations, and a convolution as
    ///   many as the product that it is.
    /// - An elementwise op is one for each element of its result, whatever it computes: `exp`
    ///   counts as much as `+`. A slope in one pass (`tanh_grad`) is two: the slope, and the
    ///   product with the gradient.
    /// - A reduction is one for each element that it reads.
    /// - A fused layer counts as the steps of its textbook formula.
    /// - An op that only moves elements is free.
    ///
    /// Bytes are those of all inputs and results of each instruction, as if each went to memory; a
    /// view moves none.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 4]));
    /// let program =
    ///     Program::trace([("a", &a), ("b", &b)], |x| Ok(vec![x[0].matmul(&x[1]).exp()]))?;
    /// let cost = program.cost();
    /// assert_eq!(
    ///     (cost.instructions, cost.flops, cost.bytes),
    ///     (2, 2 * 24 + 8, 4 * (6 + 12 + 8 + 8 + 8))
    /// );
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn cost(&self) -> Cost {
        self.instructions.iter().map(|i| self.cost_of(i)).fold(Cost::default(), |a, b| a + b)
    }

    /// The part of [`Program::cost`] of the instruction at a place of [`Program::list`].
    #[doc(hidden)]
    pub fn cost_at(&self, at: usize) -> Cost {
        self.cost_of(&self.instructions[at])
    }

    /// The part of [`Program::cost`] that belongs to one phase.
    pub fn phase_cost(&self, phase: Phase) -> Cost {
        let part = self.instructions.iter().filter(|i| i.phase == phase);
        part.map(|i| self.cost_of(i)).fold(Cost::default(), |a, b| a + b)
    }

    fn cost_of(&self, instruction: &Instruction) -> Cost {
        let size = |id: &Id| {
            let meta = self.info(*id).meta;
            meta.shape.numel() as u64 * meta.dtype.size() as u64
        };
        let bytes = match instruction.op.kernel() {
            Kernel::View(_) => 0,
            _ => instruction.inputs.iter().chain(&instruction.outputs).map(size).sum(),
        };
        Cost { instructions: 1, flops: self.flops(instruction), bytes }
    }

    fn flops(&self, instruction: &Instruction) -> u64 {
        let shapes = |ids: &[Id]| -> SmallVec<[Shape; 4]> {
            ids.iter().map(|id| self.info(*id).meta.shape).collect()
        };
        let (inputs, outputs) = (shapes(&instruction.inputs), shapes(&instruction.outputs));
        if let Some(flops) = instruction.op.flops(&inputs, &outputs) {
            return flops;
        }
        match instruction.op.kernel() {
            Kernel::View(_) | Kernel::Whole(_) => 0,
            Kernel::Map(_) => outputs[0].numel() as u64,
            Kernel::Reduce(..) => inputs[0].numel() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::nn::{Layer, Linear, Module};
    use crate::optim::Sgd;
    use crate::{Cost, Phase, compile};
    use chainrule_core::{DType, Generator, Tensor};

    #[test]
    fn a_step_costs_what_one_counts_by_hand() {
        let g = &mut Generator::manual_seed(0);
        let layer = Linear::new(5, 3, g);
        let mut sgd = Sgd::new(layer.parameters(), 0.1);
        let (x, y) = (Tensor::randn([7, 5], DType::F32, g), Tensor::randint(0, 3, [7], g));
        let mut step = compile(&layer, &mut sgd, ["x", "y"], |b| {
            layer.try_forward(&b[0])?.try_cross_entropy(&b[1])
        });
        let program = step.trace(&[&x, &y]).unwrap();
        let phases = [Phase::Forward, Phase::Backward, Phase::Update];
        let [forward, backward, update] = phases.map(|p| program.phase_cost(p));
        assert_eq!(forward.flops, 2 * 7 * 5 * 3 + 7 * 3 + 5 * 7 * 3);
        // The gradient of the input is not asked for.
        assert_eq!(backward.flops, 2 * 7 * 3 + (2 * 7 * 5 * 3 + 7 * 3));
        assert_eq!(update.flops, 2 * (15 + 3));
        assert_eq!(program.cost(), forward + backward + update);
        assert_eq!(program.cost().instructions, program.len());
        assert_eq!(Cost::default() + forward, forward);
    }
}
