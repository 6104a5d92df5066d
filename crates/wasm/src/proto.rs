//! Objects as guests get them: protobuf, written from an object's JSON form by [`crate::schema`].
//!
//! Fields that kubestep does not keep of an object, such as a container's environment, are absent.

use kubestep_framework::api::{Node, Pod, Time};
use serde_json::Value;

use crate::schema::{Field, message};

/// Wire types of protobuf.
const VARINT: u32 = 0;
const BYTES: u32 = 2;

/// A pod as a `v1.Pod`.
pub(crate) fn pod(pod: &Pod) -> Vec<u8> {
    encoded("Pod", &serde_json::to_value(pod).unwrap_or_default())
}

/// A node as a `v1.Node`.
pub(crate) fn node(node: &Node) -> Vec<u8> {
    encoded("Node", &serde_json::to_value(node).unwrap_or_default())
}

/// Encoded nodes as a `v1.NodeList`.
pub(crate) fn node_list(nodes: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = encoded("NodeList", &Value::Null);
    nodes.for_each(|node| write_bytes(&mut out, 2, &node));
    out
}

fn encoded(name: &str, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in message(name) {
        match value.get(field.name) {
            _ if field.name == "~" => write(&mut out, field, value),
            None | Some(Value::Null) if field.is_value => write(&mut out, field, &Value::Null),
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => items.iter().for_each(|item| write(&mut out, field, item)),
            Some(Value::Object(entries)) if field.kind.starts_with('%') => {
                for (key, value) in entries {
                    write_bytes(&mut out, field.number, &entry(key, value, field.kind));
                }
            }
            Some(value) => write(&mut out, field, value),
        }
    }
    out
}

/// An entry of a map: a message of key and value.
fn entry(key: &str, value: &Value, kind: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(&mut out, 1, key.as_bytes());
    match kind {
        "%Q" => write_bytes(&mut out, 2, &quantity(value)),
        _ => write_bytes(&mut out, 2, text(value)),
    }
    out
}

/// One value of a field; `Null` is the zero value.
fn write(out: &mut Vec<u8>, field: &Field, value: &Value) {
    match field.kind {
        "i" => write_int(out, field.number, value.as_i64().unwrap_or_default()),
        "b" => write_int(out, field.number, value.as_bool().unwrap_or_default().into()),
        "s" => write_bytes(out, field.number, text(value)),
        "Q" => write_bytes(out, field.number, &quantity(value)),
        "T" => write_bytes(out, field.number, &time(value)),
        "-" => write_bytes(out, field.number, &[]),
        name => write_bytes(out, field.number, &encoded(name, value)),
    }
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

/// A `resource.Quantity`, which is its text.
fn quantity(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(&mut out, 1, text(value));
    out
}

/// A `metav1.Time`, in whole seconds as upstream; empty if it is not set.
fn time(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(time) = value.as_str().and_then(|text| Time::parse(text).ok()) {
        write_int(&mut out, 1, time.0.div_euclid(1_000_000));
        write_int(&mut out, 2, 0);
    }
    out
}

fn write_int(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number << 3 | VARINT));
    varint(out, value.cast_unsigned());
}

