//! Agreement on settings before the first step.

use crate::{Exchange, ExchangeError, Result};

/// An error unless the named facts (versions, settings, checksums of data) are equal on all ranks.
/// It names the first rank that differs from rank 0, and the fact.
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
        let why = format!("{}; start all ranks alike", difference(&first, &theirs));
        let (rank, size) = (exchange.rank(), exchange.size());
        return Err(ExchangeError::Peer { rank, size, peer, why });
    }
    Ok(())
}

/// The first fact whose value on a rank differs from that of rank 0, or that one of them lacks.
fn difference(first: &[String], theirs: &[String]) -> String {
    fn of<'t>(facts: &'t [String], name: &str) -> Option<&'t String> {
        facts.as_chunks::<2>().0.iter().find(|[n, _]| n == name).map(|[_, value]| value)
    }
    let (first_facts, their_facts) = (first.as_chunks::<2>().0, theirs.as_chunks::<2>().0);
    for [name, value] in first_facts {
        if let Some(other) = of(theirs, name).filter(|other| *other != value) {
            let (other, value) = (shortened(other), shortened(value));
            return format!("has another {name} than rank 0: {other} in place of {value}");
        }
    }
    let lacking = |name: &str, value: &str| format!("`{name}` = {}", shortened(value));
    if let Some([name, value]) = their_facts.iter().find(|[name, _]| of(first, name).is_none()) {
        return format!("has {}, which rank 0 lacks", lacking(name, value));
    }
    if let Some([name, value]) = first_facts.iter().find(|[name, _]| of(theirs, name).is_none()) {
        return format!("lacks {}, which rank 0 has", lacking(name, value));
    }
    "runs another program or version than rank 0".into()
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

/// A value shortened to fit into a line.
fn shortened(value: &str) -> String {
    let line: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("`{}...`", &line[..at]),
        None => format!("`{line}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_named() {
        let facts = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        let first = facts(&["version", "1", "clip", "0.5", "seed", "7"]);
        for (theirs, says) in [
            (&["version", "1", "clip", "0.1", "seed", "7"][..], "another clip than rank 0: `0.1`"),
            (&["version", "1", "seed", "7"], "lacks `clip` = `0.5`, which rank 0 has"),
            (
                &["version", "1", "clip", "0.5", "ema", "1", "seed", "7"],
                "has `ema` = `1`, which rank 0 lacks",
            ),
            (&["version", "1", "seed", "7", "clip", "0.5"], "another program"),
            (&["version", "2"], "another version than rank 0: `2` in place of `1`"),
            (&[], "lacks `version` = `1`"),
        ] {
            let why = difference(&first, &facts(theirs));
            assert!(why.contains(says), "{why}");
        }
    }
}
