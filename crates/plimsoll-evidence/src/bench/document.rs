//! A file as rows, whatever it is written in.

use serde_json::{Map, Value, json};

use super::ResultsError;
use super::row::clip;

/// What stands for Python's bare `Infinity`; also how vLLM writes it.
pub(super) const INFINITY: &str = "inf";
/// What stands for Python's bare `-Infinity`.
pub(super) const MINUS_INFINITY: &str = "-inf";
/// What stands for Python's bare `NaN`: as long as the token, so that columns stay true.
pub(super) const NOT_A_NUMBER: &str = "?";

/// The JSON values of a text: one, a list of them, or one after the other; and why reading stopped, where it did.
pub(super) fn json(file: &str, text: &str) -> (Vec<Value>, Option<ResultsError>) {
    let text = finite(text);
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(list)) => values.extend(list),
            Ok(value) => values.push(value),
            Err(error) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or("unreadable").to_owned();
                let (line, column) = (error.line(), error.column());
                let file = file.to_owned();
                return (values, Some(ResultsError::Syntax { file, message, line, column }));
            }
        }
    }
    (values, None)
}

/// Python writes `Infinity`, `-Infinity` and `NaN` where JSON has no word; each becomes a text of the same width.
fn finite(text: &str) -> String {
    let words = [("-Infinity", "\"-inf\"   "), ("Infinity", "\"inf\"   "), ("NaN", "\"?\"")];
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut inside) = (text, false);
    while let Some(next) = rest.chars().next() {
        let word = words.iter().find(|(word, _)| !inside && rest.starts_with(word));
        let width = match (word, next) {
            (Some((word, same)), _) => {
                out.push_str(same);
                rest = &rest[word.len()..];
                continue;
            }
            // An escaped quote does not end a text.
            (None, '\\') if inside => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, next) => {
                inside ^= next == '"';
                next.len_utf8()
            }
        };
        out.push_str(&rest[..width]);
        rest = &rest[width..];
    }
    out
}

/// The tables of a CSV by AIPerf or genai-perf, in the shape of their JSON: metric, then statistic.
pub(super) fn csv(text: &str) -> Value {
    let mut metrics = Map::new();
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut header: Option<Vec<String>> = None;
    for record in reader.records().map_while(Result::ok) {
        let mut cells = record.iter().map(str::trim);
        let first = cells.next().unwrap_or_default();
        let cells: Vec<&str> = cells.collect();
        let statistics = |name: &str| name == "Value" || name == "avg" || name == "min";
        if first == "Metric" || cells.contains(&"avg") {
            // A table of another kind, such as one row a device, is none of ours.
            let ours = first == "Metric" && cells.first().is_some_and(|c| statistics(c));
            header = ours.then(|| cells.iter().map(|c| (*c).to_owned()).collect());
            continue;
        }
        let Some(header) = &header else { continue };
        let (name, unit) = match first.rsplit_once(" (") {
            Some((name, unit)) => (name, unit.trim_end_matches(')')),
            None => (first, ""),
        };
        let mut metric = Map::from_iter([("unit".to_owned(), json!(unit))]);
        for (statistic, cell) in header.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            let statistic = if statistic == "Value" { "avg" } else { statistic };
            metric.insert(statistic.to_owned(), number(cell));
        }
        metrics.insert(name.to_lowercase().replace(' ', "_"), Value::Object(metric));
    }
    Value::Object(metrics)
}

/// The lines `key : value` of a summary by LoadGen; of two with the same key the first counts.
pub(super) fn summary(text: &str) -> Value {
    let mut fields = Map::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        fields.entry(key.trim().to_lowercase()).or_insert_with(|| number(value.trim()));
    }
    Value::Object(fields)
}

/// A number as a spreadsheet shows it, with thousands apart; else the text.
fn number(text: &str) -> Value {
    let plain = text.replace(',', "");
    plain.parse::<f64>().ok().filter(|x| x.is_finite()).map_or(json!(text), |x| json!(x))
}

/// What a file looks like, in a few words.
pub(super) fn looks(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty JSON object".to_owned(),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().take(8).map(|k| clip(k)).collect();
            let more = if fields.len() > keys.len() { ", …" } else { "" };
            format!("a JSON object with the keys {}{more}", keys.join(", "))
        }
        Value::Array(_) => "a JSON list of lists".to_owned(),
        other => format!("the JSON value {}", super::row::show(other)),
    }
}

/// Whether a text reads like TOML: a heading or an assignment before anything else.
pub(super) fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let Some(line) = lines.next() else { return false };
    let name = |text: &str| {
        let text = text.trim();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(fits)
    };
    let line = line.split(" #").next().unwrap_or(line).trim();
    let heading =
        line.starts_with('[') && line.ends_with(']') && name(line.trim_matches(['[', ']']));
    heading || line.split_once('=').is_some_and(|(key, _)| name(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_become_texts_of_the_same_width() {
        for (text, expect) in [
            ("{\"a\": Infinity}", "{\"a\": \"inf\"   }"),
            ("[-Infinity,NaN]", "[\"-inf\"   ,\"?\"]"),
            ("{\"NaN\": \"Infinity\"}", "{\"NaN\": \"Infinity\"}"),
            (r#"{"a\"NaN": NaN}"#, r#"{"a\"NaN": "?"}"#),
            (r#"{"a\\": NaN}"#, r#"{"a\\": "?"}"#),
            ("\"ü NaN\" NaN", "\"ü NaN\" \"?\""),
            ("\"\\", "\"\\"),
        ] {
            let got = finite(text);
            assert_eq!(got, expect, "{text}");
            assert_eq!(got.len(), text.len(), "{text}");
        }
    }

    #[test]
    fn values_in_any_arrangement() {
        for text in ["{}", "[{}]", "{}\n{}", "[{},{}]\n", "{}\r\n\r\n{}"] {
            let (values, error) = json("f", text);
            assert_eq!((values.len(), error), (text.matches('{').count(), None), "{text}");
        }
        let (values, error) = json("runs.json", "{}\n{\"a\": ");
        assert_eq!(values.len(), 1);
        let error = error.unwrap();
        assert_eq!(
            error.to_string(),
            "runs.json: this is not JSON: EOF while parsing a value (line 2, column 6)"
        );
        assert!(error.help().is_some_and(|h| h.contains("copy it again")));
    }

    #[test]
    fn toml_is_told_from_json() {
        for (text, expect) in [
            ("# a day\n[study]\nname = 1", true),
            ("[[class]]", true),
            ("as_of = 2026-11-15", true),
            ("[1, 2]", false),
            ("[[1]]", false),
            ("{\"a\": 1}", false),
            ("", false),
            ("Metric,avg", false),
        ] {
            assert_eq!(is_toml(text), expect, "{text}");
        }
    }
}
