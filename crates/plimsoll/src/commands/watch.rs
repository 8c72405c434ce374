//! `watch`: a running fleet against its plan. It advises and touches nothing.

use std::io::{IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_live::{PoolSource, Prometheus, Selector, pool_queries, sight};
use plimsoll_report::{watch_line, watch_text};
use plimsoll_scenario::Diagnostic;
use plimsoll_study::{Advice, PlanFile, PoolSighting, Sighting, Watcher};
use plimsoll_web::{Board, board_app, document};
use tokio::net::TcpListener;

use super::live::{Now, Told, engine, gateway, plan_file, prometheus, source};
use super::{either, serve, tell};
use crate::args::{Global, WatchArgs};
use crate::failure::Failure;
use crate::heading;

/// Hours of demand that are read when it begins, so that what is about to happen can be told from the first look on.
const HOURS_BEFORE: f64 = 24.0;
const BEFORE_STEP_S: f64 = 60.0;
/// What was seen so many looks ago is old.
const LOOKS_OLD: f64 = 4.0;

/// Watches until Ctrl-C, or looks once.
pub(super) fn answer(
    args: &WatchArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let plan = plan_file(&args.plan)?;
    let start: jiff::Timestamp = plan.forecast.start.parse().map_err(|_| {
        let message = format!("its forecast begins at `{}`, which is no time", plan.forecast.start);
        Failure::one(Diagnostic::about("not-a-plan", args.plan.display().to_string(), message))
    })?;
    let every = args.every.get().max(0.1);
    let stale_s = (LOOKS_OLD * every).max(args.window.get());
    let told = Told {
        gateway: gateway(args.gateway),
        served: args.served.clone(),
        labels: args.prometheus.matches.clone(),
        window_s: args.window.get(),
    };
    told.check(&plan)?;
    let look = Look {
        prometheus: prometheus(&args.prometheus)?,
        found: plan.pools.iter().map(|_| None).collect(),
        name: plan.name.clone(),
        plan: plan.clone(),
        watcher: Arc::new(Mutex::new(Watcher::new(plan, start.as_second() as f64, stale_s))),
        trouble: None,
        told,
    };
    if args.once {
        let (look, notes) = look.once();
        notes.iter().for_each(|note| tell(global, err, &format!("note: {note}")));
        if let Some(trouble) = &look.trouble {
            return Err(unseen(trouble));
        }
        return Ok(said(&look.name, &advice_of(&look.watcher), global));
    }
    go_on(look, args, global, err)
}

fn advice_of(watcher: &Mutex<Watcher>) -> Advice {
    watcher.lock().unwrap_or_else(PoisonError::into_inner).advice(now_s())
}

fn unseen(trouble: &str) -> Failure {
    let help = "is the address right, and does it scrape the engines? `plimsoll doctor --prometheus URL --plan PLAN` tries every query";
    Failure::one(Diagnostic::about("not-seen", "--prometheus", trouble).help(help))
}

/// The document, or the screen.
fn said(name: &str, advice: &Advice, global: &Global) -> String {
    either(global, || document(advice), || watch_text(advice, name, &clock(advice.at_s), heading()))
}

fn go_on(
    look: Look,
    args: &WatchArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unseen(&error.to_string()))?;
    let board = Board::default();
    let done = runtime.block_on(async {
        let server = match args.listen {
            None => None,
            Some(address) => {
                let listener = TcpListener::bind(address).await.map_err(|error| {
                    let message = format!("cannot listen at {address}: {error}");
                    Failure::one(
                        Diagnostic::about("no-server", "--listen", message)
                            .help("give another address, such as `127.0.0.1:0` for any free port"),
                    )
                })?;
                let at = listener.local_addr().map_or(address, |own| own);
                tell(global, err, &format!("listening at http://{at}/ (/metrics, /v1/replicas, /v1/advice, gRPC externalscaler.ExternalScaler)"));
                Some(tokio::spawn(axum_serve(listener, board.clone())))
            }
        };
        let done = looks(look, &board, args.every.get().max(0.1), global, err).await;
        if let Some(server) = server {
            server.abort();
        }
        done
    });
    // A question that nobody answers is not waited for.
    runtime.shutdown_background();
    done
}

async fn axum_serve(listener: TcpListener, board: Board) {
    // It ends with the program: whoever asks is answered at once.
    let _ = plimsoll_web::serve_board(listener, board_app(board)).await;
}

