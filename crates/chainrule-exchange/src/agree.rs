//! Agreement on settings before the first step.

use crate::{Exchange, ExchangeError, Result};

/// An error unless all ranks have the same texts under the same names: versions, settings, sums of
/// data. It names the first rank that differs from rank 0, and in what.
///
/// ```
/// use chainrule_exchange::{Threads, agree};
/// let mut ranks = Threads::group(1);
/// agree(&mut ranks[0], &[("version", "0.1"), ("data", "1f6c")])?;
/// # Ok::<(), chainrule_exchange::ExchangeError>(())
/// ```
pub fn agree(exchange: &mut (impl Exchange + ?Sized), facts: &[(&str, &str)]) -> Result<()> {
    let mut own = Vec::new();
    for text in facts.iter().flat_map(|(name, value)| [name, value]) {
        own.extend_from_slice(&(text.len() as u64).to_le_bytes());
        own.extend_from_slice(text.as_bytes());
    }
    let all = exchange.all_gather(&own)?;
    let first = texts(&all[0]);
    for (peer, bytes) in all.iter().enumerate() {
        if *bytes == all[0] {
            continue;
        }
        let theirs = texts(bytes);
        let differ = first.chunks(2).zip(theirs.chunks(2)).find(|(a, b)| a != b);
        let why = match differ {
            Some(([name, a], [other, b])) if name == other => format!(
                "has another {name} than rank 0: {} in place of {}; start all ranks alike",
                shortened(b),
                shortened(a)
            ),
            _ => "runs another program or version than rank 0; start all ranks alike".into(),
        };
        let (rank, size) = (exchange.rank(), exchange.size());
        return Err(ExchangeError::Peer { rank, size, peer, why });
    }
    Ok(())
}

fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let Ok(len) = usize::try_from(u64::from_le_bytes(*len)) else { break };
        let Some((text, rest)) = rest.split_at_checked(len) else { break };
        out.push(String::from_utf8_lossy(text).into_owned());
        bytes = rest;
    }
    out
}

/// A value that fits into a line.
fn shortened(value: &str) -> String {
    let line: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("`{}...`", &line[..at]),
        None => format!("`{line}`"),
    }
}
