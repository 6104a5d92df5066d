//! What a scheduler writes to a cluster: shown to the user for confirmation before anything is
//! written, and turned into the role that allows it.

/// A kind of write.
#[derive(Debug)]
pub struct WriteKind {
    /// The API group; "" for the core.
    pub group: &'static str,
    /// The resource, with its subresource after a slash.
    pub resource: &'static str,
    /// The verbs that a Role has to allow.
    pub verbs: &'static [&'static str],
    /// What it is for, as a sentence.
    pub what: &'static str,
}

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    what: &'static str,
) -> WriteKind {
    WriteKind { group, resource, verbs, what }
}

const LEASES: &str = "leases";

/// All writes of `kubestep schedule`, with the right that each needs.
pub const TABLE: &[WriteKind] = &[
    right("", "pods/binding", &["create"], "pods are bound to nodes"),
    right(
        "",
        "pods/status",
        &["patch"],
        "pods get conditions (PodScheduled, DisruptionTarget) and nominated nodes",
    ),
    right("", "pods", &["delete"], "victims of preemption are deleted"),
    right("", "persistentvolumes", &["patch"], "persistent volumes are bound to claims"),
    right(
        "",
        "persistentvolumeclaims",
        &["patch"],
        "persistent volume claims get the selected node",
    ),
    right(
        "resource.k8s.io",
        "resourceclaims",
        &["get", "create", "patch", "delete"],
        "resource claims get a finalizer, and are created for extended resources",
    ),
    right(
        "resource.k8s.io",
        "resourceclaims/status",
        &["patch"],
        "resource claims are allocated and reserved",
    ),
    right(
        "resource.k8s.io",
        "resourceclaims/binding",
        &["patch"],
        "from 1.36 also required to allocate and reserve resource claims",
    ),
    right(
        "scheduling.k8s.io",
        "podgroups/status",
        &["patch"],
        "pod groups get a condition, with the gate GenericWorkload",
    ),
    right("events.k8s.io", "events", &["create", "patch"], "events report the decisions"),
    right(
        "coordination.k8s.io",
        LEASES,
        &["create", "get", "update"],
        "the lease for leader election, with --leader-elect",
    ),
];

/// The writes, one line each; the lease only if one is used.
pub fn lines(takes_lease: bool) -> Vec<String> {
    let line = |right: &WriteKind| {
        let of = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
        format!("{}{of} ({}): {}", right.resource, right.verbs.join(", "), right.what)
    };
    TABLE.iter().filter(|right| takes_lease || right.resource != LEASES).map(line).collect()
}

/// The rules of a role that allows all writes, as YAML.
pub fn rules() -> String {
    let mut yaml = String::new();
    for right in TABLE {
        yaml += &format!(
            "# {}\n- apiGroups: [\"{}\"]\n  resources: [{}]\n  verbs: [{}]\n",
            right.what,
            right.group,
            right.resource,
            right.verbs.join(", ")
        );
    }
    yaml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_reported_and_allowed() {
        let rules: serde_yaml::Value = kubestep_api::yaml::from_str(&rules()).unwrap();
        let rules = rules.as_sequence().unwrap();
        assert_eq!(rules.len(), TABLE.len());
        assert_eq!(rules[0]["resources"][0], "pods/binding");
        assert_eq!(lines(true)[0], "pods/binding (create): pods are bound to nodes");
        let of_lease = |line: &String| line.starts_with("leases.coordination.k8s.io (");
        assert!(lines(true).iter().any(of_lease));
        assert!(!lines(false).iter().any(of_lease));
    }
}
