//! Splits YAML into objects: documents, and the items of lists and simulator exports.
//!
//! The block style that kubectl and people write is split by its lines alone, which is far faster
//! than parsing. Other YAML (flow style, anchors that items share) is parsed as a whole.

use serde::Deserialize;

use super::LIMITS;
use super::error::{SourceError, help_for};
use super::files::FileText;
use super::item::{Envelope, Expected, ItemText, SourceItem};
use kubestep_api::decode::yaml_error;

/// A document's text and position.
struct YamlDocument<'a> {
    /// Number of the document from 1; blank ones are not counted.
    number: u32,
    /// The line in which the text starts, from 1.
    line: u32,
    text: &'a str,
}

/// A field of a document's top-level mapping.
struct Section<'a> {
    key: &'a str,
    /// The text after the key on its line.
    inline: &'a str,
    /// The lines below, up to the next field.
    body: &'a str,
    /// The line in which the body starts.
    line: u32,
}

/// Splits a file into its objects, without decoding them.
pub(super) fn split(file: &FileText) -> Result<Vec<SourceItem<'_>>, Box<SourceError>> {
    let mut items = Vec::new();
    for document in documents(&file.text) {
        match cut(&document) {
            Some(found) => items.extend(found),
            None => items.extend(parse_whole(&document).map_err(|error| {
                let (line, column) = error.position.unwrap_or((1, 0));
                SourceError {
                    file: file.name.clone(),
                    document: document.number,
                    line: document.line as usize + line.max(1) - 1,
                    column,
                    help: help_for("", &error.message).into(),
                    message: error.message,
                    ..Default::default()
                }
                .with_snippet(&file.piece())
            })?),
        }
    }
    Ok(items)
}

/// The documents that are not blank.
fn documents(text: &str) -> Vec<YamlDocument<'_>> {
    let mut found = Vec::new();
    let (mut start, mut start_line) = (0, 1);
    let mut finish = |from: usize, to: usize, line: u32| {
        let text = &text[from..to];
        // A document starts at its first significant line, so that the reported line is useful.
        if let Some((skipped, at, _)) = lines(text).find(|(_, _, line)| is_significant(line)) {
            let (number, line) = (found.len() as u32 + 1, line + skipped - 1);
            found.push(YamlDocument { number, line, text: &text[at..] });
        }
    };
    for (line, at, content) in lines(text) {
        let marker = content.starts_with("---") || content.starts_with("...");
        if marker && content[3..].chars().next().is_none_or(char::is_whitespace) {
            finish(start, at, start_line);
            // Text after the marker on its line belongs to the document.
            (start, start_line) = (at + 3, line);
        }
    }
    finish(start, text.len(), start_line);
    found
}

/// Line numbers from 1, offsets, and the lines without their ends.
fn lines(text: &str) -> impl Iterator<Item = (u32, usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').zip(1..).map(move |(line, number)| {
        let start = at;
        at += line.len();
        (number, start, line.trim_end_matches(['\n', '\r']))
    })
}

/// Whether a line is not blank, a comment or a directive.
fn is_significant(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with(['#', '%'])
}

/// Splits a document by its lines; `None` if its format does not allow that.
fn cut<'a>(document: &YamlDocument<'a>) -> Option<Vec<SourceItem<'a>>> {
    let item = |line: u32, text: &'a str, indent: usize, expected: Expected| SourceItem {
        document: document.number,
        line,
        content: ItemText::Yaml { text, indent },
        expected,
    };
    let first = document.text.lines().find(|line| is_significant(line))?;
    if is_dash(first) {
        let items = sequence(document.text, document.line)?;
        let anything = |(line, text, indent)| item(line, text, indent, Expected::Anything);
        return (!has_references(document.text)).then(|| items.map(anything).collect());
    }
    let sections = sections(document)?;
    let parts = parts(&sections);
    if parts.is_empty() {
        return Some(vec![item(document.line, document.text, 0, Expected::Anything)]);
    }
    if has_references(document.text) {
        return None;
    }
    let mut items = Vec::new();
    for (section, expected) in parts {
        if expected.is_single() {
            let (line, text) = section.whole_text()?;
            let first = text.lines().find(|line| is_significant(line)).unwrap_or_default();
            items.push(item(line, text, indentation(first), expected));
        } else {
            let list = section.items()?;
            items.extend(list.map(|(line, text, indent)| item(line, text, indent, expected)));
        }
    }
    Some(items)
}

