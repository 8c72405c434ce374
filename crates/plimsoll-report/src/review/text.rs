//! The first screen of a review, in 80 columns or 120: what the meeting asks first.

use plimsoll_study::{LoadVerdict, NO_RECOVERY, Plan, Review, StressResult};
use plimsoll_units::grouped;

use super::decide::{facts, month, success, summary};
use super::stop;
use crate::launch::{by_requests, lines, plan_sentence};
use crate::plan::{dollars, share};
use crate::text::{Heading, aligned, shown_level};

/// Columns of a screen: of a narrow terminal, a pipe or a file, and of a wide one.
const SCREENS: [usize; 2] = [80, 120];
/// Where words behind a label begin.
const LABEL: usize = 10;
/// Caveats of the first screen.
const CAVEATS: usize = 3;

/// The first screen of a terminal with so many columns.
pub fn review_text(review: &Review, heading: Heading, columns: usize) -> String {
    let columns = SCREENS[usize::from(columns >= SCREENS[1])];
    let mut screen = Screen { out: String::new(), heading, columns };
    let verdict = &review.verdict;
    let at = review.plan.as_ref().map_or(String::new(), |plan| format!(": {}", plan.sized_for));
    screen.heading(&format!("{}  {}{at}", verdict.today.word(), review.name));
    screen.says("", &stop(&verdict.says));
    match &review.plan {
        Some(plan) => {
            screen.says("", &plan_sentence(plan, verdict.plan));
            screen
                .says("", &format!("{}; step-time error not included.", facts(review).join(" · ")));
            summarised(&mut screen, review, plan);
            launch(&mut screen, review, plan);
            obstacles(&mut screen, plan);
        }
        None => {
            screen.says("", &facts(review).join(" · "));
            demand(&mut screen, review);
        }
    }
    screen.out.push('\n');
    if let Some(result) = &review.stress {
        screen.labelled("Stress", &stress(result));
    }
    if let Some(text) = cost(review) {
        screen.labelled("Cost", &text);
    }
    for (caveat, label) in caveats(review).iter().zip(["Caveats", "", ""]) {
        screen.labelled(label, &stop(caveat));
    }
    for (what, label) in
        to_do(review).iter().zip(["To do"].into_iter().chain(std::iter::repeat("")))
    {
        screen.labelled(label, &stop(what));
    }
    screen.labelled(
        "More",
        &format!(
            "`--html FILE`, `--markdown FILE`, `--json`: {} assumptions and all notes ({})",
            grouped(review.assumptions.len() as u64),
            review.notes.len()
        ),
    );
    screen.out
}

struct Screen {
    out: String,
    heading: Heading,
    columns: usize,
}

impl Screen {
    fn heading(&mut self, text: &str) {
        let text = clipped(text, self.columns);
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
        for line in wrapped(text, indent, self.columns) {
            self.out.push_str(&self.heading.tinted(&line));
            self.out.push('\n');
        }
    }

    /// A line of a table: what stands at its end may be cut.
    fn line(&mut self, text: &str) {
        let text = clipped(text.trim_end(), self.columns);
        self.out.push_str(&self.heading.tinted(&text));
        self.out.push('\n');
    }

    fn table(&mut self, header: &[&str], rows: &[Vec<String>], right: &[usize]) {
        for line in aligned(header, rows, right).lines() {
            self.out.push_str(&self.heading.tinted(&clipped(line, self.columns)));
            self.out.push('\n');
        }
    }

    /// Words behind a label.
    fn labelled(&mut self, label: &str, text: &str) {
        let indent = " ".repeat(LABEL);
        for (i, line) in wrapped(text, &indent, self.columns).into_iter().enumerate() {
            let line = if i == 0 { format!("{label:<LABEL$}{}", line.trim_start()) } else { line };
            self.out.push_str(&self.heading.tinted(&line));
            self.out.push('\n');
        }
    }
}

/// Today's fleet beside the planned one.
fn summarised(screen: &mut Screen, review: &Review, plan: &Plan) {
    screen.part(&format!("{:<36}{:>10}{:>12}", "", "today", "planned"));
    let verdict = &review.verdict;
    for [what, today, planned] in summary(plan) {
        let note = match what.as_str() {
            "cost a month" if !verdict.over_caps.is_empty() => "OVER CAP".to_owned(),
            other if other.starts_with("share") => match verdict.today == verdict.plan {
                true => verdict.today.word().to_owned(),
                false => format!("{} -> {}", verdict.today.word(), verdict.plan.word()),
            },
            _ => String::new(),
        };
        let line = format!("{what:<36}{today:>10}{planned:>12}");
        // A cell is never cut.
        match line.chars().count() + 3 + note.chars().count() <= screen.columns {
            true => screen.line(&format!("{line}   {note}")),
            false => {
                screen.line(&line);
                screen.line(&format!("  {note}"));
            }
        }
    }
}

