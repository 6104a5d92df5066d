//! `resource.Quantity`: amounts such as `100m`, `1.5Gi` or `2e3`, exactly as upstream
//! (`apimachinery/pkg/api/resource`), including the results for values out of range.
//!
//! An amount is a 64-bit number with a power of ten, as long as that is exact. Where upstream
//! continues with arbitrary precision, this uses 128 bits, which is more than 10^29 at the finest
//! precision (nano).

mod amount;
mod format;
mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::Symbol;
use amount::{Decimal, Int};

/// The notation in which a quantity was written, and in which it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1000: `12M`, `100m`.
    DecimalSi,
    /// Powers of 1024: `12Mi`.
    BinarySi,
    /// `12e6`; also what upstream prints for quantities made without a format.
    #[default]
    DecimalExponent,
}

/// Why a text is not a quantity; the texts are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not consist of a number and a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number is invalid.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is invalid.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// Powers of ten to which amounts are rounded.
pub(crate) const MILLI: i32 = -3;

/// The number behind a quantity.
#[derive(Clone, Debug)]
enum Amount {
    Int(Int),
    /// Boxed, because it is rare and there are many quantities.
    Decimal(Box<Decimal>),
}

/// An amount of a resource. Equality and order compare the number, not the notation.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    /// The text as written, if it is kept although it is not the canonical form.
    written: Symbol,
    format: Format,
}

impl Default for Quantity {
    fn default() -> Quantity {
        Quantity::zero(Format::DecimalExponent)
    }
}

impl Quantity {
    const fn zero(format: Format) -> Quantity {
        Quantity::from_int(Int { value: 0, scale: 0 }, format)
    }

    const fn from_int(int: Int, format: Format) -> Quantity {
        Quantity { amount: Amount::Int(int), written: Symbol::EMPTY, format }
    }

    fn from_decimal(decimal: Decimal, format: Format) -> Quantity {
        Quantity { amount: Amount::Decimal(Box::new(decimal)), written: Symbol::EMPTY, format }
    }

    /// A quantity of `value` units.
    pub const fn new(value: i64, format: Format) -> Quantity {
        Quantity::from_int(Int { value, scale: 0 }, format)
    }

    /// A quantity of `value` thousandths: `100` for `100m`.
    pub const fn new_milli(value: i64, format: Format) -> Quantity {
        Quantity::from_int(Int { value, scale: MILLI }, format)
    }

