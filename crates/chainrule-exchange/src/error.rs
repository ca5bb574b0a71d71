//! The error of an exchange.

/// Result of every exchange.
pub(crate) type Result<T, E = ExchangeError> = std::result::Result<T, E>;

/// An error of an exchange, as one line that names the rank and the fault. The exchange is unusable
/// afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A peer's connection closed, or the peer timed out.
    #[error("rank {rank} of {size}: rank {peer} {why}")]
    Peer {
        /// The rank that noticed it.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// The rank at fault.
        peer: usize,
        /// The problem, and the remedy.
        why: String,
    },
    /// The ranks could not connect.
    #[error("rank {rank} of {size}: {why}")]
    Start {
        /// The rank that noticed it.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// The problem, and the remedy.
        why: String,
    },
    /// The settings from the environment or the caller are invalid.
    #[error("{0}")]
    Settings(String),
}
