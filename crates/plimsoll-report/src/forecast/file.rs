//! A forecast as a file: what it said, from what, and how sure, so that it can be held against what came.

use std::collections::BTreeMap;

use plimsoll_forecast::{Backtest, Coverage, Forecast, Memory, SeriesForecast};
use plimsoll_workload::{Change, ClassOutlook, Outlook, Quantiles, Quantity, ThreePoint};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::moment::{Moment, moment};

/// The name and version of the document.
pub const FORECAST_SCHEMA: &str = "plimsoll/forecast/v1";

/// A forecast as a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastFile {
    /// `plimsoll/forecast/v1`.
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// Made from all that it says: two forecasts that differ have different ones.
    pub id: String,
    /// The day it was made.
    pub as_of: String,
    /// The ledger or logs, as the user named them.
    pub source: String,
    /// The scenario, where one was given.
    pub scenario: Option<ScenarioRef>,
    /// What tells classes apart.
    pub classes: ClassesBy,
    /// What times count from: `utc`, or `log` for the start of the log.
    pub clock: String,
    /// The length of a step.
    pub step_s: u32,
    /// When the first step begins.
    pub start: Moment,
    /// When the last ends.
    pub until: Moment,
    /// The quantile that is sized for.
    pub sizing_quantile: f64,
    /// For tests of seasonality.
    pub seed: u64,
    /// What it was made from.
    pub history: HistorySpan,
    /// All classes together first, then each.
    pub series: Vec<ForecastSeries>,
    /// How it did on the past: of the requests of all classes, and of each resource of all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backtest: Option<TotalBacktest>,
    /// What was known of the future and taken as such.
    pub events: Vec<EventFile>,
    /// Steps of the past that are far from what their class does: kept, and named.
    pub outliers: Vec<OutlierFile>,
    /// Whether load lines are about to be crossed, where some were given.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub inflections: Vec<InflectionFile>,
    /// What service was like in the history: all classes first.
    pub basis: Vec<Value>,
    /// Levels that reconciling had moved when it was made; none where it had not.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub levels: Vec<LevelsRow>,
    /// What should be known before a number is trusted.
    pub warnings: Vec<String>,
}

/// A scenario that a forecast was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRef {
    /// The file.
    pub file: String,
    /// Made from its text.
    pub hash: String,
}

/// What tells classes apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassesBy {
    /// Columns of the ledger whose values make classes.
    pub columns: Vec<String>,
    /// The most classes; the rarest are one.
    pub most: usize,
    /// Classes by name, each with columns and the values that its rows have, in order.
    pub named: Vec<(String, BTreeMap<String, String>)>,
    /// Only rows with these values.
    pub only: Vec<(String, String)>,
    /// The series, where the ledger holds counts and no requests.
    pub series: Option<String>,
}

/// What a forecast was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistorySpan {
    /// The first step.
    pub from: Moment,
    /// The end of the last.
    pub to: Moment,
    /// How many.
    pub steps: usize,
    /// Of which nothing is known.
    pub missing: usize,
    /// Stretches in which nobody was counting.
    pub gaps: Vec<GapFile>,
}

/// A stretch in which nobody was counting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapFile {
    /// When it begins.
    pub from: Moment,
    /// How long it lasts.
    pub lasts_s: u64,
}

/// A series of a forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastSeries {
    /// The class; `all` for all of them together.
    pub class: String,
    /// What is counted.
    pub resource: String,
    /// In what.
    pub unit: String,
    /// The model that was chosen.
    pub model: String,
    /// Why, where it is not what was meant.
    pub instead: Option<String>,
    /// Steps of a day, where the time of the day matters.
    pub season_day: Option<usize>,
    /// Steps of a week, where the day of the week does.
    pub season_week: Option<usize>,
    /// Residuals behind intervals, one bucket of lead times after the other.
    pub residuals: Vec<usize>,
    /// Step by step.
    pub points: Vec<Point>,
    /// How it did on the past.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backtest: Option<BacktestFile>,
}

