//! Stacks that compute their inside again: less memory, the same bits.

#[path = "../benches/shared/counting.rs"]
mod counting;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use chainrule::nn::{Layer, Linear, Module, Stack};
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_lab::models::{Gpt, GptConfig};
use counting::{Counting, LIVE, PEAK};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Only one test counts at a time.
static COUNTED: Mutex<()> = Mutex::new(());

#[derive(Module)]
struct Hidden {
    linear: Linear,
}

impl Layer for Hidden {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.try_forward(x)?.try_tanh()
    }
}

/// The most bytes of a forward and a backward pass beyond those before, and the gradients. On a
/// thread of its own, so that no buffer of an earlier pass is at hand.
fn deep(every: usize) -> (usize, Vec<Vec<f32>>) {
    let pass = move || {
        let g = &mut Generator::manual_seed(1);
        let mut net: Stack<Hidden> =
            (0..100).map(|_| Hidden { linear: Linear::new(16, 16, g) }).collect();
        net.recompute_every(every);
        // Many rows: the gradients of the parameters, which are there in any case, then count for
        // little.
        let x = Tensor::randn([4096, 16], DType::F32, g);
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        net.forward(&x).square().sum_all().backward();
        let peak = PEAK.load(Ordering::Relaxed) - before;
        (peak, net.parameters().iter().map(|p| p.grad().unwrap().to_vec()).collect())
    };
    std::thread::spawn(pass).join().unwrap()
}

#[test]
fn a_deep_net_takes_a_quarter_of_the_memory_and_gives_the_same_bits() {
    let _guard = COUNTED.lock().unwrap();
    let (whole, grads) = deep(0);
    // The result of tanh is the input of the next layer: one tensor a layer is kept either way, so
    // every single layer saves nothing.
    for (every, least) in [(1, 0.9), (10, 4.0), (100, 0.9), (7, 3.5)] {
        let (peak, again) = deep(every);
        assert!(again == grads, "every {every}: other gradients");
        let factor = whole as f64 / peak as f64;
        assert!(factor > least, "every {every}: {peak} bytes of {whole}, {factor:.2} times less");
    }
}

/// Attention and dropout too; and the generators stand where they would stand.
#[test]
fn a_gpt_with_dropout_gives_the_same_bits() {
    let _guard = COUNTED.lock().unwrap();
    let config =
        GptConfig { symbols: 11, context: 8, layers: 5, heads: 2, width: 16, dropout: 0.2 };
    let steps = |every: usize| -> (Vec<Vec<f32>>, Vec<f32>) {
        let g = &mut Generator::manual_seed(2);
        let mut gpt = Gpt::new(config, g);
        gpt.recompute_every(every);
        let x = Tensor::from([[1i64, 4, 2, 10, 0], [3, 3, 9, 1, 7]]);
        let mut losses = Vec::new();
        for _ in 0..3 {
            let loss = gpt.forward(&x).logsumexp(-1, false).mean_all();
            loss.backward();
            losses.push(loss.item() as f32);
        }
        (gpt.parameters().iter().map(|p| p.grad().unwrap().to_vec()).collect(), losses)
    };
    let whole = steps(0);
    for every in [1, 2, 5, 9] {
        assert!(steps(every) == whole, "every {every}");
    }
}