    /// Parses a quantity (upstream's `ParseQuantity`).
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        parse::parse(text)
    }

    /// The notation in which it is printed.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The amount in units, rounded away from zero; out of range the result is the same as
    /// upstream's.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The amount in thousandths, rounded away from zero; out of range the result is the same as
    /// upstream's.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// The amount in units of 10^`scale` (upstream's `ScaledValue`).
    pub fn scaled_value(&self, scale: i32) -> i64 {
        match &self.amount {
            Amount::Int(int) => int.scaled_wrapping(scale),
            Amount::Decimal(decimal) => decimal.scaled(scale),
        }
    }

    /// The amount in units if that is a whole number in range (upstream's `AsInt64`).
    pub fn as_i64(&self) -> Option<i64> {
        match &self.amount {
            Amount::Int(int) if int.scale >= 0 => int.scaled(0),
            _ => None,
        }
    }

    /// The amount as a floating point number, for display and for CEL.
    pub fn as_approximate_f64(&self) -> f64 {
        let (mantissa, scale) = match &self.amount {
            Amount::Int(int) => (int.value as f64, int.scale),
            Amount::Decimal(decimal) => (decimal.mantissa as f64, decimal.scale),
        };
        if scale == 0 { mantissa } else { mantissa * 10f64.powi(scale) }
    }

    /// Whether number and notation are equal: Go's `==` on the structs. Numbers beyond 64 bits are
    /// behind pointers there, and never equal.
    pub fn is_identical(&self, other: &Quantity) -> bool {
        let (Amount::Int(a), Amount::Int(b)) = (&self.amount, &other.amount) else { return false };
        (a.value, a.scale) == (b.value, b.scale)
            && (self.written, self.format) == (other.written, other.format)
    }

    /// The fields as Go prints the struct, for messages in which upstream does so. Numbers beyond 64
    /// bits are addresses there.
    pub fn as_go_struct(&self) -> String {
        let format = match self.format {
            Format::DecimalSi => "DecimalSI",
            Format::BinarySi => "BinarySI",
            Format::DecimalExponent => "DecimalExponent",
        };
        let (int, decimal) = match &self.amount {
            Amount::Int(int) => (*int, "<nil>".to_owned()),
            Amount::Decimal(_) => (Int { value: 0, scale: 0 }, self.to_string()),
        };
        format!("{{{{{} {}}} {{{decimal}}} {} {format}}}", int.value, int.scale, self.written)
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == Ordering::Equal
    }

    /// The amount compared with zero.
    pub fn sign(&self) -> Ordering {
        match &self.amount {
            Amount::Int(int) => int.value.cmp(&0),
            Amount::Decimal(decimal) => decimal.mantissa.cmp(&0),
        }
    }

    fn decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Int(int) => Decimal::from(*int),
            Amount::Decimal(decimal) => **decimal,
        }
    }

    /// Adds `other`. Zero adopts the notation of `other`.
    pub fn add(&mut self, other: &Quantity) {
        self.written = Symbol::EMPTY;
        if self.is_zero() {
            self.format = other.format;
        }
        if let (Amount::Int(a), Amount::Int(b)) = (&self.amount, &other.amount)
            && let Some(sum) = a.checked_add(*b)
        {
            self.amount = Amount::Int(sum);
            return;
        }
        self.amount = Amount::Decimal(Box::new(self.decimal().add(other.decimal())));
    }

    /// Subtracts `other`. Zero adopts the notation of `other`.
    pub fn sub(&mut self, other: &Quantity) {
        let mut negative = other.clone();
        negative.negate();
        self.add(&negative);
    }

    pub(crate) fn negate(&mut self) {
        self.written = Symbol::EMPTY;
        self.amount = match &self.amount {
            Amount::Int(int) => Amount::Int(Int { value: int.value.wrapping_neg(), ..*int }),
            Amount::Decimal(decimal) => Amount::Decimal(Box::new(Decimal {
                mantissa: decimal.mantissa.wrapping_neg(),
                ..**decimal
            })),
        };
    }

    /// The product with another quantity, in this one's notation.
    pub fn times(&self, factor: &Quantity) -> Quantity {
        let (a, b) = (self.decimal(), factor.decimal());
        let mantissa = a.mantissa.saturating_mul(b.mantissa);
        let scale = a.scale.saturating_add(b.scale);
        Quantity::from_decimal(Decimal { mantissa, scale }, self.format)
    }

    /// Rounds away from zero to multiples of 10^`scale`; `true` if the result is exact.
    pub(crate) fn round_up(&mut self, scale: i32) -> bool {
        match &self.amount {
            Amount::Int(int) if int.scale >= scale => true,
            Amount::Int(int) => {
                let (rounded, exact) = int.as_scale(scale);
                self.amount = Amount::Int(rounded);
                self.written = Symbol::EMPTY;
                exact
            }
            Amount::Decimal(decimal) => {
                let (rounded, exact) = decimal.round_up(scale);
                self.amount = Amount::Decimal(Box::new(rounded));
                self.written = Symbol::EMPTY;
                exact
            }
        }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        match (&self.amount, &other.amount) {
            (Amount::Int(a), Amount::Int(b)) if a.scale == b.scale => a.value.cmp(&b.value),
            _ => self.decimal().compare(other.decimal()),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

/// Hashes the number, consistent with equality.
impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decimal().reduced().hash(state);
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse(text)
    }
}

/// The canonical form; a quantity that upstream keeps as written is printed as written.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.written != Symbol::EMPTY {
            return f.pad(&self.written);
        }
        f.pad(&format::canonical(self))
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        struct Visitor;
        impl Visitor {
            fn read<E: serde::de::Error>(text: &str) -> Result<Quantity, E> {
                Quantity::parse(text.trim())
                    .map_err(|error| E::custom(format!("{text:?} is not a quantity: {error}")))
            }
        }
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 500m, 2 or 1Gi")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Visitor::read(text)
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Quantity, E> {
                Visitor::read(&value.to_string())
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Quantity, E> {
                Visitor::read(&value.to_string())
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Quantity, E> {
                Visitor::read(&value.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests;
