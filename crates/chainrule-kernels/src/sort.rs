//! Sorting along the middle axis of `[outer, count, inner]`, the first few of a sorted order, the
//! middle element, and the search in what is sorted.
//!
//! An element becomes a whole number that has its order, with its position below: such numbers are
//! compared in an instruction, there are no ties, and so every algorithm is stable. NaN is the
//! largest of all; -0 and 0 are equal.

use super::map::{PIECE, SHARED};
use super::simd::vectorized;
use super::threads;
use crate::param::Parameters;

/// A number that can be sorted.
pub trait Sorted: Copy + PartialOrd + Send + Sync {
    /// Bits of a key.
    const KEY_BITS: u32;
    /// A whole number of that many bits with the order of the elements.
    fn key(self) -> u64;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Sorted for $t {
            const KEY_BITS: u32 = 8 * size_of::<$t>() as u32;
            #[inline(always)]
            fn key(self) -> u64 {
                if self.is_nan() {
                    return u64::MAX >> (64 - Self::KEY_BITS);
                }
                // Bits of positive floats have their order, those of negative ones the opposite.
                // Adding 0 makes 0 of -0.
                let bits = (self + 0.0).to_bits();
                let sign = 1 << (Self::KEY_BITS - 1);
                u64::from(if bits & sign == 0 { bits | sign } else { !bits })
            }
        }
    )*};
}
floats!(f32 f64);

impl Sorted for i64 {
    const KEY_BITS: u32 = 64;
    #[inline(always)]
    fn key(self) -> u64 {
        self as u64 ^ 1 << 63
    }
}

impl Sorted for u8 {
    const KEY_BITS: u32 = 8;
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self)
    }
}

/// A key and a position in one number.
trait Packed: Copy + Ord + Default {
    fn pack(key: u64, position: usize) -> Self;
    fn position(self) -> i64;
}

impl Packed for u64 {
    #[inline(always)]
    fn pack(key: u64, position: usize) -> u64 {
        key << 32 | position as u64
    }
    #[inline(always)]
    fn position(self) -> i64 {
        i64::from(self as u32)
    }
}

impl Packed for u128 {
    #[inline(always)]
    fn pack(key: u64, position: usize) -> u128 {
        u128::from(key) << 64 | position as u128
    }
    #[inline(always)]
    fn position(self) -> i64 {
        self as i64
    }
}

/// Part of the sorted order that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub enum Part {
    /// All of it.
    All,
    /// The first `n`, in their order or in any.
    First(usize, bool),
    /// The element at this place of it.
    At(usize),
}

impl Part {
    /// Number of elements wanted, of `count`.
    pub fn len(self, count: usize) -> usize {
        match self {
            Part::All => count,
            Part::First(k, _) => k,
            Part::At(_) => 1,
        }
    }

    /// Whether so few of `count` elements are wanted that an insertion list of them, kept in order,
    /// beats sorting all.
    fn is_few(self, count: usize) -> bool {
        matches!(self, Part::First(k, _) if (1..=FEW).contains(&k) && k < count / 8)
    }

    /// Brings the wanted elements to where they are returned.
    fn arrange<P: Packed>(self, keys: &mut [P]) -> &[P] {
        match self {
            Part::All => keys.sort_unstable(),
            Part::First(0, _) => return &[],
            Part::First(k, _) if self.is_few(keys.len()) => {
                smallest(keys, k);
                return &keys[..k];
            }
            Part::First(k, sorted) => {
                if k < keys.len() {
                    keys.select_nth_unstable(k - 1);
                }
                if sorted {
                    keys[..k].sort_unstable();
                }
                return &keys[..k];
            }
            Part::At(n) => return std::slice::from_ref(keys.select_nth_unstable(n).1),
        }
        keys
    }
}

/// The largest number of elements for which that list is kept.
const FEW: usize = 16;

