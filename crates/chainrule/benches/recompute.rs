//! Savings and cost of computing activations again: a net of 100 layers, and a GPT.
//!
//! `cargo bench -p chainrule --bench recompute` prints the table of the docs.

#[path = "shared/counting.rs"]
mod counting;

use std::sync::atomic::Ordering;
use std::time::Instant;

use chainrule::nn::{Layer, Linear, Module, Stack};
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_lab::models::{Gpt, GptConfig};
use counting::{Counting, LIVE, PEAK};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Module)]
struct Hidden {
    linear: Linear,
}

impl Layer for Hidden {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.try_forward(x)?.try_tanh()
    }
}

/// A model and the loss of one batch.
struct Subject {
    model: Box<dyn Layer>,
    x: Tensor,
}

/// Makes a model that keeps the input of every `n`th layer alone.
type Make = fn(usize) -> Subject;

fn deep(every: usize) -> Subject {
    let g = &mut Generator::manual_seed(1);
    let mut net: Stack<Hidden> =
        (0..100).map(|_| Hidden { linear: Linear::new(128, 128, g) }).collect();
    net.recompute_every(every);
    Subject { model: Box::new(net), x: Tensor::randn([8192, 128], DType::F32, g) }
}

fn gpt_medium(every: usize) -> Subject {
    let g = &mut Generator::manual_seed(1);
    let config =
        GptConfig { symbols: 65, context: 256, layers: 6, heads: 6, width: 384, dropout: 0.0 };
    let mut gpt = Gpt::new(config, g);
    gpt.recompute_every(every);
    Subject { model: Box::new(gpt), x: Tensor::randint(0, 65, [4, 256], g) }
}

/// The most bytes of a forward and a backward pass beyond the parameters; the seconds of the best
/// of some passes; and the gradients as bits. On a thread of its own, so that no buffer of an
/// earlier pass is at hand.
fn measure(make: Make, every: usize) -> (usize, f64, Vec<Vec<u32>>) {
    let run = move || {
        let Subject { model, x } = make(every);
        let pass = || model.forward(&x).square().mean_all().backward();
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        pass();
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let bits =
            |p: &Tensor| p.grad().unwrap().to_vec::<f32>().iter().map(|x| x.to_bits()).collect();
        let grads = model.parameters().iter().map(bits).collect();
        let mut best = f64::INFINITY;
        for _ in 0..12 {
            model.zero_grad();
            let began = Instant::now();
            pass();
            best = best.min(began.elapsed().as_secs_f64());
        }
        (peak, best, grads)
    };
    std::thread::spawn(run).join().unwrap()
}

fn main() {
    println!(
        "| model | kept inputs | peak MB | of all | ms | of all |\n| --- | --- | --- | --- | --- | --- |"
    );
    let subjects: [(&str, Make, usize); 2] =
        [("100 layers of 128, batch 8192", deep, 10), ("gpt-medium", gpt_medium, 2)];
    for (name, make, root) in subjects {
        let (all, time, grads) = measure(make, 0);
        for (kept, every) in [
            ("all that backward needs", 0),
            ("every block's", 1),
            ("every sqrt(n)th block's", root),
        ] {
            let (peak, seconds, again) = measure(make, every);
            assert!(again == grads, "{name}: other gradients");
            println!(
                "| {name} | {kept} | {:.1} | {:.2} | {:.1} | {:.2} |",
                peak as f64 / 1e6,
                peak as f64 / all as f64,
                seconds * 1e3,
                seconds / time
            );
        }
    }
}
