//! The API version in which a kind is written: the first of its versions that the server lists, as
//! when it is read.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::failure::RequestFailure;
use crate::kinds::ReadKind;
use crate::write::call::Calls;
use kubestep_api::Kind;

/// The versions of the kinds that were written so far.
#[derive(Default)]
pub(super) struct ServedVersions(Mutex<BTreeMap<Kind, &'static str>>);

impl ServedVersions {
    fn get(&self, kind: Kind) -> Option<&'static str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).copied()
    }

    fn insert(&self, kind: Kind, version: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, version);
    }
}

impl Calls {
    /// The version in which objects of that kind are written. The first write of a kind asks the
    /// server for at most one object.
    ///
    /// # Errors
    /// The server serves none of the versions, or did not answer.
    pub(super) async fn version_of(&self, row: &ReadKind) -> Result<&'static str, RequestFailure> {
        if let [only] = row.versions {
            return Ok(only);
        }
        if let Some(known) = self.served().get(row.kind) {
            return Ok(known);
        }
        let mut absent = RequestFailure::Absent(format!("no version of {} is known", row.kind));
        for version in row.versions {
            match self.get(&format!("{}limit=1", row.query(version, None))).await {
                Err(failure @ RequestFailure::Absent(_)) => absent = failure,
                answer => {
                    answer?;
                    self.served().insert(row.kind, version);
                    return Ok(version);
                }
            }
        }
        Err(absent)
    }
}