/// Moves the `k` smallest keys to the front, in order. Most of the others are only compared with
/// the last of them.
fn smallest<P: Packed>(keys: &mut [P], k: usize) {
    let (front, others) = keys.split_at_mut(k);
    front.sort_unstable();
    others.iter().for_each(|&key| insert(front, key));
}

/// Puts a key into its place among the sorted ones and drops the last of them, if that is larger.
#[inline(always)]
fn insert<P: Packed>(front: &mut [P], key: P) {
    let last = front.len() - 1;
    if key < front[last] {
        let at = front.partition_point(|&f| f < key);
        front.copy_within(at..last, at + 1);
        front[at] = key;
    }
}

/// Elements compared at a time with the last key of the list.
const CHUNK: usize = 16;

#[inline(always)]
fn first_of_rows_body<const FMA: bool, T: Sorted, P: Packed>(
    x: &[T],
    count: usize,
    descending: bool,
    front: &mut [P],
    index: &mut [i64],
) {
    let k = front.len();
    let flip = if descending { u64::MAX >> (64 - T::KEY_BITS) } else { 0 };
    let pack = |x: T, i: usize| P::pack(x.key() ^ flip, i);
    for (x, index) in x.chunks_exact(count).zip(index.chunks_exact_mut(k)) {
        front.iter_mut().zip(x).enumerate().for_each(|(i, (f, &x))| *f = pack(x, i));
        front.sort_unstable();
        let mut last = x[front[k - 1].position() as usize];
        for (c, chunk) in x[k..].chunks(CHUNK).enumerate() {
            // Do not invert this comparison: a NaN may come before anything that it is compared
            // with.
            #[expect(clippy::neg_cmp_op_on_partial_ord)]
            let before = |x: T| if descending { !(x <= last) } else { !(x >= last) };
            if !chunk.iter().fold(false, |any, &x| any | before(x)) {
                continue;
            }
            for (i, &x) in chunk.iter().enumerate() {
                insert(front, pack(x, k + c * CHUNK + i));
            }
            last = x[front[k - 1].position() as usize];
        }
        index.iter_mut().zip(&*front).for_each(|(index, f)| *index = f.position());
    }
}

vectorized! {
    /// The positions of the first few elements in the sorted order of each row of `count` elements,
    /// of which there are more; `front` has room for their keys. Most chunks of a row hold none of
    /// them, as one comparison for each chunk shows.
    fn first_of_rows[T, P](x: &[T], count: usize, descending: bool, front: &mut [P], index: &mut [i64])
        where [T: Sorted, P: Packed] = first_of_rows_body
}

/// Columns that are sorted together: they are read from memory row by row.
const TILE: usize = 16;

fn order_as<T: Sorted, P: Packed>(
    x: &[T],
    count: usize,
    inner: usize,
    descending: bool,
    part: Part,
    index: &mut [i64],
) {
    let taken = part.len(count);
    if inner == 1 && part.is_few(count) {
        let mut front = [P::default(); FEW];
        return first_of_rows(x, count, descending, &mut front[..taken], index);
    }
    let flip = if descending { u64::MAX >> (64 - T::KEY_BITS) } else { 0 };
    let mut keys = vec![P::default(); count * inner.min(TILE)];
    for (x, index) in x.chunks_exact(count * inner).zip(index.chunks_exact_mut(taken * inner)) {
        for first in (0..inner).step_by(TILE) {
            let width = TILE.min(inner - first);
            for (i, row) in x.chunks_exact(inner).enumerate() {
                for (j, x) in row[first..][..width].iter().enumerate() {
                    keys[j * count + i] = P::pack(x.key() ^ flip, i);
                }
            }
            for (j, keys) in keys.chunks_exact_mut(count).take(width).enumerate() {
                for (row, key) in index.chunks_exact_mut(inner).zip(part.arrange(keys)) {
                    row[first + j] = key.position();
                }
            }
        }
    }
}

