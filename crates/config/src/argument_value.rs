//! The types that a field of a configuration or of a plugin's arguments can have, each with its
//! strict reader and its writer.

use serde::{Deserialize, Serialize};

use kubestep_api::intern::Symbol;
use kubestep_api::{
    LabelSelector, LabelSelectorRequirement, Name, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm,
};

use super::encode::{Map, list};
use super::path::FieldPath;
use super::reader::Reader;
use super::types::ExtenderTlsConfig;
use super::yaml_value::YamlValue;
use kubestep_api::Duration;

/// A type that a field of a configuration or of a plugin's arguments can have.
pub trait ArgumentValue: Sized {
    /// Reads the value at `path`; what is wrong with it is in the reader's problems.
    fn read(reader: &mut Reader, node: &YamlValue, path: &FieldPath) -> Self;

    /// The value as a document has it.
    fn write(&self) -> YamlValue;
}

/// Implements [`ArgumentValue`] by a method of the reader and an expression.
macro_rules! argument_values {
    ($($type:ty: $read:ident, $value:ident => $write:expr;)*) => {$(
        impl ArgumentValue for $type {
            fn read(reader: &mut Reader, node: &YamlValue, path: &FieldPath) -> Self {
                reader.$read(node, path)
            }

            fn write(&self) -> YamlValue {
                let $value = self;
                $write
            }
        }
    )*};
}

argument_values! {
    bool: boolean, value => (*value).into();
    i32: int32, value => (*value).into();
    i64: int64, value => (*value).into();
    String: text, value => value.as_str().into();
    Symbol: symbol, value => value.as_str().into();
    Name: name, value => value.text().as_str().into();
    Duration: duration, value => YamlValue::Text(value.to_string());
}

impl<T: ArgumentValue> ArgumentValue for Option<T> {
    fn read(reader: &mut Reader, node: &YamlValue, path: &FieldPath) -> Self {
        Some(T::read(reader, node, path))
    }

    fn write(&self) -> YamlValue {
        self.as_ref().map_or(YamlValue::Null, T::write)
    }
}

impl<T: ArgumentValue> ArgumentValue for Vec<T> {
    fn read(reader: &mut Reader, node: &YamlValue, path: &FieldPath) -> Self {
        reader.list(node, path, T::read)
    }

    fn write(&self) -> YamlValue {
        list(self, T::write)
    }
}

