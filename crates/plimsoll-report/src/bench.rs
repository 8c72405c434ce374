//! A log as the load-test tools read it: the logged lengths instead of one length for all, and the logged arrivals where a tool can replay them.
//!
//! Formats and flags were read in the tools' own sources and documentation in November 2026:
//!
//! - **Mooncake** (`kvcache-ai/Mooncake`, FAST'25 traces): JSON lines of `timestamp` in whole milliseconds, `input_length`,
//!   `output_length` and `hash_ids` of blocks of 512 tokens.
//! - **AIPerf** 0.13 (`docs/benchmark-modes/trace-replay.md`, `MooncakeTrace` in `dataset/loader/models.py`): the same with
//!   `--custom-dataset-type mooncake_trace --fixed-schedule`; `hash_ids` and `output_length` are optional there, `--isl-block-size` is 512 unless said.
//! - **GuideLLM** 0.7.2 (`docs/guides/trace_replay.md`, `data/deserializers/trace_*.py`): the same names with `timestamp` in seconds, which it
//!   keeps in 32 bits, so time begins at zero here; `kind=trace_synthetic`, or `kind=mooncake` where every row has exactly
//!   as many `hash_ids` as its prompt has blocks. It keeps a table as long as the largest id, so ids are numbered from zero.
//! - **vLLM** `vllm bench serve` (`docs/benchmarking/cli.md`, `BurstGPTDataset` in `benchmarks/datasets`): no trace with times. Its `burstgpt` data set
//!   reads a table of BurstGPT's columns, keeps rows of the model `GPT-4` with an output, takes lengths from the third and fourth column and draws rows in an order
//!   of its own; `--request-rate` and `--burstiness` (the shape of gamma gaps, 1 over the squared CV) space them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_units::grouped;

use crate::profile::many;

/// A tool that puts load on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BenchTool {
    /// GuideLLM's replay.
    Guidellm,
    /// `vllm bench serve`.
    Vllm,
    /// AIPerf's fixed schedule.
    Aiperf,
    /// A trace as Mooncake publishes it, for whatever reads those.
    Mooncake,
}

/// A request of a log, as far as the log knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// Seconds since the first arrival; none where rows have no common clock.
    pub at_s: Option<f64>,
    /// Prompt tokens, cached ones included.
    pub prompt: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Prompt tokens that were found in a cache.
    pub cached: Option<u64>,
    /// What the prompt is made of, block by block, where the log names it.
    pub blocks: Option<Vec<u64>>,
}

/// What a tool is to be told besides the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchInput<'a> {
    /// What the rows are from.
    pub source: &'a str,
    /// Tokens of a block, where the log names blocks.
    pub block_tokens: Option<u64>,
    /// Requests a second over the span.
    pub rate_per_s: Option<f64>,
    /// The coefficient of variation of the time between arrivals.
    pub gap_cv: Option<f64>,
    /// For what the tool draws by chance.
    pub seed: u64,
}

/// What a tool reads, and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Names and texts of files.
    pub files: Vec<(String, String)>,
    /// The command, to be run beside the files. `MODEL` and the address are the user's.
    pub command: String,
    /// What of the log the tool does not replay, and what else must be known before its numbers are compared.
    pub notes: Vec<String>,
}

/// Tokens of a block in a Mooncake trace, which is also what readers take for granted.
const MOONCAKE_BLOCK: u64 = 512;

/// The rows as a tool reads them; or why it cannot.
///
/// Rows without a prompt, an output or a time are left out and counted in the notes: no tool can ask for nothing, and unknown is not zero.
pub fn bench_of(
    tool: BenchTool,
    rows: impl IntoIterator<Item = BenchRow>,
    input: &BenchInput<'_>,
) -> Result<Bench, String> {
    let mut kept = Kept::of(rows);
    if kept.rows.is_empty() {
        return Err(format!(
            "no row of {} says how long its prompt and its output are",
            input.source
        ));
    }
    let timed = tool != BenchTool::Vllm;
    if timed && kept.untimed == kept.rows.len() {
        return Err(format!(
            "rows of {} have no common clock, and {} replays arrivals; `vllm` sends lengths alone",
            input.source,
            tool.name()
        ));
    }
    if timed && kept.untimed > 0 {
        kept.rows.retain(|row| row.at_s.is_some());
        kept.notes
            .push(format!("{} rows without a time were left out", grouped(kept.untimed as u64)));
    }
    kept.rows.sort_by(|a, b| a.at_s.unwrap_or(0.0).total_cmp(&b.at_s.unwrap_or(0.0)));
    let blocks = Blocks::of(&kept.rows, input.block_tokens);
    match tool {
        BenchTool::Mooncake => Ok(mooncake(&kept, &blocks)),
        BenchTool::Aiperf => Ok(aiperf(&kept, &blocks, input)),
        BenchTool::Guidellm => Ok(guidellm(&kept, &blocks, input)),
        BenchTool::Vllm => Ok(vllm(&kept, &blocks, input)),
    }
}