/// Looks again and again. What is advised is posted by the clock, whether or not a look has ended: an answer that does not come makes the last one older.
async fn looks(
    look: Look,
    board: &Board,
    every: f64,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let (name, watcher) = (look.name.clone(), Arc::clone(&look.watcher));
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(every));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let ended = serve::ended();
    tokio::pin!(ended);
    let screen = std::io::stdout().is_terminal() && !global.json;
    let mut last = Vec::new();
    let mut told = None;
    let mut resting = Some(look);
    let mut looking = None;
    loop {
        tokio::select! {
            () = &mut ended => break,
            _ = ticks.tick() => {
                if let Some(look) = resting.take() {
                    looking = Some(tokio::task::spawn_blocking(move || look.once()));
                }
            }
            done = ended_look(&mut looking), if looking.is_some() => {
                looking = None;
                let Ok((look, notes)) = done else { return Err(unseen("a look ended early")) };
                notes.iter().for_each(|note| tell(global, err, &format!("note: {note}")));
                if look.trouble != told {
                    match &look.trouble {
                        Some(trouble) => tell(global, err, &format!("cannot see: {trouble}; the last good answer stays")),
                        None => tell(global, err, "sees again"),
                    }
                    told.clone_from(&look.trouble);
                }
                resting = Some(look);
            }
        }
        let advice = advice_of(&watcher);
        board.post(advice.clone());
        if screen {
            let text = said(&name, &advice, global);
            // What nobody looks at any more is no reason to stop advising others.
            let _ = write!(std::io::stdout().lock(), "\x1b[H\x1b[2J{text}");
        } else if !global.json {
            let numbers: Vec<Option<u32>> =
                advice.pools.iter().map(|pool| pool.desired_replicas).collect();
            if numbers != last {
                let lines: Vec<String> = advice.pools.iter().map(watch_line).collect();
                let _ = writeln!(
                    std::io::stdout().lock(),
                    "{} {}",
                    clock(advice.at_s),
                    lines.join("\n  ")
                );
                last = numbers;
            }
        }
    }
    Ok(if global.json { said(&name, &advice_of(&watcher), global) } else { String::new() })
}

/// The end of a look; never, where there is none.
async fn ended_look<T>(
    looking: &mut Option<tokio::task::JoinHandle<T>>,
) -> Result<T, tokio::task::JoinError> {
    match looking.as_mut() {
        Some(own) => own.await,
        None => std::future::pending().await,
    }
}

/// One look after the other.
struct Look {
    prometheus: Prometheus,
    plan: PlanFile,
    name: String,
    watcher: Arc<Mutex<Watcher>>,
    /// Where each pool reports, once that is known.
    found: Vec<Option<PoolSource>>,
    /// Why nothing was seen, where nothing was.
    trouble: Option<String>,
    told: Told,
}

impl Look {
    /// Looks, and takes in what was seen; says what was taken for granted.
    fn once(mut self) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let mut pools = Vec::new();
        for place in 0..self.plan.pools.len() {
            let pool = &self.plan.pools[place];
            if self.found[place].is_none() {
                match source(&self.plan, pool, &Now(&self.prometheus), &self.told) {
                    Ok((own, note)) => {
                        notes.extend(note);
                        self.remember(&own, place);
                        self.found[place] = Some(own);
                    }
                    // Others are seen all the same.
                    Err(error) => {
                        let pool = pool.name.clone();
                        pools.push(PoolSighting {
                            pool,
                            trouble: vec![error],
                            ..PoolSighting::default()
                        });
                        continue;
                    }
                }
            }
            pools.extend(self.found[place].as_ref().map(|own| sight(&Now(&self.prometheus), own)));
        }
        let seen = pools.iter().any(|own| own.fresh_tokens.is_some() || own.in_flight.is_some());
        self.trouble = (!seen).then(|| {
            let first = pools.iter().flat_map(|own| &own.trouble).next().cloned();
            first.unwrap_or_else(|| {
                format!("{} has no series of the plan's pools", self.prometheus.name())
            })
        });
        let sighting = Sighting { at_s: now_s(), pools };
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner).see(&sighting);
        (self, notes)
    }

    /// The demand of the day before, where it is there, under the names of whatever version has it.
    fn remember(&self, own: &PoolSource, place: usize) {
        let end = now_s() - BEFORE_STEP_S;
        let planned = engine(&self.plan.pools[place].engine).and_then(|(_, version)| version);
        let others = ["0.15", "0.9"].iter().map(|version| version.parse().ok());
        let history = [planned, None].into_iter().chain(others).find_map(|version| {
            let selector = |reporter| Selector { version, ..own.selector(reporter) };
            let gateway = own.gateway.map(selector);
            let query =
                pool_queries(&selector(own.engine), gateway.as_ref(), &own.window).fresh_tokens?;
            let start = end - HOURS_BEFORE * 3600.0;
            // What is not there is not remembered: the warning then begins later.
            let series = self.prometheus.range(&query, start, end, BEFORE_STEP_S).ok()?;
            let [series] = series.as_slice() else { return None };
            let samples = series.samples.iter();
            let known = samples.filter_map(|own| Some((own.at_ms as f64 / 1e3, own.value?)));
            Some(known.collect::<Vec<_>>())
        });
        if let Some(history) = history {
            let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
            watcher.remember(&own.pool, &history);
        }
    }
}

/// Seconds from 1970 by the clock.
pub(super) fn now_s() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "what is seen now is seen by the clock")]
    let now = jiff::Timestamp::now();
    now.as_millisecond() as f64 / 1e3
}

fn clock(at_s: f64) -> String {
    jiff::Timestamp::from_second(at_s as i64).map_or_else(|_| "?".to_owned(), |at| at.to_string())
}
