//! What can be told of an expression before it runs: names that do not exist, a result that
//! is no bool, and how long it could run (CEL-003, CEL-004).
//!
//! The interpreter is not typed; this is as much of upstream's type checker as tells a
//! mistaken selector from one that just does not match.

use ::cel::Program;
use ::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

use crate::engine::dra::cel::{includes, parts, value};

/// The cost that upstream lets an expression have at most.
const MAX_COST: u64 = 1_000_000;
/// The entries that are assumed of a list or map that is not written out.
const ASSUMED_SIZE: u64 = 10;

/// The types that matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    List,
    Map,
    Device,
    /// Only known when it runs.
    Any,
}

impl Kind {
    fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Uint | Kind::Double)
    }

    fn is_scalar(self) -> bool {
        self.is_number() || matches!(self, Kind::Bool | Kind::Text | Kind::Bytes)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Uint => "uint",
            Kind::Double => "double",
            Kind::Text => "string",
            Kind::Bytes => "bytes",
            Kind::Null => "null",
            Kind::List => "list",
            Kind::Map => "map",
            Kind::Device => "kubernetes.DRADevice",
            Kind::Any => "any",
        }
    }
}

/// Functions by the type of what they give.
const FUNCTIONS: &[(Kind, &[&str])] = &[
    (
        Kind::Bool,
        &[
            "!_",
            "_&&_",
            "_||_",
            "_==_",
            "_!=_",
            "_<_",
            "_<=_",
            "_>_",
            "_>=_",
            "@in",
            "bool",
            "contains",
            "endsWith",
            "startsWith",
            "matches",
            "isGreaterThan",
            "isLessThan",
            "isQuantity",
            "isSemver",
            "isInteger",
            "@not_strictly_false",
            "hasValue",
        ],
    ),
    (
        Kind::Int,
        &[
            "int",
            "size",
            "compareTo",
            "sign",
            "asInteger",
            "indexOf",
            "lastIndexOf",
            "major",
            "minor",
            "patch",
        ],
    ),
    (Kind::Uint, &["uint"]),
    (Kind::Double, &["double", "asApproximateFloat"]),
    (
        Kind::Text,
        &[
            "string",
            "charAt",
            "join",
            "lowerAscii",
            "upperAscii",
            "replace",
            "substring",
            "trim",
            "format",
            "strings.quote",
        ],
    ),
    (Kind::Bytes, &["bytes"]),
    (Kind::List, &["split", "flatten", "slice", "sort", "distinct", "lists.range"]),
    (
        Kind::Any,
        &[
            "_?_:_",
            "_-_",
            "_+_",
            "_*_",
            "_/_",
            "_%_",
            "-_",
            "_[_]",
            "_[?_]",
            "_?._",
            "dyn",
            "type",
            "quantity",
            "semver",
            "add",
            "sub",
            "reverse",
            "first",
            "last",
            "optional.of",
            "optional.none",
            "optional.ofNonZeroValue",
            "value",
            "or",
            "orValue",
            "of",
            "none",
            "ofNonZeroValue",
            "quote",
            "range",
            "@sortByAssociatedKeys",
            "lists.@sortByAssociatedKeys",
        ],
    ),
];

/// Functions that upstream has and the interpreter has not.
const NOT_HERE: &[&str] = &[
    "find",
    "findAll",
    "isSorted",
    "sum",
    "min",
    "max",
    "url",
    "isURL",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "duration",
    "timestamp",
    "validate",
    "named",
    "all",
    "intersects",
    "equivalent",
];

/// Names that are no variables but lead to functions or types.
const GLOBALS: &[&str] = &[
    "cel",
    "optional",
    "lists",
    "strings",
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
];

/// Refuses an expression that cannot work.
///
/// # Errors
/// In upstream's words.
pub fn check(program: &Program, text: &str, lists: bool) -> Result<(), String> {
    let mut checker = Checker { program, text, lists, scope: Vec::new() };
    let kind = checker.kind_of(program.expression())?;
    match kind {
        Kind::Bool | Kind::Any => Ok(()),
        other => Err(format!("must evaluate to bool or the unknown type, not {}", other.name())),
    }
}

/// Whether the expression could cost more than it may: lists within lists within lists.
pub fn is_expensive(program: &Program) -> bool {
    cost(program.expression()) > MAX_COST
}

fn cost(expression: &IdedExpr) -> u64 {
    let Expr::Comprehension(each) = &expression.expr else {
        let parts = parts(expression).into_iter().map(cost);
        return parts.fold(1, u64::saturating_add);
    };
    let times = match &each.iter_range.expr {
        Expr::List(list) => list.elements.len() as u64,
        _ => ASSUMED_SIZE,
    };
    let body = cost(&each.loop_cond).saturating_add(cost(&each.loop_step));
    let once = [&each.iter_range, &each.accu_init, &each.result].map(cost).into_iter();
    once.fold(body.saturating_mul(times), u64::saturating_add)
}

