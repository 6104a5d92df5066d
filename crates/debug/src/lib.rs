//! The debugger: a session on a simulated cluster, with a position that can be moved step by
//! step through what was recorded, and beyond its end by running more cycles.
//!
//! Cycles run at full speed and are recorded whole; stepping only moves the [`Position`].
//! That is why backward is as easy as forward. States of the cluster are not recorded: a
//! session is its loaded cluster and the log of what was done to it ([`timeline`]), which is
//! done again from the nearest copy (`checkpoint`) to see an earlier state or to go on from
//! it.

pub mod breakpoint;
pub mod capacity;
mod checkpoint;
pub mod decision;
pub mod diff;
pub mod edit;
pub mod expect;
pub mod fix;
pub mod fork;
pub mod frames;
pub mod input;
pub mod ledger;
pub mod margin;
pub mod preview;
pub mod session;
pub mod timeline;
pub mod timer;
pub mod times;
pub mod trace;
pub mod why;

pub use frames::{Depth, Position};
pub use input::{Change, Input};
pub use session::{Circle, Continued, Ran, Restoring, Search, Session};
pub use timeline::{Step, Stop, Timeline};
pub use timer::{Timer, TimerKind};
