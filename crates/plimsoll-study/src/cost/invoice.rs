//! What prices say against what was invoiced, and why they differ.

use std::collections::BTreeMap;

use plimsoll_cost::{Bill, BillLine, Charge, ChargeKind, Expense, Usage, split};
use plimsoll_units::Usd;
use serde::Serialize;

/// A bill against what prices say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BillCheck {
    /// As it was read.
    pub format: String,
    /// The currency that it was written in.
    pub currency: String,
    /// Dollars for one unit of it.
    pub usd_per_unit: f64,
    /// What prices say.
    pub modelled_microusd: i64,
    /// What was invoiced for the period, prepaid commitments spread over their use.
    pub invoiced_microusd: i64,
    /// The second less the first.
    pub gap_microusd: i64,
    /// Why: these sum to the gap.
    pub gap: Vec<GapLine>,
    /// Lines that could not be read.
    pub rejected_lines: usize,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A part of a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapLine {
    /// `hours`, `price`, `amount`, `only_in_bill`, `only_in_model`, `credit`, `tax`.
    pub kind: &'static str,
    /// What it is for, as books call it.
    pub line: &'static str,
    /// How much.
    pub microusd: i64,
    /// In a sentence.
    pub says: String,
}

/// Makes the bill the truth: every charge has what was invoiced for its kind, and what only the bill has is a charge of its own.
pub(super) fn invoiced(charges: &[Charge], bill: &Bill, usage: &Usage) -> (Vec<Charge>, BillCheck) {
    let mut notes = bill.notes.clone();
    let within = within(bill, usage, &mut notes);
    let mut sums: BTreeMap<Expense, Invoiced> = BTreeMap::new();
    for (line, usd) in &within {
        let own = sums.entry(expense_of(line)).or_default();
        own.usd = own.usd + *usd;
        own.lines += 1;
        if let Some(list) = line.list {
            own.discount = own.discount + list - line.effective;
        }
        match &line.quantity {
            Some((n, unit)) if is_hours(unit) => own.hours = own.hours.map(|hours| hours + n),
            _ => own.hours = None,
        }
    }
    let (mut made, mut gap) = (Vec::new(), Vec::new());
    let modelled: Usd = charges.iter().map(|charge| charge.usd).sum();
    let rented = |expense: Expense| expense.is_compute() && expense != Expense::ComputeOwned;
    let rents = sums.keys().any(|expense| rented(*expense));
    for charge in charges.iter().filter(|charge| !sums.contains_key(&charge.expense())) {
        if rents && rented(charge.expense()) {
            // Its devices are on the bill, paid in another way.
            let says = format!(
                "no such hours are on the bill: what it has is taken to be for `{}`",
                charge.name
            );
            let microusd = (-charge.usd).get_micros();
            gap.push(GapLine {
                kind: "only_in_model",
                line: charge.expense().name(),
                microusd,
                says,
            });
        } else {
            // Somebody else is paid for it: people, owned devices, another account.
            made.push(charge.clone());
            notes.push(format!(
                "`{}` is not on the bill: it is in the books as its price says",
                charge.name
            ));
        }
    }
    // Hours of a pool count once, however many kinds of line pay for them.
    let mut counted = vec![false; charges.len()];
    for (expense, own) in &sums {
        let of = |same: &dyn Fn(Expense) -> bool| -> Vec<usize> {
            (0..charges.len()).filter(|i| same(charges[*i].expense())).collect()
        };
        let same = of(&|other| other == *expense);
        let stand_in = same.is_empty() && rented(*expense);
        let paid_for = if stand_in { of(&rented) } else { same.clone() };
        let weights: Vec<f64> =
            paid_for.iter().map(|i| charges[*i].usd.get_micros() as f64).collect();
        let parts = split(own.usd, &weights).filter(|_| own.usd >= Usd::ZERO);
        if let Some(parts) = &parts {
            for (i, usd) in paid_for.iter().zip(parts) {
                let charge = &charges[*i];
                let devices = charge.devices.clone().filter(|_| !counted[*i]);
                counted[*i] = true;
                made.push(Charge {
                    usd: *usd,
                    expense: *expense,
                    invoiced: true,
                    devices,
                    ..charge.clone()
                });
            }
        } else {
            made.push(Charge {
                name: format!("{} of the bill", expense.name().replace('_', " ")),
                expense: *expense,
                place: None,
                usd: own.usd,
                devices: None,
                price: None,
                invoiced: true,
            });
        }
        match parts.is_some() && !stand_in {
            true => gap.extend(
                own.against(*expense, &same.iter().map(|i| &charges[*i]).collect::<Vec<_>>()),
            ),
            false => {
                let before: Usd = same.iter().map(|i| charges[*i].usd).sum();
                gap.push(only_in_bill(*expense, own, before));
            }
        }
    }
    let invoiced: Usd = made.iter().map(|charge| charge.usd).sum();
    let check = BillCheck {
        format: bill.format.clone(),
        currency: bill.currency.clone(),
        usd_per_unit: bill.usd_per_unit,
        modelled_microusd: modelled.get_micros(),
        invoiced_microusd: invoiced.get_micros(),
        gap_microusd: (invoiced - modelled).get_micros(),
        gap,
        rejected_lines: bill.rejects.len(),
        notes,
    };
    (made, check)
}

