//! Ranks as threads and as processes on loopback: the same laws for both.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use chainrule_exchange::{
    Delayed, Exchange, ExchangeError, Launch, Network, RankSum, SumTree, Tcp, TcpOptions, Threads,
    Values, ValuesLayout, Workload, agree, gather,
};

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn launch(rank: usize, size: usize, port: u16) -> Launch {
    let token = Some("a secret of the tests".to_string());
    let address = format!("127.0.0.1:{port}");
    Launch { rank, size, address, spare_ports: 0, run: None, local: None, token }
}

const SOON: TcpOptions =
    TcpOptions { start: Duration::from_secs(20), timeout: Duration::from_secs(10) };

type Done<T> = Vec<Result<T, ExchangeError>>;

fn on_threads<T: Send + 'static>(
    size: usize,
    act: fn(&mut dyn Exchange) -> Result<T, ExchangeError>,
) -> Done<T> {
    let handles: Vec<_> = Threads::group(size)
        .into_iter()
        .map(|mut rank| std::thread::spawn(move || act(&mut rank)))
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

fn on_tcp<T: Send + 'static>(
    size: usize,
    act: fn(&mut dyn Exchange) -> Result<T, ExchangeError>,
) -> Done<T> {
    let port = port();
    let handles: Vec<_> = (0..size)
        .map(|rank| {
            std::thread::spawn(move || act(&mut Tcp::join(&launch(rank, size, port), SOON)?))
        })
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

fn on_both<T: Send + 'static>(
    size: usize,
    act: fn(&mut dyn Exchange) -> Result<T, ExchangeError>,
) -> [Vec<T>; 2] {
    [on_threads(size, act), on_tcp(size, act)]
        .map(|done| done.into_iter().map(|done| done.unwrap()).collect())
}

#[test]
fn parts_go_where_they_belong() {
    for size in [1, 2, 3, 5] {
        for received in on_both(size, |rank| {
            let own = rank.rank();
            // Lengths differ, some are 0, one is larger than the buffers of a connection.
            let part = |to: usize| vec![(own * 16 + to) as u8; own * to * 700_000 / 4];
            let size = rank.size();
            Ok((own, rank.all_to_all((0..size).map(part).collect())?))
        }) {
            for (own, parts) in received {
                for (from, part) in parts.iter().enumerate() {
                    assert_eq!(part.len(), own * from * 700_000 / 4);
                    assert!(part.iter().all(|&b| b == (from * 16 + own) as u8));
                }
            }
        }
    }
}

#[test]
fn one_rank_tells_all() {
    for told in on_both(4, |rank| {
        rank.barrier()?;
        let text = if rank.rank() == 2 { &b"the third"[..] } else { b"not this" };
        let told = rank.broadcast(text, 2)?;
        rank.barrier()?;
        Ok(told)
    }) {
        assert!(told.iter().all(|t| t == b"the third"));
    }
}

/// Sums of numbers whose order shows in the last bits: 12 parts, all numbers of ranks.
#[test]
fn the_number_of_ranks_changes_no_bit() {
    fn part(i: usize) -> Vec<Values> {
        let x = |j: usize| ((i * 37 + j * 101) as f64).sin() * 10f64.powi((i * j % 13) as i32 - 6);
        vec![
            Values::F32((0..1000).map(|j| x(j) as f32).collect()),
            Values::F64((0..77).map(x).collect()),
            Values::F32(vec![]),
            Values::F32(vec![x(3) as f32]),
        ]
    }
    fn total(rank: &mut dyn Exchange) -> Result<Vec<Values>, ExchangeError> {
        let layouts = part(0).iter().map(Values::layout).collect();
        let mut sum = RankSum::new(SumTree::new(12), rank, layouts)?;
        for i in sum.share() {
            sum.push(part(i))?;
        }
        sum.all_reduce(rank)
    }
    let wanted = on_threads(1, total).remove(0).unwrap();
    for size in [2, 3, 4, 5, 6, 12] {
        for totals in on_both(size, total) {
            assert!(totals.iter().all(|t| *t == wanted), "{size} ranks");
        }
    }
    // Another order has other bits, or the test would show nothing.
    let mut plain = vec![0f32; 1000];
    for i in 0..12 {
        let Values::F32(x) = &part(i)[0] else { unreachable!() };
        plain.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
    }
    assert_ne!(wanted[0], Values::F32(plain));
}