/// The sections that contain objects, with their expected kinds; empty for a single object.
fn parts<'s, 'a>(sections: &'s [Section<'a>]) -> Vec<(&'s Section<'a>, Expected)> {
    let field = |key: &str| sections.iter().find(|section| section.key == key);
    let scalar = |key: &str| field(key).map_or("", |s| s.inline.trim_matches(['"', '\'']));
    let exported = sections
        .iter()
        .filter_map(|section| Some((section, Expected::of_simulator_field(section.key)?)));
    let is_export = exported.clone().next().is_some();
    let items = field("items");
    match Envelope::of(scalar("apiVersion"), scalar("kind"), items.is_some(), is_export) {
        Envelope::List(expected) => items.map(|items| (items, expected)).into_iter().collect(),
        Envelope::Export => exported.collect(),
        Envelope::Single => Vec::new(),
    }
}

/// The fields of a block mapping without indentation; `None` for any other format.
fn sections<'a>(document: &YamlDocument<'a>) -> Option<Vec<Section<'a>>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    let mut body_start = 0;
    for (number, at, line) in lines(document.text) {
        if line.starts_with([' ', '#', '%']) || line.is_empty() || is_dash(line) {
            continue;
        }
        let (key, inline) = line.split_once(':')?;
        let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !plain || !(inline.is_empty() || inline.starts_with(' ')) {
            return None;
        }
        if let Some(last) = sections.last_mut() {
            last.body = &document.text[body_start..at];
        }
        body_start = (at + line.len() + 1).min(document.text.len());
        let inline = inline.split(" #").next().unwrap_or_default().trim();
        sections.push(Section { key, inline, body: "", line: document.line + number });
    }
    sections.last_mut()?.body = document.text.get(body_start..)?;
    Some(sections)
}

impl<'a> Section<'a> {
    /// The items of a block sequence: line, text, indentation.
    fn items(&self) -> Option<std::vec::IntoIter<(u32, &'a str, usize)>> {
        match self.inline {
            "" => sequence(self.body, self.line),
            "[]" | "null" | "~" => Some(Vec::new().into_iter()),
            _ => None,
        }
    }

    /// The value's text and the line in which it starts.
    fn whole_text(&self) -> Option<(u32, &'a str)> {
        match self.inline {
            "" => Some((self.line, self.body)),
            "null" | "~" | "{}" => Some((self.line, "")),
            // A block scalar or flow style.
            _ => None,
        }
    }
}

/// Splits a block sequence into its items; `None` if the lines do not look like one.
fn sequence(text: &str, first_line: u32) -> Option<std::vec::IntoIter<(u32, &str, usize)>> {
    let mut starts: Vec<(u32, usize)> = Vec::new();
    let mut dash = None;
    for (number, at, line) in lines(text) {
        let indent = indentation(line);
        let content = &line[indent..];
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match dash {
            Some(dash) if indent > dash => {}
            Some(dash) if indent < dash || !is_dash(content) => return None,
            None if !is_dash(content) => return None,
            _ => {
                dash = Some(indent);
                starts.push((first_line + number - 1, at));
            }
        }
    }
    let ends = starts.iter().skip(1).map(|start| start.1).chain([text.len()]);
    let items = starts.iter().zip(ends).map(|((line, start), end)| {
        let item = &text[*start..end];
        (*line, item, item_indentation(item))
    });
    Some(items.collect::<Vec<_>>().into_iter())
}