/// Lines of one kind.
#[derive(Clone, Copy, Debug)]
struct Invoiced {
    usd: Usd,
    lines: u64,
    /// List prices less what was charged, where the bill has both.
    discount: Usd,
    /// Hours, where every line is in hours.
    hours: Option<f64>,
}

impl Default for Invoiced {
    fn default() -> Self {
        Self { usd: Usd::ZERO, lines: 0, discount: Usd::ZERO, hours: Some(0.0) }
    }
}

impl Invoiced {
    /// Why what was invoiced for a kind is not what prices say. Where both count hours, other hours and other prices are told apart.
    fn against(&self, expense: Expense, same: &[&Charge]) -> Vec<GapLine> {
        let modelled: Usd = same.iter().map(|charge| charge.usd).sum();
        let all = self.usd - modelled;
        if all == Usd::ZERO {
            return Vec::new();
        }
        let line = expense.name();
        let off = match self.discount > Usd::ZERO {
            true => format!("; the bill is {} below its own list prices", self.discount),
            false => String::new(),
        };
        let bought: Option<f64> =
            same.iter().map(|c| c.device_hours()).try_fold(0.0, |sum, n| Some(sum + n?));
        let hours = self.hours.zip(bought).filter(|(own, bought)| *own > 0.0 && *bought > 0.0);
        let Some((own, bought)) = hours.filter(|_| expense.is_compute()) else {
            let says = format!("invoiced {}, prices say {modelled}{off}", self.usd);
            return vec![GapLine { kind: "amount", line, microusd: all.get_micros(), says }];
        };
        let price = modelled.get_micros() as f64 / bought;
        let more = Usd::micros(((own - bought) * price).round() as i64);
        let rest = all - more;
        let mut lines = Vec::new();
        if more != Usd::ZERO {
            let says = format!(
                "{own:.1} hours are on the bill, {bought:.1} device-hours in the model, at ${:.4} each (hours of nodes count as such)",
                price / 1e6
            );
            lines.push(GapLine { kind: "hours", line, microusd: more.get_micros(), says });
        }
        if rest != Usd::ZERO {
            let paid = self.usd.get_micros() as f64 / own / 1e6;
            let says = format!(
                "an hour was invoiced at ${paid:.4}, the price is ${:.4}{off}",
                price / 1e6
            );
            lines.push(GapLine { kind: "price", line, microusd: rest.get_micros(), says });
        }
        lines
    }
}

fn only_in_bill(expense: Expense, own: &Invoiced, modelled: Usd) -> GapLine {
    let kind = match expense {
        Expense::Credit => "credit",
        Expense::Tax => "tax",
        _ => "only_in_bill",
    };
    let lines = if own.lines == 1 { "line" } else { "lines" };
    let says = format!("{} {lines} of the bill, for which there is no price here", own.lines);
    GapLine { kind, line: expense.name(), microusd: (own.usd - modelled).get_micros(), says }
}

/// Lines, and as much of each as lies in the period.
fn within<'a>(bill: &'a Bill, usage: &Usage, notes: &mut Vec<String>) -> Vec<(&'a BillLine, Usd)> {
    let all = || bill.lines.iter().map(|line| (line, line.effective));
    let Some(start) = usage.period.start_s else {
        notes.push("requests have no date: all of the bill is taken to be for them".to_owned());
        return all().collect();
    };
    let until = start.saturating_add(i64::from(usage.period.hours) * 3600);
    let mut outside = Usd::ZERO;
    let mut kept = Vec::new();
    for (line, usd) in all() {
        let long = line.until_s.saturating_sub(line.from_s);
        let inside = line.until_s.min(until).saturating_sub(line.from_s.max(start)).max(0);
        // What has no length belongs to the period it begins in.
        let weights = match long > 0 {
            true => [inside as f64, (long - inside.min(long)) as f64],
            false if (start..until).contains(&line.from_s) => [1.0, 0.0],
            false => [0.0, 1.0],
        };
        let parts = split(usd, &weights).unwrap_or_default();
        if let [inside, rest] = parts[..] {
            outside = outside + rest;
            if inside != Usd::ZERO {
                kept.push((line, inside));
            }
        }
    }
    if outside != Usd::ZERO {
        notes.push(format!(
            "{outside} of the bill are for other hours than those of the usage, and left out"
        ));
    }
    kept
}

fn expense_of(line: &BillLine) -> Expense {
    if line.effective < Usd::ZERO {
        return Expense::Credit;
    }
    match line.kind {
        ChargeKind::Compute => {
            let how = line.pricing.as_deref().unwrap_or_default().to_ascii_lowercase();
            match () {
                () if how.contains("reserv") || how.contains("commit") => Expense::ComputeReserved,
                () if how.contains("spot") || how.contains("dynamic") => Expense::ComputeSpot,
                () => Expense::ComputeOnDemand,
            }
        }
        ChargeKind::Storage => Expense::Storage,
        ChargeKind::Network => Expense::Network,
        ChargeKind::Tokens => Expense::ProviderTokens,
        ChargeKind::Observability => Expense::Observability,
        ChargeKind::Commitment => Expense::Commitment,
        ChargeKind::Tax => Expense::Tax,
        ChargeKind::Credit => Expense::Credit,
        ChargeKind::Other => Expense::Other,
    }
}

fn is_hours(unit: &str) -> bool {
    matches!(
        unit.to_ascii_lowercase().trim_end_matches('s'),
        "hour" | "hr" | "h" | "gpu-hour" | "device-hour"
    )
}
