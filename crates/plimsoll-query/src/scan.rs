//! The sums of a profile, taken by a cluster.
//!
//! Every question groups by class and by sample weight and sums whole numbers, so that it does not matter in which order, or on
//! which machine, they were summed. What comes back is small: seconds, lengths and clients, not rows.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_ledger::{
    Classing, Ledger, OnClock, QueryError, ScanInput, Scanned, Survey, text_column,
};
use plimsoll_study::{ClientSum, End, GapSums, Gathered, JointSum, Kin, SecondSum, Sums, TotalSum};

use crate::cluster::Remote;
use crate::sql::{self, Found};

/// Sample weights that are kept apart.
const WEIGHTS_MAX: usize = 16;
/// First stamps that a tick is looked for in.
const HEAD: usize = 100_000;
/// Ranges of minutes that a question names one by one.
const RANGES_MAX: usize = 64;
/// Neighbours are looked for within so long, so that executors share the work; the ends of such stretches meet here.
const STRETCH_NS: i64 = 3_600_000_000_000;

/// [`Ledger::scan`], with the rows read and summed by the cluster whose scheduler is at `df://host:port`. It must see the ledger
/// under the same path.
///
/// What takes rows is not known: see [`Gathered::of_sums`]. Nor is what prompts share, nor how tasks ended.
pub fn scan_on_cluster(
    ledger: &Ledger,
    address: &str,
    input: &ScanInput,
) -> Result<Scanned, QueryError> {
    let tables = sql::tables(ledger)?;
    sql::wait_for(async {
        let remote = Remote::connect(address).await?;
        if let Some(requests) = tables.first() {
            remote.register(requests).await?;
        }
        scan(&remote, input).await
    })
}

async fn scan(remote: &Remote, input: &ScanInput) -> Result<Scanned, QueryError> {
    let only = input.only.iter().map(|(column, value)| {
        text_column(column)?;
        Ok(matches(column, value))
    });
    let only = only.collect::<Result<Vec<_>, QueryError>>()?;
    let asked = if only.is_empty() { "true".to_owned() } else { only.join(" AND ") };
    let kept = format!("{asked} AND {DEMAND}");
    let survey = survey(remote, input, &kept).await?;
    let on_clock = match survey.clock.as_deref() {
        Some("absolute") => "coalesce(clock, 'absolute') = 'absolute'".to_owned(),
        Some(clock) => format!("clock = {}", literal(clock)),
        None => "false".to_owned(),
    };
    let first_ns = survey.first_ns.unwrap_or(0);
    let class = class_sql(&survey, input);
    let rows = Rows {
        remote,
        survey: &survey,
        sql: format!(
            "SELECT {class} AS class, {WEIGHT} AS w, \
             CASE WHEN {on_clock} THEN CAST(ts_arrival AS BIGINT) - ({first_ns}) END AS t, \
             CAST(prompt_tokens AS BIGINT) AS p, CAST(cache_read_tokens AS BIGINT) AS c, \
             CAST(output_tokens AS BIGINT) AS o, CAST(reasoning_tokens AS BIGINT) AS r, \
             CAST(max_tokens AS BIGINT) AS m, coalesce(tenant, \"user\") AS client, \
             CAST(attempt AS BIGINT) AS attempt, status, ttft_s, e2e_s \
             FROM requests WHERE {kept}"
        ),
    };
    let mut gathered = Gathered::of_sums(rows.sums().await?);
    for (minute, client) in rows.presence(&gathered.minutes_in_doubt()).await? {
        gathered.was_there(minute, client);
    }
    let beside = remote
        .ask(&format!(
            "SELECT coalesce(sum(CASE WHEN response_cached THEN 1 ELSE 0 END), 0) AS answered, \
             count(blocks) AS blocks FROM requests WHERE {asked}"
        ))
        .await?;
    let (answered, blocks) = (one(&beside, "answered")?, one(&beside, "blocks")?);
    let mut scanned = survey.scanned(gathered, u64::try_from(answered).unwrap_or(0));
    if blocks > 0 {
        scanned.notes.push("what prompts share is not worked out on a cluster".to_owned());
    }
    Ok(scanned)
}

