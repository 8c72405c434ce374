//! What is emitted passes our own lint.

use plimsoll_emit::lint::{LintFacts, LintFile, LintInput, lint};
use plimsoll_emit::target::{EmitInput, EmitSettings, Target, emit};
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::PlanFile;

#[test]
fn what_is_emitted_passes_the_lint() {
    let plan: PlanFile =
        serde_json::from_str(include_str!("../fixtures/plan.json")).expect("a plan");
    for gateway in [None, Some(Reporter::Dynamo), Some(Reporter::LlmD)] {
        let settings = EmitSettings {
            gateway,
            watch: Some("http://plimsoll.monitoring:8080".to_owned()),
            ..EmitSettings::default()
        };
        let input = EmitInput { plan: &plan, settings: &settings };
        let files: Vec<LintFile> = Target::ALL
            .into_iter()
            .flat_map(|target| emit(target, &input).expect("files").files)
            .filter(|file| file.name.ends_with(".yaml"))
            .map(|file| LintFile { name: file.name, text: file.text })
            .collect();
        for plan in [None, Some(&plan)] {
            let facts = LintFacts {
                engine: None,
                startup_p90_s: None,
                startup_p99_s: None,
                generation_p99_s: None,
            };
            let found = lint(&LintInput { files: &files, plan, facts });
            assert!(found.documents >= 14, "{}", found.documents);
            // Kubernetes' longest period is 1,800 s, and this pool takes 2,250 s to start: it is said in a note of the emission.
            let clamped = |file: &str| matches!(file, "keda-agent.yaml" | "hpa-agent.yaml");
            let wrong: Vec<String> = found
                .findings
                .iter()
                .filter(|own| !(own.rule == "L8" && clamped(&own.file)))
                .map(|own| format!("{} {}:{} {}", own.rule, own.file, own.line, own.message))
                .collect();
            assert!(wrong.is_empty(), "{gateway:?}\n{}", wrong.join("\n"));
        }
    }
}
