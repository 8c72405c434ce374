//! A plan as manifests, flags, limits and alerts; other people's manifests read and linted.
//!
//! **Owns** the shapes that clusters and gateways read. **Refuses** to decide a number that it writes: every one of them is the plan's.

pub mod doctor;
pub mod found;
pub mod lint;
pub mod manifest;
pub mod target;
pub mod yaml;
