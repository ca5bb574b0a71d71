//! Values that one thread computes in a loop.

use chainrule_core::dtype::DType;

use crate::coords::{Coord, broadcast};
use crate::dialect::Dialect;
use crate::dropout::Dropout;
use crate::forms;
use crate::graph::{Fold, Step, ValueId};
use crate::pull::Body;

/// The next value of a reduction.
pub(crate) fn folded(body: &Body<'_>, fold: Fold, sum: &str, term: &str, dtype: DType) -> String {
    let form = forms::find(fold.op()).expect("reductions have forms");
    body.dialect.form(form, &[sum.to_string(), term.to_string()], dtype)
}

/// The position in the operand of a reduction: kept axes from the result's position, reduced ones
/// from a variable.
pub(crate) fn reduced(
    dims: &[usize],
    axes: &[usize],
    result: &[Coord],
    along: &Coord,
) -> Vec<Coord> {
    let pick = |keep: bool| -> Vec<usize> {
        let all = dims.iter().enumerate();
        all.filter(|(i, _)| axes.contains(i) != keep).map(|(_, &d)| d).collect()
    };
    let mut never = |text: String, _: usize| -> String {
        unreachable!("axes of a result are those of the operand, but for {text}")
    };
    let mut kept = crate::coords::reshaped(result, &pick(true), &mut never).into_iter();
    let mut inner =
        crate::coords::reshaped(std::slice::from_ref(along), &pick(false), &mut never).into_iter();
    let next = |i: usize| if axes.contains(&i) { inner.next() } else { kept.next() };
    (0..dims.len()).map(next).map(|c| c.unwrap_or_else(Coord::zero)).collect()
}

/// The value at a place, by its name.
pub(crate) fn value(body: &mut Body<'_>, v: ValueId, coords: &[Coord]) -> String {
    let graph = body.graph;
    match &graph.values[v].step {
        Step::Fold(fold, x, axes) => fold_value(body, v, coords, *fold, *x, axes),
        Step::Best(x, axis, largest) => best(body, v, coords, *x, *axis, *largest),
        Step::Product(a, b) => product(body, v, coords, *a, *b),
        Step::Parts(a, b) => parts(body, v, coords, *a, *b),
        Step::Scatter { x, index, g, axis, add } => {
            scatter(body, v, coords, [*x, *index, *g], *axis, *add)
        }
        Step::ScatterRows { x, index, g } => {
            let start = body.pull(*x, coords);
            let start = body.of_first_lane(&start, graph.values[v].dtype);
            scatter_rows(body, v, &start, coords.split_at(0), [*index, *g])
        }
        Step::ScatterParts { index, g } => {
            let zero = body.dialect.number(0.0, graph.values[v].dtype);
            scatter_rows(body, v, &zero, coords.split_at(1), [*index, *g])
        }
        Step::Cumulate { x, axis, reverse, exclusive } => {
            cumulate(body, v, coords, *x, *axis, [*reverse, *exclusive])
        }
        Step::Rank { x, axis, down } => rank(body, v, coords, *x, *axis, *down),
        Step::Inverse(x, axis) => inverse(body, v, coords, *x, *axis),
        Step::Begins(index, order) => begins(body, v, coords, [*index, *order]),
        Step::Segments { x, order, begins, g } => {
            segments(body, v, coords, [*x, *order, *begins, *g])
        }
        Step::Uniform(draw) => drawn(body, v, coords, *draw, "uniform"),
        Step::Normal(draw) => drawn(body, v, coords, *draw, "normal"),
        Step::Seed(draw) => drawn(body, v, coords, *draw, "seed"),
        Step::Keep(dropout) => kept(body, v, coords, dropout),
        _ => unreachable!("the others are given or light"),
    }
}

/// A variable for a value, with its start value.
fn begin(body: &mut Body<'_>, v: ValueId, from: &str) -> String {
    let value = &body.graph.values[v];
    let name = body.fresh(&format!("{}_", value.name.trim_end_matches('_')));
    let line = body.dialect.variable(body.dialect.kind(value.dtype), &name, from);
    body.line(line);
    name
}