/// The positions along the middle axis of a part of the sorted order, `[outer, part, inner]`. Equal
/// elements keep their order, whether it rises or falls.
pub fn order<T: Sorted>(
    x: &[T],
    count: usize,
    inner: usize,
    descending: bool,
    part: Part,
    index: &mut [i64],
) {
    if index.is_empty() {
        return;
    }
    // Long rows would need more bits for their positions.
    let narrow = T::KEY_BITS <= 32 && u32::try_from(count).is_ok();
    let run = |x: &[T], index: &mut [i64]| match narrow {
        true => order_as::<T, u64>(x, count, inner, descending, part, index),
        false => order_as::<T, u128>(x, count, inner, descending, part, index),
    };
    let (size, taken) = (count * inner, part.len(count) * inner);
    let arrays = (PIECE / size).max(1);
    let pieces = x.chunks(arrays * size).zip(index.chunks_mut(arrays * taken));
    threads::for_each(x.len() >= SHARED, pieces, |(x, index)| run(x, index));
}

/// The elements that the positions name: of `x`, `[outer, count, inner]`, `taken` for each of the
/// others.
pub fn take<T: Copy>(x: &[T], index: &[i64], count: usize, inner: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let taken = index.len() / (x.len() / count);
    let size = taken * inner;
    let arrays = x.chunks_exact(count * inner).zip(index.chunks_exact(size));
    for ((x, index), out) in arrays.zip(out.chunks_exact_mut(size)) {
        for (index, out) in index.chunks_exact(inner).zip(out.chunks_exact_mut(inner)) {
            for (j, (out, &i)) in out.iter_mut().zip(index).enumerate() {
                *out = x[i as usize * inner + j];
            }
        }
    }
}

/// Groups of equal elements in a sorted order: where each group begins in it, and for each element
/// the number of its group.
pub fn groups<T: Copy + PartialEq>(x: &[T], order: &[i64], group: &mut [i64]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut last = None;
    for (i, &at) in order.iter().enumerate() {
        let x = x[at as usize];
        // NaN equals nothing, so that each is a group of its own.
        if last != Some(x) {
            starts.push(i);
            last = Some(x);
        }
        group[at as usize] = starts.len() as i64 - 1;
    }
    starts
}

