//! The cost model beside measured steps, and its table up to 1,024 ranks.
//!
//! `cargo run --release -p chainrule-exchange --example cost [measure|buckets]`

use std::time::{Duration, Instant};

use chainrule_exchange::{
    Delayed, Exchange, ExchangeError, Network, RankSum, SumTree, Threads, Values, ValuesLayout,
    Workload, gather,
};

/// Parameters of a transformer: embeddings of tokens and places, and the matrices of each block.
fn transformer(width: usize, layers: usize, tokens: usize, places: usize) -> Vec<ValuesLayout> {
    let mut sizes = vec![tokens * width, places * width];
    for _ in 0..layers {
        sizes.extend([3 * width * width, width * width, 4 * width * width, 4 * width * width]);
        sizes.extend([width; 4]);
    }
    sizes.into_iter().map(ValuesLayout::F32).collect()
}

fn main() -> Result<(), ExchangeError> {
    if std::env::args().any(|word| word == "measure") {
        return measured();
    }
    if std::env::args().any(|word| word == "buckets") {
        return bucket_sizes();
    }
    let networks = [
        ("1 Gbit Ethernet", Network::ETHERNET_1G),
        ("10 Gbit Ethernet", Network::ETHERNET_10G),
        ("InfiniBand 100 Gbit", Network::INFINIBAND_100G),
    ];
    // Seconds of a micro-batch: 6 operations for each parameter and token, at 50 and 500 GFLOP/s.
    let models = [
        ("0.8 M, 1,024 tokens", transformer(128, 4, 65, 128), 1024.0, 50e9),
        ("124 M, 1,024 tokens", transformer(768, 12, 50_257, 1024), 1024.0, 500e9),
        ("124 M, 16,384 tokens", transformer(768, 12, 50_257, 1024), 16_384.0, 500e9),
    ];
    for (model, layouts, tokens, speed) in models {
        let parameters = layouts.iter().map(|layout| layout.bytes() / 4).sum::<usize>() as f64;
        let work = Workload {
            micro_batches: 1024,
            micro_batch_seconds: 6.0 * parameters * tokens / speed,
            update_seconds: parameters * 16.0 / 10e9,
            jitter: 0.05,
            layouts,
        };
        println!("\n{model} a micro-batch, 1,024 micro-batches a step");
        println!("| network | 2 | 4 | 16 | 64 | 256 | 1,024 |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        for (name, network) in networks {
            let alone = work.on(1, network).total();
            let share = |ranks: usize| {
                let efficiency = alone / work.on(ranks, network).total() / ranks as f64;
                format!("{:.0} %", 100.0 * efficiency)
            };
            let row: Vec<String> = [2, 4, 16, 64, 256, 1024].map(share).into();
            println!("| {name} | {} |", row.join(" | "));
        }
    }
    Ok(())
}

/// Steps of ranks that wait instead of computing, beside the formula.
fn measured() -> Result<(), ExchangeError> {
    println!("| ranks | latency | bandwidth | formula | measured |");
    println!("| --- | --- | --- | --- | --- |");
    for (latency, bandwidth) in [(1e-3, 1e9), (1e-3, 50e6), (10e-3, 200e6)] {
        let network = Network { latency, bandwidth };
        let work = Workload {
            layouts: transformer(128, 4, 65, 128),
            micro_batches: 12,
            micro_batch_seconds: 0.02,
            update_seconds: 0.0,
            jitter: 0.0,
        };
        for ranks in [2, 3, 4, 6] {
            let formula = work.on(ranks, network).total();
            let seconds = step(ranks, network, |rank| one(&work, rank))?;
            println!(
                "| {ranks} | {:.0} ms | {:.0} MB/s | {:.0} ms | {:.0} ms |",
                latency * 1e3,
                bandwidth / 1e6,
                formula * 1e3,
                seconds * 1e3
            );
        }
    }
    Ok(())
}

