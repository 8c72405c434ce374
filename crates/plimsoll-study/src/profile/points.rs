//! Lengths that occur together, as few weighted points as a file can hold.

use std::collections::BTreeMap;

use serde::Serialize;

/// Lengths of requests, counted together: prompt, output and what of the prompt was cached.
///
/// Up to a million different ones are kept as they are. Beyond, lengths within 1 % of each other share a cell that keeps their sums, so that
/// means stay exact. Neither the order of rows nor how they are divided matters.
#[derive(Clone, Debug, Default)]
pub struct JointLengths {
    cells: BTreeMap<Key, Cell>,
    coarse: bool,
}

/// Prompt, output and cached tokens; of a coarse cell their bins.
type Key = (u32, u32, Option<u32>);

/// Sums over a cell: of weights, and of weighted prompt, output and cached tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    weight: f64,
    sums: [f64; 3],
}

/// Different lengths that are kept as they are.
const KEPT: usize = 1 << 20;
/// Bins of an octave: one is 1.1 % wide.
const BINS: u32 = 64;

/// Few points for many requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JointPoints {
    /// The points, shortest prompts first; weights add up to the requests.
    pub points: Vec<JointPoint>,
    /// Requests behind them: those that say prompt and output.
    pub requests: f64,
    /// Different lengths that were put together; as many as points where nothing was.
    pub lengths: u64,
    /// Requests that say how much was cached, over all; points have it only where it is 1.
    pub cached_known: f64,
    /// The largest distance of the points' distribution of prompts from that of the requests.
    pub ks_prompt: f64,
    /// The same for outputs.
    pub ks_output: f64,
    /// The same for cached tokens; null where they are not known.
    pub ks_cached: Option<f64>,
    /// Mean prompt of the requests, and of the points.
    pub prompt_mean: [f64; 2],
    /// Mean output of the requests, and of the points.
    pub output_mean: [f64; 2],
    /// Mean cached tokens of the requests, and of the points.
    pub cached_mean: Option<[f64; 2]>,
    /// Correlation of prompt and output of the requests, and of the points; null where one of them never varies.
    pub correlation: Option<[f64; 2]>,
}

/// Lengths that occur together, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JointPoint {
    /// Prompt tokens, cached ones included.
    pub prompt: u64,
    /// Prompt tokens found in a cache; null where the log does not say it.
    pub cached: Option<u64>,
    /// Output tokens.
    pub output: u64,
    /// Requests it stands for.
    pub weight: f64,
}

impl JointLengths {
    /// Counts a request, or as many as it stands for.
    pub fn push(&mut self, prompt: u32, cached: Option<u32>, output: u32, weight: f64) {
        let weight = if weight > 0.0 && weight.is_finite() { weight } else { 1.0 };
        let cached = cached.map(|cached| cached.min(prompt));
        let lengths = [prompt, output, cached.unwrap_or(0)];
        let sums = lengths.map(|length| weight * f64::from(length));
        let key = (prompt, output, cached);
        let key = if self.coarse { bins(key) } else { key };
        self.cells.entry(key).or_default().add(&Cell { weight, sums });
        self.fit();
    }

    /// Adds those of another stretch.
    pub fn merge(&mut self, other: &Self) {
        if other.coarse {
            self.coarsen();
        }
        for (key, cell) in &other.cells {
            let key = if self.coarse && !other.coarse { bins(*key) } else { *key };
            self.cells.entry(key).or_default().add(cell);
        }
        self.fit();
    }

