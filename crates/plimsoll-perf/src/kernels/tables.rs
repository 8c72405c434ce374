//! The tables of one device and engine, and the times of shapes that they have or that lie between those.

use std::cell::OnceCell;

use super::curve::KernelCurve;
use super::file::{KernelColumn, KernelEntry, KernelFamily, KernelFile, KernelKey, KernelTable};

/// Experts with two matrices and not three, by hidden and intermediate size: they stand for no others.
const UNGATED: [(u64, u64); 3] = [(2688, 1856), (2048, 5120), (1024, 2688)];

/// How a time was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelSource {
    /// The shape was measured.
    Sampled,
    /// It lies between measured shapes.
    BetweenShapes,
    /// It is scaled from the nearest shape that was measured.
    ScaledShape,
}

/// Experts: hidden and intermediate size, experts and how many a token goes to, of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertShape {
    /// Of the model.
    pub hidden: u64,
    /// Of one expert.
    pub intermediate: u64,
    /// Experts of a token.
    pub chosen: u64,
    /// Experts in all.
    pub experts: u64,
    /// Devices that share each expert.
    pub tensor: u64,
    /// Groups of experts.
    pub groups: u64,
}

/// Attention heads of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// How wide each is.
    pub width: u64,
    /// The sliding window; none without one.
    pub window: Option<u64>,
}

/// Times of fused experts against tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertCurve {
    curve: KernelCurve,
    /// Tokens of the measured shape for each of this one's: as many a expert.
    tokens: f64,
    /// Weights of this shape for each of the measured one's.
    weights: f64,
    /// How it was come by.
    pub source: KernelSource,
}

impl ExpertCurve {
    /// Seconds of so many tokens.
    pub fn seconds(&self, tokens: f64) -> f64 {
        self.curve.seconds(tokens * self.tokens) * self.weights
    }
}

/// Times of decode attention against sequences and the context of each.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeSurface {
    /// Contexts of the knots.
    pub contexts: Vec<f64>,
    /// Sequences of each row, ascending.
    sequences: Vec<f64>,
    /// Seconds, row by row.
    seconds: Vec<Vec<f64>>,
    /// How it was come by.
    pub source: KernelSource,
}

impl DecodeSurface {
    /// Seconds at each knot for so many sequences with equal contexts: straight between rows, in proportion beyond the last.
    pub fn row(&self, sequences: f64) -> Vec<f64> {
        let last = self.sequences.len() - 1;
        let scaled = |row: &[f64], by: f64| row.iter().map(|s| s * by).collect();
        if sequences >= self.sequences[last] {
            return scaled(&self.seconds[last], sequences / self.sequences[last]);
        }
        let above = self.sequences.partition_point(|own| *own < sequences);
        if above == 0 {
            return self.seconds[0].clone();
        }
        let (a, b) = (self.sequences[above - 1], self.sequences[above]);
        let share = (sequences - a) / (b - a);
        let pairs = self.seconds[above - 1].iter().zip(&self.seconds[above]);
        pairs.map(|(low, high)| low + (high - low) * share).collect()
    }
}

/// Prefill attention of a layer, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillAttention {
    /// Of a step that has prompts.
    pub step: f64,
    /// Of a token of theirs.
    pub token: f64,
    /// Of a pair of a token and one that it sees.
    pub pair: f64,
    /// How it was come by.
    pub source: KernelSource,
}

/// Tokens of a step, and its prompts, up to which prefill attention is fitted.
const PREFILL_TOKENS_MOST: f64 = 20_000.0;
const PROMPTS_MOST: f64 = 16.0;

