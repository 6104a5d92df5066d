//! Printing quantities in canonical form: no fraction, the largest suffix that is exact.

use super::amount::Decimal;
use super::{Format, Quantity};

/// The canonical form in the quantity's own notation; small or fractional binary ones are printed
/// as decimal ones.
pub(super) fn canonical(quantity: &Quantity) -> String {
    if quantity.is_zero() {
        return "0".into();
    }
    let amount = quantity.decimal();
    if quantity.format == Format::BinarySi {
        let (whole, exact) = amount.round_up(0);
        let small = amount.compare(Decimal { mantissa: 1024, scale: 0 }).is_lt()
            && amount.compare(Decimal { mantissa: -1024, scale: 0 }).is_gt();
        if exact && !small {
            return binary(whole.mantissa);
        }
        return decimal(amount, Format::DecimalSi);
    }
    decimal(amount, quantity.format)
}

fn binary(mut mantissa: i128) -> String {
    let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut power = 0;
    while mantissa % 1024 == 0 && power + 1 < suffixes.len() {
        mantissa /= 1024;
        power += 1;
    }
    format!("{mantissa}{}", suffixes[power])
}

fn decimal(amount: Decimal, format: Format) -> String {
    let Decimal { mut mantissa, scale: mut exponent } = amount;
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent % 3 != 0 {
        mantissa = mantissa.saturating_mul(10);
        exponent -= 1;
    }
    let suffix = match (format, exponent) {
        (_, 0) => String::new(),
        (Format::DecimalExponent, exponent) => format!("e{exponent}"),
        (_, exponent) => si_suffix(exponent).into(),
    };
    format!("{mantissa}{suffix}")
}

/// The suffix of 10^`exponent`; empty beyond exa, as upstream.
fn si_suffix(exponent: i32) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}
