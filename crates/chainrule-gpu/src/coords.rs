//! Places of elements, as expressions of a kernel's variables.
//!
//! A coordinate is `(var / div) % size` of an integer variable that runs below `extent`. Views are
//! changes of coordinates alone, and neighbours that came from one variable join again, so that
//! most reads are plain: `x[i]`.

/// The place along one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Coord {
    pub var: String,
    pub extent: usize,
    pub div: usize,
    pub size: usize,
}

impl Coord {
    /// A variable that runs below `extent`.
    pub fn of(var: &str, extent: usize) -> Coord {
        Coord { var: var.to_string(), extent, div: 1, size: extent }
    }

    /// The only place of an axis of one.
    pub fn zero() -> Coord {
        Coord { var: String::new(), extent: 1, div: 1, size: 1 }
    }

    pub fn text(&self) -> String {
        let Coord { var, extent, div, size } = self;
        if *size <= 1 {
            return "0".to_string();
        }
        match (*div == 1, div * size >= *extent) {
            (true, true) => var.clone(),
            (false, true) => format!("{var} / {div}"),
            (true, false) => format!("{var} % {size}"),
            (false, false) => format!("{var} / {div} % {size}"),
        }
    }

    /// Both as one, if the variable's digits stand beside one another.
    fn join(&self, right: &Coord) -> Option<Coord> {
        let beside = self.var == right.var && self.div == right.div * right.size;
        beside.then(|| Coord { size: self.size * right.size, ..right.clone() })
    }

    /// Its digits in these sizes, whose product is its size.
    fn split(&self, sizes: &[usize]) -> Vec<Coord> {
        let mut out = Vec::new();
        let mut div = self.div;
        for &size in sizes.iter().rev() {
            out.push(Coord { div, size, ..self.clone() });
            div *= size;
        }
        out.reverse();
        out
    }
}

/// Neighbours joined, without axes of one.
fn joined(coords: &[Coord]) -> Vec<Coord> {
    let mut out: Vec<Coord> = Vec::new();
    for c in coords.iter().filter(|c| c.size != 1) {
        match out.last().and_then(|last| last.join(c)) {
            Some(both) => *out.last_mut().expect("there is a last") = both,
            None => out.push(c.clone()),
        }
    }
    out
}

/// The place in the flat array.
pub(crate) fn flat(coords: &[Coord]) -> String {
    let all = joined(coords);
    let mut stride: usize = all.iter().map(|c| c.size).product();
    let mut terms = Vec::new();
    for c in &all {
        stride /= c.size.max(1);
        let text = c.text();
        let whole = text == c.var;
        terms.push(match (stride == 1, whole || all.len() == 1 && stride == 1) {
            (true, _) if whole || all.len() == 1 => text,
            (true, _) => format!("({text})"),
            (false, true) => format!("{text} * {stride}"),
            (false, false) => format!("({text}) * {stride}"),
        });
    }
    if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
}

/// Coordinates in another shape of as many elements; `bind` makes a variable of an expression where
/// digits of several variables must be told anew, and is given its extent.
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
                from *= coords[i].size;
                i += 1;
            } else if j < dims.len() {
                to *= dims[j];
                j += 1;
            } else {
                break;
            }
        }
        let chunk = joined(&coords[i0..i]);
        let whole = match &chunk[..] {
            [one] => one.clone(),
            many => Coord::of(&bind(flat(many), to), to),
        };
        out.extend(whole.split(&dims[j0..j]));
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
