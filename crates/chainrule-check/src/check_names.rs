//! The network of names that the tests judge.

use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::{DType, Shape};

/// Examples, symbols of context for each, and size of a symbol's embedding.
pub(crate) const SIZES: [usize; 3] = [5, 3, 2];

pub(crate) struct Names {
    pub parameters: Vec<Tensor>,
    pub labels: Tensor,
    contexts: Tensor,
}

impl Names {
    pub fn new() -> Names {
        let g = &mut Generator::manual_seed(7);
        let mut drawn = |shape: &[usize], name: &str| {
            Tensor::randn(Shape::new(shape), DType::F64, g).parameter().named(name)
        };
        let parameters = vec![
            drawn(&[6, 2], "C"),
            drawn(&[6, 4], "W1"),
            drawn(&[4], "b1"),
            drawn(&[4], "gain"),
            drawn(&[4], "bias"),
            drawn(&[4, 6], "W2"),
        ];
        let contexts = Tensor::from([[0i64, 0, 4], [0, 4, 3], [4, 3, 3], [0, 0, 1], [0, 1, 5]]);
        Names { parameters, labels: Tensor::from([4i64, 3, 3, 1, 5]), contexts }
    }

    /// Embedding, first layer, normalised layer, hidden units, logits, logarithms, and the loss.
    pub fn stages(&self, p: &[Tensor]) -> Vec<Tensor> {
        let [rows, context, width] = SIZES;
        let emb = p[0].embedding(&self.contexts);
        let first = emb.reshape([rows, context * width]).matmul(&p[1]) + &p[2];
        let centred = &first - first.mean(0, true);
        let variance = centred.square().sum(0, true) / (rows as f64 - 1.0);
        let preact = &centred * (variance + 1e-5).pow(-0.5) * &p[3] + &p[4];
        let hidden = preact.tanh();
        let logits = hidden.matmul(&p[5]);
        let counts = logits.exp();
        let logarithms = (&counts / counts.sum(1, true)).log();
        let loss = -logarithms.gather(1, &self.labels.reshape([rows, 1])).mean_all();
        vec![emb, first, preact, hidden, logits, logarithms, loss]
    }

    pub fn loss(&self) -> Tensor {
        self.stages(&self.parameters).pop().expect("the loss is a stage")
    }

    /// The first stage that depends on a parameter.
    pub fn first_stage(&self, parameter: usize) -> usize {
        [0, 1, 1, 2, 2, 4][parameter]
    }
}
