//! The trace: the recorded cycles, in order and as JSON.
//!
//! [`History`] is the one timeline that stepping back, "why", attempts and reports read; [`json`]
//! writes cycles and states in the format of the conformance corpus.

pub mod history;
pub mod json;
pub mod offset_list;
pub mod state;
pub mod thin;

pub use history::{Entry, EntryId, History};
pub use offset_list::OffsetList;
pub use state::{PodState, PodStates};
