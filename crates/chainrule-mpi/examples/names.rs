//! A training shared by the processes of MPI, which prints a sum of its weights.
//!
//! `mpirun -n 3 names` and `names 3`, where the ranks are threads of one process, print the same.

use std::sync::Arc;

use chainrule::data::{Batch, DataLoader, LoaderOptions, TensorDataset};
use chainrule::exchange::{Exchange, ExchangeError, Threads};
use chainrule::nn::{Layer, Linear, Module, Sequential, Tanh};
use chainrule::optim::AdamW;
use chainrule::train::{Event, Task, Trainer, TrainerOptions};
use chainrule::{Error, Generator, Result, Tensor};
use chainrule_mpi::{Mpi, MpiOptions};

const NAMES: &str = "anna bela carl dora emil fred gina hugo ida jens karl lena mona nils otto pia";
const LETTERS: usize = 27;
const CONTEXT: usize = 3;

/// The next letter from the three before it.
struct NextLetter(Sequential);

impl Task for NextLetter {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.try_forward(&batch.x)?.try_cross_entropy(&batch.y)
    }
}

/// All places of all names: the letters before, one-hot, and the letter there.
fn examples() -> Result<TensorDataset> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for name in NAMES.split(' ') {
        let mut before = [0usize; CONTEXT];
        for letter in name.bytes().map(|b| usize::from(b - b'a') + 1).chain([0]) {
            let hot = |&at: &usize| (0..LETTERS).map(move |i| f32::from(u8::from(i == at)));
            x.extend(before.iter().flat_map(hot));
            y.push(letter as i64);
            before.rotate_left(1);
            before[CONTEXT - 1] = letter;
        }
    }
    let x = Tensor::try_from_slice(&x, [y.len(), CONTEXT * LETTERS])?;
    TensorDataset::try_new(&x, &Tensor::try_from_slice(&y, [y.len()])?)
}

/// The weights after 30 steps of 12 micro-batches, as a number that differs where a bit does.
fn train(ranks: Box<dyn Exchange>) -> Result<u64> {
    let g = &mut Generator::manual_seed(0);
    let net = Sequential::new().with(Linear::new(CONTEXT * LETTERS, 64, g)).with(Tanh);
    let task = NextLetter(net.with(Linear::new(64, LETTERS, g)));
    let loader = LoaderOptions { batch: 4, shuffle: Some(1), ..LoaderOptions::default() };
    let batches = DataLoader::try_new(Arc::new(examples()?), loader)?;
    let adamw = AdamW::new(task.0.parameters(), 0.01);
    let options = TrainerOptions {
        steps: 30,
        accumulate: 12,
        clip: Some(0.5),
        sharded: true,
        ..TrainerOptions::default()
    };
    let trainer = Trainer::builder(&task, Box::new(adamw), Box::new(batches)).options(options);
    let mut trainer = trainer.build()?.with_exchange(ranks, &[]);
    trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false)?;
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for p in task.0.parameters() {
        for x in p.to_vec::<f32>() {
            sum = (sum ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(sum)
}

fn main() -> Result<()> {
    let size = std::env::args().nth(1).and_then(|n| n.parse::<usize>().ok());
    let told = |e: ExchangeError| Error::argument("names", e.to_string());
    match size {
        None => {
            let ranks = Mpi::join(MpiOptions::default()).map_err(told)?;
            let is_first = ranks.rank() == 0;
            let sum = train(Box::new(ranks))?;
            if is_first {
                println!("{sum:016x}");
            }
        }
        Some(size) => {
            let ranks = Threads::group(size).into_iter();
            let ranks: Vec<_> =
                ranks.map(|rank| std::thread::spawn(move || train(Box::new(rank)))).collect();
            for rank in ranks {
                println!("{:016x}", rank.join().expect("a rank does not panic")?);
            }
        }
    }
    Ok(())
}
