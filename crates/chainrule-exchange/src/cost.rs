//! A cost model of a step on many ranks: formulas, and a simulated slow network.

use std::time::{Duration, Instant};

use crate::sum::{buckets, owners};
use crate::{Begun, Exchange, Result, SumTree, ValuesLayout};

/// The alpha-beta model of a network: a message of n bytes takes `latency + n / bandwidth` seconds,
/// and a rank sends and receives at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Latency in seconds.
    pub latency: f64,
    /// Bandwidth in bytes per second, in each direction of a rank's link.
    pub bandwidth: f64,
}

impl Network {
    /// Ethernet of 1 Gbit/s with TCP.
    pub const ETHERNET_1G: Network = Network { latency: 50e-6, bandwidth: 117e6 };
    /// Ethernet of 10 Gbit/s with TCP.
    pub const ETHERNET_10G: Network = Network { latency: 30e-6, bandwidth: 1.17e9 };
    /// InfiniBand of 100 Gbit/s (EDR).
    pub const INFINIBAND_100G: Network = Network { latency: 1.5e-6, bandwidth: 12e9 };

    /// Seconds for an exchange of these numbers of bytes with `peers` others.
    fn seconds(self, peers: usize, sent: usize, received: usize) -> f64 {
        peers as f64 * self.latency + sent.max(received) as f64 / self.bandwidth
    }
}

/// The work of a training step.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The parameters, in order.
    pub layouts: Vec<ValuesLayout>,
    /// The number of micro-batches of a step.
    pub micro_batches: usize,
    /// Seconds of the forward and backward pass of one.
    pub micro_batch_seconds: f64,
    /// Seconds of the update of all parameters on one rank.
    pub update_seconds: f64,
    /// Standard deviation of the time of a micro-batch, relative to it: the slowest rank is waited
    /// for.
    pub jitter: f64,
}

/// Breakdown of a step's time on so many ranks, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTimes {
    /// Forward and backward passes of the slowest rank.
    pub compute: f64,
    /// Reduction of the gradients to their owners, after the last backward pass.
    pub reduce: f64,
    /// Update on the rank that owns most.
    pub update: f64,
    /// Broadcast of the parameters from their owners.
    pub gather: f64,
    /// Most bytes of gradients that a rank sends or receives.
    pub bytes: usize,
}

impl StepTimes {
    /// Seconds of the step.
    pub fn total(&self) -> f64 {
        self.compute + self.reduce + self.update + self.gather
    }
}

impl Workload {
    /// Breakdown of a step on so many ranks, without overlap of computation and communication. It
    /// follows the tree, the owners and the buckets of a [`RankSum`](crate::RankSum) to the byte.
    ///
    /// With jitter it is the mean over 64 steps of a fixed generator.
    pub fn on(&self, ranks: usize, network: Network) -> StepTimes {
        let ranks = ranks.clamp(1, self.micro_batches.max(1));
        let tree = SumTree::new(self.micro_batches);
        let bytes: Vec<usize> = self.layouts.iter().map(|layout| layout.bytes()).collect();
        let owners = owners(&bytes, ranks);
        let (all, peers) = (bytes.iter().sum::<usize>(), ranks - 1);
        let nodes: Vec<usize> =
            (0..ranks).map(|rank| tree.nodes(tree.share(rank, ranks)).len()).collect();
        let every: usize = nodes.iter().sum();
        // Each rank's link handles one bucket after the other; the slowest rank is waited for.
        let (mut reducing, mut gathering) = (vec![0.0f64; ranks], vec![0.0f64; ranks]);
        let (mut owned, mut moved) = (vec![0usize; ranks], vec![0usize; ranks]);
        for bucket in buckets(&self.layouts) {
            let mut own = vec![0usize; ranks];
            bucket.for_each(|i| own[owners[i]] += bytes[i]);
            let whole: usize = own.iter().sum();
            for rank in 0..ranks {
                let sent = nodes[rank] * (whole - own[rank]);
                let received = (every - nodes[rank]) * own[rank];
                reducing[rank] += network.seconds(peers, sent, received);
                moved[rank] += sent.max(received);
                let given = peers * own[rank];
                gathering[rank] += network.seconds(peers, given, whole - own[rank]);
                owned[rank] += own[rank];
            }
        }
        let slowest = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
        let (mut reduce, gather) = (slowest(reducing), slowest(gathering));
        if ranks > 1 {
            // Loss, counts and other headers before the update.
            reduce += network.seconds(peers, 0, 0);
        }
        let largest = owned.into_iter().max().unwrap_or(0);
        StepTimes {
            compute: self.compute(tree, ranks),
            reduce,
            update: self.update_seconds * largest as f64 / all.max(1) as f64,
            gather,
            bytes: moved.into_iter().max().unwrap_or(0),
        }
    }

