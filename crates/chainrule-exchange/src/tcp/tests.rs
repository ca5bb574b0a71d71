//! Connections with peers that send anything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Watch;
use super::frame;
use super::hello::{self, Hello};
use super::link::TcpLink;
use crate::links::{Kind, Link};
use crate::{Exchange, Launch, Result, Tcp, TcpOptions};

/// Numbers of a fixed generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    /// A few changes at random places: bits, cuts, repeats, noise.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, self.below(256) as u8),
                3 => bytes.extend_from_within(at..),
                _ => bytes.extend((0..self.below(40)).map(|i| (i * 37) as u8)),
            }
        }
    }
}

/// Rounds of a fuzz, `CHAINRULE_FUZZ` times as many as in a usual run.
fn times(usual: usize) -> usize {
    let more = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok());
    usual * more.unwrap_or(1)
}

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Kind, number of the call, and body.
type SentMessage = (Kind, u64, Vec<u8>);

/// A stream of valid messages and signs of life, and those messages.
fn messages(draw: &mut Draw) -> (Vec<u8>, Vec<SentMessage>) {
    let (mut bytes, mut all) = (Vec::new(), Vec::new());
    for call in 0..1 + draw.below(4) as u64 {
        let kind = if draw.below(4) == 0 { Kind::Abort } else { Kind::Part };
        let body: Vec<u8> = (0..draw.below(50)).map(|i| i as u8).collect();
        frame::write(&mut bytes, kind, call, &body).unwrap();
        frame::write_alive(&mut bytes).unwrap();
        all.push((kind, call, body));
    }
    (bytes, all)
}

/// A reader of mutated messages ends, gives no more bytes than came, and gives the messages before
/// the first change as they were sent.
#[test]
fn mutated_messages_do_no_harm() {
    let mut draw = Draw(7);
    for _ in 0..times(100_000) {
        let (sent, all) = messages(&mut draw);
        let mut bytes = sent.clone();
        draw.mutate(&mut bytes);
        let same = sent.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        let (mut input, mut place, mut given) = (&bytes[..], 0, 0);
        for (kind, call, body) in &all {
            place += 34 + body.len();
            if place > same {
                break;
            }
            assert_eq!(frame::read(&mut input), Ok((*kind, *call, body.clone())));
        }
        while let Ok((_, _, body)) = frame::read(&mut input) {
            given += body.len();
        }
        assert!(given <= bytes.len());
    }
}

/// Whole connections: what a link gives is a prefix of what was sent, or an error of one line.
#[test]
fn connections_of_mutated_messages_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut draw = Draw(11);
    for _ in 0..times(300) {
        let (mut bytes, _) = messages(&mut draw);
        draw.mutate(&mut bytes);
        let (mut near, far) = pair(&listener);
        let mut link = TcpLink::new(far, Duration::from_secs(5), None).unwrap();
        near.write_all(&bytes).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let error = loop {
            match link.receive() {
                Ok((_, _, body)) => assert!(body.len() <= bytes.len()),
                Err(why) => break why,
            }
        };
        assert!(!error.is_empty() && !error.contains('\n'), "{error}");
        drop(near);
    }
}

/// A greeting with any change is a stranger's, who is told nothing beyond the first random number.
#[test]
fn changed_greetings_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = b"the token";
    let mut draw = Draw(13);
    for i in 0..times(300) {
        let (near, mut far) = pair(&listener);
        let (inner, mut outer) = pair(&listener);
        // The caller greets through a middleman, who changes what it says.
        let caller = std::thread::spawn(move || {
            let mut inner = inner;
            hello::limit(&inner, Duration::from_secs(5)).unwrap();
            hello::greet(&mut inner, secret, Hello { rank: 1, size: 2, port: 9 })
        });
        let middle = std::thread::spawn(move || {
            let mut near = near;
            let mut first = [0; 40];
            near.read_exact(&mut first).unwrap();
            outer.write_all(&first).unwrap();
            let mut said = [0; 82];
            outer.read_exact(&mut said).unwrap();
            let mut changed = said.to_vec();
            while changed.get(..82) == Some(&said[..]) {
                changed = said.to_vec();
                draw.mutate(&mut changed);
            }
            if i == 0 {
                changed = said.to_vec();
            }
            // The listener may have read what it needs to close the connection.
            let _ = near.write_all(&changed);
            let _ = near.shutdown(Shutdown::Write);
            draw
        });
        let asked = hello::ask(&mut far, secret, Duration::from_secs(5));
        // The unchanged one is let in, or the test would show nothing.
        assert_eq!(asked.is_ok(), i == 0);
        drop(far);
        draw = middle.join().unwrap();
        assert!(!matches!(caller.join().unwrap(), Ok(Ok(()))));
    }
}

