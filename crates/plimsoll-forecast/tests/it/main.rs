//! Forecasts of demands whose truth is known.

mod bad_input;
mod support;
mod synthetic;
mod truths;