    fn fit(&mut self) {
        if self.cells.len() > KEPT {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        if self.coarse {
            return;
        }
        self.coarse = true;
        for (key, cell) in std::mem::take(&mut self.cells) {
            self.cells.entry(bins(key)).or_default().add(&cell);
        }
    }

    /// At most so many points; none where nothing was counted.
    ///
    /// Requests are parted where they differ most, by length and by rank alike, until there are enough parts. Which lengths go together is then known,
    /// and each length is taken from its own distribution: the shortest of the parts has the mean of as many of the shortest requests as it stands
    /// for, and so on. Rounding is such that sums hold.
    pub fn points(&self, at_most: usize) -> Option<JointPoints> {
        let requests: f64 = self.cells.values().map(|cell| cell.weight).sum();
        if requests <= 0.0 {
            return None;
        }
        let told = self.cells.iter().filter(|(key, _)| key.2.is_some());
        let told: f64 = told.map(|(_, cell)| cell.weight).sum();
        let knows_cached = self.cells.keys().all(|key| key.2.is_some());
        let dimensions = if knows_cached { 3 } else { 2 };
        let mut entries: Vec<Entry> = Vec::with_capacity(self.cells.len());
        // Keys are in order, and cells that differ only in whether they say what was cached are neighbours.
        let mut last = None;
        for ((prompt, output, _), cell) in &self.cells {
            let same = !knows_cached && last == Some((*prompt, *output));
            match entries.last_mut().filter(|_| same) {
                Some(entry) => entry.cell.add(cell),
                None => entries.push(Entry { cell: *cell, ranks: [0.0; 3] }),
            }
            last = Some((*prompt, *output));
        }
        let lengths = entries.len() as u64;
        let full: Vec<[f64; 4]> = entries.iter().map(Entry::with_weight).collect();
        rank(&mut entries, requests, dimensions);
        let few = entries.len() <= at_most;
        let mut parts = part(entries, at_most.max(1), requests, dimensions);
        for i in 0..if few { 0 } else { dimensions } {
            straighten(&mut parts, &full, i);
        }
        let points = rounded(&parts, knows_cached);
        let reduced: Vec<[f64; 4]> = points
            .iter()
            .map(|point| {
                let cached = point.cached.unwrap_or(0);
                [point.weight, point.prompt as f64, point.output as f64, cached as f64]
            })
            .collect();
        let means = |i: usize| [mean(&full, i), mean(&reduced, i)];
        let correlations = [correlation(&full), correlation(&reduced)];
        Some(JointPoints {
            requests,
            lengths,
            // A sum of nothing is negative zero.
            cached_known: told.max(0.0) / requests,
            ks_prompt: distance(&full, &reduced, 1),
            ks_output: distance(&full, &reduced, 2),
            ks_cached: knows_cached.then(|| distance(&full, &reduced, 3)),
            prompt_mean: means(1),
            output_mean: means(2),
            cached_mean: knows_cached.then(|| means(3)),
            correlation: correlations[0].map(|of| [of, correlations[1].unwrap_or(0.0)]),
            points,
        })
    }
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.weight += other.weight;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
    }

    fn mean(&self, i: usize) -> f64 {
        self.sums[i] / self.weight
    }
}

/// A cell with the places of its lengths among all, from 0 to 1.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cell: Cell,
    ranks: [f64; 3],
}

impl Entry {
    fn with_weight(&self) -> [f64; 4] {
        [self.cell.weight, self.cell.mean(0), self.cell.mean(1), self.cell.mean(2)]
    }
}

/// Bins of lengths: each its own up to 64, then 64 to an octave.
fn bins((prompt, output, cached): Key) -> Key {
    let bin = |length: u32| {
        let octave = (u32::BITS - length.leading_zeros()).saturating_sub(BINS.ilog2() + 1);
        length >> octave << octave
    };
    (bin(prompt), bin(output), cached.map(bin))
}

/// Gives every entry the middle of the ranks of its value, over all requests.
fn rank(entries: &mut [Entry], requests: f64, dimensions: usize) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    for i in 0..dimensions {
        let means: Vec<f64> = entries.iter().map(|entry| entry.cell.mean(i)).collect();
        order.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
        let mut before = 0.0;
        // Lengths in order: one that is not less than the next is the same.
        for same in order.chunk_by(|a, b| means[*a] >= means[*b]) {
            let own: f64 = same.iter().map(|at| entries[*at].cell.weight).sum();
            let middle = (before + own / 2.0) / requests;
            same.iter().for_each(|at| entries[*at].ranks[i] = middle);
            before += own;
        }
    }
}

/// How a part would be parted again.
struct Part {
    entries: Vec<Entry>,
    /// What it leaves out of what differs.
    spread: f64,
    /// The dimension that differs most, and where to cut: by rank or by length.
    cut: (usize, bool, f64),
}

