//! Conditions: CEL expressions over the variables that are known at a breakpoint.
//!
//! Besides CEL's own notation, an amount can be written as in a manifest: `node.free.cpu < 500m`.
//! The operands of top-level `&&` are evaluated separately: those that need only the cycle once per
//! cycle, those that need a verdict once per distinct verdict, and only the rest for each node.

use std::sync::{Arc, LazyLock};

use ::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use ::cel::common::types::{CelBool, CelString, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{Context, DeclarationError, Env, ExecutionError, Value, extensions};

use crate::breakpoint::values::AmountValue;
use crate::breakpoint::variables::{Facts, Reach, VARIABLES, Variable};
use crate::breakpoint::{BreakpointError, sample};
use kubestep_api::Quantity;
use kubestep_config::suggest;

/// The CEL function that wraps an amount once it was parsed.
const AMOUNT: &str = "quantity";

/// A CEL condition, parsed once and evaluated at each hit.
#[derive(Clone, Debug)]
pub struct Condition {
    text: Arc<str>,
    parts: Arc<[ConditionPart]>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.text == other.text
    }
}

/// One operand of the top-level `&&`; all must hold.
#[derive(Debug)]
pub struct ConditionPart {
    expression: IdedExpr,
    reaches: Vec<Reach>,
    of_amounts: bool,
}

/// The fields of `node` that are amounts.
const AMOUNTS: [&str; 4] = ["free", "allocatable", "requested", "pods"];

impl ConditionPart {
    /// Whether it uses a variable of that reach.
    pub fn needs(&self, reach: Reach) -> bool {
        self.reaches.contains(&reach)
    }

    /// Whether it depends on the node alone, so that the answer is valid until the node changes.
    pub(crate) fn is_of_node(&self) -> bool {
        self.reaches == [Reach::Node]
    }

    /// Whether it depends only on the node's amounts, so that the answer is the same for all nodes
    /// with equal amounts.
    pub(crate) fn is_of_amounts(&self) -> bool {
        self.is_of_node() && self.of_amounts
    }

    /// Whether it depends only on a plugin and its scores, whatever the cycle.
    pub(crate) fn is_of_scores(&self) -> bool {
        let of_scores = |reach| matches!(reach, Reach::Answer | Reach::Score | Reach::Total);
        self.reaches.iter().copied().all(of_scores)
    }

    /// Whether it can be evaluated before any node or plugin is known. `message` may be the cycle's
    /// or a plugin's.
    pub(crate) fn is_of_cycle(&self, message_is_answer: bool) -> bool {
        self.reaches.iter().all(|reach| match reach {
            Reach::Pod | Reach::Cycle => true,
            Reach::Message => !message_is_answer,
            _ => false,
        })
    }

    /// Whether it holds. A missing field, such as an absent label, counts as false.
    ///
    /// # Errors
    /// It cannot be evaluated.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, BreakpointError> {
        let environment = ENVIRONMENT.as_ref().map_err(Clone::clone)?;
        let mut context = Context::with_env(environment.clone());
        context.set_variable_resolver(facts);
        match Value::resolve_val(&self.expression, &context) {
            Ok(value) => match value.downcast_ref::<CelBool>() {
                Some(answer) => Ok(*answer.inner()),
                None => Err(BreakpointError::Evaluation(format!(
                    "it returns a {}, not true or false",
                    value.get_type().name()
                ))),
            },
            Err(ExecutionError::NoSuchKey(_) | ExecutionError::UndeclaredReference(_)) => Ok(false),
            Err(error) => Err(BreakpointError::Evaluation(error.to_string())),
        }
    }
}

static ENVIRONMENT: LazyLock<Result<Arc<Env>, BreakpointError>> = LazyLock::new(|| {
    environment().map(Arc::new).map_err(|error| BreakpointError::Evaluation(error.to_string()))
});