/// One step of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When it begins.
    pub t: Moment,
    /// As much is above as below.
    pub p50: f64,
    /// One in five is above.
    pub p80: f64,
    /// One in ten.
    pub p90: f64,
    /// One in twenty.
    pub p95: f64,
    /// One in forty.
    pub p975: f64,
    /// One in a hundred.
    pub p99: f64,
}

/// How a series did on the past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BacktestFile {
    /// Origins that were scored.
    pub origins: usize,
    /// Steps that were scored, over all origins.
    pub points: usize,
    /// Steps ahead of the last lead.
    pub leads: usize,
    /// Sum of absolute errors over the sum of what came.
    pub wape: Option<f64>,
    /// How much too high the median was, over the sum of what came.
    pub bias: Option<f64>,
    /// Against repeating the last season within the history.
    pub mase: Option<f64>,
    /// The score of the whole distribution.
    pub crps: Option<f64>,
    /// The loss at the sizing quantile.
    pub pinball: Option<f64>,
    /// Of the seasonal naive forecast with its own interval.
    pub pinball_naive: Option<f64>,
    /// Of the plain mean with its own interval.
    pub pinball_mean: Option<f64>,
    /// Of choosing at every origin what had done best by then.
    pub pinball_chosen_then: Option<f64>,
    /// From a quantile to the share of steps at or below it.
    pub coverage: BTreeMap<String, f64>,
    /// How likely a share as far off is by chance.
    pub coverage_p: BTreeMap<String, Option<f64>>,
    /// The same by lead time.
    pub by_lead: Vec<LeadFile>,
    /// The median distance of the sizing quantile from the median.
    pub width: Option<f64>,
    /// The same of a bound chosen with hindsight.
    pub width_ideal: Option<f64>,
}

/// Coverage of a range of lead times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeadFile {
    /// Where it ends.
    pub until_s: u64,
    /// From a quantile to the share of steps at or below it.
    pub coverage: BTreeMap<String, f64>,
    /// How likely a share as far off is by chance.
    pub coverage_p: BTreeMap<String, Option<f64>>,
    /// Different steps behind it.
    pub steps: usize,
}

/// How the whole did on the past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TotalBacktest {
    /// The requests of all classes.
    #[serde(flatten)]
    pub requests: BacktestFile,
    /// Every resource of all classes.
    pub by_resource: BTreeMap<String, BacktestFile>,
}

/// What was known of the future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventFile {
    /// What it is called.
    pub name: String,
    /// The first step it holds in.
    pub from: Moment,
    /// The end of the last.
    pub until: Moment,
    /// The classes; none for all.
    pub classes: Vec<String>,
    /// Multiplies the rate: low, likely, high.
    pub rate: [f64; 3],
    /// Multiplies prompts.
    pub prompt: [f64; 3],
    /// Multiplies outputs.
    pub output: [f64; 3],
    /// Multiplies hit rates.
    pub cache_hit: [f64; 3],
}

/// A step that is far from what its class does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierFile {
    /// The class.
    pub class: String,
    /// When.
    pub t: Moment,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Times what was to be expected.
    pub times: f64,
}

/// Whether a load line is about to be crossed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InflectionFile {
    /// What is watched.
    pub resource: String,
    /// In what.
    pub unit: String,
    /// The most that may be carried.
    pub line: f64,
    /// The last value.
    pub now: f64,
    /// The quantile that is held against the line.
    pub level: f64,
    /// When it reaches the line, from now on; null where it does not.
    pub crosses_in_s: Option<u64>,
    /// The most that it reaches.
    pub most_ahead: f64,
    /// How far ahead was looked.
    pub ahead_s: u64,
    /// How long a start takes, nine times in ten.
    pub startup_p90_s: f64,
    /// The line that warnings were tried against.
    pub tried_at: Option<f64>,
    /// Times that line was crossed.
    pub crossings: usize,
    /// Of which so many had been warned of in time.
    pub caught: usize,
    /// Warnings that would have been given.
    pub alarms: usize,
    /// Of which so many came to nothing.
    pub false_alarms: usize,
    /// Their share.
    pub false_alarm_share: Option<f64>,
    /// And how many that is a day.
    pub false_alarms_per_day: Option<f64>,
    /// How far ahead crossings were warned of, the median.
    pub warned_ahead_s: Option<f64>,
}

