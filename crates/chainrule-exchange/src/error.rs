//! The error of an exchange.

/// Result of every exchange.
pub(crate) type Result<T, E = ExchangeError> = std::result::Result<T, E>;

/// An error of an exchange: one line that says which rank and what. After it the exchange is of no
/// use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A peer's connection ended, or the peer said nothing for too long.
    #[error("rank {rank} of {size}: rank {peer} {why}")]
    Peer {
        /// The rank that noticed it.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// The rank that is meant.
        peer: usize,
        /// The problem, and the remedy.
        why: String,
    },
    /// The ranks could not come together.
    #[error("rank {rank} of {size}: {why}")]
    Start {
        /// The rank that noticed it.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// The problem, and the remedy.
        why: String,
    },
    /// The settings from the environment or the caller make no sense.
    #[error("{0}")]
    Settings(String),
}
