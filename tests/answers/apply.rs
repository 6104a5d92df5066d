//! Applies changes to documents as an API server with its controllers and kubelets would: rejected
//! changes are errors, and what controllers undo stays unchanged.

use serde_json::{Value, json};

use crate::change::{Change, Target, What};
use crate::cluster::{HOSTNAME, key_of};
use crate::controllers;
use crate::quantity;
use crate::truth::{all, contains};

/// The cluster after the changes. The pod with the key `asked` must not be deleted.
///
/// # Errors
/// The API server would reject a change.
pub fn apply(documents: &[Value], changes: &[Change], asked: &str) -> Result<Vec<Value>, String> {
    let mut documents = documents.to_vec();
    for change in changes {
        if let What::Put(object) = &change.what {
            put(&mut documents, change, object);
            continue;
        }
        let one = one(&mut documents, change, asked);
        one.map_err(|error| format!("{error}: {change:?}"))?;
    }
    controllers::settle(&mut documents);
    Ok(documents)
}

/// The cluster after changes field by field: operations of JSON Patch, and objects that are created
/// or deleted.
///
/// # Errors
/// The API server would reject a change, or an operation is on something that does not exist.
pub fn patch(documents: &[Value], fields: &[Value], asked: &str) -> Result<Vec<Value>, String> {
    let mut documents = documents.to_vec();
    for field in fields {
        let done = patch_one(&mut documents, field, asked);
        done.map_err(|error| format!("{error}: {field}"))?;
    }
    controllers::settle(&mut documents);
    Ok(documents)
}

fn one(documents: &mut Vec<Value>, change: &Change, asked: &str) -> Result<(), String> {
    let at = position(documents, &change.target).ok_or("there is no such object")?;
    if change.what == What::Delete {
        let is_asked = change.target == Target::new("Pod", asked);
        return match is_asked {
            true => Err("the pod that is asked about would be deleted".into()),
            false => controllers::delete(documents, at),
        };
    }
    if let What::Copy(count) = change.what {
        add_nodes(documents, at, count);
        return Ok(());
    }
    let object = &mut documents[at];
    let before = object.clone();
    edit(object, &change.what)?;
    if object["spec"]["priorityClassName"] != before["spec"]["priorityClassName"] {
        controllers::take_from_class(object);
    }
    if *object == before {
        return Err("nothing changes".into());
    }
    controllers::accepts(&before, object)
}

fn patch_one(documents: &mut Vec<Value>, field: &Value, asked: &str) -> Result<(), String> {
    let text = |name: &str| field[name].as_str().unwrap_or_default();
    let key = match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    };
    let target = Target::new(text("kind"), &key);
    let at = position(documents, &target);
    if text("operation") == "create" {
        documents.push(field["value"].clone());
        return if at.is_none() { Ok(()) } else { Err("it exists".into()) };
    }
    let at = at.ok_or("there is no such object")?;
    if text("operation") == "delete" {
        return match target == Target::new("Pod", asked) {
            true => Err("the pod that is asked about would be deleted".into()),
            false => controllers::delete(documents, at),
        };
    }
    let object = &mut documents[at];
    let class = object["spec"]["priorityClassName"].clone();
    operate(object, text("operation"), text("path"), &field["value"])?;
    if object["spec"]["priorityClassName"] != class {
        controllers::take_from_class(object);
    }
    Ok(())
}

/// Applies one operation of JSON Patch. Fields with API defaults are not in the documents, so a
/// missing field may be replaced.
fn operate(object: &mut Value, operation: &str, path: &str, value: &Value) -> Result<(), String> {
    let (parent, name) = path.rsplit_once('/').ok_or("an empty path")?;
    if operation == "remove" {
        let is_there = object.pointer(path).is_some();
        return if is_there { remove(object, parent, name) } else { Err("it is not there".into()) };
    }
    if let (Value::Array(list), "add") = (at_path(object, parent)?, operation) {
        let at = if name == "-" { list.len() } else { name.parse().map_err(|_| "no index")? };
        if at > list.len() {
            return Err(format!("no element {at}"));
        }
        list.insert(at, value.clone());
        return Ok(());
    }
    *at_path(object, path)? = value.clone();
    Ok(())
}

/// Creates an object, or replaces the one of its name.
fn put(documents: &mut Vec<Value>, change: &Change, object: &Value) {
    match position(documents, &change.target) {
        Some(at) => documents[at] = object.clone(),
        None => documents.push(object.clone()),
    }
}

