//! Breakpoints and watches: where the debugger stops, forward and backward, and what it shows when
//! a value changes.
//!
//! They are queries on the recording, not hooks in the engine: cycles run at full speed and are
//! recorded completely. A breakpoint that is set afterwards therefore reports how often it would
//! have stopped, and stepping back finds the same hits as stepping forward.

pub mod condition;
pub mod definition;
mod error;
pub mod file;
mod grain;
mod hits;
mod list;
pub mod location;
pub mod message;
mod outcome;
mod recording;
mod sample;
#[cfg(test)]
mod tests;
pub mod values;
pub mod variables;
mod watch;

pub use definition::{BreakpointKind, Definition, HitAction, Hits};
pub use error::BreakpointError;
pub use list::{Breakpoints, Hit, ListedBreakpoint};
pub use outcome::CycleEvent;
pub use recording::{Moment, RecordedRun};
pub use watch::Subject;
