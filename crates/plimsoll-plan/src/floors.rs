//! Replicas needed by the hour, compiled into few windows with a constant floor each.

use plimsoll_units::{Usd, UsdPerHour};

/// Hours with one floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first hour.
    pub from: usize,
    /// How many hours; in floors that repeat every day, they may run past midnight.
    pub hours: usize,
    /// Replicas to keep.
    pub floor: u32,
}

/// Windows that follow each other, with a floor in each that is never below what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floors {
    /// In order.
    pub windows: Vec<Window>,
    /// Replica-hours of the floors.
    pub replica_hours: u64,
    /// Replica-hours of the floors beyond what is needed.
    pub waste: u64,
    /// What the replica-hours cost.
    pub cost: Usd,
}

/// Floors that repeat every day, as schedules do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Days {
    /// Of every day, or of Monday to Friday where the weekend has its own. Hours are those of the day.
    pub weekday: Floors,
    /// Of Saturday and Sunday.
    pub weekend: Option<Floors>,
}

const DAY: usize = 24;
const WEEK: usize = 168;

impl Floors {
    /// The fewest replica-hours with at most so many windows; exact.
    ///
    /// ```
    /// use plimsoll_plan::Floors;
    /// use plimsoll_units::UsdPerHour;
    ///
    /// let floors = Floors::at_most(&[2, 2, 5, 5, 4, 2], 3, UsdPerHour::picos(0));
    /// assert_eq!(floors.windows.iter().map(|w| w.floor).collect::<Vec<_>>(), [2, 5, 2]);
    /// assert_eq!(floors.waste, 1);
    /// ```
    pub fn at_most(need: &[u32], windows: usize, price: UsdPerHour) -> Self {
        let hours: Vec<Hour> = need.iter().map(|n| Hour { need: *n, times: 1 }).collect();
        let tables = Tables::new(&hours, windows.max(1));
        tables.floors(tables.best(windows.max(1)), 0, needed(need), price)
    }

    /// The fewest windows, up to `most`, beyond which no number of further ones saves `worth` of the cost each.
    pub fn fewest(need: &[u32], most: usize, worth: f64, price: UsdPerHour) -> Self {
        let hours: Vec<Hour> = need.iter().map(|n| Hour { need: *n, times: 1 }).collect();
        let tables = Tables::new(&hours, most.max(1));
        let costs: Vec<u64> = (1..=most.max(1)).map(|k| tables.cost(tables.best(k))).collect();
        tables.floors(tables.best(choose(&costs, worth)), 0, needed(need), price)
    }

    /// The floor of an hour; of the hour of the day where the floors repeat.
    pub fn floor_at(&self, hour: usize) -> u32 {
        let period: usize = self.windows.iter().map(|w| w.hours).sum();
        self.windows
            .iter()
            .find(|w| (hour + period - w.from % period.max(1)) % period.max(1) < w.hours)
            .map_or(0, |w| w.floor)
    }
}

impl Days {
    /// The same windows every day: the need of an hour of the day is the largest of all days. `first` is the hour of the week of `need[0]`, Monday's first being zero.
    pub fn daily(need: &[u32], first: usize, most: usize, worth: f64, price: UsdPerHour) -> Self {
        Self { weekday: round_the_clock(need, first, |_| true, most, worth, price), weekend: None }
    }

    /// The same windows from Monday to Friday, and others on Saturday and Sunday.
    pub fn split(need: &[u32], first: usize, most: usize, worth: f64, price: UsdPerHour) -> Self {
        let weekday = |hour: usize| hour < 5 * DAY;
        Self {
            weekday: round_the_clock(need, first, weekday, most, worth, price),
            weekend: Some(round_the_clock(need, first, |h| !weekday(h), most, worth, price)),
        }
    }
}

/// An hour, or one that comes several times.
#[derive(Clone, Copy)]
struct Hour {
    need: u32,
    times: u64,
}

fn needed(need: &[u32]) -> u64 {
    need.iter().map(|n| u64::from(*n)).sum()
}

/// The smallest number of windows, such that no larger one saves `worth` of the cost for each window on top.
fn choose(costs: &[u64], worth: f64) -> usize {
    let fine = |k: usize| {
        (k + 1..costs.len()).all(|j| {
            let saved = costs[k].saturating_sub(costs[j]) as f64;
            saved <= 0.0 || saved < worth * costs[k] as f64 * (j - k) as f64
        })
    };
    (0..costs.len()).find(|&k| fine(k)).unwrap_or(0) + 1
}

