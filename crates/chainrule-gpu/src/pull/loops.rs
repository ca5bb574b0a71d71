//! Blocks and loops of a kernel under construction: over terms, neighbours and lanes.

use std::collections::HashSet;

use chainrule_core::dtype::DType;

use super::{Body, Lanes, Scope};
use crate::coords::Coord;

impl Body<'_> {
    /// Begins a loop over a thread's neighbours.
    pub fn open_lanes(&mut self, count: usize) -> Scope {
        self.lanes = Some(Lanes {
            count,
            at: self.lines.len(),
            depth: self.depth,
            lines: Vec::new(),
            inside: HashSet::from(["e".to_string()]),
            known: Vec::new(),
            bound: Vec::new(),
        });
        self.line("#pragma unroll");
        self.open(format!("for (int e = 0; e < {count}; e++) {{"))
    }

    /// Ends it; what was named before it is still known.
    pub fn close_lanes(&mut self, scope: Scope) {
        self.close(scope);
        let Some(lanes) = self.lanes.take() else { return };
        self.lines.splice(lanes.at..lanes.at, lanes.lines);
        self.known.extend(lanes.known);
        self.bound.extend(lanes.bound);
    }

    /// An array with a number for each neighbour, declared before the loop over them.
    pub fn array(&mut self, wanted: &str, dtype: DType) -> String {
        let name = self.fresh(wanted);
        let kind = self.dialect.kind(dtype);
        if let Some(lanes) = &mut self.lanes {
            lanes.inside.remove(&name);
            let line = format!("{kind} {name}[{}];", lanes.count);
            lanes.line(&line);
        }
        name
    }

    /// From now on, lines belong to an outer block.
    pub fn deeper(&mut self) {
        self.depth += 1;
    }

    /// Begins a block; what is named in it is forgotten at its end.
    pub fn open(&mut self, head: impl AsRef<str>) -> Scope {
        self.line(head);
        self.depth += 1;
        Scope { known: self.known.clone(), bound: self.bound.clone() }
    }

    pub fn close(&mut self, scope: Scope) {
        self.depth -= 1;
        self.line("}");
        (self.known, self.bound) = (scope.known, scope.bound);
    }

    /// Begins a loop over the terms of an element, which lanes share.
    pub fn open_terms(&mut self, var: &str, count: usize) -> Scope {
        let (lanes, lane) = &self.sharers.clone();
        let head = match lanes {
            1 => self.dialect.each(var, "0", &count.to_string(), "1"),
            n => self.dialect.each(var, lane, &count.to_string(), &n.to_string()),
        };
        if self.places.is_some() {
            // Loads of many terms are under way at once.
            let serial = count.div_ceil(*lanes);
            self.line(format!("#pragma unroll {}", if serial <= 32 { serial } else { 16 }));
        }
        self.open(head)
    }

    /// Declares that a variable is a position in the block's own stretch of an axis, and `mine` the
    /// position within that.
    pub fn stretch(&mut self, own: &str, mine: &str) {
        if let Some(places) = &mut self.places {
            places.own.push((own.to_string(), mine.to_string()));
        }
    }

    /// Begins a loop over a tile of neighbours, which is unrolled: the place in the tile.
    pub fn open_tile(&mut self, tile: usize) -> (Scope, Coord) {
        let var = self.fresh("t");
        self.line("#pragma unroll");
        let scope = self.open(self.dialect.each(&var, "0", &tile.to_string(), "1"));
        (scope, Coord::of(&var, tile))
    }

    /// Combines the lanes' parts of a sum or another reduction; all lanes have the whole then.
    pub fn join_lanes(&mut self, sum: &str, next: impl Fn(&Body<'_>, &str) -> String) {
        let lanes = self.sharers.0;
        if lanes > 1 {
            let bit = self.fresh("bit");
            let next = next(self, &format!("of_lanes({sum}, {bit})"));
            self.line(format!(
                "for (int {bit} = {}; {bit} > 0; {bit} /= 2) {{ {sum} = {next}; }}",
                lanes / 2
            ));
        }
    }

    /// A start value for the first lane; the others start from nothing.
    pub fn of_first_lane(&self, value: &str, dtype: DType) -> String {
        match &self.sharers {
            (1, _) => value.to_string(),
            (_, lane) => format!("{lane} == 0 ? {value} : {}", self.dialect.number(0.0, dtype)),
        }
    }
}
