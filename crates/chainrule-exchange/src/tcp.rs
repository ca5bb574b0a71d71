//! Ranks as processes, connected by TCP.
//!
//! Rank 0 listens at the run's address. Each other rank listens on the interface by which it
//! reaches rank 0, tells it the port, and receives the addresses of all. Each pair has one
//! connection, on which both authenticate by a keyed hash over fresh nonces with the run's token. A
//! stranger is rejected and disturbs nobody.

mod address;
mod frame;
mod hello;
mod link;
mod token;

#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use self::address::Failure;
use self::hello::{Hello, Proved, Refusal};
use self::link::TcpLink;
use self::token::Token;
use crate::links::{Links, exchange_by_links};
use crate::{Exchange, ExchangeError, Launch, Result};

/// Timeouts of a [`Tcp`] exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Time for all ranks to join.
    pub start: Duration,
    /// Time without a heartbeat after which a peer counts as gone. A background thread sends
    /// heartbeats, so that a long computation is no silence.
    pub timeout: Duration,
}

impl Default for TcpOptions {
    /// Five minutes to start, for queues of clusters, and 30 seconds of silence.
    fn default() -> Self {
        TcpOptions { start: Duration::from_secs(300), timeout: Duration::from_secs(30) }
    }
}

/// Polled by a rank that waits for others; a reason ends its waiting.
#[doc(hidden)]
pub type Watch = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Connections that may authenticate at once; more wait, so that strangers take no memory.
const AT_ONCE: usize = 64;

/// Time for which a rejected rank with a given secret retries: an earlier run may still listen at
/// the port.
const TURNED_AWAY: Duration = Duration::from_secs(20);

/// Interval of checks whether a rank has ended, or whether to stop waiting.
const LOOK: Duration = Duration::from_millis(200);

/// Interval of attempts to find rank 0.
const ASK: Duration = Duration::from_secs(5);

/// Time for a connection to authenticate.
const PROOF: Duration = Duration::from_secs(5);

/// A rank as a process.
pub struct Tcp(Links<TcpLink>);

impl Tcp {
    /// Joins the run, and returns when all ranks have joined.
    ///
    /// Without a token in `launch`, ranks on one machine share one by a file that only their user
    /// can read. Errors name the rank at fault: a port in use, another number of ranks, a rank that
    /// joined twice or never.
    pub fn join(launch: &Launch, options: TcpOptions) -> Result<Tcp> {
        Tcp::join_with(launch, options, None)
    }

    /// As [`Tcp::join`], polling `watch` whenever this rank waits, now and later.
    #[doc(hidden)]
    pub fn join_watched(launch: &Launch, options: TcpOptions, watch: Watch) -> Result<Tcp> {
        Tcp::join_with(launch, options, Some(watch))
    }

    fn join_with(launch: &Launch, options: TcpOptions, watch: Option<Watch>) -> Result<Tcp> {
        let fail = |why: String| ExchangeError::Start { rank: launch.rank, size: launch.size, why };
        let deadline = Instant::now() + options.start;
        let patience = address::patience(deadline);
        let find = || address::find(&launch.address);
        let address = address::until(patience, &launch.address, find).map_err(&fail)?;
        let token = Token::of(launch, address).map_err(&fail)?;
        let (start, timeout) = (options.start, options.timeout);
        let of = watch.clone();
        let mut meeting = Meeting { launch, token, start, deadline, patience, timeout, watch: of };
        let streams = if launch.rank == 0 { meeting.host() } else { meeting.guest(address) };
        let link = |stream| TcpLink::new(stream, timeout, watch.clone());
        let links = streams.map_err(&fail)?.into_iter().map(|s| s.map(link).transpose());
        let links = links.collect::<Result<Vec<_>, _>>().map_err(|e| fail(e.to_string()))?;
        let mut tcp = Tcp(Links::new(launch.rank, links));
        // A barrier, so that all have all their connections.
        if let Err(e) = tcp.barrier() {
            // A rank that waits for a third one learns from this one that it is gone.
            tcp.abort(&e.to_string());
            return Err(e);
        }
        Ok(tcp)
    }
}

