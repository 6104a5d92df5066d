//! Why this node and not another: the ranking, and what each score was made of.

use std::collections::HashSet;

use super::WhyDetail;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_debug::margin::Margin;
use kubestep_debug::why::score::{Formula, NodePlacement, Points, Ranked, ScorePlugin};
use kubestep_debug::why::{PodLocation, Why};
use unicode_width::UnicodeWidthStr;

/// Why scores do not match what is on the nodes.
const AS_RETURNED: &str = "An extender without a node cache returned the nodes: kube-scheduler \
                           scores them as if no pod and no image were on them.";
/// Nodes of the ranking that the short form shows.
const RANKED: usize = 5;

/// The ranking with all scores, and the formulas in the wide form.
pub(super) fn lines(why: &Why, detail: &WhyDetail) -> Vec<String> {
    let Some(placement) = &why.placement else { return Vec::new() };
    if placement.ranking.len() < 2 {
        return match (placement.ranking.first(), &why.place) {
            (Some(only), PodLocation::Bound { .. }) if placement.nominated_first => vec![format!(
                "{} was tried first because the pod was nominated to it, and fit: no other node was evaluated.",
                only.node
            )],
            (Some(only), PodLocation::Bound { .. }) => {
                vec![format!(
                    "{} was the only feasible node, so no scores were computed.",
                    only.node
                )]
            }
            _ => Vec::new(),
        };
    }
    let mut lines = match detail.wide {
        true => table(placement, placement.ranking.iter()),
        false => by_plugin(placement, &detail.common_end),
    };
    if placement.as_returned {
        lines.push(AS_RETURNED.to_owned());
    }
    lines.extend(tie(placement));
    if detail.wide {
        lines.extend(formulas(placement));
    }
    lines
}

/// The formulas that were kept: those of the best nodes.
fn formulas(placement: &NodePlacement) -> Vec<String> {
    let nodes: HashSet<Name> = placement.formulas.iter().map(|formula| formula.node).collect();
    let (explained, all) = (nodes.len(), placement.ranking.len());
    let heading = (0 < explained && explained < all).then(|| {
        format!("Formulas of {explained} of the {} (--node NODE: of another):", count(all, "node"))
    });
    heading.into_iter().chain(placement.formulas.iter().flat_map(formula)).collect()
}

/// By how much the chosen node won, or would win now, and by which plugins; `None` if nothing was
/// compared.
pub(super) fn margin(placement: &NodePlacement, now: bool) -> Option<String> {
    let best = placement.ranking.first()?;
    let second = placement.ranking.get(1).filter(|_| placement.node == Some(best.node))?;
    let plugins = placement.plugins.iter().zip(best.scores.iter().zip(&second.scores));
    let scores = plugins.map(|(plugin, (a, b))| (plugin.plugin, a.weighted, b.weighted));
    let margin = Margin::new(best.total - second.total, scores);
    Some(match margin.by {
        0 if placement.tie.len() > 2 => {
            format!("{} share the best total, {}", count(placement.tie.len(), "node"), best.total)
        }
        0 => format!("{} and {} have the same total, {}", best.node, second.node, best.total),
        by => {
            let won = if now { "would win" } else { "won" };
            format!("{} {won} by {by} over {}: {margin}", best.node, second.node)
        }
    })
}

/// The best nodes side by side, a line a plugin: it stays narrow whatever the number of plugins.
/// Plugins that score all nodes alike are named in one line. Names are shown without `end`.
fn by_plugin(placement: &NodePlacement, end: &str) -> Vec<String> {
    let ranking = &placement.ranking;
    let shown: Vec<&Ranked> = ranking.iter().take(RANKED).collect();
    let mut table = vec![vec![String::new()]];
    let short =
        |row: &&Ranked| row.node.text().strip_suffix(end).unwrap_or(&row.node.text()).to_owned();
    table[0].extend(shown.iter().map(short));
    let mut alike = Vec::new();
    for (at, plugin) in placement.plugins.iter().enumerate() {
        let mut line = vec![plugin_name(plugin)];
        let points = |row: &Ranked| row.scores.get(at).copied();
        let first = ranking.first().and_then(points);
        line.extend(shown.iter().filter_map(|row| Some(cell(plugin, points(row)?))));
        if !plugin.opaque && ranking.iter().all(|row| points(row) == first) {
            line.truncate(2);
            alike.push(line.join(" "));
        } else {
            table.push(line);
        }
    }
    let totals = shown.iter().map(|row| row.total.to_string());
    table.push(["total".to_owned()].into_iter().chain(totals).collect());
    // How many there are is said ahead: where the text is narrow, fewer are shown.
    let of = match ranking.len() > RANKED {
        true => format!(" of the best of {}", count(ranking.len(), "node")),
        false => String::new(),
    };
    let mut lines = vec![format!("Scores{of}, weighted (raw → normalized × weight):")];
    lines.extend(padded(&table, 0));
    if !alike.is_empty() {
        lines.push(format!("  the same on every node: {}", alike.join(", ")));
    }
    lines
}

fn tie(placement: &NodePlacement) -> Option<String> {
    if placement.tie.is_empty() {
        return None;
    }
    let how = match placement.tie_break.as_deref() {
        None => "which one is chosen is decided in the cycle".to_owned(),
        Some("upstream") if placement.drawn => {
            "kube-scheduler picks one of them at random, here it is the first that its heap yields"
                .to_owned()
        }
        Some("upstream") => {
            "the chosen one is what kube-scheduler's heap yields for the order in which they were \
             found to fit"
                .to_owned()
        }
        Some(how) => format!("the tie is broken by {how}"),
    };
    Some(format!("{} share the best total; {how}.", placement.tie.len()))
}