/// A day's floors, with windows that may run past midnight.
fn round_the_clock(
    need: &[u32],
    first: usize,
    counts: impl Fn(usize) -> bool,
    most: usize,
    worth: f64,
    price: UsdPerHour,
) -> Floors {
    let mut day = [Hour { need: 0, times: 0 }; DAY];
    let mut sum = 0;
    for (i, n) in need.iter().enumerate() {
        let week = (first % WEEK + i) % WEEK;
        if counts(week) {
            let hour = &mut day[week % DAY];
            hour.need = hour.need.max(*n);
            hour.times += 1;
            sum += u64::from(*n);
        }
    }
    // Wherever the first window starts, the rest is a line. One window starts at midnight.
    let most = most.max(1);
    let turned: Vec<Tables> = (0..DAY)
        .map(|start| {
            let mut hours = day;
            hours.rotate_left(start);
            Tables::new(&hours, most)
        })
        .collect();
    let best = |k: usize| -> (u64, usize) {
        let cost = |start: usize| turned[start].cost(turned[start].best(k));
        (0..DAY).map(|start| (cost(start), start)).min().unwrap_or((0, 0))
    };
    let costs: Vec<u64> = (1..=most).map(|k| best(k).0).collect();
    let k = choose(&costs, worth);
    let (_, start) = best(k);
    let tables = &turned[start];
    let mut floors = tables.floors(tables.best(k), start, sum, price);
    for window in &mut floors.windows {
        window.from %= DAY;
    }
    floors.windows.sort_by_key(|w| w.from);
    floors
}

/// For every number of windows and every prefix of hours: the fewest replica-hours, and where the last window starts.
struct Tables {
    hours: Vec<Hour>,
    cost: Vec<Vec<u64>>,
    last: Vec<Vec<usize>>,
}

impl Tables {
    fn new(hours: &[Hour], windows: usize) -> Self {
        let n = hours.len();
        let windows = windows.min(n.max(1));
        let mut cost = vec![vec![u64::MAX; n + 1]; windows + 1];
        let mut last = vec![vec![0; n + 1]; windows + 1];
        cost[0][0] = 0;
        for end in 1..=n {
            // The last window grows backwards, its floor and hours with it.
            let (mut floor, mut times) = (0u64, 0u64);
            for start in (0..end).rev() {
                floor = floor.max(u64::from(hours[start].need));
                times += hours[start].times;
                let window = floor.saturating_mul(times);
                for k in 1..=windows {
                    let before = cost[k - 1][start];
                    let sum = before.saturating_add(window);
                    if before != u64::MAX && sum < cost[k][end] {
                        cost[k][end] = sum;
                        last[k][end] = start;
                    }
                }
            }
        }
        Self { hours: hours.to_vec(), cost, last }
    }

    /// The number of windows, up to `k`, with the fewest replica-hours; the fewest windows among equals.
    fn best(&self, k: usize) -> usize {
        let n = self.hours.len();
        (0..=k.min(self.cost.len() - 1)).min_by_key(|&k| (self.cost[k][n], k)).unwrap_or(0)
    }

    fn cost(&self, k: usize) -> u64 {
        self.cost[k][self.hours.len()]
    }

