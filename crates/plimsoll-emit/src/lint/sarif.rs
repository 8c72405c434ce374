//! Findings in the format that code reviews read: SARIF 2.1.0.

use serde_json::{Value, json};

use super::{Lint, LintFinding, LintSeverity, rules};

/// What was found as SARIF.
pub fn sarif(lint: &Lint, version: &str) -> Value {
    let described: Vec<Value> = rules()
        .iter()
        .map(|rule| {
            json!({
                "id": rule.number,
                "name": rule.name,
                "shortDescription": {"text": rule.what},
                "fullDescription": {"text": format!("{}: {}. See {}.", rule.what, rule.why, rule.proof)},
                "help": {"text": format!("`plimsoll lint --rules` lists all rules. Proof of this one: {}.", rule.proof)},
            })
        })
        .collect();
    let results: Vec<Value> = lint.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "plimsoll",
                "version": version,
                "rules": described,
            }},
            // Columns are counted in characters, not in units of UTF-16.
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(own: &LintFinding) -> Value {
    let level = match own.severity {
        LintSeverity::Error => "error",
        LintSeverity::Warning => "warning",
        LintSeverity::Note => "note",
    };
    let text = match &own.fix {
        Some(fix) => format!("{}. {}. Instead: {fix}", own.message, own.why),
        None => format!("{}. {}", own.message, own.why),
    };
    let index = rules().iter().position(|rule| rule.number == own.rule);
    let file = json!({"uri": own.file});
    let mut result = json!({
        "ruleId": own.rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": file,
            "region": {"startLine": own.line.max(1), "startColumn": own.column.max(1)},
        }}],
    });
    if let Some(edit) = &own.edit {
        let replacements: Vec<Value> = edit
            .changes
            .iter()
            .map(|change| {
                json!({
                    "deletedRegion": {
                        "charOffset": change.start,
                        "charLength": change.end - change.start,
                    },
                    "insertedContent": {"text": change.text},
                })
            })
            .collect();
        result["fixes"] = json!([{
            "description": {"text": own.fix.clone().unwrap_or_else(|| own.message.clone())},
            "artifactChanges": [{"artifactLocation": file, "replacements": replacements}],
        }]);
    }
    result
}
