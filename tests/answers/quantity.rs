//! Quantities as text, in the smallest units: millicores for CPU, whole units for all else.

const UNITS: &[(&str, i64)] = &[
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
];

/// The amount of a quantity.
pub fn parse(resource: &str, text: &str) -> Option<i64> {
    let scale = if resource == "cpu" { 1_000.0 } else { 1.0 };
    if let Some(thousandths) = text.strip_suffix('m') {
        return Some((thousandths.parse::<f64>().ok()? * scale / 1_000.0).ceil() as i64);
    }
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, factor) = match unit {
        Some((unit, factor)) => (text.strip_suffix(unit)?, *factor as f64),
        None => (text, 1.0),
    };
    Some((number.parse::<f64>().ok()? * factor * scale).ceil() as i64)
}

/// The amount as a quantity.
pub fn write(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format!("{amount}m") } else { amount.to_string() }
}

#[test]
fn amounts_are_read_as_they_are_written() {
    for (resource, text, amount) in
        [("cpu", "1500m", 1_500), ("cpu", "2", 2_000), ("memory", "1Gi", 1 << 30), ("pods", "3", 3)]
    {
        assert_eq!(parse(resource, text), Some(amount), "{text}");
        assert_eq!(parse(resource, &write(resource, amount)), Some(amount), "{text}");
    }
}
