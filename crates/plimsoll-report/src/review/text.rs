//! The first screen of a review, in 80 columns: what the meeting asks first.

use plimsoll_study::{LoadVerdict, Plan, Review, StressResult};
use plimsoll_units::grouped;

use super::decide::{facts, first_to_run_out, month, success};
use super::stop;
use crate::plan::number;
use crate::stress::breaks;
use crate::text::{Heading, aligned, shown_level};

/// Columns of a terminal.
const WIDE: usize = 80;
/// The longest name of a resource.
const NAME: usize = 20;
/// Hard times that are told one by one; a page tells all of them.
const HARD: usize = 8;
/// Rows of the launch table, caps and notes at most, for the same reason.
const ROWS: usize = 12;
const CAPS: usize = 3;
const NOTES: usize = 3;

/// The first screen.
pub fn review_text(review: &Review, heading: Heading) -> String {
    let mut screen = Screen { out: String::new(), heading };
    screen.heading(&review.name);
    screen.says("", &facts(review).join(" · "));
    screen.out.push('\n');
    screen.says("", &stop(&review.verdict.says));
    match &review.plan {
        Some(plan) => {
            launch(&mut screen, review, plan);
            planned(&mut screen, plan);
        }
        None => demand(&mut screen, review),
    }
    if let Some(result) = &review.stress {
        stress(&mut screen, result);
    }
    cost(&mut screen, review);
    if !review.notes.is_empty() {
        screen.out.push('\n');
        for note in review.notes.iter().take(NOTES) {
            screen.says("  ", &format!("Note: {}", stop(note)));
        }
        screen.more(review.notes.len(), NOTES, "notes");
    }
    screen.out.push('\n');
    screen.says(
        "",
        &format!(
            "Rests on {} assumptions. `--html FILE` has all of it with charts, `--markdown` for a pull request, `--json` for scripts.",
            grouped(review.assumptions.len() as u64)
        ),
    );
    screen.out
}

struct Screen {
    out: String,
    heading: Heading,
}

impl Screen {
    fn heading(&mut self, text: &str) {
        let text = clipped(text, WIDE);
        self.out.push_str(&self.heading.apply(&text));
        self.out.push('\n');
    }

    /// A heading after a blank line.
    fn part(&mut self, text: &str) {
        self.out.push('\n');
        self.heading(text);
    }

    /// Words, in as many lines as they take; those after the first are set in.
    fn says(&mut self, indent: &str, text: &str) {
        for line in wrapped(text, indent) {
            self.out.push_str(&self.heading.tinted(&line));
            self.out.push('\n');
        }
    }

    fn table(&mut self, header: &[&str], rows: &[Vec<String>], right: &[usize]) {
        for line in aligned(header, rows, right).lines() {
            self.out.push_str(&self.heading.tinted(&clipped(line, WIDE)));
            self.out.push('\n');
        }
    }

    fn more(&mut self, all: usize, shown: usize, what: &str) {
        if all > shown {
            self.says("  ", &format!("and {} more {what}", all - shown));
        }
    }
}

fn launch(screen: &mut Screen, review: &Review, plan: &Plan) {
    screen.part("what runs out first");
    let event =
        review.launch_from.as_ref().map_or(String::new(), |from| format!(", launch from {from}"));
    let window = review.demand.window_s;
    screen.says(
        "",
        &format!("p95 over {window} s windows: baseline from {}{event}", review.baseline_from),
    );
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), compact);
    // What decides comes first.
    let (mix, others): (Vec<_>, Vec<_>) = plan.resources.iter().partition(|row| row.name == "mix");
    let rows: Vec<Vec<String>> = mix
        .into_iter()
        .chain(others)
        .take(ROWS)
        .map(|row| {
            vec![
                match row.name.as_str() {
                    "mix" => "requests of the mix".to_owned(),
                    name => clipped(&name.replace('_', " "), NAME),
                },
                maybe(row.baseline_p95),
                maybe(row.launch_p95),
                maybe(row.load_line_now),
                maybe(row.load_line_planned),
                row.headroom_pct.map_or("-".to_owned(), |pct| format!("{pct:+.0}%")),
                row.verdict.word().to_owned(),
            ]
        })
        .collect();
    let header = ["resource", "baseline", "launch", "line now", "planned", "headroom", "today"];
    screen.table(&header, &rows, &[1, 2, 3, 4, 5]);
    screen.more(plan.resources.len(), ROWS, "resources");
    if let Some(first) = first_to_run_out(plan) {
        screen.says("  ", &first);
    }
}

fn demand(screen: &mut Screen, review: &Review) {
    screen.part("demand of the busiest hours, p95");
    let rows: Vec<Vec<String>> = review
        .demand
        .rows
        .iter()
        .filter(|row| row.class.is_none())
        .map(|row| {
            vec![
                serde_json::json!(row.resource).as_str().unwrap_or_default().replace('_', " "),
                shown_level(&row.baseline),
                row.launch.as_ref().map_or("-".to_owned(), shown_level),
            ]
        })
        .collect();
    screen.table(&["a second", "baseline", "launch"], &rows, &[1, 2]);
}