impl Part {
    fn of(entries: Vec<Entry>, scale: &[f64; 3], dimensions: usize) -> Self {
        let weight: f64 = entries.iter().map(|entry| entry.cell.weight).sum();
        let mut spread = 0.0;
        let mut most = f64::NEG_INFINITY;
        let mut cut = (0, true, 0.0);
        for i in 0..dimensions {
            for by_rank in [true, false] {
                let value = |entry: &Entry| value(entry, i, by_rank);
                let mean = entries.iter().map(|e| e.cell.weight * value(e)).sum::<f64>() / weight;
                let around = |e: &Entry| e.cell.weight * (value(e) - mean).powi(2);
                // Ranks spread by a twelfth, all together.
                let scale = if by_rank { 12.0 } else { scale[i] };
                let own = scale * entries.iter().map(around).sum::<f64>();
                spread += own;
                if own > most {
                    most = own;
                    cut = (i, by_rank, mean);
                }
            }
        }
        // What is alike may differ by rounding, and cannot be parted.
        if entries.len() < 2 {
            spread = 0.0;
        }
        Self { entries, spread, cut }
    }
}

fn value(entry: &Entry, i: usize, by_rank: bool) -> f64 {
    if by_rank { entry.ranks[i] } else { entry.cell.mean(i) }
}

/// Parts entries until there are so many parts; each is a mean of its own.
fn part(entries: Vec<Entry>, at_most: usize, requests: f64, dimensions: usize) -> Vec<Cell> {
    let whole = |entries: &[Entry]| {
        let mut sum = Cell::default();
        entries.iter().for_each(|entry| sum.add(&entry.cell));
        sum
    };
    if entries.len() <= at_most {
        return entries.into_iter().map(|entry| entry.cell).collect();
    }
    let all = whole(&entries);
    let scale = std::array::from_fn(|i| {
        let around = |e: &Entry| e.cell.weight * (e.cell.mean(i) - all.mean(i)).powi(2);
        let variance = entries.iter().map(around).sum::<f64>() / requests;
        if variance > 0.0 { 1.0 / variance } else { 0.0 }
    });
    let mut parts = vec![Part::of(entries, &scale, dimensions)];
    while parts.len() < at_most {
        let widest = (0..parts.len()).max_by(|a, b| {
            // Of those alike, the first.
            parts[*a].spread.total_cmp(&parts[*b].spread).then(b.cmp(a))
        });
        let Some(widest) = widest.filter(|at| parts[*at].spread > 0.0) else { break };
        let Part { entries, cut: (i, by_rank, at), .. } = parts.swap_remove(widest);
        let (low, high): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| value(entry, i, by_rank) <= at);
        if low.is_empty() || high.is_empty() {
            // Differences too small for their mean to lie between them.
            let rest = if low.is_empty() { high } else { low };
            parts.push(Part { entries: rest, spread: 0.0, cut: (i, by_rank, at) });
            continue;
        }
        parts.push(Part::of(low, &scale, dimensions));
        parts.push(Part::of(high, &scale, dimensions));
    }
    parts.into_iter().map(|part| whole(&part.entries)).collect()
}

/// Gives parts, in the order of one of their lengths, the means of as many requests in that order: sums hold, and the distribution is the requests'.
fn straighten(parts: &mut [Cell], full: &[[f64; 4]], i: usize) {
    let mut values: Vec<(f64, f64)> = full.iter().map(|row| (row[i + 1], row[0])).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|a, b| {
        let by = |i: usize| parts[*a].mean(i).total_cmp(&parts[*b].mean(i));
        by(i).then(by(0)).then(by(1)).then(by(2)).then(a.cmp(b))
    });
    let mut at = 0;
    for own in order {
        let (mut wanted, mut sum) = (parts[own].weight, 0.0);
        while let Some((value, left)) = values.get_mut(at).filter(|_| wanted > 0.0) {
            let taken = left.min(wanted);
            sum += taken * *value;
            wanted -= taken;
            *left -= taken;
            if *left <= 0.0 {
                at += 1;
            }
        }
        // What weights that are no whole numbers leave over.
        let last = values.last().map_or(0.0, |(value, _)| *value);
        parts[own].sums[i] = sum + wanted.max(0.0) * last;
    }
}

