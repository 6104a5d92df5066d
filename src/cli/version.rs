//! Which version of kube-scheduler decides, and with which feature gates: what the options say, and
//! where they are silent, what the input records.

use std::ffi::OsStr;

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};

use kubestep_config::versions::{Emulated, EmulationError, NotAVersion, Served};
use kubestep_config::{FeatureGates, KubeVersion};
use kubestep_debug::expect::Test;
use kubestep_source::Captured;

/// The version of kube-scheduler.
#[derive(Args, Debug, Default, Clone)]
pub struct VersionOptions {
    /// Decide as kube-scheduler of this version, 1.31 to 1.37; of any other, as the nearest.
    /// Without it, the version that the cluster, capture, recording or bundle reports, else 1.36
    #[arg(long, value_name = "VERSION", hide_possible_values = true)]
    #[arg(value_parser = VersionParser(kube_version))]
    pub kube_version: Option<Served>,
    /// Use the feature gates of this older version, with their defaults, stages and locks, as
    /// kube-scheduler's flag of that name does; nothing else changes
    #[arg(long, value_name = "VERSION", hide_possible_values = true)]
    #[arg(value_parser = VersionParser(emulated_version))]
    pub emulated_version: Option<Emulated>,
}

/// The version of kube-scheduler and its feature gates.
#[derive(Args, Debug, Default, Clone)]
pub struct Scheduler {
    #[command(flatten)]
    pub version: VersionOptions,
    /// Feature gates that differ from the version's defaults: Name=true,Name=false
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Option<String>,
    /// Whether gates that the version does not have are left out with a notice, because they were
    /// set for another one.
    #[arg(skip)]
    pub adopts_gates: bool,
    /// Gates that are already decided, whatever the options and the input say: one part of the
    /// changes between two versions.
    #[arg(skip)]
    pub decided: Option<FeatureGates>,
}

/// The scheduler that was chosen, and what the reader should know about it.
#[derive(Debug, Clone)]
pub struct ChosenScheduler {
    /// The gates that decide.
    pub gates: FeatureGates,
    /// The release that was asked for, or is that of the input.
    pub release: Served,
    /// The gates that were set, in the format of `--feature-gates`.
    pub set: Option<String>,
    /// What the user has to know about the version, one sentence each.
    pub notices: Vec<String>,
}

impl VersionOptions {
    /// What a scheduler reports about its version at the start, one sentence each; where it is the
    /// server's, [`Scheduler::choose`] may have done so.
    pub fn server_notices(&self, gates: FeatureGates, server_version: &str) -> Vec<String> {
        let Ok(server) = KubeVersion::nearest(server_version) else {
            let words = gates.version_words();
            return vec![format!("kube-scheduler {words}; the API server's version is unknown")];
        };
        let (version, mut lines) = (gates.version(), Vec::new());
        if self.kube_version.is_some() || gates.other_version().is_none() {
            let words = gates.version_words();
            lines.push(format!("kube-scheduler {words}; the API server is {server_version}"));
        }
        if server.exact
            && !(0..=1).contains(&(i16::from(server.version.minor()) - i16::from(version.minor())))
        {
            lines.push(format!(
                "Kubernetes does not support kube-scheduler {version} with an API server of {}: only \
                 the server's version and the one before",
                server.version
            ));
        }
        lines
    }
}

