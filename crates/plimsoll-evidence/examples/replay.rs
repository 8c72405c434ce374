//! x
fn main() {
    for f in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&f).unwrap();
        let r = plimsoll_evidence::results(&f, &text).unwrap();
        for run in &r.runs {
            let p = plimsoll_study::replay(run);
            for (i, s) in p.stretches.iter().enumerate() {
                let l = s.loads[0];
                println!(
                    "{}\t{}\t{}\t{}\t{}\t{}\t{:.3}\t{}",
                    run.run,
                    i,
                    s.decode_only,
                    s.from_idle,
                    l.decodes,
                    l.context,
                    s.seconds * 1e3,
                    s.loads.len()
                );
            }
        }
    }
}
