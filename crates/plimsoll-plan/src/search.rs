//! The least whole number for which a question holds, when chance blurs the answers.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// An answer for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether it holds, as far as one can tell.
    pub holds: bool,
    /// Whether more effort could not change that.
    pub sure: bool,
}

/// Where the edge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The largest number, below what is planned, that surely fails.
    pub fails: Option<u32>,
    /// The numbers between, of which nobody is sure.
    pub unsure: Range<u32>,
    /// The smallest that surely holds.
    pub holds: Option<u32>,
    /// The number to plan with: the smallest that surely holds; where none is sure, the smallest that holds at best effort. No number above it was seen to fail.
    /// `None` where the largest of the range fails.
    pub planned: Option<u32>,
    /// Whether `planned` surely holds, and the number before it surely fails or is out of range.
    pub proven: bool,
}

/// The least number in `range` for which the question holds. Truth is monotone (what holds for a number holds for larger ones), answers need not be.
///
/// The search brackets from `hint` by steps that grow, bisects, and then asks again at the edge, with efforts `0..efforts`, until answers are sure. An answer is asked for
/// once: the same number and effort are never asked twice.
///
/// ```
/// use plimsoll_plan::{Reply, least};
///
/// let ask = |n: u32, _effort: u32| Ok::<_, ()>(Reply { holds: n >= 37, sure: true });
/// let bracket = least(1..=1000, 30, 1, ask)?;
/// assert_eq!((bracket.fails, bracket.planned, bracket.proven), (Some(36), Some(37), true));
/// # Ok::<(), ()>(())
/// ```
pub fn least<E>(
    range: RangeInclusive<u32>,
    hint: u32,
    efforts: u32,
    ask: impl FnMut(u32, u32) -> Result<Reply, E>,
) -> Result<Bracket, E> {
    let (low, high) = (*range.start(), *range.end());
    if low > high {
        let unsure = low..low;
        return Ok(Bracket { fails: None, unsure, holds: None, planned: None, proven: false });
    }
    let mut asked = Asked { replies: BTreeMap::new(), efforts: efforts.max(1), ask };
    let guess = bracket(low, high, hint, &mut asked)?;
    // Each round starts above a number that failed for good, so rounds come to an end.
    let mut floor = low;
    let mut from = guess;
    loop {
        let Some(edge) = settle_edge(floor, high, from, &mut asked)? else { break };
        sharpen(floor, high, edge, &mut asked)?;
        // A number above the edge that was seen to fail is asked again, with all effort.
        let mut above = None;
        for n in asked.failing_above(edge) {
            if !asked.best(n)?.holds {
                above = Some(n);
            }
        }
        match above {
            Some(n) if n < high => {
                floor = n + 1;
                from = n + 1;
            }
            Some(_) | None => break,
        }
    }
    Ok(asked.conclude(low, high))
}

struct Asked<F> {
    /// By number: the reply at each effort so far.
    replies: BTreeMap<u32, Vec<Reply>>,
    efforts: u32,
    ask: F,
}

impl<E, F: FnMut(u32, u32) -> Result<Reply, E>> Asked<F> {
    /// The best reply so far, asked for at the least effort where there is none.
    fn first(&mut self, n: u32) -> Result<Reply, E> {
        match self.replies.get(&n).and_then(|r| r.last()) {
            Some(reply) => Ok(*reply),
            None => self.more(n),
        }
    }

    /// One effort more.
    fn more(&mut self, n: u32) -> Result<Reply, E> {
        let replies = self.replies.entry(n).or_default();
        let effort = u32::try_from(replies.len()).unwrap_or(u32::MAX);
        let reply = (self.ask)(n, effort)?;
        replies.push(reply);
        Ok(reply)
    }

    /// A sure reply, or the one at the greatest effort.
    fn best(&mut self, n: u32) -> Result<Reply, E> {
        let mut reply = self.first(n)?;
        while !reply.sure && self.replies[&n].len() < self.efforts as usize {
            reply = self.more(n)?;
        }
        Ok(reply)
    }

    fn failing_above(&self, n: u32) -> Vec<u32> {
        let above = self.replies.range(n..).filter(|(m, _)| **m > n);
        above.filter(|(_, r)| r.last().is_some_and(|r| !r.holds)).map(|(m, _)| *m).collect()
    }