impl Scheduler {
    /// The scheduler for an input: that of the options, or else what the input records about
    /// itself.
    ///
    /// # Errors
    /// The version cannot emulate the other one, or a feature gate cannot be set.
    pub fn choose(&self, captured: &Captured) -> Result<ChosenScheduler> {
        if let Some(gates) = self.decided {
            let release = gates.version().into();
            return Ok(ChosenScheduler { gates, release, set: None, notices: Vec::new() });
        }
        let mut notices = Vec::new();
        let reported = reported(captured);
        let captured = reported.as_ref().unwrap_or(captured);
        let recorded = recorded(captured, &mut notices);
        let release = self.version.kube_version.as_ref().unwrap_or(&recorded).clone();
        if self.version.kube_version.is_none() && release.version != KubeVersion::default() {
            let (version, asked) = (release.version, &release.asked);
            notices.push(match captured.kube_version {
                Some(_) if reported.is_some() => format!(
                    "decides as kube-scheduler {version}, because the cluster's scheduler reports \
                     that version in its lease candidate ({asked})"
                ),
                Some(_) => format!("decides as kube-scheduler {version}, which the input names"),
                None => format!(
                    "decides as kube-scheduler {version}, because that is the version of the \
                     cluster ({asked})"
                ),
            });
        }
        notices.extend(release.notices());
        let mut gates = self.defaults(&release, captured)?;
        let mut set = self.feature_gates.as_ref().or(captured.feature_gates.as_ref()).cloned();
        if let Some(text) = &set
            && !self.adopts(captured, &release, &recorded)
        {
            gates = gates.parsed(text).context("--feature-gates")?;
        } else if let Some(text) = &set {
            let (adopted, ignored) = gates.adopted(text).context("featureGates of the input")?;
            if !ignored.is_empty() {
                set = Some(adopted.as_set()).filter(|gates| !gates.is_empty());
            }
            gates = adopted;
            notices
                .extend(ignored.iter().map(|why| format!("a gate of the input is ignored: {why}")));
        }
        Ok(ChosenScheduler { gates, release, set, notices })
    }

    /// Whether the gates were set for another version.
    fn adopts(&self, captured: &Captured, release: &Served, recorded: &Served) -> bool {
        let emulated = self.version.emulated_version.is_some();
        let other = release.version != recorded.version || !release.exact || emulated;
        let of_input = self.feature_gates.is_none() && captured.feature_gates.is_some();
        self.adopts_gates || of_input && other
    }

    /// The options for a test: those of its document where none are given.
    ///
    /// # Errors
    /// The document's versions are none.
    pub fn or_of_test(&self, test: &Test) -> Result<Scheduler> {
        let mut scheduler = self.clone();
        let options = &mut scheduler.version;
        if scheduler.feature_gates.is_none() {
            scheduler.feature_gates.clone_from(&test.feature_gates);
            scheduler.adopts_gates = options.kube_version.is_some();
        }
        if options.kube_version.is_some() {
            return Ok(scheduler);
        }
        if let Some(text) = &test.kube_version {
            options.kube_version = Some(kube_version(text).context("kubeVersion")?);
        }
        if let (None, Some(text)) = (&options.emulated_version, &test.emulated_version) {
            options.emulated_version = Some(text.parse().context("emulatedVersion")?);
        }
        Ok(scheduler)
    }

    /// The options that are given, as on the command line.
    pub fn describe(&self) -> Vec<String> {
        let VersionOptions { kube_version, emulated_version } = &self.version;
        let version = kube_version.iter().map(|served| format!("--kube-version {}", served.asked));
        let emulated = emulated_version.iter().map(|it| format!("--emulated-version {it}"));
        let gates = self.feature_gates.iter().map(|gates| format!("--feature-gates {gates}"));
        version.chain(emulated).chain(gates).collect()
    }

    /// The defaults of the version. A recorded emulation belongs to the recorded version.
    fn defaults(&self, served: &Served, captured: &Captured) -> Result<FeatureGates> {
        let options = &self.version;
        let of_input = captured.emulated_version.as_deref();
        let of_input = of_input.filter(|_| options.kube_version.is_none());
        let emulated = match (&options.emulated_version, of_input) {
            (Some(emulated), _) => Some(emulated.clone()),
            (None, Some(text)) => Some(text.parse().context("emulatedVersion of the input")?),
            (None, None) => None,
        };
        match emulated {
            Some(emulated) => {
                let is_given = options.emulated_version.is_some();
                let source =
                    if is_given { "--emulated-version" } else { "emulatedVersion of the input" };
                served.emulating(&emulated).context(source)
            }
            None => Ok(served.gates()),
        }
    }
}