impl BenchTool {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guidellm => "GuideLLM",
            Self::Vllm => "vllm bench serve",
            Self::Aiperf => "AIPerf",
            Self::Mooncake => "a Mooncake trace",
        }
    }
}

/// A row that can be asked for.
struct Ask {
    at_s: Option<f64>,
    prompt: u64,
    output: u64,
    blocks: Option<Vec<u64>>,
}

struct Kept {
    rows: Vec<Ask>,
    untimed: usize,
    /// Whether a row says that something was cached.
    hits: bool,
    notes: Vec<String>,
}

impl Kept {
    fn of(rows: impl IntoIterator<Item = BenchRow>) -> Self {
        let (mut unknown, mut empty, mut untimed, mut hits) = (0u64, 0u64, 0, false);
        let mut kept = Vec::new();
        for row in rows {
            let (Some(prompt), Some(output)) = (row.prompt, row.output) else {
                unknown += 1;
                continue;
            };
            if prompt == 0 || output == 0 {
                empty += 1;
                continue;
            }
            let at_s = row.at_s.filter(|at| at.is_finite() && *at >= 0.0);
            untimed += usize::from(at_s.is_none());
            hits |= row.cached.is_some_and(|cached| cached > 0);
            kept.push(Ask { at_s, prompt, output, blocks: row.blocks });
        }
        let mut notes = Vec::new();
        for (count, what) in [
            (unknown, "of unknown prompt or output"),
            (empty, "of no prompt or no output token, as failed requests have them"),
        ] {
            if count > 0 {
                notes.push(format!("left out: {} {what}", many(count, "row")));
            }
        }
        Self { rows: kept, untimed, hits, notes }
    }
}

/// Blocks of the rows, numbered from zero in the order they appear.
struct Blocks {
    /// Of each row; none where they are unknown or do not fit its length.
    rows: Vec<Option<Vec<u64>>>,
    tokens: u64,
    /// Rows that have them.
    known: usize,
    /// Rows whose last block, which is not full, was not in the log.
    tails: u64,
}

impl Blocks {
    fn of(rows: &[Ask], tokens: Option<u64>) -> Self {
        let size = tokens.unwrap_or(MOONCAKE_BLOCK).max(1);
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut next = 0u64;
        let mut found = Self { rows: Vec::new(), tokens: size, known: 0, tails: 0 };
        for row in rows {
            let whole = row.prompt.div_ceil(size) as usize;
            let full = (row.prompt / size) as usize;
            let own = row.blocks.as_ref().filter(|own| tokens.is_some() && own.len() >= full);
            let own = own.map(|own| {
                let mut ids: Vec<u64> = own
                    .iter()
                    .take(whole)
                    .map(|block| {
                        *numbers.entry(*block).or_insert_with(|| {
                            next += 1;
                            next - 1
                        })
                    })
                    .collect();
                if ids.len() < whole {
                    // A block that is not full is nobody else's, whatever it is called.
                    ids.push(next);
                    next += 1;
                    found.tails += 1;
                }
                ids
            });
            found.known += usize::from(own.is_some());
            found.rows.push(own);
        }
        found
    }

    fn all(&self) -> bool {
        self.known == self.rows.len()
    }

    /// What is to be said of prefixes.
    fn note(&self, hits: bool) -> Option<String> {
        if self.all() {
            return (self.tails > 0).then(|| {
                format!(
                    "the last block of {} is not full and not in the log: it was numbered for itself alone",
                    many(self.tails, "prompt")
                )
            });
        }
        let some = if self.known == 0 {
            "the log does not name the blocks of prompts, so `hash_ids` are left out".to_owned()
        } else {
            format!(
                "blocks of {} of {} prompts are not known, and `hash_ids` are left out there",
                grouped((self.rows.len() - self.known) as u64),
                grouped(self.rows.len() as u64)
            )
        };
        let hits = if hits {
            ": the log has cache hits, and this test will have none of them"
        } else {
            ": prompts share nothing in this test, whatever they shared in the log"
        };
        Some(some + hits)
    }
}