    fn floors(&self, k: usize, offset: usize, needed: u64, price: UsdPerHour) -> Floors {
        let mut windows = Vec::with_capacity(k);
        let mut end = self.hours.len();
        for k in (1..=k).rev() {
            let start = self.last[k][end];
            let floor = self.hours[start..end].iter().map(|h| h.need).max().unwrap_or(0);
            windows.push(Window { from: start + offset, hours: end - start, floor });
            end = start;
        }
        windows.reverse();
        let replica_hours = self.cost(k);
        let picos = u128::from(price.get_picos()) * u128::from(replica_hours);
        let micros = i64::try_from((picos + 500_000) / 1_000_000).unwrap_or(i64::MAX);
        Floors {
            windows,
            replica_hours,
            waste: replica_hours.saturating_sub(needed),
            cost: Usd::micros(micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOLLAR: UsdPerHour = UsdPerHour::picos(1_000_000_000_000);

    /// A day of a service: nights at 2, mornings at 6, a peak of 10.
    fn day() -> Vec<u32> {
        let mut day = vec![2; 7];
        day.extend([6; 3]);
        day.extend([10; 8]);
        day.extend([6; 3]);
        day.extend([2; 3]);
        day
    }

    #[test]
    fn a_day_by_hand() {
        let day = day();
        let one = Floors::at_most(&day, 1, DOLLAR);
        assert_eq!((one.replica_hours, one.windows.len()), (240, 1));
        // Two windows: the night before the peak apart, 7 x 2 + 17 x 10; or 10 hours at 6.
        let two = Floors::at_most(&day, 2, DOLLAR);
        assert_eq!(two.replica_hours, 7 * 2 + 17 * 10);
        let five = Floors::at_most(&day, 9, DOLLAR);
        assert_eq!((five.replica_hours, five.waste, five.windows.len()), (136, 0, 5));
        assert_eq!(five.cost, Usd::micros(136_000_000));
        // The fourth and fifth window save 12 and 12 of some 160.
        let few = Floors::fewest(&day, 8, 0.10, DOLLAR);
        assert_eq!(few.windows.len(), 3);
        assert_eq!(Floors::fewest(&day, 8, 0.02, DOLLAR).windows.len(), 5);
    }

    #[test]
    fn a_dip_needs_two_windows_more_at_once() {
        // One more window saves nothing, two more save half.
        let need: Vec<u32> = [vec![10; 4], vec![1; 16], vec![10; 4]].concat();
        assert_eq!(Floors::fewest(&need, 6, 0.02, DOLLAR).windows.len(), 3);
    }

    #[test]
    fn days_run_past_midnight() {
        // Two weeks of the same day, from a Wednesday at 5 in the morning; the weekend asks for half.
        let first = 2 * 24 + 5;
        let need: Vec<u32> = (first..first + 336)
            .map(|h| {
                let peak = if h % 168 >= 120 { 5 } else { 10 };
                if (8..20).contains(&(h % 24)) { peak } else { 2 }
            })
            .collect();
        let daily = Days::daily(&need, first, 4, 0.02, DOLLAR);
        assert_eq!(daily.weekday.windows.len(), 2);
        assert_eq!(daily.weekday.windows[1], Window { from: 20, hours: 12, floor: 2 });
        assert_eq!((daily.weekday.floor_at(19), daily.weekday.floor_at(7)), (10, 2));
        assert_eq!(daily.weekday.waste, 4 * 12 * 5);
        let split = Days::split(&need, first, 4, 0.02, DOLLAR);
        assert_eq!(split.weekday.waste + split.weekend.as_ref().unwrap().waste, 0);
        assert_eq!(split.weekend.unwrap().floor_at(12), 5);
    }

    #[test]
    fn nothing_to_keep() {
        let floors = Floors::fewest(&[], 3, 0.02, DOLLAR);
        assert_eq!((floors.windows.len(), floors.replica_hours), (0, 0));
        let days = Days::daily(&[], 0, 3, 0.02, DOLLAR);
        assert_eq!(days.weekday.replica_hours, 0);
    }

    /// Every way to cut, tried.
    fn brute(need: &[u32], windows: usize) -> u64 {
        if need.is_empty() {
            return 0;
        }
        if windows == 0 {
            return u64::MAX;
        }
        (1..=need.len())
            .map(|end| {
                let floor = u64::from(need[..end].iter().copied().max().unwrap_or(0));
                (floor * end as u64).saturating_add(brute(&need[end..], windows - 1))
            })
            .min()
            .unwrap()
    }

    proptest! {
        #[test]
        fn exact_and_never_below_need(need in proptest::collection::vec(0u32..9, 0..9), k in 1usize..5) {
            let floors = Floors::at_most(&need, k, DOLLAR);
            prop_assert_eq!(floors.replica_hours, brute(&need, k));
            prop_assert!(floors.windows.len() <= k);
            let mut at = 0;
            for w in &floors.windows {
                prop_assert_eq!(w.from, at);
                at += w.hours;
                prop_assert!(need[w.from..at].iter().all(|n| *n <= w.floor));
            }
            prop_assert_eq!(at, need.len());
            prop_assert_eq!(floors.waste, floors.replica_hours - needed(&need));
        }

        #[test]
        fn days_cover_every_hour(need in proptest::collection::vec(0u32..9, 1..400), first in 0usize..168) {
            let days = Days::split(&need, first, 4, 0.02, DOLLAR);
            let weekend = days.weekend.unwrap();
            let mut sum = 0;
            for (i, n) in need.iter().enumerate() {
                let week = (first + i) % 168;
                let floor = if week < 120 { &days.weekday } else { &weekend }.floor_at(week % 24);
                prop_assert!(floor >= *n);
                sum += u64::from(floor);
            }
            prop_assert_eq!(sum, days.weekday.replica_hours + weekend.replica_hours);
        }
    }
}
