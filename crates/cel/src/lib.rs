//! CEL expressions on devices: the selectors of claims and device classes.
//!
//! Parser and interpreter are the `cel` crate's; this adds Kubernetes' types (`quantity`,
//! `version`, `net`) and functions (`lists`, `find`, `pairs`), the variable `device` (`value`), and
//! type checking, which distinguishes an invalid selector from one that does not match (`check`,
//! with `types` and `functions`). Upstream:
//! `staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go`.

mod check;
mod equal;
mod error;
mod find;
mod functions;
mod lists;
mod logic;
mod net;
mod pairs;
mod quantity;
mod types;
pub mod val;
mod value;
mod version;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue,
};
use ::cel::parser::{Macro, MacroExprHelper};
use ::cel::{Context, DeclarationError, Env, Value, extensions};
use hashbrown::HashMap;

use crate::logic::EvaluationResult;
use crate::value::DeviceValue;
use kubestep_api::Device;
use kubestep_api::intern::Symbol;

/// A compiled expression, or the error of its compilation.
#[derive(Debug)]
pub struct Expression {
    program: Result<IdedExpr, String>,
    /// It could exceed upstream's cost limit by far.
    is_expensive: bool,
    options: Options,
}

/// Maximum length of an expression in bytes: an API server stores no longer one
/// (`resource.CELSelectorExpressionMaxLength`), and the work grows faster than the length.
const MAX_LENGTH: usize = 10 * 1024;

/// What expressions see of devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Whether attributes may be lists (gate DRAListTypeAttributes).
    pub lists: bool,
    /// Whether expressions see that a device may be shared; otherwise none seems to be.
    pub sharing: bool,
}

/// The functions and types that expressions can use.
static ENVIRONMENT: LazyLock<Result<Arc<Env>, String>> =
    LazyLock::new(|| environment().map(Arc::new).map_err(|error| error.to_string()));

/// The expressions that were compiled so far. An expression's meaning does not change, so the cache
/// affects only the time.
static KNOWN: LazyLock<Mutex<CompiledExpressions>> = LazyLock::new(Mutex::default);

/// Compiled expressions by text and options.
type CompiledExpressions = HashMap<(Symbol, Options), Arc<Expression>>;

/// Why an expression has no answer, in upstream's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CelError {
    /// The expression is invalid, whatever the device.
    #[error("CEL compile error: {0}")]
    Compile(String),
    /// The evaluation fails for this device.
    #[error("CEL runtime error: {0}")]
    Runtime(String),
}

/// Compiles an expression. An error is reported when it is used.
pub fn compile(text: Symbol, options: Options) -> Arc<Expression> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || Arc::new(Expression::new(&text, options));
    known.entry((text, options)).or_insert_with(new).clone()
}

impl Expression {
    fn new(text: &str, options: Options) -> Expression {
        let program = ENVIRONMENT.as_ref().map_err(Clone::clone).and_then(|environment| {
            if text.len() > MAX_LENGTH {
                return Err(format!("{} bytes are too long: at most {MAX_LENGTH}", text.len()));
            }
            let program = environment
                .compile(text)
                .map_err(|errors| format!("compilation failed: {}", error::syntax(&errors)))?;
            check::check(&program, text, options.lists)?;
            let mut expression = program.expression().clone();
            convert_constants(&expression, environment)?;
            equal::rewrite(&mut expression);
            Ok(expression)
        });
        let is_expensive = program.as_ref().is_ok_and(check::is_expensive);
        Expression { program, is_expensive, options }
    }

    /// Whether the expression is true for the device.
    ///
    /// # Errors
    /// The expression is invalid, or its evaluation fails for this device.
    pub fn matches(&self, driver: Symbol, device: &Device) -> Result<bool, CelError> {
        let invalid = |text: &String| CelError::Compile(text.clone());
        let program = self.program.as_ref().map_err(invalid)?;
        let environment = ENVIRONMENT.as_ref().map_err(invalid)?;
        let run = || {
            value::check_attributes(device, self.options.lists)?;
            if self.is_expensive {
                return Err("operation cancelled: actual cost limit exceeded".to_owned());
            }
            let mut context = Context::with_env(environment.clone());
            let device = DeviceValue::new(driver, device, self.options);
            context.add_variable_as_val("device", Box::new(device));
            match logic::evaluate(program, &context)? {
                EvaluationResult::Answer(answer) => Ok(answer),
                EvaluationResult::Other(kind) => Err(error::no_bool(&kind)),
            }
        };
        run().map_err(CelError::Runtime)
    }
}

fn environment() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_macro(bind())?;
    quantity::declare(&mut env)?;
    version::declare(&mut env)?;
    lists::declare(&mut env)?;
    find::declare(&mut env)?;
    net::declare(&mut env)?;
    pairs::declare(&mut env)?;
    equal::declare(&mut env)?;
    env.set_error_on_duplicate_map_keys(false);
    Ok(env)
}

/// The macro `cel.bind(name, value, expression)`.
fn bind() -> Macro {
    Macro::receiver("bind", 3, |helper, target, args| {
        if target.as_ref().is_none_or(|target| target.expr != Expr::Ident("cel".to_owned())) {
            return Ok(None);
        }
        let name = args.first().map(|arg| (arg.id, &arg.expr));
        let name = match name {
            Some((_, Expr::Ident(name))) => name.clone(),
            other => {
                let id = other.map_or(0, |(id, _)| id);
                let text = "cel.bind() variable names must be simple identifiers";
                return Err(helper.new_error(id, text));
            }
        };
        let (Some(result), Some(value)) = (args.pop(), args.pop()) else { return Ok(None) };
        Ok(Some(bound(helper, &name, value, result)))
    })
}

/// `result` with `name` bound to `value`: a loop without iterations, with `name` as its
/// accumulator.
fn bound(
    helper: &mut MacroExprHelper<'_>,
    name: &str,
    value: IdedExpr,
    result: IdedExpr,
) -> IdedExpr {
    let never = Expr::Literal(LiteralValue::Boolean(false.into()));
    let whole = ComprehensionExpr {
        iter_range: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: helper.next_expr(never),
        loop_step: helper.next_expr(Expr::Ident(name.to_owned())),
        result,
    };
    helper.next_expr(Expr::Comprehension(Box::new(whole)))
}

/// Converts literal texts, so that one that cannot be converted is an error before any device is
/// checked.
///
/// # Errors
/// The text is upstream's.
/// In upstream's words.
fn convert_constants(expression: &IdedExpr, environment: &Arc<Env>) -> Result<(), String> {
    if let Expr::Call(call) = &expression.expr
        && ["bool", "bytes", "double", "int", "string", "uint"].contains(&call.func_name.as_str())
        && let [IdedExpr { expr: Expr::Literal(_), .. }] = call.args[..]
    {
        let context = Context::with_env(environment.clone());
        let value = Value::resolve_val(expression, &context);
        value.map_err(|e| format!("program instantiation failed: {}", error::runtime(&e)))?;
    }
    parts(expression).into_iter().try_for_each(|part| convert_constants(part, environment))
}

/// The subexpressions of an expression, left to right.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(CallExpr { target, args, .. }) => {
            target.as_deref().into_iter().chain(args).collect()
        }
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter();
            let parts = entries.map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            parts.flatten().collect()
        }
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
