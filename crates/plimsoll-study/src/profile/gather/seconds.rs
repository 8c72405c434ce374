//! Demand second by second, in hours that hold something.

use std::collections::BTreeMap;

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::profile) enum Of {
    Requests = 0,
    Prompt = 1,
    Fresh = 2,
    Output = 3,
}

/// Sums of each second from the first arrival of the log on.
#[derive(Clone, Debug, Default)]
pub(in crate::profile) struct Seconds {
    hours: BTreeMap<u64, Hour>,
}

const HOUR: u64 = 3600;
/// With more busy seconds an hour is a table.
const FEW: usize = 900;

#[derive(Clone, Debug)]
enum Hour {
    /// In order of the seconds, those that hold something.
    Few(Vec<Second>),
    /// One for each second.
    Table(Box<[Second]>),
    /// The same where sums are parts of numbers, or too large.
    Large(Box<[[f64; 4]]>),
}

/// What a second holds, in whole numbers of half the size.
#[derive(Clone, Copy, Debug)]
struct Second {
    second: u16,
    requests: u16,
    tokens: [u32; 3],
}

impl Second {
    fn empty(second: u16) -> Self {
        Self { second, requests: 0, tokens: [0; 3] }
    }

    /// With more of them; none where they do not fit.
    fn plus(self, weight: f64, tokens: [u32; 3]) -> Option<Self> {
        if weight.fract() != 0.0 || weight > f64::from(u16::MAX) {
            return None;
        }
        let times = weight as u16;
        let mut sum = self;
        sum.requests = self.requests.checked_add(times)?;
        for (sum, more) in sum.tokens.iter_mut().zip(tokens) {
            *sum = sum.checked_add(more.checked_mul(u32::from(times))?)?;
        }
        Some(sum)
    }

    /// With sums of more of them; none where they are not whole or do not fit.
    fn plus_sums(self, sums: [f64; 4]) -> Option<Self> {
        if sums.iter().any(|sum| sum.fract() != 0.0 || *sum > f64::from(u32::MAX)) {
            return None;
        }
        let [requests, tokens @ ..] = sums.map(|sum| sum as u32);
        let mut sum = self;
        sum.requests = self.requests.checked_add(u16::try_from(requests).ok()?)?;
        for (sum, more) in sum.tokens.iter_mut().zip(tokens) {
            *sum = sum.checked_add(more)?;
        }
        Some(sum)
    }

    fn sums(self) -> [f64; 4] {
        let [prompt, fresh, output] = self.tokens.map(f64::from);
        [f64::from(self.requests), prompt, fresh, output]
    }
}

impl Seconds {
    /// Books a request in its second: prompt, fresh and output tokens.
    #[inline]
    pub fn add(&mut self, second: u64, weight: f64, tokens: [u32; 3]) {
        let hour = self.hours.entry(second / HOUR).or_insert_with(|| Hour::Few(Vec::new()));
        let second = (second % HOUR) as u16;
        let sum = match hour {
            Hour::Table(table) => table[usize::from(second)].plus(weight, tokens).map(|sum| {
                table[usize::from(second)] = sum;
            }),
            Hour::Few(few) => {
                let found = match few.last() {
                    Some(last) if last.second < second => Err(few.len()),
                    Some(last) if last.second == second => Ok(few.len() - 1),
                    _ => few.binary_search_by_key(&second, |own| own.second),
                };
                let old = found.map_or(Second::empty(second), |i| few[i]);
                old.plus(weight, tokens).map(|sum| match found {
                    Ok(i) => few[i] = sum,
                    Err(i) => few.insert(i, sum),
                })
            }
            Hour::Large(_) => None,
        };
        match (sum, &hour) {
            (Some(()), Hour::Few(few)) if few.len() > FEW => hour.tabulate(),
            (Some(()), _) => {}
            (None, _) => {
                let [prompt, fresh, output] = tokens.map(|more| weight * f64::from(more));
                hour.add(second, [weight, prompt, fresh, output]);
            }
        }
    }