/// The input with the version that the cluster's scheduler reports in its lease candidate; `None` if
/// it reports none, or the input names one.
fn reported(captured: &Captured) -> Option<Captured> {
    if captured.kube_version.is_some() {
        return None;
    }
    let spec = &captured.leases.working_candidate("kube-scheduler")?.spec;
    let binary = KubeVersion::nearest(&spec.binary_version).ok()?;
    let emulated = KubeVersion::nearest(&spec.emulation_version).map(|served| served.version);
    let emulated = emulated.ok().filter(|emulated| *emulated != binary.version);
    let emulated = emulated
        .map(|emulated| emulated.to_string())
        .filter(|text| text.parse().is_ok_and(|emulated| binary.emulating(&emulated).is_ok()));
    Some(Captured {
        kube_version: Some(binary.asked),
        emulated_version: captured.emulated_version.clone().or(emulated),
        ..captured.clone()
    })
}

/// The version that an input records; the default one if it records none.
fn recorded(captured: &Captured, notices: &mut Vec<String>) -> Served {
    let text = captured.kube_version.as_ref().unwrap_or(&captured.server_version);
    if text.is_empty() {
        return Served::default();
    }
    KubeVersion::nearest(text).unwrap_or_else(|NotAVersion(text)| {
        let served = Served::default();
        notices.push(format!(
            "the cluster's version {text:?} is not one of Kubernetes: it is taken for {} \
             (--kube-version names another)",
            served.version
        ));
        served
    })
}

/// Parses the version of a release, for options like `--kube-version`.
pub(super) fn release() -> impl TypedValueParser<Value = Served> {
    VersionParser(kube_version)
}

/// Parses a version; completion offers all that are served.
#[derive(Clone, Copy)]
struct VersionParser<T, E>(fn(&str) -> Result<T, E>);

fn kube_version(text: &str) -> Result<Served, NotAVersion> {
    KubeVersion::nearest(text)
}

fn emulated_version(text: &str) -> Result<Emulated, EmulationError> {
    text.parse()
}