/// Three coefficients, none below zero, whose sum is off by least in proportion.
fn least_squares(rows: &[([f64; 3], f64)]) -> Option<[f64; 3]> {
    if rows.len() < 6 {
        return None;
    }
    // Scaled by the largest, so that none drowns.
    let scale: [f64; 3] =
        std::array::from_fn(|i| rows.iter().map(|(x, _)| x[i]).fold(0.0, f64::max).max(1e-300));
    let mut best: Option<(f64, [f64; 3])> = None;
    // Each choice of those that are above zero.
    for chosen in 1u32..8 {
        let used: Vec<usize> = (0..3).filter(|i| chosen >> i & 1 == 1).collect();
        let n = used.len();
        let cell = |row: &([f64; 3], f64), i: usize| row.0[used[i]] / scale[used[i]] / row.1;
        let matrix = nalgebra::DMatrix::from_fn(n, n, |i, j| {
            rows.iter().map(|row| cell(row, i) * cell(row, j)).sum::<f64>()
        });
        let right = nalgebra::DVector::from_fn(n, |i, _| rows.iter().map(|row| cell(row, i)).sum());
        let Some(solved) = matrix.lu().solve(&right) else { continue };
        if solved.iter().any(|x| !x.is_finite() || *x < 0.0) {
            continue;
        }
        let off: f64 = rows
            .iter()
            .map(|row| ((0..n).map(|i| cell(row, i) * solved[i]).sum::<f64>() - 1.0).powi(2))
            .sum();
        if best.is_none_or(|(least, _)| off < least) {
            let mut found = [0.0; 3];
            used.iter().enumerate().for_each(|(i, at)| found[*at] = solved[i] / scale[*at]);
            best = Some((off, found));
        }
    }
    best.map(|(_, found)| found)
}

/// The tables of one device and engine.
#[derive(Debug)]
pub struct KernelTables<'f> {
    file: &'f KernelFile<'f>,
    tables: Vec<(&'f KernelEntry, OnceCell<Option<KernelTable>>)>,
}

impl<'f> KernelTables<'f> {
    /// Those of a device and an engine; none where the file has none.
    pub fn of(file: &'f KernelFile<'f>, device: &str, engine: &str) -> Option<Self> {
        let mine = |entry: &&KernelEntry| entry.device == device && entry.engine == engine;
        let tables: Vec<_> =
            file.entries().iter().filter(mine).map(|entry| (entry, OnceCell::new())).collect();
        (!tables.is_empty()).then_some(Self { file, tables })
    }

    /// The engine's version whose kernels of a family were measured.
    pub fn version(&self, family: KernelFamily) -> Option<&str> {
        let (entry, _) = self.tables.iter().find(|(entry, _)| entry.family == family)?;
        Some(&entry.version)
    }

    fn table(&self, family: KernelFamily, format: &str) -> Option<&KernelTable> {
        let is_it = |entry: &KernelEntry| entry.family == family && entry.format == format;
        let (entry, table) = self.tables.iter().find(|(entry, _)| is_it(entry))?;
        table.get_or_init(|| self.file.table(entry).ok()).as_ref()
    }

    /// A product with an n x k matrix, against m: bilinear between measured sizes, in proportion beyond the largest.
    pub fn gemm(&self, format: &str, n: u64, k: u64) -> Option<(KernelCurve, KernelSource)> {
        gemm(self.table(KernelFamily::Gemm, format)?, (n, k), None)
    }

    /// Fused experts, against tokens, where tokens choose experts as `distribution` says.
    pub fn experts(
        &self,
        format: &str,
        shape: &ExpertShape,
        distribution: &str,
    ) -> Option<ExpertCurve> {
        experts(self.table(KernelFamily::Experts, format)?, shape, distribution, false)
    }

