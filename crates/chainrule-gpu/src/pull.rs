//! Expressions of single elements: a value that is not stored is computed where it is read.

mod loops;

use std::collections::{HashMap, HashSet};

use chainrule_core::dtype::DType;

use crate::coords::{Coord, broadcast, first_of_lanes, flat, reshaped};
use crate::dialect::Dialect;
use crate::forms;
use crate::graph::{Graph, Step, ValueId, Windows};
use crate::persistent::Places;

/// The body of a kernel under construction.
pub(crate) struct Body<'a> {
    pub graph: &'a Graph,
    pub stored: &'a [bool],
    pub dialect: Dialect,
    pub lines: Vec<String>,
    depth: usize,
    /// Values at positions that have a name so far.
    known: HashMap<(ValueId, String), String>,
    /// Variables of expressions.
    bound: HashMap<String, String>,
    pub names: HashSet<String>,
    /// Buffers that are read, in order.
    pub reads: Vec<ValueId>,
    /// Values that this kernel computes: they can only be read at known positions.
    pub own: Vec<ValueId>,
    /// Own values whose elements were written by the thread that reads them.
    pub written: Vec<(ValueId, String)>,
    /// Own values that were read from their buffer.
    pub own_reads: Vec<ValueId>,
    /// Values that were read from a buffer or written to it, and the places.
    pub touched: Vec<(ValueId, String)>,
    /// Whether random numbers are drawn.
    pub draws: bool,
    /// Whether an own value was read at another position.
    pub failed: bool,
    /// In a kernel of a cluster the places of values that are computed there.
    pub places: Option<Places<'a>>,
    /// Values that were read, each with the axes that were read at the own position only.
    pub seen: Vec<(ValueId, Vec<usize>)>,
    /// Threads that share the loop of an element, and the variable of their number.
    pub sharers: (usize, String),
    /// The loop over a thread's neighbours, while its lines are made.
    lanes: Option<Lanes>,
    /// Conditions under which alone the current value is used.
    tests: Vec<String>,
}

/// A loop over a thread's neighbours under construction.
struct Lanes {
    count: usize,
    /// The line before it, and lines that are moved there: what is the same for all neighbours, and
    /// loads of all at once.
    at: usize,
    depth: usize,
    lines: Vec<String>,
    /// Variables that are in the loop alone.
    inside: HashSet<String>,
    /// Values that have a name before the loop.
    known: Vec<((ValueId, String), String)>,
    bound: Vec<(String, String)>,
}

impl Lanes {
    /// Whether an expression means the same before the loop.
    fn is_outside(&self, text: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text.split(|c| !is_word(c)).any(|word| self.inside.contains(word))
    }

    fn line(&mut self, text: &str) {
        self.lines.push(format!("{}{text}", "    ".repeat(self.depth)));
    }
}

/// The known names, as they are restored at the end of a block of lines.
pub(crate) struct Scope {
    known: HashMap<(ValueId, String), String>,
    bound: HashMap<String, String>,
}