fn environment() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_type(AmountValue::cel_type().to_owned())?;
    env.add_overload(AMOUNT, "string_to_amount", vec![STRING_TYPE], |args| {
        let text = args.first().and_then(|arg| arg.downcast_ref::<CelString>());
        let text = text.map_or("", CelString::inner);
        match Quantity::parse(text) {
            Ok(quantity) => Ok(CowVal::owned(AmountValue(quantity))),
            Err(error) => Err(ExecutionError::function_error(AMOUNT, error)),
        }
    })?;
    Ok(env)
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// It is not CEL, uses an unknown name, or can never be evaluated.
    pub fn parse(text: &str) -> Result<Condition, BreakpointError> {
        let text = text.trim();
        let environment = ENVIRONMENT.as_ref().map_err(Clone::clone)?;
        let program = environment.compile(&with_amounts(text)).map_err(|errors| {
            let lines = errors.to_string();
            let first = lines.lines().next().unwrap_or_default();
            let first = first.rsplit("<input>:").next().unwrap_or_default();
            BreakpointError::Syntax { condition: text.to_owned(), problem: first.to_owned() }
        })?;
        let mut parts = Vec::new();
        take_apart(program.expression(), &mut parts)?;
        parts.iter().try_for_each(|part| check_values(&part.expression))?;
        let condition = Condition { text: text.into(), parts: parts.into() };
        match condition.try_out() {
            Ok(()) => Ok(condition),
            Err(problem) => Err(BreakpointError::Condition {
                condition: text.to_owned(),
                problem: Box::new(problem),
            }),
        }
    }

    /// The condition as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts that must all hold.
    pub fn parts(&self) -> &[ConditionPart] {
        &self.parts
    }

    /// Whether it uses a variable of that reach.
    pub fn needs(&self, reach: Reach) -> bool {
        self.parts.iter().any(|part| part.needs(reach))
    }

    /// Whether it holds, given all the variables that it needs.
    ///
    /// # Errors
    /// It cannot be evaluated.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, BreakpointError> {
        for part in self.parts.iter() {
            if !part.holds(facts)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Evaluates it on examples in which every variable is set, so that a mistake is reported at
    /// once and not after an hour. A watched value can be an amount, a count or a text.
    fn try_out(&self) -> Result<(), BreakpointError> {
        let mut answer = Ok(());
        for example in sample::examples() {
            let facts = example.facts();
            answer = self.parts.iter().try_for_each(|part| part.holds(&facts).map(|_| ()));
            if answer.is_ok() {
                break;
            }
        }
        answer
    }
}

/// Splits at the top level's `&&`.
fn take_apart(
    expression: &IdedExpr,
    parts: &mut Vec<ConditionPart>,
) -> Result<(), BreakpointError> {
    if let Expr::Call(call) = &expression.expr
        && call.func_name == operators::LOGICAL_AND
    {
        return call.args.iter().try_for_each(|arg| take_apart(arg, parts));
    }
    let mut reaches = Vec::new();
    for name in variables(expression) {
        let variable = VARIABLES.iter().find(|variable| variable.name == name);
        let reach = variable.map(|variable| variable.reach).ok_or_else(|| unknown(name))?;
        if !reaches.contains(&reach) {
            reaches.push(reach);
        }
    }
    let of_amounts = !asks_more_than_amounts(expression);
    parts.push(ConditionPart { expression: expression.clone(), reaches, of_amounts });
    Ok(())
}

/// Rejects comparisons of a variable with a text that it can never have.
fn check_values(of: &IdedExpr) -> Result<(), BreakpointError> {
    let mut checked = Ok(());
    visit(of, &mut Vec::new(), &mut |part, own| {
        if checked.is_ok() {
            checked = check_comparison(part, own);
        }
    });
    checked
}

fn check_comparison(of: &IdedExpr, own: &[&str]) -> Result<(), BreakpointError> {
    let Expr::Call(call) = &of.expr else { return Ok(()) };
    let [left, right] = call.args.as_slice() else { return Ok(()) };
    match (call.func_name.as_str(), &right.expr) {
        (operators::EQUALS | operators::NOT_EQUALS, _) => {
            check_value(left, std::slice::from_ref(right), own)?;
            check_value(right, std::slice::from_ref(left), own)
        }
        (operators::IN, Expr::List(list)) => check_value(left, &list.elements, own),
        _ => Ok(()),
    }
}