/// The index of the object in the list.
pub fn position(documents: &[Value], target: &Target) -> Option<usize> {
    let is_meant = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        kind == target.kind && key_of(object) == target.key
    };
    documents.iter().position(is_meant)
}

fn edit(object: &mut Value, what: &What) -> Result<(), String> {
    match what {
        What::Set(path, value) if path.starts_with("/container/") => {
            set_request(object, path, value.as_ref())
        }
        What::Set(path, value) => set(object, path, value.clone()),
        What::Append(path, value) => {
            let list = at_path(object, path)?;
            if list.is_null() {
                *list = json!([]);
            }
            list.as_array_mut().ok_or("no list")?.push(value.clone());
            Ok(())
        }
        What::Remove(path, fields) => {
            let list = at_path(object, path)?.as_array_mut().ok_or("no list")?;
            list.retain(|element| !contains(element, fields));
            Ok(())
        }
        What::Total(resource, amount) => set_total(object, resource, amount),
        What::Unport(port) => unport(object, port),
        What::Delete | What::Copy(_) | What::Put(_) => Ok(()),
    }
}

/// The value at a path; missing parents are created.
fn at_path<'a>(object: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    let mut place = object;
    for name in path.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        place = match place {
            Value::Array(list) => {
                let at: usize = name.parse().map_err(|_| format!("{name} is no index"))?;
                list.get_mut(at).ok_or_else(|| format!("no element {at}"))?
            }
            place => &mut place[name.as_str()],
        };
    }
    Ok(place)
}

fn set(object: &mut Value, path: &str, value: Option<Value>) -> Result<(), String> {
    let (parent, name) = path.rsplit_once('/').ok_or("an empty path")?;
    let Some(value) = value else { return remove(object, parent, name) };
    *at_path(object, path)? = value;
    Ok(())
}

fn remove(object: &mut Value, parent: &str, name: &str) -> Result<(), String> {
    let name = name.replace("~1", "/").replace("~0", "~");
    if let Some(term) = parent.strip_suffix("/expression") {
        let term = at_path(object, term)?;
        remove_expression(term, name.parse().map_err(|_| "no index")?);
    } else {
        match at_path(object, parent)? {
            Value::Array(list) => {
                let at: usize = name.parse().map_err(|_| "no index")?;
                if at >= list.len() {
                    return Err(format!("no element {at}"));
                }
                list.remove(at);
            }
            Value::Object(fields) => drop(fields.remove(&name)),
            _ => return Err("nothing to remove from".into()),
        }
    }
    tidy_terms(object);
    Ok(())
}

/// The index counts `matchExpressions` first, then `matchFields`.
fn remove_expression(term: &mut Value, mut at: usize) {
    for list in ["matchExpressions", "matchFields"] {
        let Some(list) = term[list].as_array_mut() else { continue };
        match at < list.len() {
            true => return drop(list.remove(at)),
            false => at -= list.len(),
        }
    }
}

/// An API server rejects an empty list of node selector terms, and an empty term matches no node. A
/// proposal that removes the last expression means to require nothing, so the list is removed.
fn tidy_terms(object: &mut Value) {
    let path = "/spec/affinity/nodeAffinity";
    let Some(affinity) = object.pointer_mut(path).and_then(Value::as_object_mut) else { return };
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let is_void = |term: &Value| {
        ["matchExpressions", "matchFields"].iter().all(|list| all(&term[list]).next().is_none())
    };
    let terms = affinity.get(required).and_then(|list| list["nodeSelectorTerms"].as_array());
    if terms.is_some_and(|terms| terms.is_empty() || terms.iter().any(is_void)) {
        affinity.remove(required);
    }
}

fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    let spec = pod["spec"].as_object_mut();
    let lists = spec.into_iter().flat_map(|spec| spec.iter_mut());
    let own = lists.filter(|(name, _)| *name == "containers" || *name == "initContainers");
    own.flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
}

