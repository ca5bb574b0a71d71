//! Resolution of rank 0's address, which may become known only after the ranks start.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time for which a name may still become known or move: a cluster registers a pod's name when it
/// runs, and name servers cache an old answer for half a minute.
const UNKNOWN: Duration = Duration::from_secs(60);

/// Interval of attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Deadline for a name to become known or move, if the start ends at `deadline`.
pub(super) fn patience(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + UNKNOWN)
}

/// Retries `once` until it succeeds, while `address` is a name and there is time.
///
/// A numeric address has one answer; so has an invalid name.
pub(super) fn until<T>(
    patience: Instant,
    address: &str,
    mut once: impl FnMut() -> Result<T, Failure>,
) -> Result<T, String> {
    let is_number = address.parse::<SocketAddr>().is_ok();
    loop {
        match once() {
            Ok(found) => return Ok(found),
            Err(Failure { why, may_pass: true }) if !is_number => {
                let left = patience.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(why);
                }
                std::thread::sleep(PAUSE.min(left));
            }
            Err(Failure { why, .. }) => return Err(why),
        }
    }
}

/// An error, and whether a retry may succeed.
pub(super) struct Failure {
    pub why: String,
    pub may_pass: bool,
}

impl Failure {
    pub fn lasting(why: String) -> Failure {
        Failure { why, may_pass: false }
    }
}

/// The current socket address of `address`.
pub(super) fn find(address: &str) -> Result<SocketAddr, Failure> {
    let unknown = |more: String| {
        format!("the address {address} of rank 0 is not known{more}; check MASTER_ADDR")
    };
    let mut all = address.to_socket_addrs().map_err(|e| Failure {
        may_pass: e.kind() != ErrorKind::InvalidInput,
        why: unknown(format!(": {e}")),
    })?;
    let place =
        all.next().ok_or_else(|| Failure { why: unknown(String::new()), may_pass: true })?;
    let ip = place.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    if ip.is_unspecified() || ip.is_multicast() || is_broadcast {
        return Err(Failure::lasting(format!(
            "{address} is no address of one machine; set MASTER_ADDR to that of rank 0"
        )));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_again_and_numbers_are_not() {
        let asked = |address: &str, may_pass: bool| {
            let mut count = 0;
            let soon = Instant::now() + Duration::from_millis(10);
            let found = until(soon, address, || {
                count += 1;
                let failed = Failure { why: "not yet".to_string(), may_pass };
                if count < 2 { Err(failed) } else { Ok(count) }
            });
            (found, count)
        };
        assert_eq!(asked("rank-0.run:29500", true), (Ok(2), 2));
        assert_eq!(asked("rank-0.run:29500", false), (Err("not yet".to_string()), 1));
        assert_eq!(asked("127.0.0.1:29500", true), (Err("not yet".to_string()), 1));
    }

    #[test]
    fn a_name_that_never_comes_ends_in_time() {
        let soon = Instant::now() + Duration::from_millis(700);
        let found = until(soon, "nobody.invalid:29500", || find("nobody.invalid:29500"));
        assert!(found.unwrap_err().contains("is not known"));
        assert!(Instant::now() >= soon);
        // Without a port no server is asked.
        assert!(!find("nobody.invalid").is_err_and(|failure| failure.may_pass));
    }
}
