//! A short line before those who compute.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::Work;
use crate::failure::Failure;

/// So many are served at once, so many wait, and everybody else is turned away.
pub(crate) struct Line {
    what: &'static str,
    /// Those served and those who wait.
    places: Arc<Semaphore>,
    /// Those served.
    seats: Arc<Semaphore>,
}

impl Line {
    pub(crate) fn new(what: &'static str, served: usize, waiting: usize) -> Self {
        Self {
            what,
            places: Arc::new(Semaphore::new(served + waiting)),
            seats: Arc::new(Semaphore::new(served)),
        }
    }

    /// Whether somebody who comes now is let in.
    pub(crate) fn has_room(&self) -> bool {
        self.places.available_permits() > 0
    }

    /// Waits for a seat, then calls where that blocks nobody.
    ///
    /// The work is told to stop when its time is up and when this future is dropped, which is what happens when a client goes away. Seat and place stay taken until the
    /// call has really returned, so a slow stop never means more at once.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        time: Duration,
        work: &Work,
        call: impl FnOnce(&Work) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| Failure::shed(self.what, 1))?;
        let gone = StopOnDrop(work.clone());
        let inner = work.clone();
        let answer = tokio::time::timeout(time, async {
            let seat = Arc::clone(&self.seats).acquire_owned().await.map_err(|_| Failure::bug())?;
            let called = tokio::task::spawn_blocking(move || {
                let _taken = (place, seat);
                call(&inner)
            });
            // The only ways not to be joined are a panic and the end of the runtime.
            called.await.map_err(|_| Failure::bug())
        });
        let answer = answer.await.unwrap_or_else(|_| Err(Failure::time_was_up(time)));
        drop(gone);
        answer
    }
}

struct StopOnDrop(Work);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
