//! Rules that hold pods at Permit, assumed on their nodes, until they are allowed or rejected.
//!
//! A hold is kubestep's own: it is asked after all Permit plugins of the profile, and records
//! name it [`HOLD`], so that it is never mistaken for a plugin of upstream. No event requeues a
//! pod that was rejected in its name, as with any rejector that no profile has.

use std::fmt;

use crate::Scheduler;
use crate::host::SchedulerHost;
use kubestep_api::glob::glob;
use kubestep_api::selector::{ParseSelectorError, Selector};
use kubestep_api::{Duration, Time, Uid};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::intervention::HOLD;
use kubestep_framework::runtime::binding::MAX_PERMIT_TIMEOUT;

/// Why a text is no hold rule, or selects no pods.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseHoldError {
    /// The selection is empty.
    #[error("which pods? write app=web, shop/web-0, web-* or *")]
    NoPods,
    /// The selection is written as one by labels, and is not valid.
    #[error(transparent)]
    Labels(#[from] ParseSelectorError),
    /// The text after `for` is not a positive duration.
    #[error("{0:?} is not a duration; write 30s, 5m or 2m30s")]
    NoDuration(String),
    /// The duration is longer than upstream's limit for Permit.
    #[error("Permit holds a pod for {MAX_PERMIT_TIMEOUT} at most, {0} is longer")]
    TooLong(String),
}

/// A selection of pods by their labels or by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodSelection {
    /// The selection as written, trimmed.
    text: String,
    by: SelectedBy,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum SelectedBy {
    Labels(Selector),
    /// The namespace, if one is given, and the name; both are patterns with `*` and `?`.
    Name(Option<String>, String),
}

impl PodSelection {
    /// Reads `app=web`, `tier in (a,b)`, `shop/web-0`, `web-*`, `shop/*`; a leading `-l` always
    /// means labels. A name without a namespace matches in every namespace.
    ///
    /// # Errors
    /// It is empty, or not a label selector.
    pub fn parse(text: &str) -> Result<PodSelection, ParseHoldError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseHoldError::NoPods);
        }
        let labels = match text.strip_prefix("-l") {
            Some(rest) => Some(rest.trim()),
            None => text.contains(['=', '!', ' ', '(']).then_some(text),
        };
        let by = match labels {
            Some(labels) => SelectedBy::Labels(Selector::parse(labels)?),
            None => match text.split_once('/') {
                Some((namespace, name)) => SelectedBy::Name(Some(namespace.into()), name.into()),
                None => SelectedBy::Name(None, text.into()),
            },
        };
        Ok(PodSelection { text: text.into(), by })
    }

    /// Selects exactly this pod.
    pub fn of(pod: NamespacedName) -> PodSelection {
        let by = SelectedBy::Name(Some(pod.namespace.to_string()), pod.name.to_string());
        PodSelection { text: pod.to_string(), by }
    }

    /// Whether it selects the pod.
    pub fn matches(&self, pod: &PodInfo) -> bool {
        let key = pod.key();
        match &self.by {
            SelectedBy::Labels(selector) => selector.matches(&pod.pod.metadata.labels),
            SelectedBy::Name(namespace, name) => {
                namespace.as_ref().is_none_or(|namespace| glob(namespace, &key.namespace))
                    && glob(name, &key.name.text())
            }
        }
    }
}

impl fmt::Display for PodSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A rule that holds pods at Permit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HoldRule {
    /// The pods that it holds.
    pub pods: PodSelection,
    /// How long at most; at most upstream's limit for Permit.
    pub timeout: Duration,
}

impl HoldRule {
    /// Reads `app=web`, or `app=web for 5m`. Without a time it is upstream's limit for Permit,
    /// 15 minutes.
    ///
    /// # Errors
    /// The selection or the time is invalid; the text says why.
    pub fn parse(text: &str) -> Result<HoldRule, ParseHoldError> {
        let (pods, timeout) = match text.rsplit_once(" for ") {
            Some((pods, time)) => (pods, Self::timeout(time.trim())?),
            None => (text, MAX_PERMIT_TIMEOUT),
        };
        Ok(HoldRule { pods: PodSelection::parse(pods)?, timeout })
    }

    fn timeout(text: &str) -> Result<Duration, ParseHoldError> {
        match Duration::parse(text).filter(|timeout| *timeout >= Duration::MICROSECOND) {
            Some(timeout) if timeout <= MAX_PERMIT_TIMEOUT => Ok(timeout),
            Some(_) => Err(ParseHoldError::TooLong(text.to_owned())),
            None => Err(ParseHoldError::NoDuration(text.to_owned())),
        }
    }
}

/// The form that [`HoldRule::parse`] accepts.
impl fmt::Display for HoldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.timeout {
            MAX_PERMIT_TIMEOUT => write!(f, "{}", self.pods),
            timeout => write!(f, "{} for {timeout}", self.pods),
        }
    }
}

/// Ends the hold rules with this selection, or all with `None`; pods that wait only for their
/// hold go on. Returns whether a rule ended, and how many pods were released.
pub fn release(
    scheduler: &mut Scheduler,
    pods: Option<&PodSelection>,
    now: Time,
    host: &mut dyn SchedulerHost,
) -> (bool, usize) {
    let ended = scheduler.interventions.end_hold(pods);
    let held = scheduler.waiting().iter().filter(|waiting| {
        let by_rule = waiting.holds().iter().any(|hold| hold.plugin == HOLD);
        by_rule && pods.is_none_or(|pods| pods.matches(waiting.pod()))
    });
    let held: Vec<Uid> = held.map(|waiting| waiting.pod().uid()).collect();
    for uid in &held {
        scheduler.allow_waiting(*uid, Some(HOLD.into()), now, host);
    }
    (ended, held.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::testing::{PodBuilder, info, pod};

    fn matched(text: &str) -> [bool; 3] {
        let selection = PodSelection::parse(text).unwrap();
        let [mut web, mut other, db] =
            [pod("web-0").label("app", "web"), pod("web-1"), pod("db").label("tier", "back")];
        (web.metadata.namespace, other.metadata.namespace) = ("shop".into(), "test".into());
        [web, other, db].map(|pod| selection.matches(&info(pod)))
    }

    #[test]
    fn pods_are_named_by_label_name_and_pattern() {
        for (text, expected) in [
            ("app=web", [true, false, false]),
            ("-l app", [true, false, false]),
            ("tier in (back,front)", [false, false, true]),
            ("!app", [false, true, true]),
            ("web-*", [true, true, false]),
            ("shop/*", [true, false, false]),
            ("default/db", [false, false, true]),
            ("*", [true, true, true]),
        ] {
            assert_eq!(matched(text), expected, "{text}");
        }
        assert!(PodSelection::parse(" ").is_err() && PodSelection::parse("a in (").is_err());
    }

    #[test]
    fn rules_read_back_as_they_are_written() {
        for text in ["app=web", "shop/web-0", "web-* for 30s", "a in (b,c) for 5m0s"] {
            assert_eq!(HoldRule::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(HoldRule::parse("a").unwrap().timeout, MAX_PERMIT_TIMEOUT);
        let error = HoldRule::parse("a for 16m").unwrap_err();
        assert_eq!(error.to_string(), "Permit holds a pod for 15m0s at most, 16m is longer");
        assert!(
            HoldRule::parse("a for ever").unwrap_err().to_string().contains("is not a duration")
        );
    }
}