#[test]
fn misuse_is_an_error_on_every_rank() {
    let too_few = on_threads(3, |rank| RankSum::new(SumTree::new(2), rank, vec![]).map(|_| ()));
    for error in too_few {
        assert!(error.unwrap_err().to_string().contains("3 ranks need 3 micro-batches"));
    }
    let other_model = on_threads(2, |rank| {
        let part = vec![Values::F32(vec![1.0; 3 + rank.rank()])];
        let mut sum = RankSum::new(SumTree::new(2), rank, vec![part[0].layout()])?;
        sum.push(part)?;
        sum.all_reduce(rank)
    });
    // Rank 0 owns the tensor and sees it; rank 1 sees rank 0 end.
    let error = other_model[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("rank 1 sends gradients of other sizes"), "{error}");
    assert!(other_model[1].as_ref().unwrap_err().to_string().contains("rank 0 has ended"));
    let unfinished = on_threads(1, |rank| {
        let mut sum = RankSum::new(SumTree::new(4), rank, vec![ValuesLayout::F32(1)])?;
        sum.push(vec![Values::F32(vec![1.0])])?;
        sum.all_reduce(rank)
    });
    assert!(unfinished[0].is_err());
    let disagree = on_threads(3, |rank| {
        let data = if rank.rank() == 1 { "names2.txt" } else { "names.txt" };
        agree(rank, &[("version", "1"), ("data", data)])
    });
    for error in disagree {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rank 1 has another data than rank 0: `names2.txt`"), "{error}");
    }
    let out_of_step = on_threads(2, |rank| {
        if rank.rank() == 1 {
            rank.barrier()?;
        }
        rank.all_gather(b"x").map(drop)
    });
    assert!(out_of_step.iter().any(|done| done.is_err()));
}

#[test]
fn a_rank_that_ends_tells_why() {
    for done in [on_threads(3, ends), on_tcp(3, ends)] {
        assert!(done[1].is_ok());
        for rank in [0, 2] {
            let error = done[rank].as_ref().unwrap_err().to_string();
            assert!(error.contains(&format!("rank {rank} of 3: rank 1 has ended")), "{error}");
            assert!(error.contains("the disk is full"), "{error}");
        }
    }
    fn ends(rank: &mut dyn Exchange) -> Result<(), ExchangeError> {
        rank.barrier()?;
        if rank.rank() == 1 {
            rank.abort("the disk is full\nindeed");
            return Ok(());
        }
        rank.barrier()
    }
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let port = port();
    let options = TcpOptions { start: Duration::from_millis(600), ..SOON };
    let host = std::thread::spawn(move || Tcp::join(&launch(0, 3, port), options).map(drop));
    let guest = std::thread::spawn(move || Tcp::join(&launch(1, 3, port), options).map(drop));
    let error = host.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("rank 0 of 3: rank 2 did not come in time"), "{error}");
    let error = guest.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("rank 0 has ended: rank 2 did not come in time"), "{error}");
}

/// A rank that is wrong is the end of those that are right, too, with the same reason.
#[test]
fn all_that_have_come_are_told_who_is_wrong() {
    let port = port();
    let of = move |rank, size| {
        std::thread::spawn(move || {
            Tcp::join(&launch(rank, size, port), SOON).map(drop).unwrap_err().to_string()
        })
    };
    let (host, early) = (of(0, 4), of(1, 4));
    std::thread::sleep(Duration::from_millis(300));
    let wrong = of(2, 3);
    assert!(wrong.join().unwrap().contains("rank 0 was started for 4 ranks"));
    for error in [host, early].map(|rank| rank.join().unwrap()) {
        assert!(error.contains("rank 2 was started for 3 ranks and this one for 4"), "{error}");
    }
}

#[test]
fn other_numbers_of_ranks_are_an_error_on_both_sides() {
    let port = port();
    let host = std::thread::spawn(move || Tcp::join(&launch(0, 2, port), SOON).map(drop));
    let guest = Tcp::join(&launch(1, 3, port), SOON).map(drop).unwrap_err().to_string();
    assert!(guest.contains("rank 0 was started for 2 ranks"), "{guest}");
    let host = host.join().unwrap().unwrap_err().to_string();
    assert!(host.contains("rank 1 was started for 3 ranks"), "{host}");
}

#[test]
fn a_port_in_use_is_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Tcp::join(&launch(0, 2, port), SOON).map(drop).unwrap_err().to_string();
    assert!(error.contains("is in use; set MASTER_PORT"), "{error}");
}

/// Strangers at the port: silent ones, ones that send anything, ones with another token. The run
/// starts all the same, and nobody else is let in.
#[test]
fn strangers_are_turned_away() {
    let port = port();
    let host = std::thread::spawn(move || {
        let mut rank = Tcp::join(&launch(0, 2, port), SOON)?;
        rank.all_gather(b"0")
    });
    let reach = || loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let silent: Vec<TcpStream> = (0..20).map(|_| reach()).collect();
    for length in [0, 1, 39, 82, 5_000] {
        let mut stream = reach();
        // The listener may close the connection in the middle.
        let _ = stream.write_all(&vec![0xa5; length]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 40, "a stranger was told {} bytes", answer.len());
    }
    let wrong = Launch { token: Some("a guess".into()), ..launch(1, 2, port) };
    let options = TcpOptions { start: Duration::from_millis(900), ..SOON };
    let error = Tcp::join(&wrong, options).map(drop).unwrap_err().to_string();
    assert!(error.contains("CHAINRULE_TOKEN"), "{error}");
    let mut rank = Tcp::join(&launch(1, 2, port), SOON).unwrap();
    assert_eq!(rank.all_gather(b"1").unwrap(), [b"0", b"1"]);
    assert_eq!(host.join().unwrap().unwrap(), [b"0", b"1"]);
    drop(silent);
}

