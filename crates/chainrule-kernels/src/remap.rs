//! Copies whose source position along each axis depends on the position along that axis only:
//! padding, rolling, repeating.
//!
//! The map of an axis is a list of runs, so that whole stretches are copied at once. Neighbouring
//! axes that are taken as they are become one.

use crate::param::Parameters;
use std::ops::{Add, Range};

use super::copy::line;
use super::map::{PIECE, SHARED, add_assign};
use super::threads;

/// A stretch of positions of a result along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct Run {
    /// Number of positions.
    pub len: usize,
    /// Source of the positions.
    pub from: AxisSource,
}

/// Source of a run along the axis of the source array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub enum AxisSource {
    /// From this position on.
    Up(usize),
    /// From this position down.
    Down(usize),
    /// All from this position.
    Same(usize),
    /// From nowhere: filled.
    Fill,
}

/// The map of one axis: its runs in order, repeated `times` times.
#[derive(Clone, Debug, Parameters)]
pub struct AxisMap {
    /// The runs; none is empty.
    pub runs: Vec<Run>,
    /// Number of repetitions.
    pub times: usize,
}

impl AxisMap {
    /// The runs that are not empty, once.
    pub fn once(runs: impl IntoIterator<Item = Run>) -> AxisMap {
        AxisMap { runs: runs.into_iter().filter(|r| r.len > 0).collect(), times: 1 }
    }

    /// The size of the result along the axis, or usize::MAX if it is larger.
    pub fn size(&self) -> usize {
        let once = self.runs.iter().fold(0usize, |n, r| n.saturating_add(r.len));
        once.saturating_mul(self.times)
    }
}

/// One axis, or several neighbours that are taken as they are, with the number of elements that a
/// position holds.
struct AxisRun<'a> {
    /// `None`: every position comes from itself.
    map: Option<&'a AxisMap>,
    size: usize,
    /// Elements to a position of the source.
    source: usize,
    /// Elements to a position of the result.
    result: usize,
}

/// The axes as levels, from the first to the last. `maps` has an entry for each axis; the source
/// has these `sizes`.
fn levels<'a>(sizes: &[usize], maps: &'a [Option<AxisMap>]) -> Vec<AxisRun<'a>> {
    let (mut out, mut source, mut result) = (Vec::<AxisRun<'a>>::new(), 1, 1);
    for (&size, map) in sizes.iter().zip(maps).rev() {
        let now = map.as_ref().map_or(size, AxisMap::size);
        match (map, out.last_mut()) {
            (None, None) => {}
            (None, Some(last)) if last.map.is_none() => last.size *= size,
            (map, _) => out.push(AxisRun { map: map.as_ref(), size: now, source, result }),
        }
        source *= size;
        result *= now;
    }
    if out.is_empty() {
        // Nothing moves: one copy of the whole.
        out.push(AxisRun { map: None, size: 1, source, result });
    }
    out.reverse();
    out
}

impl AxisRun<'_> {
    /// All runs, in their order.
    #[inline]
    fn all(&self, mut each: impl FnMut(Run)) {
        match self.map {
            None => each(Run { len: self.size, from: AxisSource::Up(0) }),
            Some(map) => (0..map.times).for_each(|_| map.runs.iter().copied().for_each(&mut each)),
        }
    }

    /// The runs that the positions `range` of the result consist of.
    fn cut(&self, range: Range<usize>, mut each: impl FnMut(Run)) {
        let Some(map) = self.map else {
            return each(Run { len: range.len(), from: AxisSource::Up(range.start) });
        };
        let cycle: usize = map.runs.iter().map(|r| r.len).sum();
        let mut at = range.start - range.start % cycle;
        while at < range.end {
            for run in &map.runs {
                let (low, high) = (range.start.max(at), range.end.min(at + run.len));
                if low < high {
                    let skip = low - at;
                    let from = match run.from {
                        AxisSource::Up(p) => AxisSource::Up(p + skip),
                        AxisSource::Down(p) => AxisSource::Down(p - skip),
                        other => other,
                    };
                    each(Run { len: high - low, from });
                }
                at += run.len;
            }
        }
    }
}

impl AxisSource {
    /// The source position of the `k`th of a run.
    fn at(self, k: usize) -> usize {
        match self {
            AxisSource::Up(p) => p + k,
            AxisSource::Down(p) => p - k,
            AxisSource::Same(p) => p,
            AxisSource::Fill => unreachable!("a filled run has no source"),
        }
    }
}

/// Rows up to this many elements are short: finding each run of such a row costs more than copying
/// it.
const SHORT: usize = 256;

/// Writes `out` from `x`, row-major of `sizes`, by the map of each axis (`None`: as it is); `fill`
/// where nothing is mapped.
pub fn copy<T: Copy + Send + Sync>(
    x: &[T],
    sizes: &[usize],
    maps: &[Option<AxisMap>],
    fill: T,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let levels = levels(sizes, maps);
    let first = &levels[0];
    if out.len() < SHARED {
        return copy_level(&levels, x, fill, out);
    }
    let rows = (PIECE / first.result).max(1);
    let pieces = out.chunks_mut(rows * first.result).enumerate();
    threads::for_each(true, pieces, |(i, out)| {
        let start = i * rows;
        copy_range(&levels, x, start..start + out.len() / first.result, fill, out);
    });
}

