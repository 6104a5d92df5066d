//! The workloads as text.

use std::fmt::Write;

use super::{
    BenchReport, ChosenWorkload, ConfiguredResult, WorkloadOutcome, WorkloadVerdict,
    describe_missed,
};
use kubestep_api::words::count;
use kubestep_bench::measure::{Figure, Figures};

/// Plugins that are listed for a measurement.
const PLUGINS: usize = 12;

/// A table, what is wrong, and the counts. `plugins`: also how long each plugin took.
pub fn text(report: &BenchReport<'_>, plugins: bool) -> String {
    let mut rows = vec![headings(report.compares)];
    for outcome in &report.workloads {
        rows.extend(self::rows(outcome, report.compares));
    }
    let mut text = table(&rows);
    for outcome in &report.workloads {
        text += &details(outcome, plugins);
    }
    let [passed, missed, broken] = report.counts();
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "\n{}: {passed} passed, {missed} below a threshold, {broken} could not be run",
        count(report.workloads.len(), "workload")
    );
    text
}

/// The workloads that would be run.
pub fn list(chosen: &[ChosenWorkload<'_>]) -> String {
    let mut rows = vec![["WORKLOAD", "LABELS", "FILE"].map(str::to_owned).to_vec()];
    rows.extend(chosen.iter().map(|it| vec![it.name(), it.labels(), it.file()]));
    table(&rows)
}

/// A line for each measurement of a workload.
pub fn lines(outcome: &WorkloadOutcome<'_>) -> String {
    let mut rows = vec![headings(outcome.sides.len() > 1)];
    rows.extend(self::rows(outcome, outcome.sides.len() > 1));
    table(&rows)
}

fn headings(compares: bool) -> Vec<String> {
    let mut headings = vec!["WORKLOAD"];
    headings.extend(compares.then_some("CONFIG"));
    headings.extend(["PODS", "SECONDS", "BUSY", "PODS/S", "P50", "P90", "P95", "P99"]);
    headings.extend(["ATTEMPT P50", "P99", "THRESHOLD"]);
    headings.into_iter().map(str::to_owned).collect()
}

fn rows(outcome: &WorkloadOutcome<'_>, compares: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let base = outcome.sides.first().map(ConfiguredResult::measured).unwrap_or_default();
    for (number, side) in outcome.sides.iter().enumerate() {
        for (at, figures) in side.measured().iter().enumerate() {
            let mut row = vec![name(outcome, figures, side.measured().len())];
            row.extend(compares.then(|| if number == 0 { "a" } else { "b" }.to_owned()));
            row.extend(cells(figures, base.get(at).filter(|_| number > 0)));
            rows.push(row);
        }
    }
    rows
}

/// The workload, and the measurement if there are several.
fn name(outcome: &WorkloadOutcome<'_>, figures: &Figures, of: usize) -> String {
    match of > 1 {
        true => format!("{} {}", outcome.chosen.name(), figures.name),
        false => outcome.chosen.name(),
    }
}

/// The figures of a measurement, with the ratio to `base` if there is one.
fn cells(figures: &Figures, base: Option<&Figures>) -> Vec<String> {
    let throughput = |bucket| figures.throughput(bucket);
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let average = match (throughput("Average"), base.and_then(|it| it.throughput("Average"))) {
        (Some(own), Some(base)) if base > 0.0 => format!("{} ({:.2}×)", number(own), own / base),
        (own, _) => shown(own),
    };
    let mut cells = vec![figures.scheduled.to_string(), seconds(Some(figures.seconds))];
    cells.extend([seconds(figures.busy_seconds), average]);
    cells.extend(["Perc50", "Perc90", "Perc95", "Perc99"].map(|bucket| shown(throughput(bucket))));
    cells.extend(["Perc50", "Perc99"].map(|bucket| millis(attempt(figures, bucket))));
    cells.push(match &figures.threshold {
        None => "-".into(),
        Some(check) if check.is_met() => format!("{} met", number(check.limit)),
        Some(check) => format!("{} MISSED", number(check.limit)),
    });
    cells
}

/// How long successful attempts took, in milliseconds.
fn attempt(figures: &Figures, bucket: &str) -> Option<f64> {
    let is_meant = |figure: &&Figure| {
        figure.metric == "scheduler_scheduling_attempt_duration_seconds"
            && figure.labels.get("result").is_some_and(|result| result == "scheduled")
    };
    figures.figures.iter().find(is_meant)?.data.get(bucket).copied()
}

fn details(outcome: &WorkloadOutcome<'_>, plugins: bool) -> String {
    let mut text = String::new();
    for side in &outcome.sides {
        let mut lines: Vec<String> = side.result.as_ref().err().cloned().into_iter().collect();
        lines.extend(side.missed().map(describe_missed));
        lines.extend(side.notices.iter().map(|notice| format!("note: {notice}")));
        if plugins {
            lines.extend(side.measured().iter().flat_map(plugin_lines));
        }
        if lines.is_empty() {
            continue;
        }
        let word = match (outcome.verdict(), &side.result) {
            (_, Err(_)) => "ERROR ",
            (WorkloadVerdict::Missed, _) => "MISSED ",
            _ => "",
        };
        let config = side.config.as_ref().map(|file| format!(" with {file}")).unwrap_or_default();
        let _ = writeln!(text, "\n{word}{}{config}", outcome.chosen.name());
        for line in lines.iter().flat_map(|line| line.lines()) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// The plugins that took longest, with what they took of the scheduler's time.
fn plugin_lines(figures: &Figures) -> Vec<String> {
    let is_plugin =
        |figure: &&Figure| figure.metric == "scheduler_plugin_execution_duration_seconds";
    let mut plugins: Vec<&Figure> = figures.figures.iter().filter(is_plugin).collect();
    let of = |figure: &Figure, bucket: &str| figure.data.get(bucket).copied().unwrap_or(0.0);
    plugins.sort_by(|a, b| of(b, "Sum").total_cmp(&of(a, "Sum")));
    let busy = figures.busy_seconds.unwrap_or(figures.seconds) * 1000.0;
    let mut rows = vec![["PLUGIN", "POINT", "SHARE", "RUNS", "AVERAGE", "P99"].map(str::to_owned)];
    rows.extend(plugins.iter().take(PLUGINS).map(|figure| {
        let label = |label| figure.labels.get(label).cloned().unwrap_or_default();
        let share = of(figure, "Sum") / busy.max(f64::MIN_POSITIVE) * 100.0;
        [
            label("plugin"),
            label("extension_point"),
            format!("{share:.1} %"),
            number(of(figure, "Count")),
            millis(Some(of(figure, "Average"))),
            millis(Some(of(figure, "Perc99"))),
        ]
    }));
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    table(&rows).lines().map(str::to_owned).collect()
}

/// Columns side by side: the first to the left, numbers to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let is_number = |column: usize| {
        let mut cells = rows.iter().skip(1).map(|row| row[column].as_str());
        cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let numbers: Vec<bool> = (0..columns).map(is_number).collect();
    let mut text = String::new();
    for row in rows {
        let cells =
            row.iter().zip(&widths).zip(&numbers).map(
                |((cell, width), is_number)| match is_number {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                },
            );
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A number with three digits or as an integer.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 && value.fract() != 0.0 => format!("{value:.2}"),
        size if size < 100.0 && value.fract() != 0.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn seconds(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.3}"))
}

/// A duration that is given in milliseconds.
fn millis(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 1.0 => format!("{:.0}µs", value * 1000.0),
        Some(value) => format!("{value:.1}ms"),
    }
}
