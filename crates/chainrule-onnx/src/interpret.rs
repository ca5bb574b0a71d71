//! An interpreter of NumPy forms over graph values: the computation of Python becomes nodes.
//!
//! Functions that forms call are interpreted in the same way, so an op has one form for NumPy and
//! ONNX. Conditions on known values (shapes, parameters) are decided here; a condition on an array
//! selects between both results.

use std::collections::HashMap;
use std::rc::Rc;

use chainrule_core::dtype::DType;

use crate::graph::Graph;
use crate::lower::Takes;
use crate::ops::{Made, axis};
use crate::syntax::{Expr, Function, Statement, expression, functions};
use crate::value::Val;

/// Limit on nested calls.
const DEEPEST: usize = 40;

/// Variables by name.
type Scope = HashMap<String, Val>;

/// An interpreter, which adds to a graph.
pub(crate) struct Interpreter {
    pub graph: Graph,
    /// Attention that stays one node, for a device; `None` for a model.
    pub takes: Option<Takes>,
    functions: Rc<HashMap<String, Function>>,
    depth: usize,
}

impl Interpreter {
    /// For forms that call the functions of these files.
    pub fn new(files: &[&str]) -> Interpreter {
        let all = files.iter().flat_map(|text| functions(text));
        let functions = Rc::new(all.map(|f| (f.name.clone(), f)).collect());
        Interpreter { graph: Graph::default(), takes: None, functions, depth: 0 }
    }

    /// The value of a form.
    pub fn form(&mut self, text: &str, names: &HashMap<String, Val>) -> Made<Val> {
        self.depth = 0;
        self.expr(&expression(text)?, names)
    }

    fn expr(&mut self, e: &Expr, scope: &Scope) -> Made<Val> {
        Some(match e {
            Expr::Int(n) => Val::Int(*n),
            Expr::Float(x) => Val::Float(*x),
            Expr::Text(text) => Val::Text(text.clone()),
            Expr::Ellipsis => Val::Ellipsis,
            Expr::Name(name) => named(name, scope),
            Expr::Row(items) => Val::Row(self.items(items, scope)?),
            Expr::Dict(pairs) => {
                let mut out = Vec::new();
                for (k, v) in pairs {
                    out.push((self.expr(k, scope)?, self.expr(v, scope)?));
                }
                Val::Dict(out)
            }
            Expr::Star(_) => return None,
            Expr::Unary(op, x) => {
                let x = self.expr(x, scope)?;
                self.unary(op, x)?
            }
            Expr::Binary(op, a, b) => {
                let a = self.expr(a, scope)?;
                match (*op, a.truth()) {
                    ("and", Some(false)) | ("or", Some(true)) => return Some(a),
                    ("and" | "or", Some(_)) => return self.expr(b, scope),
                    _ => {}
                }
                let b = self.expr(b, scope)?;
                self.binary(op, a, b)?
            }
            Expr::Choice(test, yes, no) => {
                let test = self.expr(test, scope)?;
                match test.truth() {
                    Some(true) => self.expr(yes, scope)?,
                    Some(false) => self.expr(no, scope)?,
                    None => {
                        let (yes, no) = (self.expr(yes, scope)?, self.expr(no, scope)?);
                        self.graph.choose(&test, &yes, &no)?.into()
                    }
                }
            }
            Expr::Attribute(base, name) => self.attribute(base, name, scope)?,
            Expr::Slice(parts) => {
                let mut out = Vec::new();
                for part in parts {
                    let part = part.as_ref().map(|p| self.expr(p, scope));
                    out.push(match part {
                        None => None,
                        Some(v) => Some(v?.int()?),
                    });
                }
                Val::Slice(out)
            }
            Expr::Subscript(base, index) => {
                let (base, index) = (self.expr(base, scope)?, self.expr(index, scope)?);
                self.subscript(&base, &index)?
            }
            Expr::Each(item, target, row, test) => {
                let row = self.expr(row, scope)?;
                self.each(item, target, &row, test.as_deref(), scope)?
            }
            Expr::Call(f, args, named) => {
                let f = self.expr(f, scope)?;
                let args = self.items(args, scope)?;
                let mut pairs = Vec::new();
                for (name, v) in named {
                    pairs.push((name.clone(), self.expr(v, scope)?));
                }
                self.call(&f, args, pairs)?
            }
        })
    }

