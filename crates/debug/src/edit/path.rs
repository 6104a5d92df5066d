//! Fields by their paths: `spec.containers[0].image`, `metadata.labels['a.b/c']`.

use serde_json::{Map, Value};

/// One step of a path.
#[derive(PartialEq, Debug)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// Sets the field at a path, creating mappings on the way, or removes it if `value` is `None`. The
/// index after the last element of a list appends.
///
/// # Errors
/// The path is not valid, or leads through a value without such a part.
pub(super) fn set(root: &mut Value, path: &str, value: Option<&Value>) -> Result<(), String> {
    let steps = parse(path)?;
    let Some((last, way)) = steps.split_last() else { return Err("no field is given".into()) };
    let mut place = root;
    for step in way {
        place = descend(place, step)?;
    }
    match value {
        Some(value) => *descend(place, last)? = value.clone(),
        None => remove(place, last)?,
    }
    Ok(())
}

/// The value of the field at a path, if it is set.
pub(super) fn get<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let step = |place: &'a Value, step: &PathStep| match step {
        PathStep::Key(key) => place.get(key),
        PathStep::Index(index) => place.get(index),
    };
    parse(path).ok()?.iter().try_fold(root, step)
}

/// The part at one step, created if it is missing.
fn descend<'a>(place: &'a mut Value, step: &PathStep) -> Result<&'a mut Value, String> {
    match step {
        PathStep::Key(key) => {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let fields = place
                .as_object_mut()
                .ok_or_else(|| format!("{key}: its parent is not a mapping"))?;
            Ok(fields.entry(key.clone()).or_insert(Value::Null))
        }
        PathStep::Index(index) => {
            if place.is_null() {
                *place = Value::Array(Vec::new());
            }
            let items = place
                .as_array_mut()
                .ok_or_else(|| format!("[{index}]: its parent is not a list"))?;
            let len = items.len();
            if *index == len {
                items.push(Value::Null);
            }
            items.get_mut(*index).ok_or_else(|| format!("[{index}]: the list has {len} items"))
        }
    }
}

fn remove(place: &mut Value, step: &PathStep) -> Result<(), String> {
    let removed = match (step, place) {
        (PathStep::Key(key), Value::Object(fields)) => fields.remove(key).is_some(),
        (PathStep::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    };
    if removed { Ok(()) } else { Err("is not set".into()) }
}

fn parse(path: &str) -> Result<Vec<PathStep>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (step, after) = next(rest).ok_or_else(|| {
            format!(
                "{rest:?} is not a field: write spec.containers[0].image or metadata.labels['a/b']"
            )
        })?;
        steps.push(step);
        rest = after;
        if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() {
                return Err("ends with a dot".into());
            }
            rest = after;
        }
    }
    Ok(steps)
}

fn next(rest: &str) -> Option<(PathStep, &str)> {
    let Some(inner) = rest.strip_prefix('[') else {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        return (!key.is_empty()).then(|| (PathStep::Key(key.into()), after));
    };
    for quote in ['\'', '"'] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (key, after) = quoted.split_once(quote)?;
            return Some((PathStep::Key(key.into()), after.strip_prefix(']')?));
        }
    }
    let (index, after) = inner.split_once(']')?;
    Some((PathStep::Index(index.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(path: &str, value: Option<Value>) -> Result<Value, String> {
        let mut root = json!({"spec": {"list": [{"a": 1}], "text": "x"}});
        set(&mut root, path, value.as_ref())?;
        Ok(root["spec"].take())
    }

    #[test]
    fn fields_are_set_made_appended_and_removed() {
        for (path, value, expected) in [
            ("spec.text", Some(json!(2)), json!({"list": [{"a": 1}], "text": 2})),
            ("spec.list[0].a", None, json!({"list": [{}], "text": "x"})),
            ("spec.list[1].b", Some(json!(3)), json!({"list": [{"a": 1}, {"b": 3}], "text": "x"})),
            (
                "spec.m['a.b/c'].d",
                Some(json!(4)),
                json!({"list": [{"a": 1}], "text": "x", "m": {"a.b/c": {"d": 4}}}),
            ),
            ("spec[\"list\"]", None, json!({"text": "x"})),
        ] {
            assert_eq!(after(path, value), Ok(expected), "{path}");
        }
        let root = json!({"spec": {"list": [{"a.b/c": 1}]}});
        assert_eq!(get(&root, "spec.list[0]['a.b/c']"), Some(&json!(1)));
        assert_eq!(get(&root, "spec.list[1]"), None);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_reported() {
        for (path, part) in [
            ("", "no field is given"),
            ("spec.", "ends with a dot"),
            ("spec..a", "is not a field"),
            ("spec.list[x]", "is not a field"),
            ("spec.list[3]", "the list has 1 items"),
            ("spec.text.a", "a: its parent is not a mapping"),
            ("spec.text[0]", "[0]: its parent is not a list"),
        ] {
            let error = after(path, Some(Value::Null)).unwrap_err();
            assert!(error.contains(part), "{path}: {error}");
        }
        assert_eq!(after("spec.none", None), Err("is not set".into()));
    }
}