/// What a file is made of besides the forecast itself.
#[derive(Clone, Debug)]
pub struct ForecastHead {
    /// The version of the program.
    pub version: String,
    /// The day it is made.
    pub as_of: String,
    /// The ledger or logs.
    pub source: String,
    /// The scenario.
    pub scenario: Option<ScenarioRef>,
    /// What tells classes apart.
    pub classes: ClassesBy,
    /// The quantile that is sized for.
    pub sizing: f64,
    /// For tests of seasonality.
    pub seed: u64,
    /// Whether the back-test is part of it.
    pub backtest: bool,
    /// What service was like.
    pub basis: Vec<Value>,
    /// What should be known besides.
    pub notes: Vec<String>,
    /// Whether load lines are about to be crossed.
    pub inflections: Vec<InflectionFile>,
    /// What reconciling has learnt.
    pub memory: Memory,
}

/// What a class that stands for all of them is called.
const ALL: &str = "all";

impl ForecastFile {
    /// The document of a forecast.
    pub fn new(forecast: &Forecast, changes: &[Change], head: ForecastHead) -> Self {
        let outlook = &forecast.outlook;
        let at = |seconds: i64| moment(seconds, outlook.absolute);
        let all = outlook.classes.iter().flat_map(|class| {
            class.series.iter().map(move |(quantity, steps)| (&class.class, *quantity, steps))
        });
        let series: Vec<ForecastSeries> = all
            .zip(&forecast.series)
            .map(|((class, quantity, steps), how)| {
                let points = steps.iter().enumerate();
                let points = points.map(|(i, q)| point(at(outlook.at_s(i)), q)).collect();
                series_file(class.as_deref(), quantity, how, points, outlook.step_s, head.backtest)
            })
            .collect();
        let of_all = || series.iter().filter(|own| own.class == ALL);
        let tested = |own: &ForecastSeries| Some((own.resource.clone(), own.backtest.clone()?));
        let requests = of_all().find_map(|own| own.backtest.clone());
        let by_resource = of_all().filter_map(tested).collect();
        let backtest = requests.map(|requests| TotalBacktest { requests, by_resource });
        let applied = |change: &Change| {
            let (_, from, until) =
                forecast.applied.iter().find(|(name, ..)| *name == change.name)?;
            let three = |own: ThreePoint| [own.low, own.likely, own.high];
            Some(EventFile {
                name: change.name.clone(),
                from: at(outlook.at_s(*from)),
                until: at(outlook.at_s(*until)),
                classes: change.classes.clone(),
                rate: three(change.rate),
                prompt: three(change.prompt),
                output: three(change.output),
                cache_hit: three(change.cache_hit),
            })
        };
        let steps = outlook.classes.first().and_then(|all| Some(all.series.first()?.1.len()));
        let gap =
            |gap: &plimsoll_forecast::Gap| GapFile { from: at(gap.from_s), lasts_s: gap.lasts_s };
        let outlier = |own: &plimsoll_forecast::Outlier| OutlierFile {
            class: own.class.clone(),
            t: at(own.at_s),
            requests_per_s: own.value,
            times: own.times,
        };
        Self {
            schema: FORECAST_SCHEMA.to_owned(),
            version: head.version,
            id: String::new(),
            as_of: head.as_of,
            source: head.source,
            scenario: head.scenario,
            classes: head.classes,
            clock: if outlook.absolute { "utc" } else { "log" }.to_owned(),
            step_s: outlook.step_s,
            start: at(outlook.start_s),
            until: at(outlook.at_s(steps.unwrap_or(0))),
            sizing_quantile: head.sizing,
            seed: head.seed,
            history: HistorySpan {
                from: at(forecast.from_s),
                to: at(outlook.start_s),
                steps: forecast.steps,
                missing: forecast.missing,
                gaps: forecast.gaps.iter().map(gap).collect(),
            },
            series,
            backtest,
            events: changes.iter().filter_map(applied).collect(),
            outliers: forecast.outliers.iter().map(outlier).collect(),
            inflections: head.inflections,
            basis: head.basis,
            levels: LevelsFile::new(&head.memory, "").levels,
            warnings: forecast.warnings.iter().cloned().chain(head.notes).collect(),
        }
    }