    fn each(
        &mut self,
        item: &Expr,
        target: &Expr,
        row: &Val,
        test: Option<&Expr>,
        scope: &Scope,
    ) -> Made<Val> {
        let mut inner = scope.clone();
        let mut out = Vec::new();
        for v in row.row()? {
            self.bind(target, v.clone(), &mut inner)?;
            let taken = match test {
                Some(test) => self.expr(test, &inner)?.truth()?,
                None => true,
            };
            if taken {
                out.push(self.expr(item, &inner)?);
            }
        }
        Some(Val::Row(out))
    }

    fn items(&mut self, items: &[Expr], scope: &Scope) -> Made<Vec<Val>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Expr::Star(row) => out.extend(self.expr(row, scope)?.row()?.iter().cloned()),
                Expr::Each(..) => match self.expr(item, scope)? {
                    Val::Row(all) if items.len() == 1 => return Some(vec![Val::Row(all)]),
                    other => out.push(other),
                },
                item => out.push(self.expr(item, scope)?),
            }
        }
        Some(out)
    }

    fn unary(&mut self, op: &str, x: Val) -> Made<Val> {
        Some(match (op, x) {
            ("-", Val::Int(n)) => Val::Int(n.checked_neg()?),
            ("-", Val::Float(x)) => Val::Float(-x),
            ("not", x) => Val::Bool(!x.truth()?),
            ("-", Val::Array(a)) => self.graph.unary("Neg", &a).into(),
            ("~", Val::Array(a)) if a.dtype == DType::Bool => self.graph.unary("Not", &a).into(),
            ("~", Val::Array(a)) => self.graph.unary("BitwiseNot", &a).into(),
            _ => return None,
        })
    }

    pub fn binary(&mut self, op: &str, a: Val, b: Val) -> Made<Val> {
        if let Some(known) = known(op, &a, &b) {
            return Some(known);
        }
        match (op, &a, &b) {
            ("is", _, Val::None) => return Some(Val::Bool(matches!(a, Val::None))),
            ("is not", _, Val::None) => return Some(Val::Bool(!matches!(a, Val::None))),
            ("+", Val::Row(x), Val::Row(y)) => {
                return Some(Val::Row(x.iter().chain(y).cloned().collect()));
            }
            ("*", Val::Row(x), Val::Int(n)) if (0..1 << 24).contains(n) => {
                let all = (0..*n).flat_map(|_| x.iter().cloned());
                return Some(Val::Row(all.collect()));
            }
            ("==", ..) if a.same(&b).is_some() => return Some(Val::Bool(a.same(&b)?)),
            ("!=", ..) if a.same(&b).is_some() => return Some(Val::Bool(!a.same(&b)?)),
            _ => {}
        }
        let bools = a.strong().or(b.strong()) == Some(DType::Bool)
            && [&a, &b].iter().all(|v| v.strong().or(v.weak()) == Some(DType::Bool));
        let g = &mut self.graph;
        let node = match op {
            "+" => "Add",
            "-" => "Sub",
            "*" => "Mul",
            "==" => "Equal",
            "<" => "Less",
            "<=" => "LessOrEqual",
            ">" => "Greater",
            ">=" => "GreaterOrEqual",
            "&" if bools => "And",
            "|" if bools => "Or",
            "^" if bools => "Xor",
            "&" => "BitwiseAnd",
            "|" => "BitwiseOr",
            "^" => "BitwiseXor",
            "@" => return g.matmul(&a, &b).map(Val::from),
            "/" => return self.divide(&a, &b),
            "**" => return self.power(&a, &b),
            "//" => return self.call(&Val::Function("np.floor_divide".into()), vec![a, b], vec![]),
            "!=" => {
                let equal = g.binary("Equal", &a, &b)?;
                return Some(g.unary("Not", &equal).into());
            }
            _ => return None,
        };
        g.binary(node, &a, &b).map(Val::from)
    }

    fn divide(&mut self, a: &Val, b: &Val) -> Made<Val> {
        let all = self.graph.together(&[a, b])?;
        let float = |g: &mut Graph, a| {
            if dtype_of(a).is_float() { a.clone() } else { g.cast(a, DType::F64) }
        };
        let (x, y) = (float(&mut self.graph, &all[0]), float(&mut self.graph, &all[1]));
        self.graph.pair("Div", &x, &y).map(Val::from)
    }

    fn power(&mut self, a: &Val, b: &Val) -> Made<Val> {
        // Squares and roots are common, and exact.
        match b.number() {
            Some(2.0) => return self.binary("*", a.clone(), a.clone()),
            Some(1.0) => return Some(a.clone()),
            _ => {}
        }
        self.graph.binary("Pow", a, b).map(Val::from)
    }

    fn attribute(&mut self, base: &Expr, name: &str, scope: &Scope) -> Made<Val> {
        if let Expr::Name(module) = base
            && matches!(module.as_str(), "np" | "math")
        {
            return constant(module, name);
        }
        let base = self.expr(base, scope)?;
        if let Val::Function(f) = &base {
            return Some(Val::Function(format!("{f}.{name}")));
        }
        Some(match (&base, name) {
            (Val::Array(a), "shape") => Val::of_ints(&a.dims),
            (Val::Array(a), "ndim") => Val::Int(a.rank()),
            (Val::Array(a), "size") => Val::Int(a.size()),
            (Val::Array(a), "dtype") => Val::DType(a.dtype),
            (Val::Array(a), "T") => {
                let from: Vec<i64> = (0..a.rank()).rev().collect();
                self.graph.transpose(a, &from)?.into()
            }
            _ => Val::Method(Box::new(base), name.to_string()),
        })
    }

    /// A call of a function of the files or of NumPy, or of a method.
    pub fn call(&mut self, f: &Val, mut args: Vec<Val>, named: Vec<(String, Val)>) -> Made<Val> {
        let name = match f {
            Val::Function(name) => name.clone(),
            Val::Method(base, name) => {
                args.insert(0, (**base).clone());
                format!(".{name}")
            }
            Val::DType(dtype) => {
                let x = self.graph.array(args.first()?, Some(*dtype))?;
                return Some(self.graph.cast(&x, *dtype).into());
            }
            _ => return None,
        };
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let own = crate::native::call(self, &name, &args, &named);
        let out = match own {
            Some(found) => found,
            None => match self.functions.clone().get(&name) {
                Some(function) => self.function(function, args, named),
                None => crate::numpy::call(self, &name, &args, &named),
            },
        };
        self.depth -= 1;
        out
    }

    fn function(&mut self, f: &Function, args: Vec<Val>, named: Vec<(String, Val)>) -> Made<Val> {
        let mut scope: Scope = named.into_iter().collect();
        let mut args = args.into_iter();
        for (name, default) in &f.params {
            if let Some(rest) = name.strip_prefix('*') {
                scope.insert(rest.to_string(), Val::Row(args.by_ref().collect()));
            } else if !scope.contains_key(name) {
                let value = match (args.next(), default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => self.expr(default, &Scope::new())?,
                    (None, None) => return None,
                };
                scope.insert(name.clone(), value);
            }
        }
        self.block(&f.body, &mut scope)?
    }

    /// Runs statements; `None` if one is unsupported, else the return value, if any.
    fn block(&mut self, body: &[Statement], scope: &mut Scope) -> Made<Option<Val>> {
        for statement in body {
            match statement {
                Statement::Bind(targets, value) => {
                    let value = self.expr(value, scope)?;
                    for target in targets {
                        self.bind(target, value.clone(), scope)?;
                    }
                }
                Statement::Augment(target, op, value) => {
                    let (before, value) = (self.expr(target, scope)?, self.expr(value, scope)?);
                    let after = self.binary(op, before, value)?;
                    self.bind(target, after, scope)?;
                }
                Statement::Return(value) => return Some(Some(self.expr(value, scope)?)),
                Statement::If(test, yes, no) => {
                    let found = self.branch(test, yes, no, scope)?;
                    if found.is_some() {
                        return Some(found);
                    }
                }
                Statement::For(target, row, inside) => {
                    let row = self.expr(row, scope)?;
                    for v in row.row()? {
                        self.bind(target, v.clone(), scope)?;
                        let found = self.block(inside, scope)?;
                        if found.is_some() {
                            return Some(found);
                        }
                    }
                }
                Statement::Other => return None,
            }
        }
        Some(None)
    }

    fn bind(&mut self, target: &Expr, value: Val, scope: &mut Scope) -> Made<()> {
        match target {
            Expr::Name(name) => {
                scope.insert(name.clone(), value);
            }
            Expr::Row(targets) => {
                let Val::Row(values) = value else { return None };
                let star = targets.iter().position(|t| matches!(t, Expr::Star(_)));
                if star.is_none() && values.len() != targets.len() {
                    return None;
                }
                for (target, value) in targets.iter().zip(values) {
                    self.bind(target, value, scope)?;
                }
            }
            // An item of a local list.
            Expr::Subscript(base, index) => {
                let index = self.expr(index, scope)?.int()?;
                let Expr::Name(name) = &**base else { return None };
                let Val::Row(items) = scope.get_mut(name)? else { return None };
                let at = axis(index, items.len() as i64)?;
                *items.get_mut(usize::try_from(at).ok()?)? = value;
            }
            _ => return None,
        }
        Some(())
    }

    fn branch(
        &mut self,
        test: &Expr,
        yes: &[Statement],
        no: &[Statement],
        scope: &mut Scope,
    ) -> Made<Option<Val>> {
        let test = self.expr(test, scope)?.truth()?;
        self.block(if test { yes } else { no }, scope)
    }
}