fn line(timestamp: &str, row: &Ask, ids: Option<&Vec<u64>>) -> String {
    let mut text = format!(
        "{{\"timestamp\": {timestamp}, \"input_length\": {}, \"output_length\": {}",
        row.prompt, row.output
    );
    if let Some(ids) = ids {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let _ = write!(text, ", \"hash_ids\": [{}]", ids.join(", "));
    }
    text.push_str("}\n");
    text
}

/// Whole milliseconds, rounded down, so that order holds.
fn milliseconds(at_s: Option<f64>) -> u64 {
    (at_s.unwrap_or(0.0) * 1e3 + 1e-6).floor() as u64
}

fn mooncake_lines(kept: &Kept, blocks: &Blocks) -> String {
    let rows = kept.rows.iter().zip(&blocks.rows);
    rows.map(|(row, ids)| line(&milliseconds(row.at_s).to_string(), row, ids.as_ref())).collect()
}

const MILLISECONDS: &str = "stamps are whole milliseconds";
const EXACT_OUTPUTS: &str =
    "outputs are as long as logged only on a server that ignores the end of a sequence";

fn mooncake(kept: &Kept, blocks: &Blocks) -> Bench {
    let mut notes = kept.notes.clone();
    notes.push(MILLISECONDS.to_owned());
    notes.extend(blocks.note(kept.hits));
    if blocks.known == 0 {
        notes.push(
            "AIPerf and plimsoll read it without `hash_ids`; GuideLLM's `mooncake` does not"
                .to_owned(),
        );
    } else if blocks.tokens != MOONCAKE_BLOCK {
        notes.push(format!(
            "blocks have {} tokens, and readers take {MOONCAKE_BLOCK} for granted: tell them",
            blocks.tokens
        ));
    }
    Bench {
        files: vec![("trace.jsonl".to_owned(), mooncake_lines(kept, blocks))],
        command: "plimsoll profile trace.jsonl".to_owned(),
        notes,
    }
}

fn aiperf(kept: &Kept, blocks: &Blocks, input: &BenchInput<'_>) -> Bench {
    let mut notes = kept.notes.clone();
    notes.push(MILLISECONDS.to_owned());
    notes.extend(blocks.note(kept.hits));
    notes.push(EXACT_OUTPUTS.to_owned());
    let size = if blocks.known > 0 && blocks.tokens != MOONCAKE_BLOCK {
        format!(" --isl-block-size {}", blocks.tokens)
    } else {
        String::new()
    };
    let command = format!(
        "aiperf profile --model MODEL --url localhost:8000 --endpoint-type chat --streaming --input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule{size} --extra-inputs ignore_eos:true --random-seed {}",
        input.seed
    );
    Bench { files: vec![("trace.jsonl".to_owned(), mooncake_lines(kept, blocks))], command, notes }
}

fn guidellm(kept: &Kept, blocks: &Blocks, input: &BenchInput<'_>) -> Bench {
    let mut notes = kept.notes.clone();
    notes.push("stamps are seconds, to the millisecond".to_owned());
    let shared = blocks.all();
    let none = Blocks { rows: vec![None; kept.rows.len()], tokens: 1, known: 0, tails: 0 };
    let told = if shared { blocks } else { &none };
    notes.extend(told.note(kept.hits));
    if !shared && blocks.known > 0 {
        notes.push(
            "its `mooncake` reader wants the blocks of every prompt, so none are written"
                .to_owned(),
        );
    }
    let seconds = |at_s: Option<f64>| {
        let ms = milliseconds(at_s);
        format!("{}.{:03}", ms / 1000, ms % 1000)
    };
    let rows = kept.rows.iter().zip(&told.rows);
    let text = rows.map(|(row, ids)| line(&seconds(row.at_s), row, ids.as_ref())).collect();
    let data = match (shared, blocks.tokens) {
        (false, _) => "kind=trace_synthetic,path=trace.jsonl".to_owned(),
        (true, MOONCAKE_BLOCK) => "kind=mooncake,path=trace.jsonl".to_owned(),
        (true, size) => format!("kind=mooncake,path=trace.jsonl,hash_id_block_size={size}"),
    };
    notes.push(
        "versions after 0.7 write `source.kind=json_file,source.path=trace.jsonl` for `path=trace.jsonl`".to_owned(),
    );
    Bench {
        files: vec![("trace.jsonl".to_owned(), text)],
        command: format!(
            "guidellm run --backend kind=openai_http,target=http://localhost:8000,model=MODEL --profile kind=replay --data {data} --seed kind=static,value={}",
            input.seed
        ),
        notes,
    }
}