fn write_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number << 3 | BYTES));
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A number in base 128, the low digits first.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded<T: serde::de::DeserializeOwned>(json: Value) -> T {
        serde_json::from_value(json).unwrap()
    }

    /// The fields of a message: number, and either the integer or the bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let number = |bytes: &mut &[u8]| {
            let mut value = 0;
            for shift in (0..64).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        };
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = number(&mut bytes);
            let value = number(&mut bytes);
            let length = if tag & 7 == 2 { value as usize } else { 0 };
            let (content, rest) = bytes.split_at(length);
            bytes = rest;
            found.push((tag >> 3, value, content.to_vec()));
        }
        found
    }

    /// The messages, texts or numbers of a field, by the numbers that lead to it.
    fn all(bytes: &[u8], path: &[u64]) -> Vec<(u64, Vec<u8>)> {
        let [first, rest @ ..] = path else { return Vec::new() };
        let here = fields(bytes).into_iter().filter(|(number, ..)| number == first);
        here.flat_map(|(_, value, content)| match rest {
            [] => vec![(value, content)],
            rest => all(&content, rest),
        })
        .collect()
    }

    fn texts(bytes: &[u8], path: &[u64]) -> Vec<String> {
        let text = |(_, content)| String::from_utf8(content).unwrap();
        all(bytes, path).into_iter().map(text).collect()
    }

    fn numbers(bytes: &[u8], path: &[u64]) -> Vec<i64> {
        all(bytes, path).into_iter().map(|(value, _)| value.cast_signed()).collect()
    }

    #[test]
    fn a_pod_has_the_numbers_of_kubernetes() {
        let bytes = pod(&decoded(serde_json::json!({
            "metadata": {
                "name": "p", "namespace": "ns", "uid": "u", "labels": {"b": "2", "a": "1"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "priority": -5, "hostNetwork": true, "nodeSelector": {"disk": "ssd"},
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}},
                     "ports": [{"hostPort": 80}]},
                    {"name": "d"},
                ],
                "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 7}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
                            {"name": "w", "emptyDir": {}}],
            },
            "status": {"nominatedNodeName": "n"},
        })));
        assert_eq!(texts(&bytes, &[1, 1]), ["p"]);
        assert_eq!(texts(&bytes, &[1, 3]), ["ns"]);
        assert_eq!(texts(&bytes, &[1, 5]), ["u"]);
        assert_eq!(texts(&bytes, &[1, 11, 1]), ["a", "b"]);
        assert_eq!(texts(&bytes, &[1, 11, 2]), ["1", "2"]);
        assert_eq!(numbers(&bytes, &[1, 8, 1]), [1_767_225_600]);
        assert_eq!(numbers(&bytes, &[2, 25]), [-5]);
        assert_eq!(numbers(&bytes, &[2, 11]), [1]);
        assert_eq!(texts(&bytes, &[2, 7, 2]), ["ssd"]);
        assert_eq!(texts(&bytes, &[2, 2, 1]), ["c", "d"]);
        assert_eq!(texts(&bytes, &[2, 2, 8, 2, 1]), ["cpu"]);
        assert_eq!(texts(&bytes, &[2, 2, 8, 2, 2, 1]), ["500m"]);
        assert_eq!(numbers(&bytes, &[2, 2, 6, 2]), [80]);
        assert_eq!(numbers(&bytes, &[2, 22, 5]), [7]);
        assert_eq!(texts(&bytes, &[2, 1, 2, 10, 1]), ["data"]);
        assert_eq!(texts(&bytes, &[2, 1, 2, 2]), [""], "the presence of an emptyDir");
        assert_eq!(texts(&bytes, &[3, 11]), ["n"]);
        // What Go holds by value is there even if it is empty, and pointers are not.
        assert_eq!(texts(&bytes, &[2, 10]), [""]);
        assert_eq!(texts(&bytes, &[2, 2, 2]), ["i", ""]);
        assert!(all(&bytes, &[2, 29]).is_empty() && all(&bytes, &[2, 18]).is_empty());
    }

    #[test]
    fn a_node_has_the_numbers_of_kubernetes() {
        let node: Node = decoded(serde_json::json!({
            "metadata": {"name": "n"},
            "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": [{"names": ["a", "b"], "sizeBytes": 300}],
            },
        }));
        let bytes = super::node(&node);
        assert_eq!(texts(&bytes, &[1, 1]), ["n"]);
        assert_eq!(numbers(&bytes, &[2, 4]), [1]);
        assert_eq!(texts(&bytes, &[2, 5, 3]), ["NoSchedule"]);
        assert_eq!(texts(&bytes, &[3, 2, 2, 1]), ["4", "8Gi"]);
        assert_eq!(texts(&bytes, &[3, 4, 1]), ["Ready"]);
        assert_eq!(texts(&bytes, &[3, 8, 1]), ["a", "b"]);
        assert_eq!(numbers(&bytes, &[3, 8, 2]), [300]);
        let list = node_list([bytes.clone(), bytes].into_iter());
        assert_eq!(texts(&list, &[2, 1, 1]), ["n", "n"]);
    }

    #[test]
    fn every_message_of_the_schema_exists() {
        let mut open = vec!["Pod", "Node", "NodeList"];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(name) = open.pop() {
            let fields = message(name);
            assert!(!fields.is_empty(), "{name}");
            let is_message = |field: &&Field| field.kind.starts_with(|c: char| c.is_uppercase());
            let kinds = fields.iter().filter(is_message).map(|field| field.kind);
            open.extend(kinds.filter(|kind| !["T", "Q"].contains(kind) && seen.insert(*kind)));
        }
        assert!(seen.len() > 50, "{}", seen.len());
    }
}
