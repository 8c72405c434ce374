//! Who was there, minute by minute.

use std::collections::BTreeMap;

/// Classes and clients that asked for something in a minute. Of clients the first few thousand are watched.
#[derive(Clone, Debug, Default)]
pub(in crate::profile) struct Presence {
    hours: BTreeMap<u64, Vec<Minute>>,
    /// What was marked last: rows in order mark the same again and again.
    latest: Option<(u64, u32, Option<u32>)>,
}

#[derive(Clone, Debug, Default)]
struct Minute {
    classes: Bits,
    clients: Bits,
}

#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

/// Clients that are watched.
const WATCHED: u32 = 4096;
const MINUTE: i64 = 60_000_000_000;
/// Minutes of an hour.
const HOUR: u64 = 60;

impl Presence {
    #[inline]
    pub fn push(&mut self, at: i64, class: u32, client: Option<u32>) {
        let row = ((at / MINUTE) as u64, class, client);
        if self.latest != Some(row) {
            self.latest = Some(row);
            let minute = self.minute(row.0);
            minute.classes.mark(class.min(WATCHED));
            if let Some(client) = client.filter(|client| *client < WATCHED) {
                minute.clients.mark(client);
            }
        }
    }

    /// Marks a client whose class is marked apart.
    pub fn attend(&mut self, minute: u64, client: u32) {
        if client < WATCHED {
            self.minute(minute).clients.mark(client);
        }
    }

    pub fn append(&mut self, later: Self) {
        for (hour, minutes) in later.hours {
            for (i, minute) in minutes.iter().enumerate() {
                let own = self.minute(hour * HOUR + i as u64);
                own.classes.join(&minute.classes);
                own.clients.join(&minute.clients);
            }
        }
    }

    fn minute(&mut self, at: u64) -> &mut Minute {
        let hour = self.hours.entry(at / HOUR);
        let hour = hour.or_insert_with(|| vec![Minute::default(); HOUR as usize]);
        &mut hour[(at % HOUR) as usize]
    }

    /// Classes or clients, whichever are more, that were there both in these minutes before and in those after.
    pub fn on_both_sides(
        &self,
        before: std::ops::RangeInclusive<u64>,
        after: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        let (before, after) = (self.within(before), self.within(after));
        before.classes.common(&after.classes).max(before.clients.common(&after.clients))
    }

    fn within(&self, minutes: std::ops::RangeInclusive<u64>) -> Minute {
        let mut all = Minute::default();
        let there =
            minutes.filter_map(|at| Some(&self.hours.get(&(at / HOUR))?[(at % HOUR) as usize]));
        for minute in there {
            all.classes.join(&minute.classes);
            all.clients.join(&minute.clients);
        }
        all
    }
}

impl Bits {
    fn mark(&mut self, bit: u32) {
        let word = bit as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (bit % 64);
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(own, more)| *own |= more);
    }

    fn common(&self, other: &Self) -> u64 {
        let both = self.0.iter().zip(&other.0).map(|(a, b)| u64::from((a & b).count_ones()));
        both.sum()
    }
}