    /// Adds what was summed over a second.
    pub fn put(&mut self, second: u64, sums: [f64; 4]) {
        let hour = self.hours.entry(second / HOUR).or_insert_with(|| Hour::Few(Vec::new()));
        let second = (second % HOUR) as u16;
        let sum = match hour {
            Hour::Table(table) => {
                let own = &mut table[usize::from(second)];
                own.plus_sums(sums).map(|sum| *own = sum)
            }
            Hour::Few(few) => {
                let found = few.binary_search_by_key(&second, |own| own.second);
                let old = found.map_or(Second::empty(second), |i| few[i]);
                old.plus_sums(sums).map(|sum| match found {
                    Ok(i) => few[i] = sum,
                    Err(i) => few.insert(i, sum),
                })
            }
            Hour::Large(_) => None,
        };
        match (sum, &hour) {
            (Some(()), Hour::Few(few)) if few.len() > FEW => hour.tabulate(),
            (Some(()), _) => {}
            (None, _) => hour.add(second, sums),
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (hour, sums) in &other.hours {
            match self.hours.get_mut(hour) {
                None => {
                    self.hours.insert(*hour, sums.clone());
                }
                Some(own) => sums.each(|second, sums| own.add(second, sums)),
            }
        }
    }

    /// Sums of all seconds, in the order of [`Of`].
    pub fn total(&self) -> [f64; 4] {
        let mut total = [0.0; 4];
        for seconds in self.hours.values() {
            seconds.each(|_, more| total.iter_mut().zip(more).for_each(|(sum, more)| *sum += more));
        }
        total
    }

    /// Sums of the first windows of so many seconds.
    pub fn windows(&self, width: u64, windows: u64, of: Of) -> Vec<f64> {
        let mut sums = vec![0.0; windows as usize];
        for (hour, seconds) in &self.hours {
            seconds.each(|second, more| {
                let window = (hour * HOUR + u64::from(second)) / width;
                if let Some(sum) = sums.get_mut(window as usize) {
                    *sum += more[of as usize];
                }
            });
        }
        sums
    }
}

impl Hour {
    fn tabulate(&mut self) {
        let mut table: Box<[Second]> = (0..HOUR as u16).map(Second::empty).collect();
        if let Self::Few(few) = self {
            few.iter().for_each(|few| table[usize::from(few.second)] = *few);
            *self = Self::Table(table);
        }
    }

    /// Adds to a second what may not be whole or small.
    fn add(&mut self, second: u16, sums: [f64; 4]) {
        if !matches!(self, Self::Large(_)) {
            let mut large = vec![[0.0; 4]; HOUR as usize].into_boxed_slice();
            self.each(|second, sums| large[usize::from(second)] = sums);
            *self = Self::Large(large);
        }
        if let Self::Large(own) = self {
            let own = &mut own[usize::from(second)];
            own.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Seconds that hold something.
    fn each(&self, mut take: impl FnMut(u16, [f64; 4])) {
        match self {
            Self::Few(few) => few.iter().for_each(|few| take(few.second, few.sums())),
            Self::Table(table) => {
                let held = table.iter().filter(|second| second.requests > 0);
                held.for_each(|held| take(held.second, held.sums()));
            }
            Self::Large(sums) => {
                let seconds = (0u16..).zip(sums.iter());
                seconds.filter(|(_, sums)| sums[0] > 0.0).for_each(|(i, sums)| take(i, *sums));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few seconds, a table and large sums hold the same.
    #[test]
    fn an_hour_in_three_ways() {
        let check = |seconds: &[u64], weights: &[f64], tokens: u32| {
            let mut sums = Seconds::default();
            let mut plain = vec![0.0; 3600];
            for (second, weight) in seconds.iter().zip(weights.iter().cycle()) {
                sums.add(*second, *weight, [tokens, 1, 2]);
                plain[*second as usize] += weight * f64::from(tokens);
            }
            assert_eq!(sums.windows(1, 3600, Of::Prompt), plain);
            let mut twice = sums.clone();
            twice.merge(&sums);
            let half: f64 = twice.windows(60, 60, Of::Output).iter().sum();
            assert_eq!(half, 2.0 * sums.windows(3600, 1, Of::Output)[0]);
        };
        let all: Vec<u64> = (0..5000).map(|i| i * 17 % 3600).collect();
        check(&[5, 3, 5, 3599, 0], &[1.0], 1000);
        check(&all, &[1.0], 1000);
        check(&all, &[1.0, 2.5], 1000);
        check(&all, &[60_000.0, 3.0], 100_000);
    }
}
