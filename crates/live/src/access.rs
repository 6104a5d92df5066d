//! Which kinds cannot be read, how that affects accuracy, and the role that grants access to all of
//! them.

use std::collections::BTreeMap;

use crate::auxiliary;
use crate::failure::RequestFailure;
use crate::kinds::{self, KindReader};
use crate::list::ListScope;
use crate::write::rights;

/// A kind that could not be listed.
#[derive(Clone, Debug)]
pub struct MissingKindAccess {
    /// The kind and namespace.
    pub place: ListScope,
    /// Why it could not be listed.
    pub failure: RequestFailure,
}

impl MissingKindAccess {
    /// Whether the server does not serve the kind at all, so that no such objects exist.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.failure, RequestFailure::Absent(_))
    }

    /// Whether it is the kind of a plugin, and forbidden. An API server forbids kinds that it does
    /// not serve, too.
    fn is_of_absent_plugin(&self) -> bool {
        matches!(self.place.row.reader, KindReader::Plugin(_))
            && matches!(self.failure, RequestFailure::Refused(_))
    }

    /// `pods in shop`, `nodes`.
    pub fn what(&self) -> String {
        self.place.what()
    }

    /// The reason in a word or two, for a status line.
    pub fn why(&self) -> String {
        match &self.failure {
            RequestFailure::Refused(_) => "forbidden".into(),
            RequestFailure::Absent(_) => "not served".into(),
            failure => failure.to_string(),
        }
    }
}

/// One sentence for each kind that may exist but could not be read. A kind that the server does not
/// serve has no objects, so it is not reported; nor is the kind of a plugin that is forbidden, as
/// most clusters do not have the plugin.
pub fn notices(missing: &[MissingKindAccess]) -> Vec<String> {
    let missing: Vec<&MissingKindAccess> =
        missing.iter().filter(|missing| !missing.is_of_absent_plugin()).collect();
    let unknown = missing.iter().filter(|missing| !missing.is_absent());
    let mut notices: Vec<String> = unknown
        .map(|missing| {
            format!(
                "{} cannot be read ({}): {}",
                missing.what(),
                missing.why(),
                missing.place.row.without
            )
        })
        .collect();
    if missing.iter().any(|missing| matches!(missing.failure, RequestFailure::Refused(_))) {
        notices.push("\"kubestep rbac\" prints the role that allows reading all of it".into());
    }
    notices
}

/// Resources that only `kubestep record` reads.
const EVENTS: &str =
    "  - events  # optional: without it, recordings lack the events of the cluster's schedulers\n";

/// Leases, which no decision depends on.
const LEASES: &str = "\
- apiGroups: [\"coordination.k8s.io\"]
  resources:
  - leases  # may be left out: without it, running schedulers are not shown
  - leasecandidates  # may be left out: versions of its replicas are not shown
  verbs: [list, watch]
";

/// The reviews that the scheduler's HTTP port creates; they are not stored.
const REVIEWS: &str = "\
# authenticates callers of the port, with --authentication-kubeconfig; optional
- apiGroups: [\"authentication.k8s.io\"]
  resources: [tokenreviews]
  verbs: [create]
# authorizes callers of the port, with --authorization-kubeconfig; optional
- apiGroups: [\"authorization.k8s.io\"]
  resources: [subjectaccessreviews]
  verbs: [create]
";

/// The smallest ClusterRole that can watch a cluster, as YAML.
pub fn cluster_role(name: &str) -> String {
    let what = "# What kubestep reads from a cluster. No verb writes.";
    role(name, what, &[EVENTS]) + auxiliary::ROLE
}

/// The smallest ClusterRole that can schedule in a cluster, as YAML.
pub fn scheduler_role(name: &str) -> String {
    let what = "# What \"kubestep schedule\" reads and writes in a cluster.";
    role(name, what, &[]) + &rights::rules() + REVIEWS
}

/// `more` holds lines for resources of the core group that are not kinds of the scheduler.
fn role(name: &str, what: &str, more: &[&str]) -> String {
    let mut yaml = format!(
        "{what}\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n"
    );
    let mut groups: BTreeMap<&str, Vec<&'static kinds::ReadKind>> = BTreeMap::new();
    for row in kinds::all() {
        groups.entry(row.kind.group()).or_default().push(row);
    }
    for (group, rows) in groups {
        yaml += &format!("- apiGroups: [\"{group}\"]\n  resources:\n");
        for row in rows {
            let comment = match row.reader {
                KindReader::Scheduler => String::new(),
                KindReader::Gate(gate) => format!("  # only with the gate {gate}"),
                KindReader::Plugin(plugin) => format!("  # only with the plugin {plugin}"),
                KindReader::Debugger => format!("  # optional: without it, {}", row.without),
            };
            yaml += &format!("  - {}{comment}\n", row.kind.plural());
        }
        more.iter().filter(|_| group.is_empty()).for_each(|line| yaml += line);
        yaml += "  verbs: [list, watch]\n";
    }
    yaml + LEASES
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::Kind;

    fn missing(kind: Kind, failure: RequestFailure) -> MissingKindAccess {
        MissingKindAccess {
            place: ListScope { row: kinds::row(kind).unwrap(), namespace: None },
            failure,
        }
    }

    #[test]
    fn what_is_unknown_is_said() {
        let said = notices(&[
            missing(Kind::CsiNode, RequestFailure::Refused("no".into())),
            missing(Kind::PodGroup, RequestFailure::Absent("no".into())),
            missing(Kind::Service, RequestFailure::Unreachable("cut off".into())),
        ]);
        assert_eq!(
            said,
            [
                "csinodes cannot be read (forbidden): limits on volumes per node are ignored",
                "services cannot be read (cut off): default spread constraints ignore services",
                "\"kubestep rbac\" prints the role that allows reading all of it",
            ]
        );
    }

    #[test]
    fn the_role_allows_every_kind_and_no_write() {
        kubestep_scheduler_plugins::declare_kinds();
        let role: serde_yaml::Value = kubestep_api::yaml::from_str(&cluster_role("x")).unwrap();
        let rules = role["rules"].as_sequence().unwrap();
        let mut resources = 0;
        for rule in rules {
            let verbs = rule["verbs"].as_sequence().unwrap();
            assert!(
                verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap()))
            );
            resources += rule["resources"].as_sequence().unwrap().len();
        }
        let kinds = Kind::all().chain(Kind::all_custom()).count();
        assert_eq!(resources, kinds + 3 + 9, "kinds, events, leases, auxiliary");
    }
}
