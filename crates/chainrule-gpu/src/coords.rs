//! Places of elements, as expressions of a kernel's variables.
//!
//! A coordinate is `(var / div) % size + start` of an integer variable that runs below `extent`.
//! Views only change coordinates, and neighbouring axes that came from one variable join again, so
//! most reads are plain: `x[i]`.
//!
//! A thread may compute several neighbours: its variable is then a multiple of `lanes`, and `e`
//! runs below `lanes`.

/// The position along one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Coord {
    pub var: String,
    pub extent: usize,
    pub div: usize,
    pub size: usize,
    /// The position that the first digit stands for; below 0 before a padded axis.
    pub start: i64,
    /// The size of the axis.
    pub room: usize,
    /// Neighbours that a thread computes.
    pub lanes: usize,
}

/// How a position differs between the neighbours of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// Not at all.
    Same,
    /// Each is one further.
    Next,
    Mixed,
}

impl Coord {
    /// A variable that runs below `extent`.
    pub fn of(var: &str, extent: usize) -> Coord {
        Coord::wide(var, extent, 1)
    }

    /// A variable that runs below `extent`, of which a thread takes this many at once.
    pub fn wide(var: &str, extent: usize, lanes: usize) -> Coord {
        let var = var.to_string();
        Coord { var, extent, div: 1, size: extent, start: 0, room: extent, lanes }
    }

    /// The only place of an axis of one.
    pub fn zero() -> Coord {
        Coord::of("", 1)
    }

    /// The same on an axis of another size, which begins elsewhere.
    pub fn moved(&self, start: i64, room: usize) -> Coord {
        Coord { start: self.start + start, room, ..self.clone() }
    }

    /// Whether it never lies outside the axis.
    pub fn is_inside(&self) -> [bool; 2] {
        [self.start >= 0, self.start + self.size as i64 <= self.room as i64]
    }

    /// The position on the axis, clamped to it.
    pub fn inside(&self, bind: &mut dyn FnMut(String, usize) -> String) -> Coord {
        let last = self.room.max(1) - 1;
        let text = match self.is_inside() {
            [true, true] => return self.clone(),
            _ if self.room <= 1 => return Coord::zero(),
            [false, true] => format!("max({}, 0)", self.text()),
            [true, false] => format!("min({}, {last})", self.text()),
            [false, false] => format!("min(max({}, 0), {last})", self.text()),
        };
        Coord::of(&bind(text, self.room), self.room)
    }

    fn is_plain(&self) -> bool {
        self.start == 0 && self.room == self.size
    }

    fn lane(&self) -> Lane {
        let is_whole = self.size.is_multiple_of(self.lanes) || self.size >= self.extent;
        if self.lanes == 1 || self.size <= 1 || self.div.is_multiple_of(self.lanes) {
            Lane::Same
        } else if self.div == 1 && is_whole {
            Lane::Next
        } else {
            Lane::Mixed
        }
    }

    pub fn text(&self) -> String {
        self.spelled(true)
    }

    /// The text, with or without the position among neighbours.
    fn spelled(&self, lane: bool) -> String {
        let Coord { var, extent, div, size, start, .. } = self;
        if *size <= 1 {
            return start.to_string();
        }
        let kind = self.lane();
        let var = if kind == Lane::Mixed { format!("({var} + e)") } else { var.clone() };
        let digits = match (*div == 1, div * size >= *extent) {
            (true, true) => var,
            (false, true) => format!("{var} / {div}"),
            (true, false) => format!("{var} % {size}"),
            (false, false) => format!("{var} / {div} % {size}"),
        };
        let digits = if lane && kind == Lane::Next { format!("{digits} + e") } else { digits };
        match *start {
            0 => digits,
            s if s < 0 => format!("{digits} - {}", -s),
            s => format!("{digits} + {s}"),
        }
    }

    /// Both coordinates as one, if their digits of the variable are adjacent.
    fn join(&self, right: &Coord) -> Option<Coord> {
        let beside = self.var == right.var && self.div == right.div * right.size;
        (beside && right.is_plain()).then(|| Coord {
            size: self.size * right.size,
            room: self.room * right.size,
            start: self.start * right.size as i64,
            ..right.clone()
        })
    }

    /// Its digits in these sizes, whose product is its size.
    fn split(&self, sizes: &[usize]) -> Vec<Coord> {
        let mut out = Vec::new();
        let mut div = self.div;
        for &size in sizes.iter().rev() {
            out.push(Coord { div, size, room: size, ..self.clone() });
            div *= size;
        }
        out.reverse();
        out
    }
}

/// Neighbours joined, without axes of one.
fn joined(coords: &[Coord]) -> Vec<Coord> {
    let mut out: Vec<Coord> = Vec::new();
    for c in coords.iter().filter(|c| c.room != 1) {
        match out.last().and_then(|last| last.join(c)) {
            Some(both) => *out.last_mut().expect("there is a last") = both,
            None => out.push(c.clone()),
        }
    }
    out
}

