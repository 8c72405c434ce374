//! How long prompts and outputs are, and whether they go together.

use plimsoll_stats::{Counts, Family, Sample, pearson_of_logs, spearman};

use super::gather::{Joint, Moments, Pair};
use super::result::{
    Budget, Correlation, ExponentialFit, Fits, JointBin, Lengths, LognormalFit, ParetoFit,
    ResidentContext, ShapeFit,
};

/// Lengths summed up; none where there are none.
pub(super) fn lengths(counts: &Counts) -> Option<Lengths> {
    let mean = counts.mean()?;
    let p50 = counts.quantile(0.5)?;
    Some(Lengths {
        n: counts.total(),
        zeros: counts.zeros(),
        mean,
        std: counts.std()?,
        cv: counts.cv(),
        min: counts.min()? as f64,
        p50,
        p90: counts.quantile(0.9)?,
        p95: counts.quantile(0.95)?,
        p99: counts.quantile(0.99)?,
        p99_9: counts.quantile(0.999)?,
        max: counts.max()? as f64,
        sum: counts.sum(),
        mean_over_median: (p50 > 0.0).then(|| mean / p50),
        size_biased_mean: counts.size_biased_mean(),
        top1pct_share_of_tokens: counts.top_share(0.01),
        top5pct_share_of_tokens: counts.top_share(0.05),
        top10pct_share_of_tokens: counts.top_share(0.10),
    })
}

/// Values and weights of counted lengths.
pub(super) fn values(counts: &Counts) -> impl Iterator<Item = (f64, f64)> + '_ {
    counts.iter().map(|(value, weight)| (value as f64, weight))
}

/// Families fitted to values in order; none where none is above zero.
pub(super) fn fits(
    values: impl IntoIterator<Item = (f64, f64)>,
    relative_error: f64,
) -> Option<Fits> {
    let sample = Sample::of(values)?;
    let ks = |family: &Family| sample.distance(family);
    let mut fits = Fits {
        n_positive: sample.weight(),
        lognormal: None,
        gamma: None,
        weibull: None,
        pareto: None,
        exponential: None,
        best_by_ks: String::new(),
        ks_rejected_above: 1.36 / sample.weight().sqrt(),
        best_is_rejected: false,
        relative_error,
    };
    let mut best: Option<(f64, &str)> = None;
    let found = [
        sample.lognormal(),
        sample.gamma(),
        sample.weibull(),
        sample.pareto(),
        Some(sample.exponential()),
    ];
    for family in found.into_iter().flatten() {
        let ks = ks(&family);
        let name = match family {
            Family::Lognormal { mu, sigma } => {
                fits.lognormal = Some(LognormalFit { mu, sigma, ks });
                "lognormal"
            }
            Family::Gamma { shape, scale } => {
                fits.gamma = Some(ShapeFit { shape, scale, ks });
                "gamma"
            }
            Family::Weibull { shape, scale } => {
                fits.weibull = Some(ShapeFit { shape, scale, ks });
                "weibull"
            }
            Family::Pareto { xm, alpha } => {
                fits.pareto = Some(ParetoFit { xm, alpha, ks });
                "pareto"
            }
            Family::Exponential { mean } => {
                fits.exponential = Some(ExponentialFit { mean, ks });
                "exponential"
            }
        };
        if best.is_none_or(|(least, _)| ks < least) {
            best = Some((ks, name));
        }
    }
    let (least, name) = best?;
    fits.best_by_ks = name.to_owned();
    fits.best_is_rejected = least > fits.ks_rejected_above;
    Some(fits)
}

/// Whether prompts and outputs go together; none where no row says both.
pub(super) fn correlation(
    moments: &Moments,
    pairs: &mut dyn Iterator<Item = &Pair>,
    exact: bool,
) -> Option<Correlation> {
    let [n, p, o, pp, oo, po] = moments.sums();
    if n <= 0.0 {
        return None;
    }
    let weighed: Vec<(f64, f64, f64)> = pairs
        .map(|pair| (f64::from(pair.prompt), f64::from(pair.output), f64::from(pair.weight)))
        .collect();
    let (xx, yy, xy) = (pp - p * p / n, oo - o * o / n, po - p * o / n);
    let varies = xx > 0.0 && yy > 0.0;
    Some(Correlation {
        pearson: varies.then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0)),
        spearman: spearman(&weighed),
        pearson_log: pearson_of_logs(&weighed),
        rows: weighed.len() as u64,
        exact,
    })
}

/// The context of a sequence that is decoding.
pub(super) fn resident_context(moments: &Moments) -> Option<ResidentContext> {
    let [n, p, o, _, oo, po] = moments.sums();
    if n <= 0.0 {
        return None;
    }
    let naive = (p + o / 2.0) / n;
    let weighted = (o > 0.0).then(|| (po + oo / 2.0) / o);
    Some(ResidentContext {
        naive_mean_prompt_plus_half_mean_output: naive,
        output_weighted_mean: weighted,
        ratio: weighted.filter(|_| naive > 0.0).map(|weighted| weighted / naive),
    })
}

/// Lengths that nothing bounds.
pub(super) fn budget(
    total: &Counts,
    prompt: &Counts,
    without_limit: u64,
    at_limit: u64,
) -> Option<Budget> {
    let counts = if total.is_empty() { prompt } else { total };
    let (p99, p99_9) = (counts.quantile(0.99)?, counts.quantile(0.999)?);
    let max = counts.max()? as f64;
    let over: f64 =
        values(counts).filter(|(length, _)| *length > p99).map(|(length, w)| length * w).sum();
    let sum = counts.sum();
    Some(Budget {
        max,
        p99_9,
        max_over_p99_9: (p99_9 > 0.0).then(|| max / p99_9),
        rows_beyond_10x_p99: counts.above(10.0 * p99),
        share_of_tokens_over_p99: if sum > 0.0 { over / sum } else { 0.0 },
        rows_without_max_tokens: without_limit,
        rows_at_max_tokens: at_limit,
    })
}

/// Bins that hold something.
pub(super) fn joint(joint: &Joint) -> Vec<JointBin> {
    let from = |bin: usize| if bin == 0 { 0 } else { 1u64 << (bin - 1) };
    let to = |bin: usize| (1u64 << bin) - 1;
    let bins = joint.cells().map(|(prompt, output, [requests, prompts, outputs])| JointBin {
        prompt_from: from(prompt),
        prompt_to: to(prompt),
        output_from: from(output),
        output_to: to(output),
        requests,
        prompt_tokens: prompts,
        output_tokens: outputs,
    });
    bins.collect()
}
