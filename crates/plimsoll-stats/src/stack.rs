//! Which accesses a cache would have had, at every size at once.

/// For each access, how many different things were asked for since the same was asked for last; none for the first time.
///
/// A cache of `n` things that forgets what was used least recently holds what has fewer than `n` others after it: an access hits
/// exactly where its distance is below `n` (Mattson, Gecsei, Slutz and Traiger 1970). So one pass answers for every size.
pub fn stack_distances(accesses: &[u64]) -> Vec<Option<u32>> {
    let before = previous(accesses);
    // One mark for each thing, where it was asked for last; marks are counted with a tree of sums (Fenwick 1994).
    let mut marks = Marks(vec![0; accesses.len() + 1]);
    let mut distances = Vec::with_capacity(accesses.len());
    let mut marked = 0;
    for (at, before) in before.into_iter().enumerate() {
        match before {
            None => {
                distances.push(None);
                marked += 1;
            }
            Some(before) => {
                // Marks after that place, without the thing's own, which lies on it.
                distances.push(Some(marked - marks.until(before as usize)));
                marks.add(before as usize, -1);
            }
        }
        marks.add(at, 1);
    }
    distances
}

/// Where the same was asked for last.
fn previous(accesses: &[u64]) -> Vec<Option<u32>> {
    let mut order: Vec<(u64, u32)> = accesses.iter().copied().zip(0u32..).collect();
    // Stable, so equals stay in order of time; and quick where names rise in runs, as those of a prompt's blocks do.
    order.sort_by_key(|(name, _)| *name);
    let mut before = vec![None; accesses.len()];
    for pair in order.windows(2) {
        if pair[0].0 == pair[1].0 {
            before[pair[1].1 as usize] = Some(pair[0].1);
        }
    }
    before
}

struct Marks(Vec<u32>);

impl Marks {
    fn add(&mut self, at: usize, change: i32) {
        let mut i = at + 1;
        while i < self.0.len() {
            self.0[i] = self.0[i].wrapping_add_signed(change);
            i += i & i.wrapping_neg();
        }
    }

    /// Marks up to and with this place.
    fn until(&self, at: usize) -> u32 {
        let (mut i, mut sum) = (at + 1, 0u32);
        while i > 0 {
            sum = sum.wrapping_add(self.0[i]);
            i &= i - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Worked by hand: a b c b a a.
    #[test]
    fn six_accesses_by_hand() {
        let found = stack_distances(&[1, 2, 3, 2, 1, 1]);
        assert_eq!(found, [None, None, None, Some(1), Some(2), Some(0)]);
        assert_eq!(stack_distances(&[]), []);
    }

    proptest! {
        /// A cache of each size, played through, hits where the distance says so.
        #[test]
        fn as_a_cache_would(accesses in prop::collection::vec(0u64..12, 0..120), size in 1usize..14) {
            let distances = stack_distances(&accesses);
            let mut held: Vec<u64> = Vec::new();
            for (access, distance) in accesses.iter().zip(distances) {
                let place = held.iter().position(|own| own == access);
                prop_assert_eq!(place.is_some(), distance.is_some_and(|d| (d as usize) < size));
                if let Some(place) = place {
                    held.remove(place);
                }
                held.insert(0, *access);
                held.truncate(size);
            }
        }
    }
}