fn fold_value(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    fold: Fold,
    x: ValueId,
    axes: &[usize],
) -> String {
    let (d, dtype) = (body.dialect, body.graph.values[v].dtype);
    let dims = &body.graph.values[x].dims;
    let count: usize = axes.iter().map(|&a| dims[a]).product();
    let sum = begin(body, v, &d.number(fold.identity(), dtype));
    if count > 0 {
        let k = body.fresh("k");
        let scope = body.open_terms(&k, count);
        let at = reduced(dims, axes, coords, &Coord::of(&k, count));
        let term = body.pull(x, &at);
        let next = folded(body, fold, &sum, &term, dtype);
        body.line(format!("{sum} = {next};"));
        body.close(scope);
        body.join_lanes(&sum, |body, other| folded(body, fold, &sum, other, dtype));
    }
    if fold == Fold::Mean {
        body.line(format!("{sum} = {sum} / {};", d.number(count as f64, dtype)));
    }
    sum
}

/// Coordinates with another place along an axis, of a result that lacks it or has it.
fn along(coords: &[Coord], dims: &[usize], axis: usize, place: Coord) -> Vec<Coord> {
    let mut at = coords.to_vec();
    if at.len() < dims.len() {
        at.insert(axis, place);
    } else {
        at[axis] = place;
    }
    at
}

fn best(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    x: ValueId,
    axis: usize,
    largest: bool,
) -> String {
    let d = body.dialect;
    let operand = &body.graph.values[x];
    let (dims, dtype) = (&operand.dims, operand.dtype);
    let place = begin(body, v, &d.number(0.0, DType::I64));
    if dims[axis] == 0 {
        return place;
    }
    let at = along(coords, dims, axis, Coord::of("0", dims[axis]));
    let first = body.pull(x, &at);
    let top = body.fresh("best");
    body.line(d.variable(d.kind(dtype), &top, &first));
    let k = body.fresh("k");
    let scope = body.open(d.each(&k, "1", &dims[axis].to_string(), "1"));
    let at = along(coords, dims, axis, Coord::of(&k, dims[axis]));
    let term = body.pull(x, &at);
    let sign = if largest { ">" } else { "<" };
    let test = match dtype.is_float() {
        true => format!("{term} {sign} {top} || (is_nan({term}) && !is_nan({top}))"),
        false => format!("{term} {sign} {top}"),
    };
    let cast = d.cast(DType::I64, DType::I32, &k);
    body.line(format!("if ({test}) {{ {top} = {term}; {place} = {cast}; }}"));
    body.close(scope);
    place
}

fn product(body: &mut Body<'_>, v: ValueId, coords: &[Coord], a: ValueId, b: ValueId) -> String {
    let dtype = body.graph.values[v].dtype;
    let inner = body.graph.values[a].dims.last().copied().unwrap_or(0);
    let zero = body.dialect.number(0.0, dtype);
    let sum = begin(body, v, &zero);
    if inner == 0 {
        return sum;
    }
    let k = body.fresh("k");
    let scope = body.open_terms(&k, inner);
    let term = product_term(body, [a, b], coords, &Coord::of(&k, inner));
    body.line(format!("{sum} += {term};"));
    body.close(scope);
    body.join_lanes(&sum, |_, other| format!("{sum} + {other}"));
    sum
}

/// The part of a product that one stretch of its inner axis gives: the first place is the number of
/// the stretch.
fn parts(body: &mut Body<'_>, v: ValueId, coords: &[Coord], a: ValueId, b: ValueId) -> String {
    let value = &body.graph.values[v];
    let inner = body.graph.values[a].dims.last().copied().unwrap_or(0);
    let chunk = inner.div_ceil(value.dims[0]);
    let zero = body.dialect.number(0.0, value.dtype);
    let whole = inner == chunk * value.dims[0];
    let sum = begin(body, v, &zero);
    let k = body.fresh("k");
    let scope = body.open_terms(&k, chunk);
    let at = body.fresh("inner");
    body.line(format!("const int {at} = {} * {chunk} + {k};", coords[0].text()));
    let test = (!whole).then(|| body.open(format!("if ({at} < {inner}) {{")));
    body.stretch(&at, &k);
    let term = product_term(body, [a, b], &coords[1..], &Coord::of(&at, inner));
    body.line(format!("{sum} += {term};"));
    if let Some(test) = test {
        body.close(test);
    }
    body.close(scope);
    body.join_lanes(&sum, |_, other| format!("{sum} + {other}"));
    sum
}