/// Checks the texts with which a variable is compared; not one that a comprehension binds.
fn check_value(
    variable: &IdedExpr,
    texts: &[IdedExpr],
    own: &[&str],
) -> Result<(), BreakpointError> {
    let Expr::Ident(name) = &variable.expr else { return Ok(()) };
    let known = VARIABLES.iter().find(|known| known.name == name && !own.contains(&known.name));
    let Some(values) = known.and_then(Variable::values) else { return Ok(()) };
    let text = |expression: &IdedExpr| match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    };
    let wrong = texts.iter().filter_map(text).find(|text| !values.contains(&text.as_str()));
    wrong.map_or(Ok(()), |value| {
        let values = values.join(", ");
        Err(BreakpointError::UnknownValue { name: name.clone(), value, values })
    })
}

/// Whether an expression uses fields of `node` other than its amounts.
fn asks_more_than_amounts(of: &IdedExpr) -> bool {
    match &of.expr {
        Expr::Ident(name) => name == "node",
        Expr::Literal(_) => false,
        Expr::Select(select) => match &select.operand.expr {
            Expr::Ident(name) if name == "node" => !AMOUNTS.contains(&select.field.as_str()),
            _ => asks_more_than_amounts(&select.operand),
        },
        Expr::Call(call) => {
            call.target.as_deref().into_iter().chain(&call.args).any(asks_more_than_amounts)
        }
        _ => true,
    }
}

fn unknown(name: &str) -> BreakpointError {
    let names = || VARIABLES.iter().map(|variable| variable.name);
    let hint = match suggest::closest(name, names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    BreakpointError::UnknownVariable { name: name.to_owned(), hint }
}

/// The variables that an expression uses, without those that its own comprehensions bind.
fn variables(of: &IdedExpr) -> Vec<&str> {
    let mut names = Vec::new();
    visit(of, &mut Vec::new(), &mut |part, own| {
        if let Expr::Ident(name) = &part.expr
            && !own.contains(&name.as_str())
        {
            names.push(name.as_str());
        }
    });
    names
}

/// Visits all parts of an expression, each with the variables that its comprehensions bind.
fn visit<'a>(
    of: &'a IdedExpr,
    own: &mut Vec<&'a str>,
    act: &mut dyn FnMut(&'a IdedExpr, &[&'a str]),
) {
    act(of, own);
    match &of.expr {
        Expr::Comprehension(each) => {
            visit(&each.iter_range, own, act);
            visit(&each.accu_init, own, act);
            let before = own.len();
            own.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
            own.extend(each.iter_var2.as_deref());
            for part in [&each.loop_cond, &each.loop_step, &each.result] {
                visit(part, own, act);
            }
            own.truncate(before);
        }
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.for_each(|part| visit(part, own, act));
        }
        Expr::Select(select) => visit(&select.operand, own, act),
        Expr::List(list) => list.elements.iter().for_each(|part| visit(part, own, act)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    visit(&entry.key, own, act);
                    visit(&entry.value, own, act);
                }
            }
        }
        _ => {}
    }
}

/// The text with amounts such as `500m` or `2Gi` converted to CEL. In CEL no letter follows a
/// number except in `5u` and exponents, so nothing else is changed.
fn with_amounts(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let word = before.is_alphanumeric() || before == '_';
        let taken = match c {
            '"' | '\'' => quoted(rest, c),
            _ if c.is_ascii_digit() && !word => match amount(rest) {
                Some(end) => {
                    out.push_str(&format!("{AMOUNT}(\"{}\")", &rest[..end]));
                    before = ')';
                    rest = &rest[end..];
                    continue;
                }
                None => number_end(rest),
            },
            _ => c.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        before = rest[..taken].chars().next_back().unwrap_or(' ');
        rest = &rest[taken..];
    }
    out
}

/// The length of the quoted text at the start.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The end of a number: digits and at most one point.
fn number_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len())
}