/// Steps whose gradients leave while they are made, for several sizes of buckets.
fn bucket_sizes() -> Result<(), ExchangeError> {
    const SIZES: [usize; 6] = [1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, usize::MAX];
    println!(
        "| parameters | latency | bandwidth | 256 KiB | 512 KiB | 1 MiB | 2 MiB | 4 MiB | one |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, layouts, seconds) in
        [("0.8 M", transformer(128, 4, 65, 128), 0.03), ("6 M", transformer(256, 8, 65, 128), 0.2)]
    {
        for (latency, bandwidth) in [(50e-6, 117e6), (30e-6, 1.17e9), (1.5e-6, 12e9)] {
            let work = Workload {
                layouts: layouts.clone(),
                micro_batches: 2,
                micro_batch_seconds: seconds,
                update_seconds: 0.0,
                jitter: 0.0,
            };
            let network = Network { latency, bandwidth };
            let mut row =
                format!("| {name} | {:.0} µs | {:.0} MB/s |", latency * 1e6, bandwidth / 1e6);
            for least in SIZES {
                let seconds = step(2, network, |rank| one_early(&work, rank, least))?;
                row += &format!(" {:.0} ms |", seconds * 1e3);
            }
            println!("{row}");
        }
    }
    Ok(())
}

/// A step of one micro-batch, whose gradients come one after the other from the last on.
fn one_early(work: &Workload, rank: &mut impl Exchange, least: usize) -> Result<(), ExchangeError> {
    let part: Vec<Values> = work.layouts.iter().map(|layout| layout.zeros()).collect();
    let bytes: usize = part.iter().map(Values::bytes).sum();
    let tree = SumTree::new(work.micro_batches);
    let mut sum = RankSum::new(tree, rank, work.layouts.clone())?.with_buckets(least);
    // A third of the time is the forward pass.
    let forward = work.micro_batch_seconds / 3.0;
    std::thread::sleep(Duration::from_secs_f64(forward));
    let began = Instant::now();
    let mut done = 0;
    for (i, value) in part.into_iter().enumerate().rev() {
        done += value.bytes();
        let due = 2.0 * forward * done as f64 / bytes as f64;
        std::thread::sleep(Duration::from_secs_f64(due).saturating_sub(began.elapsed()));
        sum.push_one(i, value)?;
        sum.send(rank)?;
    }
    sum.all_reduce(rank).map(drop)
}

/// Seconds of a step, the least of twenty.
fn step(
    ranks: usize,
    network: Network,
    one: impl Fn(&mut Delayed<Threads>) -> Result<(), ExchangeError> + Sync,
) -> Result<f64, ExchangeError> {
    let one = &one;
    std::thread::scope(|scope| {
        let handles: Vec<_> = Threads::group(ranks)
            .into_iter()
            .map(|rank| {
                scope.spawn(move || -> Result<f64, ExchangeError> {
                    let mut rank = Delayed::new(rank, network);
                    let mut least = f64::INFINITY;
                    for _ in 0..20 {
                        rank.barrier()?;
                        let began = Instant::now();
                        one(&mut rank)?;
                        least = least.min(began.elapsed().as_secs_f64());
                    }
                    Ok(least)
                })
            })
            .collect();
        let mut most = 0f64;
        for handle in handles {
            most = most.max(handle.join().expect("a rank does not panic")?);
        }
        Ok(most)
    })
}

fn one(work: &Workload, rank: &mut impl Exchange) -> Result<(), ExchangeError> {
    let part: Vec<Values> = work.layouts.iter().map(|layout| layout.zeros()).collect();
    let tree = SumTree::new(work.micro_batches);
    let mut sum = RankSum::new(tree, rank, work.layouts.clone())?;
    for _ in sum.share() {
        let began = Instant::now();
        sum.push(part.clone())?;
        let rest = Duration::from_secs_f64(work.micro_batch_seconds);
        std::thread::sleep(rest.saturating_sub(began.elapsed()));
    }
    let owners = sum.owners().to_vec();
    let own = sum.reduce_scatter(rank)?;
    rank.barrier()?;
    gather(rank, &owners, &work.layouts, own).map(drop)
}