/// Nodes with their scores: raw, normalized and weighted of each plugin, and the total.
fn table<'a>(placement: &NodePlacement, rows: impl Iterator<Item = &'a Ranked>) -> Vec<String> {
    let mut table = vec![header(placement)];
    table.extend(rows.map(|ranked| row(placement, ranked)));
    let mut lines = vec!["Scores, weighted (raw → normalized × weight):".to_owned()];
    lines.extend(padded(&table, 1));
    lines
}

/// Lines with the cells of each column under each other: those of `names` on the left, all others
/// on the right of their columns.
fn padded(table: &[Vec<String>], names: usize) -> Vec<String> {
    let columns = table.first().map_or(0, Vec::len);
    let width = |at: usize| table.iter().filter_map(|row| row.get(at)).map(|c| c.width()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(at, (cell, width))| {
            let blank = " ".repeat(width.saturating_sub(cell.width()));
            if at == names { format!("{cell}{blank}") } else { format!("{blank}{cell}") }
        });
        format!("  {}", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    table.iter().map(line).collect()
}

fn header(placement: &NodePlacement) -> Vec<String> {
    let mut header = vec!["rank".to_owned(), "node".to_owned(), "total".to_owned()];
    header.extend(placement.plugins.iter().map(plugin_name));
    header
}

/// The name of a plugin, with its weight if that is not 1.
fn plugin_name(plugin: &ScorePlugin) -> String {
    let opaque = if plugin.opaque { " (opaque)" } else { "" };
    match plugin.weight {
        1 => format!("{}{opaque}", plugin.plugin),
        weight => format!("{}{opaque} ×{weight}", plugin.plugin),
    }
}

fn row(placement: &NodePlacement, ranked: &Ranked) -> Vec<String> {
    let mut row = vec![ranked.rank.to_string(), ranked.node.to_string(), ranked.total.to_string()];
    let scores = placement.plugins.iter().zip(&ranked.scores);
    row.extend(scores.map(|(plugin, points)| cell(plugin, *points)));
    row
}

/// The weighted score, with what it was made of where that differs.
fn cell(plugin: &ScorePlugin, points: Points) -> String {
    let Points { raw, normalized, weighted } = points;
    if plugin.opaque {
        return "?".to_owned();
    }
    match (raw == normalized, normalized == weighted) {
        (true, true) => weighted.to_string(),
        (true, false) => format!("{weighted} ({normalized})"),
        (false, true) => format!("{weighted} ({raw})"),
        (false, false) => format!("{weighted} ({raw} → {normalized})"),
    }
}

fn formula(formula: &Formula) -> Vec<String> {
    let mut lines = vec![format!("{} on {}: {}", formula.plugin, formula.node, formula.formula)];
    if formula.normalization != "as it is" {
        lines.push(format!("  to 0…100: {}", formula.normalization));
    }
    lines.extend(formula.inputs.iter().map(|input| format!("  {}: {}", input.name, input.value)));
    lines
}

/// A node's scores; with `against`, beside those of the chosen one, plugin by plugin.
pub(super) fn versus(why: &Why, name: Name, against: bool) -> Vec<String> {
    let Some(placement) = &why.placement else { return Vec::new() };
    let find = |node: Name| placement.ranking.iter().find(|row| row.node == node);
    let Some(asked) = find(name) else { return Vec::new() };
    let chosen = placement.node.and_then(find).or(placement.ranking.first());
    let rival = chosen.filter(|chosen| against && chosen.node != name);
    let mut lines = match rival {
        Some(chosen) => compared(placement, chosen, asked),
        None => table(placement, std::iter::once(asked)),
    };
    // Against the chosen one, only what makes the difference is worth the room.
    let differs = |plugin: Symbol| {
        let at = placement.plugins.iter().position(|known| known.plugin == plugin);
        let score =
            |row: &Ranked| at.and_then(|at| row.scores.get(at)).map(|points| points.weighted);
        rival.is_none_or(|chosen| score(chosen) != score(asked))
    };
    let shown = |formula: &&Formula| {
        let node = formula.node == name || rival.is_some_and(|row| row.node == formula.node);
        node && differs(formula.plugin)
    };
    let mut formulas: Vec<&Formula> = placement.formulas.iter().filter(shown).collect();
    formulas.sort_by_key(|formula| {
        placement.plugins.iter().position(|plugin| plugin.plugin == formula.plugin)
    });
    lines.extend(formulas.into_iter().flat_map(formula));
    lines
}

fn compared(placement: &NodePlacement, chosen: &Ranked, asked: &Ranked) -> Vec<String> {
    let mut lines = vec![match chosen.total - asked.total {
        0 => format!(
            "{} has the same total as {}, which the tie-break chose.",
            asked.node, chosen.node
        ),
        by => format!(
            "{} has {} points, {} has {}: {by} fewer, rank {} of {}.",
            chosen.node,
            chosen.total,
            asked.node,
            asked.total,
            asked.rank,
            placement.ranking.len()
        ),
    }];
    let pairs = chosen.scores.iter().zip(&asked.scores);
    for (plugin, (a, b)) in placement.plugins.iter().zip(pairs) {
        if a.weighted != b.weighted {
            let difference = b.weighted - a.weighted;
            lines.push(format!(
                "  {difference:+} by {} ({} against {})",
                plugin.plugin, b.weighted, a.weighted
            ));
        }
    }
    lines
}