/// Rows that ask something of a model: no cache of whole answers served them, and they stand for some request.
const DEMAND: &str = "response_cached IS NOT TRUE AND coalesce(sample_weight, 1.0) <> 0.0";

/// A weight that is no number of requests counts as one. What is no number, or has no end, is larger than every number here.
const WEIGHT: &str = "CASE WHEN sample_weight > 0.0 AND sample_weight <= 1.7976931348623157e308 \
                      THEN sample_weight ELSE 1.0 END";

/// The first arrival, the classes and the clients.
async fn survey(remote: &Remote, input: &ScanInput, kept: &str) -> Result<Survey, QueryError> {
    let weights = format!(
        "SELECT DISTINCT {WEIGHT} AS w FROM requests WHERE {kept} LIMIT {}",
        WEIGHTS_MAX + 1
    );
    if remote.ask(&weights).await?.reals("w")?.len() > WEIGHTS_MAX {
        return Err(QueryError::Weights { most: WEIGHTS_MAX });
    }
    let timed = remote
        .ask(&format!(
            "SELECT coalesce(clock, 'absolute') AS clock, count(*) AS n, \
             min(CAST(ts_arrival AS BIGINT)) AS first, max(CAST(ts_arrival AS BIGINT)) AS last \
             FROM requests \
             WHERE {kept} AND ts_arrival IS NOT NULL GROUP BY coalesce(clock, 'absolute')"
        ))
        .await?;
    let (counts, firsts) = (whole(&timed, "n")?, timed.integers("first")?);
    let lasts = timed.integers("last")?;
    let mut clocks = BTreeMap::new();
    for (i, clock) in timed.texts("clock")?.into_iter().enumerate() {
        if let Some(clock) = clock {
            let (rows, first_ns, last_ns) = (counts[i], firsts[i], lasts[i]);
            clocks.insert(clock, OnClock { rows, first_ns, last_ns });
        }
    }
    let named =
        format!("SELECT DISTINCT coalesce(tenant, \"user\") AS client FROM requests WHERE {kept}");
    let clients: BTreeSet<String> =
        remote.ask(&named).await?.texts("client")?.into_iter().flatten().collect();
    let columns: Vec<String> = match &input.classes {
        Classing::Columns { names, .. } => names.clone(),
        Classing::Named(classes) => {
            let all: BTreeSet<&String> = classes.iter().flat_map(|c| c.columns.keys()).collect();
            all.into_iter().cloned().collect()
        }
    };
    columns.iter().try_for_each(|column| text_column(column))?;
    let asked: Vec<String> =
        columns.iter().enumerate().map(|(i, column)| format!("\"{column}\" AS k{i}")).collect();
    let by: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    let by = if by.is_empty() { String::new() } else { format!(" GROUP BY {}", by.join(", ")) };
    let list: String = asked.iter().map(|key| format!("{key}, ")).collect();
    let found = remote
        .ask(&format!("SELECT {list}count(*) AS rows FROM requests WHERE {kept}{by}"))
        .await?;
    let mut keys: BTreeMap<Vec<Option<String>>, u64> = BTreeMap::new();
    let values = (0..columns.len()).map(|i| found.texts(&format!("k{i}")));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    for (i, rows) in whole(&found, "rows")?.into_iter().enumerate() {
        let key = values.iter().map(|column| column[i].clone()).collect();
        *keys.entry(key).or_default() += rows;
    }
    Ok(Survey::of_keys(clocks, clients, keys, columns, input))
}