    /// When the history that it was made from begins, in seconds on its clock.
    pub fn history_from(&self) -> Option<i64> {
        self.history.from.seconds(self.clock == "utc").ok()
    }

    /// Reads a document back; or what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        match value.get("schema").and_then(Value::as_str) {
            Some(FORECAST_SCHEMA) => {}
            Some(other) => {
                return Err(format!(
                    "says it is `{other}`, and this program reads `{FORECAST_SCHEMA}`"
                ));
            }
            None => return Err(format!("has no `schema`: a forecast says `{FORECAST_SCHEMA}`")),
        }
        let file: Self =
            serde_json::from_value(value).map_err(|error| format!("is no forecast: {error}"))?;
        file.outlook()?;
        file.memory()?;
        Ok(file)
    }

    /// What reconciling had learnt when it was made.
    pub fn memory(&self) -> Result<Memory, String> {
        memory_of(&self.levels)
    }

    /// What it says of the demand ahead.
    pub fn outlook(&self) -> Result<Outlook, String> {
        if self.step_s == 0 {
            return Err("has steps of 0 s".to_owned());
        }
        let absolute = self.clock == "utc";
        let start_s = self.start.seconds(absolute)?;
        let mut classes: Vec<ClassOutlook> = Vec::new();
        let steps = self.series.first().map_or(0, |own| own.points.len());
        for own in &self.series {
            if own.points.len() != steps {
                return Err(format!(
                    "has {} steps of {} of `{}`, and {steps} of others",
                    own.points.len(),
                    own.resource,
                    own.class
                ));
            }
            let Some(quantity) = Quantity::of_name(&own.resource) else {
                return Err(format!("counts `{}`, which no forecast counts", own.resource));
            };
            let class = (own.class != ALL).then(|| own.class.clone());
            let mut steps = Vec::with_capacity(own.points.len());
            for (i, point) in own.points.iter().enumerate() {
                let at = start_s + i64::from(self.step_s) * i64::try_from(i).unwrap_or(0);
                if point.t.seconds(absolute)? != at {
                    return Err(format!(
                        "has {} of `{}` where the step of {} should be",
                        point.t,
                        own.class,
                        moment(at, absolute)
                    ));
                }
                let values = [point.p50, point.p80, point.p90, point.p95, point.p975, point.p99];
                let wrong = values.iter().any(|v| !v.is_finite() || *v < 0.0);
                if wrong || values.windows(2).any(|pair| pair[0] > pair[1]) {
                    return Err(format!(
                        "has quantiles of `{}` at {} that do not rise from zero on",
                        own.class, point.t
                    ));
                }
                steps.push(Quantiles(values));
            }
            match classes.iter_mut().find(|known| known.class == class) {
                Some(known) => known.series.push((quantity, steps)),
                None => classes.push(ClassOutlook { class, series: vec![(quantity, steps)] }),
            }
        }
        Ok(Outlook { start_s, step_s: self.step_s, absolute, classes })
    }
}

fn point(t: Moment, q: &Quantiles) -> Point {
    let [p50, p80, p90, p95, p975, p99] = q.0;
    Point { t, p50, p80, p90, p95, p975, p99 }
}