fn launch(screen: &mut Screen, review: &Review, plan: &Plan) {
    screen.out.push('\n');
    for line in lines(plan, review.demand.window_s, screen.columns) {
        screen.line(&line);
    }
    if let Some(text) = by_requests(review) {
        screen.says("", &text);
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

/// What stands in the way of the plan.
fn obstacles(screen: &mut Screen, plan: &Plan) {
    for own in &plan.infeasible_because {
        screen.out.push('\n');
        screen.says("", &stop(&format!("NOT FEASIBLE: {}; {}", own.what, own.relax)));
    }
}

/// In how many stress scenarios the planned fleet holds, and what is left of it in the others.
pub(super) fn stress(result: &StressResult) -> String {
    let tried: Vec<_> =
        result.scenarios.iter().filter(|own| own.not_applicable.is_none()).collect();
    let holds = tried
        .iter()
        .filter(|own| own.attainment.verdict_planned == Some(LoadVerdict::Carried))
        .count();
    let mut text = format!("the planned fleet holds in {holds} of {} scenarios", tried.len());
    let others = tried
        .iter()
        .filter(|own| own.attainment.verdict_planned != Some(LoadVerdict::Carried))
        .map(|own| {
            let close = match own.attainment.verdict_planned {
                Some(LoadVerdict::TooClose) => ", TOO CLOSE TO CALL",
                _ => "",
            };
            match own.attainment.planned {
                Some(_) => format!("{} {} good{close}", own.name, share(own.attainment.planned)),
                None => format!("{} not known{close}", own.name),
            }
        });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text.push_str("; ");
        text.push_str(&others.join("; "));
    }
    text
}

/// What a month and a success cost.
pub(super) fn cost(review: &Review) -> Option<String> {
    let parts: Vec<String> = [
        review.plan.as_ref().map(|plan| month(&plan.budget)),
        review.cost.as_ref().and_then(|_| success(review)),
        // Within the cap the number above says all.
        review
            .cost
            .as_ref()
            .and_then(|cost| cost.budget.as_ref())
            .filter(|budget| budget.verdict == "over")
            .map(|budget| format!("OVER CAP: {}", stop(&budget.says))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What matters most of what a reader should know: three at most.
fn caveats(review: &Review) -> Vec<String> {
    let dear = review.dear_classes.iter().map(|class| {
        format!(
            "a success of `{}` costs {} and is worth {} (its `value`)",
            class.class,
            crate::cost::dollars(class.usd_per_success),
            crate::cost::dollars(class.value_usd)
        )
    });
    // A surge that outlasts itself is in no load line.
    let stays = review.stress.iter().flat_map(|stress| &stress.failure_shapes);
    let stays = stays.filter(|own| own.name == NO_RECOVERY && own.pass == Some(false));
    let stays = stays.map(|own| own.evidence.clone());
    stays.chain(dear).chain(review.notes.iter().cloned()).take(CAVEATS).collect()
}

/// What must be done for the plan.
fn to_do(review: &Review) -> Vec<String> {
    let Some(plan) = &review.plan else { return Vec::new() };
    let orders = plan.budget.orders.iter().map(|order| {
        let late = if order.too_late { ", WHICH HAS PASSED" } else { "" };
        format!(
            "order {} {} in {} by {}{late}",
            order.devices, order.accelerator, order.region, order.order_by
        )
    });
    let over = plan.table.shared.iter().filter(|row| review.verdict.over_caps.contains(&row.name));
    let over = over.filter_map(|row| {
        let planned = row.planned?;
        Some(format!("raise `{}` by {}, or plan for less", row.name, dollars(planned - row.limit)))
    });
    orders.chain(over).collect()
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
fn wrapped(text: &str, indent: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = indent.to_owned();
    let width = |text: &str| text.chars().count();
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word: String = word.to_owned();
        loop {
            let gap = usize::from(!empty);
            if width(&line) + gap + width(&word) <= columns {
                if !empty {
                    line.push(' ');
                }
                line.push_str(&word);
                empty = false;
                break;
            }
            if empty {
                let room = columns - width(&line);
                let rest: String = word.chars().skip(room).collect();
                line.extend(word.chars().take(room));
                word = rest;
            }
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            empty = true;
        }
    }
    if !empty {
        lines.push(line);
    }
    lines
}