struct Checker<'a> {
    program: &'a Program,
    text: &'a str,
    /// Whether attributes may be lists.
    lists: bool,
    /// The variables of the macros around.
    scope: Vec<(&'a str, Kind)>,
}

impl<'a> Checker<'a> {
    fn kind_of(&mut self, expression: &'a IdedExpr) -> Result<Kind, String> {
        match &expression.expr {
            Expr::Ident(name) => self.variable(expression, name),
            Expr::Literal(literal) => Ok(literal_kind(literal)),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(_) => self.parts_of(expression).map(|_| Kind::List),
            Expr::Map(_) => self.parts_of(expression).map(|_| Kind::Map),
            Expr::Comprehension(each) => {
                self.kind_of(&each.iter_range)?;
                let accumulated = self.kind_of(&each.accu_init)?;
                self.scope.push((&each.accu_var, accumulated));
                self.scope.push((&each.iter_var, Kind::Any));
                self.kind_of(&each.loop_cond)?;
                self.kind_of(&each.loop_step)?;
                self.scope.pop();
                let result = self.kind_of(&each.result);
                self.scope.pop();
                result
            }
            _ => Ok(Kind::Any),
        }
    }

    fn parts_of(&mut self, expression: &'a IdedExpr) -> Result<Vec<Kind>, String> {
        parts(expression).into_iter().map(|part| self.kind_of(part)).collect()
    }

    fn variable(&self, expression: &IdedExpr, name: &str) -> Result<Kind, String> {
        if name == "device" {
            return Ok(Kind::Device);
        }
        let known = self.scope.iter().rev().find(|(known, _)| *known == name);
        match known {
            Some((_, kind)) => Ok(*kind),
            None if GLOBALS.contains(&name) => Ok(Kind::Any),
            None => {
                let text = format!("undeclared reference to '{name}' (in container '')");
                Err(self.error(expression, &text))
            }
        }
    }

    fn select(&mut self, whole: &IdedExpr, select: &'a SelectExpr) -> Result<Kind, String> {
        let of = self.kind_of(&select.operand)?;
        if of == Kind::Device && !value::FIELDS.contains(&select.field.as_str()) {
            return Err(self.error(whole, &format!("undefined field '{}'", select.field)));
        }
        Ok(match (of, select.field.as_str()) {
            _ if select.test => Kind::Bool,
            (Kind::Device, "driver") => Kind::Text,
            (Kind::Device, "allowMultipleAllocations") => Kind::Bool,
            (Kind::Device, _) => Kind::Map,
            _ => Kind::Any,
        })
    }

    fn call(&mut self, whole: &'a IdedExpr, call: &'a CallExpr) -> Result<Kind, String> {
        let kinds = self.parts_of(whole)?;
        let name = call.func_name.as_str();
        let kind = FUNCTIONS.iter().find(|(_, names)| names.contains(&name)).map(|(kind, _)| *kind);
        if name == includes::NAME && self.lists {
            return Ok(Kind::Bool);
        }
        let Some(kind) = kind else {
            let text = match NOT_HERE.contains(&name) {
                true => format!("kubestep cannot evaluate the function '{name}'"),
                false => format!("undeclared reference to '{name}' (in container '')"),
            };
            return Err(self.error(whole, &text));
        };
        if !go_together(name, &kinds) {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            let names = names.join(", ");
            let text = format!("found no matching overload for '{name}' applied to '({names})'");
            return Err(self.error(whole, &text));
        }
        Ok(kind)
    }

    /// The text with its place, as upstream prints it.
    fn error(&self, expression: &IdedExpr, text: &str) -> String {
        let start = self.program.source_info().offset_for(expression.id);
        let start = start.map_or(0, |(start, _)| start as usize).min(self.text.len());
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        let source = self.text.lines().nth(line).unwrap_or_default();
        let marker = format!("{}^", ".".repeat(column));
        format!(
            "compilation failed: ERROR: <input>:{}:{}: {text}\n | {source}\n | {marker}",
            line + 1,
            column + 1
        )
    }
}

/// Whether the operator is there for operands of these types, as far as they are known.
fn go_together(name: &str, kinds: &[Kind]) -> bool {
    match (name, kinds) {
        ("_&&_" | "_||_" | "!_", _) => {
            kinds.iter().all(|kind| matches!(kind, Kind::Bool | Kind::Any))
        }
        ("_==_" | "_!=_", [left, right]) => {
            left == right || !(left.is_scalar() && right.is_scalar())
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
            let numbers = left.is_number() && right.is_number();
            left == right || numbers || !(left.is_scalar() && right.is_scalar())
        }
        _ => true,
    }
}

fn literal_kind(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Boolean(_) => Kind::Bool,
        LiteralValue::Bytes(_) => Kind::Bytes,
        LiteralValue::Double(_) => Kind::Double,
        LiteralValue::Int(_) => Kind::Int,
        LiteralValue::Null => Kind::Null,
        LiteralValue::String(_) => Kind::Text,
        LiteralValue::UInt(_) => Kind::Uint,
    }
}
