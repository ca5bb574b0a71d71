//! Exchanges whose results are known, for the tests: `mpirun -n 3 check WHAT`.

use std::io::Write as _;

use chainrule_exchange::{Exchange, ExchangeError, RankSum, SumTree, Values, ValuesLayout, agree};
use chainrule_mpi::{Mpi, MpiOptions};

fn main() -> std::process::ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let timeout = std::time::Duration::from_millis(700);
    let options = if what == "silent" { MpiOptions { timeout } } else { MpiOptions::default() };
    let ran = Mpi::join(options).and_then(|mut ranks| check(&mut ranks, &what));
    match ran {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            // One write, so that the lines of several ranks do not mix.
            let _ = std::io::stderr().write_all(format!("error: {e}\n").as_bytes());
            std::process::ExitCode::FAILURE
        }
    }
}

fn check(ranks: &mut Mpi, what: &str) -> Result<(), ExchangeError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    match what {
        "parts" => {
            // One part is larger than what MPI sends without its receiver.
            let part = |from: usize, to: usize| vec![(from * 16 + to) as u8; from * to * 700_000];
            let first = ranks.begin((0..size).map(|to| part(rank, to)).collect())?;
            let second = ranks.begin(vec![vec![rank as u8]; size])?;
            let received = ranks.finish(first)?;
            assert!(received.iter().enumerate().all(|(from, p)| *p == part(from, rank)));
            let received = ranks.finish(second)?;
            assert!(received.iter().enumerate().all(|(from, p)| p[..] == [from as u8]));
            assert_eq!(ranks.broadcast(&[rank as u8], size - 1)?, [size as u8 - 1]);
            ranks.barrier()
        }
        "sum" => {
            let layouts = vec![ValuesLayout::F32(300_000), ValuesLayout::F32(3)];
            let mut sum = RankSum::new(SumTree::new(12), ranks, layouts)?;
            for i in sum.share() {
                let x =
                    |j: usize| ((i * 37 + j) as f32).sin() * 10f32.powi((i * j % 13) as i32 - 6);
                let part = [300_000, 3].map(|n| Values::F32((0..n).map(x).collect()));
                sum.push(part.into())?;
            }
            let total = sum.all_reduce(ranks)?;
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            for value in &total {
                let Values::F32(x) = value else { continue };
                for x in x {
                    hash = (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3);
                }
            }
            println!("{hash:016x}");
            Ok(())
        }
        "abort" => {
            ranks.barrier()?;
            if rank == 1 {
                ranks.abort("the disk is full");
                return Ok(());
            }
            // Too large to leave before rank 1 takes it.
            ranks.all_gather(&vec![0; 3_000_000]).map(drop)
        }
        "agree" => agree(ranks, &[("data", if rank == 1 { "b" } else { "a" })]),
        "silent" => {
            if rank == 1 {
                std::thread::sleep(std::time::Duration::from_secs(30));
            }
            ranks.barrier()
        }
        _ => Err(ExchangeError::Settings("what is to be checked?".into())),
    }
}
