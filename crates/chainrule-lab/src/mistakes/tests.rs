//! A small run of the benchmark.

use super::*;

fn summary(table: &Table) -> String {
    let unnamed = table.rows().filter(|r| r.counts.named != r.counts.planted);
    let each = unnamed
        .map(|r| format!("{}: {} in {}: {:?} {}", r.setting, r.mistake, r.op, r.counts, r.said));
    let each = each.collect::<Vec<_>>().join("\n");
    format!("{:?}\n{each}\nalarms {:?}", table.totals(), table.false_alarms())
}

#[test]
fn mistakes_of_one_op_are_all_noticed_and_named() {
    let options = Mistakes { op: Some("tanh".into()), points: 50, ..Mistakes::default() };
    let table = mistakes(&options).unwrap();
    let counts = table.totals();
    assert!(counts.planted > 50 && counts.detected == counts.planted, "{}", summary(&table));
    assert!(counts.named * 100 >= counts.planted * 95, "{}", summary(&table));
    assert!(table.false_alarms().is_empty() && table.untouched_runs() == 50);
}