/// The length of the amount with a suffix at the start; `None` if there is none.
fn amount(text: &str) -> Option<usize> {
    const SUFFIXES: [&str; 12] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "k", "M", "G", "T", "P", "m"];
    let digits = number_end(text);
    let suffix = SUFFIXES.iter().find(|suffix| text[digits..].starts_with(**suffix))?;
    let end = digits + suffix.len();
    let next = text[end..].chars().next();
    next.is_none_or(|c| !c.is_alphanumeric() && c != '_').then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Condition {
        Condition::parse(text).unwrap()
    }

    fn mistake(text: &str) -> String {
        Condition::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn amounts_are_written_as_in_manifests() {
        for (written, read) in [
            ("node.free.cpu < 500m", "node.free.cpu < quantity(\"500m\")"),
            ("2.5Gi", "quantity(\"2.5Gi\")"),
            ("\"500m\" == 'x\\'2Gi'", "\"500m\" == 'x\\'2Gi'"),
            ("5u + 5e3 + 0x1f + a5m + 500min", "5u + 5e3 + 0x1f + a5m + 500min"),
            ("[1k,2]", "[quantity(\"1k\"),2]"),
        ] {
            assert_eq!(with_amounts(written), read);
        }
    }

    #[test]
    fn parts_know_what_they_need() {
        let condition =
            parse("attempts >= 3 && verdict != 'Success' && (node.pods > 2 || score > 1)");
        let reaches: Vec<_> = condition.parts().iter().map(|part| part.reaches.clone()).collect();
        assert_eq!(
            reaches,
            [vec![Reach::Cycle], vec![Reach::Answer], vec![Reach::Node, Reach::Score]]
        );
        assert!(condition.parts()[0].is_of_cycle(true) && !condition.parts()[1].is_of_cycle(true));
        assert!(parse("node.free.cpu < 1").parts()[0].is_of_node());
    }

    #[test]
    fn mistakes_show_at_once() {
        assert!(mistake("feasable == 0").ends_with("did you mean \"feasible\"?"));
        assert!(mistake("xyz").contains("there are pod, seconds, cycle"));
        assert!(mistake("feasible ==").contains("cannot be read"));
        assert!(mistake("feasible").ends_with("it returns a int, not true or false"));
        assert!(mistake("message > 3").contains("the condition"));
        assert!(mistake("node.fre.cpu < 1").contains("there are name, labels"));
        assert!(mistake("node.free.cpu < 'x'").contains("the condition"));
    }

    #[test]
    fn a_value_that_a_variable_never_has_is_rejected_with_those_that_it_has() {
        let verdicts = "verdict is never \"never\"; it is one of Success, Error, Unschedulable, \
                        UnschedulableAndUnresolvable, Wait, Skip, Pending";
        for text in [
            "verdict == \"never\"",
            "'never' != verdict",
            "attempts > 1 && (verdict in ['Skip', 'never'] || point == 'Filter')",
            "!(verdict == 'never')",
            "[verdict == 'never'].exists(x, x)",
        ] {
            assert_eq!(mistake(text), verdicts, "{text}");
        }
        for (text, values) in [
            ("outcome == 'scheduled'", "Scheduled, Waiting, Unschedulable"),
            ("point == 'filter'", "PreFilter, Filter"),
            ("from == 'in-flight'", "in flight"),
            ("to in ['x']", "none, active, backoff"),
        ] {
            assert!(mistake(text).contains(values), "{text}: {}", mistake(text));
        }
        parse("pod.labels.exists(verdict, verdict == 'app')");
        parse("to == 'in flight' && plugin == 'any'");
    }

    #[test]
    fn a_label_that_is_not_there_is_a_no() {
        let condition = parse("pod.labels.app == 'web' || pod.labels['a/b'] == 'c'");
        assert_eq!(condition.holds(&Facts::default()), Ok(false));
        assert!(parse("has(pod.labels.app)").holds(&Facts::default()).is_ok());
        assert!(parse("pod.labels.exists(k, k == 'app')").holds(&Facts::default()).is_ok());
    }
}
