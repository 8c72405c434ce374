//! What the questions of one command share.

use plimsoll_load::Memo;

/// What was simulated so far, and whether there is time for more.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) memo: &'a Memo,
    /// Asked now and then; once it says no, what was learnt is said.
    pub(crate) go_on: &'a (dyn Fn() -> bool + Sync),
}