fn vllm(kept: &Kept, blocks: &Blocks, input: &BenchInput<'_>) -> Bench {
    let mut notes = kept.notes.clone();
    notes.push(
        "it draws rows in an order of its own and spaces them by chance: the logged arrivals, and bursts longer than a few gaps, are not replayed".to_owned(),
    );
    let shares = if blocks.known > 0 || kept.hits { ", though those of the log do" } else { "" };
    notes.push(format!("no prompt begins like another{shares}"));
    notes.push("the table names the model GPT-4 because other rows are passed over".to_owned());
    let mut text =
        String::from("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n");
    for row in &kept.rows {
        let at = row.at_s.map_or_else(String::new, |at| format!("{at:.3}"));
        let (prompt, output) = (row.prompt, row.output);
        let _ = writeln!(text, "{at},GPT-4,{prompt},{output},{},API log", prompt + output);
    }
    let rate = input.rate_per_s.filter(|rate| *rate > 0.0 && rate.is_finite());
    let mut pace = match rate {
        Some(rate) => format!("--request-rate {rate:.4}"),
        None => {
            notes.push("the rate is not known: all requests are sent at once".to_owned());
            "--request-rate inf".to_owned()
        }
    };
    if let (Some(cv), Some(_)) = (input.gap_cv.filter(|cv| *cv > 0.0), rate) {
        let _ = write!(pace, " --burstiness {:.4}", (cv * cv).recip());
    }
    Bench {
        command: format!(
            "vllm bench serve --backend vllm --model MODEL --base-url http://localhost:8000 --endpoint /v1/completions --dataset-name burstgpt --dataset-path requests.csv --num-prompts {} {pace} --ignore-eos --seed {}",
            kept.rows.len(),
            input.seed
        ),
        files: vec![("requests.csv".to_owned(), text)],
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: BenchInput<'_> = BenchInput {
        source: "log.csv",
        block_tokens: Some(512),
        rate_per_s: Some(1.0),
        gap_cv: Some(2.0),
        seed: 7,
    };

    fn row(at_s: f64, prompt: u64, output: u64, blocks: Option<&[u64]>) -> BenchRow {
        BenchRow {
            at_s: Some(at_s),
            prompt: Some(prompt),
            output: Some(output),
            cached: None,
            blocks: blocks.map(<[u64]>::to_vec),
        }
    }

    /// Three requests, of which two begin alike; the second comes first in the file.
    fn rows() -> Vec<BenchRow> {
        vec![
            row(1.5, 1000, 20, Some(&[900, 77])),
            row(0.0, 600, 50, Some(&[900])),
            row(3.0004, 1024, 1, Some(&[900, 77])),
        ]
    }

    fn plain() -> Vec<BenchRow> {
        rows().into_iter().map(|row| BenchRow { blocks: None, cached: Some(8), ..row }).collect()
    }

    fn text(bench: &Bench) -> String {
        let mut out = format!("$ {}\n", bench.command);
        for (name, text) in &bench.files {
            let _ = write!(out, "== {name}\n{text}");
        }
        bench.notes.iter().for_each(|note| out += &format!("- {note}\n"));
        out
    }

    #[test]
    fn mooncake_with_blocks() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Mooncake, rows(), &INPUT).unwrap()), @r#"
        $ plimsoll profile trace.jsonl
        == trace.jsonl
        {"timestamp": 0, "input_length": 600, "output_length": 50, "hash_ids": [0, 1]}
        {"timestamp": 1500, "input_length": 1000, "output_length": 20, "hash_ids": [0, 2]}
        {"timestamp": 3000, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]}
        - stamps are whole milliseconds
        - the last block of 1 prompt is not full and not in the log: it was numbered for itself alone
        "#);
    }

    #[test]
    fn mooncake_without_blocks() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Mooncake, plain(), &INPUT).unwrap()), @r#"
        $ plimsoll profile trace.jsonl
        == trace.jsonl
        {"timestamp": 0, "input_length": 600, "output_length": 50}
        {"timestamp": 1500, "input_length": 1000, "output_length": 20}
        {"timestamp": 3000, "input_length": 1024, "output_length": 1}
        - stamps are whole milliseconds
        - the log does not name the blocks of prompts, so `hash_ids` are left out: the log has cache hits, and this test will have none of them
        - AIPerf and plimsoll read it without `hash_ids`; GuideLLM's `mooncake` does not
        "#);
    }

    #[test]
    fn aiperf_with_blocks_of_another_size() {
        let input = BenchInput { block_tokens: Some(1024), ..INPUT };
        let rows = vec![
            row(0.0, 600, 50, Some(&[5])),
            row(1.5, 2000, 20, Some(&[6, 8, 9])),
            row(3.0, 2000, 20, Some(&[])),
        ];
        insta::assert_snapshot!(text(&bench_of(BenchTool::Aiperf, rows, &input).unwrap()), @r#"
        $ aiperf profile --model MODEL --url localhost:8000 --endpoint-type chat --streaming --input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --isl-block-size 1024 --extra-inputs ignore_eos:true --random-seed 7
        == trace.jsonl
        {"timestamp": 0, "input_length": 600, "output_length": 50, "hash_ids": [0]}
        {"timestamp": 1500, "input_length": 2000, "output_length": 20, "hash_ids": [1, 2]}
        {"timestamp": 3000, "input_length": 2000, "output_length": 20}
        - stamps are whole milliseconds
        - blocks of 1 of 3 prompts are not known, and `hash_ids` are left out there: prompts share nothing in this test, whatever they shared in the log
        - outputs are as long as logged only on a server that ignores the end of a sequence
        "#);
    }

    #[test]
    fn aiperf_without_blocks() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Aiperf, plain(), &INPUT).unwrap()), @r#"
        $ aiperf profile --model MODEL --url localhost:8000 --endpoint-type chat --streaming --input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --extra-inputs ignore_eos:true --random-seed 7
        == trace.jsonl
        {"timestamp": 0, "input_length": 600, "output_length": 50}
        {"timestamp": 1500, "input_length": 1000, "output_length": 20}
        {"timestamp": 3000, "input_length": 1024, "output_length": 1}
        - stamps are whole milliseconds
        - the log does not name the blocks of prompts, so `hash_ids` are left out: the log has cache hits, and this test will have none of them
        - outputs are as long as logged only on a server that ignores the end of a sequence
        "#);
    }

    #[test]
    fn guidellm_with_blocks() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Guidellm, rows(), &INPUT).unwrap()), @r#"
        $ guidellm run --backend kind=openai_http,target=http://localhost:8000,model=MODEL --profile kind=replay --data kind=mooncake,path=trace.jsonl --seed kind=static,value=7
        == trace.jsonl
        {"timestamp": 0.000, "input_length": 600, "output_length": 50, "hash_ids": [0, 1]}
        {"timestamp": 1.500, "input_length": 1000, "output_length": 20, "hash_ids": [0, 2]}
        {"timestamp": 3.000, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]}
        - stamps are seconds, to the millisecond
        - the last block of 1 prompt is not full and not in the log: it was numbered for itself alone
        - versions after 0.7 write `source.kind=json_file,source.path=trace.jsonl` for `path=trace.jsonl`
        "#);
    }

    #[test]
    fn guidellm_without_blocks() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Guidellm, plain(), &INPUT).unwrap()), @r#"
        $ guidellm run --backend kind=openai_http,target=http://localhost:8000,model=MODEL --profile kind=replay --data kind=trace_synthetic,path=trace.jsonl --seed kind=static,value=7
        == trace.jsonl
        {"timestamp": 0.000, "input_length": 600, "output_length": 50}
        {"timestamp": 1.500, "input_length": 1000, "output_length": 20}
        {"timestamp": 3.000, "input_length": 1024, "output_length": 1}
        - stamps are seconds, to the millisecond
        - the log does not name the blocks of prompts, so `hash_ids` are left out: the log has cache hits, and this test will have none of them
        - versions after 0.7 write `source.kind=json_file,source.path=trace.jsonl` for `path=trace.jsonl`
        "#);
    }

    #[test]
    fn vllm_by_rate() {
        insta::assert_snapshot!(text(&bench_of(BenchTool::Vllm, plain(), &INPUT).unwrap()), @r#"
        $ vllm bench serve --backend vllm --model MODEL --base-url http://localhost:8000 --endpoint /v1/completions --dataset-name burstgpt --dataset-path requests.csv --num-prompts 3 --request-rate 1.0000 --burstiness 0.2500 --ignore-eos --seed 7
        == requests.csv
        Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
        0.000,GPT-4,600,50,650,API log
        1.500,GPT-4,1000,20,1020,API log
        3.000,GPT-4,1024,1,1025,API log
        - it draws rows in an order of its own and spaces them by chance: the logged arrivals, and bursts longer than a few gaps, are not replayed
        - no prompt begins like another, though those of the log do
        - the table names the model GPT-4 because other rows are passed over
        "#);
    }

    /// What is not known, is empty or has no time is left out and counted; without any time only `vllm` goes on.
    #[test]
    fn what_is_left_out() {
        let mut all = rows();
        all.push(BenchRow { output: None, ..row(1.0, 5, 5, None) });
        all.push(row(1.0, 5, 0, None));
        all.push(BenchRow { at_s: None, ..row(0.0, 5, 5, None) });
        insta::assert_snapshot!(text(&bench_of(BenchTool::Guidellm, all, &INPUT).unwrap()), @r#"
        $ guidellm run --backend kind=openai_http,target=http://localhost:8000,model=MODEL --profile kind=replay --data kind=mooncake,path=trace.jsonl --seed kind=static,value=7
        == trace.jsonl
        {"timestamp": 0.000, "input_length": 600, "output_length": 50, "hash_ids": [0, 1]}
        {"timestamp": 1.500, "input_length": 1000, "output_length": 20, "hash_ids": [0, 2]}
        {"timestamp": 3.000, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]}
        - left out: 1 row of unknown prompt or output
        - left out: 1 row of no prompt or no output token, as failed requests have them
        - 1 rows without a time were left out
        - stamps are seconds, to the millisecond
        - the last block of 1 prompt is not full and not in the log: it was numbered for itself alone
        - versions after 0.7 write `source.kind=json_file,source.path=trace.jsonl` for `path=trace.jsonl`
        "#);
        let untimed = || vec![BenchRow { at_s: None, ..row(0.0, 5, 5, None) }];
        let refused = bench_of(BenchTool::Aiperf, untimed(), &INPUT).unwrap_err();
        insta::assert_snapshot!(refused, @"rows of log.csv have no common clock, and AIPerf replays arrivals; `vllm` sends lengths alone");
        let input = BenchInput { rate_per_s: None, ..INPUT };
        insta::assert_snapshot!(text(&bench_of(BenchTool::Vllm, untimed(), &input).unwrap()), @r#"
        $ vllm bench serve --backend vllm --model MODEL --base-url http://localhost:8000 --endpoint /v1/completions --dataset-name burstgpt --dataset-path requests.csv --num-prompts 1 --request-rate inf --ignore-eos --seed 7
        == requests.csv
        Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
        ,GPT-4,5,5,10,API log
        - it draws rows in an order of its own and spaces them by chance: the logged arrivals, and bursts longer than a few gaps, are not replayed
        - no prompt begins like another
        - the table names the model GPT-4 because other rows are passed over
        - the rate is not known: all requests are sent at once
        "#);
        let nothing = bench_of(BenchTool::Vllm, Vec::new(), &INPUT).unwrap_err();
        insta::assert_snapshot!(nothing, @"no row of log.csv says how long its prompt and its output are");
    }

    /// Our own reader takes what is written, with its times, its lengths and what its prompts share.
    #[test]
    fn plimsoll_reads_it_again() {
        let bench = bench_of(BenchTool::Mooncake, rows(), &INPUT).unwrap();
        let text = bench.files[0].1.as_bytes();
        let auto = plimsoll_ledger::Format::Auto;
        let (trace, rejects) = plimsoll_ledger::read_trace(text, "trace.jsonl", auto).unwrap();
        assert!(rejects.is_empty());
        let read: Vec<(u64, u64)> =
            trace.requests().iter().map(|r| (r.prompt.get(), r.output.get())).collect();
        assert_eq!(read, [(600, 50), (1000, 20), (1024, 1)]);
        assert_eq!((trace.span(), trace.block_tokens()), (3.0, 512));
    }
}
