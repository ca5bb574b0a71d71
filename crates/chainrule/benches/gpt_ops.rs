//! The fused ops that a GPT spends its time in, and its whole training step, at the shapes of two
//! models: small (4 layers of 4 heads, 128 wide, 12 texts of 64) and medium (6 layers of 6 heads,
//! 384 wide, 4 texts of 256).
//!
//! `cargo bench -p chainrule --bench gpt_ops`

use chainrule::optim::{AdamW, Optimizer};
use chainrule::{Attention, DType, Generator, Tensor};
use criterion::{Criterion, criterion_group, criterion_main};

/// The sizes of a model.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    layers: usize,
    heads: usize,
    width: usize,
    context: usize,
    batch: usize,
}

const SIZES: [Size; 2] = [
    Size { name: "small", layers: 4, heads: 4, width: 128, context: 64, batch: 12 },
    Size { name: "medium", layers: 6, heads: 6, width: 384, context: 256, batch: 4 },
];

fn normal(shape: &[usize], g: &mut Generator) -> Tensor {
    (Tensor::randn(shape, DType::F32, g) * 0.02).parameter()
}

/// The forward pass of an op, and its backward pass with it.
fn both(c: &mut Criterion, name: &str, size: Size, op: impl Fn() -> Tensor) {
    let g = op().detach();
    c.bench_function(&format!("{name}, {}, forward", size.name), |b| b.iter(&op));
    c.bench_function(&format!("{name}, {}, forward and backward", size.name), |b| {
        b.iter(|| op().backward_with().gradient(&g).run().unwrap())
    });
}

/// Attention of the heads of a fused projection, `[b, t, 3 c]`.
fn attend(qkv: &Tensor, size: Size) -> Tensor {
    let Size { heads, width, context, batch, .. } = size;
    let part = |i: usize| {
        let one = qkv.narrow(2, i * width, width);
        one.reshape([batch, context, heads, width / heads]).transpose(1, 2)
    };
    let y = part(0).attention(&part(1), &part(2), &Attention::causal());
    y.transpose(1, 2).reshape([batch, context, width])
}

fn ops(c: &mut Criterion) {
    for size in SIZES {
        let Size { width, context, batch, .. } = size;
        let g = &mut Generator::manual_seed(0);
        let x = normal(&[batch, context, width], g);
        let (gain, bias) = (normal(&[width], g), normal(&[width], g));
        both(c, "layer_norm", size, || x.layer_norm(width, Some(&gain), Some(&bias), 1e-5));
        let (weight, bias) = (normal(&[4 * width, width], g), normal(&[4 * width], g));
        both(c, "linear", size, || x.linear(&weight, Some(&bias)));
        let qkv = normal(&[batch, context, 3 * width], g);
        both(c, "attention", size, || attend(&qkv, size));
    }
}

/// The parameters of one layer: two norms and four linear maps, each a weight and a bias.
struct Block {
    norms: [[Tensor; 2]; 2],
    maps: [[Tensor; 2]; 4],
}

impl Block {
    fn new(c: usize, g: &mut Generator) -> Block {
        let mut norm = || [Tensor::ones(c).parameter(), normal(&[c], g)];
        let norms = [norm(), norm()];
        let sizes = [(c, 3 * c), (c, c), (c, 4 * c), (4 * c, c)];
        let maps = sizes.map(|(from, to)| [normal(&[to, from], g), normal(&[to], g)]);
        Block { norms, maps }
    }

    fn forward(&self, x: &Tensor, size: Size) -> Tensor {
        let norm = |i: usize, x: &Tensor| {
            let [gain, bias] = &self.norms[i];
            x.layer_norm(size.width, Some(gain), Some(bias), 1e-5)
        };
        let map = |i: usize, x: &Tensor| x.linear(&self.maps[i][0], Some(&self.maps[i][1]));
        let y = attend(&map(0, &norm(0, x)), size);
        let x = x + map(1, &y);
        &x + map(3, &map(2, &norm(1, &x)).gelu_tanh())
    }
}

fn step(c: &mut Criterion) {
    for size in SIZES {
        let Size { layers, width, context, batch, .. } = size;
        let g = &mut Generator::manual_seed(0);
        let (tokens, places) = (normal(&[65, width], g), normal(&[context, width], g));
        let blocks: Vec<Block> = (0..layers).map(|_| Block::new(width, g)).collect();
        let last = [Tensor::ones(width).parameter(), normal(&[width], g), normal(&[65, width], g)];
        let mut parameters = vec![tokens.clone(), places.clone()];
        parameters.extend(last.clone());
        for block in &blocks {
            parameters.extend(block.norms.iter().chain(&block.maps).flatten().cloned());
        }
        let mut optimizer = AdamW::new(parameters, 5e-4);
        let x = Tensor::randint(0, 65, [batch, context], g);
        let y = Tensor::randint(0, 65, [batch * context], g);
        let mut group = c.benchmark_group("training step");
        group.sample_size(10);
        group.bench_function(size.name, |b| {
            b.iter(|| {
                let mut h = tokens.embedding(&x) + &places;
                for block in &blocks {
                    h = block.forward(&h, size);
                }
                let h = h.layer_norm(width, Some(&last[0]), Some(&last[1]), 1e-5);
                let logits = h.linear(&last[2], None).reshape([-1, 65]);
                optimizer.zero_grad();
                logits.cross_entropy(&y).backward();
                optimizer.step().unwrap();
            })
        });
    }
}

criterion_group!(benches, ops, step);
criterion_main!(benches);