/// The positions `range` of the first of the levels.
fn copy_range<T: Copy>(
    levels: &[AxisRun<'_>],
    x: &[T],
    range: Range<usize>,
    fill: T,
    mut out: &mut [T],
) {
    levels[0].cut(range, |run| out = copy_run(levels, x, run, fill, std::mem::take(&mut out)));
}

/// All positions of the first of the levels.
fn copy_level<T: Copy>(levels: &[AxisRun<'_>], x: &[T], fill: T, mut out: &mut [T]) {
    levels[0].all(|run| out = copy_run(levels, x, run, fill, std::mem::take(&mut out)));
}

/// Writes one run of the first of the levels to the front of `out`, and gives the rest of it.
#[inline]
fn copy_run<'o, T: Copy>(
    levels: &[AxisRun<'_>],
    x: &[T],
    run: Run,
    fill: T,
    out: &'o mut [T],
) -> &'o mut [T] {
    let (level, inner) = (&levels[0], &levels[1..]);
    let (now, rest) = out.split_at_mut(run.len * level.result);
    match run.from {
        AxisSource::Fill => now.fill(fill),
        AxisSource::Up(p) if inner.is_empty() => {
            line(&x[p * level.source..][..now.len()], now);
        }
        AxisSource::Same(p) if inner.is_empty() && level.source == 1 => now.fill(x[p]),
        AxisSource::Down(p) if inner.is_empty() && level.source == 1 => {
            let back = x[p + 1 - run.len..=p].iter().rev();
            now.iter_mut().zip(back).for_each(|(o, &x)| *o = x);
        }
        AxisSource::Up(p) if inner.len() == 1 && level.result <= SHORT => {
            let size = level.source * run.len;
            copy_rows(&inner[0], &x[p * level.source..][..size], level, fill, now);
        }
        from => {
            for (k, now) in now.chunks_exact_mut(level.result).enumerate() {
                let block = &x[from.at(k) * level.source..][..level.source];
                match inner.is_empty() {
                    true => line(block, now),
                    false => copy_level(inner, block, fill, now),
                }
            }
        }
    }
    rest
}

/// Short rows that all consist of the same runs: the first run of all rows, then the second, and so
/// on. `above` is the level of the rows.
fn copy_rows<T: Copy>(row: &AxisRun<'_>, x: &[T], above: &AxisRun<'_>, fill: T, out: &mut [T]) {
    let mut start = 0;
    row.all(|run| {
        let n = run.len * row.result;
        let rows = out.chunks_exact_mut(above.result).map(|out| &mut out[start..start + n]);
        match run.from {
            AxisSource::Fill => rows.for_each(|out| out.fill(fill)),
            AxisSource::Up(p) => {
                let from = p * row.source;
                let blocks = x.chunks_exact(above.source).map(|x| &x[from..from + n]);
                rows.zip(blocks).for_each(|(out, x)| out.copy_from_slice(x));
            }
            from => {
                for (out, x) in rows.zip(x.chunks_exact(above.source)) {
                    if row.source == 1 {
                        out.iter_mut().enumerate().for_each(|(k, o)| *o = x[from.at(k)]);
                        continue;
                    }
                    for (k, out) in out.chunks_exact_mut(row.result).enumerate() {
                        out.copy_from_slice(&x[from.at(k) * row.source..][..row.source]);
                    }
                }
            }
        }
        start += n;
    });
}

/// The reverse of [`copy`]: `out`, row-major of `sizes`, becomes zero, then each element of `g` is
/// added at the place that it came from, in the order of `g`.
pub fn add<T>(g: &[T], sizes: &[usize], maps: &[Option<AxisMap>], out: &mut [T])
where
    T: Copy + Default + Send + Sync + Add<Output = T>,
{
    out.fill(T::default());
    if g.is_empty() || out.is_empty() {
        return;
    }
    let levels = levels(sizes, maps);
    let first = &levels[0];
    // Only positions that come from themselves can be shared among threads; others may add to the
    // same place.
    if first.map.is_some() || out.len() < SHARED {
        return add_level(&levels, g, out);
    }
    let rows = (PIECE / first.source).max(1);
    let pieces = out.chunks_mut(rows * first.source).zip(g.chunks(rows * first.result));
    threads::for_each(true, pieces, |(out, g)| {
        let whole = Run { len: out.len() / first.source, from: AxisSource::Up(0) };
        add_run(&levels, g, whole, out);
    });
}

/// Adds one run of the first of the levels, from the front of `g`, and gives the rest of it.
#[inline]
fn add_run<'g, T>(levels: &[AxisRun<'_>], g: &'g [T], run: Run, out: &mut [T]) -> &'g [T]
where
    T: Copy + Default + Add<Output = T>,
{
    let (level, inner) = (&levels[0], &levels[1..]);
    let (now, rest) = g.split_at(run.len * level.result);
    match run.from {
        AxisSource::Fill => {}
        AxisSource::Up(p) if inner.is_empty() => {
            add_assign(&mut out[p * level.source..][..now.len()], now);
        }
        from => {
            for (k, now) in now.chunks_exact(level.result).enumerate() {
                let block = &mut out[from.at(k) * level.source..][..level.source];
                match inner.is_empty() {
                    true => block.iter_mut().zip(now).for_each(|(o, &g)| *o = *o + g),
                    false => add_level(inner, now, block),
                }
            }
        }
    }
    rest
}

