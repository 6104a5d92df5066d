//! `metadata` and types that all kinds share: object metadata, owner references, conditions, label
//! selectors as written, node selectors as written.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::intern::Symbol;
use crate::macros::{api_structs, is_default, open_enum, or_default};
use crate::map::Key;
use crate::shared::pooled;
use crate::{Annotations, Labels, Name, ResourceVersion, SharedList, SharedText, Time, Uid};

/// kubectl's copy of the whole object, which would double its memory.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// `metav1.ObjectMeta`, without managed fields and without the annotation in which kubectl stores a
/// copy of the object.
#[derive(Clone, Debug, Default, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct ObjectMeta {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub name: Name,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub generate_name: SharedText,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub namespace: Symbol,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub uid: Uid,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub resource_version: ResourceVersion,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub generation: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<Time>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub labels: Labels,
    #[serde(deserialize_with = "annotations", skip_serializing_if = "is_default")]
    pub annotations: Annotations,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub owner_references: SharedList<OwnerReference>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub finalizers: Vec<Symbol>,
}

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
    struct AnnotationsVisitor;
    impl<'de> Visitor<'de> for AnnotationsVisitor {
        type Value = Annotations;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }
        fn visit_unit<E>(self) -> Result<Annotations, E> {
            Ok(Annotations::new())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
            let mut kept = Vec::new();
            while let Some(Key(key)) = map.next_key()? {
                if key == LAST_APPLIED {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    kept.push((key, map.next_value::<Option<SharedText>>()?.unwrap_or_default()));
                }
            }
            Ok(kept.into_iter().collect())
        }
    }
    deserializer.deserialize_any(AnnotationsVisitor)
}

api_structs! {
    /// `metav1.OwnerReference`.
    pub struct OwnerReference {
        pub api_version: Symbol,
        pub kind: Symbol,
        pub name: Name,
        pub uid: Uid,
        pub controller: Option<bool>,
        pub block_owner_deletion: Option<bool>,
    }

    /// A condition of a pod, node, claim or pod group (`PodCondition`, `metav1.Condition`, …).
    pub struct Condition {
        pub type_: Symbol,
        pub status: ConditionStatus,
        pub reason: Symbol,
        pub message: String,
        pub observed_generation: i64,
        pub last_probe_time: Option<Time>,
        pub last_transition_time: Option<Time>,
    }

    /// `metav1.LabelSelector` as written; matching is in [`crate::selector`].
    pub struct LabelSelector {
        pub match_labels: Labels,
        pub match_expressions: Vec<LabelSelectorRequirement>,
    }

    /// One expression of a label selector.
    pub struct LabelSelectorRequirement {
        pub key: Symbol,
        pub operator: LabelSelectorOperator,
        pub values: Vec<Name>,
    }

    /// `v1.NodeSelector`: terms are ORed.
    pub struct NodeSelector {
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// One term: all its expressions and fields must match; an empty term matches nothing.
    pub struct NodeSelectorTerm {
        pub match_expressions: Vec<NodeSelectorRequirement>,
        pub match_fields: Vec<NodeSelectorRequirement>,
    }

    /// One expression of a node selector term.
    pub struct NodeSelectorRequirement {
        pub key: Symbol,
        pub operator: NodeSelectorOperator,
        pub values: Vec<Name>,
    }

    /// `v1.ObjectReference`, as in a volume's `claimRef`.
    pub struct ObjectReference {
        pub api_version: Symbol,
        pub kind: Symbol,
        pub namespace: Symbol,
        pub name: Name,
        pub uid: Uid,
        pub resource_version: ResourceVersion,
        pub field_path: Symbol,
    }
}

pooled!(Vec<OwnerReference>);

open_enum! {
    /// `status` of a condition; kinds of their own may write other values.
    pub enum ConditionStatus { True = "True", False = "False", Unknown = "Unknown" }
}

open_enum! {
    /// Operators of label selectors; an unknown one makes the selector invalid.
    pub enum LabelSelectorOperator {
        In = "In", NotIn = "NotIn", Exists = "Exists", DoesNotExist = "DoesNotExist",
    }
}

open_enum! {
    /// Operators of node selectors; an unknown one is a parse error of its term.
    pub enum NodeSelectorOperator {
        In = "In", NotIn = "NotIn", Exists = "Exists", DoesNotExist = "DoesNotExist",
        Gt = "Gt", Lt = "Lt",
    }
}

impl ObjectMeta {
    /// The owner that controls this object (`metav1.GetControllerOf`).
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}

/// The condition of that type, if there is one.
pub fn find_condition(conditions: &[Condition], type_: Symbol) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectls_copy_of_the_object_is_not_kept() {
        let metadata: ObjectMeta = crate::yaml::from_str(&format!(
            "{{name: a, annotations: {{a: b, n: null, {LAST_APPLIED}: '{{}}', 1: c}}}}"
        ))
        .unwrap();
        assert_eq!(metadata.annotations, Annotations::from([("a", "b"), ("n", ""), ("1", "c")]));
        for absent in ["{}", "{annotations: null}", "{annotations: {}}"] {
            let metadata: ObjectMeta = crate::yaml::from_str(absent).unwrap();
            assert_eq!(metadata, ObjectMeta::default(), "{absent}");
        }
        let json: ObjectMeta = serde_json::from_str(r#"{"annotations":null}"#).unwrap();
        assert_eq!(json, ObjectMeta::default());
        assert!(serde_json::from_str::<ObjectMeta>(r#"{"annotations":[]}"#).is_err());
    }

    #[test]
    fn the_controller_is_the_owner_that_says_so() {
        let metadata: ObjectMeta = crate::yaml::from_str(
            "ownerReferences: [{kind: A, name: a}, {kind: B, name: b, controller: true}]",
        )
        .unwrap();
        assert_eq!(metadata.controller().map(|owner| owner.kind.as_str()), Some("B"));
        assert_eq!(ObjectMeta::default().controller(), None);
    }

    #[test]
    fn conditions_are_found_by_type() {
        let conditions: Vec<Condition> =
            crate::yaml::from_str("[{type: A, status: 'False'}, {type: B, status: 'True'}]")
                .unwrap();
        let found = find_condition(&conditions, "B".into()).map(|condition| condition.status);
        assert_eq!(found, Some(ConditionStatus::True));
        assert_eq!(find_condition(&conditions, "C".into()), None);
    }
}