/// A rank that is gone after all have come and before it is connected to all: whoever waits for it
/// learns that from rank 0, long before the time is up.
#[test]
fn a_rank_that_goes_at_the_door_holds_up_nobody() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let options = TcpOptions { start: Duration::from_secs(60), timeout: Duration::from_secs(5) };
    let began = Instant::now();
    let of = |rank| {
        let (address, token) = (address.to_string(), Some("the token".to_string()));
        let launch =
            Launch { rank, size: 3, address, spare_ports: 0, run: None, local: None, token };
        std::thread::spawn(move || Tcp::join(&launch, options).map(drop).unwrap_err().to_string())
    };
    let ranks = [of(0), of(1)];
    // Rank 2 says who it is, and nothing more.
    let mut door = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let greeted = hello::greet(&mut door, b"the token", Hello { rank: 2, size: 3, port: 9 });
    assert!(matches!(greeted, Ok(Ok(()))));
    drop(door);
    for error in ranks.map(|rank| rank.join().unwrap()) {
        assert!(error.contains("rank 2"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// A rank whose time to start is over waits on, once it has found rank 0: until that has told who
/// is missing, or that all have come.
#[test]
fn a_rank_that_came_before_rank_0_waits_as_long_as_that_does() {
    let options = TcpOptions { start: Duration::from_secs(2), timeout: Duration::from_secs(5) };
    for (delays, all_come) in [(&[1500, 0][..], false), (&[1500, 0, 2500][..], true)] {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let ranks: Vec<_> = (delays.iter().enumerate())
            .map(|(rank, delay)| {
                let (address, token) = (address.clone(), Some("the token".to_string()));
                let (run, local) = (None, None);
                let launch = Launch { rank, size: 3, address, spare_ports: 0, run, local, token };
                let delay = Duration::from_millis(*delay);
                std::thread::spawn(move || {
                    std::thread::sleep(delay);
                    Tcp::join(&launch, options).map_err(|e| e.to_string())
                })
            })
            .collect();
        // Kept until all have ended: one that is dropped is gone for the others.
        let joined: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        for joined in &joined {
            match joined {
                Ok(_) => assert!(all_come),
                Err(why) => assert!(!all_come && why.contains("rank 2 did not come"), "{why}"),
            }
        }
    }
}

/// A rank that has come and ends while others are still to come: whoever is there learns it at
/// once, and not when the time for all to come is over.
#[test]
fn a_rank_that_ends_before_all_have_come_is_missed_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let options = TcpOptions { start: Duration::from_secs(60), timeout: Duration::from_secs(5) };
    let began = Instant::now();
    let of = |rank| {
        let (address, token) = (address.to_string(), Some("the token".to_string()));
        let (run, local) = (None, None);
        let launch = Launch { rank, size: 4, address, spare_ports: 0, run, local, token };
        std::thread::spawn(move || Tcp::join(&launch, options).map(drop).unwrap_err().to_string())
    };
    let ranks = [of(0), of(1)];
    let mut door = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let greeted = hello::greet(&mut door, b"the token", Hello { rank: 2, size: 4, port: 9 });
    assert!(matches!(greeted, Ok(Ok(()))));
    drop(door);
    for error in ranks.map(|rank| rank.join().unwrap()) {
        assert!(error.contains("rank 2 has ended"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// A rank can be told to wait no longer: for ranks to come, for rank 0, and in an exchange.
#[test]
fn a_watch_ends_all_waiting() {
    let options = TcpOptions { start: Duration::from_secs(60), timeout: Duration::from_secs(60) };
    let launch = |rank, size, address: &str| {
        let (address, token) = (address.to_string(), Some("the token".to_string()));
        Launch { rank, size, address, spare_ports: 0, run: None, local: None, token }
    };
    let address = || {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let began = Instant::now();
    let watch: Watch = Arc::new(move || {
        (began.elapsed() > Duration::from_millis(700)).then(|| "was interrupted".to_string())
    });
    let ended = |joined: Result<Tcp>| joined.map(drop).unwrap_err().to_string();
    let (alone, both) = (address(), address());
    for (rank, address) in [(0, &alone), (1, &alone), (1, &both)] {
        // With the last one is a rank 0 that waits for a third.
        let host = (address == &both).then(|| {
            let host = launch(0, 3, address);
            let options = TcpOptions { start: Duration::from_secs(3), ..options };
            std::thread::spawn(move || Tcp::join(&host, options).map(drop))
        });
        let error = ended(Tcp::join_watched(&launch(rank, 3, address), options, watch.clone()));
        assert!(error.contains("was interrupted"), "{error}");
        let left = host.map(|host| host.join().unwrap().unwrap_err().to_string());
        assert!(left.is_none_or(|why| why.contains("rank")));
    }
    let address = address();
    let other = launch(1, 2, &address);
    let other = std::thread::spawn(move || {
        let joined = Tcp::join(&other, options).unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        drop(joined);
    });
    let later = Instant::now();
    let watch: Watch = Arc::new(move || {
        (later.elapsed() > Duration::from_millis(700)).then(|| "was interrupted".to_string())
    });
    let mut rank = Tcp::join_watched(&launch(0, 2, &address), options, watch).unwrap();
    let error = rank.barrier().unwrap_err().to_string();
    assert!(error.contains("was interrupted"), "{error}");
    other.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(30));
}