impl<T, E> TypedValueParser for VersionParser<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: std::error::Error + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.0.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(KubeVersion::all().map(|version| PossibleValue::new(version.to_string()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config::Feature;

    fn capture(version: &str, gates: &str) -> Captured {
        let feature_gates = Some(gates.to_owned()).filter(|gates| !gates.is_empty());
        Captured { server_version: version.into(), feature_gates, ..Captured::default() }
    }

    fn asked(version: &str) -> Scheduler {
        let kube_version = Some(KubeVersion::nearest(version).unwrap());
        let version = VersionOptions { kube_version, ..VersionOptions::default() };
        Scheduler { version, ..Scheduler::default() }
    }

    fn version(scheduler: &Scheduler, captured: &Captured) -> String {
        scheduler.choose(captured).unwrap().gates.version().to_string()
    }

    #[test]
    fn the_version_is_that_of_the_option_then_of_the_input_then_the_newest_proved() {
        let none = Scheduler::default();
        assert_eq!(version(&none, &Captured::default()), "1.36");
        assert_eq!(version(&none, &capture("v1.33.5-gke.1", "")), "1.33");
        let named = Captured { kube_version: Some("1.32".into()), ..capture("v1.33.5", "") };
        assert_eq!(version(&none, &named), "1.32");
        assert_eq!(version(&asked("1.34"), &named), "1.34");
        let unknown = none.choose(&capture("v0.0.0-master", "")).unwrap();
        assert_eq!(unknown.gates, FeatureGates::default());
        assert!(unknown.notices[0].contains("v0.0.0-master"), "{:?}", unknown.notices);
    }

    #[test]
    fn the_scheduler_itself_knows_its_version_better_than_the_server() {
        let candidate = |name: &str, binary: &str, emulation: &str| {
            serde_json::json!({"metadata": {"name": name}, "spec": {"leaseName": "kube-scheduler",
                "binaryVersion": binary, "emulationVersion": emulation}})
        };
        let of = |holder: &str, candidates: &[serde_json::Value]| {
            let lease = serde_json::json!({"metadata": {"name": "kube-scheduler"},
                "spec": {"holderIdentity": holder}});
            let leases = serde_json::json!({"leases": [lease], "candidates": candidates});
            let leases = serde_json::from_value(leases).unwrap();
            let captured = Captured { leases, ..capture("v1.36.2", "") };
            let chosen = Scheduler::default().choose(&captured).unwrap();
            (chosen.gates.version_words(), chosen.notices.len())
        };
        let (old, new) = (candidate("a", "1.35.6", "1.35.0"), candidate("b", "1.36.2", "1.35.0"));
        assert_eq!(of("a", &[old.clone(), new.clone()]), ("1.35".to_owned(), 1));
        assert_eq!(of("b", &[old.clone(), new.clone()]).0, "1.36 emulating 1.35");
        assert_eq!(of("", std::slice::from_ref(&old)).0, "1.35");
        // Nothing says which one works.
        assert_eq!(of("c", &[old, new]).0, "1.36");
        assert_eq!(of("c", &[candidate("c", "later", "")]).0, "1.36");
    }

    #[test]
    fn gates_of_an_input_follow_it_to_another_version_as_far_as_they_exist() {
        let captured = capture("v1.36.0", "OpportunisticBatching=false");
        let same = Scheduler::default().choose(&captured).unwrap();
        assert_eq!(same.gates.to_string(), "OpportunisticBatching=false");
        let older = asked("1.34").choose(&captured).unwrap();
        assert_eq!((older.gates.to_string().as_str(), older.notices.len()), ("", 1));
        // Set to the default of 1.33, which another version has not.
        let pinned = capture("v1.33.5", "DynamicResourceAllocation=false,DRAPrioritizedList=false");
        let newer = asked("1.34").choose(&pinned).unwrap();
        assert!(!newer.gates.enabled(Feature::DynamicResourceAllocation));
        assert_eq!(newer.set.as_deref(), pinned.feature_gates.as_deref());
        let gates = Some("OpportunisticBatching=false".to_owned());
        let strict = Scheduler { feature_gates: gates, ..asked("1.34") };
        assert!(strict.choose(&captured).is_err());
        assert!(
            Scheduler::default().choose(&capture("v1.34.1", "OpportunisticBatching=1")).is_err()
        );
        let adopts = Scheduler { adopts_gates: true, ..strict };
        assert_eq!(adopts.choose(&captured).unwrap().notices.len(), 1);
    }

    /// A new version has to be named in the help.
    #[test]
    fn the_help_names_the_versions_that_are_served() {
        let command = crate::cli::command();
        let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == "kube_version");
        let help = arg.and_then(Arg::get_help).unwrap().to_string();
        let all = format!("{} to {}", KubeVersion::OLDEST, KubeVersion::NEWEST);
        let default = format!("else {}", KubeVersion::default());
        assert!(help.contains(&all) && help.contains(&default), "{help}");
        assert!(command.get_about().unwrap().to_string().contains(&all));
    }

    #[test]
    fn a_recorded_emulation_belongs_to_the_recorded_version() {
        let emulated_version = Some("1.34".into());
        let captured = Captured { emulated_version, ..capture("v1.36.1", "") };
        let gates = |scheduler: Scheduler| scheduler.choose(&captured).unwrap().gates;
        assert_eq!(gates(Scheduler::default()).emulated().to_string(), "1.34");
        assert_eq!(gates(asked("1.35")).emulated().to_string(), "1.35");
    }
}