fn series_file(
    class: Option<&str>,
    quantity: Quantity,
    how: &SeriesForecast,
    points: Vec<Point>,
    step_s: u32,
    tested: bool,
) -> ForecastSeries {
    ForecastSeries {
        class: class.unwrap_or(ALL).to_owned(),
        resource: quantity.name().to_owned(),
        unit: quantity.unit().to_owned(),
        model: how.model.clone(),
        instead: how.instead.clone(),
        season_day: how.season.day,
        season_week: how.season.week,
        residuals: how.residuals.clone(),
        points,
        backtest: tested.then(|| backtest_file(&how.backtest, step_s)),
    }
}

fn shares(coverage: &[Coverage]) -> BTreeMap<String, f64> {
    coverage.iter().map(|own| (own.level.to_string(), own.share)).collect()
}

fn p_values(coverage: &[Coverage]) -> BTreeMap<String, Option<f64>> {
    coverage.iter().map(|own| (own.level.to_string(), own.p_value)).collect()
}

fn backtest_file(own: &Backtest, step_s: u32) -> BacktestFile {
    let lead = |(end, coverage): &(usize, Vec<Coverage>)| LeadFile {
        until_s: *end as u64 * u64::from(step_s),
        coverage: shares(coverage),
        coverage_p: p_values(coverage),
        steps: coverage.first().map_or(0, |own| own.steps),
    };
    BacktestFile {
        origins: own.origins,
        points: own.points,
        leads: own.leads,
        wape: own.wape,
        bias: own.bias,
        mase: own.mase,
        crps: own.crps,
        pinball: own.pinball,
        pinball_naive: own.pinball_naive,
        pinball_mean: own.pinball_mean,
        pinball_chosen_then: own.pinball_chosen_then,
        coverage: shares(&own.coverage),
        coverage_p: p_values(&own.coverage),
        by_lead: own.by_lead.iter().map(lead).collect(),
        width: own.width,
        width_ideal: own.width_ideal,
    }
}

/// The name and version of what reconciling has learnt.
pub const LEVELS_SCHEMA: &str = "plimsoll/levels/v1";

/// What reconciling has learnt, as a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelsFile {
    /// `plimsoll/levels/v1`.
    pub schema: String,
    /// The forecast that was held against what came last.
    pub of: String,
    /// The levels at which published ones are taken.
    pub levels: Vec<LevelsRow>,
}

/// The levels of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelsRow {
    /// The class; `all` for all of them together.
    pub class: String,
    /// What is counted.
    pub resource: String,
    /// For each published quantile the one that is taken.
    pub levels: [f64; 6],
}

impl LevelsFile {
    /// The document of what was learnt.
    pub fn new(memory: &Memory, of: &str) -> Self {
        let row = |(class, quantity, levels): (Option<&str>, Quantity, [f64; 6])| LevelsRow {
            class: class.unwrap_or(ALL).to_owned(),
            resource: quantity.name().to_owned(),
            levels,
        };
        let levels = memory.iter().map(row).collect();
        Self { schema: LEVELS_SCHEMA.to_owned(), of: of.to_owned(), levels }
    }

    /// Reads a document back: itself, or a reconciliation that holds it; or what is wrong with it.
    pub fn parse(text: &str) -> Result<Memory, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        let value = value.pointer("/next/conformal").cloned().unwrap_or(value);
        let schema = value.get("schema").and_then(Value::as_str);
        if schema != Some(LEVELS_SCHEMA) {
            return Err(format!(
                "is not what `plimsoll reconcile` writes: its `schema` is not `{LEVELS_SCHEMA}`"
            ));
        }
        let file: Self =
            serde_json::from_value(value).map_err(|error| format!("is damaged: {error}"))?;
        memory_of(&file.levels)
    }
}

fn memory_of(rows: &[LevelsRow]) -> Result<Memory, String> {
    let mut memory = Memory::default();
    for row in rows {
        let Some(quantity) = Quantity::of_name(&row.resource) else {
            return Err(format!("knows `{}`, which no forecast counts", row.resource));
        };
        let class = (row.class != ALL).then_some(row.class.as_str());
        memory.set(class, quantity, row.levels);
    }
    Ok(memory)
}