/// For each value the first place in its row of `sequence` at which it could stand: before equal
/// elements, or after them if `right`. `sequence` has rows of `count` elements in rising order;
/// there is one, or one for each row of `width` values.
pub fn search<T: PartialOrd + Copy>(
    sequence: &[T],
    count: usize,
    values: &[T],
    width: usize,
    right: bool,
    out: &mut [i64],
) {
    if out.is_empty() {
        return;
    }
    let shared = sequence.len() == count;
    for (row, (values, out)) in values.chunks(width).zip(out.chunks_mut(width)).enumerate() {
        let sequence = if shared { sequence } else { &sequence[row * count..][..count] };
        for (out, &v) in out.iter_mut().zip(values) {
            let (mut place, mut end) = (0, count);
            while place < end {
                let middle = place + (end - place) / 2;
                let s = sequence[middle];
                // Do not invert this comparison: anything compared with NaN shall come before it.
                #[expect(clippy::neg_cmp_op_on_partial_ord)]
                let before = if right { !(s > v) } else { !(s >= v) };
                if before {
                    place = middle + 1;
                } else {
                    end = middle;
                }
            }
            *out = place as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 11] = [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129];

    /// A stable sort of positions, NaN the largest.
    fn sorted(x: &[f64], descending: bool) -> Vec<i64> {
        let mut at: Vec<i64> = (0..x.len() as i64).collect();
        let rank = |i: i64| (x[i as usize].is_nan(), x[i as usize]);
        at.sort_by(|&a, &b| {
            let (a, b) = if descending { (b, a) } else { (a, b) };
            let ((na, a), (nb, b)) = (rank(a), rank(b));
            na.cmp(&nb).then(a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal))
        });
        at
    }

    fn agree<T: Sorted + Default + Into<f64>>(x: &[T]) {
        for inner in [1usize, 3, 17, 35] {
            let count = x.len() / (2 * inner);
            let x = &x[..2 * count * inner];
            for descending in [false, true] {
                let mut index = vec![-1; x.len()];
                order(x, count, inner, descending, Part::All, &mut index);
                let mut values = vec![T::default(); x.len()];
                take(x, &index, count, inner, &mut values);
                let k = count.min(3);
                let mut first = vec![-1; 2 * k * inner];
                order(x, count, inner, descending, Part::First(k, true), &mut first);
                let mut middle = vec![-1; 2 * inner * usize::from(count > 0)];
                let at = count.saturating_sub(1) / 2;
                order(x, count, inner, descending, Part::At(at), &mut middle);
                (0..2 * inner).for_each(|c| {
                    let of = |i: usize, n: usize| (c / inner * n + i) * inner + c % inner;
                    let column: Vec<f64> = (0..count).map(|i| x[of(i, count)].into()).collect();
                    let want = sorted(&column, descending);
                    for (i, &w) in want.iter().enumerate() {
                        assert_eq!(index[of(i, count)], w, "{column:?}");
                        let v: f64 = values[of(i, count)].into();
                        assert_eq!(v.to_bits(), column[w as usize].to_bits());
                    }
                    (0..k).for_each(|i| assert_eq!(first[of(i, k)], want[i]));
                    want.get(at).iter().for_each(|&&w| assert_eq!(middle[c], w));
                });
            }
        }
    }

    #[test]
    fn orders_are_stable_with_nan_as_the_largest() {
        for n in SIZES {
            let pool =
                [3.0, f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, -2.5, f64::INFINITY, 3.0, 1e-40];
            let x: Vec<f64> = (0..70 * n).map(|i| pool[i * i * 31 % 97 % 9]).collect();
            agree(&x);
            agree(&x.iter().map(|&x| x as f32).collect::<Vec<f32>>());
            agree(&x.iter().map(|&x| (x > 1.0) as u8).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn integers_have_their_order() {
        let x = [3, i64::MIN, -1, i64::MAX, 0, i64::MIN];
        let mut index = [0; 6];
        order(&x, 6, 1, false, Part::All, &mut index);
        assert_eq!(index, [1, 5, 2, 4, 0, 3]);
        order(&x, 6, 1, true, Part::All, &mut index);
        assert_eq!(index, [3, 0, 4, 2, 1, 5]);
    }

    #[test]
    fn large_arrays_are_shared_by_rows() {
        let x: Vec<f32> =
            (0..300_000u32).map(|i| (i.wrapping_mul(2654435761) >> 9) as f32).collect();
        let (mut here, mut shared) = (vec![0; x.len()], vec![0; x.len()]);
        order_as::<f32, u64>(&x, 30, 1, false, Part::All, &mut here);
        order(&x, 30, 1, false, Part::All, &mut shared);
        assert_eq!(here, shared);
    }

    #[test]
    fn places_before_and_after_equal_elements() {
        for n in SIZES {
            let sequence: Vec<i64> = (0..n as i64).map(|i| i / 3 * 2).collect();
            let values: Vec<i64> = (-1..n as i64 + 1).collect();
            for right in [false, true] {
                let mut out = vec![-1; values.len()];
                search(&sequence, n, &values, values.len(), right, &mut out);
                for (&v, &o) in values.iter().zip(&out) {
                    let before = |s: &&i64| **s < v || (right && **s == v);
                    assert_eq!(o, sequence.iter().filter(before).count() as i64);
                }
            }
        }
        let mut out = [0; 2];
        search(&[1.0, 2.0, f64::NAN], 3, &[f64::NAN, 5.0], 2, false, &mut out);
        assert_eq!(out, [3, 3]);
    }
}