/// The place in the flat array.
pub(crate) fn flat(coords: &[Coord]) -> String {
    spelled(&joined(coords), true)
}

fn spelled(all: &[Coord], lane: bool) -> String {
    let mut stride: usize = all.iter().map(|c| c.room).product();
    let mut terms = Vec::new();
    for c in all {
        stride /= c.room.max(1);
        let text = c.spelled(lane);
        if text == "0" && all.len() > 1 {
            continue;
        }
        let whole = text == c.var || !text.contains(' ');
        terms.push(match (stride == 1, whole || all.len() == 1 && stride == 1) {
            (true, _) if whole || all.len() == 1 => text,
            (true, _) => format!("({text})"),
            (false, true) => format!("{text} * {stride}"),
            (false, false) => format!("({text}) * {stride}"),
        });
    }
    if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
}

/// The position of the first of a thread's neighbours in the flat array, if the others follow it
/// and all can be loaded at once.
pub(crate) fn first_of_lanes(coords: &[Coord]) -> Option<String> {
    let all = joined(coords);
    let (last, others) = all.split_last()?;
    let aligned = last.room.is_multiple_of(last.lanes)
        && last.start.unsigned_abs().is_multiple_of(last.lanes as u64);
    let fits = last.lane() == Lane::Next && last.lanes > 1 && aligned;
    (fits && others.iter().all(|c| c.lane() == Lane::Same)).then(|| spelled(&all, false))
}

/// Coordinates in another shape with as many elements. If digits of several variables must be split
/// anew, `bind` makes a variable of an expression, given its extent.
pub(crate) fn reshaped(
    coords: &[Coord],
    dims: &[usize],
    bind: &mut dyn FnMut(String, usize) -> String,
) -> Vec<Coord> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while j < dims.len() {
        if dims[j] == 1 {
            out.push(Coord::zero());
            j += 1;
            continue;
        }
        // The fewest axes on both sides with as many elements.
        let (i0, j0) = (i, j);
        let (mut from, mut to) = (1, dims[j]);
        j += 1;
        while from != to {
            if from < to && i < coords.len() {
                from *= coords[i].room;
                i += 1;
            } else if j < dims.len() {
                to *= dims[j];
                j += 1;
            } else {
                break;
            }
        }
        let own = &dims[j0..j];
        match &joined(&coords[i0..i])[..] {
            [one] if one.is_plain() => out.extend(one.split(own)),
            [one] if own.iter().filter(|&&d| d != 1).count() == 1 => {
                let alone = |&d: &usize| if d == 1 { Coord::zero() } else { one.clone() };
                out.extend(own.iter().map(alone));
            }
            _ => {
                let inside: Vec<Coord> = coords[i0..i].iter().map(|c| c.inside(bind)).collect();
                let text = spelled(&joined(&inside), true);
                out.extend(Coord::of(&bind(text, to), to).split(own));
            }
        }
    }
    out
}

/// Coordinates of an operand that is broadcast to the shape of these.
pub(crate) fn broadcast(coords: &[Coord], dims: &[usize]) -> Vec<Coord> {
    let skipped = coords.len().saturating_sub(dims.len());
    let pick = |(c, &d): (&Coord, &usize)| if d == 1 { Coord::zero() } else { c.clone() };
    coords[skipped..].iter().zip(dims).map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(text: String, _: usize) -> String {
        panic!("bound {text}")
    }

    #[test]
    fn digits_of_one_variable_join_again() {
        let i = [Coord::of("i", 24)];
        let dims = reshaped(&i, &[2, 1, 3, 4], &mut never);
        let texts: Vec<String> = dims.iter().map(Coord::text).collect();
        assert_eq!(texts, ["i / 12", "0", "i / 4 % 3", "i % 4"]);
        assert_eq!(flat(&dims), "i");
        assert_eq!(flat(&reshaped(&dims, &[6, 4], &mut never)), "i");
        let turned = [dims[3].clone(), dims[0].clone(), dims[2].clone()];
        assert_eq!(flat(&turned), "(i % 4) * 6 + (i / 4)");
        assert_eq!(flat(&broadcast(&dims, &[3, 1])), "i / 4 % 3");
    }

    #[test]
    fn variables_are_bound_where_their_digits_mix() {
        let both = [Coord::of("r", 3), Coord::of("c", 4)];
        let mut bound = Vec::new();
        let mut bind = |text: String, extent| {
            bound.push((text, extent));
            "t".to_string()
        };
        let dims = reshaped(&both, &[2, 6], &mut bind);
        assert_eq!((dims[0].text(), dims[1].text()), ("t / 6".into(), "t % 6".into()));
        assert_eq!(bound, [("r * 4 + c".to_string(), 12)]);
        assert_eq!(flat(&reshaped(&both, &[1, 3, 2, 2], &mut never)), "r * 4 + c");
    }
}
