//! Fleet programmes against every fleet there is, and large ones.

mod large;
mod programme;
mod support;