/// A term of an element of a product.
fn product_term(
    body: &mut Body<'_>,
    [a, b]: [ValueId; 2],
    coords: &[Coord],
    deep: &Coord,
) -> String {
    let [da, db] = [a, b].map(|x| &body.graph.values[x].dims);
    let (stack, pair) = coords.split_at(coords.len() - 2);
    let mut left = broadcast(stack, &da[..da.len() - 2]);
    left.extend([pair[0].clone(), deep.clone()]);
    let mut right = broadcast(stack, &db[..db.len() - 2]);
    right.extend([deep.clone(), pair[1].clone()]);
    let (x, y) = (body.pull(a, &left), body.pull(b, &right));
    format!("{x} * {y}")
}

/// Each element searches for what is written to it, in order, so no two threads write to one
/// position.
fn scatter(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    [x, index, g]: [ValueId; 3],
    axis: usize,
    add: bool,
) -> String {
    let d = body.dialect;
    let graph = body.graph;
    let start = body.pull(x, coords);
    let sum = begin(body, v, &start);
    let (dims, own) = (&graph.values[index].dims, &graph.values[v].dims);
    if graph.values[index].numel() == 0 {
        return sum;
    }
    let k = body.fresh("k");
    let scope = body.open(d.each(&k, "0", &dims[axis].to_string(), "1"));
    let mut at = along(coords, dims, axis, Coord::of(&k, dims[axis]));
    let mut tests = Vec::new();
    for (i, c) in at.iter_mut().enumerate().filter(|(i, _)| *i != axis) {
        if dims[i] < own[i] {
            tests.push(format!("({}) < {}", c.text(), dims[i]));
            let text = format!("min({}, {})", c.text(), dims[i] - 1);
            *c = body.place(text, dims[i]);
        }
    }
    let place = body.pull(index, &at);
    let place = d.cast(DType::I32, graph.values[index].dtype, &place);
    let place = body.bind(place, "place");
    let here = coords[axis].text();
    tests.push(format!("({place} == {here} || {place} + {} == {here})", own[axis]));
    let inner = body.open(format!("if ({}) {{", tests.join(" && ")));
    let term = body.pull(g, &at);
    body.line(if add { format!("{sum} += {term};") } else { format!("{sum} = {term};") });
    body.close(inner);
    body.close(scope);
    sum
}

fn scatter_rows(
    body: &mut Body<'_>,
    v: ValueId,
    start: &str,
    (part, coords): (&[Coord], &[Coord]),
    [index, g]: [ValueId; 2],
) -> String {
    let d = body.dialect;
    let graph = body.graph;
    let sum = begin(body, v, start);
    let count = graph.values[index].dims[0];
    if count == 0 {
        return sum;
    }
    let k = body.fresh("k");
    let scope = body.open_terms(&k, count);
    let each = Coord::of(&k, count);
    let place = body.pull(index, &[each.clone(), Coord::zero()]);
    let place = d.cast(DType::I32, graph.values[index].dtype, &place);
    let inner = body.open(format!("if ({place} == {}) {{", coords[0].text()));
    let at = [part, &[each], &coords[1..]].concat();
    let term = body.pull(g, &at);
    body.line(format!("{sum} += {term};"));
    body.close(inner);
    body.close(scope);
    body.join_lanes(&sum, |_, other| format!("{sum} + {other}"));
    sum
}

