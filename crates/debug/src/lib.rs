//! The debugger: a session on a simulated cluster, with a position that moves step by step through
//! the recording and, past its end, by running more cycles.
//!
//! Cycles run at full speed and are recorded completely; stepping only moves the [`Position`], so
//! stepping backward is as simple as forward. States of the cluster are not recorded: a session
//! consists of its loaded cluster and the log of its inputs ([`timeline`]). To show an earlier
//! state or to continue from it, the log is replayed from the nearest copy (`checkpoint`).

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
pub use session::{Continued, Livelock, Ran, Restoring, Search, Session};
pub use timeline::{Step, Stop, Timeline};
pub use timer::{Timer, TimerKind};
