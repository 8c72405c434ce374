//! Tokens in memory, ten seconds at a time.

use std::collections::BTreeMap;

/// Token-microseconds of windows of ten seconds: whole numbers, so that the order of rows does not matter.
#[derive(Clone, Debug, Default)]
pub(in crate::profile) struct Resident {
    hours: BTreeMap<u64, Box<[u64; HOUR]>>,
    pub rows: u64,
    /// Rows that took longer than is followed.
    pub clipped: u64,
}

/// Seconds of a window.
pub(in crate::profile) const WINDOW_S: u64 = 10;
const HOUR: usize = 360;
/// A request is followed for a day.
const LONGEST_S: f64 = 86_400.0;

impl Resident {
    /// A request that holds its prompt from its arrival to its end, and an output that grows evenly from the first token to the end.
    pub fn add(&mut self, at: i64, prompt: u32, output: u32, ttft: f64, e2e: f64, weight: f64) {
        if !(e2e.is_finite() && e2e >= 0.0) {
            return;
        }
        self.rows += 1;
        self.clipped += u64::from(e2e > LONGEST_S);
        let lasts = e2e.min(LONGEST_S);
        let grows_from = if ttft >= 0.0 { ttft.min(e2e) } else { 0.0 };
        let slope = if e2e > grows_from { f64::from(output) / (e2e - grows_from) } else { 0.0 };
        // Tokens times seconds from the arrival until then.
        let held = |t: f64| f64::from(prompt) * t + slope * (t - grows_from).max(0.0).powi(2) / 2.0;
        let arrival = at as f64 / 1e9;
        let mut window = arrival as u64 / WINDOW_S;
        let mut from = 0.0;
        while from < lasts {
            let end = ((window + 1) * WINDOW_S) as f64 - arrival;
            let to = end.min(lasts);
            let micros = (weight * (held(to) - held(from)) * 1e6).round();
            let (hour, i) = (window / HOUR as u64, (window % HOUR as u64) as usize);
            let sum = &mut self.hours.entry(hour).or_insert_with(|| Box::new([0; HOUR]))[i];
            // Weights may be of any size. A sum that stays at its limit is still the same in any order.
            *sum = sum.saturating_add(micros as u64);
            from = to.max(from);
            if end >= lasts {
                break;
            }
            window += 1;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (hour, sums) in &other.hours {
            let own = self.hours.entry(*hour).or_insert_with(|| Box::new([0; HOUR]));
            own.iter_mut().zip(sums.iter()).for_each(|(sum, more)| {
                *sum = sum.saturating_add(*more);
            });
        }
        self.rows += other.rows;
        self.clipped += other.clipped;
    }

    /// Mean tokens of the first windows.
    pub fn windows(&self, windows: u64) -> Vec<f64> {
        let mut means = vec![0.0; windows as usize];
        for (hour, sums) in &self.hours {
            for (i, sum) in sums.iter().enumerate() {
                let window = hour * HOUR as u64 + i as u64;
                if let Some(mean) = means.get_mut(window as usize) {
                    *mean = *sum as f64 / (1e6 * WINDOW_S as f64);
                }
            }
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: 100 tokens from 5 s to 25 s, and 40 more that grow from 15 s on, 4 a second. By 20 s there are 20 of them:
    /// windows hold 500, 1000 + 20 * 5 / 2 and 500 + (20 + 40) / 2 * 5 token-seconds.
    #[test]
    fn a_request_by_hand() {
        let mut resident = Resident::default();
        resident.add(5_000_000_000, 100, 40, 10.0, 20.0, 1.0);
        assert_eq!(resident.windows(4), [50.0, 105.0, 65.0, 0.0]);
    }

    /// A request that stands for far too many does not overflow, and is the same added or merged.
    #[test]
    fn weights_of_any_size() {
        let mut resident = Resident::default();
        resident.add(0, u32::MAX, 0, 0.0, 20.0, 1e300);
        let once = resident.clone();
        resident.add(0, u32::MAX, 0, 0.0, 20.0, 1e300);
        let most = u64::MAX as f64 / 1e7;
        assert_eq!(resident.windows(2), [most, most]);
        resident.merge(&once);
        assert_eq!(resident.windows(2), [most, most]);
    }

    /// What takes no time holds nothing; what takes longer than a day is cut.
    #[test]
    fn no_time_and_too_much() {
        let mut resident = Resident::default();
        resident.add(0, 100, 40, 0.0, 0.0, 1.0);
        assert_eq!(resident.windows(1), [0.0]);
        resident.add(0, 1, 0, 0.0, 1e12, 1.0);
        assert_eq!((resident.rows, resident.clipped), (2, 1));
        assert_eq!(resident.windows(10_000).iter().sum::<f64>(), 8640.0);
    }
}
