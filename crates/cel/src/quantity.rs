//! Quantities in CEL: capacities of devices, and the quantities they are compared with.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go`.

use std::cmp::Ordering;

use ::cel::common::types::{CelBool, CelDouble, CelInt, CelString, INT_TYPE, STRING_TYPE, Type};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::val_methods;
use kubestep_api::{Quantity, QuantityFormat};

static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");

/// A quantity as a value.
#[derive(Clone, Debug)]
pub struct QuantityValue(pub Quantity);

impl Val for QuantityValue {
    val_methods!(QUANTITY, Any);

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<QuantityValue>().is_some_and(|other| other.0 == self.0)
    }
}

impl StaticVal for QuantityValue {}

/// Adds the type and its functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(QUANTITY.to_owned())?;
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], parse)?;
    env.add_overload("isQuantity", "is_quantity_string", vec![STRING_TYPE], is_quantity)?;
    let this_alone = vec![QUANTITY.to_owned()];
    env.add_overload("sign", "quantity_sign", this_alone, |args| number(sign(&this(&args)?)))?;
    let mut member = |name: &str, id: &str, args: Vec<Type>, op| {
        env.add_member_overload(name, id, QUANTITY.to_owned(), args, op)
    };
    let other = || vec![QUANTITY.to_owned()];
    member("isInteger", "quantity_is_integer", vec![], |args| {
        answer(this(&args)?.as_i64().is_some())
    })?;
    member("asInteger", "quantity_get_int", vec![], |args| match this(&args)?.as_i64() {
        Some(value) => number(value),
        None => Err(failed("asInteger", "cannot convert value to integer")),
    })?;
    member("asApproximateFloat", "quantity_get_float", vec![], |args| {
        Ok(CowVal::owned(CelDouble::from(this(&args)?.as_approximate_f64())))
    })?;
    member("compareTo", "quantity_cmp", other(), |args| number(compare(&args)? as i64))?;
    member("isGreaterThan", "quantity_is_greater_than", other(), |args| {
        answer(compare(&args)? == Ordering::Greater)
    })?;
    member("isLessThan", "quantity_is_less_than", other(), |args| {
        answer(compare(&args)? == Ordering::Less)
    })?;
    member("add", "quantity_add", other(), |args| sum(&args, false))?;
    member("add", "quantity_add_int", vec![INT_TYPE], |args| sum(&args, false))?;
    member("sub", "quantity_sub", other(), |args| sum(&args, true))?;
    member("sub", "quantity_sub_int", vec![INT_TYPE], |args| sum(&args, true))
}

/// An error of a function.
pub fn failed(function: &str, message: &str) -> ExecutionError {
    ExecutionError::function_error(function, message)
}

/// What a function returns to an expression: a value or an error.
pub type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub fn answer<'b, 'v>(value: bool) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(value)))
}

pub fn number<'b, 'v>(value: i64) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(value)))
}

/// The text argument of a function.
pub fn text<'c>(args: &'c [CowVal<'_, '_>]) -> &'c str {
    args.first().and_then(|arg| arg.downcast_ref::<CelString>()).map_or("", CelString::inner)
}

fn parse<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    match Quantity::parse(text(&args)) {
        Ok(quantity) => Ok(CowVal::owned(QuantityValue(quantity))),
        Err(error) => Err(failed("quantity", &error.to_string())),
    }
}

fn is_quantity<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    answer(Quantity::parse(text(&args)).is_ok())
}

fn at(args: &[CowVal<'_, '_>], index: usize) -> Result<Quantity, ExecutionError> {
    let value = args.get(index).ok_or(ExecutionError::MissingArgumentOrTarget)?;
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Ok(Quantity::new(*number.inner(), QuantityFormat::DecimalSi));
    }
    let quantity = value.downcast_ref::<QuantityValue>();
    quantity.map(|value| value.0.clone()).ok_or_else(|| failed("quantity", "no such overload"))
}

fn this(args: &[CowVal<'_, '_>]) -> Result<Quantity, ExecutionError> {
    at(args, 0)
}

fn sign(quantity: &Quantity) -> i64 {
    quantity.sign() as i64
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(this(args)?.cmp(&at(args, 1)?))
}

fn sum<'b, 'v>(args: &[CowVal<'b, 'v>], subtract: bool) -> CallResult<'b, 'v> {
    let (mut sum, other) = (this(args)?, at(args, 1)?);
    if subtract {
        sum.sub(&other)
    } else {
        sum.add(&other)
    }
    Ok(CowVal::owned(QuantityValue(sum)))
}
