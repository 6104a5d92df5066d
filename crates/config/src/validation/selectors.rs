//! The rules for selectors in the arguments of plugins.
//!
//! Upstream: `pkg/scheduler/apis/config/validation/validation_pluginargs.go`,
//! `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.

use serde_json::Value;

use crate::path::FieldPath;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    LabelSelector, Name, NodeAffinity, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm,
};

use super::Findings;
use super::names::{label_value, qualified_name};

impl Findings {
    /// A label selector must compile.
    pub fn label_selector(&mut self, selector: &LabelSelector, path: &FieldPath) {
        for (key, value) in selector.match_labels.iter() {
            let path = path.field("matchLabels").key(&key);
            label_key(self, &path, &key);
            let value = value.text();
            reasons(self, &path, &value, label_value(&value));
        }
        for (i, requirement) in selector.match_expressions.iter().enumerate() {
            let path = path.field("matchExpressions").index(i);
            let operator = requirement.operator.as_str();
            expression(self, &path, requirement.key, operator, &requirement.values, false);
        }
    }

    /// A node affinity: the selector of every term must compile.
    pub fn node_affinity(&mut self, affinity: &NodeAffinity, path: &FieldPath) {
        if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
            let path = path
                .field("requiredDuringSchedulingIgnoredDuringExecution")
                .field("nodeSelectorTerms");
            for (i, term) in required.node_selector_terms.iter().enumerate() {
                node_term(self, term, &path.index(i));
            }
        }
        let path = path.field("preferredDuringSchedulingIgnoredDuringExecution");
        let preferred = &affinity.preferred_during_scheduling_ignored_during_execution;
        for (i, term) in preferred.iter().enumerate().filter(|(_, term)| term.weight != 0) {
            node_term(self, &term.preference, &path.index(i));
        }
    }
}

fn node_term(found: &mut Findings, term: &NodeSelectorTerm, path: &FieldPath) {
    for (i, requirement) in term.match_expressions.iter().enumerate() {
        let path = path.field("matchExpressions").index(i);
        let operator = requirement.operator.as_str();
        expression(found, &path, requirement.key, operator, &requirement.values, true);
    }
    for (i, requirement) in term.match_fields.iter().enumerate() {
        node_field(found, requirement, &path.field("matchFields").index(i));
    }
}

/// One requirement on labels (NewRequirement in `labels/selector.go`).
fn expression(
    found: &mut Findings,
    path: &FieldPath,
    key: Symbol,
    operator: &str,
    values: &[Name],
    of_nodes: bool,
) {
    let operators: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let operators = if of_nodes { operators } else { &operators[..4] };
    if !operators.contains(&operator) {
        found.unsupported(&path.field("operator"), operator, operators);
        return;
    }
    label_key(found, &path.field("key"), &key);
    value_count(found, &path.field("values"), operator, values);
    let values: Vec<_> = values.iter().map(|value| value.text()).collect();
    for (i, value) in values.iter().enumerate() {
        let path = path.field("values").index(i);
        if matches!(operator, "Gt" | "Lt") && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            found.invalid(&path, value.as_str(), detail);
        }
    }
    for (i, value) in values.iter().enumerate() {
        let path = path.field("values").index(i).key(&key);
        reasons(found, &path, value, label_value(value));
    }
}

fn value_count(found: &mut Findings, path: &FieldPath, operator: &str, values: &[Name]) {
    let detail = match (operator, values.len()) {
        ("In" | "NotIn", 0) => "for 'in', 'notin' operators, values set can't be empty",
        ("Exists" | "DoesNotExist", 1..) => {
            "values set must be empty for exists and does not exist"
        }
        ("Gt" | "Lt", 0 | 2..) => "for 'Gt', 'Lt' operators, exactly one value is required",
        _ => return,
    };
    found.invalid(path, texts(values), detail);
}

/// One requirement on fields, of which only the name exists.
fn node_field(found: &mut Findings, requirement: &NodeSelectorRequirement, path: &FieldPath) {
    match requirement.operator {
        NodeSelectorOperator::In | NodeSelectorOperator::NotIn => {
            if requirement.values.len() != 1 {
                let value = texts(&requirement.values);
                found.invalid(&path.field("values"), value, "must have one element");
            }
        }
        other => found.unsupported(&path.field("operator"), other.as_str(), &["In", "NotIn"]),
    }
}

fn texts(values: &[Name]) -> Value {
    values.iter().map(|value| Value::from(value.text().as_str())).collect()
}

fn label_key(found: &mut Findings, path: &FieldPath, key: &str) {
    reasons(found, path, key, qualified_name(key));
}

/// One finding for all reasons.
fn reasons(found: &mut Findings, path: &FieldPath, value: &str, reasons: Vec<String>) {
    if !reasons.is_empty() {
        found.invalid(path, value, &reasons.join("; "));
    }
}