/// The path `/container/NAME/RESOURCE` of an edit.
fn set_request(pod: &mut Value, path: &str, value: Option<&Value>) -> Result<(), String> {
    let mut names = path.split('/').skip(2).map(|n| n.replace("~1", "/").replace("~0", "~"));
    let (name, resource) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let found = containers(pod).find(|container| container["name"] == name.as_str());
    let requests = &mut found.ok_or("there is no such container")?["resources"]["requests"];
    match value {
        Some(value) => requests[resource.as_str()] = value.clone(),
        None => drop(requests.as_object_mut().and_then(|list| list.remove(&resource))),
    }
    Ok(())
}

/// Each container keeps its share of the sum, rounded down so that the sum is not exceeded.
/// Sidecars run together with the containers and have their share too. The pod-level request and
/// those of init containers are lowered as well.
fn set_total(pod: &mut Value, resource: &str, amount: &str) -> Result<(), String> {
    let whole = quantity::parse(resource, amount).ok_or("no amount")?;
    let request = |container: &Value| {
        let text = container["resources"]["requests"][resource].as_str()?;
        quantity::parse(resource, text)
    };
    let runs = |container: &Value, pod: &Value| {
        let is_main = all(&pod["spec"]["containers"]).any(|one| one == container);
        is_main || container["restartPolicy"] == "Always"
    };
    lower_others(pod, resource, (whole, amount));
    let there = pod.clone();
    let mut shares: Vec<&mut Value> =
        containers(pod).filter(|c| runs(c, &there) && request(c).is_some()).collect();
    let sum: i64 = shares.iter().filter_map(|container| request(container)).sum();
    if sum == 0 {
        return Err("nothing is requested".into());
    }
    for container in &mut shares {
        let own = request(container).unwrap_or(0);
        let part = (i128::from(own) * i128::from(whole) / i128::from(sum)) as i64;
        let text = quantity::write(resource, part);
        container["resources"]["requests"][resource] = json!(text);
    }
    Ok(())
}

/// Lowers the pod-level request, and those of init containers that are larger.
fn lower_others(pod: &mut Value, resource: &str, (whole, amount): (i64, &str)) {
    let own = pod.pointer_mut("/spec/resources/requests");
    if let Some(own) = own.and_then(|requests| requests.get_mut(resource)) {
        *own = json!(amount);
    }
    for container in pod["spec"]["initContainers"].as_array_mut().into_iter().flatten() {
        let request = container["resources"]["requests"][resource].as_str();
        let is_larger = request.and_then(|text| quantity::parse(resource, text)) > Some(whole);
        if is_larger && container["restartPolicy"] != "Always" {
            container["resources"]["requests"][resource] = json!(amount);
        }
    }
}

fn unport(pod: &mut Value, port: &Value) -> Result<(), String> {
    let mut removed = false;
    for container in containers(pod) {
        for found in container["ports"].as_array_mut().into_iter().flatten() {
            let protocol = found["protocol"].as_str().unwrap_or("TCP");
            if found["hostPort"] == port["port"] && port["protocol"] == protocol {
                found.as_object_mut().and_then(|fields| fields.remove("hostPort"));
                removed = true;
            }
        }
    }
    removed.then_some(()).ok_or_else(|| "it has no such host port".into())
}

/// New nodes have no pods yet, but the devices and drivers of the node that is copied.
fn add_nodes(documents: &mut Vec<Value>, at: usize, count: usize) {
    let like = documents[at].clone();
    let old = key_of(&like);
    for number in 0..count {
        let name = format!("{old}-new-{number}");
        let mut node = like.clone();
        node["metadata"]["name"] = json!(name);
        node["metadata"]["labels"][HOSTNAME] = json!(name);
        controllers::put_in_service(&mut node);
        let companions = documents.iter().filter_map(|object| companion(object, &old, &name));
        let companions: Vec<Value> = companions.collect();
        documents.push(node);
        documents.extend(companions);
    }
}

/// A copy for the new node of what the drivers of the old one publish.
fn companion(object: &Value, old: &str, new: &str) -> Option<Value> {
    let is_own = match object["kind"].as_str()? {
        "CSINode" => object["metadata"]["name"] == old,
        "ResourceSlice" => object["spec"]["nodeName"] == old,
        _ => false,
    };
    let mut copy = is_own.then(|| object.clone())?;
    if object["kind"] == "CSINode" {
        copy["metadata"]["name"] = json!(new);
    } else {
        copy["metadata"]["name"] = json!(format!("{new}-devices"));
        copy["spec"]["nodeName"] = json!(new);
        copy["spec"]["pool"]["name"] = json!(new);
    }
    Some(copy)
}