/// The class of a row, as a number.
fn class_sql(survey: &Survey, input: &ScanInput) -> String {
    let place = |is: &dyn Fn(&String) -> bool| survey.classes.iter().position(is);
    let mut whens = Vec::new();
    // What is left is of the last class: the rarest, or what no class matches.
    let rest = match &input.classes {
        _ if survey.columns.is_empty() => None,
        Classing::Columns { .. } => {
            let rest = (survey.merged > 0).then(|| survey.classes.len() - 1);
            for (key, class) in survey.keys().into_iter().filter(|(_, class)| Some(*class) != rest)
            {
                let is = survey.columns.iter().zip(&key).map(|(column, value)| match value {
                    Some(value) => format!("\"{column}\" = {}", literal(value)),
                    None => format!("\"{column}\" IS NULL"),
                });
                let is: Vec<String> = is.collect();
                whens.push(format!("WHEN {} THEN {class}", is.join(" AND ")));
            }
            rest
        }
        Classing::Named(classes) => {
            for class in classes {
                let Some(number) = place(&|name| *name == class.name) else { continue };
                let is = class.columns.iter().map(|(column, value)| matches(column, value));
                let is: Vec<String> = is.chain(["true".to_owned()]).collect();
                whens.push(format!("WHEN {} THEN {number}", is.join(" AND ")));
            }
            place(&|name| classes.iter().all(|class| class.name != *name))
        }
    };
    if whens.is_empty() {
        return "CAST(0 AS BIGINT)".to_owned();
    }
    format!("CAST(CASE {} ELSE {} END AS BIGINT)", whens.join(" "), rest.unwrap_or(0))
}

/// Text as a literal in SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a column is as a pattern says, in which `*` stands for any text and `?` for any letter.
fn matches(column: &str, pattern: &str) -> String {
    if !pattern.contains(['*', '?']) {
        return format!("\"{column}\" = {}", literal(pattern));
    }
    let mut like = String::with_capacity(pattern.len());
    for letter in pattern.chars() {
        match letter {
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', letter]),
            other => like.push(other),
        }
    }
    format!("\"{column}\" LIKE {}", literal(&like))
}

/// The rows of a scan as a question, and who answers it.
struct Rows<'a> {
    remote: &'a Remote,
    survey: &'a Survey,
    sql: String,
}

