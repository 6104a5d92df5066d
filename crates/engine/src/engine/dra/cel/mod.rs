//! CEL expressions on devices: the selectors of claims and device classes (CEL-001…004).
//!
//! Parser and interpreter are the `cel` crate's; this adds Kubernetes' types ([`quantity`],
//! [`version`]), the variable `device` ([`value`]), and the part of type checking that tells a
//! selector that cannot work from one that does not match ([`check`]). Upstream:
//! `staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go`.

mod check;
mod error;
mod includes;
mod logic;
mod quantity;
mod value;
mod version;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue};
use ::cel::parser::Macro;
use ::cel::{Context, DeclarationError, Env, Program, extensions};
use hashbrown::HashMap;

use crate::api::Device;
use crate::engine::dra::cel::logic::Outcome;
use crate::engine::dra::cel::value::DeviceValue;
use crate::intern::Symbol;

/// An expression that was read, whether well or not.
#[derive(Debug)]
pub struct Expression {
    program: Result<Program, String>,
    /// It could run far longer than upstream lets it.
    is_expensive: bool,
    /// Whether attributes may be lists.
    lists: bool,
}

/// What expressions can use.
static ENVIRONMENT: LazyLock<Result<Arc<Env>, String>> =
    LazyLock::new(|| environment().map(Arc::new).map_err(|error| error.to_string()));

/// The expressions that were read so far. What an expression means does not change, so it
/// makes no difference to anything but time who read it first.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Expressions by their text and by whether attributes may be lists.
type Known = HashMap<(Symbol, bool), Arc<Expression>>;

/// Reads an expression. If it is wrong, that shows as soon as it is used. With `lists`,
/// attributes of devices may be lists (DRAListTypeAttributes).
pub fn compile(text: Symbol, lists: bool) -> Arc<Expression> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((text, lists)).or_insert_with(|| Arc::new(Expression::new(&text, lists))).clone()
}

impl Expression {
    fn new(text: &str, lists: bool) -> Expression {
        let program = ENVIRONMENT.as_ref().map_err(Clone::clone).and_then(|environment| {
            let program = environment
                .compile(text)
                .map_err(|errors| format!("compilation failed: {}", error::syntax(&errors)))?;
            check::check(&program, text, lists)?;
            Ok(program)
        });
        let is_expensive = program.as_ref().is_ok_and(check::is_expensive);
        Expression { program, is_expensive, lists }
    }

    /// Whether the device meets the expression.
    ///
    /// # Errors
    /// The expression is wrong, or does not work for this device.
    pub fn matches(&self, driver: Symbol, device: &Device) -> Result<bool, String> {
        let program = self.program.as_ref().map_err(|text| format!("CEL compile error: {text}"))?;
        let environment = ENVIRONMENT.as_ref().map_err(Clone::clone)?;
        let run = || {
            value::check_attributes(device, self.lists)?;
            if self.is_expensive {
                return Err("operation cancelled: actual cost limit exceeded".to_owned());
            }
            let mut context = Context::with_env(environment.clone());
            let device = DeviceValue::new(driver, device, self.lists);
            context.add_variable_as_val("device", Box::new(device));
            match logic::evaluate(program.expression(), &context)? {
                Outcome::Answer(answer) => Ok(answer),
                Outcome::Other(kind) => Err(error::no_bool(&kind)),
            }
        };
        run().map_err(|text| format!("CEL runtime error: {text}"))
    }
}

fn environment() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_macro(bind())?;
    quantity::declare(&mut env)?;
    version::declare(&mut env)?;
    includes::declare(&mut env)?;
    Ok(env)
}

/// `cel.bind(name, value, expression)`: a loop that never runs, with `name` as its result so
/// far.
fn bind() -> Macro {
    Macro::receiver("bind", 3, |helper, target, args| {
        let is_cel = target.as_ref().is_some_and(|t| t.expr == Expr::Ident("cel".to_owned()));
        let name = match args.first().map(|arg| &arg.expr) {
            Some(Expr::Ident(name)) if is_cel => name.clone(),
            _ => return Ok(None),
        };
        let (Some(result), Some(accu_init)) = (args.pop(), args.pop()) else { return Ok(None) };
        let never = Expr::Literal(LiteralValue::Boolean(false.into()));
        let bound = ComprehensionExpr {
            iter_range: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.clone(),
            accu_init,
            loop_cond: helper.next_expr(never),
            loop_step: helper.next_expr(Expr::Ident(name)),
            result,
        };
        Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(bound)))))
    })
}

/// The parts of an expression, left to right.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(CallExpr { target, args, .. }) => {
            target.as_deref().into_iter().chain(args).collect()
        }
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                ::cel::common::ast::EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                ::cel::common::ast::EntryExpr::StructField(field) => vec![&field.value],
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
