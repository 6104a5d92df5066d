//! The contents of a lease: reading and writing it.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::failure::RequestFailure;
use crate::lease::LeaseSettings;
use crate::write::{BodyFormat, WriteCall, micros};
use kubestep_api::Time;

/// A lease, including the fields that we do not know.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeaseRecord {
    /// The identity of the holder; empty if it is not held.
    pub holder: String,
    document: Value,
}

impl LeaseRecord {
    /// The lease held by us from `now` on.
    pub fn new(settings: &LeaseSettings, now: Time, before: Option<&LeaseRecord>) -> LeaseRecord {
        let mut document = match before {
            Some(before) => before.document.clone(),
            None => json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"namespace": settings.namespace, "name": settings.name},
            }),
        };
        let now = micros(now);
        let is_renewal = before.is_some_and(|before| before.holder == settings.identity);
        let spec = &mut document["spec"];
        if !is_renewal {
            let changes = spec["leaseTransitions"].as_i64().unwrap_or(0);
            spec["acquireTime"] = now.as_str().into();
            spec["leaseTransitions"] = (changes + i64::from(before.is_some())).into();
        }
        spec["holderIdentity"] = settings.identity.as_str().into();
        spec["leaseDurationSeconds"] = settings.lease.as_secs().into();
        spec["renewTime"] = now.into();
        LeaseRecord { holder: settings.identity.clone(), document }
    }

    /// The lease without a holder.
    pub fn released(&self, now: Time) -> LeaseRecord {
        let mut document = self.document.clone();
        let spec = &mut document["spec"];
        spec["holderIdentity"] = "".into();
        spec["leaseDurationSeconds"] = 1.into();
        spec["renewTime"] = micros(now).into();
        spec["acquireTime"] = micros(now).into();
        LeaseRecord { holder: String::new(), document }
    }

    /// Parses the server's answer.
    ///
    /// # Errors
    /// It is not a lease.
    pub fn read(text: &[u8]) -> Result<LeaseRecord, RequestFailure> {
        let wrong =
            |error: serde_json::Error| RequestFailure::Malformed(format!("the lease: {error}"));
        let document: Value = serde_json::from_slice(text).map_err(wrong)?;
        let holder = document["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        Ok(LeaseRecord { holder, document })
    }

    /// Whether the lease has been neither renewed nor acquired in between.
    pub fn is_same(&self, other: &LeaseRecord) -> bool {
        self.document["spec"] == other.document["spec"]
    }

    /// How long it is valid without renewal.
    pub fn lease(&self, settings: &LeaseSettings) -> Duration {
        let said = self.document["spec"]["leaseDurationSeconds"].as_u64();
        said.map_or(settings.lease, Duration::from_secs)
    }

    /// The request that creates it.
    pub fn creation(&self, settings: &LeaseSettings) -> WriteCall {
        let (list, _) = path(settings).rsplit_once('/').map_or_else(Default::default, owned);
        self.call(Method::POST, list)
    }

    /// The request that updates it; fails with a conflict if another replica was faster.
    pub fn update(&self, settings: &LeaseSettings) -> WriteCall {
        self.call(Method::PUT, path(settings))
    }

    fn call(&self, method: Method, path: String) -> WriteCall {
        WriteCall { method, path, content: BodyFormat::Json, body: self.document.clone() }
    }
}

fn owned((list, name): (&str, &str)) -> (String, String) {
    (list.to_owned(), name.to_owned())
}

/// The API path of the lease.
pub(super) fn path(settings: &LeaseSettings) -> String {
    let LeaseSettings { namespace, name, .. } = settings;
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(identity: &str) -> LeaseSettings {
        LeaseSettings {
            namespace: "kube-system".into(),
            name: "kube-scheduler".into(),
            identity: identity.into(),
            lease: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    #[test]
    fn a_renewal_keeps_when_it_was_acquired_and_a_takeover_counts() {
        let (ours, theirs) = (settings("a"), settings("b"));
        let first = LeaseRecord::new(&ours, Time(1_000_000), None);
        let spec = |record: &LeaseRecord| record.document["spec"].clone();
        assert_eq!(spec(&first)["leaseTransitions"], 0);
        let renewed = LeaseRecord::new(&ours, Time(2_000_000), Some(&first));
        assert_eq!(spec(&renewed)["acquireTime"], spec(&first)["acquireTime"]);
        assert!(!renewed.is_same(&first));
        let taken = LeaseRecord::new(&theirs, Time(3_000_000), Some(&renewed));
        assert_eq!(spec(&taken)["leaseTransitions"], 1);
        assert_eq!(spec(&taken)["acquireTime"], "1970-01-01T00:00:03.000000Z");
        let released = taken.released(Time(4_000_000));
        assert_eq!((released.holder.as_str(), released.lease(&ours)), ("", Duration::from_secs(1)));
    }

    #[test]
    fn it_is_made_in_its_list_and_changed_in_its_place() {
        let record = LeaseRecord::new(&settings("a"), Time(0), None);
        let list = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        assert_eq!(record.creation(&settings("a")).path, list);
        assert_eq!(record.update(&settings("a")).path, format!("{list}/kube-scheduler"));
    }
}