impl Rows<'_> {
    async fn sums(&self) -> Result<Sums, QueryError> {
        let last = self.ask("count(t) AS n, coalesce(max(t), 0) AS last", "", "").await?;
        let timed = one(&last, "n")? > 0;
        let lengths = |counts: Vec<(Kin, u64)>| {
            counts.into_iter().map(|(kin, n)| (kin, u32::try_from(n).unwrap_or(u32::MAX))).collect()
        };
        let attempts = self.counts("attempt", "attempt > 0").await?.into_iter();
        let mut sums = Sums {
            last_ns: timed.then_some(one(&last, "last")?),
            totals: self.totals().await?,
            attempts: attempts
                .map(|(kin, n)| (kin, u16::try_from(n).unwrap_or(u16::MAX)))
                .collect(),
            prompts: lengths(self.counts("p", "p IS NOT NULL").await?),
            outputs: lengths(self.counts("o", "o IS NOT NULL").await?),
            totals_of_tokens: self.counts("p + o", "p + o IS NOT NULL").await?,
            joint: self.joint().await?,
            clients: self.clients().await?,
            ..Sums::default()
        };
        if timed {
            sums.seconds = self.seconds().await?;
            sums.gaps = self.gaps(false).await?.remove(&0);
            sums.class_gaps = match self.survey.classes.len() {
                1 => sums.gaps.iter().map(|gaps| (0, gaps.clone())).collect(),
                _ => self.gaps(true).await?.into_iter().collect(),
            };
            let head =
                format!("SELECT t FROM ({}) WHERE t IS NOT NULL ORDER BY t LIMIT {HEAD}", self.sql);
            sums.head = self.remote.ask(&head).await?.integers("t")?;
        }
        Ok(sums)
    }

    async fn ask(&self, select: &str, only: &str, by: &str) -> Result<Found, QueryError> {
        let sql = format!("SELECT {select} FROM ({}) {only} {by}", self.sql);
        self.remote.ask(&sql).await
    }

    async fn totals(&self) -> Result<Vec<TotalSum>, QueryError> {
        const KNOWN: [(&str, &str); 9] = [
            ("k_at", "t"),
            ("k_prompt", "p"),
            ("k_cached", "c"),
            ("k_output", "o"),
            ("k_reasoning", "r"),
            ("k_max_tokens", "m"),
            ("k_client", "client"),
            ("k_ttft", "ttft_s"),
            ("k_e2e", "e2e_s"),
        ];
        const ENDS: [(&str, End); 4] = [
            ("ok", End::Ok),
            ("limited", End::Limited),
            ("failed", End::Failed),
            ("cancelled", End::Cancelled),
        ];
        // Squares of large numbers do not fit 64 bits once they are summed.
        let product = |a: &str, b: &str| {
            format!(
                "sum(CASE WHEN p IS NOT NULL AND o IS NOT NULL THEN \
                 CAST({a} AS DECIMAL(19, 0)) * CAST({b} AS DECIMAL(19, 0)) \
                 ELSE CAST(0 AS DECIMAL(38, 0)) END)"
            )
        };
        let mut select = "class, w, count(*) AS rows, \
             coalesce(sum(CASE WHEN o IS NOT NULL THEN r END), 0) AS reasoning_tokens, \
             coalesce(sum(CASE WHEN r IS NOT NULL THEN o END), 0) AS reasoning_of, \
             sum(CASE WHEN o >= m THEN 1 ELSE 0 END) AS at_limit, \
             sum(CASE WHEN p IS NOT NULL AND o IS NOT NULL THEN 1 ELSE 0 END) AS m_n, \
             coalesce(sum(CASE WHEN o IS NOT NULL THEN p END), 0) AS m_p, \
             coalesce(sum(CASE WHEN p IS NOT NULL THEN o END), 0) AS m_o"
            .to_owned();
        for (name, a, b) in [("m_pp", "p", "p"), ("m_oo", "o", "o"), ("m_po", "p", "o")] {
            select += &format!(", {} AS {name}", product(a, b));
        }
        for (name, column) in KNOWN {
            select += &format!(", count({column}) AS {name}");
        }
        for (name, _) in ENDS {
            select += &format!(", sum(CASE WHEN status = '{name}' THEN 1 ELSE 0 END) AS e_{name}");
        }
        let found = self.ask(&select, "", "GROUP BY class, w").await?;
        let known = KNOWN.map(|(name, _)| whole(&found, name));
        let known = known.into_iter().collect::<Result<Vec<_>, _>>()?;
        let ended = ENDS.map(|(name, _)| whole(&found, &format!("e_{name}")));
        let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        let moments = ["m_n", "m_p", "m_o", "m_pp", "m_oo", "m_po"].map(|name| found.large(name));
        let moments = moments.into_iter().collect::<Result<Vec<_>, _>>()?;
        let reasoning_tokens = whole(&found, "reasoning_tokens")?;
        let (reasoning_of, at_limit) = (whole(&found, "reasoning_of")?, whole(&found, "at_limit")?);
        let total = |(i, kin): (usize, Kin)| {
            let told: u64 = ended.iter().map(|rows| rows[i]).sum();
            let ends = ENDS.iter().zip(&ended).map(|((_, end), rows)| (*end, rows[i]));
            TotalSum {
                kin,
                at: known[0][i],
                prompt: known[1][i],
                cached: known[2][i],
                output: known[3][i],
                reasoning: known[4][i],
                max_tokens: known[5][i],
                client: known[6][i],
                ttft: known[7][i],
                e2e: known[8][i],
                ends: ends.chain([(End::Unknown, kin.rows - told)]).collect(),
                reasoning_tokens: reasoning_tokens[i],
                reasoning_of: reasoning_of[i],
                at_limit: at_limit[i],
                moments: std::array::from_fn(|m| u128::try_from(moments[m][i]).unwrap_or(0)),
            }
        };
        Ok(kin(&found)?.into_iter().enumerate().map(total).collect())
    }

    /// Rows by class, weight and another number.
    async fn counts(&self, of: &str, only: &str) -> Result<Vec<(Kin, u64)>, QueryError> {
        let select = format!("class, w, {of} AS v, count(*) AS rows");
        let by = format!("GROUP BY class, w, {of}");
        let found = self.ask(&select, &format!("WHERE {only}"), &by).await?;
        Ok(kin(&found)?.into_iter().zip(whole(&found, "v")?).collect())
    }

    async fn joint(&self) -> Result<Vec<JointSum>, QueryError> {
        let bits = |of: &str| {
            format!(
                "CASE WHEN {of} <= 0 THEN 0 \
                 ELSE CAST(floor(log2(CAST({of} AS DOUBLE))) AS BIGINT) + 1 END"
            )
        };
        let select = format!(
            "class, w, {} AS pb, {} AS ob, count(*) AS rows, sum(p) AS prompt, sum(o) AS output",
            bits("p"),
            bits("o")
        );
        let by = format!("GROUP BY class, w, {}, {}", bits("p"), bits("o"));
        let found = self.ask(&select, "WHERE p IS NOT NULL AND o IS NOT NULL", &by).await?;
        let of = |name| whole(&found, name);
        let (pb, ob, prompt, output) = (of("pb")?, of("ob")?, of("prompt")?, of("output")?);
        let sum = |(i, kin): (usize, Kin)| JointSum {
            kin,
            prompt_bits: pb[i] as u32,
            output_bits: ob[i] as u32,
            prompt: prompt[i],
            output: output[i],
        };
        Ok(kin(&found)?.into_iter().enumerate().map(sum).collect())
    }

    async fn seconds(&self) -> Result<Vec<SecondSum>, QueryError> {
        let found = self
            .ask(
                "class, w, t / 1000000000 AS second, count(*) AS rows, sum(coalesce(p, 0)) AS prompt, \
                 sum(CASE WHEN coalesce(p, 0) > coalesce(c, 0) THEN coalesce(p, 0) - coalesce(c, 0) \
                 ELSE 0 END) AS fresh, sum(coalesce(o, 0)) AS output",
                "WHERE t IS NOT NULL",
                "GROUP BY class, w, t / 1000000000",
            )
            .await?;
        let of = |name| whole(&found, name);
        let (second, prompt) = (of("second")?, of("prompt")?);
        let (fresh, output) = (of("fresh")?, of("output")?);
        let sum = |(i, kin): (usize, Kin)| SecondSum {
            kin,
            second: second[i],
            prompt: prompt[i],
            fresh: fresh[i],
            output: output[i],
        };
        Ok(kin(&found)?.into_iter().enumerate().map(sum).collect())
    }

    async fn clients(&self) -> Result<Vec<ClientSum>, QueryError> {
        let found = self
            .ask(
                "client, w, count(*) AS rows, sum(coalesce(p, 0)) AS prompt, \
                 sum(coalesce(o, 0)) AS output",
                "WHERE client IS NOT NULL",
                "GROUP BY client, w",
            )
            .await?;
        let names = found.texts("client")?;
        let (weight, rows) = (found.reals("w")?, whole(&found, "rows")?);
        let (prompt, output) = (whole(&found, "prompt")?, whole(&found, "output")?);
        let sum = |(i, name): (usize, Option<String>)| {
            Some(ClientSum {
                client: self.client(&name?)?,
                weight: weight[i],
                rows: rows[i],
                prompt: prompt[i],
                output: output[i],
            })
        };
        Ok(names.into_iter().enumerate().filter_map(sum).collect())
    }

    fn client(&self, name: &str) -> Option<u32> {
        let place = self.survey.clients.binary_search_by(|client| client.as_str().cmp(name));
        place.ok().and_then(|i| u32::try_from(i).ok())
    }

    /// Gaps between neighbours within a stretch of time, and then those between stretches.
    ///
    /// One window over all rows would sort the whole ledger on one executor. Stretches of an hour spread over them, and the first and
    /// last arrival of each stretch give the gaps in between exactly.
    async fn gaps(&self, by_class: bool) -> Result<BTreeMap<u32, GapSums>, QueryError> {
        // DataFusion plans no window over a constant.
        let (class, apart) = match by_class {
            true => ("class", "class, stretch"),
            false => ("CAST(0 AS BIGINT)", "stretch"),
        };
        let rows = format!(
            "SELECT {class} AS class, t, t / {STRETCH_NS} AS stretch FROM ({}) WHERE t IS NOT NULL",
            self.sql
        );
        let gaps = format!(
            "SELECT class, t - lag(t) OVER (PARTITION BY {apart} ORDER BY t) AS gap \
             FROM ({rows})"
        );
        let within = self
            .remote
            .ask(&format!(
                "SELECT class, {} AS kept, count(*) AS n, max(gap) AS longest, \
                 sum(CAST(gap AS DECIMAL(19, 0)) * CAST(gap AS DECIMAL(19, 0))) AS squares \
                 FROM ({gaps}) WHERE gap IS NOT NULL GROUP BY class, {}",
                kept_sql("gap"),
                kept_sql("gap")
            ))
            .await?;
        let ends = self
            .remote
            .ask(&format!(
                "SELECT class, stretch, min(t) AS first, max(t) AS last FROM ({rows}) \
                 GROUP BY class, stretch"
            ))
            .await?;
        let mut stretches: Vec<(u32, i64, i64, i64)> = Vec::new();
        let (first, last) = (ends.integers("first")?, ends.integers("last")?);
        for (i, stretch) in ends.integers("stretch")?.into_iter().enumerate() {
            stretches.push((classes(&ends)?[i], stretch, first[i], last[i]));
        }
        stretches.sort_unstable();
        let mut sums: BTreeMap<u32, (GapSums, BTreeMap<i64, u64>)> = BTreeMap::new();
        for (class, _, first, last) in stretches {
            match sums.get_mut(&class) {
                None => {
                    let own = GapSums { first_ns: first, last_ns: last, ..GapSums::default() };
                    sums.insert(class, (own, BTreeMap::new()));
                }
                Some((own, counts)) => {
                    let gap = first - own.last_ns;
                    own.last_ns = last;
                    own.max_ns = own.max_ns.max(gap);
                    own.squares += u128::from(gap.unsigned_abs()).pow(2);
                    *counts.entry(GapSums::kept(gap)).or_default() += 1;
                }
            }
        }
        let (kept, n) = (within.integers("kept")?, whole(&within, "n")?);
        let (longest, squares) = (within.integers("longest")?, within.large("squares")?);
        for (i, class) in classes(&within)?.into_iter().enumerate() {
            if let Some((own, counts)) = sums.get_mut(&class) {
                own.max_ns = own.max_ns.max(longest[i]);
                own.squares += u128::try_from(squares[i]).unwrap_or(0);
                *counts.entry(kept[i]).or_default() += n[i];
            }
        }
        let done = |(class, (own, counts)): (u32, (GapSums, BTreeMap<i64, u64>))| {
            (class, GapSums { gaps: counts.into_iter().collect(), ..own })
        };
        Ok(sums.into_iter().map(done).collect())
    }

    /// Clients that were there in these minutes.
    async fn presence(
        &self,
        minutes: &[std::ops::RangeInclusive<u64>],
    ) -> Result<Vec<(u64, u32)>, QueryError> {
        let (Some(first), Some(last)) = (minutes.first(), minutes.last()) else {
            return Ok(Vec::new());
        };
        let between = |from: &u64, to: &u64| format!("minute BETWEEN {from} AND {to}");
        let only = if minutes.len() <= RANGES_MAX {
            let each = minutes.iter().map(|minutes| between(minutes.start(), minutes.end()));
            each.collect::<Vec<_>>().join(" OR ")
        } else {
            between(first.start(), last.end())
        };
        let sql = format!(
            "SELECT DISTINCT minute, client FROM \
             (SELECT t / 60000000000 AS minute, client FROM ({}) WHERE t IS NOT NULL AND client IS NOT NULL) \
             WHERE {only}",
            self.sql
        );
        let found = self.remote.ask(&sql).await?;
        let there = whole(&found, "minute")?.into_iter().zip(found.texts("client")?);
        Ok(there.filter_map(|(minute, client)| Some((minute, self.client(&client?)?))).collect())
    }
}