/// The column at which the item itself starts, after its dash or in the lines below.
fn item_indentation(item: &str) -> usize {
    let first = item.lines().next().unwrap_or_default();
    let dash = indentation(first) + 1;
    let after = &first[dash.min(first.len())..];
    if is_significant(after) {
        return dash + indentation(after);
    }
    item.lines().skip(1).find(|line| is_significant(line)).map_or(dash, indentation)
}

fn indentation(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b' ').count()
}

/// Whether the text is `-` alone or followed by whitespace.
fn is_dash(content: &str) -> bool {
    content.strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether the text may contain anchors or aliases, which can connect items.
fn has_references(text: &str) -> bool {
    [": &", "- &", ": *", "- *", "<<:"].iter().any(|sign| text.contains(sign))
}

/// Parses a document as a whole and splits the value.
fn parse_whole<'a>(
    document: &YamlDocument<'a>,
) -> Result<Vec<SourceItem<'a>>, kubestep_api::DecodeError> {
    // A tree of values takes a multiple of the memory of its text.
    if document.text.len() > 4 * LIMITS.object {
        let message = "is too long for flow style, anchors or an indented list".into();
        return Err(kubestep_api::DecodeError { message, ..Default::default() });
    }
    let mut value: serde_yaml::Value =
        kubestep_api::yaml::from_str(document.text).map_err(|error| yaml_error(&error))?;
    value.apply_merge().map_err(|error| yaml_error(&error))?;
    let value = serde_json::Value::deserialize(value).map_err(|error| yaml_error(&error))?;
    let found = take_apart(value).map_err(|found| kubestep_api::DecodeError {
        message: format!(
            "document {} is {found}, not a Kubernetes object or a list of objects",
            document.number
        ),
        ..Default::default()
    })?;
    let item = |(value, expected)| SourceItem {
        document: document.number,
        line: document.line,
        content: ItemText::Value(value),
        expected,
    };
    Ok(found.into_iter().map(item).collect())
}

type ObjectValues = Vec<(serde_json::Value, Expected)>;

/// The objects of a document; what it is instead as the error.
fn take_apart(value: serde_json::Value) -> Result<ObjectValues, &'static str> {
    match value {
        serde_json::Value::Null => Ok(ObjectValues::new()),
        serde_json::Value::Array(_) => Ok(each(value, Expected::Anything)),
        serde_json::Value::Object(fields) => Ok(objects_in(fields)),
        serde_json::Value::String(_) => Err("a text"),
        serde_json::Value::Number(_) => Err("a number"),
        serde_json::Value::Bool(_) => Err("true or false"),
    }
}

/// The objects of a document: itself, the items of a list, or those of an export's fields.
fn objects_in(mut fields: serde_json::Map<String, serde_json::Value>) -> ObjectValues {
    use serde_json::Value;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let has_items = fields.get("items").is_some_and(Value::is_array);
    let is_export = fields.keys().any(|field| Expected::of_simulator_field(field).is_some());
    match Envelope::of(text("apiVersion"), text("kind"), has_items, is_export) {
        Envelope::Single => vec![(Value::Object(fields), Expected::Anything)],
        Envelope::List(expected) => {
            fields.remove("items").map(|items| each(items, expected)).unwrap_or_default()
        }
        Envelope::Export => {
            let parts = |(field, value): (String, Value)| {
                Some(each(value, Expected::of_simulator_field(&field)?))
            };
            fields.into_iter().filter_map(parts).flatten().collect()
        }
    }
}

/// The items of a list, or the value that a field holds; none of `null`.
fn each(value: serde_json::Value, expected: Expected) -> ObjectValues {
    match value {
        serde_json::Value::Array(list) if !expected.is_single() => {
            list.into_iter().map(|value| (value, expected)).collect()
        }
        serde_json::Value::Null => ObjectValues::new(),
        other => vec![(other, expected)],
    }
}
