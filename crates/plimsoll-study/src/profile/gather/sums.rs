//! Sums that somebody else has taken over the rows of a log.

use plimsoll_stats::Sketch;

use super::arrivals::{Bucketed, Gaps, RESOLUTION};
use super::{ClientSums, End, Gathered, Gathering, Part};

/// What a cluster hands back of a log whose rows it keeps to itself.
///
/// Every row of every table stands for log rows of one weight, and holds whole numbers only: it does not matter where or in which
/// order they were summed. Tokens that a log row does not say count as zero in sums.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// The last arrival, in nanoseconds since the first of the whole log.
    pub last_ns: Option<i64>,
    /// Rows by class and weight.
    pub totals: Vec<TotalSum>,
    /// Rows by class, weight and number of the attempt, from one.
    pub attempts: Vec<(Kin, u16)>,
    /// Rows by class, weight and prompt tokens.
    pub prompts: Vec<(Kin, u32)>,
    /// Rows by class, weight and output tokens.
    pub outputs: Vec<(Kin, u32)>,
    /// Rows by class, weight, and prompt and output tokens together.
    pub totals_of_tokens: Vec<(Kin, u64)>,
    /// Rows that say both lengths, by class, weight and binary digits of each.
    pub joint: Vec<JointSum>,
    /// Rows by class, weight and second since the first arrival.
    pub seconds: Vec<SecondSum>,
    /// Rows by client and weight.
    pub clients: Vec<ClientSum>,
    /// Time between the arrivals of all rows; none where no row has a time.
    pub gaps: Option<GapSums>,
    /// The same within a class.
    pub class_gaps: Vec<(u32, GapSums)>,
    /// The first stamps of the log in order of time, from which its tick is seen.
    pub head: Vec<i64>,
}

/// Log rows of one class that weigh the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kin {
    /// An index into the classes.
    pub class: u32,
    /// Requests that each row stands for.
    pub weight: f64,
    /// How many rows.
    pub rows: u64,
}

/// What is known of log rows of one class and weight.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalSum {
    /// All of them.
    pub kin: Kin,
    /// Rows that say when they arrived.
    pub at: u64,
    /// Rows that say their prompt tokens.
    pub prompt: u64,
    /// Rows that say how many of those were cached.
    pub cached: u64,
    /// Rows that say their output tokens.
    pub output: u64,
    /// Rows that say how many of those were reasoning.
    pub reasoning: u64,
    /// Rows that say the most they asked for.
    pub max_tokens: u64,
    /// Rows that say their client.
    pub client: u64,
    /// Rows that say the time to their first token.
    pub ttft: u64,
    /// Rows that say the time to their end.
    pub e2e: u64,
    /// Rows by how they ended.
    pub ends: Vec<(End, u64)>,
    /// Reasoning tokens of rows that say them and their output.
    pub reasoning_tokens: u64,
    /// Output tokens of those.
    pub reasoning_of: u64,
    /// Rows whose output reached the most they asked for.
    pub at_limit: u64,
    /// Over rows that say prompt and output: ones, prompts, outputs, squared prompts, squared outputs, products.
    pub moments: [u128; 6],
}

/// Log rows with prompts and outputs of so many binary digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointSum {
    /// Which rows.
    pub kin: Kin,
    /// Binary digits of the prompt; none for zero.
    pub prompt_bits: u32,
    /// Binary digits of the output.
    pub output_bits: u32,
    /// Prompt tokens.
    pub prompt: u64,
    /// Output tokens.
    pub output: u64,
}

/// Log rows of one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondSum {
    /// Which rows.
    pub kin: Kin,
    /// Whole seconds since the first arrival.
    pub second: u64,
    /// Prompt tokens.
    pub prompt: u64,
    /// Prompt tokens that were not found in a cache.
    pub fresh: u64,
    /// Output tokens.
    pub output: u64,
}

/// Log rows of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientSum {
    /// An index into the clients.
    pub client: u32,
    /// Requests that each row stands for.
    pub weight: f64,
    /// How many rows.
    pub rows: u64,
    /// Prompt tokens.
    pub prompt: u64,
    /// Output tokens.
    pub output: u64,
}

/// Time between consecutive arrivals, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapSums {
    /// The first arrival, since the first of the whole log.
    pub first_ns: i64,
    /// The last.
    pub last_ns: i64,
    /// The sum of squared gaps.
    pub squares: u128,
    /// The longest.
    pub max_ns: i64,
    /// Gaps, each as long as [`GapSums::kept`] of it says, and how many there are.
    pub gaps: Vec<(i64, u64)>,
}

impl GapSums {
    /// Leading binary digits of a gap that are kept; the rest are zero. So many tell apart what the buckets of a sketch do.
    pub const DIGITS: u32 = 11;

    /// What is kept of a gap.
    pub fn kept(gap: i64) -> i64 {
        let digits = u64::BITS - gap.max(0).cast_unsigned().leading_zeros();
        let lost = digits.saturating_sub(Self::DIGITS);
        gap.max(0) >> lost << lost
    }

    fn gathered(&self) -> Gaps {
        let mut buckets = Sketch::new(RESOLUTION);
        for (gap, n) in &self.gaps {
            // The longest is known exactly, and no quantile lies beyond it.
            let gap = if Self::kept(self.max_ns) == *gap { self.max_ns } else { *gap };
            buckets.record(gap as f64 * RESOLUTION, *n);
        }
        Gaps {
            n: self.gaps.iter().map(|(_, n)| n).sum(),
            first: self.first_ns,
            last: self.last_ns,
            squares: self.squares,
            max: self.max_ns,
            zeros: self.gaps.iter().filter(|(gap, _)| *gap == 0).map(|(_, n)| n).sum(),
            buckets,
        }
    }
}

