//! What must hold of any fleet's load line.

mod lines;