fn planned(screen: &mut Screen, plan: &Plan) {
    screen.part("the plan");
    if !plan.feasible {
        screen.says("  ", "NOT FEASIBLE:");
        for own in &plan.infeasible_because {
            screen.says("  ", &stop(&format!("  × {}; {}", own.what, own.relax)));
        }
    }
    for pool in &plan.pools {
        let lines: Vec<String> = pool
            .reserve
            .iter()
            .filter(|line| line.replicas > 0)
            .map(|line| format!("{} {}", line.replicas, line.name.replace('_', " ")))
            .collect();
        let range =
            pool.interval.filter(|span| span.high > span.low).map_or(String::new(), |span| {
                format!("; {:.0} to {:.0} carry the planned demand", span.low, span.high)
            });
        screen.says(
            "  ",
            &format!(
                "{}: {} -> {} replicas = {}{range}; {} devices",
                pool.name,
                pool.replicas.now,
                pool.replicas.total,
                lines.join(" + "),
                grouped(pool.devices)
            ),
        );
    }
    if plan.pools.is_empty() {
        screen.says("  ", "hosted models alone");
    }
    for order in &plan.budget.orders {
        let late = if order.too_late { ", WHICH HAS PASSED" } else { "" };
        screen.says(
            "  ",
            &format!(
                "order {} {} in {} by {}{late}",
                order.devices, order.accelerator, order.region, order.order_by
            ),
        );
    }
}

fn stress(screen: &mut Screen, result: &StressResult) {
    screen.part("hard times");
    let broken: Vec<_> = result
        .scenarios
        .iter()
        .filter(|own| own.not_applicable.is_none())
        .filter(|own| {
            [own.attainment.verdict_now, own.attainment.verdict_planned]
                .iter()
                .any(|verdict| *verdict != Some(LoadVerdict::Carried))
        })
        .collect();
    let tried = result.scenarios.iter().filter(|own| own.not_applicable.is_none()).count();
    if broken.is_empty() {
        screen.says("  ", &format!("{tried} tried: none breaks a promise"));
    }
    for own in broken.iter().take(HARD) {
        let side =
            |name: &str, verdict: Option<LoadVerdict>, by: Option<&plimsoll_study::Breaks>| {
                match verdict {
                    Some(LoadVerdict::Fails) => format!("{name} BREAKS ({})", breaks(by)),
                    Some(LoadVerdict::Carried) => format!("{name} holds"),
                    Some(LoadVerdict::TooClose) => format!("{name} TOO CLOSE TO CALL"),
                    None => format!("{name} unknown"),
                }
            };
        let now = side("today", own.attainment.verdict_now, own.first_to_break.now.as_ref());
        let planned =
            side("planned", own.attainment.verdict_planned, own.first_to_break.planned.as_ref());
        screen.says("  ", &format!("{}: {now}; {planned}", own.name));
    }
    screen.more(broken.len(), HARD, "that break something");
    let failed: Vec<&str> = result
        .failure_shapes
        .iter()
        .filter(|shape| shape.pass == Some(false))
        .map(|shape| shape.name)
        .collect();
    let passed = result.failure_shapes.iter().filter(|shape| shape.pass == Some(true)).count();
    // What cannot happen here is neither.
    let all = result.failure_shapes.iter().filter(|shape| shape.pass.is_some()).count();
    let failed =
        if failed.is_empty() { String::new() } else { format!("; FAIL: {}", failed.join(", ")) };
    if all > 0 {
        screen.says(
            "  ",
            &format!("failure shapes: the planned fleet passes {passed} of {all}{failed}"),
        );
    }
}

fn cost(screen: &mut Screen, review: &Review) {
    let budget = review.plan.as_ref().map(|plan| &plan.budget);
    if budget.is_none() && review.cost.is_none() {
        return;
    }
    screen.part("what it costs");
    if review.cost.is_some() {
        let text = success(review).unwrap_or_else(|| "One success: unknown.".to_owned());
        screen.says("  ", &text);
    }
    let Some(budget) = budget else { return };
    screen.says("  ", &month(budget));
    let trips: Vec<_> = budget.caps.iter().filter(|cap| cap.trips_at.is_some()).collect();
    for cap in trips.iter().take(CAPS) {
        let at = cap.trips_at.as_deref().unwrap_or_default();
        let before = if cap.before_capacity == Some(true) { "before" } else { "after" };
        screen.says(
            "  ",
            &format!(
                "{} of {} {} TRIPS {at}, {before} the replicas of today are too few",
                cap.name,
                number(cap.limit),
                cap.unit
            ),
        );
    }
    screen.more(trips.len(), CAPS, "caps that trip");
    if trips.is_empty() && !budget.caps.is_empty() {
        screen.says("  ", &format!("no cap of {} trips", budget.caps.len()));
    }
}

/// Three digits with a letter for the rest, for a narrow column.
fn compact(value: f64) -> String {
    let (value, letter) = match value.abs() {
        v if v >= 999.5e9 => (value / 1e12, "T"),
        v if v >= 999.5e6 => (value / 1e9, "G"),
        v if v >= 999.5e3 => (value / 1e6, "M"),
        v if v >= 9_999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        v if v.fract() == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{letter}")
}

/// As much of a text as fits.
fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Lines of words; a word that is too long for one is broken.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = indent.to_owned();
    let width = |text: &str| text.chars().count();
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word: String = word.to_owned();
        loop {
            let gap = usize::from(!empty);
            if width(&line) + gap + width(&word) <= WIDE {
                if !empty {
                    line.push(' ');
                }
                line.push_str(&word);
                empty = false;
                break;
            }
            if empty {
                let room = WIDE - width(&line);
                let rest: String = word.chars().skip(room).collect();
                line.extend(word.chars().take(room));
                word = rest;
            }
            lines.push(std::mem::replace(&mut line, format!("{indent}  ")));
            empty = true;
        }
    }
    if !empty {
        lines.push(line);
    }
    lines
}
