//! Values that the same threads compute, and the threads for them.

use std::collections::BTreeMap;

use super::pieces::{Targets, Task, Writer, layout};
use super::shares::{Level, Reads, Share};
use crate::graph::ValueId;

/// Most values of a task.
const MEMBERS: usize = 16;

/// A task with its level and what it reads.
pub(crate) struct Group {
    pub level: Level,
    pub task: Task,
    pub reads: Reads,
}

impl Group {
    pub fn members(&self) -> impl Iterator<Item = ValueId> {
        self.task.members.iter().map(|m| m.0)
    }
}

/// Tasks for these values, given in order with the number of cluster barriers before them. A value
/// joins the task of one that it reads if it reads it only at its own position and nothing else it
/// needs is computed later: no barrier is then between them.
pub(crate) fn grouped(writer: &Writer<'_>, values: &[(ValueId, Share, usize)]) -> Vec<Group> {
    let (graph, cluster) = (writer.graph, writer.places.cluster);
    let reads = |task: &Task| writer.piece(task, &Targets::default(), 0).reads;
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<ValueId, usize> = BTreeMap::new();
    for &(v, share, stage) in values {
        let alone = Task::new(graph, v, share, cluster);
        let own = reads(&alone);
        let within = |x: &ValueId| places.get(x).filter(|&&g| groups[g].level.0 == stage).copied();
        let before: Vec<usize> = own.keys().filter_map(within).collect();
        let last = before.iter().copied().max_by_key(|&g| groups[g].level.1);
        let joined = last.and_then(|g| {
            let group = &groups[g];
            let late = |&&other: &&usize| other != g && groups[other].level.1 >= group.level.1;
            let (first, kind) = group.task.members[0];
            let fits = group.task.members.len() < MEMBERS
                && alone.is_shared == group.task.is_shared
                && (alone.tile, group.task.tile) == (1, 1)
                && !before.iter().any(|other| late(&other))
                && layout(graph, first, kind, cluster) == layout(graph, v, share, cluster);
            let task = fits.then(|| group.task.with(graph, v, share))?;
            let all = reads(&task);
            let inside = task.members.iter().any(|(x, _)| all.contains_key(x));
            (!inside).then_some((g, task, all))
        });
        match joined {
            Some((g, task, reads)) => {
                (groups[g].task, groups[g].reads) = (task, reads);
                places.insert(v, g);
            }
            None => {
                let after = before.iter().map(|&g| groups[g].level.1 + 1).max().unwrap_or(0);
                places.insert(v, groups.len());
                groups.push(Group { level: (stage, after), task: alone, reads: own });
            }
        }
    }
    groups.sort_by_key(|g| g.level);
    groups
}

/// Distributes the threads of a block among the tasks between two barriers: tasks whose threads add
/// most terms get more lanes, until no thread has more elements than necessary.
pub(crate) fn widen(groups: &mut [Group], threads: usize) {
    let width = |groups: &[Group]| groups.iter().map(|g| g.task.width()).sum::<usize>();
    let most = width(groups).next_multiple_of(threads) + threads;
    let mut done = vec![false; groups.len()];
    loop {
        let open = (0..groups.len()).filter(|&i| !done[i] && groups[i].task.widens(threads));
        let Some(i) = open.max_by_key(|&i| groups[i].task.serial()) else { break };
        groups[i].task.lanes *= 2;
        if width(groups) > most {
            groups[i].task.lanes /= 2;
            done[i] = true;
        }
    }
}
