//! Formatting amounts of resources for display.

use crate::resource::Resource;

/// Millicores, exact: `500m`, and from one CPU on in CPUs, `2`, `4.75`.
pub fn cpu(milli: i64) -> String {
    match (milli / 1_000, milli % 1_000) {
        (cpus, 0) => cpus.to_string(),
        (0, milli) => format!("{milli}m"),
        (cpus, rest) => {
            let decimals = format!("{:03}", rest.abs());
            format!("{cpus}.{}", decimals.trim_end_matches('0'))
        }
    }
}

/// Bytes in the largest binary unit that yields a short number: `256Mi`, `1.5Gi`.
pub fn bytes(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] =
        [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let fitting = UNITS.iter().find(|(_, size)| bytes.unsigned_abs() >= size.unsigned_abs());
    let Some((unit, size)) = fitting else { return bytes.to_string() };
    match bytes % size {
        0 => format!("{}{unit}", bytes / size),
        _ => format!("{:.1}{unit}", bytes as f64 / *size as f64),
    }
}

/// The amount of a resource in its unit.
pub fn of(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" => cpu(amount),
        "memory" | "ephemeral-storage" => bytes(amount),
        name if name.starts_with("hugepages-") => bytes(amount),
        _ => amount.to_string(),
    }
}

/// Names and amounts of all non-zero resources, except the number of pods.
pub fn parts(resource: &Resource) -> Vec<(&str, i64)> {
    let fixed = [
        ("cpu", resource.milli_cpu),
        ("memory", resource.memory),
        ("ephemeral-storage", resource.ephemeral_storage),
    ];
    let scalars = resource.scalars.iter().map(|(name, amount)| (name.as_str(), *amount));
    fixed.into_iter().chain(scalars).filter(|(_, amount)| *amount != 0).collect()
}

/// All amounts in one line: `cpu 500m, memory 1Gi`.
pub fn resources(resource: &Resource) -> String {
    let all: Vec<String> = parts(resource)
        .into_iter()
        .map(|(name, amount)| format!("{name} {}", of(name, amount)))
        .collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_exact_where_they_can_be() {
        assert_eq!([0, 500, 1_000, 1_500, 2_250].map(cpu), ["0", "500m", "1", "1.5", "2.25"]);
        let large = [3_806_050, 2_283_800, 1_001, 999, -4_750, -50];
        assert_eq!(large.map(cpu), ["3806.05", "2283.8", "1.001", "999m", "-4.75", "-50m"]);
        let sizes = [0, 512, 1_024, 268_435_456, 1_610_612_736, 1_500_000_000];
        assert_eq!(sizes.map(bytes), ["0", "512", "1Ki", "256Mi", "1.5Gi", "1.4Gi"]);
        assert_eq!(of("hugepages-2Mi", 4 << 20), "4Mi");
        assert_eq!(of("example.com/gpu", 3), "3");
    }

    #[test]
    fn a_request_is_one_line() {
        let mut resource = Resource { milli_cpu: 500, memory: 1 << 30, ..Resource::default() };
        assert_eq!(resources(&resource), "cpu 500m, memory 1Gi");
        resource.add_scalar("example.com/gpu".into(), 2);
        assert_eq!(resources(&resource), "cpu 500m, memory 1Gi, example.com/gpu 2");
        assert_eq!(resources(&Resource::default()), "nothing");
    }
}
