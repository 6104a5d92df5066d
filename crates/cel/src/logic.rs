//! Evaluating `&&`, `||` and `!` at the top of an expression: which of two errors is returned.
//!
//! Upstream's interpreter returns the error on the left, the crate's the one on the right.
//! Upstream: `evalAnd` and `evalOr` in cel-go's `interpreter/interpretable.go`.

use ::cel::common::ast::{Expr, IdedExpr, operators};
use ::cel::common::types::CelBool;
use ::cel::{Context, Value};

use crate::error;

/// The result of an expression: a bool, or the type of another value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvaluationResult {
    /// The selector matches, or it does not.
    Answer(bool),
    /// A value of another type, by that type's name.
    Other(String),
}

/// Evaluates an expression.
///
/// # Errors
/// The evaluation fails; the text is upstream's.
pub fn evaluate(
    expression: &IdedExpr,
    context: &Context<'_, '_>,
) -> Result<EvaluationResult, String> {
    if let Expr::Call(call) = &expression.expr {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, [left, right]) => return join(false, left, right, context),
            (operators::LOGICAL_OR, [left, right]) => return join(true, left, right, context),
            (operators::LOGICAL_NOT, [negated]) => {
                return match evaluate(negated, context)? {
                    EvaluationResult::Answer(answer) => Ok(EvaluationResult::Answer(!answer)),
                    EvaluationResult::Other(_) => Err(error::NO_OVERLOAD.to_owned()),
                };
            }
            _ => {}
        }
    }
    let value = Value::resolve_val(expression, context);
    let value = value.map_err(|error| error::runtime(&error))?;
    Ok(match value.downcast_ref::<CelBool>() {
        Some(answer) => EvaluationResult::Answer(*answer.inner()),
        None => EvaluationResult::Other(value.get_type().name().to_owned()),
    })
}

/// Combines both sides; one that is `decisive` is the result, even if the other is an error.
fn join(
    decisive: bool,
    left: &IdedExpr,
    right: &IdedExpr,
    context: &Context<'_, '_>,
) -> Result<EvaluationResult, String> {
    let settled = Ok(EvaluationResult::Answer(decisive));
    let left = evaluate(left, context);
    if left == settled {
        return settled;
    }
    let right = evaluate(right, context);
    if right == settled {
        return settled;
    }
    for side in [left, right] {
        if let EvaluationResult::Other(_) = side? {
            return Err(error::NO_OVERLOAD.to_owned());
        }
    }
    Ok(EvaluationResult::Answer(!decisive))
}