/// [`GapSums::kept`] in SQL, of an expression of type BIGINT that is not negative.
///
/// The logarithm of a double may round up to the next octave above 2^48, which the comparison takes back.
fn kept_sql(gap: &str) -> String {
    let most = 1_i64 << GapSums::DIGITS;
    let log = format!("CAST(floor(log2(CAST({gap} AS DOUBLE))) AS BIGINT)");
    let octave = format!("({log} - CASE WHEN ({gap} >> {log}) = 0 THEN 1 ELSE 0 END)");
    let lost = format!("({octave} - {})", GapSums::DIGITS - 1);
    format!("CASE WHEN {gap} < {most} THEN {gap} ELSE ({gap} >> {lost}) << {lost} END")
}

fn one(found: &Found, column: &str) -> Result<i64, QueryError> {
    Ok(found.integers(column)?.first().copied().unwrap_or_default())
}

/// A column of counts and sums.
fn whole(found: &Found, column: &str) -> Result<Vec<u64>, QueryError> {
    let negative =
        |_| QueryError::Column { column: column.to_owned(), wanted: "counts from zero on" };
    let values = found.integers(column)?.into_iter().map(|n| u64::try_from(n).map_err(negative));
    values.collect()
}

fn classes(found: &Found) -> Result<Vec<u32>, QueryError> {
    let classes = found.integers("class")?.into_iter();
    Ok(classes.map(|class| u32::try_from(class).unwrap_or(0)).collect())
}

