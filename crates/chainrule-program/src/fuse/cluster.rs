//! Grouping of instructions for fusion.
//!
//! Instructions are taken in order. An instruction on rows joins the group of its producer, or a
//! group that shares an operand with it, if both run on the same rows and no instruction outside
//! the group would have to run in between: none may depend on the group and be a dependency of the
//! new member. A group headed by a product accepts only consumers of its elements that do not
//! depend on row boundaries; a value that is only reduced stays with its reduction. In the end,
//! producer and consumer groups are merged.

use std::collections::{BinaryHeap, HashMap};

use super::head;
use super::layout::Layouts;
use super::layout::Part;
use super::member::{Kind, Member};
use crate::Program;
use crate::ir::Id;

/// A larger group would need more room than L1 has.
const MOST: usize = 24;

/// A set of clusters, as bits.
#[derive(Clone, Default)]
struct Set(Vec<u64>);

impl Set {
    fn has(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    fn add(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn remove(&mut self, i: usize) {
        if let Some(word) = self.0.get_mut(i / 64) {
            *word &= !(1 << (i % 64));
        }
    }

    fn extend(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// Instructions that run at one place of the list.
#[derive(Default)]
pub(super) struct Cluster {
    pub members: Vec<usize>,
    /// The rows of a group and their length; nothing for an instruction that runs alone.
    pub space: Option<(usize, usize)>,
    /// Whether row boundaries do not matter.
    flat: bool,
    /// The product at the head.
    head: Option<Id>,
    /// The clusters that must run before, directly or indirectly.
    before: Set,
}

pub(super) struct Clusters<'a> {
    program: &'a Program,
    layouts: &'a Layouts,
    clusters: Vec<Cluster>,
    /// Source of a value's elements, by root.
    made_in: HashMap<Id, usize>,
    /// Kind of the instruction that made a value in a group.
    made_by: HashMap<Id, Kind>,
    /// The last group that takes a value, by root.
    taken_in: HashMap<Id, usize>,
    /// Uses of each value, by root; an output of the program counts once more.
    uses: Vec<usize>,
    /// Uses by sums of rows or columns.
    sums: Vec<usize>,
    last_draw: Option<usize>,
}

impl<'a> Clusters<'a> {
    pub fn of(program: &'a Program, layouts: &'a Layouts) -> Vec<Cluster> {
        let mut all = Clusters {
            program,
            layouts,
            clusters: Vec::new(),
            made_in: HashMap::new(),
            made_by: HashMap::new(),
            taken_in: HashMap::new(),
            uses: uses(program, layouts),
            sums: sums(program, layouts),
            last_draw: None,
        };
        (0..program.instructions.len()).for_each(|i| all.place(i));
        all.merge();
        all.in_order()
    }

    fn place(&mut self, i: usize) {
        let instruction = &self.program.instructions[i];
        // A view of a group's result is free, so it stays with the group.
        let window = self.layouts.is_view(instruction.result());
        let maker = self.made_in.get(&self.layouts.root(instruction.result()));
        let stays = |at: usize| self.clusters[at].space.or(self.clusters[at].head.map(|_| (0, 0)));
        if let Some(&at) = maker.filter(|&&at| window && stays(at).is_some()) {
            self.clusters[at].members.push(i);
            self.made_in.insert(instruction.result(), at);
            return;
        }
        let roots: Vec<Id> = instruction.inputs.iter().map(|&id| self.layouts.root(id)).collect();
        let mut before = Set::default();
        for at in roots.iter().filter_map(|root| self.made_in.get(root)) {
            before.extend(&self.clusters[*at].before);
            before.add(*at);
        }
        let member = Member::of(self.program, self.layouts, instruction);
        let found = member.as_ref().and_then(|member| self.group_for(i, member, &roots));
        let draws = instruction.op.generator().is_some();
        if let Some(last) = self.last_draw.filter(|_| draws) {
            before.extend(&self.clusters[last].before);
            before.add(last);
        }
        let at = match (&member, found) {
            (Some(member), Some(at)) => {
                self.join(at, i, member, &roots);
                at
            }
            _ => {
                let space = member.as_ref().map(|m| (m.rows, m.n));
                let flat = member.as_ref().is_some_and(Member::is_flat);
                let product = head::product(self.program, instruction);
                let head = product.map(|_| instruction.result());
                self.clusters.push(Cluster { members: vec![i], space, flat, head, before });
                self.clusters.len() - 1
            }
        };
        if draws {
            self.last_draw = Some(at);
        }
        for &id in &instruction.outputs {
            self.made_in.insert(id, at);
            let kind = member.as_ref().map(|m| m.kind);
            let product = self.clusters[at].head.map(|_| Kind::Map);
            self.made_by.extend(kind.or(product).map(|kind| (id, kind)));
        }
        if member.is_some() {
            self.taken_in.extend(roots.iter().map(|&root| (root, at)));
        }
    }

    /// The group that an instruction can join.
    fn group_for(&self, i: usize, member: &Member, roots: &[Id]) -> Option<usize> {
        let makers = roots.iter().filter_map(|root| self.made_in.get(root));
        let takers = roots.iter().filter_map(|root| self.taken_in.get(root));
        let mut candidates: Vec<usize> = makers.copied().collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.extend(takers);
        candidates.into_iter().find(|&at| self.fits(at, i, member, roots))
    }

    fn fits(&self, at: usize, i: usize, member: &Member, roots: &[Id]) -> bool {
        let group = &self.clusters[at];
        let (rows, n) = match (group.head, group.space) {
            (Some(head), _) => (self.program.info(head).meta.shape.numel(), 1),
            (None, Some(space)) => space,
            (None, None) => return false,
        };
        let same = match group.head {
            None => {
                (rows, n) == (member.rows, member.n)
                    || (rows * n == member.rows * member.n && (group.flat || member.is_flat()))
            }
            Some(_) => rows == member.rows * member.n && self.follows(at, i, member, roots),
        };
        let apart = |(root, part): (&Id, &Part)| {
            self.made_in.get(root) == Some(&at) && self.is_apart((rows, n), *root, *part)
        };
        let between = |root: &Id| {
            let maker = self.made_in.get(root).filter(|&&maker| maker != at);
            maker.is_some_and(|&maker| self.clusters[maker].before.has(at))
        };
        let mut taken = roots.iter().zip(&member.parts);
        same && group.members.len() < MOST && !roots.iter().any(between) && !taken.any(apart)
    }

    /// Whether a member cannot take a value that its group makes: only the rows that the member
    /// itself runs on are there.
    fn is_apart(&self, (rows, n): (usize, usize), root: Id, part: Part) -> bool {
        let numel = self.program.info(root).meta.shape.numel();
        match self.made_by.get(&root) {
            Some(Kind::Map) => part != Part::Whole || numel != rows * n,
            Some(Kind::RowSum) => part != Part::Column || numel != rows,
            _ => true,
        }
    }

    /// Whether an instruction can consume the elements of a product's group as they are computed.
    fn follows(&self, at: usize, i: usize, member: &Member, roots: &[Id]) -> bool {
        let group = &self.clusters[at];
        let takes = roots.iter().any(|root| self.made_in.get(root) == Some(&at));
        let instructions = &self.program.instructions;
        let first = &instructions[group.members[0]];
        let adds = || {
            let alone = group.members.len() == 1 && self.uses[first.result().index()] == 1;
            alone && head::row(self.program, self.layouts, first, &instructions[i]).is_some()
        };
        let result = instructions[i].result().index();
        let only_summed = self.sums[result] > 0 && self.sums[result] == self.uses[result];
        takes && (member.is_flat() && !only_summed || adds())
    }

    fn join(&mut self, at: usize, i: usize, member: &Member, roots: &[Id]) {
        let mut more = Set::default();
        let makers = roots.iter().filter_map(|root| self.made_in.get(root));
        for &maker in makers.filter(|&&maker| maker != at) {
            more.extend(&self.clusters[maker].before);
            more.add(maker);
        }
        let group = &mut self.clusters[at];
        if let Some(head) = group.head {
            group.space = Some((self.program.info(head).meta.shape.numel(), 1));
        } else if group.flat && !member.is_flat() {
            group.space = Some((member.rows, member.n));
            group.flat = false;
        }
        group.members.push(i);
        group.before.extend(&more);
        for cluster in &mut self.clusters {
            if cluster.before.has(at) {
                cluster.before.extend(&more);
            }
        }
    }

    /// Merges producer and consumer groups that have the same rows and need nothing to run in
    /// between.
    fn merge(&mut self) {
        for to in 0..self.clusters.len() {
            let mut i = 0;
            while let Some(&member) = self.clusters[to].members.get(i) {
                i += 1;
                for &id in &self.program.instructions[member].inputs {
                    let maker = self.made_in.get(&self.layouts.root(id)).copied();
                    if let Some((from, space)) = maker.and_then(|m| Some((m, self.merged(m, to)?)))
                    {
                        self.take_in(from, to, space);
                    }
                }
            }
        }
    }

    /// The rows of the group that two groups would form, if they can be one.
    fn merged(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let [a, b] = [from, to].map(|at| &self.clusters[at]);
        let (one, other) = (a.space?, b.space?);
        let (rows, n) = if a.flat { other } else { one };
        let same = one == other || (one.0 * one.1 == other.0 * other.1 && (a.flat || b.flat));
        let between = |x: usize| x != from && b.before.has(x) && self.clusters[x].before.has(from);
        let apart = |&i: &usize| {
            let instruction = &self.program.instructions[i];
            let Some(member) = Member::of(self.program, self.layouts, instruction) else {
                return false;
            };
            let mut taken =
                instruction.inputs.iter().map(|&id| self.layouts.root(id)).zip(member.parts);
            taken.any(|(root, part)| {
                self.made_in.get(&root) == Some(&from) && self.is_apart((rows, n), root, part)
            })
        };
        let fits = from != to
            && a.head.is_none()
            && b.head.is_none()
            && same
            && a.members.len() + b.members.len() <= MOST
            && !(0..self.clusters.len()).any(between)
            && !b.members.iter().any(apart);
        fits.then_some((rows, n))
    }

    /// Moves the members of a group into another.
    fn take_in(&mut self, from: usize, to: usize, space: (usize, usize)) {
        let taken = std::mem::take(&mut self.clusters[from]);
        self.made_in.values_mut().filter(|at| **at == from).for_each(|at| *at = to);
        let group = &mut self.clusters[to];
        group.members.extend(taken.members);
        group.space = Some(space);
        group.flat &= taken.flat;
        group.before.extend(&taken.before);
        group.before.remove(from);
        let mut more = group.before.clone();
        more.add(to);
        for cluster in self.clusters.iter_mut().filter(|cluster| cluster.before.has(from)) {
            cluster.before.remove(from);
            cluster.before.extend(&more);
        }
    }

    /// The clusters in a valid order, as close to the listed one as possible.
    fn in_order(self) -> Vec<Cluster> {
        let Clusters { program, mut clusters, mut made_in, layouts, .. } = self;
        let mut number = Vec::with_capacity(clusters.len());
        let mut count = 0;
        for cluster in &clusters {
            number.push(count);
            count += usize::from(!cluster.members.is_empty());
        }
        clusters.retain(|cluster| !cluster.members.is_empty());
        made_in.values_mut().for_each(|at| *at = number[*at]);
        let mut home = vec![0; program.instructions.len()];
        for (at, cluster) in clusters.iter().enumerate() {
            cluster.members.iter().for_each(|&i| home[i] = at);
        }
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); clusters.len()];
        let mut missing = vec![0; clusters.len()];
        let mut edge = |from: usize, to: usize| {
            if from != to {
                after[from].push(to);
                missing[to] += 1;
            }
        };
        let mut last_draw = None;
        for (i, instruction) in program.instructions.iter().enumerate() {
            for &id in &instruction.inputs {
                // The view itself, and the instruction that makes its elements.
                let makers = [made_in.get(&id), made_in.get(&layouts.root(id))];
                makers.into_iter().flatten().for_each(|&from| edge(from, home[i]));
            }
            if instruction.op.generator().is_some() {
                last_draw.replace(home[i]).into_iter().for_each(|from| edge(from, home[i]));
            }
        }
        let first = |at: usize| std::cmp::Reverse((clusters[at].members[0], at));
        let ready = (0..clusters.len()).filter(|&at| missing[at] == 0);
        let mut ready: BinaryHeap<_> = ready.map(first).collect();
        let mut order = Vec::with_capacity(clusters.len());
        while let Some(std::cmp::Reverse((_, at))) = ready.pop() {
            order.push(at);
            for &next in &after[at] {
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(first(next));
                }
            }
        }
        assert_eq!(order.len(), clusters.len(), "no cluster waits for itself");
        let mut clusters: Vec<Option<Cluster>> = clusters.into_iter().map(Some).collect();
        order.into_iter().map(|at| clusters[at].take().expect("each comes once")).collect()
    }
}

/// Uses of each value by sums of rows or columns.
fn sums(program: &Program, layouts: &Layouts) -> Vec<usize> {
    let mut sums = vec![0; program.values.len()];
    for instruction in &program.instructions {
        if let Some(Member { kind: Kind::RowSum | Kind::ColumnSum { .. }, .. }) =
            Member::of(program, layouts, instruction)
        {
            sums[instruction.inputs[0].index()] += 1;
        }
    }
    sums
}

/// Uses of each value, by root.
fn uses(program: &Program, layouts: &Layouts) -> Vec<usize> {
    let mut uses = vec![0; program.values.len()];
    let own = program.instructions.iter().filter(|i| !layouts.is_view(i.result()));
    let taken = own.flat_map(|i| i.inputs.iter().copied());
    taken.chain(program.roots()).for_each(|id| uses[layouts.root(id).index()] += 1);
    uses
}
