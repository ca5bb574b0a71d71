fn main() {
    let mut o = chainrule::check::Mistakes::default();
    let a: Vec<String> = std::env::args().collect();
    if let Some(s) = a.get(1) {
        o.seed = s.parse().unwrap();
    }
    if let Some(s) = a.get(2) {
        o.points = s.parse().unwrap();
    }
    o.op = a.get(3).cloned();
    let t = std::time::Instant::now();
    let table = chainrule::check::mistakes(&o).unwrap();
    for r in table.rows() {
        if r.counts.named != r.counts.planted {
            println!(
                "{} | {} in {} | p{} d{} n{} l{} mis{} un{} missed{} | {}",
                r.setting,
                r.mistake,
                r.op,
                r.counts.planted,
                r.counts.detected,
                r.counts.named,
                r.counts.listed,
                r.counts.misnamed,
                r.counts.unidentified,
                r.counts.missed,
                r.said
            );
        }
    }
    println!("{:?}", table.totals());
    let mut al = std::collections::BTreeMap::new();
    for a in table.false_alarms() {
        *al.entry(a.clone()).or_insert(0) += 1;
    }
    println!("untouched {} alarms {} {:?}", table.untouched_runs(), table.false_alarms().len(), al);
    println!("{:?}", t.elapsed());
}
