//! Checks of an expression before it runs: unknown names, type mismatches, a result that is not
//! bool, and the estimated cost.
//!
//! The interpreter is untyped, so types are checked first, as upstream does. Upstream: cel-go's
//! `checker/checker.go` and `cel/validator.go`.

use hashbrown::HashMap;

use ::cel::Program;
use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr, operators,
};

use crate::functions::{self, Signature};
use crate::types::{
    ANY, BOOL, DEVICE, DYN, ERROR, INT, QUANTITY, STRING, Type, TypeBindings, most_general,
};
use crate::{error, pairs, parts};

/// Upstream's limit on the cost of an expression.
const MAX_COST: u64 = 1_000_000;
/// The assumed number of entries of a list or map that is not a literal.
const ASSUMED_SIZE: u64 = 10;

/// The types that have names in expressions.
const TYPE_NAMES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "string",
    "uint",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "net.IP",
    "net.CIDR",
];

/// Rejects an invalid expression.
///
/// # Errors
/// The text is upstream's.
pub fn check(program: &Program, text: &str, lists: bool) -> Result<(), String> {
    let mut checker = Checker {
        program,
        text,
        lists,
        scope: Vec::new(),
        known: TypeBindings::default(),
        open: 2,
        types: HashMap::new(),
        errors: Vec::new(),
    };
    let of = checker.check(program.expression());
    if checker.errors.is_empty() {
        checker.validate(program.expression(), false);
    }
    if !checker.errors.is_empty() {
        return Err(format!("compilation failed: {}", error::located(text, checker.errors)));
    }
    let of = checker.known.resolve(&of, true);
    match of == BOOL || of == ANY || (lists && of == DYN) {
        true => Ok(()),
        false => Err(format!("must evaluate to bool or the unknown type, not {}", of.declared())),
    }
}

