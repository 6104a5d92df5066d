//! The debugger: a session on a simulated cluster, with a position that can be moved step by
//! step through what was recorded, and beyond its end by running more cycles.
//!
//! Cycles run at full speed and are recorded whole; stepping only moves the [`Position`].
//! That is why backward is as easy as forward.

pub mod frames;
pub mod session;

pub use frames::{Depth, Position};
pub use session::{Ran, Session};
