//! One request, as the ledger keeps it.
//!
//! Every column is declared once, here: its name, its kind and what it means. The struct, the schema in Parquet, the builders
//! and the way back follow from it, so that a new column is one line.

use std::sync::{Arc, LazyLock};

use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};

use crate::column::Columns;
use crate::kind::{Builder, Flag, Kind, Names, Number, Real, Reals, Short, Small, Text, Time};

/// The version of the schema of requests; a reader of a later one says so instead of guessing.
pub(crate) const SCHEMA_VERSION: u32 = 1;

macro_rules! columns {
    ($(#[$about:meta])* $row:ident, $builders:ident; $($(#[doc = $doc:literal])+ $name:ident: $kind:ty,)+) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $name: Option<<$kind as Kind>::Value>,)+
        }

        #[allow(dead_code, reason = "every table has the same ways in and out; not each is gone")]
        impl $row {
            /// Names of the columns, in their order, each with what it means.
            pub const COLUMNS: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),+))),+];

            /// Every column with its value; unknown is null.
            pub fn fields(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut fields = serde_json::Map::new();
                $(
                    let value = self.$name.as_ref().map_or(serde_json::Value::Null, <$kind as Kind>::json);
                    fields.insert(stringify!($name).to_owned(), value);
                )+
                fields
            }

            /// The table's schema.
            pub(crate) fn schema() -> &'static SchemaDescPtr {
                static SCHEMA: LazyLock<SchemaDescPtr> = LazyLock::new(|| {
                    schema(vec![$(<$kind as Kind>::field(stringify!($name))),+])
                });
                &SCHEMA
            }

            /// The rows of some columns; a column that is not there is unknown in all of them.
            pub(crate) fn of_columns(columns: &Columns) -> Vec<Self> {
                let mut rows = vec![Self::default(); columns.rows];
                $(
                    if let Some(column) = columns.get(stringify!($name)) {
                        for (row, value) in rows.iter_mut().zip(<$kind as Kind>::read(column)) {
                            row.$name = value;
                        }
                    }
                )+
                rows
            }
        }

        /// Rows on their way into columns.
        pub(crate) struct $builders { rows: usize, $($name: Builder<$kind>,)+ }

        #[allow(dead_code, reason = "every table has the same ways in and out; not each is gone")]
        impl $builders {
            pub(crate) fn new() -> Self {
                Self { rows: 0, $($name: Builder::new()),+ }
            }

            pub(crate) fn push(&mut self, row: &$row) {
                self.rows += 1;
                $(self.$name.push(row.$name.as_ref());)+
            }

            pub(crate) fn len(&self) -> usize {
                self.rows
            }

            pub(crate) fn finish(self) -> Columns {
                let columns = vec![$((stringify!($name).to_owned(), self.$name.finish())),+];
                Columns { rows: self.rows, columns }
            }
        }
    };
}

fn schema(fields: Vec<parquet::schema::types::TypePtr>) -> SchemaDescPtr {
    let root = Type::group_type_builder("schema").with_fields(fields).build();
    Arc::new(SchemaDescriptor::new(Arc::new(root.expect("fields of Parquet"))))
}

columns! {
    /// What is known of one request, or of one attempt of it. Unknown is none, never zero.
    Row, Rows;
    /// Where the log comes from: its format, or what `--source` says.
    source: Text,
    /// The request's own name; where the log has none, one made of its line and its text.
    request_id: Text,
    /// Which try of the request, counted from one.
    attempt: Short,
    /// The task that the request serves; a task may need several requests and attempts.
    task_id: Text,
    /// The trace it is part of.
    trace_id: Text,
    /// The conversation it is part of.
    session_id: Text,
    /// When it arrived.
    ts_arrival: Time,
    /// What `ts_arrival` counts from: `absolute` (UTC), `relative` (the start of its log) or `session` (the start of its session).
    clock: Text,
    /// The route or deployment that took it.
    route: Text,
    /// The version of the route.
    route_version: Text,
    /// Who served it.
    provider: Text,
    /// The model that was asked for.
    model: Text,
    /// The model that answered.
    model_version: Text,
    /// The prompt template and its version.
    prompt_version: Text,
    /// Who pays: a team, an organisation, a key.
    tenant: Text,
    /// The product that it is part of.
    product: Text,
    /// Who asked.
    user: Text,
    /// What it was asked for: a feature, an agent, a tag.
    feature: Text,
    /// The service tier or the class of its objective.
    tier: Text,
    /// The data set it was taken from.
    dataset: Text,
    /// The tools it used or was called by, in order.
    tool_path: Text,
    /// Where it was served.
    region: Text,
    /// Prompt tokens, cached ones included.
    prompt_tokens: Number,
    /// Prompt tokens that were read from a cache.
    cache_read_tokens: Number,
    /// Prompt tokens that were written to a cache.
    cache_write_tokens: Number,
    /// Generated tokens, reasoning included.
    output_tokens: Number,
    /// Generated tokens that were reasoning.
    reasoning_tokens: Number,
    /// The most tokens that it might have generated.
    max_tokens: Number,
    /// How the source counts prompts: `inclusive` of cached tokens, or `exclusive` and corrected here.
    convention: Text,
    /// Seconds in a queue.
    queue_s: Real,
    /// Seconds of prefill.
    prefill_s: Real,
    /// Seconds of decode.
    decode_s: Real,
    /// Seconds in tools.
    tool_s: Real,
    /// Seconds to the first token.
    ttft_s: Real,
    /// Seconds to the last.
    e2e_s: Real,
    /// Whether it was streamed.
    stream: Flag,
    /// How it ended: `ok`, `limited` (a rate limit), `failed` or `cancelled`.
    status: Text,
    /// The HTTP status.
    http_status: Short,
    /// What went wrong.
    error: Text,
    /// Why the answer stopped.
    finish_reason: Text,
    /// Which limit was hit.
    limit_dimension: Text,
    /// Whether the task succeeded, where the log itself says so; later verdicts are in the table of outcomes.
    success: Flag,
    /// What it cost, in dollars.
    cost_usd: Real,
    /// Who says so.
    cost_source: Text,
    /// Whether a cache of whole answers served it: no demand on a model.
    response_cached: Flag,
    /// Names of the leading blocks of its prompt.
    blocks: Names,
    /// Tokens of such a block.
    block_tokens: Number,
    /// Where equal names mean equal blocks: `global` or `session`.
    block_scope: Text,
    /// How many requests it stands for, where the log is a sample.
    sample_weight: Real,
    /// The file it was read from.
    file: Text,
    /// Its line there, counted from one, or its place among the records.
    line: Small,
}