/// A rank whose peer is silent, without having ended, gives up after the timeout; one that computes
/// for longer than that does not count as silent.
#[test]
fn silence_is_told_from_work() {
    let done = on_tcp_within(Duration::from_millis(400), |rank| {
        if rank.rank() == 1 {
            std::thread::sleep(Duration::from_millis(1200));
        }
        rank.barrier()
    });
    assert!(done.iter().all(|done| done.is_ok()), "{done:?}");

    // The peer of this rank stops in the middle of a message.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stalled = listener.local_addr().unwrap();
    let stranger = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        std::thread::sleep(Duration::from_millis(900));
        drop(stream);
    });
    let began = Instant::now();
    let alone = Launch { address: stalled.to_string(), ..launch(1, 2, 0) };
    let options =
        TcpOptions { start: Duration::from_millis(300), timeout: Duration::from_millis(300) };
    assert!(Tcp::join(&alone, options).is_err());
    assert!(began.elapsed() < Duration::from_secs(8));
    stranger.join().unwrap();
}

fn on_tcp_within(
    timeout: Duration,
    act: fn(&mut dyn Exchange) -> Result<(), ExchangeError>,
) -> Done<()> {
    let port = port();
    let options = TcpOptions { timeout, ..SOON };
    let handles: Vec<_> = (0..2)
        .map(|rank| {
            std::thread::spawn(move || act(&mut Tcp::join(&launch(rank, 2, port), options)?))
        })
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

/// Without a token, ranks on one machine find the secret in a file that is theirs alone, and leave
/// none.
#[test]
fn ranks_on_one_machine_need_no_token() {
    let port = port();
    let open = move |rank| Launch { token: None, ..launch(rank, 2, port) };
    let guest = std::thread::spawn(move || Tcp::join(&open(1), SOON)?.all_gather(b"1"));
    let mut host = Tcp::join(&open(0), SOON).unwrap();
    assert_eq!(host.all_gather(b"0").unwrap(), [b"0", b"1"]);
    assert_eq!(guest.join().unwrap().unwrap(), [b"0", b"1"]);
    let elsewhere = Launch { token: None, address: "192.0.2.1:29500".into(), ..launch(0, 2, port) };
    let error = Tcp::join(&elsewhere, SOON).map(drop).unwrap_err().to_string();
    assert!(error.contains("set CHAINRULE_TOKEN"), "{error}");
}

/// Ranks on a network that is slow on purpose take the time of the formula.
#[test]
fn the_cost_model_is_what_is_measured() {
    let network = Network { latency: 0.01, bandwidth: 20e6 };
    let work = Workload {
        layouts: [100_000, 300_000, 7, 200_000].map(ValuesLayout::F32).into(),
        micro_batches: 6,
        micro_batch_seconds: 0.02,
        update_seconds: 0.0,
        jitter: 0.0,
    };
    for size in [2, 3] {
        let wanted = work.on(size, network).total();
        let ranks: Vec<_> = Threads::group(size)
            .into_iter()
            .map(|rank| {
                let work = work.clone();
                std::thread::spawn(move || -> Result<f64, ExchangeError> {
                    let mut rank = Delayed::new(rank, network);
                    rank.barrier()?;
                    let began = Instant::now();
                    let tree = SumTree::new(work.micro_batches);
                    let mut sum = RankSum::new(tree, &rank, work.layouts.clone())?;
                    for _ in sum.share() {
                        std::thread::sleep(Duration::from_secs_f64(work.micro_batch_seconds));
                        sum.push(work.layouts.iter().map(|layout| layout.zeros()).collect())?;
                    }
                    let owners = sum.owners().to_vec();
                    let own = sum.reduce_scatter(&mut rank)?;
                    rank.barrier()?;
                    gather(&mut rank, &owners, &work.layouts, own)?;
                    Ok(began.elapsed().as_secs_f64())
                })
            })
            .collect();
        let seconds = ranks.into_iter().map(|rank| rank.join().unwrap().unwrap());
        let slowest = seconds.fold(0.0, f64::max);
        // Sleeps are never short; a machine that does other things makes them longer.
        let range = wanted * 0.95..wanted * 1.3 + 0.3;
        assert!(range.contains(&slowest), "{size} ranks: {slowest} s for {wanted} s");
    }
    // A step on one rank is its computing alone.
    assert!((work.on(1, network).total() - 0.12).abs() < 1e-9);
}

/// A rank that waits for the others while one of them sends data has lost step.
#[test]
fn a_barrier_meets_nothing_but_barriers() {
    fn steps(rank: &mut dyn Exchange) -> Result<(), ExchangeError> {
        if rank.rank() == 0 {
            return rank.barrier();
        }
        rank.all_gather(b"data")?;
        rank.barrier()
    }
    for done in [on_threads(2, steps), on_tcp(2, steps)] {
        let errors: Vec<String> = done.into_iter().map(|d| d.unwrap_err().to_string()).collect();
        assert!(errors[0].contains("rank 1 sends data where this one only waits"), "{errors:?}");
        assert!(errors[1].contains("rank 1 sends data where rank 0 only waits"), "{errors:?}");
    }
}
