//! Work that takes longer than a request should: started, looked at, cancelled, and its result kept for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::api::described;
use crate::failure::{Failure, problem};
use crate::{Limits, Problem, Refused, Work};

/// Jobs that wait, run, and have ended. When it is dropped, nobody can ask for results any more, and all work is stopped.
pub(crate) struct Jobs {
    board: Arc<Mutex<Board>>,
    seats: Arc<Semaphore>,
    limits: Limits,
}

struct Board {
    last: u64,
    /// By the order in which they were asked for.
    jobs: BTreeMap<u64, Job>,
}

struct Job {
    study: &'static str,
    name: String,
    work: Work,
    /// Of the task that waits for a seat: to let it go before it has one.
    task: AbortHandle,
    began: Option<Instant>,
    ended: Option<Instant>,
    state: State,
}

enum State {
    Waiting,
    Running,
    Done(JobAnswer),
    Failed(Failure),
    Cancelled,
}

/// What a job made.
#[derive(Clone, Debug)]
pub(crate) struct JobAnswer {
    pub(crate) body: Bytes,
    /// Under which name to save it, where it is a page; a JSON document otherwise.
    pub(crate) page: Option<String>,
}

described! {
    /// A job and how far it is.
    #[derive(Debug, Serialize)]
    pub(crate) struct JobDocument {
        /// `plimsoll/job/v1`.
        schema: &'static str,
        /// By which it is asked for.
        pub(crate) id: String,
        /// What is made.
        study: &'static str,
        /// Of which scenario or log.
        name: String,
        /// How it stands.
        state: JobState,
        /// How much of it is done, from 0 to 1.
        done: f64,
        /// How long it has run.
        seconds: f64,
        /// Why it failed.
        diagnostics: Vec<Problem>,
    }
}

described! {
    /// How a job stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum JobState {
        /// For a seat.
        Waiting,
        /// It is being worked on.
        Running,
        /// There is a result.
        Done,
        /// There is none, and why is said.
        Failed,
        /// Nobody wanted it any more.
        Cancelled,
    }
}

/// The time by which jobs are timed and results grow old. No number of an answer depends on it.
fn now() -> Instant {
    Instant::now()
}

impl Jobs {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            board: Arc::new(Mutex::new(Board { last: 0, jobs: BTreeMap::new() })),
            seats: Arc::new(Semaphore::new(limits.jobs)),
            limits: limits.clone(),
        }
    }

    /// Whether another one may come; said before a large upload is read.
    pub(crate) fn room(&self) -> Result<(), Failure> {
        self.board().room(&self.limits)
    }

    /// How many run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.board().counts()
    }

    /// Puts a job into the line.
    pub(crate) fn start(
        &self,
        study: &'static str,
        name: String,
        call: impl FnOnce(&Work) -> Result<JobAnswer, Refused> + Send + 'static,
    ) -> Result<JobDocument, Failure> {
        let mut board = self.board();
        board.room(&self.limits)?;
        board.last += 1;
        let id = board.last;
        let work = Work::default();
        let task = tokio::spawn(run(
            Arc::clone(&self.board),
            Arc::clone(&self.seats),
            self.limits.clone(),
            id,
            work.clone(),
            call,
        ))
        .abort_handle();
        let job = Job { study, name, work, task, began: None, ended: None, state: State::Waiting };
        let document = job.document(id);
        board.jobs.insert(id, job);
        Ok(document)
    }

    /// How a job stands.
    pub(crate) fn look(&self, id: &str) -> Result<JobDocument, Failure> {
        self.with(id, |key, job| job.document(key))
    }

    /// Stops a job that has not ended.
    pub(crate) fn cancel(&self, id: &str) -> Result<JobDocument, Failure> {
        self.with(id, |key, job| {
            job.cancel();
            job.document(key)
        })
    }

    /// What a job made, or why it made nothing.
    pub(crate) fn result(&self, id: &str) -> Result<JobAnswer, Failure> {
        let conflict = |message: &str| {
            Failure::new(StatusCode::CONFLICT, problem("no-result", message.to_owned()))
        };
        self.with(id, |_, job| match &job.state {
            State::Done(answer) => Ok(answer.clone()),
            State::Failed(failure) => Err(failure.clone()),
            State::Waiting | State::Running => Err(conflict("the job has not ended").after(1)),
            State::Cancelled => Err(conflict("the job was cancelled")),
        })?
    }

    fn with<T>(&self, id: &str, then: impl FnOnce(u64, &mut Job) -> T) -> Result<T, Failure> {
        let mut board = self.board();
        let key = id.parse().map_err(|_| Failure::missing("such job"))?;
        let job = board.jobs.get_mut(&key).ok_or_else(|| {
            let mut failure = Failure::missing("such job");
            failure.problems[0].help =
                Some("results are kept for a while only: start it again".to_owned());
            failure
        })?;
        Ok(then(key, job))
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        let mut board = lock(&self.board);
        board.tidy(&self.limits);
        board
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in lock(&self.board).jobs.values_mut() {
            job.cancel();
        }
    }
}

