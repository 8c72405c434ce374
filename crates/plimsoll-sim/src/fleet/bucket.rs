//! Limits a minute.

/// Picoseconds of a minute.
const MINUTE: u128 = 60_000_000_000_000;

/// A bucket that holds a minute's worth, and fills again as time passes. It keeps the instant at which it is full: integers only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// As much a minute.
    most: u64,
    full_at: u64,
}

impl Bucket {
    pub(super) fn new(most: u64) -> Self {
        Self { most: most.max(1), full_at: 0 }
    }

    fn time(&self, amount: u64) -> u64 {
        let time = u128::from(amount) * MINUTE / u128::from(self.most);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// How long until so much can be taken; none where it never can.
    pub(super) fn wait(&self, now: u64, amount: u64) -> Option<u64> {
        if amount > self.most {
            return None;
        }
        let full = self.full_at.max(now).saturating_add(self.time(amount));
        Some(full.saturating_sub(now.saturating_add(MINUTE as u64)))
    }

    pub(super) fn take(&mut self, now: u64, amount: u64) {
        self.full_at = self.full_at.max(now).saturating_add(self.time(amount));
    }

    /// Nothing is left at the beginning.
    pub(super) fn take_all(&mut self) {
        self.take(0, self.most);
    }

    /// What was taken and not used.
    pub(super) fn give_back(&mut self, amount: u64) {
        self.full_at = self.full_at.saturating_sub(self.time(amount));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 600 a minute are 10 a second: 600 at once pass, the next in a tenth of a second, 50 in five seconds; 601 never.
    #[test]
    fn a_minutes_worth_at_once_and_then_as_it_fills() {
        let second = 1_000_000_000_000;
        let mut bucket = Bucket::new(600);
        assert_eq!(bucket.wait(0, 600), Some(0));
        bucket.take(0, 600);
        assert_eq!(bucket.wait(0, 1), Some(second / 10));
        assert_eq!(bucket.wait(2 * second, 50), Some(3 * second));
        assert_eq!(bucket.wait(0, 601), None);
        // What was reserved and not used comes back at once.
        bucket.give_back(500);
        assert_eq!(bucket.wait(0, 500), Some(0));
        let mut spent = Bucket::new(600);
        spent.take_all();
        assert_eq!(spent.wait(0, 1), Some(second / 10));
    }
}