    /// Seconds of the slowest rank.
    fn compute(&self, tree: SumTree, ranks: usize) -> f64 {
        let most = (0..ranks).map(|rank| tree.share(rank, ranks).len()).max().unwrap_or(0);
        if self.jitter == 0.0 {
            return most as f64 * self.micro_batch_seconds;
        }
        const STEPS: usize = 64;
        let mut state = 1u64;
        // The sum of 12 uniform samples approximates a normal one.
        let mut normal = || {
            (0..12).fold(-6.0, |sum, _| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                sum + (state >> 11) as f64 / (1u64 << 53) as f64
            })
        };
        let mut slowest = || {
            let mut of = |rank: usize| {
                let parts = 0..tree.share(rank, ranks).len();
                parts.map(|_| (1.0 + self.jitter * normal()).max(0.0)).sum::<f64>()
            };
            (0..ranks).map(&mut of).fold(0.0, f64::max)
        };
        let sum: f64 = (0..STEPS).map(|_| slowest()).sum();
        sum / STEPS as f64 * self.micro_batch_seconds
    }
}

/// An exchange slowed down to a simulated network: each call waits until that network would be
/// done.
///
/// ```
/// use chainrule_exchange::{Delayed, Exchange, Network, Threads};
/// use std::time::{Duration, Instant};
/// let network = Network { latency: 0.02, bandwidth: 1e9 };
/// let began = Instant::now();
/// let ranks: Vec<_> = Threads::group(2).into_iter().map(|rank| {
///     std::thread::spawn(move || Delayed::new(rank, network).barrier())
/// }).collect();
/// for rank in ranks {
///     rank.join().unwrap()?;
/// }
/// assert!(began.elapsed() >= Duration::from_millis(20));
/// # Ok::<(), chainrule_exchange::ExchangeError>(())
/// ```
pub struct Delayed<E> {
    inner: E,
    network: Network,
    /// Time at which the link has sent everything so far.
    free: Instant,
    /// For each exchange in progress: its time, and the bytes that it sends.
    begun: std::collections::VecDeque<(Instant, usize)>,
}

impl<E: Exchange> Delayed<E> {
    /// Wraps an exchange in a simulated network.
    pub fn new(inner: E, network: Network) -> Delayed<E> {
        Delayed { inner, network, free: Instant::now(), begun: Default::default() }
    }

    fn note(&mut self, sent: usize) {
        self.begun.push_back((Instant::now(), sent));
    }
}

impl<E: Exchange> Exchange for Delayed<E> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let begun = self.begin(parts)?;
        self.finish(begun)
    }

    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        let rank = self.rank();
        let others = parts.iter().enumerate().filter(|(peer, _)| *peer != rank);
        self.note(others.map(|(_, part)| part.len()).sum());
        self.inner.begin(parts)
    }

    fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        self.note(own.len() * (self.size() - 1));
        self.inner.begin_gather(own)
    }

    fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        let received = self.inner.finish(begun)?;
        let (rank, peers) = (self.rank(), self.size() - 1);
        if let Some((from, sent)) = self.begun.pop_front() {
            let others = received.iter().enumerate().filter(|(peer, _)| *peer != rank);
            let came = others.map(|(_, part)| part.len()).sum();
            let seconds = self.network.seconds(peers, sent, came);
            self.free = self.free.max(from) + Duration::from_secs_f64(seconds);
            std::thread::sleep(self.free.saturating_duration_since(Instant::now()));
        }
        Ok(received)
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let begun = self.begin_gather(own.to_vec())?;
        self.finish(begun)
    }

    fn abort(&mut self, why: &str) {
        self.inner.abort(why);
    }
}