/// Sums of a tile of a row: an array with the places of the tile. `coords` are those of part and
/// row.
pub(crate) fn scattered_tile(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    tile: usize,
    [index, g]: [ValueId; 2],
) -> String {
    let (d, graph) = (body.dialect, body.graph);
    let (kind, zero) = (d.kind(graph.values[v].dtype), d.number(0.0, graph.values[v].dtype));
    let sums = body.fresh(&format!("{}_", graph.values[v].name));
    body.line(format!("{kind} {sums}[{tile}];"));
    let (each, at) = body.open_tile(tile);
    body.line(format!("{sums}[{}] = {zero};", at.text()));
    body.close(each);
    let count = graph.values[index].dims[0];
    let k = body.fresh("k");
    let scope = body.open_terms(&k, count);
    let entry = Coord::of(&k, count);
    let place = body.pull(index, &[entry.clone(), Coord::zero()]);
    let place = d.cast(DType::I32, graph.values[index].dtype, &place);
    let found = body.open(format!("if ({place} == {}) {{", coords[1].text()));
    let (each, at) = body.open_tile(tile);
    let inner = body.reshaped(std::slice::from_ref(&at), &graph.values[v].dims[2..]);
    let term = body.pull(g, &[&[coords[0].clone(), entry], &inner[..]].concat());
    body.line(format!("{sums}[{}] += {term};", at.text()));
    [each, found, scope].into_iter().for_each(|scope| body.close(scope));
    if body.sharers.0 > 1 {
        let (each, at) = body.open_tile(tile);
        let sum = format!("{sums}[{}]", at.text());
        body.join_lanes(&sum, |_, other| format!("{sum} + {other}"));
        body.close(each);
    }
    sums
}

fn cumulate(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    x: ValueId,
    axis: usize,
    [reverse, exclusive]: [bool; 2],
) -> String {
    let (d, dtype) = (body.dialect, body.graph.values[v].dtype);
    let dims = &body.graph.values[x].dims;
    let sum = begin(body, v, &d.number(0.0, dtype));
    let here = coords[axis].text();
    let here = if here == "0" { here } else { body.bind(here, "here") };
    let k = body.fresh("k");
    let (from, below) = match (reverse, exclusive) {
        (false, false) => ("0".to_string(), format!("{here} + 1")),
        (false, true) => ("0".to_string(), here),
        (true, false) => (here, dims[axis].to_string()),
        (true, true) => (format!("{here} + 1"), dims[axis].to_string()),
    };
    let scope = body.open(d.each(&k, &from, &below, "1"));
    let term = body.pull(x, &along(coords, dims, axis, Coord::of(&k, dims[axis])));
    body.line(format!("{sum} += {term};"));
    body.close(scope);
    sum
}

/// The number of elements that come before this one when the axis is sorted.
fn rank(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    x: ValueId,
    axis: usize,
    down: bool,
) -> String {
    let d = body.dialect;
    let operand = &body.graph.values[x];
    let (dims, dtype) = (&operand.dims, operand.dtype);
    let own = body.pull(x, coords);
    let here = coords[axis].text();
    let before = body.fresh("before");
    body.line(d.variable("int", &before, "0"));
    let j = body.fresh("j");
    let scope = body.open(d.each(&j, "0", &dims[axis].to_string(), "1"));
    let other = body.pull(x, &along(coords, dims, axis, Coord::of(&j, dims[axis])));
    let sign = if down { ">" } else { "<" };
    let nans = match (dtype.is_float(), down) {
        (false, _) => ["false".to_string(), "false".to_string()],
        (true, true) => [
            format!("(is_nan({other}) && !is_nan({own}))"),
            format!("(is_nan({other}) && is_nan({own}))"),
        ],
        (true, false) => [
            format!("(is_nan({own}) && !is_nan({other}))"),
            format!("(is_nan({other}) && is_nan({own}))"),
        ],
    };
    let [first, same] = nans;
    let test = format!(
        "{other} {sign} {own} || {first} || (({other} == {own} || {same}) && {j} < {here})"
    );
    body.line(format!("if ({test}) {{ {before}++; }}"));
    body.close(scope);
    let cast = d.cast(DType::I64, DType::I32, &before);
    body.name(v, coords, &cast)
}

/// The index of the number that equals this position.
fn inverse(body: &mut Body<'_>, v: ValueId, coords: &[Coord], x: ValueId, axis: usize) -> String {
    let d = body.dialect;
    let (dims, dtype) = (&body.graph.values[x].dims, body.graph.values[x].dtype);
    let here = coords[axis].text();
    let place = body.fresh("place");
    body.line(d.variable("int", &place, "0"));
    let k = body.fresh("k");
    let scope = body.open(d.each(&k, "0", &dims[axis].to_string(), "1"));
    let number = body.pull(x, &along(coords, dims, axis, Coord::of(&k, dims[axis])));
    let number = d.cast(DType::I32, dtype, &number);
    body.line(format!("if ({number} == {here}) {{ {place} = {k}; }}"));
    body.close(scope);
    let cast = d.cast(DType::I64, DType::I32, &place);
    body.name(v, coords, &cast)
}