fn kin(found: &Found) -> Result<Vec<Kin>, QueryError> {
    let rows = whole(found, "rows")?.into_iter();
    let rest = classes(found)?.into_iter().zip(found.reals("w")?);
    Ok(rest.zip(rows).map(|((class, weight), rows)| Kin { class, weight, rows }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ledger::QueryInput;

    #[test]
    fn patterns_in_sql() {
        assert_eq!(matches("model", "gpt"), "\"model\" = 'gpt'");
        assert_eq!(matches("model", "o'b*"), "\"model\" LIKE 'o''b%'");
        assert_eq!(matches("model", "a_?%*\\"), "\"model\" LIKE 'a\\__\\%%\\\\'");
    }

    /// SQL keeps the same digits of every whole number, also where a double cannot tell it from the next.
    #[test]
    fn digits_are_the_same_in_sql() {
        let values: Vec<i64> =
            (0..70).chain((2..62).flat_map(|o| [(1 << o) - 1, 1 << o, (1 << o) + 1])).collect();
        let rows: Vec<String> = values.iter().map(|value| format!("({value})")).collect();
        let sql = format!(
            "SELECT v, {} AS b FROM (SELECT CAST(column1 AS BIGINT) AS v FROM (VALUES {}))",
            kept_sql("v"),
            rows.join(", "),
        );
        let answer = sql::query_tables(&[], &QueryInput { sql, rows_max: 1000 }).unwrap();
        assert_eq!(answer.rows.len(), values.len());
        for row in answer.rows {
            let [value, kept] = [0, 1].map(|i| row[i].as_i64().unwrap());
            assert_eq!(kept, GapSums::kept(value), "{value}");
        }
    }
}