impl ArgumentValue for ExtenderTlsConfig {
    fn read(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> ExtenderTlsConfig {
        let mut f = r.fields(node, path);
        let tls = ExtenderTlsConfig {
            insecure: f.or_zero("insecure", Reader::boolean),
            server_name: f.or_zero("serverName", Reader::text),
            cert_file: f.or_zero("certFile", Reader::text),
            key_file: f.or_zero("keyFile", Reader::text),
            ca_file: f.or_zero("caFile", Reader::text),
            cert_data: f.or_zero("certData", Reader::base64),
            key_data: f.or_zero("keyData", Reader::base64),
            ca_data: f.or_zero("caData", Reader::base64),
        };
        f.finish();
        tls
    }

    fn write(&self) -> YamlValue {
        Map::default()
            .put_some("insecure", self.insecure)
            .put_some("serverName", self.server_name.as_str())
            .put_some("certFile", self.cert_file.as_str())
            .put_some("keyFile", self.key_file.as_str())
            .put_some("caFile", self.ca_file.as_str())
            .put_some("certData", self.cert_data.as_str())
            .put_some("keyData", self.key_data.as_str())
            .put_some("caData", self.ca_data.as_str())
            .into()
    }
}

impl ArgumentValue for LabelSelector {
    fn read(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> LabelSelector {
        let mut f = r.fields(node, path);
        let labels = f.or_zero("matchLabels", labels);
        let selector = LabelSelector {
            match_labels: labels.into_iter().collect(),
            match_expressions: f.list("matchExpressions", label_requirement).unwrap_or_default(),
        };
        f.finish();
        selector
    }

    fn write(&self) -> YamlValue {
        object(self)
    }
}

impl ArgumentValue for NodeAffinity {
    fn read(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> NodeAffinity {
        let mut f = r.fields(node, path);
        let affinity = NodeAffinity {
            required_during_scheduling_ignored_during_execution: f
                .get("requiredDuringSchedulingIgnoredDuringExecution", node_selector),
            preferred_during_scheduling_ignored_during_execution: f
                .list("preferredDuringSchedulingIgnoredDuringExecution", preferred_term)
                .unwrap_or_default(),
        };
        f.finish();
        affinity
    }

    /// Field by field, because upstream writes some of them even when they are empty.
    fn write(&self) -> YamlValue {
        let required = self.required_during_scheduling_ignored_during_execution.as_ref();
        let required = required.map(|selector| {
            let terms = list(&selector.node_selector_terms, write_node_term);
            YamlValue::from(Map::default().put("nodeSelectorTerms", terms))
        });
        let preferred = list(&self.preferred_during_scheduling_ignored_during_execution, |term| {
            Map::default()
                .put("weight", term.weight)
                .put("preference", write_node_term(&term.preference))
                .into()
        });
        Map::default()
            .put_some("requiredDuringSchedulingIgnoredDuringExecution", required)
            .put_some("preferredDuringSchedulingIgnoredDuringExecution", preferred)
            .into()
    }
}

fn labels(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> Vec<(Symbol, Name)> {
    match node {
        YamlValue::Map(entries) => entries
            .iter()
            .map(|(key, value)| (Symbol::new(key), r.name(value, &path.field(key))))
            .collect(),
        other => {
            // A map of fields with none known: says what was expected.
            r.fields(other, path).finish();
            Vec::new()
        }
    }
}

fn label_requirement(
    r: &mut Reader,
    node: &YamlValue,
    path: &FieldPath,
) -> LabelSelectorRequirement {
    let mut f = r.fields(node, path);
    let requirement = LabelSelectorRequirement {
        key: f.or_zero("key", Reader::symbol),
        operator: f.or_zero("operator", Reader::text).as_str().into(),
        values: f.list("values", Reader::name).unwrap_or_default(),
    };
    f.finish();
    requirement
}

fn node_selector(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> NodeSelector {
    let mut f = r.fields(node, path);
    let terms = f.list("nodeSelectorTerms", node_term).unwrap_or_default();
    f.finish();
    NodeSelector { node_selector_terms: terms }
}

fn preferred_term(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> PreferredSchedulingTerm {
    let mut f = r.fields(node, path);
    let term = PreferredSchedulingTerm {
        weight: f.or_zero("weight", Reader::int32),
        preference: f.or_zero("preference", node_term),
    };
    f.finish();
    term
}

fn node_term(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> NodeSelectorTerm {
    let mut f = r.fields(node, path);
    let term = NodeSelectorTerm {
        match_expressions: f.list("matchExpressions", node_requirement).unwrap_or_default(),
        match_fields: f.list("matchFields", node_requirement).unwrap_or_default(),
    };
    f.finish();
    term
}

fn node_requirement(r: &mut Reader, node: &YamlValue, path: &FieldPath) -> NodeSelectorRequirement {
    let mut f = r.fields(node, path);
    let requirement = NodeSelectorRequirement {
        key: f.or_zero("key", Reader::symbol),
        operator: f.or_zero("operator", Reader::text).as_str().into(),
        values: f.list("values", Reader::name).unwrap_or_default(),
    };
    f.finish();
    requirement
}

fn write_node_term(term: &NodeSelectorTerm) -> YamlValue {
    Map::default()
        .put_some("matchExpressions", list(&term.match_expressions, write_node_requirement))
        .put_some("matchFields", list(&term.match_fields, write_node_requirement))
        .into()
}

fn write_node_requirement(requirement: &NodeSelectorRequirement) -> YamlValue {
    Map::default()
        .put("key", requirement.key.as_str())
        .put("operator", requirement.operator.as_str())
        .put_some("values", list(&requirement.values, Name::write))
        .into()
}

/// An object of the API, by way of its own serialization.
fn object(value: &impl Serialize) -> YamlValue {
    // Serializing plain values to JSON and reading them as a tree cannot fail.
    let value = serde_json::to_value(value).unwrap_or_default();
    YamlValue::deserialize(value).unwrap_or(YamlValue::Null)
}