    fn conclude(&self, low: u32, high: u32) -> Bracket {
        let last = || self.replies.iter().filter_map(|(n, r)| r.last().map(|r| (*n, *r)));
        let failed = last().filter(|(_, r)| !r.holds).map(|(n, _)| n).max();
        let clear = |n: u32| failed.is_none_or(|f| n > f);
        let holds = last().find(|(n, r)| r.holds && r.sure && clear(*n)).map(|(n, _)| n);
        let planned = holds.or(last().find(|(n, r)| r.holds && clear(*n)).map(|(n, _)| n));
        let fails = last()
            .filter(|(n, r)| !r.holds && r.sure && planned.is_none_or(|p| *n < p))
            .map(|(n, _)| n)
            .max();
        let start = fails.map_or(low, |f| f.saturating_add(1));
        let end = holds.unwrap_or(high.saturating_add(1)).max(start);
        let proven = holds.is_some_and(|h| h == low || fails.is_some_and(|f| f + 1 == h));
        Bracket { fails, unsure: start..end, holds, planned, proven }
    }
}

/// A number that seems to be the edge, at the least effort.
fn bracket<E, F: FnMut(u32, u32) -> Result<Reply, E>>(
    low: u32,
    high: u32,
    hint: u32,
    asked: &mut Asked<F>,
) -> Result<u32, E> {
    let mut at = hint.clamp(low, high);
    // Growing by 1.3, and by one at least.
    let step = |n: u32| (n / 10).saturating_mul(3).max(n % 10 * 3 / 10).max(1);
    let (mut fails, mut holds) = (None, None);
    if asked.first(at)?.holds {
        holds = Some(at);
        while at > low {
            at = at.saturating_sub(step(at)).max(low);
            if !asked.first(at)?.holds {
                fails = Some(at);
                break;
            }
            holds = Some(at);
        }
    } else {
        fails = Some(at);
        while at < high {
            at = at.saturating_add(step(at)).min(high);
            if asked.first(at)?.holds {
                holds = Some(at);
                break;
            }
            fails = Some(at);
        }
    }
    let (Some(mut no), Some(mut yes)) = (fails, holds) else {
        return Ok(holds.unwrap_or(high));
    };
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if asked.first(middle)?.holds { yes = middle } else { no = middle }
    }
    Ok(yes)
}

/// From a guess to a number that holds at best effort while the one before does not; `None` where `high` fails.
fn settle_edge<E, F: FnMut(u32, u32) -> Result<Reply, E>>(
    low: u32,
    high: u32,
    guess: u32,
    asked: &mut Asked<F>,
) -> Result<Option<u32>, E> {
    let mut at = guess.clamp(low, high);
    let mut step = 1;
    let (mut no, mut yes);
    if asked.best(at)?.holds {
        loop {
            yes = at;
            if at == low {
                return Ok(Some(low));
            }
            at = at.saturating_sub(step).max(low);
            step = step.saturating_mul(2);
            if !asked.best(at)?.holds {
                no = at;
                break;
            }
        }
    } else {
        loop {
            no = at;
            if at == high {
                return Ok(None);
            }
            at = at.saturating_add(step).min(high);
            step = step.saturating_mul(2);
            if asked.best(at)?.holds {
                yes = at;
                break;
            }
        }
    }
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if asked.best(middle)?.holds { yes = middle } else { no = middle }
    }
    Ok(Some(yes))
}