exchange_by_links!(Tcp);

type Streams = Vec<Option<TcpStream>>;

/// The rendezvous of the ranks.
struct Meeting<'a> {
    launch: &'a Launch,
    token: Token,
    start: Duration,
    deadline: Instant,
    /// Deadline for the name of rank 0 to become known or move.
    patience: Instant,
    timeout: Duration,
    watch: Option<Watch>,
}

impl Meeting<'_> {
    /// Rank 0: accepts all others, then sends the addresses of all.
    fn host(&self) -> Result<Streams, String> {
        let name = &self.launch.address;
        let listener = address::until(self.patience, name, || self.listener(address::find(name)?))?;
        self.token.publish()?;
        let mut came = self.nobody();
        if let Err(why) = self.accept(&listener, 1..self.launch.size, &mut came, None) {
            came.iter_mut().flatten().for_each(|came| hello::write_end(&mut came.stream, &why));
            return Err(why);
        }
        let table: Vec<Option<SocketAddr>> =
            came.iter().map(|c| c.as_ref().map(|c| c.address)).collect();
        let mut streams: Streams = came.into_iter().map(|c| c.map(|c| c.stream)).collect();
        let mut missing = None;
        for (peer, stream) in streams.iter_mut().enumerate() {
            if let Some(Err(why)) = stream.as_mut().map(|s| hello::write_table(s, &table)) {
                missing = missing.or(Some(format!("rank {peer} {why}")));
            }
        }
        if let Some(why) = missing {
            streams.iter_mut().flatten().for_each(|stream| hello::write_end(stream, &why));
            return Err(why);
        }
        Ok(streams)
    }

    /// A listener on the first free port.
    fn listener(&self, address: SocketAddr) -> Result<TcpListener, Failure> {
        for bound in self.places(address).map(TcpListener::bind) {
            match bound {
                Ok(listener) => return Ok(listener),
                Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                // A name server may still return the address of an earlier rank 0.
                Err(e) => {
                    return Err(Failure {
                        may_pass: e.kind() == ErrorKind::AddrNotAvailable,
                        why: format!(
                            "cannot listen at {address}: {e}; MASTER_ADDR is to be an address of \
                             the machine of rank 0"
                        ),
                    });
                }
            }
        }
        Err(Failure::lasting(format!(
            "the port of {address} is in use; set MASTER_PORT to a free one, on all ranks, unless \
             this is a second process with rank 0"
        )))
    }

    /// Addresses on which rank 0 may listen, in the order of attempts.
    fn places(&self, address: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        let first = address.port();
        let last = first.saturating_add(self.launch.spare_ports);
        (first..=last).map(move |port| SocketAddr::new(address.ip(), port))
    }

    /// Other ranks: find rank 0, receive the addresses of the others, and connect to those of lower
    /// rank.
    fn guest(&mut self, address: SocketAddr) -> Result<Streams, String> {
        let (rank, size) = (self.launch.rank, self.launch.size);
        let (listener, mut first) = self.reach(0, address)?;
        // Rank 0 started earlier, and waits for the others as long as its own deadline allows.
        let until = Instant::now() + self.start + PROOF;
        let of_first = |why: String| format!("rank 0 {why}");
        while !hello::is_heard(&first, LOOK).map_err(of_first)? && Instant::now() < until {
            self.look()?;
        }
        let table = hello::read_table(&mut first, size, PROOF).map_err(of_first)?;
        // All have joined, however long this one has waited for them.
        self.deadline = self.deadline.max(Instant::now() + PROOF);
        let mut streams: Streams = (0..size).map(|_| None).collect();
        streams[0] = Some(first);
        for (peer, place) in table.iter().enumerate().take(rank).skip(1) {
            let place = place.ok_or_else(|| format!("rank 0 did not tell where rank {peer} is"))?;
            streams[peer] = Some(self.reach_with(peer, place, &listener)?);
        }
        let mut came = self.nobody();
        let first = streams[0].as_ref();
        self.accept(&listener, rank + 1..size, &mut came, first)?;
        for (peer, came) in came.into_iter().enumerate() {
            if let Some(came) = came {
                streams[peer] = Some(came.stream);
            }
        }
        Ok(streams)
    }

    /// A connection to rank 0, which may start later than this one, and the listener announced on
    /// it: on the interface of that connection, and no other.
    fn reach(
        &self,
        peer: usize,
        mut address: SocketAddr,
    ) -> Result<(TcpListener, TcpStream), String> {
        let (mut why, mut refused) = (String::new(), None);
        let mut asked = Instant::now();
        loop {
            self.look()?;
            // After a restart, rank 0 may have another address.
            if asked.elapsed() > ASK {
                address = address::find(&self.launch.address).unwrap_or(address);
                asked = Instant::now();
            }
            for place in self.places(address) {
                match self.reach_once(place) {
                    Ok(Ok(done)) => return Ok(done),
                    Ok(Err(refusal @ (Refusal::Size(_) | Refusal::Twice))) => {
                        return Err(refusal.to_string());
                    }
                    // An earlier run may still listen, or have left its token.
                    Ok(Err(refusal)) => {
                        why = refusal.to_string();
                        refused = refused.or(Some(Instant::now()));
                    }
                    // A refusal says more than the silence of other ports and other times.
                    Err(text) if refused.is_none() => why = text,
                    Err(_) => {}
                }
                let is_stranger = matches!(self.token, Token::Given(_))
                    && refused.is_some_and(|since| since.elapsed() > TURNED_AWAY);
                if is_stranger || self.left().is_zero() {
                    return Err(format!("rank {peer} at {address} is not there: {why}"));
                }
            }
            std::thread::sleep(Duration::from_millis(50).min(self.left()));
        }
    }

    fn reach_once(
        &self,
        address: SocketAddr,
    ) -> Result<Result<(TcpListener, TcpStream), Refusal>, String> {
        let wait = self.left().clamp(Duration::from_millis(10), PROOF);
        let mut stream = TcpStream::connect_timeout(&address, wait).map_err(|e| e.to_string())?;
        let local = stream.local_addr().map_err(|e| e.to_string())?;
        let listener = TcpListener::bind((local.ip(), 0)).map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        Ok(self.greet(&mut stream, port)?.map(|()| (listener, stream)))
    }

    fn reach_with(
        &self,
        peer: usize,
        address: SocketAddr,
        own: &TcpListener,
    ) -> Result<TcpStream, String> {
        let port = own.local_addr().map_err(|e| e.to_string())?.port();
        let wait = self.left().clamp(Duration::from_millis(10), self.timeout);
        let connected = TcpStream::connect_timeout(&address, wait);
        let mut stream =
            connected.map_err(|e| format!("rank {peer} at {address} cannot be reached: {e}"))?;
        let greeted = self
            .greet(&mut stream, port)
            .map_err(|why| format!("rank {peer} at {address} {why}"))?;
        greeted.map_err(|refusal| format!("rank {peer} at {address}: {refusal}"))?;
        Ok(stream)
    }

    fn greet(&self, stream: &mut TcpStream, port: u16) -> Result<Result<(), Refusal>, String> {
        let wait = self.left().clamp(Duration::from_millis(10), PROOF);
        hello::limit(stream, wait)?;
        let (rank, size) = (self.launch.rank as u32, self.launch.size as u32);
        hello::greet(stream, &self.token.secret()?, Hello { rank, size, port })
    }

    /// A slot for each rank.
    fn nobody(&self) -> Vec<Option<Came>> {
        (0..self.launch.size).map(|_| None).collect()
    }

    /// Accepts connections from these ranks into their slots, while none that has joined ends.
    ///
    /// Each connection authenticates on its own thread, so that a silent one blocks nobody.
    fn accept(
        &self,
        listener: &TcpListener,
        wanted: std::ops::Range<usize>,
        came: &mut [Option<Came>],
        first: Option<&TcpStream>,
    ) -> Result<(), String> {
        if wanted.is_empty() {
            return Ok(());
        }
        listener.set_nonblocking(true).map_err(|e| e.to_string())?;
        let secret = self.token.secret()?;
        let (send, receive) = sync_channel::<(Proved, TcpStream, IpAddr)>(AT_ONCE);
        let [proving, strangers] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut looked = Instant::now();
        loop {
            while proving.load(Ordering::Acquire) < AT_ONCE {
                let Ok((stream, from)) = listener.accept() else { break };
                proving.fetch_add(1, Ordering::AcqRel);
                let (send, secret, proving) = (send.clone(), secret.clone(), proving.clone());
                let strangers = strangers.clone();
                std::thread::spawn(move || {
                    let mut stream = stream;
                    match hello::ask(&mut stream, &secret, PROOF) {
                        // Nobody waits any longer once all have joined.
                        Ok(proved) => drop(send.try_send((proved, stream, from.ip()))),
                        Err(_) => drop(strangers.fetch_add(1, Ordering::AcqRel)),
                    }
                    proving.fetch_sub(1, Ordering::AcqRel);
                });
            }
            match receive.recv_timeout(Duration::from_millis(5)) {
                Ok((proved, stream, ip)) => self.seat(came, &wanted, &proved, stream, ip)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if wanted.clone().all(|rank| came[rank].is_some()) {
                return Ok(());
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                self.look()?;
                gone(came, first).map_or(Ok(()), Err)?;
            }
            if self.left().is_zero() {
                return Err(missing(wanted, came, strangers.load(Ordering::Acquire)));
            }
        }
    }

    fn seat(
        &self,
        came: &mut [Option<Came>],
        wanted: &std::ops::Range<usize>,
        proved: &Proved,
        mut stream: TcpStream,
        ip: IpAddr,
    ) -> Result<(), String> {
        let hello = proved.hello;
        let (rank, size) = (hello.rank as usize, hello.size as usize);
        if size != self.launch.size {
            hello::refuse(&mut stream, Refusal::Size(self.launch.size as u32));
            return Err(format!(
                "rank {rank} was started for {size} ranks and this one for {}; give all the same number",
                self.launch.size
            ));
        }
        if !wanted.contains(&rank) || came[rank].is_some() {
            hello::refuse(&mut stream, Refusal::Twice);
            return Err(format!("two processes say that they are rank {rank}; give each its own"));
        }
        // A peer that left again is noticed later by its connection.
        if hello::admit(&mut stream, proved).is_ok() {
            came[rank] = Some(Came { stream, address: SocketAddr::new(ip, hello.port) });
        }
        Ok(())
    }

    /// An error if this rank is to stop waiting.
    fn look(&self) -> Result<(), String> {
        self.watch.as_ref().and_then(|watch| watch()).map_or(Ok(()), Err)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// A rank that joined and has ended, with its reason if it sent one.
fn gone(came: &[Option<Came>], first: Option<&TcpStream>) -> Option<String> {
    let seated = came.iter().enumerate();
    let seated = seated.filter_map(|(rank, came)| came.as_ref().map(|came| (rank, &came.stream)));
    let mut all = first.map(|stream| (0, stream)).into_iter().chain(seated);
    all.find_map(|(rank, stream)| Some(format!("rank {rank} {}", hello::unread_end(stream)?)))
}

/// Names the missing ranks.
fn missing(wanted: std::ops::Range<usize>, came: &[Option<Came>], strangers: usize) -> String {
    let absent: Vec<usize> = wanted.filter(|&rank| came[rank].is_none()).collect();
    let mut names: Vec<String> = absent.iter().take(10).map(|rank| rank.to_string()).collect();
    if absent.len() > names.len() {
        names.push(format!("{} others", absent.len() - names.len()));
    }
    let turned_away = match strangers {
        0 => String::new(),
        1 => " (1 connection without the token was turned away)".into(),
        n => format!(" ({n} connections without the token were turned away)"),
    };
    format!(
        "rank {} did not come in time{turned_away}; was it started, with the same MASTER_ADDR, \
         MASTER_PORT and CHAINRULE_TOKEN?",
        names.join(", ")
    )
}

/// An authenticated rank.
struct Came {
    stream: TcpStream,
    address: SocketAddr,
}
