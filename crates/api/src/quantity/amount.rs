//! The numbers behind quantities: `Int`, 64 bits with a power of ten, and the wider `Decimal`,
//! which is used where `Int` would lose precision (upstream's `inf.Dec`).

use std::cmp::Ordering;

/// `value` × 10^`scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int {
    pub value: i64,
    pub scale: i32,
}

/// `mantissa` × 10^`scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    pub mantissa: i128,
    pub scale: i32,
}

/// 10^`exponent`, if it fits.
pub(super) fn power_of_ten(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `a` / `b`, rounded away from zero, and whether the result is exact. `b` is positive.
fn divide_away_from_zero(a: i128, b: i128) -> (i128, bool) {
    let remainder = a % b;
    (a / b + remainder.signum(), remainder == 0)
}

impl Int {
    /// The value in units of 10^`scale`, rounded away from zero; none if it does not fit.
    pub fn scaled(self, scale: i32) -> Option<i64> {
        if self.scale < scale {
            return Some(self.as_scale(scale).0.value);
        }
        let up = power_of_ten(i64::from(self.scale) - i64::from(scale));
        match (self.value, up) {
            (0, _) => Some(0),
            (value, Some(factor)) => i64::try_from(i128::from(value).checked_mul(factor)?).ok(),
            (_, None) => None,
        }
    }

    /// Like `scaled`, but out of range it returns the same as upstream's arithmetic: the low bits
    /// where it multiplies in one step, 0 where it multiplies digit by digit.
    pub(crate) fn scaled_wrapping(self, scale: i32) -> i64 {
        self.scaled(scale).unwrap_or_else(|| match self.scale.wrapping_sub(scale) {
            up @ (1 | 2 | 3 | 6 | 9) if self.value != i64::MIN => {
                wrapping_scale_up(self.value, u64::from(up.unsigned_abs()))
            }
            _ => 0,
        })
    }

    /// The value with at least this scale, rounded away from zero, and whether it is exact.
    pub(crate) fn as_scale(self, scale: i32) -> (Int, bool) {
        if self.scale >= scale {
            return (self, true);
        }
        let down = power_of_ten(i64::from(scale) - i64::from(self.scale));
        let (value, exact) = match down {
            Some(divisor) => divide_away_from_zero(i128::from(self.value), divisor),
            None => (i128::from(self.value.signum()), self.value == 0),
        };
        (Int { value: value as i64, scale }, exact)
    }

    /// The sum at the finer of the two scales; none if it does not fit.
    pub fn checked_add(self, other: Int) -> Option<Int> {
        match (self, other) {
            (_, Int { value: 0, .. }) => Some(self),
            (Int { value: 0, .. }, _) => Some(other),
            _ => {
                let scale = self.scale.min(other.scale);
                let value = self.scaled(scale)?.checked_add(other.scaled(scale)?)?;
                Some(Int { value, scale })
            }
        }
    }
}

impl From<Int> for Decimal {
    fn from(int: Int) -> Decimal {
        Decimal { mantissa: int.value.into(), scale: int.scale }
    }
}

impl Decimal {
    /// The mantissa at a finer scale; none if it does not fit into 128 bits.
    fn mantissa_at(self, scale: i32) -> Option<i128> {
        let up = i64::from(self.scale) - i64::from(scale);
        if self.mantissa == 0 {
            return Some(0);
        }
        self.mantissa.checked_mul(power_of_ten(up)?)
    }

    /// The same number at a finer scale, as far as 128 bits allow.
    pub(crate) fn at_scale(self, scale: i32) -> Decimal {
        match self.mantissa_at(scale) {
            Some(mantissa) => Decimal { mantissa, scale },
            None => self,
        }
    }

    /// The sum at the finer of the two scales. Beyond 128 bits the smaller addend is below the
    /// precision of the larger one, and is dropped.
    pub fn add(self, other: Decimal) -> Decimal {
        let scale = self.scale.min(other.scale);
        match (self.mantissa_at(scale), other.mantissa_at(scale)) {
            (Some(a), Some(b)) => Decimal { mantissa: a.saturating_add(b), scale },
            (None, _) => self,
            (_, None) => other,
        }
    }

    /// Mantissa and scale without trailing zeros: the same for all notations of a number.
    pub fn reduced(self) -> (i128, i32) {
        let Decimal { mut mantissa, mut scale } = self;
        if mantissa == 0 {
            return (0, 0);
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            scale = scale.saturating_add(1);
        }
        (mantissa, scale)
    }

    /// At exactly this scale, rounded away from zero, and whether it is exact.
    pub(crate) fn round_up(self, scale: i32) -> (Decimal, bool) {
        if self.scale >= scale {
            return (self.at_scale(scale), true);
        }
        let down = power_of_ten(i64::from(scale) - i64::from(self.scale));
        let (mantissa, exact) = match down {
            Some(divisor) => divide_away_from_zero(self.mantissa, divisor),
            None => (self.mantissa.signum(), self.mantissa == 0),
        };
        (Decimal { mantissa, scale }, exact)
    }

    pub fn compare(self, other: Decimal) -> Ordering {
        let scale = self.scale.min(other.scale);
        match (self.mantissa_at(scale), other.mantissa_at(scale)) {
            (Some(a), Some(b)) => a.cmp(&b),
            // The one that does not fit is the larger in magnitude.
            (None, _) => self.mantissa.cmp(&0),
            (_, None) => 0.cmp(&other.mantissa),
        }
    }

    /// Units of 10^`scale`, in upstream's arithmetic: the low bits of numbers beyond 64 bits.
    pub fn scaled(self, scale: i32) -> i64 {
        let down = i64::from(scale) - i64::from(self.scale);
        if down <= 0 {
            return wrapping_scale_up(self.mantissa as i64, down.unsigned_abs());
        }
        if self.mantissa < i64::MAX.into() && down < 19 {
            let (low, divisor) = (self.mantissa as i64, 10i64.pow(down as u32));
            return low / divisor + i64::from(low % divisor != 0);
        }
        match power_of_ten(down) {
            Some(divisor) => {
                let rounded = i128::from(self.mantissa.rem_euclid(divisor) != 0);
                (self.mantissa.div_euclid(divisor) + rounded) as i64
            }
            None => i64::from(self.mantissa > 0),
        }
    }
}

fn wrapping_scale_up(value: i64, exponent: u64) -> i64 {
    // 10^64 is a multiple of 2^64, so the result is 0.
    (0..exponent.min(64)).fold(value, |value, _| value.wrapping_mul(10))
}