impl<'a> Body<'a> {
    pub fn new(graph: &'a Graph, stored: &'a [bool], dialect: Dialect) -> Body<'a> {
        Body {
            graph,
            stored,
            dialect,
            lines: Vec::new(),
            depth: 1,
            known: HashMap::new(),
            bound: HashMap::new(),
            names: HashSet::new(),
            reads: Vec::new(),
            own: Vec::new(),
            written: Vec::new(),
            own_reads: Vec::new(),
            touched: Vec::new(),
            draws: false,
            failed: false,
            places: None,
            seen: Vec::new(),
            sharers: (1, String::new()),
            lanes: None,
            tests: Vec::new(),
        }
    }

    pub fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "    ".repeat(self.depth), text.as_ref()));
    }

    /// A name that no other value or variable has.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut n = 1;
        while self.names.contains(&name) || self.graph.names.contains(&name) {
            n += 1;
            name = format!("{wanted}_{n}");
        }
        self.names.insert(name.clone());
        if let Some(lanes) = &mut self.lanes {
            lanes.inside.insert(name.clone());
        }
        name
    }

    /// A constant; before the loop over neighbours where it is the same for all.
    fn constant(&mut self, kind: &str, name: &str, expression: &str) -> bool {
        let line = self.dialect.constant(kind, name, expression);
        match &mut self.lanes {
            Some(lanes) if lanes.is_outside(expression) => {
                lanes.line(&line);
                lanes.inside.remove(name);
                true
            }
            _ => {
                self.line(line);
                false
            }
        }
    }

    /// The expression of a value at these positions, which goes by its name from now on.
    pub fn name(&mut self, v: ValueId, coords: &[Coord], expression: &str) -> String {
        let value = &self.graph.values[v];
        let kind = self.dialect.kind(value.dtype);
        let name = self.fresh(&format!("{}_", value.name.trim_end_matches('_')));
        let outside = self.constant(kind, &name, expression);
        let key = (v, flat(coords));
        if let (true, Some(lanes)) = (outside, &mut self.lanes) {
            lanes.known.push((key.clone(), name.clone()));
        }
        self.known.insert(key, name.clone());
        name
    }

    /// Declares that a value at these positions has this name.
    pub fn know(&mut self, v: ValueId, coords: &[Coord], name: &str) {
        self.known.insert((v, flat(coords)), name.to_string());
    }

    /// A variable of an integer expression.
    pub fn bind(&mut self, expression: String, wanted: &str) -> String {
        if let Some(name) = self.bound.get(&expression) {
            return name.clone();
        }
        let name = self.fresh(wanted);
        let outside = self.constant("int", &name, &expression);
        if let (true, Some(lanes)) = (outside, &mut self.lanes) {
            lanes.bound.push((expression.clone(), name.clone()));
        }
        self.bound.insert(expression, name.clone());
        name
    }

    pub fn reshaped(&mut self, coords: &[Coord], dims: &[usize]) -> Vec<Coord> {
        reshaped(coords, dims, &mut |text, _| self.bind(text, "at"))
    }

    /// Positions clamped to their axes.
    fn inside_all(&mut self, coords: &[Coord]) -> Vec<Coord> {
        coords.iter().map(|c| c.inside(&mut |text, _| self.bind(text, "at"))).collect()
    }

    /// All neighbours of a place at once, before the loop over them, if they stand side by side.
    fn load(&mut self, v: ValueId, coords: &[Coord]) -> Option<String> {
        let first = first_of_lanes(coords)?;
        let value = &self.graph.values[v];
        self.lanes.as_ref().filter(|lanes| lanes.is_outside(&first))?;
        let name = self.array(&format!("{}_", value.name.trim_end_matches('_')), value.dtype);
        let lanes = self.lanes.as_mut()?;
        let from = if first == "0" { String::new() } else { format!(" + {first}") };
        let take = format!("take({name}, {}{from});", value.name);
        let tests: Vec<&str> =
            self.tests.iter().map(String::as_str).filter(|t| lanes.is_outside(t)).collect();
        let text = format!("{name}[e]");
        if !tests.is_empty() {
            // Known only under the conditions.
            lanes.line(&format!("if ({}) {{ {take} }}", tests.join(" && ")));
            return Some(text);
        }
        lanes.line(&take);
        let key = (v, flat(coords));
        lanes.known.push((key.clone(), text.clone()));
        self.known.insert(key, text.clone());
        Some(text)
    }

    /// An element of a value: a name or a number.
    pub fn pull(&mut self, v: ValueId, coords: &[Coord]) -> String {
        let value = &self.graph.values[v];
        if let Some(x) = self.graph.scalar(v) {
            let number = self.dialect.number(x, value.dtype);
            return if x < 0.0 || number.starts_with('-') { format!("({number})") } else { number };
        }
        let key = (v, flat(coords));
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let is_read = self.own.contains(&v) || self.stored[v] || value.step.is_given();
        if self.graph.counts(v) {
            // A position outside is covered by the condition, so anything may be read there.
            let text = self.dialect.cast(value.dtype, DType::I32, &format!("({})", flat(coords)));
            return format!("({text})");
        }
        if is_read && coords.iter().any(|c| c.is_inside() != [true; 2]) {
            let coords = self.inside_all(coords);
            return self.pull(v, &coords);
        }
        if self.own.contains(&v) {
            self.failed |= !self.written.contains(&key);
            self.own_reads.push(v);
        } else if self.stored[v] || value.step.is_given() {
            if !self.reads.contains(&v) {
                self.reads.push(v);
            }
        } else {
            return self.expression(v, coords);
        }
        self.touched.push(key.clone());
        if let Some(name) = self.load(v, coords) {
            return name;
        }
        let mut place = None;
        if let Some(places) = &self.places {
            self.seen.push((v, places.axes(self.graph, v, coords)));
            place = places.find(self.graph, v, coords);
        }
        let (array, at) = place.unwrap_or_else(|| (value.name.clone(), key.1.clone()));
        let text = self.dialect.read(&array, &at, value.dtype);
        self.name(v, coords, &text)
    }

    /// The expression of a light value, named.
    pub fn expression(&mut self, v: ValueId, coords: &[Coord]) -> String {
        let value = &self.graph.values[v];
        let step = &value.step;
        let dims = |x: ValueId| &self.graph.values[x].dims;
        let passes = matches!(step, Step::Map(..) | Step::Reshape(_) | Step::Pad(..))
            || matches!(step, Step::Expand(_) | Step::Transpose(..) | Step::Slice(..));
        let inside = if passes { coords.to_vec() } else { self.inside_all(coords) };
        let coords = &inside[..];
        match step {
            Step::Map(op, all) => {
                let operands: Vec<String> = all
                    .iter()
                    .map(|&x| {
                        let at = broadcast(coords, dims(x));
                        self.pull(x, &at)
                    })
                    .collect();
                let text = self.map(op, all, &operands, value.dtype);
                self.name(v, coords, &text)
            }
            Step::Reshape(x) => {
                let at = self.reshaped(coords, dims(*x));
                self.pull(*x, &at)
            }
            Step::Expand(x) => self.pull(*x, &broadcast(coords, dims(*x))),
            Step::Transpose(x, perm) => {
                let mut at = vec![Coord::zero(); perm.len()];
                perm.iter().zip(coords).for_each(|(&p, c)| at[p] = c.clone());
                self.pull(*x, &at)
            }
            Step::Slice(x, cuts) => {
                let mut at = coords.to_vec();
                for &(axis, start, step) in cuts {
                    let size = dims(*x)[axis];
                    if step == 1 {
                        at[axis] = coords[axis].moved(start, size);
                        continue;
                    }
                    let inside = self.inside_all(&coords[axis..=axis]);
                    let text = affine(&inside[0].text(), start, step);
                    at[axis] = self.place(text, size);
                }
                self.pull(*x, &at)
            }
            Step::Triangle(x, k, upper) => {
                let inner = self.pull(*x, coords);
                let (r, c) = (&coords[coords.len() - 2], &coords[coords.len() - 1]);
                let sign = if *upper { ">=" } else { "<=" };
                let test = format!("({} - ({}) {sign} {k})", c.text(), r.text());
                let none = self.dialect.number(0.0, value.dtype);
                let text = self.dialect.choose(&test, &inner, &none);
                self.name(v, coords, &text)
            }
            Step::Gather(x, index, axis) => {
                let n = dims(*index).len();
                let place = self.index(*index, &coords[*axis..axis + n], dims(*x)[*axis]);
                let mut at = coords[..*axis].to_vec();
                at.push(place);
                at.extend_from_slice(&coords[axis + n..]);
                self.pull(*x, &at)
            }
            Step::Elements(x, index, axis) => {
                let mut at = coords.to_vec();
                for (i, c) in at.iter_mut().enumerate().filter(|(i, _)| i != axis) {
                    // An index may be shorter along the other axes.
                    if c.room != dims(*x)[i] {
                        *c = self.place(c.text(), dims(*x)[i]);
                    }
                }
                at[*axis] = self.index(*index, coords, dims(*x)[*axis]);
                self.pull(*x, &at)
            }
            Step::Pad(x, before, outside) => {
                let mut at = coords.to_vec();
                let mut tests = Vec::new();
                for axis in 0..at.len() {
                    let size = dims(*x)[axis];
                    if before[axis] == 0 && coords[axis].room == size {
                        continue;
                    }
                    at[axis] = coords[axis].moved(-before[axis], size);
                    let ends = at[axis].is_inside();
                    if ends == [true; 2] {
                        continue;
                    }
                    let far = self.bind(at[axis].text(), "far");
                    if !ends[0] {
                        tests.push(format!("{far} >= 0"));
                    }
                    if !ends[1] {
                        tests.push(format!("{far} < {size}"));
                    }
                }
                let outside = self.pull(*outside, &[]);
                self.inside(v, coords, *x, &at, &tests, &outside)
            }
            Step::Patches(x, w) => {
                let mut tests = Vec::new();
                let mut at = coords[..2].to_vec();
                for i in 0..2 {
                    let (k, o) = (coords[2 + i].text(), coords[4 + i].text());
                    let text = format!("({o}) * {} + ({k}) * {}", w.stride[i], w.dilation[i]);
                    let text = affine(&text, -(w.before[i] as i64), 1);
                    at.push(self.guarded(text, dims(*x)[2 + i], &mut tests));
                }
                let none = self.dialect.number(0.0, value.dtype);
                self.inside(v, coords, *x, &at, &tests, &none)
            }
            Step::Seen(x, w) => self.seen(v, coords, *x, w),
            Step::Concat(all, axis) => self.concat(v, coords, all, *axis),
            _ => unreachable!("values that are not light are stored"),
        }
    }

    /// The value inside, or another one where one of the tests fails.
    fn inside(
        &mut self,
        v: ValueId,
        coords: &[Coord],
        x: ValueId,
        at: &[Coord],
        tests: &[String],
        outside: &str,
    ) -> String {
        if self.graph.values[x].numel() == 0 {
            return outside.to_string();
        }
        let inner = self.pull_if(tests, x, at);
        if tests.is_empty() {
            return inner;
        }
        let test = format!("({})", tests.join(" && "));
        let text = self.dialect.choose(&test, &inner, outside);
        self.name(v, coords, &text)
    }

    /// An element that is used only where these tests hold.
    fn pull_if(&mut self, tests: &[String], x: ValueId, at: &[Coord]) -> String {
        if self.lanes.is_none() || tests.is_empty() {
            return self.pull(x, at);
        }
        let (before, known) = (self.tests.len(), self.known.clone());
        self.tests.extend_from_slice(tests);
        let text = self.pull(x, at);
        self.tests.truncate(before);
        // Other readers may not rely on values that were loaded only under the tests.
        self.known = known;
        text
    }

    fn seen(&mut self, v: ValueId, coords: &[Coord], x: ValueId, w: &Windows) -> String {
        let mut tests = Vec::new();
        let mut at = coords[..2].to_vec();
        for i in 0..2 {
            let (k, p) = (coords[2 + i].text(), coords[4 + i].text());
            let text = affine(&format!("({p}) - ({k}) * {}", w.dilation[i]), w.before[i] as i64, 1);
            let size = self.graph.values[x].dims[2 + i];
            if w.stride[i] == 1 {
                at.push(self.guarded(text, size, &mut tests));
            } else {
                let far = self.bind(text, "back");
                tests.push(format!("{far} % {} == 0", w.stride[i]));
                tests.push(format!("{far} >= 0"));
                at.push(self.guarded(format!("{far} / {}", w.stride[i]), size, &mut tests));
            }
        }
        let none = self.dialect.number(0.0, self.graph.values[v].dtype);
        self.inside(v, coords, x, &at, &tests, &none)
    }

    fn concat(&mut self, v: ValueId, coords: &[Coord], all: &[ValueId], axis: usize) -> String {
        let place = coords[axis].text();
        let mut end = 0i64;
        let mut parts: Vec<(i64, String)> = Vec::new();
        for &x in all {
            let size = self.graph.values[x].dims[axis];
            if size == 0 {
                continue;
            }
            let mut at = coords.to_vec();
            let text = affine(&place, -end, 1);
            let clamped = format!("min(max({text}, 0), {})", size - 1);
            at[axis] = self.place(clamped, size);
            let from = format!("({place}) >= {end}");
            end += size as i64;
            let test = [from, format!("({place}) < {end}")];
            parts.push((end, self.pull_if(&test, x, &at)));
        }
        let Some((_, mut text)) = parts.pop() else { return "0".to_string() };
        if parts.is_empty() {
            return text;
        }
        for (end, part) in parts.iter().rev() {
            text = self.dialect.choose(&format!("(({place}) < {end})"), part, &format!("({text})"));
        }
        self.name(v, coords, &text)
    }

    /// A position given by an expression.
    pub fn place(&mut self, text: String, size: usize) -> Coord {
        if size <= 1 { Coord::zero() } else { Coord::of(&self.bind(text, "at"), size) }
    }

    /// A position that may lie outside: a test then fails, and the first or last element is read.
    fn guarded(&mut self, text: String, size: usize, tests: &mut Vec<String>) -> Coord {
        let far = self.bind(text, "far");
        tests.push(format!("{far} >= 0 && {far} < {size}"));
        self.place(format!("min(max({far}, 0), {})", size.max(1) - 1), size)
    }

    /// The position that an element of an index names, clamped so that no kernel reads foreign
    /// memory.
    fn index(&mut self, index: ValueId, coords: &[Coord], size: usize) -> Coord {
        let dtype = self.graph.values[index].dtype;
        let at = broadcast(coords, &self.graph.values[index].dims);
        let text = self.pull(index, &at);
        let text = self.dialect.cast(DType::I32, dtype, &text);
        self.place(format!("min(max({text}, 0), {})", size.max(1) - 1), size)
    }

    /// A power that takes few steps: a square, an inverse, and in CUDA C an inverse root.
    fn power(&self, x: &str, exponent: ValueId, dtype: DType) -> Option<String> {
        let exponent = self.graph.scalar(exponent)?;
        let one = self.dialect.number(1.0, dtype);
        match (exponent, self.dialect) {
            (2.0, _) => Some(format!("{x} * {x}")),
            (-1.0, _) => Some(format!("{one} / {x}")),
            (-0.5, Dialect::Cuda) => Some(format!("inverse_root({x})")),
            _ => None,
        }
    }

    fn map(&self, op: &str, inputs: &[ValueId], operands: &[String], to: DType) -> String {
        let from = self.graph.values[*inputs.last().expect("an operand")].dtype;
        if op == "Cast" {
            return self.dialect.cast(to, from, &operands[0]);
        }
        if let ("Pow", true, [_, exponent]) = (op, from.is_float(), inputs)
            && let Some(text) = self.power(&operands[0], *exponent, from)
        {
            return if to == DType::BF16 { self.dialect.cast(to, DType::F32, &text) } else { text };
        }
        let form = forms::find(op).expect("the reader admits no others");
        let text = self.dialect.form(form, operands, from);
        // Arithmetic of bf16 is that of f32, rounded once.
        if to == DType::BF16 { self.dialect.cast(to, DType::F32, &text) } else { text }
    }
}

/// `start + step * text`.
pub(crate) fn affine(text: &str, start: i64, step: i64) -> String {
    let term = if step == 1 { text.to_string() } else { format!("({text}) * {step}") };
    match start {
        0 => term,
        s if s < 0 => format!("{term} - {}", -s),
        s => format!("{term} + {s}"),
    }
}
