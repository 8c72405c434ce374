//! Step times against arithmetic by hand, and what always holds.

mod answers;
mod by_hand;
mod fit;
mod properties;
mod support;
