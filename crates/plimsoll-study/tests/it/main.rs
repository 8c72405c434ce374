//! Studies against each other.

mod hand_out;
mod steady;