/// Means rounded up or down, heavy ones first, so that what is lost by one is given back by the next.
fn rounded(parts: &[Cell], knows_cached: bool) -> Vec<JointPoint> {
    let mut order: Vec<&Cell> = parts.iter().collect();
    order.sort_by(|a, b| {
        let by_length = |i: usize| a.mean(i).total_cmp(&b.mean(i));
        let lengths = by_length(0).then(by_length(1)).then(by_length(2));
        b.weight.total_cmp(&a.weight).then(lengths)
    });
    let mut lost = [0.0; 3];
    let mut points: Vec<JointPoint> = order
        .into_iter()
        .map(|cell| {
            let whole: [u64; 3] = std::array::from_fn(|i| {
                let mean = cell.mean(i);
                let down = mean.floor();
                let loss = lost[i] + cell.weight * (mean - down);
                let up = loss > cell.weight / 2.0 && mean > down;
                lost[i] = loss - if up { cell.weight } else { 0.0 };
                (down + if up { 1.0 } else { 0.0 }) as u64
            });
            JointPoint {
                prompt: whole[0],
                cached: knows_cached.then(|| whole[2].min(whole[0])),
                output: whole[1],
                weight: cell.weight,
            }
        })
        .collect();
    points.sort_by(|a, b| {
        let key = |point: &JointPoint| (point.prompt, point.output, point.cached);
        key(a).cmp(&key(b)).then(a.weight.total_cmp(&b.weight))
    });
    points.dedup_by(|next, kept| {
        let same =
            (next.prompt, next.output, next.cached) == (kept.prompt, kept.output, kept.cached);
        if same {
            kept.weight += next.weight;
        }
        same
    });
    points
}

fn mean(rows: &[[f64; 4]], i: usize) -> f64 {
    let weight: f64 = rows.iter().map(|row| row[0]).sum();
    rows.iter().map(|row| row[0] * row[i]).sum::<f64>() / weight
}

