//! Whether two numbers go together.

/// Pearson's correlation of pairs with weights; none where one of them never varies.
pub fn pearson(pairs: &[(f64, f64, f64)]) -> Option<f64> {
    let total: f64 = pairs.iter().map(|(_, _, w)| w).sum();
    let mean = |of: fn(&(f64, f64, f64)) -> f64| {
        pairs.iter().map(|pair| pair.2 * of(pair)).sum::<f64>() / total
    };
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let mut sums = (0.0, 0.0, 0.0);
    for (a, b, w) in pairs {
        let (a, b) = (a - x, b - y);
        sums = (sums.0 + w * a * a, sums.1 + w * b * b, sums.2 + w * a * b);
    }
    let (xx, yy, xy) = sums;
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// Pearson's correlation of the logarithms of pairs that are both above zero.
pub fn pearson_of_logs(pairs: &[(f64, f64, f64)]) -> Option<f64> {
    let positive = pairs.iter().filter(|(x, y, _)| *x > 0.0 && *y > 0.0);
    let logs: Vec<(f64, f64, f64)> =
        positive.map(|(x, y, w)| (libm::log(*x), libm::log(*y), *w)).collect();
    pearson(&logs)
}

/// Spearman's correlation: Pearson's of the ranks, where equals share the mean of theirs.
pub fn spearman(pairs: &[(f64, f64, f64)]) -> Option<f64> {
    let x = ranks(pairs, |pair| pair.0);
    let y = ranks(pairs, |pair| pair.1);
    let ranked: Vec<(f64, f64, f64)> =
        x.into_iter().zip(y).zip(pairs).map(|((x, y), pair)| (x, y, pair.2)).collect();
    pearson(&ranked)
}

/// The middle of the weight that each value stands at, among all.
fn ranks(pairs: &[(f64, f64, f64)], of: fn(&(f64, f64, f64)) -> f64) -> Vec<f64> {
    let mut order: Vec<(f64, u32)> =
        pairs.iter().zip(0u32..).map(|(pair, i)| (of(pair), i)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut ranks = vec![0.0; pairs.len()];
    let mut passed = 0.0;
    for equals in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let weight: f64 = equals.iter().map(|(_, i)| pairs[*i as usize].2).sum();
        equals.iter().for_each(|(_, i)| ranks[*i as usize] = passed + weight / 2.0);
        passed += weight;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ones(pairs: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
        pairs.iter().map(|(x, y)| (*x, *y, 1.0)).collect()
    }

    /// `scipy.stats.pearsonr` and `spearmanr`, with ties.
    #[test]
    fn equals_scipy() {
        let pairs = ones(&[(1.0, 5.0), (2.0, 5.0), (2.0, 7.0), (4.0, 1.0), (9.0, 30.0)]);
        assert!((pearson(&pairs).unwrap() - PEARSON).abs() < 1e-12, "{:?}", pearson(&pairs));
        assert!((spearman(&pairs).unwrap() - SPEARMAN).abs() < 1e-12, "{:?}", spearman(&pairs));
    }
    const PEARSON: f64 = 0.873_549_328_991_004_7;
    const SPEARMAN: f64 = 0.289_473_684_210_526_4;

    /// A weight of three is three equal pairs.
    #[test]
    fn weights_are_copies() {
        let weighed = [(1.0, 5.0, 3.0), (2.0, 4.0, 1.0), (8.0, 6.0, 2.0)];
        let copies =
            ones(&[(1.0, 5.0), (1.0, 5.0), (1.0, 5.0), (2.0, 4.0), (8.0, 6.0), (8.0, 6.0)]);
        for of in [pearson, spearman] {
            assert!((of(&weighed).unwrap() - of(&copies).unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn what_never_varies_goes_with_nothing() {
        assert_eq!(pearson(&ones(&[(1.0, 2.0), (1.0, 3.0)])), None);
        assert_eq!(spearman(&[]), None);
        let line = ones(&[(1.0, 10.0), (2.0, 20.0), (5.0, 1e9)]);
        assert!((spearman(&line).unwrap() - 1.0).abs() < 1e-12);
        let powers = ones(&[(1.0, 1.0), (2.0, 4.0), (4.0, 16.0), (0.0, 7.0)]);
        assert!((pearson_of_logs(&powers).unwrap() - 1.0).abs() < 1e-12);
    }
}
