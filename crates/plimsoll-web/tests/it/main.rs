//! The page and the API as their clients meet them: one binary, so that all of it is linked once.

mod admission;
mod api;
mod limits;
mod scaler;
mod socket;
mod support;