fn dtype_of(a: &crate::graph::Array) -> DType {
    a.dtype
}

fn named(name: &str, scope: &Scope) -> Val {
    match (scope.get(name), name) {
        (Some(v), _) => v.clone(),
        (None, "None") => Val::None,
        (None, "True") => Val::Bool(true),
        (None, "False") => Val::Bool(false),
        (None, _) => Val::Function(name.to_string()),
    }
}

/// A module's attribute.
fn constant(module: &str, name: &str) -> Made<Val> {
    Some(match name {
        "inf" => Val::Float(f64::INFINITY),
        "nan" => Val::Float(f64::NAN),
        "pi" => Val::Float(std::f64::consts::PI),
        "float32" => Val::DType(DType::F32),
        "float64" => Val::DType(DType::F64),
        "int64" => Val::DType(DType::I64),
        "bool_" => Val::DType(DType::Bool),
        _ => Val::Function(format!("{module}.{name}")),
    })
}

/// Result of an operator on two known values.
fn known(op: &str, a: &Val, b: &Val) -> Made<Val> {
    if let ("in", Val::Row(row)) = (op, b) {
        return Some(Val::Bool(row.iter().any(|v| v.same(a) == Some(true))));
    }
    if let (Some(x), Some(y)) = (a.int(), b.int()) {
        return Some(match op {
            "+" => Val::Int(x.checked_add(y)?),
            "-" => Val::Int(x.checked_sub(y)?),
            "*" => Val::Int(x.checked_mul(y)?),
            "//" if y != 0 => Val::Int(x.div_euclid(y)),
            "%" if y != 0 => Val::Int(x.rem_euclid(y)),
            "/" => Val::Float(x as f64 / y as f64),
            "**" if y >= 0 => Val::Int(x.checked_pow(u32::try_from(y).ok()?)?),
            "**" => Val::Float((x as f64).powi(i32::try_from(y).ok()?)),
            _ => return compared(op, x as f64, y as f64),
        });
    }
    let (x, y) = (a.number()?, b.number()?);
    Some(Val::Float(match op {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        "**" => x.powf(y),
        _ => return compared(op, x, y),
    }))
}

