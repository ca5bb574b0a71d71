//! Diagnoses programs of a folder: one line of JSON each.
use chainrule_diagnose::{
    Bench,
    data::Source,
    description::{Program, apply},
    diagnose,
};
fn main() {
    let mut args = std::env::args().skip(1);
    let (dir, mode) = (args.next().unwrap(), args.next().unwrap());
    for id in args {
        let text = std::fs::read_to_string(format!("{dir}/{id}.json")).unwrap();
        let mut program = Program::parse(&text).unwrap();
        if mode == "fixed" {
            let fix: Vec<serde_json::Value> =
                program.value["fix"].as_array().cloned().unwrap_or_default();
            program = Program::of(apply(&program.value, &fix).unwrap()).unwrap();
        }
        let source = Source::new(std::path::Path::new(&dir), None, true);
        let t = std::time::Instant::now();
        let (tables, _) = source.tables(&program, &[1, 2, 3]).unwrap();
        let data = t.elapsed().as_secs_f64();
        let deadline = Some(std::time::Instant::now() + std::time::Duration::from_secs(12));
        match diagnose(&Bench::new(program, tables, 1, deadline)) {
            Ok(r) => {
                let mut j = r.json();
                j["data"] = data.into();
                println!("{j}");
            }
            Err(e) => println!("{{\"id\": \"{id}\", \"error\": \"{e}\"}}"),
        }
    }
}
