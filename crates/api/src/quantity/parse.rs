//! Parsing quantities, with upstream's fast path for numbers that fit 64 bits and its slow one.

use super::amount::{Decimal, Int};
use super::{Format, Quantity, QuantityError};

/// Number of digits that certainly fit into 64 bits.
const SAFE_DIGITS: i64 = 18;
/// The finest scale, 10^-9: smaller fractions are rounded up.
const NANO: i32 = -9;

/// The parts of a quantity's text: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// Sign, digits and point as written.
    number: &'a str,
}

/// A suffix: base^exponent in a notation.
struct Suffix {
    exponent: i32,
    format: Format,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    if text == "0" {
        return Ok(Quantity::zero(Format::DecimalSi));
    }
    let parts = split(text)?;
    let suffix = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
    if let Some(int) = fast(&parts, &suffix)? {
        let mut quantity = Quantity::from_int(int, suffix.format);
        if keeps_text(&parts, &suffix, int) {
            quantity.written = text.into();
        }
        return Ok(quantity);
    }
    slow(&parts, &suffix)
}

/// Splits the text. Leading zeros are dropped, because upstream counts digits without them.
fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Parts { negative, whole: "0", fraction: "", suffix: "", number: "0" });
    }
    let (whole, rest) = split_digits(digits);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if !is_suffix(suffix) {
        return Err(QuantityError::Format);
    }
    let number = &text[..text.len() - suffix.len()];
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { negative, whole, fraction, suffix, number })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Letters of a suffix, optionally followed by a sign and digits.
fn is_suffix(text: &str) -> bool {
    let letters = text.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    exponent.chars().all(|c| c.is_ascii_digit())
}

fn interpret(suffix: &str) -> Option<Suffix> {
    let (exponent, format) = match suffix {
        "n" => (-9, Format::DecimalSi),
        "u" => (-6, Format::DecimalSi),
        "m" => (-3, Format::DecimalSi),
        "" => (0, Format::DecimalSi),
        "k" => (3, Format::DecimalSi),
        "M" => (6, Format::DecimalSi),
        "G" => (9, Format::DecimalSi),
        "T" => (12, Format::DecimalSi),
        "P" => (15, Format::DecimalSi),
        "E" => (18, Format::DecimalSi),
        "Ki" => (10, Format::BinarySi),
        "Mi" => (20, Format::BinarySi),
        "Gi" => (30, Format::BinarySi),
        "Ti" => (40, Format::BinarySi),
        "Pi" => (50, Format::BinarySi),
        "Ei" => (60, Format::BinarySi),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            // Upstream truncates the exponent to 32 bits.
            (exponent.parse::<i64>().ok()? as i32, Format::DecimalExponent)
        }
    };
    Some(Suffix { exponent, format })
}

/// The result of upstream's 64-bit path; none if it takes the slow path.
fn fast(parts: &Parts<'_>, suffix: &Suffix) -> Result<Option<Int>, QuantityError> {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    let (spare, scale, factor) = match suffix.format {
        Format::BinarySi if fraction > 0 => return Ok(None),
        Format::BinarySi => {
            // Ten bits are about three digits.
            let digits = i64::from(suffix.exponent) * 3 / 10;
            (15 - whole - digits - 1, 0, 1i64 << suffix.exponent)
        }
        _ => (SAFE_DIGITS - whole - fraction, suffix.exponent, 1),
    };
    let scale = scale.wrapping_sub(fraction as i32);
    if spare < 0 || scale < NANO {
        return Ok(None);
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let value: i64 = digits.parse().map_err(|_| QuantityError::Number)?;
    let sign = if parts.negative { -1 } else { 1 };
    Ok(value.checked_mul(factor).map(|value| Int { value: sign * value, scale }))
}

/// Whether upstream prints the text as written although it is not the canonical form: its check for
/// canonical forms is approximate. Canonical texts need not be kept.
fn keeps_text(parts: &Parts<'_>, suffix: &Suffix, int: Int) -> bool {
    let plain = parts.number.starts_with(|c: char| matches!(c, '1'..='9'))
        && !parts.number.contains('.')
        && suffix.format != Format::DecimalExponent;
    if plain {
        return false;
    }
    if suffix.format == Format::BinarySi {
        return (int.value >> suffix.exponent) & 7 != 0;
    }
    let digits_end_in_zeros = match parts.fraction {
        "" => parts.whole.ends_with("000"),
        fraction if fraction.len() >= 3 => fraction.ends_with("000"),
        fraction => format!("{}{fraction}", parts.whole).ends_with("000"),
    };
    int.scale % 3 == 0 && !digits_end_in_zeros && !parts.whole.starts_with('0')
}

/// The result beyond 64 bits: rounds up to nano, caps binary amounts.
fn slow(parts: &Parts<'_>, suffix: &Suffix) -> Result<Quantity, QuantityError> {
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let mantissa: i128 = digits.parse().map_err(|_| QuantityError::Number)?;
    let fraction = parts.fraction.len() as i32;
    let mut format = suffix.format;
    let mut amount = if format == Format::BinarySi {
        let factor = 1i128 << suffix.exponent;
        let mantissa = mantissa.checked_mul(factor).ok_or(QuantityError::Number)?;
        Decimal { mantissa, scale: -fraction }
    } else {
        Decimal { mantissa, scale: suffix.exponent.wrapping_sub(fraction) }
    };
    if amount.mantissa != 0 {
        amount = amount.round_up(NANO).0;
    }
    let largest = Decimal { mantissa: i64::MAX.into(), scale: 0 };
    let one = Decimal { mantissa: 1, scale: 0 };
    if format == Format::BinarySi && amount.compare(largest).is_gt() {
        amount = largest;
    }
    if format == Format::BinarySi && amount.mantissa > 0 && amount.compare(one).is_lt() {
        format = Format::DecimalSi;
    }
    if parts.negative {
        amount.mantissa = -amount.mantissa;
    }
    Ok(Quantity::from_decimal(amount, format))
}
