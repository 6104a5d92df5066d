//! Parses templates: text, and actions between `{{` and `}}`.

use super::functions::{NAMES, unknown};
use super::value::Value;
use super::{TemplateExpression, TemplateField, TemplatePart};

/// Words that begin what is not supported.
const KEYWORDS: &[&str] =
    &["if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"];

/// A line, from 1, and what is wrong there.
type TemplateError = (usize, String);

/// The parts of a template.
pub(super) fn parse(text: &str) -> Result<Vec<TemplatePart>, TemplateError> {
    let (mut parts, mut rest, mut line) = (Vec::new(), text, 1);
    let mut trims = false;
    while let Some(open) = rest.find("{{") {
        let (before, inside) = (&rest[..open], &rest[open + 2..]);
        let begin = line + newlines(before);
        let close = inside.find("}}").ok_or((begin, "\"{{\" has no \"}}\"".to_owned()))?;
        let (action, trims_before, trims_after) = markers(&inside[..close]);
        let kept = if trims { before.trim_start() } else { before };
        add_text(&mut parts, if trims_before { kept.trim_end() } else { kept });
        trims = trims_after;
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            let expression = expression(action).map_err(|why| (begin, why))?;
            parts.push(TemplatePart::Action(begin, expression));
        }
        line = begin + newlines(&inside[..close]);
        rest = &inside[close + 2..];
    }
    add_text(&mut parts, if trims { rest.trim_start() } else { rest });
    Ok(parts)
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn add_text(parts: &mut Vec<TemplatePart>, text: &str) {
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text.to_owned()));
    }
}

/// The action without its trim markers, and whether it trims the text before and after it.
fn markers(action: &str) -> (&str, bool, bool) {
    let is_blank = |c: Option<char>| c.is_some_and(char::is_whitespace);
    let before = action.strip_prefix('-').filter(|rest| is_blank(rest.chars().next()));
    let action = before.unwrap_or(action);
    let after = action.strip_suffix('-').filter(|rest| is_blank(rest.chars().next_back()));
    (after.unwrap_or(action).trim(), before.is_some(), after.is_some())
}

/// The expression of an action.
fn expression(action: &str) -> Result<TemplateExpression, String> {
    let mut tokens = tokens(action)?;
    tokens.reverse();
    let mut parser = Parser { tokens };
    let expression = parser.pipeline()?;
    match parser.tokens.pop() {
        None => Ok(expression),
        Some(token) => Err(format!("unexpected {token:?} in {action:?}")),
    }
}

/// Words, and the signs `(`, `)` and `|`.
fn tokens(action: &str) -> Result<Vec<String>, String> {
    let (mut tokens, mut rest) = (Vec::new(), action.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' | '|' => 1,
            '"' | '`' => match rest[1..].find(first) {
                Some(end) => end + 2,
                None => return Err(format!("a quote is not closed in {action:?}")),
            },
            _ => {
                let ends = |c: char| c.is_whitespace() || "()|\"`".contains(c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser {
    /// Those left, the next one last.
    tokens: Vec<String>,
}

impl Parser {
    fn next_is(&self, token: &str) -> bool {
        self.tokens.last().is_some_and(|next| next == token)
    }

    /// Commands joined by `|`: each gets the value of the one before as its last argument.
    fn pipeline(&mut self) -> Result<TemplateExpression, String> {
        let mut result = self.command()?;
        while self.next_is("|") {
            self.tokens.pop();
            match self.command()? {
                TemplateExpression::Call(name, mut arguments) => {
                    arguments.push(result);
                    result = TemplateExpression::Call(name, arguments);
                }
                _ => return Err("only a function can follow \"|\"".into()),
            }
        }
        Ok(result)
    }

    /// A call with its arguments, or a single value.
    fn command(&mut self) -> Result<TemplateExpression, String> {
        let first = self.operand()?;
        let TemplateExpression::Call(name, mut arguments) = first else { return Ok(first) };
        // A call in parentheses has its arguments already.
        if arguments.is_empty() {
            while self.tokens.last().is_some_and(|next| next != "|" && next != ")") {
                arguments.push(self.operand()?);
            }
        }
        Ok(TemplateExpression::Call(name, arguments))
    }

    fn operand(&mut self) -> Result<TemplateExpression, String> {
        let token = self.tokens.pop().ok_or("an action is empty or ends too early")?;
        if token == "(" {
            let inner = self.pipeline()?;
            return match self.tokens.pop().as_deref() {
                Some(")") => Ok(inner),
                _ => Err("\"(\" has no \")\"".into()),
            };
        }
        operand(&token)
    }
}

fn operand(token: &str) -> Result<TemplateExpression, String> {
    if let Some(text) = token.strip_prefix(['"', '`']) {
        let text = text[..text.len() - 1].to_owned();
        return Ok(TemplateExpression::Literal(Value::Text(text)));
    }
    if let Ok(value) = token.parse() {
        return Ok(TemplateExpression::Literal(Value::Int(value)));
    }
    if token.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && let Ok(value) = token.parse()
    {
        return Ok(TemplateExpression::Literal(Value::Float(value)));
    }
    match token {
        ".Index" => Ok(TemplateExpression::Field(TemplateField::Index)),
        ".Count" => Ok(TemplateExpression::Field(TemplateField::Count)),
        name if NAMES.contains(&name) => Ok(TemplateExpression::Call(name.to_owned(), Vec::new())),
        name if name.starts_with('.') => {
            Err(format!("there is no field {name:?}; there are .Index and .Count"))
        }
        name if KEYWORDS.contains(&name) || name.starts_with('$') => {
            Err(format!("{name:?} is not supported: scheduler_perf's templates only insert values"))
        }
        name => Err(unknown(name)),
    }
}
