//! The trace: what the cycles did, kept in order and written out.
//!
//! [`History`] is the one timeline that stepping back, "why", attempts and reports read;
//! [`json`] writes cycles and states in the notation of the conformance corpus.

pub mod history;
pub mod json;
pub mod kept;
pub mod state;
pub mod thin;

pub use history::{Entry, EntryId, History};
pub use kept::Kept;
pub use state::{PodState, State};