impl Gathered {
    /// What a log's rows would have been gathered to, as far as sums can say it.
    ///
    /// Where weights are whole numbers, windows, lengths, clients and counts are those of the rows. The time between arrivals is within
    /// the error of a [`Sketch`]. Ranks of lengths, the prefill queue and tokens in memory take rows: they stay unknown.
    pub fn of_sums(sums: Sums) -> Self {
        let shape = Gathering { rows_expected: None, exact_rows: 0, pace: None };
        let mut gathered = Self::new(&shape);
        gathered.summed = true;
        for total in &sums.totals {
            #[expect(
                clippy::float_cmp,
                reason = "exactly one is the weight of a log without sampling"
            )]
            let weighs = total.kin.weight != 1.0;
            gathered.weighted += if weighs { total.kin.rows } else { 0 };
            gathered.part(total.kin).total(total);
        }
        for (kin, attempt) in &sums.attempts {
            gathered.part(*kin).tried(*attempt, kin.requests());
        }
        for (kin, length) in &sums.prompts {
            gathered.part(*kin).prompt.add(u64::from(*length), kin.requests());
        }
        for (kin, length) in &sums.outputs {
            gathered.part(*kin).output.add(u64::from(*length), kin.requests());
        }
        for (kin, length) in &sums.totals_of_tokens {
            gathered.part(*kin).total.add(*length, kin.requests());
        }
        for cell in &sums.joint {
            let tokens = [cell.prompt, cell.output].map(|sum| cell.kin.weight * sum as f64);
            let (prompt, output) = (cell.prompt_bits as usize, cell.output_bits as usize);
            gathered.part(cell.kin).joint.put(
                prompt,
                output,
                [cell.kin.requests(), tokens[0], tokens[1]],
            );
        }
        for sum in &sums.seconds {
            let [prompt, fresh, output] =
                [sum.prompt, sum.fresh, sum.output].map(|tokens| sum.kin.weight * tokens as f64);
            let sums = [sum.kin.requests(), prompt, fresh, output];
            gathered.part(sum.kin).seconds.put(sum.second, sums);
            gathered.presence.push((sum.second * 1_000_000_000).cast_signed(), sum.kin.class, None);
        }
        for sum in &sums.clients {
            let client = sum.client as usize;
            if gathered.clients.len() <= client {
                gathered.clients.resize(client + 1, ClientSums::default());
            }
            let own = &mut gathered.clients[client];
            own.requests += sum.weight * sum.rows as f64;
            own.prompt += sum.weight * sum.prompt as f64;
            own.output += sum.weight * sum.output as f64;
        }
        let bucketed = sums.gaps.map(|gaps| Bucketed {
            all: gaps.gathered(),
            classes: sums
                .class_gaps
                .iter()
                .map(|(class, gaps)| (*class, gaps.gathered()))
                .collect(),
            head: sums.head,
        });
        gathered.times.set(bucketed, sums.last_ns);
        gathered
    }

    /// Minutes, since the first arrival, in which it matters who was there: those around silences that are too long for chance.
    pub fn minutes_in_doubt(&self) -> Vec<std::ops::RangeInclusive<u64>> {
        crate::profile::arrivals::minutes_in_doubt(&self.whole().seconds, self.times.last())
    }

    /// Says that a client was there in a minute.
    pub fn was_there(&mut self, minute: u64, client: u32) {
        self.presence.attend(minute, client);
    }

    fn part(&mut self, kin: Kin) -> &mut Part {
        let class = kin.class as usize;
        if self.parts.len() <= class {
            self.parts.resize_with(class + 1, Part::default);
        }
        &mut self.parts[class]
    }
}

impl Kin {
    fn requests(self) -> f64 {
        self.weight * self.rows as f64
    }
}

impl Part {
    fn total(&mut self, sum: &TotalSum) {
        let weight = sum.kin.weight;
        self.rows += sum.kin.rows;
        self.weight += sum.kin.requests();
        self.known.at += sum.at;
        self.known.prompt += sum.prompt;
        self.known.cached += sum.cached;
        self.known.output += sum.output;
        self.known.reasoning += sum.reasoning;
        self.known.max_tokens += sum.max_tokens;
        self.known.client += sum.client;
        self.known.ttft += sum.ttft;
        self.known.e2e += sum.e2e;
        for (end, rows) in &sum.ends {
            self.known.end += if *end == End::Unknown { 0 } else { *rows };
            self.ends[*end as usize] += weight * *rows as f64;
        }
        self.reasoning += weight * sum.reasoning_tokens as f64;
        self.reasoning_of += weight * sum.reasoning_of as f64;
        self.at_limit += sum.at_limit;
        self.moments.put(sum.moments, weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eleven_digits_are_kept() {
        for gap in [0, 1, 2047, 2048, 4096, 1 << 40, i64::MAX & !((1 << 52) - 1)] {
            assert_eq!(GapSums::kept(gap), gap);
        }
        assert_eq!((GapSums::kept(2049), GapSums::kept(4099)), (2048, 4096));
        assert_eq!(GapSums::kept(i64::MAX), i64::MAX & !((1 << 52) - 1));
    }
}