/// Whether the expression could exceed the cost limit, for example by deeply nested loops.
pub(crate) fn is_expensive(expression: &IdedExpr) -> bool {
    cost(expression) > MAX_COST
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
    /// The variables of the enclosing macros.
    scope: Vec<(&'a str, Type)>,
    /// The types that type variables are bound to.
    known: TypeBindings,
    /// The next type variable. The first two are those of signatures.
    open: u32,
    /// The types of all subexpressions, by id.
    types: HashMap<u64, Type>,
    /// Offset and text of each error.
    errors: Vec<(usize, String)>,
}

impl<'a> Checker<'a> {
    /// The type of the expression, as far as it is known.
    fn check(&mut self, expression: &'a IdedExpr) -> Type {
        let of = match &expression.expr {
            Expr::Ident(name) => self.name(expression, name),
            Expr::Literal(literal) => literal_type(literal),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(each) => self.each(each),
            Expr::Struct(written) => {
                let text = undeclared(&written.type_name);
                self.error(expression, text)
            }
            Expr::Unspecified => ERROR,
        };
        self.types.insert(expression.id, of.clone());
        of
    }

    fn name(&mut self, expression: &IdedExpr, name: &str) -> Type {
        let known = self.scope.iter().rev().find(|(known, _)| *known == name);
        match known {
            Some((_, of)) => of.clone(),
            None if name == "device" => DEVICE,
            None => type_named(name).unwrap_or_else(|| self.error(expression, undeclared(name))),
        }
    }

    fn select(&mut self, whole: &'a IdedExpr, select: &'a SelectExpr) -> Type {
        if let Some(named) = qualified(whole).and_then(|name| type_named(&name)) {
            return named;
        }
        let of = self.field(whole, &select.operand, &select.field, false);
        if select.test { BOOL } else { self.known.resolve(&of, false) }
    }

    fn field(
        &mut self,
        whole: &IdedExpr,
        operand: &'a IdedExpr,
        field: &str,
        optional: bool,
    ) -> Type {
        let of = self.check(operand);
        let (of, was_optional) = match self.known.resolve(&of, false) {
            Type::Optional(of) => (*of, true),
            of => (of, false),
        };
        let found = match &of {
            Type::Map(_, value) => (**value).clone(),
            Type::Var(_) => {
                self.known.assign(&DYN, &of);
                DYN
            }
            of if *of == DEVICE => self
                .device_field(field)
                .unwrap_or_else(|| self.error(whole, format!("undefined field '{field}'"))),
            of => {
                if !of.is_dyn() && *of != ERROR {
                    let text = format!("type '{}' does not support field selection", of.shown());
                    self.error(whole, text);
                }
                DYN
            }
        };
        if was_optional || optional { Type::optional(found) } else { found }
    }

    fn device_field(&self, field: &str) -> Option<Type> {
        let by_name = |of: Type| Type::map(STRING, Type::map(STRING, of));
        match field {
            "driver" => Some(STRING),
            "attributes" => Some(by_name(if self.lists { DYN } else { ANY })),
            "capacity" => Some(by_name(QUANTITY)),
            "allowMultipleAllocations" => Some(BOOL),
            _ => None,
        }
    }

    fn call(&mut self, whole: &'a IdedExpr, call: &'a CallExpr) -> Type {
        let name = call.func_name.as_str();
        if let ("_?._", [operand, field]) = (name, &call.args[..])
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            return self.field(whole, operand, field.inner(), true);
        }
        if let Some(of) = self.part_of_pair(call) {
            return of;
        }
        let mut takes: Vec<Type> = call.args.iter().map(|arg| self.check(arg)).collect();
        if name == operators::LOGICAL_AND || name == operators::LOGICAL_OR {
            return self.logical(call, &takes);
        }
        let Some(target) = call.target.as_deref() else {
            return self.apply(whole, name, false, &takes);
        };
        if let Some(prefix) = qualified(target) {
            let name = format!("{prefix}.{name}");
            if functions::forms_of(&name).is_some() || functions::is_upstreams(&name) {
                return self.apply(whole, &name, false, &takes);
            }
        }
        takes.insert(0, self.check(target));
        self.apply(whole, name, true, &takes)
    }

    /// The type of the key or the value that a macro with two variables binds.
    fn part_of_pair(&self, call: &CallExpr) -> Option<Type> {
        let [pair, at] = &call.args[..] else { return None };
        let (Expr::Ident(name), Expr::Literal(LiteralValue::Int(at))) = (&pair.expr, &at.expr)
        else {
            return None;
        };
        let (_, of) = self.scope.iter().rev().find(|(known, _)| known == name)?;
        match of {
            Type::Map(key, value) if name == pairs::PAIR => {
                Some(if *at.inner() == 0 { (**key).clone() } else { (**value).clone() })
            }
            _ => None,
        }
    }

    fn logical(&mut self, call: &'a CallExpr, takes: &[Type]) -> Type {
        let mut of = BOOL;
        for (arg, found) in call.args.iter().zip(takes) {
            if !self.known.assign(found, &BOOL) {
                of = self.mismatch(arg, &BOOL, found);
            }
        }
        of
    }

    /// The result type of the function for arguments of these types.
    fn apply(&mut self, whole: &IdedExpr, name: &str, is_member: bool, takes: &[Type]) -> Type {
        let forms = functions::forms_of(name);
        let Some(forms) = forms else {
            let text = match functions::is_upstreams(name) {
                true => format!("kubestep cannot evaluate the function '{name}'"),
                false => undeclared(name),
            };
            return self.error(whole, text);
        };
        let mut gives: Option<Type> = None;
        for form in forms.iter().filter(|form| form.is_member == is_member) {
            let (wanted, given) = self.fresh(form);
            if !self.known.assign_all(takes, &wanted) {
                continue;
            }
            let given = self.known.resolve(&given, false);
            gives = Some(match gives {
                Some(known) if !known.is_dyn() && known != given => DYN,
                Some(known) => known,
                None => given,
            });
        }
        gives.unwrap_or_else(|| {
            let takes: Vec<String> =
                takes.iter().map(|of| self.known.resolve(of, true).shown()).collect();
            let signature = match takes.split_first() {
                Some((target, rest)) if is_member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", takes.join(", ")),
            };
            let text = format!("found no matching overload for '{name}' applied to '{signature}'");
            self.error(whole, text)
        })
    }

    /// The signature with new type variables.
    fn fresh(&mut self, form: &Signature) -> (Vec<Type>, Type) {
        let mut own = TypeBindings::default();
        for number in [0, 1] {
            own.assign(&self.new_open(), &Type::Var(number));
        }
        let takes = form.takes.iter().map(|of| own.resolve(of, false)).collect();
        (takes, own.resolve(&form.gives, false))
    }

    fn new_open(&mut self) -> Type {
        self.open += 1;
        Type::Var(self.open)
    }

    fn list(&mut self, list: &'a ListExpr) -> Type {
        let mut joined = None;
        for (at, element) in list.elements.iter().enumerate() {
            let mut of = self.check(element);
            if list.optional_indices.contains(&at) {
                of = self.unwrapped(element, of);
            }
            joined = Some(self.join(joined, of));
        }
        Type::list(joined.unwrap_or_else(|| self.new_open()))
    }

    fn map(&mut self, map: &'a MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.check(&entry.key);
            keys = Some(self.join(keys, key));
            let mut value = self.check(&entry.value);
            if entry.optional {
                value = self.unwrapped(&entry.value, value);
            }
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.new_open());
        Type::map(key, values.unwrap_or_else(|| self.new_open()))
    }

    /// The type of the value in an optional element.
    fn unwrapped(&mut self, element: &IdedExpr, of: Type) -> Type {
        match of {
            Type::Optional(of) => *of,
            of => {
                if !of.is_dyn() {
                    self.mismatch(element, &Type::optional(of.clone()), &of);
                }
                of
            }
        }
    }

    /// The common type of elements; [`Checker::validate`] rejects elements that differ.
    fn join(&mut self, before: Option<Type>, of: Type) -> Type {
        let Some(before) = before else { return of };
        match self.known.assign(&before, &of) {
            true => most_general(&before, &of),
            false => DYN,
        }
    }

    fn each(&mut self, each: &'a ComprehensionExpr) -> Type {
        let variable = self.range(&each.iter_range);
        let accumulated = self.check(&each.accu_init);
        self.scope.push((&each.accu_var, accumulated.clone()));
        self.scope.push((&each.iter_var, variable));
        self.assert(&each.loop_cond, &BOOL);
        self.assert(&each.loop_step, &accumulated);
        self.scope.pop();
        let result = self.check(&each.result);
        self.scope.pop();
        self.known.resolve(&result, false)
    }

    fn assert(&mut self, expression: &'a IdedExpr, wanted: &Type) {
        let found = self.check(expression);
        if !self.known.assign(wanted, &found) {
            self.mismatch(expression, wanted, &found);
        }
    }

    /// The type of the loop variable of a range; for pairs, key and value as a map.
    fn range(&mut self, range: &'a IdedExpr) -> Type {
        let (range, is_pair) = match &range.expr {
            Expr::Call(call) if call.func_name == pairs::PAIRS => (&call.args[0], true),
            _ => (range, false),
        };
        let of = self.check(range);
        let of = self.known.resolve(&of, false);
        let (key, value) = match &of {
            Type::List(item) if is_pair => (INT, (**item).clone()),
            Type::List(item) => ((**item).clone(), DYN),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            of if *of == DYN || *of == ERROR || matches!(of, Type::Var(_)) => {
                self.known.assign(&DYN, of);
                (DYN, DYN)
            }
            of => {
                let text = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)",
                    of.shown()
                );
                self.error(range, text);
                (ERROR, ERROR)
            }
        };
        if is_pair { Type::map(key, value) } else { key }
    }

    /// Validates literals, once all types match. The elements of a format's list may have different
    /// types.
    fn validate(&mut self, expression: &'a IdedExpr, in_format: bool) {
        let mut in_format = in_format;
        match &expression.expr {
            Expr::Call(call) if call.func_name == "matches" => self.validate_pattern(call),
            Expr::Call(call) if call.func_name == "format" => in_format = true,
            Expr::List(list) if !in_format => {
                let elements = list.elements.iter().enumerate();
                let elements = elements.map(|(at, e)| (e, list.optional_indices.contains(&at)));
                self.validate_alike(elements.collect());
            }
            Expr::Map(map) if !in_format => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let (keys, values) =
                    entries.map(|e| ((&e.key, false), (&e.value, e.optional))).unzip();
                self.validate_alike(keys);
                self.validate_alike(values);
            }
            _ => {}
        }
        parts(expression).into_iter().for_each(|part| self.validate(part, in_format));
    }

    fn validate_pattern(&mut self, call: &CallExpr) {
        let Some(pattern) = call.args.first() else { return };
        if let Expr::Literal(LiteralValue::String(text)) = &pattern.expr
            && regex::Regex::new(text.inner()).is_err()
        {
            self.error(pattern, "invalid matches argument".to_owned());
        }
    }

    fn validate_alike(&mut self, elements: Vec<(&IdedExpr, bool)>) {
        let mut first: Option<Type> = None;
        for (element, optional) in elements {
            let of = self.types.get(&element.id).cloned().unwrap_or(DYN);
            let of = match self.known.resolve(&of, true) {
                Type::Optional(of) if optional => *of,
                of => of,
            };
            match &first {
                None => first = Some(of),
                Some(first) if *first != of => {
                    let first = first.clone();
                    self.mismatch(element, &first, &of);
                    return;
                }
                Some(_) => {}
            }
        }
    }

    fn mismatch(&mut self, expression: &IdedExpr, wanted: &Type, found: &Type) -> Type {
        let text = format!("expected type '{}' but found '{}'", wanted.shown(), found.shown());
        self.error(expression, text)
    }

    fn error(&mut self, expression: &IdedExpr, text: String) -> Type {
        let start = self.program.source_info().offset_for(expression.id);
        let start = start.map_or(0, |(start, _)| start as usize).min(self.text.len());
        self.errors.push((start, text));
        ERROR
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

/// The type of an identifier that names a type.
fn type_named(name: &str) -> Option<Type> {
    let of = match name {
        "list" => Type::list(DYN),
        "map" => Type::map(DYN, DYN),
        "null_type" => Type::Named("null"),
        "type" => Type::Kind(None),
        name => Type::Named(TYPE_NAMES.iter().find(|known| **known == name)?),
    };
    Some(Type::Kind(Some(Box::new(of))))
}

/// The qualified name `a.b.c`, if the expression is one.
fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => BOOL,
        LiteralValue::Bytes(_) => Type::Named("bytes"),
        LiteralValue::Double(_) => Type::Named("double"),
        LiteralValue::Int(_) => INT,
        LiteralValue::Null => Type::Named("null"),
        LiteralValue::String(_) => STRING,
        LiteralValue::UInt(_) => Type::Named("uint"),
    }
}