    /// Decode attention of heads with a KV cache of a format. Rows end where memory did: the last slope goes on. Longer contexts never take less.
    pub fn decode_attention(&self, format: &str, heads: &HeadShape) -> Option<DecodeSurface> {
        let table = self.table(KernelFamily::DecodeAttention, format)?;
        let place = |name: &str| table.keys.iter().position(|key| key == name);
        let (window, width) = (place("window_size")?, place("head_dim")?);
        let (all, kv) = (place("num_heads")?, place("num_key_value_heads")?);
        let batch = place("batch_size")?;
        let fits = |column: &&KernelColumn| {
            size(&column.key[window]) == Some(heads.window.unwrap_or(0))
                && size(&column.key[width]) == Some(heads.width)
                && size(&column.key[kv]) == Some(heads.kv_heads)
        };
        // The nearest number of query heads: keys and values are what is read.
        let distance = |column: &KernelColumn| {
            size(&column.key[all])
                .map_or(f64::INFINITY, |own| (own as f64 / heads.heads as f64).ln().abs())
        };
        let fitting: Vec<&KernelColumn> = table.columns.iter().filter(fits).collect();
        let nearest = fitting.iter().map(|column| distance(column)).fold(f64::INFINITY, f64::min);
        let mut rows: Vec<(f64, &KernelColumn)> = Vec::new();
        for column in fitting.into_iter().filter(|column| distance(column) <= nearest) {
            let sequences = size(&column.key[batch])? as f64;
            // Of two number formats of the arithmetic the first.
            if rows.iter().all(|(own, _)| (own - sequences).abs() > 0.5) {
                rows.push((sequences, column));
            }
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let longest = rows.iter().map(|(_, column)| column.at.len()).max()?;
        let knots = rows.iter().find(|(_, column)| column.at.len() == longest)?.1.at.clone();
        // A row's context is what came before, and the token itself.
        let contexts: Vec<f64> = knots.iter().map(|at| *at as f64 + 1.0).collect();
        if contexts.len() < 2 {
            return None;
        }
        let seconds = rows.iter().map(|(_, column)| along(&contexts, column)).collect();
        Some(DecodeSurface {
            contexts,
            sequences: rows.iter().map(|(sequences, _)| *sequences).collect(),
            seconds,
            source: if nearest > 1e-9 { KernelSource::ScaledShape } else { KernelSource::Sampled },
        })
    }

    /// Prefill attention of heads with a KV cache of a format, as what a prompt, a token and a pair of tokens take. Fitted to prompts of 64 tokens and more, 20,000 at most in a step.
    pub fn prefill_attention(&self, format: &str, heads: &HeadShape) -> Option<PrefillAttention> {
        let table = self.table(KernelFamily::PrefillAttention, format)?;
        let place = |name: &str| table.keys.iter().position(|key| key == name);
        let (window, width) = (place("window_size")?, place("head_dim")?);
        let (all, kv, batch) =
            (place("num_heads")?, place("num_key_value_heads")?, place("batch_size")?);
        let fits = |column: &&KernelColumn| {
            size(&column.key[window]) == Some(heads.window.unwrap_or(0))
                && size(&column.key[width]) == Some(heads.width)
                && size(&column.key[kv]) == Some(heads.kv_heads)
        };
        let fitting: Vec<&KernelColumn> = table.columns.iter().filter(fits).collect();
        let distance = |column: &KernelColumn| {
            size(&column.key[all])
                .map_or(f64::INFINITY, |own| (own as f64 / heads.heads as f64).ln().abs())
        };
        let nearest = fitting.iter().map(|column| distance(column)).fold(f64::INFINITY, f64::min);
        let mut rows: Vec<([f64; 3], f64)> = Vec::new();
        for column in fitting.into_iter().filter(|column| distance(column) <= nearest) {
            let prompts = size(&column.key[batch])? as f64;
            for (at, seconds) in column.at.iter().zip(&column.seconds) {
                let length = *at as f64;
                let tokens = prompts * length;
                if length >= 64.0 && tokens <= PREFILL_TOKENS_MOST && prompts <= PROMPTS_MOST {
                    let sees = heads.window.map_or(length / 2.0, |window| {
                        let window = window as f64;
                        if length <= window {
                            length / 2.0
                        } else {
                            window - window * window / (2.0 * length)
                        }
                    });
                    // Each prompt is a row of the fit's own: what a step of several shares is taken as of each.
                    rows.push(([1.0, tokens, tokens * sees], *seconds));
                }
            }
        }
        let [step, token, pair] = least_squares(&rows)?;
        let source = if nearest > 1e-9 { KernelSource::ScaledShape } else { KernelSource::Sampled };
        // Operations are in proportion to query heads.
        let by = if nearest > 1e-9 { 1.0f64.max(nearest.exp()) } else { 1.0 };
        Some(PrefillAttention { step, token, pair: pair * by, source })
    }

    /// All-reduce among so many GPUs, against elements: the fastest way that was measured.
    pub fn all_reduce(&self, gpus: u64) -> Option<KernelCurve> {
        let formats = self.tables.iter().filter(|(own, _)| own.family == KernelFamily::AllReduce);
        let mut best: Option<KernelCurve> = None;
        for (entry, _) in formats {
            let table = self.table(KernelFamily::AllReduce, &entry.format)?;
            let place = table.keys.iter().position(|key| key == "num_gpus")?;
            for column in &table.columns {
                if size(&column.key[place]) != Some(gpus) {
                    continue;
                }
                let curve = KernelCurve::new(&column.at, &column.seconds)?;
                // Where most of what layers send lies.
                let at = |curve: &KernelCurve| curve.seconds(65_536.0);
                if best.as_ref().is_none_or(|known| at(&curve) < at(known)) {
                    best = Some(curve);
                }
            }
        }
        best
    }
}

fn size(key: &KernelKey) -> Option<u64> {
    match key {
        KernelKey::Size(size) => Some(*size),
        KernelKey::Word(_) => None,
    }
}

/// Times of a column at these contexts: its own where it has them, the last slope beyond, and never less than before.
fn along(contexts: &[f64], column: &KernelColumn) -> Vec<f64> {
    let own: Vec<(f64, f64)> =
        column.at.iter().zip(&column.seconds).map(|(at, s)| (*at as f64 + 1.0, *s)).collect();
    let mut most = 0.0f64;
    contexts
        .iter()
        .map(|context| {
            let above = own.partition_point(|point| point.0 < *context);
            let (a, b) = match above {
                0 => (own[0], own[0]),
                n if n < own.len() => (own[n - 1], own[n]),
                n if n >= 2 => (own[n - 2], own[n - 1]),
                n => (own[n - 1], own[n - 1]),
            };
            let slope = if b.0 > a.0 { ((b.1 - a.1) / (b.0 - a.0)).max(0.0) } else { 0.0 };
            most = most.max(a.1 + slope * (context - a.0));
            most
        })
        .collect()
}

/// Sizes on either side of one, and how much each weighs; in proportion beyond the largest.
fn around(sizes: &[u64], wanted: u64) -> Vec<(u64, f64)> {
    let above = sizes.partition_point(|own| *own < wanted);
    match sizes.get(above) {
        Some(own) if *own == wanted || above == 0 => vec![(*own, 1.0)],
        None => {
            let last = sizes[sizes.len() - 1];
            vec![(last, wanted as f64 / last as f64)]
        }
        Some(high) => {
            let low = sizes[above - 1];
            let share = (wanted - low) as f64 / (high - low) as f64;
            vec![(low, 1.0 - share), (*high, share)]
        }
    }
}

/// A product between measured ones; `without` leaves a size of n out.
fn gemm(
    table: &KernelTable,
    (n, k): (u64, u64),
    without: Option<u64>,
) -> Option<(KernelCurve, KernelSource)> {
    let sizes = |part: usize| {
        let all = table.columns.iter().filter_map(|column| size(&column.key[part]));
        let mut all: Vec<u64> = all.filter(|own| part != 0 || Some(*own) != without).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (ns, ks) = (sizes(0), sizes(1));
    if ns.is_empty() || ks.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for (n, by_n) in around(&ns, n) {
        for (k, by_k) in around(&ks, k) {
            let key = [KernelKey::Size(n), KernelKey::Size(k)];
            let at = table.columns.binary_search_by(|column| column.key[..].cmp(&key[..])).ok()?;
            let column = &table.columns[at];
            parts.push((KernelCurve::new(&column.at, &column.seconds)?, by_n * by_k));
        }
    }
    let source = match &parts[..] {
        [(_, weight)] if (weight - 1.0).abs() < 1e-12 => KernelSource::Sampled,
        _ => KernelSource::BetweenShapes,
    };
    let parts: Vec<(&KernelCurve, f64)> =
        parts.iter().map(|(curve, weight)| (curve, *weight)).collect();
    Some((KernelCurve::mixed(&parts)?, source))
}

/// The nearest measured shape, read at as many tokens an expert, and as much longer as it has more weights; `others` leaves the shape itself out.
fn experts(
    table: &KernelTable,
    wanted: &ExpertShape,
    distribution: &str,
    others: bool,
) -> Option<ExpertCurve> {
    let place = |name: &str| table.keys.iter().position(|key| key == name);
    let way = place("distribution")?;
    let names = ["hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"];
    let places: Vec<usize> = names.iter().map(|name| place(name)).collect::<Option<_>>()?;
    let shape = |column: &KernelColumn| -> Option<ExpertShape> {
        let of = |i: usize| size(&column.key[places[i]]);
        Some(ExpertShape {
            hidden: of(0)?,
            intermediate: of(1)?,
            chosen: of(2)?,
            experts: of(3)?,
            tensor: of(4)?,
            groups: of(5)?,
        })
    };
    let is_way = |column: &&KernelColumn| matches!(&column.key[way], KernelKey::Word(own) if own == distribution);
    let apart = |own: &ExpertShape| {
        let ln = |a: u64, b: u64| (a as f64 / b as f64).ln();
        let sizes = ln(own.hidden, wanted.hidden) + ln(own.intermediate, wanted.intermediate);
        let experts = ln(own.experts, wanted.experts);
        sizes.abs() + 0.5 * experts.abs() + 0.5 * (ln(own.chosen, wanted.chosen) - experts).abs()
    };
    let ungated = |own: &ExpertShape| UNGATED.contains(&(own.hidden, own.intermediate));
    let near = table.columns.iter().filter(is_way).filter_map(|column| {
        let own = shape(column)?;
        let may = (own.tensor, own.groups) == (wanted.tensor, wanted.groups)
            && if own == *wanted { !others } else { !ungated(&own) && !ungated(wanted) };
        may.then(|| (apart(&own), own, column))
    });
    let (_, own, column) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let of = |shape: &ExpertShape| {
        let share = shape.chosen as f64 / shape.experts as f64;
        (share, (shape.hidden * shape.intermediate) as f64 * shape.experts as f64)
    };
    let ((share, weights), (own_share, own_weights)) = (of(wanted), of(&own));
    Some(ExpertCurve {
        curve: KernelCurve::new(&column.at, &column.seconds)?,
        tokens: share / own_share,
        weights: weights / own_weights,
        source: if own == *wanted { KernelSource::Sampled } else { KernelSource::ScaledShape },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::built_in;

    /// The median and the 90th percentile of what is off.
    fn errors(mut errors: Vec<f64>) -> (f64, f64) {
        assert!(errors.len() > 50, "{}", errors.len());
        errors.sort_by(f64::total_cmp);
        (errors[errors.len() / 2], errors[errors.len() * 9 / 10])
    }

    #[test]
    fn a_measured_shape_is_what_was_measured() {
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        assert_eq!(tables.version(KernelFamily::Gemm), Some("0.24.0"));
        let (curve, source) = tables.gemm("fp8", 5120, 5120).expect("a product");
        assert_eq!(source, KernelSource::Sampled);
        // A jump at the edge, as the source has it.
        let jump = curve.seconds(129.0) / curve.seconds(128.0);
        assert!((jump - 1.552).abs() < 0.01, "{jump}");
        assert!(tables.gemm("fp8", 5121, 5120).expect("one").1 == KernelSource::BetweenShapes);
        // Twice the largest matrix takes twice as long.
        let (large, _) = tables.gemm("bfloat16", 131_072, 4096).expect("a head");
        let (half, _) = tables.gemm("bfloat16", 65_536, 4096).expect("half a head");
        assert!((large.seconds(64.0) / half.seconds(64.0) - 2.0).abs() < 1e-9);
        assert!(tables.gemm("int8", 4096, 4096).is_none());
        assert!(KernelTables::of(&file, "mi300x", "vllm").is_none());
    }

    /// Each size of n is predicted from those on either side of it, at twice the distance that anybody's matrix has.
    #[test]
    fn products_left_out() {
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        for (format, (median, ninth)) in [("bfloat16", (0.045, 0.16)), ("fp8", (0.03, 0.13))] {
            let table = tables.table(KernelFamily::Gemm, format).expect("a table");
            let of = |column: &KernelColumn, part: usize| size(&column.key[part]).expect("a size");
            let (least, most) = table.columns.iter().fold((u64::MAX, 0), |(low, high), column| {
                (low.min(of(column, 0)), high.max(of(column, 0)))
            });
            let mut off = Vec::new();
            for column in &table.columns {
                let (n, k) = (of(column, 0), of(column, 1));
                if n == least || n == most {
                    continue;
                }
                let Some((curve, _)) = gemm(table, (n, k), Some(n)) else { continue };
                let samples = column.at.iter().zip(&column.seconds);
                off.extend(samples.map(|(at, s)| (curve.seconds(*at as f64) / s - 1.0).abs()));
            }
            let found = errors(off);
            assert!(found.0 < median && found.1 < ninth, "{format}: {found:?}");
        }
    }

    /// Each shape of experts is scaled from the nearest other one.
    #[test]
    fn experts_left_out() {
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        let table = tables.table(KernelFamily::Experts, "bfloat16").expect("a table");
        let (mut whole, mut shared) = (Vec::new(), Vec::new());
        for column in &table.columns {
            let of = |name: &str| {
                let place = table.keys.iter().position(|key| key == name).expect(name);
                &column.key[place]
            };
            let number = |name: &str| size(of(name)).expect("a size");
            if of("distribution") != &KernelKey::Word("power_law_1.01".to_owned()) {
                continue;
            }
            let shape = ExpertShape {
                hidden: number("hidden_size"),
                intermediate: number("inter_size"),
                chosen: number("topk"),
                experts: number("num_experts"),
                tensor: number("moe_tp_size"),
                groups: number("moe_ep_size"),
            };
            let Some(near) = experts(table, &shape, "power_law_1.01", true) else { continue };
            assert_eq!(near.source, KernelSource::ScaledShape);
            let samples = column.at.iter().zip(&column.seconds).filter(|(at, _)| **at >= 32);
            let off = if shape.tensor * shape.groups == 1 { &mut whole } else { &mut shared };
            off.extend(samples.map(|(at, s)| (near.seconds(*at as f64) / s - 1.0).abs()));
        }
        let (whole, shared) = (errors(whole), errors(shared));
        assert!(whole.0 < 0.07 && whole.1 < 0.17, "{whole:?}");
        assert!(shared.0 < 0.15 && shared.1 < 0.50, "{shared:?}");
    }

    /// Decodes take longer with more context and with more sequences, and no less than what is read of the cache takes at the speed of memory.
    #[test]
    fn decodes_read_the_cache() {
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        let heads = HeadShape { heads: 32, kv_heads: 8, width: 128, window: None };
        let surface = tables.decode_attention("bfloat16", &heads).expect("a surface");
        assert_eq!(surface.source, KernelSource::Sampled);
        let rows: Vec<Vec<f64>> =
            [1.0, 24.0, 64.0, 100.0].iter().map(|n| surface.row(*n)).collect();
        for row in &rows {
            assert!(row.windows(2).all(|pair| pair[1] >= pair[0]), "{row:?}");
        }
        let last = surface.contexts.len() - 1;
        assert!(rows.windows(2).all(|pair| pair[1][last] > pair[0][last]));
        // Keys and values of 64 sequences, at 4.8 TB/s; the last slope goes on beyond what memory held. Whoever adds up a step holds the sum to its floor.
        let bytes = 64.0 * surface.contexts[last] * (2 * 8 * 128 * 2) as f64;
        assert!(rows[2][last] > 0.98 * bytes / 4.8e12, "{} {}", rows[2][last], bytes / 4.8e12);
        assert!(rows[2][last] < 3.0 * bytes / 4.8e12, "{} {}", rows[2][last], bytes / 4.8e12);
        // Long prompts: a third to all of what arithmetic would take at its peak.
        let prefill = tables.prefill_attention("bfloat16", &heads).expect("coefficients");
        let flops = 2.0 * 2.0 * 32.0 * 128.0 / prefill.pair;
        assert!((300e12..990e12).contains(&flops), "{flops}");
        assert!(prefill.step > 0.0 && prefill.step < 50e-6, "{prefill:?}");
        let other = HeadShape { heads: 28, ..heads };
        let other = tables.decode_attention("bfloat16", &other).expect("a surface");
        assert_eq!(other.source, KernelSource::ScaledShape);
        // Two GPUs and eight.
        let reduce = |gpus| tables.all_reduce(gpus).expect("a curve").seconds(1e6);
        assert!(reduce(2) > 1e-6 && reduce(8) < 1e-3);
        assert!(tables.all_reduce(3).is_none());
    }
}
