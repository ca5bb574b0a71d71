//! The text of a persistent kernel.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::PersistentKernel;
use super::groups::Group;
use super::maker::PersistentMaker;
use super::pieces::{Names, Piece, Targets, Writer};
use super::schedule::Stage;
use super::shares::{Places, Share};
use crate::graph::ValueId;

/// Sets of values with the text that computes them.
type NamedPieces = Vec<(Vec<ValueId>, Piece)>;

/// The text of a stage.
struct StageText {
    phase: usize,
    groups: NamedPieces,
    beside: NamedPieces,
    ahead: NamedPieces,
    meanwhile: NamedPieces,
}

impl StageText {
    fn all(&self) -> impl Iterator<Item = &(Vec<ValueId>, Piece)> {
        let all = self.groups.iter().chain(&self.beside);
        all.chain(&self.ahead).chain(&self.meanwhile)
    }
}

impl PersistentMaker<'_> {
    pub(super) fn writer(&self) -> Writer<'_> {
        let places = Places::new(&self.shares, &self.kept, &self.names, self.cluster);
        Writer { graph: self.graph, stored: self.stored, names: &self.names, places }
    }

    /// The text of all stages.
    fn stages(&self) -> Vec<StageText> {
        let targets = Targets { memory: self.memory.clone(), kept: self.kept.clone() };
        let main = self.writer();
        let mut spare = self.writer();
        spare.places.cluster.threads = self.cluster.spare();
        let pieces = |writer: &Writer<'_>, groups: &[Group], after: &mut usize| -> NamedPieces {
            let piece = |group: &Group| {
                let piece = writer.piece(&group.task, &targets, *after);
                *after += group.task.width();
                (group.members().collect(), piece)
            };
            groups.iter().map(piece).collect()
        };
        let stage = |stage: &Stage| {
            let mut after = 0;
            StageText {
                phase: stage.phase,
                groups: pieces(&main, &stage.groups, &mut 0),
                beside: pieces(&spare, &stage.beside, &mut after),
                ahead: pieces(&spare, &stage.ahead, &mut after),
                meanwhile: pieces(&main, &stage.meanwhile, &mut 0),
            }
        };
        self.schedule.stages.iter().map(stage).collect()
    }

    pub fn kernel(mut self) -> PersistentKernel {
        self.carry();
        let stages = self.stages();
        let all = || stages.iter().flat_map(StageText::all);
        let ahead = || stages.iter().flat_map(|s| &s.ahead);
        let reads = |p: &(Vec<ValueId>, Piece)| p.1.reads.keys().copied().collect::<Vec<_>>();
        let used: BTreeSet<ValueId> = all().flat_map(reads).collect();
        let early: BTreeSet<ValueId> = ahead().flat_map(reads).collect();
        self.given(&used, &early);
        let draws = self.draws();
        if all().any(|(_, p)| p.draws) {
            self.head.push(draws.clone());
        }
        if ahead().any(|(_, p)| p.draws) {
            self.ahead.push(draws);
        }
        let [all, ahead] = ["all_threads", "ahead"].map(|name| self.fresh(name));
        let name = format!("persistent_{}", self.cluster.blocks);
        let text = self.text(&name, &stages, [&all, &ahead]);
        let names = |pieces: &NamedPieces| {
            let values = pieces.iter().flat_map(|(members, _)| members);
            let names = values.map(|v| self.graph.values[*v].name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let told = |stage: &StageText| {
            let parts = [
                ("", &stage.groups),
                ("beside ", &stage.beside),
                ("ahead ", &stage.ahead),
                ("meanwhile ", &stage.meanwhile),
            ];
            let parts = parts.iter().filter(|(_, pieces)| !pieces.is_empty());
            parts
                .map(|(how, pieces)| format!("{how}{}", names(pieces)))
                .collect::<Vec<_>>()
                .join("; ")
        };
        PersistentKernel {
            text,
            name,
            blocks: self.cluster.blocks,
            threads: self.cluster.threads + self.cluster.spare(),
            parameters: self.parameters.iter().map(|p| p.0.clone()).collect(),
            scratch: self.scratch,
            shared: self.shared,
            stages: stages.iter().map(told).collect(),
            nanoseconds: self.nanoseconds,
        }
    }

    /// The line that gives a step its random numbers.
    fn draws(&self) -> String {
        let Names { seed, run, step, .. } = &self.names;
        let number = format!("({run} + (unsigned long long){step})");
        let words =
            [seed, &number].map(|of| format!("(unsigned int){of}, (unsigned int)({of} >> 32)"));
        format!("const unsigned int draws[4] = {{{}}};", words.join(", "))
    }

    fn text(&self, name: &str, stages: &[StageText], names: [&str; 2]) -> String {
        let Names { block, thread, step, steps, .. } = &self.names;
        let mut out = String::from("#if defined(CHAINRULE_SHIM) || __CUDA_ARCH__ >= 900\n");
        let params: Vec<&str> = self.parameters.iter().map(|p| p.1.as_str()).collect();
        let _ = writeln!(
            out,
            "extern \"C\" __global__ void __cluster_dims__({}, 1, 1) __launch_bounds__({}, 1) \
             {name}(\n    {}\n) {{",
            self.cluster.blocks,
            self.cluster.threads + self.cluster.spare(),
            params.join(",\n    ")
        );
        if self.shared > 0 {
            out.push_str("    extern __shared__ __align__(16) unsigned char arena[];\n");
        }
        let _ = writeln!(out, "    const int {block} = (int)blockIdx.x;");
        let _ = writeln!(out, "    const int {thread} = (int)threadIdx.x;");
        let _ = writeln!(out, "    if ({steps} == 0) {{ return; }}");
        lines(&mut out, 0, &self.before);
        self.begin_ahead(&mut out, stages);
        let _ = writeln!(out, "    for (int {step} = 0; {step} < {steps}; {step}++) {{");
        lines(&mut out, 8, &self.head);
        for (i, stage) in stages.iter().enumerate() {
            let _ = writeln!(out, "        {}", self.mark(i));
            self.stage(&mut out, stage, names);
            let next = stages.get(i + 1).map(|next| next.phase);
            let cluster = next.map_or(self.ends_apart(), |next| next != stage.phase);
            if stage.meanwhile.is_empty() {
                let barrier = if cluster { "cluster_barrier" } else { "__syncthreads" };
                let _ = writeln!(out, "        {barrier}();");
            }
        }
        let _ = writeln!(out, "        {}", self.mark(stages.len()));
        out.push_str("    }\n");
        lines(&mut out, 0, &self.behind);
        if !self.odd.is_empty() {
            let _ = writeln!(out, "    if ({steps} % 2 == 1) {{");
            lines(&mut out, 8, &self.odd);
            out.push_str("    }\n");
        }
        out.push_str("}\n#endif\n");
        out
    }

    /// The line that takes the time before a stage.
    fn mark(&self, n: usize) -> String {
        let Names { block, thread, .. } = &self.names;
        format!(
            "if (times != nullptr && {block} == 0 && {thread} == 0) {{ times[{n}] = clock64(); }}"
        )
    }

    /// Lines of what the first step finds done.
    fn begin_ahead(&self, out: &mut String, stages: &[StageText]) {
        if self.ahead.is_empty() {
            return;
        }
        let Names { thread, step, .. } = &self.names;
        out.push_str("    {\n");
        let _ = writeln!(out, "        const int {step} = 0;");
        lines(out, 8, &self.ahead);
        for stage in stages.iter().filter(|s| !s.ahead.is_empty()) {
            let _ = writeln!(out, "        if ({thread} < {}) {{", self.cluster.spare());
            self.told(out, &stage.ahead);
            out.push_str("        }\n        __syncthreads();\n");
        }
        out.push_str("    }\n");
    }

    /// Lines of a stage.
    fn stage(&self, out: &mut String, stage: &StageText, names: [&str; 2]) {
        let waits = !stage.meanwhile.is_empty();
        let none = Vec::new();
        let ahead = if waits { &none } else { &stage.ahead };
        self.shared_out(out, &stage.groups, [&stage.beside, ahead], names);
        if waits {
            out.push_str("        cluster_arrive();\n");
            self.shared_out(out, &stage.meanwhile, [&none, &stage.ahead], names);
            out.push_str("        cluster_wait();\n        __syncthreads();\n");
        }
    }

    /// Lines of what most threads compute, and of what the spare ones do: for this step and the
    /// next.
    fn shared_out(
        &self,
        out: &mut String,
        most: &NamedPieces,
        [beside, ahead]: [&NamedPieces; 2],
        [all, next]: [&str; 2],
    ) {
        let Names { thread, step, steps, .. } = &self.names;
        let threads = self.cluster.threads;
        let _ = writeln!(out, "        if ({thread} < {threads}) {{");
        self.told(out, most);
        if !beside.is_empty() || !ahead.is_empty() {
            out.push_str("        } else {\n");
            let _ = writeln!(out, "        const int {all} = {thread};");
            let _ = writeln!(out, "        const int {thread} = {all} - {threads};");
            self.told(out, beside);
        }
        if !ahead.is_empty() {
            let _ = writeln!(out, "        if ({step} + 1 < {steps}) {{");
            let _ = writeln!(out, "        const int {next} = {step} + 1;");
            let _ = writeln!(out, "        const int {step} = {next};");
            lines(out, 8, &self.ahead);
            self.told(out, ahead);
            out.push_str("        }\n");
        }
        out.push_str("        }\n");
    }

    /// Lines of values, headed by what they are.
    fn told(&self, out: &mut String, pieces: &NamedPieces) {
        for (members, piece) in pieces {
            for v in members {
                let _ = writeln!(out, "        // {}", self.note(*v));
            }
            lines(out, 0, &piece.lines);
        }
    }

    /// A value with its share.
    fn note(&self, v: ValueId) -> String {
        let value = &self.graph.values[v];
        let how = match self.shares[&v] {
            Share::Whole => "whole in each block".to_string(),
            Share::Split(axis) => format!("split along axis {axis}"),
        };
        format!("{}  {} {:?}, {how}", value.name, value.dtype.name(), value.dims)
    }
}

fn lines(out: &mut String, depth: usize, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "{:depth$}{line}", "");
    }
}
