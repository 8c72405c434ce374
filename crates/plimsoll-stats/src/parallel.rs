//! Work on several threads, whose result does not depend on how many.

use std::sync::atomic::{AtomicU32, Ordering};

/// Calls `work` for each index on up to `threads` threads; results come back in order of the index.
pub fn in_order<T: Send>(threads: usize, n: u32, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let next = AtomicU32::new(0);
    let take = || -> Vec<(u32, T)> {
        let indices = std::iter::from_fn(|| {
            let i = next.fetch_add(1, Ordering::Relaxed);
            (i < n).then_some(i)
        });
        indices.map(|i| (i, work(i))).collect()
    };
    let mut all: Vec<(u32, T)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(n as usize)).map(|_| scope.spawn(take)).collect();
        let mut all = take();
        for other in others {
            match other.join() {
                Ok(part) => all.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        let squares: Vec<u32> = (0..100).map(|i| i * i).collect();
        for threads in [0, 1, 2, 7, 200] {
            assert_eq!(in_order(threads, 100, |i| i * i), squares, "{threads}");
        }
        assert!(in_order(4, 0, |i| i).is_empty());
    }
}