fn compared(op: &str, x: f64, y: f64) -> Made<Val> {
    Some(Val::Bool(match op {
        "==" => x == y,
        "!=" => x != y,
        "<" => x < y,
        "<=" => x <= y,
        ">" => x > y,
        ">=" => x >= y,
        _ => return None,
    }))
}

impl Interpreter {
    /// `base[index]`.
    fn subscript(&mut self, base: &Val, index: &Val) -> Made<Val> {
        let array = match base {
            Val::Array(a) => a.clone(),
            // `np.s_[...]` is its index.
            Val::Function(name) if name == "np.s_" => return Some(index.clone()),
            Val::Row(items) => return picked(items, index),
            _ => return None,
        };
        if let Val::Places(at, along) = index {
            let Val::Array(at) = &**at else { return None };
            return self.graph.elements(&array, at, *along).map(Val::from);
        }
        let parts = match index {
            Val::Row(parts) => parts.clone(),
            one => vec![one.clone()],
        };
        let taken = |v: &&Val| !matches!(v, Val::None | Val::Ellipsis);
        let free = array.dims.len().checked_sub(parts.iter().filter(taken).count())?;
        let mut cuts = Vec::new();
        let mut dims = Vec::new();
        let mut rows = None;
        let mut at = 0usize;
        for part in &parts {
            match part {
                Val::None => dims.push(1),
                Val::Ellipsis => {
                    dims.extend(&array.dims[at..at + free]);
                    at += free;
                }
                Val::Int(n) => {
                    cuts.push((at as i64, axis(*n, array.dims[at])?, 1, 1));
                    at += 1;
                }
                Val::Slice(s) => {
                    let (start, count, step) = stretch(s, array.dims[at])?;
                    cuts.push((at as i64, start, count, step));
                    dims.push(count);
                    at += 1;
                }
                Val::Array(index) if rows.is_none() && parts.len() == 1 => {
                    rows = Some((index.clone(), at as i64));
                    at += 1;
                }
                _ => return None,
            }
        }
        if let Some((index, along)) = rows {
            return self.graph.gather(&array, &index, along).map(Val::from);
        }
        dims.extend(&array.dims[at..]);
        let weak = array.weak;
        let mut out = self.graph.slice(&array, &cuts);
        out = self.graph.reshape(&out, &dims);
        out.weak = weak;
        Some(out.into())
    }
}