/// Where the edge is unsure, the nearest sure answers on both sides.
fn sharpen<E, F: FnMut(u32, u32) -> Result<Reply, E>>(
    low: u32,
    high: u32,
    edge: u32,
    asked: &mut Asked<F>,
) -> Result<(), E> {
    let (mut unsure, mut at, mut step) = (edge, edge, 1u32);
    while !asked.best(at)?.sure && at < high {
        unsure = at;
        at = at.saturating_add(step).min(high);
        step = step.saturating_mul(2);
    }
    if asked.best(at)?.sure {
        let mut sure = at;
        while sure - unsure > 1 {
            let middle = unsure + (sure - unsure) / 2;
            let reply = asked.best(middle)?;
            if reply.sure && reply.holds { sure = middle } else { unsure = middle }
        }
    }
    if edge == low {
        return Ok(());
    }
    let (mut unsure, mut at, mut step) = (edge - 1, edge - 1, 1u32);
    while !asked.best(at)?.sure && at > low {
        unsure = at;
        at = at.saturating_sub(step).max(low);
        step = step.saturating_mul(2);
    }
    if asked.best(at)?.sure {
        let mut sure = at;
        while unsure > sure && unsure - sure > 1 {
            let middle = sure + (unsure - sure) / 2;
            let reply = asked.best(middle)?;
            if reply.sure && !reply.holds { sure = middle } else { unsure = middle }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn run(
        range: RangeInclusive<u32>,
        hint: u32,
        efforts: u32,
        mut reply: impl FnMut(u32, u32) -> Reply,
    ) -> (Bracket, usize) {
        let mut seen = BTreeSet::new();
        let bracket = least(range.clone(), hint, efforts, |n, effort| {
            assert!(range.contains(&n) && effort < efforts);
            assert!(seen.insert((n, effort)), "{n} was asked twice with effort {effort}");
            Ok::<_, ()>(reply(n, effort))
        });
        (bracket.unwrap(), seen.len())
    }

    #[test]
    fn a_sure_question_is_bracketed_to_one() {
        for edge in [1, 2, 3, 17, 99, 100] {
            for hint in [0, 1, 5, 60, 100, 5000] {
                let (b, _) = run(1..=100, hint, 3, |n, _| Reply { holds: n >= edge, sure: true });
                assert_eq!(b.planned, Some(edge));
                assert_eq!(b.holds, Some(edge));
                assert_eq!(b.fails, (edge > 1).then(|| edge - 1));
                assert!(b.proven && b.unsure.is_empty());
            }
        }
    }

    #[test]
    fn a_good_hint_is_cheap() {
        let (b, asked) = run(1..=1_000_000, 1000, 1, |n, _| Reply { holds: n >= 1003, sure: true });
        assert_eq!(b.planned, Some(1003));
        assert!(asked <= 14, "{asked}");
    }

    #[test]
    fn nothing_holds() {
        let (b, _) = run(1..=50, 10, 2, |_, _| Reply { holds: false, sure: true });
        assert_eq!((b.fails, b.holds, b.planned, b.proven), (Some(50), None, None, false));
        assert_eq!(b.unsure, 51..51);
        let (b, _) = run(5..=5, 10, 2, |_, _| Reply { holds: true, sure: true });
        assert_eq!((b.fails, b.planned, b.proven), (None, Some(5), true));
        #[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
        let (b, _) = run(5..=4, 10, 2, |_, _| Reply { holds: true, sure: true });
        assert_eq!(b.planned, None);
    }

    #[test]
    fn what_nobody_is_sure_of_is_kept_apart() {
        // The edge is at 40; within 3 of it, nobody is ever sure.
        let (b, _) = run(1..=200, 80, 4, |n, _| Reply { holds: n >= 40, sure: n.abs_diff(40) > 3 });
        assert_eq!((b.fails, b.holds, b.planned), (Some(36), Some(44), Some(44)));
        assert_eq!(b.unsure, 37..44);
        assert!(!b.proven);
        let (b, _) = run(1..=200, 80, 4, |n, _| Reply { holds: n >= 40, sure: false });
        assert_eq!((b.fails, b.holds, b.planned), (None, None, Some(40)));
    }

    #[test]
    fn effort_settles_the_edge() {
        // At little effort everything above 30 seems to hold; only at the greatest does the truth show.
        let (b, _) = run(1..=200, 20, 3, |n, effort| Reply {
            holds: if effort < 2 { n >= 30 } else { n >= 47 },
            sure: effort == 2,
        });
        assert_eq!((b.fails, b.planned, b.proven), (Some(46), Some(47), true));
    }

    proptest! {
        /// Whatever the answers: no loop, no panic, nothing is asked twice, and nothing above the plan was seen to fail.
        #[test]
        fn noise_does_no_harm(bits in proptest::collection::vec(any::<(bool, bool)>(), 240), hint in 0u32..90) {
            let reply = |n: u32, effort: u32| {
                let (holds, sure) = bits[(n * 3 + effort) as usize];
                Reply { holds, sure }
            };
            let mut last = BTreeMap::new();
            let (b, _) = run(1..=79, hint, 3, |n, effort| {
                let r = reply(n, effort);
                last.insert(n, r);
                r
            });
            if let Some(planned) = b.planned {
                prop_assert!(last.iter().all(|(n, r)| *n < planned || r.holds));
                prop_assert!(b.fails.is_none_or(|f| f < planned));
            }
            if b.proven {
                prop_assert_eq!(b.planned, b.holds);
            }
        }

        /// Noise near the edge, less of it with effort: the plan is close to the truth.
        #[test]
        fn the_plan_is_near_the_truth(edge in 10u32..300, hint in 1u32..400, seed in any::<u64>()) {
            let (b, _) = run(1..=400, hint, 3, |n, effort| {
                let blur = 8 >> effort;
                let mix = (u64::from(n) * 31 + u64::from(effort)).wrapping_mul(seed | 1) >> 33;
                let near = n.abs_diff(edge) <= blur;
                let holds = if near { mix.is_multiple_of(2) } else { n >= edge };
                Reply { holds, sure: !near }
            });
            let planned = b.planned.unwrap();
            prop_assert!(planned >= edge, "{planned} < {edge}");
            prop_assert!(planned <= edge + 9, "{planned} >> {edge}");
        }
    }
}
