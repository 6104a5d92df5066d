//! Feature gates as on kube-scheduler's command line: repeated flags, gates with the name of a
//! component, and gates that do not affect scheduling, since all components of a cluster may get
//! the same flag.

use kubestep_config::features::parse_bool;
use kubestep_config::{Feature, FeatureGateError};

/// The feature gates of kube-scheduler 1.31 to 1.36, one per line; those that concern decisions may be
/// missing.
const KNOWN: &str = include_str!("gates.txt");
/// The gate for CBOR at the serving port, and the one for its stage.
const CBOR: [&str; 2] = ["CBORServingAndStorage", "AllAlpha"];

/// The parsed feature gates.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gates {
    /// In the form of all commands: the gates that affect the scheduler, and unknown ones, so that
    /// they are rejected.
    pub scheduler: Option<String>,
    /// Whether the serving port offers CBOR.
    pub cbor: bool,
    /// Names of gates without an effect here.
    pub idle: Vec<String>,
}

/// Parses the gates.
///
/// # Errors
/// A gate that the scheduler does not use has no value, or one that is not a boolean.
pub(super) fn read(given: &[String]) -> Result<Gates, FeatureGateError> {
    let parts = given.iter().flat_map(|text| text.split(',')).map(str::trim);
    let (mut scheduler, mut others) = (Vec::new(), Vec::new());
    for part in parts.filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("kube:").unwrap_or(part);
        let name = part.split('=').next().unwrap_or_default();
        let known = KNOWN.lines().any(|known| known == name);
        match known && Feature::from_name(name).is_none() {
            true => others.push(pair(part)?),
            false => scheduler.push(part),
        }
    }
    let stages = scheduler.iter().filter_map(|part| pair(part).ok());
    let all: Vec<(&str, bool)> = others.iter().copied().chain(stages).collect();
    let set = |name| all.iter().rev().find(|row| row.0 == name).map(|row| row.1);
    let idle = others.iter().map(|(name, _)| *name).filter(|name| *name != CBOR[0]);
    Ok(Gates {
        idle: idle.map(str::to_owned).collect(),
        scheduler: Some(scheduler.join(",")).filter(|text| !text.is_empty()),
        cbor: CBOR.into_iter().find_map(set).unwrap_or(false),
    })
}

fn pair(part: &str) -> Result<(&str, bool), FeatureGateError> {
    let Some((name, value)) = part.split_once('=') else {
        return Err(FeatureGateError::NoValue(part.to_owned()));
    };
    let (name, value) = (name.trim(), value.trim());
    let bad = || FeatureGateError::BadValue { name: name.to_owned(), value: value.to_owned() };
    Ok((name, parse_bool(value).ok_or_else(bad)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Result<Gates, String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        super::read(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn gates_of_others_are_left_out() {
        let gates = read(&["kube:MemoryQoS=true,GangScheduling=true", "Typo=true"]).unwrap();
        assert_eq!(gates.scheduler.as_deref(), Some("GangScheduling=true,Typo=true"));
        assert_eq!(gates.idle, ["MemoryQoS"]);
        let of_older_versions = read(&["CPUManager=true"]).unwrap();
        assert_eq!(of_older_versions.idle, ["CPUManager"]);
        let of_the_server = read(&["AllowUnsafeMalformedObjectDeletion=true"]).unwrap();
        assert_eq!(of_the_server.idle, ["AllowUnsafeMalformedObjectDeletion"]);
        assert_eq!(read(&[]).unwrap().scheduler, None);
        assert!(read(&["MemoryQoS=perhaps"]).unwrap_err().contains("\"perhaps\""));
        assert!(read(&["MemoryQoS"]).unwrap_err().contains("has no value"));
    }

    #[test]
    fn cbor_at_the_port_has_a_gate() {
        let cbor = |given: &str| {
            let gates = read(&[given]).unwrap();
            assert_eq!(gates.idle, [""; 0]);
            gates.cbor
        };
        assert!(!cbor("") && cbor("CBORServingAndStorage=true") && cbor("AllAlpha=true"));
        assert!(!cbor("CBORServingAndStorage=false,AllAlpha=true"));
    }
}