/// Pearson's correlation of prompt and output.
fn correlation(rows: &[[f64; 4]]) -> Option<f64> {
    let (x, y) = (mean(rows, 1), mean(rows, 2));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for row in rows {
        let (dx, dy) = (row[1] - x, row[2] - y);
        xx += row[0] * dx * dx;
        yy += row[0] * dy * dy;
        xy += row[0] * dx * dy;
    }
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// The largest distance of two distribution functions, of weighted rows of the same total.
fn distance(full: &[[f64; 4]], reduced: &[[f64; 4]], i: usize) -> f64 {
    let ordered = |rows: &[[f64; 4]]| {
        let mut of: Vec<(f64, f64)> = rows.iter().map(|row| (row[i], row[0])).collect();
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        of
    };
    let (full, reduced) = (ordered(full), ordered(reduced));
    let total: f64 = full.iter().map(|(_, weight)| weight).sum();
    let (mut a, mut b) = (full.iter().peekable(), reduced.iter().peekable());
    let (mut below, mut most) = (0.0f64, 0.0f64);
    while let Some(at) = match (a.peek(), b.peek()) {
        (Some((x, _)), Some((y, _))) => Some(x.min(*y)),
        (Some((x, _)), None) | (None, Some((x, _))) => Some(*x),
        (None, None) => None,
    } {
        while let Some((_, weight)) = a.next_if(|(x, _)| *x <= at) {
            below += weight;
        }
        while let Some((_, weight)) = b.next_if(|(x, _)| *x <= at) {
            below -= weight;
        }
        most = most.max((below / total).abs());
    }
    most
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::{Dist, Seed};
    use proptest::prelude::*;

    use super::*;

    /// Long tails that go together, some cached, a spike at a limit.
    fn sample(rows: u32, cached: bool) -> JointLengths {
        let mut stream = Seed::new(5).stream("points");
        let prompt = Dist::by_mean_cv(1800.0, 1.8).unwrap();
        let noise = Dist::by_mean_cv(1.4, 0.9).unwrap();
        let mut lengths = JointLengths::default();
        for i in 0..rows {
            let prompt = prompt.sample(&mut stream).clamp(1.0, 120_000.0).round();
            let output = if i % 11 == 0 {
                1000.0
            } else {
                (prompt.sqrt() * noise.sample(&mut stream)).round()
            };
            let hit = (prompt * stream.uniform() * 0.9).round() as u32;
            lengths.push(prompt as u32, cached.then_some(hit), output as u32, 1.0);
        }
        lengths
    }

    #[test]
    fn few_points_keep_means_dependence_and_distribution() {
        let points = sample(40_000, true).points(512).unwrap();
        assert_eq!(points.points.len(), 512);
        assert_eq!(points.requests, 40_000.0);
        let close = |[full, few]: [f64; 2]| (few / full - 1.0).abs() < 1e-3;
        let (prompt, output) = (points.prompt_mean, points.output_mean);
        assert!(close(prompt) && close(output), "{prompt:?} {output:?}");
        assert!(points.cached_mean.is_some_and(close), "{:?}", points.cached_mean);
        let [full, few] = points.correlation.unwrap();
        assert!((full - few).abs() < 0.01, "{full} {few}");
        let distances = [points.ks_prompt, points.ks_output, points.ks_cached.unwrap()];
        assert!(distances.iter().all(|ks| *ks < 0.01), "{distances:?}");
        let weight: f64 = points.points.iter().map(|p| p.weight).sum();
        assert!((weight - 40_000.0).abs() < 1e-6);
    }

    /// One row that does not say what was cached makes it unknown for all, and zero for none.
    #[test]
    fn unknown_is_not_zero() {
        let mut lengths = sample(100, true);
        lengths.push(10, None, 5, 1.0);
        let points = lengths.points(512).unwrap();
        assert!(points.points.iter().all(|p| p.cached.is_none()));
        assert!(points.ks_cached.is_none() && points.cached_mean.is_none());
        assert!((points.cached_known - 100.0 / 101.0).abs() < 1e-12);
        assert_eq!(JointLengths::default().points(512), None);
    }

    #[test]
    fn few_lengths_stay_as_they_are() {
        let mut lengths = JointLengths::default();
        for _ in 0..3 {
            lengths.push(700, Some(512), 40, 1.0);
        }
        lengths.push(80, Some(0), 900, 2.0);
        let points = lengths.points(512).unwrap();
        assert_eq!(
            points.points,
            [
                JointPoint { prompt: 80, cached: Some(0), output: 900, weight: 2.0 },
                JointPoint { prompt: 700, cached: Some(512), output: 40, weight: 3.0 },
            ]
        );
        assert_eq!((points.ks_prompt, points.lengths), (0.0, 2));
        assert_eq!(points.correlation, Some([-1.0, -1.0]));
    }

    #[test]
    fn bins_are_a_hundredth_wide() {
        assert_eq!(bins((63, 127, Some(128))), (63, 127, Some(128)));
        assert_eq!(bins((129, 255, None)), (128, 254, None));
        assert_eq!(bins((100_000, u32::MAX, None)), (99_328, u32::MAX >> 25 << 25, None));
    }

    /// Coarse cells keep sums: dividing the rows changes nothing but the order of additions.
    #[test]
    fn coarse_cells_keep_means() {
        let fine = sample(5_000, false);
        let mut coarse = fine.clone();
        coarse.coarsen();
        let mut halves = JointLengths::default();
        halves.merge(&coarse);
        halves.merge(&fine);
        assert!(halves.coarse && coarse.cells.len() < fine.cells.len());
        let (fine, both) = (fine.points(512).unwrap(), halves.points(512).unwrap());
        assert_eq!(both.requests, 10_000.0);
        assert!((fine.prompt_mean[0] / both.prompt_mean[0] - 1.0).abs() < 1e-12);
    }

    proptest! {
        /// However lengths lie, weights add up, sums hold within a token of the lightest points, and nothing is cached that was not asked.
        #[test]
        fn points_are_sound(rows in prop::collection::vec((0u32..5000, 0u32..5000, 0u32..300, 1u32..4), 1..400), at_most in 1usize..40) {
            let mut lengths = JointLengths::default();
            for (prompt, cached, output, weight) in &rows {
                lengths.push(*prompt, Some(*cached), *output, f64::from(*weight));
            }
            let points = lengths.points(at_most).unwrap();
            prop_assert!(points.points.len() <= at_most);
            let weight: f64 = points.points.iter().map(|p| p.weight).sum();
            prop_assert!((weight - points.requests).abs() < 1e-6);
            prop_assert!(points.points.iter().all(|p| p.cached.unwrap() <= p.prompt));
            prop_assert!(points.ks_prompt <= 1.0 && points.ks_output <= 1.0);
            prop_assert!((points.prompt_mean[0] - points.prompt_mean[1]).abs() <= 0.51);
            prop_assert!((points.output_mean[0] - points.output_mean[1]).abs() <= 0.51);
        }
    }
}