/// A board is never left half changed, so a panic elsewhere does not spoil it.
fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a seat, computes, and writes down what came of it.
async fn run(
    board: Arc<Mutex<Board>>,
    seats: Arc<Semaphore>,
    limits: Limits,
    id: u64,
    work: Work,
    call: impl FnOnce(&Work) -> Result<JobAnswer, Refused> + Send + 'static,
) {
    let Ok(seat) = seats.acquire_owned().await else { return };
    match lock(&board).jobs.get_mut(&id) {
        Some(job) if matches!(job.state, State::Waiting) => {
            job.state = State::Running;
            job.began = Some(now());
        }
        Some(_) | None => return,
    }
    let inner = work.clone();
    // The seat is free when the call has returned, which may be a while after it was told to stop.
    let called = tokio::task::spawn_blocking(move || {
        let _taken = seat;
        call(&inner)
    });
    let state = match tokio::time::timeout(limits.job_time, called).await {
        Ok(Ok(Ok(answer))) if answer.body.len() > limits.kept_bytes => {
            let message = format!("the result is larger than {} bytes", limits.kept_bytes);
            State::Failed(Failure::new(
                StatusCode::INSUFFICIENT_STORAGE,
                problem("too-large", message),
            ))
        }
        Ok(Ok(Ok(answer))) => State::Done(answer),
        Ok(Ok(Err(refused))) => State::Failed(refused.into()),
        Ok(Err(_)) => State::Failed(Failure::bug()),
        Err(_) => {
            work.stop();
            let mut failure = Failure::time_was_up(limits.job_time);
            failure.problems[0].message =
                format!("time was up: a job has {} s", limits.job_time.as_secs_f64());
            State::Failed(failure)
        }
    };
    let mut board = lock(&board);
    if let Some(job) = board.jobs.get_mut(&id).filter(|job| matches!(job.state, State::Running)) {
        job.state = state;
        job.ended = Some(now());
    }
    board.tidy(&limits);
}

impl Board {
    fn room(&self, limits: &Limits) -> Result<(), Failure> {
        let (running, waiting) = self.counts();
        if running + waiting >= limits.jobs + limits.jobs_waiting {
            return Err(Failure::shed("jobs", 5));
        }
        Ok(())
    }

    fn counts(&self) -> (usize, usize) {
        let count = |wanted: fn(&State) -> bool| {
            self.jobs.values().filter(|job| wanted(&job.state)).count()
        };
        (count(|s| matches!(s, State::Running)), count(|s| matches!(s, State::Waiting)))
    }

    /// Forgets the oldest results, where they are too old, too many or too large together.
    fn tidy(&mut self, limits: &Limits) {
        let now = now();
        self.jobs.retain(|_, job| {
            job.ended.is_none_or(|ended| now.duration_since(ended) <= limits.kept_time)
        });
        let mut ended: Vec<(Instant, u64, usize)> = self
            .jobs
            .iter()
            .filter_map(|(id, job)| job.ended.map(|at| (at, *id, job.bytes())))
            .collect();
        ended.sort_unstable();
        let mut bytes: usize = ended.iter().map(|(_, _, bytes)| bytes).sum();
        let mut count = ended.len();
        for (_, id, size) in ended {
            if count <= limits.kept && bytes <= limits.kept_bytes {
                break;
            }
            self.jobs.remove(&id);
            count -= 1;
            bytes -= size;
        }
    }
}

impl Job {
    fn cancel(&mut self) {
        match self.state {
            // What it holds, such as an uploaded file, goes with the task.
            State::Waiting => self.task.abort(),
            State::Running => self.work.stop(),
            State::Done(_) | State::Failed(_) | State::Cancelled => return,
        }
        self.state = State::Cancelled;
        self.ended = Some(now());
    }

    fn bytes(&self) -> usize {
        match &self.state {
            State::Done(answer) => answer.body.len(),
            State::Waiting | State::Running | State::Failed(_) | State::Cancelled => 0,
        }
    }

    fn document(&self, id: u64) -> JobDocument {
        let (state, diagnostics) = match &self.state {
            State::Waiting => (JobState::Waiting, Vec::new()),
            State::Running => (JobState::Running, Vec::new()),
            State::Done(_) => (JobState::Done, Vec::new()),
            State::Failed(failure) => (JobState::Failed, failure.problems.clone()),
            State::Cancelled => (JobState::Cancelled, Vec::new()),
        };
        let done = if state == JobState::Done { 1.0 } else { f64::from(self.work.done()) / 1000.0 };
        let seconds = self.began.map_or(0.0, |began| {
            self.ended.unwrap_or_else(now).duration_since(began).as_secs_f64()
        });
        JobDocument {
            schema: "plimsoll/job/v1",
            id: id.to_string(),
            study: self.study,
            name: self.name.clone(),
            state,
            done,
            seconds,
            diagnostics,
        }
    }
}