fn add_level<T>(levels: &[AxisRun<'_>], mut g: &[T], out: &mut [T])
where
    T: Copy + Default + Add<Output = T>,
{
    levels[0].all(|run| g = add_run(levels, g, run, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 10] = [1, 7, 8, 9, 15, 16, 17, 127, 128, 129];

    fn up(p: usize, len: usize) -> Run {
        Run { len, from: AxisSource::Up(p) }
    }

    /// The source position of each position of the result, by walking the runs.
    fn walked(map: &Option<AxisMap>, size: usize) -> Vec<Option<usize>> {
        let Some(map) = map else {
            return (0..size).map(Some).collect();
        };
        let at = |r: &Run, k: usize| (r.from != AxisSource::Fill).then(|| r.from.at(k));
        let once = map.runs.iter().flat_map(|r| (0..r.len).map(move |k| at(r, k)));
        let once: Vec<_> = once.collect();
        std::iter::repeat_n(once, map.times).flatten().collect()
    }

    /// Maps of every kind for an axis of this size.
    fn kinds(n: usize) -> Vec<Option<AxisMap>> {
        let fill = |len| Run { len, from: AxisSource::Fill };
        let mirrored = [Run { len: n - 1, from: AxisSource::Down(n - 1) }, up(0, n)];
        let edges = [
            Run { len: 2, from: AxisSource::Same(0) },
            up(0, n),
            Run { len: 3, from: AxisSource::Same(n - 1) },
        ];
        vec![
            None,
            Some(AxisMap::once([fill(2), up(0, n), fill(1)])),
            Some(AxisMap::once([fill(0), up(n / 2, n - n / 2), up(0, n / 2)])),
            Some(AxisMap::once(mirrored)),
            Some(AxisMap::once(edges)),
            Some(AxisMap { runs: vec![up(0, n)], times: 3 }),
        ]
    }

    fn check(sizes: &[usize; 3], maps: &[Option<AxisMap>]) {
        let x: Vec<f64> = (1..=sizes.iter().product()).map(|i| i as f64).collect();
        let from: Vec<_> = sizes.iter().zip(maps).map(|(&n, m)| walked(m, n)).collect();
        let mut want = Vec::new();
        let mut back = vec![0.0; x.len()];
        for i in &from[0] {
            for j in &from[1] {
                for k in &from[2] {
                    let place = match (i, j, k) {
                        (Some(i), Some(j), Some(k)) => Some((i * sizes[1] + j) * sizes[2] + k),
                        _ => None,
                    };
                    if let Some(p) = place {
                        back[p] += want.len() as f64;
                    }
                    want.push(place.map_or(-1.0, |p| x[p]));
                }
            }
        }
        let mut out = vec![7.0; want.len()];
        copy(&x, sizes, maps, -1.0, &mut out);
        assert_eq!(out, want, "{sizes:?} {maps:?}");
        let g: Vec<f64> = (0..want.len()).map(|i| i as f64).collect();
        let mut sums = vec![7.0; x.len()];
        add(&g, sizes, maps, &mut sums);
        assert_eq!(sums, back, "{sizes:?} {maps:?}");
    }

    #[test]
    fn every_kind_on_every_axis() {
        for (n, sizes) in [(0, [3, 2, 5]), (1, [2, 3, 4]), (2, [2, 3, 4])] {
            for a in kinds(sizes[0]) {
                for b in kinds(sizes[1]) {
                    for c in kinds(sizes[2]) {
                        let mut maps = vec![a.clone(), b.clone(), c];
                        maps.rotate_left(n);
                        let mut turned = sizes;
                        turned.rotate_left(n);
                        check(&turned, &maps);
                    }
                }
            }
        }
    }

    #[test]
    fn odd_sizes_and_arrays_that_are_shared_out() {
        for n in SIZES {
            for map in kinds(n) {
                check(&[1, 1, n], &[None, None, map.clone()]);
                check(&[n, 2, 1], &[map, None, None]);
            }
        }
        for map in kinds(SHARED + 3) {
            check(&[1, 1, SHARED + 3], &[None, None, map]);
        }
        // Rows that are short, and too long for that.
        for n in [60, 300] {
            for map in kinds(n) {
                check(&[SHARED / n + 7, 1, n], &[None, None, map.clone()]);
            }
        }
        for map in kinds(600) {
            check(&[300, 600, 1], &[None, map.clone(), None]);
            check(&[600, 1, 300], &[map, None, None]);
        }
    }
}
