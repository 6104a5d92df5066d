//! The part of Go's templates that scheduler_perf's files use: actions that insert a value, such as
//! `{{ .Index }}`, `{{ DivideInt 30000 .Count }}` or `{{ .Index | Mod 25 }}`.
//!
//! Of Go's syntax there are fields, numbers, strings, calls, parentheses, pipelines, comments and
//! trim markers. Control structures, variables and nested templates are rejected by name.

mod functions;
mod parse;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};

use crate::BenchError;
pub use functions::NAMES as FUNCTIONS;
use functions::call;
use value::Value;

/// A manifest with `{{…}}` expressions, parsed once for all objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    file: PathBuf,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    Text(String),
    /// An expression and the line in which its action begins.
    Action(usize, TemplateExpression),
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateExpression {
    Literal(Value),
    /// `.Index` or `.Count` of the object.
    Field(TemplateField),
    Call(String, Vec<TemplateExpression>),
}

/// What a template can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateField {
    /// The number of the object, from 0.
    Index,
    /// How many objects are made from the template.
    Count,
}

impl Template {
    /// Parses the text of `file`.
    ///
    /// # Errors
    /// An action is not closed, or is not one of those that are supported.
    pub fn parse(file: &Path, text: &str) -> Result<Template, BenchError> {
        let parts = parse::parse(text);
        let parts = parts.map_err(|(line, message)| BenchError::at(file, line, message))?;
        Ok(Template { file: file.to_owned(), parts })
    }

    /// Whether every object of the template has the same text.
    pub(crate) fn is_constant(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, TemplatePart::Action(..)))
    }

    /// The text of object number `index`, from 0, of `count`.
    ///
    /// # Errors
    /// A function cannot take its arguments, or divides by zero.
    pub fn render(&self, index: usize, count: usize) -> Result<String, BenchError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(part) => text.push_str(part),
                TemplatePart::Action(line, expression) => {
                    let value = expression.value(index, count);
                    let value = value.map_err(|why| BenchError::at(&self.file, *line, why))?;
                    text.push_str(&value.to_string());
                }
            }
        }
        Ok(text)
    }
}

impl TemplateExpression {
    fn value(&self, index: usize, count: usize) -> Result<Value, String> {
        match self {
            TemplateExpression::Literal(value) => Ok(value.clone()),
            TemplateExpression::Field(TemplateField::Index) => Ok(Value::Int(index as i64)),
            TemplateExpression::Field(TemplateField::Count) => Ok(Value::Int(count as i64)),
            TemplateExpression::Call(name, arguments) => {
                let values: Result<Vec<Value>, String> =
                    arguments.iter().map(|argument| argument.value(index, count)).collect();
                call(name, &values?)
            }
        }
    }
}