fn picked(items: &[Val], index: &Val) -> Made<Val> {
    match index {
        Val::Int(n) => Some(items[axis(*n, items.len() as i64)? as usize].clone()),
        Val::Slice(s) => {
            let (start, count, step) = stretch(s, items.len() as i64)?;
            let at = (0..count).map(|i| items[(start + i * step) as usize].clone());
            Some(Val::Row(at.collect()))
        }
        _ => None,
    }
}

/// Normalised start, count and step of a slice.
fn stretch(parts: &[Option<i64>], size: i64) -> Made<(i64, i64, i64)> {
    let part = |i: usize| parts.get(i).copied().flatten();
    let step = part(2).unwrap_or(1);
    let clip = |x: i64, low: i64, high: i64| (if x < 0 { x + size } else { x }).clamp(low, high);
    let (start, end) = match step {
        0 => return None,
        1.. => {
            (part(0).map_or(0, |x| clip(x, 0, size)), part(1).map_or(size, |x| clip(x, 0, size)))
        }
        _ => (
            part(0).map_or(size - 1, |x| clip(x, -1, size - 1)),
            part(1).map_or(-1, |x| clip(x, -1, size - 1)),
        ),
    };
    let count = (end - start + step - step.signum()) / step;
    Some((start, count.max(0), step))
}