columns! {
    /// How a task ended, as somebody found out later.
    OutcomeRow, OutcomeRows;
    /// Where it comes from.
    source: Text,
    /// The task.
    task_id: Text,
    /// Whether it succeeded.
    success: Flag,
    /// What it was worth, in dollars or in points.
    value: Real,
    /// What was judged.
    label: Text,
    /// When it was known.
    ts: Time,
    /// The file it was read from.
    file: Text,
    /// Its line there.
    line: Small,
}

columns! {
    /// What was counted over a window, instead of one request after the other.
    SeriesRow, SeriesRows;
    /// Where it comes from.
    source: Text,
    /// The series: a client, a model, a route.
    class: Text,
    /// The beginning of the window.
    start: Time,
    /// What `start` counts from.
    clock: Text,
    /// The length of the window, in seconds.
    window_s: Real,
    /// Requests in it.
    requests: Real,
    /// Prompt tokens in it.
    prompt_tokens: Real,
    /// Output tokens in it.
    output_tokens: Real,
    /// The mean prompt.
    prompt_mean: Real,
    /// The mean output.
    output_mean: Real,
    /// The share of reasoning in outputs.
    reason_share: Real,
    /// The coefficient of variation of gaps between arrivals.
    cv: Real,
    /// The family that was fitted to the gaps.
    family: Text,
    /// Its first parameter.
    parameter_1: Real,
    /// Its second parameter.
    parameter_2: Real,
    /// Prompt lengths that were seen, each with its share in `prompt_shares`.
    prompt_lengths: Names,
    /// How frequent each prompt length was.
    prompt_shares: Reals,
    /// Output lengths that were seen, each with its share in `output_shares`.
    output_lengths: Names,
    /// How frequent each output length was.
    output_shares: Reals,
    /// The replica that it is about; none where it is demand.
    replica: Text,
    /// What demand was read from: `offered` (a gateway), `carried_and_queued` or `carried` (engines). Where it is set, windows without a row are unknown, not empty.
    basis: Text,
    /// Prompt tokens that were computed.
    fresh_tokens: Real,
    /// Prompt tokens that were read from a cache.
    cached_tokens: Real,
    /// Requests that failed.
    errors: Real,
    /// Sequences that lost their blocks.
    preemptions: Real,
    /// The largest share of KV memory in use.
    kv_share_max: Real,
    /// Sequences that ran, in the mean.
    running_mean: Real,
    /// The most requests that waited.
    waiting_max: Real,
    /// Half of the requests had their first token within so many seconds.
    ttft_p50_s: Real,
    /// Nine in ten had.
    ttft_p90_s: Real,
    /// 99 in a hundred had.
    ttft_p99_s: Real,
    /// Half of the gaps between tokens were no longer than so many seconds.
    itl_p50_s: Real,
    /// Nine in ten were not.
    itl_p90_s: Real,
    /// 99 in a hundred were not.
    itl_p99_s: Real,
    /// The share of looked up tokens that the prefix cache had.
    cache_hit_share: Real,
    /// Whether lengths are known on their own only, prompts and outputs apart, by the upper edges of buckets.
    marginal: Flag,
    /// The file it was read from.
    file: Text,
    /// Its line there.
    line: Small,
}

columns! {
    /// A row that could not be taken.
    RejectRow, RejectRows;
    /// The file.
    file: Text,
    /// The line, counted from one.
    line: Small,
    /// The field that is wrong; none where it is the whole row.
    field: Text,
    /// What is wrong with it.
    reason: Text,
    /// The beginning of the row.
    text: Text,
}