/// The number of indices that are of rows before this one: the first place of another one, among
/// the sorted.
fn begins(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    [index, order]: [ValueId; 2],
) -> String {
    let d = body.dialect;
    let (count, dtype) = (body.graph.values[index].dims[0], body.graph.values[index].dtype);
    let here = coords[0].text();
    let [low, high, middle] = ["low", "high", "middle"].map(|name| body.fresh(name));
    body.line(d.variable("int", &low, "0"));
    body.line(d.variable("int", &high, &count.to_string()));
    let scope = body.open(format!("while ({low} < {high}) {{"));
    body.line(d.constant("int", &middle, &format!("({low} + {high}) / 2")));
    let place = body.pull(order, &[Coord::of(&middle, count), Coord::zero()]);
    let place = d.cast(DType::I32, DType::I64, &place);
    let at = body.place(place, count);
    let row = body.pull(index, &[at, Coord::zero()]);
    let row = d.cast(DType::I32, dtype, &row);
    body.line(format!(
        "if ({row} < {here}) {{ {low} = {middle} + 1; }} else {{ {high} = {middle}; }}"
    ));
    body.close(scope);
    let cast = d.cast(DType::I64, DType::I32, &low);
    body.name(v, coords, &cast)
}

/// The sum of the parts of a row, which stand beside each other in the order of the index.
fn segments(
    body: &mut Body<'_>,
    v: ValueId,
    coords: &[Coord],
    [x, order, begins, g]: [ValueId; 4],
) -> String {
    let d = body.dialect;
    let graph = body.graph;
    let start = body.pull(x, coords);
    let sum = begin(body, v, &start);
    let (count, rows) = (graph.values[order].dims[0], graph.values[begins].dims[0]);
    let row = coords[0].text();
    let ends = [row.clone(), format!("({row}) + 1")].map(|place| {
        let place = body.place(place, rows);
        let end = body.pull(begins, &[place]);
        let end = d.cast(DType::I32, DType::I64, &end);
        body.bind(end, "end")
    });
    let j = body.fresh("j");
    let scope = body.open(d.each(&j, &ends[0], &ends[1], "1"));
    let place = body.pull(order, &[Coord::of(&j, count), Coord::zero()]);
    let place = d.cast(DType::I32, DType::I64, &place);
    let mut at = vec![body.place(place, count)];
    at.extend_from_slice(&coords[1..]);
    let term = body.pull(g, &at);
    body.line(format!("{sum} += {term};"));
    body.close(scope);
    sum
}

/// A random number by its place alone: seed and run are given when the kernel is launched.
fn drawn(body: &mut Body<'_>, v: ValueId, coords: &[Coord], draw: usize, how: &str) -> String {
    let d = body.dialect;
    let dtype = body.graph.values[v].dtype;
    let place = crate::coords::flat(coords);
    body.draws = true;
    let text = match d {
        Dialect::Cuda => {
            let kind = d.kind(dtype).replace(' ', "_");
            format!("{how}_{kind}(draws, {draw}u, (unsigned int)({place}))")
        }
        Dialect::Wgsl => {
            format!("{how}(draws[0], draws[1], draws[2], draws[3], {draw}u, u32({place}))")
        }
    };
    body.name(v, coords, &text)
}

/// The factor of a weight: a function of the seed and its place.
fn kept(body: &mut Body<'_>, v: ValueId, coords: &[Coord], dropout: &Dropout) -> String {
    let d = body.dialect;
    let dtype = body.graph.values[v].dtype;
    let seed = dropout.seed_of(d, |x| body.pull(x, &[]));
    let (stack, matrix) = coords.split_at(coords.len() - 2);
    let places = [crate::coords::flat(stack), matrix[0].text(), matrix[1].text()];
    let of = |x: f64| d.number(x, dtype);
    let text = dropout.factor(d, &seed, &places, of);
    body.name(v, coords, &text)
}
